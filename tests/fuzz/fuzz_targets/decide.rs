//! Holds the engine, in each profile, against the plain, slow model of the tests and against all else that holds for any file
//! (`tests/it/robots/invariants.rs`), and against work and memory out of proportion.
//!
//! An input is text that can be read and written: the agent in the first line, the URL in the second, and from the
//! third on the file. The corpus starts from the stated cases, which are put into it at each start.

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
        takes_time_in_proportion(way, &input, &urls);
    }
    // The model tries everything at each place, so that two long things together would take it minutes.
    urls.retain(|url| url.len().saturating_mul(input.body.len()) <= MOST_TRIES);
    holds(input.body, &input.agent, &urls.iter().map(Vec::as_slice).collect::<Vec<_>>());
    Corpus::Keep
});

fn takes_time_in_proportion(way: &Way, input: &Input<'_>, urls: &[Vec<u8>]) {
    let length = input.body.len();
    let (robots, taken) = timed(|| (way.engine)(input.body));
    in_bounds(way, "parsing", taken, length, PARSING);

    for url in urls {
        let path = path_of_url(url);
        for agent in [robots.agent(&input.agent), robots.product(&input.agent)] {
            let mut left = usize::MAX;
            let (_, taken) = timed(|| agent.decide_within(&path, &mut left));
            let work = usize::MAX - left;
            // A pattern with a wildcard is not had for a byte, whoever shares it.
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

/// Of the file's own patterns, as many are tried.
const LIKELY_URLS: usize = 6;
/// Bytes of a file times bytes of a URL that the model is asked about.
const MOST_TRIES: usize = 4 << 20;

/// For each byte of a file.
const PARSING: Duration = Duration::from_micros(1);
/// For each byte that the engine counts as searched, and each byte of path and file.
const DECIDING: Duration = Duration::from_nanos(50);
/// For a page fault, or an interrupt that is put down to us.
const SLACK: Duration = Duration::from_millis(20);
