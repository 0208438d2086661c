//! The texts about a decision for clients: the field `Robots-Decision`, and why a request is refused.

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
    pub(in crate::proxy) fn field(&self) -> String {
        use std::fmt::Write as _;

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
            // A Date (RFC 9651 §3.3.7) has whole seconds. Round up, because a request that comes too early is refused
            // again.
            let seconds = micros_since_1970(not_before).div_ceil(1_000_000);
            let _ = write!(out, "; not-before=@{seconds}");
        }
        // Some reasons refuse a request although the enforcement is `report`. The parameter `enforcement` would then
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
        let is_disallowed_by_rule = self.rule.is_some() && self.verdict != Verdict::Allow;
        let read_as = self.read_as.as_ref().filter(|_| is_disallowed_by_rule);
        let strings = [
            ("rule", self.rule.as_deref()),
            ("read-as", read_as.map(|(_, path)| &**path)),
            ("group", self.rule_group()),
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

    pub(super) fn rule_group(&self) -> Option<&str> {
        self.rule.as_ref().and(self.group.as_deref())
    }

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

    pub(super) fn detail(&self) -> String {
        let sentence = self.sentence;
        if let Some(refused) = self.use_refusal() {
            let mut refused = refused.to_string();
            // The text begins with an ASCII letter.
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
            (_, _, Some(error)) if self.reason == Reason::Egress => {
                format!("{}: {error}.", sentence.trim_end_matches('.'))
            }
            (_, _, Some(error)) => format!("{sentence} {}: {error}.", self.robots_url),
            _ if self.challenge => format!("{sentence} {CREDENTIAL_HELPS}"),
            _ => match self.proofs {
                Some(proofs) => format!("{sentence} What proves it: {proofs}. Ask the operator of this proxy."),
                None => sentence.to_owned(),
            },
        }
    }
}

/// Appends what the site says about the use of its content. If the request is refused because of that, also appends the
/// line, entry or field in which the site says it. For other requests, the parameter `line` names the rule that
/// decided.
fn push_usage(out: &mut String, usage: &UsageReport) {
    use std::fmt::Write as _;

    let _ = match (usage.deciding_statement(), &usage.refused) {
        (Some(said), refused) => {
            let UseStatement {
                vocabulary,
                label,
                purpose,
                ..
            } = said;
            let value = said.value();
            let result = write!(
                out,
                "; vocabulary={vocabulary}; purpose={purpose}; key={label}; value={value}"
            );
            result.and_then(|()| match (said.source, refused) {
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

const CREDENTIAL_HELPS: &str = "Send a name and secret that this proxy knows: write them into the proxy's URL, as \
                                NAME:SECRET@ in front of its host.";
