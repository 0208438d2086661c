//! No secret appears in a log, in a request to an origin, or in a response.

use super::*;
use crate::support::{Alpn, NAME};

fn leaks(text: &str) -> bool {
    let encoded = [
        ACME,
        DUO,
        "acme:hunter2hunter2",
        "hunter2hunter2:acme",
        "hunter2hunter2",
    ]
    .map(basic);
    let encoded = encoded.iter().map(|value| &value["Basic ".len()..value.len() - 4]);
    encoded
        .chain(["a-Secret-of", "hunter2", "c2VjcmV0"])
        .any(|secret| text.contains(secret))
}

#[tokio::test]
async fn secrets_are_never_forwarded_or_logged() {
    let plain = Origin::start().anything("page").spawn().await;
    let tls = Origin::start().anything("page").tls().spawn().await;
    let gate = builder(BOUND).log("trace").start().await;
    let file = std::fs::read_to_string(gate.file("credentials")).unwrap();
    let hash = file.lines().next().and_then(|line| line.rsplit('$').next()).unwrap();
    let mut responses = Vec::new();
    for value in [
        basic(ACME),
        basic(DUO),
        basic("acme:hunter2hunter2"),
        basic("hunter2hunter2:acme"),
        basic("hunter2hunter2"),
        format!("{}!", basic("acme:hunter2hunter2")),
        "Basic hunter2hunter2".to_owned(),
        "Bearer hunter2hunter2".to_owned(),
        "hunter2hunter2".to_owned(),
    ] {
        for user_agent in ["AcmeBot/1", "FreeBot/1", ""] {
            for url in [plain.url("/x"), tls.url("/x")] {
                let ask = gate.get(&url).without("User-Agent").header("User-Agent", user_agent);
                responses.push(format!("{:?}", ask.header("Proxy-Authorization", &value).await));
            }
            let connect = gate
                .connect(&tls.authority())
                .with_ask(|ask| ask.header("Proxy-Authorization", &value));
            match connect.await {
                crate::support::Connected::Refused(response) => responses.push(format!("{response:?}")),
                crate::support::Connected::Tunnel(tunnel) => {
                    let mut inside = tunnel.tls(NAME, Alpn::Http1).await;
                    let ask = inside.get("/y").user_agent(user_agent);
                    responses.push(format!("{:?}", ask.header("Proxy-Authorization", &value).await));
                }
            }
        }
        // An invalid head: the target does not contain a host.
        let head =
            format!("GET /nowhere HTTP/1.1\r\nHost: a\r\nConnection: close\r\nProxy-Authorization: {value}\r\n\r\n");
        responses.push(String::from_utf8_lossy(&gate.raw(head).await).into_owned());
    }
    for text in &responses {
        assert!(!leaks(text) && !text.contains(hash), "a client is told: {text}");
    }
    for request in [plain.requests(), tls.requests()].concat() {
        let request = format!("{request:?}");
        assert!(!leaks(&request), "an origin is told: {request}");
    }
    let audit = std::fs::read_to_string(gate.file("audit.jsonl")).unwrap();
    assert!(audit.lines().count() > 100);
    for line in audit.lines() {
        assert!(!leaks(line) && !line.contains(hash), "the audit log tells: {line}");
    }
    for line in gate.log().into_iter().chain(gate.output()) {
        assert!(!leaks(&line.text) && !line.says(hash), "the log tells: {}", line.text);
    }
}
