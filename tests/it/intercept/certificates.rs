//! The leaf certificates that clients see, and the origins' certificates that the gate checks.

use super::open;
use crate::support::{Alpn, Certificate, Connected, Gate, NAME, Origin, Response, Roots, allowed, failed, refused};

#[tokio::test]
async fn a_leaf_holds_for_the_name_and_is_made_once() {
    let origin = Origin::start().page("/x", "secret").tls().spawn().await;
    let gate = Gate::start().await;
    let leaf = async |name: &str| {
        let tunnel = gate.connect(&format!("{name}:{}", origin.port())).await.opened();
        tunnel
            .tls(name, Alpn::Http1)
            .await
            .certificate()
            .expect("a certificate")
            .to_vec()
    };

    let first = leaf(NAME).await;

    assert_eq!(first, leaf(NAME).await);
    assert_ne!(first, leaf("other.example").await);
}

#[tokio::test]
async fn a_leaf_holds_for_an_ip_address() {
    let origin = Origin::start().page("/x", "secret").tls().spawn().await;
    let gate = Gate::start().await;
    let tunnel = gate.connect(&format!("127.0.0.1:{}", origin.port())).await.opened();

    let response = tunnel.tls("127.0.0.1", Alpn::Http1).await.get("/x").await;

    allowed(&response, "no-robots");
}

#[tokio::test]
async fn the_key_of_the_authority_is_private() {
    use std::os::unix::fs::PermissionsExt;

    let origin = Origin::start().page("/x", "secret").tls().spawn().await;
    let gate = Gate::start().await;
    allowed(
        &open(&gate, &origin.authority(), Alpn::Http1).await.get("/x").await,
        "no-robots",
    );

    let key = std::fs::metadata(gate.file("ca-key.pem")).expect("the key is made by now");
    assert_eq!(key.permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn nothing_is_asked_of_an_origin_with_a_bad_certificate() {
    for (name, bad) in [
        ("expired", Certificate::expired(&[NAME])),
        ("wrong name", Certificate::of(&["other.example"])),
        ("unknown root", Certificate::of_unknown_root(&[NAME])),
    ] {
        println!("{name}");
        let origin = Origin::start().page("/x", "secret").certificate(bad).spawn().await;
        let gate = Gate::start().await;

        let response = through(&gate, &origin, "/x").await;

        // Its robots.txt cannot be had either, so everything is disallowed.
        refused(&response, "unreachable");
        let details = response.proxy_status().param("details").unwrap_or_default();
        assert!(details.contains("certificate is not valid"), "{details}");
        assert!(origin.requests().is_empty());
    }
}

#[tokio::test]
async fn without_the_extra_root_an_origin_is_a_stranger() {
    let origin = Origin::start().page("/x", "secret").tls().spawn().await;
    let gate = Gate::builder().without("https.extra-roots").start().await;

    let response = through(&gate, &origin, "/x").await;
    refused(&response, "unreachable");
    let details = response.proxy_status().param("details").unwrap_or_default();
    assert!(details.contains("UnknownIssuer"), "{details}");
}

#[tokio::test]
async fn http_2_is_agreed_on_where_the_client_offers_it() {
    let origin = Origin::start().page("/x", "secret").tls().spawn().await;
    let gate = Gate::start().await;

    assert_eq!(
        open(&gate, &origin.authority(), Alpn::Http2)
            .await
            .get("/x")
            .await
            .version,
        "HTTP/2"
    );
    assert_eq!(
        open(&gate, &origin.authority(), Alpn::Http1)
            .await
            .get("/x")
            .await
            .version,
        "HTTP/1.1"
    );
}

/// The answer to a page, be it the refused CONNECT's or the one inside.
async fn through(gate: &Gate, origin: &Origin, path: &str) -> Response {
    match gate.connect(&origin.authority()).user_agent("TestBot/1.0").await {
        Connected::Refused(response) => response,
        Connected::Tunnel(tunnel) => tunnel.tls(NAME, Alpn::Http1).await.get(path).await,
    }
}

#[tokio::test]
async fn tls_that_asks_for_another_host_than_the_connect_is_a_bad_request() {
    let origin = Origin::start().page("/x", "secret").tls().spawn().await;
    let gate = Gate::start().await;
    for alpn in [Alpn::Http1, Alpn::Http2] {
        let tunnel = gate.connect(&origin.authority()).await.opened();

        let mut inside = tunnel.trusting(Roots::blind()).tls("other.example", alpn).await;

        let response = inside.get("/x").await;
        failed(&response, 400, &["http_request_error"]);
        assert!(response.text().contains("another server name"), "{response:#?}");
    }
    assert_eq!(origin.count("/x"), 0);
}

#[tokio::test]
async fn the_name_may_be_spelt_in_other_letters_or_left_out() {
    let origin = Origin::start().page("/x", "secret").tls().spawn().await;
    let gate = Gate::start().await;
    for (authority, server_name) in [
        (format!("SHOP.example:{}", origin.port()), NAME),
        (format!("{NAME}.:{}", origin.port()), NAME),
        // An address is never asked for by name (RFC 6066 §3).
        (origin.authority(), "127.0.0.1"),
    ] {
        let tunnel = gate.connect(&authority).await.opened();
        let mut inside = tunnel.trusting(Roots::blind()).tls(server_name, Alpn::Http1).await;
        allowed(&inside.get("/x").set("Host", &authority).await, "no-robots");
    }
}
