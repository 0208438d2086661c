//! `robotgate eval`: decides JSON lines, one case each, as Google's parser would, or
//! to the letter of RFC 9309.
//!
//! Never stops at a bad line, never keeps more than one line and a bounded cache in memory. It
//! answers for the parser alone: no exception for `/robots.txt`, no tokens but Google's.

mod cache;
mod case;
mod counted;
mod pipe;

use std::{
    io::{self, BufRead, IsTerminal as _, Write},
    process::ExitCode,
};

use super::progress::tell_of_input;
use crate::robots::Profile;
use case::Files;
use counted::Counted;

/// Decide many cases from standard input, as JSON
///
/// Reads one JSON object a line, with "robots" (the text of a robots.txt, or "robots_b64"), "agent" (the
/// bot's name) and "url". Answers each, in the same order, with "allowed" and the "line", "rule" and
/// "group" that decide; other fields are passed through. A line that cannot be decided has an "error"
/// instead. Nothing is fetched.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct EvalArgs {
    /// Whose reading of robots.txt holds
    #[arg(long, value_enum, default_value_t)]
    profile: Profile,
}

/// What came of a run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Outcome {
    /// Lines answered with a decision.
    pub decided: u64,
    /// Lines answered with an error.
    pub failed: u64,
}

/// Runs from standard input to standard output. Fails if any line was bad; a reader that goes away
/// early is no failure.
#[must_use]
pub fn run(args: &EvalArgs) -> ExitCode {
    tell_of_input("one JSON object a line (robotgate eval --help shows one)");
    let input = Counted::new(io::stdin().lock());
    // Answers that are seen are all the progress there need be.
    let progress = (!io::stdout().is_terminal()).then(|| input.progress());
    let outcome = pipe::between(input, io::stdout().lock(), |input, output| {
        eval(args.profile, input, output)
    });
    drop(progress);
    match outcome {
        Ok(Outcome { failed: 0, .. }) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("robotgate eval: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Answers each line of `input` with one line of `output`; blank lines get none.
///
/// # Errors
///
/// Only what reading and writing give. A line that is no case is answered with an object of its
/// other fields, `error` (a sentence) and `input_line` (from 1).
pub fn eval(profile: Profile, mut input: impl BufRead, mut output: impl Write) -> io::Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut files = Files::new(profile);
    let mut line = Vec::new();
    let mut number = 0_u64;
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            output.flush()?;
            return Ok(outcome);
        }
        number += 1;
        let line = line.trim_ascii_end();
        if line.is_empty() {
            continue;
        }
        match case::answer(line, number, &mut files, &mut output)? {
            Ok(()) => outcome.decided += 1,
            Err(_) => outcome.failed += 1,
        }
    }
}

const AFTER_HELP: &str = r#"Exit status: 0 when every line was decided, 1 when one was not, 2 for a usage error.

Try it:
  robotgate eval < cases.jsonl > decided.jsonl

where a line of cases.jsonl is:
  {"agent":"Bot","url":"http://a.example/","robots":"User-agent: *\nDisallow: /"}"#;

#[cfg(test)]
mod tests;
