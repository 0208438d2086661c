//! The statuses of a fetch's response, and the request that a fetch sends.

use super::{
    Means::{Closed, Open, Rules},
    RULES, check,
};
use crate::support::{Gate, Origin, Reply, allowed, refused};

#[tokio::test]
async fn a_200_is_parsed_regardless_of_its_content_type() {
    let status = |status| Reply::status(status).header("Content-Type", "text/plain").body(RULES);
    let html = "<html>\nUser-agent: *\nDisallow: /p\n</html>";
    check(vec![
        ("200", Reply::ok("text/plain", RULES), Rules),
        ("200, HTML", Reply::ok("text/html", html), Rules),
        ("200, an image", Reply::ok("image/png", RULES), Rules),
        ("200, no type", Reply::status(200).body(RULES), Rules),
        ("200, empty", Reply::status(200), Open("no-rule")),
        (
            "200, empty and called gzip",
            Reply::status(200).header("Content-Encoding", "gzip"),
            Open("no-rule"),
        ),
        (
            "200, in a transfer coding that nobody undoes",
            Reply::status(200).header("Transfer-Encoding", "gzip, chunked"),
            Closed,
        ),
        (
            "200, not found in HTML",
            Reply::ok("text/html", "<h1>Page not found</h1>"),
            Open("no-rule"),
        ),
        ("202", status(202), Rules),
        ("203", status(203), Rules),
        ("204", Reply::status(204), Open("no-rule")),
        ("chunked", Reply::chunked(["User-agent: *\nDis", "allow: /p\n"]), Rules),
        (
            "until close",
            Reply::raw(format!("HTTP/1.1 200 OK\r\n\r\n{RULES}")),
            Rules,
        ),
        ("HTTP/1.0", Reply::raw(format!("HTTP/1.0 200 OK\r\n\r\n{RULES}")), Rules),
        ("gzip", Reply::gzip(RULES.as_bytes()), Rules),
        ("206", status(206), Closed),
    ])
    .await;
}

#[tokio::test]
async fn a_client_error_means_no_robots_txt() {
    let gone = |status| Reply::status(status).body(RULES);
    check(
        [400, 401, 403, 404, 410, 418, 451, 499]
            .map(|status| ("4xx", gone(status), Open("no-robots")))
            .into(),
    )
    .await;
}

#[tokio::test]
async fn a_server_error_and_429_are_failures() {
    let broken = |status| Reply::status(status).body(RULES);
    check(
        [429, 500, 502, 503, 504, 507, 599]
            .map(|status| ("failure", broken(status), Closed))
            .into(),
    )
    .await;
}

#[tokio::test]
async fn a_server_error_that_says_not_found_is_a_soft_404() {
    let answer = Reply::status(500)
        .header("Content-Type", "text/html")
        .body("<h1>Page not found</h1>");
    check(vec![("soft 404", answer.clone(), Open("soft-404"))]).await;

    let origin = Origin::start()
        .reply("/robots.txt", answer)
        .anything("page")
        .spawn()
        .await;
    let strict = Gate::with("[robots]\nsoft-404 = false").await;
    refused(&strict.get(&origin.url("/x")).await, "unreachable");
}

#[tokio::test]
async fn a_304_without_a_condition_or_a_300_is_a_failure() {
    check(vec![
        ("304", Reply::status(304), Closed),
        ("300 without a Location", Reply::status(300), Closed),
    ])
    .await;
}

#[tokio::test]
async fn the_log_has_the_status_and_the_hash_of_the_robots_txt() {
    let origin = Origin::start().robots(RULES).anything("page").spawn().await;
    let missing = Origin::start()
        .anything("page")
        .reply("/robots.txt", Reply::status(410))
        .spawn()
        .await;
    let gate = Gate::start().await;

    allowed(&gate.get(&origin.url("/x")).await, "no-rule");
    allowed(&gate.get(&missing.url("/x")).await, "no-robots");

    let read = gate.decision_for(&origin.url("/x")).await;
    assert_eq!(
        (&read["robots_status"], &read["robots_url"]),
        (&200.into(), &origin.url("/robots.txt").into())
    );
    assert!(
        read["robots_sha256"].as_str().is_some_and(|sum| sum.len() == 64),
        "{read:#}"
    );
    assert_eq!(gate.decision_for(&missing.url("/x")).await["robots_status"], 410);
}

#[tokio::test]
async fn the_fetch_is_a_plain_get_with_the_gates_own_user_agent() {
    let origin = Origin::start().robots(RULES).anything("page").spawn().await;
    let gate = Gate::with("[robots]\nuser-agent = \"Gatekeeper/9\"").await;

    let ask = gate
        .ask("POST", &origin.url("/x"))
        .body(b"body")
        .header("Cookie", "a=b")
        .header("Authorization", "me");
    allowed(
        &ask.header("If-None-Match", "\"e\"").header("Range", "bytes=0-4").await,
        "no-rule",
    );

    let fetch = origin.only_request_for("/robots.txt");
    assert_eq!((fetch.method.as_str(), fetch.target.as_str()), ("GET", "/robots.txt"));
    assert_eq!(fetch.field("Host"), Some(origin.authority().as_str()));
    assert_eq!(fetch.field("User-Agent"), Some("Gatekeeper/9"));
    assert!(fetch.body.is_empty());
    for name in ["Cookie", "Authorization", "If-None-Match", "If-Modified-Since", "Range"] {
        assert_eq!(fetch.field(name), None, "{fetch:#?}");
    }
}
