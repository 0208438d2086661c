//! Heads that are refused, each with its cause.

use super::*;

/// A request with these fields more than it needs.
fn with_fields(fields: &str) -> String {
    format!("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n{fields}\r\n")
}

#[tokio::test]
async fn what_is_no_request_is_told_so() {
    for (sent, cause) in [
        (
            "GET http://a.example/ HTTP/2.0\r\n\r\n",
            "its version is neither HTTP/1.0 nor 1.1",
        ),
        (
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            "its version is neither HTTP/1.0 nor 1.1",
        ),
        (
            "GET http://a.example/\r\n\r\n",
            "the request line has a character that cannot stand in it",
        ),
        (
            "\u{16}\u{3}\u{1}\u{2}",
            "the request line has a character that cannot stand in it",
        ),
        (
            "G@T / HTTP/1.1\r\nHost: a\r\n\r\n",
            "the request line has a character that cannot stand in it",
        ),
        (
            "GET /\u{7F} HTTP/1.1\r\nHost: a\r\n\r\n",
            "the request line has a character that cannot stand in it",
        ),
        (
            "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
            "the request line has a character that cannot stand in it",
        ),
        ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", "a field name is no token"),
        (
            "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
            "a field name is no token",
        ),
        ("GET / HTTP/1.1\r\nno colon\r\n\r\n", "a field name is no token"),
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
}

#[tokio::test]
async fn content_has_one_framing_or_none() {
    for (fields, cause) in [
        (
            "Content-Length: 1\r\nContent-Length: 1\r\n",
            "it has several Content-Length fields",
        ),
        (
            "Content-Length: 1\r\ncontent-length: 2\r\n",
            "it has several Content-Length fields",
        ),
        ("Content-Length: 1, 1\r\n", "its Content-Length is no number"),
        ("Content-Length: +1\r\n", "its Content-Length is no number"),
        ("Content-Length: -1\r\n", "its Content-Length is no number"),
        ("Content-Length: 0x1\r\n", "its Content-Length is no number"),
        ("Content-Length:\r\n", "its Content-Length is no number"),
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
    for fields in ["Content-Length: 0042\r\n", "TRANSFER-ENCODING: Chunked\r\n"] {
        assert_eq!(error_of(with_fields(fields)).await, None, "{fields:?}");
    }
    let old = "POST http://a.example/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    let cause = "HTTP/1.0 has no Transfer-Encoding";
    assert_eq!(error_of(old).await, Some(HeadError::Syntax(cause)));
}

#[tokio::test]
async fn there_is_one_host() {
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
async fn a_character_that_no_url_has_is_named() {
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
async fn a_connect_names_a_host_and_a_port() {
    for (target, error) in [
        ("a.example", HeadError::ConnectPort),
        ("a.example:", HeadError::ConnectPort),
        ("[::1]", HeadError::ConnectPort),
        (":443", HeadError::ConnectTarget(AuthorityError::NoHost)),
        ("a.example:0", HeadError::ConnectTarget(AuthorityError::Port)),
        ("a.example:65536", HeadError::ConnectTarget(AuthorityError::Port)),
        ("a.example:443:443", HeadError::ConnectTarget(AuthorityError::Port)),
        ("a.example:443/", HeadError::ConnectTarget(AuthorityError::Port)),
        ("https://a.example:443/", HeadError::ConnectTarget(AuthorityError::Port)),
        ("user@a.example:443", HeadError::ConnectTarget(AuthorityError::UserInfo)),
        ("a..example:443", HeadError::ConnectTarget(AuthorityError::Host)),
        ("[::1:443", HeadError::ConnectTarget(AuthorityError::Host)),
        ("/", HeadError::ConnectTarget(AuthorityError::Host)),
        ("*", HeadError::ConnectPort),
    ] {
        let sent = format!("CONNECT {target} HTTP/1.1\r\nHost: a.example\r\n\r\n");
        assert_eq!(error_of(&sent).await, Some(error), "{target}");
    }
}

#[tokio::test]
async fn a_head_holds_64_kib_and_no_byte_more() {
    let sized = |size: usize| {
        let empty = with_fields("X: \r\n").len();
        with_fields(&format!("X: {}\r\n", "x".repeat(size - empty)))
    };
    for (size, error) in [
        (MAX_HEAD, None),
        (MAX_HEAD + 1, Some(HeadError::TooLarge)),
        (3 * MAX_HEAD, Some(HeadError::TooLarge)),
    ] {
        let sent = sized(size);
        assert_eq!(sent.len(), size);
        assert_eq!(error_of(&sent).await, error, "{size}");
        for pieces in [1000, MAX_HEAD - 1] {
            let found = read_in_pieces(sent.as_bytes(), pieces).await.err();
            assert_eq!(found, error, "{size}, {pieces} at a time");
        }
    }
    let with_content = format!("{}{}", sized(MAX_HEAD), "x".repeat(MAX_HEAD));
    assert_eq!(error_of(&with_content).await, None, "content does not count");
    let endless = "x".repeat(MAX_HEAD + 1);
    assert_eq!(
        error_of(&endless).await,
        Some(HeadError::TooLarge),
        "a line that never ends"
    );
}

#[tokio::test]
async fn a_head_has_128_fields_and_not_one_more() {
    // One of them is Host.
    let most = with_fields(&"X: 1\r\n".repeat(MAX_FIELDS - 1));
    assert_eq!(error_of(&most).await, None);
    let more = with_fields(&"X: 1\r\n".repeat(MAX_FIELDS));
    assert_eq!(error_of(&more).await, Some(HeadError::TooManyFields));
    assert_eq!(
        read_in_pieces(more.as_bytes(), 100).await.err(),
        Some(HeadError::TooManyFields)
    );
}

#[tokio::test]
async fn a_client_that_goes_away_in_the_middle_needs_no_answer() {
    for len in 0..GET.len() {
        assert_eq!(error_of(&GET[..len]).await, Some(HeadError::Gone), "{len} bytes");
    }
}

#[test]
fn each_error_says_what_is_wrong() {
    for (error, says) in [
        (HeadError::TooLarge, "longer than 64 KiB"),
        (HeadError::TooManyFields, "more than 128 fields"),
        (
            HeadError::Syntax("it has no Host field"),
            "not valid HTTP/1: it has no Host field",
        ),
        (HeadError::TargetCharacter('<'), "percent-encoded: <"),
        (HeadError::ConnectPort, "CONNECT example.com:443"),
        (HeadError::ConnectTarget(AuthorityError::NoHost), "the host is missing"),
        (HeadError::HostDiffers, "another host"),
        (HeadError::NestedConnect, "a CONNECT inside a CONNECT"),
        (HeadError::Timeout, "in time"),
    ] {
        assert!(error.to_string().contains(says), "{error:?}: {error}");
    }
}
