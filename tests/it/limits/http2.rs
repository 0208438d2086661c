//! The limits of an HTTP/2 connection.

use super::{allowed, failed, logged_total, slow_origin};
use crate::support::{
    Alpn, Connection, Frames, Gate, Latch, NAME, Origin, Outcome, Reply, Step, frames::RST_STREAM, wait::until,
    wait::within,
};

async fn http2(gate: &Gate, origin: &Origin) -> Connection {
    gate.connect(&origin.authority())
        .await
        .opened()
        .tls(NAME, Alpn::Http2)
        .await
}

async fn reset_streams_until_disconnected(inside: &mut Connection) -> usize {
    let mut sent = 0;
    within("the connection to be cut off", async {
        while inside.get_and_reset("/x").await {
            sent += 1;
            tokio::task::yield_now().await;
        }
    })
    .await;
    sent
}

#[tokio::test]
async fn the_number_of_concurrent_streams_is_limited() {
    let origin = Origin::start().anything("page").tls().spawn().await;
    let gate = Gate::with("[proxy]\nmax-http2-streams = 3").await;
    let mut inside = http2(&gate, &origin).await;

    // The client now knows and respects the limit, so all requests are served.
    allowed(&inside.get("/x").await, "no-robots");
    let targets: Vec<String> = (0..20).map(|n| format!("/{n}")).collect();

    for response in inside.get_all(&targets).await {
        allowed(&response, "no-robots");
    }
}

#[tokio::test]
async fn a_connection_accepts_no_request_after_its_last() {
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
async fn a_client_that_resets_too_many_streams_is_disconnected() {
    let origin = Origin::start().anything("page").tls().spawn().await;
    let gate = Gate::with("[proxy]\nmax-http2-resets = 20").await;
    let mut other = http2(&gate, &origin).await;
    allowed(&other.get("/x").await, "no-robots");
    let mut inside = http2(&gate, &origin).await;

    let sent = reset_streams_until_disconnected(&mut inside).await;

    assert!(sent >= 20, "cut off after {sent}");
    assert_eq!(logged_total(&gate, "max-http2-resets").await, 1);
    allowed(&other.get("/x").await, "no-robots");
}

#[tokio::test]
async fn work_for_cancelled_requests_is_limited() {
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
    // All requests have to wait for the robots.txt, so none of them ends.
    let gate = Gate::with(
        "[proxy]\nmax-http2-streams = 5\nmax-http2-resets = 1000000\n[robots]\nwait = \"60s\"\nfetch-timeout = \"60s\"\n\
         fetch-idle-timeout = \"60s\"",
    )
    .await;
    let mut inside = http2(&gate, &origin).await;

    reset_streams_until_disconnected(&mut inside).await;

    assert_eq!(logged_total(&gate, "max-http2-resets").await, 1);
    latch.open();
    until("the gate to serve others", || {
        (origin.count("/robots.txt") == 1).then_some(())
    })
    .await;
    allowed(&http2(&gate, &origin).await.get("/y").await, "no-robots");
}

#[tokio::test]
async fn a_head_over_its_limits_gets_the_same_error_as_over_http_1() {
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
        assert_eq!(logged_total(&gate, key).await, 1);
    }
    assert_eq!(origin.count("/x"), 0);
    allowed(&inside.get("/x").await, "no-robots");
}

#[tokio::test]
async fn content_that_stops_arriving_is_a_client_error() {
    let origin = Origin::start().anything("page").tls().spawn().await;
    let gate = Gate::with("[proxy]\nbody-timeout = \"300ms\"").await;
    let mut inside = http2(&gate, &origin).await;

    let response = inside.post_without_end("/x", b"some").await;

    failed(&response, 408, &["http_request_error"]);
    assert_eq!(logged_total(&gate, "body-timeout").await, 1);
    let (_, completions) = gate.audited(1).await;
    assert_eq!(completions[0]["error"], "http_request_error", "{completions:#?}");
}

async fn ask_for_a_slow_page(gate: &Gate, origin: &Origin) -> Frames {
    let mut inside = gate.connect(&origin.authority()).await.opened().frames(NAME).await;
    inside.send(&request(&origin.authority(), b"/slow"), &[]).await;
    until("the request", || (origin.count("/slow") == 1).then_some(())).await;
    inside
}

