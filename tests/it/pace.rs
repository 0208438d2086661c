//! `[pace]`: requests wait for their turn at a site, or the response says when to try again. The unit tests check the
//! length of the gaps with a simulated clock; these tests measure no time.

mod pauses;
mod turns;

use serde_json::{Value, json};

use crate::{
    admin::escaped,
    support::{Alpn, Ask, Gate, NAME, Origin, ROBOTS, Reply, Response, allowed, refused, wait},
};

/// With this pace, only the first request to a site gets its turn while a test runs.
const SLOW: &str = "[pace]\ndelay = '1h'\n";
const ONE_AT_A_TIME: &str = "[pace]\nconcurrency = 1\nmax-wait = '10m'\n";

async fn site(robots: &str) -> Origin {
    Origin::start().robots(robots).anything("page").spawn().await
}

/// Asserts a refusal because the request came too early. Returns after how many seconds it may come again.
#[track_caller]
fn deferred(response: &Response) -> u64 {
    assert_eq!(response.status, 429, "{response:#?}");
    let decision = response.decision();
    assert_eq!(decision.value(), "defer", "{response:#?}");
    assert_eq!(decision.param("reason").as_deref(), Some("pace"), "{response:#?}");
    assert_eq!(decision.kind("not-before"), Some("date"), "{response:#?}");
    let error = response.proxy_status().param("error");
    assert_eq!(error.as_deref(), Some("http_request_denied"), "{response:#?}");
    let field = response.field("Retry-After").expect("it says when to come back");
    field.parse().expect("a number of seconds")
}

async fn asked(gate: &Gate, agent: &str, url: &str) -> Value {
    let path = format!("/api/v1/decide?agent={}&url={}", escaped(agent), escaped(url));
    gate.admin(&path).await.json()
}

async fn waiting(gate: &Gate) -> usize {
    let metrics = gate.admin("/metrics").await.text();
    let line = metrics
        .lines()
        .find_map(|line| line.strip_prefix("robotgate_pace_waiting "));
    line.expect("it is told").parse().expect("a number")
}

/// Waits until `count` requests wait.
pub async fn until_waiting(gate: &Gate, count: usize) {
    let all_wait = async || (waiting(gate).await == count).then_some(());
    wait::until_async(&format!("{count} requests to wait"), all_wait).await;
}

fn begin(ask: Ask<'static>) -> tokio::task::JoinHandle<Response> {
    tokio::spawn(ask.into_future())
}

#[tokio::test]
async fn a_request_that_comes_too_early_learns_when_to_retry() {
    let site = site("User-agent: *\nDisallow: /private\n").await;
    let gate = Gate::with(SLOW).await;
    let url = site.url("/page");

    // The gate fetches the robots.txt, so the page comes too early after that request.
    let response = gate.get(&url).await;

    let seconds = deferred(&response);
    assert!((3000..=3600).contains(&seconds), "{seconds}");
    assert_eq!(response.reason, "Disallowed: too fast for this site");
    let body = response.json();
    assert_eq!(response.decision().param("cause").as_deref(), Some("delay"));
    assert_eq!(body["cause"], "delay");
    assert!(
        body["detail"]
            .as_str()
            .is_some_and(|detail| detail.contains("pace.delay")),
        "{body}"
    );
    assert_eq!((&body["status"], &body["reason"]), (&json!(429), &json!("pace")));
    assert_eq!(site.count("/page"), 0);

    let decision = gate.decision_for(&url).await;
    for (field, value) in [
        ("verdict", json!("defer")),
        ("reason", json!("pace")),
        ("forwarded", json!(false)),
        ("pace_cause", json!("delay")),
        ("rule", Value::Null),
        ("robots_status", json!(200)),
        ("robots_error", Value::Null),
    ] {
        assert_eq!(decision[field], value, "{field}");
    }
    let not_before = decision["not_before"].as_str().expect("a time");
    let not_before = time::OffsetDateTime::parse(not_before, &time::format_description::well_known::Rfc3339);
    let told = response.decision().param("not-before").expect("a date");
    let told: i64 = told.trim_start_matches('@').parse().expect("seconds since 1970");
    let logged = not_before.expect("a time of RFC 3339").unix_timestamp();
    assert!((0..=1).contains(&(told - logged)), "rounded up: {logged} {told}");
    let completion = gate.completion_of(&decision).await;
    assert_eq!(
        (&completion["status"], &completion["pace_wait_us"]),
        (&json!(429), &json!(0))
    );

    // A request that a rule disallows is refused because of the rule, even if it also comes too early.
    refused(&gate.get(&site.url("/private")).await, "rule");
    let metrics = gate.admin("/metrics").await.text();
    let counted = "robotgate_decisions_total{verdict=\"defer\",reason=\"pace\",bot=\"other\",enforcement=\"enforce\",\
                   forwarded=\"false\"} 1";
    assert!(metrics.contains(counted), "{metrics}");
    assert_eq!(gate.admin("/api/v1/status").await.json()["decisions"]["defer"], 1);
}

