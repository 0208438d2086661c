//! A refusal: the status line, the fields and the body that a developer sees.

use crate::support::{Gate, Origin, refused};

const ROBOTS: &str = "User-agent: *\n# Nobody, please.\nDisallow: /private\n";

#[tokio::test]
async fn the_status_line_and_fields_of_a_refusal_say_why() {
    let origin = Origin::start().robots(ROBOTS).spawn().await;
    let gate = Gate::start().await;

    let response = gate.get(&origin.url("/private")).await;

    assert_eq!(response.status_line(), "HTTP/1.1 403 Disallowed by robots.txt");
    let decision = refused(&response, "rule");
    assert_eq!(decision.value(), "deny");
    let robots = origin.url("/robots.txt");
    for (name, kind, value) in [
        ("reason", "token", "rule"),
        ("line", "integer", "3"),
        ("rule", "string", "Disallow: /private"),
        ("group", "string", "*"),
        ("robots", "string", &robots),
    ] {
        assert_eq!(decision.param(name).as_deref(), Some(value), "{name}");
        assert_eq!(decision.kind(name), Some(kind), "{name}");
    }
    let id = decision.param("id").expect("an id");
    assert_eq!((id.len(), id.as_bytes()[14]), (36, b'7'), "a UUIDv7: {id}");
    let status = response.proxy_status();
    assert_eq!(status.value(), "robotgate");
    assert_eq!(
        status.param("details").as_deref(),
        Some("robots.txt line 3: Disallow: /private")
    );
    assert_eq!(response.field("Content-Type"), Some("application/problem+json"));
    assert_eq!(response.field("Cache-Control"), Some("no-store"));
}

#[tokio::test]
async fn the_body_of_a_refusal_is_problem_json() {
    let origin = Origin::start().robots(ROBOTS).spawn().await;
    let gate = Gate::start().await;

    let response = gate.get(&origin.url("/private")).await;

    let problem = response.json();
    let id = response.decision().param("id").expect("an id");
    assert_eq!(problem["status"], 403);
    assert_eq!(problem["rule"], "Disallow: /private");
    assert_eq!(problem["line"], 3);
    assert_eq!(problem["group"], "*");
    assert_eq!(problem["robots"], origin.url("/robots.txt"));
    assert!(
        problem["instance"]
            .as_str()
            .is_some_and(|instance| instance.contains(&id)),
        "{problem}"
    );
    for member in ["type", "title", "detail"] {
        assert!(
            problem[member].as_str().is_some_and(|text| !text.is_empty()),
            "{member}: {problem}"
        );
    }
}

#[tokio::test]
async fn the_body_of_a_refusal_is_text_if_the_client_prefers_it() {
    let origin = Origin::start().robots(ROBOTS).spawn().await;
    let gate = Gate::start().await;

    for (accept, wanted) in [
        ("*/*", "application/problem+json"),
        ("application/json", "application/problem+json"),
        ("application/problem+json, text/plain;q=0.5", "application/problem+json"),
        ("text/plain;q=0.1, */*", "application/problem+json"),
        ("text/plain", "text/plain"),
        ("text/plain, */*;q=0.1", "text/plain"),
        ("text/html;q=0.8, text/plain;q=0.9, */*;q=0.1", "text/plain"),
        ("application/problem+json;q=0, text/*", "text/plain"),
    ] {
        let response = gate.get(&origin.url("/private")).header("Accept", accept).await;
        refused(&response, "rule");
        let found = response.field("Content-Type").unwrap_or_default();
        assert_eq!(found.split(';').next(), Some(wanted), "Accept: {accept}");
        assert!(
            response.text().contains("Disallow: /private"),
            "Accept: {accept}: {}",
            response.text()
        );
    }
}

#[tokio::test]
async fn a_refused_head_request_gets_no_body() {
    let origin = Origin::start().robots(ROBOTS).spawn().await;
    let gate = Gate::start().await;
    let url = origin.url("/private");
    let host = origin.authority();
    let request = format!("HEAD {url} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: TestBot\r\nConnection: close\r\n\r\n");

    let bytes = gate.raw(request).await;

    let text = String::from_utf8(bytes).expect("a head is text");
    assert!(text.starts_with("HTTP/1.1 403 Disallowed by robots.txt\r\n"), "{text}");
    assert!(
        text.ends_with("\r\n\r\n") && text.matches("\r\n\r\n").count() == 1,
        "{text}"
    );
}

#[tokio::test]
async fn after_a_refused_body_the_connection_is_usable_or_closed() {
    let origin = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let gate = Gate::start().await;

    for body in [vec![b'x'; 10], vec![b'x'; 300_000]] {
        let mut connection = gate.dial().await;
        let response = connection.ask("POST", &origin.url("/private")).body(&body).await;
        refused(&response, "rule");
        if response.stays_open {
            let next = connection.get(&origin.url("/x")).await;
            assert_eq!((next.status, next.text().as_str()), (200, "page"));
        }
    }
    assert_eq!(origin.count("/private"), 0);
}
