//! Origins that try to affect the log, other clients, or responses of the gate itself.

use super::start;
use crate::support::{Gate, Origin, Reply, refused};

#[tokio::test]
async fn texts_of_an_origin_cannot_swell_or_corrupt_the_log() {
    let long = "A".repeat(40_000);
    for (robots, shown) in [
        (
            Reply::status(302).header("Location", &format!("gopher://{long}")),
            "unreachable",
        ),
        (
            Reply::ok(
                "text/plain",
                format!("User-agent: *\nDisallow: /{long}*\nDisallow: /x\n"),
            ),
            "rule",
        ),
        (
            Reply::ok(
                "text/plain",
                "User-agent: *\nDisallow\u{1b}]0;pwn\u{7}\u{2028}\u{85}: /x\n",
            ),
            "rule",
        ),
    ] {
        let origin = Origin::start().reply("/robots.txt", robots).spawn().await;
        let gate = Gate::start().await;
        let url = origin.url("/x");

        let response = gate.get(&url).header("Accept", "text/plain").await;

        refused(&response, shown);
        assert!(response.body.len() < 4_000, "{} bytes", response.body.len());
        let odd = |text: &str| text.chars().any(|c| c != '\n' && (c.is_control() || c == '\u{2028}'));
        assert!(!odd(&response.text()), "{:?}", response.text());
        gate.audited(1).await;
        let log = std::fs::read_to_string(gate.file("audit.jsonl")).expect("the log");
        assert!(log.lines().all(|line| line.len() < 6_000 && !odd(line)), "{log}");
    }
}

#[tokio::test]
async fn expensive_rules_do_not_delay_other_clients() {
    let needle = |n: u32| {
        (0..32).map(move |bit| {
            if n.wrapping_mul(2_654_435_761) >> (bit % 32) & 1 == 1 {
                'z'
            } else {
                'q'
            }
        })
    };
    let rules: String = (1..9_000_u32)
        .map(|n| format!("Disallow:/*{}\n", needle(n).collect::<String>()))
        .collect();
    let costly = Origin::start()
        .robots(&format!("User-agent: *\n{rules}"))
        .anything("page")
        .spawn()
        .await;
    let (origin, gate) = start().await;
    let path: String = (10_000..).flat_map(needle).take(15_000).collect();
    gate.get(&origin.url("/warm")).await;
    gate.get(&costly.url("/warm")).await;

    let mut load = Vec::new();
    for _ in 0..6 {
        let mut connection = gate.dial().await;
        let (url, host) = (costly.url(&format!("/{path}")), costly.authority());
        let head = format!("GET {url} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: TestBot/1.0\r\n\r\n");
        connection.send(head).await;
        load.push(tokio::spawn(async move { connection.response_to("GET").await }));
    }
    // The slow requests came first, and most of them end after this one.
    let response = gate.get(&origin.url("/x")).await;

    assert_eq!(response.status, 200);
    let ended = load.iter().filter(|request| request.is_finished()).count();
    assert!(ended < load.len() / 2, "{ended} ended before");
    for request in load {
        request.await.expect("no panic");
    }
}
