//! `https.mode = "tunnel"`: the gate does not see the bytes in a tunnel, so decisions are only about the whole origin.

use rustls::{ClientConnection, pki_types::ServerName};

use crate::support::{Alpn, Gate, NAME, Origin, ROBOTS, Reply, Roots, Tunnel, allowed, refused};

const TUNNEL: &str = "[https]\nmode = \"tunnel\"";

async fn page(tunnel: Tunnel) -> String {
    tunnel
        .trusting(Roots::of_origins())
        .tls(NAME, Alpn::Http1)
        .await
        .get("/x")
        .await
        .text()
}

#[tokio::test]
async fn a_tunnel_to_an_origin_that_allows_everything_is_opened() {
    for (robots, reason) in [
        (Reply::status(404), "no-robots"),
        (Reply::ok("text/plain", "User-agent: *\nDisallow:\n"), "rule"),
        (
            Reply::ok("text/plain", "User-agent: OtherBot\nDisallow: /\n"),
            "no-rule",
        ),
    ] {
        let origin = Origin::start()
            .reply("/robots.txt", robots)
            .page("/x", "secret")
            .tls()
            .spawn()
            .await;
        let gate = Gate::with(TUNNEL).await;

        let tunnel = gate
            .connect(&origin.authority())
            .user_agent("TestBot/1.0")
            .await
            .opened();

        assert_eq!(page(tunnel).await, "secret");
        let decisions: Vec<_> = gate.audit().into_iter().filter(|r| r["event"] == "decision").collect();
        assert_eq!(decisions.len(), 1, "{decisions:#?}");
        assert_eq!(
            (&decisions[0]["verdict"], &decisions[0]["reason"]),
            (&"allow".into(), &reason.into())
        );
        assert_eq!(decisions[0]["method"], "CONNECT");
    }
}

#[tokio::test]
async fn a_tunnel_to_an_origin_that_disallows_everything_is_refused() {
    for (robots, reason) in [
        (Reply::ok("text/plain", "User-agent: *\nDisallow: /\n"), "rule"),
        (Reply::status(500), "unreachable"),
    ] {
        let origin = Origin::start().reply("/robots.txt", robots).tls().spawn().await;
        let gate = Gate::with(TUNNEL).await;

        let response = gate
            .connect(&origin.authority())
            .user_agent("TestBot/1.0")
            .await
            .refused();

        assert_eq!(refused(&response, reason).value(), "deny");
        if reason == "rule" {
            assert_eq!(response.status_line(), "HTTP/1.1 403 Disallowed by robots.txt");
        }
        assert!(origin.requests().iter().all(|request| request.path() == "/robots.txt"));
    }
}

#[tokio::test]
async fn a_tunnel_to_a_partly_disallowed_origin_is_unverifiable() {
    let origin = Origin::start().robots(ROBOTS).page("/x", "secret").tls().spawn().await;
    let strict = Gate::with(TUNNEL).await;
    let lax = Gate::with("[https]\nmode = \"tunnel\"\nunverifiable = \"allow\"").await;

    let response = strict
        .connect(&origin.authority())
        .user_agent("TestBot/1.0")
        .await
        .refused();
    let tunnel = lax
        .connect(&origin.authority())
        .user_agent("TestBot/1.0")
        .await
        .opened();

    refused(&response, "unverifiable");
    assert_eq!(page(tunnel).await, "secret");
    for gate in [strict, lax] {
        let (decisions, _) = gate.audited(1).await;
        assert_eq!(decisions[0]["verdict"], "unverifiable");
        assert_eq!(decisions[0]["reason"], "unverifiable");
    }
}

#[tokio::test]
async fn a_connect_that_names_no_bot_is_unidentified() {
    let origin = Origin::start().tls().spawn().await;
    let gate = Gate::with(TUNNEL).await;

    refused(&gate.connect(&origin.authority()).await.refused(), "unidentified");
}

#[tokio::test]
async fn a_tunnel_exception_opens_one_host_until_its_date() {
    let entry = |until: &str| {
        format!("[[https.tunnel]]\nhost = \"{NAME}\"\nreason = \"pins its certificate\"\nuntil = {until}\n")
    };
    let origin = Origin::start().page("/x", "secret").tls().spawn().await;
    let lasting = Gate::with(&entry("2999-01-01")).await;
    let ended = Gate::with(&entry("2020-01-01")).await;
    let elsewhere = format!("other.example:{}", origin.port());

    let stream = lasting
        .connect(&origin.authority())
        .user_agent("TestBot/1.0")
        .await
        .opened();
    assert_eq!(page(stream).await, "secret");

    for (gate, authority, name) in [
        (&lasting, &elsewhere, "other.example"),
        (&ended, &origin.authority(), NAME),
    ] {
        // The client trusts only the gate's authority, so a successful handshake shows that the gate responded and not
        // the origin.
        let mut inside = gate.connect(authority).await.opened().tls(name, Alpn::Http1).await;
        allowed(&inside.get("/x").await, "no-robots");
    }
}

