//! Tests the sealing of logs with rotated files.

use super::*;

#[test]
fn rotated_files_are_sealed_to_their_end_under_any_name() {
    let bench = Bench::sealed(5);
    bench.append(5..7);
    bench.rotate("audit.jsonl-20261122");
    assert_eq!(bench.seal().unwrap().size, 7);
    fs::write(bench.file("audit.jsonl"), "").unwrap();
    // The proxy still writes to the renamed file for a moment.
    let mut old = fs::OpenOptions::new()
        .append(true)
        .open(bench.file("audit.jsonl-20261122"))
        .unwrap();
    old.write_all(format!("{}\n{}", line(7), &line(8)[..9]).as_bytes())
        .unwrap();
    bench.append(8..10);
    assert_eq!(bench.seal().unwrap().size, 10, "an incomplete last line stays out");
    bench.append(10..12);
    bench.compress("audit.jsonl-20261122");
    bench.rotate("audit.jsonl-20261123");
    bench.append(12..14);
    bench.compress("audit.jsonl-20261123");
    bench.rotate("audit.jsonl-20261124");
    bench.append(14..600);
    fs::write(bench.file("audit.jsonl-notes"), "not a log\n").unwrap();
    assert_eq!(bench.seal().unwrap().size, 600);
    assert_eq!(bench.checkpoint().root, root(600));
    let logs = [
        "audit.jsonl-20261122.gz",
        "audit.jsonl-20261123.gz",
        "audit.jsonl-20261124",
        "audit.jsonl",
    ];
    let found = bench.verify(&logs);
    assert_eq!(
        (found.lines.same, found.incomplete.len(), found.findings),
        (600, 1, vec![])
    );
    // A log file may be deleted after all of its lines were sealed.
    fs::remove_file(bench.file("audit.jsonl-20261122.gz")).unwrap();
    bench.append(600..601);
    assert_eq!(bench.seal().unwrap().size, 601);
}

#[test]
fn a_new_folder_seals_rotated_files_too_and_skips_copies() {
    let bench = Bench::new();
    bench.append(0..3);
    bench.rotate("audit.jsonl.2");
    bench.append(3..5);
    bench.rotate("audit.jsonl.1");
    fs::copy(bench.file("audit.jsonl.2"), bench.file("audit.jsonl.2.bak")).unwrap();
    bench.append(5..7);
    assert_eq!(bench.seal().unwrap().size, 7);
    assert_eq!(bench.checkpoint().root, root(7));
}

#[test]
fn a_rotation_while_older_lines_are_sealed_skips_no_file() {
    let bench = Bench::new();
    // One round of sealing (`MAX_ROUND`) takes fewer lines than this.
    let backlog = 66_000;
    bench.append(0..backlog);
    bench.rotate("audit.jsonl.1");
    bench.append(backlog..backlog + 20);
    let rotate = || {
        if bench.file("audit.jsonl.2").exists() {
            return false;
        }
        fs::rename(bench.file("audit.jsonl.1"), bench.file("audit.jsonl.2")).unwrap();
        bench.rotate("audit.jsonl.1");
        bench.append(backlog + 20..backlog + 25);
        false
    };
    seal(&bench.options(), &[bench.file("audit.jsonl")], false, rotate).unwrap();
    assert_eq!(bench.seal().unwrap().size, backlog + 25);
    let found = bench.verify(&["audit.jsonl.2", "audit.jsonl.1", "audit.jsonl"]);
    assert_eq!((found.findings, found.lines.unsealed), (vec![], 0));
}

#[test]
fn files_are_sealed_in_their_order_even_if_the_clock_was_set_back() {
    let bench = Bench::sealed(10);
    // The log is rotated twice before the next sealing, each time after the clock was set back.
    let at = |number: u64| line(number).replace("2026-11-22", "1970-01-01") + "\n";
    bench.rotate("audit.jsonl.2");
    bench.write(&at(500));
    bench.write(&at(501));
    bench.rotate("audit.jsonl.1");
    bench.write(&at(100));
    assert_eq!(bench.seal().unwrap().new, 3);
    let logs = ["audit.jsonl.2", "audit.jsonl.1", "audit.jsonl"];
    assert_eq!(bench.verify(&logs).findings, []);
    // Now even the names of the files do not show their order.
    bench.rotate("audit.jsonl-19700101");
    bench.append(10..12);
    assert_eq!(bench.seal().unwrap().new, 2);
    bench.rotate("audit.jsonl-20261122");
    bench.append(12..13);
    assert_eq!(bench.seal().unwrap().new, 1);
    let logs = [
        "audit.jsonl.2",
        "audit.jsonl.1",
        "audit.jsonl-19700101",
        "audit.jsonl-20261122",
        "audit.jsonl",
    ];
    assert_eq!(bench.verify(&logs).findings, []);
}

#[test]
fn only_names_that_rotation_makes_are_files_of_the_log() {
    let bench = Bench::sealed(10);
    fs::write(bench.file("audit.jsonl.suspicious"), line(3) + "\n").unwrap();
    fs::write(bench.file("audit.jsonl-before"), line(4) + "\n").unwrap();
    fs::rename(bench.file("audit.jsonl"), bench.file("audit.jsonl-20261122")).unwrap();
    fs::write(bench.file("audit.jsonl"), line(10) + "\n").unwrap();
    assert_eq!(bench.seal().unwrap().new, 1);
}
