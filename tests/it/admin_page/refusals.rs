//! The list of requests that were not allowed: what it shows, its filters, and the link from a request to the
//! explanation of its decision.

use robotgate::bot::SecretHash;

use super::*;
use crate::support::refused;

fn last_id(gate: &Gate, verdict: &str, reason: &str) -> String {
    let records = gate.audit();
    let last = records.iter().rfind(|record| record["event"] == "decision");
    let last = last.expect("a decision");
    assert_eq!((&last["verdict"], &last["reason"]), (&json!(verdict), &json!(reason)));
    last["id"].as_str().expect("an id").to_owned()
}

#[tokio::test]
async fn the_page_shows_decisions_and_their_reasons() {
    needs!("python3", "chromium");
    let (origin, gate) = (origin().await, Gate::start().await);
    let mut operator = Operator::open(&gate).await;
    operator.perform(json!(["ready"])).await;
    operator.perform(json!(["counted", "deny", "0"])).await;

    for _ in 0..3 {
        allowed(&gate.get(&origin.url("/x")).await, "no-rule");
    }
    operator.perform(json!(["counted", "allow", "3"])).await;
    let url = origin.url("/private/%3Cscript%3Ealert(1)%3C/script%3E?'&quot;");
    refused(&gate.get(&url).await, "rule");
    operator.perform(json!(["counted", "deny", "1"])).await;
    operator
        .perform(json!(["refusal", url, "deny, rule", "line 4: Disallow: /private"]))
        .await;
    operator.perform(json!(["filtered", "nobody-says-this", 0])).await;
    // The search covers only some fields of the record, such as the id.
    for (text, count) in [
        ("\"disallow: /private\"", 1),
        ("line 4", 1),
        ("enforce", 0),
        ("robots.txt", 0),
    ] {
        operator.perform(json!(["filtered", text, count])).await;
    }
    let records = gate.audit();
    let refusal = records.iter().find(|record| record["verdict"] == "deny");
    let id = &refusal.expect("a refusal")["id"];
    operator.perform(json!(["filtered", id, 1])).await;
    operator
        .perform(json!(["opened", id, "Why: the rule in its robots.txt"]))
        .await;
    operator.perform(json!(["why", "Disallow: /private"])).await;
    operator.close().await;
}

#[tokio::test]
async fn the_page_shows_reasons_without_a_rule_and_filters_by_them() {
    needs!("python3", "chromium");
    let (origin, gate) = (origin().await, Gate::start().await);
    let mut operator = Operator::open(&gate).await;
    let url = origin.url("/x");
    refused(&gate.get(&origin.url("/y")).without("User-Agent").await, "unidentified");
    refused(&gate.get(&url).user_agent("Mozilla/5.0").await, "unidentified");
    let why = "The request does not say which bot is asking";
    operator
        .perform(json!(["refusal", url, "deny, unidentified", why]))
        .await;
    // The search covers the values that the rows show, but not the names and other values in the record.
    for (text, count) in [
        ("robots_sha256", 0),
        ("rule", 0),
        ("unidentified", 2),
        (&url, 1),
        ("mozilla", 1),
    ] {
        operator.perform(json!(["filtered", text, count])).await;
    }
    operator.perform(json!(["filtered", "does not say", 2])).await;
    operator.perform(json!(["filtered", "\"(no bot)\"", 1])).await;
    operator.close().await;
}

#[tokio::test]
async fn refusals_are_filtered_by_field_and_saved() {
    needs!("python3", "chromium");
    let (origin, other, gate) = (origin().await, origin().await, Gate::start().await);
    for (site, agent) in [(&origin, "AcmeBot/1.0"), (&origin, "=Sum/1.0"), (&other, "AcmeBot/1.0")] {
        gate.get(&site.url("/private")).user_agent(agent).await;
    }
    refused(&gate.get(&origin.url("/y")).without("User-Agent").await, "unidentified");
    let mut operator = Operator::open(&gate).await;
    let site = origin.url("");
    for (filter, count) in [
        ("bot:AcmeBot".to_owned(), 2),
        ("bot:none".to_owned(), 2),
        (format!("bot:AcmeBot reason:rule site:{site} since:1h"), 1),
        (format!("-site:{site}"), 1),
        ("until:1h".to_owned(), 0),
        ("reason:unidentified reason:rule".to_owned(), 4),
    ] {
        operator.perform(json!(["filtered", filter, count])).await;
    }
    operator
        .perform(json!(["filter_fails", "host:a", "there is no field \"host\""]))
        .await;
    operator.perform(json!(["filtered", "agent:sum", 1])).await;
    let head = "time,id,verdict,reason,enforcement,forwarded,bot,user_agent";
    operator.perform(json!(["saved", "csv", head, ",'=Sum/1.0,"])).await;
    operator
        .perform(json!(["saved", "jsonl", "\"user_agent\":\"=Sum/1.0\""]))
        .await;
    operator.close().await;
}

