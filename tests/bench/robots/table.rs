//! Formats numbers, and compares them with goals.

use std::fmt::Write as _;

/// The goals of a report, and whether they are met.
#[derive(Default)]
pub struct Goals {
    met: usize,
    missed: Vec<String>,
}

// === impl Goals ===

impl Goals {
    /// Returns the words to print next to a number: the goal, and whether the number meets it.
    pub fn judge(&mut self, what: &str, number: &str, goal: &str, met: bool) -> String {
        if met {
            self.met += 1;
            format!("{goal}: met")
        } else {
            self.missed.push(format!("{what}: {number}, goal {goal}"));
            format!("{goal}: NOT met")
        }
    }

    /// Returns the last lines of a report.
    pub fn summary(&self) -> String {
        let mut text = format!("Goals: {} of {} met.", self.met, self.met + self.missed.len());
        for missed in &self.missed {
            let _ = write!(text, "\n  NOT met: {missed}");
        }
        text
    }
}

/// Formats a duration with three digits and a unit.
pub fn duration(nanoseconds: f64) -> String {
    let (value, unit) = match nanoseconds {
        ..999.5 => (nanoseconds, "ns"),
        ..999.5e3 => (nanoseconds / 1e3, "µs"),
        ..999.5e6 => (nanoseconds / 1e6, "ms"),
        _ => (nanoseconds / 1e9, "s"),
    };
    format!("{} {unit}", digits(value))
}

/// Formats a number with three digits, or with all digits before the decimal point if there are more.
pub fn digits(value: f64) -> String {
    match value {
        ..9.995 => format!("{value:.2}"),
        ..99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Formats a number of bytes with commas between thousands.
pub fn bytes(count: usize) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
