//! The question that a request asks, and how it is decided.
//!
//! [`Question::begin`] decides a question if that needs no robots.txt. Otherwise, it returns [`Undecided`]. Its
//! `decide` takes the robots.txt copy from the cache, as a [`Lookup`]. [`Question::before_interception`] is the only
//! other function that returns a [`Decision`].

use std::sync::Arc;

use super::{Decision, Reason, RobotsIdentity, UsageReport, Verdict};
use crate::{
    bot::{AgentPattern, Bots, Enforcement, Identity, Proof, Unidentified},
    copy::{Answer, Lookup, Policy},
    origin::{HostPattern, Origin, Reading, Readings, Scheme, Target, asks_for_robots_txt, readings},
    pace::{self, BeyondMax},
    robots::{Agent, Match, RobotsTxt, RuleId, SiteAccess},
    usage::{Purposes, UsagePolicy, Vocabulary},
};

/// Who sends the request, what it requests, and under which configuration.
#[derive(Debug, Clone)]
pub struct Question {
    pub subject: Subject,
    pub target: Target,
    pub scope: Scope,
    pub terms: Terms,
}

/// Who sends the request, and how the client was identified.
#[derive(Debug, Clone)]
pub struct Subject {
    pub identity: Identity<'static>,
    /// Kind of proof: `credential`, `certificate` or `network`, or `failed` if the proof is invalid. `None` without a
    /// proof.
    pub proof: Option<&'static str>,
    /// The name that the configuration gives to the credential, certificate or network. Never a secret.
    pub credential: Option<Box<str>>,
    /// What the bot uses content for.
    pub purposes: Purposes,
}

/// How much of a request is visible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// The path is visible. `alone` is false if the response can concern another resource than the path: the method is
    /// not GET or HEAD, or a field names another resource. This matters only for `/robots.txt`.
    Path { alone: bool },
    /// A CONNECT. Unless robotgate intercepts it, the content is not visible, so the decision applies to the origin as
    /// a whole.
    Tunnel {
        /// The reason that the `[[https.tunnel]]` entry for this host gives. `None` if the host has no such entry.
        exception: Option<Arc<str>>,
    },
}

/// The settings that affect a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    pub https_mode: HttpsMode,
    pub unverifiable: Unverifiable,
    pub unidentified: Unidentified,
    /// Whether the rules must allow the path also in the forms in which common servers may read it
    /// (`robots.strict-paths`).
    pub strict_paths: bool,
    pub policy: Policy,
    /// How fast bots may send requests to a site; `None` for no limits.
    pub pace: Option<pace::Policy>,
    /// What happens if a site forbids a purpose of the bot.
    pub usage: UsagePolicy,
    /// Number of the configuration: 1 at the start, one more with each reload.
    pub generation: u64,
}

/// What happens to a CONNECT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HttpsMode {
    /// robotgate terminates the TLS and decides every request in the tunnel.
    #[default]
    Intercept,
    /// robotgate does not see the content. The decision applies to the whole origin.
    Tunnel,
    /// robotgate refuses every CONNECT.
    Refuse,
}

/// What happens to a tunnel to an origin that allows some paths and disallows others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unverifiable {
    /// The tunnel is refused.
    #[default]
    Deny,
    /// The tunnel is forwarded, and the log says so.
    Allow,
}

/// A decision if it needs no robots.txt, otherwise the question.
#[derive(Debug)]
pub enum Begun {
    Decided(Decision),
    /// A copy of the origin's robots.txt has to decide.
    NeedsCopy(Undecided),
}

/// A question that only the robots.txt can decide.
#[derive(Debug)]
pub struct Undecided(Question);

/// A verdict and its reason, before they are combined with the question into a [`Decision`].
struct Ruling {
    verdict: Verdict,
    reason: Reason,
    rule: Option<RuleId>,
    reading: Option<Reading>,
    /// Whether a tunnel is forwarded although robots.txt allows only some paths, because the configuration accepts
    /// that.
    passes: bool,
    /// Whether the request is forwarded if the bot's enforcement is `report`.
    can_pass: bool,
    /// What the site says about the purposes of the bot; `None` for a bot without purposes.
    usage: Option<Box<UsageReport>>,
}

