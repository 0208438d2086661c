//! The counters of the clients.

use std::time::Duration;

#[derive(Default)]
pub struct Tally {
    /// The duration of each exchange in microseconds.
    pub latencies: Vec<u32>,
    pub errors: u64,
    pub first_error: Option<String>,
}

impl Tally {
    pub fn exchange(&mut self, took: Duration) {
        self.latencies.push(u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
    }

    pub fn error(&mut self, error: &dyn std::fmt::Display) {
        self.errors += 1;
        self.first_error.get_or_insert_with(|| error.to_string());
    }

    pub fn add(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        self.errors += other.errors;
        self.first_error = self.first_error.take().or(other.first_error);
    }
}
