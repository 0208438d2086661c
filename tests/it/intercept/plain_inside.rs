//! Plain HTTP and other protocols inside a CONNECT, and requests for another host than that of the CONNECT.

use super::open;
use crate::support::{Alpn, Gate, NAME, Origin, ROBOTS, Reply, allowed, refused};

#[tokio::test]
async fn plain_http_inside_a_tunnel_is_decided() {
    let origin = Origin::start().robots(ROBOTS).page("/x", "plain").spawn().await;
    let gate = Gate::start().await;
    let mut inside = gate.connect(&origin.authority()).await.opened().plain();

    let page = inside.get("/x").await;
    let denied = inside.get("/private").await;

    allowed(&page, "no-rule");
    assert_eq!(page.text(), "plain");
    assert_eq!(
        refused(&denied, "rule").param("robots"),
        Some(origin.url("/robots.txt"))
    );
    assert_eq!(denied.status_line(), "HTTP/1.1 403 Disallowed by robots.txt");
    assert_eq!((origin.count("/x"), origin.count("/private")), (1, 0));
}

async fn two_names(tls: bool) -> Origin {
    let origin = Origin::start()
        .on("/robots.txt", |request| match request.field("Host") {
            Some(host) if host.starts_with("open.example") => Reply::status(404),
            _ => Reply::ok("text/plain", "User-agent: *\nDisallow: /private\n"),
        })
        .anything("private");
    if tls {
        origin.tls().spawn().await
    } else {
        origin.spawn().await
    }
}

#[tokio::test]
async fn a_host_field_that_differs_from_the_tunnel_is_refused() {
    for tls in [false, true] {
        let origin = two_names(tls).await;
        let gate = Gate::start().await;
        let elsewhere = format!("open.example:{}", origin.port());
        let tunnel = gate.connect(&origin.authority()).await.opened();
        let mut inside = if tls {
            tunnel.tls(NAME, Alpn::Http1).await
        } else {
            tunnel.plain()
        };

        let response = inside.get("/private").set("Host", &elsewhere).await;

        assert!((400..500).contains(&response.status), "TLS {tls}: {response:#?}");
        assert_eq!(origin.count("/private"), 0, "TLS {tls}");
    }
}

#[tokio::test]
async fn an_absolute_form_that_differs_from_the_tunnel_is_refused() {
    let origin = two_names(true).await;
    let gate = Gate::start().await;
    let mut inside = open(&gate, &origin.authority(), Alpn::Http1).await;

    let response = inside.get(&origin.url_at("open.example", "/private")).await;

    assert!((400..500).contains(&response.status), "{response:#?}");
    assert_eq!(origin.count("/private"), 0);
}

#[tokio::test]
async fn an_http_2_authority_that_differs_from_the_tunnel_is_refused() {
    let origin = two_names(true).await;
    let gate = Gate::start().await;
    let elsewhere = format!("open.example:{}", origin.port());
    let mut inside = open(&gate, &origin.authority(), Alpn::Http2).await;

    let response = inside.get("/private").set("Host", &elsewhere).await;

    assert!((400..500).contains(&response.status), "{response:#?}");
    assert_eq!(origin.count("/private"), 0);
}

#[tokio::test]
async fn tls_in_place_of_http_is_closed_and_logged() {
    let origin = two_names(true).await;
    let gate = Gate::start().await;
    // The first record of a TLS handshake, which the clients send in place of an HTTP request.
    let hello = b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00";
    let mut inside = open(&gate, &origin.authority(), Alpn::Http1).await;
    let mut plain = gate.dial().await;

    inside.send(hello).await;
    plain.send(hello).await;

    let message = "sent a second layer of TLS in a CONNECT tunnel";
    let line = gate
        .wait_for_log(message, |line| line.message().contains(message))
        .await;
    assert!(
        line.says("[[https.tunnel]]") && line.says(&origin.authority()),
        "{line:?}"
    );
    let message = "a client spoke TLS to a listener for plain HTTP";
    let line = gate
        .wait_for_log(message, |line| line.message().contains(message))
        .await;
    assert!(line.says("[proxy.tls]"), "{line:?}");
    for mut connection in [inside, plain] {
        assert!(connection.read_to_end().await.starts_with(b"HTTP/1.1 400 "));
    }
}

#[tokio::test]
async fn a_tunnel_with_an_unknown_protocol_is_closed_and_logged() {
    let origin = two_names(true).await;
    let gate = Gate::start().await;
    let mut other = gate.connect(&origin.authority()).await.opened().plain();

    other.send(b"\x00\x00\x00\x2a binary").await;

    assert_eq!(other.read_to_end().await, b"");
    let message = "neither TLS nor HTTP through a CONNECT";
    let line = gate
        .wait_for_log(message, |line| line.message().contains(message))
        .await;
    assert!(
        line.says("[[https.tunnel]]") && line.says(&origin.authority()),
        "{line:?}"
    );
}

#[tokio::test]
async fn a_text_protocol_in_a_tunnel_is_refused_and_logged() {
    let origin = two_names(true).await;
    let gate = Gate::start().await;
    let mut other = gate.connect(&origin.authority()).await.opened().plain();

    other.send(b"SSH-2.0-client\r\n").await;

    assert!(other.read_to_end().await.starts_with(b"HTTP/1.1 400 "));
    let message = "sent something malformed through a CONNECT";
    let line = gate
        .wait_for_log(message, |line| line.message().contains(message))
        .await;
    assert!(
        line.says("[[https.tunnel]]") && line.says(&origin.authority()),
        "{line:?}"
    );
}
