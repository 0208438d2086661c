//! The options on the command line.

use std::time::Duration;

use super::Outcome;

pub struct Options {
    /// Parts of the names of the cases to run; if empty, all run.
    cases: Vec<String>,
    /// Parts of the names of the proxies to measure; if empty, all are measured.
    proxies: Vec<String>,
    pub rounds: usize,
    /// How long a proxy is measured in a round; at least 1.5 s with more than 1000 connections. Cases that measure
    /// memory ignore this.
    pub time: Duration,
    pub connections: usize,
}

pub enum Command {
    Run(Options),
    Help,
    List,
    /// Run no case, because `cargo test --benches` has started the benchmark.
    Nothing,
}

pub const HELP: &str = "\
cargo bench --bench proxy -- [CASE...] [--proxies NAME,...] [--rounds N] [--seconds S] [--crowd N]

  CASE       cases whose names contain this; all of them if none is named
  --list     name the cases
  --proxies  measure those whose names contain one of these: robotgate,bare,squid,HAProxy,mitmproxy,none
  --rounds   how many times each proxy has its turn in a case (3); not for idle, tunnels, unread
  --seconds  how long a turn is (0.3); not for idle, tunnels, unread
  --crowd    connections in the cases about idle ones (10000); also limits many-4096 and unread";

// === impl Options ===

impl Options {
    pub fn from_arguments(arguments: &[String]) -> Outcome<Command> {
        let mut options = Self {
            cases: Vec::new(),
            proxies: Vec::new(),
            rounds: 3,
            time: Duration::from_millis(300),
            connections: 10_000,
        };
        let mut benches = false;
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            match argument.as_str() {
                "--bench" => benches = true,
                "--list" => return Ok(Command::List),
                "--help" => return Ok(Command::Help),
                "--rounds" => options.rounds = value()?.parse::<usize>()?.max(1),
                "--seconds" => options.time = Duration::try_from_secs_f64(value()?.parse()?)?,
                "--crowd" => options.connections = value()?.parse()?,
                "--proxies" => options.proxies = value()?.split(',').map(str::to_lowercase).collect(),
                option if option.starts_with('-') => return Err(format!("what is {option}?\n\n{HELP}").into()),
                case => options.cases.push(case.to_owned()),
            }
        }
        Ok(if benches {
            Command::Run(options)
        } else {
            Command::Nothing
        })
    }

    pub fn wants_case(&self, name: &str) -> bool {
        self.cases.is_empty() || self.cases.iter().any(|part| name.contains(part))
    }

    pub fn wants_proxy(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.proxies.is_empty() || self.proxies.iter().any(|part| name.contains(part))
    }
}
