//! Tests a store with a file on disk, from which it reads what was evicted from memory or saved before a restart.

use std::path::Path;

use super::*;
use crate::{
    copy::Jump,
    store::{Disk, DiskOptions},
};

fn disk(folder: &Path) -> Disk {
    let options = DiskOptions {
        keep: 90 * 24 * HOUR,
        max_bytes: 1 << 30,
    };
    Disk::open(&folder.join("robots.redb"), options, 1 << 20).expect("the copies open")
}

fn bench(folder: &Path, max_bytes: u64) -> (Bench, Calls) {
    Bench::with(Store::new(max_bytes, Some(disk(folder))), 1000)
}

async fn close(bench: Bench) {
    tokio::task::spawn_blocking(move || bench.store.disk().map(Disk::close))
        .await
        .expect("it closes");
}

fn robots_of(number: usize) -> String {
    format!("User-agent: *\nDisallow: /{number}\n{}", "# filler\n".repeat(100))
}

fn nth(number: usize) -> Origin {
    origin(&format!("site-{number}.example"))
}

#[tokio::test]
async fn an_evicted_copy_is_read_from_disk_without_a_fetch() {
    let folder = tempfile::tempdir().expect("a folder");
    let (bench, mut calls) = bench(folder.path(), 128 * 1024);
    for number in 0..200 {
        let lookup = bench.fetch(&mut calls, &nth(number), rules(&robots_of(number))).await;
        assert_eq!(lookup.status, CacheStatus::Miss, "{number}");
    }
    let held = bench.store.memory();
    assert!(held.origins < 200 && held.bytes <= held.max_bytes, "{held:?}");
    for number in 0..200 {
        let lookup = bench.lookup(&nth(number)).await;
        assert_eq!(lookup.status, CacheStatus::Hit, "{number}");
        assert!(holds(&lookup, &robots_of(number)), "{number}");
    }
    let held = bench.store.memory();
    assert!(held.bytes <= held.max_bytes, "{held:?}");
    assert!(calls.0.is_empty(), "nothing was fetched again");
}

#[tokio::test]
async fn after_a_restart_states_are_unchanged() {
    let folder = tempfile::tempdir().expect("a folder");
    let (first, mut calls) = bench(folder.path(), 1 << 20);
    first.fetch(&mut calls, &nth(1), rules(OLD)).await;
    first.fetch(&mut calls, &nth(2), answered(404, "")).await;
    first.fetch(&mut calls, &nth(3), answered(503, "")).await;
    let failing_since = first.lookup(&nth(3)).await.state.failing_since();
    close(first).await;

    let (second, calls) = bench(folder.path(), 1 << 20);
    assert_eq!(second.store.memory().origins, 0, "it comes when it is asked for");
    let lookup = second.lookup(&nth(1)).await;
    assert_eq!(lookup.status, CacheStatus::Hit);
    assert!(holds(&lookup, OLD));
    assert_eq!(
        verdict(&second.lookup(&nth(2)).await),
        Some((Verdict::Allow, Reason::NoRobots))
    );
    let failing = second.lookup(&nth(3)).await;
    assert_eq!(verdict(&failing), Some((Verdict::Deny, Reason::Unreachable)));
    let micros = |time: Option<SystemTime>| time.map(micros_since_1970);
    assert_eq!(micros(failing.state.failing_since()), micros(failing_since));
    assert!(calls.0.is_empty(), "nothing was fetched again");
}

#[tokio::test]
async fn an_expired_copy_from_disk_is_fetched_before_it_is_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let (bench, mut calls) = bench(folder.path(), 1 << 20);
    let then = SystemTime::now() - 25 * HOUR;
    let meaning = rules(OLD).meaning(&POLICY, then);
    let old = OriginState::unknown().after(meaning, 200, Freshness::default(), then, 0.0, &POLICY);
    bench
        .store
        .disk()
        .expect("a disk")
        .keep(nth(1).to_string(), Arc::new(old), true);
    let lookup = bench.fetch(&mut calls, &nth(1), answered(503, "")).await;
    assert_eq!(verdict(&lookup), Some((Verdict::Deny, Reason::Unreachable)));
    assert_eq!(
        lookup.state.text(),
        Some(OLD.as_bytes()),
        "it is the last good copy still"
    );
}

#[tokio::test]
async fn a_failing_origin_gets_its_copy_from_disk_before_the_retry() {
    let folder = tempfile::tempdir().expect("a folder");
    let (bench, calls) = bench(folder.path(), 1 << 20);
    let then = SystemTime::now() - 25 * HOUR;
    let old = OriginState::unknown().after(
        rules(OLD).meaning(&POLICY, then),
        200,
        Freshness::default(),
        then,
        0.0,
        &POLICY,
    );
    bench
        .store
        .disk()
        .expect("a disk")
        .keep(nth(1).to_string(), Arc::new(old), true);
    // Memory has only a failed fetch, so the next lookup reads the copy from disk.
    bench.known_since(&nth(1), Duration::ZERO, &answered(503, ""));
    let lookup = bench.lookup(&nth(1)).await;
    assert_eq!(verdict(&lookup), Some((Verdict::Deny, Reason::Unreachable)));
    assert_eq!(lookup.state.text(), Some(OLD.as_bytes()));
    assert!(calls.0.is_empty(), "the retry is not due yet");
}

