//! Files that cannot be had: locked, forbidden, in the way.

use std::fs;

use super::*;

#[test]
fn a_file_that_another_has_open_is_left_to_it() {
    let bench = Bench::new();
    let first = bench.open();
    let refused = Disk::read_only(&bench.path(), &bench.path())
        .err()
        .expect("it is locked");
    assert!(matches!(refused, Why::Locked), "{refused:?}");
    let second = bench.open();
    assert_eq!(second.path(), bench.folder.path().join("robots.1.redb"));
    first.learns("a.example", &rules(RULES));
    Bench::close(first);
    Bench::close(second);
    assert_eq!(bench.open().path(), bench.path(), "it is free again");
}

#[test]
fn a_lock_that_is_about_to_go_is_waited_for() {
    let bench = Bench::new();
    let first = bench.open();
    // It takes longer to close a file than to try to open it.
    let ending = std::thread::spawn(move || Bench::close(first));
    assert_eq!(bench.open().path(), bench.path());
    ending.join().expect("it ends");
}

#[test]
fn where_no_file_can_be_had_the_error_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let in_the_way = folder.path().join("in-the-way");
    fs::write(&in_the_way, "a file").expect("written");
    let path = in_the_way.join("robots.redb");
    let error = Disk::open(&path, OPTIONS, 1 << 20)
        .expect_err("it cannot be a folder")
        .to_string();
    for part in [&*path.display().to_string(), "not a directory", "permissions"] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn a_folder_in_place_of_the_file_is_passed_over() {
    let bench = Bench::new();
    fs::create_dir(bench.path()).expect("made");
    let disk = bench.open();
    assert_eq!(disk.path(), bench.folder.path().join("robots.1.redb"));
    assert!(bench.path().is_dir());
}

#[test]
fn a_file_is_not_for_every_user_to_read() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state/robots.redb");
    let disk = Disk::open(&path, OPTIONS, 1 << 20).expect("the folder is made, too");
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(disk.path()) & 0o007, 0);
    assert_eq!(mode(path.parent().expect("a folder")), 0o700);
}

#[test]
fn stand_ins_are_named_after_the_file() {
    for (path, first) in [
        ("/s/robots.redb", "/s/robots.1.redb"),
        ("/s/copies", "/s/copies.1"),
        ("/s/a.b.redb", "/s/a.b.1.redb"),
    ] {
        let mut candidates = Disk::candidates(Path::new(path));
        assert_eq!(candidates.next().as_deref(), Some(Path::new(path)));
        assert_eq!(candidates.next().as_deref(), Some(Path::new(first)));
        assert_eq!(candidates.count(), 8);
    }
}