// === impl Subject ===

impl Subject {
    /// Creates a subject without proof, for callers that only ask how a request would be decided.
    pub fn of(identity: Identity<'_>) -> Self {
        Self {
            purposes: purposes_of(&identity),
            identity: identity.into_owned(),
            proof: None,
            credential: None,
        }
    }

    /// Creates a subject with the given proof.
    pub fn proven(identity: Identity<'_>, proof: &Proof<'_>, bots: &Bots) -> Self {
        let bot = match &identity {
            Identity::Bot(bot) => Some(bot),
            _ => None,
        };
        Self {
            proof: proof.kind(),
            credential: proof.name(bots, bot).map(Into::into),
            purposes: purposes_of(&identity),
            identity: identity.into_owned(),
        }
    }

    /// Returns how the client was identified: by the kind of its proof, otherwise `user-agent` (a configured bot),
    /// `product-token` or `none`.
    pub fn known_by(&self) -> &'static str {
        self.proof.unwrap_or(match self.identity {
            Identity::Bot(_) => "user-agent",
            Identity::Token(_) => "product-token",
            Identity::Unidentified(_) | Identity::Refused(_) => "none",
        })
    }

    /// Returns the entry of the configuration that identified the client: the name of its credential, certificate or
    /// network, or the first of the bot's `user-agents` that matches its User-Agent field. For a bot that is not
    /// configured, returns its product token. `None` if nothing identified the client.
    pub fn matched_by(&self, user_agent: Option<&str>) -> Option<&str> {
        match (&self.identity, self.proof) {
            (_, Some(_)) => self.credential.as_deref(),
            (Identity::Bot(bot), None) => {
                let field = user_agent?.trim_ascii().as_bytes();
                let patterns = &bot.user_agents;
                patterns
                    .iter()
                    .find(|pattern| pattern.matches(field))
                    .map(AgentPattern::as_str)
            }
            (Identity::Token(token), None) => Some(token),
            (Identity::Unidentified(_) | Identity::Refused(_), None) => None,
        }
    }
}

// === impl Question ===

