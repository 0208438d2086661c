//! Many connections that do nothing: how much memory a proxy takes for each, and how much of it it gives back.

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use super::{
    Outcome,
    cases::{Case, Lane},
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

/// What a lane found.
pub struct Row {
    pub label: String,
    pub memory: Outcome<Memory>,
}

/// Runs a case, one proxy after the other.
pub fn run(case: &Case, folder: &Path) -> Vec<Row> {
    let row = |lane: &Lane| Row {
        label: lane.label.clone(),
        memory: measure(lane, folder),
    };
    case.lanes.iter().map(row).collect()
}

fn measure(lane: &Lane, folder: &Path) -> Outcome<Memory> {
    let proxy = lane.kind.start(folder)?.ok_or("there is no proxy to look at")?;
    let plan = &lane.plan;
    let address = proxy.address(plan.protocol);
    // What the first requests take is not the connections'.
    let few = Plan {
        connections: 8,
        ..*plan
    };
    few.hold(Some(address), || ())?;
    let before = settled(&proxy);
    let during = plan.hold(Some(address), || settled(&proxy))?;
    thread::sleep(GIVING_BACK);
    Ok(Memory {
        before,
        during,
        after: settled(&proxy),
        connections: plan.connections,
    })
}

/// The proxy's memory, once it hardly changes any more.
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
    /// For one connection.
    pub fn each(&self) -> u64 {
        self.during.saturating_sub(self.before) / self.connections.max(1) as u64
    }
}

/// How long after the connections were closed a proxy is looked at again.
const GIVING_BACK: Duration = Duration::from_secs(2);
