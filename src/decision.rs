//! Decides whether a bot may fetch a URL: answers a [`Question`] with a [`Decision`], which has a verdict, its reason,
//! and the data that it is based on. This module does no I/O and reads no clock.
//!
//! How a request is decided: [`Question::begin`] (in `ruling`) makes the decisions that need no robots.txt. For the
//! others, `Question::find` lists the readings of the path (`origin::readings`). `strictest` asks
//! [`Agent::decide_within`](crate::robots::Agent::decide_within) about each of them, and takes the first that the rules
//! disallow, or else the path as sent.
//!
//! All decisions are made here: for the proxy, the API, `explain`, replays and the `[[expect]]` cases of a
//! configuration. Everything that reports a decision, such as the log, uses the same [`Decision`].

mod kind;
mod question;
mod reason;
mod response_fields;
mod robots_identity;
mod ruling;
mod tdmrep;
mod texts;
mod usage;

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use self::robots_identity::RobotsIdentity;
#[cfg(test)]
pub(crate) use self::ruling::rules_of;
pub use self::{
    kind::{DecisionKind, Handling},
    question::{HttpsMode, Question, Scope, Subject, Terms, Unverifiable},
    reason::{Basis, Reason, RefusalStatus},
    ruling::{Begun, NeedsCopy, Ruled},
    tdmrep::{NeedsTdmrep, Tdmrep, TdmrepAnswer},
    texts::{DecisionTexts, MAX_TEXT},
    usage::{TdmrepState, UsageReport},
};
use crate::{
    bot::{Enforcement, Identity, Proof},
    copy::{Answer, Lookup, RobotsCopy, SourceFetch},
    origin::{HostPattern, Reading, Scheme, Target},
    pace::{Cause, CrawlDelay, CrawlDelayTooLong, PaceLimits},
    robots::{Agent, Choice, Rule, RuleId},
    text::words,
};

words! {
    /// The result of a decision. [`Decision::forwarded`] says whether the request is forwarded.
    pub enum Verdict {
        Allow = "allow",
        Deny = "deny",
        /// For a tunnel only: what the site allows depends on the path, and the requested path is not visible.
        Unverifiable = "unverifiable",
        /// The request would be forwarded, but the pace does not let it be sent yet ([`Reason::Pace`]).
        // This verdict depends on the time of the request, so no `[[expect]]` case can expect it.
        #[serde(skip_deserializing)]
        Defer = "defer",
    }
}

/// A verdict, its reason, and the data that it is based on.
#[derive(Debug, Clone)]
pub struct Decision {
    pub verdict: Verdict,
    pub reason: Reason,
    pub enforcement: Enforcement,
    /// Whether the request is forwarded to the origin. With the enforcement `report`, this is true even if the site
    /// disallows the request, or if the request names no bot.
    pub forwarded: bool,
    /// The rule that decided, if there is one.
    pub rule: Option<RuleId>,
    /// The form of the path that decided, even if no rule matched it. `None` for a tunnel, and if rules did not decide.
    pub reading: Option<Reading>,
    pub question: Question,
    /// What the cache knew of the origin's robots.txt, if it was looked up.
    pub lookup: Option<Lookup>,
    /// Why bots may not reach the origin, if this was known before the robots.txt was looked up. Or, for a `deny` with
    /// the reason `pace`, that the site's `Crawl-delay` is too long.
    pub prohibited: Option<String>,
    /// Set if the verdict is `defer`.
    deferral: Option<Deferral>,
    /// What the site says about the purposes of the bot, if the decision depended on them.
    pub usage: Option<Box<UsageReport>>,
}

/// What exempts a request from robots.txt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exemption<'a> {
    /// An entry of the bot's `exempt-hosts`.
    Host(&'a HostPattern),
    /// The bot's `enforcement`.
    Enforcement,
}

/// A request came at the time `at`, but the pace does not let it be sent before `not_before`. `cause` says why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deferral {
    pub at: SystemTime,
    pub not_before: SystemTime,
    pub cause: Cause,
}

// === impl Decision ===

