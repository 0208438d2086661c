//! Failures below HTTP: everything is disallowed until the origin responds, and no request waits longer than
//! `robots.wait`.

use std::time::Duration;

use super::{
    Means::{self, Closed},
    RULES, check,
};

const QUICK: &str = "[robots]\nwait = \"500ms\"";

use crate::support::{Blackhole, DnsAnswer, Gate, NAME, Origin, Reply, Step, refused};

#[tokio::test]
async fn a_broken_response_is_a_failure() {
    let short = format!("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{RULES}");
    let no_end = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";
    let bad_size = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n";
    check(vec![
        ("reset at once", Reply::script([Step::Reset]), Closed),
        ("close at once", Reply::script([Step::Close]), Closed),
        (
            "reset inside the body",
            Reply::script([Step::send(short.clone()), Step::Reset]),
            Closed,
        ),
        ("less than was promised", Reply::raw(short), Closed),
        ("no last chunk", Reply::raw(no_end), Closed),
        ("a chunk size that is none", Reply::raw(bad_size), Closed),
        ("no HTTP at all", Reply::raw("hello, I am a teapot\r\n\r\n"), Closed),
        ("half a head", Reply::raw("HTTP/1.1 200 OK\r\nContent-"), Closed),
    ])
    .await;
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_a_failure() {
    let gate = Gate::with(QUICK).await;

    for (name, answer) in [
        ("none.example", DnsAnswer::NoSuchName),
        ("broken.example", DnsAnswer::ServerFailure),
        ("empty.example", DnsAnswer::Addresses(vec![])),
        ("mute.example", DnsAnswer::Silence),
    ] {
        gate.dns().answer(name, answer);
        let url = format!("http://{name}/x");
        println!("{name}");
        refused(&gate.get(&url).await, "unreachable");
        assert_eq!(gate.decision_for(&url).await["robots_status"], serde_json::Value::Null);
    }
}

#[tokio::test]
async fn an_origin_that_cannot_be_reached_is_a_failure() {
    let mut gone = Origin::start().spawn().await;
    let hole = Blackhole::start().await;
    let gate = Gate::with(QUICK).await;
    gone.shut_down().await;

    refused(&gate.get(&gone.url("/x")).await, "unreachable");
    refused(&gate.get(&gone.url_at("127.0.0.1", "/x")).await, "unreachable");
    refused(
        &gate.get(&format!("http://hole.example:{}/x", hole.port())).await,
        "unreachable",
    );
}

#[tokio::test]
async fn no_request_waits_longer_than_robots_wait() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";
    let drip = Step::Drip {
        bytes: "x".repeat(1000).into(),
        every: Duration::from_millis(100),
    };
    for (way, answer) in [
        ("silence", Reply::script([Step::Stall])),
        ("a head and silence", Reply::script([Step::send(head), Step::Stall])),
        ("a drip", Reply::script([Step::send(head), drip])),
    ] {
        println!("{way}");
        let origin = Origin::start()
            .reply("/robots.txt", answer)
            .anything("page")
            .spawn()
            .await;
        let gate =
            Gate::with("[robots]\nwait = \"100ms\"\nfetch-timeout = \"10m\"\nfetch-idle-timeout = \"10m\"").await;

        Means::Closed.holds(&gate, &origin, NAME).await;

        let decision = gate.decision_for(&origin.url("/p")).await;
        assert_eq!(decision["robots_error"], "it is still being fetched", "{decision:#}");
        assert!(gate.fetches_of(&origin.url("")).is_empty(), "the fetch goes on");
    }
}

#[tokio::test]
async fn after_a_failure_the_origin_is_not_contacted_again() {
    let origin = Origin::start()
        .reply("/robots.txt", Reply::status(503))
        .anything("page")
        .spawn()
        .await;
    let gate = Gate::start().await;

    for _ in 0..5 {
        refused(&gate.get(&origin.url("/x")).await, "unreachable");
    }

    assert_eq!(origin.count("/robots.txt"), 1);
}
