mod asker;
mod budget;
mod path;
mod reason;
mod tunnel;

use std::{sync::Arc, time::SystemTime};

use super::*;
use crate::robots::Profile;
use crate::{
    copy::{Failure, FetchError, RobotsCopy},
    origin::readings,
};

/// What holds of an origin, kept so that an [`Answer`] can borrow from it.
#[derive(Debug, Clone)]
enum Known {
    Rules(Arc<RobotsCopy>),
    NoRobots,
    Soft404,
    Unreachable,
    /// It failed, and this is how.
    Failed(Failure),
    LastCopy(Arc<RobotsCopy>, Failure),
    TooLong(Failure),
}

impl Known {
    fn rules(file: &str) -> Self {
        Self::Rules(copy(file))
    }

    fn last_copy(file: &str) -> Self {
        Self::LastCopy(copy(file), FetchError::Status(503).into())
    }

    fn too_long() -> Self {
        Self::TooLong(FetchError::Status(503).into())
    }

    fn prohibited() -> Self {
        Self::Failed(FetchError::Prohibited("10.0.0.1 is a private address".to_owned()).into())
    }

    fn answer(&self) -> Answer<'_> {
        match self {
            Self::Rules(copy) => Answer::Rules(copy),
            Self::NoRobots => Answer::NoRobots,
            Self::Soft404 => Answer::Soft404,
            Self::Unreachable => Answer::Unreachable(None),
            Self::Failed(failure) => Answer::Unreachable(Some(failure)),
            Self::LastCopy(copy, failure) => Answer::LastCopy(copy, failure),
            Self::TooLong(failure) => Answer::UnreachableTooLong(failure),
        }
    }

    /// The line of the rule that `decision` names.
    fn line(&self, decision: &Decision) -> Option<u32> {
        let rule = decision.rule?;
        let copy = self.answer().copy().expect("a rule is of a copy");
        Some(copy.robots.rule(rule).line)
    }
}

fn copy(file: &str) -> Arc<RobotsCopy> {
    Arc::new(RobotsCopy::new(
        Profile::Google,
        file.as_bytes(),
        SystemTime::UNIX_EPOCH,
    ))
}

fn bot(enforcement: Enforcement, robots_agents: &[&str]) -> Bot {
    Bot {
        name: "acme".into(),
        user_agents: Vec::new(),
        robots_agents: robots_agents.iter().map(|token| (*token).into()).collect(),
        enforcement,
        bindings: Default::default(),
    }
}

/// The decision on a request for a path, as the gate takes it.
fn decide(asker: Asker<'_>, known: &Known, path: &str) -> Decision {
    let readings = readings(path.as_bytes(), true);
    Decision::without_copy(asker, &readings).unwrap_or_else(|| Decision::on_path(asker, known.answer(), &readings))
}

/// The decision on a CONNECT, as the gate takes it.
fn decide_tunnel(asker: Asker<'_>, known: &Known, unverifiable_forwards: bool) -> Decision {
    Decision::of_asker(asker).unwrap_or_else(|| Decision::on_tunnel(asker, known.answer(), unverifiable_forwards))
}

const FILE: &str = "\
User-agent: *
Disallow: /private
Allow: /private/open

User-agent: NamedBot
Disallow: /named
";

/// Rules that are slow to search for in [`slow_path`], which none of them matches: words of two letters.
fn slow_rules(count: usize) -> Known {
    let mut letters = letters();
    let rules = (0..count).map(|_| format!("Disallow: /*{}\n", letters.by_ref().take(40).collect::<String>()));
    Known::rules(&format!("User-agent: *\n{}", rules.collect::<String>()))
}

/// A path of 16 KiB that has every short run of the two letters, so that nothing but a search finds out what it lacks.
fn slow_path() -> String {
    std::iter::once('/')
        .chain(letters().skip(1 << 20).take(1 << 14))
        .collect()
}

/// The same letters each time, in no order (xorshift).
fn letters() -> impl Iterator<Item = char> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if state >> 63 == 0 { 'a' } else { 'b' }
    })
}
