//! Tests a named pipe as output, from which another program reads the log.

use std::{fs::OpenOptions, io::Read, os::unix::fs::OpenOptionsExt, path::Path};

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};

use super::*;

fn pipe() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("audit.pipe");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("the folder is ours");
    (folder, path)
}

fn reader_of(path: &Path) -> File {
    OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
        .expect("a reader never waits")
}

#[test]
fn opening_a_pipe_without_a_reader_fails() {
    let (_folder, path) = pipe();
    let error = AuditLog::open(&Output::File(path)).expect_err("nobody reads");
    assert!(
        matches!(&error, AuditError::Open { error, .. } if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error())),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_slow_reader_of_a_pipe_gets_every_line() {
    let (_folder, path) = pipe();
    let mut reader = reader_of(&path);
    let log = AuditLog::open(&Output::File(path)).expect("there is a reader");
    // Write more lines than a pipe can hold.
    let expected: String = (0..100_000).map(|number| format!("{number}\n")).collect();
    for line in expected.split_inclusive('\n') {
        log.append(line.as_bytes()).await.expect("there is room");
    }
    let closing = std::thread::spawn(move || {
        // The pipe is full, so `write` returns only when the reader has made room.
        let mut written = pin!(log.write(b"the end\n"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime").block_on(written.as_mut())
    });

    let mut read = Vec::new();
    let mut part = vec![0; 16 * 1024];
    while !read.ends_with(b"the end\n") {
        match reader.read(&mut part) {
            Ok(0) => panic!("the log was closed before its end: {} bytes", read.len()),
            Ok(length) => read.extend_from_slice(&part[..length]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
    closing.join().expect("no panic").expect("it is written");
    assert_eq!(String::from_utf8(read).expect("UTF-8"), expected + "the end\n");
}
