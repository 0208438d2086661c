//! Measures how long decisions take once a file is parsed.

use std::hint::black_box;

use robotgate::robots::RobotsTxt;

use super::{
    engines::{Engine, Robotgate, Robotxt, TextingRobots},
    files::{Size, Subject},
    generate::Random,
    race::{Contender, Pace, Time},
    run::Run,
    table::{bytes, digits, duration},
};

/// Number of different orders of the paths. With several, the processor cannot predict the next path.
const ORDERS: usize = 16;

pub fn report(run: &mut Run, subjects: &[Subject]) {
    let wanted: Vec<&Subject> = subjects
        .iter()
        .filter(|subject| run.wants("decision", subject.name))
        .collect();
    if wanted.is_empty() {
        return;
    }
    run.say("\nDECISION, per path: 64 paths a file, in 16 orders, files parsed and caches warm. For \"+ agent\",");
    run.say("the agent is looked up in the file each time; the others are parsed for one agent.\n");
    run.say(&row([
        "file",
        "",
        Robotgate::NAME,
        "+ agent",
        Robotxt::NAME,
        TextingRobots::NAME,
        "times faster",
    ]));
    let mut decisions = 0;
    let mut others = [0, 0];
    for subject in wanted {
        measure(run, subject);
        decisions += subject.paths.len();
        let differ = differ(subject);
        others = [others[0] + differ[0], others[1] + differ[1]];
    }
    let [robotxt, texting] = others;
    run.say(&format!(
        "\nAnswers unlike robotgate's: {robotxt} of {decisions} by robotxt, {texting} by texting_robots."
    ));
}

/// Measures decisions on a subject's file. A unit of work is one decision on each of its paths.
fn measure(run: &mut Run, subject: &Subject) {
    let ours = Robotgate::parse(&subject.file, subject.agent);
    let robotxt = Robotxt::parse(&subject.file, subject.agent);
    let texting = TextingRobots::parse(&subject.file, subject.agent);
    let sequence = sequence(&subject.paths);
    let contenders = [
        ours.as_ref()
            .map(|parsed| picked::<Robotgate>(parsed, subject, &sequence)),
        ours.as_ref().map(|parsed| looked_up(parsed, subject, &sequence)),
        robotxt
            .as_ref()
            .map(|parsed| picked::<Robotxt>(parsed, subject, &sequence)),
        texting
            .as_ref()
            .map(|parsed| picked::<TextingRobots>(parsed, subject, &sequence)),
    ];
    let times = run
        .race(Pace::MEASURE, contenders)
        .map(|time| time.map(|time| time.each(subject.paths.len())));

    let of = |time: Option<Time>| time.map_or(f64::INFINITY, |time| time.median);
    let ratio = of(times[2]).min(of(times[3])) / of(times[0]);
    let what = format!("decision, {}", subject.name);
    let mut first = format!("{}x", digits(ratio));
    let mut second = String::new();
    if subject.size == Size::Typical {
        let verdict = run.goals.judge(&what, &first, "≥5x", ratio >= 5.0);
        first = format!("{first}, {verdict}");
    }
    if let Some((goal, limit)) = subject.size.goal() {
        second = run
            .goals
            .judge(&what, &duration(of(times[0])), goal, of(times[0]) < limit);
    }
    let median = times.map(|time| time.map_or_else(|| "refused".into(), |time| duration(time.median)));
    let min = times.map(|time| {
        time.and_then(|time| time.min)
            .map_or_else(|| "one try".into(), duration)
    });
    let size = format!("  {} bytes", bytes(subject.file.len()));
    run.say(&row([
        subject.name,
        "median",
        &median[0],
        &median[1],
        &median[2],
        &median[3],
        &first,
    ]));
    run.say(&row([&size, "min", &min[0], &min[1], &min[2], &min[3], &second]));
}

fn picked<'a, E: Engine>(parsed: &'a E::Parsed, subject: &Subject, sequence: &'a [&str]) -> Contender<'a> {
    let picked = E::pick(parsed, subject.agent);
    let mut at = 0;
    Box::new(move |units| {
        for _ in 0..units {
            for path in &sequence[at..at + sequence.len() / ORDERS] {
                black_box(E::allows(&picked, black_box(path)));
            }
            at = (at + sequence.len() / ORDERS) % sequence.len();
        }
    })
}

fn looked_up<'a>(parsed: &'a RobotsTxt, subject: &Subject, sequence: &'a [&str]) -> Contender<'a> {
    let agent = subject.agent;
    let mut at = 0;
    Box::new(move |units| {
        for _ in 0..units {
            for path in &sequence[at..at + sequence.len() / ORDERS] {
                black_box(parsed.agent(black_box(agent)).decide(black_box(path.as_bytes())));
            }
            at = (at + sequence.len() / ORDERS) % sequence.len();
        }
    })
}

fn sequence(paths: &[String]) -> Vec<&str> {
    let mut random = Random::new(6);
    let mut order: Vec<&str> = paths.iter().map(String::as_str).collect();
    let mut sequence = Vec::new();
    for _ in 0..ORDERS {
        random.shuffle(&mut order);
        sequence.extend_from_slice(&order);
    }
    sequence
}

fn differ(subject: &Subject) -> [usize; 2] {
    let ours = answers::<Robotgate>(subject);
    [answers::<Robotxt>(subject), answers::<TextingRobots>(subject)]
        .map(|theirs| theirs.iter().zip(&ours).filter(|(theirs, ours)| theirs != ours).count())
}

fn answers<E: Engine>(subject: &Subject) -> Vec<bool> {
    let Some(parsed) = E::parse(&subject.file, subject.agent) else {
        return Vec::new();
    };
    let picked = E::pick(&parsed, subject.agent);
    subject.paths.iter().map(|path| E::allows(&picked, path)).collect()
}

fn row([name, which, ours, agent, robotxt, texting, goal]: [&str; 7]) -> String {
    format!("{name:<19}{which:<7}{ours:>10}{agent:>10}{robotxt:>10}{texting:>16}  {goal}")
}
