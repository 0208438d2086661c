use super::*;

fn target(origin: &str, path: impl AsRef<[u8]>) -> Target {
    Target {
        origin: origin.parse().expect("an origin"),
        path: path.as_ref().to_vec(),
        names_user: false,
    }
}

fn made(head: &RequestHeader, target: &Target) -> http::Request<()> {
    request(head, target).expect("HTTP/2 carries it")
}

#[test]
fn a_request_is_made_from_the_decided_target() {
    let mut head = RequestHeader::build("POST", b"/other", None).expect("a head");
    for (name, value) in [
        ("Host", "other.example"),
        ("Connection", "close"),
        ("Keep-Alive", "timeout=5"),
        ("Proxy-Connection", "keep-alive"),
        ("Transfer-Encoding", "chunked"),
        ("Upgrade", "websocket"),
        ("TE", "gzip"),
        ("Cookie", "a=1; b=2"),
        ("X-One", "1"),
        ("X-One", "2"),
    ] {
        head.append_header(name, value).expect("a field");
    }

    let request = made(&head, &target("https://a.example:8443", "/x?y=%2f"));

    assert_eq!(request.method(), http::Method::POST);
    assert_eq!(request.version(), Version::HTTP_2);
    assert_eq!(request.uri().scheme_str(), Some("https"));
    assert_eq!(request.uri().authority().map(Authority::as_str), Some("a.example:8443"));
    assert_eq!(
        request.uri().path_and_query().map(PathAndQuery::as_str),
        Some("/x?y=%2f")
    );
    let fields: Vec<_> = request
        .headers()
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_bytes()))
        .collect();
    assert_eq!(fields, [("cookie", &b"a=1; b=2"[..]), ("x-one", b"1"), ("x-one", b"2")]);
}

#[test]
fn the_authority_is_that_of_the_origin() {
    for (origin, scheme, authority) in [
        ("https://a.example", "https", "a.example"),
        ("https://a.example:80", "https", "a.example:80"),
        ("http://a.example:8080", "http", "a.example:8080"),
        ("https://[2001:db8::1]", "https", "[2001:db8::1]"),
        ("https://192.0.2.1:8443", "https", "192.0.2.1:8443"),
        ("https://b_c.example", "https", "b_c.example"),
    ] {
        let head = RequestHeader::build("GET", b"/", None).expect("a head");
        let request = made(&head, &target(origin, "/"));
        let uri = request.uri();
        assert_eq!(
            (uri.scheme_str(), uri.authority().map(Authority::as_str)),
            (Some(scheme), Some(authority)),
            "{origin}"
        );
    }
}

#[test]
fn only_te_trailers_is_kept() {
    for (fields, left) in [
        (&["trailers"][..], 1),
        (&["Trailers"], 1),
        (&["trailers, gzip"], 0),
        (&["trailers", "gzip"], 1),
        (&[""], 0),
    ] {
        let mut head = RequestHeader::build("GET", b"/", None).expect("a head");
        for field in fields {
            head.append_header("TE", *field).expect("a field");
        }
        let request = made(&head, &target("https://a.example", "/"));
        assert_eq!(request.headers().get_all(header::TE).iter().count(), left, "{fields:?}");
    }
}

#[test]
fn a_path_is_sent_byte_for_byte_or_refused() {
    let head = RequestHeader::build("GET", b"/", None).expect("a head");
    let unchanged = |path: &[u8]| match request(&head, &target("https://a.example", path)) {
        Ok(request) => {
            let sent = request
                .uri()
                .path_and_query()
                .map(PathAndQuery::as_str)
                .unwrap_or_default();
            assert_eq!(sent.as_bytes(), path);
            true
        }
        Err(error) => {
            assert!(error.needs_http1() && !error.is_unprocessed(), "{error:?}");
            false
        }
    };
    let refused = |before: &str| {
        let of = |byte: &u8| !unchanged(&[before.as_bytes(), &[*byte][..], b"b"].concat());
        String::from_utf8((b'!'..=b'~').filter(of).collect()).expect("ASCII")
    };
    // These characters are invalid in a path or a query (RFC 3986 §3.3, §3.4), and clients rarely send them.
    assert_eq!(refused("/a"), "#<>`");
    assert_eq!(refused("/a?b"), "\"#<>");
    for path in ["/", "/?", "//", "/a//b/../c", "/%2e%2E", "/ü?ü", "/a?b?c", "*"] {
        assert!(unchanged(path.as_bytes()), "{path}");
    }
    for path in [
        &b""[..],
        b"a",
        b"**",
        b"/a#b",
        b"/a?b#",
        b"/\xff",
        b"/a\tb",
        b"/a b",
        b"/a\x7f",
    ] {
        assert!(!unchanged(path), "{:?}", path.escape_ascii().to_string());
    }
}

#[test]
fn a_response_has_one_length_and_cannot_switch_protocols() {
    let of = |status: u16, lengths: &[&'static str]| {
        let mut builder = http::Response::builder().status(status);
        for length in lengths {
            builder = builder.header(header::CONTENT_LENGTH, *length);
        }
        response(builder.body(()).expect("a response"))
    };
    for (lengths, left) in [(&[][..], &[][..]), (&["5"], &["5"]), (&["5", "5", "5"], &["5"])] {
        let head = of(200, lengths).expect("a response");
        let found: Vec<_> = head.headers.get_all(header::CONTENT_LENGTH).iter().collect();
        assert_eq!(found, left, "{lengths:?}");
    }
    assert_eq!(of(101, &[]).expect_err("no switch"), Fault::HttpProtocol);
}
