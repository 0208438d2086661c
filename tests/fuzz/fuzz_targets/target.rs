//! Determines the origin and path of a request's head. An accepted head must be a single request, which robotgate, the
//! URL standard and the receiving origin read in the same way.
//!
//! An input has three parts: the origin of the outer CONNECT, or nothing, in the first line; a name in the second,
//! which replaces every byte 0x01 of the head, so that the target and the Host can agree; and from the third line on
//! the head without the empty line at its end.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use robotgate::{
    fuzzing::{ParsedRequest, ReadHead, take},
    origin::{FtpPath, HostPort, Origin, Reading, Scheme, readings},
};
use url::Url;

#[path = "../seeds.rs"]
mod seeds;
#[path = "../whatwg.rs"]
mod whatwg;
#[path = "../wire.rs"]
mod wire;

fuzz_target!(init: seeds::write("target", SEEDS), |data: &[u8]| -> Corpus {
    let Some((outer_connect, head)) = input(data) else {
        return Corpus::Reject;
    };
    match take(&head, outer_connect.as_ref()) {
        Ok(Some(ReadHead::Connect(authority))) => names_one_host(target_of(&head).0, &authority),
        Ok(Some(ReadHead::Request(parsed))) => {
            is_for_one_origin(&head, outer_connect.as_ref(), &parsed);
            match parsed.origin.scheme {
                Scheme::Http | Scheme::Https => is_one_request(&head, &parsed),
                Scheme::Ftp => is_one_path(&parsed),
            }
            has_sound_readings(&parsed);
        }
        Ok(None) => {}
        // Errors must come from the first check, which says what is wrong, and not from a later layer.
        Err(error) => assert!(!error.starts_with("upstream") && !error.starts_with("pingora"), "{error}"),
    }
    Corpus::Keep
});

fn input(data: &[u8]) -> Option<(Option<Origin>, Vec<u8>)> {
    let mut parts = data.splitn(3, |byte| *byte == b'\n');
    let outer_connect = str::from_utf8(parts.next()?).ok()?;
    let name = parts.next()?;
    let mut head = Vec::with_capacity(2 * data.len());
    for byte in parts.next()? {
        match byte {
            0x01 => head.extend_from_slice(name),
            byte => head.push(*byte),
        }
    }
    head.extend_from_slice(b"\r\n\r\n");
    let outer_connect = (!outer_connect.is_empty()).then(|| outer_connect.parse().ok());
    match outer_connect {
        Some(None) => None,
        outer_connect => Some((outer_connect.flatten(), head)),
    }
}

/// Returns the request target and the method, as the client sent them.
fn target_of(head: &[u8]) -> (&str, &str) {
    let mut fields = [httparse::EMPTY_HEADER; 128];
    let mut request = httparse::Request::new(&mut fields);
    assert!(request.parse(head).is_ok_and(|status| status.is_complete()));
    (request.path.expect("a target"), request.method.expect("a method"))
}

/// Splits a target in absolute form into two parts: host and port, and what follows them.
fn absolute(target: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = target.split_once("://")?;
    let is_scheme = !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_scheme.then(|| rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len())))
}

fn names_one_host(target: &str, authority: &HostPort) {
    let port = authority.port.expect("a CONNECT has a port");
    let again = HostPort::parse(format!("{}:{port}", authority.host).as_bytes());
    assert_eq!(again.as_ref(), Ok(authority));
    if let Ok(url) = Url::parse(&format!("https://{target}")) {
        let origin = format!("https://{}:{port}", authority.host).parse().expect("an origin");
        whatwg::names(&url, &origin);
    }
}

fn is_for_one_origin(head: &[u8], outer_connect: Option<&Origin>, parsed: &ParsedRequest) {
    let (target, _) = target_of(head);
    let origin = &parsed.origin;
    assert!(outer_connect.is_none_or(|outer_connect| outer_connect == origin));
    assert_eq!(origin.to_string().parse().as_ref(), Ok(origin));
    let field = HostPort::parse(origin.host_field().as_bytes()).expect("a Host");
    assert_eq!(field.host, origin.host);
    assert!(origin.is_named_by(&field));

    if absolute(target).is_none() {
        assert!(
            outer_connect.is_some() && (target.starts_with(['/', '?', '#']) || target == "*"),
            "{target}"
        );
    } else if let Ok(url) = Url::parse(target) {
        whatwg::names(&url, origin);
    }
    let mut fields = [httparse::EMPTY_HEADER; 128];
    let mut request = httparse::Request::new(&mut fields);
    assert!(request.parse(head).is_ok_and(|status| status.is_complete()));
    let hosts = request
        .headers
        .iter()
        .filter(|field| field.name.eq_ignore_ascii_case("host"));
    let hosts: Vec<_> = hosts.collect();
    assert!(hosts.len() <= 1);
    for host in hosts {
        // robotgate drops the login of an ftp URL, which some clients repeat in the Host.
        let name = match origin.scheme {
            Scheme::Ftp => host.value.rsplit(|byte| *byte == b'@').next().unwrap_or_default(),
            Scheme::Http | Scheme::Https => host.value,
        };
        assert!(origin.is_named_by(&HostPort::parse(name).expect("a Host")));
    }
}

