//! The questions that an operator can ask: whether a bot may fetch a URL, and what a change would mean.

use super::*;
use crate::support::{Reply, refused};

#[tokio::test]
async fn the_page_says_which_requests_would_be_decided_otherwise() {
    needs!("python3", "chromium");
    let (origin, gate) = (origin().await, Gate::start().await);
    let mut operator = Operator::open(&gate).await;
    let site = origin.url("");
    let what_if = |robots: &str, config: &str, texts: &[&str]| {
        let step = [
            json!("what_if"),
            json!(if robots.is_empty() { "" } else { &*site }),
            json!(robots),
            json!(config),
        ];
        serde_json::Value::Array(step.into_iter().chain(texts.iter().map(|text| json!(text))).collect())
    };
    let new = "User-agent: *\nDisallow: /x\n";
    operator
        .perform(what_if(new, "", &["No request is in memory yet."]))
        .await;
    allowed(&gate.get(&origin.url("/x")).await, "no-rule");
    refused(&gate.get(&origin.url("/private/%3Cb%3E")).await, "rule");
    operator
        .perform(what_if(
            new,
            "",
            &[
                "2 of the latest 2 requests would be decided differently.",
                "would be refused instead of forwarded",
                "Disallow: /private",
                &origin.url("/private/%3Cb%3E"),
            ],
        ))
        .await;
    let config = "egress.allow = [\"127.0.0.1\"]";
    operator
        .perform(what_if(
            "",
            config,
            &["None of the latest 2 requests would be decided differently."],
        ))
        .await;
    operator.perform(what_if("", "a = 1", &["the configuration:1"])).await;
    operator.perform(json!(["forgive", "status of 400"])).await;
    operator.perform(json!(["search", "shop", [site]])).await;
    operator
        .perform(json!(["origin", site, "the rules of its robots.txt decide"]))
        .await;
    operator.perform(json!(["edited", site, ROBOTS])).await;
    operator.perform(json!(["fits", 400])).await;
    operator.close().await;
}

#[tokio::test]
async fn pasted_urls_can_be_decided_with_another_robots_txt() {
    needs!("python3", "chromium");
    let (origin, gate) = (origin().await, Gate::start().await);
    let mut operator = Operator::open(&gate).await;
    let urls = [origin.url("/private"), origin.url("/x"), "no URL".to_owned()];
    let why = "line 4: Disallow: /private";
    operator
        .perform(json!([
            "pasted",
            "TestBot",
            urls,
            "",
            "1 of 3 URLs allowed.",
            why,
            "this is not a whole URL"
        ]))
        .await;
    let robots = "User-agent: TestBot\nDisallow: /x\n";
    let fetched = origin.count("/robots.txt");
    operator
        .perform(json!([
            "pasted",
            "TestBot",
            urls[..2],
            robots,
            "1 of 2 URLs allowed.",
            "line 2: Disallow: /x"
        ]))
        .await;
    let unknown = "http://never.example/x";
    operator
        .perform(json!([
            "pasted",
            "TestBot",
            [unknown],
            robots,
            "0 of 1 URL allowed.",
            "line 2: Disallow: /x"
        ]))
        .await;
    operator.perform(json!(["marked", "Disallow: /x"])).await;
    assert_eq!(origin.count("/robots.txt"), fetched);
    operator.perform(json!(["within", 400, "explain"])).await;
    operator.close().await;
}

#[tokio::test]
async fn the_page_shows_what_a_site_says_about_use() {
    needs!("python3", "chromium");
    let robots = "User-agent: *\nContent-Usage: /x train-ai=n\nLicense: https://a.example/rsl.xml\n";
    let origin = Origin::start().robots(robots).spawn().await;
    let bot = "[[bot]]\nname = 'Trainer'\nuser-agents = ['Trainer']\npurposes = ['ai-train']\n";
    let gate = Gate::with(&format!("[usage]\ncontent-usage = 'enforce'\n{bot}")).await;
    let mut operator = Operator::open(&gate).await;
    let (url, site) = (origin.url("/x"), origin.url(""));
    refused(&gate.get(&url).user_agent("Trainer").await, "usage");
    let why = "ai-train, line 2: content-usage train-ai=n";
    operator.perform(json!(["refusal", url, "deny, usage", why])).await;
    let sentence =
        "line 2 of the robots.txt says Content-Usage: train-ai=n, which forbids the purpose ai-train (enforce)";
    operator
        .perform(json!(["ask", "Trainer", url, "No: Trainer may not fetch this URL."]))
        .await;
    operator.perform(json!(["answered", "deny, usage", sentence])).await;
    let port = site.rsplit(':').next().expect("a port");
    operator.perform(json!(["search", port, [site]])).await;
    let lines = [
        "line 2: Content-Usage: /x train-ai=n for *",
        "line 3: License: https://a.example/rsl.xml",
    ];
    operator.perform(json!(["origin", site, lines[0], lines[1]])).await;
    operator.close().await;
}

#[tokio::test]
async fn the_page_says_that_a_list_is_cut_and_why_there_is_no_file() {
    needs!("python3", "chromium");
    let rules: String = (0..120).map(|at| format!("Disallow: /{at}\n")).collect();
    let many = Origin::start().robots(&format!("User-agent: *\n{rules}")).spawn().await;
    let few = origin().await;
    let busy = Origin::start().reply("/robots.txt", Reply::status(503)).spawn().await;
    let none = Origin::start().spawn().await;
    let gate = Gate::start().await;
    let mut operator = Operator::open(&gate).await;
    let (yes, no) = (
        "Yes: TestBot may fetch this URL.",
        "No: TestBot may not fetch this URL.",
    );
    for (origin, answer, texts) in [
        (&many, yes, "Rules that did not decide (the first 50 of 120)"),
        (&few, yes, "Rules that did not decide (2)"),
        (&busy, no, "There is no robots.txt to show: the server answered 503."),
        (&none, yes, "The site has no robots.txt."),
    ] {
        operator
            .perform(json!(["ask", "TestBot/1.0", origin.url("/x"), answer]))
            .await;
        operator.perform(json!(["answered", texts])).await;
    }
    operator.close().await;
}
