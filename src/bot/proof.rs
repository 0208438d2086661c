//! What a client presents beside its User-Agent, and what that proves: which bots it may be.
//!
//! Pure: certificates were verified and addresses seen elsewhere. It never judges the User-Agent.

use std::{fmt, net::IpAddr, sync::Arc};

use ipnet::IpNet;

use super::{Bot, Bots, ClientCertificate, Voucher, basic::Basic, certificate::CertificateName, credentials::Verified};

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
    Credential(Verified<'a>),
    Certificate(&'a ClientCertificate),
    Network(IpAddr),
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
            && self.by_certificate().any(|(place, bot)| proof.covers(place, bot))
        {
            return proof;
        }
        // An IPv4 client of an IPv6 listener has an address of both kinds.
        let address = presented.address.map(|address| address.to_canonical());
        if let Some(proof) = address.map(Proof::Network)
            && self.by_network().any(|(place, bot)| proof.covers(place, bot))
        {
            return proof;
        }
        Proof::None
    }
}

// === impl Proof ===

impl<'a> Proof<'a> {
    /// Whether a bot, by its place in the configuration, is one that this stands for.
    pub(super) fn covers(&self, place: usize, bot: &Bot) -> bool {
        match self {
            Proof::None | Proof::Failed => false,
            Proof::Credential(verified) => verified.known.bots.contains(&place),
            Proof::Certificate(certificate) => bot.bindings.certificates.iter().any(|name| certificate.is(name)),
            Proof::Network(address) => bot.bindings.networks.iter().any(|network| network.contains(address)),
        }
    }

    /// Its kind as the log names it, `failed` where what was shown does not hold; `None` where nothing was shown.
    pub fn kind(&self) -> Option<&'static str> {
        match self {
            Proof::None => None,
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
                .find(|(place, bot)| self.covers(*place, bot))
                .map(|(_, bot)| bot)
        };
        let bindings = || bot.or_else(first).map(|bot| &bot.bindings);
        match self {
            Proof::None | Proof::Failed => None,
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
