use std::{
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};
use tempfile::TempDir;

use super::{
    folder::crash,
    note::Checkpoint,
    tree::{Tree, leaf},
    verify::{Finding, Kind},
    *,
};
use crate::copy::Sha256;

/// A folder that contains a log and its seal.
struct Bench {
    folder: TempDir,
}

// === impl Bench ===

impl Bench {
    fn new() -> Self {
        Self {
            folder: TempDir::new().unwrap(),
        }
    }

    /// Creates a log with `number` lines, and seals them.
    fn sealed(number: u64) -> Self {
        let bench = Self::new();
        bench.append(0..number);
        assert_eq!(bench.seal().unwrap().new, number);
        bench
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn options(&self) -> SealOptions {
        SealOptions {
            path: self.file("seal"),
            origin: Some("example.com/log".to_owned()),
            new_origin: "example.com/log".to_owned(),
        }
    }

    fn write(&self, text: &str) {
        let log = fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(self.file("audit.jsonl"));
        log.unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn append(&self, lines: std::ops::Range<u64>) {
        self.write(&lines.map(|number| line(number) + "\n").collect::<String>());
    }

    fn rotate(&self, name: &str) {
        fs::rename(self.file("audit.jsonl"), self.file(name)).unwrap();
    }

    fn compress(&self, name: &str) {
        let packed = fs::File::create(self.file(&format!("{name}.gz"))).unwrap();
        let mut packed = GzEncoder::new(packed, Compression::fast());
        packed.write_all(&fs::read(self.file(name)).unwrap()).unwrap();
        packed.finish().unwrap();
        fs::remove_file(self.file(name)).unwrap();
    }

    fn seal(&self) -> Result<Sealed, SealError> {
        seal(&self.options(), &[self.file("audit.jsonl")], false, || false)
    }

    fn go_on(&self) -> Result<Sealed, SealError> {
        seal(&self.options(), &[self.file("audit.jsonl")], true, || false)
    }

    /// Changes the lines of the log.
    fn edit(&self, edit: impl FnOnce(&mut Vec<String>)) {
        let path = self.file("audit.jsonl");
        let text = fs::read_to_string(&path).unwrap();
        let mut lines = text.lines().map(str::to_owned).collect();
        edit(&mut lines);
        fs::write(path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    }

    fn verify_with(&self, what: Verify) -> Result<Verification, SealError> {
        verify(&Verify {
            folder: self.file("seal"),
            ..what
        })
    }

    fn verify(&self, logs: &[&str]) -> Verification {
        let logs = logs.iter().map(|log| self.file(log)).collect();
        self.verify_with(Verify {
            logs,
            ..Verify::default()
        })
        .unwrap()
    }

    fn checkpoint(&self) -> Checkpoint {
        let note = checkpoint(&self.file("seal")).unwrap();
        Checkpoint::parse(note.split_inclusive("\n\n").next().unwrap().strip_suffix('\n').unwrap()).unwrap()
    }
}

fn line(number: u64) -> String {
    format!("{{\"event\":\"decision\",\"time\":\"2026-11-22T00:00:00.{number:06}Z\",\"id\":\"id-{number}\"}}")
}

fn erased(number: u64) -> String {
    format!(
        "{{\"event\":\"erased\",\"sha256\":\"{}\"}}",
        Sha256::of(line(number).as_bytes())
    )
}

/// Returns the root of the tree over the first `lines` lines.
fn root(lines: u64) -> Sha256 {
    let mut tree = Tree::default();
    for number in 0..lines {
        tree.push(leaf(&Sha256::of(line(number).as_bytes()).0), |_, _| ());
    }
    tree.root()
}

fn kinds(found: &Verification) -> Vec<(Kind, Option<u64>, u64)> {
    let kind = |finding: &Finding| (finding.kind.clone(), finding.line, finding.count);
    found.findings.iter().map(kind).collect()
}

/// Returns all files below a folder, sorted.
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(files_in(&path)),
            false => files.push(path),
        }
    }
    files.sort();
    files
}

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
fn rotated_files_are_sealed_to_their_end_under_any_name() {
    let bench = Bench::sealed(5);
    // The log is renamed, but the proxy still writes to the old file for a moment.
    bench.append(5..7);
    bench.rotate("audit.jsonl-20261122");
    assert_eq!(bench.seal().unwrap().size, 7);
    fs::write(bench.file("audit.jsonl"), "").unwrap();
    let mut old = fs::OpenOptions::new()
        .append(true)
        .open(bench.file("audit.jsonl-20261122"))
        .unwrap();
    old.write_all(format!("{}\n{}", line(7), &line(8)[..9]).as_bytes())
        .unwrap();
    bench.append(8..10);
    assert_eq!(bench.seal().unwrap().size, 10, "an incomplete last line stays out");
    // Before the next sealing, the log is rotated several times and old files are compressed.
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
    // A file of which all lines are sealed may be deleted.
    fs::remove_file(bench.file("audit.jsonl-20261122.gz")).unwrap();
    bench.append(600..601);
    assert_eq!(bench.seal().unwrap().size, 601);
}

