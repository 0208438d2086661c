//! Keeps the authority's key and signs leaf certificates with it. No function here returns the key.

use rcgen::{
    CertificateParams, DistinguishedName, KeyIdMethod, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384,
    PKCS_ED25519, PKCS_RSA_SHA256, PublicKeyData, SignatureAlgorithm, SigningKey,
};
use rustls::{
    SignatureScheme,
    crypto::ring::sign::any_supported_type,
    pki_types::{CertificateDer, PrivateKeyDer},
    sign::Signer,
};
use sha2::{Digest, Sha256};
use x509_parser::asn1_rs::{Any, BitString, FromDer, Sequence, ToDer};

use super::{
    chain::Chain,
    error::{AuthorityError, MintError},
    pair::Contents,
};

pub(super) struct Issuer {
    subject_der: Vec<u8>,
    outline: CertificateParams,
    signer: Box<dyn Signer>,
    algorithm: &'static SignatureAlgorithm,
}

/// Takes the place of the authority's key while rcgen builds a certificate. `Issuer::sign` replaces its empty signature
/// with the real one.
struct Unsigned(&'static SignatureAlgorithm);

// === impl Issuer ===

impl Issuer {
    pub(super) fn new(chain: &Chain, key: &PrivateKeyDer<'_>, contents: &Contents<'_>) -> Result<Self, AuthorityError> {
        let unusable = |detail: String| AuthorityError::Key {
            path: contents.key_path.to_owned(),
            detail,
        };
        let key = any_supported_type(key).map_err(|error| {
            unusable(match error {
                rustls::Error::General(detail) => detail,
                error => error.to_string(),
            })
        })?;
        if key
            .public_key()
            .is_none_or(|public| public.as_ref() != chain.public_key_der)
        {
            return Err(AuthorityError::Mismatch {
                certificate: contents.certificate_path.to_owned(),
                key: contents.key_path.to_owned(),
            });
        }
        let (signer, algorithm) = ALGORITHMS
            .into_iter()
            .find_map(|(scheme, algorithm)| Some((key.choose_scheme(&[scheme])?, algorithm)))
            .ok_or_else(|| unusable("its signature scheme is not supported".into()))?;

        // Each leaf must contain its issuer's key identifier (RFC 5280 §4.2.1.1). If the authority's certificate has
        // none, any value would do; this one is similar to those of RFC 7093 §2.
        let key_id = match &chain.key_id {
            Some(id) => id.clone(),
            None => Sha256::digest(&chain.public_key_der)[..KEY_ID_LENGTH].to_vec(),
        };
        let mut outline = CertificateParams::default();
        outline.distinguished_name = DistinguishedName::new();
        outline.key_identifier_method = KeyIdMethod::PreSpecified(key_id);

        Ok(Self {
            subject_der: chain.subject_der.clone(),
            outline,
            signer,
            algorithm,
        })
    }

    pub(super) fn is_ed25519(&self) -> bool {
        self.signer.scheme() == SignatureScheme::ED25519
    }

    /// The issuer field must be the authority's subject byte for byte (RFC 5280 §4.1.2.6). rcgen would encode the
    /// subject again, and drop one `DC` of `DC=corp, DC=example`.
    pub(super) fn sign(&self, params: &CertificateParams, key: &KeyPair) -> Result<CertificateDer<'static>, MintError> {
        let issuer = rcgen::Issuer::from_params(&self.outline, Unsigned(self.algorithm));
        let unsigned = params.signed_by(key, &issuer)?;
        let (to_be_signed, rest) = split_element(content(unsigned.der())?)?;
        let (algorithm, _) = split_element(rest)?;

        let to_be_signed = self.with_issuer(content(to_be_signed)?)?;
        let signature = self.signer.sign(&to_be_signed).map_err(MintError::Sign)?;
        let signature = BitString::new(0, &signature).to_der_vec().map_err(encoding)?;
        Ok(sequence(&[&to_be_signed, algorithm, &signature])?.into())
    }

    /// Replaces the issuer in the fields of a `TBSCertificate` (RFC 5280 §4.1) with the authority's subject.
    fn with_issuer(&self, fields: &[u8]) -> Result<Vec<u8>, MintError> {
        let (_version, rest) = split_element(fields)?;
        let (_serial, rest) = split_element(rest)?;
        let (_algorithm, rest) = split_element(rest)?;
        let before = &fields[..fields.len() - rest.len()];
        let (_issuer, after) = split_element(rest)?;
        sequence(&[before, &self.subject_der, after])
    }
}

// === impl Unsigned ===

impl PublicKeyData for Unsigned {
    fn der_bytes(&self) -> &[u8] {
        &[]
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        self.0
    }
}

impl SigningKey for Unsigned {
    fn sign(&self, _: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        Ok(Vec::new())
    }
}

fn split_element(der: &[u8]) -> Result<(&[u8], &[u8]), MintError> {
    let (rest, _) = Any::from_der(der).map_err(|_| MintError::Encoding)?;
    Ok(der.split_at(der.len() - rest.len()))
}

fn content(der: &[u8]) -> Result<&[u8], MintError> {
    let (_, element) = Any::from_der(der).map_err(|_| MintError::Encoding)?;
    Ok(element.data)
}

fn sequence(elements: &[&[u8]]) -> Result<Vec<u8>, MintError> {
    Sequence::new(elements.concat().into()).to_der_vec().map_err(encoding)
}

fn encoding<E>(_: E) -> MintError {
    MintError::Encoding
}

/// For each kind of key, the algorithm that most clients support.
const ALGORITHMS: [(SignatureScheme, &SignatureAlgorithm); 4] = [
    (SignatureScheme::ECDSA_NISTP256_SHA256, &PKCS_ECDSA_P256_SHA256),
    (SignatureScheme::ECDSA_NISTP384_SHA384, &PKCS_ECDSA_P384_SHA384),
    (SignatureScheme::RSA_PKCS1_SHA256, &PKCS_RSA_SHA256),
    (SignatureScheme::ED25519, &PKCS_ED25519),
];

/// Length of a key identifier in bytes: 160 bits (RFC 7093 §2).
const KEY_ID_LENGTH: usize = 20;
