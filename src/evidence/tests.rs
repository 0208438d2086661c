//! Tests which texts and which history the store of evidence keeps, and what it does if its file cannot be used.

use std::fs;

use redb::TableHandle as _;
use tempfile::TempDir;

use super::{
    file::{Batch, EVIDENCE, EvidenceFile},
    *,
};
use crate::database::{Check, open_patiently};

const CONFIG: &str = "[proxy]\nname = \"a\"\n";

struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    fn options(&self) -> EvidenceOptions {
        EvidenceOptions {
            path: self.folder.path().join("evidence.redb"),
            keep: Duration::from_secs(400 * 24 * 60 * 60),
            max_bytes: 1 << 30,
            required: false,
        }
    }

    fn start(&self) -> Evidence {
        Evidence::start(&self.options(), &CONFIG.into()).expect("it starts")
    }

    fn read(&self, text: &str) -> Option<Vec<u8>> {
        let reader = EvidenceReader::open(&self.options().path).expect("the file can be read");
        reader.read(&[digest(text)]).expect("read").remove(&digest(text))
    }

    fn open(&self) -> EvidenceFile {
        open_patiently(&EVIDENCE, &self.options().path, 1 << 20, Check::Full).expect("opens")
    }
}

fn digest(text: &str) -> Sha256 {
    Sha256::of(text.as_bytes())
}

async fn put(evidence: &Evidence, text: &str) -> Result<(), NotStored> {
    evidence.put(digest(text), text.as_bytes()).await
}

fn write(file: &EvidenceFile, texts: &[&str], day: u32, oldest: u32, max_bytes: u64) -> file::WriteOutcome {
    let texts: Vec<_> = texts.iter().map(|text| (digest(text), text.as_bytes())).collect();
    let batch = Batch {
        texts: &texts,
        seen: &[],
        day,
        oldest,
        max_bytes,
    };
    file.write(&batch).expect("written")
}

#[tokio::test]
async fn a_text_can_be_read_as_soon_as_it_is_stored_while_the_store_runs() {
    let bench = Bench::new();
    let evidence = bench.start();
    assert_eq!(bench.read(CONFIG).as_deref(), Some(CONFIG.as_bytes()));
    let long = "User-agent: *\nDisallow: /a\n".repeat(10_000);
    for text in ["User-agent: *\nDisallow: /\n", "", &long] {
        assert_eq!(bench.read(text), None);
        put(&evidence, text).await.expect("stored");
        assert_eq!(bench.read(text).as_deref(), Some(text.as_bytes()));
    }
    let state = evidence.state();
    assert_eq!((state.texts, state.failures, state.trouble), (4, 0, None));
    assert!(state.bytes < long.len() as u64 / 100, "compressed: {}", state.bytes);
}

#[tokio::test]
async fn a_text_that_this_process_stored_is_not_written_again() {
    let bench = Bench::new();
    let evidence = bench.start();
    put(&evidence, "a").await.expect("stored");
    let today = day_of(SystemTime::now());
    let again = evidence.shared.put(digest("a"), b"a", today);
    assert!(matches!(again, PutResult::Stored));
    let tomorrow = evidence.shared.put(digest("a"), b"a", today + 1);
    assert!(
        matches!(tomorrow, PutResult::Stored),
        "only its day is written, and nobody waits"
    );
    let earlier = evidence.shared.put(digest("a"), b"a", today - 1);
    assert!(matches!(earlier, PutResult::Stored), "the clock was set back");
    let other = evidence.shared.put(digest("b"), b"b", today);
    assert!(matches!(other, PutResult::Waiting(_)));
}

#[test]
fn texts_unused_for_the_keep_time_are_removed() {
    let bench = Bench::new();
    let file = bench.open();
    write(&file, &["a", "b"], 100, 0, u64::MAX);
    write(&file, &["a"], 150, 0, u64::MAX);
    let outcome = write(&file, &["c"], 160, 101, u64::MAX);
    assert_eq!(outcome.expired, [digest("b")], "a was in use on day 150");
    assert_eq!((outcome.texts, outcome.crowded_out.len()), (2, 0));
    drop(file);
    assert_eq!(
        [bench.read("a"), bench.read("b"), bench.read("c")].map(|text| text.is_some()),
        [true, false, true]
    );
}

