//! Tests that no line is lost if the output fails for a while.

use super::*;

async fn writes_despite(troubles: Vec<Trouble>) {
    let sink = Sink::with_troubles(troubles.clone());
    let log = sink.log();
    log.write(b"first line\n").await.expect("it is written in the end");
    assert_eq!(sink.text(), "first line\n", "{troubles:?}");
    log.write(b"second line\n").await.expect("it is written");
    assert_eq!(sink.text(), "first line\nsecond line\n", "{troubles:?}");
}

#[tokio::test]
async fn after_an_error_the_write_continues_at_the_same_byte() {
    let mixed = vec![
        Trouble::Short(3),
        Trouble::Error(io::ErrorKind::Interrupted),
        Trouble::Short(1),
        Trouble::Error(io::ErrorKind::WouldBlock),
        Trouble::Short(4),
    ];
    tokio::join!(
        writes_despite(vec![Trouble::Error(io::ErrorKind::StorageFull)]),
        writes_despite(mixed),
        // The second write returns `Ok(0)`.
        writes_despite(vec![Trouble::Short(5), Trouble::Short(0)]),
    );
}

#[tokio::test]
async fn an_interrupted_or_short_write_is_continued() {
    let troubles = (0..200).map(|n| match n % 2 {
        0 => Trouble::Error(io::ErrorKind::Interrupted),
        _ => Trouble::Short(1),
    });
    let sink = Sink::with_troubles(troubles);
    let log = sink.log();
    log.write(b"a line of some bytes\n").await.expect("it is written");
    assert_eq!(sink.text(), "a line of some bytes\n");
}

#[tokio::test]
async fn lines_added_while_the_output_fails_stay_in_order() {
    let sink = Sink::with_troubles([Trouble::Short(2), Trouble::Error(io::ErrorKind::StorageFull)]);
    let log = sink.log();
    let mut first = pin!(log.write(b"first\n"));
    assert!(ask_once(first.as_mut()).await.is_pending());
    sink.wait_until(|state| state.troubles.is_empty());
    log.append(b"second\n").await.expect("there is room");
    log.append(b"third\n").await.expect("there is room");
    log.write(b"fourth\n").await.expect("it is written");
    assert_eq!(sink.text(), "first\nsecond\nthird\nfourth\n");
    first.await.expect("it is written");
}

#[tokio::test]
async fn a_stuck_log_moves_its_lines_to_another_file_unless_they_are_text() {
    let decision: &[u8] = br#"{"event":"stop","time":"2026-11-29T08:00:00.000Z"}
"#;
    let folder = tempfile::tempdir().expect("a folder");
    for (format, moved) in [(LogFormat::Json, Some(decision)), (LogFormat::Text, None)] {
        let path = folder.path().join(format!("{format:?}"));
        let sink = Sink::with_troubles(vec![Trouble::Error(io::ErrorKind::StorageFull); 100]);
        let log = sink.log().in_format(format);
        log.append_now(decision);
        sink.wait_until(|state| state.troubles.len() < 100);
        wait_until(|| log.shared.state.lock().failing);
        log.divert(&Output::File(path.clone())).expect("it can be opened");
        // `divert` opens the file at once if the lines move to it.
        let in_file = || std::fs::read(&path).ok();
        wait_until(|| in_file().is_none_or(|lines| !lines.is_empty()));
        assert_eq!(in_file().as_deref(), moved, "{format:?}");
    }
}

#[tokio::test]
async fn append_waits_if_too_many_bytes_are_pending() {
    let sink = Sink::shut();
    let log = sink.log();
    let line = [b"x".repeat(64 * 1024), b"\n".to_vec()].concat();
    let mut accepted = 0;
    loop {
        let mut append = pin!(log.append(&line));
        if ask_once(append.as_mut()).await.is_ready() {
            accepted += 1;
            continue;
        }
        assert!(accepted * line.len() >= MAX_PENDING, "{accepted} lines were taken");
        sink.open();
        append.await.expect("there is room again");
        break;
    }
    log.close();
    // The limit applies twice: to the lines that wait, and to the batch that the log's thread is writing.
    assert!(
        accepted * line.len() <= 2 * (MAX_PENDING + line.len()),
        "{accepted} lines were taken"
    );
    assert_eq!(sink.text().lines().count(), accepted + 1);
    assert_eq!(sink.lock().bytes.len(), (accepted + 1) * line.len());
}