#[tokio::test]
async fn without_a_pace_section_no_request_waits() {
    let site = site("User-agent: *\nCrawl-delay: 300\n").await;
    let gate = Gate::start().await;
    for _ in 0..3 {
        allowed(&gate.get(&site.url("/page")).await, "no-rule");
    }
    assert_eq!(
        asked(&gate, "TestBot", &site.url("/page")).await["not_before"],
        Value::Null
    );
    let (decisions, completions) = gate.audited(3).await;
    assert!(decisions.iter().all(|decision| decision["not_before"].is_null()));
    assert!(completions.iter().all(|completion| completion["pace_wait_us"] == 0));
}

#[tokio::test]
async fn an_enforced_crawl_delay_of_the_bots_group_defers_requests() {
    let robots = "User-agent: *\nCrawl-delay: 300\nDisallow: /private\n\nUser-agent: QuickBot\nDisallow: /private\n";
    let (enforced, ignored) = (site(robots).await, site(robots).await);
    let enforcing = "[pace]\ncrawl-delay = 'enforce'\n\
                     [[bot]]\nname = 'exempt'\nuser-agents = ['ExemptBot']\nenforcement = 'exempt'\n\
                     [[bot]]\nname = 'report'\nuser-agents = ['ReportBot']\nenforcement = 'report'\n";
    let gate = Gate::with(enforcing).await;
    for (agent, reason) in [
        ("QuickBot", "no-rule"),
        ("ExemptBot", "exempt"),
        ("ReportBot", "no-rule"),
    ] {
        allowed(&gate.get(&enforced.url("/page")).user_agent(agent).await, reason);
    }
    let seconds = deferred(&gate.get(&enforced.url("/page")).await);
    assert!((200..=300).contains(&seconds), "{seconds}");

    let gate = Gate::with("[pace]\ncrawl-delay = 'ignore'\n").await;
    allowed(&gate.get(&ignored.url("/page")).await, "no-rule");
}

#[tokio::test]
async fn a_crawl_delay_that_is_too_long_is_clipped_or_refused() {
    let site = site("User-agent: *\nCrawl-delay: 86400\n").await;
    let gate = Gate::with("[pace]\ncrawl-delay = 'enforce'\ncrawl-delay-max = '10m'\n").await;
    let seconds = deferred(&gate.get(&site.url("/page")).await);
    assert!((500..=600).contains(&seconds), "{seconds}");

    let gate = Gate::with("[pace]\ncrawl-delay = 'enforce'\nbeyond-max = 'refuse'\n").await;
    let response = gate.get(&site.url("/page")).await;
    assert_eq!(refused(&response, "pace").value(), "deny");
    assert_eq!(response.decision().param("cause").as_deref(), Some("crawl-delay"));
    assert_eq!(response.field("Retry-After"), None);
    let cause = "the site's Crawl-delay, 86400 s, is longer than pace.crawl-delay-max, 300 s";
    assert!(response.text().contains(cause), "{}", response.text());
    let sentence = "The site's robots.txt asks for a longer time between two requests than this proxy accepts.";
    assert!(response.text().contains(sentence), "{}", response.text());
    let decided = asked(&gate, "TestBot", &site.url("/page")).await;
    assert_eq!(
        (&decided["reason"], &decided["robots_error"]),
        (&json!("pace"), &json!(cause))
    );
}

#[tokio::test]
async fn a_bot_has_a_delay_of_its_own_even_if_it_is_exempt() {
    let site = site("User-agent: *\nDisallow: /\n").await;
    let gate = Gate::with(
        "[pace]\n[[bot]]\nname = 'exempt'\nuser-agents = ['ExemptBot']\nenforcement = 'exempt'\ndelay = '1h'\n\
         [[bot]]\nname = 'other'\nuser-agents = ['OtherBot']\nenforcement = 'exempt'\n",
    )
    .await;
    let url = site.url("/page");
    // Nothing was requested from the site yet, because an exempt bot needs no robots.txt.
    allowed(&gate.get(&url).user_agent("ExemptBot").await, "exempt");
    deferred(&gate.get(&url).user_agent("ExemptBot").await);
    allowed(&gate.get(&url).user_agent("OtherBot").await, "exempt");
    assert_eq!((site.count("/page"), site.count("/robots.txt")), (2, 0));
}

