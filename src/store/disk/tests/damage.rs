//! Tests database files that are damaged, that a later version wrote, or that never were databases.

use std::fs;

use proptest::prelude::*;

use super::*;

fn filled() -> (Bench, HashMap<String, Saved>) {
    let bench = Bench::new();
    let disk = bench.open();
    let mut known = HashMap::new();
    for number in 0..40 {
        let host = format!("site-{number}.example");
        let state = match number % 4 {
            0 => then(&OriginState::unknown(), 0, 404, ""),
            1 => then(&rules(RULES), 90_000, 503, ""),
            _ => rules(&format!("User-agent: *\nDisallow: /{number}\n{}", "#\n".repeat(900))),
        };
        disk.learns(&host, &state);
        known.insert(host, state.save());
    }
    Bench::close(disk);
    (bench, known)
}

fn recalled(disk: &Disk, host: &str) -> Option<Saved> {
    let name = name(host);
    let state = disk.with_file(|file| file.read(&name)).ok()??;
    Some(state.save())
}

#[test]
fn a_damaged_file_is_renamed_and_a_new_one_is_started() {
    for (name, bytes) in [
        ("a text", b"What is this?".to_vec()),
        ("zeros", vec![0; 100_000]),
        ("a page of noise", (0..8192_u32).map(|n| (n * 97 % 251) as u8).collect()),
    ] {
        let bench = Bench::new();
        fs::write(bench.path(), &bytes).expect("written");
        let disk = bench.open();
        let [aside] = &bench.moved_aside()[..] else {
            panic!("{name}: {:?}", bench.moved_aside());
        };
        assert_eq!(fs::read(aside).expect("it is there"), bytes, "{name}");
        disk.learns("a.example", &rules(RULES));
        Bench::close(disk);
        assert_eq!(
            recalled(&bench.open(), "a.example"),
            Some(rules(RULES).save()),
            "{name}: the new one outlives a restart"
        );
        assert_eq!(bench.moved_aside().len(), 1, "{name}");
    }
}

#[test]
fn an_empty_file_is_used_as_a_new_one() {
    let bench = Bench::new();
    fs::write(bench.path(), b"").expect("written");
    Bench::close(bench.open());
    assert!(bench.moved_aside().is_empty());
}

#[test]
fn a_truncated_file_is_renamed_unchanged() {
    let (bench, known) = filled();
    let intact = fs::read(bench.path()).expect("read");
    for length in [1, 100, 4096, 4097, intact.len() / 2, intact.len() - 4096] {
        let bench = Bench::new();
        fs::write(bench.path(), &intact[..length]).expect("written");
        let disk = bench.open();
        let [aside] = &bench.moved_aside()[..] else {
            panic!("{length}: {:?}", bench.moved_aside());
        };
        assert_eq!(fs::read(aside).expect("read"), intact[..length], "{length}");
        assert!(known.keys().all(|host| recalled(&disk, host).is_none()), "{length}");
    }
}

#[tokio::test]
async fn a_file_damaged_while_open_is_renamed() {
    let (bench, known) = filled();
    let disk = bench.open();
    fs::write(bench.path(), b"").expect("written");
    // The test pretends that a read has found the damage.
    let failed: Result<(), _> = disk.with_file(|_| Err(FileError::Damaged("cut".to_owned())));
    assert!(matches!(failed, Err(FileError::Damaged(_))), "{failed:?}");
    disk.learns("a.example", &rules(RULES));
    disk.flushed().await;
    assert_eq!(disk.knows("a.example").await, Some(rules(RULES).save()));
    assert!(known.keys().all(|host| recalled(&disk, host).is_none()));
    // If there was a trouble, the writer ends it just after it has answered the flush.
    while disk.trouble().is_some() {
        tokio::task::yield_now().await;
    }
}

#[test]
fn only_one_of_two_processes_replaces_a_damaged_file() {
    let bench = Bench::new();
    fs::write(bench.path(), b"damaged").expect("written");
    let opened: Vec<_> = std::thread::scope(|scope| {
        let opening: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| Disk::open(&bench.path(), OPTIONS, 1 << 20)))
            .collect();
        opening
            .into_iter()
            .map(|opening| opening.join().expect("no panic"))
            .collect()
    });
    let locked = |opened: &&Result<Disk, DiskError>| {
        matches!(
            opened,
            Err(DiskError {
                why: FileError::Locked,
                ..
            })
        )
    };
    assert_eq!(opened.iter().filter(locked).count(), 1, "{opened:?}");
    assert_eq!(opened.iter().filter(|opened| opened.is_ok()).count(), 1, "{opened:?}");
    assert_eq!(bench.moved_aside().len(), 1);
}