impl Decision {
    /// Adds what the cache knows of the robots.txt to a decision that did not need it.
    #[must_use]
    pub fn with_lookup(self, lookup: Lookup) -> Self {
        Self {
            lookup: Some(lookup),
            ..self
        }
    }

    /// Returns the decision for a request that would be forwarded, but may not be sent yet.
    #[must_use]
    pub fn deferred(mut self, deferral: Deferral) -> Self {
        self.deferral = Some(deferral);
        self.refuse(Verdict::Defer, Reason::Pace);
        self
    }

    /// Sets a verdict other than `allow`, and its reason. The request is then refused, unless the enforcement `report`
    /// still lets it be forwarded. Removes the rule and the reading, which led to the earlier verdict.
    fn refuse(&mut self, verdict: Verdict, reason: Reason) {
        (self.verdict, self.reason) = (verdict, reason);
        self.forwarded = reason.is_only_reported(self.enforcement);
        (self.rule, self.reading) = (None, None);
        // With the enforcement `report`, an earlier step may have recorded a forbidden use without refusing the
        // request. If the request is refused for another reason, that use must not appear as the cause.
        if reason != Reason::Usage
            && let Some(usage) = &mut self.usage
        {
            usage.refused = None;
        }
    }

    /// Returns how fast the bot may send requests to the site; `None` for no limits. A `Crawl-delay` counts only
    /// if `[pace]` enforces it and the bot's enforcement is `enforce`.
    ///
    /// # Errors
    /// Fails if the site's `Crawl-delay` is longer than the configuration accepts.
    pub fn limits(&self) -> Result<Option<PaceLimits>, CrawlDelayTooLong> {
        let Some(policy) = &self.question.terms.pace else {
            return Ok(None);
        };
        let bot_delay = match &self.question.subject.identity {
            Identity::Bot(bot) => bot.delay,
            _ => None,
        };
        let is_enforced = policy.crawl_delay == CrawlDelay::Enforce && self.enforcement == Enforcement::Enforce;
        let crawl_delay = is_enforced.then(|| self.crawl_delay()).flatten();
        policy.limits(bot_delay, crawl_delay).map(Some)
    }

    fn crawl_delay(&self) -> Option<Duration> {
        let (token, agent) = self.matched_agent()?;
        let choice = match agent.is_specific() {
            true => Choice::Product(token),
            false => Choice::Everyone,
        };
        self.copy()?.robots.crawl_delay(choice)
    }