#[tokio::test]
async fn a_refused_ftp_login_does_not_hide_rules_that_the_disk_has_not_returned_yet() {
    let folder = tempfile::tempdir().expect("a folder");
    let site = Origin::new(Scheme::Ftp, HostPort::parse(b"files.example").expect("a host"));
    let (first, mut calls) = bench(folder.path(), 1 << 20);
    first.fetch(&mut calls, &site, rules(OLD)).await;
    close(first).await;

    let (second, mut calls) = bench(folder.path(), 1 << 20);
    let cached = second.store.cached(&site);
    let hanging = cached.turn.lock().await;
    let lookup = second.fetch(&mut calls, &site, answered(403, "")).await;
    assert_eq!(verdict(&lookup), Some((Verdict::Deny, Reason::Unreachable)));
    drop(hanging);
    assert!(holds(&second.lookup(&site).await, OLD));
    assert!(calls.0.is_empty());
}

#[tokio::test]
async fn forgetting_an_origin_removes_it_from_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let (bench, mut calls) = bench(folder.path(), 1 << 20);
    bench.fetch(&mut calls, &nth(1), rules(OLD)).await;
    bench.store.forget(&nth(1));
    let lookup = bench.fetch(&mut calls, &nth(1), answered(503, "")).await;
    assert_eq!(lookup.status, CacheStatus::Miss);
    assert_eq!(lookup.state.text(), None, "the copy was forgotten, too");
}

#[tokio::test]
async fn an_origin_forgotten_during_its_fetch_has_only_that_result() {
    let folder = tempfile::tempdir().expect("a folder");
    let (bench, mut calls) = bench(folder.path(), 1 << 20);
    bench.fetch(&mut calls, &nth(1), rules(OLD)).await;
    bench.known_since(&nth(1), 25 * HOUR, &rules(OLD));
    let lookup = bench.spawn(&nth(1));
    let call = calls.next().await;
    bench.store.forget(&nth(1));
    call.ends(answered(503, ""));
    assert_eq!(lookup.await.expect("a lookup").state.text(), None);
    assert_eq!(bench.lookup(&nth(1)).await.state.text(), None);
}

#[tokio::test]
async fn many_lookups_of_an_origin_on_disk_make_no_fetch() {
    let folder = tempfile::tempdir().expect("a folder");
    let (first, mut calls) = bench(folder.path(), 1 << 20);
    first.fetch(&mut calls, &nth(1), rules(OLD)).await;
    close(first).await;
    let (second, calls) = bench(folder.path(), 1 << 20);
    let lookups: Vec<_> = (0..100).map(|_| second.spawn(&nth(1))).collect();
    for lookup in lookups {
        assert!(holds(&lookup.await.expect("a lookup"), OLD));
    }
    assert!(calls.0.is_empty());
}

#[tokio::test]
async fn one_fetch_runs_even_if_memory_is_too_small_for_its_slot() {
    let folder = tempfile::tempdir().expect("a folder");
    let (bench, mut calls) = bench(folder.path(), 4 * 1024);
    let first = bench.spawn(&nth(0));
    let call = calls.next().await;
    for number in 1..100 {
        bench.fetch(&mut calls, &nth(number), rules(&robots_of(number))).await;
    }
    let second = bench.spawn(&nth(0));
    tokio::task::yield_now().await;
    assert!(calls.0.is_empty(), "the second joins the first");
    call.ends(rules(OLD));
    assert!(holds(&first.await.expect("a lookup"), OLD));
    assert!(holds(&second.await.expect("a lookup"), OLD));
    assert!(calls.0.is_empty());
}

#[tokio::test]
async fn after_retry_failures_a_failure_from_disk_is_retried() {
    let folder = tempfile::tempdir().expect("a folder");
    let (first, mut calls) = bench(folder.path(), 1 << 20);
    first.fetch(&mut calls, &nth(1), answered(503, "")).await;
    close(first).await;
    let (second, mut calls) = bench(folder.path(), 1 << 20);
    second.store.retry_failures();
    let lookup = second.fetch(&mut calls, &nth(1), rules(NEW)).await;
    assert!(holds(&lookup, NEW));
}

#[tokio::test]
async fn a_store_that_is_added_later_corrects_states_like_the_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let (robots, _calls) = bench(folder.path(), 1 << 20);
    let beside = || {
        let store = Store::beside(&robots.store, &SiteDocument::TDMREP, 1 << 20);
        Bench::with(store, 1000)
    };
    let (before, mut calls) = beside();
    before.fetch(&mut calls, &nth(1), answered(503, "")).await;
    robots.store.retry_failures();
    let jump = Jump::Back {
        ahead: SystemTime::now(),
    };
    robots.store.clocks.remember(jump);

    let (after, mut calls) = beside();
    assert_eq!(after.store.clocks.jumps(), [jump]);
    let lookup = after.fetch(&mut calls, &nth(1), answered(404, "")).await;
    assert_eq!(verdict(&lookup), Some((Verdict::Allow, Reason::NoRobots)));
}
