mod refuse;

use super::*;
use crate::origin::{FtpPathError, HostPortError};

fn request(method: &str, target: &[u8], hosts: &[&str]) -> RequestHeader {
    let mut request = RequestHeader::build(method, target, None).expect("a target that pingora takes");
    for host in hosts {
        request.append_header(header::HOST, *host).expect("a field value");
    }
    request
}

fn http2_request(uri: &str, hosts: &[&str]) -> RequestHeader {
    let (mut parts, ()) = http::Request::get(uri).body(()).expect("a URI").into_parts();
    for host in hosts {
        parts.headers.append(header::HOST, host.parse().expect("a field value"));
    }
    parts.version = http::Version::HTTP_2;
    parts.into()
}

fn origin(scheme: Scheme, authority: &str) -> Origin {
    Origin::new(scheme, HostPort::parse(authority.as_bytes()).expect("an authority"))
}

fn outer_connect(scheme: Scheme, authority: &str) -> OuterConnect {
    OuterConnect::new(origin(scheme, authority), None, None, 1)
}

fn read(request: &RequestHeader, outer_connect: Option<&OuterConnect>) -> Result<(String, String), TargetError> {
    let target = target_of(request, outer_connect)?;
    let path = String::from_utf8(target.path).expect("UTF-8");
    Ok((target.origin.to_string(), path))
}

#[test]
fn an_absolute_form_gives_its_origin_and_its_path() {
    for (target, host, origin, path) in [
        ("http://a.example/p?q", "a.example", "http://a.example", "/p?q"),
        ("HTTP://A.Example/P", "a.example", "http://a.example", "/P"),
        ("https://a.example/", "a.example", "https://a.example", "/"),
        ("http://a.example:80/", "a.example", "http://a.example", "/"),
        ("http://a.example:443/", "a.example:443", "http://a.example:443", "/"),
        (
            "https://a.example:8443/x",
            "a.example:8443",
            "https://a.example:8443",
            "/x",
        ),
        ("http://a.example", "a.example", "http://a.example", "/"),
        ("http://a.example?q=1", "a.example", "http://a.example", "/?q=1"),
        ("http://a.example?q=/../x", "a.example", "http://a.example", "/?q=/../x"),
        ("http://[::1]:8080/", "[::1]:8080", "http://[::1]:8080", "/"),
        ("http://0x7f.1/", "127.0.0.1", "http://127.0.0.1", "/"),
        (
            "http://a.example/%2e%2E//x;y",
            "a.example",
            "http://a.example",
            "/%2e%2E//x;y",
        ),
        ("FTP://a.example:21", "a.example:21", "ftp://a.example", "/"),
        ("ftp://a.example/x;type=i", "a.example", "ftp://a.example", "/x"),
        (
            "ftp://a.example:2121/x;type=d",
            "a.example:2121",
            "ftp://a.example:2121",
            "/x/",
        ),
        (
            "http://a.example/http://b.example/",
            "a.example",
            "http://a.example",
            "/http://b.example/",
        ),
    ] {
        let found = read(&request("GET", target.as_bytes(), &[host]), None);
        assert_eq!(found, Ok((origin.to_owned(), path.to_owned())), "{target}");
    }
}

#[test]
fn inside_a_tunnel_requests_have_the_tunnels_origin() {
    let https = outer_connect(Scheme::Https, "a.example");
    let plain = outer_connect(Scheme::Http, "a.example:8080");
    for (outer_connect, target, host, origin, path) in [
        (&https, "/p?q", "a.example", "https://a.example", "/p?q"),
        (&https, "/", "a.example:443", "https://a.example", "/"),
        (
            &https,
            "//b.example/x",
            "a.example",
            "https://a.example",
            "//b.example/x",
        ),
        (&https, "https://a.example/p", "a.example", "https://a.example", "/p"),
        (&https, "https://A.EXAMPLE:443", "a.example", "https://a.example", "/"),
        (&plain, "/p", "a.example:8080", "http://a.example:8080", "/p"),
        (
            &plain,
            "http://a.example:8080/p",
            "a.example:8080",
            "http://a.example:8080",
            "/p",
        ),
    ] {
        let found = read(&request("GET", target.as_bytes(), &[host]), Some(outer_connect));
        assert_eq!(found, Ok((origin.to_owned(), path.to_owned())), "{target} {host}");
    }
    let found = read(&request("GET", b"/p", &[]), Some(&https));
    assert_eq!(
        found,
        Ok(("https://a.example".to_owned(), "/p".to_owned())),
        "HTTP/1.0 has no Host"
    );
}

