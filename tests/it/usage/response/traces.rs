//! What the log, the metrics and the history say if a field of a response forbids the bot's use, also if robotgate then
//! withholds the response.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    path::Path,
    sync::{Arc, Mutex},
};

use rustix::fs::{CWD, Mode, OFlags, mkfifoat};

use super::*;
use crate::support::{failed, wait};

/// A site could fill the log if each repetition were logged.
#[tokio::test]
async fn a_label_that_is_repeated_is_logged_once() {
    let origin = origin(&[]).await;
    let gate = Gate::with(&config("report")).await;
    let mut connection = gate.dial().await;
    let many = vec!["noai"; 1000].join(", ");

    ask(
        &mut connection,
        ("GET", "/x"),
        &origin,
        WAYS[0],
        ("X-Robots-Tag", &many, "Trainer"),
    )
    .await;

    let records = records(&gate, &origin.url("/x")).await;
    assert_eq!(records[1]["usage"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_withdrawn_response_that_cannot_be_logged_is_a_503() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("audit.pipe");
    mkfifoat(CWD, &pipe, Mode::from_raw_mode(0o600)).unwrap();
    let reading = rustix::fs::open(
        &pipe,
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .unwrap();
    let reader = Arc::new(Mutex::new(Some(File::from(reading))));
    let origin = Origin::start().otherwise({
        let reader = reader.clone();
        move |request| match is_page(request) {
            false => Reply::status(404),
            // From now on, every write to the log fails.
            true => {
                reader.lock().unwrap().take();
                Reply::ok("text/plain", PAGE).header("Content-Usage", "train-ai=n")
            }
        }
    });
    let origin = origin.spawn().await;
    let gate = gate_that_logs_to(&pipe).await;

    let response = gate.get(&origin.url("/x")).user_agent("Trainer").await;

    failed(&response, 503, &["proxy_internal_error"]);
    assert!(!response.text().contains(PAGE), "{response:#?}");
    assert!(response.field("Robots-Decision").is_none(), "{response:#?}");
    assert_eq!(origin.count("/x"), 1);
}

/// The stalled log gets the `withdrawn` record only later, but the counts must already include the request as refused.
#[tokio::test]
async fn a_withdrawn_response_is_counted_as_refused_while_the_log_is_stalled() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("audit.pipe");
    mkfifoat(CWD, &pipe, Mode::from_raw_mode(0o600)).unwrap();
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let end = Arc::new(File::from(rustix::fs::open(&pipe, flags, Mode::empty()).unwrap()));
    let origin = Origin::start().otherwise({
        let end = end.clone();
        move |request| match is_page(request) {
            false => Reply::status(404),
            true => {
                // Fill the pipe completely: single bytes fill the room that is too small for larger writes.
                for size in [4096, 1] {
                    while (&*end).write(&b"\n".repeat(size)).is_ok() {}
                }
                Reply::ok("text/plain", PAGE).header("Content-Usage", "train-ai=n")
            }
        }
    });
    let origin = origin.spawn().await;
    let gate = gate_that_logs_to(&pipe).await;
    let url = origin.url("/x");
    let request = tokio::spawn(gate.get(&url).user_agent("Trainer").into_future());

    wait::until_async("the withdrawal in the counts", async || {
        let decisions = gate.admin("/api/v1/status").await.json()["decisions"].clone();
        ((&decisions["allow"], &decisions["deny"]) == (&json!(0), &json!(1))).then_some(())
    })
    .await;
    let listed = gate.admin("/api/v1/refusals").await.text();
    assert!(listed.contains(&url), "{listed}");

    let written = wait::until_async("the line in the log", async || {
        let mut text = Vec::new();
        let _ = (&*end).read_to_end(&mut text);
        let text = String::from_utf8(text).unwrap();
        text.contains(r#""event":"withdrawn""#).then_some(text)
    })
    .await;
    assert!(written.contains(&url), "{written}");
    // If the log took too long, the client has an error by now. The counts stay the same.
    let _ = request.await;
    let text = gate.admin("/metrics").await.text();
    let allowed = text.lines().filter(|line| {
        line.starts_with("robotgate_decisions_total") && line.contains("allow") && !line.ends_with(" 0")
    });
    assert_eq!(allowed.count(), 0, "{text}");
}

#[tokio::test]
async fn withdrawn_responses_are_counted_as_refused() {
    let origin = origin(&[]).await;
    let gate = Gate::with(&config("enforce")).await;
    for (number, (name, value, bot, _)) in FORBIDDING.into_iter().enumerate() {
        let mut connection = gate.dial().await;
        let path = format!("/{number}");
        ask(&mut connection, ("GET", &path), &origin, WAYS[0], (name, value, bot)).await;
        records(&gate, &origin.url(&path)).await;
    }
    for line in [
        r#"robotgate_withdrawn_total{vocabulary="content-usage",purpose="search"} 1"#,
        r#"robotgate_withdrawn_total{vocabulary="content-usage",purpose="ai-train"} 2"#,
        r#"robotgate_withdrawn_total{vocabulary="tdmrep",purpose="tdm"} 1"#,
        r#"robotgate_withdrawn_total{vocabulary="x-robots-tag",purpose="ai-train"} 6"#,
        r#"robotgate_usage_total{vocabulary="x-robots-tag",purpose="ai-train",policy="enforce"} 6"#,
        r#"robotgate_decisions_total{verdict="deny",reason="usage",bot="Trainer",enforcement="enforce",forwarded="false"} 9"#,
        r#"robotgate_requests_total{method="GET",outcome="refused"} 10"#,
        r#"robotgate_requests_total{method="GET",outcome="forwarded"} 0"#,
        r#"robotgate_responses_total{class="4xx"} 10"#,
        r#"robotgate_responses_total{class="2xx"} 0"#,
    ] {
        wait::until_async(line, async || {
            let text = gate.admin("/metrics").await.text();
            text.lines().any(|found| found == line).then_some(())
        })
        .await;
    }
    let history = wait::until_async("the history", async || {
        let history = gate.admin("/api/v1/history?from=1h").await.json();
        let sites = history["refused_sites"].as_array().expect("sites").len();
        (sites > 0 && history["refusals"] != json!([])).then_some(history)
    })
    .await;
    let refusals = history["refusals"].as_array().unwrap().iter();
    let refused: u64 = refusals.map(|row| row["count"].as_u64().unwrap()).sum();
    assert_eq!(refused, 10);
    let series = history["series"].as_array().unwrap().iter();
    let series: Vec<_> = series.map(|series| (&series["name"], &series["total"])).collect();
    assert_eq!(series, [(&json!("deny"), &json!(10))]);
    let site = &history["refused_sites"][0];
    assert_eq!((&site["requests"], &site["refused"]), (&json!(10), &json!(10)));
    let decisions = gate.admin("/api/v1/status").await.json()["decisions"].clone();
    assert_eq!((&decisions["allow"], &decisions["deny"]), (&json!(0), &json!(10)));
}

#[tokio::test]
async fn the_url_of_a_withdrawn_response_is_redacted() {
    let origin = origin(&[]).await;
    let gate = Gate::with(&format!("[audit]\nredact-query = ['token']\n{}", config("enforce"))).await;
    let (name, value, bot, _) = FORBIDDING[0];
    let mut connection = gate.dial().await;

    ask(
        &mut connection,
        ("GET", "/x?token=hunter2"),
        &origin,
        WAYS[0],
        (name, value, bot),
    )
    .await;

    let records = records(&gate, &origin.url("/x?token=redacted")).await;
    assert_eq!(records[1]["url"], origin.url("/x?token=redacted"));
}

async fn gate_that_logs_to(pipe: &Path) -> Gate {
    let path = pipe.display().to_string();
    Gate::with(&format!("[audit]\npath = {path:?}\n{}", config("enforce"))).await
}
