//! What a client presents beside its User-Agent, what that proves, and who asks by both together.
//!
//! Pure: certificates were verified and addresses seen elsewhere. It decides nothing: a decision says that a claim is
//! refused.

use std::{fmt, net::IpAddr, sync::Arc};

use data_encoding::BASE64_NOPAD;
use ipnet::IpNet;

use super::{
    Bot, Bots, Cause, ClientCertificate, Identity, Misfit, Voucher, certificate::CertificateName, credentials::Verified,
};

/// What proves that a client is a bot; any one is enough. Where there is none, the bot's User-Agent is believed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bindings {
    /// Names of credentials.
    pub credentials: Vec<Box<str>>,
    pub certificates: Vec<CertificateName>,
    /// Where its requests come from.
    pub networks: Vec<IpNet>,
}

/// What a client presents.
#[derive(Clone, Copy, Debug, Default)]
pub struct Presented<'a> {
    pub credential: Shown<'a>,
    /// That of its TLS connection, verified.
    pub certificate: Option<&'a ClientCertificate>,
    /// Of the connection's other end.
    pub address: Option<IpAddr>,
}

/// The credential that a client presents.
#[derive(Clone, Copy, Default)]
pub enum Shown<'a> {
    #[default]
    Nothing,
    /// The value of its one Proxy-Authorization field.
    Field(&'a [u8]),
    /// More than one field: nobody can say which is meant.
    Several,
    /// That of the CONNECT which the request came through.
    Inherited(&'a Voucher),
}

/// What holds of what was presented: only the strongest counts, which is a credential, then a certificate, then an
/// address.
#[derive(Clone, Copy, Debug)]
pub enum Proof<'a> {
    /// Nothing was presented that the configuration knows.
    None,
    /// A credential that does not hold.
    Failed,
    /// Whatever is needed: for those who only ask what would be decided.
    Assumed,
    Credential(Verified<'a>),
    Certificate(&'a ClientCertificate),
    Network(IpAddr),
}

/// The value of a Proxy-Authorization field in the Basic scheme (RFC 7617 §2): a name and a secret as a client sent them. It
/// allocates nothing, and prints neither part: a client may well put the secret where the name belongs.
pub(super) struct Basic {
    bytes: [u8; MAX_DECODED],
    /// Where the first colon is.
    colon: usize,
    len: usize,
}

// === impl Bindings ===

impl Bindings {
    /// Whether the bot has to prove who it is.
    pub fn bind(&self) -> bool {
        !(self.credentials.is_empty() && self.certificates.is_empty() && self.networks.is_empty())
    }
}

// === impl Bots ===

impl Bots {
    /// What is proven by what a client presents. A credential that does not hold is never made good by something weaker.
    pub fn prove<'a>(&'a self, presented: &Presented<'a>) -> Proof<'a> {
        if let Some(credentials) = self.credentials() {
            let verified = match presented.credential {
                Shown::Nothing => None,
                Shown::Several => return Proof::Failed,
                Shown::Field(value) => {
                    Some(Basic::parse(value).and_then(|basic| credentials.verify(basic.name(), basic.secret())))
                }
                Shown::Inherited(voucher) => Some(credentials.recheck(voucher)),
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
        // An IPv4 client of an IPv6 listener has an address of both kinds.
        let address = presented.address.map(|address| address.to_canonical());
        if let Some(proof) = address.map(Proof::Network)
            && self.by_network().any(|(index, bot)| proof.covers(index, bot))
        {
            return proof;
        }
        Proof::None
    }

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
            Proof::Assumed => {
                let fields: Vec<_> = user_agents.into_iter().collect();
                match self.identify_by(fields.iter().copied(), &Proof::None, required) {
                    Identity::Refused(Misfit::Unproven { .. }) => self.proven(fields, proof),
                    unproven => unproven,
                }
            }
            Proof::Credential(_) | Proof::Certificate(_) | Proof::Network(_) => self.proven(user_agents, proof),
        }
    }

    fn unproven<'h>(&self, identity: Identity<'h>) -> Identity<'h> {
        let claimed = match &identity {
            Identity::Bot(bot) => Some(bot).filter(|bot| bot.bindings.bind()),
            Identity::Token(token) => self.claimed_by(token),
            Identity::Unidentified(_) | Identity::Refused(_) => None,
        };
        match claimed {
            Some(bot) => Identity::Refused(Misfit::Unproven {
                by_credential: !bot.bindings.credentials.is_empty(),
            }),
            None => identity,
        }
    }

    fn proven<'h>(&self, user_agents: impl IntoIterator<Item = &'h [u8]>, proof: &Proof<'_>) -> Identity<'h> {
        let mut user_agents = user_agents.into_iter();
        let field = user_agents.next();
        let identity = self.identify(field.into_iter().chain(user_agents));
        let mut candidates = self
            .bound()
            .filter(|(index, bot)| proof.covers(*index, bot))
            .map(|(_, bot)| bot);
        let found = match &identity {
            Identity::Unidentified(Cause::Several) => return identity,
            Identity::Unidentified(_) => match (candidates.next(), candidates.next()) {
                (Some(only), None) => Some(only),
                _ => return identity,
            },
            // The first bot in the file that a field names need not be one that is proven.
            Identity::Bot(named) => candidates.find(|bot| {
                let field = field.unwrap_or_default().trim_ascii();
                Arc::ptr_eq(bot, named) || bot.user_agents.iter().any(|pattern| pattern.matches(field))
            }),
            Identity::Token(token) => candidates.find(|bot| bot.goes_by().any(|name| name.eq_ignore_ascii_case(token))),
            Identity::Refused(_) => None,
        };
        found.map_or(Identity::Refused(Misfit::Agent), |bot| Identity::Bot(bot.clone()))
    }
}

