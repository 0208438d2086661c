//! Which product tokens robotgate looks for in a robots.txt.

use super::Reason;
use crate::{
    bot::{Bot, Identity, IdentityMismatch, Unidentified},
    robots::{Agent, RobotsTxt},
};

/// The product tokens by which a robots.txt can name an [`Identity`].
#[derive(Debug, Clone, Copy)]
pub(super) enum RobotsIdentity<'a> {
    /// The first of the bot's `robots-agents` that has a group in the robots.txt counts.
    Bot(&'a Bot),
    Token(&'a str),
    /// Only the rules for `*` apply.
    Wildcard,
    /// The verdict is `deny` for this reason, whatever the robots.txt says. With the reason `unidentified`, the client
    /// may still fetch the robots.txt itself.
    Refused(Reason),
}

// === impl RobotsIdentity ===

impl<'a> RobotsIdentity<'a> {
    pub(super) fn new(identity: &'a Identity<'_>, unidentified: Unidentified) -> Self {
        match (identity, unidentified) {
            (Identity::Bot(bot), _) => RobotsIdentity::Bot(bot),
            (Identity::Token(token), _) => RobotsIdentity::Token(token),
            (Identity::Unidentified(_), Unidentified::Wildcard) => RobotsIdentity::Wildcard,
            (Identity::Unidentified(_), Unidentified::Deny) => RobotsIdentity::Refused(Reason::Unidentified),
            (Identity::Refused(IdentityMismatch::Agent), _) => RobotsIdentity::Refused(Reason::Identity),
            (Identity::Refused(IdentityMismatch::Unproven { .. }), _) => {
                RobotsIdentity::Refused(Reason::Unauthenticated)
            }
        }
    }

    /// Returns the first product token for which `robots` has a group, and the rules of this group. If there is none,
    /// returns [`token`](Self::token) and the rules for `*` (RFC 9309 §2.2.1).
    pub(super) fn pick<'r>(self, robots: &'r RobotsTxt) -> (&'a str, Agent<'r>) {
        let specific = |token: &'a str| Some((token, robots.product(token))).filter(|(_, agent)| agent.is_specific());
        match self {
            RobotsIdentity::Bot(bot) => bot.robots_agents.iter().find_map(|token| specific(token)),
            RobotsIdentity::Token(token) => specific(token),
            RobotsIdentity::Wildcard | RobotsIdentity::Refused(_) => None,
        }
        .unwrap_or_else(|| (self.token(), robots.agent("*")))
    }

    /// Returns the first product token of the bot, or `*` for a client without a product token.
    pub(super) fn token(self) -> &'a str {
        match self {
            RobotsIdentity::Bot(bot) => bot.robots_agents.first().map_or("*", |token| token),
            RobotsIdentity::Token(token) => token,
            RobotsIdentity::Wildcard | RobotsIdentity::Refused(_) => "*",
        }
    }
}
