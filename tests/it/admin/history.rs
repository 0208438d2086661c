//! `/api/v1/history`: counts of recent decisions and answers. The history survives a restart.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::Value;

use super::{escaped, get, problem};
use crate::support::{Gate, Origin, ROBOTS, Reply, allowed, refused, wait};

fn total(history: &Value, name: &str) -> u64 {
    let series = history["series"].as_array().expect("series").iter();
    let found = series.clone().find(|series| series["name"] == name);
    found.map_or(0, |series| series["total"].as_u64().expect("a number"))
}

/// Waits until the series `name` has the total `count`, and returns the history.
async fn until(gate: &Gate, query: &str, name: &str, count: u64) -> Value {
    wait::until_async(&format!("{count} {name}"), async || {
        let history = get(gate, &format!("/api/v1/history?{query}")).await;
        (total(&history, name) == count).then_some(history)
    })
    .await
}

#[tokio::test]
async fn the_history_counts_decisions_and_says_what_stands_out() {
    let origin = Origin::start()
        .robots(ROBOTS)
        .page("/", "page")
        .reply("/broken", Reply::status(500))
        .spawn()
        .await;
    let gate = Gate::with("[[bot]]\nname = 'Acme'\nuser-agents = ['Acme']").await;
    let empty = get(&gate, "/api/v1/history").await;
    assert_eq!(empty["series"], Value::Array(Vec::new()));
    for _ in 0..3 {
        refused(&gate.get(&origin.url("/private")).user_agent("Acme").await, "rule");
    }
    allowed(&gate.get(&origin.url("/")).user_agent("Acme").await, "no-rule");
    gate.get(&origin.url("/broken")).user_agent("Acme").await;
    refused(
        &gate.get(&origin.url("/")).user_agent("Mozilla/5.0").await,
        "unidentified",
    );

    let site = origin.url("");
    let history = until(&gate, "from=1h", "deny", 4).await;
    assert_eq!(total(&history, "allow"), 2);
    assert_eq!(history["step"], 60);
    let first = &history["refusals"][0];
    assert_eq!(
        (
            &first["site"],
            &first["bot"],
            &first["rule"],
            &first["reason"],
            &first["count"]
        ),
        (
            &site.clone().into(),
            &"Acme".into(),
            &"Disallow: /private".into(),
            &"rule".into(),
            &3.into()
        )
    );
    assert_eq!(history["refusals"][1]["bot"], Value::Null);
    assert_eq!(history["bots"][0]["bot"], "Acme");
    // The history adds the counts of sites only every few seconds, so wait for them.
    let history = until(&gate, "from=1h&by=answer", "failed", 1).await;
    assert_eq!(total(&history, "answered"), 1);
    let failing = &history["failing_sites"][0];
    assert_eq!(
        (&failing["site"], &failing["failed"], &failing["requests"]),
        (&site.clone().into(), &1.into(), &5.into())
    );
    assert!(history["slow_sites"][0]["mean_us"].is_u64());
    for (query, name, count) in [
        ("by=reason", "rule", 3),
        ("by=reason&only=refusals", "no-rule", 0),
        ("by=bot", "Acme", 5),
        ("by=bot&only=refusals", "Acme", 3),
        ("bot=Acme", "deny", 3),
    ] {
        let history = get(&gate, &format!("/api/v1/history?from=10m&{query}")).await;
        assert_eq!(total(&history, name), count, "{query}");
    }
    let history = get(&gate, &format!("/api/v1/history?site={}", escaped(&site))).await;
    assert_eq!((total(&history, "deny"), total(&history, "allow")), (3, 2));
    // A period this short is counted in steps of two seconds.
    let history = get(&gate, "/api/v1/history?from=5m").await;
    assert_eq!((total(&history, "deny"), &history["step"]), (4, &2.into()));
    assert_eq!(history["refusals"][0]["count"], 3);
}

#[tokio::test]
async fn a_client_that_does_not_read_is_not_counted_as_a_site_failure() {
    let origin = Origin::start()
        .robots(ROBOTS)
        .page("/large", &"x".repeat(64 << 20))
        .spawn()
        .await;
    let gate = Gate::with("[proxy]\nwrite-timeout = '200ms'").await;
    let url = origin.url("/large");
    let mut client = gate.dial().await;
    client
        .send(format!(
            "GET {url} HTTP/1.1\r\nHost: {}\r\nUser-Agent: TestBot/1.0\r\n\r\n",
            origin.authority()
        ))
        .await;

    let completion = gate.completion_of(&gate.decision_for(&url).await).await;
    assert_eq!(completion["error"], "connection_write_timeout", "{completion:#}");
    let ended = wait::until_async("the end in the history", async || {
        let history = get(&gate, "/api/v1/history?from=1h&by=answer").await;
        (history["series"] != Value::Array(Vec::new())).then_some(history)
    })
    .await;
    assert_eq!(
        (total(&ended, "answered"), total(&ended, "failed")),
        (1, 0),
        "{ended:#}"
    );
    assert_eq!(ended["failing_sites"], Value::Array(Vec::new()));
}

