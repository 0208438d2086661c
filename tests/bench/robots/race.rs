//! Measures several contenders that do the same work. They take turns, so that a busy machine slows all of them.
//!
//! It never runs anything in parallel, and discards no measurement.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use super::generate::Random;

/// A function that repeats some work, such as parsing a file, the given number of times. One repetition is a unit.
pub type Contender<'a> = Box<dyn FnMut(usize) + 'a>;

/// The processor time of one unit of a contender's work, in nanoseconds.
#[derive(Clone, Copy)]
pub struct Time {
    pub median: f64,
    /// `None` if the contender was run only once.
    pub min: Option<f64>,
}

/// How long a race takes.
pub struct Pace {
    rounds: usize,
    turn: Duration,
    /// The time limit of the race. Its first three rounds take place in any case.
    limit: Duration,
}

/// If the first attempt of a contender takes longer than this, there is no second one.
const SLOW: Duration = Duration::from_millis(400);

struct Runner<'a> {
    contender: Contender<'a>,
    first: Duration,
    /// Number of units that fill a turn; 0 if the contender is run only once.
    units: usize,
    /// The time of a unit in each turn, in nanoseconds.
    times: Vec<f64>,
}

// === impl Pace ===

impl Pace {
    pub const MEASURE: Self = Self {
        rounds: 101,
        turn: Duration::from_millis(1),
        limit: Duration::from_secs(3),
    };

    /// Fewer rounds and less time than `MEASURE`, for many files or slow work.
    pub const BRIEF: Self = Self {
        rounds: 15,
        limit: Duration::from_millis(500),
        ..Self::MEASURE
    };

    /// A pace that runs each contender once and measures nothing.
    pub const SMOKE: Self = Self {
        rounds: 0,
        turn: Duration::ZERO,
        limit: Duration::ZERO,
    };

    /// Measures how long each contender takes for one unit of its work. Where there is no contender, the result is
    /// `None`.
    pub fn race<const N: usize>(&self, contenders: [Option<Contender<'_>>; N]) -> [Option<Time>; N] {
        let mut runners = contenders.map(|contender| contender.map(|contender| self.warm_up(contender)));
        let mut order: Vec<usize> = (0..N).collect();
        let mut random = Random::new(7);
        let start = Instant::now();
        for round in 0..self.rounds {
            if round >= 3 && start.elapsed() > self.limit {
                break;
            }
            // Shuffle the order, because each runner leaves the processor's caches in its own state.
            random.shuffle(&mut order);
            for &contender in &order {
                if let Some(runner) = &mut runners[contender] {
                    runner.turn();
                }
            }
        }
        runners.map(|runner| runner.map(Runner::time))
    }

    fn warm_up<'a>(&self, mut contender: Contender<'a>) -> Runner<'a> {
        let first = took(&mut contender, 1);
        let units = if self.rounds == 0 || first > SLOW {
            0
        } else {
            let unit = took(&mut contender, 1).as_nanos().max(1);
            usize::try_from(self.turn.as_nanos().div_ceil(unit)).unwrap_or(1)
        };
        Runner {
            contender,
            first,
            units,
            times: Vec::new(),
        }
    }
}

// === impl Runner ===

impl Runner<'_> {
    fn turn(&mut self) {
        if self.units > 0 {
            if self.units > 1 {
                // Refill the caches after the previous contender.
                (self.contender)(1);
            }
            let time = took(&mut self.contender, self.units);
            self.times.push(time.as_secs_f64() * 1e9 / self.units as f64);
        }
    }

    fn time(mut self) -> Time {
        self.times.sort_by(f64::total_cmp);
        let first = self.first.as_secs_f64() * 1e9;
        Time {
            median: self.times.get(self.times.len() / 2).copied().unwrap_or(first),
            min: self.times.first().copied(),
        }
    }
}

// === impl Time ===

impl Time {
    pub const ZERO: Self = Self { median: 0.0, min: None };

    /// Returns the time with the longer median.
    pub fn max(self, other: Self) -> Self {
        if other.median > self.median { other } else { self }
    }

    /// Returns the time of one part, if a unit of work has `parts` equal parts.
    pub fn each(self, parts: usize) -> Self {
        Self {
            median: self.median / parts as f64,
            min: self.min.map(|min| min / parts as f64),
        }
    }
}

fn took(contender: &mut Contender<'_>, units: usize) -> Duration {
    let start = spent();
    contender(units);
    spent().saturating_sub(start)
}

/// Returns the processor time of this thread. It does not include waiting or the load of other programs.
fn spent() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}
