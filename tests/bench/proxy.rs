//! robotgate beside other proxies, in turns, in one run: `cargo bench --bench proxy`.
//!
//! `cargo bench --bench proxy -- kept http2` runs the cases whose names contain one of those; `-- --list` names them all,
//! and `-- --help` says what else there is. All of them take two minutes. squid, HAProxy and mitmproxy take part
//! where they are installed. Client, origin and proxy share the machine, so numbers are of the machine and of the
//! minute; the ratios say more.

use std::{env, process::ExitCode};

/// The benchmark's parts, in the directory of that name.
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

    /// How all bots of the benchmark call themselves.
    pub const AGENT: &str = "BenchBot";

    /// What cannot go on ends the benchmark, or a proxy's part in it, with a text.
    pub type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;
}

/// As robotgate has it, so that the bare proxy does not lose by its allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let outcome = match &arguments[..] {
        // The benchmark starts itself for these.
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
