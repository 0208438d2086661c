//! `robots.serve-copies`: the response to a bot's own request for a robots.txt is the copy.

use crate::support::{Alpn, Gate, NAME, Origin, Record, Reply, Response, allowed};

const RULES: &str = "User-agent: *\nDisallow: /private\n";
const ON: &str = "[robots]\nserve-copies = true";

async fn get_robots_txt(gate: &Gate, origin: &Origin) -> Response {
    gate.get(&origin.url("/robots.txt")).await
}

/// Waits for this many exchanges, and returns the decision and the completion of the last one.
async fn last(gate: &Gate, exchanges: usize) -> (Record, Record) {
    let (mut decisions, mut completions) = gate.audited(exchanges).await;
    (decisions.pop().expect("one"), completions.pop().expect("one"))
}

fn number(response: &Response, name: &str) -> u64 {
    let field = response
        .field(name)
        .unwrap_or_else(|| panic!("no {name}: {response:#?}"));
    field.trim_start_matches("max-age=").parse().expect("a number")
}

#[tokio::test]
async fn copies_are_not_served_by_default() {
    let origin = Origin::start().robots(RULES).spawn().await;
    let gate = Gate::start().await;
    gate.get(&origin.url("/private")).await;

    let response = get_robots_txt(&gate, &origin).await;

    allowed(&response, "robots-file");
    assert_eq!((origin.count("/robots.txt"), response.field("Cache-Status")), (2, None));
}

#[tokio::test]
async fn a_robots_txt_is_fetched_once_and_served_from_the_copy() {
    let reply = Reply::ok("text/plain", RULES)
        .header("ETag", "\"v1\"")
        .header("Cache-Control", "max-age=3600");
    let origin = Origin::start()
        .reply("/robots.txt", reply)
        .anything("page")
        .spawn()
        .await;
    let gate = Gate::with(ON).await;

    let first = get_robots_txt(&gate, &origin).await;
    allowed(&gate.get(&origin.url("/x")).await, "no-rule");
    let second = get_robots_txt(&gate, &origin).await;

    assert_eq!(origin.count("/robots.txt"), 1);
    for (response, found) in [(&first, "fwd=miss; stored"), (&second, "hit")] {
        allowed(response, "robots-file");
        assert_eq!(response.text(), RULES);
        assert_eq!(response.field("Content-Type"), Some("text/plain; charset=utf-8"));
        assert_eq!(response.field("ETag"), Some("W/\"v1\""));
        assert_eq!(number(response, "Cache-Control"), 3600);
        assert!(number(response, "Age") < 3600);
        let status = response.field("Cache-Status").unwrap_or_default();
        assert!(status.starts_with(&format!("robotgate; {found}; ttl=")), "{status}");
        assert!(response.stays_open);
    }
    let (decision, completion) = last(&gate, 3).await;
    assert_eq!(
        (&decision["verdict"], &decision["reason"]),
        (&"allow".into(), &"robots-file".into())
    );
    assert_eq!(
        (&decision["robots_cache"], &decision["robots_status"]),
        (&"hit".into(), &200.into())
    );
    assert!(decision["robots_sha256"].is_string(), "{decision:#}");
    assert_eq!(
        (&completion["status"], &completion["bytes_out"]),
        (&200.into(), &RULES.len().into())
    );
    assert!(
        completion["upstream"].is_null() && completion["error"].is_null(),
        "{completion:#}"
    );
    let metrics = gate.admin("/metrics").await.text();
    let counted = "robotgate_requests_total{method=\"GET\",outcome=\"copy\"} 2\n";
    assert!(metrics.contains(counted), "{metrics}");
}

