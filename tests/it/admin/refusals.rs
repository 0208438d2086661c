//! `/api/v1/refusals`: the latest refusals, as in the log.

use serde_json::{Value, json};

use super::get;
use crate::support::{Gate, Origin};

const ROBOTS: &str = "User-agent: *\nDisallow: /private\n";

fn urls(tail: &Value) -> Vec<String> {
    let refusals = tail["refusals"].as_array().unwrap().iter();
    refusals
        .map(|refusal| refusal["url"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn refusals_are_listed_as_they_were_logged() {
    let origin = Origin::start().robots(ROBOTS).page("/", "page").spawn().await;
    let config = "[audit]\nredact-query = true\n[[bot]]\nname = 'Watched'\nuser-agents = ['Watched']\n\
                  enforcement = 'report'";
    let gate = Gate::with(config).await;
    gate.get(&origin.url("/")).await;
    gate.get(&origin.url("/private?secret=x")).await;
    gate.get(&origin.url("/private/2")).user_agent("Watched").await;
    gate.get(&origin.url("/3")).user_agent("Mozilla/5.0").await;
    let tail = get(&gate, "/api/v1/refusals").await;
    assert_eq!((&tail["next"], &tail["missed"]), (&json!(3), &json!(0)));
    let logged: Vec<Value> = (gate.audit().into_iter())
        .filter(|record| record["event"] == "decision" && record["verdict"] != "allow")
        .collect();
    assert_eq!(logged.len(), 3);
    for (number, (listed, mut logged)) in tail["refusals"].as_array().unwrap().iter().zip(logged).enumerate() {
        logged["seq"] = json!(number + 1);
        assert_eq!(*listed, logged);
    }
    assert!(!tail.to_string().contains("secret"));
    assert_eq!(tail["refusals"][1]["enforcement"], "report");
    let reasons = tail["reasons"].as_object().unwrap();
    assert!(reasons.keys().eq(["rule", "unidentified"]), "{reasons:?}");
    assert_eq!(
        reasons["unidentified"],
        robotgate::decision::Reason::Unidentified.sentence()
    );
}

#[tokio::test]
async fn a_client_that_polls_gets_each_refusal_once() {
    let origin = Origin::start().robots(ROBOTS).spawn().await;
    let gate = Gate::start().await;
    let all: Vec<String> = (0..5).map(|number| origin.url(&format!("/private/{number}"))).collect();
    for url in &all {
        gate.get(url).await;
    }
    let last = get(&gate, "/api/v1/refusals?limit=2").await;
    assert_eq!(urls(&last), all[3..]);
    let (mut seen, mut after) = (Vec::new(), 0);
    while let tail = get(&gate, &format!("/api/v1/refusals?after={after}&limit=2")).await
        && !urls(&tail).is_empty()
    {
        seen.extend(urls(&tail));
        after = tail["next"].as_u64().unwrap();
    }
    assert_eq!((seen, after), (all, 5));
}
