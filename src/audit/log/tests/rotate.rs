//! Tests changes of the output: while lines arrive, and after the log's file was renamed, removed or replaced.

use std::fs;

use super::*;

#[tokio::test]
async fn a_change_of_the_output_splits_no_line() {
    let (old, new) = (Sink::shut(), Sink::default());
    let log = old.log();
    log.append(b"1\n").await.expect("there is room");
    old.wait_until(|state| state.blocked);
    // The blocked write accepts only one byte, so the output changes inside a line.
    old.lock().troubles = VecDeque::from([Trouble::Short(1)]);
    log.switch_sink(new.output(false));
    log.append(b"2\n").await.expect("there is room");
    old.open();
    log.close();
    assert_eq!((old.text().as_str(), new.text().as_str()), ("1\n", "2\n"));
}

#[tokio::test]
async fn the_new_output_repeats_the_line_that_the_failing_one_cut() {
    let full = Trouble::Error(io::ErrorKind::StorageFull);
    let (old, new) = (Sink::shut(), Sink::default());
    old.lock().troubles = [Trouble::Short(3)].into_iter().chain([full; 1000]).collect();
    let log = old.log();
    log.append(b"1\n2\n").await.expect("there is room");
    old.wait_until(|state| state.blocked);
    old.open();
    old.wait_until(|state| state.troubles.len() < 1000);
    log.switch_sink(new.output(false));
    log.write(b"3\n").await.expect("it is written");
    assert_eq!((old.text().as_str(), new.text().as_str()), ("1\n2", "2\n3\n"));
}

#[tokio::test]
async fn an_idle_log_releases_the_old_output() {
    let old = Sink::default();
    let held = Arc::downgrade(&old.0);
    let log = old.log();
    drop(old);
    let new = Sink::default();
    log.switch_sink(new.output(false));
    log.write(b"line\n").await.expect("it is written");
    assert!(held.upgrade().is_none());
    assert_eq!(new.text(), "line\n");
}

#[tokio::test]
async fn if_reopening_fails_the_log_keeps_the_old_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("logs/audit.jsonl");
    std::fs::create_dir(folder.path().join("logs")).expect("the folder is ours");
    let log = AuditLog::open(&Output::File(path)).expect("a log");
    log.write(b"1\n").await.expect("it is written");
    std::fs::rename(folder.path().join("logs"), folder.path().join("moved")).expect("the folder is ours");

    let error = log.reopen().expect_err("there is no folder");
    assert!(error.to_string().contains("logs/audit.jsonl"), "{error}");

    log.write(b"2\n").await.expect("it is written");
    let text = std::fs::read_to_string(folder.path().join("moved/audit.jsonl"));
    assert_eq!(text.expect("a file"), "1\n2\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn rotation_loses_no_line_and_keeps_their_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("audit.jsonl");
    let log = Arc::new(AuditLog::open(&Output::File(path.clone())).expect("a log"));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let log = log.clone();
            tokio::spawn(async move {
                for number in 0..LINES {
                    let line = format!("{writer} {number}\n");
                    match number % 2 {
                        0 => log.write(line.as_bytes()).await.expect("it is written"),
                        _ => log.append(line.as_bytes()).await.expect("there is room"),
                    }
                }
            })
        })
        .collect();
    let mut files = Vec::new();
    while !writers.iter().all(tokio::task::JoinHandle::is_finished) {
        let moved = folder.path().join(format!("audit.jsonl.{}", files.len()));
        std::fs::rename(&path, &moved).expect("the folder is ours");
        files.push(moved);
        log.reopen().expect("the folder is there");
        tokio::task::yield_now().await;
    }
    log.close();
    files.push(path);

    let mut next = [0; WRITERS];
    for file in files {
        for line in std::fs::read_to_string(file).expect("a file").lines() {
            let (writer, number) = line.split_once(' ').expect("a whole line");
            let writer: usize = writer.parse().expect("a number");
            assert_eq!(number, next[writer].to_string(), "of {writer}");
            next[writer] += 1;
        }
    }
    assert_eq!(next, [LINES; WRITERS], "nothing is lost");
}

const WRITERS: usize = 8;
const LINES: usize = 500;

#[test]
fn a_renamed_or_removed_file_is_noticed_until_the_path_is_opened_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, moved) = (folder.path().join("log"), folder.path().join("moved"));
    let log = AuditLog::open(&Output::File(path.clone())).expect("the folder is there");
    assert_eq!(log.displaced(), Displaced::No);
    fs::rename(&path, &moved).expect("renamed");
    assert_eq!(log.displaced(), Displaced::Renamed, "the path has no file");
    fs::write(&path, "").expect("written");
    assert_eq!(log.displaced(), Displaced::Renamed, "the path has another file");
    log.reopen().expect("the file is there");
    assert_eq!(log.displaced(), Displaced::No);
    fs::rename(&moved, &path).expect("renamed");
    assert_eq!(log.displaced(), Displaced::Removed, "another file replaced it");
    let stdout = AuditLog::open(&Output::Stdout).expect("open");
    assert_eq!(stdout.displaced(), Displaced::No);
}

#[tokio::test]
async fn the_new_file_begins_with_a_new_line_and_the_same_file_stays_open() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, other) = (folder.path().join("log"), folder.path().join("other"));
    let log = AuditLog::open(&Output::File(path.clone())).expect("the folder is there");
    log.write(b"1\n").await.expect("written");
    // A write that stopped inside a line continues there, so the same file is not opened again.
    fs::write(&path, "1\ncut").expect("written");
    log.reopen().expect("the file is there");
    assert_eq!(fs::read_to_string(&path).expect("a file"), "1\ncut");
    // An editor can leave a file without a final line end.
    fs::write(&other, "edited").expect("written");
    fs::rename(&other, &path).expect("renamed");
    log.reopen().expect("the file is there");
    log.write(b"2\n").await.expect("written");
    assert_eq!(fs::read_to_string(&path).expect("a file"), "edited\n2\n");
}