#[test]
fn a_new_folder_takes_the_rotated_files_too_and_a_copy_once() {
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
fn every_change_of_the_log_is_found_with_its_reason_and_its_line() {
    use Kind::{Added, Changed, CutShort, Missing, Moved};
    type Edit = fn(&mut Vec<String>);
    type Found = &'static [(Kind, Option<u64>, u64)];
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
    assert_eq!(kinds(&bench.verify(&["audit.jsonl"])), [(Kind::Missing, Some(1), 5)]);
    assert_eq!(kinds(&bench.verify(&["audit.jsonl.1"])), [(Kind::CutShort, Some(5), 4)]);
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
    let found = bench.verify(&["audit.jsonl", "audit.jsonl.1"]);
    assert!(
        found.findings.iter().all(|one| one.kind == Kind::Moved),
        "{:?}",
        found.findings
    );
    let place = &found.findings[0];
    assert!(place.file.ends_with("audit.jsonl.1") || place.file.ends_with("audit.jsonl"));
}

#[test]
fn erased_lines_stand_for_their_hashes_before_and_after_sealing() {
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
    let expected = [(Kind::Missing, Some(6), 1), (Kind::Added, Some(7), 1)];
    assert_eq!(
        kinds(&bench.verify(&["audit.jsonl"])),
        expected,
        "a hash counts only at its place"
    );
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
            "the file of the log that was sealed last, audit.jsonl, is missing",
            2,
        ),
        (
            "replaced",
            |bench| fs::write(bench.file("audit.jsonl"), line(99) + "\n").unwrap(),
            "the file of the log that was sealed last, audit.jsonl, is missing",
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
            assert!(error.contains(expected) && error.contains("--go-on"), "{name}: {error}");
        }
        assert_eq!(bench.checkpoint().size, 10, "{name}: nothing is sealed");
        assert_eq!(bench.go_on().unwrap().new, new, "{name}");
        bench.append(102..103);
        assert_eq!(bench.seal().unwrap().new, 1, "{name}: all is well again");
    }
    let bench = Bench::sealed(10);
    bench.edit(|lines| lines.truncate(7));
    let error = bench.seal().unwrap_err().to_string();
    assert!(error.contains("the last 3 sealed lines are missing"), "{error}");
}

