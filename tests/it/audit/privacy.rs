//! What `[audit]` leaves out appears nowhere: not in the logs, the files, the page or the API.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::support::{Alpn, Connection, Gate, Latch, NAME, Origin, ROBOTS, Reply, Roots, wait};

const MASKS: &str = "
    [audit]
    mask-client = { ipv4 = 8 }
    redact-query = [\"token\", \"key\"]
    user-agent = \"product\"
    [[bot]]
    name = \"Watched\"
    user-agents = [\"Watched\"]
    enforcement = \"report\"
";
const CLIENT: [u8; 4] = [127, 7, 7, 7];
const SECRETS: [&str; 4] = ["127.7.7.7", "hunter2", "s3cret", "98.76"];
const AGENT: &str = "AcmeBot/98.76 (s3cret; s3cret@acme.example)";

async fn client(gate: &Gate) -> Connection {
    let connection = Connection::from(CLIENT, gate.address()).await;
    connection.expect("the gate listens")
}

async fn raw(gate: &Gate, bytes: &[u8]) {
    let mut client = client(gate).await;
    client.send(bytes).await;
    client.read_to_end().await;
}

async fn traffic(gate: &Gate, origin: &Origin, https: &Origin) {
    for (path, agent) in [
        ("/x?token=hunter2&page=1", AGENT),
        ("/private?page=1&t%6Fken=hunter2", AGENT),
        ("//private?a;key=hunter2", AGENT),
        ("/private?token=hunter2", "Watched/98.76 (s3cret)"),
        ("/x?token=hunter2", "Mozilla/98.76 (s3cret)"),
    ] {
        client(gate).await.get(&origin.url(path)).user_agent(agent).await;
    }
    let url = origin.url("/x?token=hunter2");
    client(gate).await.get(&url).header("Via", "1.1 robotgate").await;
    let host = origin.authority();
    for malformed in [
        format!("GET http://{host}/?token=hunter2 s3cret HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        format!("GET http://{host}/?token=hunter2 HTTP/1.1\r\nHost: s3cret.example\r\n\r\n"),
        format!("GET /{} HTTP/1.1\r\n\r\n", "hunter2".repeat(20_000)),
        "\u{16}\u{3}\u{1}\0\u{5}".to_owned(),
    ] {
        raw(gate, malformed.as_bytes()).await;
    }
    for opening in [&b"\0\x01\x02"[..], b"GET s3cret HTTP/1.1\r\n\r\n", b"\x16"] {
        let mut client = client(gate).await;
        let connect = client.ask("CONNECT", &https.authority()).user_agent(AGENT);
        connect.await;
        client.send(opening).await;
        client.finish().await;
        client.read_to_end().await;
    }
    let mut client = client(gate).await;
    let authority = https.authority();
    client.ask("CONNECT", &authority).user_agent(AGENT).await;
    let untrusting = client.tunnel_to(&authority, Roots::none());
    assert!(untrusting.try_tls(NAME, Alpn::Http1).await.is_err());
}

fn secrets_in(text: &[u8]) -> Vec<&'static str> {
    let is_in = |secret: &&str| text.windows(secret.len()).any(|part| part == secret.as_bytes());
    SECRETS.into_iter().filter(is_in).collect()
}

/// Returns the operational log, some pages of the admin listener, and the gate's files, each with its name.
async fn shown(gate: &Gate) -> Vec<(String, Vec<u8>)> {
    let mut shown = Vec::new();
    let log: Vec<String> = gate.log().iter().map(|line| line.json.to_string()).collect();
    shown.push(("the operational log".to_owned(), log.join("\n").into_bytes()));
    for path in ["/", "/metrics", "/api/v1/status", "/api/v1/refusals", "/api/v1/origins"] {
        shown.push((path.to_owned(), gate.admin(path).await.body.clone()));
    }
    files(gate.file("").as_path(), &mut shown);
    shown
}

fn files(folder: &Path, shown: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, shown);
        } else if let Ok(bytes) = fs::read(&path) {
            shown.push((path.display().to_string(), bytes));
        }
    }
}

async fn status(gate: &Gate) -> Value {
    gate.admin("/api/v1/status").await.json()
}

