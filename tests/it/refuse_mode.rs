//! `https.mode = "refuse"`: every CONNECT is refused, and other requests are decided as usual.

use crate::support::{Gate, Origin, allowed, refused};

#[tokio::test]
async fn every_connect_is_refused_with_its_reason() {
    let origin = Origin::start().page("/x", "secret").tls().spawn().await;
    let gate = Gate::with("[https]\nmode = \"refuse\"").await;

    let response = gate
        .connect(&origin.authority())
        .user_agent("TestBot/1.0")
        .await
        .refused();

    refused(&response, "connect-refused");
    assert!(
        !response.reason.is_empty(),
        "the reason phrase is all that many clients show: {response:#?}"
    );
    assert!(origin.requests().is_empty());
    let (decisions, completions) = gate.audited(1).await;
    assert_eq!(
        (&decisions[0]["reason"], &completions[0]["status"]),
        (&"connect-refused".into(), &403.into())
    );
}

#[tokio::test]
async fn absolute_forms_are_still_forwarded() {
    let plain = Origin::start().page("/x", "plain").spawn().await;
    let tls = Origin::start().page("/x", "secret").tls().spawn().await;
    let gate = Gate::with("[https]\nmode = \"refuse\"").await;

    allowed(&gate.get(&plain.url("/x")).await, "no-robots");
    allowed(&gate.get(&tls.url("/x")).await, "no-robots");
}
