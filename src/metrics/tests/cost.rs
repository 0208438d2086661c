//! Checks that counting a decision and three durations takes less than ten times as long as formatting the decision.

use std::{hint::black_box, time::Instant};

use super::*;

#[test]
fn counting_a_request_takes_negligible_time() {
    let metrics = Arc::new(Metrics::default());
    let bots: Vec<_> = (0..100).map(|number| bot(&format!("bot{number}"))).collect();
    let meter = meter(&metrics, &bots);
    let rule = decision(Identity::Bot(bots[50].clone()), Verdict::Deny, Reason::Rule);
    let (mut counting, mut writing) = (Duration::ZERO, Duration::ZERO);
    // Counting and formatting are measured in turn. So other work on the machine slows down both.
    for nanos in 0..ROUNDS {
        let started = Instant::now();
        let time = Duration::from_nanos(black_box(nanos));
        meter.decided(black_box(&rule));
        metrics.decision_took(time, Some(time));
        metrics.audit_took(time);
        counting += started.elapsed();
        let started = Instant::now();
        black_box(format!("{:?}", black_box(&rule)));
        writing += started.elapsed();
    }
    println!("{counting:?} for decisions and three times, {writing:?} for lines");
    assert!(counting < 10 * writing, "{counting:?}, {writing:?}");
}

const ROUNDS: u64 = 100_000;