#[tokio::test]
async fn a_matching_if_none_match_gets_a_304() {
    let reply = Reply::ok("text/plain", RULES).header("ETag", "\"v1\"");
    let origin = Origin::start().reply("/robots.txt", reply).tls().spawn().await;
    let gate = Gate::with(ON).await;
    for alpn in [Alpn::Http1, Alpn::Http2] {
        let mut inside = gate.connect(&origin.authority()).await.opened().tls(NAME, alpn).await;
        for (tag, status, body) in [("W/\"v1\"", 304, ""), ("\"v1\"", 304, ""), ("\"v0\"", 200, RULES)] {
            let response = inside.get("/robots.txt").header("If-None-Match", tag).await;
            assert_eq!(
                (response.status, response.text().as_str()),
                (status, body),
                "{alpn:?} {tag}"
            );
            assert_eq!(response.field("ETag"), Some("W/\"v1\""));
            assert_eq!(response.field("Content-Length").is_some(), status == 200);
        }
        let head = inside.ask("HEAD", "/robots.txt").await;
        assert_eq!((head.status, head.text().as_str()), (200, ""));
        assert_eq!(number(&head, "Content-Length"), RULES.len() as u64);
    }
    assert_eq!(origin.count("/robots.txt"), 1);
}

#[tokio::test]
async fn a_404_is_served_from_the_copy() {
    let origin = Origin::start().reply("/robots.txt", Reply::status(404)).spawn().await;
    let gate = Gate::with(ON).await;
    for _ in 0..2 {
        let response = get_robots_txt(&gate, &origin).await;
        assert_eq!((response.status, response.text().as_str()), (404, ""));
        assert_eq!(response.decision().value(), "allow");
        assert!(response.field("Cache-Status").is_some(), "{response:#?}");
    }
    assert_eq!(origin.count("/robots.txt"), 1);
}

#[tokio::test]
async fn incomplete_or_failed_copies_are_not_served() {
    let long = format!("{RULES}{}", "# filler\n".repeat(60_000));
    for (what, reply) in [
        ("longer than what counts", Reply::ok("text/plain", long)),
        ("a failure", Reply::status(503)),
        ("a soft 404", Reply::status(500).body("page not found")),
        ("a status with a field of its own", Reply::status(401)),
        ("no content", Reply::status(204)),
    ] {
        let origin = Origin::start().reply("/robots.txt", reply).spawn().await;
        let gate = Gate::with(ON).await;
        // The origin gets two requests: robotgate's own fetch, and the request of the bot.
        let response = get_robots_txt(&gate, &origin).await;
        assert_eq!(origin.count("/robots.txt"), 2, "{what}");
        assert_eq!(response.field("Cache-Status"), None, "{what}");
        assert!(response.field("Via").is_some(), "{what}");
        let (_, completion) = last(&gate, 1).await;
        assert!(completion["upstream"].is_string(), "{what}: {completion:#}");
    }
}

#[tokio::test]
async fn a_client_can_request_the_response_of_the_site_itself() {
    let origin = Origin::start().robots(RULES).spawn().await;
    let gate = Gate::with(ON).await;
    let url = origin.url("/robots.txt");
    let asks = [
        gate.get(&url).header("Cache-Control", "no-cache"),
        gate.get(&url).header("Pragma", "no-cache"),
        gate.get(&url).header("Authorization", "Basic YTpi"),
        gate.get(&url).body(b"content"),
    ];
    for (count, ask) in asks.into_iter().enumerate() {
        allowed(&ask.await, "robots-file");
        assert_eq!(origin.count("/robots.txt"), count + 1);
    }
}

#[tokio::test]
async fn a_copy_is_served_after_a_restart() {
    let origin = Origin::start().robots(RULES).spawn().await;
    let mut gate = Gate::with(ON).await;
    get_robots_txt(&gate, &origin).await;
    gate.stop().await;
    gate.start_again().await;

    let response = get_robots_txt(&gate, &origin).await;

    assert_eq!(response.text(), RULES);
    assert_eq!(origin.count("/robots.txt"), 1);
}

#[tokio::test]
async fn a_copy_from_a_redirect_is_not_served() {
    let victim = Origin::start()
        .robots(RULES)
        .reply("/private", Reply::ok("text/plain", "secret"))
        .spawn()
        .await;
    let origin = Origin::start()
        .reply("/robots.txt", Reply::redirect(&victim.url("/private")))
        .spawn()
        .await;
    let gate = Gate::with(ON).await;

    let response = get_robots_txt(&gate, &origin).await;

    assert_eq!(
        (response.status, response.field("Cache-Status")),
        (302, None),
        "{response:#?}"
    );
    assert_eq!(origin.count("/robots.txt"), 2, "the site answers for itself");
    let (decision, _) = last(&gate, 1).await;
    assert_eq!(decision["reason"], "robots-file");
}