fn is_one_request(head: &[u8], parsed: &ParsedRequest) {
    let (target, method) = target_of(head);
    let sent = wire::only_request(&parsed.upstream, &parsed.origin);
    assert_eq!(sent.method, method);

    let after = absolute(target).map_or(target, |(_, after)| after);
    let after = after.split('#').next().unwrap_or_default();
    let wanted = match after {
        "" if method == "OPTIONS" => "*".to_owned(),
        after if after.starts_with('/') || after == "*" => after.to_owned(),
        after => format!("/{after}"),
    };
    assert_eq!(String::from_utf8_lossy(&sent.path), wanted);
}

/// Checks that robotgate decides on the path that it sends to the FTP server. This path has no control characters, and
/// no empty, `.` or `..` segments that the server could resolve.
fn is_one_path(parsed: &ParsedRequest) {
    let path = FtpPath::parse(&parsed.decided).expect("it was accepted");
    let sent = path.for_server();
    assert!(sent.starts_with(b"/") && !sent.iter().any(|byte| byte.is_ascii_control() || *byte == 0xFF));
    let mut segments = sent[1..].split(|byte| *byte == b'/');
    assert!(sent == b"/" || segments.all(|part| !matches!(part, b"" | b"." | b"..")));
    assert_eq!(path.into_url(), parsed.decided);
}

fn has_sound_readings(parsed: &ParsedRequest) {
    let read = readings(&parsed.decided, true);
    assert!(read.sent.starts_with(b"/") && !read.sent.contains(&b'#'));
    for reading in [&read.resolved, &read.upper].into_iter().flatten() {
        assert!(reading.starts_with(b"/"));
        assert!(reading.iter().all(u8::is_ascii_graphic));
        assert!(
            !path_of(reading)
                .split(|byte| *byte == b'/')
                .any(|part| part == b"." || part == b"..")
        );
        assert_ne!(*reading, *read.sent);
    }
    if let Some(upper) = &read.upper {
        assert_eq!(readings(upper, true).upper, None);
    }
    for reading in read.all().filter(|reading| matches!(reading, Reading::Strict(_))) {
        let text = read.text(reading);
        let path = path_of(&text);
        assert!(text.starts_with(b"/") && text.iter().all(u8::is_ascii_graphic));
        assert!(!path.windows(2).any(|pair| pair == b"//"));
        assert!(
            !path
                .split(|byte| *byte == b'/')
                .any(|part| part == b"." || part == b"..")
        );
    }
    // The URL standard must resolve a path of ordinary characters in the same way.
    let path = path_of(&read.sent);
    if path.iter().all(is_usual) {
        let path = str::from_utf8(path).expect("ASCII");
        let url = Url::parse(&format!("{}{path}", parsed.origin)).expect("a URL");
        whatwg::names(&url, &parsed.origin);
        assert_eq!(resolved(url.path().as_bytes()), resolved(path.as_bytes()), "{path}");
    }
}

fn path_of(path_and_query: &[u8]) -> &[u8] {
    path_and_query.split(|byte| *byte == b'?').next().unwrap_or_default()
}

fn is_usual(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=:@/".contains(byte)
}

fn resolved(path: &[u8]) -> Vec<u8> {
    let read = readings(path, true);
    read.resolved.unwrap_or_else(|| read.sent.into_owned())
}

const SEEDS: [(&str, &str); 11] = [
    (
        "strict",
        "\na.example\nGET http://\u{1}/x//..%2f;y/..;z/%5Ca\\b%28?c%2f HTTP/1.1\r\nHost: \u{1}",
    ),
    (
        "get",
        "\na.example\nGET http://\u{1}/p?q HTTP/1.1\r\nHost: \u{1}\r\nUser-Agent: AcmeBot/1.0",
    ),
    (
        "inside",
        "https://a.example\na.example\nGET /p/../%7euser?q#f HTTP/1.1\r\nHost: \u{1}",
    ),
    (
        "inside-absolute",
        "http://a.example:8080\nA.example.:8080\nGET http://\u{1}/ HTTP/1.1\r\nHost: \u{1}",
    ),
    (
        "post",
        "\n[::1]:8080\nPOST http://\u{1}/a HTTP/1.1\r\nHost: \u{1}\r\nContent-Length: 3",
    ),
    (
        "chunked",
        "\na.example\nPUT https://\u{1}?q HTTP/1.1\r\nHost: \u{1}\r\nTransfer-Encoding: chunked\r\nVia: 1.0 x",
    ),
    (
        "options",
        "\na.example:80\nOPTIONS http://\u{1} HTTP/1.1\r\nHost: a.example",
    ),
    (
        "old",
        "\n0x7f.1\nGET http://\u{1}/%2e%2E/x;y HTTP/1.0\r\nConnection: keep-alive",
    ),
    (
        "idn",
        "\nb%C3%BCcher.example\nGET http://\u{1}/\u{fc} HTTP/1.1\r\nHost: xn--bcher-kva.example",
    ),
    (
        "websocket",
        "https://a.example\na.example\nGET /chat HTTP/1.1\r\nHost: \u{1}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    ),
    ("connect", "\na.example\nCONNECT \u{1}:443 HTTP/1.1\r\nHost: \u{1}"),
];
