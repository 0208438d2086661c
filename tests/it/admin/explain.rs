//! `/api/v1/explain` gives the same explanation as `robotgate explain`, but with the proxy's copy.

use serde_json::{Value, json};

use super::{escaped, get};
use crate::support::{CliOutput, Gate, Origin};

const ROBOTS: &str = "User-agent: *\nAllow: /private/open\nDisallow: /private\nCrawl-delay: 5\n";

#[tokio::test]
async fn the_api_and_the_explain_command_give_the_same_report() {
    let origin = Origin::start().robots(ROBOTS).spawn().await;
    let gate = Gate::start().await;
    let url = origin.url("/private/open/x");
    let explained = get(&gate, &format!("/api/v1/explain?agent=TestBot&url={}", escaped(&url))).await;
    assert_eq!(explained["decision"]["rule"], "Allow: /private/open");
    assert_eq!(
        explained["file"],
        json!({"text": ROBOTS, "line": 2, "truncated": false})
    );
    let config = gate.file("robotgate.toml");
    let args = [
        "explain",
        "--config",
        config.to_str().unwrap(),
        "--json",
        "--agent",
        "TestBot",
        &url,
    ];
    let mut command: Value = serde_json::from_str(&CliOutput::of(&args, "").await.out).unwrap();
    let mut report = explained["report"].clone();
    for report in [&mut command, &mut report] {
        // These fields differ between two fetches, or only the command knows them.
        for field in ["fetched", "expires", "duration_us", "cut"] {
            assert!(
                report["robots"].as_object_mut().unwrap().remove(field).is_some(),
                "{field}"
            );
        }
    }
    assert_eq!(report, command);
    assert_eq!(report["competitors"][0]["lost"], "shorter-match");
}

#[tokio::test]
async fn explain_has_no_file_if_no_file_decides() {
    let origin = Origin::start().spawn().await;
    let gate = Gate::start().await;
    for (agent, reason) in [("TestBot", "no-robots"), ("Mozilla/5.0", "unidentified")] {
        let url = escaped(&origin.url("/x"));
        let explained = get(&gate, &format!("/api/v1/explain?agent={agent}&url={url}")).await;
        assert_eq!(explained["decision"]["reason"], reason);
        assert_eq!(explained["report"]["reason"], reason);
        assert_eq!(explained["file"], Value::Null);
    }
}
