//! Tests how long a connection is kept, and how the connection and its streams end.

use h2::Reason;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_ping_reply_is_closed() {
    let (shared, _mute) = Raw::start(Bounds::default()).await;
    let mut stream = shared.send(get("/"), true).expect("room");
    let began = tokio::time::Instant::now();

    let error = head(&mut stream).await.expect_err("nobody is there");

    assert_eq!(
        began.elapsed().as_secs(),
        20,
        "a PING after 10 s, and 10 s for its answer"
    );
    assert!(!error.is_unprocessed());
    assert_eq!(Fault::from(error), Fault::ReadTimeout);
    until(|| shared.is_closed()).await;
}

#[tokio::test(start_paused = true)]
async fn a_response_may_take_hours_if_pings_are_answered() {
    let (shared, mut origin) = Origin::start(Bounds::default(), |_| {}).await;
    let mut stream = shared.send(get("/"), true).expect("room");
    let (_request, mut respond) = origin.next_request().await;
    tokio::time::sleep(Duration::from_secs(7200)).await;
    respond.send_response(Response::new(()), true).expect("it is open");
    assert_eq!(head(&mut stream).await.expect("a head").status, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_sends_no_pings_and_is_closed() {
    let (shared, mut raw) = Raw::start(Bounds::default()).await;
    let began = tokio::time::Instant::now();
    let (kind, payload) = raw.next(&[PING, GOAWAY]).await.expect("an end");
    assert_eq!((kind, &payload[4..]), (GOAWAY, &[0; 4][..]), "NO_ERROR");
    assert_eq!(began.elapsed(), IDLE);
    assert_eq!(raw.next(&[]).await, None, "it is closed");
    assert!(shared.is_closed());
}

#[tokio::test(start_paused = true)]
async fn the_idle_time_starts_when_the_last_stream_ends() {
    let (shared, mut origin) = Origin::start(Bounds::default(), |_| {}).await;
    for _ in 0..5 {
        let mut stream = shared.send(get("/"), true).expect("room");
        let (_request, mut respond) = origin.next_request().await;
        respond.send_response(Response::new(()), true).expect("it is open");
        head(&mut stream).await.expect("a head");
        drop(stream);
        tokio::time::sleep(IDLE - Duration::from_secs(1)).await;
        assert!(shared.has_room(false));
    }
    tokio::time::sleep(Bounds::default().silence + Duration::from_secs(2)).await;
    assert!(shared.is_closed());
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_dropped_is_cancelled() {
    let (shared, mut origin) = Origin::start(Bounds::default(), |_| {}).await;
    let stream = shared.send(get("/"), true).expect("room");
    let (_request, mut respond) = origin.next_request().await;
    drop(stream);
    let reason = poll_fn(|cx| respond.poll_reset(cx)).await.expect("a reset");
    assert_eq!(reason, Reason::CANCEL);
    assert_eq!(shared.0.cancelled.load(Ordering::Relaxed), 1);
    assert_eq!(shared.0.streams.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn after_many_cancelled_streams_a_connection_gets_no_new_ones() {
    let (shared, mut origin) = Origin::start(Bounds::default(), |_| {}).await;
    let mut kept = shared.send(get("/kept"), true).expect("room");
    let (_request, mut respond) = origin.next_request().await;
    // A stream that is dropped after the whole response has arrived does not count as cancelled.
    for _ in 0..MAX_CANCELLED {
        let mut stream = shared.send(get("/"), true).expect("room");
        let (_request, mut respond) = origin.next_request().await;
        respond.send_response(Response::new(()), true).expect("it is open");
        head(&mut stream).await.expect("a head");
    }
    for _ in 0..MAX_CANCELLED {
        assert!(shared.has_room(false));
        drop(shared.send(get("/"), true).expect("room"));
        origin.requests.recv().await;
    }

    assert!(shared.is_closed());
    assert!(shared.send(get("/"), true).expect_err("no more").is_unprocessed());
    respond.send_response(Response::new(()), true).expect("it is open");
    assert_eq!(head(&mut kept).await.expect("a head").status, StatusCode::OK);
}
