//! There is one fetch of an origin's robots.txt, regardless of how many requests wait for it.

use crate::support::{Gate, Latch, Origin, ROBOTS, Reply, Step, allowed, refused, wait};

const CROWD: usize = 1000;

#[tokio::test]
async fn simultaneous_requests_to_a_new_origin_make_one_fetch() {
    let latch = Latch::new();
    let origin = Origin::start()
        .reply("/robots.txt", Reply::ok("text/plain", ROBOTS).after(&latch))
        .anything("page")
        .spawn()
        .await;
    let gate = Gate::with("[robots]\nwait = \"1m\"").await;
    let path = |n: usize| if n.is_multiple_of(2) { "/x" } else { "/private" };

    let mut crowd = Vec::new();
    for n in 0..CROWD {
        let mut connection = gate.dial().await;
        let url = origin.url(path(n));
        connection
            .send(format!(
                "GET {url} HTTP/1.1\r\nHost: {}\r\nUser-Agent: TestBot/1.0\r\n\r\n",
                origin.authority()
            ))
            .await;
        crowd.push(connection);
    }
    wait::until("the fetch", || (origin.count("/robots.txt") == 1).then_some(())).await;
    latch.open();

    for (n, connection) in crowd.iter_mut().enumerate() {
        let response = connection.response_to("GET").await;
        if n.is_multiple_of(2) {
            allowed(&response, "no-rule")
        } else {
            refused(&response, "rule")
        };
    }
    assert_eq!(origin.count("/robots.txt"), 1);
    let (decisions, _) = gate.audited(CROWD).await;
    let misses = decisions
        .iter()
        .filter(|record| record["robots_cache"] == "miss")
        .count();
    assert_eq!(misses, 1, "the others waited or came later");
}

#[tokio::test]
async fn a_client_that_disconnects_does_not_cancel_the_fetch() {
    let latch = Latch::new();
    let origin = Origin::start()
        .reply("/robots.txt", Reply::ok("text/plain", ROBOTS).after(&latch))
        .anything("page")
        .spawn()
        .await;
    let gate = Gate::start().await;
    let mut first = gate.dial().await;
    first
        .send(format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: TestBot\r\n\r\n",
            origin.url("/x"),
            origin.authority()
        ))
        .await;
    wait::until("the fetch", || (origin.count("/robots.txt") == 1).then_some(())).await;

    drop(first);
    let second = tokio::spawn(gate.get(&origin.url("/private")).into_future());
    tokio::task::yield_now().await;
    latch.open();

    refused(&second.await.expect("no panic"), "rule");
    assert_eq!(origin.count("/robots.txt"), 1);
}

#[tokio::test]
async fn one_origin_does_not_wait_for_another() {
    let stalled = Origin::start()
        .reply("/robots.txt", Reply::script([Step::Stall]))
        .spawn()
        .await;
    let quick = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let gate = Gate::with("[robots]\nwait = \"1m\"").await;
    let waiting = tokio::spawn(gate.get(&stalled.url("/x")).into_future());
    wait::until("the fetch", || (stalled.count("/robots.txt") == 1).then_some(())).await;

    allowed(&gate.get(&quick.url("/x")).await, "no-rule");

    assert!(!waiting.is_finished());
    waiting.abort();
}

#[tokio::test]
async fn a_copy_is_used_for_every_later_request() {
    let origin = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let gate = Gate::start().await;

    for n in 0..4 {
        allowed(&gate.get(&origin.url(&format!("/{n}"))).await, "no-rule");
    }

    origin.change("/robots.txt", Reply::ok("text/plain", "User-agent: *\nDisallow: /\n"));
    allowed(&gate.get(&origin.url("/4")).await, "no-rule");

    assert_eq!(origin.count("/robots.txt"), 1);
    for (n, cache) in ["miss", "hit", "hit", "hit"].into_iter().enumerate() {
        assert_eq!(
            gate.decision_for(&origin.url(&format!("/{n}"))).await["robots_cache"],
            cache
        );
    }
}
