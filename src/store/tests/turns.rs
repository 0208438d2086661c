//! Tests fetches that wait for a permit or for room in the audit log.

use super::*;

/// Returns a store that can run one fetch at a time, and the fetch that already runs.
async fn taken() -> (Bench, Calls, Call) {
    let (bench, mut calls) = Bench::with_permits(1);
    drop(bench.spawn(&origin("dead.example")));
    let call = calls.next().await;
    (bench, calls, call)
}

fn failure(lookup: &Lookup) -> Option<FetchError> {
    lookup.answer(&POLICY).failure().map(|failure| failure.error.clone())
}

#[tokio::test(start_paused = true)]
async fn a_fetch_whose_turn_is_too_late_never_starts() {
    let (bench, mut calls, running) = taken().await;
    let site = origin("a.example");
    let lookup = bench.lookup(&site).await;
    assert_eq!((lookup.status, lookup.pending), (CacheStatus::Queued, true));
    assert_eq!(failure(&lookup), Some(FetchError::Queued));
    assert_eq!(verdict(&lookup), Some((Verdict::Deny, Reason::Unreachable)));
    assert_eq!(bench.store.memory().fetches, 1, "only the one that runs");

    running.ends(rules(OLD));
    assert!(calls.none_more().await, "nobody waits for it any more");
    assert!(!bench.store.cached(&site).state.load().is_known());
    let lookup = bench.fetch(&mut calls, &site, rules(NEW)).await;
    assert!(holds(&lookup, NEW));
}

#[tokio::test(start_paused = true)]
async fn a_queued_fetch_is_dropped_with_its_last_client() {
    let (bench, mut calls, running) = taken().await;
    let site = origin("a.example");
    let [gone, stays] = [2, 3].map(|number| bench.spawn_for(client(number), &site));
    settle().await;
    gone.abort();
    running.ends(rules(OLD));
    let call = calls.next().await;
    assert_eq!(call.origin, site, "one client waits still");

    let other = origin("b.example");
    let gone = bench.spawn(&other);
    settle().await;
    gone.abort();
    call.ends(rules(OLD));
    assert!(holds(&stays.await.expect("no panic").expect("a lookup"), OLD));
    assert!(calls.none_more().await, "nobody waits for the other site");
    assert_eq!(bench.store.memory().fetches, 0);
}

#[tokio::test(start_paused = true)]
async fn a_shared_fetch_starts_at_the_earliest_turn_of_its_clients() {
    let (bench, mut calls, running) = taken().await;
    let busy = client(1);
    let ahead: Vec<_> = (0..5)
        .map(|number| bench.spawn(&origin(&format!("{number}.example"))))
        .collect();
    let site = origin("a.example");
    let behind = bench.spawn_for(busy, &site);
    settle().await;
    let other = bench.spawn_for(client(2), &site);
    settle().await;

    // The next fetch runs for the first client. Then the second client has its turn, so `site` is fetched.
    running.ends(rules(OLD));
    calls.next().await.ends(rules(OLD));
    let call = calls.next().await;
    assert_eq!(call.origin, site);
    call.ends(rules(NEW));
    for lookup in [behind, other] {
        assert!(holds(&lookup.await.expect("no panic").expect("a lookup"), NEW));
    }
    for _ in 1..5 {
        let call = calls.next().await;
        assert_ne!(call.origin, site, "it was fetched once");
        call.ends(rules(OLD));
    }
    for lookup in ahead {
        lookup.await.expect("no panic");
    }
    assert!(calls.none_more().await);
}

#[tokio::test(start_paused = true)]
async fn a_client_over_its_limit_starts_no_fetch_but_can_use_others() {
    let (bench, mut calls) = Bench::new();
    let few = |number| Requester {
        max_fetches: 1,
        ..client(number)
    };
    let [known, running, new] = ["known.example", "running.example", "new.example"].map(origin);
    bench.known_since(&known, HOUR, &rules(OLD));
    let first = bench.spawn_for(few(1), &running);
    let call = calls.next().await;

    let refused = bench.lookup_for(few(1), &POLICY, &new).await;
    assert_eq!(refused.err(), Some(LookupError::TooManyFetches));
    assert!(!bench.store.cached(&new).state.load().is_known());
    let hit = bench.lookup_for(few(1), &POLICY, &known).await.expect("it is known");
    assert_eq!(hit.status, CacheStatus::Hit);
    let joined = bench.spawn_for(few(1), &running);
    let others = bench.spawn_for(few(2), &new);
    assert_eq!(calls.next().await.origin, new);

    call.ends(rules(OLD));
    for lookup in [first, joined] {
        assert!(holds(&lookup.await.expect("no panic").expect("a lookup"), OLD));
    }
    others.abort();
}

#[tokio::test(start_paused = true)]
async fn a_client_over_its_limit_uses_a_valid_copy_without_a_refresh() {
    let (bench, mut calls) = Bench::new();
    let site = origin("a.example");
    bench.known_since(&site, 20 * HOUR, &rules(OLD));
    let none = Requester {
        max_fetches: 0,
        ..client(1)
    };
    let lookup = bench.lookup_for(none, &POLICY, &site).await.expect("it is known");
    assert!(holds(&lookup, OLD));
    assert!(calls.none_more().await);
    bench.lookup(&site).await;
    assert_eq!(calls.next().await.origin, site);
}

#[tokio::test(start_paused = true)]
async fn a_background_refresh_waits_for_its_turn() {
    let (bench, mut calls, running) = taken().await;
    let site = origin("a.example");
    bench.known_since(&site, 20 * HOUR, &rules(OLD));
    assert!(holds(&bench.lookup(&site).await, OLD));
    settle().await;
    running.ends(rules(OLD));
    let call = calls.next().await;
    assert_eq!(call.origin, site);
    call.ends(rules(NEW));
    settle().await;
    assert!(holds(&bench.lookup(&site).await, NEW));
}

#[tokio::test(start_paused = true)]
async fn a_stalled_log_stops_fetches_without_counting_a_failure() {
    let (bench, mut calls) = Bench::new();
    let site = origin("a.example");
    bench.puppet.logs.send_replace(false);
    let waiting = [1, 2].map(|number| bench.spawn_for(client(number), &site));
    for lookup in waiting {
        let error = lookup.await.expect("no panic").err();
        assert_eq!(error, Some(LookupError::NotLogged));
    }
    assert!(calls.none_more().await);
    assert!(!bench.store.cached(&site).state.load().is_known());
    assert_eq!(bench.store.memory().fetches, 0);

    bench.puppet.logs.send_replace(true);
    let lookup = bench.fetch(&mut calls, &site, rules(OLD)).await;
    assert!(holds(&lookup, OLD));
}

#[tokio::test(start_paused = true)]
async fn at_shutdown_only_running_fetches_are_logged() {
    let (bench, mut calls, running) = taken().await;
    let waiting = bench.spawn(&origin("a.example"));
    settle().await;

    let later = Store::new(1024 * 1024, None).replacing(&bench.store);
    later.end_fetches().await;

    let dead = running.origin.clone();
    assert_eq!(bench.puppet.records(), [(dead.clone(), Some(FetchError::CutOff))]);
    assert!(
        !bench.store.cached(&dead).state.load().is_known(),
        "the site has not failed"
    );
    let lookup = waiting.await.expect("no panic");
    assert_eq!(verdict(&lookup), Some((Verdict::Deny, Reason::Unreachable)));
    assert!(calls.none_more().await);
    assert_eq!(bench.puppet.records().len(), 1, "what never began has no record");
    assert_eq!(bench.store.memory().fetches, 0);
}
