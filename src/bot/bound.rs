//! Who asks, by the User-Agent and what is proven together.
//!
//! Pure. It decides nothing: that a claim is refused is [`crate::decision`]'s to say.

use std::sync::Arc;

use super::{Bots, Cause, Identity, Misfit, Proof};

// === impl Bots ===

impl Bots {
    /// Who sends these User-Agent fields and has this proof; `required` says that nobody is served without one.
    ///
    /// A proof narrows down who a client may be, and its User-Agent says which of those it is. Without a proof, the
    /// User-Agent is believed unless it names a bot that is bound to one.
    pub fn identify_by<'h>(
        &self,
        user_agents: impl IntoIterator<Item = &'h [u8]>,
        proof: &Proof<'_>,
        required: bool,
    ) -> Identity<'h> {
        match proof {
            Proof::Failed => Identity::Refused(Misfit::Unproven { by_credential: true }),
            Proof::None if required => Identity::Refused(Misfit::Unproven {
                by_credential: self.credentials().is_some(),
            }),
            Proof::None => self.unproven(self.identify(user_agents)),
            Proof::Credential(_) | Proof::Certificate(_) | Proof::Network(_) => self.proven(user_agents, proof),
        }
    }

    fn unproven<'h>(&self, said: Identity<'h>) -> Identity<'h> {
        let claimed = match &said {
            Identity::Bot(bot) => Some(bot).filter(|bot| bot.bindings.bind()),
            Identity::Token(token) => self.claimed_by(token),
            Identity::Unidentified(_) | Identity::Refused(_) => None,
        };
        match claimed {
            Some(bot) => Identity::Refused(Misfit::Unproven {
                by_credential: !bot.bindings.credentials.is_empty(),
            }),
            None => said,
        }
    }

    fn proven<'h>(&self, user_agents: impl IntoIterator<Item = &'h [u8]>, proof: &Proof<'_>) -> Identity<'h> {
        let mut user_agents = user_agents.into_iter();
        let field = user_agents.next();
        let said = self.identify(field.into_iter().chain(user_agents));
        let mut candidates = self
            .bound()
            .filter(|(place, bot)| proof.covers(*place, bot))
            .map(|(_, bot)| bot);
        let found = match &said {
            Identity::Unidentified(Cause::Several) => return said,
            Identity::Unidentified(_) => match (candidates.next(), candidates.next()) {
                (Some(only), None) => Some(only),
                _ => return said,
            },
            // The first bot in the file that a field names need not be one that is proven.
            Identity::Bot(named) => candidates.find(|bot| {
                let field = field.unwrap_or_default().trim_ascii();
                Arc::ptr_eq(bot, named) || bot.user_agents.iter().any(|pattern| pattern.matches(field))
            }),
            Identity::Token(token) => candidates.find(|bot| bot.goes_by().any(|own| own.eq_ignore_ascii_case(token))),
            Identity::Refused(_) => None,
        };
        found.map_or(Identity::Refused(Misfit::Agent), |bot| Identity::Bot(bot.clone()))
    }
}
