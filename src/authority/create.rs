//! Creates a new authority, which is a key and its certificate, as PEM texts. Writes no files.

use std::time::{Duration, SystemTime};

use data_encoding::HEXLOWER;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, KeyPair, KeyUsagePurpose, SerialNumber,
};
use rustls::crypto::SecureRandom;

use super::{
    error::{AuthorityError, MintError},
    leaf::{BACKDATE, serial},
    pair::NewPair,
};
use crate::text::{Second, calendar};

/// Creates an ECDSA P-256 key and a self-signed certificate for it, valid for [`LIFE`].
pub(super) fn new_pair(random: &dyn SecureRandom, now: SystemTime) -> Result<NewPair, AuthorityError> {
    // If the machine booted with its clock at 1970, the certificate would be expired as soon as the clock is set.
    if now < SystemTime::UNIX_EPOCH + EARLIEST {
        return Err(AuthorityError::Clock(Second(now)));
    }
    let date_time = |time: Option<SystemTime>| {
        time.and_then(calendar)
            .map(Into::into)
            .ok_or(AuthorityError::Clock(Second(now)))
    };

    let mut params = CertificateParams::default();
    params.not_before = date_time(now.checked_sub(BACKDATE))?;
    params.not_after = date_time(now.checked_add(LIFE))?;
    params.serial_number = Some(SerialNumber::from_slice(
        &serial(random).map_err(|error| AuthorityError::Make(error.to_string()))?,
    ));
    params.distinguished_name = subject(random)?;
    // The authority may sign leaf certificates, but no other authorities (RFC 5280 §4.2.1.9).
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];

    let key = KeyPair::generate().map_err(make)?;
    let certificate = params.self_signed(&key).map_err(make)?;
    Ok(NewPair {
        certificate_pem: certificate.pem(),
        key_pem: key.serialize_pem(),
    })
}

/// Creates a subject with a random part. If a client trusts two authorities with the same subject, it may try only one.
fn subject(random: &dyn SecureRandom) -> Result<DistinguishedName, AuthorityError> {
    let mut id = [0; 4];
    random
        .fill(&mut id)
        .map_err(|_| AuthorityError::Make(MintError::Random.to_string()))?;
    let mut subject = DistinguishedName::new();
    subject.push(DnType::OrganizationName, "robotgate");
    subject.push(
        DnType::CommonName,
        format!("robotgate authority {}", HEXLOWER.encode(&id)),
    );
    Ok(subject)
}

fn make(error: rcgen::Error) -> AuthorityError {
    AuthorityError::Make(match error {
        // ring fails like this only without random numbers.
        rcgen::Error::RingUnspecified => MintError::Random.to_string(),
        error => error.to_string(),
    })
}

/// Ten years, so that clients seldom have to be told to trust a new certificate.
const LIFE: Duration = Duration::from_secs(3652 * 24 * 60 * 60);

/// A clock that shows an earlier time than 2025-01-01 is wrong.
const EARLIEST: Duration = Duration::from_secs(1_735_689_600);
