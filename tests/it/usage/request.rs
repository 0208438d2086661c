//! What a robots.txt says about the purposes of a bot, and which requests are refused because of it.

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{Alpn, Gate, NAME, Origin, allowed, refused};

const SIGNAL: &str = "User-agent: *\nDisallow: /private\nContent-Signal: search=yes, ai-input=no, ai-train=no\n";
const USAGE: &str = "User-agent: *\nDisallow: /private\nContent-Usage: train-ai=n, search=y\n";
const SILENT: &str = "User-agent: *\nDisallow: /private\n";

fn config(policies: &str) -> String {
    let bots = ["search", "ai-input", "ai-train", "tdm"].map(|purpose| {
        format!("[[bot]]\nname = \"{purpose}-bot\"\nuser-agents = [\"{purpose}-bot\"]\npurposes = [\"{purpose}\"]\n")
    });
    format!("[usage]\n{policies}\n{}", bots.concat())
}

async fn site(robots: &str) -> Origin {
    Origin::start().robots(robots).anything("page").spawn().await
}

#[tokio::test]
async fn a_bot_is_refused_where_the_site_forbids_its_purpose() {
    let gate = Gate::with(&config(
        "content-signal = \"enforce\"\ncontent-usage = \"enforce\"\ntdmrep = \"off\"",
    ))
    .await;
    for (robots, refusals) in [
        (SILENT, &[][..]),
        (
            SIGNAL,
            &[
                ("ai-input", "content-signal", "ai-input", "no", "3"),
                ("ai-train", "content-signal", "ai-train", "no", "3"),
            ],
        ),
        (USAGE, &[("ai-train", "content-usage", "train-ai", "n", "3")]),
    ] {
        let origin = site(robots).await;
        for purpose in ["search", "ai-input", "ai-train", "tdm"] {
            let ask = |path: &str| gate.get(&origin.url(path)).user_agent(&format!("{purpose}-bot/1.0"));
            refused(&ask("/private").await, "rule");
            let response = ask("/page").await;
            let Some((_, vocabulary, key, value, line)) = refusals.iter().find(|refusal| refusal.0 == purpose) else {
                allowed(&response, "no-rule");
                continue;
            };
            let field = refused(&response, "usage");
            let found = ["vocabulary", "purpose", "key", "value", "line"].map(|name| field.param(name));
            let expected = [vocabulary, &purpose, key, value, line].map(|text| Some((*text).to_owned()));
            assert_eq!(found, expected, "{robots}");
        }
        assert_eq!(origin.count("/private"), 0);
        assert_eq!(origin.count("/page"), 4 - refusals.len(), "{robots}");
    }
}

#[tokio::test]
async fn the_refusal_and_the_log_say_what_the_site_says() {
    let gate = Gate::with(&config("content-usage = \"enforce\"")).await;
    let origin = site(USAGE).await;
    let response = gate.get(&origin.url("/page")).user_agent("ai-train-bot/1.0").await;
    refused(&response, "usage");
    let said = json!({
        "purpose": "ai-train", "vocabulary": "content-usage", "key": "train-ai", "value": "n", "line": 3,
        "policy": "enforce",
    });
    let mut refused = said.clone();
    refused["why"] = json!("forbidden");
    let body: Value = response.json();
    assert_eq!(body["usage"], refused);
    let detail = body["detail"].as_str().expect("a text");
    assert!(
        detail.contains("Line 3 of the robots.txt says Content-Usage: train-ai=n, which forbids the purpose ai-train."),
        "{detail}"
    );
    let decision = gate.decision_for(&origin.url("/page")).await;
    let expected =
        json!({"purposes": ["ai-train"], "said": [said], "refused": refused, "tdmrep": null, "tdmrep_sha256": null});
    assert_eq!(decision["usage"], expected);
}

