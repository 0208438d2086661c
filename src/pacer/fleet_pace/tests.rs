//! Tests robotgates of a fleet with a real Redis. Tests stop the clock to skip long waits, but not while a robotgate
//! waits for an answer of Redis.

use tokio::time::{Instant as Clock, pause, resume};

use super::{
    super::{Pacer, SharedPacer},
    *,
};
use crate::fleet::tests::{RedisServer, until};

const GAP: Duration = Duration::from_secs(60);

fn site() -> Origin {
    "https://a.example".parse().expect("an origin")
}

fn limits(gap: Duration, max_wait: Duration) -> PaceLimits {
    PaceLimits {
        gap,
        max_wait,
        ..PaceLimits::default()
    }
}

async fn gate(server: &RedisServer, on_loss: OnLoss) -> SharedPacer {
    SharedPacer {
        local: Arc::new(Pacer::new(100)),
        fleet: Some(FleetPace {
            fleet: server.gate().await,
            on_loss,
            size: 3,
        }),
    }
}

fn ask(gate: &SharedPacer, limits: PaceLimits) -> tokio::task::JoinHandle<Result<Turn, TooEarly>> {
    let gate = gate.clone();
    tokio::spawn(async move { gate.turn(&site(), "a", limits).await })
}

fn fleet(gate: &SharedPacer) -> &Fleet {
    &gate.fleet.as_ref().expect("it has one").fleet
}

#[tokio::test]
async fn a_request_waits_for_its_slot_behind_those_of_other_gates() {
    let Some(server) = RedisServer::start() else { return };
    let (first, second) = (gate(&server, OnLoss::Share).await, gate(&server, OnLoss::Share).await);
    let long = limits(GAP, 5 * GAP);
    let mut turn = first.turn(&site(), "a", long).await.expect("nobody was there");
    assert_eq!(turn.waited, Duration::ZERO, "a call is no wait");
    turn.sent();
    drop(turn);
    let waiting = ask(&second, long);
    until(|| second.local.waiting() == 1).await;
    let began = Clock::now();
    pause();
    let turn = waiting.await.expect("it ends").expect("there is time");
    let waited = began.elapsed();
    assert!(waited <= GAP && waited > GAP / 2, "{waited:?}");
    assert!(turn.waited >= waited && turn.waited <= GAP * 2, "{:?}", turn.waited);
    assert_eq!(second.local.waiting(), 0);
    resume();

    // The first robotgate alone would send this request in time. Only the fleet's server knows of the second
    // robotgate's slot.
    let early = first.turn(&site(), "a", limits(GAP, GAP / 2)).await;
    let not_before = early.expect_err("the slot of the second gate is in the way").later.at;
    assert!(not_before > now() + GAP / 2);
}

#[tokio::test]
async fn clients_that_disconnect_waste_at_most_one_slot() {
    let Some(server) = RedisServer::start() else { return };
    let (first, second) = (gate(&server, OnLoss::Share).await, gate(&server, OnLoss::Share).await);
    let long = limits(GAP, 9 * GAP);
    second.turn(&site(), "a", long).await.expect("nobody was there").sent();
    for _ in 0..5 {
        let leaves = ask(&first, long);
        until(|| first.local.waiting() == 1).await;
        leaves.abort();
        assert!(leaves.await.is_err_and(|error| error.is_cancelled()));
    }
    let not_before = second
        .not_before(&site(), "a", &long)
        .await
        .expect("a slot is reserved");
    let ahead = not_before.at.saturating_duration_since(now());
    assert!(ahead <= 2 * GAP, "the slot that was left, and one delay: {ahead:?}");
}

#[tokio::test]
async fn a_pause_refuses_a_request_that_waits_for_its_slot() {
    let Some(server) = RedisServer::start() else { return };
    let (first, second) = (gate(&server, OnLoss::Share).await, gate(&server, OnLoss::Share).await);
    let long = limits(GAP, 5 * GAP);
    first.turn(&site(), "a", long).await.expect("nobody was there").sent();
    let waiting = ask(&second, long);
    until(|| second.local.waiting() == 1).await;
    pause();
    second.local.pause(&site(), 100 * GAP);
    let end = now() + 100 * GAP;
    let early = waiting.await.expect("it ends").expect_err("the site wants a pause");
    assert_eq!(early.later.at, end);
    assert!(early.waited > GAP / 2, "it finds out when its slot comes: {early:?}");
}

