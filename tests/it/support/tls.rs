//! Creates certificates for test sites, both valid and invalid. The proxy trusts the certificate authority that signs
//! the valid ones.

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

static TRUSTED: LazyLock<Authority> = LazyLock::new(|| Authority::new("origin test root"));
static UNKNOWN: LazyLock<Authority> = LazyLock::new(|| Authority::new("unknown root"));

/// A server's certificate chain and key.
pub struct Certificate {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

/// The root certificates that a client trusts.
#[derive(Clone)]
pub struct Roots {
    store: RootCertStore,
    blind: bool,
}

#[derive(Debug)]
struct Blind(Arc<CryptoProvider>);

struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

// === impl Certificate ===

impl Certificate {
    /// Creates a valid certificate for the given names, which can include IP addresses.
    pub fn of(names: &[&str]) -> Self {
        Self::signed(&TRUSTED, params(names))
    }

    /// Creates an expired certificate.
    pub fn expired(names: &[&str]) -> Self {
        let mut params = params(names);
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2020, 2, 1);
        Self::signed(&TRUSTED, params)
    }

    /// Creates a certificate that is not yet valid.
    pub fn not_yet_valid(names: &[&str]) -> Self {
        let mut params = params(names);
        params.not_before = date_time_ymd(2090, 1, 1);
        params.not_after = date_time_ymd(2099, 1, 1);
        Self::signed(&TRUSTED, params)
    }

    /// Creates a certificate from an untrusted authority.
    pub fn of_unknown_root(names: &[&str]) -> Self {
        Self::signed(&UNKNOWN, params(names))
    }

    /// Returns the certificate chain and the key, in PEM.
    pub fn to_pem(&self) -> (String, String) {
        let chain = self.chain.iter().map(|certificate| pem("CERTIFICATE", certificate));
        (chain.collect(), pem("PRIVATE KEY", self.key.secret_der()))
    }

    /// Returns the chain and the key for a client that presents this certificate.
    pub fn for_client(&self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        (self.chain.clone(), self.key.clone_key())
    }

    /// Creates a self-signed certificate.
    pub fn self_signed(names: &[&str]) -> Self {
        let key = KeyPair::generate().expect("a key");
        let certificate = params(names).self_signed(&key).expect("a certificate");
        Self::shown(vec![certificate.der().clone()], &key)
    }

    /// Creates a certificate that has the server's name only as its common name, which clients ignore.
    pub fn of_common_name(name: &str) -> Self {
        let mut params = params(&[]);
        params.distinguished_name.push(DnType::CommonName, name);
        Self::signed(&TRUSTED, params)
    }

    /// Creates a certificate that is valid for clients, but not for servers.
    pub fn for_clients(names: &[&str]) -> Self {
        let mut params = params(names);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        Self::signed(&TRUSTED, params)
    }

    /// Creates a certificate from an intermediate authority, whose own certificate is from the trusted authority.
    /// `shown` says whether the server also sends the certificate of the intermediate authority.
    pub fn by_intermediate(names: &[&str], shown: bool) -> Self {
        Self::below(authority_params("intermediate"), names, shown)
    }

    /// Creates a certificate that was signed with the key of an ordinary certificate, which must not sign others.
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

    /// Returns the TLS settings of a server that shows this certificate and speaks HTTP/1.1.
    pub fn server_config(&self) -> Arc<ServerConfig> {
        self.server_config_of(ring::default_provider())
    }

    /// Does the same as [`server_config`](Self::server_config), but the server accepts only a key share that most
    /// clients do not send at first. So it answers their first ClientHello with a HelloRetryRequest.
    pub fn retrying_server_config(&self) -> Arc<ServerConfig> {
        self.server_config_of(CryptoProvider {
            kx_groups: vec![ring::kx_group::SECP384R1],
            ..ring::default_provider()
        })
    }

    fn server_config_of(&self, provider: CryptoProvider) -> Arc<ServerConfig> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
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
    /// Trusts the authority that signs the valid certificates.
    pub fn of_origins() -> Self {
        Self::from_pem(origin_root_pem())
    }

    /// Trusts no certificate.
    pub fn none() -> Self {
        Self {
            store: RootCertStore::empty(),
            blind: false,
        }
    }

    /// Trusts every certificate and checks nothing.
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

    /// Returns the TLS settings of a client that trusts these root certificates and offers these protocols.
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

/// Returns the certificate of the trusted authority in PEM, for robotgate's `extra-roots`.
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

/// Encodes PEM (RFC 7468 §3).
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
