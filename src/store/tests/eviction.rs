//! Tests that the cache of robots.txt copies stays within its memory limit, and what happens to the tallies of evicted
//! origins.

use super::*;
use crate::store::cached_origin::CachedOrigin;

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
async fn every_state_is_visited_once() {
    let (bench, mut calls) = Bench::new();
    for number in 0..100 {
        bench.fetch(&mut calls, &nth(number), answered(404, "")).await;
    }
    let mut known = 0;
    bench.store.each_state(|state| known += usize::from(state.is_known()));
    assert_eq!(known, 100);
}

fn taken(bench: &Bench) -> Vec<(Origin, u64, u64)> {
    let mut taken = Vec::new();
    bench.store.take_tallies(|origin, tallied| {
        taken.push((
            origin.clone(),
            tallied.verdicts[Verdict::Allow as usize][1],
            tallied.answered,
        ));
    });
    taken
}

#[tokio::test(start_paused = true)]
async fn the_tally_of_an_evicted_origin_is_taken_once() {
    let (bench, mut calls) = Bench::holding(64 * 1024);
    let file = file_of(8 * 1024);
    for number in 0..50 {
        bench.fetch(&mut calls, &nth(number), rules(&file)).await;
        bench.store.cached(&nth(number)).tally.decided(Verdict::Allow, true);
    }
    assert!(bench.store.memory().origins < 50);
    let mut counted: Vec<_> = taken(&bench)
        .into_iter()
        .map(|(origin, allowed, _)| (origin.to_string(), allowed))
        .collect();
    counted.sort();
    let mut expected: Vec<_> = (0..50).map(|number| (nth(number).to_string(), 1)).collect();
    expected.sort();
    assert_eq!(counted, expected);
    assert_eq!(taken(&bench), []);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_ends_after_its_origin_was_evicted_or_forgotten_is_counted() {
    let (bench, mut calls) = Bench::holding(64 * 1024);
    let file = file_of(8 * 1024);
    for forgets in [false, true] {
        let site = nth(1000 + usize::from(forgets));
        bench.fetch(&mut calls, &site, rules(&file)).await;
        let tally = bench.store.cached(&site).tally.clone();
        tally.decided(Verdict::Allow, true);
        match forgets {
            true => bench.store.forget(&site),
            false => {
                for number in 0..50 {
                    bench.fetch(&mut calls, &nth(number), rules(&file)).await;
                }
            }
        }
        assert!(bench.store.held(&site).is_none());
        assert_eq!(taken(&bench), [(site.clone(), 1, 0)], "{forgets}");
        tally.answered(Duration::ZERO);
        drop(tally);
        assert_eq!(taken(&bench), [(site, 0, 1)], "{forgets}");
        assert_eq!(taken(&bench), []);
    }
}

#[test]
fn the_tally_of_an_origin_that_left_twice_is_dropped_after_its_last_request() {
    let store = Store::new(64 * 1024, None);
    let cached = Arc::new(CachedOrigin::new(true));
    let request = cached.tally.clone();
    for _ in 0..2 {
        request.decided(Verdict::Allow, true);
        store.departed.add(nth(1), &cached);
    }
    drop(cached);
    let mut counts = Vec::new();
    for _ in 0..2 {
        store.take_tallies(|_, tallied| counts.push(tallied.verdicts[Verdict::Allow as usize][1]));
    }
    assert_eq!(counts, [2]);
    drop(request);
    store.take_tallies(|_, tallied| panic!("{tallied:?}"));
    assert!(store.departed.0.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_tallies_of_evicted_origins_are_bounded() {
    let (bench, _calls) = Bench::holding(64 * 1024);
    for number in 0..10_000 {
        bench.store.cached(&nth(number)).tally.decided(Verdict::Allow, true);
    }
    let kept = taken(&bench).len();
    assert!((4000..5000).contains(&kept), "{kept}");
    assert!(taken(&bench).is_empty());
}
