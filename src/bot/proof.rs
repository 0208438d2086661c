//! What a client presents in addition to its User-Agent, and the proofs that bots accept. TLS has already verified the
//! certificates.

use std::{fmt, net::IpAddr};

use ipnet::IpNet;

use super::{Bot, ClientCertificate, CredentialRecord, certificate::CertificateName, credentials::Verified};
use crate::text::words;

/// The proofs that a bot accepts, any one of which is enough. If it accepts none, its User-Agent alone identifies it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcceptedProofs {
    pub credentials: Vec<Box<str>>,
    pub certificates: Vec<CertificateName>,
    pub networks: Vec<IpNet>,
}

/// Kinds of proof, such as those that a bot accepts. A client needs only one of them.
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
    pub address: Option<IpAddr>,
}

#[derive(Clone, Copy, Default)]
pub enum PresentedCredential<'a> {
    #[default]
    Nothing,
    /// The value of the request's only Proxy-Authorization field.
    Field(&'a [u8]),
    /// The request has more than one Proxy-Authorization field.
    Several,
    /// The credential of the CONNECT that the request came through.
    Inherited(&'a CredentialRecord),
}

/// What a client has proved. Of several proofs, only the strongest counts: a credential, then a certificate, then an
/// address.
#[derive(Clone, Copy, Debug)]
pub enum Proof<'a> {
    /// The client presented no proof that a configured bot accepts.
    None,
    /// The credential is invalid, or the client sent more than one.
    Failed,
    /// Counts as whatever proof the bot requires, in questions about requests that nobody has sent.
    Assumed,
    Credential(Verified<'a>),
    Certificate(&'a ClientCertificate),
    Network(IpAddr),
    /// A proof from the audit log, to decide a request again.
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

// === impl AcceptedProofs ===

impl AcceptedProofs {
    /// Returns whether the bot has to prove who it is.
    pub fn are_required(&self) -> bool {
        !(self.credentials.is_empty() && self.certificates.is_empty() && self.networks.is_empty())
    }

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
    /// Returns how a client can present a proof of one of these kinds, in sentences for people. Empty if no kind is
    /// set.
    pub fn what_to_do(self) -> String {
        let all = [
            (
                self.credential,
                "Write the credential into the proxy's address: http://NAME:SECRET@HOST:PORT. The operator creates it \
                 with `robotgate credential add NAME`.",
            ),
            (
                self.certificate,
                "Connect to the proxy's TLS listener with a client certificate that matches the bot's `certificates`.",
            ),
            (
                self.network,
                "Send the request from a network that is in the bot's `networks`.",
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

// === impl Proof ===

impl<'a> Proof<'a> {
    /// Returns whether this proves that a client is `bot`, which is at `index` in the configuration.
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

    /// Returns the kind of proof for the log: `failed` for [`Proof::Failed`], `None` if there is no proof or it is only
    /// assumed.
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

    /// Returns a record of the credential, for the requests inside a CONNECT.
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
