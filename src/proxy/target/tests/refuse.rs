//! Tests that requests with an unacceptable target or method are refused, with the error that says why.

use super::*;

#[test]
fn a_host_that_differs_from_the_target_is_refused() {
    let tunnel = outer_connect(Scheme::Https, "a.example");
    for hosts in [
        &["b.example"][..],
        &["a.example:81"],
        &["a.example.b"],
        &["sub.a.example"],
        &["a.example", "b.example"],
    ] {
        let found = read(&request("GET", b"https://a.example/", hosts), None);
        assert_eq!(found, Err(TargetError::HostDiffers), "{hosts:?}");
        for target in ["/", "https://a.example/"] {
            let found = read(&request("GET", target.as_bytes(), hosts), Some(&tunnel));
            assert_eq!(found, Err(TargetError::ThroughDiffers), "{target} {hosts:?}");
        }
    }
    let found = read(&request("GET", b"http://a.example/", &["a.example:443"]), None);
    assert_eq!(found, Err(TargetError::HostDiffers));
}

#[test]
fn an_absolute_form_inside_a_tunnel_must_match_its_origin() {
    let tunnel = outer_connect(Scheme::Https, "a.example");
    for target in [
        "https://b.example/",
        "http://a.example/",
        "https://a.example:8443/",
        "https://sub.a.example/",
    ] {
        let found = read(&request("GET", target.as_bytes(), &[]), Some(&tunnel));
        assert_eq!(found, Err(TargetError::ThroughDiffers), "{target}");
    }
}

#[test]
fn a_target_that_begins_with_a_query_is_ambiguous() {
    let tunnel = outer_connect(Scheme::Https, "a.example");
    let found = read(&request("GET", b"?q", &["a.example"]), Some(&tunnel));
    assert_eq!(found, Err(TargetError::Ambiguous));
}

#[test]
fn a_target_that_cannot_be_read_is_refused_with_its_cause() {
    for (target, hosts, error) in [
        (&b"/p"[..], &["a.example"][..], TargetError::OriginForm),
        (b"?q", &["a.example"], TargetError::OriginForm),
        (b"*", &["a.example"], TargetError::OriginForm),
        (b"gopher://a.example/", &["a.example"], TargetError::Scheme),
        (b"ws://a.example/", &["a.example"], TargetError::Scheme),
        (b"wss://a.example/", &["a.example"], TargetError::Scheme),
        (
            b"http://user:secret@a.example/",
            &["a.example"],
            TargetError::HostPort(HostPortError::UserInfo),
        ),
        (b"http://a..example/", &[], TargetError::HostPort(HostPortError::Host)),
        (b"http://:80/", &[], TargetError::HostPort(HostPortError::NoHost)),
        (b"http://a.example:0/", &[], TargetError::HostPort(HostPortError::Port)),
        (b"http://a.example:x/", &[], TargetError::HostPort(HostPortError::Port)),
        (
            b"http://a.example/",
            &["a.example:x"],
            TargetError::Host(HostPortError::Port),
        ),
        (
            b"http://a.example/",
            &["user@a.example"],
            TargetError::Host(HostPortError::UserInfo),
        ),
        (b"http://a.example/", &[""], TargetError::Host(HostPortError::NoHost)),
        (b"http://a.example/", &["a b"], TargetError::Host(HostPortError::Host)),
        (b"http://a.example/\xFF", &["a.example"], TargetError::Encoding),
        (b"/\xFF", &["a.example"], TargetError::Encoding),
        (b"http:a.example/", &["a.example"], TargetError::Ambiguous),
        (b"http:/a.example/", &["a.example"], TargetError::Ambiguous),
        (b"http:///a.example/", &["a.example"], TargetError::Ambiguous),
        (b"http://a.example\\b.example/", &["a.example"], TargetError::Ambiguous),
        (b"ht_tp://a.example/", &["a.example"], TargetError::Ambiguous),
    ] {
        let found = read(&request("GET", target, hosts), None);
        assert_eq!(found, Err(error), "{} {hosts:?}", target.escape_ascii());
    }
}

#[test]
fn inside_a_tunnel_other_target_forms_are_ambiguous() {
    let tunnel = outer_connect(Scheme::Https, "a.example");
    for (method, target, error) in [
        ("GET", &b"*"[..], TargetError::Ambiguous),
        ("POST", b"*", TargetError::Ambiguous),
        ("OPTIONS", b"*x", TargetError::Ambiguous),
        ("GET", b"p", TargetError::Ambiguous),
        ("GET", b"a.example:443", TargetError::Ambiguous),
        ("GET", b"https:/p", TargetError::Ambiguous),
        ("GET", b"gopher://a.example/", TargetError::Scheme),
        ("GET", b"ftp://a.example/", TargetError::ThroughDiffers),
        ("GET", b"/\xC3", TargetError::Encoding),
    ] {
        let found = read(&request(method, target, &["a.example"]), Some(&tunnel));
        assert_eq!(found, Err(error), "{method} {}", target.escape_ascii());
    }
}

#[test]
fn each_error_says_what_to_change() {
    for (error, hint) in [
        (TargetError::OriginForm, "http_proxy"),
        (TargetError::Scheme, "http, https and ftp"),
        (TargetError::HostPort(HostPortError::UserInfo), "remove the user name"),
        (TargetError::Host(HostPortError::Port), "Host field"),
        (TargetError::HostDiffers, "Host field"),
        (TargetError::ThroughDiffers, "CONNECT"),
        (TargetError::Encoding, "percent-encode"),
        (TargetError::Ambiguous, "https://example.com/page"),
    ] {
        assert!(error.to_string().contains(hint), "{error:?}: {error}");
    }
}

#[test]
fn an_ftp_url_needs_get_or_head_and_an_unambiguous_path() {
    for (method, target, error) in [
        ("PUT", &b"ftp://a.example/x"[..], TargetError::FtpMethod),
        ("OPTIONS", b"ftp://a.example", TargetError::FtpMethod),
        (
            "GET",
            b"ftp://a.example/x/../y",
            TargetError::FtpPath(FtpPathError::Segment),
        ),
        (
            "HEAD",
            b"ftp://a.example/%2Fx",
            TargetError::FtpPath(FtpPathError::Slash),
        ),
        ("GET", b"ftp:/a.example/x", TargetError::Ambiguous),
    ] {
        let found = read(&request(method, target, &["a.example"]), None);
        assert_eq!(found, Err(error), "{method} {}", target.escape_ascii());
    }
}

#[test]
fn a_method_over_64_bytes_is_refused() {
    for (length, refused) in [(1, false), (64, false), (65, true), (60_000, true)] {
        let request = request(&"M".repeat(length), b"http://a.example/", &["a.example"]);
        let expected = if refused { Err(TargetError::LongMethod) } else { Ok(()) };
        assert_eq!(target_of(&request, None).map(|_| ()), expected, "{length} bytes");
    }
}
