//! May this bot fetch this? Bot, path and what holds of the origin's robots.txt go in, a
//! [`Decision`] comes out: a verdict and its reason. No I/O and no clock; it allocates only for a path that is spelt oddly.
//!
//! Whether a bot is let through is decided here and nowhere else. What comes to no such question is answered before:
//! a request that nobody can read, and one over a bound of `[proxy]`.

mod reason;

pub use self::reason::Reason;

use crate::{
    bot::{Bot, Enforcement, Identity, Misfit, Unidentified},
    copy::Answer,
    origin::{Reading, Readings},
    robots::{Agent, Match, RobotsTxt, RuleId, Whole},
};

/// What robots.txt says of a request. What happens then is [`Decision::forwards`]'s to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Allow,
    Deny,
    /// Only of a tunnel: the origin allows some paths and disallows others, and which one is
    /// asked for cannot be seen.
    Unverifiable,
}

/// A verdict, why, and the rule where one decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    pub verdict: Verdict,
    pub reason: Reason,
    /// Of the copy that the decision was made on. `None` where no rule matched or none was
    /// looked at.
    pub rule: Option<RuleId>,
    /// On which reading of the path the rules decided. `None` where they did not, or on no path.
    pub reading: Option<Reading>,
    pub enforcement: Enforcement,
    /// Whether the request goes on to the origin.
    pub forwards: bool,
}

/// Who is asking, as a robots.txt sees it.
#[derive(Debug, Clone, Copy)]
pub enum Asker<'a> {
    /// A configured bot: its `robots-agents` are tried in order.
    Bot(&'a Bot),
    /// An unconfigured one, by its product token.
    Token(&'a str),
    /// Nobody in particular: only the rules for `*` apply.
    Wildcard,
    /// Not to be let through at all, for this reason.
    Refused(Reason),
}

// === impl Verdict ===

impl Verdict {
    /// Every verdict.
    pub const ALL: [Verdict; 3] = [Verdict::Allow, Verdict::Deny, Verdict::Unverifiable];

    /// The verdict as the header, the log and the metrics name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Allow => "allow",
            Verdict::Deny => "deny",
            Verdict::Unverifiable => "unverifiable",
        }
    }
}

// === impl Asker ===

impl<'a> Asker<'a> {
    /// What `identity` means to a robots.txt, given what is said of the unidentified.
    pub fn new(identity: &'a Identity<'_>, unidentified: Unidentified) -> Self {
        match (identity, unidentified) {
            (Identity::Bot(bot), _) => Asker::Bot(bot),
            (Identity::Token(token), _) => Asker::Token(token),
            (Identity::Unidentified(_), Unidentified::Wildcard) => Asker::Wildcard,
            (Identity::Unidentified(_), Unidentified::Deny) => Asker::Refused(Reason::Unidentified),
            (Identity::Refused(Misfit::Agent), _) => Asker::Refused(Reason::Identity),
            (Identity::Refused(Misfit::Unproven { .. }), _) => Asker::Refused(Reason::Unauthenticated),
        }
    }

    /// Who is asking by a CONNECT. Most clients send no User-Agent with it; where the operator lets tunnels to the host
    /// through (`is_let_through`), what everybody may do there decides.
    #[must_use]
    pub fn of_connect(self, is_let_through: bool) -> Self {
        match self {
            Asker::Refused(Reason::Unidentified) if is_let_through => Asker::Wildcard,
            asker => asker,
        }
    }

    fn enforcement(self) -> Enforcement {
        match self {
            Asker::Bot(bot) => bot.enforcement,
            Asker::Token(_) | Asker::Wildcard | Asker::Refused(_) => Enforcement::Enforce,
        }
    }

    /// The first of the asker's tokens that has a group of its own in `robots`, and its rules;
    /// else the first token and the rules for `*` (RFC 9309 §2.2.1).
    pub fn pick<'r>(self, robots: &'r RobotsTxt) -> (&'a str, Agent<'r>) {
        let specific = |token: &'a str| Some((token, robots.product(token))).filter(|(_, agent)| agent.is_specific());
        match self {
            Asker::Bot(bot) => bot.robots_agents.iter().find_map(|token| specific(token)),
            Asker::Token(token) => specific(token),
            Asker::Wildcard | Asker::Refused(_) => None,
        }
        .unwrap_or_else(|| (self.token(), robots.agent("*")))
    }

    /// The token that the asker goes by where no robots.txt says otherwise.
    pub fn token(self) -> &'a str {
        match self {
            Asker::Bot(bot) => bot.robots_agents.first().map_or("*", |token| token),
            Asker::Token(token) => token,
            Asker::Wildcard | Asker::Refused(_) => "*",
        }
    }
}

