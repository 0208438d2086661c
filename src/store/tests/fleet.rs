//! Tests robotgates that share their copies through a fleet's server.

use super::*;
use crate::fleet::tests::{RedisServer, until};

async fn gate(server: &RedisServer) -> (Bench, Calls) {
    let store = Store::new(1024 * 1024, None);
    Bench::within(Some(server.gate().await), store, 1000)
}

fn none(calls: &Calls) -> bool {
    calls.0.is_empty()
}

#[tokio::test]
async fn a_cold_origin_is_fetched_once_for_all_gates() {
    let Some(server) = RedisServer::start() else { return };
    let [(first, mut calls), (second, second_calls), (third, third_calls)] =
        [gate(&server).await, gate(&server).await, gate(&server).await];
    let site = origin("a.example");
    let lookup = first.spawn(&site);
    let call = calls.next().await;
    let lookups: Vec<_> = (0..100)
        .flat_map(|_| [second.spawn(&site), third.spawn(&site)])
        .collect();
    until(|| second.store.memory().fetches + third.store.memory().fetches == 2).await;
    call.ends(rules(OLD));
    assert!(holds(&lookup.await.expect("a lookup"), OLD));
    for lookup in lookups {
        assert!(holds(&lookup.await.expect("a lookup"), OLD));
    }
    assert!(none(&calls) && none(&second_calls) && none(&third_calls));
    assert_eq!(
        second.puppet.records(),
        [(site.clone(), None)],
        "the log tells where it came from"
    );
    assert!(second.store.held(&site).expect("it is known").is_shared());
    assert!(!first.store.held(&site).expect("it is known").is_shared());
    // A robots.txt in memory needs no call to the fleet's server.
    let lookup = second.lookup(&site).await;
    assert_eq!((lookup.status, lookup.waited), (CacheStatus::Hit, Duration::ZERO));
}

#[tokio::test]
async fn all_gates_share_a_5xx_answer_but_not_a_timeout() {
    let Some(server) = RedisServer::start() else { return };
    let ((first, mut first_calls), (second, mut second_calls)) = (gate(&server).await, gate(&server).await);
    let busy = origin("busy.example");
    first.fetch(&mut first_calls, &busy, answered(503, "")).await;
    until(|| first.store.memory().fetches == 0).await;
    let lookup = second.lookup(&busy).await;
    assert_eq!(verdict(&lookup), Some((Verdict::Deny, Reason::Unreachable)));
    assert!(none(&second_calls));

    let gone = origin("gone.example");
    let failed = Fetched::Failed(FetchError::Timeout(WAIT).into());
    first.fetch(&mut first_calls, &gone, failed).await;
    let lookup = second.fetch(&mut second_calls, &gone, rules(OLD)).await;
    assert!(holds(&lookup, OLD));
}

#[tokio::test]
async fn a_refused_ftp_login_is_not_shared() {
    let Some(server) = RedisServer::start() else { return };
    let ((first, mut first_calls), (second, mut second_calls)) = (gate(&server).await, gate(&server).await);
    let site = Origin::new(Scheme::Ftp, HostPort::parse(b"files.example").expect("a host"));
    let lookup = first.fetch(&mut first_calls, &site, answered(403, "")).await;
    assert_eq!(verdict(&lookup), Some((Verdict::Deny, Reason::Unreachable)));
    let lookup = second.fetch(&mut second_calls, &site, rules(OLD)).await;
    assert!(holds(&lookup, OLD));
}

#[tokio::test]
async fn one_gate_refreshes_a_copy_and_the_others_use_the_result() {
    let Some(server) = RedisServer::start() else { return };
    let ((first, mut first_calls), (second, mut second_calls)) = (gate(&server).await, gate(&server).await);
    let site = origin("a.example");
    for bench in [&first, &second] {
        bench.known_since(&site, 23 * HOUR, &tagged(OLD, "\"1\""));
    }
    assert!(holds(&first.lookup(&site).await, OLD));
    let call = first_calls.next().await;
    assert_eq!(call.etag.as_deref(), Some("\"1\""));
    assert!(holds(&second.lookup(&site).await, OLD));
    call.ends(tagged(NEW, "\"2\""));
    until(|| second.store.memory().fetches == 0).await;
    assert!(holds(&second.lookup(&site).await, NEW));
    assert!(none(&second_calls));

    // Only the first robotgate knows this site. Its copy has expired, and the site confirms it with a 304.
    let other = origin("b.example");
    let (third, mut third_calls) = gate(&server).await;
    first.known_since(&other, 48 * HOUR, &tagged(OLD, "\"1\""));
    drop(first.spawn(&other));
    first_calls.next().await.ends(Fetched::NotModified {
        freshness: Freshness(Some(HOUR)),
    });
    until(|| first.store.memory().fetches == 0).await;
    assert!(holds(&third.lookup(&other).await, OLD));
    assert!(none(&third_calls) && none(&second_calls));
    let _ = (&mut third_calls, &mut second_calls);
}

#[tokio::test]
async fn an_older_allow_all_from_the_fleet_is_not_used() {
    let Some(server) = RedisServer::start() else { return };
    let ((first, mut first_calls), (second, mut second_calls)) = (gate(&server).await, gate(&server).await);
    let site = origin("a.example");
    first.fetch(&mut first_calls, &site, rules("")).await;
    until(|| first.store.memory().fetches == 0).await;
    // The second robotgate knows the result of a later fetch, which has already expired.
    let cached = second.store.cached(&site);
    let now = SystemTime::now() + Duration::from_secs(1);
    let over = Freshness(Some(Duration::ZERO));
    let policy = Policy {
        min_ttl: Duration::ZERO,
        ..*POLICY
    };
    let state = cached
        .state
        .load()
        .after(rules(OLD).meaning(&policy, now), 200, over, now, 0.0, &policy);
    cached.state.store(Arc::new(state));
    let lookup = second.spawn(&site);
    second_calls.next().await.ends(rules(NEW));
    assert!(holds(&lookup.await.expect("a lookup"), NEW));
}

#[tokio::test]
async fn without_the_server_each_gate_fetches() {
    let Some(server) = RedisServer::start() else { return };
    let (bench, mut calls) = gate(&server).await;
    server.stop();
    for host in ["a.example", "b.example", "c.example", "d.example", "e.example"] {
        let lookup = bench.fetch(&mut calls, &origin(host), rules(OLD)).await;
        assert!(holds(&lookup, OLD));
    }
    let fleet = bench.puppet.fleet.as_ref().expect("it has one");
    assert!(fleet.error().is_some());
    server.go_on();
    until(|| fleet.error().is_none()).await;
}
