//! `robotgate eval`: decides cases from standard input, as Google's parser does or to the letter of RFC 9309, even
//! where the proxy would decide differently. For example, as in Google's parser, a rule can disallow `/robots.txt`
//! itself.

mod cache;
mod case;

use std::{
    io::{self, BufRead as _, BufReader, BufWriter, IsTerminal as _, Read, Write},
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use rustix::fs::{FileType, fstat};

use self::case::Files;
use super::progress::{Progress, prompt_for};
use crate::robots::Profile;

/// Decide many cases from standard input, as JSON
///
/// A case is a robots.txt, a bot and a URL. Reads one JSON object per line from standard input, and writes one per line
/// to standard output, in the same order. Fetches nothing.
///
/// Input: "robots" (the text of the robots.txt, or "robots_b64" in base64), "agent" (the bot's name) and "url".
///
/// Output: "allowed", and the "line", "rule" and "group" that decided; "usage" (what Content-Usage says) and
/// "usage_lines" (the numbers of these lines); "signals" (what Content-Signal says); or "error", if the input line
/// cannot be decided. All input fields are copied, except the robots.txt and those with the name of an output field.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct EvalArgs {
    /// How to read robots.txt
    #[arg(long, value_enum, default_value_t)]
    profile: Profile,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct LineCounts {
    decided: u64,
    failed: u64,
}

/// Reads cases from standard input, and writes decisions to standard output. Fails if a line is not a valid case.
#[must_use]
pub fn run(args: &EvalArgs) -> ExitCode {
    prompt_for("one JSON object a line (robotgate eval --help shows one)");
    let read = Arc::<AtomicU64>::default();
    // If standard output is a terminal, the answers themselves show the progress.
    let progress = (!io::stdout().is_terminal()).then(|| {
        let (read, all) = (read.clone(), size_of_input());
        Progress::begin(move || progress_text(read.load(Ordering::Relaxed), all))
    });
    let input = BufReader::with_capacity(BUFFER, Counted(io::stdin().lock(), read));
    let output = BufWriter::with_capacity(BUFFER, io::stdout().lock());
    let outcome = eval(args.profile, input, output);
    drop(progress);
    match outcome {
        Ok(LineCounts { failed: 0, .. }) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("robotgate eval: cannot read standard input or write standard output: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Flushes the output before a read that may block: the sender may wait for an answer before it sends the next case.
fn eval(profile: Profile, mut input: BufReader<impl Read>, mut output: impl Write) -> io::Result<LineCounts> {
    let mut outcome = LineCounts::default();
    let mut files = Files::new(profile);
    let mut line = Vec::new();
    let mut number = 0_u64;
    loop {
        line.clear();
        if memchr::memchr(b'\n', input.buffer()).is_none() {
            output.flush()?;
        }
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

fn size_of_input() -> Option<u64> {
    let state = fstat(io::stdin()).ok()?;
    let is_file = FileType::from_raw_mode(state.st_mode).is_file();
    is_file.then(|| u64::try_from(state.st_size).unwrap_or(0))
}

fn progress_text(read: u64, all: Option<u64>) -> String {
    let shown = |bytes: u64| format!("{}.{}", bytes / MIB, bytes % MIB * 10 / MIB);
    match all {
        Some(all) => format!("deciding, {} of {} MiB of input read", shown(read), shown(all)),
        None => format!("deciding, {} MiB of input read so far", shown(read)),
    }
}

struct Counted<R>(R, Arc<AtomicU64>);

// === impl Counted ===

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.0.read(buffer)?;
        self.1.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}

const MIB: u64 = 1 << 20;
/// Size of the buffer for input, and of the one for output, in bytes.
const BUFFER: usize = 256 << 10;

const AFTER_HELP: &str = r#"Exit status: 0 if every line was decided, 1 if one was not, 2 for a usage error.

eval fetches nothing: each line of its input has the robots.txt. To check many URLs of real sites,
ask a running proxy: docs/admin-api.md, "Many URLs in one call".

eval copies your own fields, such as "case":17, to its answer. If it cannot decide a case, the
answer has the fields "error" and "input_line".

Try it:
  robotgate eval < cases.jsonl > decided.jsonl

A line of cases.jsonl:
  {"agent":"Bot","url":"http://a.example/","robots":"User-agent: *\nDisallow: /"}"#;

#[cfg(test)]
mod tests;
