//! `[refusals]`, `Retry-After`, and the refusals that a browser shows.

use serde_json::json;

use crate::support::{Gate, Origin, Reply, Response, Step, failed, refused};

const RULES: &str = "User-agent: *\nDisallow: /private\n";
const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

fn seconds(response: &Response) -> u64 {
    let field = response.field("Retry-After").expect("it says when to come back");
    field.parse().expect("a number of seconds")
}

#[tokio::test]
async fn an_unreachable_robots_txt_has_retry_after() {
    for (reply, most) in [
        (Reply::status(503).header("Retry-After", "120"), 132),
        (Reply::status(500), 66),
    ] {
        let origin = Origin::start().reply("/robots.txt", reply).spawn().await;
        let gate = Gate::start().await;
        for path in ["/first", "/again"] {
            let response = gate.get(&origin.url(path)).await;
            refused(&response, "unreachable");
            // robotgate lengthens the delay before its next attempt by up to a tenth.
            assert!((1..=most).contains(&seconds(&response)), "{response:#?}");
        }
        let decided = gate
            .admin(&format!("/api/v1/decide?agent=TestBot&url={}", origin.url("/x")))
            .await;
        let retry_after = decided.json()["retry_after"].as_u64().expect("a number");
        assert!((1..=most).contains(&retry_after), "{retry_after}");
    }
}

#[tokio::test]
async fn a_robots_txt_that_is_still_being_fetched_has_retry_after() {
    let origin = Origin::start()
        .reply("/robots.txt", Reply::script([Step::Stall]))
        .spawn()
        .await;
    let gate = Gate::with("[robots]\nwait = '50ms'").await;

    let response = gate.get(&origin.url("/x")).await;

    refused(&response, "unreachable");
    assert_eq!(seconds(&response), 5);
}

#[tokio::test]
async fn a_permanent_refusal_has_no_retry_after() {
    let origin = Origin::start().robots(RULES).spawn().await;
    let gate = Gate::start().await;
    for response in [
        gate.get(&origin.url("/private")).await,
        gate.get(&origin.url("/x")).user_agent("Mozilla/5.0").await,
        gate.get("http://10.0.0.1/").await,
    ] {
        assert_eq!(
            (response.status, response.field("Retry-After")),
            (403, None),
            "{response:#?}"
        );
    }
    let decided = gate.admin(&format!("/api/v1/decide?agent=TestBot&url={}", origin.url("/private")));
    assert_eq!(decided.await.json()["retry_after"], json!(null));
}

#[tokio::test]
async fn refusals_have_the_configured_status_and_keep_the_connection() {
    let origin = Origin::start().robots(RULES).anything("page").spawn().await;
    let broken = Origin::start().reply("/robots.txt", Reply::status(503)).spawn().await;
    let gate = Gate::with("[refusals]\nstatus = 451\nunreachable-status = 503").await;
    let mut connection = gate.dial().await;
    for (url, line, reason) in [
        (origin.url("/private"), "HTTP/1.1 451 Disallowed by robots.txt", "rule"),
        (
            broken.url("/x"),
            "HTTP/1.1 503 Disallowed: robots.txt is unreachable",
            "unreachable",
        ),
        (
            "http://10.0.0.1/".to_owned(),
            "HTTP/1.1 403 Disallowed: bots must not go there",
            "egress",
        ),
    ] {
        let response = connection.get(&url).await;
        assert_eq!(response.status_line(), line);
        assert_eq!(response.decision().param("reason").as_deref(), Some(reason));
        assert_eq!(response.json()["status"], response.status);
        assert!(response.stays_open, "{response:#?}");
        let decision = gate.decision_for(&url).await;
        assert_eq!(gate.completion_of(&decision).await["status"], response.status);
    }
    assert_eq!(connection.get(&origin.url("/x")).await.text(), "page");

    gate.reconfigure("[refusals]\nstatus = 403");
    gate.reloaded(1).await;
    refused(&connection.get(&origin.url("/private")).await, "rule");
}

#[tokio::test]
async fn a_refused_tunnel_has_the_same_status() {
    let origin = Origin::start()
        .robots("User-agent: *\nDisallow: /\n")
        .tls()
        .spawn()
        .await;
    let gate = Gate::with("[https]\nmode = 'tunnel'\n[refusals]\nstatus = 451").await;

    let connect = gate.connect(&origin.authority()).user_agent("TestBot/1.0");

    let response = connect.await.refused();
    assert_eq!(response.status_line(), "HTTP/1.1 451 Disallowed by robots.txt");
}

#[tokio::test]
async fn a_browser_gets_a_page_whose_title_says_why() {
    let mut origin = Origin::start().robots(RULES).spawn().await;
    let gate = Gate::start().await;

    let response = gate.get(&origin.url("/private")).header("Accept", BROWSER).await;

    refused(&response, "rule");
    assert_eq!(response.field("Content-Type"), Some("text/html; charset=utf-8"));
    let policy = response.field("Content-Security-Policy").unwrap_or_default();
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    let page = response.text();
    let title = "<title>Disallowed by robots.txt: Disallow: /private (line 2)</title>";
    assert!(page.contains(title), "{page}");
    let id = response.decision().param("id").expect("an id");
    assert!(
        page.contains(&id) && page.contains(&origin.url("/robots.txt")),
        "{page}"
    );

    origin.shut_down().await;
    let response = gate.get(&origin.url("/x")).header("Accept", BROWSER).await;
    failed(&response, 502, &["connection_refused"]);
    let title = "<title>Bad Gateway: the server refused the connection</title>";
    assert!(response.text().contains(title), "{response:#?}");
}

#[tokio::test]
async fn a_refused_head_request_gets_no_page() {
    let origin = Origin::start().robots(RULES).spawn().await;
    let gate = Gate::start().await;
    let mut connection = gate.dial().await;
    let head = connection
        .ask("HEAD", &origin.url("/private"))
        .header("Accept", BROWSER)
        .await;
    refused(&head, "rule");
    assert_eq!(head.field("Content-Type"), Some("text/html; charset=utf-8"));
    // If the response to the HEAD had a body, the client would mistake it for the response to this request.
    refused(&connection.get(&origin.url("/private")).await, "rule");
}
