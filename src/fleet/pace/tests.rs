//! Tests the pace of a fleet: the Lua scripts on a real server, and how a robotgate reads their answers.

use std::sync::{atomic::Ordering, mpsc};

use redis::from_redis_value;

use super::{
    super::{
        Notice,
        tests::{RedisServer, until},
    },
    *,
};
use crate::{fleet::Secret, pace::INCIDENTS};

const PATIENT: Duration = Duration::from_secs(10);
const GAP: Duration = Duration::from_secs(10);
const LONG: Duration = MAX_WAIT;

fn site(number: usize) -> Origin {
    format!("https://{number}.example").parse().expect("an origin")
}

fn key(number: usize) -> String {
    format!("test:{{{}}}:pace", site(number))
}

/// Returns a number that the fleet's server stores for a site, such as the time of the last slot in microseconds.
async fn field(server: &RedisServer, number: usize, name: &str) -> Option<i64> {
    let value = server
        .command(&[b"HGET", key(number).as_bytes(), name.as_bytes()])
        .await;
    from_redis_value(value).expect("a number or nothing")
}

async fn set(server: &RedisServer, number: usize, field: &str, value: &str) {
    let words = ["HSET", &key(number), field, value];
    server.command(&words.map(str::as_bytes)).await;
}

/// Returns the fleet server's time in microseconds.
async fn server_now(server: &RedisServer) -> i64 {
    let now: (i64, i64) = from_redis_value(server.command(&[b"TIME"]).await).expect("a time");
    now.0 * 1_000_000 + now.1
}

async fn next(gate: &Fleet, gap: Duration) -> Option<Duration> {
    gate.next_slot(&site(0), gap).await.map(|next| next.wait)
}

#[test]
fn well_formed_reservation_answers_are_parsed_and_others_rejected() {
    let list = |numbers: &[i64]| Value::Array(numbers.iter().copied().map(Value::Int).collect());
    let second = Duration::from_secs(1);
    for (answer, meaning) in [
        (list(&[1, 0, 0]), Some(SlotReservation::Reserved(Duration::ZERO))),
        (list(&[1, 1_000_000, 0]), Some(SlotReservation::Reserved(second))),
        (list(&[0, 1_000_000, 0]), Some(SlotReservation::TooLate(second))),
        (list(&[0, 5_000_000, 1_000_000]), Some(SlotReservation::Paused(second))),
        (list(&[1, 0, 1]), None),
        (list(&[2, 0, 0]), None),
        (list(&[1, -1, 0]), None),
        (list(&[1, 0]), None),
        (list(&[1, 0, 0, 0]), None),
        (list(&[]), None),
        (Value::Nil, None),
        (Value::Array(vec![Value::Nil; 3]), None),
    ] {
        assert_eq!(parse_reservation(&answer), meaning, "{answer:?}");
    }
}

#[tokio::test]
async fn the_slots_of_all_gates_are_exactly_a_gap_apart() {
    let Some(server) = RedisServer::start() else { return };
    let gates = [server.gate().await, server.gate().await, server.gate().await];
    let mut slots = Vec::new();
    for turn in 0..9 {
        let slot = gates[turn % 3].reserve(&site(0), GAP, LONG, PATIENT).await;
        assert!(matches!(slot, Some(SlotReservation::Reserved(_))), "{turn}: {slot:?}");
        slots.push(field(&server, 0, "last").await.expect("a slot"));
    }
    let gaps: Vec<i64> = slots.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps, [10_000_000; 8]);
    // Requests without a gap do not wait, and do not move the next slot.
    let slot = gates[0]
        .reserve(&site(0), Duration::ZERO, Duration::ZERO, PATIENT)
        .await;
    assert_eq!(slot, Some(SlotReservation::Reserved(Duration::ZERO)));
    assert_eq!(field(&server, 0, "last").await, slots.last().copied());
    let left: i64 = from_redis_value(server.command(&[b"PTTL", key(0).as_bytes()]).await).expect("a number");
    let longest = micros(MAX_GAP + 8 * GAP) / 1000;
    assert!((longest - 80_000..=longest).contains(&left), "{left}");
}

