//! Decides with the robots.txt engine, in each profile. Compares the results with the simple, slow model of the tests,
//! checks the other properties in `tests/it/robots/invariants.rs`, and limits the work and the memory.
//!
//! An input is readable text: the agent in the first line, the URL in the second, and the file from the third line on.
//! Each start adds cases to the corpus: those in `tests/cases` that say whether a URL is allowed.

#![no_main]

use std::time::Duration;

use libfuzzer_sys::{Corpus, fuzz_target};
use robotgate::robots::path_of_url;

use input::Input;
use invariants::{WAYS, Way, holds, likely_urls};
use timed::timed;

#[path = "../cases.rs"]
mod cases;
#[path = "../input.rs"]
mod input;
#[path = "../../it/robots/invariants.rs"]
mod invariants;
#[path = "../../it/robots/model.rs"]
mod model;
#[path = "../../it/robots/rfc9309.rs"]
mod rfc9309;
#[path = "../seeds.rs"]
mod seeds;
#[path = "../timed.rs"]
mod timed;

fuzz_target!(init: seeds::write("decide", cases::inputs()), |data: &[u8]| -> Corpus {
    let Some(input) = Input::read(data) else {
        return Corpus::Reject;
    };
    let mut urls = likely_urls(input.body, LIKELY_URLS);
    urls.push(input.url.to_vec());
    for way in WAYS {
        takes_proportional_time(way, &input, &urls);
    }
    // The model tries every match, so a long file and a long URL together would take it minutes.
    urls.retain(|url| url.len().saturating_mul(input.body.len()) <= MOST_TRIES);
    holds(input.body, &input.agent, &urls.iter().map(Vec::as_slice).collect::<Vec<_>>());
    Corpus::Keep
});

fn takes_proportional_time(way: &Way, input: &Input<'_>, urls: &[Vec<u8>]) {
    let length = input.body.len();
    let (robots, taken) = timed(|| (way.engine)(input.body));
    in_bounds(way, "parsing", taken, length, PARSING);

    for url in urls {
        let path = path_of_url(url);
        for agent in [robots.agent(&input.agent), robots.product(&input.agent)] {
            let mut left = usize::MAX;
            let (_, taken) = timed(|| agent.decide_within(&path, &mut left));
            let work = usize::MAX - left;
            // The engine searches the path at most once for each pattern with a wildcard, and each of these patterns
            // takes more than one byte of the file.
            assert!(
                work <= length * path.len(),
                "{}: work of {work} for {length} bytes and a path of {}",
                way.name,
                path.len()
            );
            in_bounds(way, "deciding", taken, work + path.len() + length, DECIDING);
        }
    }
}

fn in_bounds(way: &Way, what: &str, taken: Duration, size: usize, each: Duration) {
    let most = SLACK + each * u32::try_from(size).unwrap_or(u32::MAX);
    assert!(
        taken <= most,
        "{}: {what} took {taken:?}, {most:?} are in proportion",
        way.name
    );
}

const LIKELY_URLS: usize = 6;
/// Maximum product of the lengths of file and URL with which to ask the model.
const MOST_TRIES: usize = 4 << 20;

/// Maximum time to parse each byte of a file.
const PARSING: Duration = Duration::from_micros(1);
/// Maximum time to decide, for each byte that the engine counts as searched and for each byte of the path and the file.
const DECIDING: Duration = Duration::from_nanos(50);
/// Additional time, for a page fault or for an interrupt that Linux charges to this process.
const SLACK: Duration = Duration::from_millis(20);
