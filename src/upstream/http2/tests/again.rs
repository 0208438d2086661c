//! Tests whether a request can be sent again after its HTTP/2 stream has failed.

use h2::Reason;

use super::*;

#[tokio::test(start_paused = true)]
async fn the_reason_of_a_reset_says_if_the_request_was_processed() {
    let (shared, mut origin) = Origin::start(Bounds::default(), |_| {}).await;
    for (reason, unprocessed, http1) in [
        (Reason::REFUSED_STREAM, true, false),
        (Reason::HTTP_1_1_REQUIRED, false, true),
        (Reason::CANCEL, false, false),
        (Reason::INTERNAL_ERROR, false, false),
        (Reason::NO_ERROR, false, false),
    ] {
        let mut stream = shared.send(get("/"), true).expect("room");
        origin.next_request().await.1.send_reset(reason);
        let error = head(&mut stream).await.expect_err("no head");
        assert_eq!(
            (error.is_unprocessed(), error.needs_http1()),
            (unprocessed, http1),
            "{reason:?}"
        );
        assert_eq!(Fault::from(error), Fault::ConnectionTerminated);
    }
    assert!(shared.has_room(false), "the connection goes on");
}

#[tokio::test(start_paused = true)]
async fn a_reset_after_the_head_counts_as_processed() {
    let (shared, mut origin) = Origin::start(Bounds::default(), |_| {}).await;
    let mut stream = shared.send(get("/"), true).expect("room");
    let (_, mut respond) = origin.next_request().await;
    let mut body = respond.send_response(Response::new(()), false).expect("it is open");
    head(&mut stream).await.expect("a head");
    body.send_reset(Reason::REFUSED_STREAM);
    let error = content(&mut stream).await.expect_err("it broke off");
    assert!(!error.is_unprocessed() && !error.needs_http1());
    assert_eq!(Fault::from(error), Fault::ResponseIncomplete);
}

#[tokio::test(start_paused = true)]
async fn a_goaway_ends_only_the_streams_above_its_last() {
    let (shared, mut raw) = Raw::start(Bounds::default()).await;
    let mut first = shared.send(get("/1"), true).expect("room");
    let mut second = shared.send(get("/2"), false).expect("room");
    second.push(vec![b'x'; 1 << 20].into(), true);
    raw.wait_for_requests(2).await;
    raw.send(GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0]).await;

    let error = head(&mut second).await.expect_err("it is above the last");
    assert!(error.is_unprocessed(), "{error:?}");
    poll_fn(|cx| second.poll_room(cx)).await;
    assert!(!second.wants_content());
    assert!(shared.is_closed() && !shared.has_room(false));
    let error = shared.send(get("/3"), true).expect_err("it goes away");
    assert!(error.is_unprocessed(), "{error:?}");

    raw.send(HEADERS, END_HEADERS, 1, &[OK]).await;
    raw.send(DATA, END_STREAM, 1, b"whole").await;
    assert_eq!(head(&mut first).await.expect("a head").status, StatusCode::OK);
    assert_eq!(content(&mut first).await.expect("content"), b"whole");
    drop((first, second));
    assert_eq!(raw.next(&[PING]).await, None, "we close it once no stream is left");
}

#[tokio::test(start_paused = true)]
async fn after_a_broken_connection_a_request_may_have_been_processed() {
    let (shared, mut raw) = Raw::start(Bounds::default()).await;
    let mut first = shared.send(get("/1"), true).expect("room");
    let mut second = shared.send(get("/2"), true).expect("room");
    raw.wait_for_requests(2).await;
    raw.send(HEADERS, END_HEADERS, 1, &[OK]).await;
    head(&mut first).await.expect("a head");
    drop(raw);

    let error = content(&mut first).await.expect_err("it broke off");
    assert_eq!(Fault::from(error), Fault::ResponseIncomplete);
    let error = head(&mut second).await.expect_err("it broke off");
    assert!(!error.is_unprocessed(), "{error:?}");
    assert_eq!(Fault::from(error), Fault::ConnectionTerminated);
    until(|| shared.is_closed()).await;
    assert!(shared.send(get("/3"), true).expect_err("it is closed").is_unprocessed());
}
