//! The texts about a decision for clients: the field `Robots-Decision`, and why a request is refused, in one line and
//! in sentences.

use super::MAX_STRING;
use crate::{
    bot::Enforcement,
    decision::{DecisionTexts, MAX_TEXT, Reason, UsageReport, Verdict},
    proxy::fields::push_string,
    text::{micros_since_1970, plain},
    usage::{UseRefusal, UseSource, UseStatement},
};

// === impl DecisionTexts ===

impl DecisionTexts<'_> {
    /// Returns the value of the field `Robots-Decision`: an item with parameters (RFC 9651 §3.3).
    pub(in crate::proxy) fn field(&self) -> String {
        use std::fmt::Write as _;

        // Writing to a string cannot fail, here and below.
        let mut out = String::with_capacity(256);
        for text in [self.verdict.as_str(), "; reason=", self.reason.as_str()] {
            out.push_str(text);
        }
        if let Some(cause) = self.pace_cause {
            for text in ["; cause=", cause.as_str()] {
                out.push_str(text);
            }
        }
        if let Some(not_before) = self.not_before {
            // The time is a Date (RFC 9651 §3.3.7), in whole seconds. Round it up, because a request that comes too
            // early is refused again.
            let seconds = micros_since_1970(not_before).div_ceil(1_000_000);
            let _ = write!(out, "; not-before=@{seconds}");
        }
        // Name the enforcement `report` only if the request is forwarded. Depending on the reason of the decision,
        // robotgate refuses some requests of a bot with `report` nevertheless. In such a refusal, the parameter would
        // contradict the status.
        if self.enforcement == Enforcement::Report && self.forwarded {
            out.push_str("; enforcement=");
            out.push_str(self.enforcement.as_str());
        }
        if let Some(usage) = self.usage {
            push_usage(&mut out, usage);
        }
        if let Some(line) = self.line {
            let _ = write!(out, "; line={line}");
        }
        let strings = [
            ("rule", self.rule.as_deref()),
            ("group", self.rule_group()),
            // Keep the field of an allowed request short: its client does not need the name of the bot.
            ("bot", self.bot.as_deref().filter(|_| self.verdict != Verdict::Allow)),
            ("robots", Some(&*self.robots_url)),
            ("id", Some(self.id)),
        ];
        for (name, text) in strings {
            if let Some(text) = text {
                for text in ["; ", name, "="] {
                    out.push_str(text);
                }
                push_string(&mut out, text, MAX_STRING);
            }
        }
        out
    }

    /// Returns the robots.txt group of the rule that decided. Returns `None` if no rule decided.
    pub(super) fn rule_group(&self) -> Option<&str> {
        self.rule.as_ref().and(self.group.as_deref())
    }

    /// Returns for which purpose the bot is refused, and what the site says about that purpose.
    pub(super) fn use_refusal(&self) -> Option<&UseRefusal> {
        self.usage?.refused.as_ref()
    }

    /// Returns why the request is refused, in one line such as `robots.txt line 3: Disallow: /private`.
    pub(super) fn cause(&self) -> String {
        if let Some(refused) = self.use_refusal() {
            return refused.to_string();
        }
        match (self.line, &self.rule, &self.robots_error) {
            (Some(line), Some(rule), _) => format!("robots.txt line {line}: {rule}"),
            (_, _, Some(error)) if self.reason == Reason::Egress => error.clone(),
            (_, _, Some(error)) => format!("{}: {error}", self.reason.phrase()),
            _ => self.reason.phrase().to_owned(),
        }
    }

    /// Returns why the request is refused, in sentences.
    pub(super) fn detail(&self) -> String {
        let sentence = self.sentence;
        if let Some(refused) = self.use_refusal() {
            let mut refused = refused.to_string();
            // This text begins with an ASCII letter, so its first byte is its first character.
            refused[..1].make_ascii_uppercase();
            return format!("{sentence} {refused}.");
        }
        match (self.line, &self.rule, &self.robots_error) {
            (Some(line), Some(rule), _) => {
                let read_as = self.read_as.as_ref();
                let read_as = read_as.and_then(|(reading, path)| Some((reading.phrase()?, plain(path, MAX_TEXT))));
                let read_as = read_as.map(|(phrase, path)| format!(" ({phrase}: {path})"));
                let read_as = read_as.unwrap_or_default();
                format!("{sentence} Line {line} of {}: {rule}{read_as}", self.robots_url)
            }
            (_, _, Some(error)) if self.reason == Reason::Egress => format!("{sentence} {error}."),
            (_, _, Some(error)) => format!("{sentence} {}: {error}.", self.robots_url),
            _ if self.challenge => format!("{sentence} {CREDENTIAL_HELPS}"),
            _ => match self.proofs {
                Some(proofs) => format!("{sentence} What would prove it: {proofs}."),
                None => sentence.to_owned(),
            },
        }
    }
}

/// Appends to `out`, the value of `Robots-Decision`, what the site says about the use of its content. For a refused
/// request, also appends where the site says it: the line in the robots.txt, the entry in the `tdmrep.json`, or the
/// name of the header field. For a forwarded request, leaves that out, because the parameter `line` is then the line of
/// the rule.
fn push_usage(out: &mut String, usage: &UsageReport) {
    use std::fmt::Write as _;

    // Writing to a string cannot fail.
    let _ = match (usage.deciding_statement(), &usage.refused) {
        (Some(said), refused) => {
            let UseStatement {
                vocabulary,
                label,
                purpose,
                ..
            } = said;
            let value = said.value();
            let written = write!(
                out,
                "; vocabulary={vocabulary}; purpose={purpose}; key={label}; value={value}"
            );
            written.and_then(|()| match (said.source, refused) {
                (_, None) => Ok(()),
                (UseSource::Line(line), _) => write!(out, "; line={line}"),
                (UseSource::Entry(entry), _) => write!(out, "; entry={entry}"),
                (UseSource::Field(field), _) => write!(out, "; field={field}"),
            })
        }
        (None, Some(refused)) => write!(out, "; purpose={}", refused.purpose()),
        (None, None) => Ok(()),
    };
}

/// What a person can do about a 407.
const CREDENTIAL_HELPS: &str = "Send a name and secret that this proxy knows: write them into the proxy's URL, as \
                                NAME:SECRET@ in front of its host.";