#[tokio::test]
async fn a_slot_that_is_too_late_is_not_reserved_and_asking_reserves_none() {
    let Some(server) = RedisServer::start() else { return };
    let gate = server.gate().await;
    assert_eq!(next(&gate, GAP).await, Some(Duration::ZERO));
    assert_eq!(field(&server, 0, "last").await, None, "asking writes nothing");
    let slot = gate.reserve(&site(0), GAP, Duration::ZERO, PATIENT).await;
    assert_eq!(slot, Some(SlotReservation::Reserved(Duration::ZERO)));
    let last = field(&server, 0, "last").await;
    // `MAX_GAP` is an hour, so the gap is not over yet, even on a slow machine.
    let slot = gate.reserve(&site(0), MAX_GAP, GAP, PATIENT).await;
    assert!(
        matches!(slot, Some(SlotReservation::TooLate(wait)) if wait <= MAX_GAP && wait > MAX_GAP / 2),
        "{slot:?}"
    );
    assert!(next(&gate, MAX_GAP).await > Some(MAX_GAP / 2));
    assert_eq!(field(&server, 0, "last").await, last);
}

#[tokio::test]
async fn a_request_without_a_slot_delays_the_following_slots() {
    let Some(server) = RedisServer::start() else { return };
    let gate = server.gate().await;
    gate.note_request(&site(0));
    let last = async || field(&server, 0, "last").await;
    while last().await.is_none() {
        tokio::task::yield_now().await;
    }
    let slot = gate.reserve(&site(0), MAX_GAP, Duration::ZERO, PATIENT).await;
    assert!(matches!(slot, Some(SlotReservation::TooLate(_))), "{slot:?}");
    // A request without a slot does not change a later slot that is already reserved.
    let later = server_now(&server).await + 100_000_000;
    set(&server, 0, "last", &later.to_string()).await;
    let calls = || gate.counts.calls.load(Ordering::Relaxed);
    let before = calls();
    gate.note_request(&site(0));
    until(|| calls() > before).await;
    gate.next_slot(&site(0), GAP).await;
    assert_eq!(field(&server, 0, "last").await, Some(later));
}

#[tokio::test]
async fn a_pause_applies_to_all_gates_and_is_announced_to_them() {
    let Some(server) = RedisServer::start() else { return };
    let mut settings = server.settings();
    settings.key = Some(Secret::new(b"a key that the gates share"));
    let (tell, told) = mpsc::channel();
    let first = server.gate_with(&settings, |_| ()).await;
    let second = server.gate_with(&settings, move |notice| drop(tell.send(notice))).await;
    let asked = Duration::from_secs(600);
    first.note_busy(&site(0), Duration::ZERO, Some(asked), 0.0);
    let mut notice = None;
    until(|| {
        notice = told.try_recv().ok();
        notice.is_some()
    })
    .await;
    let Some(Notice::Paused(paused)) = notice else {
        panic!("{notice:?}");
    };
    assert_eq!(paused.origin, site(0));
    assert!(paused.left <= asked && paused.left > asked / 2, "{paused:?}");
    let slot = second.reserve(&site(0), GAP, LONG, PATIENT).await;
    assert!(
        matches!(slot, Some(SlotReservation::Paused(left)) if left <= asked && left > asked / 2),
        "{slot:?}"
    );
    assert_eq!(field(&server, 0, "last").await, None, "no slot was reserved");
    assert!(next(&second, GAP).await > Some(asked / 2));
    // The second pause is shorter than the current one, so only the third causes a notice.
    first.note_busy(&site(0), Duration::ZERO, Some(asked / 10), 0.0);
    first.note_busy(&site(0), Duration::ZERO, Some(asked * 2), 0.0);
    let mut notice = None;
    until(|| {
        notice = told.try_recv().ok();
        notice.is_some()
    })
    .await;
    assert!(matches!(notice, Some(Notice::Paused(paused)) if paused.left > asked));
}

