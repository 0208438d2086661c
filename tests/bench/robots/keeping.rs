//! Measures how fast files are parsed, and how much memory the result keeps.

use std::hint::black_box;

use super::{
    engines::{Engine, Robotgate, Robotxt, TextingRobots},
    files::{Size, Subject},
    heap,
    race::{Contender, Pace},
    run::Run,
    table::{bytes, digits},
};

pub fn parsing(run: &mut Run, subjects: &[Subject]) {
    let wanted = begin(
        run,
        "parsing",
        "\nPARSING, in MB/s, with the freeing: robotgate keeps the rules of all agents, the others of one.\n",
        subjects,
    );
    for subject in wanted {
        let contenders = [
            contender::<Robotgate>(subject),
            contender::<Robotxt>(subject),
            contender::<TextingRobots>(subject),
        ];
        let speed = run.race(Pace::MEASURE, contenders.map(Some)).map(|time| {
            let nanoseconds = time.map_or(f64::INFINITY, |time| time.median);
            subject.file.len() as f64 / nanoseconds * 1e3
        });
        let what = format!("parsing, {}", subject.name);
        let goal = match subject.size {
            Size::Typical => run
                .goals
                .judge(&what, &digits(speed[0]), "≥200 MB/s", speed[0] >= 200.0),
            _ => String::new(),
        };
        let [ours, robotxt, texting] = speed.map(digits);
        run.say(&row([
            subject.name,
            &bytes(subject.file.len()),
            &ours,
            &robotxt,
            &texting,
            &goal,
        ]));
    }
}

pub fn memory(run: &mut Run, subjects: &[Subject]) {
    let wanted = begin(
        run,
        "memory",
        "\nMEMORY of a parsed file on the heap, its own struct with it, as a multiple of the file's bytes.\n",
        subjects,
    );
    if wanted.is_empty() {
        return;
    }
    let mut requests = [0; 3];
    let mut decisions = 0;
    for subject in wanted {
        let found = [
            ask::<Robotgate>(subject),
            ask::<Robotxt>(subject),
            ask::<TextingRobots>(subject),
        ];
        let [ours, robotxt, texting] = found.map(|(kept, _)| kept as f64 / subject.file.len() as f64);
        for (sum, (_, count)) in requests.iter_mut().zip(found) {
            *sum += count;
        }
        decisions += subject.paths.len();
        let goal = match subject.size {
            Size::Typical => {
                let what = format!("memory, {}", subject.name);
                run.goals.judge(&what, &digits(ours), "≤1.5x", ours <= 1.5)
            }
            _ => String::new(),
        };
        let [ours, robotxt, texting] = [ours, robotxt, texting].map(|ratio| digits(ratio) + "x");
        run.say(&row([
            subject.name,
            &bytes(subject.file.len()),
            &ours,
            &robotxt,
            &texting,
            &goal,
        ]));
    }
    let [ours, robotxt, texting] = requests;
    assert_eq!(ours, 0, "a decision never allocates");
    run.say(&format!(
        "\nAllocations in {decisions} decisions: robotgate 0, robotxt {robotxt}, texting_robots {texting}."
    ));
}

/// Returns the files that the command line selects for `part`. If there are any, prints the head of the table.
fn begin<'s>(run: &mut Run, part: &str, title: &str, subjects: &'s [Subject]) -> Vec<&'s Subject> {
    let wanted: Vec<_> = subjects
        .iter()
        .filter(|subject| run.wants(part, subject.name))
        .collect();
    if !wanted.is_empty() {
        let names = [Robotgate::NAME, Robotxt::NAME, TextingRobots::NAME];
        run.say(title);
        run.say(&row(["file", "bytes", names[0], names[1], names[2], ""]));
    }
    wanted
}

/// Returns a contender whose unit of work is parsing a file.
pub fn contender<E: Engine>(subject: &Subject) -> Contender<'_> {
    Box::new(|units| {
        for _ in 0..units {
            black_box(E::parse(black_box(&subject.file), subject.agent));
        }
    })
}

/// Returns the number of bytes that a parsed file keeps, and how often decisions on its paths allocate.
fn ask<E: Engine>(subject: &Subject) -> (u64, u64) {
    let (parsed, kept) = heap::kept(|| Box::new(E::parse(&subject.file, subject.agent)));
    let Some(parsed) = &*parsed else {
        return (kept, 0);
    };
    let requests = heap::requests(|| {
        let picked = E::pick(parsed, subject.agent);
        for path in &subject.paths {
            black_box(E::allows(&picked, path));
        }
    });
    (kept, requests)
}

fn row([name, size, ours, robotxt, texting, goal]: [&str; 6]) -> String {
    format!("{name:<19}{size:>10}{ours:>12}{robotxt:>12}{texting:>17}  {goal}")
}
