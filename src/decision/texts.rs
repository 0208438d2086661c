//! The texts of a decision for everything that reports it.

use std::{borrow::Cow, time::SystemTime};

use super::{Decision, Reason, UsageReport, Verdict};
use crate::{
    bot::{Enforcement, Identity, IdentityMismatch, ProofKinds},
    origin::Reading,
    pace::Cause,
    text::{plain, plain_message},
};

/// The texts about a decision, which the log, the headers, the refusal and the API share. Texts from clients and sites
/// are made safe to show and have a maximum length, except `read_as`.
#[derive(Debug, Clone)]
pub struct DecisionTexts<'a> {
    pub verdict: Verdict,
    pub reason: Reason,
    pub sentence: &'static str,
    pub enforcement: Enforcement,
    pub forwarded: bool,
    /// The bot's configured name, or its product token.
    pub bot: Option<Cow<'a, str>>,
    /// The product token that was looked up in the robots.txt, if there is a copy.
    pub agent: Option<Cow<'a, str>>,
    /// As written in the robots.txt.
    pub rule: Option<Cow<'a, str>>,
    pub line: Option<u32>,
    /// As written in the robots.txt.
    pub group: Option<Cow<'a, str>>,
    /// The form of the path that decided, and the whole path in this form. `None` if the path as sent decided.
    pub read_as: Option<(Reading, String)>,
    pub robots_url: String,
    /// Why robotgate has no robots.txt, why bots may not reach the origin, or that the `Crawl-delay` is too long.
    pub robots_error: Option<String>,
    pub id: &'a str,
    /// Whether the response asks for a credential.
    pub challenge: bool,
    /// The proofs that would be accepted, if the request is refused because the client showed no valid proof.
    pub proofs: Option<ProofKinds>,
    /// In seconds. `None` if the verdict is not temporary.
    pub retry_after: Option<u64>,
    /// Set if the verdict is `defer`.
    pub not_before: Option<SystemTime>,
    /// `None` if the reason is not `pace`.
    pub pace_cause: Option<Cause>,
    pub usage: Option<&'a UsageReport>,
}

// === impl DecisionTexts ===

impl<'a> DecisionTexts<'a> {
    /// Creates the texts of `decision`. `id` is the request's id in the log.
    pub fn of(decision: &'a Decision, id: &'a str, challenge: bool) -> Self {
        let shown = |text| plain(text, MAX_TEXT);
        let rule = decision.rule();
        let matched_agent = decision.matched_agent();
        Self {
            verdict: decision.verdict,
            reason: decision.reason,
            sentence: decision.sentence(),
            enforcement: decision.enforcement,
            forwarded: decision.forwarded,
            bot: decision.bot().map(shown),
            agent: matched_agent.map(|(token, _)| shown(token)),
            line: rule.as_ref().map(|rule| rule.line),
            rule: rule.map(|rule| match rule.text {
                Cow::Borrowed(text) => shown(text),
                Cow::Owned(text) => plain(&text, MAX_TEXT).into_owned().into(),
            }),
            group: matched_agent.and_then(|(_, agent)| agent.group()).map(shown),
            read_as: decision
                .read_as()
                .map(|(reading, path)| (reading, String::from_utf8_lossy(&path).into_owned())),
            robots_url: decision.target().origin.robots_url(),
            robots_error: decision.shown_error(),
            id,
            challenge,
            proofs: match &decision.question.subject.identity {
                Identity::Refused(IdentityMismatch::Unproven { by }) => Some(*by),
                _ => None,
            },
            retry_after: decision.retry_after(),
            not_before: decision.deferral.map(|deferral| deferral.not_before),
            pace_cause: decision.pace_cause(),
            usage: decision.usage.as_deref(),
        }
    }
}

impl Decision {
    /// Returns [`Decision::error`], made safe to show.
    pub fn shown_error(&self) -> Option<String> {
        let error = self.error()?.to_string();
        Some(plain_message(&error, MAX_ERROR).into_owned())
    }

    /// Returns the text of [`Decision::rule`], made safe to show.
    pub fn shown_rule(&self) -> Option<String> {
        self.rule().map(|rule| plain(&rule.text, MAX_TEXT).into_owned())
    }

    /// Returns [`Decision::bot`], made safe to show.
    pub fn shown_bot(&self) -> Option<String> {
        self.bot().map(|bot| plain(bot, MAX_TEXT).into_owned())
    }
}

/// Approximate maximum length of a text from a client or site, in bytes. A longer text is cut and ends with `…`.
pub const MAX_TEXT: usize = 1024;
/// Approximate maximum length of an error, in bytes.
const MAX_ERROR: usize = 512;
