//! The TLS of robotgate's own listeners: its certificate, and the root certificates for clients' certificates. Reads
//! the files that the configuration names, and does not listen.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    CertificateError, RootCertStore, ServerConfig,
    crypto::ring::{self, Ticketer},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    server::{NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier, danger::ClientCertVerifier},
};

use sha2::{Digest as _, Sha256};

use crate::{
    config::Tls,
    files::{self, SecretError, Unreadable},
    pem,
};

/// The TLS settings of the listeners.
#[derive(Debug, Clone)]
pub struct ServerTls {
    pub config: Arc<ServerConfig>,
    /// SHA-256 of the certificate and its intermediates, which shows whether a reload changed them.
    pub certificate: [u8; 32],
}

/// Why the listeners cannot speak TLS.
#[derive(Debug, thiserror::Error)]
pub enum ServerTlsError {
    #[error("proxy.tls.certificate: cannot read {}: {}", path.display(), Unreadable(error))]
    Certificate { path: PathBuf, error: std::io::Error },
    #[error("proxy.tls.certificate: {} contains no certificate in PEM form", .0.display())]
    NoCertificate(PathBuf),
    #[error("proxy.tls.certificate: {} cannot be read: {}", .0.display(), .1)]
    Pem(PathBuf, String),
    #[error("proxy.tls.certificate: the first certificate in {} is damaged", .0.display())]
    Damaged(PathBuf),
    #[error(
        "proxy.tls.certificate: the first certificate in {} has X.509 version 1; create one of version 3, with the \
         proxy's name in subjectAltName",
        .0.display()
    )]
    Version(PathBuf),
    #[error(
        "proxy.tls.certificate: the first certificate in {} cannot be used to serve TLS ({reason}); create another one",
        path.display()
    )]
    Unusable { path: PathBuf, reason: String },
    #[error("proxy.tls.key: {0}")]
    Key(#[from] SecretError),
    #[error("proxy.tls.key: {} contains {what}", path.display())]
    NoKey { path: PathBuf, what: &'static str },
    #[error(
        "proxy.tls: {} is not the key of the first certificate in {}; name the pair that belongs together, and put the \
         proxy's own certificate first",
        key.display(),
        certificate.display()
    )]
    Mismatch { certificate: PathBuf, key: PathBuf },
    #[error(
        "proxy.tls.key: robotgate cannot use the key {}: it is damaged, or is not ECDSA P-256 or P-384, RSA of 2048 to \
         4096 bits, or Ed25519",
        .0.display()
    )]
    UnusableKey(PathBuf),
    #[error("proxy.tls: the certificate and its key cannot be used to serve TLS: {0}")]
    Server(#[from] rustls::Error),
    #[error("proxy.tls.client-roots: {0}")]
    Roots(#[from] VerifierBuilderError),
}

/// Builds the TLS settings that `tls` describes.
///
/// # Errors
/// Fails if a file cannot be read or is not valid, other users can read the key, or the files do not belong together.
pub fn build(tls: &Tls) -> Result<ServerTls, ServerTlsError> {
    let chain = certificates(&tls.certificate)?;
    let certificate = chain.iter().fold(Sha256::new(), |digest, one| digest.chain_update(one));
    let key = files::read_secret(&tls.key)?;
    let key = PrivateKeyDer::from_pem_slice(&key).map_err(|_| ServerTlsError::NoKey {
        path: tls.key.clone(),
        what: pem::in_place_of_key(&key),
    })?;
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
    let builder = match verifier(&tls.client_roots, provider)? {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_single_cert(chain, key).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => ServerTlsError::Mismatch {
            certificate: tls.certificate.clone(),
            key: tls.key.clone(),
        },
        rustls::Error::InvalidCertificate(CertificateError::BadEncoding) => {
            ServerTlsError::Damaged(tls.certificate.clone())
        }
        // `openssl x509 -req` creates certificates of version 1, unless it is told to add extensions.
        rustls::Error::InvalidCertificate(error) if error.to_string().contains("UnsupportedCertVersion") => {
            ServerTlsError::Version(tls.certificate.clone())
        }
        rustls::Error::InvalidCertificate(error) => {
            let reason = error.to_string();
            let inner = reason
                .strip_prefix("Other(OtherError(")
                .and_then(|rest| rest.strip_suffix("))"));
            ServerTlsError::Unusable {
                path: tls.certificate.clone(),
                reason: inner.unwrap_or(&reason).to_owned(),
            }
        }
        // Only loading the key fails with this error.
        rustls::Error::General(_) => ServerTlsError::UnusableKey(tls.key.clone()),
        error => error.into(),
    })?;
    // Clients speak HTTP/2 only inside a CONNECT.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // Sessions are resumed only by tickets, which the client keeps.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    if tls.client_roots.is_empty() {
        config.ticketer = Ticketer::new()?;
    } else {
        // Allow no resumption, because a client that resumes a session does not present its certificate again.
        config.send_tls13_tickets = 0;
    }
    Ok(ServerTls {
        config: Arc::new(config),
        certificate: certificate.finalize().into(),
    })
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ServerTlsError> {
    let pem = files::read(path).map_err(|error| ServerTlsError::Certificate {
        path: path.to_owned(),
        error,
    })?;
    let chain = pem::certificates(&pem).map_err(|error| ServerTlsError::Pem(path.to_owned(), error.to_string()))?;
    match chain.is_empty() {
        true => Err(ServerTlsError::NoCertificate(path.to_owned())),
        false => Ok(chain.into_iter().map(|(_, certificate)| certificate).collect()),
    }
}

/// Returns the verifier of clients' certificates, if root certificates are configured. A client without a certificate
/// may connect, because it can prove in another way which bot it is.
fn verifier(
    roots: &[CertificateDer<'static>],
    provider: Arc<rustls::crypto::CryptoProvider>,
) -> Result<Option<Arc<dyn ClientCertVerifier>>, ServerTlsError> {
    if roots.is_empty() {
        return Ok(None);
    }
    let mut store = RootCertStore::empty();
    for root in roots.iter() {
        store.add(root.clone())?;
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(store), provider)
        .allow_unauthenticated()
        .build()?;
    Ok(Some(verifier))
}