// === impl Proof ===

impl<'a> Proof<'a> {
    /// Whether a bot, by its place in the configuration, is one that this stands for.
    pub(super) fn covers(&self, index: usize, bot: &Bot) -> bool {
        match self {
            Proof::None | Proof::Failed => false,
            Proof::Assumed => true,
            Proof::Credential(verified) => verified.known.bots.contains(&index),
            Proof::Certificate(certificate) => bot.bindings.certificates.iter().any(|name| certificate.is(name)),
            Proof::Network(address) => bot.bindings.networks.iter().any(|network| network.contains(address)),
        }
    }

    /// Its kind as the log names it, `failed` where what was shown does not hold; `None` where nothing was shown.
    pub fn kind(&self) -> Option<&'static str> {
        match self {
            Proof::None | Proof::Assumed => None,
            Proof::Failed => Some("failed"),
            Proof::Credential(_) => Some("credential"),
            Proof::Certificate(_) => Some("certificate"),
            Proof::Network(_) => Some("network"),
        }
    }

    /// Which one, as the configuration names it: for `bot`, where it was found to be that one, else for the first bot
    /// that it stands for. Nothing of what a client sent is in it.
    pub fn name(&self, bots: &Bots, bot: Option<&Arc<Bot>>) -> Option<String> {
        let first = || {
            bots.bound()
                .find(|(index, bot)| self.covers(*index, bot))
                .map(|(_, bot)| bot)
        };
        let bindings = || bot.or_else(first).map(|bot| &bot.bindings);
        match self {
            Proof::None | Proof::Failed | Proof::Assumed => None,
            Proof::Credential(verified) => Some(verified.name().to_owned()),
            Proof::Certificate(certificate) => {
                let name = bindings()?.certificates.iter().find(|name| certificate.is(name))?;
                Some(name.to_string())
            }
            Proof::Network(address) => {
                let network = bindings()?.networks.iter().find(|network| network.contains(address))?;
                Some(network.to_string())
            }
        }
    }

    /// What requests inside a CONNECT inherit of this one's credential.
    pub fn voucher(&self) -> Option<Voucher> {
        match self {
            Proof::Credential(verified) => Some(verified.voucher()),
            _ => None,
        }
    }
}

// === impl Shown ===

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Shown::Nothing => "Nothing",
            Shown::Field(_) => "Field(..)",
            Shown::Several => "Several",
            Shown::Inherited(_) => "Inherited(..)",
        })
    }
}

// === impl Basic ===

impl Basic {
    /// Reads a field's value; `None` where it is of another scheme, or malformed.
    ///
    /// The scheme's case does not count, and neither does padding that was left out. The name is not empty and ends at
    /// the first colon; what follows is the secret, further colons included.
    pub(super) fn parse(value: &[u8]) -> Option<Self> {
        let value = value.trim_ascii();
        let (scheme, rest) = value.split_at_checked(SCHEME.len())?;
        if !scheme.eq_ignore_ascii_case(SCHEME) || !rest.starts_with(b" ") {
            return None;
        }
        let encoded = without_padding(rest.trim_ascii_start());
        let mut bytes = [0; MAX_DECODED];
        let room = bytes.get_mut(..BASE64_NOPAD.decode_len(encoded.len()).ok()?)?;
        let len = BASE64_NOPAD.decode_mut(encoded, room).ok()?;
        let colon = bytes[..len]
            .iter()
            .position(|&byte| byte == b':')
            .filter(|at| *at > 0)?;
        Some(Self { bytes, colon, len })
    }

    pub(super) fn name(&self) -> &[u8] {
        &self.bytes[..self.colon]
    }

    pub(super) fn secret(&self) -> &[u8] {
        &self.bytes[self.colon + 1..self.len]
    }
}

impl fmt::Debug for Basic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Basic(..)")
    }
}

/// At most two signs are padding; a third is a mistake, which the decoder finds.
fn without_padding(encoded: &[u8]) -> &[u8] {
    let once = encoded.strip_suffix(b"=").unwrap_or(encoded);
    once.strip_suffix(b"=").unwrap_or(once)
}

const SCHEME: &[u8] = b"Basic";
/// Bytes of a name, a colon and a secret. What is longer was not made here.
const MAX_DECODED: usize = 1024;
