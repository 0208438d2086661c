//! The question that a request asks, and how it is decided.
//!
//! [`Question::begin`] decides what needs no copy of the robots.txt; everything else comes back as [`Undecided`] and is
//! decided on a [`Lookup`]. There is no other way to a [`Decision`].

use std::sync::Arc;

use super::{Asker, Decision, Reason, Verdict};
use crate::{
    bot::{Bots, Enforcement, Identity, Proof, Unidentified},
    copy::{Answer, Lookup, Policy},
    origin::{Origin, Reading, Readings, Scheme, Target, asks_for_robots_txt, readings},
    robots::{Agent, Match, RobotsTxt, RuleId, SiteAccess},
};

/// Who asks, for what, and by which terms.
#[derive(Debug, Clone)]
pub struct Question {
    pub subject: Subject,
    pub target: Target,
    pub scope: Scope,
    pub terms: Terms,
}

/// Who asks, and what that is known by.
#[derive(Debug, Clone)]
pub struct Subject {
    pub identity: Identity<'static>,
    /// What was presented: `credential`, `certificate` or `network`, or `failed` where it does not hold. `None` where
    /// nothing was.
    pub proof: Option<&'static str>,
    /// Which credential (never its secret), certificate or network that was, as the configuration names it.
    pub credential: Option<Box<str>>,
}

/// How much of a request is seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Its path. `alone` counts for `/robots.txt` only: the request asks for that and does nothing else (a GET or HEAD
    /// whose fields name no other resource).
    Path { alone: bool },
    /// A CONNECT. Where it is not intercepted, bytes pass unseen, so it is decided for the origin as a whole.
    Tunnel {
        /// Why the configuration lets tunnels to this host through (`[[https.tunnel]]`).
        exception: Option<Arc<str>>,
    },
}

/// What of the configuration decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    pub https_mode: HttpsMode,
    pub unverifiable: Unverifiable,
    pub unidentified: Unidentified,
    /// Whether a path is also decided as common servers read it (`robots.strict-paths`).
    pub strict_paths: bool,
    pub policy: Policy,
    /// Which configuration this is: 1 at the start, one more with each reload.
    pub generation: u64,
}

/// What a CONNECT gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HttpsMode {
    /// robotgate ends the TLS and decides every request inside.
    #[default]
    Intercept,
    /// Bytes pass unseen; only the whole origin is decided.
    Tunnel,
    /// None is taken.
    Refuse,
}

/// What settles a tunnel that cannot be decided for the whole origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unverifiable {
    /// It is refused.
    #[default]
    Deny,
    /// It passes, and the log says how.
    Allow,
}

/// What a question comes to before a copy is looked up.
#[derive(Debug)]
pub enum Begun {
    Decided(Decision),
    /// The copy of the origin decides.
    NeedsCopy(Undecided),
}

/// A question that a copy decides, and that nothing else has decided before.
#[derive(Debug)]
pub struct Undecided(Question);

/// A verdict and its reason, before they become a [`Decision`] together with the question.
struct Ruling {
    verdict: Verdict,
    reason: Reason,
    rule: Option<RuleId>,
    reading: Option<Reading>,
    /// Whether it goes on although it is not allowed, whatever the bot's enforcement.
    passes: bool,
    /// Whether the bot's enforcement can let it go on.
    can_pass: bool,
}

// === impl Subject ===

impl Subject {
    /// Somebody who showed no proof, such as one who only asks what would be decided.
    pub fn of(identity: Identity<'_>) -> Self {
        Self {
            identity: identity.into_owned(),
            proof: None,
            credential: None,
        }
    }

    /// As `proof` shows the client to be.
    pub fn proven(identity: Identity<'_>, proof: &Proof<'_>, bots: &Bots) -> Self {
        let bot = match &identity {
            Identity::Bot(bot) => Some(bot),
            _ => None,
        };
        Self {
            proof: proof.kind(),
            credential: proof.name(bots, bot).map(Into::into),
            identity: identity.into_owned(),
        }
    }

    /// What is known of who asks comes from this: what was presented, else the `user-agent` (a configured bot), its
    /// `product-token`, or `none`.
    pub fn known_by(&self) -> &'static str {
        self.proof.unwrap_or(match self.identity {
            Identity::Bot(_) => "user-agent",
            Identity::Token(_) => "product-token",
            Identity::Unidentified(_) | Identity::Refused(_) => "none",
        })
    }
}

