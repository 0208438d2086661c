//! Counts the operations of an exchange, a refusal and a decision instead of timing them, so that the load of the
//! machine does not matter: `cargo test --bench cost`.
//!
//! - Allocations: a gate in this process, between a client and an origin that allocate nothing.
//! - Instructions: the same, in a second process of this program under `valgrind --tool=callgrind`.
//! - System calls: the real program under `strace`, with 32 kept connections.
//!
//! Each number is compared with the one in `cost/bounds.toml`. All numbers are of the unoptimised build, which is as
//! repeatable as any other and needs no extra build.
//!
//! `cost exchange N` does N exchanges, and prints the number of allocations. `cost refusal N` and `cost decision N` do
//! the same with refusals and decisions. Run these commands under a profiler: callgrind for instructions, or `valgrind
//! --tool=dhat` for the places that allocate.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a check that cannot go on fails, and says where"
)]

use std::{env, process::ExitCode};

use heapster::Heapster;

use cost::{
    bounds::Bounds,
    callgrind,
    calls::{self, Calls},
    decision, exchange,
};

mod cost {
    pub mod bounds;
    pub mod callgrind;
    pub mod calls;
    pub mod decision;
    pub mod exchange;
    pub mod peers;
}

#[global_allocator]
static HEAP: Heapster<std::alloc::System> = Heapster::new(std::alloc::System);

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["exchange", times] => println!(
            "{} allocations",
            exchange::run(times.parse().unwrap(), true, allocations)
        ),
        ["refusal", times] => println!(
            "{} allocations",
            exchange::run(times.parse().unwrap(), false, allocations)
        ),
        ["decision", times] => println!("{} allocations", decision::run(times.parse().unwrap(), allocations)),
        ["--list", ..] => {}
        _ => return check(),
    }
    ExitCode::SUCCESS
}

fn check() -> ExitCode {
    assert!(
        cfg!(debug_assertions),
        "the bounds are those of the unoptimised build: cargo test --bench cost"
    );
    let mut bounds = Bounds::load();

    let allocated = exchange::run(ALLOCATING, true, allocations);
    bounds.hold("exchange.allocations", per(allocated, ALLOCATING));
    let allocated = exchange::run(ALLOCATING, false, allocations);
    bounds.hold("refusal.allocations", per(allocated, ALLOCATING));
    let allocated = decision::run(ALLOCATING, allocations);
    bounds.hold("decision.allocations", per(allocated, ALLOCATING));

    for (work, key, times) in [
        ("exchange", "exchange.instructions", EXCHANGES),
        ("refusal", "refusal.instructions", EXCHANGES),
        ("decision", "decision.instructions", DECISIONS),
    ] {
        // Count twice as many repetitions and subtract, to leave out the start and the end of the program.
        let more = callgrind::instructions(work, 2 * times) - callgrind::instructions(work, times);
        bounds.hold(key, per(more, times));
    }

    let few = calls::count(REQUESTS);
    let many = calls::count(2 * REQUESTS);
    let each = |of: fn(&Calls) -> u64| per(of(&many) - of(&few), calls::CONNECTIONS * REQUESTS);
    bounds.hold("exchange.sends", each(Calls::sends));
    bounds.hold("exchange.receives", each(Calls::receives));
    bounds.hold("exchange.system-calls", each(Calls::all));
    println!("{}", many.table(&few, calls::CONNECTIONS * REQUESTS));

    bounds.end()
}

fn per(count: u64, times: u64) -> f64 {
    count as f64 / times as f64
}

fn allocations() -> u64 {
    HEAP.alloc_count() + HEAP.realloc_growth_count() + HEAP.realloc_shrink_count()
}

/// Number of repetitions to count allocations.
const ALLOCATING: u64 = 1000;
/// Number of repetitions under valgrind.
const EXCHANGES: u64 = 400;
const DECISIONS: u64 = 2000;
/// Number of requests on each connection under strace.
const REQUESTS: u64 = 60;
