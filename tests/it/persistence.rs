//! The cache file: copies survive a stop and a kill, and the gate also works if the file is damaged, locked or missing.

use std::fs;

use crate::support::{CliOutput, Gate, Origin, ROBOTS, Record, Reply, allowed, refused, wait};

/// Requests to failing sites are denied for `deny_for`.
fn short(deny_for: &str) -> String {
    format!(
        r#"
        [robots]
        default-ttl = "1s"
        min-ttl = "1s"
        max-ttl = "1s"

        [robots.unreachable]
        deny-for = "{deny_for}"
        retry-first = "1s"
        retry-busy = "1s"
        retry-longest = "1s"
        "#
    )
}

async fn origin() -> Origin {
    Origin::start().robots(ROBOTS).anything("page").spawn().await
}

async fn until_decided(gate: &Gate, origin: &Origin, path: &str, reason: &str) -> Record {
    let mut attempts = 0..;
    wait::until_async(&format!("a decision for {reason}"), async || {
        // Use a unique URL, so that its record can be found.
        let url = origin.url(&format!("{path}?{reason}-{}", attempts.next()?));
        gate.get(&url).await;
        Some(gate.decision_for(&url).await).filter(|record| record["reason"] == reason)
    })
    .await
}

fn known_by(record: &Record) -> [&Record; 4] {
    ["robots_status", "robots_sha256", "robots_fetched", "robots_expires"].map(|field| &record[field])
}

#[tokio::test]
async fn a_copy_is_used_after_a_restart_without_a_fetch() {
    let origin = origin().await;
    let mut gate = Gate::start().await;
    refused(&gate.get(&origin.url("/private/1")).await, "rule");
    let before = gate.decision_for(&origin.url("/private/1")).await;

    assert_eq!(gate.stop().await.code(), Some(0));
    gate.start_again().await;

    refused(&gate.get(&origin.url("/private/2")).await, "rule");
    allowed(&gate.get(&origin.url("/x")).await, "no-rule");
    let after = gate.decision_for(&origin.url("/private/2")).await;
    assert_eq!(after["robots_cache"], "hit");
    assert_eq!(known_by(&before), known_by(&after));
    assert_eq!(origin.count("/robots.txt"), 1);
}

#[tokio::test]
async fn the_grace_period_of_a_failing_origin_continues_after_a_kill() {
    let origin = origin().await;
    let mut gate = Gate::with(&short("1h")).await;
    refused(&gate.get(&origin.url("/private")).await, "rule");
    let good = gate.decision_for(&origin.url("/private")).await;

    origin.change("/robots.txt", Reply::status(503));
    let denied = until_decided(&gate, &origin, "/x", "unreachable").await;
    let since = failing_since(&gate).await;
    assert_eq!(stored(&gate).await[0]["failing_since"], since, "it is on disk");
    gate.kill().await;
    gate.reconfigure(&short("1s"));
    gate.start_again().await;

    let decided = until_decided(&gate, &origin, "/private", "last-copy").await;
    assert_eq!(decided["verdict"], "deny");
    assert_eq!(decided["rule"], "Disallow: /private");
    assert_eq!(decided["robots_sha256"], good["robots_sha256"]);
    assert_eq!(decided["robots_status"], 200);
    assert_eq!(decided["robots_cache"], "stale");
    assert_eq!(decided["robots_error"], "the server answered 503");
    assert_eq!(denied["robots_sha256"], Record::Null, "no copy decided then");
    assert_eq!(failing_since(&gate).await, since, "the clock was not reset");

    origin.change(
        "/robots.txt",
        Reply::ok("text/plain", "User-agent: *\nDisallow: /new\n"),
    );
    until_decided(&gate, &origin, "/new", "rule").await;
}

async fn failing_since(gate: &Gate) -> Record {
    wait::until("a failed fetch", || {
        let records = gate.audit();
        let last = records.iter().rfind(|record| record["event"] == "robots")?["failing_since"].clone();
        (!last.is_null()).then_some(last)
    })
    .await
}

