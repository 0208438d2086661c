use proptest::prelude::*;

use super::{
    super::{Reading, readings},
    Dots,
};

fn strict(target: &str) -> Vec<String> {
    let read = readings(target.as_bytes(), true);
    let mut texts: Vec<String> = Vec::new();
    for reading in read.all().filter(|reading| matches!(reading, Reading::Strict(_))) {
        let text = String::from_utf8(read.text(reading).into_owned()).expect("ASCII");
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}

#[test]
fn strict_readings_cover_every_kind_of_server() {
    for (target, expected) in [
        ("//a", &["/a"][..]),
        ("/a//b///c//", &["/a/b/c/"]),
        ("/%2fa", &["/a"]),
        ("/.//.//a", &["/a"]),
        // Servers merge slashes before they resolve `..`.
        ("/x//../a", &["/a"]),
        ("/x/..%2Fa", &["/a"]),
        ("/x%2f%2e%2E%2fa", &["/a"]),
        ("/..//..%2f/a", &["/a"]),
        ("//", &["/"]),
        ("//..", &["/"]),
        ("/a//..", &["/"]),
        ("/a//.", &["/a/"]),
        // For some servers, a backslash is a slash. For others, it is an ordinary character.
        ("/x/..\\a", &["/a"]),
        ("/%5ca", &["/\\a", "/a"]),
        ("/x\\y//../a", &["/a", "/x/a"]),
        // Some servers drop parameters (`;b`).
        ("/a;b", &["/a"]),
        ("/x/..;b/a", &["/a"]),
        ("/;/a", &["/a"]),
        ("/x;y//../a", &["/a"]),
        ("//a;b", &["/a;b", "/a"]),
        ("/x/..%3ba/a", &["/x/..;a/a", "/a"]),
        ("/p/..;/a/;q/../x", &["/x", "/a/x"]),
        // A rule can be written with or without these escapes.
        ("/a%28b%29", &["/a(b)"]),
        ("//%7ea%28", &["/~a%28", "/~a(", "/%7Ea%28"]),
        // Decoded, these would begin a query, a fragment or another escape.
        ("//%3f%23%25", &["/%3F%23%25"]),
        ("//%252f%2561", &["/%252f%2561"]),
        // In the query, slashes and dots mean nothing.
        ("//a?b//../%2f%2e", &["/a?b//../%2F.", "/a?b//../%2F%2E"]),
        // In the query, escapes of `/` and of separators stay.
        ("/?f%5Ba%5D=1%26%3D%2B%3B%2F", &["/?f[a]=1%26%3D%2B%3B%2F"]),
        ("/?a=%3A%2C%7Cb", &["/?a=:,|b"]),
        // Some programs decode the path without resolving `..`.
        ("/pri%76ate/../x", &["/private/../x"]),
        ("//private/../x", &["/private/../x", "/x"]),
        ("/%2fprivate/..", &["/private/..", "/"]),
        ("/p%3Ax/../y", &["/p:x/../y"]),
        // Some servers decode `%uXXXX`.
        ("/%u0070rivate", &["/private"]),
        ("/%U0070rivate/../x", &["/x", "/private/../x"]),
        ("/x/%u002e%u002e/private", &["/private"]),
        ("/%u002fprivate", &["/private"]),
        ("/%u30c4", &["/%E3%83%84"]),
        ("/?q=%u0070", &["/?q=p"]),
    ] {
        let read = strict(target);
        for text in expected {
            assert!(
                read.iter().any(|read| read == text),
                "{target}: {text} is not among {read:?}"
            );
        }
    }
}

#[test]
fn servers_that_resolve_dots_before_decoding_have_a_reading() {
    for target in [
        // Apache merges slashes, and treats an escaped slash as an ordinary character.
        "/a%2fb//../private/x",
        "/a%2Fb/.//../private/x",
        "/a%2fb//..//private/x",
        // URL parsers (WHATWG) do not merge slashes, and treat an unescaped backslash as a slash.
        "/a%2fb/../private%2fx",
        "/a%2fb\\../private/x",
        "/x%5cy\\../private/x",
        "/pub%5cpub\\../private\\x",
        "/a//../../private/x",
        // Some servers treat the text after two slashes as a host.
        "//a/private/x",
        "//a:1/private/x",
        "//[::1]/private/x",
        "///a/private/x",
        "/\\a/private/x",
        "/\\a\\private\\x",
        "//a/b%2fc/..//../private/x",
    ] {
        let read = strict(target);
        assert!(read.iter().any(|read| read == "/private/x"), "{target}: {read:?}");
    }
}

#[test]
fn the_number_of_readings_is_bounded() {
    let read = readings(b"/\\a//%2f%28%7e;b%3b/../..\\c", true);
    assert_eq!(read.all().count(), 2 + 9 * 18 + 6);
    let read = readings(b"/\\a//%2f%28%7e;b%3b/../..\\c%u0061", true);
    assert_eq!(read.all().count(), 2 + 2 * (18 + 6) + 8 * 18);
    assert_eq!(readings(b"/a;b", true).all().count(), 2);
    assert_eq!(readings(b"/a//b", true).all().count(), 2);
}

#[test]
fn usual_paths_have_no_strict_reading() {
    for target in [
        "/",
        "/a",
        "/a/b/",
        "/a/../b",
        "/%7Euser",
        "/%e3%83%84",
        "/a%20b",
        "/100%",
        "/%2",
        "/%3Fa",
        "/a?b//c;d\\e%2F",
        "/a?b=%26%3D%2B%3B%2F%20",
        "/%u12",
        "/%u12x4",
        // One half of a UTF-16 surrogate pair is no character.
        "/%ud800",
    ] {
        assert_eq!(strict(target), Vec::<String>::new(), "{target}");
    }
}

#[test]
fn strict_readings_can_be_disabled() {
    for target in ["//a", "/%2Fa", "/a;b", "/a\\b"] {
        let read = readings(target.as_bytes(), false);
        assert!(
            !read.all().any(|reading| matches!(reading, Reading::Strict(_))),
            "{target}"
        );
    }
}

/// Returns the file that nginx opens: it decodes once, merges slashes, and then resolves `/../`. Returns `None` if
/// nginx responds with a 400.
fn opened_by_nginx(path: &str) -> Option<String> {
    let mut decoded = String::new();
    let mut rest = path;
    while let Some(first) = rest.chars().next() {
        rest = &rest[first.len_utf8()..];
        match first {
            '%' => {
                let octet = u8::from_str_radix(rest.get(..2)?, 16)
                    .ok()
                    .filter(|octet| *octet != 0)?;
                decoded.push(char::from(octet));
                rest = &rest[2..];
            }
            other => decoded.push(other),
        }
    }
    let mut segments = Vec::new();
    for segment in decoded.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()?),
            name => segments.push(name),
        }
    }
    Some(format!("/{}", segments.join("/")))
}

