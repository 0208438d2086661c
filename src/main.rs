//! The `robotgate` program. All its code is in the library.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser as _;
use robotgate::cli::Cli;

/// The proxy spends about a tenth of its time on allocation. This allocator is faster than the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    Cli::parse().execute()
}