#[tokio::test]
async fn a_scheduler_that_waits_until_not_before_is_never_refused() {
    let site = site("User-agent: *\nDisallow: /private\n").await;
    let gate = Gate::with("[pace]\ndelay = '150ms'\nmax-wait = '0s'\n").await;
    let mut planned = 0;
    for number in 0..5 {
        let url = site.url(&format!("/{number}"));
        let decided = asked(&gate, "TestBot/1.0", &url).await;
        assert_eq!(
            (&decided["verdict"], &decided["forwarded"]),
            (&json!("allow"), &json!(true))
        );
        if let Some(not_before) = decided["not_before"].as_str() {
            let format = &time::format_description::well_known::Rfc3339;
            let not_before = time::OffsetDateTime::parse(not_before, format).expect("a time");
            let is_time = || (time::OffsetDateTime::now_utc() > not_before).then_some(());
            wait::until("the time that was told", is_time).await;
            planned += 1;
        }
        allowed(&gate.get(&url).await, "no-rule");
    }
    assert!(planned > 0, "it never had to wait");
    let decided = asked(&gate, "TestBot/1.0", &site.url("/private")).await;
    assert_eq!(
        (&decided["reason"], &decided["not_before"]),
        (&json!("rule"), &Value::Null)
    );
}

#[tokio::test]
async fn a_robots_txt_from_the_copy_needs_no_turn() {
    let site = site("User-agent: *\nDisallow: /private\n").await;
    let gate = Gate::with(&format!("{SLOW}[robots]\nserve-copies = true\n")).await;
    for _ in 0..3 {
        let response = gate.get(&site.url("/robots.txt")).await;
        assert_eq!(allowed(&response, "robots-file").value(), "allow");
    }
    assert_eq!(site.count("/robots.txt"), 1);
    // A request that cannot be answered from the copy has to wait for its turn.
    let asks_site = gate.get(&site.url("/robots.txt")).header("Cache-Control", "no-cache");
    deferred(&asks_site.await);
}

#[tokio::test]
async fn a_redirected_robots_txt_delays_requests_to_its_own_site_only() {
    let other = site("").await;
    let site = Origin::start().reply("/robots.txt", Reply::redirect(&other.url("/robots.txt")));
    let site = site.anything("page").spawn().await;
    let exempt = "[[bot]]\nname = 'exempt'\nuser-agents = ['ExemptBot']\nenforcement = 'exempt'\n";
    let gate = Gate::with(&format!("{SLOW}{exempt}")).await;
    deferred(&gate.get(&site.url("/page")).await);
    assert_eq!(other.count("/robots.txt"), 1, "the redirect was followed");
    // The exempt bot needs no robots.txt, so no fetch takes a turn at the other site.
    allowed(&gate.get(&other.url("/page")).user_agent("ExemptBot").await, "exempt");
    deferred(&gate.get(&other.url("/page")).user_agent("ExemptBot").await);
}

#[tokio::test]
async fn intercepted_requests_need_turns_and_their_connect_does_not() {
    let site = Origin::start().robots(ROBOTS).anything("page").tls().spawn().await;
    let gate = Gate::with(SLOW).await;
    for alpn in [Alpn::Http1, Alpn::Http2] {
        let mut inside = gate.connect(&site.authority()).await.opened().tls(NAME, alpn).await;
        deferred(&inside.get("/page").await);
        refused(&inside.get("/private").await, "rule");
    }
}

#[tokio::test]
async fn a_tunnel_is_one_request_for_as_long_as_it_is_open() {
    let site = Origin::start()
        .robots("User-agent: *\nDisallow:\n")
        .anything("page")
        .tls()
        .spawn()
        .await;
    let tunnels = "[https]\nmode = 'tunnel'\n[identity]\nunidentified = 'wildcard'\n";
    let gate = Gate::with(&format!("{tunnels}{SLOW}")).await;
    let response = gate.connect(&site.authority()).await.refused();
    deferred(&response);
    assert_eq!(
        response.status_line(),
        "HTTP/1.1 429 Disallowed: too fast for this site"
    );

    let gate = Gate::with(&format!("{tunnels}[pace]\nconcurrency = 1\nmax-wait = '0s'\n")).await;
    let open = gate.connect(&site.authority()).await.opened();
    assert_eq!(deferred(&gate.connect(&site.authority()).await.refused()), 1);
    drop(open);
    let is_free = async || match gate.connect(&site.authority()).await {
        crate::support::Connected::Tunnel(tunnel) => Some(tunnel),
        crate::support::Connected::Refused(_) => None,
    };
    wait::until_async("the next tunnel", is_free).await;
}