#[test]
fn a_flipped_bit_in_any_file_is_found() {
    let bench = Bench::sealed(300);
    let good = bench.verify(&["audit.jsonl"]);
    assert_eq!(good.findings, []);
    for path in files_in(&bench.file("seal")) {
        let name = path.strip_prefix(bench.file("seal")).unwrap().display().to_string();
        // A verification does not read these two files, because only sealing needs them.
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
    assert!(found[0].to_string().contains("no known key signed it"), "{found:?}");
}

#[test]
fn keys_rotate_and_the_old_one_signs_nothing_new() {
    let bench = Bench::sealed(10);
    let (old_key, old_vkeys) = (
        fs::read(bench.file("seal/key")).unwrap(),
        fs::read_to_string(bench.file("seal/vkey")),
    );
    let old_vkey = VerifierKey::parse(&old_vkeys.unwrap()).unwrap();
    let new = rotate_key(&bench.options()).unwrap();
    let announced = checkpoint(&bench.file("seal")).unwrap();
    assert_eq!(announced.matches("\u{2014} example.com/log ").count(), 2, "{announced}");
    assert!(announced.contains(&format!("\nnext-key {new}\n\n")), "{announced}");
    let verify = |keys: &[&VerifierKey]| {
        bench.verify_with(Verify {
            logs: vec![bench.file("audit.jsonl")],
            keys: keys.iter().map(|key| (*key).clone()).collect(),
            ..Verify::default()
        })
    };
    assert_eq!(verify(&[]).unwrap().findings, []);
    bench.append(10..20);
    bench.seal().unwrap();
    let newest = rotate_key(&bench.options()).unwrap();
    bench.append(20..21);
    bench.seal().unwrap();
    assert_eq!(files_in(&bench.file("seal/rotations")).len(), 2);
    for keys in [&[][..], &[&old_vkey], &[&new], &[&newest]] {
        let found = verify(keys).unwrap();
        assert_eq!(
            (found.key, found.checkpoints, found.findings),
            (newest.id_text(), 2, vec![]),
            "{keys:?}"
        );
    }
    let error = verify(&[&VerifierKey::parse(STRANGER).unwrap()]).unwrap_err();
    assert!(matches!(error, SealError::Untrusted(_)), "{error}");

    // Somebody who stole the first, replaced key signs a checkpoint with it.
    let key = note::SigningKey::of_seed("example.com/log", &old_key).unwrap();
    let forged = note::Note::sign(bench.checkpoint().to_string(), &[&key]);
    fs::write(bench.file("seal/checkpoint"), forged).unwrap();
    let error = verify(&[]).unwrap_err().to_string();
    assert!(
        error.contains("signed by a key that was replaced when the tree had 10 entries"),
        "{error}"
    );
    let error = verify(&[&newest]).unwrap_err().to_string();
    assert!(error.contains("no known key signed it"), "{error}");
}

#[test]
fn a_kill_at_any_step_of_sealing_leaves_one_history() {
    let mut checkpoints = 0;
    for (before, after) in [(0, 2), (250, 600), (511, 513)] {
        for steps in 0.. {
            let bench = Bench::new();
            if before > 0 {
                bench.append(0..before);
                bench.seal().unwrap();
            }
            bench.append(before..after);
            let killed = crash::after(steps, || bench.seal());
            let size = match checkpoint(&bench.file("seal")) {
                Ok(_) => bench.checkpoint().size,
                Err(_) => 0,
            };
            assert!(size == before || size == after, "{size} after {steps} steps");
            if size > 0 {
                checkpoints += 1;
                assert_eq!(bench.checkpoint().root, root(size), "after {steps} steps");
                assert_eq!(bench.verify(&["audit.jsonl"]).findings, [], "after {steps} steps");
            }
            // Seals two more lines. So a tile that was written before the kill is written again with other contents.
            bench.append(after..after + 2);
            bench.seal().unwrap();
            assert_eq!(bench.checkpoint().root, root(after + 2), "after {steps} steps");
            assert_eq!(bench.verify(&["audit.jsonl"]).findings, [], "after {steps} steps");
            if killed.is_ok() {
                assert!(steps > 15, "{steps} steps");
                break;
            }
        }
    }
    assert!(checkpoints > 50, "{checkpoints}");
}

#[test]
fn a_kill_at_any_step_of_a_rotation_leaves_a_key_that_signs() {
    for steps in 0.. {
        let bench = Bench::sealed(3);
        let first = VerifierKey::parse(fs::read_to_string(bench.file("seal/vkey")).unwrap().trim()).unwrap();
        // The key's file has no line end, as if somebody had typed the key into an editor.
        let key = fs::read_to_string(bench.file("seal/key")).unwrap();
        fs::write(bench.file("seal/key"), key.trim_end()).unwrap();
        let killed = crash::after(steps, || rotate_key(&bench.options()));
        assert_eq!(bench.verify(&["audit.jsonl"]).findings, [], "after {steps} steps");
        bench.append(3..5);
        bench.seal().unwrap();
        let found = bench.verify_with(Verify {
            logs: vec![bench.file("audit.jsonl")],
            keys: vec![first],
            ..Verify::default()
        });
        let found = found.unwrap();
        assert_eq!((found.lines.same, found.findings), (5, vec![]), "after {steps} steps");
        if killed.is_ok() {
            assert!(steps > 15, "{steps} steps");
            break;
        }
    }
}

#[test]
fn a_folder_belongs_to_one_log_and_one_sealer() {
    let bench = Bench::sealed(3);
    let other = SealOptions {
        origin: Some("example.com/other".to_owned()),
        ..bench.options()
    };
    let error = seal(&other, &[bench.file("audit.jsonl")], false, || false)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("seals the log example.com/log, not example.com/other"),
        "{error}"
    );
    let any = SealOptions {
        origin: None,
        ..bench.options()
    };
    assert_eq!(
        seal(&any, &[bench.file("audit.jsonl")], false, || false).unwrap().size,
        3
    );
    let mode = |name: &str| fs::metadata(bench.file(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("seal/key"), mode("seal/checkpoint")), (0o600, 0o640));
    fs::set_permissions(bench.file("seal/key"), fs::Permissions::from_mode(0o644)).unwrap();
    let error = bench.seal().unwrap_err().to_string();
    assert!(error.contains("every user can read it; run: chmod 640"), "{error}");
    fs::remove_file(bench.file("seal/key")).unwrap();
    let error = bench.seal().unwrap_err().to_string();
    assert!(error.contains("the private key with the id"), "{error}");
    let _lock = folder::Folder(bench.file("seal")).lock().unwrap();
    let error = bench.seal().unwrap_err();
    assert!(matches!(error, SealError::Locked(_)), "{error}");
}

