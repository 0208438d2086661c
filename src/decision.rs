//! May this bot fetch this? One [`Question`] goes in, one [`Decision`] comes out: a verdict, its reason, and all that it
//! rests on. No I/O and no clock; nothing is allocated for a path whose readings are equal.
//!
//! Whether a bot is let through is decided here and nowhere else, for the proxy, for a CONNECT, for those who ask ahead
//! and for a configuration's own cases. Whoever tells of a decision (header, body, log, metrics, API, `explain`, page)
//! does so from the same value. Two kinds of request are answered before anything is decided: one that nobody can read, and
//! one over a bound of `[proxy]`.

mod asker;
mod question;
mod reason;
mod texts;

use std::{fmt, time::Duration};

use self::asker::Asker;
#[cfg(test)]
pub(crate) use self::question::rules_of;
pub use self::{
    question::{BUDGET, Begun, HttpsMode, Question, Scope, Subject, Terms, Undecided, Unverifiable},
    reason::Reason,
    texts::{DecisionTexts, MAX_TEXT},
};
use crate::{
    bot::Enforcement,
    copy::{Answer, Ground, Lookup, RobotsCopy},
    origin::{Reading, Target, readings},
    robots::{Agent, Rule, RuleId},
    text::words,
};

words! {
    /// What robots.txt says of a request. What happens then is [`Decision::forwarded`]'s to say.
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Verdict {
        Allow = "allow",
        Deny = "deny",
        /// Only of a tunnel: the origin allows some paths and disallows others, and which one is
        /// asked for cannot be seen.
        Unverifiable = "unverifiable",
    }
}

/// A verdict, why, and what it rests on.
#[derive(Debug, Clone)]
pub struct Decision {
    pub verdict: Verdict,
    pub reason: Reason,
    pub enforcement: Enforcement,
    /// Whether the request goes on to the origin. A deny does where the bot's enforcement is `report`; what is refused for
    /// another reason than the site's robots.txt never does.
    pub forwarded: bool,
    /// Of the copy that the decision was made on. `None` where no rule matched or none was
    /// looked at.
    pub rule: Option<RuleId>,
    /// On which reading of the path the rules decided. `None` where they did not, or on no path.
    pub reading: Option<Reading>,
    /// Who asked for what.
    pub question: Question,
    /// What was known of the origin. `None` where no copy was asked for.
    pub lookup: Option<Lookup>,
    /// Why bots may not go there, where that was clear without a copy.
    pub prohibited: Option<String>,
}

// === impl Decision ===

impl Decision {
    /// The same, with what was looked up although nothing had to be.
    #[must_use]
    pub fn with_lookup(self, lookup: Lookup) -> Self {
        Self {
            lookup: Some(lookup),
            ..self
        }
    }

    /// What is asked for.
    pub fn target(&self) -> &Target {
        &self.question.target
    }

    /// The configured bot's name, or the product token of one that is not configured.
    pub fn bot(&self) -> Option<&str> {
        self.question.subject.identity.name()
    }

    /// Why the configuration lets tunnels to this host through.
    pub fn exception(&self) -> Option<&str> {
        match &self.question.scope {
            Scope::Tunnel { exception } => exception.as_deref(),
            Scope::Path { .. } => None,
        }
    }

    /// What held of the robots.txt.
    pub fn answer(&self) -> Option<Answer<'_>> {
        Some(self.lookup.as_ref()?.answer(&self.question.terms.policy))
    }

    /// The copy that held.
    pub fn copy(&self) -> Option<&RobotsCopy> {
        self.answer()?.copy().map(|copy| &**copy)
    }

    /// The bot's token that has a group of its own in the copy, else its first. `None` where there was no copy.
    pub fn agent(&self) -> Option<&str> {
        self.picked().map(|(token, _)| token)
    }

    /// The group whose rules were considered, as the file names it.
    pub fn group(&self) -> Option<&str> {
        self.picked().and_then(|(_, agent)| agent.group())
    }

    /// Whether the file names the bot itself, so that the rules for `*` do not hold.
    pub fn is_specific(&self) -> bool {
        self.picked().is_some_and(|(_, agent)| agent.is_specific())
    }

    /// The token that the bot goes by, whether a file was looked at or not.
    pub fn token(&self) -> &str {
        self.agent().unwrap_or_else(|| self.question.asker().token())
    }

    /// Both: the token, and the group that counts for it.
    pub(crate) fn picked(&self) -> Option<(&str, Agent<'_>)> {
        Some(self.question.asker().pick(&self.copy()?.robots))
    }

    /// The rule that decided.
    pub fn rule(&self) -> Option<Rule<'_>> {
        Some(self.copy()?.robots.rule(self.rule?))
    }

    /// The reading of the path that the rules decided on, and the path as it has it.
    pub fn read(&self) -> Option<(Reading, Vec<u8>)> {
        let readings = readings(self.target().decided_path(), self.question.terms.strict_paths);
        Some((self.reading?, readings.text(self.reading?).into_owned()))
    }

    /// The same, where that is not the path as sent.
    pub fn read_as(&self) -> Option<(Reading, Vec<u8>)> {
        self.reading.filter(|reading| *reading != Reading::Sent)?;
        self.read()
    }

    /// The fetch that the decision rests on.
    pub fn ground(&self) -> Ground {
        let policy = &self.question.terms.policy;
        self.lookup
            .as_ref()
            .map(|lookup| lookup.ground(policy))
            .unwrap_or_default()
    }

    /// Why the robots.txt could not be had; or why bots may not go there.
    pub fn error(&self) -> Option<&dyn fmt::Display> {
        if let Some(prohibited) = &self.prohibited {
            return Some(prohibited);
        }
        Some(&self.answer()?.failure()?.error)
    }

    /// In how many seconds a request that was refused for now should come again (`Retry-After`, RFC 9110 §10.2.3), 1 at
    /// the least. `None` where the refusal does not end by itself.
    pub fn retry_after(&self) -> Option<u64> {
        let lookup = self.lookup.as_ref().filter(|_| self.reason == Reason::Unreachable)?;
        let left = match self.ground().expires {
            Some(expires) => expires.duration_since(lookup.at).unwrap_or(Duration::ZERO),
            // The fetch goes on; nobody knows for how long.
            None => WHILE_PENDING,
        };
        // Rounded up: a request that comes too early is refused again.
        Some((left.as_secs() + u64::from(left.subsec_nanos() > 0)).max(1))
    }
}

/// When to come back while a robots.txt is being fetched, which for most takes no longer.
const WHILE_PENDING: Duration = Duration::from_secs(5);

#[cfg(test)]
impl Decision {
    /// Of somebody, with this verdict for this reason, for the tests of those who tell of decisions.
    pub(crate) fn sample(identity: crate::bot::Identity<'_>, verdict: Verdict, reason: Reason) -> Self {
        let terms = Terms {
            https_mode: HttpsMode::Intercept,
            unverifiable: Unverifiable::Deny,
            unidentified: crate::bot::Unidentified::Deny,
            strict_paths: true,
            policy: crate::copy::Policy::default(),
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
        }
    }
}

#[cfg(test)]
mod tests;
