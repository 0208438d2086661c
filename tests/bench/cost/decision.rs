//! Decisions with a robots.txt copy in memory.

use std::{hint::black_box, sync::Arc, time::SystemTime};

use robotgate::{
    bot::{AcceptedProofs, Bot, Enforcement, Identity, Unidentified},
    copy::{Lookup, Policy},
    decision::{Begun, HttpsMode, Question, Ruled, Scope, Subject, Terms, Unverifiable},
    origin::{Host, Origin, Scheme, Target},
};

use super::peers::ROBOTS;

/// Decides `times` times, and returns by how much `counter` increases.
pub fn run(times: u64, counter: fn() -> u64) -> u64 {
    let mut input = (
        question(),
        Lookup::given(ROBOTS.as_bytes(), SystemTime::now(), &Policy::default()),
    );
    let before = counter();
    for _ in 0..times {
        input = black_box(decide(input));
    }
    counter() - before
}

fn decide((question, lookup): (Question, Lookup)) -> (Question, Lookup) {
    let Begun::NeedsCopy(question) = question.begin(None) else {
        panic!("a copy is needed");
    };
    let Ok(Ruled::Decided(decision)) = question.decide_at_once(lookup) else {
        panic!("this takes long");
    };
    assert!(decision.forwarded);
    (decision.question, decision.lookup.expect("it was given one"))
}

fn question() -> Question {
    let bot = Bot {
        name: "example".into(),
        user_agents: Vec::new(),
        robots_agents: vec!["ExampleBot".into()],
        enforcement: Enforcement::Enforce,
        exempt_hosts: Vec::new(),
        delay: None,
        purposes: robotgate::usage::Purposes::default(),
        accepted_proofs: AcceptedProofs::default(),
    };
    Question {
        subject: Subject::of(Identity::Bot(Arc::new(bot))),
        target: Target {
            origin: Origin {
                scheme: Scheme::Http,
                host: Host::Name("site.example".into()),
                port: 80,
            },
            path: "/shop/items/42?colour=blue".into(),
            names_user: false,
        },
        scope: Scope::Path { alone: true },
        terms: Terms {
            https_mode: HttpsMode::Intercept,
            unverifiable: Unverifiable::Deny,
            unidentified: Unidentified::Deny,
            enforcement: Enforcement::Enforce,
            strict_paths: true,
            policy: Policy::default(),
            pace: None,
            usage: robotgate::usage::UsagePolicy::default(),
            generation: 1,
        },
    }
}