#[test]
fn what_is_no_log_leaves_no_folder() {
    let bench = Bench::new();
    let error = bench.seal().unwrap_err().to_string();
    assert!(error.contains("audit.jsonl: there is no such file"), "{error}");
    fs::write(bench.file("audit.jsonl"), "hello\n").unwrap();
    let error = bench.seal().unwrap_err().to_string();
    assert!(error.contains("no line of it is a record"), "{error}");
    assert!(!bench.file("seal").exists());
}

#[test]
fn a_proof_names_the_line_its_entry_and_the_checkpoint() {
    let bench = Bench::sealed(300);
    let proven = prove(&bench.file("seal"), "id-77", &[bench.file("audit.jsonl")]).unwrap();
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
        ("id-300", "1 of the 1 lines with the id id-300 are not sealed yet"),
        ("id-7777", "no line in these logs has the id id-7777"),
    ] {
        let error = prove(&bench.file("seal"), id, &[bench.file("audit.jsonl")]).unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}

#[test]
fn a_rotation_while_older_lines_are_sealed_skips_no_file() {
    let bench = Bench::new();
    // These are more lines than one round of sealing takes.
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
fn an_erased_line_has_one_form() {
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
            [(Kind::Changed, Some(2), 1)],
            "{bad}"
        );
    }
    bench.edit(|lines| lines[1] = good);
    let found = bench.verify(&["audit.jsonl"]);
    assert_eq!((found.lines.erased, found.findings), (1, vec![]));
    let error = prove(&bench.file("seal"), "id-1", &[bench.file("audit.jsonl")]).unwrap_err();
    assert!(
        matches!(error, SealError::NoLine(_)),
        "what was erased cannot be proven: {error}"
    );
}

