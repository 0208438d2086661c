//! Leaf certificates: what they contain, and how long they are valid. This module never reads the clock.
//!
//! A leaf has what the strict modes of OpenSSL and Python require.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, SanType,
    SerialNumber,
};
use rustls::{
    crypto::{SecureRandom, ring::sign::any_ecdsa_type},
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
    sign::SigningKey,
};
use time::OffsetDateTime;

use super::{chain::Validity, error::MintError, issuer::Issuer, name};
use crate::{
    origin::Host,
    text::{Second, calendar},
};

/// Issues a certificate for `name` with a new key, so that no two hosts have the same key.
pub(super) fn mint(
    issuer: &Issuer,
    random: &dyn SecureRandom,
    name: &Host,
    validity: Validity,
) -> Result<(CertificateDer<'static>, Arc<dyn SigningKey>), MintError> {
    check(name)?;
    let key = KeyPair::generate()?;
    let certificate = issuer.sign(&params(name, &serial(random)?, validity)?, &key)?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialized_der()));
    Ok((certificate, any_ecdsa_type(&key).map_err(MintError::Server)?))
}

pub(super) fn check(name: &Host) -> Result<(), MintError> {
    name::check(name).map_err(|reason| MintError::Name {
        name: name.to_string(),
        reason,
    })
}

/// Creates a random serial number (RFC 5280 §4.1.2.2). The first two bits make it positive and exactly 20 octets long.
pub(super) fn serial(random: &dyn SecureRandom) -> Result<[u8; 20], MintError> {
    let mut serial = [0; 20];
    random.fill(&mut serial).map_err(|_| MintError::Random)?;
    serial[0] = serial[0] & 0x7f | 0x40;
    Ok(serial)
}

fn params(name: &Host, serial: &[u8], validity: Validity) -> Result<CertificateParams, MintError> {
    let mut params = CertificateParams::default();
    params.serial_number = Some(SerialNumber::from_slice(serial));
    params.not_before = date(validity.not_before)?;
    params.not_after = date(validity.not_after)?;
    // The commonName is optional: clients read only the subjectAltName. Without a commonName, the subject is empty, and
    // rcgen marks the subjectAltName as critical (RFC 5280 §4.2.1.6).
    let (text, alternative) = match name {
        Host::Name(name) => (name.to_string(), SanType::DnsName((&**name).try_into()?)),
        Host::Ip(address) => (address.to_string(), SanType::IpAddress(*address)),
    };
    params.distinguished_name = DistinguishedName::new();
    if text.len() <= MAX_COMMON_NAME {
        params.distinguished_name.push(DnType::CommonName, text);
    }
    params.subject_alt_names = vec![alternative];
    // With `NoCa`, rcgen writes no subject key identifier.
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

fn date(time: SystemTime) -> Result<OffsetDateTime, MintError> {
    calendar(time).map(Into::into).ok_or(MintError::Encoding)
}

// === impl Validity ===

impl Validity {
    pub(super) fn of_leaf(authority: Self, now: SystemTime) -> Result<Self, MintError> {
        if now < authority.not_before {
            return Err(MintError::NotYetValid {
                not_before: Second(authority.not_before),
                now: Second(now),
            });
        }
        if now >= authority.not_after {
            return Err(MintError::Expired {
                not_after: Second(authority.not_after),
            });
        }
        // If the time overflows, the authority's own limit applies.
        let not_before = now.checked_sub(BACKDATE).unwrap_or(authority.not_before);
        let not_after = now.checked_add(LEAF_LIFE).unwrap_or(authority.not_after);
        Ok(Self {
            not_before: not_before.max(authority.not_before),
            not_after: not_after.min(authority.not_after),
        })
    }

    /// Returns when to replace a leaf that was issued at `now`: after half of its remaining life.
    pub(super) fn renew_at(self, now: SystemTime) -> SystemTime {
        let left = self.not_after.duration_since(now).unwrap_or_default();
        now + left / 2
    }
}

/// How long a leaf is valid, unless its authority expires earlier.
pub const LEAF_LIFE: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// How long before its issue a certificate begins to be valid, for clients whose clocks are slow.
pub(super) const BACKDATE: Duration = Duration::from_secs(60 * 60);

/// Maximum length of a common name, in characters (RFC 5280 appendix A.1, `ub-common-name`).
const MAX_COMMON_NAME: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    fn day(days: u32) -> SystemTime {
        SystemTime::UNIX_EPOCH + DAY * days
    }

    fn authority() -> Validity {
        Validity {
            not_before: day(20_000),
            not_after: day(20_100),
        }
    }

    #[test]
    fn a_leaf_is_backdated_by_an_hour_and_lives_ninety_days() {
        let leaf = Validity::of_leaf(authority(), day(20_001)).unwrap();
        assert_eq!(leaf.not_before, day(20_001) - BACKDATE);
        assert_eq!(leaf.not_after, day(20_091));
        assert_eq!(leaf.renew_at(day(20_001)), day(20_046));
    }

    #[test]
    fn a_leaf_is_valid_only_while_its_authority_is() {
        let leaf = Validity::of_leaf(authority(), day(20_000)).unwrap();
        assert_eq!(leaf.not_before, day(20_000));
        let leaf = Validity::of_leaf(authority(), day(20_090)).unwrap();
        assert_eq!(leaf.not_after, day(20_100));
        assert_eq!(leaf.renew_at(day(20_090)), day(20_095));
    }

    #[test]
    fn no_leaf_is_issued_outside_the_validity_of_its_authority() {
        assert!(matches!(
            Validity::of_leaf(authority(), day(19_999)),
            Err(MintError::NotYetValid { .. })
        ));
        assert!(matches!(
            Validity::of_leaf(authority(), day(20_100)),
            Err(MintError::Expired { .. })
        ));
    }
}
