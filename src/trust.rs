//! How clients are brought to trust robotgate, and which of them do not.
//!
//! - [`clients`]: what has to be set for each client and system, as text that a shell takes.
//! - [`jks`]: certificates as Java's programs take them.
//! - [`page()`]: the same for a person who opens `http://robotgate.internal/`, and the authority's certificate itself.
//! - [`Rejections`]: which clients rejected the authority's certificates lately.
//!
//! Pure: it takes the certificate's facts, the proxy's address and the time, and returns text. It reads no file, opens
//! no socket, and knows no private key.

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
    settings::{BadProxy, Ca, Settings, is_plain, shell_word},
};

/// What clients may know of an authority: everything but its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// For people to read.
    pub subject: String,
    /// SHA-256, as upper-case hexadecimal octets between colons.
    pub fingerprint: String,
    pub not_before: SystemTime,
    pub not_after: SystemTime,
    /// RFC 7468; every certificate of the authority's file.
    pub pem: String,
    /// The one that signs.
    pub der: Vec<u8>,
}
