//! The `robotgate` program. Everything it does is in the library.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser as _;
use robotgate::cli::Cli;

/// Allocating is a tenth of a proxy's time; this allocator takes less of it than the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    Cli::parse().execute()
}
