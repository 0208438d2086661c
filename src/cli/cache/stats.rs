//! `robotgate cache stats`: prints statistics of the cache.

use std::fmt::Write as _;

use super::{CacheArgs, CacheError, print, print_json};
use crate::{
    admin::{Copies, Running, Stats},
    text::plain,
};

/// Count the sites, and show how much memory and disk they take
#[derive(Debug, clap::Args)]
pub struct StatsArgs {}

// === impl StatsArgs ===

impl StatsArgs {
    pub(super) fn run(&self, args: &CacheArgs) -> Result<(), CacheError> {
        let stats = args.ask_of(&args.load()?.0, Copies::stats)?;
        match args.json {
            true => print_json(&stats),
            false => print(report(&stats).as_bytes()),
        }
    }
}

fn report(stats: &Stats) -> String {
    let count = &stats.count;
    let mut out = String::new();
    let mut say = |name: &str, value: String| {
        let _ = writeln!(out, "{:10}{value}", format!("{name}:"));
    };
    say(
        "File",
        format!("{}, {}", plain(&stats.path, MAX_PATH), Size(stats.file_bytes)),
    );
    let mut holds: Vec<_> = count.holds.iter().collect();
    holds.sort_by_key(|(_, number)| std::cmp::Reverse(**number));
    let holds: Vec<String> = holds
        .iter()
        .map(|(word, number)| format!("{number} {}", plain(word, 40)))
        .collect();
    let origins = match holds.is_empty() {
        true => "0".to_owned(),
        false => format!("{} ({})", count.origins, holds.join(", ")),
    };
    say("Origins", origins);
    say("Failing", count.failing.to_string());
    let texts = match (stats.texts, count.origins_with_text) {
        (0, _) => "none".to_owned(),
        (texts, 1) => format!("{texts}, {}; 1 origin uses it", Size(stats.text_bytes)),
        (texts, origins) => format!("{texts}, {}; {origins} origins share them", Size(stats.text_bytes)),
    };
    say("Texts", texts);
    match &stats.running {
        Some(running) => {
            let Running { memory_origins, .. } = running;
            let (bytes, most) = (Size(running.memory_bytes), Size(running.memory_max_bytes));
            say("Memory", format!("{memory_origins} origins, {bytes} of {most}"));
            let waiting = running.waiting_writes;
            let changes = if waiting == 1 { "change" } else { "changes" };
            say("Waiting", format!("{waiting} {changes} to be written"));
            say("Fetches", format!("{} running or queued", running.fetches));
        }
        None => say("Proxy", "no proxy runs with this file".to_owned()),
    }
    out
}

/// A size in bytes, printed like `1.5 MiB`.
struct Size(u64);

// === impl Size ===

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            bytes if bytes < KIB => write!(f, "{bytes} bytes"),
            bytes if bytes < MIB => write!(f, "{:.1} KiB", bytes as f64 / KIB as f64),
            bytes => write!(f, "{:.1} MiB", bytes as f64 / MIB as f64),
        }
    }
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// Maximum length of the printed path in bytes.
const MAX_PATH: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_printed_in_a_suitable_unit() {
        for (bytes, expected) in [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1536, "1.5 KiB"),
            (3 << 19, "1.5 MiB"),
            (5 << 30, "5120.0 MiB"),
        ] {
            assert_eq!(Size(bytes).to_string(), expected);
        }
    }
}
