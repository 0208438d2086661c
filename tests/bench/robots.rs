//! Compares the robots engine with two others, on the same files and paths in the same run: `cargo bench --bench
//! robots`.
//!
//! `cargo bench --bench robots -- hostile/nested` runs the rows whose `section/row` contains `hostile/nested`, and
//! `--list` prints the names of all rows. The sections are `decision`, `question`, `parsing`, `memory` and `hostile`.
//! Without `--bench`, as in `cargo test`, each row runs once and nothing is measured. Absolute numbers depend on the
//! machine; the ratios mean more.

use std::{env, process, thread};

use robots::{
    decisions, files, hostile, keeping, questions,
    run::{Run, SHORT},
};

mod robots {
    pub mod attacks;
    pub mod decisions;
    pub mod engines;
    pub mod files;
    pub mod generate;
    pub mod heap;
    pub mod hostile;
    pub mod keeping;
    pub mod questions;
    pub mod race;
    pub mod run;
    pub mod table;
}

fn main() {
    let mut run = Run::from_arguments(env::args().skip(1));
    let cores = thread::available_parallelism().map_or(1, usize::from);
    run.say(&format!(
        "robots engines side by side, one thread of {cores} cores, taking turns; medians of its CPU time"
    ));
    let mut subjects = files::all();
    for subject in &mut subjects {
        run.shorten(&mut subject.file, SHORT);
    }
    decisions::report(&mut run, &subjects);
    questions::report(&mut run, &subjects);
    keeping::parsing(&mut run, &subjects);
    keeping::memory(&mut run, &subjects);
    hostile::report(&mut run);
    if let Some(filter) = run.unmatched_filter().filter(|_| run.measures()) {
        eprintln!(
            "no SECTION/ROW contains {filter:?}; the sections are decision, question, parsing, memory and hostile"
        );
        process::exit(2);
    }
    run.say(&format!("\n{}", run.goals.summary()));
}
