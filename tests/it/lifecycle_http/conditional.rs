//! Conditional fetches: only an origin that sent an entity tag may respond that its robots.txt has not changed.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Means, RULES, origin_with};
use crate::support::{Gate, NAME, Origin, Record, Reply, Request, refused, wait};

const BRIEF: &str = r#"
    [robots]
    min-ttl = "1s"
    default-ttl = "1s"
    max-ttl = "1s"
    wait = "1m"

    [robots.unreachable]
    retry-first = "1s"
    retry-busy = "1s"
"#;

/// Requests a page under `host` until `count` fetches of its robots.txt have ended, and returns their records.
async fn fetches_at(gate: &Gate, origin: &Origin, host: &str, count: usize) -> Vec<Record> {
    wait::until_async(&format!("{count} fetches"), async || {
        gate.get(&origin.url_at(host, "/again")).await;
        let records = gate.fetches_of(&origin.url_at(host, ""));
        (records.len() >= count).then_some(records)
    })
    .await
}

async fn fetches(gate: &Gate, origin: &Origin, count: usize) -> Vec<Record> {
    fetches_at(gate, origin, NAME, count).await
}

/// Returns the If-None-Match of each request for a path, in order. Asserts that none has an If-Modified-Since.
fn conditions(origin: &Origin, path: &str) -> Vec<Option<String>> {
    let requests = origin.requests_for(path);
    let condition = |request: &Request| request.field("If-None-Match").map(str::to_owned);
    assert!(
        requests.iter().all(|request| !request.headers.has("If-Modified-Since")),
        "{requests:#?}"
    );
    requests.iter().map(condition).collect()
}

fn tagged(tag: &str) -> Reply {
    Reply::ok("text/plain", RULES).header("ETag", tag)
}

async fn origin_that_gives(first: Reply, then: Reply) -> Origin {
    Origin::start()
        .on("/robots.txt", move |request| {
            match request.headers.has("If-None-Match") {
                false => first.clone(),
                true => then.clone(),
            }
        })
        .anything("page")
        .spawn()
        .await
}

#[tokio::test]
async fn a_304_renews_the_rules() {
    let origin = origin_that_gives(tagged("\"v1\""), Reply::status(304)).await;
    let gate = Gate::with(BRIEF).await;

    let records = fetches(&gate, &origin, 3).await;
    Means::Rules.holds(&gate, &origin, NAME).await;

    let tag = Some("\"v1\"".to_owned());
    assert_eq!(conditions(&origin, "/robots.txt")[..3], [None, tag.clone(), tag]);
    let sha256 = &records[0]["robots_sha256"];
    assert!(sha256.is_string(), "{:#}", records[0]);
    for record in &records[1..] {
        for (name, value) in [
            ("status", 304.into()),
            ("bytes", serde_json::Value::Null),
            ("error", serde_json::Value::Null),
            ("held_sha256", sha256.clone()),
            ("robots_sha256", sha256.clone()),
            ("holds", "rules".into()),
        ] {
            assert_eq!(record[name], value, "{name} in {record:#}");
        }
    }
    let decision = gate.decision_for(&origin.url("/p")).await;
    assert_eq!(
        (&decision["robots_status"], &decision["robots_sha256"]),
        (&200.into(), sha256)
    );
    // Both times are strings of the same length, so comparing the strings compares the times.
    assert!(
        decision["robots_fetched"].as_str() >= records[1]["time"].as_str(),
        "{decision:#}"
    );
}

