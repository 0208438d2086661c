//! Identifies the client: maps its proof and its User-Agent field to a configured bot or to a product token.
//!
//! This module does no I/O and does not decide what a bot may fetch. Finding the bot of a request allocates nothing. A
//! credential, a client certificate or an address can be a [`Proof`], but a User-Agent proves nothing.

use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use crate::{origin::HostPattern, text::words, usage::Purposes};

mod basic;
mod bots;
mod certificate;
mod credentials;
mod identify;
mod pattern;
mod product;
mod proof;

pub use bots::Bots;
pub use certificate::{BadCertificateName, CertificateName, ClientCertificate, UnreadableCertificate};
pub use credentials::{
    BadLine, CredentialRecord, Credentials, LineFault, SALT, SecretHash, Verified, is_name, name_of,
};
pub use pattern::{AgentPattern, EmptyPattern};
pub use product::{is_token, is_token_byte, products};
pub use proof::{AcceptedProofs, LoggedProof, Presented, PresentedCredential, Proof, ProofKind, ProofKinds};

/// A configured bot: one `[[bot]]` of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bot {
    /// The name in the log. It is unique in the configuration, ignoring ASCII case.
    pub name: Arc<str>,
    /// Patterns for the User-Agent field, any of which identifies the bot.
    pub user_agents: Vec<AgentPattern>,
    /// Product tokens to look for in a robots.txt, in this order. `*` is not listed, because it always comes last.
    pub robots_agents: Vec<Box<str>>,
    pub enforcement: Enforcement,
    /// Hosts for which the bot is exempt from robots.txt, whatever its `enforcement`.
    pub exempt_hosts: Vec<HostPattern>,
    /// The minimum time between a request of the bot and the previous request to the site, whichever bot sent it. It
    /// has no effect without `[pace]`.
    pub delay: Option<Duration>,
    pub purposes: Purposes,
    pub accepted_proofs: AcceptedProofs,
}

words! {
    /// What a robots.txt means for a bot's requests. The configuration and the log use these words. `Robots-Decision`
    /// uses only `report`.
    #[derive(Default)]
    pub enum Enforcement {
        /// A disallowed request is refused.
        #[default]
        Enforce = "enforce",
        /// A disallowed request is forwarded, and the log says that it is disallowed.
        Report = "report",
        /// No robots.txt is consulted. This is for fetchers that a user triggers and for security scanners: RFC 9309
        /// does not apply to them.
        Exempt = "exempt",
    }
}

words! {
    /// What happens to a request that names no bot.
    #[derive(Default)]
    pub enum Unidentified {
        /// The request is refused. With `identity.enforcement = "report"`, it is forwarded, but the verdict is `deny`.
        #[default]
        Deny = "deny",
        /// The rules for `*` apply.
        Wildcard = "wildcard",
    }
}

/// Who sends a request. `'h` is the lifetime of the User-Agent field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity<'h> {
    Bot(Arc<Bot>),
    /// A bot that is not configured: the product token of its User-Agent field, as sent.
    Token(Cow<'h, str>),
    /// The request names no bot for which a robots.txt could have rules.
    Unidentified(Cause),
    /// The client is not served, because it has not proved that it is the bot that it claims to be.
    Refused(IdentityMismatch),
}

/// Why a client has not proved that it is the bot that it claims to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IdentityMismatch {
    /// The proof is valid, but for other bots than the User-Agent names.
    Agent,
    /// A required proof is missing, or the credential is invalid.
    Unproven {
        /// The kinds of proof that would be accepted.
        by: ProofKinds,
    },
}

words! {
    /// Why a request names no bot, as a sentence for its sender, without a full stop.
    pub enum Cause {
        /// No User-Agent field, or an empty one.
        Missing = "the request has no User-Agent",
        /// More than one User-Agent field.
        Several = "the request has more than one User-Agent field",
        /// The field names only a browser.
        BrowserOnly = "the User-Agent names only a browser, not a bot",
        /// The field has no product token (RFC 9110 §10.1.5).
        NoToken = "the User-Agent has no product name, such as AcmeBot/1.0",
    }
}

// === impl Cause ===

impl Cause {
    /// Returns what to tell the client: what is missing, and what to send.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::Missing => "The request has no User-Agent: send one with the bot's name, such as \"ExampleBot/1.0\".",
            Self::Several => {
                "The request has more than one User-Agent field: send only one, with the bot's name, such as \
                 \"ExampleBot/1.0\"."
            }
            Self::BrowserOnly => {
                "The User-Agent names only a browser, not a bot: add the bot's name, such as \"ExampleBot/1.0\". In \
                 parentheses, a name counts only after \"compatible;\"."
            }
            Self::NoToken => {
                "The User-Agent has no product name: send one with the bot's name, such as \"ExampleBot/1.0\"."
            }
        }
    }
}

// === impl Bot ===

impl Bot {
    /// Returns the names of the bot: its `robots-agents` and its `name`.
    pub(crate) fn goes_by(&self) -> impl Iterator<Item = &str> {
        self.robots_agents.iter().map(|agent| &**agent).chain([&*self.name])
    }
}

// === impl Identity ===

impl Identity<'_> {
    /// Returns the identity without references into the request.
    #[must_use]
    pub fn into_owned(self) -> Identity<'static> {
        match self {
            Identity::Bot(bot) => Identity::Bot(bot),
            Identity::Token(token) => Identity::Token(Cow::Owned(token.into_owned())),
            Identity::Unidentified(cause) => Identity::Unidentified(cause),
            Identity::Refused(mismatch) => Identity::Refused(mismatch),
        }
    }

    /// Returns the name of the configured bot, or the product token of an unconfigured one.
    pub fn name(&self) -> Option<&str> {
        match self {
            Identity::Bot(bot) => Some(&bot.name),
            Identity::Token(token) => Some(token),
            Identity::Unidentified(_) | Identity::Refused(_) => None,
        }
    }
}

// === impl IdentityMismatch ===

impl IdentityMismatch {
    /// Returns the reason as a sentence without a full stop, in which `it` is the client.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "its proof is for a different bot than its User-Agent names",
            Self::Unproven { .. } => "it does not prove which bot it is",
        }
    }

    /// Returns whether a credential would be accepted, so that the client should be asked for one.
    pub fn asks_for_credential(self) -> bool {
        matches!(self, Self::Unproven { by } if by.credential)
    }
}

impl fmt::Display for IdentityMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests;
