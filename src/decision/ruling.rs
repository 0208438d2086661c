//! How a question is decided, in up to three steps.
//!
//! [`Question::begin`] needs no robots.txt, [`NeedsCopy`] needs what the cache knows of it, and [`NeedsTdmrep`] needs
//! the site's `tdmrep.json`. Each step returns a [`Decision`] or the next step; [`Question::decide`] does all of them.

use std::convert::Infallible;

use super::{
    AT_ONCE, BUDGET, Decision, NeedsTdmrep, Question, Reason, RobotsIdentity, Scope, Tdmrep, Unverifiable, UsageReport,
    Verdict, question::HttpsMode,
};
use crate::{
    bot::Enforcement,
    copy::{Answer, Lookup},
    origin::{Origin, Reading, Readings, asks_for_robots_txt},
    pace::{self, BeyondMax},
    robots::{Agent, Match, RobotsTxt, RuleId, SiteAccess},
    usage::Vocabulary,
};

/// The decision, or the question if it needs the robots.txt.
#[derive(Debug)]
pub enum Begun {
    Decided(Decision),
    NeedsCopy(NeedsCopy),
}

/// A question that only the robots.txt can decide.
#[derive(Debug)]
pub struct NeedsCopy(Question);

/// The decision, or a provisional one, which the site's `tdmrep.json` can still change.
#[derive(Debug)]
pub enum Ruled {
    Decided(Decision),
    NeedsTdmrep(NeedsTdmrep),
}

/// A verdict and its reason, without the question.
struct Ruling {
    verdict: Verdict,
    reason: Reason,
    rule: Option<RuleId>,
    reading: Option<Reading>,
    /// Whether a tunnel is forwarded although the verdict is `unverifiable`.
    passes: bool,
    /// What the site says about the purposes of the bot, if the bot has purposes and they matter.
    usage: Option<Box<UsageReport>>,
}

// === impl Question ===

