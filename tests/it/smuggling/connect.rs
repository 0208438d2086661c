//! If a CONNECT opens no tunnel, the gate does not read the bytes after it as a request.

use super::{Scene, Way, is_refused, responses};
use crate::support::{Gate, Origin, ROBOTS};

const SMUGGLED: &str = "GET {prefix}/smuggled HTTP/1.1\r\nHost: {host}\r\nUser-Agent: TestBot/1.0\r\n\r\n";

#[tokio::test]
async fn bytes_after_a_malformed_connect_are_not_read_as_a_request() {
    let scene = Scene::start().await;
    for (name, head, cause) in [
        ("no port", "CONNECT shop.example HTTP/1.1\r\n\r\n", "a host and a port"),
        ("a user", "CONNECT me@{host} HTTP/1.1\r\n\r\n", "target of the CONNECT"),
        ("a URL", "CONNECT {abs}/ HTTP/1.1\r\n\r\n", "a host and a port"),
        (
            "another Host",
            "CONNECT {host} HTTP/1.1\r\nHost: b.example\r\n\r\n",
            "different host",
        ),
        (
            "another port in Host",
            "CONNECT {host} HTTP/1.1\r\nHost: shop.example:1\r\n\r\n",
            "different host",
        ),
        (
            "two Hosts",
            "CONNECT {host} HTTP/1.1\r\nHost: {host}\r\nHost: {host}\r\n\r\n",
            "several Host",
        ),
        (
            "a length",
            "CONNECT {host} HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody",
            "CONNECT request must not have content",
        ),
        (
            "chunks",
            "CONNECT {host} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "CONNECT request must not have content",
        ),
        (
            "both",
            "CONNECT {host} HTTP/1.1\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n",
            "both",
        ),
    ] {
        let payload = scene.payload(Way::Plain, &format!("{head}{SMUGGLED}"));
        let received = responses(scene.send(Way::Plain, &payload).await).await;
        is_refused(&received, 400, cause, name);
    }
    assert_eq!(scene.plain.count("/smuggled"), 0);
    scene.every_forwarded_request_is_logged().await;
}

#[tokio::test]
async fn bytes_after_a_refused_connect_are_not_read_as_a_request() {
    let origin = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    for mode in ["refuse", "tunnel"] {
        let gate = Gate::with(&format!("[https]\nmode = \"{mode}\"")).await;
        let connect = format!(
            "CONNECT {} HTTP/1.1\r\nUser-Agent: TestBot/1.0\r\n\r\n",
            origin.authority()
        );
        let smuggled = format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: TestBot/1.0\r\n\r\n",
            origin.url("/smuggled"),
            origin.authority()
        );

        let received = responses(gate.raw(format!("{connect}{smuggled}")).await).await;

        let [response] = &received[..] else {
            panic!("{received:#?}")
        };
        assert!(matches!(response.status, 403 | 502), "{mode}: {response:#?}");
        assert!(!response.stays_open, "{mode}: {response:#?}");
        assert_eq!(origin.count("/smuggled"), 0, "{mode}");
    }
}

#[tokio::test]
async fn a_connect_inside_a_connect_ends_the_connection() {
    let scene = Scene::start().await;
    for way in [Way::Tls, Way::PlainInside] {
        let payload = scene.payload(
            way,
            &format!("CONNECT {{host}} HTTP/1.1\r\nHost: {{host}}\r\n\r\n{SMUGGLED}"),
        );
        let received = responses(scene.send(way, &payload).await).await;
        is_refused(&received, 400, "inside a CONNECT", &format!("{way:?}"));
        assert_eq!(scene.origin(way).count("/smuggled"), 0);
    }
}
