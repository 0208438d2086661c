//! Tests what verifying finds, and proofs of single lines.

use std::process::Command;

use super::*;

#[test]
fn every_change_of_the_log_is_found_with_its_reason_and_its_line() {
    use FindingKind::{Added, Changed, CutShort, Missing, Moved};
    type Edit = fn(&mut Vec<String>);
    type Found = &'static [(FindingKind, Option<u64>, u64)];
    let cases: [(&str, Edit, Found); 11] = [
        ("nothing", |_| (), &[]),
        (
            "a byte",
            |lines| lines[9] = lines[9].replace("id-", "iD-"),
            &[(Changed, Some(10), 1)],
        ),
        ("the first line", |lines| lines[0].push(' '), &[(Changed, Some(1), 1)]),
        (
            "the last line",
            |lines| lines[299].push(' '),
            &[(Changed, Some(300), 1)],
        ),
        ("a line less", |lines| drop(lines.remove(9)), &[(Missing, Some(10), 1)]),
        (
            "the first three less",
            |lines| drop(lines.drain(..3)),
            &[(Missing, Some(1), 3)],
        ),
        (
            "a line more",
            |lines| lines.insert(9, line(999)),
            &[(Added, Some(10), 1)],
        ),
        (
            "a line moved",
            |lines| {
                let moved = lines.remove(9);
                lines.insert(19, moved);
            },
            &[(Moved, Some(20), 1)],
        ),
        (
            "two swapped",
            |lines| lines.swap(9, 19),
            &[(Moved, Some(10), 1), (Moved, Some(20), 1)],
        ),
        ("cut", |lines| lines.truncate(290), &[(CutShort, Some(290), 10)]),
        ("empty", |lines| lines.clear(), &[(Missing, Some(1), 300)]),
    ];
    for (name, edit, expected) in cases {
        let bench = Bench::sealed(300);
        bench.edit(edit);
        let found = bench.verify(&["audit.jsonl"]);
        assert_eq!(kinds(&found), expected, "{name}: {:?}", found.findings);
    }
    let bench = Bench::sealed(300);
    bench.append(300..302);
    let found = bench.verify(&["audit.jsonl"]);
    assert_eq!((found.lines.unsealed, found.findings), (2, vec![]), "not sealed yet");
}

#[test]
fn a_part_of_the_log_is_verified_if_the_caller_says_so() {
    let bench = Bench::sealed(5);
    bench.rotate("audit.jsonl.1");
    bench.append(5..9);
    bench.seal().unwrap();
    assert_eq!(
        kinds(&bench.verify(&["audit.jsonl"])),
        [(FindingKind::Missing, Some(1), 5)]
    );
    assert_eq!(
        kinds(&bench.verify(&["audit.jsonl.1"])),
        [(FindingKind::CutShort, Some(5), 4)]
    );
    for (log, older, newer) in [("audit.jsonl", 5, 0), ("audit.jsonl.1", 0, 4)] {
        let what = Verify {
            logs: vec![bench.file(log)],
            skip_older: older > 0,
            skip_newer: newer > 0,
            ..Verify::default()
        };
        let found = bench.verify_with(what).unwrap();
        assert_eq!(
            (found.lines.before, found.lines.after, found.findings),
            (older, newer, vec![]),
            "{log}"
        );
    }
    for logs in [["audit.jsonl", "audit.jsonl.1"], ["audit.jsonl.1", "audit.jsonl"]] {
        let found = bench.verify(&logs);
        assert_eq!((found.lines.same, found.findings), (9, vec![]), "{logs:?}");
    }
}

#[test]
fn erased_lines_count_as_their_hashes_before_and_after_sealing() {
    let bench = Bench::sealed(10);
    bench.append(10..12);
    bench.edit(|lines| {
        for number in [0, 3, 9, 11] {
            lines[number] = erased(number as u64);
        }
    });
    assert_eq!(bench.seal().unwrap().size, 12);
    assert_eq!(bench.checkpoint().root, root(12));
    let found = bench.verify(&["audit.jsonl"]);
    assert_eq!((found.lines.same, found.lines.erased, found.findings), (8, 4, vec![]));
    bench.edit(|lines| lines[5] = erased(6));
    let expected = [(FindingKind::Missing, Some(6), 1), (FindingKind::Added, Some(7), 1)];
    assert_eq!(
        kinds(&bench.verify(&["audit.jsonl"])),
        expected,
        "a hash counts only at its place"
    );
}

