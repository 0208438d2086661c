//! Tests that unacceptable request heads are refused, each with the error that names its fault.

use super::*;

fn with_fields(fields: &str) -> String {
    format!("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n{fields}\r\n")
}

#[tokio::test]
async fn a_malformed_request_is_refused_with_its_cause() {
    for (sent, cause) in [
        (
            "GET http://a.example/ HTTP/2.0\r\n\r\n",
            "its version is neither HTTP/1.0 nor HTTP/1.1",
        ),
        (
            "GET http://a.example/a b HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "the request target has a space: write %20 for it",
        ),
        (
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            "its version is neither HTTP/1.0 nor HTTP/1.1",
        ),
        (
            "GET http://a.example/\r\n\r\n",
            "the request line lacks a part or has an invalid character",
        ),
        (
            "G@T / HTTP/1.1\r\nHost: a\r\n\r\n",
            "the request line lacks a part or has an invalid character",
        ),
        (
            "GET /\u{7F} HTTP/1.1\r\nHost: a\r\n\r\n",
            "the request line lacks a part or has an invalid character",
        ),
        (
            "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
            "the request line lacks a part or has an invalid character",
        ),
        (
            "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
            "a header line does not begin with a valid name and a colon",
        ),
        (
            "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
            "a header line does not begin with a valid name and a colon",
        ),
        (
            "GET / HTTP/1.1\r\nno colon\r\n\r\n",
            "a header line does not begin with a valid name and a colon",
        ),
        (
            "GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n",
            "a field value has a control character",
        ),
        (
            "GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n",
            "a field value has a control character",
        ),
        ("GET / HTTP/1.1\nHost: a\n\n", "a line does not end in CRLF"),
        ("GET / HTTP/1.1\r\nHost: a\n\r\n", "a line does not end in CRLF"),
        ("GET / HTTP/1.1\r\nHost: a\r\n\n", "a line does not end in CRLF"),
        ("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "a line does not end in CRLF"),
    ] {
        assert_eq!(error_of(sent).await, Some(HeadError::Syntax(cause)), "{sent:?}");
    }
    assert_eq!(error_of("\u{16}\u{3}\u{1}\u{2}").await, Some(HeadError::Tls));
}

#[tokio::test]
async fn a_request_with_ambiguous_content_framing_is_refused() {
    for (fields, cause) in [
        (
            "Content-Length: 1\r\nContent-Length: 1\r\n",
            "it has several Content-Length fields",
        ),
        (
            "Content-Length: 1\r\ncontent-length: 2\r\n",
            "it has several Content-Length fields",
        ),
        ("Content-Length: 1, 1\r\n", "its Content-Length is not a number"),
        ("Content-Length: +1\r\n", "its Content-Length is not a number"),
        ("Content-Length: -1\r\n", "its Content-Length is not a number"),
        ("Content-Length: 0x1\r\n", "its Content-Length is not a number"),
        ("Content-Length:\r\n", "its Content-Length is not a number"),
        (
            "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
            "it has both a Content-Length and a Transfer-Encoding",
        ),
        (
            "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n",
            "it has both a Content-Length and a Transfer-Encoding",
        ),
        (
            "Transfer-Encoding: gzip\r\n",
            "its Transfer-Encoding is not \"chunked\"",
        ),
        (
            "Transfer-Encoding: gzip, chunked\r\n",
            "its Transfer-Encoding is not \"chunked\"",
        ),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            "its Transfer-Encoding is not \"chunked\"",
        ),
        (
            "Transfer-Encoding: xchunked\r\n",
            "its Transfer-Encoding is not \"chunked\"",
        ),
        ("Transfer-Encoding:\r\n", "its Transfer-Encoding is not \"chunked\""),
    ] {
        let found = error_of(with_fields(fields)).await;
        assert_eq!(found, Some(HeadError::Syntax(cause)), "{fields:?}");
    }
    for fields in [
        "Content-Length: 42\r\n",
        "content-length:0\r\n",
        "TRANSFER-ENCODING: Chunked\r\n",
    ] {
        assert_eq!(error_of(with_fields(fields)).await, None, "{fields:?}");
    }
    let old = "POST http://a.example/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    let cause = "an HTTP/1.0 request must not have a Transfer-Encoding";
    assert_eq!(error_of(old).await, Some(HeadError::Syntax(cause)));
}

