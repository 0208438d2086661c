//! `http://` URLs in absolute form: forwarding, refusals, and what the client and the origin receive.

mod bodies;
mod fields;
mod refusal;
mod targets;

use crate::support::{Gate, Origin, ROBOTS, Reply, allowed, refused};

#[tokio::test]
async fn an_allowed_page_arrives_byte_for_byte() {
    let body: Vec<u8> = (0..=255).cycle().take(5000).collect();
    let origin = Origin::start()
        .robots(ROBOTS)
        .reply(
            "/x",
            Reply::ok("application/octet-stream", body.clone()).header("ETag", "\"e\""),
        )
        .spawn()
        .await;
    let gate = Gate::start().await;

    let response = gate.get(&origin.url("/x")).await;

    allowed(&response, "no-rule");
    assert_eq!(response.body, body);
    assert_eq!(response.field("Content-Type"), Some("application/octet-stream"));
    assert_eq!(response.field("ETag"), Some("\"e\""));
    assert_eq!(origin.count("/x"), 1);
}

#[tokio::test]
async fn a_disallowed_page_is_refused_and_not_requested() {
    let origin = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let gate = Gate::start().await;

    let response = gate.get(&origin.url("/private/x")).await;

    refused(&response, "rule");
    assert_eq!((origin.count("/private/x"), origin.count("/robots.txt")), (0, 1));
}

#[tokio::test]
async fn the_decision_field_names_the_rule_and_the_group() {
    let robots = "User-agent: *\nDisallow: /\nAllow: /public\n\nUser-agent: OtherBot\nDisallow: /other\n";
    let origin = Origin::start().robots(robots).anything("page").spawn().await;
    let bare = Origin::start().anything("page").robots("# nothing\n").spawn().await;
    let gate = Gate::start().await;
    let get = |url: String| gate.get(&url);

    let public = allowed(&get(origin.url("/public")).await, "rule");
    assert_eq!(public.param("rule").as_deref(), Some("Allow: /public"));
    assert_eq!(public.param("line").as_deref(), Some("3"));
    assert_eq!(public.param("group").as_deref(), Some("*"));
    refused(&get(origin.url("/else")).await, "rule");
    allowed(&get(origin.url("/robots.txt")).await, "robots-file");
    allowed(&get(bare.url("/anything")).await, "no-rule");
    let other = gate.get(&origin.url("/other")).user_agent("OtherBot/3").await;
    assert_eq!(refused(&other, "rule").param("group").as_deref(), Some("OtherBot"));
    allowed(
        &gate.get(&origin.url("/else")).user_agent("OtherBot/3").await,
        "no-rule",
    );
}

#[tokio::test]
async fn one_connection_serves_several_requests() {
    let origin = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let gate = Gate::start().await;
    let mut connection = gate.dial().await;

    for _ in 0..3 {
        allowed(&connection.get(&origin.url("/x")).await, "no-rule");
        refused(&connection.get(&origin.url("/private")).await, "rule");
        refused(&connection.ask("HEAD", &origin.url("/private")).await, "rule");
    }

    assert_eq!(origin.count("/x"), 3);
}

#[tokio::test]
async fn two_names_on_one_address_are_two_origins() {
    let origin = Origin::start()
        .on("/robots.txt", |request| match request.field("Host") {
            Some(host) if host.starts_with("closed.example") => Reply::ok("text/plain", "User-agent: *\nDisallow: /\n"),
            _ => Reply::status(404),
        })
        .anything("page")
        .spawn()
        .await;
    let gate = Gate::start().await;

    allowed(&gate.get(&origin.url_at("open.example", "/x")).await, "no-robots");
    refused(&gate.get(&origin.url_at("closed.example", "/x")).await, "rule");
    allowed(&gate.get(&origin.url_at("OPEN.example", "/x")).await, "no-robots");

    assert_eq!(origin.count("/robots.txt"), 2);
}
