//! Tests an output that accepts nothing. With `start_paused`, tokio's clock advances only when no task can run.

use tokio::time::Instant;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_stalled_write_fails_and_its_line_is_written_later() {
    let sink = Sink::shut();
    let log = sink.log();
    let started = Instant::now();
    let stalled = log.write(b"line\n").await;
    assert!(matches!(stalled, Err(AuditError::Stalled)));
    assert_eq!(started.elapsed().as_secs(), MAX_WAIT.as_secs());
    assert_eq!(sink.text(), "");
    sink.open();
    sink.wait_until(|state| state.bytes == b"line\n");
}

#[tokio::test(start_paused = true)]
async fn each_writer_has_its_own_timeout() {
    let sink = Sink::shut();
    let log = Arc::new(sink.log());
    let started = Instant::now();
    let first = tokio::spawn({
        let log = log.clone();
        async move { log.write(b"first\n").await }
    });
    tokio::time::sleep(MAX_WAIT / 2).await;
    assert!(matches!(log.write(b"second\n").await, Err(AuditError::Stalled)));
    assert_eq!(started.elapsed().as_secs(), MAX_WAIT.as_secs() * 3 / 2);
    assert!(matches!(first.await, Ok(Err(AuditError::Stalled))));
    sink.open();
    log.close();
    assert_eq!(sink.text(), "first\nsecond\n");
}

#[tokio::test(start_paused = true)]
async fn a_write_to_a_full_log_fails_with_full() {
    let sink = Sink::shut();
    let log = sink.log();
    // The log's thread blocks while it writes this line, so the later lines use up the room for waiting lines.
    log.append_now(b"first\n");
    sink.wait_until(|state| state.blocked);
    let line = [b"x".repeat(1024 * 1024), b"\n".to_vec()].concat();
    let mut accepted = 0;
    while log.append(&line).await.is_ok() {
        accepted += 1;
        assert!(accepted * line.len() <= 3 * MAX_PENDING, "memory is bounded");
    }
    assert!(accepted * line.len() >= MAX_PENDING, "{accepted} lines were taken");
    assert!(matches!(log.write(b"line\n").await, Err(AuditError::Full)));
    sink.open();
    log.close();
    assert!(
        sink.lock().bytes.len() >= accepted * line.len(),
        "what was taken is written"
    );
}

#[tokio::test]
async fn the_log_reports_waiting_bytes_and_that_it_is_stalled() {
    let sink = Sink::shut();
    let counts = Arc::new(AuditCounts::default());
    let log = sink.log().counting(counts.clone());
    log.append_now(b"first\n");
    sink.wait_until(|state| state.blocked);
    log.append_now(b"second\n");
    assert_eq!(log.waiting_bytes(), "first\nsecond\n".len());
    assert_eq!(counts.totals(), (2, 13));
    wait_until(|| log.is_stalled());
    sink.open();
    sink.wait_until(|state| state.bytes.ends_with(b"second\n"));
    wait_until(|| !log.is_stalled() && log.waiting_bytes() == 0);
}
