//! Tests that the cache of robots.txt copies stays within its memory limit.

use super::*;

/// Returns a robots.txt that takes at least `bytes` of memory.
fn file_of(bytes: usize) -> String {
    let mut file = String::from("User-agent: *\n");
    while file.len() < bytes {
        file.push_str(&format!("Disallow: /{}\n", file.len()));
    }
    file
}

fn nth(number: usize) -> Origin {
    origin(&format!("site-{number}.example"))
}

#[tokio::test(start_paused = true)]
async fn copies_never_weigh_more_than_the_bound() {
    const BOUND: u64 = 256 * 1024;
    let (bench, mut calls) = Bench::holding(BOUND);
    let file = file_of(8 * 1024);
    for number in 0..100 {
        let lookup = bench.fetch(&mut calls, &nth(number), rules(&file)).await;
        assert!(holds(&lookup, &file), "who fetched has the copy, whatever is kept");
        let weight = bench.store.cache.weight();
        assert!(weight <= BOUND, "{weight} after {number}");
    }
    let kept = bench.store.memory().origins;
    assert!((1..100).contains(&kept), "{kept} origins are kept");
    assert!(bench.store.cache.weight() > BOUND / 2, "the bound is made use of");
}

#[tokio::test(start_paused = true)]
async fn an_origin_weighs_what_its_copy_weighs() {
    let (bench, mut calls) = Bench::new();
    bench.fetch(&mut calls, &nth(1), answered(404, "")).await;
    let empty = bench.store.cache.weight();
    let lookup = bench.fetch(&mut calls, &nth(2), rules(&file_of(50_000))).await;
    let copy = lookup.answer(&POLICY).copy().expect("rules").weight() as u64;
    let weight = bench.store.cache.weight() - empty;
    let rounded = copy + copy / 8;
    assert!(
        (copy..rounded + 1024).contains(&weight),
        "{weight} for a copy of {copy}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_origin_that_was_evicted_is_fetched_again() {
    let (bench, mut calls) = Bench::holding(64 * 1024);
    let file = file_of(8 * 1024);
    for number in 0..50 {
        bench.fetch(&mut calls, &nth(number), rules(&file)).await;
    }
    let gone = (0..50)
        .map(nth)
        .find(|site| !bench.store.cache.contains_key(site))
        .expect("fifty of these are too many");
    let lookup = bench.fetch(&mut calls, &gone, rules(NEW)).await;
    assert_eq!(lookup.status, CacheStatus::Miss);
    assert!(holds(&lookup, NEW));
}

#[tokio::test(start_paused = true)]
async fn a_store_of_common_size_keeps_the_largest_file() {
    let file = file_of(500 * 1024);
    for number in 0..4 {
        let (bench, mut calls) = Bench::holding(16 * 1024 * 1024);
        bench.fetch(&mut calls, &nth(number), rules(&file)).await;
        assert_eq!(bench.lookup(&nth(number)).await.status, CacheStatus::Hit, "{number}");
        assert!(calls.none_more().await, "{number}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reduced_bound_is_reached_as_copies_are_added() {
    let (bench, mut calls) = Bench::holding(512 * 1024);
    let file = file_of(8 * 1024);
    for number in 0..50 {
        bench.fetch(&mut calls, &nth(number), rules(&file)).await;
    }
    bench.store.set_max_bytes(128 * 1024);
    for number in 50..60 {
        bench.fetch(&mut calls, &nth(number), rules(&file)).await;
    }
    let weight = bench.store.cache.weight();
    assert!(weight <= 128 * 1024, "{weight}");
}

#[tokio::test(start_paused = true)]
async fn each_state_visits_every_state_once() {
    let (bench, mut calls) = Bench::new();
    for number in 0..100 {
        bench.fetch(&mut calls, &nth(number), answered(404, "")).await;
    }
    let mut known = 0;
    bench.store.each_state(|state| known += usize::from(state.is_known()));
    assert_eq!(known, 100);
}