async fn stored(gate: &Gate) -> Vec<Record> {
    let config = gate.file("robotgate.toml");
    let config = config.to_str().expect("the tests' paths are text");
    let output = CliOutput::of(&["cache", "list", "--json", "--config", config], "").await;
    assert_eq!((output.code, &*output.errors), (Some(0), ""), "{output:?}");
    let row = |line| {
        let mut row: Record = serde_json::from_str(line).expect("an object a line");
        // The counts of verdicts are only in memory, so a kill loses them. Leave them out of the comparison.
        row["verdicts"] = Record::Null;
        row
    };
    output.out.lines().map(row).collect()
}

#[tokio::test]
async fn stored_copies_survive_any_kill() {
    let origin = origin().await;
    let mut gate = Gate::start().await;
    let mut known: Vec<Record> = Vec::new();
    for round in 0..8 {
        // Five robots.txt files are fetched and listed before the kill, so they must not be lost. Five others are being
        // fetched when the gate is killed.
        for number in 0..5 {
            refused(
                &gate.get(&origin.url_at(&site(round, number), "/private")).await,
                "rule",
            );
        }
        known = {
            let listed = stored(&gate).await;
            for row in &known {
                assert!(listed.contains(row), "round {round}: {row} is lost");
            }
            listed
        };
        let before = origin.count("/robots.txt");
        let lookups: Vec<_> = (5..10)
            .map(|number| tokio::spawn(gate.get(&origin.url_at(&site(round, number), "/x")).into_future()))
            .collect();
        wait::until("a fetch", || (origin.count("/robots.txt") > before).then_some(())).await;
        gate.kill().await;
        lookups.into_iter().for_each(|lookups| lookups.abort());
        gate.start_again().await;
    }
    let listed = stored(&gate).await;
    for row in &known {
        assert!(listed.contains(row), "{row} is lost");
        let fetched = origin.count("/robots.txt");
        let host = row["origin"].as_str().expect("a name");
        refused(&gate.get(&format!("{host}/private")).await, "rule");
        assert_eq!(origin.count("/robots.txt"), fetched, "{host} was fetched again");
    }
}

fn site(round: usize, number: usize) -> String {
    format!("site-{round}-{number}.example")
}

#[tokio::test]
async fn an_origin_without_a_copy_is_allowed_after_the_grace_period() {
    let origin = Origin::start()
        .reply("/robots.txt", Reply::status(500))
        .anything("page")
        .spawn()
        .await;
    let mut gate = Gate::with(&short("1h")).await;
    refused(&gate.get(&origin.url("/x")).await, "unreachable");
    gate.stop().await;
    gate.reconfigure(&short("1s"));
    gate.start_again().await;
    let decided = until_decided(&gate, &origin, "/x", "unreachable-too-long").await;
    assert_eq!(decided["verdict"], "allow");
    assert_eq!(decided["robots_status"], 500);
    assert_eq!(decided["robots_error"], "the server answered 500");
}

#[tokio::test]
async fn a_site_that_was_prohibited_is_asked_at_once_after_a_restart() {
    let origin = origin().await;
    let mut gate = Gate::with("[egress]\nallow = []").await;
    refused(&gate.get(&origin.url("/x")).await, "egress");
    assert_eq!(stored(&gate).await[0]["holds"], "egress");
    gate.stop().await;
    gate.reconfigure("[egress]\nallow = ['127.0.0.0/8']");
    gate.start_again().await;

    allowed(&gate.get(&origin.url("/x")).await, "no-rule");
}

