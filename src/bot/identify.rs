//! Finds out what a client has proved and which bot it is, or why it must be refused. The module `decision` then
//! refuses the request.

use std::sync::Arc;

use super::{
    Bot, Bots, Cause, Identity, IdentityMismatch, Presented, PresentedCredential, Proof, ProofKinds, basic::Basic,
};

// === impl Bots ===

impl Bots {
    /// Finds out what a client has proved. If its credential is invalid, no other proof counts.
    pub fn prove<'a>(&'a self, presented: &Presented<'a>) -> Proof<'a> {
        if let Some(credentials) = self.credentials() {
            let verified = match presented.credential {
                PresentedCredential::Nothing => None,
                PresentedCredential::Several => return Proof::Failed,
                PresentedCredential::Field(value) => {
                    Some(Basic::parse(value).and_then(|basic| credentials.verify(basic.name(), basic.secret())))
                }
                PresentedCredential::Inherited(credential_record) => Some(credentials.recheck(credential_record)),
            };
            if let Some(verified) = verified {
                return verified.map_or(Proof::Failed, Proof::Credential);
            }
        }
        if let Some(proof) = presented.certificate.map(Proof::Certificate)
            && self.by_certificate().any(|(index, bot)| proof.covers(index, bot))
        {
            return proof;
        }
        // On an IPv6 listener, the address of an IPv4 client is `::ffff:192.0.2.1`, and must match `192.0.2.0/24`.
        let address = presented.address.map(|address| address.to_canonical());
        if let Some(proof) = address.map(Proof::Network)
            && self.by_network().any(|(index, bot)| proof.covers(index, bot))
        {
            return proof;
        }
        Proof::None
    }

    /// Identifies the client by its User-Agent fields and its proof.
    ///
    /// With a proof, the User-Agent must name a bot that the proof is for. It may name no bot at all if the proof is
    /// for only one bot: the client is then that bot. Without a proof, the client is the bot that its User-Agent names,
    /// but the client is refused if that bot requires a proof or `required` is set.
    pub fn identify_by<'h>(
        &self,
        user_agents: impl IntoIterator<Item = &'h [u8]>,
        proof: &Proof<'_>,
        required: bool,
    ) -> Identity<'h> {
        match proof {
            Proof::Failed => Identity::Refused(IdentityMismatch::Unproven {
                by: ProofKinds {
                    credential: true,
                    ..ProofKinds::default()
                },
            }),
            Proof::None => self.unproven(self.identify(user_agents), required),
            Proof::Assumed => {
                let fields: Vec<_> = user_agents.into_iter().collect();
                match self.identify_by(fields.iter().copied(), &Proof::None, required) {
                    Identity::Refused(IdentityMismatch::Unproven { .. }) => self.proven(fields, proof),
                    unproven => unproven,
                }
            }
            Proof::Credential(_) | Proof::Certificate(_) | Proof::Network(_) | Proof::Logged(_) => {
                self.proven(user_agents, proof)
            }
        }
    }

    /// Returns whether any bot in the configuration accepts `proof`.
    pub fn accept(&self, proof: &Proof<'_>) -> bool {
        self.with_proofs().any(|(index, bot)| proof.covers(index, bot))
    }

    fn unproven<'h>(&self, identity: Identity<'h>, required: bool) -> Identity<'h> {
        let claimed = match &identity {
            Identity::Bot(bot) => Some(bot).filter(|bot| bot.accepted_proofs.are_required()),
            Identity::Token(token) => self.claimed_by(token),
            Identity::Unidentified(_) | Identity::Refused(_) => None,
        };
        let by = match claimed {
            Some(bot) => bot.accepted_proofs.kinds(),
            None if required => ProofKinds {
                credential: self.credentials().is_some(),
                certificate: self.by_certificate().next().is_some(),
                network: self.by_network().next().is_some(),
            },
            None => return identity,
        };
        Identity::Refused(IdentityMismatch::Unproven { by })
    }

    fn proven<'h>(&self, user_agents: impl IntoIterator<Item = &'h [u8]>, proof: &Proof<'_>) -> Identity<'h> {
        let mut user_agents = user_agents.into_iter();
        let field = user_agents.next();
        let identity = self.identify(field.into_iter().chain(user_agents));
        let mut candidates = self
            .with_proofs()
            .filter(|(index, bot)| proof.covers(*index, bot))
            .map(|(_, bot)| bot);
        let found = match &identity {
            Identity::Unidentified(Cause::Several) => return identity,
            Identity::Unidentified(_) => match (candidates.next(), candidates.next()) {
                (Some(only), None) => Some(only),
                _ => return identity,
            },
            // The field can name several bots. One of them must be a bot that the proof is for.
            Identity::Bot(named) => candidates.find(|bot| {
                let field = field.unwrap_or_default().trim_ascii();
                Arc::ptr_eq(bot, named) || bot.user_agents.iter().any(|pattern| pattern.matches(field))
            }),
            Identity::Token(token) => candidates.find(|bot| bot.goes_by().any(|name| name.eq_ignore_ascii_case(token))),
            Identity::Refused(_) => None,
        };
        found.map_or(Identity::Refused(IdentityMismatch::Agent), |bot| {
            Identity::Bot(bot.clone())
        })
    }
}

// === impl Proof ===

impl Proof<'_> {
    /// Returns the entry that the proof matches in the configuration of `bot`; without `bot`, in that of the first bot
    /// that accepts the proof. The text is the configuration's, not the client's.
    pub fn name(&self, bots: &Bots, bot: Option<&Arc<Bot>>) -> Option<String> {
        let first = || {
            bots.with_proofs()
                .find(|(index, bot)| self.covers(*index, bot))
                .map(|(_, bot)| bot)
        };
        let accepted_proofs = || bot.or_else(first).map(|bot| &bot.accepted_proofs);
        match self {
            Proof::None | Proof::Failed | Proof::Assumed => None,
            Proof::Credential(verified) => Some(verified.name().to_owned()),
            Proof::Certificate(certificate) => {
                let name = accepted_proofs()?
                    .certificates
                    .iter()
                    .find(|name| certificate.is(name))?;
                Some(name.to_string())
            }
            Proof::Network(address) => {
                let network = accepted_proofs()?
                    .networks
                    .iter()
                    .find(|network| network.contains(address))?;
                Some(network.to_string())
            }
            Proof::Logged(logged) => Some(logged.name.to_owned()),
        }
    }
}