// === impl Decision ===

impl Decision {
    fn new(asker: Asker<'_>, verdict: Verdict, reason: Reason, rule: Option<RuleId>) -> Self {
        let enforcement = asker.enforcement();
        Self {
            verdict,
            reason,
            rule,
            reading: None,
            enforcement,
            forwards: verdict == Verdict::Allow || enforcement == Enforcement::Report,
        }
    }

    /// The decision that needs no copy of the robots.txt, if there is one: the robots.txt itself
    /// may always be fetched (RFC 9309 §2.2.2), an exempt bot is not asked about, and one that
    /// nobody can name is refused. Who does not prove what it says gets not even the robots.txt.
    pub fn without_copy(asker: Asker<'_>, readings: &Readings<'_>) -> Option<Self> {
        let disproven = matches!(asker, Asker::Refused(Reason::Identity | Reason::Unauthenticated));
        if !disproven && readings.is_robots_file {
            return Some(Self::new(asker, Verdict::Allow, Reason::RobotsFile, None));
        }
        Self::of_asker(asker)
    }

    /// As [`Decision::without_copy`], for a tunnel, whose path nobody sees.
    pub fn of_asker(asker: Asker<'_>) -> Option<Self> {
        if asker.enforcement() == Enforcement::Exempt {
            return Some(Self::new(asker, Verdict::Allow, Reason::Exempt, None));
        }
        match asker {
            Asker::Refused(reason) => Some(Self::new(asker, Verdict::Deny, reason, None)),
            Asker::Bot(_) | Asker::Token(_) | Asker::Wildcard => None,
        }
    }

    /// The decision on a path, by what holds of the robots.txt of its origin. One that takes more work than [`BUDGET`]
    /// is a deny.
    pub fn on_path(asker: Asker<'_>, answer: Answer<'_>, readings: &Readings<'_>) -> Self {
        let within = Self::within(BUDGET, asker, answer, readings);
        within.unwrap_or_else(|| Self::new(asker, Verdict::Deny, Reason::TooComplex, None))
    }

    /// As [`Decision::on_path`], where that takes a few milliseconds at most; else `None`. It takes longer only for a
    /// file and a path that are made to be slow.
    pub fn at_once(asker: Asker<'_>, answer: Answer<'_>, readings: &Readings<'_>) -> Option<Self> {
        Self::within(AT_ONCE, asker, answer, readings)
    }

    fn within(budget: usize, asker: Asker<'_>, answer: Answer<'_>, readings: &Readings<'_>) -> Option<Self> {
        let (robots, by_last_copy) = match rules_of(answer) {
            Ok(robots) => robots,
            Err((verdict, reason)) => return Some(Self::on_everything(asker, verdict, reason)),
        };
        let (reading, Match { allowed, rule }) = strictest(asker.pick(robots).1, readings, budget)?;
        let verdict = if allowed { Verdict::Allow } else { Verdict::Deny };
        Some(Self {
            reading: Some(reading),
            ..Self::new(asker, verdict, reason_of(rule, by_last_copy), rule)
        })
    }

    /// The decision on a tunnel: what can be said of the whole origin. `unverifiable_forwards`
    /// settles what happens when that is neither yes nor no.
    pub fn on_tunnel(asker: Asker<'_>, answer: Answer<'_>, unverifiable_forwards: bool) -> Self {
        let (robots, by_last_copy) = match rules_of(answer) {
            Ok(robots) => robots,
            Err((verdict, reason)) => return Self::on_everything(asker, verdict, reason),
        };
        let (_, agent) = asker.pick(robots);
        // The root's rule stands for the whole origin where every path has the same verdict.
        let rule = agent.decide(b"/").rule;
        match agent.whole() {
            Whole::AllAllowed => Self::new(asker, Verdict::Allow, reason_of(rule, by_last_copy), rule),
            Whole::AllDisallowed => Self::new(asker, Verdict::Deny, reason_of(rule, by_last_copy), rule),
            Whole::Mixed => {
                let mut decision = Self::new(asker, Verdict::Unverifiable, Reason::Unverifiable, None);
                decision.forwards |= unverifiable_forwards;
                decision
            }
        }
    }

    /// The decision on a CONNECT that proves something or should, before anything else is known of it: `None` where
    /// the requests inside can still show who they come from.
    pub fn of_connect(asker: Asker<'_>) -> Option<Self> {
        let unproven = matches!(asker, Asker::Refused(Reason::Unauthenticated));
        unproven.then(|| Self::new(asker, Verdict::Deny, Reason::Unauthenticated, None))
    }