impl Question {
    /// Creates the question of an ordinary request for a URL. Plain HTTP, FTP and intercepted HTTPS are decided by path, and
    /// other HTTPS by the CONNECT that it needs. `exception` is the reason of the host's `[[https.tunnel]]` entry, if there is one.
    pub fn of_url(subject: Subject, target: Target, exception: Option<Arc<str>>, terms: Terms) -> Self {
        let is_path =
            target.origin.scheme != Scheme::Https || (exception.is_none() && terms.https_mode == HttpsMode::Intercept);
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

    /// Replaces the purposes of the bot, if `purposes` is given.
    #[must_use]
    pub fn with_purposes(mut self, purposes: Option<Purposes>) -> Self {
        self.subject.purposes = purposes.unwrap_or(self.subject.purposes);
        self
    }

    /// Decides the question if that needs no robots.txt. `prohibited` says why bots must not reach the origin; `None`
    /// if they may.
    ///
    /// The robots.txt itself may always be fetched (RFC 9309 §2.2.2), an exempt bot is allowed, and an unidentified
    /// client is refused. A client that does not prove which bot it is gets nothing, not even the robots.txt. It does
    /// not learn either which destinations bots may reach.
    pub fn begin(self, prohibited: Option<String>) -> Begun {
        let robots_identity = self.robots_identity();
        let found = match (robots_identity, &prohibited, &self.scope) {
            (RobotsIdentity::Refused(reason @ Reason::Unauthenticated), ..) => Some(Ruling::refused(reason)),
            (_, Some(_), _) => Some(Ruling::refused(Reason::Egress)),
            (_, None, Scope::Tunnel { exception: None }) if self.terms.https_mode == HttpsMode::Refuse => {
                Some(Ruling::refused(Reason::ConnectRefused))
            }
            (_, None, _) if self.target.names_user => Some(Ruling::refused(Reason::FtpLogin)),
            (RobotsIdentity::Refused(reason @ Reason::Identity), ..) => Some(Ruling::refused(reason)),
            (_, None, Scope::Path { alone: true }) if asks_for_robots_txt(&self.target.path) => {
                Some(Ruling::new(Verdict::Allow, Reason::RobotsFile, None))
            }
            (RobotsIdentity::Refused(reason), ..) => Some(Ruling::refused(reason)),
            _ if self.enforcement() == Enforcement::Exempt => Some(Ruling::new(Verdict::Allow, Reason::Exempt, None)),
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

    /// Decides a CONNECT that robotgate will intercept. Refuses it if a required proof is missing or if bots may not
    /// reach the destination. Otherwise returns `None`, because each request in the tunnel gets its own decision.
    pub fn before_interception(self, prohibited: Option<String>) -> Option<Decision> {
        let (reason, prohibited) = match (self.robots_identity(), prohibited) {
            (RobotsIdentity::Refused(reason @ Reason::Unauthenticated), _) => (reason, None),
            (_, prohibited @ Some(_)) => (Reason::Egress, prohibited),
            (_, None) => return None,
        };
        Some(self.into_decision(Ruling::refused(reason), None, prohibited))
    }

    /// Returns the name or names under which the robots.txt is searched for rules. Most clients send no User-Agent with
    /// a CONNECT. If the host is in `[[https.tunnel]]`, the rules for `*` apply to such a client.
    pub(super) fn robots_identity(&self) -> RobotsIdentity<'_> {
        let robots_identity = RobotsIdentity::new(&self.subject.identity, self.terms.unidentified);
        match (robots_identity, &self.scope) {
            (RobotsIdentity::Refused(Reason::Unidentified), Scope::Tunnel { exception: Some(_) }) => {
                RobotsIdentity::Wildcard
            }
            _ => robots_identity,
        }
    }

    /// Returns the first of the bot's `exempt-hosts` that covers the requested host.
    pub(super) fn exempt_host(&self) -> Option<&HostPattern> {
        let host = &self.target.origin.host;
        match self.robots_identity() {
            RobotsIdentity::Bot(bot) => bot.exempt_hosts.iter().find(|pattern| pattern.is_for(host)),
            RobotsIdentity::Token(_) | RobotsIdentity::Wildcard | RobotsIdentity::Refused(_) => None,
        }
    }

    /// Returns the enforcement for this request.
    fn enforcement(&self) -> Enforcement {
        match self.robots_identity() {
            _ if self.exempt_host().is_some() => Enforcement::Exempt,
            RobotsIdentity::Bot(bot) => bot.enforcement,
            RobotsIdentity::Token(_) | RobotsIdentity::Wildcard | RobotsIdentity::Refused(_) => Enforcement::Enforce,
        }
    }

    /// Returns the readings of the path to decide on. robotgate itself decodes the path for an FTP server, so there the
    /// strict readings always count.
    pub(super) fn readings(&self) -> Readings<'_> {
        let is_strict = self.terms.strict_paths || self.target.origin.scheme == Scheme::Ftp;
        readings(self.target.decided_path(), is_strict)
    }

    /// Finds the ruling. Returns `None` if that takes more work than `budget`.
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
        // If the path is disallowed, it does not matter what the site says about uses.
        let mut usage = usage.filter(|_| allowed);
        if let Some(usage) = &mut usage
            && self.add_usage_of_path(usage, agent, &readings, &mut left).is_none()
        {
            // The budget is used up. If what the site says about uses cannot refuse the request, decide without it, but
            // only if the budget was the largest. Otherwise a replay could decide differently.
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

    /// Decides a tunnel, whose paths are not visible. `passes` says whether it is forwarded if only some paths are
    /// allowed.
    fn find_site_access(
        &self,
        agent: Agent<'_>,
        by_last_copy: bool,
        passes: bool,
        mut usage: Option<Box<UsageReport>>,
    ) -> Ruling {
        // If every path has the same verdict, the decision names the rule that matches `/`.
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
            // `settle_usage` turns this into a deny, because the site forbids the use.
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
        let is_reported = enforcement == Enforcement::Report && found.can_pass;
        let mut decision = Decision {
            verdict: found.verdict,
            reason: found.reason,
            enforcement,
            forwarded: found.verdict == Verdict::Allow || found.passes || is_reported,
            rule: found.rule,
            reading: found.reading,
            lookup,
            prohibited,
            deferral: None,
            usage: found.usage,
            question: self,
        };
        if let Some(usage) = &decision.usage
            && (usage.refuses() && !usage.is_partial || !decision.wants_tdmrep())
        {
            decision.settle_usage();
        }
        let may_be_too_slow = |pace: pace::Policy| decision.forwarded && pace.beyond_max == BeyondMax::Refuse;
        match decision.question.terms.pace.is_some_and(may_be_too_slow) {
            true => match decision.limits() {
                Err(too_long) => decision.too_slow(too_long),
                Ok(_) => decision,
            },
            false => decision,
        }
    }
}

// === impl Undecided ===

impl Undecided {
    /// Returns the origin whose robots.txt decides.
    pub fn origin(&self) -> &Origin {
        &self.0.target.origin
    }

    /// Decides with the robots.txt that was looked up. Denies the request if this takes more work than [`BUDGET`].
    pub fn decide(self, lookup: Lookup) -> Decision {
        let found = self.0.find(lookup.answer(&self.0.terms.policy), BUDGET);
        let found = found.unwrap_or_else(|| Ruling::new(Verdict::Deny, Reason::TooComplex, None));
        self.0.into_decision(found, Some(lookup), None)
    }

    /// Decides like [`decide`](Self::decide), but only if that takes a few milliseconds at most. Only a robots.txt and
    /// a path that were written to be slow take longer.
    ///
    /// # Errors
    /// Fails if deciding would take longer. The error returns the question and the lookup.
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
            usage: None,
        }
    }