#[test]
fn a_flipped_bit_in_any_file_is_found() {
    let bench = Bench::sealed(300);
    let good = bench.verify(&["audit.jsonl"]);
    assert_eq!(good.findings, []);
    for path in files_in(&bench.file("seal")) {
        let name = path.strip_prefix(bench.file("seal")).unwrap().display().to_string();
        // Only sealing needs these two files.
        if ["key", "position"].contains(&&*name) {
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        for at in (0..bytes.len()).step_by(bytes.len() / 40 + 1) {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            fs::write(&path, &changed).unwrap();
            let what = Verify {
                logs: vec![bench.file("audit.jsonl")],
                ..Verify::default()
            };
            match bench.verify_with(what) {
                Ok(found) => assert!(
                    found
                        .findings
                        .iter()
                        .any(|one| one.file.ends_with(&name) || one.to_string().contains(&name)),
                    "{name}, byte {at}: {:?}",
                    found.findings
                ),
                Err(error) => assert!(name == "checkpoint" || name == "vkey", "{name}, byte {at}: {error}"),
            }
        }
        fs::write(&path, &bytes).unwrap();
    }
}

#[test]
fn a_log_that_was_sealed_anew_does_not_fit_an_older_checkpoint() {
    let bench = Bench::sealed(300);
    let old = bench.file("old");
    fs::write(&old, checkpoint(&bench.file("seal")).unwrap()).unwrap();
    bench.append(300..400);
    bench.seal().unwrap();
    let against = |bench: &Bench| {
        let found = bench.verify_with(Verify {
            logs: vec![bench.file("audit.jsonl")],
            checkpoints: vec![old.clone()],
            ..Verify::default()
        });
        let found = found.unwrap();
        (found.checkpoints, found.findings)
    };
    assert_eq!(against(&bench), (1, vec![]));
    // Somebody who has the key changes the log and seals it anew.
    let forge = |edit: fn(&mut Vec<String>)| {
        for name in ["seal/checkpoint", "seal/position"] {
            fs::remove_file(bench.file(name)).unwrap();
        }
        fs::remove_dir_all(bench.file("seal/tile")).unwrap();
        bench.edit(edit);
        bench.seal().unwrap();
        assert_eq!(bench.verify(&["audit.jsonl"]).findings, [], "it looks good by itself");
        against(&bench).1
    };
    let found = forge(|lines| lines[7].push(' '));
    assert!(
        found[0].to_string().contains("first 300 entries of the tree are not"),
        "{found:?}"
    );
    let found = forge(|lines| lines.truncate(299));
    assert!(
        found[0]
            .to_string()
            .contains("it has 300 entries, but the tree has only 299"),
        "{found:?}"
    );
    let foreign = Bench::sealed(3);
    let found = against(&foreign).1;
    assert_eq!(
        found[0].to_string(),
        "no key of the seal folder signed it: it is the wrong file, or the seal folder was replaced, perhaps by an old \
         backup",
        "the file is named apart"
    );
}

#[test]
fn a_proof_names_the_line_its_entry_and_the_checkpoint() {
    let bench = Bench::sealed(300);
    let (proven, missing) = prove(&bench.file("seal"), "id-77", &[bench.file("audit.jsonl")], None).unwrap();
    assert_eq!(missing, 0);
    let [proven] = &*proven else {
        panic!("one line has the id")
    };
    assert_eq!(
        (proven.entry, &*proven.line, &*proven.event),
        (77, line(77).as_bytes(), "decision")
    );
    let (head, checkpoint) = proven.proof.split_once("\n\n").unwrap();
    assert!(head.starts_with("c2sp.org/tlog-proof@v1\nindex 77\n"), "{head}");
    assert_eq!(head.lines().count(), 2 + 9, "the tree of 300 is nine levels high");
    assert_eq!(checkpoint, super::checkpoint(&bench.file("seal")).unwrap());
    bench.append(300..301);
    for (id, expected) in [
        ("id-300", "the checkpoint covers none of the lines with the id id-300"),
        ("id-7777", "no line in the log files that were read has the id id-7777;"),
    ] {
        let error = prove(&bench.file("seal"), id, &[bench.file("audit.jsonl")], None).unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}

#[test]
fn a_proof_can_be_for_an_older_checkpoint_of_the_same_tree() {
    let bench = Bench::sealed(300);
    let forks = [("fork", 500), ("longer-fork", 900)];
    for (name, lines) in forks {
        fs::create_dir_all(bench.file(name)).unwrap();
        let copied = Command::new("/bin/cp")
            .args(["-r", "-T"])
            .args([bench.file("seal"), bench.file(name)])
            .status();
        assert!(copied.unwrap().success());
        let log = bench.file(&format!("{name}.jsonl"));
        let text = (0..300).chain(1300..1000 + lines).map(|number| line(number) + "\n");
        fs::write(&log, text.collect::<String>()).unwrap();
        let options = SealOptions {
            path: bench.file(name),
            ..bench.options()
        };
        assert_eq!(seal(&options, &[log], false, || false).unwrap().size, lines);
    }
    let older = bench.file("older");
    fs::write(&older, super::checkpoint(&bench.file("seal")).unwrap()).unwrap();
    bench.append(300..700);
    bench.seal().unwrap();
    let prove =
        |id: &str, checkpoint: &Path| prove(&bench.file("seal"), id, &[bench.file("audit.jsonl")], Some(checkpoint));
    let (proven, _) = prove("id-77", &older).unwrap();
    assert_eq!((proven[0].entry, proven[0].size), (77, 300));
    assert!(proven[0].proof.ends_with(&fs::read_to_string(&older).unwrap()));

    let error = prove("id-300", &older).unwrap_err();
    assert!(
        matches!(error, SealError::NotCovered { is_current: false, .. }),
        "{error}"
    );
    // The older checkpoint does not cover this line, which has the same id.
    bench.write(&(line(77).replace("decision", "completion") + "\n"));
    let (proven, missing) = prove("id-77", &older).unwrap();
    assert_eq!((proven.len(), missing), (1, 1));

    // Two other trees, signed by the same key: one is smaller than the folder's tree, and one is larger.
    for (name, _) in forks {
        let error = prove("id-77", &bench.file(name).join("checkpoint")).unwrap_err();
        assert!(matches!(error, SealError::Unfit(_)), "{name}: {error}");
    }
    for lines in [100, 900] {
        let other = Bench::sealed(lines);
        other.edit(|lines| lines[0].push(' '));
        let foreign = other.file("seal/checkpoint");
        let error = prove("id-77", &foreign).unwrap_err();
        assert!(
            error.to_string().contains("no key of the seal folder signed it"),
            "{error}"
        );
    }
}

#[test]
fn an_erased_line_is_accepted_only_in_its_exact_form() {
    let bench = Bench::sealed(3);
    let good = erased(1);
    for bad in [
        good.replace("\"}", "\",\"id\":\"id-1\"}"),
        good.replace("{", "{ "),
        good.replace("\"}", "\"} "),
        good.to_uppercase()
            .replace("{\"EVENT\":\"ERASED\",\"SHA256\"", "{\"event\":\"erased\",\"sha256\""),
        good.replace("\"sha256\"", "\"SHA256\""),
    ] {
        bench.edit(|lines| lines[1] = bad.clone());
        assert_eq!(
            kinds(&bench.verify(&["audit.jsonl"])),
            [(FindingKind::Changed, Some(2), 1)],
            "{bad}"
        );
    }
    bench.edit(|lines| lines[1] = good);
    let found = bench.verify(&["audit.jsonl"]);
    assert_eq!((found.lines.erased, found.findings), (1, vec![]));
    let error = prove(&bench.file("seal"), "id-1", &[bench.file("audit.jsonl")], None).unwrap_err();
    assert!(
        matches!(error, SealError::NoLine(_)),
        "what was erased cannot be proven: {error}"
    );
}

#[test]
fn verify_lists_the_first_findings_and_counts_the_others() {
    let bench = Bench::sealed(3000);
    bench.edit(|lines| lines.iter_mut().step_by(2).for_each(|line| line.push(' ')));
    let found = bench.verify(&["audit.jsonl"]);
    assert_eq!((found.findings.len(), found.more, found.lines.same), (1000, 500, 1500));
    assert!(found.findings.iter().all(|one| one.kind == FindingKind::Changed));
}

#[test]
fn a_proof_from_a_damaged_tile_is_not_written() {
    let bench = Bench::sealed(300);
    let tile = bench.file("seal").join("tile/0/001.p/44");
    let mut bytes = fs::read(&tile).unwrap();
    bytes[40] ^= 1;
    fs::write(&tile, bytes).unwrap();
    let error = prove(&bench.file("seal"), "id-7", &[bench.file("audit.jsonl")], None).unwrap_err();
    assert!(matches!(error, SealError::Damaged(_)), "{error}");
}

#[test]
fn a_rewritten_log_is_found_even_if_older_files_may_be_missing() {
    let bench = Bench::sealed(100);
    let log = bench.file("audit.jsonl");
    let changed = fs::read_to_string(&log).unwrap().replace("id-", "other-");
    fs::write(&log, changed).unwrap();
    let found = verify(&Verify {
        folder: bench.file("seal"),
        logs: vec![log],
        skip_older: true,
        ..Verify::default()
    });
    let findings = found.unwrap().findings;
    assert!(
        findings[0].to_string().starts_with("none of the lines is sealed"),
        "{findings:?}"
    );
}

#[test]
fn a_line_longer_than_16_mib_is_an_error() {
    let bench = Bench::sealed(10);
    let log = fs::OpenOptions::new()
        .write(true)
        .open(bench.file("audit.jsonl"))
        .unwrap();
    log.set_len(8 << 30).unwrap();
    let error = bench.seal().unwrap_err().to_string();
    assert!(error.contains("longer than 16 MiB"), "{error}");
}