#[tokio::test]
async fn a_304_that_names_another_etag_does_not_renew_the_rules() {
    let changed = Reply::ok("text/plain", "User-agent: *\nDisallow: /\n").header("ETag", "\"v2\"");
    let asked = AtomicUsize::new(0);
    let origin = Origin::start()
        .on("/robots.txt", move |request| {
            let is_first = asked.fetch_add(1, Ordering::Relaxed) == 0;
            match (is_first, request.field("If-None-Match")) {
                (true, _) => tagged("\"v1\""),
                (_, Some("\"v2\"")) => Reply::status(304).header("ETag", "W/\"v2\""),
                (_, Some(_)) => Reply::status(304).header("ETag", "\"v2\""),
                (_, None) => changed.clone(),
            }
        })
        .anything("page")
        .spawn()
        .await;
    let gate = Gate::with(BRIEF).await;

    let records = fetches(&gate, &origin, 3).await;

    refused(&gate.get(&origin.url("/other")).await, "rule");
    let statuses: Vec<_> = records.iter().take(3).map(|record| record["status"].clone()).collect();
    assert_eq!(statuses, [200, 200, 304], "{records:#?}");
    let tag = |number| Some(format!("\"v{number}\""));
    assert_eq!(conditions(&origin, "/robots.txt")[..4], [None, tag(1), None, tag(2)]);
}

#[tokio::test]
async fn a_changed_file_replaces_the_copy_and_its_etag() {
    let other = Reply::ok("text/plain", "User-agent: *\nDisallow: /\n").header("ETag", "W/\"v2\"");
    let origin = origin_that_gives(tagged("\"v1\""), other).await;
    let gate = Gate::with(BRIEF).await;

    fetches(&gate, &origin, 3).await;

    refused(&gate.get(&origin.url("/other")).await, "rule");
    let tags = [None, Some("\"v1\"".to_owned()), Some("W/\"v2\"".to_owned())];
    assert_eq!(conditions(&origin, "/robots.txt")[..3], tags);
}

#[tokio::test]
async fn only_a_single_valid_etag_is_sent_as_a_condition() {
    let of_length = |length: usize| format!("\"{}\"", "x".repeat(length - 2));
    let none = Reply::ok("text/plain", RULES).header("Last-Modified", "Fri, 20 Nov 2026 23:09:08 GMT");
    let cases = [
        ("none", none, None),
        ("one", tagged("\"v1\""), Some("\"v1\"".to_owned())),
        ("a weak one", tagged("W/\"v1\""), Some("W/\"v1\"".to_owned())),
        ("as long as may be", tagged(&of_length(128)), Some(of_length(128))),
        ("longer", tagged(&of_length(129)), None),
        ("two", tagged("\"v1\"").header("ETag", "\"v1\""), None),
        ("two in one field", tagged("\"v1\", \"v2\""), None),
        ("no quotes", tagged("v1"), None),
        ("no end", tagged("\"v1"), None),
        ("one quote", tagged("\""), None),
        ("a quote inside", tagged("\"v\"1\""), None),
        ("a space inside", tagged("\"v 1\""), None),
        ("a control character inside", tagged("\"v\t1\""), None),
        ("not ASCII", tagged("\"é\""), None),
        ("a small w", tagged("w/\"v1\""), None),
    ];
    let origin = origin_with(cases.iter().map(|(_, answer, _)| answer.clone()).collect()).await;
    let gate = Gate::with(BRIEF).await;
    let host = |number: usize| format!("case-{number}.example");
    for number in 0..cases.len() {
        fetches_at(&gate, &origin, &host(number), 1).await;
    }

    for (number, (name, _, condition)) in cases.into_iter().enumerate() {
        fetches_at(&gate, &origin, &host(number), 2).await;
        let requests = origin.requests_for("/robots.txt");
        let of_it = |request: &&Request| {
            request
                .field("Host")
                .is_some_and(|field| field.starts_with(&host(number)))
        };
        let second = requests.iter().filter(of_it).nth(1).expect("it was fetched twice");
        assert_eq!(second.field("If-None-Match"), condition.as_deref(), "{name}");
    }
}