#[test]
fn an_http2_request_is_checked_by_its_authority() {
    let tunnel = outer_connect(Scheme::Https, "a.example");
    for (uri, hosts, found) in [
        ("https://a.example/p?q", &[][..], Ok("/p?q")),
        ("https://A.example:443/p", &[], Ok("/p")),
        ("https://a.example", &[], Ok("/")),
        ("/p", &["a.example"], Ok("/p")),
        ("https://a.example/p", &["a.example"], Ok("/p")),
        ("https://b.example/p", &[], Err(TargetError::ThroughDiffers)),
        ("https://a.example:444/p", &[], Err(TargetError::ThroughDiffers)),
        ("https://a.example/p", &["b.example"], Err(TargetError::ThroughDiffers)),
        ("/p", &["b.example"], Err(TargetError::ThroughDiffers)),
        (
            "https://user@a.example/p",
            &[],
            Err(TargetError::Host(HostPortError::UserInfo)),
        ),
    ] {
        let found = found.map(|path: &str| ("https://a.example".to_owned(), path.to_owned()));
        assert_eq!(
            read(&http2_request(uri, hosts), Some(&tunnel)),
            found,
            "{uri} {hosts:?}"
        );
    }
}

#[test]
fn a_host_spelled_differently_is_the_same_host() {
    for (target, hosts) in [
        ("http://a.example/", &["A.EXAMPLE"][..]),
        ("http://a.example/", &["a.example:80"]),
        ("http://a.example/", &["a.example:"]),
        ("http://a.example/", &["a.example."]),
        ("http://a.example./", &["a.example"]),
        ("http://a.example/", &["a%2Eexample"]),
        ("https://a.example/", &["a.example:443"]),
        ("http://127.0.0.1/", &["2130706433"]),
        ("http://[::1]/", &["[0:0::1]"]),
        ("http://a.example/", &["a.example", "A.example"]),
        ("http://a.example/", &[]),
    ] {
        let found = read(&request("GET", target.as_bytes(), hosts), None);
        assert!(found.is_ok(), "{target} {hosts:?}: {found:?}");
    }
}

#[test]
fn options_for_the_server_itself_is_decided_as_the_root_path() {
    let tunnel = outer_connect(Scheme::Https, "a.example");
    for (target, outer_connect, path, decided) in [
        ("*", Some(&tunnel), "*", "/"),
        ("http://a.example", None, "*", "/"),
        ("https://a.example", Some(&tunnel), "*", "/"),
        ("http://a.example/", None, "/", "/"),
        ("http://a.example?q", None, "/?q", "/?q"),
        ("http://a.example/*", None, "/*", "/*"),
        ("/p", Some(&tunnel), "/p", "/p"),
    ] {
        let request = request("OPTIONS", target.as_bytes(), &["a.example"]);
        let target_read = target_of(&request, outer_connect).expect("a target");
        assert_eq!(target_read.path, path.as_bytes(), "{target}");
        assert_eq!(target_read.decided_path(), decided.as_bytes(), "{target}");
    }
}

#[test]
fn a_fragment_never_reaches_the_origin() {
    for (target, path) in [
        ("http://a.example/p#f", "/p"),
        ("http://a.example#f", "/"),
        ("http://a.example?q#f?g", "/?q"),
    ] {
        let found = read(&request("GET", target.as_bytes(), &["a.example"]), None);
        assert_eq!(found.map(|(_, path)| path), Ok(path.to_owned()), "{target}");
    }
}

fn form_of_pingora(target: &[u8]) -> TargetForm<'_> {
    use pingora::protocols::http::authority::{RawTargetAuthority, raw_target_authority};

    match raw_target_authority(target) {
        RawTargetAuthority::None => TargetForm::Other,
        RawTargetAuthority::AmbiguousAuthority => TargetForm::Ambiguous,
        RawTargetAuthority::Absolute {
            scheme,
            authority,
            path_and_query,
        } => TargetForm::Absolute {
            scheme,
            authority,
            path_and_query,
        },
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(4096))]

    #[test]
    fn a_target_has_the_form_that_pingora_sees(
        target in "(h?https?|ws|my.x|_|)?[:/\\\\?#@a.]{0,6}(a[.:/\\\\?#@]{0,2}){0,3}",
    ) {
        proptest::prop_assert_eq!(TargetForm::of(target.as_bytes()), form_of_pingora(target.as_bytes()));
    }
}