#[tokio::test]
async fn a_use_that_is_only_reported_is_forwarded_and_logged() {
    let gate = Gate::with(&config("content-signal = \"off\"")).await;
    let origin = site(&format!("{USAGE}Content-Signal: ai-train=no\n")).await;
    let field = allowed(
        &gate.get(&origin.url("/page")).user_agent("ai-train-bot/1.0").await,
        "no-rule",
    );
    assert_eq!(field.param("vocabulary").as_deref(), Some("content-usage"));
    assert_eq!(field.param("purpose").as_deref(), Some("ai-train"));
    let decision = gate.decision_for(&origin.url("/page")).await;
    assert_eq!(decision["usage"]["refused"], Value::Null);
    assert_eq!(
        decision["usage"]["said"].as_array().map(Vec::len),
        Some(1),
        "{decision}"
    );
    assert_eq!(decision["usage"]["said"][0]["policy"], "report");
    allowed(&gate.get(&origin.url("/page")).await, "no-rule");
    let other = gate
        .audit()
        .into_iter()
        .rev()
        .find(|record| record["event"] == "decision");
    assert_eq!(
        other.expect("a decision")["usage"],
        Value::Null,
        "a bot without purposes"
    );
}

#[tokio::test]
async fn a_purpose_that_the_site_does_not_mention_can_be_refused() {
    let gate = Gate::with(&config(
        "content-usage = \"enforce\"\ntdmrep = \"off\"\nunknown = \"deny\"",
    ))
    .await;
    let origin = site(USAGE).await;
    allowed(
        &gate.get(&origin.url("/page")).user_agent("search-bot/1.0").await,
        "no-rule",
    );
    let field = refused(&gate.get(&origin.url("/page")).user_agent("tdm-bot/1.0").await, "usage");
    assert_eq!(field.param("purpose").as_deref(), Some("tdm"));
    assert_eq!(field.param("vocabulary"), None);
    allowed(
        &gate.get(&origin.url("/robots.txt")).user_agent("tdm-bot/1.0").await,
        "robots-file",
    );
}

#[tokio::test]
async fn usage_is_decided_for_intercepted_requests_too() {
    for protocol in [Alpn::Http1, Alpn::Http2] {
        let gate = Gate::with(&config("content-usage = \"enforce\"")).await;
        let origin = Origin::start().tls().robots(USAGE).anything("page").spawn().await;
        for (bot, is_refused) in [("ai-train-bot/1.0", true), ("search-bot/1.0", false)] {
            let opened = gate.connect(&origin.authority()).await.opened();
            let mut inside = opened.tls(NAME, protocol).await;
            let response = inside.get("/page").user_agent(bot).await;
            match is_refused {
                true => assert_eq!(refused(&response, "usage").param("line").as_deref(), Some("3")),
                false => assert_eq!(allowed(&response, "no-rule").param("line"), None),
            }
        }
    }
}

#[tokio::test]
async fn purposes_that_change_by_a_reload_apply_to_the_next_decision() {
    let bot = |purposes: &str| {
        format!(
            "[usage]\ncontent-usage = \"enforce\"\n[[bot]]\nname = \"acme\"\nuser-agents = [\"TestBot\"]\n{purposes}"
        )
    };
    let gate = Gate::with(&bot("")).await;
    let origin = site(USAGE).await;
    let url = origin.url("/page");
    let mut requests = JoinSet::new();
    for _ in 0..40 {
        requests.spawn(gate.get(&url).into_future());
    }
    gate.reconfigure(&bot("purposes = [\"ai-train\"]\n"));
    while gate.logged("configuration reloaded") == 0 {
        requests.spawn(gate.get(&url).into_future());
        assert!(requests.join_next().await.expect("a request").expect("it ends").status != 502);
    }
    for _ in 0..40 {
        requests.spawn(gate.get(&url).into_future());
    }
    let statuses: Vec<u16> = requests
        .join_all()
        .await
        .iter()
        .map(|response| response.status)
        .collect();
    assert!(
        statuses.iter().all(|status| matches!(status, 200 | 403)),
        "{statuses:?}"
    );
    let audit = gate.audit();
    let decisions: Vec<&Value> = audit.iter().filter(|record| record["event"] == "decision").collect();
    for decision in &decisions {
        let is_refused = decision["reason"] == "usage";
        assert_eq!(is_refused, decision["config"] == 2, "{decision}");
    }
    assert!(decisions.iter().any(|decision| decision["reason"] == "usage"));
}