#[tokio::test]
async fn an_etag_from_a_redirect_target_is_not_sent() {
    let origin = Origin::start()
        .reply("/robots.txt", Reply::redirect("/real.txt").header("ETag", "\"v0\""))
        .reply("/real.txt", tagged("\"v1\""))
        .anything("page")
        .spawn()
        .await;
    let gate = Gate::with(BRIEF).await;

    fetches(&gate, &origin, 2).await;

    Means::Rules.holds(&gate, &origin, NAME).await;
    for path in ["/robots.txt", "/real.txt"] {
        assert_eq!(conditions(&origin, path)[..2], [None, None], "{path}");
    }
}

#[tokio::test]
async fn a_redirect_target_is_fetched_without_the_condition() {
    let origin = Origin::start()
        .on("/robots.txt", |request| match request.headers.has("If-None-Match") {
            false => tagged("\"v1\""),
            true => Reply::redirect("/real.txt"),
        })
        .page("/real.txt", "User-agent: *\nDisallow: /\n")
        .anything("page")
        .spawn()
        .await;
    let gate = Gate::with(BRIEF).await;

    fetches(&gate, &origin, 2).await;

    refused(&gate.get(&origin.url("/other")).await, "rule");
    assert_eq!(
        conditions(&origin, "/robots.txt")[..2],
        [None, Some("\"v1\"".to_owned())]
    );
    assert_eq!(conditions(&origin, "/real.txt")[0], None);
}

#[tokio::test]
async fn a_304_to_an_unconditional_request_is_a_failure() {
    let origin = origin_that_gives(Reply::status(304).header("ETag", "\"v1\""), tagged("\"v1\"")).await;
    let redirected = Origin::start()
        .on("/robots.txt", |request| match request.headers.has("If-None-Match") {
            false => tagged("\"v1\""),
            true => Reply::redirect("/real.txt"),
        })
        .reply("/real.txt", Reply::status(304))
        .anything("page")
        .spawn()
        .await;
    let gate = Gate::with(BRIEF).await;

    let (records, redirected) = tokio::join!(fetches(&gate, &origin, 2), fetches(&gate, &redirected, 2));

    for record in records.iter().chain(&redirected[1..]) {
        assert_eq!(
            (&record["status"], &record["error"]),
            (&304.into(), &"the server answered 304".into()),
            "{record:#}"
        );
    }
    assert_eq!(conditions(&origin, "/robots.txt")[..2], [None, None]);
    assert_eq!(records[0]["holds"], "unreachable");
}

#[tokio::test]
async fn after_a_client_error_the_fetch_is_repeated_without_the_condition() {
    let refusing = origin_that_gives(tagged("\"v1\""), Reply::status(412)).await;
    let gone = origin_that_gives(tagged("\"v1\""), Reply::status(404)).await;
    let gate = Gate::with(BRIEF).await;
    fetches(&gate, &gone, 1).await;
    gone.change("/robots.txt", Reply::status(404));

    let (records, of_gone) = tokio::join!(fetches(&gate, &refusing, 2), fetches(&gate, &gone, 2));

    let expected = [None, Some("\"v1\"".to_owned()), None];
    assert_eq!(conditions(&refusing, "/robots.txt")[..3], expected);
    assert_eq!(conditions(&gone, "/robots.txt")[..3], expected);
    let summary = |record: &Record| (record["status"].clone(), record["holds"].clone());
    assert_eq!(summary(&records[1]), (200.into(), "rules".into()));
    assert_eq!(summary(&of_gone[1]), (404.into(), "no-robots".into()));
    assert_eq!(records[1]["redirects"], serde_json::json!([]));
}

#[tokio::test]
async fn a_429_to_a_conditional_fetch_is_not_repeated() {
    let origin = origin_that_gives(tagged("\"v1\""), Reply::status(429).header("Retry-After", "60")).await;
    let gate = Gate::with(BRIEF).await;

    let records = fetches(&gate, &origin, 2).await;

    assert_eq!(records[1]["error"], "the server answered 429");
    assert_eq!(origin.count("/robots.txt"), 2);
}
