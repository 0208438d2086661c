//! Measures how long it takes to decide a whole question, with a robots.txt copy in memory.

use std::{hint::black_box, sync::Arc, time::SystemTime};

use robotgate::{
    bot::{AcceptedProofs, Bot, Enforcement, Identity, Unidentified},
    copy::{Lookup, Policy},
    decision::{Begun, HttpsMode, Question, Ruled, Scope, Subject, Terms, Unverifiable},
    origin::{Host, Origin, Scheme, Target, readings},
};

use super::{
    files::{Size, Subject as File},
    heap,
    race::{Contender, Pace},
    run::Run,
    table::duration,
};

/// A question and what is known about the origin. A decision takes both and returns them.
type Prepared = Option<(Question, Lookup)>;

pub fn report(run: &mut Run, files: &[File]) {
    let wanted = files.iter().filter(|file| file.size == Size::Typical);
    let wanted: Vec<&File> = wanted.filter(|file| run.wants("question", file.name)).collect();
    if wanted.is_empty() {
        return;
    }
    run.say("\nQUESTION, per path as above: a configured bot's question, decided on a copy in memory.\n");
    for file in wanted {
        let mut prepared: Vec<Prepared> = file.paths.iter().map(|path| Some(question(file, path))).collect();
        let paths = prepared.len();
        let contender: Contender<'_> = Box::new(|units| {
            for _ in 0..units {
                for prepared in &mut prepared {
                    black_box(decide(prepared));
                }
            }
        });
        let [time] = run.race(Pace::MEASURE, [Some(contender)]);
        let plain = file.paths.iter().zip(&mut prepared).filter(|(path, _)| is_plain(path));
        let plain: Vec<&mut Prepared> = plain.map(|(_, prepared)| prepared).collect();
        let count = plain.len();
        assert!(count > paths / 2, "most paths are written in one way");
        let requests = heap::requests(|| {
            for prepared in plain {
                black_box(decide(prepared));
            }
        });
        assert_eq!(requests, 0, "{}: a decision allocates", file.name);
        let Some(time) = time.map(|time| time.each(paths)) else {
            continue;
        };
        let what = format!("question, {}", file.name);
        let goal = run
            .goals
            .judge(&what, &duration(time.median), "<1 µs", time.median < 1e3);
        let min = time.min.map_or_else(|| "one try".into(), duration);
        run.say(&format!(
            "{:<19}median {:>9}  min {min:>9}  {goal}; 0 allocations on {count} paths",
            file.name,
            duration(time.median),
        ));
    }
}

fn is_plain(path: &str) -> bool {
    readings(path.as_bytes(), true).all().count() == 1
}

fn decide(prepared: &mut Prepared) -> bool {
    let Some((question, lookup)) = prepared.take() else {
        return false;
    };
    let decided = match question.begin(None) {
        Begun::NeedsCopy(question) => question.decide_at_once(lookup),
        other => panic!("no copy is asked for: {other:?}"),
    };
    let Ok(Ruled::Decided(decision)) = decided else {
        panic!("this takes long");
    };
    let forwarded = decision.forwarded;
    *prepared = decision.lookup.map(|lookup| (decision.question, lookup));
    forwarded
}

fn question(file: &File, path: &str) -> (Question, Lookup) {
    let bot = Bot {
        name: "example".into(),
        user_agents: Vec::new(),
        robots_agents: vec![file.agent.into()],
        enforcement: Enforcement::Enforce,
        exempt_hosts: Vec::new(),
        delay: None,
        purposes: robotgate::usage::Purposes::default(),
        accepted_proofs: AcceptedProofs::default(),
    };
    let terms = Terms {
        https_mode: HttpsMode::Intercept,
        unverifiable: Unverifiable::Deny,
        unidentified: Unidentified::Deny,
        enforcement: Enforcement::Enforce,
        strict_paths: true,
        policy: Policy::default(),
        pace: None,
        usage: robotgate::usage::UsagePolicy::default(),
        generation: 1,
    };
    let question = Question {
        subject: Subject::of(Identity::Bot(Arc::new(bot))),
        target: Target {
            origin: Origin {
                scheme: Scheme::Https,
                host: Host::Name("www.example.com".into()),
                port: 443,
            },
            path: path.into(),
            names_user: false,
        },
        scope: Scope::Path { alone: true },
        terms,
    };
    (question, Lookup::given(&file.file, SystemTime::now(), &terms.policy))
}
