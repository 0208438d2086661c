//! The list of sites, and what the page says about each.

use super::*;
use crate::support::{NAME, Reply, refused, wait};

#[tokio::test]
async fn the_page_shows_what_a_site_changed() {
    needs!("python3", "chromium");
    let brief = |text: &str| Reply::ok("text/plain", text).header("Cache-Control", "max-age=1");
    let origin = Origin::start()
        .reply("/robots.txt", brief(ROBOTS))
        .anything("page")
        .spawn()
        .await;
    let gate = Gate::with("[robots]\nmin-ttl = \"1s\"").await;
    allowed(&gate.get(&origin.url("/news")).await, "no-rule");
    origin.change("/robots.txt", brief("User-agent: *\nDisallow: /news\nSitemap: <b>\n"));
    wait::until_async("a change", async || {
        gate.get(&origin.url("/x")).await;
        (!gate.events("robots-changed").is_empty()).then_some(())
    })
    .await;
    let mut operator = Operator::open(&gate).await;
    operator
        .perform(json!([
            "changed",
            origin.url(""),
            "1 rule added, 2 removed",
            "1 newly denied and 0 newly allowed",
            "+ line 2: Disallow: /news",
            "− line 4: Disallow: /private",
            "Sitemap: <b>",
            format!("{} (line 2: Disallow: /news)", origin.url("/news")),
        ]))
        .await;
    let name = origin.url("");
    operator.perform(json!(["search", name, [name]])).await;
    operator.perform(json!(["origin", name, "robots.txt, 3 lines"])).await;
    operator
        .perform(json!([
            "versions",
            2,
            "1 rule added, 2 removed",
            "+Disallow: /news",
            "-Disallow: /private"
        ]))
        .await;
    operator.perform(json!(["within", 400, "a site"])).await;
    operator.close().await;
}

#[tokio::test]
async fn the_page_finds_origins_and_answers_whether_a_bot_may_fetch() {
    needs!("python3", "chromium");
    let (origin, other, gate) = (origin().await, origin().await, Gate::start().await);
    let mut operator = Operator::open(&gate).await;
    for each in [&origin, &other] {
        allowed(&gate.get(&each.url("/x")).await, "no-rule");
    }
    let name = origin.url("");
    let port = name.rsplit(':').next().expect("a port");
    operator.perform(json!(["search", port, [name]])).await;
    operator
        .perform(json!([
            "origin",
            name,
            "the rules of its robots.txt decide",
            "1 allow, 0 deny",
            "robots.txt, 4 lines",
            "Allow: /private/press"
        ]))
        .await;

    let ask = |path: &str, answer: &str| json!(["ask", "TestBot/1.0", origin.url(path), answer]);
    operator
        .perform(ask("/private/x", "No: TestBot may not fetch this URL."))
        .await;
    operator.perform(json!(["marked", "Disallow: /private"])).await;
    operator
        .perform(ask("/private/press", "Yes: TestBot may fetch this URL."))
        .await;
    operator.perform(json!(["marked", "Allow: /private/press"])).await;
    assert_eq!(origin.count("/private/x"), 0);
    operator.close().await;
}

#[tokio::test]
async fn the_page_sorts_and_pages_thousands_of_sites_with_long_names() {
    needs!("python3", "chromium");
    let (origin, gate) = (origin().await, Gate::start().await);
    let long = ["x".repeat(60), "y".repeat(60), "z".repeat(60), "w".repeat(50)].join(".");
    let site = |number: usize| origin.url_at(&format!("h{number:05}.{long}.{NAME}"), "");
    // Ask about few sites in one call, because the API decides nothing more after 50 s. A busy machine needs that long
    // for a thousand sites.
    for some in (0..3_000).collect::<Vec<_>>().chunks(200) {
        let requests = some
            .iter()
            .map(|number| json!({"agent": "Acme", "url": format!("{}/", site(*number))}));
        let questions = json!({"requests": requests.collect::<Vec<_>>()});
        let decided = gate
            .ask_admin("POST", "/api/v1/decide")
            .header("Content-Type", "application/json")
            .body(questions.to_string().as_bytes())
            .await
            .json();
        assert_eq!(decided["decisions"][199]["reason"], "no-rule", "{decided:#}");
    }
    for _ in 0..3 {
        refused(&gate.get(&format!("{}/private", site(2777))).await, "rule");
    }
    let mut operator = Operator::open(&gate).await;
    operator.perform(json!(["state", "", "3,000 sites known."])).await;
    operator.perform(json!(["sites", "origin", [site(0), site(1)]])).await;
    operator.perform(json!(["next_page", "101–200 of 3,000"])).await;
    operator.perform(json!(["sites", "origin", [site(100)]])).await;
    operator.perform(json!(["sorted_by", "deny", ["3", "0"]])).await;
    operator.perform(json!(["sites", "origin", [site(2777)]])).await;
    operator
        .perform(json!(["state", "failing", "No known site fits."]))
        .await;
    operator.perform(json!(["state", "", "3,000 sites known."])).await;
    operator.perform(json!(["fits", 400])).await;
    operator.perform(json!(["fits", 1400])).await;
    operator.perform(json!(["search", "h02777", [site(2777)]])).await;
    operator
        .perform(json!(["origin", site(2777), "the rules of its robots.txt decide"]))
        .await;
    operator
        .perform(json!(["within", 400, "a site with a long name"]))
        .await;
    operator.close().await;
}