    /// Returns the explanation of the verdict, in words for people. It does not quote the rule.
    pub fn sentence(&self) -> &'static str {
        match (self.reason, self.verdict, self.target().origin.scheme) {
            (Reason::Rule, Verdict::Allow, _) => "A rule of the site's robots.txt allows this URL.",
            // Almost all requests for an https:// URL come through a CONNECT, so the sentence mentions it.
            (Reason::Unauthenticated, _, Scheme::Https) if self.sent_invalid_credential() => {
                "The client's credential is not valid. Inside a CONNECT, the credential that came with the CONNECT \
                 applies."
            }
            (Reason::Unauthenticated, ..) if self.sent_invalid_credential() => "The client's credential is not valid.",
            (Reason::Unauthenticated, _, Scheme::Https) => {
                "The client does not prove which bot it is: it lacks a required proof, or its credential is invalid. \
                 Inside a CONNECT, the proof that came with the CONNECT applies."
            }
            (Reason::Pace, Verdict::Defer, _) => match self.pace_cause() {
                Some(cause) => sentence_of(cause),
                None => Reason::Pace.sentence(),
            },
            (Reason::Pace, ..) => {
                "The site's robots.txt asks for a longer time between two requests than this proxy accepts."
            }
            (Reason::Unidentified, ..) => match &self.question.subject.identity {
                Identity::Unidentified(cause) => cause.advice(),
                _ => Reason::Unidentified.sentence(),
            },
            (Reason::Unreachable, ..) if self.lookup.as_ref().is_some_and(|lookup| lookup.pending) => {
                "The site's robots.txt has not arrived in time, so everything there is disallowed until it does."
            }
            (Reason::Usage, ..) if self.waits_for_tdmrep() => {
                "This proxy does not know yet whether the site allows what this bot uses content for."
            }
            (reason, ..) => reason.sentence(),
        }
    }

    fn sent_invalid_credential(&self) -> bool {
        self.question.subject.proof == Proof::Failed.kind()
    }

    /// Returns why the pace refuses the request, if the reason is `pace`.
    pub fn pace_cause(&self) -> Option<Cause> {
        let cause = || self.deferral.map_or(Cause::CrawlDelay, |deferral| deferral.cause);
        (self.reason == Reason::Pace).then(cause)
    }

    pub fn target(&self) -> &Target {
        &self.question.target
    }

    /// Returns the name of the configured bot, or the product token of an unconfigured one.
    pub fn bot(&self) -> Option<&str> {
        self.question.subject.identity.name()
    }

    /// Returns the reason that the configuration gives for tunnels to this host (`[[https.tunnel]]`).
    pub fn exception(&self) -> Option<&str> {
        match &self.question.scope {
            Scope::Tunnel { exception } => exception.as_deref(),
            Scope::Path { .. } => None,
        }
    }

    /// Returns what exempts the request from robots.txt, if the reason is `exempt`.
    pub fn exemption(&self) -> Option<Exemption<'_>> {
        let by = || {
            self.question
                .exempt_host()
                .map_or(Exemption::Enforcement, Exemption::Host)
        };
        (self.reason == Reason::Exempt).then(by)
    }

    /// Returns what the robots.txt meant for the origin when the request was decided, if it was looked up.
    pub fn answer(&self) -> Option<Answer<'_>> {
        Some(self.lookup.as_ref()?.answer(&self.question.terms.policy))
    }

    /// Returns the copy whose rules apply, if any.
    pub fn copy(&self) -> Option<&RobotsCopy> {
        self.answer()?.copy().map(|copy| &**copy)
    }

    /// Returns the bot's first product token that has a group in the robots.txt, or else its first product token (`*`
    /// if it has none). `None` without a copy of the robots.txt.
    pub fn agent(&self) -> Option<&str> {
        self.matched_agent().map(|(token, _)| token)
    }

    /// Returns the name of the group that applies to the bot, as the robots.txt writes it.
    pub fn group(&self) -> Option<&str> {
        self.matched_agent().and_then(|(_, agent)| agent.group())
    }

    /// Returns whether a group of the robots.txt names the bot, so that the groups for `*` do not apply to it.
    pub fn is_specific(&self) -> bool {
        self.matched_agent().is_some_and(|(_, agent)| agent.is_specific())
    }

    /// Like [`agent`](Self::agent). But without a copy of the robots.txt, returns the bot's first product token, or `*`
    /// for a client without one.
    pub fn token(&self) -> &str {
        self.agent().unwrap_or_else(|| self.question.robots_identity().token())
    }

    /// Returns the bot's product token and its group in the robots.txt, if there is a copy.
    pub(crate) fn matched_agent(&self) -> Option<(&str, Agent<'_>)> {
        Some(self.question.robots_identity().pick(&self.copy()?.robots))
    }

    pub fn rule(&self) -> Option<Rule<'_>> {
        Some(self.copy()?.robots.rule(self.rule?))
    }

    /// Returns the form of the path that decided, and the path in this form.
    pub fn read(&self) -> Option<(Reading, Vec<u8>)> {
        let readings = self.question.readings();
        Some((self.reading?, readings.text(self.reading?).into_owned()))
    }

    /// Like [`read`](Self::read), but returns `None` for the path as sent.
    pub fn read_as(&self) -> Option<(Reading, Vec<u8>)> {
        self.reading.filter(|reading| *reading != Reading::Sent)?;
        self.read()
    }

    /// Returns the fetch of the robots.txt that the decision is based on.
    pub fn source_fetch(&self) -> SourceFetch {
        let policy = &self.question.terms.policy;
        self.lookup
            .as_ref()
            .map(|lookup| lookup.source_fetch(policy))
            .unwrap_or_default()
    }

    /// Returns why the robots.txt could not be fetched, why bots may not reach the origin, or that the `Crawl-delay` is
    /// too long.
    pub fn error(&self) -> Option<&dyn fmt::Display> {
        if let Some(prohibited) = &self.prohibited {
            return Some(prohibited);
        }
        Some(&self.answer()?.failure()?.error)
    }

    /// Returns after how many seconds, at least 1, a request can be retried (`Retry-After`, RFC 9110 §10.2.3). `None`
    /// if the verdict is not temporary.
    pub fn retry_after(&self) -> Option<u64> {
        let left = match (&self.deferral, &self.lookup) {
            (Some(Deferral { at, not_before, .. }), _) => not_before.duration_since(*at).unwrap_or(Duration::ZERO),
            (None, Some(lookup)) if self.reason == Reason::Unreachable => match self.source_fetch().expires {
                Some(expires) => expires.duration_since(lookup.at).unwrap_or(Duration::ZERO),
                // The fetch has not ended.
                None => WHILE_PENDING,
            },
            _ if self.waits_for_tdmrep() => WHILE_PENDING,
            _ => return None,
        };
        // Round up, because a request that comes too early is refused again.
        Some((left.as_secs() + u64::from(left.subsec_nanos() > 0)).max(1))
    }
}