#[test]
fn a_full_store_removes_the_least_recently_used_texts() {
    let bench = Bench::new();
    let file = bench.open();
    let text = |number: u32| -> String {
        // Text that repeats itself would be compressed to almost nothing.
        (0..200)
            .map(|line| format!("Disallow: /{}\n", digest(&format!("{number}-{line}"))))
            .collect()
    };
    let one = write(&file, &[&text(0)], 1, 0, u64::MAX).bytes;
    for number in 1..10 {
        write(&file, &[&text(number)], 1 + number, 0, u64::MAX);
    }
    write(&file, &[&text(0)], 20, 0, u64::MAX);
    let outcome = write(&file, &[], 20, 0, one * 7);
    assert!(outcome.bytes <= one * 7, "{outcome:?}");
    assert!(
        outcome.crowded_out.starts_with(&[digest(&text(1)), digest(&text(2))]),
        "{outcome:?}"
    );
    assert!(
        !outcome.crowded_out.contains(&digest(&text(0))),
        "it was in use on day 20"
    );
    let empty = write(&file, &[], 500, 400, u64::MAX);
    assert_eq!((empty.texts, empty.bytes), (0, 0), "the books balance");
}

#[test]
fn bytes_that_do_not_have_the_digest_are_not_read() {
    let bench = Bench::new();
    let file = bench.open();
    let batch = Batch {
        texts: &[(digest("a"), b"b")],
        seen: &[],
        day: 1,
        oldest: 0,
        max_bytes: u64::MAX,
    };
    file.write(&batch).expect("written");
    drop(file);
    assert_eq!(bench.read("a"), None);
}

#[tokio::test]
async fn texts_wait_while_the_file_is_unusable_and_the_error_says_why() {
    let bench = Bench::new();
    let path = bench.options().path;
    fs::create_dir(&path).expect("made");
    let evidence = bench.start();
    let trouble = evidence.trouble().expect("it cannot be used");
    for part in ["evidence.path", "Is a directory"] {
        assert!(trouble.contains(part), "{part}: {trouble}");
    }
    assert_eq!(put(&evidence, "a").await, Err(NotStored));
    assert_eq!(evidence.state().failures, 2, "the configuration and the text");

    fs::remove_dir(&path).expect("removed");
    while evidence.trouble().is_some() {
        tokio::task::yield_now().await;
    }
    for text in [CONFIG, "a"] {
        assert_eq!(bench.read(text).as_deref(), Some(text.as_bytes()));
    }
    put(&evidence, "a").await.expect("known by now");
}