#[tokio::test]
async fn requests_forwarded_despite_robots_txt_are_not_counted_as_refusals() {
    let origin = Origin::start().robots(ROBOTS).page("/private", "page").spawn().await;
    let gate = Gate::with("[[bot]]\nname = 'Trial'\nuser-agents = ['Trial']\nenforcement = 'report'").await;
    for _ in 0..2 {
        gate.get(&origin.url("/private")).user_agent("Trial").await;
    }
    refused(&gate.get(&origin.url("/private")).user_agent("Other").await, "rule");
    let history = until(&gate, "from=1h&by=site", &origin.url(""), 3).await;
    assert_eq!(
        history["refusals"].as_array().map(|rows| rows.len()),
        Some(1),
        "{history:#}"
    );
    assert_eq!(history["refusals"][0]["bot"], "Other");
    assert_eq!(history["refused_bots"].as_array().map(|rows| rows.len()), Some(1));
    let not_enforced = &history["not_enforced"][0];
    for (field, value) in [
        ("bot", Value::from("Trial")),
        ("rule", "Disallow: /private".into()),
        ("verdict", "deny".into()),
        ("count", 2.into()),
    ] {
        assert_eq!(not_enforced[field], value, "{field}: {history:#}");
    }
    let of_bot = |name| {
        let bots = history["bots"].as_array().expect("bots").iter();
        let mut found = bots.filter(|row| row["bot"] == name);
        let row = found.next().expect("the bot");
        (row["deny"].clone(), row["not_enforced"].clone())
    };
    assert_eq!(of_bot("Trial"), (0.into(), 2.into()));
    assert_eq!(of_bot("other"), (1.into(), 0.into()));
    let site = &history["refused_sites"][0];
    assert_eq!((&site["refused"], &site["not_enforced"]), (&1.into(), &2.into()));
    let history = get(&gate, "/api/v1/history?from=1h").await;
    assert_eq!((total(&history, "deny"), total(&history, "not-enforced")), (1, 2));
    for (bot, series, rows) in [("other", 1, 1), ("Other", 0, 0), ("Trial", 0, 0), ("none", 0, 0)] {
        let history = get(&gate, &format!("/api/v1/history?from=1h&bot={bot}")).await;
        let refusals = history["refusals"].as_array().expect("rows");
        assert_eq!(
            (total(&history, "deny"), refusals.len()),
            (series, rows),
            "{bot}: {history:#}"
        );
        assert!(
            refusals
                .iter()
                .all(|row| (&row["bot"], &row["bot_label"]) == (&"Other".into(), &"other".into()))
        );
    }
    let history = get(&gate, "/api/v1/history?from=1h&only=refusals&by=reason").await;
    assert_eq!(total(&history, "rule"), 1);
}

#[tokio::test]
async fn the_error_for_a_bad_history_query_says_what_is_wrong() {
    let gate = Gate::start().await;
    for (query, error) in [
        ("from=yesterday", "\"yesterday\" is not a time; write"),
        ("by=host", "\"host\" is not one of verdict"),
        ("from=1h&until=2h", "from is not before until"),
        ("step=5", "there is no parameter step"),
    ] {
        let detail = problem(&gate, &format!("/api/v1/history?{query}"), 400).await;
        assert!(detail.contains(error), "{query}: {detail}");
    }
    let query = "from=2026-01-01T00:00:00Z&until=2026-01-02T00:00:00Z";
    let history = get(&gate, &format!("/api/v1/history?{query}")).await;
    assert_eq!(history["series"], Value::Array(Vec::new()));
}

#[tokio::test]
async fn the_history_continues_after_a_restart() {
    let origin = Origin::start().robots(ROBOTS).spawn().await;
    let mut gate = Gate::start().await;
    refused(&gate.get(&origin.url("/private")).await, "rule");
    assert!(gate.stop().await.success());
    let file = gate.file("robots.redb.history");
    let mode = fs::metadata(&file).expect("it was saved").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    gate.start_again().await;
    let history = until(&gate, "from=1h", "deny", 1).await;
    assert_eq!(history["refusals"][0]["rule"], "Disallow: /private");
    refused(&gate.get(&origin.url("/private")).await, "rule");
    until(&gate, "from=1h", "deny", 2).await;
}

#[tokio::test]
async fn a_damaged_history_is_reported_and_replaced() {
    let origin = Origin::start().robots(ROBOTS).spawn().await;
    let mut gate = Gate::start().await;
    assert!(gate.stop().await.success());
    fs::write(gate.file("robots.redb.history"), "{").expect("the folder can be written");
    gate.start_again().await;
    assert_eq!(
        gate.logged(
            "the history on the page for operators begins empty, because its file cannot be used; robotgate \
             tries to overwrite this file within a minute"
        ),
        1
    );
    refused(&gate.get(&origin.url("/private")).await, "rule");
    assert!(gate.stop().await.success());
    gate.start_again().await;
    until(&gate, "from=1h", "deny", 1).await;
}

#[tokio::test]
async fn a_history_that_cannot_be_saved_does_not_stop_the_proxy() {
    let origin = Origin::start().robots(ROBOTS).spawn().await;
    let mut gate = Gate::start().await;
    // Not even root can write the file if there is a folder with its name.
    fs::create_dir(gate.file("robots.redb.history")).expect("a folder");
    refused(&gate.get(&origin.url("/private")).await, "rule");
    assert!(gate.stop().await.success());
    assert_eq!(
        gate.logged(
            "the history on the page for operators cannot be saved; robotgate tries again every minute until it \
             stops, and then loses what is not saved"
        ),
        1
    );
    let left = fs::read_dir(gate.file("")).expect("a folder");
    let unfinished = left
        .filter_map(Result::ok)
        .filter(|file| file.file_name().to_string_lossy().contains("unfinished"));
    assert_eq!(unfinished.count(), 0);
    gate.start_again().await;
    refused(&gate.get(&origin.url("/private")).await, "rule");
}
