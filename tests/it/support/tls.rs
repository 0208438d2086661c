//! Certificates for origins, good ones and bad ones, from a test authority that the gate is told to trust.

use std::sync::{Arc, LazyLock};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd};
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, ServerConfig, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
};

/// The authority that signs every good origin's certificate.
static TRUSTED: LazyLock<Authority> = LazyLock::new(|| Authority::new("origin test root"));
/// An authority that nobody was told about.
static UNKNOWN: LazyLock<Authority> = LazyLock::new(|| Authority::new("unknown root"));

/// What an origin shows when it is asked who it is.
pub struct Certificate {
    chain: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
    certificate_pem: String,
    key_pem: String,
}

/// What a client trusts.
#[derive(Clone)]
pub struct Roots {
    store: RootCertStore,
    blind: bool,
}

/// A client that looks at no certificate.
#[derive(Debug)]
struct Blind(Arc<CryptoProvider>);

struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

// === impl Certificate ===

impl Certificate {
    /// A good one, for the given names; an IP address becomes an IP name.
    pub fn of(names: &[&str]) -> Self {
        Self::signed(&TRUSTED, params(names))
    }

    /// One whose time is over.
    pub fn expired(names: &[&str]) -> Self {
        let mut params = params(names);
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2020, 2, 1);
        Self::signed(&TRUSTED, params)
    }

    /// One from an authority that nobody trusts.
    pub fn of_unknown_root(names: &[&str]) -> Self {
        Self::signed(&UNKNOWN, params(names))
    }

    /// The certificate and its key, in PEM.
    pub fn to_pem(&self) -> (String, String) {
        (self.certificate_pem.clone(), self.key_pem.clone())
    }

    /// What a client needs to show this certificate.
    pub fn for_client(&self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        (vec![self.chain.clone()], self.key.clone_key())
    }

    fn signed(authority: &Authority, params: CertificateParams) -> Self {
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &authority.issuer).expect("a certificate");
        Self {
            chain: certificate.der().clone(),
            key: PrivateKeyDer::try_from(key.serialize_der()).expect("rcgen writes PKCS #8"),
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
        }
    }

    /// The TLS settings of a server that shows this certificate and speaks HTTP/1.1.
    pub fn server_config(&self) -> Arc<ServerConfig> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring has the default versions")
            .with_no_client_auth()
            .with_single_cert(vec![self.chain.clone()], self.key.clone_key())
            .expect("the key fits the certificate");
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Arc::new(config)
    }
}

// === impl Roots ===

impl Roots {
    /// The authority of good origins.
    pub fn of_origins() -> Self {
        Self::from_pem(origin_root_pem())
    }

    /// Nothing at all: every certificate is a stranger's.
    pub fn none() -> Self {
        Self {
            store: RootCertStore::empty(),
            blind: false,
        }
    }

    /// Anything: certificates are not looked at.
    pub fn blind() -> Self {
        Self {
            blind: true,
            ..Self::none()
        }
    }

    pub fn from_pem(pem: &str) -> Self {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            roots
                .add(certificate.expect("a certificate in PEM"))
                .expect("a usable root");
        }
        Self {
            store: roots,
            blind: false,
        }
    }

    /// The TLS settings of a client that trusts these roots and offers these protocols.
    pub fn client_config(&self, alpn: &[&[u8]]) -> Arc<ClientConfig> {
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring has the default versions")
            .with_root_certificates(self.store.clone())
            .with_no_client_auth();
        if self.blind {
            let verifier = Blind(config.crypto_provider().clone());
            config.dangerous().set_certificate_verifier(Arc::new(verifier));
        }
        config.alpn_protocols = alpn.iter().map(|p| p.to_vec()).collect();
        Arc::new(config)
    }
}

/// The certificate of the authority of good origins, as the gate's `extra-roots` take it.
pub fn origin_root_pem() -> &'static str {
    &TRUSTED.pem
}

// === impl Blind ===

impl ServerCertVerifier for Blind {
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
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

// === impl Authority ===

impl Authority {
    fn new(name: &str) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = params(&[]);
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let pem = params.self_signed(&key).expect("a root").pem();
        Self {
            pem,
            issuer: Issuer::new(params, key),
        }
    }
}

fn params(names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    CertificateParams::new(names).expect("names that a certificate can hold")
}
