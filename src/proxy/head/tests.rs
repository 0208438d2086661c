mod refuse;
mod time;

use tokio::io::{AsyncWriteExt as _, DuplexStream};

use super::*;
use crate::origin::HostPortError;

fn pipe(capacity: usize) -> (Wire, DuplexStream) {
    let (stream, client) = tokio::io::duplex(capacity);
    (Wire::new(Box::new(stream)), client)
}

async fn read_in_pieces(bytes: &[u8], size: usize) -> Result<Head, HeadError> {
    let (stream, mut client) = pipe(size);
    let bytes = bytes.to_vec();
    // `write_all` fails if the head is refused before all bytes are read.
    tokio::spawn(async move { client.write_all(&bytes).await });
    Head::read(&stream, IDLE, || (LIMITS, TIMEOUT), &mut Timer::default()).await
}

async fn read(bytes: impl AsRef<[u8]>) -> Result<Head, HeadError> {
    read_in_pieces(bytes.as_ref(), 1024 * 1024).await
}

async fn error_of(bytes: impl AsRef<[u8]>) -> Option<HeadError> {
    read(bytes).await.err()
}

fn parts(head: &Head) -> (&str, &str) {
    let (head, content) = head.bytes.split_at(head.len);
    (
        std::str::from_utf8(head).expect("UTF-8"),
        std::str::from_utf8(content).expect("UTF-8"),
    )
}

const IDLE: Duration = Duration::from_secs(60);
const TIMEOUT: Duration = Duration::from_secs(10);
const LIMITS: HeadLimits = HeadLimits {
    bytes: 64 * 1024,
    fields: 128,
};
const GET: &str = "GET http://a.example/p?q HTTP/1.1\r\nHost: a.example\r\nUser-Agent: AcmeBot/1.0\r\n\r\n";

#[tokio::test]
async fn a_head_is_kept_byte_for_byte() {
    for head in [
        GET,
        "GET / HTTP/1.1\r\nhost: a.example\r\n\r\n",
        "GET http://a.example/ HTTP/1.0\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0\r\n\r\n",
        "BREW http://a.example/ HTTP/1.1\r\nHost:\ta.example \r\nX:\r\n\r\n",
        "GET http://a.example/%3Cx%3E?y=`|{}^\\ HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "GET http://a.example/\"quoted\"|{}^\\[] HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "GET http://a.example/ツ HTTP/1.1\r\nHost: a.example\r\n\r\n",
    ] {
        let read = read(head).await.unwrap_or_else(|error| panic!("{error}: {head:?}"));
        assert_eq!(parts(&read), (head, ""));
        assert!(read.connect.is_none(), "{head:?}");
    }
}

#[tokio::test]
async fn a_ws_url_in_a_websocket_request_becomes_the_http_url() {
    let head = |target: &str, host: &str, more: &str| {
        format!(
            "GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{more}\r\n"
        )
    };
    let upgrade = "Upgrade: websocket\r\n";
    for (target, host, read_target, read_host) in [
        (
            "ws://a.example/ws://b?q",
            "a.example",
            "http://a.example/ws://b?q",
            "a.example",
        ),
        (
            "WSS://a.example:444",
            "a.example:444",
            "https://a.example:444",
            "a.example:444",
        ),
        ("wss://A.example/", "a.example:443", "https://A.example/", "A.example"),
    ] {
        let read = read(head(target, host, upgrade) + "frames").await.expect("a head");
        assert_eq!(parts(&read), (&*head(read_target, read_host, upgrade), "frames"));
    }
    assert_eq!(
        error_of(head("ws://a.example/", "b.example", upgrade)).await,
        Some(HeadError::HostDiffers)
    );
    // Without an Upgrade field, `ws` is an unknown scheme, which `proxy::target` refuses.
    let plain = head("ws://a.example/", "a.example", "");
    assert_eq!(parts(&read(&plain).await.expect("a head")), (&*plain, ""));
}

#[tokio::test]
async fn the_login_of_an_ftp_url_is_dropped() {
    let head = |target: &str, host: &str| format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    for (target, host, read_target, names_user) in [
        ("ftp://joe:pw@a.example/x@y", "a.example", "ftp://a.example/x@y", true),
        ("FTP://joe@a.example", "joe@a.example", "ftp://a.example", true),
        ("ftp://@a.example/", "a.example", "ftp://a.example/", true),
        (
            "ftp://anonymous:me@a.example/",
            "x:y@a.example",
            "ftp://a.example/",
            false,
        ),
        ("ftp://a.example/x@y", "a.example", "ftp://a.example/x@y", false),
    ] {
        let read = read(head(target, host)).await.expect("a head");
        let read_target = read_target.replace("ftp", &target[..3]);
        assert_eq!(parts(&read), (&*head(&read_target, "a.example"), ""), "{target}");
        assert_eq!(read.names_user, names_user, "{target}");
    }
    for (target, host) in [
        ("http://joe:pw@a.example/", "a.example"),
        ("ftp://joe@pw@a.example/", "a.example"),
        ("ftp://a.example/", "joe@a.example"),
    ] {
        let error = error_of(head(target, host)).await;
        let user_info = [
            HeadError::TargetHost(HostPortError::UserInfo),
            HeadError::Host(HostPortError::UserInfo),
        ];
        assert!(
            error.as_ref().is_some_and(|error| user_info.contains(error)),
            "{target}: {error:?}"
        );
    }
}