// === impl Exemption ===

impl fmt::Display for Exemption<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(pattern) => pattern.fmt(f),
            Self::Enforcement => f.write_str("enforcement"),
        }
    }
}

fn sentence_of(cause: Cause) -> &'static str {
    match cause {
        Cause::Delay => {
            "This proxy leaves some time between two requests to a site (pace.delay), and this request came too early."
        }
        Cause::BotDelay => {
            "This proxy leaves some time before each request of this bot to a site (the delay of its [[bot]]), and this \
             request came too early."
        }
        Cause::CrawlDelay => {
            "The site's robots.txt asks for some time between two requests (Crawl-delay), and this request came too early."
        }
        Cause::Pause => {
            "The site has answered a request with 429 or 503, so this proxy sends no requests to it until the pause is over."
        }
        Cause::Concurrency => {
            "As many requests to this site are running as this proxy allows (pace.concurrency), and this request got no \
             turn in time."
        }
        Cause::Waiting => "Too many requests are already waiting, for this site or for all sites (pace.max-waiting).",
        Cause::Fleet => {
            "The server by which several proxies share the pace of a site cannot be used (fleet.on-loss), so this proxy \
             does not send this request."
        }
    }
}

/// Maximum number of bytes that each step of a decision may search, mostly to match patterns with wildcards. Searching
/// so many takes some twenty milliseconds at worst. The files of real sites need far fewer.
pub const BUDGET: usize = 1 << 22;
/// Like [`BUDGET`], but for the work on the thread that serves the request, where it delays other requests. At worst,
/// this takes about two milliseconds.
pub const AT_ONCE: usize = 1 << 19;
/// `Retry-After` while a fetch is running. Most fetches take no longer.
const WHILE_PENDING: Duration = Duration::from_secs(5);

#[cfg(test)]
impl Decision {
    pub(crate) fn sample(identity: crate::bot::Identity<'_>, verdict: Verdict, reason: Reason) -> Self {
        let terms = Terms {
            https_mode: HttpsMode::Intercept,
            unverifiable: Unverifiable::Deny,
            unidentified: crate::bot::Unidentified::Deny,
            enforcement: Enforcement::Enforce,
            strict_paths: true,
            policy: crate::copy::Policy::default(),
            pace: None,
            usage: crate::usage::UsagePolicy::default(),
            generation: 1,
        };
        let origin = crate::origin::Origin {
            scheme: crate::origin::Scheme::Https,
            host: crate::origin::Host::Name("a.example".into()),
            port: 443,
        };
        Self {
            verdict,
            reason,
            enforcement: Enforcement::Enforce,
            forwarded: verdict == Verdict::Allow,
            rule: None,
            reading: None,
            question: Question::of_url(Subject::of(identity), Target::of_connect(origin), None, terms),
            lookup: None,
            prohibited: None,
            deferral: None,
            usage: None,
        }
    }
}

#[cfg(test)]
mod tests;