impl Question {
    /// Decides the question. `robots` looks up the origin's robots.txt, and `tdmrep` the origin's `tdmrep.json`. Each
    /// is called only if its file matters. `prohibited` says why bots must not reach the origin.
    ///
    /// # Errors
    /// Fails if `robots` or `tdmrep` fails.
    pub fn decide<'t, E>(
        self,
        prohibited: Option<String>,
        robots: impl FnOnce(&Origin) -> Result<Lookup, E>,
        tdmrep: impl FnOnce(&Origin) -> Result<Tdmrep<'t>, E>,
    ) -> Result<Decision, E> {
        let undecided = match self.begin(prohibited) {
            Begun::Decided(decision) => return Ok(decision),
            Begun::NeedsCopy(undecided) => undecided,
        };
        let lookup = robots(undecided.origin())?;
        match undecided.decide(lookup) {
            Ruled::Decided(decision) => Ok(decision),
            Ruled::NeedsTdmrep(undecided) => {
                let tdmrep = tdmrep(undecided.origin())?;
                Ok(undecided.complete(tdmrep))
            }
        }
    }

    /// Decides the question with `lookup`, without the site's `tdmrep.json`.
    pub fn decide_with(self, prohibited: Option<String>, lookup: Lookup) -> Decision {
        let Ok(decision) = self.decide(prohibited, |_| Ok::<_, Infallible>(lookup), |_| Ok(Tdmrep::NotAsked));
        decision
    }

    /// Decides the question if that needs no robots.txt: refuses the request, or else allows it if it is for the
    /// robots.txt itself (RFC 9309 §2.2.2) or from an exempt bot.
    pub fn begin(self, prohibited: Option<String>) -> Begun {
        let robots_identity = self.robots_identity();
        let found = match (robots_identity, &self.scope) {
            _ if let Some(ruling) = self.out_of_bounds(prohibited.as_ref()) => ruling,
            (_, Scope::Tunnel { exception: None }) if self.terms.https_mode == HttpsMode::Refuse => {
                Ruling::refused(Reason::ConnectRefused)
            }
            _ if self.target.names_user => Ruling::refused(Reason::FtpLogin),
            (RobotsIdentity::Refused(reason @ Reason::Identity), _) => Ruling::refused(reason),
            (_, Scope::Path { alone: true }) if asks_for_robots_txt(&self.target.path) => {
                Ruling::new(Verdict::Allow, Reason::RobotsFile, None)
            }
            (RobotsIdentity::Refused(reason), _) => Ruling::refused(reason),
            _ if self.enforcement() == Enforcement::Exempt => Ruling::new(Verdict::Allow, Reason::Exempt, None),
            _ => return Begun::NeedsCopy(NeedsCopy(self)),
        };
        Begun::Decided(self.into_decision(found, None, prohibited))
    }

    /// Returns the decision to refuse a CONNECT that robotgate would intercept. `None` if the CONNECT is not refused:
    /// each request in the tunnel then gets its own decision.
    pub fn before_interception(self, prohibited: Option<String>) -> Option<Decision> {
        let refused = self.out_of_bounds(prohibited.as_ref())?;
        Some(self.into_decision(refused, None, prohibited))
    }

    /// Refuses a client without a required proof, and a destination that bots must not reach. Checks the client first,
    /// so that a client without a proof does not learn which destinations bots may reach.
    fn out_of_bounds(&self, prohibited: Option<&String>) -> Option<Ruling> {
        match (self.robots_identity(), prohibited) {
            (RobotsIdentity::Refused(reason @ Reason::Unauthenticated), _) => Some(Ruling::refused(reason)),
            (_, Some(_)) => Some(Ruling::refused(Reason::Egress)),
            (_, None) => None,
        }
    }

    /// Decides with the robots.txt that `answer` contains. Returns `None` if that takes more work than `budget`.
    fn find(&self, answer: Answer<'_>, budget: usize) -> Option<Ruling> {
        let usage = self.usage_report();
        let (robots, by_last_copy) = match rules_of(answer) {
            Ok(rules) => rules,
            Err((_, reason @ Reason::Egress)) => return Some(Ruling::refused(reason)),
            Err((verdict, reason)) => {
                return Some(Ruling {
                    usage,
                    ..Ruling::new(verdict, reason, None)
                });
            }
        };
        let (_, agent) = self.robots_identity().pick(robots);
        if let Scope::Tunnel { exception } = &self.scope {
            let passes = exception.is_some() || self.terms.unverifiable == Unverifiable::Allow;
            return Some(self.find_site_access(agent, by_last_copy, passes, usage));
        }
        let readings = self.readings();
        let mut left = budget;
        let (reading, Match { allowed, rule }) = strictest(agent, &readings, &mut left)?;
        let verdict = if allowed { Verdict::Allow } else { Verdict::Deny };
        // If the path is disallowed, statements about uses do not matter.
        let mut usage = usage.filter(|_| allowed);
        if let Some(usage) = &mut usage
            && self.add_usage_of_path(usage, agent, &readings, &mut left).is_none()
        {
            // With less than `BUDGET`, return `None`: the caller then decides again with `BUDGET`. With `BUDGET`,
            // return `None` only if the statements could make robotgate refuse the request; otherwise, leave them out.
            if budget < BUDGET || self.terms.usage.can_refuse(&Vocabulary::IN_ROBOTS_TXT) {
                return None;
            }
            usage.said.clear();
        }
        Some(Ruling {
            reading: Some(reading),
            usage,
            ..Ruling::new(verdict, reason_of(rule, by_last_copy), rule)
        })
    }

    /// Decides on a tunnel. `passes` says whether the tunnel is forwarded if the verdict is `unverifiable`.
    fn find_site_access(
        &self,
        agent: Agent<'_>,
        by_last_copy: bool,
        passes: bool,
        mut usage: Option<Box<UsageReport>>,
    ) -> Ruling {
        // If all paths have the same verdict, the decision names the rule that matches `/`.
        let rule = agent.decide(b"/").rule;
        let reason = reason_of(rule, by_last_copy);
        let site_access = agent.site_access();
        if site_access == SiteAccess::AllDisallowed {
            return Ruling::new(Verdict::Deny, reason, rule);
        }
        if let Some(usage) = &mut usage {
            self.add_usage_of_site(usage, agent);
        }
        let is_partial = usage.as_deref().is_some_and(|usage| usage.is_partial);
        let is_refused = !is_partial && usage.as_deref().is_some_and(UsageReport::refuses);
        match site_access {
            // `settle_usage` turns this `allow` into a `deny`.
            _ if is_refused => Ruling {
                usage,
                ..Ruling::new(Verdict::Allow, reason, None)
            },
            SiteAccess::AllAllowed if !is_partial => Ruling {
                usage,
                ..Ruling::new(Verdict::Allow, reason, rule)
            },
            _ => Ruling {
                passes,
                usage,
                ..Ruling::new(Verdict::Unverifiable, Reason::Unverifiable, None)
            },
        }
    }

    fn into_decision(self, found: Ruling, lookup: Option<Lookup>, prohibited: Option<String>) -> Decision {
        let enforcement = self.enforcement();
        Decision {
            verdict: found.verdict,
            reason: found.reason,
            enforcement,
            forwarded: found.verdict == Verdict::Allow || found.passes || found.reason.is_only_reported(enforcement),
            rule: found.rule,
            reading: found.reading,
            lookup,
            prohibited: prohibited.filter(|_| found.reason == Reason::Egress),
            deferral: None,
            usage: found.usage,
            question: self,
        }
    }
}

