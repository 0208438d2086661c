//! Tests which lines are sealed, and what stops the sealing.

use super::*;

#[test]
fn logs_of_every_size_are_sealed_and_verified() {
    for size in [1, 2, 255, 256, 257, 512, 1000] {
        let bench = Bench::sealed(size);
        assert_eq!((bench.checkpoint().size, bench.checkpoint().root), (size, root(size)));
        let found = bench.verify(&["audit.jsonl"]);
        assert_eq!((found.lines.same, found.findings), (size, vec![]), "{size}");
    }
}

#[test]
fn sealing_goes_on_where_it_stopped() {
    let bench = Bench::new();
    let mut size = 0;
    for new in [1, 1, 0, 253, 1, 1, 255, 300, 3, 0] {
        bench.append(size..size + new);
        size += new;
        let sealed = bench.seal().unwrap();
        assert_eq!(
            (sealed.new, sealed.size, sealed.created.is_some()),
            (new, size, size == 1)
        );
        assert_eq!(bench.checkpoint().root, root(size), "{size}");
        let found = bench.verify(&["audit.jsonl"]);
        assert_eq!((found.lines.same, found.findings), (size, vec![]), "{size}");
    }
    let names: Vec<_> = files_in(&bench.file("seal/tile"));
    let names = names.iter().map(|path| {
        path.strip_prefix(bench.file("seal/tile"))
            .unwrap()
            .display()
            .to_string()
    });
    let is_old = |name: &String| name.contains("000.p") || name.contains("001.p") || name.contains("002.p");
    let old: Vec<_> = names.filter(is_old).filter(|name| !name.starts_with('1')).collect();
    assert_eq!(old, [] as [&str; 0], "partial tiles go once the full one is there");
}

#[test]
fn a_line_is_sealed_once_it_is_complete() {
    let bench = Bench::sealed(2);
    let (head, tail) = (&line(2)[..20], &line(2)[20..]);
    bench.write(head);
    assert_eq!(bench.seal().unwrap().new, 0);
    let found = bench.verify(&["audit.jsonl"]);
    assert_eq!((found.incomplete.len(), found.findings), (1, vec![]));
    bench.write(&format!("{tail}\n{}\n{}", line(3), line(4)));
    assert_eq!(bench.seal().unwrap().new, 2);
    assert_eq!(bench.checkpoint().root, root(4));
}

#[test]
fn sealing_stops_at_a_changed_log_until_it_is_told_to_go_on() {
    type Edit = fn(&Bench);
    let cases: [(&str, Edit, &str, u64); 6] = [
        (
            "changed",
            |bench| bench.edit(|lines| lines[9].push(' ')),
            "audit.jsonl:10: this is not the line",
            3,
        ),
        (
            "shorter",
            |bench| bench.edit(|lines| drop(lines.drain(4..6))),
            "audit.jsonl:5: this is not the line",
            2,
        ),
        (
            "gone",
            |bench| fs::remove_file(bench.file("audit.jsonl")).unwrap(),
            "the file that was sealed last (then named audit.jsonl) is missing",
            2,
        ),
        (
            "replaced",
            |bench| fs::write(bench.file("audit.jsonl"), line(99) + "\n").unwrap(),
            "the file that was sealed last (then named audit.jsonl) is missing",
            3,
        ),
        (
            "position lost",
            |bench| {
                fs::remove_file(bench.file("seal/position")).unwrap();
                bench.edit(|lines| drop(lines.remove(0)));
            },
            "audit.jsonl:1: this is not the line",
            2,
        ),
        (
            "checkpoint put back",
            |bench| {
                let position = fs::read_to_string(bench.file("seal/position")).unwrap();
                let later = position.replace("\"size\":10", "\"size\":11");
                fs::write(bench.file("seal/position"), later).unwrap();
            },
            "checkpoint: it is older than the last sealing",
            2,
        ),
    ];
    for (name, edit, expected, new) in cases {
        let bench = Bench::sealed(10);
        edit(&bench);
        bench.append(100..102);
        for _ in 0..2 {
            let error = bench.seal().unwrap_err().to_string();
            assert!(error.contains(expected), "{name}: {error}");
            // With an old checkpoint, `--go-on` seals lines that contradict later checkpoints, so the message does not
            // recommend it.
            assert_eq!(
                error.contains("--go-on"),
                name != "checkpoint put back",
                "{name}: {error}"
            );
        }
        assert_eq!(bench.checkpoint().size, 10, "{name}: nothing is sealed");
        assert_eq!(bench.go_on().unwrap().new, new, "{name}");
        assert_eq!(bench.go_on().unwrap().new, 0, "{name}: nothing is sealed twice");
        bench.append(102..103);
        assert_eq!(bench.seal().unwrap().new, 1, "{name}: all is well again");
        assert_eq!(bench.go_on().unwrap().new, 0, "{name}: nothing is sealed twice later");
    }
    // Even without a position, `--go-on` seals the changed line of a rotated file only once.
    let bench = Bench::sealed(10);
    bench.rotate("audit.jsonl.1");
    bench.append(10..20);
    assert_eq!(bench.seal().unwrap().new, 10);
    let older = fs::read_to_string(bench.file("audit.jsonl.1")).unwrap();
    fs::write(bench.file("audit.jsonl.1"), older.replacen('}', " }", 1)).unwrap();
    fs::remove_file(bench.file("seal/position")).unwrap();
    for new in [1, 0, 0] {
        assert_eq!(bench.go_on().unwrap().new, new);
    }
    let bench = Bench::sealed(10);
    bench.edit(|lines| lines.truncate(7));
    let error = bench.seal().unwrap_err().to_string();
    assert!(error.contains("sealed lines are missing at its end (3)"), "{error}");
    // An empty log gets the same message, even if the position is missing.
    bench.edit(Vec::clear);
    fs::remove_file(bench.file("seal/position")).unwrap();
    let error = bench.seal().unwrap_err().to_string();
    let log = bench.file("audit.jsonl").display().to_string();
    assert!(error.starts_with(&log) && error.contains("at its end (10)"), "{error}");
}