#[tokio::test]
async fn masked_values_appear_nowhere() {
    let elsewhere = Origin::start().page("/r", ROBOTS).spawn().await;
    let to = elsewhere.url("/r?token=hunter2&v=1");
    let origin = Origin::start()
        .reply("/robots.txt", Reply::redirect(&to))
        .anything("page")
        .spawn()
        .await;
    let https = Origin::start().tls().spawn().await;

    let plain = Gate::start().await;
    traffic(&plain, &origin, &https).await;
    let everywhere: Vec<u8> = shown(&plain).await.into_iter().flat_map(|(_, text)| text).collect();
    assert_eq!(secrets_in(&everywhere), SECRETS, "without masks, all of it is shown");

    let gate = Gate::with(MASKS).await;
    traffic(&gate, &origin, &https).await;
    gate.wait_for_log("the rejection", |line| line.field("fix").is_some())
        .await;
    gate.audited(5).await;
    for (place, text) in shown(&gate).await {
        assert_eq!(
            secrets_in(&text),
            [""; 0],
            "{place}: {}",
            String::from_utf8_lossy(&text)
        );
    }

    let decision = gate.decision_for(&origin.url("/private?page=1&t%6Fken=redacted")).await;
    for (field, value) in [
        ("client", json!("127.0.0.0:0")),
        ("user_agent", json!("AcmeBot")),
        ("bot", json!("AcmeBot")),
        ("matched_by", json!("AcmeBot")),
        ("reason", json!("rule")),
    ] {
        assert_eq!(decision[field], value, "{decision:#}");
    }
    let strict = gate.decision_for(&origin.url("//private?a;key=redacted")).await;
    assert_eq!(strict["read_as"], "/private?a;key=redacted", "{strict:#}");
    let fetch = &gate.fetches_of(&origin.url(""))[0];
    assert_eq!(fetch["redirects"][0]["to"], elsewhere.url("/r?token=redacted&v=1"));
    assert_eq!(
        origin.requests_for("/x")[0].target,
        "/x?token=hunter2&page=1",
        "the site gets it whole"
    );
    let problem = &status(&gate).await["trust_problems"][0];
    assert_eq!(
        (&problem["client"], &problem["user_agent"]),
        (&json!("127.0.0.0"), &json!("AcmeBot"))
    );
    let log = gate.log();
    let clients: Vec<_> = log.iter().filter_map(|line| line.field("client")).collect();
    assert!(
        clients.len() >= 5 && clients.iter().all(|client| *client == "127.0.0.0:0"),
        "{clients:?}"
    );
}

#[tokio::test]
async fn after_a_reload_new_masks_apply_to_the_shown_refusals() {
    let origin = Origin::start().robots(ROBOTS).spawn().await;
    let gate = Gate::start().await;
    let url = origin.url("/private?token=hunter2");
    client(&gate).await.get(&url).user_agent(AGENT).await;
    let refusals = async || gate.admin("/api/v1/refusals").await.text();
    assert_eq!(secrets_in(refusals().await.as_bytes()), SECRETS);

    gate.replace_config(MASKS);
    gate.reloaded(1).await;
    assert_eq!(secrets_in(refusals().await.as_bytes()), [""; 0]);
    client(&gate).await.get(&url).user_agent(AGENT).await;
    let list: Value = serde_json::from_str(&refusals().await).expect("JSON");
    assert_eq!(list["refusals"][0]["client"], "127.0.0.0:0", "{list:#}");
    assert_eq!((&list["refusals"][0]["seq"], &list["next"]), (&json!(2), &json!(2)));
    assert_eq!(secrets_in(list.to_string().as_bytes()), [""; 0]);
}

#[tokio::test]
async fn a_request_that_began_before_a_reload_is_not_shown_without_masks() {
    let latch = Latch::new();
    let robots = Reply::ok("text/plain", ROBOTS).after(&latch);
    let origin = Origin::start().reply("/robots.txt", robots).spawn().await;
    let gate = Gate::start().await;
    let url = origin.url("/private?token=hunter2");
    let mut client = client(&gate).await;
    let request = async { client.get(&url).user_agent(AGENT).await };
    let reload = async {
        wait::until("the fetch", || (origin.count("/robots.txt") == 1).then_some(())).await;
        gate.replace_config(MASKS);
        gate.reloaded(1).await;
        latch.open();
    };
    tokio::join!(request, reload);
    assert_eq!(gate.decision_for(&url).await["reason"], "rule");
    let list = gate.admin("/api/v1/refusals").await.json();
    assert_eq!(list["refusals"], json!([]));
}
