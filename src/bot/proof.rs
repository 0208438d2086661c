//! What a client presents in addition to its User-Agent, what that proves, and which bot the client then is.
//!
//! The caller has verified the certificate, and knows the client's address. This module refuses no client: `decision`
//! does.

use std::{fmt, net::IpAddr, sync::Arc};

use data_encoding::BASE64_NOPAD;
use ipnet::IpNet;

use super::{
    Bot, Bots, Cause, ClientCertificate, CredentialRecord, Identity, IdentityMismatch, certificate::CertificateName,
    credentials::Verified,
};
use crate::text::words;

/// The proofs that a bot accepts. Any one of them is enough. If there are none, the User-Agent alone identifies the
/// bot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcceptedProofs {
    /// Names of the credentials that prove that a client is the bot.
    pub credentials: Vec<Box<str>>,
    pub certificates: Vec<CertificateName>,
    /// Networks from which the bot sends its requests.
    pub networks: Vec<IpNet>,
}

/// Which kinds of proof a bot accepts. A client needs only one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProofKinds {
    pub credential: bool,
    pub certificate: bool,
    pub network: bool,
}

/// What a client presents in addition to its User-Agent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Presented<'a> {
    pub credential: PresentedCredential<'a>,
    /// The client certificate of the TLS connection, if TLS has verified one.
    pub certificate: Option<&'a ClientCertificate>,
    /// The client's address.
    pub address: Option<IpAddr>,
}

/// The credential that a client presents.
#[derive(Clone, Copy, Default)]
pub enum PresentedCredential<'a> {
    #[default]
    Nothing,
    /// The value of the request's only Proxy-Authorization field.
    Field(&'a [u8]),
    /// The request has more than one Proxy-Authorization field, so it is unclear which one to check.
    Several,
    /// The credential of the CONNECT that the request came through.
    Inherited(&'a CredentialRecord),
}

/// What a client has proved. If it has several proofs, only the strongest is used: a credential, then a certificate,
/// then an address.
#[derive(Clone, Copy, Debug)]
pub enum Proof<'a> {
    /// The client presented nothing that is a proof of a configured bot.
    None,
    /// The credential is invalid, or the client sent more than one.
    Failed,
    /// Stands for whatever proof the bot requires. For callers that ask how a request would be decided.
    Assumed,
    Credential(Verified<'a>),
    Certificate(&'a ClientCertificate),
    Network(IpAddr),
    /// A proof that was read from the audit log, to decide a request again.
    Logged(LoggedProof<'a>),
}

/// A proof as the audit log names it: its kind, and the entry of the configuration that it matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedProof<'a> {
    pub kind: ProofKind,
    pub name: &'a str,
}

words! {
    /// The kind of a proof, as in the audit log.
    pub enum ProofKind {
        Credential = "credential",
        Certificate = "certificate",
        Network = "network",
    }
}

/// The value of a Proxy-Authorization field in the Basic scheme (RFC 7617 §2): a name and a secret. It allocates
/// nothing. Its `Debug` output shows neither of the two, because a client could put the secret in place of the name.
pub(super) struct Basic {
    bytes: [u8; MAX_DECODED],
    /// Where in `bytes` the colon between name and secret is.
    colon: usize,
    len: usize,
}

// === impl AcceptedProofs ===

impl AcceptedProofs {
    /// Returns whether the bot has to prove who it is.
    pub fn are_required(&self) -> bool {
        !(self.credentials.is_empty() && self.certificates.is_empty() && self.networks.is_empty())
    }

    /// Returns which kinds of proof the bot accepts.
    pub fn kinds(&self) -> ProofKinds {
        ProofKinds {
            credential: !self.credentials.is_empty(),
            certificate: !self.certificates.is_empty(),
            network: !self.networks.is_empty(),
        }
    }
}

// === impl ProofKinds ===

impl ProofKinds {
    /// Returns what a person can do so that their client gives one of these proofs. Empty if the bot accepts no proof.
    pub fn what_to_do(self) -> String {
        let all = [
            (
                self.credential,
                "Write the credential into the proxy's address: http://NAME:SECRET@HOST:PORT. The operator creates them \
                 with `robotgate credential add NAME`.",
            ),
            (
                self.certificate,
                "Connect to the proxy's TLS listener with a client certificate that the bot's `certificates` name.",
            ),
            (
                self.network,
                "Send the request from a network that the bot's `networks` list.",
            ),
        ];
        let advice: Vec<&str> = all.into_iter().filter_map(|(has, text)| has.then_some(text)).collect();
        match advice.len() {
            0 | 1 => advice.concat(),
            _ => format!("One of these is enough. {}", advice.join(" ")),
        }
    }
}

impl fmt::Display for ProofKinds {
    /// Lists the kinds, as in `a credential or its network`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [
            (self.credential, "a credential"),
            (self.certificate, "a certificate"),
            (self.network, "its network"),
        ];
        let kinds: Vec<&str> = all.into_iter().filter_map(|(has, kind)| has.then_some(kind)).collect();
        f.write_str(&kinds.join(" or "))
    }
}

