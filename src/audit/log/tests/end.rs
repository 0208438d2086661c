//! Tests what happens to the remaining lines when the log is closed or dropped, and how its file is opened.

use std::os::unix::fs::PermissionsExt as _;

use super::*;

#[tokio::test]
async fn close_writes_everything() {
    let sink = Sink::with_troubles([Trouble::Short(1), Trouble::Short(10)]);
    let log = sink.log();
    let mut expected = String::new();
    for number in 0..1000 {
        let line = format!("{number}\n");
        log.append(line.as_bytes()).await.expect("there is room");
        expected.push_str(&line);
    }
    log.close();
    assert_eq!(sink.text(), expected);
    log.close();
    assert_eq!(sink.text(), expected, "closing twice is no harm");
}

#[tokio::test]
async fn close_waits_for_a_slow_output() {
    let sink = Sink::shut();
    let log = Arc::new(sink.log());
    log.append(b"line\n").await.expect("there is room");
    let closed = std::thread::spawn({
        let log = log.clone();
        move || log.close()
    });
    sink.wait_until(|state| state.blocked);
    assert!(!closed.is_finished());
    sink.open();
    closed.join().expect("no panic");
    assert_eq!(sink.text(), "line\n");
}

#[tokio::test]
async fn close_gives_up_if_the_output_always_fails() {
    let sink = Sink::with_troubles([Trouble::Error(io::ErrorKind::StorageFull); 1000]);
    let log = sink.log();
    log.append(b"line\n").await.expect("there is room");
    log.close();
    assert_eq!(sink.text(), "");
}

#[tokio::test]
async fn closing_an_empty_log_is_quick() {
    let log = Sink::default().log();
    log.close();
}

#[tokio::test(start_paused = true)]
async fn writing_to_a_closed_log_is_an_error() {
    let sink = Sink::default();
    let log = sink.log();
    log.close();
    assert!(matches!(log.write(b"late\n").await, Err(AuditError::Stalled)));
    assert_eq!(sink.text(), "");
}

#[tokio::test]
async fn a_dropped_log_writes_its_remaining_lines() {
    let sink = Sink::shut();
    let log = sink.log();
    log.append(b"first\n").await.expect("there is room");
    log.append(b"second\n").await.expect("there is room");
    drop(log);
    sink.open();
    sink.wait_until(|state| state.bytes == b"first\nsecond\n");
}

#[tokio::test]
async fn a_log_file_is_appended_to_and_not_readable_by_all() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("audit.jsonl");
    for line in ["first\n", "second\n"] {
        let log = AuditLog::open(&Output::File(path.clone())).expect("a log");
        log.write(line.as_bytes()).await.expect("it is written");
    }
    assert_eq!(std::fs::read_to_string(&path).expect("a file"), "first\nsecond\n");
    let mode = std::fs::metadata(&path).expect("a file").permissions().mode();
    assert_eq!(mode & 0o027, 0, "{mode:o}");
}

#[test]
fn the_error_names_a_file_that_cannot_be_opened() {
    let path = PathBuf::from("/nonexistent/audit.jsonl");
    let error = AuditLog::open(&Output::File(path)).expect_err("no such directory");
    let text = error.to_string();
    assert!(text.contains("/nonexistent/audit.jsonl"), "{text}");
    assert!(text.contains("create its folder, or correct the path"), "{text}");
}
