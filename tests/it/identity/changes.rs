//! Changes of the credentials file, and of the required proof, while the gate runs.

use rustix::fs::{CWD, Mode, mkfifoat};

use super::*;
use crate::support::{Alpn, Ask, NAME, Signal};

fn with<'a>(ask: Ask<'a>, credential: &str) -> Ask<'a> {
    ask.user_agent("AcmeBot/1")
        .header("Proxy-Authorization", &basic(credential))
}

const OTHERS: [&str; 3] = [DUO, REPORTER, SCANNER];

fn file(of_acme: &[&str]) -> String {
    credentials(&[of_acme, &OTHERS].concat())
}

#[tokio::test]
async fn a_secret_is_rotated_without_a_gap() {
    const NEW: &str = "acme:a-Secret-of-tomorrow";
    let origin = Origin::start().anything("page").spawn().await;
    let gate = bound("").await;
    let url = origin.url("/x");
    for (count, of_acme, old, new) in [
        (0, &[ACME][..], 200, 407),
        (1, &[ACME, NEW], 200, 200),
        (2, &[NEW], 407, 200),
    ] {
        if count > 0 {
            gate.replace_credentials(&file(of_acme));
        }
        gate.reloaded(count).await;
        assert_eq!(with(gate.get(&url), ACME).await.status, old, "{of_acme:?}");
        assert_eq!(with(gate.get(&url), NEW).await.status, new, "{of_acme:?}");
    }
}

#[tokio::test]
async fn a_revoked_credential_is_invalid_inside_an_open_connect() {
    let origin = Origin::start().anything("page").tls().spawn().await;
    for alpn in [Alpn::Http1, Alpn::Http2] {
        let gate = bound("").await;
        let connect = gate.connect(&origin.authority());
        let connect = connect.with_ask(|ask| ask.header("Proxy-Authorization", &basic(ACME)));
        let mut inside = connect.await.opened().tls(NAME, alpn).await;
        allowed(&inside.get("/x").user_agent("AcmeBot/1").await, "no-robots");

        // The CONNECT was sent with the old secret, so it does not help that the file has a new secret for this name.
        gate.replace_credentials(&file(&["acme:a-Secret-of-tomorrow"]));
        gate.reloaded(1).await;
        for user_agent in ["AcmeBot/1", "FreeBot/1", "curl/8"] {
            let response = inside.get("/y").user_agent(user_agent).await;
            assert_eq!(outcome(&response), (403, "unauthenticated".to_owned()), "{user_agent}");
        }
        assert_eq!(origin.count("/y"), 0);

        gate.replace_credentials(&file(&[ACME]));
        gate.reloaded(2).await;
        allowed(&inside.get("/x").user_agent("AcmeBot/1").await, "no-robots");
    }
}

#[tokio::test]
async fn a_newly_required_proof_applies_to_open_connects() {
    let origin = Origin::start().anything("page").tls().spawn().await;
    let gate = bound("").await;
    let mut free = gate
        .connect(&origin.authority())
        .await
        .opened()
        .tls(NAME, Alpn::Http1)
        .await;
    allowed(&free.get("/x").user_agent("FreeBot/1").await, "no-robots");

    gate.reconfigure("[identity]\nrequired = true");
    gate.reloaded(1).await;

    let response = free.get("/x").user_agent("FreeBot/1").await;
    assert_eq!(outcome(&response), (403, "unauthenticated".to_owned()));
}

#[tokio::test]
async fn a_bad_credentials_file_changes_nothing() {
    let origin = Origin::start().anything("page").spawn().await;
    let gate = bound("").await;
    let url = origin.url("/x");
    gate.replace_credentials("acme:hunter2\n");
    let rejected = gate
        .wait_for_log("a rejected file", |line| {
            line.message() == "the new configuration was rejected; robotgate keeps the current one"
                && line.says("not followed by a kind of hash")
        })
        .await;
    assert!(!rejected.says("hunter2"), "{}", rejected.text);
    allowed(&with(gate.get(&url), ACME).await, "no-robots");

    gate.replace_credentials(&(file(&[ACME]) + &credentials(&["idle:a-Secret-of-nobody"])));
    gate.reloaded(1).await;
    let line = gate
        .wait_for_log("the idle name", |line| line.says("identifies no bot"))
        .await;
    assert_eq!((line.level(), line.field("name")), ("WARN", Some("idle")));
    assert_eq!(with(gate.get(&url), "idle:a-Secret-of-nobody").await.status, 407);
}

#[tokio::test]
async fn a_pipe_without_a_writer_does_not_block_a_reload() {
    let origin = Origin::start().anything("page").spawn().await;
    let gate = bound("").await;
    let file_of = gate.file("credentials");
    let pipe = file_of.with_file_name("pipe");
    mkfifoat(CWD, &pipe, Mode::from_raw_mode(0o600)).unwrap();
    std::fs::rename(&pipe, &file_of).unwrap();

    gate.signal(Signal::HUP);
    gate.wait_for_log("the rejected pipe", |line| {
        line.message() == "the new configuration was rejected; robotgate keeps the current one"
            && line.says("credentials: it is not a regular file")
    })
    .await;
    allowed(&with(gate.get(&origin.url("/x")), ACME).await, "no-robots");

    gate.replace_credentials(&file(&["acme:a-Secret-of-tomorrow"]));
    gate.reloaded(1).await;
    assert_eq!(with(gate.get(&origin.url("/x")), ACME).await.status, 407);
}

#[tokio::test]
async fn sighup_reads_the_credentials_file_again() {
    let origin = Origin::start().anything("page").spawn().await;
    let gate = bound("").await;
    gate.signal(Signal::HUP);
    gate.reloaded(1).await;
    allowed(&with(gate.get(&origin.url("/x")), ACME).await, "no-robots");
}

#[tokio::test]
async fn a_bot_still_needs_a_proof_after_its_credential_is_removed() {
    let origin = Origin::start().anything("page").spawn().await;
    let gate = bound("").await;
    let url = origin.url("/x");
    assert_eq!(with(gate.get(&url), ACME).await.status, 200);

    gate.replace_credentials(&credentials(&OTHERS));
    gate.reloaded(1).await;

    assert_eq!(with(gate.get(&url), ACME).await.status, 407);
    let without = gate.get(&url).user_agent("AcmeBot/1").await;
    assert_eq!(outcome(&without), (407, "unauthenticated".to_owned()));
    let line = gate
        .wait_for_log("a word to the operator", |line| {
            line.says("is not in the credentials file, so clients with its User-Agent are refused")
        })
        .await;
    assert_eq!((line.level(), line.field("name")), ("WARN", Some("acme")));
}

#[tokio::test]
async fn a_deleted_credentials_file_is_logged_once_and_its_credentials_stay_valid() {
    let origin = Origin::start().anything("page").spawn().await;
    let gate = bound("").await;
    let missing = "cannot read this file any more; what robotgate read from it before still applies";

    std::fs::remove_file(gate.file("credentials")).unwrap();
    let line = gate
        .wait_for_log("the missing file", |line| line.message() == missing)
        .await;
    assert_eq!(line.level(), "WARN");
    assert!(line.field("path").is_some_and(|path| path.ends_with("/credentials")));
    allowed(&with(gate.get(&origin.url("/x")), ACME).await, "no-robots");

    gate.replace_credentials(&credentials(&OTHERS));
    gate.reloaded(1).await;
    assert_eq!(with(gate.get(&origin.url("/x")), ACME).await.status, 407);
    assert_eq!(gate.logged(missing), 1);
}
