//! Tests when requests write their lines themselves, and that no line is lost if a request is cancelled or panics.

use super::*;

async fn write_line(log: &AuditLog, line: &str) {
    log.write(line.as_bytes()).await.expect("it is written");
}

#[tokio::test]
async fn requests_write_to_files_and_the_log_thread_to_other_outputs() {
    for (is_file, by_thread) in [(true, false), (false, true)] {
        let sink = Sink::default();
        let log = AuditLog::to_sink(sink.output(is_file), None).expect("a thread");
        write_line(&log, "line\n").await;
        assert_eq!(sink.is_written_by_thread(), by_thread, "{is_file}");
    }
}

#[test]
fn the_log_thread_writes_if_one_thread_serves_all_requests() {
    for (threads, by_thread) in [(1, true), (2, false)] {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .enable_time()
            .build()
            .expect("a runtime");
        let sink = Sink::default();
        let log = sink.log_as_file();
        runtime.block_on(write_line(&log, "line\n"));
        assert_eq!(sink.is_written_by_thread(), by_thread, "{threads} threads");
    }
}

#[test]
fn only_a_regular_file_is_treated_as_a_file() {
    let file = tempfile::tempfile().expect("a file");
    assert!(state::Sink::new(file, None).is_file);
    for path in ["/dev/null", "/"] {
        let file = File::open(path).expect("it is there");
        assert!(!state::Sink::new(file, None).is_file, "{path}");
    }
    let (_reader, pipe) = io::pipe().expect("a pipe");
    assert!(!state::Sink::new(File::from(std::os::fd::OwnedFd::from(pipe)), None).is_file);
}

#[tokio::test]
async fn requests_that_are_ready_share_a_write() {
    let sink = Sink::default();
    let log = sink.log_as_file();
    tokio::join!(
        write_line(&log, "1\n"),
        write_line(&log, "2\n"),
        write_line(&log, "3\n")
    );
    assert_eq!(sink.text(), "1\n2\n3\n");
    assert_eq!(sink.lock().writers.len(), 1);
}

#[tokio::test]
async fn appended_lines_are_written_with_the_next_batch() {
    let sink = Sink::default();
    let log = sink.log_as_file();
    log.append(b"1\n").await.expect("there is room");
    write_line(&log, "2\n").await;
    assert_eq!(sink.text(), "1\n2\n");
    assert!(!sink.is_written_by_thread());
}

#[tokio::test]
async fn the_log_thread_writes_appended_lines_if_no_others_follow() {
    let sink = Sink::default();
    let log = sink.log_as_file();
    for round in 1..=3 {
        log.append(b"line\n").await.expect("there is room");
        sink.wait_until(|state| state.bytes.len() == round * "line\n".len());
        assert!(sink.is_written_by_thread());
    }
}

#[tokio::test]
async fn an_enqueued_line_is_written_even_if_its_writer_is_dropped() {
    let sink = Sink::default();
    let log = sink.log_as_file();
    drop(log.enqueue(b"line\n").await.expect("there is room"));
    sink.wait_until(|state| state.bytes == b"line\n");
}

#[tokio::test]
async fn a_writer_dropped_before_its_write_does_not_block_others() {
    let sink = Sink::default();
    let log = sink.log_as_file();
    let mut first = Box::pin(log.write(b"first\n"));
    assert!(ask_once(first.as_mut()).await.is_pending());
    assert!(log.shared.state.lock().gathering, "it lets others add their lines");
    let mut second = pin!(log.write(b"second\n"));
    assert!(ask_once(second.as_mut()).await.is_pending());

    drop(first);

    assert!(matches!(ask_once(second).await, Poll::Ready(Ok(()))));
    assert_eq!(sink.text(), "first\nsecond\n");
    write_line(&log, "third\n").await;
    assert!(!sink.is_written_by_thread());
}

