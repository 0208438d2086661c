//! The benchmark's own authority. It signs the origin's certificate, and squid uses it to sign certificates for
//! interception.

use std::{fs, net::Ipv4Addr, path::Path, sync::Arc};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType,
};
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, ServerConfig, SignatureScheme,
    client::{
        Resumption,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject as _},
};

use super::Outcome;

/// The files in the benchmark's folder.
pub const AUTHORITY: &str = "authority.pem";
pub const AUTHORITY_WITH_KEY: &str = "authority-with-key.pem";
const CERTIFICATE: &str = "origin.pem";
const KEY: &str = "origin-key.pem";

pub const HTTP1: &[u8] = b"http/1.1";
pub const HTTP2: &[u8] = b"h2";

/// Writes an authority and a certificate of the origin's address into `folder`.
pub fn make(folder: &Path) -> Outcome<()> {
    let authority_key = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "benchmark");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority = params.self_signed(&authority_key)?;
    let issuer = Issuer::new(params, &authority_key);

    let key = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    // squid looks for an address only in the obsolete common name.
    params
        .distinguished_name
        .push(DnType::CommonName, Ipv4Addr::LOCALHOST.to_string());
    params.subject_alt_names = vec![SanType::IpAddress(Ipv4Addr::LOCALHOST.into())];
    let certificate = params.signed_by(&key, &issuer)?;

    fs::write(folder.join(AUTHORITY), authority.pem())?;
    let with_key = authority.pem() + &authority_key.serialize_pem();
    fs::write(folder.join(AUTHORITY_WITH_KEY), with_key)?;
    fs::write(folder.join(CERTIFICATE), certificate.pem())?;
    fs::write(folder.join(KEY), key.serialize_pem())?;
    Ok(())
}

/// Returns the origin's TLS settings, from the files in `folder`.
pub fn origin_config(folder: &Path) -> Outcome<Arc<ServerConfig>> {
    let chain = vec![CertificateDer::from_pem_file(folder.join(CERTIFICATE))?];
    let key = PrivateKeyDer::from_pem_file(folder.join(KEY))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
    Ok(Arc::new(config))
}

/// Returns the TLS settings of the load generator for this protocol. It verifies no certificate, to stay cheap,
/// and resumes no session, so that each new connection costs a proxy a full handshake.
pub fn client_config(protocol: &[u8]) -> Outcome<Arc<ClientConfig>> {
    let provider = Arc::new(ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Unchecked(provider)))
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

#[derive(Debug)]
struct Unchecked(Arc<CryptoProvider>);

impl ServerCertVerifier for Unchecked {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
