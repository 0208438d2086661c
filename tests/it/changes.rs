//! A site that changes its robots.txt: what the log, the metrics, the API and `cache history` say about the change.

use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    admin,
    support::{CliOutput, Gate, Origin, Record, Redis, Reply, allowed, programs::needs, refused, wait},
};

const ONE: &str = "User-agent: *\nDisallow: /private\nDisallow: /old\n";
const TWO: &str = "# stricter\nUser-agent: *\nDisallow: /private\nDisallow: /news\nSitemap: http://a.example/map.xml\n";
const SAME_AS_TWO: &str = "user-agent: *\n\nDisallow: /news # why\nDisallow: /private\n";
/// Together with [`brief`], this configuration makes robotgate fetch a robots.txt again after a second.
pub(crate) const BRIEF: &str = "[robots]\nmin-ttl = \"1s\"";

pub(crate) fn brief(text: &str) -> Reply {
    Reply::ok("text/plain", text).header("Cache-Control", "max-age=1")
}

async fn site(first: Reply) -> Origin {
    Origin::start()
        .reply("/robots.txt", first)
        .anything("page")
        .spawn()
        .await
}

fn sha256(text: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(text))
}

/// Requests a page until `count` changes are logged, and returns them.
pub(crate) async fn changes(gate: &Gate, origin: &Origin, count: usize) -> Vec<Record> {
    let found = wait::until_async("a change", async || {
        gate.get(&origin.url("/x")).await;
        let found = gate.events("robots-changed");
        (found.len() >= count).then_some(found)
    });
    let found = found.await;
    assert_eq!(found.len(), count, "{found:?}");
    found
}

async fn counted(gate: &Gate, effect: &str) -> Option<String> {
    let metrics = gate.admin("/metrics").await.text();
    let name = format!("robotgate_robots_changes_total{{effect=\"{effect}\"}} ");
    metrics
        .lines()
        .find_map(|line| line.strip_prefix(&*name))
        .map(str::to_owned)
}

async fn history(gate: &Gate, origin: &Origin, args: &[&str]) -> CliOutput {
    let config = gate.file("robotgate.toml");
    let (config, origin) = (config.to_str().expect("the tests' paths are text"), origin.url(""));
    CliOutput::of(&[&["cache", "history", &origin, "--config", config], args].concat(), "").await
}

/// Waits until the history has `count` versions.
pub(crate) async fn versions(gate: &Gate, origin: &Origin, count: usize) -> Vec<Value> {
    wait::until_async("the versions", async || {
        let output = history(gate, origin, &["--json"]).await;
        let found: Value = serde_json::from_str(&output.out).ok()?;
        let versions = found["versions"].as_array()?.clone();
        (versions.len() == count).then_some(versions)
    })
    .await
}

