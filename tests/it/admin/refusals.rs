//! `/api/v1/refusals`: the latest refusals, as in the log.

use serde_json::{Value, json};

use super::{escaped, get, problem};
use crate::support::{Gate, Origin, ROBOTS};

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
        logged["why"] = match logged["line"].as_u64() {
            Some(line) => json!(format!("line {line}: {}", logged["rule"].as_str().unwrap())),
            None => tail["reasons"]["unidentified"].clone(),
        };
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
    for (query, found, held) in [("limit=2", 5, 5), ("after=1&limit=2", 4, 5), ("after=1&limit=9", 4, 5)] {
        let tail = get(&gate, &format!("/api/v1/refusals?{query}")).await;
        assert_eq!(
            (&tail["found"], &tail["held"]),
            (&json!(found), &json!(held)),
            "{query}"
        );
    }
    let (mut seen, mut after) = (Vec::new(), 0);
    while let tail = get(&gate, &format!("/api/v1/refusals?after={after}&limit=2")).await
        && !urls(&tail).is_empty()
    {
        seen.extend(urls(&tail));
        after = tail["next"].as_u64().unwrap();
    }
    assert_eq!((seen, after), (all, 5));
}

#[tokio::test]
async fn a_filter_selects_refusals() {
    let (origin, other) = (
        Origin::start().robots(ROBOTS).spawn().await,
        Origin::start().robots(ROBOTS).spawn().await,
    );
    let gate = Gate::start().await;
    let mut expected = Vec::new();
    for number in 0..4 {
        let url = origin.url(&format!("/private/{number}"));
        gate.get(&url).user_agent("Acme/1.0").await;
        gate.get(&other.url("/private")).user_agent("Other/1.0").await;
        expected.push(url);
    }
    let filter = escaped(&format!("bot:acme reason:rule site:{} since:1h", origin.url("")));
    let found = get(&gate, &format!("/api/v1/refusals?filter={filter}&limit=3")).await;
    assert_eq!(urls(&found), expected[1..], "the latest");
    assert_eq!(
        (&found["found"], &found["held"], &found["next"]),
        (&json!(4), &json!(8), &json!(8))
    );
    assert!(found["oldest"].is_string());
    let first = get(&gate, &format!("/api/v1/refusals?filter={filter}&after=0&limit=3")).await;
    assert_eq!((urls(&first), &first["next"]), (expected[..3].to_vec(), &json!(5)));
    let rest = get(&gate, &format!("/api/v1/refusals?filter={filter}&after=5&limit=3")).await;
    assert_eq!((urls(&rest), &rest["next"]), (expected[3..].to_vec(), &json!(8)));
    let detail = problem(&gate, "/api/v1/refusals?filter=host:a", 400).await;
    assert!(
        detail.contains("there is no field \"host\"; the fields are bot, verdict"),
        "{detail}"
    );
}

#[tokio::test]
async fn refusals_are_saved_as_a_table_and_as_lines() {
    let origin = Origin::start().robots(ROBOTS).spawn().await;
    let gate = Gate::start().await;
    gate.get(&origin.url("/private/a,b")).user_agent("Acme/1.0").await;
    gate.get(&origin.url("/private/2")).user_agent("=cmd()").await;
    let lines = gate.admin("/api/v1/refusals.jsonl?filter=bot:acme").await;
    assert_eq!(lines.field("content-type"), Some("application/jsonl"));
    let logged = gate.audit().into_iter().find(|record| record["bot"] == "Acme");
    assert_eq!(serde_json::from_str::<Value>(&lines.text()).ok(), logged);
    let table = gate.admin("/api/v1/refusals.csv").await;
    assert_eq!(
        table.field("content-disposition"),
        Some("attachment; filename=\"refusals.csv\"")
    );
    let text = table.text();
    let rows: Vec<_> = text.split_terminator("\r\n").collect();
    assert_eq!(rows.len(), 3, "{text}");
    assert!(
        rows[0].starts_with("time,id,verdict,reason,enforcement,forwarded,bot,user_agent,client"),
        "{text}"
    );
    let url = format!(",\"{}\",", origin.url("/private/a,b"));
    assert!(
        rows[1].contains(",deny,rule,enforce,false,Acme,Acme/1.0,") && rows[1].contains(&url),
        "{text}"
    );
    assert!(rows[2].contains(",deny,unidentified,enforce,false,,'=cmd(),"), "{text}");
    let empty = gate.admin("/api/v1/refusals.csv?filter=bot:nobody").await;
    assert_eq!(empty.text().lines().count(), 1);
    problem(&gate, "/api/v1/refusals.csv?filter=host:a", 400).await;
}
