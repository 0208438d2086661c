//! Tests flow control in both directions, and the limit of streams.

use std::sync::atomic::AtomicUsize;

use super::*;

fn small(streams: u32) -> Bounds {
    Bounds {
        streams,
        window: 64 * 1024,
        ..Bounds::default()
    }
}

#[tokio::test(start_paused = true)]
async fn content_flows_both_ways_and_trailers_follow() {
    let (shared, mut origin) = Origin::start(Bounds::default(), |_| {}).await;
    // The content is larger than the windows of client and origin together, so the client has to read the echo while it
    // still sends.
    let sent: Bytes = (0..2_000_000_u32).map(|n| n.to_le_bytes()[n as usize % 3]).collect();
    let mut stream = shared.send(get("/echo"), false).expect("room");
    tokio::spawn(async move {
        let (request, mut respond) = origin.next_request().await;
        let mut echo = respond.send_response(Response::new(()), false).expect("it is open");
        let mut body = request.into_body();
        while let Some(part) = body.data().await {
            let part = part.expect("content");
            body.flow_control().release_capacity(part.len()).expect("it was taken");
            while echo.capacity() < part.len() {
                echo.reserve_capacity(part.len());
                poll_fn(|cx| echo.poll_capacity(cx)).await.expect("open").expect("open");
            }
            echo.send_data(part, false).expect("it is open");
        }
        let trailers = http::HeaderMap::from_iter([(http::header::ETAG, "\"e\"".parse().expect("a value"))]);
        echo.send_trailers(trailers).expect("it is open");
    });

    assert_eq!(head(&mut stream).await.expect("a head").status, StatusCode::OK);
    let mut rest = sent.clone();
    let mut received = Vec::new();
    within(poll_fn(|cx| {
        while stream.wants_content() && stream.poll_room(cx).is_ready() {
            let part = rest.split_to(rest.len().min(10_000));
            stream.push(part, rest.is_empty());
        }
        let _ = stream.poll_room(cx);
        while let Poll::Ready(part) = stream.poll_content(cx) {
            match part.expect("content") {
                Some(part) => received.extend_from_slice(&part),
                None => return Poll::Ready(()),
            }
        }
        Poll::Pending
    }))
    .await;

    assert!(
        received == sent,
        "{} of {} bytes, or others",
        received.len(),
        sent.len()
    );
    assert!(!stream.has_ended(), "the trailers are still to be taken");
    let trailers = poll_fn(|cx| stream.poll_trailers(cx)).await.expect("trailers");
    assert_eq!(trailers.expect("some")[http::header::ETAG], "\"e\"");
    assert!(stream.has_ended());
}

#[tokio::test(start_paused = true)]
async fn unread_streams_do_not_use_up_the_window_of_others() {
    let (shared, mut origin) = Origin::start(small(8), |_| {}).await;
    let content_of = Bytes::from(vec![b'x'; 1 << 20]);
    let sent = Arc::new([const { AtomicUsize::new(0) }; 8]);
    let (count, large) = (sent.clone(), content_of.clone());
    tokio::spawn(async move {
        for n in 0.. {
            let (_, mut respond) = origin.next_request().await;
            let (count, large) = (count.clone(), large.clone());
            tokio::spawn(async move {
                let mut body = respond.send_response(Response::new(()), false).expect("it is open");
                send_all(&mut body, large, |sent| {
                    count[n].fetch_add(sent, Ordering::Relaxed);
                })
                .await;
            });
        }
    });
    let mut stalled = Vec::new();
    for n in 0..7 {
        let mut stream = shared.send(get("/stalled"), true).expect("room");
        head(&mut stream).await.expect("a head");
        // The client has not asked for a second part, so the window does not open again yet.
        poll_fn(|cx| stream.poll_content(cx)).await.expect("content");
        until(|| sent[n].load(Ordering::Relaxed) == 64 * 1024).await;
        stalled.push(stream);
    }

    let mut stream = shared.send(get("/read"), true).expect("room");
    head(&mut stream).await.expect("a head");
    assert_eq!(content(&mut stream).await.expect("content").len(), 1 << 20);

    assert!(!shared.has_room(false) || shared.0.streams.load(Ordering::Relaxed) == 8);
    for (n, mut stream) in stalled.into_iter().enumerate() {
        assert_eq!(sent[n].load(Ordering::Relaxed), 64 * 1024, "no more than a window");
        assert_eq!(content(&mut stream).await.expect("content").len() + 16 * 1024, 1 << 20);
    }
}

