//! What a decision is about: who sends a request, what the request is for, and which settings apply.

use std::sync::Arc;

use super::{Reason, RobotsIdentity};
use crate::{
    bot::{AgentPattern, Bots, Cause, Enforcement, Identity, Proof, Unidentified},
    copy::Policy,
    origin::{HostPattern, Readings, Scheme, Target, readings},
    pace,
    usage::{Purposes, UsagePolicy},
};

/// The question that a [`Decision`](super::Decision) answers.
#[derive(Debug, Clone)]
pub struct Question {
    pub subject: Subject,
    pub target: Target,
    pub scope: Scope,
    pub terms: Terms,
}

/// Who sends the request, and how robotgate knows this.
#[derive(Debug, Clone)]
pub struct Subject {
    pub identity: Identity<'static>,
    /// `credential`, `certificate` or `network`; `failed` for an invalid credential. `None` if the client showed no
    /// proof that a `[[bot]]` of the configuration accepts.
    pub proof: Option<&'static str>,
    /// The name of the credential, certificate or network in the configuration. Never a secret.
    pub credential: Option<Box<str>>,
    pub purposes: Purposes,
}

/// How much of a request is visible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// The path is visible. `alone` matters only for the path `/robots.txt`: it means that the request is a GET or HEAD
    /// without a header field (such as `X-Original-URL`) that names another resource. No rule can disallow such a
    /// request.
    Path { alone: bool },
    /// A CONNECT. If robotgate does not intercept it, the decision applies to the origin as a whole.
    Tunnel {
        /// The reason in the `[[https.tunnel]]` entry for this host, if there is one.
        exception: Option<Arc<str>>,
    },
}

/// The settings that affect a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    pub https_mode: HttpsMode,
    pub unverifiable: Unverifiable,
    pub unidentified: Unidentified,
    /// Applies to requests of bots that are not configured, and to requests that name no bot.
    pub enforcement: Enforcement,
    /// Whether the rules must allow not only the path as sent and as normalized, but also each form in which common
    /// servers may read it (`robots.strict-paths`). For FTP, they always must.
    pub strict_paths: bool,
    pub policy: Policy,
    /// `None` for no limits on how fast bots may send requests.
    pub pace: Option<pace::Policy>,
    pub usage: UsagePolicy,
    /// Number of the proxy's configuration: 1 at the start, one more with each successful reload. 0 without a proxy.
    pub generation: u64,
}

/// What happens to a CONNECT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HttpsMode {
    /// robotgate terminates the TLS and decides every request in the tunnel.
    #[default]
    Intercept,
    /// robotgate forwards the bytes without looking at them, so it decides for the whole origin.
    Tunnel,
    Refuse,
}

/// What happens to a tunnel if what the site allows depends on the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unverifiable {
    #[default]
    Deny,
    /// The tunnel is forwarded, but its verdict stays `unverifiable`.
    Allow,
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

    /// Returns how the client was identified: the kind of its proof, or `user-agent` (a configured bot),
    /// `product-token` or `none`.
    pub fn known_by(&self) -> &'static str {
        self.proof.unwrap_or(match self.identity {
            Identity::Bot(_) => "user-agent",
            Identity::Token(_) => "product-token",
            Identity::Unidentified(_) | Identity::Refused(_) => "none",
        })
    }

    /// Returns what identified the client: the name of its proof, the first of the bot's `user-agents` that matches, or
    /// the product token of a bot that is not configured.
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
    /// Creates the question whether a request for a URL is allowed. For an `https` URL whose CONNECT robotgate does not
    /// intercept, the question is whether the CONNECT is allowed. `exception` is the reason in the `[[https.tunnel]]`
    /// entry for the host.
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

    /// Replaces the purposes of the bot by `purposes`, unless that is `None`.
    #[must_use]
    pub fn with_purposes(mut self, purposes: Option<Purposes>) -> Self {
        self.subject.purposes = purposes.unwrap_or(self.subject.purposes);
        self
    }

    /// Returns the product tokens to look for in the robots.txt. Many clients send no User-Agent with a CONNECT, so the
    /// rules for `*` apply to an unidentified client that asks for a tunnel to a host in `[[https.tunnel]]`.
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

    /// Returns the enforcement of the configured bot (`exempt` for a host in its `exempt-hosts`). For other clients,
    /// returns the enforcement in the terms. But a client with a wrong proof, or without a required proof, gets
    /// `enforce`. So does an unidentified client that has a proof or sends several User-Agent fields.
    pub(super) fn enforcement(&self) -> Enforcement {
        match self.robots_identity() {
            _ if self.exempt_host().is_some() => Enforcement::Exempt,
            RobotsIdentity::Bot(bot) => bot.enforcement,
            RobotsIdentity::Token(_) => self.terms.enforcement,
            // A configured bot must not evade its own enforcement, or the proof that it needs, by sending a second
            // User-Agent field.
            RobotsIdentity::Wildcard | RobotsIdentity::Refused(Reason::Unidentified)
                if self.is_plainly_unidentified() =>
            {
                self.terms.enforcement
            }
            RobotsIdentity::Wildcard | RobotsIdentity::Refused(_) => Enforcement::Enforce,
        }
    }

    fn is_plainly_unidentified(&self) -> bool {
        self.subject.proof.is_none() && self.subject.identity != Identity::Unidentified(Cause::Several)
    }

    /// Returns all readings of the requested path. FTP always has strict readings, because robotgate itself decodes the
    /// path for the FTP server.
    pub(super) fn readings(&self) -> Readings<'_> {
        let is_strict = self.terms.strict_paths || self.target.origin.scheme == Scheme::Ftp;
        readings(self.target.decided_path(), is_strict)
    }
}

fn purposes_of(identity: &Identity<'_>) -> Purposes {
    match identity {
        Identity::Bot(bot) => bot.purposes,
        Identity::Token(_) | Identity::Unidentified(_) | Identity::Refused(_) => Purposes::default(),
    }
}
