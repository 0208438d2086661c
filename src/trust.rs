//! Helps to make clients trust robotgate, and records which of them do not. It reads no file, opens no socket, and
//! knows no private key.

pub mod clients;
mod keystore;
mod page;
mod rejections;
mod settings;

use std::time::SystemTime;

pub(crate) use self::page::{escaped, facts, with_code};
pub use self::{
    keystore::jks,
    page::{CA_NAME, Document, Form, Missing, page},
    rejections::{Rejection, RejectionKind, Rejections},
    settings::{BadProxy, Ca, ClientSettings, is_plain, shell_option, shell_word},
};

/// The public data of a certificate authority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    pub subject: String,
    /// SHA-256 of the certificate, as upper-case hexadecimal digits with colons between the bytes.
    pub fingerprint: String,
    pub not_before: SystemTime,
    pub not_after: SystemTime,
    /// All certificates in the authority's file as PEM (RFC 7468).
    pub pem: String,
    /// The certificate that signs leaf certificates, as DER.
    pub der: Vec<u8>,
}