    /// The decision on a CONNECT where the configuration has none (`https.mode = "refuse"`).
    pub fn connect_refused(asker: Asker<'_>) -> Self {
        if let Some(unproven) = Self::of_connect(asker) {
            return unproven;
        }
        let mut decision = Self::new(asker, Verdict::Deny, Reason::ConnectRefused, None);
        // No robots rule is in question that `report` could leave unenforced.
        decision.forwards = false;
        decision
    }

    /// The decision on a destination that bots may not reach, whoever asks; but who proves nothing where it is needed
    /// learns nothing of destinations either.
    pub fn egress(asker: Asker<'_>) -> Self {
        if let Some(unproven) = Self::of_connect(asker) {
            return unproven;
        }
        let mut decision = Self::new(asker, Verdict::Deny, Reason::Egress, None);
        // Nor here: there is nowhere that it could be forwarded to.
        decision.forwards = false;
        decision
    }

    /// Where no file decides: the verdict on everything.
    fn on_everything(asker: Asker<'_>, verdict: Verdict, reason: Reason) -> Self {
        match reason {
            Reason::Egress => Self::egress(asker),
            _ => Self::new(asker, verdict, reason, None),
        }
    }
}

/// The rules that decide and whether they are those of the last good copy.
///
/// # Errors
/// The verdict on everything and its reason, where no file decides.
pub(crate) fn rules_of(answer: Answer<'_>) -> Result<(&RobotsTxt, bool), (Verdict, Reason)> {
    match answer {
        Answer::Rules(copy) => Ok((&copy.robots, false)),
        Answer::LastCopy(copy, _) => Ok((&copy.robots, true)),
        Answer::NoRobots => Err((Verdict::Allow, Reason::NoRobots)),
        Answer::Soft404 => Err((Verdict::Allow, Reason::Soft404)),
        Answer::Unreachable(Some(failure)) if failure.is_prohibited() => Err((Verdict::Deny, Reason::Egress)),
        Answer::Unreachable(_) => Err((Verdict::Deny, Reason::Unreachable)),
        Answer::UnreachableTooLong(_) => Err((Verdict::Allow, Reason::UnreachableTooLong)),
    }
}

/// What holds of a known origin, in a word: `rules`; `expired`, where the origin has to be asked before
/// what is known is used; or the reason why no file decides or only an old one does.
pub fn word_for(answer: Answer<'_>) -> &'static str {
    match (answer, rules_of(answer)) {
        (Answer::Unreachable(None), _) => "expired",
        (_, Ok((_, false))) => "rules",
        (_, Ok((_, true))) => Reason::LastCopy.as_str(),
        (_, Err((_, reason))) => reason.as_str(),
    }
}

/// The words of [`word_for`].
pub const WORDS: [&str; 8] = [
    "rules",
    "expired",
    Reason::NoRobots.as_str(),
    Reason::Soft404.as_str(),
    Reason::Unreachable.as_str(),
    Reason::LastCopy.as_str(),
    Reason::UnreachableTooLong.as_str(),
    Reason::Egress.as_str(),
];

/// The reading that decides, and what it comes to: the first that is disallowed; else the one as sent. `None` where all
/// readings together take more work than `budget`; see [`Agent::decide_within`].
fn strictest(agent: Agent<'_>, readings: &Readings<'_>, budget: usize) -> Option<(Reading, Match)> {
    let mut left = budget;
    let sent = agent.decide_within(&readings.sent, &mut left)?;
    if !sent.allowed {
        return Some((Reading::Sent, sent));
    }
    for reading in readings.all().skip(1) {
        let text = readings.text(reading);
        // A strict reading is made for this, so its making counts too: a path may have a hundred of them.
        left = left.checked_sub(text.len())?;
        let other = agent.decide_within(&text, &mut left)?;
        if !other.allowed {
            return Some((reading, other));
        }
    }
    Some((Reading::Sent, sent))
}

/// The work that a decision may take: bytes searched for patterns with wildcards, over all readings of the request.
///
/// At worst this takes some twenty milliseconds. Sites' own files do not come near it: 500 KiB of nothing but wildcard
/// rules, as sites write them, come to 0.3 MB with a path of 16 KB.
pub const BUDGET: usize = 1 << 22;
/// The work of a decision that nobody else has to wait for: about two milliseconds at worst.
const AT_ONCE: usize = 1 << 19;

fn reason_of(rule: Option<RuleId>, by_last_copy: bool) -> Reason {
    match (rule, by_last_copy) {
        (_, true) => Reason::LastCopy,
        (Some(_), false) => Reason::Rule,
        (None, false) => Reason::NoRule,
    }
}

#[cfg(test)]
mod tests;
