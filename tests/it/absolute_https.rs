//! Clients can send the proxy requests for `https://` URLs in absolute form, without TLS. These requests are forwarded
//! over TLS, and decided like others.

use crate::support::{Certificate, Gate, NAME, Origin, ROBOTS, Reply, Step, allowed, failed, refused};

#[tokio::test]
async fn https_urls_are_forwarded_over_tls_and_decided() {
    let origin = Origin::start().robots(ROBOTS).page("/x", "secret").tls().spawn().await;
    let gate = Gate::start().await;

    let page = gate.get(&origin.url("/x")).await;
    let denied = gate.get(&origin.url("/private")).await;

    allowed(&page, "no-rule");
    assert_eq!(page.text(), "secret");
    let decision = refused(&denied, "rule");
    assert_eq!(decision.param("robots"), Some(origin.url("/robots.txt")));
    assert_eq!(denied.status_line(), "HTTP/1.1 403 Disallowed by robots.txt");
    let forwarded = origin.only_request_for("/x");
    assert_eq!(forwarded.sni.as_deref(), Some(NAME));
    assert_eq!(
        (forwarded.target.as_str(), forwarded.field("Host")),
        ("/x", Some(origin.authority().as_str()))
    );
    assert_eq!(origin.count("/robots.txt"), 1);
}

#[tokio::test]
async fn an_http_url_has_a_different_origin() {
    let open = Origin::start().page("/x", "plain").spawn().await;
    let closed = Origin::start()
        .robots("User-agent: *\nDisallow: /\n")
        .tls()
        .spawn()
        .await;
    let gate = Gate::start().await;

    allowed(&gate.get(&open.url("/x")).await, "no-robots");
    refused(&gate.get(&closed.url("/x")).await, "rule");
}

#[tokio::test]
async fn the_certificate_is_checked_for_an_ip_url() {
    let origin = Origin::start().page("/x", "secret").tls().spawn().await;
    let gate = Gate::start().await;

    allowed(&gate.get(&origin.url_at("127.0.0.1", "/x")).await, "no-robots");
}

#[tokio::test]
async fn a_certificate_that_becomes_invalid_is_a_502() {
    for (name, bad) in [
        ("expired", Certificate::expired(&[NAME])),
        ("wrong name", Certificate::of(&["other.example"])),
        ("unknown root", Certificate::of_unknown_root(&[NAME])),
    ] {
        let origin = Origin::start()
            .otherwise(|_| Reply::status(404).header("Connection", "close").then(Step::Close))
            .tls()
            .spawn()
            .await;
        let gate = Gate::start().await;
        assert_eq!(gate.get(&origin.url("/none")).await.status, 404, "{name}");
        origin.present(&bad);

        let response = gate.get(&origin.url("/x")).await;

        failed(&response, 502, &["tls_certificate_error"]);
        assert_eq!(origin.count("/x"), 0, "{name}");
    }
}