async fn closed_because(gate: &Gate) -> String {
    closed_after(0, gate).await
}

/// Returns the error detail of a tunnel that was closed after `length` bytes from the client were forwarded.
async fn closed_after(length: usize, gate: &Gate) -> String {
    let (_, completions) = gate.audited(1).await;
    assert_eq!(completions[0]["error"], "http_request_error", "{completions:#?}");
    assert_eq!(completions[0]["bytes_in"], length, "{completions:#?}");
    completions[0]["error_detail"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn tls_without_a_server_name_is_accepted_only_for_an_address() {
    let origin = Origin::start().page("/x", "secret").tls().spawn().await;
    // A client that connects to an IP address sends no server name.
    let address = "127.0.0.1";
    let by_address = format!("{address}:{}", origin.port());
    for config in [
        TUNNEL.to_owned(),
        [NAME, address]
            .map(|host| format!("[[https.tunnel]]\nhost = \"{host}\"\nreason = \"pinned\"\nuntil = 2999-01-01\n"))
            .concat(),
    ] {
        let gate = Gate::with(&config).await;
        let opened = async |authority: &str| {
            let connect = gate.connect(authority).user_agent("TestBot/1.0");
            connect.await.opened().trusting(Roots::blind())
        };

        let handshake = opened(&origin.authority()).await.try_tls(address, Alpn::Http1).await;
        assert!(handshake.is_err());
        let why = closed_because(&gate).await;
        assert!(why.contains("has no server name (SNI)"), "{why}");

        let mut inside = opened(&by_address).await.tls(address, Alpn::Http1).await;
        assert_eq!(inside.get("/x").await.text(), "secret");
    }
}

#[tokio::test]
async fn absolute_forms_are_decided_in_tunnel_mode() {
    let origin = Origin::start().robots(ROBOTS).page("/x", "plain").spawn().await;
    let gate = Gate::with(TUNNEL).await;

    allowed(&gate.get(&origin.url("/x")).await, "no-rule");
    refused(&gate.get(&origin.url("/private")).await, "rule");
}

#[tokio::test]
async fn a_tunnel_with_another_server_name_is_closed() {
    let origin = Origin::start().page("/x", "secret").tls().spawn().await;
    let entry = format!("[[https.tunnel]]\nhost = \"{NAME}\"\nreason = \"pinned\"\nuntil = 2999-01-01\n");
    for config in [TUNNEL, &entry] {
        let gate = Gate::with(config).await;
        let connect = || gate.connect(&origin.authority()).user_agent("TestBot/1.0");

        let tunnel = connect().await.opened().trusting(Roots::of_origins());
        let handshake = tunnel.try_tls("other.example", Alpn::Http1).await;

        assert!(handshake.is_err());
        let why = closed_because(&gate).await;
        assert!(why.contains("other.example"), "{why}");
        assert_eq!(page(connect().await.opened()).await, "secret");
    }
}

fn flight(tls: &mut ClientConnection) -> Vec<u8> {
    let mut bytes = Vec::new();
    tls.write_tls(&mut bytes).expect("a vector takes all");
    bytes
}

#[tokio::test]
async fn a_tunnel_with_another_server_name_after_a_retry_is_closed() {
    let origin = Origin::start().page("/x", "secret").retrying().spawn().await;
    let opened = async || {
        let gate = Gate::with(TUNNEL).await;
        let tunnel = gate.connect(&origin.authority()).user_agent("TestBot/1.0").await;
        (gate, tunnel.opened())
    };
    assert_eq!(page(opened().await.1).await, "secret");

    let (gate, tunnel) = opened().await;
    let mut inside = tunnel.plain();
    let name = ServerName::try_from(NAME).unwrap();
    let mut tls = ClientConnection::new(Roots::blind().client_config(&[]), name).unwrap();
    let first = flight(&mut tls);
    inside.send(&first).await;
    while !tls.wants_write() {
        tls.read_tls(&mut &inside.read().await[..]).unwrap();
        tls.process_new_packets().unwrap();
    }
    let mut second = flight(&mut tls);
    let at = memchr::memmem::find(&second, NAME.as_bytes()).expect("a second ClientHello");
    second[at..at + NAME.len()].copy_from_slice(b"evil.example");
    inside.send(&second).await;
    let why = closed_after(first.len(), &gate).await;
    assert!(why.contains("evil.example"), "{why}");

    // This client sends its second ClientHello without waiting for the response to the first.
    let (gate, tunnel) = opened().await;
    tunnel.plain().send([&first[..], &second].concat()).await;
    let why = closed_after(first.len(), &gate).await;
    assert!(why.contains("evil.example"), "{why}");
}
