//! Certificates for origins, good ones and bad ones, from a test authority that the gate is told to trust.

use std::sync::{Arc, LazyLock};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
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
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
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

    /// One whose time has not come.
    pub fn not_yet_valid(names: &[&str]) -> Self {
        let mut params = params(names);
        params.not_before = date_time_ymd(2090, 1, 1);
        params.not_after = date_time_ymd(2099, 1, 1);
        Self::signed(&TRUSTED, params)
    }

    /// One from an authority that nobody trusts.
    pub fn of_unknown_root(names: &[&str]) -> Self {
        Self::signed(&UNKNOWN, params(names))
    }

    /// The certificate and its key, in PEM.
    pub fn to_pem(&self) -> (String, String) {
        let chain = self.chain.iter().map(|certificate| pem("CERTIFICATE", certificate));
        (chain.collect(), pem("PRIVATE KEY", self.key.secret_der()))
    }

    /// What a client needs to show this certificate.
    pub fn for_client(&self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        (self.chain.clone(), self.key.clone_key())
    }

    /// One that vouches for itself.
    pub fn self_signed(names: &[&str]) -> Self {
        let key = KeyPair::generate().expect("a key");
        let certificate = params(names).self_signed(&key).expect("a certificate");
        Self::shown(vec![certificate.der().clone()], &key)
    }

    /// One with a name only where names stood of old.
    pub fn of_common_name(name: &str) -> Self {
        let mut params = params(&[]);
        params.distinguished_name.push(DnType::CommonName, name);
        Self::signed(&TRUSTED, params)
    }

    /// One for clients, not for servers.
    pub fn for_clients(names: &[&str]) -> Self {
        let mut params = params(names);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        Self::signed(&TRUSTED, params)
    }

    /// One by an authority below the trusted one, whose own certificate is shown or left out.
    pub fn by_intermediate(names: &[&str], shown: bool) -> Self {
        Self::below(authority_params("intermediate"), names, shown)
    }

    /// One signed by what is no authority.
    pub fn by_no_authority(names: &[&str]) -> Self {
        Self::below(params(&["issuer.example"]), names, true)
    }

    fn below(issuer: CertificateParams, names: &[&str], shown: bool) -> Self {
        let issuer_key = KeyPair::generate().expect("a key");
        let between = issuer.signed_by(&issuer_key, &TRUSTED.issuer).expect("a certificate");
        let issuer = Issuer::new(issuer, issuer_key);
        let key = KeyPair::generate().expect("a key");
        let leaf = params(names).signed_by(&key, &issuer).expect("a certificate");
        let mut chain = vec![leaf.der().clone()];
        if shown {
            chain.push(between.der().clone());
        }
        Self::shown(chain, &key)
    }

    fn signed(authority: &Authority, params: CertificateParams) -> Self {
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &authority.issuer).expect("a certificate");
        Self::shown(vec![certificate.der().clone()], &key)
    }

    fn shown(chain: Vec<CertificateDer<'static>>, key: &KeyPair) -> Self {
        Self {
            chain,
            key: PrivateKeyDer::try_from(key.serialize_der()).expect("rcgen writes PKCS #8"),
        }
    }

    /// The TLS settings of a server that shows this certificate and speaks HTTP/1.1.
    pub fn server_config(&self) -> Arc<ServerConfig> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring has the default versions")
            .with_no_client_auth()
            .with_single_cert(self.chain.clone(), self.key.clone_key())
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

/// RFC 7468 §3.
fn pem(label: &str, der: &[u8]) -> String {
    let text = data_encoding::BASE64.encode(der);
    format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
}

// === impl Authority ===

impl Authority {
    fn new(name: &str) -> Self {
        let key = KeyPair::generate().expect("a key");
        let params = authority_params(name);
        let pem = params.self_signed(&key).expect("a root").pem();
        Self {
            pem,
            issuer: Issuer::new(params, key),
        }
    }
}

fn authority_params(name: &str) -> CertificateParams {
    let mut params = params(&[]);
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn params(names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    CertificateParams::new(names).expect("names that a certificate can hold")
}