#[tokio::test]
async fn unusual_spellings_of_the_framing_fields_are_refused() {
    for (fields, cause) in [
        ("Content_Length: 1\r\n", "with \"_\" instead of \"-\""),
        ("transfer_encoding: chunked\r\n", "with \"_\" instead of \"-\""),
        ("Content-Length: 042\r\n", "a plain decimal number"),
        ("Content-Length: 00\r\n", "a plain decimal number"),
        ("Content-Length: 18446744073709551616\r\n", "a plain decimal number"),
        ("Content-Length: 9223372036854775808\r\n", "a plain decimal number"),
        ("Content-Length: 4\t\r\n", "unusual white space"),
        ("Content-Length: 4 \r\n", "unusual white space"),
        ("Content-Length:  4\r\n", "unusual white space"),
        ("Content-Length:\t4\r\n", "unusual white space"),
        ("Transfer-Encoding: chunked \r\n", "unusual white space"),
        ("Transfer-Encoding:\tchunked\r\n", "unusual white space"),
        ("Transfer-Encoding:  chunked\r\n", "unusual white space"),
        ("Content-Length: 4;x\r\n", "not a number"),
        ("Content-Length: -0\r\n", "not a number"),
        ("Content-Length: 4 4\r\n", "not a number"),
        ("Transfer-Encoding: \"chunked\"\r\n", "not \"chunked\""),
        ("Transfer-Encoding: chunked, identity\r\n", "not \"chunked\""),
        ("Transfer-Encoding: identity\r\n", "not \"chunked\""),
        ("Transfer-Encoding: chunked;a=b\r\n", "not \"chunked\""),
        ("Transfer-Encoding: \u{b}chunked\r\n", "control character"),
    ] {
        let found = error_of(with_fields(fields)).await;
        let says = |error: &HeadError| error.to_string().contains(cause);
        assert!(found.as_ref().is_some_and(says), "{fields:?}: {found:?}");
    }
    assert_eq!(error_of(with_fields("X-Content_Length: 1\r\nX_Y: 1\r\n")).await, None);
}

#[tokio::test]
async fn connection_cannot_name_fields_that_the_origin_needs() {
    for (fields, cause) in [
        ("Connection: close, Host\r\n", "meant for the origin too"),
        ("Connection: content-length\r\n", "meant for the origin too"),
        ("Connection: Transfer-Encoding\r\n", "meant for the origin too"),
        (
            "Connection: close\r\nConnection: Cookie\r\n",
            "meant for the origin too",
        ),
        ("Connection: authorization\r\n", "meant for the origin too"),
        ("Connection: User-Agent\r\n", "meant for the origin too"),
        ("Connection: via\r\n", "meant for the origin too"),
        ("Connection: \"Host\"\r\n", "not a token"),
        ("Connection: :authority\r\n", "not a token"),
        ("Connection: close Host\r\n", "not a token"),
    ] {
        let found = error_of(with_fields(fields)).await;
        let says = |error: &HeadError| error.to_string().contains(cause);
        assert!(found.as_ref().is_some_and(says), "{fields:?}: {found:?}");
    }
    for fields in [
        "Connection: close, upgrade\r\n",
        "Connection: keep-alive, , X-Mine\r\nX-Mine: 1\r\n",
        "Connection: TE\r\nTE: trailers\r\n",
        "Connection:\r\n",
    ] {
        assert_eq!(error_of(with_fields(fields)).await, None, "{fields:?}");
    }
}

