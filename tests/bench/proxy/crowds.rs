//! Measures many connections that are idle or whose responses are not read: how much memory a proxy uses for each, and
//! how much of it the proxy frees after they were closed.

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use super::{
    Outcome,
    cases::{Case, Contender},
    load::Plan,
    proxies::Running,
};

/// A proxy's memory, in bytes.
#[derive(Clone, Copy)]
pub struct Memory {
    pub before: u64,
    pub during: u64,
    pub after: u64,
    connections: usize,
}

/// The result of a contender's turn.
pub struct Row {
    pub label: String,
    pub memory: Outcome<Memory>,
}

/// Runs a case: the proxies start together and take turns.
pub fn run(case: &Case, folder: &Path) -> Vec<Row> {
    thread::scope(|scope| {
        let start = |contender: &Contender| {
            let kind = contender.kind;
            scope.spawn(move || kind.start(folder))
        };
        let starting: Vec<_> = case.contenders.iter().map(start).collect();
        let mut measuring = Vec::new();
        for (contender, starting) in case.contenders.iter().zip(starting) {
            let crowded = starting.join().unwrap_or_else(|_| Err("it did not start".into()));
            let crowded =
                crowded.and_then(|proxy| gather(&contender.plan, proxy.ok_or("there is no proxy to look at")?));
            // Measure this proxy again in a thread that first waits. The next proxy is measured meanwhile.
            measuring.push((contender, scope.spawn(move || crowded.map(measure_after_close))));
        }
        let row = |(contender, measuring): (&Contender, thread::ScopedJoinHandle<'_, Outcome<Memory>>)| Row {
            label: contender.label.clone(),
            memory: measuring
                .join()
                .unwrap_or_else(|_| Err("it could not be measured".into())),
        };
        measuring.into_iter().map(row).collect()
    })
}

/// Measures a proxy's memory before the connections are opened, and while they are open.
fn gather(plan: &Plan, proxy: Running) -> Outcome<(Running, Memory)> {
    let address = proxy.address(plan.protocol);
    // Send a few requests first, so that `before` includes what the proxy allocates only once.
    let few = Plan {
        connections: 8,
        ..*plan
    };
    few.hold(Some(address), || ())?;
    let before = settled(&proxy);
    let during = plan.hold(Some(address), || settled(&proxy))?;
    let memory = Memory {
        before,
        during,
        after: 0,
        connections: plan.connections,
    };
    Ok((proxy, memory))
}

fn measure_after_close((proxy, memory): (Running, Memory)) -> Memory {
    thread::sleep(WAIT_AFTER_CLOSE);
    Memory {
        after: proxy.process().memory(),
        ..memory
    }
}

fn settled(proxy: &Running) -> u64 {
    let patience = Instant::now() + Duration::from_secs(3);
    let mut last = proxy.process().memory();
    loop {
        thread::sleep(Duration::from_millis(200));
        let memory = proxy.process().memory();
        if memory.abs_diff(last) < last / 200 || Instant::now() > patience {
            return memory;
        }
        last = memory;
    }
}

// === impl Memory ===

impl Memory {
    /// Returns the memory per connection.
    pub fn each(&self) -> u64 {
        self.during.saturating_sub(self.before) / self.connections.max(1) as u64
    }
}

const WAIT_AFTER_CLOSE: Duration = Duration::from_secs(2);
