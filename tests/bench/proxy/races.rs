//! Lets proxies take turns in several rounds, and measures how many requests each serves, how fast, and at what cost.

use std::{collections::HashMap, path::Path, thread, time::Duration};

use super::{
    Outcome,
    cases::{Case, Contender},
    load::Phase,
    options::Options,
    origin::Origin,
    process,
    proxies::{Kind, Running},
};

#[derive(Clone, Copy)]
pub struct Sample {
    /// Requests per second.
    pub rate: f64,
    pub p50: Duration,
    pub p99: Duration,
    /// The proxy's processor time for a request. Without a proxy, that of the load generator and the origin.
    pub cpu: Duration,
    /// The proxy's memory at the end, in bytes.
    pub memory: u64,
}

/// The results of a contender's turns.
pub struct Row {
    pub label: String,
    pub kind: Kind,
    /// A sample for each round; `None` if the turn failed.
    pub samples: Vec<Option<Sample>>,
    /// The last error of a turn, or of a request in a turn, if there was one.
    pub problem: Option<String>,
}

/// The proxies of a case. For a proxy that does not run, the value is an error that says why.
type Proxies = HashMap<Kind, Result<Option<Running>, String>>;

/// The result of a turn, and the error of a request, if there was one.
type Found = (Sample, Option<String>);

pub fn run(case: &Case, options: &Options, folder: &Path, origin: &Origin) -> Vec<Row> {
    let proxies = start(case, folder);
    let row = |contender: &Contender| Row {
        label: contender.label.clone(),
        kind: contender.kind,
        samples: Vec::new(),
        problem: None,
    };
    let mut rows: Vec<Row> = case.contenders.iter().map(row).collect();
    for round in 0..rounds(case, options) {
        for turn in 0..case.contenders.len() {
            // Rotate the order, so that each round begins with another proxy.
            let at = (turn + round) % case.contenders.len();
            let found = match &proxies[&case.contenders[at].kind] {
                Ok(proxy) => take_turn(&case.contenders[at], proxy.as_ref(), options, origin),
                Err(problem) => Err(problem.clone().into()),
            };
            rows[at].add(found);
        }
    }
    // Stop all proxies at the same time, because some take long to stop.
    thread::scope(|scope| {
        for proxy in proxies.into_values() {
            scope.spawn(move || drop(proxy));
        }
    });
    rows
}

fn start(case: &Case, folder: &Path) -> Proxies {
    let mut kinds: Vec<Kind> = Vec::new();
    for contender in &case.contenders {
        if !kinds.contains(&contender.kind) {
            kinds.push(contender.kind);
        }
    }
    thread::scope(|scope| {
        let starting: Vec<_> = kinds
            .iter()
            .map(|&kind| (kind, scope.spawn(move || kind.start(folder))))
            .collect();
        let started = starting.into_iter().map(|(kind, thread)| {
            let started = thread.join().unwrap_or_else(|_| Err("it did not start".into()));
            (kind, started.map_err(|error| error.to_string()))
        });
        started.collect()
    })
}

fn take_turn(contender: &Contender, proxy: Option<&Running>, options: &Options, origin: &Origin) -> Outcome<Found> {
    let address = proxy.map(|proxy| proxy.address(contender.plan.protocol));
    let cpu = || match proxy {
        Some(proxy) => proxy.process().cpu(),
        None => process::self_cpu() + origin.process().cpu(),
    };
    let (mut before, mut after, mut memory) = (Duration::ZERO, Duration::ZERO, 0);
    let (warm_up, time) = turn(contender, options);
    let measured = contender.plan.measure(address, warm_up, time, |phase| match phase {
        Phase::Before => before = cpu(),
        Phase::After => {
            after = cpu();
            memory = proxy.map_or(0, |proxy| proxy.process().memory());
        }
    })?;
    let mut latencies = measured.tally.latencies;
    latencies.sort_unstable();
    let requests = u32::try_from(latencies.len())?;
    let at = |share: usize| latencies.get(latencies.len() * share / 100);
    let latency = |share| at(share).map_or(Duration::ZERO, |&latency| Duration::from_micros(latency.into()));
    let sample = Sample {
        rate: f64::from(requests) / measured.elapsed.as_secs_f64(),
        p50: latency(50),
        p99: latency(99),
        cpu: (after - before)
            .checked_div(requests)
            .ok_or("no request was answered")?,
        memory,
    };
    let errors = measured.tally.errors;
    let first = measured.tally.first_error;
    Ok((
        sample,
        first.map(|first| format!("{errors} requests failed, the first: {first}")),
    ))
}

// === impl Row ===

impl Row {
    fn add(&mut self, found: Outcome<Found>) {
        let (sample, problem) = match found {
            Ok((sample, problem)) => (Some(sample), problem),
            Err(error) => (None, Some(error.to_string())),
        };
        self.samples.push(sample);
        self.problem = problem.or(self.problem.take());
    }

    /// Returns the median of `of` over the rounds.
    pub fn median(&self, of: impl Fn(&Sample) -> f64) -> Option<f64> {
        median(self.samples.iter().flatten().map(of).collect())
    }

    /// Divides, for each round, this row's `of` by that of `other`, and returns the median of these ratios.
    pub fn ratio(&self, other: &Self, of: impl Fn(&Sample) -> f64) -> Option<f64> {
        let rounds = self.samples.iter().zip(&other.samples);
        let ratios = rounds.filter_map(|(ours, other)| Some(of(&(*ours)?) / of(&(*other)?)));
        median(ratios.collect())
    }
}

/// Returns how long a proxy is warmed up and how long it is measured. With thousands of connections, a single request
/// can take as long as a whole turn does with few connections, so the turns are longer.
fn turn(contender: &Contender, options: &Options) -> (Duration, Duration) {
    let time = if contender.plan.connections > MANY {
        options.time.max(LONG)
    } else {
        options.time
    };
    (time / 3, time)
}

fn rounds(case: &Case, options: &Options) -> usize {
    let is_long = case
        .contenders
        .iter()
        .any(|contender| contender.plan.connections > MANY);
    if is_long {
        options.rounds.div_ceil(3)
    } else {
        options.rounds
    }
}

const MANY: usize = 1000;
const LONG: Duration = Duration::from_millis(1500);

fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    let upper = *numbers.get(middle)?;
    Some(if numbers.len() % 2 == 1 {
        upper
    } else {
        f64::midpoint(upper, numbers[middle - 1])
    })
}