#[tokio::test]
async fn an_upgrade_to_websocket_must_follow_its_rules() {
    const GOOD: &str = "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    assert_eq!(error_of(with_fields(GOOD)).await, None);
    for (from, to, cause) in [
        ("Version: 13", "Version: 12", "the value 13"),
        ("Version: 13", "Version: 013", "the value 13"),
        ("Sec-WebSocket-Version: 13\r\n", "", "the value 13"),
        ("ZQ==", "ZQ=", "Sec-WebSocket-Key"),
        ("dGhlIHNhbXBsZSBub25jZQ==", "", "Sec-WebSocket-Key"),
        ("Sec-WebSocket-Key", "Sec-WebSocket-Kay", "Sec-WebSocket-Key"),
        (", Upgrade", "", "does not list it"),
        (
            "Upgrade: websocket\r\n",
            "Upgrade: websocket\r\nUpgrade: websocket\r\n",
            "several Upgrade",
        ),
        (
            "Upgrade: websocket",
            "Upgrade: websocket\r\nContent-Length: 1",
            "must not have content",
        ),
        (
            "Upgrade: websocket",
            "Upgrade: websocket\r\nTransfer-Encoding: chunked",
            "must not have content",
        ),
        ("Upgrade: websocket", "Upgrade: h2c", "HTTP/2 without TLS"),
        ("Upgrade: websocket", "Upgrade: foo, H2C", "HTTP/2 without TLS"),
        ("Upgrade: websocket", "Upgrade: HTTP/2.0", "HTTP/2 without TLS"),
        ("Upgrade: websocket", "Upgrade: TLS/1.0", "upgrade to TLS"),
        (
            "Upgrade: websocket",
            "HTTP2-Settings: AAMAAABkAAQAAP__",
            "HTTP/2 without TLS",
        ),
    ] {
        let found = error_of(with_fields(&GOOD.replace(from, to))).await;
        let says = |error: &HeadError| error.to_string().contains(cause);
        assert!(found.as_ref().is_some_and(says), "{to:?}: {found:?}");
    }
    let posted = with_fields(GOOD).replace("GET ", "POST ");
    assert!(matches!(error_of(posted).await, Some(HeadError::Syntax(cause)) if cause.contains("must use GET")));
    assert_eq!(
        error_of(with_fields("Connection: Upgrade\r\nUpgrade: foo/2\r\n")).await,
        None
    );
}

#[tokio::test]
async fn a_connect_or_trace_with_content_is_refused() {
    for (line, fields, cause) in [
        (
            "CONNECT a.example:443",
            "Content-Length: 4\r\n",
            Some("a CONNECT request must not have content"),
        ),
        (
            "CONNECT a.example:443",
            "Transfer-Encoding: chunked\r\n",
            Some("a CONNECT request must not have content"),
        ),
        ("CONNECT a.example:443", "Content-Length: 0\r\n", None),
        (
            "TRACE http://a.example/",
            "Content-Length: 4\r\n",
            Some("a TRACE request must not have content"),
        ),
        ("TRACE http://a.example/", "", None),
    ] {
        let sent = format!("{line} HTTP/1.1\r\nHost: a.example\r\n{fields}\r\n");
        assert_eq!(error_of(&sent).await, cause.map(HeadError::Syntax), "{sent:?}");
    }
}

#[tokio::test]
async fn the_limits_of_a_head_can_be_changed() {
    let sized = |bytes: usize| with_fields(&format!("X: {}\r\n", "x".repeat(bytes - with_fields("X: \r\n").len())));
    let (small, large) = (
        HeadLimits { bytes: 1024, fields: 2 },
        HeadLimits {
            bytes: 512 << 10,
            fields: 256,
        },
    );
    for (sent, limits, error) in [
        (sized(1024), small, None),
        (sized(1025), small, Some(HeadError::TooLarge(1024))),
        (
            with_fields("X: 1\r\nY: 1\r\n"),
            small,
            Some(HeadError::TooManyFields(2)),
        ),
        (sized(512 << 10), large, None),
        (sized((512 << 10) + 1), large, Some(HeadError::TooLarge(512 << 10))),
        (with_fields(&format!("{}: 1\r\n", "x".repeat(65_535))), large, None),
        (
            with_fields(&format!("{}: 1\r\n", "x".repeat(65_536))),
            large,
            Some(HeadError::Syntax("a field name is longer than 64 KiB")),
        ),
        (with_fields(&"X: 1\r\n".repeat(255)), large, None),
        (
            with_fields(&"X: 1\r\n".repeat(256)),
            large,
            Some(HeadError::TooManyFields(256)),
        ),
    ] {
        for size in [700, 100_000] {
            let (stream, mut client) = pipe(size);
            let bytes = format!("{sent}{}", "content".repeat(100_000)).into_bytes();
            tokio::spawn(async move { client.write_all(&bytes).await });
            let read = Head::read(&stream, IDLE, || (limits, TIMEOUT), &mut Timer::default()).await;
            assert_eq!(read.as_ref().err(), error.as_ref(), "{size} at a time");
            assert!(read.is_ok_and(|head| head.bytes.len() <= limits.bytes + 4096) || error.is_some());
        }
    }
}

