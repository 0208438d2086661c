//! The responses to requests for forbidden destinations.

use super::{CLOSED, OPEN, logged, open_origin};
use crate::support::{Alpn, Connected, Gate, NAME, Origin, Signal, allowed, failed, refused};

const LOOPBACK: &str = "127.0.0.1 is a loopback address, which bots cannot reach unless egress.allow lists it";

#[tokio::test]
async fn a_closed_address_is_refused_before_any_connection() {
    let origin = open_origin().await;
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "127.0.0.1.",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
    ] {
        println!("{host}");
        let gate = Gate::with(CLOSED).await;
        let response = gate.get(&origin.url_at(host, "/x")).await;
        refused(&response, "egress");
        assert_eq!(
            response.status_line(),
            "HTTP/1.1 403 Disallowed: bots must not go there"
        );
        assert_eq!(response.proxy_status().param("details").as_deref(), Some(LOOPBACK));
        assert!(response.text().contains(LOOPBACK), "{}", response.text());
        assert_eq!(logged(&gate).await, ("egress".to_owned(), LOOPBACK.to_owned(), None));
        assert!(gate.fetches_of(&origin.url_at("127.0.0.1", "")).is_empty());
    }
    assert_eq!(origin.connections(), 0);
}

#[tokio::test]
async fn no_spelling_of_an_address_bypasses_the_guard() {
    let origin = open_origin().await;
    let gate = Gate::with("[egress]\nallow = ['.example']").await;
    let port = origin.port();
    for spelling in [
        "127.1",
        "0x7f.1",
        "0177.1",
        "127.0.0.1.",
        "127.0.0.1..",
        "127.0.0.256",
        "127。0。0。1",
        "１２７.0.0.1",
        "①②⑦.0.0.1",
        "%31%32%37.0.0.1",
        "127.0.0.1%2e",
        "127.0.0.1%00.shop.example",
        "[::1]",
        "[::127.0.0.1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:0:127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[fe80::1%25eth0]",
        "[fe80::1%eth0]",
        "[127.0.0.1]",
        "127.0.0.1\\.shop.example",
        "shop.example@127.0.0.1",
    ] {
        println!("{spelling}");
        let authority = format!("{spelling}:{port}");
        let absolute = gate.get(&format!("http://{authority}/x")).await;
        let host = gate
            .get(&origin.url_at("127.0.0.1", "/x"))
            .set("Host", &authority)
            .await;
        let connect = match gate.connect(&authority).await {
            Connected::Refused(response) => response,
            Connected::Tunnel(tunnel) => tunnel.plain().get("/x").await,
        };
        for response in [absolute, host, connect] {
            match response.status {
                400 => {
                    failed(&response, 400, &["http_request_error"]);
                    assert!(response.field("Robots-Decision").is_none(), "{response:#?}");
                }
                _ => drop(refused(&response, "egress")),
            }
        }
    }
    assert_eq!(origin.connections(), 0);
}

#[tokio::test]
async fn a_name_with_only_closed_addresses_is_refused() {
    let origin = open_origin().await;
    let gate = Gate::with(CLOSED).await;
    for (name, address, what) in [
        ("here.example", "127.0.0.1", "a loopback address"),
        ("home.example", "192.168.1.1", "a private address"),
        ("cloud.example", "169.254.169.254", "a link-local address"),
        ("mapped.example", "::ffff:10.0.0.1", "a private address"),
        ("wrapped.example", "2002:a00:1::1", "a 6to4 address"),
    ] {
        gate.dns().point(name, address.parse::<std::net::IpAddr>().unwrap());
        let url = origin.url_at(name, "/x");
        let response = gate.get(&url).await;
        refused(&response, "egress");
        let details = response.proxy_status().param("details").unwrap();
        assert!(details.contains(what), "{name}: {details}");
        let decision = gate.decision_for(&url).await;
        assert_eq!(decision["robots_error"], details.as_str());
        assert_eq!(gate.fetches_of(&origin.url_at(name, ""))[0]["holds"], "egress");
    }
    assert_eq!(origin.connections(), 0);
}

#[tokio::test]
async fn report_and_exempt_do_not_open_a_closed_address() {
    let origin = open_origin().await;
    for enforcement in ["report", "exempt"] {
        let bot = format!("[[bot]]\nname = 'b'\nuser-agents = ['TestBot']\nenforcement = '{enforcement}'\n");
        let gate = Gate::with(&format!("{CLOSED}\n{bot}")).await;
        for path in ["/x", "/robots.txt"] {
            refused(&gate.get(&origin.url_at("127.0.0.1", path)).await, "egress");
        }
        let by_name = gate.get(&origin.url("/x")).await;
        match enforcement {
            "report" => drop(refused(&by_name, "egress")),
            // The robots.txt is not needed, so the forbidden address is noticed only when connecting.
            _ => failed(&by_name, 502, &["destination_ip_prohibited"]),
        }
    }
    assert_eq!(origin.connections(), 0);
}

#[tokio::test]
async fn a_websocket_to_a_closed_address_is_refused() {
    let origin = open_origin().await;
    let gate = Gate::with(CLOSED).await;
    for host in ["127.0.0.1", NAME] {
        let response = gate
            .get(&origin.url_at(host, "/chat"))
            .header("Connection", "Upgrade")
            .header("Upgrade", "websocket")
            .header("Sec-WebSocket-Version", "13")
            .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
            .await;
        refused(&response, "egress");
    }
    assert_eq!(origin.connections(), 0);
}