#[tokio::test]
async fn a_damaged_file_is_renamed_and_a_new_one_is_used() {
    let origin = origin().await;
    let mut gate = Gate::start().await;
    refused(&gate.get(&origin.url("/private")).await, "rule");
    gate.stop().await;
    let noise = b"not what it was".repeat(1000);
    fs::write(gate.file("robots.redb"), &noise).expect("the folder is ours");
    gate.start_again().await;

    let line = gate
        .wait_for_log("the damage", |line| line.message().contains("was damaged"))
        .await;
    assert_eq!(line.level(), "ERROR", "{line:?}");
    assert!(line.message().contains("robotgate renamed it"), "{line:?}");
    let aside = line.field("moved_to").expect("where it is");
    assert!(aside.contains("/robots.redb.damaged-2"), "{aside}");
    assert_eq!(fs::read(aside).expect("it is there"), noise);
    assert_eq!(gate.admin("/readyz").await.text(), "ready\n");

    refused(&gate.get(&origin.url("/private")).await, "rule");
    assert_eq!(origin.count("/robots.txt"), 2, "nothing was known");
    gate.stop().await;
    gate.start_again().await;
    refused(&gate.get(&origin.url("/private")).await, "rule");
    assert_eq!(origin.count("/robots.txt"), 2, "the new file is used");
}

#[tokio::test]
async fn a_gate_whose_file_is_locked_keeps_copies_in_memory() {
    let origin = origin().await;
    let mut first = Gate::start().await;
    let path = first.file("robots.redb");
    let mut second = Gate::with(&format!("[cache]\npath = {path:?}")).await;
    let line = second
        .wait_for_log("the trouble", |line| {
            line.message().contains("keeps robots.txt copies in memory only")
        })
        .await;
    assert_eq!((line.level(), line.field("path")), ("ERROR", path.to_str()), "{line:?}");
    let ready = second.admin("/readyz").await;
    assert_eq!(ready.status, 200);
    for text in [line.message(), &ready.text()] {
        for part in [
            "Until the next start",
            "another process keeps it open",
            "own cache.path",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    assert_eq!(disk_fails(&second).await, "1");
    assert_eq!(disk_fails(&first).await, "0");
    refused(&second.get(&origin.url("/private")).await, "rule");
    refused(&second.get(&origin.url("/private")).await, "rule");
    assert_eq!(origin.count("/robots.txt"), 1, "the copy serves while it runs");

    second.stop().await;
    first.stop().await;
    second.start_again().await;
    assert_eq!(second.admin("/readyz").await.text(), "ready\n");
    assert_eq!(disk_fails(&second).await, "0");
    refused(&second.get(&origin.url("/private")).await, "rule");
    assert_eq!(origin.count("/robots.txt"), 2, "it was not on disk");
}

async fn disk_fails(gate: &Gate) -> String {
    let metrics = gate.admin("/metrics").await.text();
    let value = metrics
        .lines()
        .find_map(|line| line.strip_prefix("robotgate_cache_disk_fails "));
    value.expect("it is always there").to_owned()
}

#[tokio::test]
async fn without_a_file_copies_are_kept_in_memory() {
    let origin = origin().await;
    let mut gate = Gate::builder()
        .without("cache.path")
        .config("[cache]\npersist = false")
        .start()
        .await;
    refused(&gate.get(&origin.url("/private")).await, "rule");
    gate.stop().await;
    assert!(!gate.file("robots.redb").exists());
    gate.start_again().await;
    refused(&gate.get(&origin.url("/private")).await, "rule");
    assert_eq!(origin.count("/robots.txt"), 2);
}

#[tokio::test]
async fn the_gate_starts_even_if_its_file_cannot_be_created() {
    let origin = origin().await;
    let gate = Gate::with("[cache]\npath = \"robotgate.toml/robots.redb\"").await;
    let line = gate
        .wait_for_log("the trouble", |line| {
            line.message().contains("keeps robots.txt copies in memory only")
        })
        .await;
    assert!(line.message().contains("not a directory"), "{}", line.message());
    let ready = gate.admin("/readyz").await;
    assert_eq!(ready.status, 200);
    assert!(ready.text().contains("cache.path"), "{}", ready.text());
    refused(&gate.get(&origin.url("/private")).await, "rule");
}
