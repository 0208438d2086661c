//! Files that something else wrote to, or that are no such files at all.

use std::fs;

use proptest::prelude::*;

use super::*;

/// A file that knows some origins.
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

/// What the copies at the bench's path, or beside it, know of `host`.
fn recalled(disk: &Disk, host: &str) -> Option<Saved> {
    let name = origin(host).to_string();
    let state = disk.with_file(|file| file.read(&name)).ok()??;
    Some(state.save())
}

#[test]
fn what_is_no_such_file_is_left_as_it_is_and_another_one_used() {
    for (name, bytes) in [
        ("a text", b"What is this?".to_vec()),
        ("zeros", vec![0; 100_000]),
        ("a page of noise", (0..8192_u32).map(|n| (n * 97 % 251) as u8).collect()),
    ] {
        let bench = Bench::new();
        fs::write(bench.path(), &bytes).expect("written");
        let disk = bench.open();
        assert_eq!(disk.path(), bench.folder.path().join("robots.1.redb"), "{name}");
        disk.learns("a.example", &rules(RULES));
        Bench::close(disk);
        assert_eq!(fs::read(bench.path()).expect("it is there"), bytes, "{name}");
        // The stand-in's knowledge is not lost either.
        assert_eq!(
            recalled(&bench.open(), "a.example"),
            Some(rules(RULES).save()),
            "{name}"
        );
    }
}

#[test]
fn an_empty_file_is_a_new_one() {
    let bench = Bench::new();
    fs::write(bench.path(), b"").expect("written");
    assert_eq!(bench.open().path(), bench.path());
}

#[test]
fn a_file_that_was_cut_is_left_as_it_is() {
    let (bench, _) = filled();
    let whole = fs::read(bench.path()).expect("read");
    for length in [1, 100, 4096, 4097, whole.len() / 2, whole.len() - 4096] {
        fs::write(bench.path(), &whole[..length]).expect("written");
        let path = {
            let disk = bench.open();
            disk.path().to_owned()
        };
        if path != bench.path() {
            assert_eq!(
                fs::read(bench.path()).expect("read").len(),
                length,
                "nothing was changed"
            );
        }
    }
}

#[test]
fn a_later_version_is_left_alone_and_said_to_be_one() {
    let (bench, known) = filled();
    let database = redb::Database::open(bench.path()).expect("it opens");
    let transaction = database.begin_write().expect("a transaction");
    {
        let about = redb::TableDefinition::<&str, u64>::new("about");
        let mut table = transaction.open_table(about).expect("a table");
        table.insert("version", 2).expect("written");
    }
    transaction.commit().expect("written");
    drop(database);

    let refused = Disk::read_only(&bench.path(), &bench.path())
        .err()
        .expect("it is too new");
    assert!(matches!(refused, Why::Newer(_)), "{refused:?}");
    assert!(
        refused.to_string().contains("a later robotgate, in version 2"),
        "{refused}"
    );
    let disk = bench.open();
    assert_eq!(disk.path(), bench.folder.path().join("robots.1.redb"));
    for host in known.keys() {
        assert_eq!(recalled(&disk, host), None, "the stand-in is empty");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever bytes change, what is recalled is what was known, or nothing; and the file stays.
    #[test]
    fn damage_makes_nothing_known_that_was_not(
        places in proptest::collection::vec((0.0..1.0_f64, 1_u8..=255), 1..40),
        run in 1_usize..2000,
    ) {
        let (bench, known) = filled();
        let mut bytes = fs::read(bench.path()).expect("read");
        for (at, flip) in places {
            // Most of a new file is empty; what counts stands at its start.
            let at = (at.powi(3) * bytes.len() as f64) as usize;
            let end = (at + run).min(bytes.len());
            bytes[at..end].iter_mut().for_each(|byte| *byte ^= flip);
        }
        fs::write(bench.path(), &bytes).expect("written");
        let disk = bench.open();
        for (host, saved) in &known {
            if let Some(found) = recalled(&disk, host) {
                prop_assert_eq!(&found, saved, "{}", host);
            }
        }
        disk.learns("later.example", &rules(RULES));
        Bench::close(disk);
        prop_assert!(bench.path().exists());
    }
}
