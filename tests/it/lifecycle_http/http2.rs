//! Origins that support HTTP/2: robotgate uses it, and a robots.txt means the same as over HTTP/1.1.

use super::{Means, RULES};
use crate::support::{Connection, Gate, NAME, Origin, Reply, refused, wait::until};

const ONLY: &[&str] = &["h2"];
const BOTH: &[&str] = &["h2", "http/1.1"];

#[tokio::test]
async fn an_origin_that_speaks_only_http_2_has_rules() {
    let origin = Origin::start().alpn(ONLY).robots(RULES).spawn().await;
    let gate = Gate::with("[robots]\nuser-agent = \"Fetcher/1.0\"").await;

    refused(&gate.get(&origin.url("/p")).await, "rule");

    let request = origin.only_request_for("/robots.txt");
    assert_eq!(request.version, "HTTP/2");
    let fields: Vec<_> = request
        .headers
        .0
        .iter()
        .map(|(name, value)| (&**name, &**value))
        .collect();
    assert_eq!(
        fields,
        [
            ("Host", &*origin.authority()),
            ("user-agent", "Fetcher/1.0"),
            ("accept", "text/plain,*/*;q=0.8"),
            ("accept-encoding", "gzip"),
        ]
    );
    let decision = gate.decision_for(&origin.url("/p")).await;
    assert_eq!(decision["robots_status"], 200, "{decision:#}");
}

#[tokio::test]
async fn http_2_is_offered_unless_it_is_switched_off() {
    for (overrides, protocols, spoken) in [
        ("", BOTH, Some("HTTP/2")),
        ("[https]\nupstream-http2 = true", BOTH, Some("HTTP/2")),
        ("", &["http/1.1"], Some("HTTP/1.1")),
        ("[https]\nupstream-http2 = false", BOTH, Some("HTTP/1.1")),
        ("[https]\nupstream-http2 = false", ONLY, None),
    ] {
        let origin = Origin::start()
            .alpn(protocols)
            .robots(RULES)
            .page("/open", "page")
            .spawn()
            .await;
        let gate = Gate::with(overrides).await;

        let response = gate.get(&origin.url("/open")).await;

        match spoken {
            Some(_) => assert_eq!(response.text(), "page"),
            None => drop(refused(&response, "unreachable")),
        }
        for path in ["/robots.txt", "/open"] {
            let requests = origin.requests_for(path);
            let versions: Vec<_> = requests.iter().map(|request| &*request.version).collect();
            assert_eq!(versions, Vec::from_iter(spoken), "{overrides} {protocols:?} {path}");
        }
    }
}

#[tokio::test]
async fn a_response_means_the_same_as_over_http_1_1() {
    let start = || Origin::start().alpn(ONLY);
    let long = format!("{RULES}{}", "# a line of no rules\n".repeat(100_000));
    for (name, reply, shown) in [
        ("rules", Reply::ok("text/plain", RULES), Some("rule")),
        ("gzip", Reply::gzip(RULES.as_bytes()), Some("rule")),
        ("more than counts", Reply::ok("text/plain", long), Some("rule")),
        ("a server error", Reply::status(503), Some("unreachable")),
        ("part of it", Reply::status(206), Some("unreachable")),
        ("no such page", Reply::status(404), None),
    ] {
        let origin = start().reply("/robots.txt", reply).spawn().await;
        let gate = Gate::start().await;
        println!("{name}");
        let url = origin.url("/p");
        let response = gate.get(&url).await;
        match shown {
            Some(reason) => drop(refused(&response, reason)),
            None => assert_eq!(gate.decision_for(&url).await["reason"], "no-robots"),
        }
    }
}

#[tokio::test]
async fn redirects_work_between_http_versions() {
    let plain = Origin::start().robots(RULES).spawn().await;
    let there = Origin::start()
        .alpn(ONLY)
        .reply("/robots.txt", Reply::redirect(&plain.url("/robots.txt")))
        .spawn()
        .await;
    let back = Origin::start()
        .reply("/robots.txt", Reply::redirect(&there.url("/robots.txt")))
        .anything("page")
        .spawn()
        .await;
    let gate = Gate::start().await;

    refused(&gate.get(&there.url("/p")).await, "rule");
    Means::Rules.holds(&gate, &back, NAME).await;
}

#[tokio::test]
async fn clients_that_do_not_read_do_not_delay_others_on_the_connection() {
    let large = "x".repeat(4 << 20);
    let origin = Origin::start()
        .alpn(ONLY)
        .robots(RULES)
        .page("/large", &large)
        .spawn()
        .await;
    let gate = Gate::start().await;
    assert_eq!(gate.get(&origin.url("/large")).await.body.len(), large.len());

    let mut unread = Vec::new();
    for _ in 0..10 {
        let mut connection = gate.dial().await;
        let (url, host) = (origin.url("/large"), origin.authority());
        let head = format!("GET {url} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: TestBot/1.0\r\n\r\n");
        connection.send(head).await;
        unread.push(connection);
    }
    until("all to be asked", || (origin.count("/large") == 11).then_some(())).await;

    assert_eq!(gate.get(&origin.url("/large")).await.body.len(), large.len());
    assert_eq!(origin.connections(), 1, "the robots.txt and all pages");
}

#[tokio::test]
async fn many_successive_responses_use_one_connection() {
    let origin = Origin::start().alpn(ONLY).page("/open", "page").spawn().await;
    let gate = Gate::start().await;
    let mut proxy = Connection::to(gate.address()).await.unwrap();

    // After 100 cancelled streams on a connection, robotgate sends no more requests on it. Complete responses must not
    // count as cancelled.
    for _ in 0..120 {
        assert_eq!(proxy.get(&origin.url("/open")).await.text(), "page");
    }

    assert_eq!(origin.connections(), 1);
}
