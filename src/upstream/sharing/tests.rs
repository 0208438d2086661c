use std::sync::Arc;

use tokio::io::DuplexStream;

use super::*;
use crate::upstream::http2::Bounds;

const MINUTE: Duration = Duration::from_secs(60);
const MILLI: Duration = Duration::from_millis(1);

fn key() -> PoolKey {
    let origin = "https://shop.example".parse().expect("an origin");
    PoolKey::new(&origin, ([192, 0, 2, 1], 443).into())
}

async fn connection() -> (SharedConnection, DuplexStream) {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let shared = SharedConnection::open(near, &Bounds::default(), MINUTE).await;
    (shared.expect("it takes bytes"), far)
}

fn get() -> http::Request<()> {
    let request = http::Request::get("https://shop.example/");
    request.body(()).expect("a request")
}

/// Each shard has room for `each` connections.
fn sharing(each: usize) -> Arc<Sharing> {
    Arc::new(Sharing::new(each * SHARDS))
}

async fn waiting(sharing: &Arc<Sharing>, count: usize) -> Vec<tokio::task::JoinHandle<Option<SharedConnection>>> {
    let wait = || {
        let sharing = sharing.clone();
        tokio::spawn(async move {
            match sharing.next_step(&key(), false).await {
                NextStep::Use(shared) => Some(shared),
                NextStep::OpenAlone => None,
                NextStep::Open(_) => panic!("one is being made"),
            }
        })
    };
    let waiting = (0..count).map(|_| wait()).collect();
    // The runtime has one thread, so each `yield_now` lets one request run until it waits.
    for _ in 0..count {
        tokio::task::yield_now().await;
    }
    waiting
}

#[tokio::test]
async fn over_the_limit_the_least_recently_used_connection_is_closed() {
    let (sharing, start) = (sharing(3), Instant::now());
    let mut all = Vec::new();
    for number in 0..3 {
        let (shared, far) = connection().await;
        sharing.keep(&key(), shared.clone(), start + MILLI * number);
        all.push((shared, far));
    }
    // Make the first connection the most recently used one, and the second one busy.
    sharing
        .existing(&key(), false, start + MILLI * 10)
        .expect("there are three");
    let _stream = all[1].0.send(get(), true).expect("it has room");

    for number in 3..5 {
        let (shared, far) = connection().await;
        sharing.keep(&key(), shared.clone(), start + MILLI * (20 + number));
        all.push((shared, far));
    }

    let closed: Vec<bool> = all.iter().map(|(shared, _)| shared.is_closed()).collect();
    assert_eq!(
        closed,
        [true, false, true, false, false],
        "the third, and then the first"
    );
    let count: usize = sharing
        .servers
        .each()
        .map(|part| part.values().map(|servers| servers.connections.len()).sum::<usize>())
        .sum();
    assert_eq!(count, 3);
}

#[tokio::test]
async fn waiting_requests_share_the_new_connection() {
    let sharing = sharing(3);
    let NextStep::Open(opening) = sharing.next_step(&key(), false).await else {
        panic!("nobody makes one");
    };
    let waiting = waiting(&sharing, 10).await;
    assert!(
        matches!(sharing.next_step(&key(), true).await, NextStep::OpenAlone),
        "one with content makes its own"
    );

    let (shared, _far) = connection().await;
    sharing.keep(&key(), shared.clone(), Instant::now());
    opening.share();

    for request in waiting {
        assert!(request.await.expect("no panic").is_some());
    }
}

#[tokio::test]
async fn waiting_requests_continue_if_no_connection_was_made() {
    let sharing = sharing(3);
    let NextStep::Open(opening) = sharing.next_step(&key(), false).await else {
        panic!("nobody makes one");
    };
    let waiting = waiting(&sharing, 10).await;

    drop(opening);

    for request in waiting {
        assert!(request.await.expect("no panic").is_none());
    }
    assert!(!sharing.sweep(Instant::now()), "nothing is left of it");
}

#[tokio::test]
async fn a_request_waits_for_at_most_two_connections() {
    let sharing = sharing(3);
    let NextStep::Open(mut opening) = sharing.next_step(&key(), false).await else {
        panic!("nobody makes one");
    };
    let [request] = <[_; 1]>::try_from(waiting(&sharing, 1).await).expect("one waits");
    let one_stream = Bounds {
        streams: 1,
        ..Bounds::default()
    };
    let mut full = Vec::new();
    for _ in 0..2 {
        assert!(!request.is_finished());
        let (near, far) = tokio::io::duplex(64 * 1024);
        let shared = SharedConnection::open(near, &one_stream, MINUTE)
            .await
            .expect("it takes bytes");
        full.push((shared.send(get(), true).expect("it has room"), far));
        sharing.keep(&key(), shared, Instant::now());
        opening.share();
        // `share` has woken the waiting request. Before that request runs, begin to open another connection.
        let NextStep::Open(next) = sharing.next_step(&key(), false).await else {
            panic!("nobody makes one, and none has room");
        };
        opening = next;
        tokio::task::yield_now().await;
    }

    assert!(request.is_finished(), "it does not wait for the third");
    assert!(request.await.expect("no panic").is_none(), "it makes one of its own");
    drop(opening);
}

#[tokio::test]
async fn requests_to_an_http_1_1_server_do_not_wait_for_each_other() {
    let (sharing, now) = (sharing(3), Instant::now());
    sharing.note_http1(&key(), now);
    assert!(matches!(sharing.next_step(&key(), false).await, NextStep::OpenAlone));
    assert!(sharing.sweep(now + HTTP1_FOR - MILLI), "it is known still");
    assert!(!sharing.sweep(now + HTTP1_FOR));
    assert!(matches!(sharing.next_step(&key(), false).await, NextStep::Open(_)));
}

#[tokio::test]
async fn a_closed_connection_is_not_reused() {
    let (sharing, now) = (sharing(3), Instant::now());
    let (shared, _far) = connection().await;
    sharing.keep(&key(), shared.clone(), now);
    assert!(sharing.existing(&key(), false, now).is_some());
    shared.close();
    assert!(sharing.existing(&key(), false, now).is_none());
    assert!(!sharing.sweep(now));
}
