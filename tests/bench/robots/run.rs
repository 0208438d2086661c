//! A run of the benchmark: its options and its output.

use std::cell::Cell;

use super::race::{Contender, Pace, Time};
use super::table::Goals;

pub struct Run {
    /// Whether to measure. If not, everything runs once, without output.
    measures: bool,
    lists: bool,
    filter: String,
    has_rows: Cell<bool>,
    pub goals: Goals,
}

/// Size in bytes to which files are cut if nothing is measured.
pub const SHORT: usize = 4096;

/// Options of the standard test harness that have a value. The value must not be mistaken for a filter.
const VALUED: [&str; 6] = ["--test-threads", "--skip", "--color", "--format", "--logfile", "-Z"];

// === impl Run ===

impl Run {
    /// Parses the command line. `cargo bench` passes `--bench`; `cargo test` passes nothing or `--test`. Other options
    /// of the standard harness are ignored.
    pub fn from_arguments(arguments: impl Iterator<Item = String>) -> Self {
        let mut run = Self {
            measures: false,
            lists: false,
            filter: String::new(),
            has_rows: Cell::new(false),
            goals: Goals::default(),
        };
        let mut tests = false;
        let mut arguments = arguments;
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--list" => run.lists = true,
                "--bench" => run.measures = true,
                "--test" => tests = true,
                option if VALUED.contains(&option) => drop(arguments.next()),
                option if option.starts_with('-') => {}
                _ => run.filter = argument,
            }
        }
        run.measures &= !tests && !run.lists;
        run
    }

    /// Returns whether to run a row of a section, named `section/row`.
    pub fn wants(&self, section: &str, row: &str) -> bool {
        let name = format!("{section}/{row}");
        if self.lists {
            println!("{name}: benchmark");
            return false;
        }
        let wanted = name.contains(&self.filter);
        self.has_rows.set(self.has_rows.get() || wanted);
        wanted
    }

    /// Returns the filter if no row matches it.
    pub fn unmatched_filter(&self) -> Option<&str> {
        (!self.has_rows.get()).then_some(&self.filter)
    }

    pub fn measures(&self) -> bool {
        self.measures
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

    /// Shortens the work if nothing is measured, because the build is then usually not optimised.
    pub fn shorten<T>(&self, items: &mut Vec<T>, length: usize) {
        if !self.measures {
            items.truncate(length);
        }
    }
}
