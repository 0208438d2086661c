//! Requests in an intercepted CONNECT, over HTTP/1.1 and HTTP/2.

use super::open;
use crate::support::{Alpn, Gate, NAME, Origin, ROBOTS, Reply, allowed, refused};

const EVERY: [Alpn; 3] = [Alpn::None, Alpn::Http1, Alpn::Http2];

#[tokio::test]
async fn each_request_is_decided_on_its_own() {
    for alpn in EVERY {
        println!("{alpn:?}");
        let origin = Origin::start().robots(ROBOTS).page("/x", "secret").tls().spawn().await;
        let gate = Gate::start().await;
        let mut inside = open(&gate, &origin.authority(), alpn).await;

        for _ in 0..2 {
            let page = inside.get("/x").await;
            allowed(&page, "no-rule");
            assert_eq!(page.text(), "secret");
            let denied = inside.get("/private").await;
            let decision = refused(&denied, "rule");
            assert_eq!(decision.param("robots"), Some(origin.url("/robots.txt")));
            assert_eq!(denied.json()["line"], 2);
            assert_eq!(denied.field("Cache-Control"), Some("no-store"));
        }

        assert_eq!(
            (
                origin.count("/x"),
                origin.count("/private"),
                origin.count("/robots.txt")
            ),
            (2, 0, 1)
        );
        for url in [origin.url("/x"), origin.url("/private")] {
            let about = gate
                .audit()
                .into_iter()
                .filter(|r| r["event"] == "decision" && r["url"] == url.as_str());
            assert_eq!(about.count(), 2, "{url}");
        }
    }
}

#[tokio::test]
async fn a_refusal_over_http_1_says_why_in_its_reason_phrase() {
    let origin = Origin::start().robots(ROBOTS).tls().spawn().await;
    let gate = Gate::start().await;

    let response = open(&gate, &origin.authority(), Alpn::Http1)
        .await
        .get("/private")
        .await;

    assert_eq!(response.status_line(), "HTTP/1.1 403 Disallowed by robots.txt");
}

#[tokio::test]
async fn each_request_identifies_its_bot_not_the_connect() {
    let robots = "User-agent: GoodBot\nDisallow:\n\nUser-agent: *\nDisallow: /\n";
    let origin = Origin::start().robots(robots).anything("page").tls().spawn().await;
    let gate = Gate::start().await;
    let tunnel = gate.connect(&origin.authority()).user_agent("GoodBot/1").await.opened();
    let mut inside = tunnel.tls(NAME, Alpn::Http1).await;

    refused(&inside.get("/x").await, "rule");
    allowed(&inside.get("/x").user_agent("GoodBot/1").await, "rule");
    refused(&inside.get("/x").without("User-Agent").await, "unidentified");
}

#[tokio::test]
async fn bodies_are_forwarded_both_ways() {
    let big: Vec<u8> = (0..500_000_u32).map(|n| (n % 251) as u8).collect();
    for alpn in EVERY {
        println!("{alpn:?}");
        let origin = Origin::start()
            .reply("/big", Reply::ok("video/mp4", big.clone()))
            .tls()
            .spawn()
            .await;
        let gate = Gate::start().await;
        let mut inside = open(&gate, &origin.authority(), alpn).await;

        let response = inside.ask("POST", "/big").body(b"a question").await;

        allowed(&response, "no-robots");
        assert!(response.body == big, "{} bytes came", response.body.len());
        assert_eq!(origin.only_request_for("/big").body, b"a question");
    }
}

#[tokio::test]
async fn each_stream_of_an_http_2_connection_is_decided_separately() {
    let origin = Origin::start().robots(ROBOTS).anything("page").tls().spawn().await;
    let gate = Gate::start().await;
    let mut inside = open(&gate, &origin.authority(), Alpn::Http2).await;
    let path = |n: usize| {
        if n.is_multiple_of(2) {
            format!("/x/{n}")
        } else {
            format!("/private/{n}")
        }
    };
    let paths: Vec<String> = (0..40).map(path).collect();

    let responses = inside.get_all(&paths).await;

    for (n, response) in responses.iter().enumerate() {
        if n.is_multiple_of(2) {
            allowed(response, "no-rule")
        } else {
            refused(response, "rule")
        };
    }
    assert_eq!(origin.count("/robots.txt"), 1);
}

