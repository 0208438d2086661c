//! Tests database files that cannot be opened, the permissions of a new file, and disks that reject writes for a while.

use std::fs;

use super::*;

#[test]
fn a_file_that_another_process_has_open_is_locked() {
    let bench = Bench::new();
    let first = bench.open();
    let refused = [
        Disk::read_only(&bench.path()).err(),
        Disk::open(&bench.path(), OPTIONS, 1 << 20).err().map(|error| error.why),
    ];
    for refused in refused {
        assert!(matches!(refused, Some(FileError::Locked)), "{refused:?}");
    }
    first.learns("a.example", &rules(RULES));
    Bench::close(first);
    Bench::close(bench.open());
    assert!(bench.moved_aside().is_empty());
}

#[test]
fn opening_waits_for_a_lock_that_is_about_to_be_released() {
    let bench = Bench::new();
    let first = bench.open();
    // The thread may still be closing the file, so `open` has to wait.
    let ending = std::thread::spawn(move || Bench::close(first));
    bench.open();
    ending.join().expect("it ends");
}

#[test]
fn the_error_says_why_the_file_cannot_be_opened() {
    let folder = tempfile::tempdir().expect("a folder");
    let in_the_way = folder.path().join("in-the-way");
    fs::write(&in_the_way, "a file").expect("written");
    let path = in_the_way.join("robots.redb");
    let error = Disk::open(&path, OPTIONS, 1 << 20)
        .expect_err("it cannot be a folder")
        .to_string();
    for part in [&*path.display().to_string(), "not a directory"] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn a_folder_in_place_of_the_file_is_an_error() {
    let bench = Bench::new();
    fs::create_dir(bench.path()).expect("made");
    let error = Disk::open(&bench.path(), OPTIONS, 1 << 20).expect_err("it is a folder");
    assert!(matches!(error.why, FileError::Io(_)), "{error:?}");
    assert!(error.to_string().contains("Is a directory"), "{error}");
    assert!(bench.path().is_dir());
}

#[test]
fn the_file_is_not_readable_by_all_users() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state/robots.redb");
    let disk = Disk::open(&path, OPTIONS, 1 << 20).expect("the folder is made, too");
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(disk.path()) & 0o007, 0);
    assert_eq!(mode(path.parent().expect("a folder")), 0o700);
}

#[tokio::test]
async fn changes_wait_in_memory_while_the_file_cannot_be_written() {
    let bench = Bench::new();
    let disk = bench.open();
    disk.learns("a.example", &rules(RULES));
    disk.flushed().await;
    let away = bench.folder.path().join("away");
    fs::rename(bench.path(), &away).expect("moved");
    fs::create_dir(bench.path()).expect("made");
    let failed: Result<(), _> = disk.with_file(|_| Err(std::io::Error::other("a bad sector").into()));
    assert!(failed.is_err());
    while disk.failures() == 0 {
        tokio::task::yield_now().await;
    }
    let trouble = disk.trouble().expect("it is told");
    for part in ["wait in memory", "Is a directory", "cache.path"] {
        assert!(trouble.contains(part), "{part}: {trouble}");
    }
    disk.learns("b.example", &rules(RULES));
    assert_eq!(disk.knows("b.example").await, Some(rules(RULES).save()));
    assert_eq!(disk.waiting(), 1);

    fs::remove_dir(bench.path()).expect("removed");
    fs::rename(&away, bench.path()).expect("moved");
    disk.flushed().await;
    // The writer ends the trouble just after it has answered the flush.
    while disk.trouble().is_some() {
        tokio::task::yield_now().await;
    }
    assert_eq!(disk.waiting(), 0);
    Bench::close(disk);
    let disk = bench.open();
    for host in ["a.example", "b.example"] {
        assert_eq!(disk.knows(host).await, Some(rules(RULES).save()), "{host}");
    }
}