#[tokio::test]
async fn the_server_script_counts_incidents_like_a_single_gate() {
    let Some(server) = RedisServer::start() else { return };
    let fleet = server.gate().await;
    let busy = script("local now = tonumber(ARGV[4])", NOTE_BUSY);
    let epoch: u64 = 1_800_000_000;
    let note = async |number: usize, (began, now, asked): (u64, u64, Option<u64>), spread: f64| {
        let mut call = busy.key(key(number));
        let asked = Duration::from_secs(asked.unwrap_or_default()).min(LONGEST_PAUSE);
        call.arg(micros(asked)).arg((now - began) * 1_000_000).arg(spread);
        call.arg((epoch + now) * 1_000_000);
        fleet
            .client
            .call(&call, fleet.client.call_timeout)
            .await
            .expect("it answers");
        let ends = field(&server, number, "until").await.expect("there is a pause");
        u64::try_from(ends).expect("a time") / 1_000_000 - epoch
    };
    for (number, (what, answers, ends)) in INCIDENTS.iter().enumerate() {
        let mut found = Vec::new();
        for answer in *answers {
            found.push(note(number, *answer, 0.0).await);
        }
        assert_eq!(found, *ends, "{what}");
    }
    let number = INCIDENTS.len();
    assert_eq!(note(number, (0, 0, None), 1.0).await, 66, "with jitter");
    let mut now = 66;
    for _ in 0..80 {
        now = note(number, (now, now, None), 1.0).await;
    }
    let ends = note(number, (now, now, None), 1.0).await;
    assert_eq!(ends - now, LONGEST_PAUSE.as_secs(), "never longer than a day");
}

#[tokio::test]
async fn invalid_stored_values_are_ignored() {
    let Some(server) = RedisServer::start() else { return };
    let gate = server.gate().await;
    let now = server_now(&server).await;
    let in_time = |time: Duration| (now + micros(time)).to_string();
    let too_far = MAX_WAIT + Duration::from_secs(60);
    for (number, (field, value)) in [
        ("last", "garbage"),
        ("last", ""),
        ("last", "-5"),
        ("last", "1e15"),
        ("last", "nan"),
        ("last", "99999999999999999999"),
        ("last", &in_time(too_far)),
        ("until", "garbage"),
        ("until", &in_time(LONGEST_PAUSE + Duration::from_secs(60))),
        ("began", "garbage"),
        ("n", "garbage"),
    ]
    .into_iter()
    .enumerate()
    {
        set(&server, number, field, value).await;
        let slot = gate.reserve(&site(number), GAP, Duration::ZERO, PATIENT).await;
        assert_eq!(slot, Some(SlotReservation::Reserved(Duration::ZERO)), "{field} {value}");
        assert!(
            self::field(&server, number, "last").await >= Some(now),
            "{field} {value}"
        );
    }
    server.command(&[b"SET", key(90).as_bytes(), b"another type"]).await;
    let slot = gate.reserve(&site(90), GAP, Duration::ZERO, PATIENT).await;
    assert_eq!(slot, Some(SlotReservation::Reserved(Duration::ZERO)));
    // `last` may be up to `MAX_WAIT` in the future, so the script uses this value.
    set(&server, 91, "last", &in_time(MAX_WAIT / 2)).await;
    let slot = gate.reserve(&site(91), GAP, Duration::ZERO, PATIENT).await;
    assert!(matches!(slot, Some(SlotReservation::TooLate(_))), "{slot:?}");
    // An incident that began in the future is ignored.
    set(&server, 92, "began", &in_time(MAX_GAP)).await;
    gate.note_busy(&site(92), Duration::ZERO, None, 0.0);
    while field(&server, 92, "until").await.is_none() {
        tokio::task::yield_now().await;
    }
    assert_eq!(field(&server, 92, "n").await, Some(1));
    assert_eq!(gate.counts.errors.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn without_the_server_a_gate_gets_no_slot_and_makes_no_call() {
    let Some(mut server) = RedisServer::start() else { return };
    let gate = server.gate().await;
    server.kill();
    while gate.is_used() {
        assert_eq!(gate.reserve(&site(0), GAP, LONG, PATIENT).await, None);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let calls = gate.counts.calls.load(Ordering::Relaxed);
    assert_eq!(gate.reserve(&site(0), GAP, LONG, PATIENT).await, None);
    assert_eq!(gate.next_slot(&site(0), GAP).await, None);
    gate.note_request(&site(0));
    gate.note_busy(&site(0), Duration::ZERO, None, 0.0);
    assert_eq!(gate.counts.calls.load(Ordering::Relaxed), calls, "no call is made");
}