#[tokio::test]
async fn denied_requests_that_were_forwarded_have_a_badge() {
    needs!("python3", "chromium");
    let (plain, tls) = (origin().await, Origin::start().robots(ROBOTS).tls().spawn().await);
    let bots = "[egress]\ndeny = ['closed.example']\n\
                [[bot]]\nname = 'Watched'\nuser-agents = ['Watched']\nenforcement = 'report'\n\
                [[bot]]\nname = 'Scanner'\nuser-agents = ['Scanner']\nenforcement = 'exempt'\n\
                [[https.tunnel]]\nhost = 'other.example'\nreason = 'pins its certificate'\nuntil = 2999-01-01\n";
    let gate = Gate::with(&format!("[https]\nmode = 'tunnel'\nunverifiable = 'allow'\n{bots}")).await;
    let mut operator = Operator::open(&gate).await;
    let (private, closed) = (plain.url("/private"), "http://closed.example/".to_owned());
    for (agent, url, reason, badge) in [
        ("TestBot", &private, "rule", ""),
        ("Watched", &private, "rule", "report: forwarded"),
        ("Watched", &closed, "egress", ""),
        ("Scanner", &closed, "egress", ""),
    ] {
        gate.get(url).user_agent(agent).await;
        operator
            .perform(json!(["badge", last_id(&gate, "deny", reason), badge]))
            .await;
    }
    let other = format!("other.example:{}", tls.port());
    for (agent, authority, badge) in [
        ("TestBot", &tls.authority(), "https.unverifiable: forwarded"),
        ("TestBot", &other, "https.tunnel: forwarded"),
        ("Watched", &tls.authority(), "report: forwarded"),
    ] {
        drop(gate.connect(authority).user_agent(agent).await.opened());
        let id = last_id(&gate, "unverifiable", "unverifiable");
        operator.perform(json!(["badge", id, badge])).await;
    }
    operator.perform(json!(["fits", 400])).await;
    operator.perform(json!(["fits", 1400])).await;

    gate.reconfigure(&format!("[https]\nmode = 'refuse'\n{bots}"));
    gate.reloaded(1).await;
    for agent in ["Watched", "Scanner"] {
        refused(
            &gate.connect(&tls.authority()).user_agent(agent).await.refused(),
            "connect-refused",
        );
        operator
            .perform(json!(["badge", last_id(&gate, "deny", "connect-refused"), ""]))
            .await;
    }
    operator.close().await;
}

#[tokio::test]
async fn the_page_explains_a_missing_proof_for_a_client_without_one() {
    needs!("python3", "chromium");
    let origin = origin().await;
    let hash = |name: &str| SecretHash::new([5; 16], name.as_bytes()).line(name) + "\n";
    let config = "[identity]\ncredentials = 'credentials'\n\
                  [[bot]]\nname = 'Acme'\nuser-agents = ['Acme']\nenforcement = 'report'\n\
                  [[bot]]\nname = 'Other'\nuser-agents = ['Other']\nenforcement = 'exempt'\n";
    let gate = Gate::builder()
        .config(config)
        .credentials(&(hash("Acme") + &hash("Other")));
    let gate = gate.start().await;
    let mut operator = Operator::open(&gate).await;
    let url = origin.url("/x");
    for agent in ["Acme/1.0", "Other/1.0"] {
        gate.get(&url).user_agent(agent).await;
        let id = last_id(&gate, "deny", "unauthenticated");
        operator.perform(json!(["badge", id, ""])).await;
        operator.perform(json!(["opened", id, "Why"])).await;
        operator
            .perform(json!([
                "asked_why",
                "No: This bot may not fetch this URL.",
                "deny, unauthenticated",
                "The client does not prove which bot it is"
            ]))
            .await;
    }
    // The API cannot answer questions about a proof of another bot or an invalid proof, so send requests.
    for (secret, agent, reason, sentence) in [
        ("Acme:Acme", "Other/1.0", "identity", "is for a different bot than"),
        (
            "Acme:wrong",
            "Free/1.0",
            "unauthenticated",
            "does not prove which bot it is",
        ),
    ] {
        let credential = format!("Basic {}", data_encoding::BASE64.encode(secret.as_bytes()));
        let ask = gate.get(&url).user_agent(agent);
        ask.header("Proxy-Authorization", &credential).await;
        let id = last_id(&gate, "deny", reason);
        operator.perform(json!(["badge", id, ""])).await;
        operator.perform(json!(["opened", id, sentence])).await;
    }
    operator.close().await;
}