// === impl NeedsCopy ===

impl NeedsCopy {
    /// Returns the origin whose robots.txt decides.
    pub fn origin(&self) -> &Origin {
        &self.0.target.origin
    }

    /// Decides with the robots.txt that was looked up. Denies the request if this takes more work than [`BUDGET`].
    pub fn decide(self, lookup: Lookup) -> Ruled {
        let found = self.0.find(lookup.answer(&self.0.terms.policy), BUDGET);
        let found = found.unwrap_or_else(|| Ruling::refused(Reason::TooComplex));
        self.ruled(found, lookup)
    }

    /// Decides like [`decide`](Self::decide), but only if that takes a few milliseconds at most.
    ///
    /// # Errors
    /// Returns the question and `lookup` if deciding would take longer.
    pub fn decide_at_once(self, lookup: Lookup) -> Result<Ruled, Box<(Self, Lookup)>> {
        match self.0.find(lookup.answer(&self.0.terms.policy), AT_ONCE) {
            Some(found) => Ok(self.ruled(found, lookup)),
            None => Err(Box::new((self, lookup))),
        }
    }

    fn ruled(self, found: Ruling, lookup: Lookup) -> Ruled {
        let mut decision = self.0.into_decision(found, Some(lookup), None);
        if let Some(usage) = &decision.usage
            && (usage.refuses() && !usage.is_partial || !decision.needs_tdmrep())
        {
            decision.settle_usage();
        }
        let may_be_too_slow = |pace: pace::Policy| decision.forwarded && pace.beyond_max == BeyondMax::Refuse;
        if decision.question.terms.pace.is_some_and(may_be_too_slow)
            && let Err(too_long) = decision.limits()
        {
            decision.prohibited = Some(too_long.to_string());
            decision.refuse(Verdict::Deny, Reason::Pace);
        }
        match decision.needs_tdmrep() {
            true => Ruled::NeedsTdmrep(NeedsTdmrep(decision)),
            false => Ruled::Decided(decision),
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
            usage: None,
        }
    }

    fn refused(reason: Reason) -> Self {
        Self::new(Verdict::Deny, reason, None)
    }
}

/// Returns the rules that decide, and whether they come from an old copy because the robots.txt is unreachable. Without
/// rules, the error is the verdict for all paths and its reason.
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

/// Returns the first reading of the path that the rules disallow, or else the path as sent. Returns `None` if that
/// takes more work than `left`.
fn strictest(agent: Agent<'_>, readings: &Readings<'_>, left: &mut usize) -> Option<(Reading, Match)> {
    let sent = agent.decide_within(&readings.sent, left)?;
    if !sent.allowed {
        return Some((Reading::Sent, sent));
    }
    for reading in readings.all().skip(1) {
        let text = readings.text(reading);
        // Creating a reading takes work too, and a path can have more than a hundred readings.
        *left = left.checked_sub(text.len())?;
        let other = agent.decide_within(&text, left)?;
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
