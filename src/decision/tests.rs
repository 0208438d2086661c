mod budget;
mod pace;
mod path;
mod reason;
mod robots_identity;
mod tunnel;
mod usage;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::{robots_identity::RobotsIdentity, *};
use crate::{
    bot::{Bot, Cause, Identity, IdentityMismatch, ProofKinds, Unidentified},
    copy::{CacheStatus, Failure, FetchError, Freshness, Meaning, OriginState, Policy},
    robots::Profile,
};

#[derive(Debug, Clone)]
enum Known {
    Rules(Arc<RobotsCopy>),
    NoRobots,
    Soft404,
    Unreachable,
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

    fn lookup(&self) -> Lookup {
        let policy = Policy::default();
        let fetched = |state: OriginState, meaning: Meaning, at| {
            state.after(meaning, 200, Freshness::default(), at, 0.0, &policy)
        };
        let (unknown, now) = (OriginState::unknown(), at(0));
        let (state, at) = match self.clone() {
            Self::Rules(copy) => (fetched(unknown, Meaning::Rules(copy), now), now),
            Self::NoRobots => (fetched(unknown, Meaning::NoRobots, now), now),
            Self::Soft404 => (fetched(unknown, Meaning::Soft404, now), now),
            Self::Unreachable => (unknown, now),
            Self::Failed(failure) => (fetched(unknown, Meaning::Failed(failure), now), now),
            Self::TooLong(failure) => (fetched(unknown, Meaning::Failed(failure), now), at(31)),
            Self::LastCopy(copy, failure) => {
                let known = fetched(unknown, Meaning::Rules(copy), now);
                (fetched(known, Meaning::Failed(failure), at(1)), at(32))
            }
        };
        Lookup {
            state: Arc::new(state),
            status: CacheStatus::Hit,
            waited: Duration::ZERO,
            at,
            pending: false,
        }
    }
}

/// `day` days after the first fetch.
fn at(day: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(2_000_000_000 + day * 86_400)
}

fn rule_line(decision: &Decision) -> Option<u32> {
    decision.rule().map(|rule| rule.line)
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
        exempt_hosts: Vec::new(),
        delay: None,
        purposes: crate::usage::Purposes::default(),
        accepted_proofs: Default::default(),
    }
}

fn question(robots_identity: RobotsIdentity<'_>, path: &str, scope: Scope) -> Question {
    let mut unidentified = Unidentified::Deny;
    let identity = match robots_identity {
        RobotsIdentity::Bot(bot) => Identity::Bot(Arc::new(bot.clone())),
        RobotsIdentity::Token(token) => Identity::Token(token.into()),
        RobotsIdentity::Wildcard => {
            unidentified = Unidentified::Wildcard;
            Identity::Unidentified(Cause::Missing)
        }
        RobotsIdentity::Refused(Reason::Unidentified) => Identity::Unidentified(Cause::Missing),
        RobotsIdentity::Refused(Reason::Identity) => Identity::Refused(IdentityMismatch::Agent),
        RobotsIdentity::Refused(Reason::Unauthenticated) => Identity::Refused(IdentityMismatch::Unproven {
            by: ProofKinds::default(),
        }),
        RobotsIdentity::Refused(reason) => panic!("{reason:?} is not about the identity"),
    };
    Question {
        subject: Subject::of(identity),
        target: Target {
            origin: "https://a.example".parse().expect("an origin"),
            path: path.as_bytes().to_vec(),
            names_user: false,
        },
        scope,
        terms: Terms {
            https_mode: HttpsMode::Tunnel,
            unverifiable: Unverifiable::Deny,
            unidentified,
            enforcement: Enforcement::Enforce,
            strict_paths: true,
            policy: Policy::default(),
            pace: None,
            usage: crate::usage::UsagePolicy::default(),
            generation: 1,
        },
    }
}

const PATH: Scope = Scope::Path { alone: true };

fn decided(question: Question, known: &Known) -> Decision {
    question.decide_with(None, known.lookup())
}

fn undecided(question: Question) -> NeedsCopy {
    match question.begin(None) {
        Begun::NeedsCopy(undecided) => undecided,
        Begun::Decided(decision) => panic!("it needs no copy: {decision:?}"),
    }
}

fn without_copy(question: Question) -> Option<Decision> {
    match question.begin(None) {
        Begun::Decided(decision) => Some(decision),
        Begun::NeedsCopy(_) => None,
    }
}

fn decide(robots_identity: RobotsIdentity<'_>, known: &Known, path: &str) -> Decision {
    decided(question(robots_identity, path, PATH), known)
}

fn tunnel(robots_identity: RobotsIdentity<'_>) -> Question {
    question(robots_identity, "", Scope::Tunnel { exception: None })
}

fn decide_tunnel(robots_identity: RobotsIdentity<'_>, known: &Known, unverifiable_forwards: bool) -> Decision {
    let mut question = tunnel(robots_identity);
    if unverifiable_forwards {
        question.terms.unverifiable = Unverifiable::Allow;
    }
    decided(question, known)
}

fn connect_refused(robots_identity: RobotsIdentity<'_>) -> Decision {
    let mut question = tunnel(robots_identity);
    question.terms.https_mode = HttpsMode::Refuse;
    without_copy(question).expect("a decision without a copy")
}

fn egress(robots_identity: RobotsIdentity<'_>) -> Decision {
    match question(robots_identity, "/", PATH).begin(Some("10.0.0.1 is a private address".to_owned())) {
        Begun::Decided(decision) => decision,
        other => panic!("{other:?}"),
    }
}

fn names_user(robots_identity: RobotsIdentity<'_>) -> Decision {
    let mut question = question(robots_identity, "/", PATH);
    question.target.names_user = true;
    without_copy(question).expect("a decision without a copy")
}

fn before_interception(robots_identity: RobotsIdentity<'_>) -> Option<Decision> {
    tunnel(robots_identity).before_interception(None)
}

const FILE: &str = "\
User-agent: *
Disallow: /private
Allow: /private/open

User-agent: NamedBot
Disallow: /named
";

/// Rules whose patterns are random sequences of `a` and `b`. None of them matches [`slow_path`], but it takes long to
/// find that out.
fn slow_rules(count: usize) -> Known {
    let mut letters = letters();
    let rules = (0..count).map(|_| format!("Disallow: /*{}\n", letters.by_ref().take(40).collect::<String>()));
    Known::rules(&format!("User-agent: *\n{}", rules.collect::<String>()))
}

/// A path that contains every short sequence of `a` and `b`, so that only a full search shows that no rule matches.
fn slow_path() -> String {
    std::iter::once('/')
        .chain(letters().skip(1 << 20).take(1 << 14))
        .collect()
}

/// The same random sequence of `a` and `b` in every run (xorshift).
fn letters() -> impl Iterator<Item = char> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if state >> 63 == 0 { 'a' } else { 'b' }
    })
}
