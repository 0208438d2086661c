//! Who is asking: from what a client proves and the User-Agent field to a configured bot, or to the product token that
//! the request names.
//!
//! Pure: it never does I/O, and allocates nothing for a request. It never decides what a bot may fetch. A User-Agent
//! proves nothing: whoever sends it says who it is. What proves something (`proof`) is a credential, a client's
//! certificate or its address; each stands for the bots that the configuration binds to it.

use std::{borrow::Cow, fmt, sync::Arc};

use serde::Deserialize;

use crate::text::words;

mod bots;
mod certificate;
mod credentials;
mod pattern;
mod product;
mod proof;

pub use bots::Bots;
pub use certificate::{BadCertificateName, CertificateName, ClientCertificate, UnreadableCertificate};
pub use credentials::{BadLine, Credentials, LineFault, SALT, SecretHash, Verified, Voucher, is_name, name_of};
pub use pattern::{AgentPattern, EmptyPattern};
pub use product::{is_token, is_token_byte};
pub use proof::{Bindings, Presented, Proof, Shown};

/// A configured bot, one `[[bot]]` of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bot {
    /// Its name in the log, unique in the file, ignoring ASCII case.
    pub name: Arc<str>,
    /// The User-Agent fields it is known by; any one is enough.
    pub user_agents: Vec<AgentPattern>,
    /// Product tokens, tried in this order against a robots.txt; `*` comes after the last of its own accord.
    pub robots_agents: Vec<Box<str>>,
    /// What a disallow means for this bot.
    pub enforcement: Enforcement,
    /// What proves that a client is this bot.
    pub bindings: Bindings,
}

words! {
    /// What a disallow means for a bot. Its word stands in the file, the log and the header.
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Enforcement {
        /// It is refused.
        #[default]
        Enforce = "enforce",
        /// It is forwarded, and the log says that it would have been refused.
        Report = "report",
        /// No robots.txt is asked: a user-triggered fetcher or a security scanner, which RFC 9309 leaves out.
        Exempt = "exempt",
    }
}

words! {
    /// What becomes of a request that names no bot.
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Unidentified {
        /// It is refused.
        #[default]
        Deny = "deny",
        /// The rules for `*` hold.
        Wildcard = "wildcard",
    }
}

/// Who a request says that it comes from. `'h` is the life of the User-Agent field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity<'h> {
    /// A configured bot.
    Bot(Arc<Bot>),
    /// No configured bot; the product token of the field, as sent.
    Token(Cow<'h, str>),
    /// Nobody that a robots.txt could name.
    Unidentified(Cause),
    /// Nobody to be served: what is said is not proven.
    Refused(Misfit),
}

/// How what a client says and what it proves do not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Misfit {
    /// The proof holds, and the User-Agent names none of the bots that it stands for.
    Agent,
    /// There is no proof where one is needed, or a credential that does not hold.
    Unproven {
        /// Whether a credential would be one.
        by_credential: bool,
    },
}

words! {
    /// Why a request names no bot, as a sentence without a full stop for the one who sent it.
    pub enum Cause {
        /// No User-Agent field, or an empty one.
        Missing = "the request has no User-Agent",
        /// More than one User-Agent field.
        Several = "the request has more than one User-Agent field",
        /// Only a browser's names.
        BrowserOnly = "the User-Agent names only a browser, and no bot",
        /// A field without any product token (RFC 9110 §10.1.5).
        NoToken = "the User-Agent holds no product name, such as AcmeBot/1.0",
    }
}

// === impl Bot ===

impl Bot {
    /// The product tokens that name it where no entry of `user-agents` does: those for robots.txt files, and its name.
    fn goes_by(&self) -> impl Iterator<Item = &str> {
        self.robots_agents.iter().map(|agent| &**agent).chain([&*self.name])
    }
}

// === impl Identity ===

impl Identity<'_> {
    /// The same, in a form that outlives the request.
    #[must_use]
    pub fn into_owned(self) -> Identity<'static> {
        match self {
            Identity::Bot(bot) => Identity::Bot(bot),
            Identity::Token(token) => Identity::Token(Cow::Owned(token.into_owned())),
            Identity::Unidentified(cause) => Identity::Unidentified(cause),
            Identity::Refused(misfit) => Identity::Refused(misfit),
        }
    }

    /// The configured bot's name, or the product token of one that is not configured.
    pub fn name(&self) -> Option<&str> {
        match self {
            Identity::Bot(bot) => Some(&bot.name),
            Identity::Token(token) => Some(token),
            Identity::Unidentified(_) | Identity::Refused(_) => None,
        }
    }
}

// === impl Misfit ===

impl Misfit {
    /// The sentence, without a full stop.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "what it proves is of other bots than the one that its User-Agent names",
            Self::Unproven { .. } => "it does not prove which bot it is",
        }
    }

    /// Whether a credential would help.
    pub fn asks_for_credential(self) -> bool {
        self == Self::Unproven { by_credential: true }
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests;
