//! CONNECT: which proof is required, and which proof the requests in the tunnel inherit.

use super::*;
use crate::support::{Alpn, Connected, Connection, NAME};

async fn inside(gate: &Gate, origin: &Origin, credential: &str, alpn: Alpn) -> Connection {
    let connect = gate.connect(&origin.authority());
    let tunnel = connect
        .with_ask(|ask| ask.header("Proxy-Authorization", &basic(credential)))
        .await
        .opened();
    tunnel.tls(NAME, alpn).await
}

#[tokio::test]
async fn proxy_credentials_inside_a_tunnel_are_ignored() {
    let origin = Origin::start().anything("page").tls().spawn().await;
    let gate = bound("").await;
    for alpn in [Alpn::Http1, Alpn::Http2] {
        let mut acme = inside(&gate, &origin, ACME, alpn).await;
        for value in [basic("acme:wrong"), basic(SCANNER), "nonsense".to_owned()] {
            let ask = acme.get("/x").user_agent("AcmeBot/1");
            allowed(&ask.header("proxy-authorization", &value).await, "no-robots");
        }
        refused(&acme.get("/y").user_agent("Scanner/1").await, "identity");

        let mut nobody = gate.connect(&origin.authority()).await.opened().tls(NAME, alpn).await;
        let ask = nobody.get("/y").user_agent("AcmeBot/1");
        refused(
            &ask.header("proxy-authorization", &basic(ACME)).await,
            "unauthenticated",
        );
    }
    assert_eq!((origin.count("/x"), origin.count("/y")), (6, 0));
    for request in origin.requests() {
        assert_eq!(request.field("Proxy-Authorization"), None);
    }
}

#[tokio::test]
async fn a_bot_with_a_credential_still_follows_its_rules() {
    let robots = "User-agent: AcmeRobot\nDisallow: /private\n";
    let origin = Origin::start().robots(robots).anything("page").tls().spawn().await;
    let gate = bound("").await;
    for alpn in [Alpn::Http1, Alpn::Http2] {
        let mut acme = inside(&gate, &origin, ACME, alpn).await;
        allowed(&acme.get("/x").without("User-Agent").await, "no-rule");
        let decision = refused(&acme.get("/private").without("User-Agent").await, "rule");
        assert_eq!(decision.param("group").as_deref(), Some("AcmeRobot"));
    }
}

#[tokio::test]
async fn plain_http_inside_a_connect_inherits_the_proof() {
    let origin = Origin::start().anything("page").spawn().await;
    let gate = bound("").await;
    let connect = gate.connect(&origin.authority());
    let tunnel = connect
        .with_ask(|ask| ask.header("Proxy-Authorization", &basic(ACME)))
        .await
        .opened();
    let mut acme = tunnel.plain();
    allowed(&acme.get("/x").user_agent("AcmeBot/1").await, "no-robots");
    refused(&acme.get("/x").user_agent("FreeBot/1").await, "identity");
}

#[tokio::test]
async fn a_connect_without_its_required_proof_is_refused_immediately() {
    let origin = Origin::start().anything("page").tls().spawn().await;
    for (overrides, free) in [
        ("", true),
        ("[https]\nmode = \"tunnel\"", true),
        ("[https]\nmode = \"refuse\"", false),
    ] {
        let gate = bound(overrides).await;
        for (credential, user_agent) in [("acme:wrong", None), (ACME, Some("|")), ("", Some("AcmeBot/1"))] {
            let connect = gate.connect(&origin.authority()).with_ask(|ask| {
                let ask = match credential {
                    "" => ask,
                    _ => ask.header("Proxy-Authorization", &basic(credential)),
                };
                match user_agent {
                    // `|` stands for a second credential. A request with two credentials is treated like one with an
                    // invalid credential.
                    Some("|") => ask.header("Proxy-Authorization", &basic(credential)),
                    Some(user_agent) => ask.user_agent(user_agent),
                    None => ask,
                }
            });
            let response = connect.await.refused();
            assert_eq!(
                outcome(&response),
                (407, "unauthenticated".to_owned()),
                "{overrides} {credential}"
            );
            assert_eq!(response.status_line(), "HTTP/1.1 407 Proxy Authentication Required");
            assert_eq!(response.field("Connection"), Some("close"));
        }
        let (decisions, completions) = gate.audited(3).await;
        for (decision, completion) in decisions.iter().zip(completions) {
            assert_eq!(
                (&decision["method"], &decision["verdict"]),
                (&"CONNECT".into(), &"deny".into())
            );
            assert_eq!(
                (&decision["reason"], &decision["bot"]),
                (&"unauthenticated".into(), &serde_json::Value::Null)
            );
            assert_eq!(completion["status"], 407);
        }
        let connect = gate.connect(&origin.authority()).user_agent("FreeBot/1");
        assert_eq!(matches!(connect.await, Connected::Tunnel(_)), free, "{overrides}");
    }
    assert!(origin.requests().iter().all(|request| request.target == "/robots.txt"));
}

#[tokio::test]
async fn a_tunnel_exception_still_requires_the_proof() {
    let origin = Origin::start().anything("page").tls().spawn().await;
    let gate = bound(&format!(
        "[[https.tunnel]]\nhost = \"{NAME}\"\nreason = \"pinned\"\nuntil = 2999-12-31\n"
    ))
    .await;
    let connect = || gate.connect(&origin.authority());
    connect().await.opened();
    connect()
        .with_ask(|ask| ask.header("Proxy-Authorization", &basic(DUO)))
        .await
        .opened();
    let wrong = connect().with_ask(|ask| ask.header("Proxy-Authorization", &basic("duo:wrong")));
    assert_eq!(outcome(&wrong.await.refused()), (407, "unauthenticated".to_owned()));
    let misfit = connect().with_ask(|ask| ask.header("Proxy-Authorization", &basic(DUO)).user_agent("FreeBot"));
    assert_eq!(outcome(&misfit.await.refused()), (403, "identity".to_owned()));
}

#[tokio::test]
async fn a_required_proof_is_required_of_every_request() {
    for mode in ["intercept", "tunnel"] {
        let plain = Origin::start().anything("page").spawn().await;
        let tls = Origin::start().anything("page").tls().spawn().await;
        let config = BOUND.replacen("[identity]", "[identity]\nrequired = true", 1);
        let gate = bound_by(&format!("{config}\n[https]\nmode = \"{mode}\"")).await;
        for user_agent in ["FreeBot/1", "curl/8", "AcmeBot/1", super::CHROME] {
            for url in [plain.url("/x"), tls.url("/x"), plain.url("/robots.txt")] {
                let response = gate.get(&url).user_agent(user_agent).await;
                assert_eq!(
                    outcome(&response),
                    (407, "unauthenticated".to_owned()),
                    "{user_agent} {url}"
                );
            }
            let connect = gate.connect(&tls.authority()).user_agent(user_agent);
            assert_eq!(outcome(&connect.await.refused()), (407, "unauthenticated".to_owned()));
        }
        let bare = gate.connect(&tls.authority()).await.refused();
        assert_eq!(outcome(&bare), (407, "unauthenticated".to_owned()));
        assert!(plain.requests().is_empty() && tls.requests().is_empty());

        let ask = gate.get(&plain.url("/y")).user_agent("AcmeBot/1");
        allowed(&ask.header("Proxy-Authorization", &basic(ACME)).await, "no-robots");
    }
}