#[tokio::test]
async fn a_change_lists_its_rules_and_its_effect_on_recent_requests() {
    let origin = site(brief(ONE)).await;
    let other = site(brief(ONE)).await;
    let gate = Gate::with(BRIEF).await;
    for path in ["/news/1", "/news/2", "/x"] {
        allowed(&gate.get(&origin.url(path)).await, "no-rule");
    }
    for path in ["/private/1", "/old/1"] {
        refused(&gate.get(&origin.url(path)).await, "rule");
    }
    allowed(&gate.get(&other.url("/news/1")).await, "no-rule");
    origin.change("/robots.txt", brief(TWO));

    let change = changes(&gate, &origin, 1).await.remove(0);
    let fetch = gate
        .fetches_of(&origin.url(""))
        .into_iter()
        .rfind(|fetch| fetch["held_sha256"] == sha256(ONE) && fetch["robots_sha256"] == sha256(TWO));
    let start = gate.events("start").remove(0);
    for (field, expected) in [
        ("origin", json!(origin.url(""))),
        ("instance", start["instance"].clone()),
        ("fetched", fetch.expect("the fetch is logged")["time"].clone()),
        ("source", json!("site")),
        ("robots_sha256_before", json!(sha256(ONE))),
        ("robots_sha256", json!(sha256(TWO))),
        ("robots_status_before", json!(200)),
        ("robots_status", json!(200)),
        ("rules", json!("changed")),
        ("rules_added", json!(1)),
        ("rules_removed", json!(1)),
        (
            "groups",
            json!([{
                "agents": ["*"], "change": "changed",
                "added": [{"line": 4, "rule": "Disallow: /news"}],
                "removed": [{"line": 3, "rule": "Disallow: /old"}],
            }]),
        ),
        ("statements_added", json!(1)),
        (
            "added",
            json!([{"line": 5, "kind": "Sitemap", "value": "http://a.example/map.xml", "agents": []}]),
        ),
        ("removed", json!([])),
        ("cut", json!(false)),
        ("effect", json!("both")),
        ("undecided", json!(0)),
        ("newly_denied", json!(2)),
        ("newly_allowed", json!(1)),
    ] {
        assert_eq!(change[field], expected, "{field}: {change}");
    }
    assert!(change["requests"].as_u64() >= Some(5), "{change}");
    let examples: Vec<_> = change["examples"].as_array().expect("a list").iter().collect();
    let urls: Vec<_> = examples
        .iter()
        .map(|example| (&example["url"], &example["verdict"]))
        .collect();
    let (old, first, second) = (
        json!(origin.url("/old/1")),
        json!(origin.url("/news/1")),
        json!(origin.url("/news/2")),
    );
    let (allow, deny) = (json!("allow"), json!("deny"));
    assert_eq!(
        urls,
        [(&old, &allow), (&second, &deny), (&first, &deny)],
        "the newest first"
    );
    assert_eq!(
        (&examples[1]["rule"], &examples[1]["line"]),
        (&json!("Disallow: /news"), &json!(4))
    );
    let decision = gate.decision_for(&origin.url("/news/2")).await;
    assert_eq!(examples[1]["id"], decision["id"]);

    assert_eq!(counted(&gate, "both").await.as_deref(), Some("1"));
    assert_eq!(counted(&gate, "none").await.as_deref(), Some("0"));
    assert_eq!(admin::get(&gate, "/api/v1/changes").await["changes"], json!([change]));
    assert_eq!(admin::get(&gate, "/api/v1/changes?limit=0").await["changes"], json!([]));
}

#[tokio::test]
async fn a_change_of_comments_changes_no_rules() {
    let origin = site(brief(TWO)).await;
    let gate = Gate::with(BRIEF).await;
    allowed(&gate.get(&origin.url("/x")).await, "no-rule");
    origin.change("/robots.txt", brief(SAME_AS_TWO));
    let change = changes(&gate, &origin, 1).await.remove(0);
    for (field, expected) in [
        ("rules", json!("unchanged")),
        ("groups", json!([])),
        ("effect", json!("none")),
        ("requests", json!(0)),
        ("statements_removed", json!(1)),
    ] {
        assert_eq!(change[field], expected, "{field}: {change}");
    }
    assert_eq!(counted(&gate, "none").await.as_deref(), Some("1"));
    let found = versions(&gate, &origin, 2).await;
    assert_eq!(found[1]["sha256"], sha256(SAME_AS_TWO));
    let output = history(&gate, &origin, &["--diff"]).await;
    assert!(output.out.ends_with("\nThe rules are the same.\n"), "{output:?}");
}

