//! The requester as a robots.txt sees it.

use super::Reason;
use crate::{
    bot::{Bot, Enforcement, Identity, Misfit, Unidentified},
    robots::{Agent, RobotsTxt},
};

/// What an [`Identity`] means to a robots.txt.
#[derive(Debug, Clone, Copy)]
pub(super) enum Asker<'a> {
    /// A configured bot. Its `robots-agents` are tried in order.
    Bot(&'a Bot),
    /// The product token of an unconfigured bot.
    Token(&'a str),
    /// An unidentified client. Only the rules for `*` apply.
    Wildcard,
    /// A client that is refused, for this reason.
    Refused(Reason),
}

// === impl Asker ===

impl<'a> Asker<'a> {
    pub(super) fn new(identity: &'a Identity<'_>, unidentified: Unidentified) -> Self {
        match (identity, unidentified) {
            (Identity::Bot(bot), _) => Asker::Bot(bot),
            (Identity::Token(token), _) => Asker::Token(token),
            (Identity::Unidentified(_), Unidentified::Wildcard) => Asker::Wildcard,
            (Identity::Unidentified(_), Unidentified::Deny) => Asker::Refused(Reason::Unidentified),
            (Identity::Refused(Misfit::Agent), _) => Asker::Refused(Reason::Identity),
            (Identity::Refused(Misfit::Unproven { .. }), _) => Asker::Refused(Reason::Unauthenticated),
        }
    }

    pub(super) fn enforcement(self) -> Enforcement {
        match self {
            Asker::Bot(bot) => bot.enforcement,
            Asker::Token(_) | Asker::Wildcard | Asker::Refused(_) => Enforcement::Enforce,
        }
    }

    /// Returns the first of the asker's tokens that has its own group in `robots`, with that group's rules. Otherwise
    /// returns the first token and the rules for `*` (RFC 9309 §2.2.1).
    pub(super) fn pick<'r>(self, robots: &'r RobotsTxt) -> (&'a str, Agent<'r>) {
        let specific = |token: &'a str| Some((token, robots.product(token))).filter(|(_, agent)| agent.is_specific());
        match self {
            Asker::Bot(bot) => bot.robots_agents.iter().find_map(|token| specific(token)),
            Asker::Token(token) => specific(token),
            Asker::Wildcard | Asker::Refused(_) => None,
        }
        .unwrap_or_else(|| (self.token(), robots.agent("*")))
    }

    /// Returns the asker's first token, or `*` if it has none.
    pub(super) fn token(self) -> &'a str {
        match self {
            Asker::Bot(bot) => bot.robots_agents.first().map_or("*", |token| token),
            Asker::Token(token) => token,
            Asker::Wildcard | Asker::Refused(_) => "*",
        }
    }
}
