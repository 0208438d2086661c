//! Tests many lookups of one origin at the same time, and lookups whose fetch is late, panics or is no longer needed.

use std::collections::HashMap;

use super::*;

async fn ended(lookups: Vec<JoinHandle<Lookup>>) -> Vec<Lookup> {
    let mut found = Vec::new();
    for lookup in lookups {
        found.push(lookup.await.expect("a lookup"));
    }
    found
}

fn count(lookups: &[Lookup]) -> HashMap<CacheStatus, usize> {
    let mut counts = HashMap::new();
    for lookup in lookups {
        *counts.entry(lookup.status).or_default() += 1;
    }
    counts
}

#[tokio::test(start_paused = true)]
async fn a_thousand_lookups_of_a_cold_origin_make_one_fetch() {
    let (bench, mut calls) = Bench::new();
    let site = origin("a.example");
    let lookups: Vec<_> = (0..1000).map(|_| bench.spawn(&site)).collect();
    let call = calls.next().await;
    assert!(calls.none_more().await);
    assert!(lookups.iter().all(|lookup| !lookup.is_finished()), "all of them wait");
    call.ends(rules(OLD));

    let lookups = ended(lookups).await;
    let statuses = HashMap::from([(CacheStatus::Miss, 1), (CacheStatus::Collapsed, 999)]);
    assert_eq!(count(&lookups), statuses);
    assert!(lookups.iter().all(|lookup| !lookup.pending && holds(lookup, OLD)));
    assert!(calls.none_more().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lookups_on_several_threads_make_one_fetch() {
    for round in 0..20 {
        let (bench, mut calls) = Bench::new();
        let site = origin("a.example");
        let lookups: Vec<_> = (0..100).map(|_| bench.spawn(&site)).collect();
        // The fetch can end before some of the lookups have begun.
        calls.next().await.ends(rules(OLD));

        let lookups = ended(lookups).await;
        let statuses = count(&lookups);
        assert_eq!(statuses.get(&CacheStatus::Miss), Some(&1), "round {round}");
        assert_eq!(statuses.get(&CacheStatus::Stale), None, "round {round}");
        assert!(lookups.iter().all(|lookup| holds(lookup, OLD)), "round {round}");
        assert!(calls.0.is_empty(), "round {round}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_fetch_ends_all_waiting_lookups_without_a_retry() {
    let (bench, mut calls) = Bench::new();
    let site = origin("a.example");
    let lookups: Vec<_> = (0..10).map(|_| bench.spawn(&site)).collect();
    let call = calls.next().await;
    settle().await;
    call.ends(answered(500, ""));
    for lookup in ended(lookups).await {
        let failure = lookup.answer(&POLICY).failure().map(|failure| failure.error.clone());
        assert_eq!(failure, Some(FetchError::Status(500)));
    }
    assert!(calls.none_more().await);
}

#[tokio::test(start_paused = true)]
async fn a_late_fetch_counts_as_failed_for_its_waiters_and_continues() {
    let (bench, mut calls) = Bench::new();
    let site = origin("a.example");
    let started = tokio::time::Instant::now();
    let lookup = bench.lookup(&site).await;
    assert_eq!(started.elapsed().as_secs(), WAIT.as_secs());
    assert_eq!((lookup.status, lookup.pending), (CacheStatus::Miss, true));
    let failure = lookup.answer(&POLICY).failure().map(|failure| failure.error.clone());
    assert_eq!(failure, Some(FetchError::Pending));
    assert_eq!(verdict(&lookup), Some((Verdict::Deny, Reason::Unreachable)));

    calls.next().await.ends(rules(OLD));
    settle().await;
    let lookup = bench.lookup(&site).await;
    assert_eq!((lookup.status, lookup.pending), (CacheStatus::Hit, false));
    assert!(holds(&lookup, OLD));
    assert!(calls.none_more().await);
}

#[tokio::test(start_paused = true)]
async fn a_later_lookup_joins_the_fetch_with_its_own_timeout() {
    let (bench, mut calls) = Bench::new();
    let site = origin("a.example");
    let first = bench.spawn(&site);
    tokio::time::sleep(WAIT - Duration::from_secs(1)).await;
    let second = bench.spawn(&site);
    assert!(first.await.expect("a lookup").pending);
    calls.next().await.ends(rules(OLD));
    let second = second.await.expect("a lookup");
    assert_eq!((second.status, second.pending), (CacheStatus::Collapsed, false));
    assert!(holds(&second, OLD));
    assert!(calls.none_more().await);
}

#[tokio::test(start_paused = true)]
async fn an_expired_copy_is_not_used_while_its_refresh_is_late() {
    let (bench, mut calls) = Bench::new();
    let site = origin("a.example");
    bench.known_since(&site, 25 * HOUR, &rules(OLD));
    let lookup = bench.lookup(&site).await;
    assert_eq!((lookup.status, lookup.pending), (CacheStatus::Stale, true));
    assert_eq!(verdict(&lookup), Some((Verdict::Deny, Reason::Unreachable)));
    assert_eq!(lookup.answer(&POLICY).copy(), None);
    calls.next().await.ends(rules(NEW));
    settle().await;
    assert!(holds(&bench.lookup(&site).await, NEW));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_lookup_does_not_cancel_the_fetch() {
    let (bench, mut calls) = Bench::new();
    let site = origin("a.example");
    let gone = bench.spawn(&site);
    let call = calls.next().await;
    let stays = bench.spawn(&site);
    settle().await;
    gone.abort();
    assert!(gone.await.is_err_and(|error| error.is_cancelled()));
    settle().await;
    call.ends(rules(OLD));
    let stays = stays.await.expect("a lookup");
    assert_eq!(stays.status, CacheStatus::Collapsed);
    assert!(holds(&stays, OLD));
    assert!(calls.none_more().await);
}

#[tokio::test(start_paused = true)]
async fn the_result_of_an_abandoned_fetch_is_kept() {
    let (bench, mut calls) = Bench::new();
    let site = origin("a.example");
    let gone = bench.spawn(&site);
    let call = calls.next().await;
    gone.abort();
    settle().await;
    call.ends(rules(OLD));
    settle().await;
    assert_eq!(bench.lookup(&site).await.status, CacheStatus::Hit);
}

#[tokio::test(start_paused = true)]
async fn a_fetch_that_panics_ends_its_lookups_and_is_retried() {
    let (bench, mut calls) = Bench::new();
    let site = origin("a.example");
    let lookups: Vec<_> = (0..10).map(|_| bench.spawn(&site)).collect();
    let call = calls.next().await;
    settle().await;
    call.panics();
    for lookup in ended(lookups).await {
        assert!(!lookup.pending, "nobody waits to the bound");
        assert_eq!(verdict(&lookup), Some((Verdict::Deny, Reason::Unreachable)));
    }
    assert_eq!(bench.puppet.records(), [(site.clone(), Some(FetchError::CutOff))]);
    let lookup = bench.fetch(&mut calls, &site, rules(OLD)).await;
    assert_eq!(lookup.status, CacheStatus::Miss);
    assert!(holds(&lookup, OLD));
    assert_eq!(bench.puppet.records()[1..], [(site, None)]);
}
