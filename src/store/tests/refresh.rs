//! Tests when a robots.txt is refreshed: in the background while it is valid, and before its next use once it has
//! expired.

use super::*;

#[tokio::test(start_paused = true)]
async fn an_old_copy_is_refreshed_in_the_background_without_waiting() {
    let (bench, mut calls) = Bench::new();
    let site = origin("a.example");
    bench.known_since(&site, 20 * HOUR, &rules(OLD));
    for _ in 0..10 {
        // The refresh does not end, so a lookup that waited for it would run into its time limit.
        let lookup = bench.lookup(&site).await;
        assert_eq!((lookup.status, lookup.pending), (CacheStatus::Hit, false));
        assert_eq!(lookup.waited, Duration::ZERO);
        assert!(holds(&lookup, OLD));
    }
    let call = calls.next().await;
    assert!(calls.none_more().await, "one refresh runs for all of them");
    call.ends(rules(NEW));
    settle().await;
    let lookup = bench.lookup(&site).await;
    assert_eq!(lookup.status, CacheStatus::Hit);
    assert!(holds(&lookup, NEW));
    assert!(calls.none_more().await);
}

#[tokio::test(start_paused = true)]
async fn a_refresh_sends_the_etag_of_the_current_rules_only() {
    let (bench, mut calls) = Bench::new();
    let site = origin("a.example");
    bench.known_since(&site, 25 * HOUR, &tagged(OLD, "\"1\""));
    let lookup = bench.spawn(&site);
    let call = calls.next().await;
    assert_eq!(call.etag.as_deref(), Some("\"1\""));
    call.ends(Fetched::NotModified {
        freshness: Freshness::default(),
    });
    let lookup = lookup.await.expect("a lookup");
    assert_eq!(lookup.status, CacheStatus::Miss);
    assert!(holds(&lookup, OLD), "the origin says that it holds still");
    assert_eq!(bench.lookup(&site).await.status, CacheStatus::Hit);

    // The 404 replaced the robots.txt, so its ETag must not be sent any longer.
    bench.known_since(&site, 25 * HOUR, &answered(404, ""));
    let lookup = bench.spawn(&site);
    let call = calls.next().await;
    assert_eq!(call.etag, None);
    call.ends(rules(NEW));
    assert!(holds(&lookup.await.expect("a lookup"), NEW));
}

#[tokio::test(start_paused = true)]
async fn a_valid_copy_survives_a_failed_refresh() {
    let (bench, mut calls) = Bench::new();
    let site = origin("a.example");
    bench.known_since(&site, 20 * HOUR, &rules(OLD));
    bench.lookup(&site).await;
    calls.next().await.ends(answered(503, ""));
    settle().await;
    let lookup = bench.lookup(&site).await;
    assert_eq!(lookup.status, CacheStatus::Hit);
    assert!(holds(&lookup, OLD));
    assert!(calls.none_more().await, "the retry is not due yet");
}

#[tokio::test(start_paused = true)]
async fn a_refresh_that_panics_is_restarted_by_the_next_lookup() {
    let (bench, mut calls) = Bench::new();
    let site = origin("a.example");
    bench.known_since(&site, 20 * HOUR, &rules(OLD));
    bench.lookup(&site).await;
    calls.next().await.panics();
    settle().await;
    assert!(holds(&bench.lookup(&site).await, OLD));
    calls.next().await.ends(rules(NEW));
    settle().await;
    assert!(holds(&bench.lookup(&site).await, NEW));
}

#[tokio::test(start_paused = true)]
async fn an_expired_copy_is_fetched_before_it_is_used() {
    let (bench, mut calls) = Bench::new();
    let site = origin("a.example");
    bench.known_since(&site, 25 * HOUR, &rules(OLD));
    let lookup = bench.fetch(&mut calls, &site, rules(NEW)).await;
    assert_eq!(lookup.status, CacheStatus::Miss);
    assert!(holds(&lookup, NEW));
}

#[tokio::test(start_paused = true)]
async fn an_expired_copy_whose_refresh_fails_allows_nothing() {
    let (bench, mut calls) = Bench::new();
    let site = origin("a.example");
    bench.known_since(&site, 25 * HOUR, &rules(OLD));
    let lookup = bench.fetch(&mut calls, &site, answered(503, "")).await;
    assert_eq!(verdict(&lookup), Some((Verdict::Deny, Reason::Unreachable)));
}

#[tokio::test(start_paused = true)]
async fn a_lookup_of_an_expired_copy_joins_the_running_refresh() {
    let (bench, mut calls) = Bench::new();
    let site = origin("a.example");
    bench.known_since(&site, 20 * HOUR, &rules(OLD));
    bench.lookup(&site).await;
    let call = calls.next().await;
    bench.known_since(&site, 25 * HOUR, &rules(OLD));
    let lookup = bench.spawn(&site);
    assert!(calls.none_more().await);
    call.ends(rules(NEW));
    let lookup = lookup.await.expect("a lookup");
    assert_eq!(lookup.status, CacheStatus::Collapsed);
    assert!(holds(&lookup, NEW));
}

#[tokio::test(start_paused = true)]
async fn after_the_grace_period_the_last_copy_decides_during_the_retry() {
    let (bench, mut calls) = Bench::new();
    let site = origin("a.example");
    bench.known_since(&site, 40 * 24 * HOUR, &rules(OLD));
    bench.known_since(&site, 31 * 24 * HOUR, &answered(500, ""));
    // The last attempt was a little more than an hour ago, so the next one has only just become due.
    bench.known_since(&site, HOUR + HOUR / 60, &answered(500, ""));
    let lookup = bench.lookup(&site).await;
    assert_eq!(lookup.status, CacheStatus::Stale);
    assert_eq!(rules_of(lookup.answer(&POLICY)).map(|(_, last)| last), Ok(true));
    calls.next().await.ends(rules(NEW));
    settle().await;
    let lookup = bench.lookup(&site).await;
    assert_eq!(rules_of(lookup.answer(&POLICY)).map(|(_, last)| last), Ok(false));
    assert!(holds(&lookup, NEW));
}
