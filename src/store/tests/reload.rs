//! Tests reloads that change the profile.

use super::*;

static RFC9309: LazyLock<Policy> = LazyLock::new(|| Policy {
    profile: Profile::Rfc9309,
    ..*POLICY
});
/// A robots.txt with a typo that only the profile `google` accepts.
const TYPO: &str = "User-agent: *\nDisalow: /p\n";

fn allows(lookup: &Lookup, policy: &Policy) -> bool {
    let copy = lookup.answer(policy).copy().expect("a copy decides");
    assert_eq!(copy.robots.profile(), policy.profile);
    copy.robots.agent("a").decide(b"/p").allowed
}

fn copy(lookup: &Lookup, policy: &Policy) -> Arc<crate::copy::RobotsCopy> {
    lookup.answer(policy).copy().expect("a copy decides").clone()
}

#[tokio::test(start_paused = true)]
async fn a_new_profile_parses_a_copy_once_without_a_fetch() {
    // The second body is so large that it is parsed on a blocking thread.
    for body in [TYPO.to_owned(), TYPO.to_owned() + &"#\n".repeat(40_000)] {
        let (bench, mut calls) = Bench::new();
        let site = origin("a.example");
        let before = bench.fetch(&mut calls, &site, rules(&body)).await;
        assert!(!allows(&before, &POLICY));

        let after = bench.lookup_under(&RFC9309, &site).await;
        assert!(allows(&after, &RFC9309));
        assert_eq!((after.status, after.waited), (CacheStatus::Hit, Duration::ZERO));
        let (old, new) = (copy(&before, &POLICY), copy(&after, &RFC9309));
        assert_eq!((&old.sha256, old.fetched), (&new.sha256, new.fetched));
        assert_eq!(
            before.state.source_fetch(before.at, &POLICY),
            after.state.source_fetch(before.at, &RFC9309)
        );

        let again = bench.lookup_under(&RFC9309, &site).await;
        assert!(Arc::ptr_eq(&after.state, &again.state), "it was parsed once");
        // A request that began before the reload still uses the old profile.
        assert!(!allows(&bench.lookup(&site).await, &POLICY));
        assert!(allows(&bench.lookup_under(&RFC9309, &site).await, &RFC9309));
        assert!(calls.none_more().await);
    }
}

#[tokio::test(start_paused = true)]
async fn simultaneous_lookups_parse_a_copy_once() {
    let (bench, mut calls) = Bench::new();
    let site = origin("a.example");
    let body = TYPO.to_owned() + &"#\n".repeat(200_000);
    bench.fetch(&mut calls, &site, rules(&body)).await;
    let lookups: Vec<_> = (0..50)
        .map(|_| {
            let (bench, site) = (bench.clone(), site.clone());
            tokio::spawn(async move { bench.lookup_under(&RFC9309, &site).await })
        })
        .collect();
    let mut states = Vec::new();
    for lookup in lookups {
        let lookup = lookup.await.expect("a lookup");
        assert!(allows(&lookup, &RFC9309));
        states.push(lookup.state);
    }
    assert!(states.iter().all(|state| Arc::ptr_eq(state, &states[0])));
    assert!(calls.none_more().await);
}

#[tokio::test(start_paused = true)]
async fn a_fetch_under_the_old_profile_is_parsed_under_the_new_one() {
    let (bench, mut calls) = Bench::new();
    let site = origin("a.example");
    let old = bench.spawn(&site);
    let call = calls.next().await;
    let new = {
        let (bench, site) = (bench.clone(), site.clone());
        tokio::spawn(async move { bench.lookup_under(&RFC9309, &site).await })
    };
    settle().await;
    call.ends(rules(TYPO));
    let (old, new) = (old.await.expect("a lookup"), new.await.expect("a lookup"));
    assert!(!allows(&old, &POLICY));
    assert!(allows(&new, &RFC9309));
    assert_eq!((old.status, new.status), (CacheStatus::Miss, CacheStatus::Collapsed));
    assert!(allows(&bench.lookup_under(&RFC9309, &site).await, &RFC9309));
    assert!(calls.none_more().await);
}

#[tokio::test(start_paused = true)]
async fn a_refresh_under_the_old_profile_is_parsed_under_the_new_one() {
    let (bench, mut calls) = Bench::new();
    let site = origin("a.example");
    bench.known_since(&site, 20 * HOUR, &rules(NEW));
    bench.lookup(&site).await;
    let refresh = calls.next().await;
    assert!(allows(&bench.lookup_under(&RFC9309, &site).await, &RFC9309));
    refresh.ends(rules(TYPO));
    settle().await;
    let lookup = bench.lookup_under(&RFC9309, &site).await;
    assert!(allows(&lookup, &RFC9309));
    let typo = crate::copy::RobotsCopy::new(Profile::Rfc9309, TYPO.as_bytes(), lookup.at);
    assert_eq!(copy(&lookup, &RFC9309).sha256, typo.sha256, "the copy is refreshed");
    assert!(calls.none_more().await);
}
