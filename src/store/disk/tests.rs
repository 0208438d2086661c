mod damage;
mod trouble;

use std::{collections::HashMap, time::SystemTime};

use tempfile::TempDir;

use super::*;
use crate::{
    copy::{Fetched, Freshness, Meaning, OriginResponse, Policy, RobotsCopy, Saved, SiteDocument},
    origin::Origin,
};

struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("robots.redb")
    }

    fn open(&self) -> Disk {
        Disk::open(&self.path(), OPTIONS, 1 << 20).expect("the copies open")
    }

    fn moved_aside(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.folder.path()).expect("a folder");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        paths
            .filter(|path| path.display().to_string().contains("robots.redb.damaged-2"))
            .collect()
    }

    fn close(disk: Disk) {
        disk.close();
        drop(disk);
    }
}

impl Disk {
    async fn knows(&self, host: &str) -> Option<Saved> {
        let state = self.recall(name(host)).await.expect("the file can be read");
        state.map(|state| state.save())
    }

    fn learns(&self, host: &str, state: &OriginState) {
        self.keep(name(host), Arc::new(state.clone()), true);
    }

    async fn flushed(&self) {
        // `flush` waits at most ten seconds, which can be too short on a busy machine.
        for _ in 0..12 {
            if self.flush().await {
                return;
            }
        }
        panic!("the changes are never written");
    }

    fn contents(&self) -> Contents {
        self.with_file(CopyFile::contents).expect("the file can be read")
    }
}

fn name(host: &str) -> String {
    format!("https://{host}")
}

fn reserves(body: &str) -> OriginState {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000);
    let policy = Policy::default();
    let copy = RobotsCopy::of_tdmrep(policy.profile, body.as_bytes(), now);
    OriginState::unknown().after(
        Meaning::Rules(copy.into()),
        200,
        Freshness::default(),
        now,
        0.5,
        &policy,
    )
}

fn then(state: &OriginState, second: u64, status: u16, body: &str) -> OriginState {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000 + second);
    let fetched = Fetched::Response(OriginResponse {
        etag: Some("\"tag\"".into()),
        ..OriginResponse::new(status, body)
    });
    let policy = Policy::default();
    let meaning = fetched.meaning(&policy, now);
    state.after(meaning, status, fetched.freshness(), now, 0.5, &policy)
}

fn rules(body: &str) -> OriginState {
    then(&OriginState::unknown(), 0, 200, body)
}

const OPTIONS: DiskOptions = DiskOptions {
    keep: Duration::from_secs(90 * 24 * 60 * 60),
    max_bytes: 1 << 30,
};
const RULES: &str = "User-agent: *\nDisallow: /p\n";

#[tokio::test]
async fn states_survive_a_restart() {
    let bench = Bench::new();
    let states = [
        ("rules.example", rules(RULES)),
        ("none.example", then(&OriginState::unknown(), 0, 404, "")),
        ("soft.example", then(&OriginState::unknown(), 0, 500, "Page not found")),
        (
            "failing.example",
            then(&then(&rules(RULES), 90_000, 503, ""), 95_000, 500, ""),
        ),
        (
            "gone.example",
            then(&then(&rules(RULES), 90_000, 404, ""), 95_000, 503, ""),
        ),
        ("new.example", then(&OriginState::unknown(), 0, 503, "")),
        ("empty.example", rules("")),
    ];
    let disk = bench.open();
    for (host, state) in &states {
        disk.learns(host, state);
    }
    Bench::close(disk);

    let disk = bench.open();
    for (host, state) in &states {
        let found = disk
            .recall(name(host))
            .await
            .expect("it can be read")
            .expect("it is known");
        assert_eq!(found.save(), state.save(), "{host}");
        assert_eq!(found.text(), state.text(), "{host}");
    }
    assert_eq!(disk.knows("other.example").await, None);
    assert_eq!(
        disk.knows("rules.example:8443").await,
        None,
        "another port is another origin"
    );
}

#[tokio::test]
async fn a_state_can_be_recalled_before_it_is_written() {
    let bench = Bench::new();
    let disk = bench.open();
    for round in 0..50 {
        let state = then(&OriginState::unknown(), round, 404, "");
        disk.learns("a.example", &state);
        assert_eq!(disk.knows("a.example").await, Some(state.save()), "round {round}");
    }
    disk.forget(name("a.example"));
    assert_eq!(disk.knows("a.example").await, None, "at once, too");
    disk.flushed().await;
    assert_eq!(disk.knows("a.example").await, None);
    assert_eq!(disk.waiting(), 0);
}