#[test]
fn going_on_seals_each_line_that_is_not_sealed() {
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
        // Removes a sealed line, and changes the last one.
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
        bench.append(40..41);
        assert_eq!(bench.seal().unwrap().new, 1, "{name}");
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
fn files_are_sealed_in_their_order_even_if_the_clock_was_set_back() {
    let bench = Bench::sealed(10);
    // The log is rotated twice before the next sealing. Each time, the clock has been set back.
    let at = |number: u64| line(number).replace("2026-11-22", "1970-01-01") + "\n";
    bench.rotate("audit.jsonl.2");
    bench.write(&at(500));
    bench.write(&at(501));
    bench.rotate("audit.jsonl.1");
    bench.write(&at(100));
    assert_eq!(bench.seal().unwrap().new, 3);
    let logs = ["audit.jsonl.2", "audit.jsonl.1", "audit.jsonl"];
    assert_eq!(bench.verify(&logs).findings, []);
    // Now even the names of the files do not tell their order. Each file is still sealed once.
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
fn verify_lists_the_first_findings_and_counts_the_others() {
    let bench = Bench::sealed(3000);
    bench.edit(|lines| lines.iter_mut().step_by(2).for_each(|line| line.push(' ')));
    let found = bench.verify(&["audit.jsonl"]);
    assert_eq!((found.findings.len(), found.more, found.lines.same), (1000, 500, 1500));
    assert!(found.findings.iter().all(|one| one.kind == Kind::Changed));
}

#[test]
fn a_truncated_copy_takes_no_sealed_line_away_unnoticed() {
    // Does what logrotate does with `copytruncate`: it copies the log and then empties it.
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
    // Here, lines are written and sealed between copying and emptying, so they are lost.
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

#[test]
fn a_folder_from_a_backup_grows_the_same_tree() {
    let bench = Bench::sealed(5);
    let copy = |from: &str, to: &str| {
        let _ = fs::remove_dir_all(bench.file(to));
        let copied = std::process::Command::new("cp")
            .arg("-r")
            .arg(bench.file(from))
            .arg(bench.file(to))
            .status();
        assert!(copied.unwrap().success());
    };
    copy("seal", "backup");
    bench.append(5..300);
    bench.seal().unwrap();
    bench.rotate("audit.jsonl.1");
    bench.append(300..310);
    bench.seal().unwrap();
    let newest = bench.checkpoint();
    copy("backup", "seal");
    assert_eq!(bench.seal().unwrap().new, 305);
    assert_eq!(bench.checkpoint(), newest);
    // Sealing fails if the lines since the backup are gone.
    copy("backup", "seal");
    fs::remove_file(bench.file("audit.jsonl.1")).unwrap();
    let error = bench.seal().unwrap_err().to_string();
    assert!(
        error.contains("audit.jsonl, is missing") && error.contains("--go-on"),
        "{error}"
    );
}

#[test]
fn a_proof_from_a_damaged_tile_is_not_written() {
    let bench = Bench::sealed(300);
    let tile = bench.file("seal").join("tile/0/001.p/44");
    let mut bytes = fs::read(&tile).unwrap();
    bytes[40] ^= 1;
    fs::write(&tile, bytes).unwrap();
    let error = prove(&bench.file("seal"), "id-7", &[bench.file("audit.jsonl")]).unwrap_err();
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
fn a_folder_of_the_old_key_does_not_fit_an_announcement_of_a_new_one() {
    let bench = Bench::sealed(10);
    let stolen = bench.file("stolen");
    let copied = std::process::Command::new("cp")
        .arg("-r")
        .arg(bench.file("seal"))
        .arg(&stolen)
        .status();
    assert!(copied.unwrap().success());
    rotate_key(&bench.options()).unwrap();
    let announcement = bench.file("announcement");
    fs::write(&announcement, super::checkpoint(&bench.file("seal")).unwrap()).unwrap();
    for (folder, expected) in [(bench.file("seal"), 0), (stolen, 1)] {
        let found = verify(&Verify {
            folder,
            checkpoints: vec![announcement.clone()],
            ..Verify::default()
        });
        let findings = found.unwrap().findings;
        let announced = findings
            .iter()
            .filter(|finding| finding.to_string().contains("announces a new key"));
        assert_eq!(announced.count(), expected, "{findings:?}");
    }
}

#[test]
fn a_removed_checkpoint_is_not_replaced_by_a_new_tree() {
    let bench = Bench::sealed(10);
    fs::remove_file(bench.file("seal/checkpoint")).unwrap();
    let error = bench.seal().unwrap_err();
    assert!(
        matches!(&error, SealError::Damaged(path) if path.ends_with("checkpoint")),
        "{error}"
    );
}

#[test]
fn a_line_without_an_end_is_an_error_and_takes_no_memory() {
    let bench = Bench::sealed(10);
    let log = fs::OpenOptions::new()
        .write(true)
        .open(bench.file("audit.jsonl"))
        .unwrap();
    log.set_len(8 << 30).unwrap();
    let error = bench.seal().unwrap_err().to_string();
    assert!(error.contains("longer than 16 MiB"), "{error}");
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

const STRANGER: &str = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k";
