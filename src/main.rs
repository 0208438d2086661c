//! The `robotgate` program. All its code is in the library.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser as _;
use robotgate::cli::Cli;

/// Faster than the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    Cli::parse().execute()
}