#[tokio::test]
async fn a_head_may_arrive_in_any_pieces() {
    for size in [1, 2, 3, 7, 16, 64, GET.len() - 1, GET.len(), GET.len() + 1] {
        let head = read_in_pieces(GET.as_bytes(), size).await.expect("a head");
        assert_eq!(parts(&head), (GET, ""), "{size} bytes at a time");
    }
}

#[tokio::test]
async fn bytes_read_after_the_head_are_kept() {
    let post = "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 10\r\n\r\n";
    let sent = format!("{post}hello");
    assert_eq!(parts(&read(&sent).await.expect("a head")), (post, "hello"));

    let two = format!("{GET}{GET}");
    assert_eq!(
        parts(&read(&two).await.expect("a head")),
        (GET, GET),
        "a pipelined request"
    );

    let connect = "CONNECT a.example:443 HTTP/1.1\r\n\r\n";
    let early = format!("{connect}\u{16}\u{3}\u{1}");
    let head = read(&early).await.expect("a head");
    assert_eq!(
        parts(&head),
        (connect, "\u{16}\u{3}\u{1}"),
        "the first bytes of a tunnel"
    );
}

#[tokio::test]
async fn content_of_any_bytes_is_kept() {
    let mut sent = GET.as_bytes().to_vec();
    sent.extend(0..=255_u8);
    let head = read(&sent).await.expect("a head");
    assert_eq!(head.bytes, sent);
    assert_eq!(head.len, GET.len());
}

#[tokio::test]
async fn an_empty_line_before_the_request_is_accepted() {
    let sent = format!("\r\n{GET}");
    let head = read(&sent).await.expect("a head");
    assert_eq!(parts(&head), (&*sent, ""));
}

#[tokio::test]
async fn a_host_field_is_rewritten_to_the_spelling_in_the_target() {
    for (target, host, expected) in [
        ("http://a.example/", "A.EXAMPLE", "Host: a.example"),
        ("http://A.Example/", "a.example", "Host: A.Example"),
        ("http://a.example/", "a.example:80", "Host: a.example"),
        ("http://a.example:80/", "a.example", "Host: a.example:80"),
        ("https://a.example/", "a.example:443", "Host: a.example"),
        ("http://a.example/", "a.example.", "Host: a.example"),
        ("http://a.example:8080?q", "A.example:8080", "Host: a.example:8080"),
        ("http://[::1]/", "[0:0::1]", "Host: [::1]"),
        ("http://127.0.0.1/", "127.1", "Host: 127.0.0.1"),
    ] {
        let sent = |host: &str| format!("GET {target} HTTP/1.1\r\nX-Host: {host}\r\n{host}\r\nY: 1\r\n\r\ncontent");
        let before = sent(&format!("hOsT:{host}")).replace("X-Host: hOsT:", "X-Host: ");
        let after = sent(expected).replace(&format!("X-Host: {expected}"), &format!("X-Host: {host}"));
        let head = read(&before)
            .await
            .unwrap_or_else(|error| panic!("{error}: {target} {host}"));
        let found = parts(&head);
        assert_eq!(
            found,
            (after.strip_suffix("content").expect("it has one"), "content"),
            "{host}"
        );
    }
}

#[tokio::test]
async fn a_host_field_that_equals_the_target_is_unchanged() {
    for host in ["Host:a.example", "HOST: a.example", "host:  \ta.example \t"] {
        let sent = format!("GET http://a.example/ HTTP/1.1\r\n{host}\r\n\r\n");
        assert_eq!(parts(&read(&sent).await.expect("a head")), (&*sent, ""));
    }
}

#[tokio::test]
async fn in_origin_form_the_host_is_not_checked_yet() {
    for host in ["b.example", "A.EXAMPLE:80", "::"] {
        let sent = format!("GET /p HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert_eq!(parts(&read(&sent).await.expect("a head")), (&*sent, ""));
    }
}

#[tokio::test]
async fn a_connect_gives_its_host_and_port_and_its_fields() {
    for (line, host, authority) in [
        ("CONNECT a.example:443 HTTP/1.1", Some("a.example:443"), "a.example:443"),
        ("CONNECT a.example:443 HTTP/1.1", Some("a.example"), "a.example:443"),
        ("CONNECT A.Example:443 HTTP/1.1", Some("a.example."), "a.example:443"),
        ("CONNECT a.example:443 HTTP/1.1", None, "a.example:443"),
        ("CONNECT a.example:443 HTTP/1.0", None, "a.example:443"),
        ("CONNECT [::1]:8443 HTTP/1.1", Some("[::1]:8443"), "[::1]:8443"),
        ("CONNECT a.example:80 HTTP/1.0", Some("a.example:80"), "a.example:80"),
    ] {
        let host = host.map(|host| format!("Host: {host}\r\n")).unwrap_or_default();
        let sent = format!("{line}\r\n{host}User-Agent: AcmeBot/1.0\r\nX: 1\r\nX: 2\r\n\r\n");
        let head = read(&sent).await.unwrap_or_else(|error| panic!("{error}: {sent:?}"));
        assert_eq!(parts(&head), (&*sent, ""), "nothing is rewritten");
        let connect = head.connect.expect("a CONNECT");
        let port = connect.authority.port.expect("a port");
        assert_eq!(format!("{}:{port}", connect.authority.host), authority);
        assert_eq!(connect.headers["user-agent"], "AcmeBot/1.0");
        assert_eq!(connect.headers.get_all("x").iter().count(), 2);
    }
}
