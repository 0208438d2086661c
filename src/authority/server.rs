//! From a leaf to a TLS server. It never asks clients for certificates, and never takes early data, which could be
//! replayed (RFC 8446 §8).

use std::sync::Arc;

use rustls::{
    ServerConfig,
    crypto::{CryptoProvider, ring::Ticketer},
    server::NoServerSessionStorage,
    sign::{CertifiedKey, SingleCertAndKey},
};

use super::leaf::MintError;

/// A server that shows `leaf` whatever name the client asks for, or none: to an IP address clients send no name, and the
/// tunnel's target has settled which leaf it is.
pub(super) fn server_config(provider: Arc<CryptoProvider>, leaf: CertifiedKey) -> Result<ServerConfig, MintError> {
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(MintError::Server)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(leaf)));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    // Sessions resume by tickets alone, under keys that belong to this name: a ticket for one name opens no tunnel to
    // another, and however many clients come, nothing is kept for them. The keys turn over every six hours.
    config.ticketer = Ticketer::new().map_err(|_| MintError::Random)?;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(config)
}
