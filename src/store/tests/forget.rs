//! Tests that robotgate forgets an origin if an operator asks for it, even during a lookup or a fetch.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_forgotten_origin_is_fetched_again() {
    let (bench, mut calls) = Bench::new();
    let site = origin("a.example");
    bench.fetch(&mut calls, &site, rules(OLD)).await;
    bench.store.forget(&site);
    let lookup = bench.fetch(&mut calls, &site, rules(NEW)).await;
    assert_eq!(lookup.status, CacheStatus::Miss);
    assert!(holds(&lookup, NEW));
}

#[tokio::test(start_paused = true)]
async fn forgetting_an_origin_also_clears_a_slot_in_use() {
    let (bench, mut calls) = Bench::new();
    let site = origin("a.example");
    bench.fetch(&mut calls, &site, rules(OLD)).await;
    let cached = bench.store.cached(&site);
    bench.store.forget(&site);
    assert!(!cached.state.load().is_known());
}

#[tokio::test(start_paused = true)]
async fn a_304_for_a_forgotten_copy_leads_to_a_full_fetch() {
    let (bench, mut calls) = Bench::new();
    let site = origin("a.example");
    bench.known_since(&site, 25 * HOUR, &tagged(OLD, "\"v1\""));
    let lookup = bench.spawn(&site);
    let call = calls.next().await;
    assert_eq!(call.etag.as_deref(), Some("\"v1\""));
    bench.store.forget(&site);
    call.ends(Fetched::NotModified {
        freshness: Freshness::default(),
    });
    let call = calls.next().await;
    assert_eq!(call.etag, None);
    call.ends(rules(NEW));
    assert!(holds(&lookup.await.expect("a lookup"), NEW));
}
