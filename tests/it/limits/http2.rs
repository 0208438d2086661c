//! The bounds of an HTTP/2 connection.

use super::{allowed, failed, told};
use crate::support::{Alpn, Connection, Gate, Latch, NAME, Origin, Reply, Step, wait::until, wait::within};

async fn http2(gate: &Gate, origin: &Origin) -> Connection {
    gate.connect(&origin.authority())
        .await
        .opened()
        .tls(NAME, Alpn::Http2)
        .await
}

/// Takes requests back, as many as it takes, and counts them.
async fn take_back_until_cut_off(inside: &mut Connection) -> usize {
    let mut sent = 0;
    within("the connection to be cut off", async {
        while inside.get_and_take_back("/x").await {
            sent += 1;
            tokio::task::yield_now().await;
        }
    })
    .await;
    sent
}

#[tokio::test]
async fn no_more_requests_are_served_at_once_than_there_may_be() {
    let origin = Origin::start().anything("page").tls().spawn().await;
    let gate = Gate::with("[proxy]\nmax-http2-streams = 3").await;
    let mut inside = http2(&gate, &origin).await;

    // By now the client knows the bound and heeds it, and so all are served in the end.
    allowed(&inside.get("/x").await, "no-robots");
    let targets: Vec<String> = (0..20).map(|n| format!("/{n}")).collect();

    for response in inside.get_all(&targets).await {
        allowed(&response, "no-robots");
    }
}

#[tokio::test]
async fn a_connection_takes_no_more_requests_after_its_last() {
    let origin = Origin::start().anything("page").tls().spawn().await;
    let gate = Gate::with("[proxy]\nmax-connection-requests = 3").await;
    let mut inside = http2(&gate, &origin).await;

    for _ in 0..3 {
        allowed(&inside.get("/x").await, "no-robots");
    }

    assert!(inside.get("/x").send().await.is_err());
    allowed(&http2(&gate, &origin).await.get("/x").await, "no-robots");
    assert_eq!(origin.count("/x"), 4);
}

#[tokio::test]
async fn who_takes_request_after_request_back_is_cut_off() {
    let origin = Origin::start().anything("page").tls().spawn().await;
    let gate = Gate::with("[proxy]\nmax-http2-resets = 20").await;
    let mut other = http2(&gate, &origin).await;
    allowed(&other.get("/x").await, "no-robots");
    let mut inside = http2(&gate, &origin).await;

    let sent = take_back_until_cut_off(&mut inside).await;

    assert!(sent >= 20, "cut off after {sent}");
    assert_eq!(told(&gate, "max-http2-resets").await, 1);
    allowed(&other.get("/x").await, "no-robots");
}

#[tokio::test]
async fn what_was_begun_for_requests_that_were_taken_back_is_bounded_too() {
    let latch = Latch::new();
    let robots = Reply::script([
        Step::Wait(latch.clone()),
        Step::send("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
    ]);
    let origin = Origin::start()
        .reply("/robots.txt", robots)
        .anything("page")
        .tls()
        .spawn()
        .await;
    // All of them wait for the robots.txt, so that none ends.
    let gate = Gate::with(
        "[proxy]\nmax-http2-streams = 5\nmax-http2-resets = 1000000\n[robots]\nwait = \"60s\"\nfetch-timeout = \"60s\"\n\
         fetch-idle-timeout = \"60s\"",
    )
    .await;
    let mut inside = http2(&gate, &origin).await;

    take_back_until_cut_off(&mut inside).await;

    assert_eq!(told(&gate, "max-http2-resets").await, 1);
    latch.open();
    until("the gate to serve others", || {
        (origin.count("/robots.txt") == 1).then_some(())
    })
    .await;
    allowed(&http2(&gate, &origin).await.get("/y").await, "no-robots");
}

#[tokio::test]
async fn a_head_over_its_bounds_is_told_as_over_http_1() {
    let origin = Origin::start().anything("page").tls().spawn().await;
    let gate = Gate::with("[proxy]\nmax-header-fields = 20\nmax-header-bytes = \"2KiB\"").await;
    let mut inside = http2(&gate, &origin).await;
    let many = (0..30)
        .fold(inside.get("/x"), |ask, n| ask.header(&format!("X-{n}"), "y"))
        .await;
    let long = inside.get("/x").header("X-Long", &"y".repeat(2100)).await;

    for (response, key) in [(many, "max-header-fields"), (long, "max-header-bytes")] {
        failed(&response, 431, &["http_request_error"]);
        assert!(response.text().contains(key), "{response:#?}");
        assert_eq!(told(&gate, key).await, 1);
    }
    assert_eq!(origin.count("/x"), 0);
    allowed(&inside.get("/x").await, "no-robots");
}

#[tokio::test]
async fn content_that_stops_coming_is_the_clients_fault() {
    let origin = Origin::start().anything("page").tls().spawn().await;
    let gate = Gate::with("[proxy]\nread-timeout = \"300ms\"").await;
    let mut inside = http2(&gate, &origin).await;

    let response = inside.post_in_part("/x", b"some").await;

    failed(&response, 408, &["http_request_error"]);
    assert_eq!(told(&gate, "body-timeout").await, 1);
    let (_, completions) = gate.audited(1).await;
    assert_eq!(completions[0]["error"], "http_request_error", "{completions:#?}");
}
