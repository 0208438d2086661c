//! Compares robotgate with other proxies, which take turns in one run: `cargo bench --bench proxy`.
//!
//! `cargo bench --bench proxy -- kept http2` runs the cases whose names contain one of these words; `-- --list` lists
//! all names, and `-- --help` the other options. All cases together take some four minutes. squid, HAProxy and
//! mitmproxy take part if they are installed. Client, origin and proxy share the machine, so absolute numbers depend on
//! the machine and its load; the ratios mean more.

use std::{env, process::ExitCode};

mod proxy {
    pub mod bare;
    pub mod cases;
    pub mod certificates;
    pub mod crowds;
    pub mod goals;
    pub mod load;
    pub mod machine;
    #[path = "../robots/table.rs"]
    pub mod numbers;
    pub mod options;
    pub mod origin;
    pub mod process;
    pub mod proxies;
    pub mod races;
    pub mod run;
    pub mod table;

    /// The name of all bots in the benchmark.
    pub const AGENT: &str = "BenchBot";

    /// An error ends the benchmark, or a proxy's part in it, with a message.
    pub type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;
}

/// The allocator that robotgate uses, so that the bare proxy has no disadvantage.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let outcome = match &arguments[..] {
        // With these arguments, the benchmark starts its own program as the origin or the bare proxy.
        [role, folder] if role == "--origin" => proxy::origin::run(folder.as_ref()),
        [role, address] if role == "--bare" => proxy::bare::run(address),
        _ => proxy::run::run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