#[tokio::test]
async fn a_tdmrep_json_is_stored_beside_the_robots_txt() {
    let bench = Bench::new();
    let disk = bench.open();
    let origin: Origin = "https://a.example".parse().expect("an origin");
    let tdmrep = SiteDocument::TDMREP.name(&origin);
    // This `tdmrep.json` is longer than a robots.txt can be.
    let text = format!(
        r#"[{{"location": "/p", "tdm-reservation": 1}}{}]"#,
        " ".repeat(SiteDocument::ROBOTS_TXT.max_bytes)
    );
    disk.learns("a.example", &rules(RULES));
    disk.keep(tdmrep.clone(), Arc::new(reserves(&text)), true);
    disk.flushed().await;
    Bench::close(disk);

    let disk = bench.open();
    let found = disk.recall(tdmrep.clone()).await.expect("read").expect("known");
    assert_eq!(*found, reserves(&text));
    let reservation = found.current().expect("a copy").tdmrep.as_ref().expect("a tdmrep.json");
    assert!(
        reservation
            .find(b"/p", &mut 1000)
            .expect("short")
            .expect("an entry")
            .reserved
    );
    assert_eq!(disk.knows("a.example").await, Some(rules(RULES).save()));
    let mut listed = Vec::new();
    let list = |name: &str, _| {
        listed.push(name.to_owned());
        true
    };
    disk.with_file(|file| file.each_from("", list)).expect("read");
    assert_eq!(listed, ["https://a.example"], "only robots.txt files are listed");
    let origins = |disk: &Disk| disk.with_file(CopyFile::origins).expect("read");
    assert_eq!((disk.contents().records, origins(&disk)), (2, 1));
    disk.keep(
        SiteDocument::TDMREP.name(&"https://b.example".parse().expect("an origin")),
        Arc::new(reserves("[]")),
        true,
    );
    disk.flushed().await;
    assert_eq!((disk.contents().records, origins(&disk)), (3, 1));
    disk.with_file(|file| file.forget(&"https://b.example".parse().expect("an origin")))
        .expect("written");
    assert_eq!(origins(&disk), 1);

    assert!(disk.with_file(|file| file.forget(&origin)).expect("written"));
    assert_eq!(disk.knows("a.example").await, None);
    assert_eq!(disk.recall(tdmrep).await.expect("read"), None);
    assert_eq!(disk.contents(), Contents::default());
}

#[tokio::test]
async fn a_shared_text_is_stored_once_and_removed_with_its_last_origin() {
    let bench = Bench::new();
    let disk = bench.open();
    let hosts = ["a.example", "b.example", "c.example"];
    for host in hosts {
        disk.learns(host, &rules(RULES));
        disk.flushed().await;
    }
    let one = Contents {
        records: 3,
        texts: 1,
        text_bytes: RULES.len() as u64,
    };
    assert_eq!(disk.contents(), one);

    // The origin sends the same robots.txt again. This must not count as another use of the text.
    disk.learns("a.example", &then(&rules(RULES), 10, 200, RULES));
    disk.flushed().await;
    disk.forget(name("a.example"));
    disk.learns("b.example", &rules("User-agent: *\nDisallow: /other\n"));
    disk.flushed().await;
    assert_eq!(disk.contents().texts, 2);
    assert_eq!(disk.knows("c.example").await, Some(rules(RULES).save()));

    disk.forget(name("c.example"));
    disk.flushed().await;
    assert_eq!(disk.contents().texts, 1);
    disk.forget(name("b.example"));
    disk.flushed().await;
    assert_eq!(disk.contents(), Contents::default());
}

#[tokio::test]
async fn a_404_keeps_the_last_good_copy_on_disk() {
    let bench = Bench::new();
    let disk = bench.open();
    let gone = then(&rules(RULES), 90_000, 404, "");
    disk.learns("a.example", &rules(RULES));
    disk.learns("a.example", &gone);
    Bench::close(disk);
    let disk = bench.open();
    let found = disk.recall(name("a.example")).await.expect("read").expect("known");
    assert_eq!(found.text(), Some(RULES.as_bytes()));
}

#[tokio::test]
async fn a_state_begun_without_the_file_is_merged_with_the_saved_one() {
    let bench = Bench::new();
    let disk = bench.open();
    let failing = then(&rules(RULES), 90_000, 503, "");
    disk.learns("a.example", &failing);
    disk.flushed().await;
    let anew = then(&OriginState::unknown(), 100_000, 503, "");
    disk.keep(name("a.example"), Arc::new(anew.clone()), false);
    disk.flushed().await;
    let found = disk.recall(name("a.example")).await.expect("read").expect("known");
    assert_eq!(found.save(), anew.resuming(&failing).save());
    assert_eq!(
        found.failing_since(),
        failing.failing_since(),
        "the clock of thirty days goes on"
    );
    assert_eq!(found.text(), Some(RULES.as_bytes()));
}