#[tokio::test(start_paused = true)]
async fn both_sides_limit_the_number_of_streams() {
    for (ours, theirs, room) in [(2, None, 2), (2, Some(50), 2), (50, Some(3), 3), (50, Some(0), 0)] {
        let (shared, _origin) = Origin::start(small(ours), |builder| {
            if let Some(theirs) = theirs {
                builder.max_concurrent_streams(theirs);
            }
        })
        .await;
        until(|| shared.0.limit.load(Ordering::Relaxed) == room).await;

        let mut streams = Vec::new();
        while shared.has_room(false) {
            streams.push(shared.send(get("/"), true).expect("there is room"));
        }
        assert_eq!(streams.len(), room);
        let error = shared.send(get("/"), true).expect_err("there is none");
        assert!(error.is_unprocessed(), "{error:?}");
        assert!(!shared.is_closed());
        if streams.pop().is_some() {
            assert!(shared.has_room(false), "its place is free");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_early_response_is_read_if_the_origin_stops_reading() {
    let (shared, mut raw) = Raw::start(Bounds::default()).await;
    let mut stream = shared.send(get("/"), false).expect("room");
    stream.push(vec![b'x'; 1 << 20].into(), false);
    raw.wait_for_requests(1).await;
    raw.send(HEADERS, END_HEADERS, 1, &[OK]).await;
    raw.send(DATA, END_STREAM, 1, b"early").await;
    assert!(stream.wants_content());
    raw.send(RST_STREAM, 0, 1, &[0; 4]).await;

    within(poll_fn(|cx| stream.poll_room(cx))).await;

    assert!(!stream.wants_content());
    assert_eq!(head(&mut stream).await.expect("a head").status, StatusCode::OK);
    assert_eq!(content(&mut stream).await.expect("content"), b"early");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_content_can_be_sent_on_its_own() {
    for parts in [&[][..], &["a"], &["a", "b"]] {
        let (shared, mut origin) = Origin::start(Bounds::default(), |_| {}).await;
        let mut stream = shared.send(get("/"), false).expect("room");
        for part in parts {
            stream.push(Bytes::from_static(part.as_bytes()), false);
        }
        stream.push(Bytes::new(), true);
        within(poll_fn(|cx| stream.poll_room(cx))).await;
        let (request, _respond) = origin.next_request().await;
        let (mut body, mut all) = (request.into_body(), Vec::new());
        while let Some(part) = body.data().await {
            all.extend_from_slice(&part.expect("content"));
        }
        assert_eq!(all, parts.concat().as_bytes());
    }
}

#[tokio::test(start_paused = true)]
async fn content_that_an_origin_does_not_read_does_not_delay_others() {
    let (shared, mut origin) = Origin::start(Bounds::default(), |_| {}).await;
    let mut upload = shared.send(get("/upload"), false).expect("room");
    assert!(shared.has_room(false), "others go on");
    assert!(!shared.has_room(true), "the window is one for the connection");
    let refused = shared.send(get("/another"), false).expect_err("no room");
    assert!(refused.is_unprocessed());

    upload.push(Bytes::from_static(b"all"), true);
    within(poll_fn(|cx| upload.poll_room(cx))).await;
    let (_, mut respond) = origin.next_request().await;
    respond.send_response(Response::new(()), true).expect("open");
    head(&mut upload).await.expect("a head");
    drop(upload);
    assert!(shared.has_room(true), "the next may follow");

    drop(shared.send(get("/given-up"), false).expect("room"));
    assert!(
        shared.is_closed(),
        "nobody knows what the origin still holds of the window"
    );
}