#[tokio::test]
async fn a_writer_that_panics_before_its_write_does_not_block_others() {
    let sink = Sink::default();
    let log = Arc::new(sink.log_as_file());
    let panics = tokio::spawn({
        let log = log.clone();
        async move {
            let mut write = pin!(log.write(b"first\n"));
            assert!(ask_once(write.as_mut()).await.is_pending());
            panic!("a fault in a request");
        }
    });
    assert!(panics.await.is_err());
    assert_eq!(sink.text(), "first\n");
    write_line(&log, "second\n").await;
}

#[tokio::test]
async fn a_stuck_writer_does_not_block_other_lines() {
    let sink = Sink::default();
    let log = sink.log_as_file();
    let mut first = pin!(log.write(b"first\n"));
    assert!(ask_once(first.as_mut()).await.is_pending());
    write_line(&log, "second\n").await;
    assert!(sink.is_written_by_thread());
    assert_eq!(sink.text(), "first\nsecond\n");
    first.await.expect("it is written");
    assert_eq!(sink.text(), "first\nsecond\n", "and not twice");
}

#[tokio::test]
async fn a_panic_during_a_write_loses_no_line() {
    let sink = Sink::with_troubles([Trouble::Short(2), Trouble::Panic]);
    let log = Arc::new(sink.log_as_file());
    let panics = tokio::spawn({
        let log = log.clone();
        async move { log.write(b"first\n").await }
    });
    assert!(panics.await.is_err());
    write_line(&log, "second\n").await;
    assert_eq!(sink.text(), "first\nsecond\n");
}

#[tokio::test]
async fn after_an_error_the_log_thread_continues_at_the_same_byte() {
    for kind in [io::ErrorKind::StorageFull, io::ErrorKind::WouldBlock] {
        let sink = Sink::with_troubles([Trouble::Short(3), Trouble::Error(kind)]);
        let log = sink.log_as_file();
        write_line(&log, "first\n").await;
        assert!(sink.is_written_by_thread());
        write_line(&log, "second\n").await;
        assert_eq!(sink.text(), "first\nsecond\n", "{kind}");
    }
}

#[tokio::test]
async fn a_request_continues_an_interrupted_or_short_write() {
    let interrupted = Trouble::Error(io::ErrorKind::Interrupted);
    let sink = Sink::with_troubles([Trouble::Short(3), interrupted, Trouble::Short(1)]);
    let log = sink.log_as_file();
    write_line(&log, "a line of some bytes\n").await;
    assert_eq!(sink.text(), "a line of some bytes\n");
    assert!(!sink.is_written_by_thread());
}

/// The tests of the module `pace` check after how much time requests write again.
#[tokio::test]
async fn requests_write_again_when_the_file_is_fast_again() {
    let sink = Sink::with_troubles([Trouble::Error(io::ErrorKind::WouldBlock)]);
    let log = sink.log_as_file();
    write_line(&log, "line\n").await;
    assert!(sink.is_written_by_thread());
    let started = std::time::Instant::now();
    while sink.is_written_by_thread() {
        assert!(started.elapsed() < DEADLINE, "it stays with the log's thread");
        write_line(&log, "line\n").await;
    }
}

#[tokio::test]
async fn close_writes_the_line_of_a_pending_write() {
    let sink = Sink::default();
    let log = sink.log_as_file();
    let mut write = pin!(log.write(b"line\n"));
    assert!(ask_once(write.as_mut()).await.is_pending());
    log.close();
    assert_eq!(sink.text(), "line\n");
    write.await.expect("it is written");
    assert!(matches!(log.write(b"late\n").await, Err(AuditError::Stalled)));
}

#[tokio::test]
async fn requests_write_to_the_new_output_after_a_change() {
    let (old, new) = (Sink::default(), Sink::default());
    let log = old.log_as_file();
    let mut first = pin!(log.write(b"1\n"));
    assert!(ask_once(first.as_mut()).await.is_pending());
    log.switch_sink(new.output(true));
    first.await.expect("it is written");
    write_line(&log, "2\n").await;
    let lines = old.text() + &new.text();
    assert_eq!(lines, "1\n2\n");
    assert!(new.text().ends_with("2\n"), "what comes from then on");
    write_line(&log, "3\n").await;
    assert!(!new.is_written_by_thread());
}