#[tokio::test]
async fn the_origin_sees_an_ordinary_request() {
    for alpn in EVERY {
        let origin = Origin::start().page("/x", "secret").tls().spawn().await;
        let gate = Gate::start().await;

        open(&gate, &origin.authority(), alpn)
            .await
            .get("/x?a=%2f")
            .header("Cookie", "a=b")
            .await;

        let forwarded = origin.only_request_for("/x");
        assert_eq!(
            (forwarded.method.as_str(), forwarded.target.as_str()),
            ("GET", "/x?a=%2f"),
            "{alpn:?}"
        );
        assert_eq!(
            forwarded.headers.all("Host").collect::<Vec<_>>(),
            [origin.authority()],
            "{alpn:?}"
        );
        assert_eq!(
            (forwarded.field("Cookie"), forwarded.sni.as_deref()),
            (Some("a=b"), Some(NAME)),
            "{alpn:?}"
        );
        assert!(
            forwarded.field("Via").is_some_and(|via| via.contains("robotgate")),
            "{alpn:?}: {forwarded:#?}"
        );
    }
}

#[tokio::test]
async fn a_content_length_is_sent_only_if_it_is_unambiguous() {
    let empty = |head: &str| Reply::raw(format!("HTTP/1.1 {head}\r\n\r\n"));
    let origin = Origin::start()
        .reply("/304", empty("304 Not Modified\r\nETag: \"x\"\r\nContent-Length: 1234"))
        .reply("/204", empty("204 No Content\r\nContent-Length: 0"))
        .page("/page", "page")
        .tls()
        .spawn()
        .await;
    let gate = Gate::start().await;
    for (alpn, method, path, length) in [
        (Alpn::Http2, "GET", "/304", None),
        (Alpn::Http1, "GET", "/304", Some("1234")),
        (Alpn::Http2, "GET", "/204", None),
        (Alpn::Http1, "GET", "/204", None),
        (Alpn::Http2, "HEAD", "/page", Some("4")),
        (Alpn::Http1, "HEAD", "/page", Some("4")),
        (Alpn::Http2, "GET", "/page", Some("4")),
    ] {
        let tunnel = gate.connect(&origin.authority()).await.opened();
        let response = tunnel.tls(NAME, alpn).await.ask(method, path).await;
        assert_eq!(response.decision().value(), "allow", "{response:#?}");
        assert_eq!(response.field("Content-Length"), length, "{alpn:?} {method} {path}");
        let body: &[u8] = if (method, path) == ("GET", "/page") {
            b"page"
        } else {
            b""
        };
        assert_eq!(response.body, body, "{alpn:?} {method} {path}");
    }
}

/// When robotgate first uses a time-out of pingora, pingora starts a thread that wakes up 100 times a second. So
/// robotgate must not use pingora's time-outs.
#[tokio::test]
async fn the_timer_thread_of_pingora_is_not_started() {
    let over_http_1 = Origin::start().anything("page").tls().spawn().await;
    let over_http_2 = Origin::start().anything("page").alpn(&["h2"]).spawn().await;
    let plain = Origin::start().anything("page").spawn().await;
    let gate = Gate::start().await;

    allowed(&gate.get(&plain.url("/x")).await, "no-robots");
    for origin in [&over_http_1, &over_http_2] {
        for alpn in [Alpn::Http1, Alpn::Http2] {
            let mut inside = gate.connect(&origin.authority()).await.opened().tls(NAME, alpn).await;
            allowed(&inside.get("/x").await, "no-robots");
        }
    }

    let threads = gate.threads();
    assert!(threads.iter().any(|name| name == "robotgate"), "{threads:?}");
    assert!(!threads.iter().any(|name| name == "Timer thread"), "{threads:?}");
}
