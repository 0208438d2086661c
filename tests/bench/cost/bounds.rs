//! Compares the counted numbers with those in `bounds.toml`.

use std::process::ExitCode;

use toml::{Table, Value};

/// The bounds, and which of them were exceeded.
pub struct Bounds {
    table: Table,
    broken: Vec<String>,
}

// === impl Bounds ===

impl Bounds {
    pub fn load() -> Self {
        Self {
            table: include_str!("bounds.toml").parse().expect("bounds.toml is TOML"),
            broken: Vec::new(),
        }
    }

    /// Compares a counted number with the bound for `key`, which is `section.name`.
    pub fn hold(&mut self, key: &str, counted: f64) {
        let (recorded, percent) = self.bound(key);
        let slack = recorded * percent / 100.0;
        let share = (counted / recorded - 1.0) * 100.0;
        let verdict = if counted > recorded + slack + ROUNDING {
            self.broken.push(format!(
                "{key} grew by {share:.1} %, from {recorded} to {counted:.2}; {percent} % are allowed"
            ));
            "TOO MUCH".to_owned()
        } else if counted < recorded - slack - ROUNDING {
            format!("fell by {:.1} %: record the new number in {FILE}", -share)
        } else {
            "as recorded".to_owned()
        };
        println!("{key:<24}{counted:>12.2}{recorded:>12.2} ± {percent} %  {verdict}");
    }

    /// Returns a failure if a bound was exceeded.
    pub fn end(self) -> ExitCode {
        if self.broken.is_empty() {
            return ExitCode::SUCCESS;
        }
        for broken in &self.broken {
            eprintln!("{broken}");
        }
        eprintln!(
            "An exchange or a decision costs more than it did. Make it cheaper; or, if the change is worth it, write the new \
             number as `counted` into {FILE}, and why into the commit."
        );
        ExitCode::FAILURE
    }

    /// Returns the recorded number, and by how many per cent a new one may exceed it.
    fn bound(&self, key: &str) -> (f64, f64) {
        let (section, name) = key.split_once('.').expect("a key is section.name");
        let bound = self.table.get(section).and_then(|section| section.get(name));
        let number = |field: &str| match bound.and_then(|bound| bound.get(field)) {
            Some(Value::Integer(number)) => *number as f64,
            Some(Value::Float(number)) => *number,
            _ => panic!("{FILE} has no number {key}.{field}"),
        };
        (number("counted"), number("percent"))
    }
}

const FILE: &str = "tests/bench/cost/bounds.toml";
/// Tolerance for rounding: the recorded numbers have two decimal places.
const ROUNDING: f64 = 0.01;