#[test]
fn a_required_store_does_not_start_without_its_file() {
    let bench = Bench::new();
    let options = EvidenceOptions {
        required: true,
        ..bench.options()
    };
    fs::create_dir(&options.path).expect("made");
    let error = Evidence::start(&options, &CONFIG.into())
        .expect_err("no file")
        .to_string();
    for part in [&*options.path.display().to_string(), "Is a directory"] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[tokio::test]
async fn after_the_file_is_deleted_texts_are_stored_again() {
    let bench = Bench::new();
    let evidence = bench.start();
    put(&evidence, "a").await.expect("stored");
    fs::remove_file(bench.options().path).expect("removed");
    // The store may still have the deleted file open for a moment.
    for number in 0.. {
        put(&evidence, &number.to_string()).await.expect("stored");
        put(&evidence, "a").await.expect("stored");
        if bench.options().path.exists() && bench.read("a").is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    evidence.close();
    assert_eq!(bench.read("a").as_deref(), Some(&b"a"[..]));
}

#[tokio::test]
async fn closing_the_store_writes_the_waiting_texts() {
    let bench = Bench::new();
    let evidence = bench.start();
    drop(evidence.shared.put(digest("a"), b"a", day_of(SystemTime::now())));
    evidence.close();
    assert!(bench.read("a").is_some());
    assert_eq!(put(&evidence, "b").await, Err(NotStored));
}

#[tokio::test]
async fn two_robotgates_can_share_a_file() {
    let bench = Bench::new();
    let (one, other) = (bench.start(), bench.start());
    for number in 0..20 {
        let (a, b) = (format!("a{number}"), format!("b{number}"));
        let both = tokio::join!(put(&one, &a), put(&other, &b));
        assert!(
            both.0.is_ok() || both.1.is_ok(),
            "one has the file, the other waits: {both:?}"
        );
    }
    for (evidence, name) in [(&one, "a19"), (&other, "b19")] {
        evidence.close();
        assert!(bench.read(name).is_some(), "{name}");
    }
}

/// Records answers of sites: origin, text (`None` for a 404), and time in seconds since 1970.
fn see(file: &EvidenceFile, seen: &[(&str, Option<&str>, u64)], oldest: u32, max_bytes: u64) -> file::WriteOutcome {
    let seen: Vec<_> = seen
        .iter()
        .map(|(origin, text, at)| sighting(origin, *text, *at))
        .collect();
    let batch = Batch {
        texts: &[],
        seen: &seen,
        day: 1,
        oldest,
        max_bytes,
    };
    file.write(&batch).expect("written")
}

fn sighting(origin: &str, text: Option<&str>, at: u64) -> Sighting {
    Sighting {
        origin: origin.into(),
        text: text.map(|text| SeenText {
            sha256: digest(text),
            bytes: u32::try_from(text.len()).expect("short"),
        }),
        status: if text.is_some() { 200 } else { 404 },
        at: SystemTime::UNIX_EPOCH + Duration::from_secs(at),
    }
}

/// Returns each version: its digest, when it was first and last seen (in seconds since 1970), and its status.
fn history(bench: &Bench, origin: &str) -> Vec<(Option<Sha256>, u64, u64, u16)> {
    let reader = EvidenceReader::open(&bench.options().path).expect("the file can be read");
    let versions = reader.history(&origin.parse().expect("an origin")).expect("read");
    let second = |time: SystemTime| {
        time.duration_since(SystemTime::UNIX_EPOCH)
            .expect("after 1970")
            .as_secs()
    };
    let version = |found: Version| {
        (
            found.text.map(|text| text.sha256),
            second(found.first_seen),
            second(found.last_seen),
            found.status,
        )
    };
    versions.into_iter().map(version).collect()
}

const A: &str = "https://a.example";
const DAY: u64 = 24 * 60 * 60;

#[test]
fn an_origin_has_a_version_for_each_text_that_follows_another() {
    let bench = Bench::new();
    let file = bench.open();
    let other = "https://a.example:8443";
    for (origin, text, at) in [
        (A, Some("1"), 10),
        (A, Some("1"), 20),
        (other, Some("1"), 25),
        (A, None, 30),
        (A, Some("1"), 40),
        // The answers of the seconds 15 and 35 come late, from another robotgate that shares the file.
        (A, Some("1"), 15),
        (A, Some("2"), 50),
        (A, None, 35),
    ] {
        see(&file, &[(origin, text, at)], 0, u64::MAX);
    }
    drop(file);
    let (one, two) = (Some(digest("1")), Some(digest("2")));
    assert_eq!(
        history(&bench, A),
        [
            (one, 10, 20, 200),
            (None, 30, 35, 404),
            (one, 40, 40, 200),
            (two, 50, 50, 200)
        ]
    );
    assert_eq!(history(&bench, other), [(one, 25, 25, 200)]);
    assert_eq!(history(&bench, "https://b.example"), []);
}

#[test]
fn old_versions_and_texts_are_removed_and_the_sizes_stay_correct() {
    let bench = Bench::new();
    let file = bench.open();
    let row = see(&file, &[(A, Some("1"), 0)], 0, u64::MAX).rows;
    assert!(row > 0, "rows count");
    see(
        &file,
        &[(A, Some("2"), DAY), (A, Some("3"), 2 * DAY), (A, Some("3"), 9 * DAY)],
        0,
        u64::MAX,
    );
    write(&file, &["2"], 1, 0, u64::MAX);
    write(&file, &["3"], 9, 0, u64::MAX);
    let expired = write(&file, &[], 9, 1, u64::MAX);
    assert_eq!(
        (expired.texts, expired.expired.len()),
        (2, 0),
        "only the first row is too old"
    );
    let crowded = write(&file, &[], 9, 0, expired.bytes + expired.rows - 1);
    assert_eq!(crowded.crowded_out, [digest("2")], "of one day, the text goes first");
    drop(file);
    let days = |bench: &Bench| {
        history(bench, A)
            .iter()
            .map(|version| version.2 / DAY)
            .collect::<Vec<_>>()
    };
    assert_eq!(days(&bench), [1, 9]);
    let file = bench.open();
    let empty = write(&file, &[], 20, 15, u64::MAX);
    assert_eq!((empty.texts, empty.bytes, empty.rows), (0, 0, 0));
    drop(file);
    assert_eq!(history(&bench, A), []);
}

#[test]
fn an_origin_keeps_its_last_500_versions() {
    let bench = Bench::new();
    let file = bench.open();
    let texts: Vec<String> = (0..510).map(|number| number.to_string()).collect();
    let seen: Vec<_> = (1..).zip(&texts).map(|(at, text)| (A, Some(&**text), at)).collect();
    let outcome = see(&file, &seen, 0, u64::MAX);
    let one = see(&file, &[("https://b.example", Some("1"), 1)], 0, u64::MAX).rows - outcome.rows;
    assert_eq!(outcome.rows, 500 * one);
    drop(file);
    let found = history(&bench, A);
    assert_eq!((found.len(), found[0].1, found[499].1), (500, 11, 510));
}

#[test]
fn a_history_is_added_to_a_file_without_one() {
    let bench = Bench::new();
    let file = bench.open();
    write(&file, &["1"], 1, 0, u64::MAX);
    drop(file);
    // Delete the tables of the history, as if a version of robotgate without a history had written the file.
    let database = redb::Database::open(bench.options().path).expect("opens");
    let transaction = database.begin_write().expect("a transaction");
    let tables: Vec<_> = transaction.list_tables().expect("a list").collect();
    for table in tables
        .into_iter()
        .filter(|table| ["versions", "ends"].contains(&table.name()))
    {
        assert!(transaction.delete_table(table).expect("deleted"));
    }
    transaction.commit().expect("committed");
    drop(database);
    assert_eq!(history(&bench, A), []);
    let file = bench.open();
    see(&file, &[(A, Some("1"), 10)], 0, u64::MAX);
    drop(file);
    assert_eq!(history(&bench, A).len(), 1);
    assert!(bench.read("1").is_some());
}

#[tokio::test]
async fn an_answer_that_stays_the_same_is_noted_once_a_day() {
    let bench = Bench::new();
    let evidence = bench.start();
    let day = u64::from(day_of(SystemTime::now()) - 3) * DAY;
    for (before, text, at) in [
        (None, Some("1"), day),
        (None, Some("1"), day + 10),
        (None, Some("1"), day + DAY),
        (Some((Some("1"), day + DAY + 20)), None, day + DAY + 30),
        (None, None, day + DAY + 40),
    ] {
        let before = before.map(|(text, at)| sighting(A, text, at));
        evidence.saw(before, sighting(A, text, at));
    }
    evidence.close();
    let expected = [
        (Some(digest("1")), day, day + DAY + 20, 200),
        (None, day + DAY + 30, day + DAY + 30, 404),
    ];
    assert_eq!(history(&bench, A), expected, "the second and the last were not noted");
}