#[tokio::test]
async fn an_unwritten_partial_state_is_merged_when_it_is_recalled() {
    let bench = Bench::new();
    let disk = bench.open();
    let failing = then(&rules(RULES), 90_000, 503, "");
    disk.learns("a.example", &failing);
    disk.flushed().await;
    // The argument `false` says that the state does not include what the file says, so `recall` must merge the two.
    let anew = then(&OriginState::unknown(), 100_000, 503, "");
    disk.keep(name("a.example"), Arc::new(anew.clone()), false);
    let recalled = disk.recall(name("a.example")).await.expect("read").expect("known");
    assert_eq!(recalled.failing_since(), failing.failing_since());
    assert_eq!(recalled.text(), Some(RULES.as_bytes()));
    // This state is based on the merged one, so it may replace what the file says.
    disk.learns("a.example", &then(&recalled, 110_000, 503, ""));
    disk.flushed().await;
    let found = disk.recall(name("a.example")).await.expect("read").expect("known");
    assert_eq!(found.failing_since(), failing.failing_since());
    assert_eq!(found.text(), Some(RULES.as_bytes()));
}

#[tokio::test]
async fn after_an_error_the_file_is_reopened_without_loss() {
    let bench = Bench::new();
    let disk = bench.open();
    disk.learns("a.example", &rules(RULES));
    disk.flushed().await;
    for round in 0..3 {
        let failed: Result<(), _> = disk.with_file(|_| Err(std::io::Error::other("a bad sector").into()));
        assert!(failed.is_err());
        let state = loop {
            match disk.recall(name("a.example")).await {
                Ok(state) => break state,
                Err(FileError::Closed) => tokio::task::yield_now().await,
                Err(other) => panic!("{other}"),
            }
        };
        assert_eq!(
            state.map(|state| state.save()),
            Some(rules(RULES).save()),
            "round {round}"
        );
        disk.learns("b.example", &rules(RULES));
        disk.flushed().await;
    }
}

#[tokio::test]
async fn after_a_database_panic_the_file_is_checked_for_damage() {
    let bench = Bench::new();
    let disk = bench.open();
    disk.learns("a.example", &rules(RULES));
    disk.flushed().await;
    let failed: Result<(), _> = disk.with_file(|_| panic!("bytes that nobody wrote"));
    assert!(
        matches!(&failed, Err(FileError::Damaged(text)) if text == "bytes that nobody wrote"),
        "{failed:?}"
    );
    disk.learns("b.example", &rules(RULES));
    disk.flushed().await;
    assert_eq!(disk.knows("a.example").await, Some(rules(RULES).save()));
    assert_eq!(bench.moved_aside(), [] as [PathBuf; 0], "the file is whole");
}

#[tokio::test]
async fn a_full_file_drops_the_least_recently_used_origins() {
    let bench = Bench::new();
    let disk = bench.open();
    disk.set_options(DiskOptions {
        max_bytes: 1 << 20,
        ..OPTIONS
    });
    let text = |number: u64| format!("User-agent: *\nDisallow: /{number}\n{}", "#\n".repeat(50_000));
    for number in 0..40 {
        disk.learns(
            &format!("{number:02}.example"),
            &then(&OriginState::unknown(), number * 100, 200, &text(number)),
        );
        disk.flushed().await;
        let held = disk.with_file(|file| Ok(file.held())).expect("open");
        assert!(held <= 1 << 20, "{held} after {number}");
    }
    for number in 0..40 {
        let known = disk.knows(&format!("{number:02}.example")).await.is_some();
        assert!(known || number < 33, "{number} was needed lately");
        assert!(!known || number > 28, "{number} was needed long ago");
    }
    let held = disk.with_file(|file| Ok(file.held())).expect("open");
    let contents = disk.contents();
    Bench::close(disk);
    let disk = bench.open();
    assert_eq!(disk.contents(), contents);
    assert_eq!(
        disk.with_file(|file| Ok(file.held())).expect("open"),
        held,
        "the books balance"
    );
}

#[tokio::test]
async fn only_origins_unused_for_the_keep_time_are_forgotten() {
    let bench = Bench::new();
    let disk = bench.open();
    let day = 24 * 60 * 60;
    for number in 0..25 {
        let state = then(&OriginState::unknown(), number * day, 404, "");
        disk.learns(&format!("{number:02}.example"), &state);
    }
    // This origin sent its robots.txt on day 0, but its last fetch, which failed, was on day 20.
    let failing = then(&rules(RULES), 20 * day, 503, "");
    disk.learns("failing.example", &failing);
    disk.flushed().await;

    let oldest = SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000 + 10 * day);
    let (mut next, mut seen, mut forgotten) = (Some(String::new()), 0, 0);
    while let Some(start) = next {
        let collected = disk.with_file(|file| file.collect(oldest, &start, 7)).expect("written");
        seen += collected.seen;
        forgotten += collected.forgotten;
        next = collected.next;
    }
    assert_eq!((seen, forgotten), (26, 10));
    for number in 0..25 {
        let known = disk.knows(&format!("{number:02}.example")).await.is_some();
        assert_eq!(known, number >= 10, "day {number}");
    }
    assert_eq!(disk.knows("failing.example").await, Some(failing.save()));
}