#[tokio::test]
async fn a_new_and_a_lost_robots_txt_are_changes_and_a_failure_is_not() {
    let missing = || Reply::status(404).header("Cache-Control", "max-age=1");
    let origin = site(missing()).await;
    let gate = Gate::with(&format!("{BRIEF}\n[robots.unreachable]\nretry-first = \"1s\"")).await;
    allowed(&gate.get(&origin.url("/news")).await, "no-robots");
    origin.change("/robots.txt", Reply::status(500));
    wait::until_async("a failure", async || {
        gate.get(&origin.url("/x")).await;
        let fetches = gate.fetches_of(&origin.url(""));
        fetches.iter().any(|fetch| fetch["status"] == 500).then_some(())
    })
    .await;

    origin.change("/robots.txt", brief(TWO));
    let change = changes(&gate, &origin, 1).await.remove(0);
    assert_eq!(
        (
            &change["robots_status_before"],
            &change["robots_sha256_before"],
            &change["robots_sha256"]
        ),
        (&json!(404), &Value::Null, &json!(sha256(TWO)))
    );
    assert_eq!(
        (&change["groups"][0]["change"], &change["rules_added"]),
        (&json!("added"), &json!(2))
    );
    assert_eq!(
        (&change["newly_denied"], &change["effect"]),
        (&json!(1), &json!("stricter"))
    );

    origin.change("/robots.txt", missing());
    let change = changes(&gate, &origin, 2).await.remove(1);
    assert_eq!(
        (
            &change["robots_sha256_before"],
            &change["robots_status"],
            &change["robots_sha256"]
        ),
        (&json!(sha256(TWO)), &json!(404), &Value::Null)
    );
    assert_eq!(
        (&change["groups"][0]["change"], &change["rules_removed"]),
        (&json!("removed"), &json!(2))
    );
    let found = versions(&gate, &origin, 3).await;
    let statuses: Vec<_> = found
        .iter()
        .map(|version| (&version["status"], version["sha256"].is_null()))
        .collect();
    assert_eq!(
        statuses,
        [(&json!(404), true), (&json!(200), false), (&json!(404), true)]
    );
}

#[tokio::test]
async fn a_change_while_robotgate_did_not_run_is_noticed() {
    let origin = site(brief(ONE)).await;
    let mut gate = Gate::with(BRIEF).await;
    allowed(&gate.get(&origin.url("/x")).await, "no-rule");
    gate.stop().await;
    origin.change("/robots.txt", brief(TWO));
    gate.start_again().await;
    let change = changes(&gate, &origin, 1).await.remove(0);
    assert_eq!(
        (&change["robots_sha256_before"], &change["robots_sha256"]),
        (&json!(sha256(ONE)), &json!(sha256(TWO)))
    );
    assert_eq!(
        (&change["rules_added"], &change["rules_removed"]),
        (&json!(1), &json!(1))
    );
    let found = versions(&gate, &origin, 2).await;
    assert_eq!(
        (&found[0]["sha256"], &found[1]["sha256"]),
        (&json!(sha256(ONE)), &json!(sha256(TWO)))
    );
}

#[tokio::test]
async fn waiting_changes_are_logged_before_the_stop() {
    let origin = site(brief(ONE)).await;
    let mut gate = Gate::with(BRIEF).await;
    wait::until_async("a stop after a fetch of another text", async || {
        gate.get(&origin.url("/x")).await;
        origin.change("/robots.txt", brief(TWO));
        gate.get(&origin.url("/x")).await;
        let fetches = gate.fetches_of(&origin.url(""));
        fetches
            .iter()
            .any(|fetch| fetch["robots_sha256"] == sha256(TWO))
            .then_some(())
    })
    .await;
    gate.stop().await;
    let events: Vec<_> = gate
        .whole_audit()
        .into_iter()
        .map(|record| record["event"].clone())
        .collect();
    assert_eq!(
        events.iter().filter(|event| **event == "robots-changed").count(),
        1,
        "{events:?}"
    );
    assert_eq!(events.last(), Some(&json!("stop")));
}

#[tokio::test]
async fn a_change_that_another_gate_fetched_is_noticed() {
    needs!("redis-server");
    let (server, origin) = (Redis::start().await, site(brief(ONE)).await);
    let config = format!("{BRIEF}\n[fleet]\nurl = \"{}\"", server.url());
    let (one, other) = (Gate::with(&config).await, Gate::with(&config).await);
    for gate in [&one, &other] {
        allowed(&gate.get(&origin.url("/x")).await, "no-rule");
    }
    origin.change(
        "/robots.txt",
        Reply::ok("text/plain", TWO).header("Cache-Control", "max-age=3600"),
    );
    let change = changes(&one, &origin, 1).await.remove(0);
    assert_eq!(change["source"], "site");
    let change = changes(&other, &origin, 1).await.remove(0);
    assert_eq!(change["source"], "fleet", "{change}");
    assert_eq!(
        (&change["robots_sha256_before"], &change["robots_sha256"]),
        (&json!(sha256(ONE)), &json!(sha256(TWO)))
    );
}

