//! Measures hostile files and paths.

use std::hint::black_box;

use super::{
    attacks::{self, Attack},
    engines::{Engine, Robotgate, Robotxt, TextingRobots},
    heap,
    race::{Contender, Pace, Time},
    run::{Run, SHORT},
    table::{bytes, digits, duration},
};

/// If another engine than robotgate needs more nanoseconds than this for a path, it is not measured on longer paths.
const PATIENCE: f64 = 250e6;

pub fn report(run: &mut Run) {
    let mut wanted: Vec<Attack> = attacks::all()
        .into_iter()
        .filter(|attack| run.wants("hostile", attack.name))
        .collect();
    if wanted.is_empty() {
        return;
    }
    for attack in &mut wanted {
        run.shorten(&mut attack.file, SHORT);
        run.shorten(&mut attack.paths, 1);
    }
    run.say("\nHOSTILE FILES: a decision. An engine that takes over 250 ms is not measured on longer paths.\n");
    run.say(&row([
        "rules",
        "path",
        Robotgate::NAME,
        Robotxt::NAME,
        TextingRobots::NAME,
        "",
    ]));
    let mut worst = [Time::ZERO; 3];
    for attack in &wanted {
        decisions(run, attack, &mut worst);
    }
    let worst = worst.map(|time| duration(time.median));
    run.say(&row(["worst of each", "", &worst[0], &worst[1], &worst[2], ""]));
    run.say("\nHOSTILE FILES: the parsing, and the memory that robotgate keeps, as a multiple of the file's bytes.\n");
    run.say(&row([
        "rules",
        "bytes",
        Robotgate::NAME,
        Robotxt::NAME,
        TextingRobots::NAME,
        "memory",
    ]));
    for attack in &wanted {
        parsing(run, attack);
    }
}

fn decisions(run: &mut Run, attack: &Attack, worst: &mut [Time; 3]) {
    let ours = Robotgate::parse(&attack.file, attack.agent);
    let robotxt = Robotxt::parse(&attack.file, attack.agent);
    let texting = TextingRobots::parse(&attack.file, attack.agent);
    let mut tired = [robotxt.is_none(), texting.is_none()];
    for path in &attack.paths {
        if let Some(parsed) = &ours {
            let mut contender = decision::<Robotgate>(parsed, attack, path);
            assert_eq!(heap::requests(|| contender(1)), 0, "a decision never allocates");
        }
        let robotxt = robotxt.as_ref().filter(|_| !tired[0]);
        let texting = texting.as_ref().filter(|_| !tired[1]);
        let times = run.race(
            Pace::BRIEF,
            [
                ours.as_ref().map(|parsed| decision::<Robotgate>(parsed, attack, path)),
                robotxt.map(|parsed| decision::<Robotxt>(parsed, attack, path)),
                texting.map(|parsed| decision::<TextingRobots>(parsed, attack, path)),
            ],
        );
        for (worst, time) in worst.iter_mut().zip(times) {
            *worst = worst.max(time.unwrap_or(Time::ZERO));
        }
        let [time, robotxt, texting] = times.map(|time| time.map_or(f64::INFINITY, |time| time.median));
        tired = [robotxt > PATIENCE, texting > PATIENCE];
        let what = format!("hostile, {}, path of {}", attack.name, bytes(path.len()));
        let goal = run.goals.judge(&what, &duration(time), "<1 ms", time < 1e6);
        let [ours, robotxt, texting] = times.map(|time| cell(time, "gave up"));
        run.say(&row([
            attack.name,
            &bytes(path.len()),
            &ours,
            &robotxt,
            &texting,
            &goal,
        ]));
    }
}

fn parsing(run: &mut Run, attack: &Attack) {
    let contenders = [
        contender::<Robotgate>(attack),
        contender::<Robotxt>(attack),
        contender::<TextingRobots>(attack),
    ];
    let [ours, robotxt, texting] = run.race(Pace::BRIEF, contenders.map(Some)).map(|time| cell(time, ""));
    let (_parsed, kept) = heap::kept(|| Box::new(Robotgate::parse(&attack.file, attack.agent)));
    let memory = digits(kept as f64 / attack.file.len() as f64) + "x";
    run.say(&row([
        attack.name,
        &bytes(attack.file.len()),
        &ours,
        &robotxt,
        &texting,
        &memory,
    ]));
}

fn decision<'a, E: Engine>(parsed: &'a E::Parsed, attack: &'a Attack, path: &'a str) -> Contender<'a> {
    Box::new(|units| {
        let picked = E::pick(parsed, attack.agent);
        for _ in 0..units {
            black_box(E::allows(&picked, black_box(path)));
        }
    })
}

fn contender<E: Engine>(attack: &Attack) -> Contender<'_> {
    Box::new(|units| {
        for _ in 0..units {
            black_box(E::parse(black_box(&attack.file), attack.agent));
        }
    })
}

fn cell(time: Option<Time>, none: &str) -> String {
    time.map_or_else(|| none.into(), |time| duration(time.median))
}

fn row([name, size, ours, robotxt, texting, last]: [&str; 6]) -> String {
    format!("{name:<37}{size:>8}{ours:>11}{robotxt:>10}{texting:>16}  {last}")
}