#[tokio::test]
async fn changed_limits_wake_a_request_that_waits_for_its_slot() {
    for (delay, expected) in [(Some(GAP / 4), GAP / 4), (None, Duration::ZERO)] {
        let Some(server) = RedisServer::start() else { return };
        let (first, second) = (gate(&server, OnLoss::Share).await, gate(&server, OnLoss::Share).await);
        let long = limits(GAP, 5 * GAP);
        let began = Clock::now();
        first.turn(&site(), "a", long).await.expect("nobody was there").sent();
        let waiting = ask(&second, long);
        until(|| second.local.waiting() == 1).await;
        match delay {
            Some(delay) => second.local.reconfigure(&Policy {
                delay,
                max_wait: 5 * GAP,
                ..Policy::default()
            }),
            None => second.local.lift(),
        }
        pause();
        waiting.await.expect("it ends").expect("there is time");
        let waited = began.elapsed();
        assert!(waited >= expected && waited < GAP / 2, "{delay:?}: {waited:?}");
        assert_eq!(second.local.waiting(), 0);
        resume();
    }
}

#[tokio::test]
async fn a_gate_remembers_a_pause_that_it_learns_of_from_the_server() {
    let Some(server) = RedisServer::start() else { return };
    let (first, second) = (gate(&server, OnLoss::Share).await, gate(&server, OnLoss::Share).await);
    first.note_busy(&site(), now(), Some(100 * GAP));
    let is_paused = async || {
        fleet(&second)
            .next_slot(&site(), GAP)
            .await
            .is_some_and(|next| next.is_paused)
    };
    while !is_paused().await {
        tokio::task::yield_now().await;
    }
    assert_eq!(second.local.not_before(&site(), "a", &limits(GAP, GAP)), None);
    let early = second.turn(&site(), "a", limits(Duration::ZERO, GAP)).await;
    assert!(early.expect_err("the site wants a pause").later.at > now() + 50 * GAP);
    let known = second.local.not_before(&site(), "a", &limits(GAP, GAP));
    assert!(
        known.is_some_and(|known| known.at > now() + 50 * GAP),
        "the gate knows it now"
    );
    assert_eq!(known.map(|known| known.cause), Some(Cause::Pause));
}

#[tokio::test]
async fn a_scheduler_that_waits_until_any_gates_not_before_is_never_refused() {
    let Some(server) = RedisServer::start() else { return };
    let gates = [gate(&server, OnLoss::Share).await, gate(&server, OnLoss::Share).await];
    let at_once = limits(Duration::from_millis(100), Duration::ZERO);
    for round in 0..6 {
        let (asked, used) = (&gates[round % 2], &gates[round / 2 % 2]);
        let turn = used.turn(&site(), "a", at_once).await;
        turn.expect("it comes at the time that it was told").sent();
        // If the request was sent late, the fleet's server may not know this yet. So ask until the answer is no longer
        // earlier than the times that the robotgates themselves know.
        let mut at = None;
        while at
            < gates
                .iter()
                .filter_map(|gate| gate.local.not_before(&site(), "a", &at_once))
                .map(|later| later.at)
                .max()
        {
            at = asked.not_before(&site(), "a", &at_once).await.map(|later| later.at);
        }
        if let Some(at) = at {
            tokio::time::sleep_until(at.into()).await;
        }
    }
}

#[tokio::test]
async fn without_the_server_on_loss_sets_the_pace() {
    for (on_loss, gaps) in [
        (OnLoss::Share, Some(3)),
        (OnLoss::Local, Some(1)),
        (OnLoss::Refuse, None),
    ] {
        let Some(mut server) = RedisServer::start() else { return };
        let gate = gate(&server, on_loss).await;
        let long = limits(GAP, 10 * GAP);
        let began = Clock::now();
        gate.turn(&site(), "a", long).await.expect("nobody was there").sent();
        server.kill();
        // The robotgate finds out that the fleet's server is lost when this request asks for its slot.
        let early = gate.turn(&site(), "b", limits(Duration::ZERO, GAP)).await;
        assert_eq!(early.is_err(), on_loss == OnLoss::Refuse, "{on_loss:?}");
        drop(early);
        while fleet(&gate).is_used() {
            fleet(&gate).next_slot(&site(), GAP).await;
        }
        pause();
        let asked = gate.not_before(&site(), "a", &long).await.map(|later| later.at);
        let turn = gate.turn(&site(), "a", long).await;
        match gaps {
            Some(gaps) => {
                let (after, expected) = (began.elapsed(), gaps * GAP);
                assert!(
                    after <= expected + GAP / 2 && after >= expected,
                    "{on_loss:?}: {after:?}"
                );
                assert!(turn.is_ok(), "{on_loss:?}");
                assert!(asked <= Some(now()) && asked > Some(now() - GAP / 2), "{on_loss:?}");
                let early = gate.turn(&site(), "a", limits(GAP, gaps * GAP - GAP / 2)).await;
                assert_eq!(
                    early.expect_err("it is too early").waited,
                    Duration::ZERO,
                    "{on_loss:?}"
                );
            }
            None => {
                let early = turn.expect_err("nothing is sent");
                assert_eq!(early.later.cause, Cause::Fleet);
                assert_eq!(early.waited, Duration::ZERO);
                assert!(early.later.at >= now() + SOON && asked >= Some(now() + SOON));
            }
        }
        resume();
    }
}