#[tokio::test]
async fn the_history_lists_the_versions_and_shows_what_changed() {
    let origin = site(brief(ONE)).await;
    let mut gate = Gate::with(BRIEF).await;
    allowed(&gate.get(&origin.url("/x")).await, "no-rule");
    let output = history(&gate, &origin, &["--diff"]).await;
    assert_eq!(output.code, Some(1), "one version cannot be compared: {output:?}");
    origin.change("/robots.txt", brief(TWO));
    changes(&gate, &origin, 1).await;
    let found = versions(&gate, &origin, 2).await;
    let first = gate.fetches_of(&origin.url("")).remove(0);
    assert_eq!(found[0]["first_seen"], first["time"]);
    assert!(
        found[0]["last_seen"].as_str() < found[1]["first_seen"].as_str(),
        "{found:?}"
    );
    assert_eq!(
        (&found[0]["bytes"], &found[0]["version"]),
        (&json!(ONE.len()), &json!(1))
    );

    for runs in [true, false] {
        if !runs {
            gate.stop().await;
        }
        let output = history(&gate, &origin, &[]).await;
        let lines: Vec<_> = output.out.lines().collect();
        assert!(lines[0].starts_with("VERSION  FIRST SEEN"), "{output:?}");
        assert!(
            lines[1].starts_with("1        20") && lines[1].ends_with(&sha256(ONE)[..12]),
            "{output:?}"
        );
        assert!(
            lines[2].starts_with("2        20") && lines[2].ends_with(&sha256(TWO)[..12]),
            "{output:?}"
        );
        assert_eq!(lines.len(), 3);

        let expected = "@@ -1,3 +1,5 @@\n+# stricter\n User-agent: *\n Disallow: /private\n-Disallow: /old\n\
                        +Disallow: /news\n+Sitemap: http://a.example/map.xml\n\nRules for *: 1 added, 1 removed\n";
        for args in [&["--diff"][..], &["--diff", "2"], &["--diff", &sha256(ONE)[..6], "2"]] {
            let output = history(&gate, &origin, args).await;
            assert!(
                output.out.starts_with("--- version 1, 20") && output.out.ends_with(expected),
                "{args:?}: {output:?}"
            );
        }
        let output = history(&gate, &origin, &["--diff", "2", "1", "--json"]).await;
        let found: Value = serde_json::from_str(&output.out).expect("JSON");
        assert_eq!(
            (
                &found["from"]["version"],
                &found["rules"],
                &found["groups"][0]["removed"]
            ),
            (
                &json!(2),
                &json!("changed"),
                &json!([{"line": 4, "rule": "Disallow: /news"}])
            )
        );
        let output = history(&gate, &origin, &["--show", "1"]).await;
        assert_eq!((&*output.out, output.code), (ONE, Some(0)));
        let output = history(&gate, &origin, &["--show", "3"]).await;
        assert_eq!(output.code, Some(1));
        assert!(output.errors.contains("there is no version \"3\""), "{output:?}");
    }
    let config = gate.file("robotgate.toml");
    let config = config.to_str().expect("the tests' paths are text");
    let output = CliOutput::of(&["cache", "history", "never.example", "--config", config], "").await;
    assert!(
        output
            .errors
            .contains("the store of evidence has no version of the robots.txt of https://never.example"),
        "{output:?}"
    );
    assert_eq!(output.code, Some(1));
}

#[tokio::test]
async fn without_evidence_there_is_no_history() {
    let origin = site(brief(ONE)).await;
    let gate = Gate::with(&format!("{BRIEF}\n[evidence]\nenabled = false")).await;
    allowed(&gate.get(&origin.url("/x")).await, "no-rule");
    origin.change("/robots.txt", brief(TWO));
    changes(&gate, &origin, 1).await;
    let output = history(&gate, &origin, &[]).await;
    assert!(output.errors.contains("no store of evidence, so"), "{output:?}");
    assert_eq!(output.code, Some(1));
}