// === impl Question ===

impl Question {
    /// What is asked by a request for a URL that goes the usual way: in the clear or inside an interception by its path,
    /// else by the CONNECT that it needs. `exception` is why the configuration lets tunnels to the host through.
    pub fn of_url(subject: Subject, target: Target, exception: Option<Arc<str>>, terms: Terms) -> Self {
        let is_path =
            target.origin.scheme == Scheme::Http || (exception.is_none() && terms.https_mode == HttpsMode::Intercept);
        Self {
            subject,
            scope: match is_path {
                true => Scope::Path { alone: true },
                false => Scope::Tunnel { exception },
            },
            target,
            terms,
        }
    }

    /// Decides what needs no copy. `prohibited` says why bots may not go to the origin, where they may not.
    ///
    /// The robots.txt itself may always be fetched (RFC 9309 §2.2.2), an exempt bot is not asked about, and one that
    /// nobody can name is refused. Who does not prove what it says gets not even the robots.txt, and learns nothing of
    /// which destinations are open.
    pub fn begin(self, prohibited: Option<String>) -> Begun {
        let asker = self.asker();
        let found = match (asker, &prohibited, &self.scope) {
            (Asker::Refused(reason @ Reason::Unauthenticated), ..) => Some(Ruling::refused(reason)),
            (_, Some(_), _) => Some(Ruling::refused(Reason::Egress)),
            (_, None, Scope::Tunnel { exception: None }) if self.terms.https_mode == HttpsMode::Refuse => {
                Some(Ruling::refused(Reason::ConnectRefused))
            }
            (Asker::Refused(reason @ Reason::Identity), ..) => Some(Ruling::refused(reason)),
            (_, None, Scope::Path { alone: true }) if asks_for_robots_txt(&self.target.path) => {
                Some(Ruling::new(Verdict::Allow, Reason::RobotsFile, None))
            }
            (Asker::Refused(reason), ..) => Some(Ruling::refused(reason)),
            _ if asker.enforcement() == Enforcement::Exempt => Some(Ruling::new(Verdict::Allow, Reason::Exempt, None)),
            _ => None,
        };
        match found {
            Some(found) => {
                let prohibited = prohibited.filter(|_| found.reason == Reason::Egress);
                Begun::Decided(self.into_decision(found, None, prohibited))
            }
            None => Begun::NeedsCopy(Undecided(self)),
        }
    }

    /// The decision on a CONNECT that is to be intercepted: who proves nothing where a proof is needed is refused, and so is
    /// a closed destination. Everything else is for the requests inside, each of which is decided on its own.
    pub fn before_interception(self, prohibited: Option<String>) -> Option<Decision> {
        let (reason, prohibited) = match (self.asker(), prohibited) {
            (Asker::Refused(reason @ Reason::Unauthenticated), _) => (reason, None),
            (_, prohibited @ Some(_)) => (Reason::Egress, prohibited),
            (_, None) => return None,
        };
        Some(self.into_decision(Ruling::refused(reason), None, prohibited))
    }

