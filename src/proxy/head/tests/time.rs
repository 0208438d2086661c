//! Tests the time limits for reading a request head. The clock advances only when all tasks wait.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::time::Instant;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_silent_connection_ends_after_the_idle_timeout() {
    let (stream, _client) = pipe(1024);
    let started = Instant::now();
    assert_eq!(
        Head::read(&stream, IDLE, || (LIMITS, TIMEOUT), &mut Timer::default())
            .await
            .err(),
        Some(HeadError::Gone)
    );
    assert_eq!(started.elapsed().as_secs(), IDLE.as_secs());
}

#[tokio::test(start_paused = true)]
async fn the_limits_are_those_when_the_first_byte_arrives() {
    for (at_first_byte, later, error) in [(1, 128, Some(HeadError::TooManyFields(1))), (128, 1, None)] {
        let fields = Arc::new(AtomicUsize::new(64));
        let (stream, mut client) = pipe(1024);
        let limit = fields.clone();
        let sender = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(30)).await;
            limit.store(at_first_byte, Ordering::Relaxed);
            client.write_all(&GET.as_bytes()[..1]).await.expect("a reader");
            tokio::time::sleep(Duration::from_secs(1)).await;
            limit.store(later, Ordering::Relaxed);
            let _ = client.write_all(&GET.as_bytes()[1..]).await;
            client
        });
        let limits = || {
            let fields = fields.load(Ordering::Relaxed);
            (HeadLimits { fields, ..LIMITS }, TIMEOUT)
        };
        let head = Head::read(&stream, IDLE, limits, &mut Timer::default()).await;
        assert_eq!(head.err(), error, "{at_first_byte} fields, later {later}");
        drop(sender.await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_started_head_has_its_own_timeout() {
    let (stream, mut client) = pipe(1024);
    let started = Instant::now();
    let sender = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(30)).await;
        client.write_all(b"GET /").await.expect("a reader");
        client
    });
    assert_eq!(
        Head::read(&stream, IDLE, || (LIMITS, TIMEOUT), &mut Timer::default())
            .await
            .err(),
        Some(HeadError::Timeout)
    );
    assert_eq!(started.elapsed().as_secs(), 30 + TIMEOUT.as_secs());
    drop(sender.await);
}

#[tokio::test(start_paused = true)]
async fn a_slow_trickle_of_bytes_does_not_extend_the_head_timeout() {
    let (stream, mut client) = pipe(1024);
    let started = Instant::now();
    tokio::spawn(async move {
        for byte in GET.bytes().cycle() {
            if client.write_all(&[byte]).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
    assert_eq!(
        Head::read(&stream, IDLE, || (LIMITS, TIMEOUT), &mut Timer::default())
            .await
            .err(),
        Some(HeadError::Timeout)
    );
    assert_eq!(started.elapsed().as_secs(), TIMEOUT.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_slow_head_within_its_timeout_is_accepted() {
    let (stream, mut client) = pipe(1024);
    let (first, rest) = GET.split_at(20);
    let sender = tokio::spawn(async move {
        tokio::time::sleep(IDLE - Duration::from_secs(1)).await;
        client.write_all(first.as_bytes()).await.expect("a reader");
        tokio::time::sleep(TIMEOUT - Duration::from_secs(1)).await;
        client.write_all(rest.as_bytes()).await.expect("a reader");
        client
    });
    let head = Head::read(&stream, IDLE, || (LIMITS, TIMEOUT), &mut Timer::default())
        .await
        .expect("a head");
    assert_eq!(parts(&head), (GET, ""));
    drop(sender.await);
}