#[tokio::test]
async fn a_request_needs_exactly_one_host_field() {
    for (sent, cause) in [
        ("GET http://a.example/ HTTP/1.1\r\n\r\n", "it has no Host field"),
        ("GET / HTTP/1.1\r\nX-Host: a\r\n\r\n", "it has no Host field"),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nHOST: a\r\n\r\n",
            "it has several Host fields",
        ),
        (
            "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n",
            "it has several Host fields",
        ),
        (
            "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example\r\nHost: a.example\r\n\r\n",
            "it has several Host fields",
        ),
    ] {
        assert_eq!(error_of(sent).await, Some(HeadError::Syntax(cause)), "{sent:?}");
    }
}

#[tokio::test]
async fn a_host_that_the_target_does_not_name_is_refused() {
    for (target, host) in [
        ("http://a.example/", "b.example"),
        ("http://a.example/", "a.example:81"),
        ("http://a.example/", "a.example:443"),
        ("http://a.example:81/", "a.example"),
        ("https://a.example/", "a.example:80"),
        ("http://a.example/", "www.a.example"),
    ] {
        let sent = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert_eq!(error_of(&sent).await, Some(HeadError::HostDiffers), "{target} {host}");
    }
    for host in ["b.example", "a.example:80", "b.example:443", "a.example.b"] {
        let sent = format!("CONNECT a.example:443 HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert_eq!(error_of(&sent).await, Some(HeadError::HostDiffers), "CONNECT {host}");
    }
}

#[tokio::test]
async fn an_error_shows_the_ascii_spelling_of_a_host() {
    for (target, host, error) in [
        (
            "bücher.example",
            "bücher.example",
            "target's host has to be ASCII without percent-encoding: write it as xn--bcher-kva.example",
        ),
        (
            "ex%61mple.com:81",
            "ex%61mple.com:81",
            "target's host has to be ASCII without percent-encoding: write it as example.com",
        ),
        ("%31%32%37.0.0.1", "%31%32%37.0.0.1", "write it as 127.0.0.1"),
        ("%31%32%37.0.0.1", "127.0.0.1", "the request target's host has"),
        ("１.1.1.1", "１.1.1.1", "write it as 1.1.1.1"),
        ("①②⑦.⓪.⓪.①", "①②⑦.⓪.⓪.①", "write it as 127.0.0.1"),
        (
            "127.0.0.1",
            "%31%32%37.0.0.1",
            "the Host field has to be ASCII without percent-encoding: write its host as 127.0.0.1",
        ),
        (
            "xn--bcher-kva.example",
            "bücher.example",
            "write its host as xn--bcher-kva.example",
        ),
        (
            "a{b}.example",
            "a{b}.example",
            "the request target is not valid: the host has the character '{', which robotgate does not accept",
        ),
        (
            "<host>",
            "<host>",
            "target is not valid: the host has the character '<'",
        ),
        ("a%2f.example", "a%2f.example", "the request target is not valid"),
    ] {
        let sent = format!("GET http://{target}/ HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let found = error_of(&sent).await.map(|error| error.to_string()).unwrap_or_default();
        assert!(found.contains(error), "{target} {host}: {found:?}");
    }
    for (target, host) in [
        ("gopher://a.example/", "b.example"),
        ("htt://b?x", "a.example"),
        ("gopher://bücher.example/", "b.example"),
        ("ws://bücher.example/", "bücher.example"),
    ] {
        let sent = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert_eq!(error_of(&sent).await, Some(HeadError::TargetScheme), "{target} {host}");
    }
    // In a CONNECT, an escaped or non-ASCII host is accepted, because the CONNECT is not forwarded.
    let connect = read("CONNECT b%C3%BCcher.example:443 HTTP/1.1\r\nHost: bücher.example\r\n\r\n").await;
    let authority = connect.expect("a head").connect.expect("a CONNECT").authority;
    assert_eq!(authority.host.to_string(), "xn--bcher-kva.example");
}

#[tokio::test]
async fn an_error_names_a_character_that_urls_cannot_have() {
    for (target, character) in [
        ("/<", '<'),
        ("/a>b", '>'),
        ("/a`b", '`'),
        ("http://a.example/x?a=<", '<'),
        ("http://a.example/x?a=>", '>'),
        ("http://a.example/x?\"", '"'),
        ("http://a.example/`?<", '`'),
    ] {
        let sent = format!("GET {target} HTTP/1.1\r\nHost: a.example\r\n\r\n");
        let found = error_of(&sent).await;
        assert_eq!(found, Some(HeadError::TargetCharacter(character)), "{target}");
    }
}

#[tokio::test]
async fn a_connect_without_a_valid_host_and_port_is_refused() {
    for (target, error) in [
        ("a.example", HeadError::ConnectPort),
        ("a.example:", HeadError::ConnectPort),
        ("[::1]", HeadError::ConnectPort),
        (":443", HeadError::ConnectTarget(HostPortError::NoHost)),
        ("a.example:0", HeadError::ConnectTarget(HostPortError::Port)),
        ("a.example:65536", HeadError::ConnectTarget(HostPortError::Port)),
        ("a.example:443:443", HeadError::ConnectTarget(HostPortError::Port)),
        ("a.example:443/", HeadError::ConnectPort),
        ("https://a.example:443/", HeadError::ConnectPort),
        ("user@a.example:443", HeadError::ConnectTarget(HostPortError::UserInfo)),
        ("a..example:443", HeadError::ConnectTarget(HostPortError::Host)),
        ("[::1:443", HeadError::ConnectTarget(HostPortError::Host)),
        ("::1:443", HeadError::ConnectTarget(HostPortError::NoBrackets)),
        ("/", HeadError::ConnectPort),
        ("*", HeadError::ConnectPort),
    ] {
        let sent = format!("CONNECT {target} HTTP/1.1\r\nHost: a.example\r\n\r\n");
        assert_eq!(error_of(&sent).await, Some(error), "{target}");
    }
}

#[tokio::test]
async fn a_head_over_64_kib_is_refused() {
    let sized = |size: usize| {
        let empty = with_fields("X: \r\n").len();
        with_fields(&format!("X: {}\r\n", "x".repeat(size - empty)))
    };
    for (size, error) in [
        (LIMITS.bytes, None),
        (LIMITS.bytes + 1, Some(HeadError::TooLarge(LIMITS.bytes))),
        (3 * LIMITS.bytes, Some(HeadError::TooLarge(LIMITS.bytes))),
    ] {
        let sent = sized(size);
        assert_eq!(sent.len(), size);
        assert_eq!(error_of(&sent).await, error, "{size}");
        for pieces in [1000, LIMITS.bytes - 1] {
            let found = read_in_pieces(sent.as_bytes(), pieces).await.err();
            assert_eq!(found, error, "{size}, {pieces} at a time");
        }
    }
    let with_content = format!("{}{}", sized(LIMITS.bytes), "x".repeat(LIMITS.bytes));
    assert_eq!(error_of(&with_content).await, None, "content does not count");
    let endless = "x".repeat(LIMITS.bytes + 1);
    assert_eq!(
        error_of(&endless).await,
        Some(HeadError::TooLarge(LIMITS.bytes)),
        "a line that never ends"
    );
}

#[tokio::test]
async fn a_head_with_more_than_128_fields_is_refused() {
    // The Host field counts too.
    let most = with_fields(&"X: 1\r\n".repeat(LIMITS.fields - 1));
    assert_eq!(error_of(&most).await, None);
    let more = with_fields(&"X: 1\r\n".repeat(LIMITS.fields));
    assert_eq!(error_of(&more).await, Some(HeadError::TooManyFields(LIMITS.fields)));
    assert_eq!(
        read_in_pieces(more.as_bytes(), 100).await.err(),
        Some(HeadError::TooManyFields(LIMITS.fields))
    );
}

#[tokio::test]
async fn a_client_that_disconnects_during_the_head_gets_no_response() {
    for len in 0..GET.len() {
        assert_eq!(error_of(&GET[..len]).await, Some(HeadError::Gone), "{len} bytes");
    }
}

#[test]
fn each_error_says_what_is_wrong() {
    for (error, says) in [
        (
            HeadError::TooLarge(64 * 1024),
            "longer than 64 KiB (proxy.max-header-bytes)",
        ),
        (HeadError::TooLarge(1500), "longer than 1500 bytes"),
        (
            HeadError::TooManyFields(128),
            "more than 128 fields (proxy.max-header-fields)",
        ),
        (
            HeadError::Syntax("it has no Host field"),
            "does not accept the request: it has no Host field",
        ),
        (HeadError::TargetCharacter('<'), "character '<': write %3C"),
        (HeadError::ConnectPort, "CONNECT example.com:443"),
        (HeadError::ConnectTarget(HostPortError::NoHost), "the host is missing"),
        (HeadError::HostDiffers, "different hosts or ports"),
        (HeadError::NestedConnect, "a CONNECT inside a CONNECT"),
        (HeadError::Timeout, "in time"),
    ] {
        assert!(error.to_string().contains(says), "{error:?}: {error}");
    }
}
