//! The leaf certificates that clients get, and the gate's checks of origins' certificates.

use super::open;
use crate::support::{
    Alpn, Certificate, Connected, Gate, NAME, Origin, Reply, Request, Response, Roots, Step, allowed, failed, refused,
};

#[tokio::test]
async fn a_leaf_is_valid_for_its_name_and_issued_once() {
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
async fn a_leaf_can_be_valid_for_an_ip_address() {
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

/// Returns every kind of invalid certificate, with the words of its error.
fn bad_certificates() -> Vec<(&'static str, Certificate, &'static str)> {
    vec![
        (
            "expired",
            Certificate::expired(&[NAME]),
            "it has expired (on 2020-02-01)",
        ),
        (
            "not yet valid",
            Certificate::not_yet_valid(&[NAME]),
            "it is not valid yet (before 2090-01-01)",
        ),
        (
            "wrong name",
            Certificate::of(&["other.example"]),
            "it is for other names: other.example",
        ),
        (
            "wrong names",
            Certificate::of(&["a.example", "*.b.example", "192.0.2.1"]),
            "it is for other names: a.example, *.b.example, 192.0.2.1",
        ),
        ("name of old", Certificate::of_common_name(NAME), "it names no host"),
        (
            "unknown root",
            Certificate::of_unknown_root(&[NAME]),
            "issued by an authority that is not trusted",
        ),
        (
            "self-signed",
            Certificate::self_signed(&[NAME]),
            "issued by an authority that is not trusted",
        ),
        (
            "no intermediate",
            Certificate::by_intermediate(&[NAME], false),
            "an intermediate certificate is missing",
        ),
        (
            "no authority",
            Certificate::by_no_authority(&[NAME]),
            "does not belong to an authority",
        ),
        (
            "for clients",
            Certificate::for_clients(&[NAME]),
            "it is not meant for this use (its extended key usage: client authentication)",
        ),
    ]
}

#[tokio::test]
async fn an_origin_with_an_invalid_certificate_gets_no_request() {
    let gate = Gate::start().await;
    // The gate remembers each origin by its port. Keep all origins, so that none gets the port of an earlier one.
    let mut origins = Vec::new();
    for (name, bad, words) in bad_certificates() {
        let origin = Origin::start().page("/x", "secret").certificate(bad).spawn().await;

        let response = get_intercepted(&gate, &origin, "/x").await;

        // Without a valid certificate, the robots.txt is unreachable too, so everything is disallowed.
        refused(&response, "unreachable");
        let details = response.proxy_status().param("details").unwrap_or_default();
        assert!(
            details.contains("certificate is not valid: ") && details.contains(words),
            "{name}: {details}"
        );
        let logged = gate.decision_for(&origin.url("/x")).await["robots_error"].to_string();
        assert!(
            logged.contains("certificate is not valid: ") && logged.contains(words),
            "{name}: {logged}"
        );
        assert!(origin.requests().is_empty());
        origins.push(origin);
    }
}

#[tokio::test]
async fn a_certificate_that_becomes_invalid_is_a_502_with_its_fault() {
    let gate = Gate::start().await;
    // The gate remembers each origin by its port. Keep all origins, so that none gets the port of an earlier one.
    let mut origins = Vec::new();
    for (name, bad, words) in bad_certificates() {
        // Keep no connection, so that each request sees the current certificate.
        let closing = |_: &Request| Reply::status(404).header("Connection", "close").then(Step::Close);
        let origin = Origin::start().otherwise(closing).tls().spawn().await;
        assert_eq!(get_intercepted(&gate, &origin, "/warm").await.status, 404);
        origin.present(&bad);

        let response = get_intercepted(&gate, &origin, "/x").await;

        failed(&response, 502, &["tls_certificate_error"]);
        let details = response.proxy_status().param("details").unwrap_or_default();
        assert!(details.contains(words), "{name}: {details}");
        let completion = gate.completion_of(&gate.decision_for(&origin.url("/x")).await).await;
        assert_eq!(completion["error"], "tls_certificate_error", "{name}: {completion:#}");
        let logged = completion["error_detail"].to_string();
        assert!(logged.contains(words), "{name}: {logged}");
        assert_eq!(origin.count("/x"), 0, "{name}");
        origins.push(origin);
    }
}

#[tokio::test]
async fn a_certificate_for_a_name_is_not_valid_for_an_address() {
    let certificate = Certificate::of(&[NAME, "127.0.0.2"]);
    let origin = Origin::start()
        .page("/x", "secret")
        .certificate(certificate)
        .spawn()
        .await;
    let gate = Gate::start().await;

    let response = gate.get(&origin.url_at("127.0.0.1", "/x")).await;

    refused(&response, "unreachable");
    let details = response.proxy_status().param("details").unwrap_or_default();
    assert!(
        details.contains("it is for other names: shop.example, 127.0.0.2"),
        "{details}"
    );
    assert!(origin.requests().is_empty());
}

#[tokio::test]
async fn a_chain_with_its_intermediate_is_accepted() {
    let origin = Origin::start()
        .page("/x", "page")
        .certificate(Certificate::by_intermediate(&[NAME], true))
        .spawn()
        .await;
    let gate = Gate::start().await;

    allowed(&gate.get(&origin.url("/x")).await, "no-robots");
}

#[tokio::test]
async fn without_the_extra_root_an_origin_is_not_trusted() {
    let origin = Origin::start().page("/x", "secret").tls().spawn().await;
    let gate = Gate::builder().without("https.extra-roots").start().await;

    let response = get_intercepted(&gate, &origin, "/x").await;
    refused(&response, "unreachable");
    let details = response.proxy_status().param("details").unwrap_or_default();
    assert!(
        details.contains("issued by an authority that is not trusted"),
        "{details}"
    );
}

#[tokio::test]
async fn http_2_is_used_if_the_client_offers_it() {
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

/// Requests a page through a CONNECT. Returns the response to the CONNECT if it is refused, otherwise the response in
/// the tunnel.
async fn get_intercepted(gate: &Gate, origin: &Origin, path: &str) -> Response {
    match gate.connect(&origin.authority()).user_agent("TestBot/1.0").await {
        Connected::Refused(response) => response,
        Connected::Tunnel(tunnel) => tunnel.tls(NAME, Alpn::Http1).await.get(path).await,
    }
}

#[tokio::test]
async fn a_server_name_that_differs_from_the_connect_is_a_bad_request() {
    let origin = Origin::start().page("/x", "secret").tls().spawn().await;
    let gate = Gate::start().await;
    for alpn in [Alpn::Http1, Alpn::Http2] {
        let tunnel = gate.connect(&origin.authority()).await.opened();

        let mut inside = tunnel.trusting(Roots::blind()).tls("other.example", alpn).await;

        let response = inside.get("/x").await;
        failed(&response, 400, &["http_request_error"]);
        assert!(response.text().contains("a different host (SNI)"), "{response:#?}");
    }
    assert_eq!(origin.count("/x"), 0);
}

#[tokio::test]
async fn the_server_name_may_differ_in_case_or_be_missing() {
    let origin = Origin::start().page("/x", "secret").tls().spawn().await;
    let gate = Gate::start().await;
    for (authority, server_name) in [
        (format!("SHOP.example:{}", origin.port()), NAME),
        (format!("{NAME}.:{}", origin.port()), NAME),
        // TLS clients send no server name for an IP address (RFC 6066 §3).
        (origin.authority(), "127.0.0.1"),
    ] {
        let tunnel = gate.connect(&authority).await.opened();
        let mut inside = tunnel.trusting(Roots::blind()).tls(server_name, Alpn::Http1).await;
        allowed(&inside.get("/x").set("Host", &authority).await, "no-robots");
    }
}
