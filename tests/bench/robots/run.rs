//! One run of the benchmark: what was asked for, and what is said of it.

use super::race::{Contender, Pace, Time};
use super::table::Goals;

/// What was asked for on the command line.
pub struct Run {
    /// Else everything runs once, silently.
    measures: bool,
    filter: String,
    pub goals: Goals,
}

/// Bytes of a file where nothing is measured.
pub const SHORT: usize = 4096;

/// Options of the usual test harness that have a value, which is no filter.
const VALUED: [&str; 6] = ["--test-threads", "--skip", "--color", "--format", "--logfile", "-Z"];

// === impl Run ===

impl Run {
    /// `cargo bench` gives `--bench`; `cargo test` does not, or it gives `--test`. What the usual harness knows besides
    /// is let pass. `None` where nothing is to run.
    pub fn from_arguments(arguments: impl Iterator<Item = String>) -> Option<Self> {
        let mut run = Self {
            measures: false,
            filter: String::new(),
            goals: Goals::default(),
        };
        let mut tests = false;
        let mut arguments = arguments;
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--list" => return None,
                "--bench" => run.measures = true,
                "--test" => tests = true,
                option if VALUED.contains(&option) => drop(arguments.next()),
                option if option.starts_with('-') => {}
                _ => run.filter = argument,
            }
        }
        run.measures &= !tests;
        Some(run)
    }

    /// Whether a row of a section is wanted, as `section/row`.
    pub fn wants(&self, section: &str, row: &str) -> bool {
        format!("{section}/{row}").contains(&self.filter)
    }

    pub fn say(&self, line: &str) {
        if self.measures {
            println!("{}", line.trim_end());
        }
    }

    pub fn race<const N: usize>(&self, pace: Pace, contenders: [Option<Contender<'_>>; N]) -> [Option<Time>; N] {
        let pace = if self.measures { pace } else { Pace::SMOKE };
        pace.race(contenders)
    }

    /// Cuts work where nothing is measured, for then the build is seldom optimised.
    pub fn shorten<T>(&self, items: &mut Vec<T>, length: usize) {
        if !self.measures {
            items.truncate(length);
        }
    }
}
