//! `[proxy.tls]`: the proxy over TLS, as clients use it with an `https://` proxy URL.

use std::{fs, io, os::unix::fs::PermissionsExt as _, process::Command, sync::Arc};

use rustls::{
    ClientConfig, HandshakeKind, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::support::{
    Alpn, Certificate, Connection, Gate, NAME, Origin, ROBOTS, Roots, Signal, allowed, failed, origin_root_pem,
    refused, wait::within,
};

pub const PROXY: &str = "proxy.example";

pub const CONFIG: &str = r#"
[proxy.tls]
listen = "127.0.0.1:0"
certificate = "proxy.pem"
key = "proxy-key.pem"
client-roots = ["origin-ca.pem"]
"#;

async fn gate() -> Gate {
    let (certificate, key) = Certificate::of(&[PROXY]).to_pem();
    Gate::builder()
        .config(CONFIG)
        .put("proxy.pem", certificate)
        .put("proxy-key.pem", key)
        .start()
        .await
}

fn client(certificate: Option<&Certificate>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(origin_root_pem().as_bytes()) {
        roots.add(root.unwrap()).unwrap();
    }
    let config = ClientConfig::builder_with_provider(ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    Arc::new(match certificate.map(Certificate::for_client) {
        Some((chain, key)) => config.with_client_auth_cert(chain, key).unwrap(),
        None => config.with_no_client_auth(),
    })
}

async fn dial_as(gate: &Gate, client: Arc<ClientConfig>) -> io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(gate.tls_address().await).await?;
    let name = ServerName::try_from(PROXY).unwrap();
    within("TLS", TlsConnector::from(client).connect(name, stream)).await
}

/// Opens a TLS connection of a client that presents `certificate`.
pub async fn dial(gate: &Gate, certificate: Option<&Certificate>) -> io::Result<Connection> {
    dial_as(gate, client(certificate)).await.map(Connection::over_io)
}

async fn site() -> Origin {
    Origin::start().robots(ROBOTS).page("/x", "page").tls().spawn().await
}

#[tokio::test]
async fn plain_and_intercepted_requests_work_on_a_tls_listener() {
    let origin = site().await;
    let gate = gate().await;
    let mut proxy = dial(&gate, None).await.unwrap();

    allowed(&proxy.get(&origin.url("/x")).await, "no-rule");
    refused(&proxy.get(&origin.url("/private")).await, "rule");

    for alpn in [Alpn::Http1, Alpn::Http2] {
        let mut proxy = dial(&gate, None).await.unwrap();
        let authority = origin.authority();
        proxy
            .send(format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n"))
            .await;
        assert_eq!(proxy.response_to("CONNECT").await.status, 200);
        let ca = Roots::from_pem(&fs::read_to_string(gate.file("ca.pem")).unwrap());
        let mut inside = proxy.tunnel_to(&authority, ca).tls(NAME, alpn).await;
        allowed(&inside.get("/x").await, "no-rule");
        refused(&inside.get("/private").await, "rule");
    }

    let (decisions, _) = gate.audited(6).await;
    for decision in decisions {
        assert!(
            decision["client"].as_str().unwrap().starts_with("127.0.0.1:"),
            "{decision}"
        );
    }
}

#[tokio::test]
async fn a_tunnel_works_on_a_tls_listener() {
    let origin = Origin::start().page("/x", "page").tls().spawn().await;
    let (certificate, key) = Certificate::of(&[PROXY]).to_pem();
    let gate = Gate::builder()
        .config(&format!("{CONFIG}\n[https]\nmode = \"tunnel\""))
        .put("proxy.pem", certificate)
        .put("proxy-key.pem", key)
        .start()
        .await;
    let mut proxy = dial(&gate, None).await.unwrap();
    let authority = origin.authority();
    proxy
        .send(format!(
            "CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: TestBot/1.0\r\n\r\n"
        ))
        .await;
    assert_eq!(proxy.response_to("CONNECT").await.status, 200);

    let mut inside = proxy
        .tunnel_to(&authority, Roots::of_origins())
        .tls(NAME, Alpn::Http1)
        .await;

    assert_eq!(inside.get("/x").await.text(), "page");
}

#[tokio::test]
async fn a_client_certificate_is_optional_but_must_be_trusted() {
    let origin = site().await;
    let gate = gate().await;

    let mut known = dial(&gate, Some(&Certificate::of(&["bot.example"]))).await.unwrap();
    allowed(&known.get(&origin.url("/x")).await, "no-rule");

    for bad in [
        Certificate::of_unknown_root(&["bot.example"]),
        Certificate::expired(&["bot.example"]),
    ] {
        // In TLS 1.3, a client learns that its certificate was refused only after its handshake.
        let answered = match dial(&gate, Some(&bad)).await {
            Ok(mut proxy) => proxy.get(&origin.url("/x")).send().await.is_ok(),
            Err(_) => false,
        };
        assert!(!answered);
    }
    let message = "a client's TLS handshake with the proxy failed";
    let line = gate.wait_for_log(message, |line| line.message() == message).await;
    assert!(
        line.says("the client's certificate is not valid: no authority of proxy.tls.client-roots"),
        "{line:?}"
    );
}

#[tokio::test]
async fn a_certificate_proves_its_bot_over_every_way() {
    const BOTS: &str = r#"
        [[bot]]
        name = "acme"
        user-agents = ["AcmeBot"]
        certificates = ["bot.example"]

        [[bot]]
        name = "other"
        user-agents = ["OtherBot"]
        certificates = ["other.example"]
    "#;
    let origin = site().await;
    let (certificate, key) = Certificate::of(&[PROXY]).to_pem();
    let gate = Gate::builder()
        .config(&format!("{CONFIG}\n{BOTS}"))
        .put("proxy.pem", certificate)
        .put("proxy-key.pem", key)
        .start()
        .await;
    let (acme, nobody) = (Certificate::of(&["Bot.Example"]), Certificate::of(&["nobody.example"]));
    // A client without proof is identified by its User-Agent, unless that names a bot that requires a proof.
    for (certificate, user_agent, bot, reason) in [
        (Some(&acme), "AcmeBot/1", Some("acme"), "no-rule"),
        (Some(&acme), "", Some("acme"), "no-rule"),
        (Some(&acme), "OtherBot/1", None, "identity"),
        (Some(&acme), "curl/8.5.0", None, "identity"),
        (Some(&nobody), "AcmeBot/1", None, "unauthenticated"),
        (Some(&nobody), "curl/8.5.0", Some("curl"), "no-rule"),
        (None, "AcmeBot/1", None, "unauthenticated"),
        (None, "", None, "unidentified"),
    ] {
        let authority = origin.authority();
        for way in ["absolute", "http/1.1 inside", "h2 inside"] {
            let mut proxy = dial(&gate, certificate).await.unwrap();
            let mut connection = match way {
                "absolute" => proxy,
                _ => {
                    let head = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
                    proxy.send(head).await;
                    assert_eq!(proxy.response_to("CONNECT").await.status, 200);
                    let ca = Roots::from_pem(&fs::read_to_string(gate.file("ca.pem")).unwrap());
                    let alpn = if way == "h2 inside" { Alpn::Http2 } else { Alpn::Http1 };
                    proxy.tunnel_to(&authority, ca).tls(NAME, alpn).await
                }
            };
            let target = if way == "absolute" {
                origin.url("/x")
            } else {
                "/x".to_owned()
            };
            let ask = connection.get(&target).without("User-Agent");
            let seen = gate.audit().len();
            let response = match user_agent {
                "" => ask.await,
                _ => ask.user_agent(user_agent).await,
            };
            match bot {
                Some(_) => allowed(&response, reason),
                None => refused(&response, reason),
            };
            let decision = gate
                .audit()
                .into_iter()
                .skip(seen)
                .find(|record| record["event"] == "decision");
            let decision = decision.expect("it stands there before the answer");
            assert_eq!(decision["bot"], serde_json::json!(bot), "{way} {user_agent}");
            let proven = certificate.is_some_and(|certificate| std::ptr::eq(certificate, &acme));
            let named = proven.then_some("bot.example");
            assert_eq!(decision["credential"], serde_json::json!(named), "{way} {user_agent}");
            assert_eq!(decision["identity"] == "certificate", proven, "{way} {user_agent}");
        }
    }
}

#[tokio::test]
async fn a_key_that_others_can_read_is_refused_at_start_and_reload() {
    let gate = gate().await;
    let origin = site().await;
    let key = gate.file("proxy-key.pem");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();

    gate.signal(Signal::HUP);

    let line = gate
        .wait_for_log("a refusal", |line| {
            line.message() == "the new configuration was rejected; robotgate keeps the current one"
        })
        .await;
    assert!(line.says("its mode is 0644") && line.says("chmod 640"), "{line:?}");
    let mut proxy = dial(&gate, None).await.unwrap();
    allowed(&proxy.get(&origin.url("/x")).await, "no-rule");
}

#[tokio::test]
async fn a_renewed_certificate_is_used_after_sighup() {
    let gate = gate().await;
    let (certificate, key) = Certificate::of(&["renamed.example"]).to_pem();
    fs::write(gate.file("proxy.pem"), certificate).unwrap();
    fs::write(gate.file("proxy-key.pem"), key).unwrap();

    gate.signal(Signal::HUP);
    gate.reloaded(1).await;

    let error = dial(&gate, None).await.err().expect("the name is another").to_string();
    assert!(
        error.contains("NotValidForName") || error.contains("not valid for name"),
        "{error}"
    );
}

#[tokio::test]
async fn invalid_certificate_and_key_files_are_errors_at_the_start() {
    let (certificate, _) = Certificate::of(&[PROXY]).to_pem();
    let (_, key) = Certificate::of(&[PROXY]).to_pem();
    for (what, certificate, key) in [
        ("is not the key of the first certificate", certificate.clone(), key),
        (
            "contains no readable private key in PEM form",
            certificate.clone(),
            certificate.clone(),
        ),
        (
            "it is damaged, or is not ECDSA P-256 or P-384",
            certificate.clone(),
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n".to_owned(),
        ),
        ("contains no certificate", String::new(), String::new()),
    ] {
        let failure = Gate::builder()
            .config(CONFIG)
            .put("proxy.pem", certificate)
            .put("proxy-key.pem", key)
            .fail()
            .await;
        assert_eq!(failure.code, Some(1));
        assert!(failure.errors.contains(what), "{}", failure.errors);
    }
}

#[tokio::test]
async fn a_returning_client_sends_its_certificate_again() {
    let gate = gate().await;
    let origin = site().await;
    let client = client(Some(&Certificate::of(&["bot.example"])));
    for _ in 0..2 {
        let stream = dial_as(&gate, client.clone()).await.unwrap();
        assert_eq!(stream.get_ref().1.handshake_kind(), Some(HandshakeKind::Full));
        // A session ticket would arrive with the first bytes of a response, so read a response.
        let mut proxy = Connection::over_io(stream);
        allowed(&proxy.get(&origin.url("/x")).await, "no-rule");
    }
}

#[tokio::test]
async fn a_certificate_proves_nothing_once_its_root_is_no_longer_trusted() {
    let bots = "[[bot]]\nname = \"acme\"\nuser-agents = [\"AcmeBot\"]\ncertificates = [\"bot.example\"]\n";
    let (certificate, key) = Certificate::of(&[PROXY]).to_pem();
    let (other_root, _) = Certificate::self_signed(&["other.example"]).to_pem();
    let gate = Gate::builder()
        .config(&format!("{CONFIG}\n{bots}"))
        .put("proxy.pem", certificate)
        .put("proxy-key.pem", key)
        .put("other.pem", other_root)
        .start()
        .await;
    let origin = site().await;
    let mut proxy = dial(&gate, Some(&Certificate::of(&["bot.example"]))).await.unwrap();
    allowed(&proxy.get(&origin.url("/x")).user_agent("AcmeBot/1").await, "no-rule");

    // Reloading the same files changes nothing.
    gate.signal(Signal::HUP);
    gate.reloaded(1).await;
    allowed(&proxy.get(&origin.url("/x")).user_agent("AcmeBot/1").await, "no-rule");

    gate.reconfigure(
        &CONFIG
            .replace("origin-ca.pem", "other.pem")
            .replace("[proxy.tls]", &format!("{bots}\n[proxy.tls]")),
    );
    gate.reloaded(2).await;
    refused(
        &proxy.get(&origin.url("/x")).user_agent("AcmeBot/1").await,
        "unauthenticated",
    );
}

#[tokio::test]
async fn a_client_over_the_connection_limit_gets_a_429_over_tls() {
    let (certificate, key) = Certificate::of(&[PROXY]).to_pem();
    let gate = Gate::builder()
        .config(&format!("[proxy]\nmax-client-connections = 1\n{CONFIG}"))
        .put("proxy.pem", certificate)
        .put("proxy-key.pem", key)
        .start()
        .await;
    let origin = site().await;
    let mut first = dial(&gate, None).await.unwrap();
    allowed(&first.get(&origin.url("/x")).await, "no-rule");

    let mut second = dial(&gate, None).await.unwrap();

    failed(&second.get(&origin.url("/x")).await, 429, &["http_request_denied"]);
    allowed(&first.get(&origin.url("/x")).await, "no-rule");
}

#[tokio::test]
async fn check_reports_the_same_errors_as_a_start() {
    let gate = gate().await;
    let check = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_robotgate"));
        let output = command.arg("check").arg(gate.file("robotgate.toml")).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, output) = check();
    assert_eq!(code, Some(0), "{output}");
    let (_, key) = Certificate::of(&[PROXY]).to_pem();
    fs::write(gate.file("proxy-key.pem"), key).unwrap();
    let (code, output) = check();
    assert_eq!(code, Some(1));
    assert!(
        output.contains("is not the key of the first certificate in"),
        "{output}"
    );
}