    /// Who asks. Most clients send no User-Agent with a CONNECT; where the operator lets tunnels to the host through, what
    /// everybody may do there decides.
    pub(super) fn asker(&self) -> Asker<'_> {
        let asker = Asker::new(&self.subject.identity, self.terms.unidentified);
        match (asker, &self.scope) {
            (Asker::Refused(Reason::Unidentified), Scope::Tunnel { exception: Some(_) }) => Asker::Wildcard,
            _ => asker,
        }
    }

    /// `None` where finding out takes more work than `budget`.
    fn find(&self, answer: Answer<'_>, budget: usize) -> Option<Ruling> {
        let (robots, by_last_copy) = match rules_of(answer) {
            Ok(rules) => rules,
            Err((_, reason @ Reason::Egress)) => return Some(Ruling::refused(reason)),
            Err((verdict, reason)) => return Some(Ruling::new(verdict, reason, None)),
        };
        let (_, agent) = self.asker().pick(robots);
        if let Scope::Tunnel { exception } = &self.scope {
            let passes = exception.is_some() || self.terms.unverifiable == Unverifiable::Allow;
            return Some(find_site_access(agent, by_last_copy, passes));
        }
        let readings = readings(self.target.decided_path(), self.terms.strict_paths);
        let (reading, Match { allowed, rule }) = strictest(agent, &readings, budget)?;
        let verdict = if allowed { Verdict::Allow } else { Verdict::Deny };
        Some(Ruling {
            reading: Some(reading),
            ..Ruling::new(verdict, reason_of(rule, by_last_copy), rule)
        })
    }

    fn into_decision(self, found: Ruling, lookup: Option<Lookup>, prohibited: Option<String>) -> Decision {
        let enforcement = self.asker().enforcement();
        let is_reported = enforcement == Enforcement::Report && found.can_pass;
        Decision {
            verdict: found.verdict,
            reason: found.reason,
            enforcement,
            forwarded: found.verdict == Verdict::Allow || found.passes || is_reported,
            rule: found.rule,
            reading: found.reading,
            lookup,
            prohibited,
            question: self,
        }
    }
}

// === impl Undecided ===

impl Undecided {
    /// The origin whose copy decides.
    pub fn origin(&self) -> &Origin {
        &self.0.target.origin
    }

    /// Decides on what was looked up. A decision that takes more work than [`BUDGET`] is a deny.
    pub fn decide(self, lookup: Lookup) -> Decision {
        let found = self.0.find(lookup.answer(&self.0.terms.policy), BUDGET);
        let found = found.unwrap_or_else(|| Ruling::new(Verdict::Deny, Reason::TooComplex, None));
        self.0.into_decision(found, Some(lookup), None)
    }

    /// As [`decide`](Self::decide), where that takes a few milliseconds at most. It takes longer only for a file and a path
    /// that are made to be slow.
    ///
    /// # Errors
    /// It takes longer; what was asked and looked up comes back.
    pub fn decide_at_once(self, lookup: Lookup) -> Result<Decision, Box<(Self, Lookup)>> {
        match self.0.find(lookup.answer(&self.0.terms.policy), AT_ONCE) {
            Some(found) => Ok(self.0.into_decision(found, Some(lookup), None)),
            None => Err(Box::new((self, lookup))),
        }
    }
}

// === impl Ruling ===

impl Ruling {
    fn new(verdict: Verdict, reason: Reason, rule: Option<RuleId>) -> Self {
        Self {
            verdict,
            reason,
            rule,
            reading: None,
            passes: false,
            can_pass: true,
        }
    }

    /// Refused for what no robots.txt says, so `report` leaves nothing unenforced.
    fn refused(reason: Reason) -> Self {
        Self {
            can_pass: false,
            ..Self::new(Verdict::Deny, reason, None)
        }
    }
}

/// What can be said of the whole origin. `passes` settles what happens where that is neither yes nor no.
fn find_site_access(agent: Agent<'_>, by_last_copy: bool, passes: bool) -> Ruling {
    // The root's rule stands for the whole origin where every path has the same verdict.
    let rule = agent.decide(b"/").rule;
    let reason = reason_of(rule, by_last_copy);
    match agent.site_access() {
        SiteAccess::AllAllowed => Ruling::new(Verdict::Allow, reason, rule),
        SiteAccess::AllDisallowed => Ruling::new(Verdict::Deny, reason, rule),
        SiteAccess::Mixed => Ruling {
            passes,
            ..Ruling::new(Verdict::Unverifiable, Reason::Unverifiable, None)
        },
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

fn reason_of(rule: Option<RuleId>, by_last_copy: bool) -> Reason {
    match (rule, by_last_copy) {
        (_, true) => Reason::LastCopy,
        (Some(_), false) => Reason::Rule,
        (None, false) => Reason::NoRule,
    }
}

/// The work that a decision may take: bytes searched for patterns with wildcards, over all readings of the request.
///
/// At worst this takes some twenty milliseconds. Sites' own files do not come near it: 500 KiB of nothing but wildcard
/// rules, as sites write them, come to 0.3 MB with a path of 16 KB.
pub const BUDGET: usize = 1 << 22;
/// The work of a decision that nobody else has to wait for: about two milliseconds at worst.
const AT_ONCE: usize = 1 << 19;
