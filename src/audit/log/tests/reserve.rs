//! Tests when room for a future line can be reserved, and that it stays reserved until it is used or released.

use super::*;

async fn has_room(log: &Arc<AuditLog>, bytes: usize) -> Option<Reserved> {
    match ask_once(pin!(log.reserve(bytes))).await {
        Poll::Ready(reserved) => Some(reserved.expect("it did not wait")),
        Poll::Pending => None,
    }
}

#[tokio::test]
async fn reserved_room_counts_until_it_is_released() {
    let log = Arc::new(Sink::default().log());
    let half = has_room(&log, MAX_PENDING / 2).await.expect("nothing waits");
    let other = has_room(&log, MAX_PENDING / 2).await.expect("that is all");
    assert!(has_room(&log, 1).await.is_none());
    let mut waiting = pin!(log.reserve(1));
    assert!(ask_once(waiting.as_mut()).await.is_pending());

    log.write(b"a line that was not reserved\n")
        .await
        .expect("it has room of its own");
    drop(half);
    waiting.await.expect("there is room again");
    other.append(b"one that was\n");
    assert!(has_room(&log, MAX_PENDING - 100).await.is_some());
}

#[tokio::test]
async fn a_failing_output_refuses_reservations_and_keeps_earlier_ones() {
    let full = Sink::with_troubles([Trouble::Error(io::ErrorKind::StorageFull); 1000]);
    let log = Arc::new(full.log());
    let early = has_room(&log, 10).await.expect("nobody knows of the trouble");
    log.append_now(b"first\n");
    while !log.shared.state.lock().failing {
        tokio::task::yield_now().await;
    }
    let mut late = pin!(log.reserve(10));
    assert!(ask_once(late.as_mut()).await.is_pending(), "though little waits");
    early.append(b"under way\n");

    let other = Sink::default();
    log.switch_sink(other.output(false));
    late.await.expect("it can be written again").append(b"late\n");
    log.close();
    assert_eq!(other.text(), "first\nunder way\nlate\n");
}

#[tokio::test(start_paused = true)]
async fn a_reservation_in_a_full_log_fails_with_full() {
    let sink = Sink::shut();
    let log = Arc::new(sink.log());
    let _all = has_room(&log, MAX_PENDING).await.expect("nothing waits");
    let started = tokio::time::Instant::now();
    assert!(matches!(log.reserve(1).await, Err(AuditError::Full)));
    assert_eq!(started.elapsed(), MAX_WAIT);
    sink.open();
}
