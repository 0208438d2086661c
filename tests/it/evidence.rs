//! The store of evidence: each text that a decision is based on can be found by the digest in the log.

use std::{collections::HashMap, fs, path::Path};

use robotgate::{copy::Sha256, evidence::EvidenceReader};

use crate::support::{Gate, Origin, ROBOTS, Record, allowed, refused, wait};

fn stored(gate: &Gate, digest: &Record) -> Option<Vec<u8>> {
    let digest: Sha256 = serde_json::from_value(digest.clone()).expect("a digest");
    read(&gate.file("evidence.redb"), &[digest]).remove(&digest)
}

fn read(path: &Path, digests: &[Sha256]) -> HashMap<Sha256, Vec<u8>> {
    let reader = EvidenceReader::open(path).expect("it can be read beside the proxy");
    reader.read(digests).expect("read")
}

async fn metric(gate: &Gate, name: &str) -> Option<String> {
    let metrics = gate.admin("/metrics").await.text();
    let found = metrics
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    found.map(str::to_owned)
}

#[tokio::test]
async fn a_logged_decision_has_its_robots_txt_in_the_store() {
    let origin = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let gate = Gate::start().await;
    let url = origin.url("/private");
    refused(&gate.get(&url).await, "rule");
    let decision = gate.decision_for(&url).await;
    assert_eq!(
        stored(&gate, &decision["robots_sha256"]).as_deref(),
        Some(ROBOTS.as_bytes())
    );
    let status = gate.admin("/api/v1/status").await.json();
    assert_eq!(
        status["evidence"]["texts"], 2,
        "the robots.txt and the configuration: {status}"
    );
    assert_eq!(status["evidence"]["error"], Record::Null);
    assert_eq!(
        metric(&gate, "robotgate_evidence_failed_total").await.as_deref(),
        Some("0")
    );
}

#[tokio::test]
async fn the_configuration_is_in_the_store_from_the_start_and_after_a_reload() {
    let gate = Gate::start().await;
    let text = |gate: &Gate| {
        let file = fs::read_to_string(gate.file("robotgate.toml")).expect("the configuration");
        robotgate::config::Config::parse(
            "robotgate.toml",
            &file,
            gate.file("robotgate.toml").parent().expect("a folder"),
        )
        .expect("valid")
        .canonical
    };
    let before = text(&gate);
    gate.replace_config("[refusals]\nstatus = 451");
    gate.reloaded(1).await;
    let after = text(&gate);
    assert_ne!(before.sha256(), after.sha256());
    let found = read(&gate.file("evidence.redb"), &[before.sha256(), after.sha256()]);
    for canonical in [before, after] {
        let found = found.get(&canonical.sha256()).map(|text| String::from_utf8_lossy(text));
        assert_eq!(found.as_deref(), Some(&**canonical.text()));
    }
}

#[tokio::test]
async fn a_copy_from_the_cache_file_is_stored_before_it_decides() {
    let origin = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let mut gate = Gate::start().await;
    refused(&gate.get(&origin.url("/private/1")).await, "rule");
    gate.stop().await;
    fs::remove_file(gate.file("evidence.redb")).expect("removed");
    gate.start_again().await;
    let url = origin.url("/private/2");
    refused(&gate.get(&url).await, "rule");
    let decision = gate.decision_for(&url).await;
    assert_eq!(decision["robots_cache"], "hit");
    assert_eq!(
        stored(&gate, &decision["robots_sha256"]).as_deref(),
        Some(ROBOTS.as_bytes())
    );
}

#[tokio::test]
async fn decisions_go_on_while_texts_cannot_be_stored() {
    let origin = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let gate = Gate::with("[evidence]\npath = \"robotgate.toml/evidence.redb\"").await;
    let line = gate
        .wait_for_log("the trouble", |line| {
            line.says("cannot be stored in the file of evidence.path")
        })
        .await;
    assert_eq!(line.level(), "ERROR");
    refused(&gate.get(&origin.url("/private")).await, "rule");
    let ready = gate.admin("/readyz").await;
    assert_eq!(ready.status, 200);
    let text = ready.text();
    assert!(text.starts_with("ready\n") && text.contains("evidence.path"), "{text}");
    let status = gate.admin("/api/v1/status").await.json();
    assert!(
        status["evidence"]["error"]
            .as_str()
            .is_some_and(|error| error.contains("not a directory")),
        "{status}"
    );
    assert_eq!(metric(&gate, "robotgate_evidence_fails").await.as_deref(), Some("1"));
    assert_eq!(
        metric(&gate, "robotgate_evidence_failed_total").await.as_deref(),
        Some("2")
    );
}

#[tokio::test]
async fn required_evidence_refuses_decisions_on_texts_that_cannot_be_stored() {
    let known = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let gate = Gate::with("[evidence]\nrequired = true").await;
    refused(&gate.get(&known.url("/private")).await, "rule");
    let (path, away) = (gate.file("evidence.redb"), gate.file("away.redb"));
    fs::rename(&path, &away).expect("moved");
    fs::create_dir(&path).expect("made");

    // The store notices the problem when it opens the file for one of the next texts.
    let mut numbers = 0..;
    let new = wait::until_async("a 503", async || {
        let robots = format!("{ROBOTS}# {}\n", numbers.next()?);
        let new = Origin::start().robots(&robots).anything("page").spawn().await;
        let reply = gate.get(&new.url("/page")).await;
        (reply.status == 503).then_some(new)
    })
    .await;
    let reply = gate.get(&new.url("/page")).await;
    assert!(reply.text().contains("evidence.required"), "{}", reply.text());
    assert_eq!(gate.admin("/readyz").await.status, 503);
    refused(&gate.get(&known.url("/private")).await, "rule");

    fs::remove_dir(&path).expect("removed");
    fs::rename(&away, &path).expect("moved");
    wait::until_async("an answer", async || {
        let reply = gate.get(&new.url("/page")).await;
        (reply.status == 200).then_some(())
    })
    .await;
    let url = new.url("/page?again");
    allowed(&gate.get(&url).await, "no-rule");
    let decision = gate.decision_for(&url).await;
    assert!(stored(&gate, &decision["robots_sha256"]).is_some_and(|text| text.starts_with(ROBOTS.as_bytes())));
}

#[tokio::test]
async fn a_required_store_that_cannot_be_used_prevents_the_start_and_the_reload() {
    let failure = Gate::builder()
        .config("[evidence]\nrequired = true\npath = \"robotgate.toml/evidence.redb\"")
        .fail()
        .await;
    assert!(failure.errors.contains("evidence.path"), "{}", failure.errors);
    let gate = Gate::start().await;
    gate.replace_config("[evidence]\nrequired = true\npath = \"robotgate.toml/evidence.redb\"");
    let line = gate.wait_for_log("the error", |line| line.says("evidence.path")).await;
    assert!(line.says("evidence.path"), "{line:?}");
}

#[tokio::test]
async fn with_evidence_disabled_no_text_is_stored() {
    let origin = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let gate = Gate::with("[evidence]\nenabled = false").await;
    refused(&gate.get(&origin.url("/private")).await, "rule");
    assert!(!gate.file("evidence.redb").exists());
    let status = gate.admin("/api/v1/status").await.json();
    assert_eq!(status["evidence"], Record::Null);
    assert_eq!(metric(&gate, "robotgate_evidence_texts").await, None);
}