#[test]
fn the_number_of_renamed_files_is_limited_and_none_is_overwritten() {
    let bench = Bench::new();
    let mut error = None;
    for round in 0..20 {
        fs::write(bench.path(), format!("damaged {round}")).expect("written");
        error = Disk::open(&bench.path(), OPTIONS, 1 << 20).map(Bench::close).err();
    }
    let why = error.expect("the folder is full of damaged files").why;
    assert!(matches!(why, FileError::Stays { .. }), "{why:?}");
    assert!(
        why.to_string().contains("there are already 8 damaged files next to it"),
        "{why}"
    );
    let mut kept: Vec<_> = bench
        .moved_aside()
        .iter()
        .map(|path| fs::read_to_string(path).expect("read"))
        .collect();
    kept.sort();
    assert_eq!(kept, (0..8).map(|round| format!("damaged {round}")).collect::<Vec<_>>());
    assert_eq!(
        fs::read(bench.path()).expect("read"),
        b"damaged 19",
        "it is left where it is"
    );
}

#[test]
fn a_file_of_a_later_version_is_reported_and_not_changed() {
    let (bench, known) = filled();
    set_version(&bench, 2);

    let refused = [
        Disk::read_only(&bench.path()).err(),
        Disk::open(&bench.path(), OPTIONS, 1 << 20).err().map(|error| error.why),
    ];
    for refused in refused {
        let refused = refused.expect("it is too new");
        assert!(matches!(refused, FileError::Later(_)), "{refused:?}");
        assert!(
            refused
                .to_string()
                .contains("a newer robotgate wrote it (file format version 2)"),
            "{refused}"
        );
    }
    assert!(bench.moved_aside().is_empty());
    set_version(&bench, 1);
    let disk = bench.open();
    for (host, saved) in &known {
        assert_eq!(recalled(&disk, host).as_ref(), Some(saved), "{host}");
    }
}

#[test]
fn a_file_of_a_later_database_format_is_not_changed() {
    let (bench, _) = filled();
    let mut bytes = fs::read(bench.path()).expect("read");
    // redb stores its format version in two places of the file.
    for at in [64, 192] {
        bytes[at] += 1;
    }
    fs::write(bench.path(), &bytes).expect("written");
    let refused = Disk::open(&bench.path(), OPTIONS, 1 << 20)
        .expect_err("it is too new")
        .why;
    assert!(matches!(refused, FileError::Later(_)), "{refused:?}");
    assert!(bench.moved_aside().is_empty());
    assert_eq!(fs::read(bench.path()).expect("read").len(), bytes.len());
}

fn set_version(bench: &Bench, version: u64) {
    let database = redb::Database::open(bench.path()).expect("it opens");
    let transaction = database.begin_write().expect("a transaction");
    {
        let about = redb::TableDefinition::<&str, u64>::new("about");
        let mut table = transaction.open_table(about).expect("a table");
        table.insert("version", version).expect("written");
    }
    transaction.commit().expect("written");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever bytes change, each origin is read back exactly as it was saved, or not at all. The file stays usable
    /// unless it looks like a file of a later version.
    #[test]
    fn damage_never_creates_a_state_that_was_not_saved(
        flips in proptest::collection::vec((0.0..1.0_f64, 1_u8..=255), 1..40),
        run in 1_usize..2000,
    ) {
        let (bench, known) = filled();
        let mut bytes = fs::read(bench.path()).expect("read");
        for (at, flip) in flips {
            // Change mostly bytes near the start, because that is where the data in a new file is.
            let at = (at.powi(3) * bytes.len() as f64) as usize;
            let end = (at + run).min(bytes.len());
            bytes[at..end].iter_mut().for_each(|byte| *byte ^= flip);
        }
        fs::write(bench.path(), &bytes).expect("written");
        let disk = match Disk::open(&bench.path(), OPTIONS, 1 << 20) {
            Err(DiskError { why: FileError::Later(_), .. }) => return Ok(()),
            opened => opened.expect("the copies open"),
        };
        for (host, saved) in &known {
            if let Some(found) = recalled(&disk, host) {
                prop_assert_eq!(&found, saved, "{}", host);
            }
        }
        disk.learns("later.example", &rules(RULES));
        Bench::close(disk);
        prop_assert_eq!(recalled(&bench.open(), "later.example"), Some(rules(RULES).save()));
    }
}