#[test]
fn go_on_seals_every_line_that_is_not_sealed_yet() {
    type Edit = fn(&Bench);
    let cases: [(&str, Edit, u64); 6] = [
        ("a copy of an old line", |bench| bench.write(&(line(3) + "\n")), 1),
        ("a copy of the last line", |bench| bench.write(&(line(8) + "\n")), 1),
        (
            "the last line moved",
            |bench| {
                bench.edit(|lines| drop(lines.remove(8)));
                bench.append(50..60);
                bench.append(8..9);
            },
            10,
        ),
        ("the log rotated", |bench| bench.rotate("audit.jsonl.1"), 0),
        ("nothing is new", |bench| bench.edit(|lines| lines.truncate(4)), 0),
        (
            "no position",
            |bench| fs::remove_file(bench.file("seal/position")).unwrap(),
            0,
        ),
    ];
    for (name, edit, more) in cases {
        let bench = Bench::sealed(10);
        bench.edit(|lines| {
            lines.remove(2);
            lines[8].push(' ');
        });
        bench.append(20..30);
        edit(&bench);
        bench.append(30..40);
        bench.seal().unwrap_err();
        let changed = u64::from(name != "nothing is new");
        let cut = if name == "nothing is new" { 10 } else { 0 };
        assert_eq!(bench.go_on().unwrap().new, changed + 20 - cut + more, "{name}");
        assert_eq!(bench.seal().unwrap().new, 0, "{name}: all is well again");
        assert_eq!(bench.go_on().unwrap().new, 0, "{name}: nothing is sealed twice");
        bench.append(40..41);
        assert_eq!(bench.seal().unwrap().new, 1, "{name}");
        assert_eq!(bench.go_on().unwrap().new, 0, "{name}: nothing is sealed twice later");
    }
    let bench = Bench::sealed(10);
    bench.edit(|lines| lines.truncate(4));
    assert_eq!(bench.go_on().unwrap().new, 0);
    assert_eq!(
        bench.seal().unwrap().new,
        0,
        "a log that was cut short is accepted, too"
    );
}

#[test]
fn copytruncate_loses_no_sealed_line_without_an_error() {
    // Does what logrotate does with its option `copytruncate`.
    let copy_truncate = |bench: &Bench, to: &str| {
        fs::copy(bench.file("audit.jsonl"), bench.file(to)).unwrap();
        fs::write(bench.file("audit.jsonl"), "").unwrap();
    };
    let bench = Bench::sealed(5);
    bench.append(5..7);
    copy_truncate(&bench, "audit.jsonl.1");
    assert_eq!(bench.seal().unwrap().size, 7, "the copy is sealed to its end");
    bench.append(7..9);
    assert_eq!(bench.seal().unwrap().size, 9);
    assert_eq!(bench.verify(&["audit.jsonl.1", "audit.jsonl"]).findings, []);
    // Lines that are written and sealed between copying and emptying the log are lost.
    fs::copy(bench.file("audit.jsonl"), bench.file("audit.jsonl.0")).unwrap();
    bench.append(9..11);
    assert_eq!(bench.seal().unwrap().size, 11);
    fs::write(bench.file("audit.jsonl"), "").unwrap();
    bench.append(11..12);
    let error = bench.seal().unwrap_err().to_string();
    assert!(
        error.contains("sealed lines are missing") || error.contains("not the line that was sealed"),
        "{error}"
    );
}