fn request<'a>(authority: &'a str, path: &'a [u8]) -> Vec<(&'a [u8], &'a [u8])> {
    vec![
        (b":method", b"GET"),
        (b":scheme", b"https"),
        (b":authority", authority.as_bytes()),
        (b":path", path),
        (b"user-agent", b"TestBot/1.0"),
    ]
}

async fn was_aborted(gate: &Gate, origin: &Origin) {
    let decision = gate.decision_for(&origin.url("/slow")).await;
    let completion = gate.completion_of(&decision).await;
    assert_eq!(completion["error"], "aborted", "{completion:#}");
}

#[tokio::test]
async fn a_request_on_a_connection_with_too_many_resets_is_aborted() {
    let (origin, _latch) = slow_origin().await;
    let gate = Gate::with("[proxy]\nmax-http2-resets = 20").await;
    let mut inside = ask_for_a_slow_page(&gate, &origin).await;

    within("the connection to be cut off", async {
        loop {
            let stream = inside.send(&request(&origin.authority(), b"/x"), &[]).await;
            inside.frame(RST_STREAM, 0, stream, &[0, 0, 0, 8]).await;
            if gate.logged_limit("max-http2-resets") > 0 {
                return;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;

    was_aborted(&gate, &origin).await;
}

#[tokio::test]
async fn a_request_on_a_connection_with_too_many_malformed_ones_is_aborted() {
    let (origin, _latch) = slow_origin().await;
    let gate = Gate::start().await;
    let mut inside = ask_for_a_slow_page(&gate, &origin).await;

    within("the connection to be cut off", async {
        loop {
            let stream = inside.send(&request("user@shop.example", b"/x"), &[]).await;
            if inside.outcome(stream).await == Outcome::Closed {
                return;
            }
        }
    })
    .await;

    was_aborted(&gate, &origin).await;
}

#[tokio::test]
async fn a_request_whose_client_disconnects_is_logged_as_client_gone() {
    let (origin, _latch) = slow_origin().await;
    let gate = Gate::start().await;

    drop(ask_for_a_slow_page(&gate, &origin).await);

    let decision = gate.decision_for(&origin.url("/slow")).await;
    let completion = gate.completion_of(&decision).await;
    assert_eq!(completion["error"], "client_gone", "{completion:#}");
}

#[tokio::test]
async fn a_slow_client_gets_its_complete_last_response() {
    const LENGTH: usize = 512 * 1024;
    let origin = Origin::start().anything(&"x".repeat(LENGTH)).tls().spawn().await;
    let gate = Gate::with("[proxy]\nmax-connection-requests = 1").await;
    let mut inside = gate.connect(&origin.authority()).await.opened().frames(NAME).await;
    inside.open_window(1 << 20).await;
    let stream = inside.send(&request(&origin.authority(), b"/x"), &[]).await;
    // The client has not read anything yet, and the gate has sent the whole response.
    gate.audited(1).await;

    assert_eq!(inside.content_with_pings(stream).await, (LENGTH, true));
}

#[tokio::test]
async fn only_connections_without_a_request_end_as_idle() {
    let (origin, latch) = slow_origin().await;
    let gate = Gate::with("[proxy]\nidle-timeout = \"300ms\"").await;
    let mut busy = ask_for_a_slow_page(&gate, &origin).await;
    let mut idle = gate.connect(&origin.authority()).await.opened().frames(NAME).await;
    let stream = idle.send(&request(&origin.authority(), b"/x"), &[]).await;
    assert_eq!(idle.outcome(stream).await, Outcome::Status(200));

    within("the end of the idle connection", idle.drain()).await;

    // robotgate has closed the idle connection only for sending, and waits until the client closes it too. So both
    // connections still count as open.
    let open = gate.admin("/metrics").await.text();
    assert!(open.contains("robotgate_connections{listener=\"http\"} 2"), "{open}");
    latch.open();
    assert_eq!(busy.outcome(1).await, Outcome::Status(200));
    let (_, completions) = gate.audited(2).await;
    assert!(completions.iter().all(|end| end["error"].is_null()), "{completions:#?}");
}

#[tokio::test]
async fn a_connection_without_a_first_request_ends_after_the_header_timeout() {
    let origin = Origin::start().anything("page").tls().spawn().await;
    let gate = Gate::with("[proxy]\nheader-timeout = \"300ms\"").await;

    let mut silent = gate.connect(&origin.authority()).await.opened().frames(NAME).await;

    within("the end of the connection", silent.drain()).await;
}