#[tokio::test]
async fn an_intercepted_connect_to_a_closed_address_is_refused_inside() {
    let origin = Origin::start().tls().spawn().await;
    let authority = format!("127.0.0.1:{}", origin.port());
    for alpn in [Alpn::Http1, Alpn::Http2] {
        let gate = Gate::with(CLOSED).await;
        let mut inside = gate.connect(&authority).await.opened().tls("127.0.0.1", alpn).await;
        for path in ["/x", "/robots.txt"] {
            let response = inside.get(path).await;
            refused(&response, "egress");
            assert_eq!(response.proxy_status().param("details").as_deref(), Some(LOOPBACK));
        }
        let (decisions, completions) = gate.audited(3).await;
        for (decision, (completion, (method, status))) in
            decisions
                .iter()
                .zip(completions.iter().zip([("CONNECT", 200), ("GET", 403), ("GET", 403)]))
        {
            assert_eq!(
                (&decision["verdict"], &decision["reason"]),
                (&"deny".into(), &"egress".into())
            );
            assert_eq!(decision["method"], method);
            assert_eq!(decision["robots_error"], LOOPBACK);
            assert_eq!(completion["id"], decision["id"]);
            assert_eq!(completion["status"], status);
            assert!(
                completion["upstream"].is_null() && completion["error"].is_null(),
                "{completion:#}"
            );
        }
        let metrics = gate.admin("/metrics").await.text();
        let counted = "robotgate_requests_total{method=\"CONNECT\",outcome=\"refused\"} 1\n";
        assert!(metrics.contains(counted), "{metrics}");
    }
    assert_eq!(origin.connections(), 0);
}

#[tokio::test]
async fn a_silent_tunnel_is_closed_after_the_handshake_timeout() {
    let gate = Gate::with(&format!("{CLOSED}\n[proxy]\nhandshake-timeout = '100ms'")).await;
    let tunnel = gate.connect("127.0.0.1:22").await.opened();
    assert_eq!(tunnel.plain().read_to_end().await, b"");
    let (_, completions) = gate.audited(1).await;
    assert_eq!(completions[0]["status"], 200);
}

#[tokio::test]
async fn leaves_for_closed_hosts_count_towards_the_limit() {
    let gate = Gate::with("[egress]\ndeny = ['.closed.example']\n[proxy]\nmax-client-leaves = 1").await;
    drop(gate.connect("a.closed.example:443").await.opened());
    let response = gate.connect("b.closed.example:443").await.refused();
    failed(&response, 429, &["http_request_denied"]);
    let (decisions, completions) = gate.audited(2).await;
    assert_eq!(
        (&decisions[1]["reason"], &completions[1]["status"]),
        (&"egress".into(), &429.into())
    );
}

#[tokio::test]
async fn outside_intercept_mode_a_connect_to_a_closed_address_is_refused() {
    let origin = Origin::start().tls().spawn().await;
    let exception = "[[https.tunnel]]\nhost = '127.0.0.1'\nreason = 'pinned'\nuntil = 2999-01-01";
    let every = &["127.0.0.1", "127.1", "[::ffff:127.0.0.1]"][..];
    for (mode, more, hosts) in [
        ("tunnel", "", every),
        ("refuse", "", every),
        ("intercept", exception, &every[..2]),
    ] {
        println!("{mode} {more}");
        let gate = Gate::with(&format!("{CLOSED}\n[https]\nmode = '{mode}'\n{more}")).await;
        for host in hosts {
            let authority = format!("{host}:{}", origin.port());
            let response = gate.connect(&authority).await.refused();
            refused(&response, "egress");
            assert_eq!(
                response.status_line(),
                "HTTP/1.1 403 Disallowed: bots must not go there"
            );
            assert!(!response.stays_open, "{response:#?}");
        }
        let (decisions, completions) = gate.audited(hosts.len()).await;
        for (decision, completion) in decisions.iter().zip(&completions) {
            assert_eq!(decision["method"], "CONNECT");
            assert_eq!(decision["reason"], "egress");
            assert_eq!(decision["robots_error"], LOOPBACK);
            assert_eq!(completion["status"], 403);
        }
    }
    assert_eq!(origin.connections(), 0);
}

#[tokio::test]
async fn every_intercepted_request_to_a_closed_name_is_refused() {
    let origin = Origin::start().tls().spawn().await;
    let gate = Gate::with(CLOSED).await;
    for alpn in [Alpn::Http1, Alpn::Http2] {
        let tunnel = gate.connect(&origin.authority()).await.opened();
        let mut inside = tunnel.tls(NAME, alpn).await;
        refused(&inside.get("/x").await, "egress");
        refused(&inside.get("/y").await, "egress");
    }
    assert_eq!(origin.connections(), 0);
}

#[tokio::test]
async fn a_tunnel_to_a_closed_name_fails_after_the_lookup() {
    let origin = Origin::start().tls().spawn().await;
    let exempt = "[[bot]]\nname = 'b'\nuser-agents = ['ExemptBot']\nenforcement = 'exempt'\n";
    let gate = Gate::with(&format!("{CLOSED}\n[https]\nmode = 'tunnel'\n{exempt}")).await;

    let connected = gate.connect(&origin.authority()).user_agent("TestBot/1.0").await;
    refused(&connected.refused(), "egress");
    let exempt = gate.connect(&origin.authority()).user_agent("ExemptBot/1.0").await;
    failed(&exempt.refused(), 502, &["destination_ip_prohibited"]);
    assert_eq!(origin.connections(), 0);
}

#[tokio::test]
async fn after_a_restart_a_refused_address_is_checked_again() {
    let origin = open_origin().await;
    let mut gate = Gate::with(CLOSED).await;
    refused(&gate.get(&origin.url("/x")).await, "egress");
    gate.signal(Signal::TERM);
    gate.ended().await;

    gate.reconfigure(OPEN);
    gate.start_again().await;
    allowed(&gate.get(&origin.url("/x")).await, "no-robots");
}