// === impl Bots ===

impl Bots {
    /// Finds out what a client has proved. If its credential is invalid, its certificate and address are ignored, and
    /// the result is [`Proof::Failed`].
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
        // On an IPv6 listener, the address of an IPv4 client has the form `::ffff:192.0.2.1`. Convert it to IPv4, so
        // that it matches `192.0.2.0/24`.
        let address = presented.address.map(|address| address.to_canonical());
        if let Some(proof) = address.map(Proof::Network)
            && self.by_network().any(|(index, bot)| proof.covers(index, bot))
        {
            return proof;
        }
        Proof::None
    }

    /// Identifies the client by its User-Agent fields and its proof. If `required` is set, a client without proof is
    /// refused.
    ///
    /// A proof is for one or more bots, and the User-Agent must name one of them. Without a proof, the client is the
    /// bot that its User-Agent names, unless that bot requires a proof.
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
            // The field can name several bots, so look for one that the proof is for.
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

impl<'a> Proof<'a> {
    /// Returns whether the proof proves that a client is `bot`, which is at `index` in the configuration.
    pub(super) fn covers(&self, index: usize, bot: &Bot) -> bool {
        match self {
            Proof::None | Proof::Failed => false,
            Proof::Assumed => true,
            Proof::Credential(verified) => verified.known.bots.contains(&index),
            Proof::Certificate(certificate) => bot.accepted_proofs.certificates.iter().any(|name| certificate.is(name)),
            Proof::Network(address) => bot
                .accepted_proofs
                .networks
                .iter()
                .any(|network| network.contains(address)),
            Proof::Logged(logged) => logged.is_in(&bot.accepted_proofs),
        }
    }

    /// Returns the kind of proof for the log: `failed` if the credential is invalid, `None` if there is no proof.
    pub fn kind(&self) -> Option<&'static str> {
        match self {
            Proof::None | Proof::Assumed => None,
            Proof::Failed => Some("failed"),
            Proof::Credential(_) => Some("credential"),
            Proof::Certificate(_) => Some("certificate"),
            Proof::Network(_) => Some("network"),
            Proof::Logged(logged) => Some(logged.kind.as_str()),
        }
    }

    /// Returns the name of the entry in the configuration that the proof matched. It is an entry of `bot`; if that is
    /// `None`, of the first bot that has a matching entry. The name contains nothing that the client sent.
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

    /// Returns a record of the credential. It is kept for the requests inside a CONNECT.
    pub fn credential_record(&self) -> Option<CredentialRecord> {
        match self {
            Proof::Credential(verified) => Some(verified.credential_record()),
            _ => None,
        }
    }
}

// === impl LoggedProof ===

impl LoggedProof<'_> {
    /// Returns whether the configuration still lists this proof for the bot.
    fn is_in(&self, accepted_proofs: &AcceptedProofs) -> bool {
        match self.kind {
            ProofKind::Credential => accepted_proofs.credentials.iter().any(|name| **name == *self.name),
            ProofKind::Certificate => accepted_proofs
                .certificates
                .iter()
                .any(|name| name.to_string() == self.name),
            ProofKind::Network => accepted_proofs
                .networks
                .iter()
                .any(|network| network.to_string() == self.name),
        }
    }
}

// === impl PresentedCredential ===

impl fmt::Debug for PresentedCredential<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PresentedCredential::Nothing => "Nothing",
            PresentedCredential::Field(_) => "Field(..)",
            PresentedCredential::Several => "Several",
            PresentedCredential::Inherited(_) => "Inherited(..)",
        })
    }
}

// === impl Basic ===

impl Basic {
    /// Parses the value of a Proxy-Authorization field. Returns `None` if the value is malformed or has another scheme
    /// than Basic.
    ///
    /// The case of the scheme does not matter, and the base64 padding can be missing. The name must not be empty, and
    /// ends at the first colon. Everything after it is the secret, including other colons.
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

/// Removes the base64 padding, which is at most two `=`. The decoder then reports a third one as an error.
fn without_padding(encoded: &[u8]) -> &[u8] {
    let once = encoded.strip_suffix(b"=").unwrap_or(encoded);
    once.strip_suffix(b"=").unwrap_or(once)
}

const SCHEME: &[u8] = b"Basic";
/// Maximum length of a name, a colon and a secret, in bytes. A longer value cannot be one of robotgate's credentials.
const MAX_DECODED: usize = 1024;