    /// Creates the ruling for a refusal that does not come from robots.txt, so that `report` does not affect it.
    fn refused(reason: Reason) -> Self {
        Self {
            can_pass: false,
            ..Self::new(Verdict::Deny, reason, None)
        }
    }
}

/// Returns the rules that decide. The `bool` is true if they come from an old copy, because the robots.txt is
/// unreachable.
///
/// # Errors
/// Fails if there are no rules. The error contains the verdict for all paths and its reason.
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

/// A path can be read in several ways ([`Readings`]). The first reading that the rules disallow decides. If none is
/// disallowed, the path as sent decides. Returns this reading and the rule that matches it. Returns `None` if all
/// readings together take more work than `left`; see [`Agent::decide_within`].
fn strictest(agent: Agent<'_>, readings: &Readings<'_>, left: &mut usize) -> Option<(Reading, Match)> {
    let sent = agent.decide_within(&readings.sent, left)?;
    if !sent.allowed {
        return Some((Reading::Sent, sent));
    }
    for reading in readings.all().skip(1) {
        let text = readings.text(reading);
        // Creating a strict reading takes work too, and a path can have a hundred of them.
        *left = left.checked_sub(text.len())?;
        let other = agent.decide_within(&text, left)?;
        if !other.allowed {
            return Some((reading, other));
        }
    }
    Some((Reading::Sent, sent))
}

fn purposes_of(identity: &Identity<'_>) -> Purposes {
    match identity {
        Identity::Bot(bot) => bot.purposes,
        Identity::Token(_) | Identity::Unidentified(_) | Identity::Refused(_) => Purposes::default(),
    }
}

fn reason_of(rule: Option<RuleId>, by_last_copy: bool) -> Reason {
    match (rule, by_last_copy) {
        (_, true) => Reason::LastCopy,
        (Some(_), false) => Reason::Rule,
        (None, false) => Reason::NoRule,
    }
}

/// The maximum work of a decision: the number of bytes searched for patterns with wildcards, over all readings of the
/// request.
///
/// At worst, this takes some twenty milliseconds. Real sites stay far below it: 500 KiB of wildcard rules, as sites
/// write them, add up to 0.3 MB with a path of 16 KB.
pub const BUDGET: usize = 1 << 22;
/// The maximum work of a decision on the thread that serves the request, where it delays other requests: about two
/// milliseconds at worst.
pub const AT_ONCE: usize = 1 << 19;
