//! What counting costs a request. The bound is wide, for builds without optimisation on a machine that does other things:
//! a lock that waits or a system call would be over it.

use std::{hint::black_box, time::Instant};

use super::*;

#[test]
fn counting_a_request_takes_no_time_to_speak_of() {
    let metrics = Arc::new(Metrics::default());
    let bots: Vec<_> = (0..100).map(|number| bot(&format!("bot{number}"))).collect();
    let meter = meter(&metrics, &bots);
    let (identity, rule) = (Identity::Bot(bots[50].clone()), decision(Verdict::Deny, Reason::Rule));
    let started = Instant::now();
    for nanos in 0..ROUNDS {
        let time = Duration::from_nanos(black_box(nanos));
        meter.decided(black_box(&identity), black_box(&rule));
        metrics.decision_took(time, Some(time));
        metrics.audit_took(time);
    }
    let each = started.elapsed().as_nanos() / u128::from(ROUNDS);
    println!("{each} ns for a decision and three times");
    assert!(each < 20_000, "{each} ns");
}

const ROUNDS: u64 = 100_000;