/// Returns the path that a program sees if its server only decodes escapes. Merges slashes, as such a program may do.
fn decoded_only(path: &str) -> Option<String> {
    let mut decoded = percent_encoding::percent_decode_str(path)
        .decode_utf8()
        .ok()?
        .into_owned();
    while decoded.contains("//") {
        decoded = decoded.replace("//", "/");
    }
    Some(decoded)
}

/// Returns the file that a server opens if it parses a URL and then decodes its path, as Node.js programs do.
fn opened_by_url_parser(path: &str) -> Option<String> {
    let url = url::Url::parse("http://base.example/").ok()?.join(path).ok()?;
    opened_by_nginx(url.path())
}

fn without_parameters(path: &str) -> String {
    let bare: Vec<&str> = path
        .split('/')
        .map(|segment| segment.split(';').next().unwrap_or_default())
        .collect();
    bare.join("/")
}

/// Tomcat drops parameters, and then does the same as nginx.
fn served_by_tomcat(path: &str) -> Option<String> {
    opened_by_nginx(&without_parameters(path))
}

/// Jetty 9 does the same as Tomcat, and also decodes `%uXXXX`.
fn served_by_jetty(path: &str) -> Option<String> {
    let bare = without_parameters(path);
    opened_by_nginx(&bare.replace("%u0070", "p").replace("%u002f", "/"))
}

proptest! {
    #[test]
    fn every_server_model_has_its_reading_for_any_path(
        parts in proptest::collection::vec(
            prop::sample::select(&[
                "/", "//", "%2f", "%2F", ".", "..", "%2e", "%2E.", ";", ";a", "%3b", "\\", "%5C", "private", "%70rivate",
                "privat%65", "%u0070rivate", "%u002f", "x", "y", "%3F", "%23", "%25", "%252f",
            ][..]),
            0..14,
        ),
        tail in prop::sample::select(&["", "?", "?/../x", "?//"][..]),
    ) {
        let path = format!("/{}", parts.concat());
        let target = format!("{path}{tail}");
        let read = readings(target.as_bytes(), true);
        let is_found = |page: &str| {
            let disallowed = |text: &[u8]| text.starts_with(page.as_bytes());
            read.all().any(|reading| disallowed(&read.text(reading)))
        };
        let through_nginx = opened_by_nginx(&path);
        let passed_on = through_nginx.as_ref().map(|page| page.replace('%', "%25"));
        let behind_nginx = passed_on.as_deref().and_then(served_by_tomcat);
        for page in [through_nginx, served_by_tomcat(&path), served_by_jetty(&path), decoded_only(&path), behind_nginx, opened_by_url_parser(&path)].into_iter().flatten() {
            if page.starts_with("/private") {
                prop_assert!(is_found("/private"), "{} is {}", target, page);
            }
        }
        for reading in read.all() {
            let text = read.text(reading);
            prop_assert!(text.starts_with(b"/"), "{}", target);
            if let Reading::Strict(strict) = reading {
                let path = text.split(|byte| *byte == b'?').next().unwrap_or_default();
                prop_assert!(!path.windows(2).any(|pair| pair == b"//"), "{} {:?}", target, reading);
                let has_dots = path.split(|byte| *byte == b'/').any(|part| part == b"." || part == b"..");
                prop_assert!(!has_dots || strict.dots == Dots::Never, "{}", target);
                prop_assert!(!path.to_ascii_uppercase().windows(3).any(|escape| escape == b"%2F"), "{}", target);
            }
        }
    }
}
