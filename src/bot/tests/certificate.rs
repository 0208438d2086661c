//! Tests which certificates match an entry of `certificates`.

use data_encoding::HEXLOWER;
use rcgen::{CertificateParams, DnType, KeyPair, SanType};
use sha2::{Digest as _, Sha256};

use super::*;

#[test]
fn a_certificate_is_recognized_by_its_names_or_its_digest() {
    let mut params = CertificateParams::default();
    params.subject_alt_names = vec![
        SanType::DnsName("Crawler.Acme.example".try_into().expect("a name")),
        SanType::DnsName("*.wild.example".try_into().expect("a name")),
        SanType::URI("spiffe://acme.example/crawler".try_into().expect("a URI")),
        SanType::Rfc822Name("bot@acme.example".try_into().expect("an address")),
    ];
    params.distinguished_name.push(DnType::CommonName, "Acme crawler");
    params.distinguished_name.push(DnType::OrganizationName, "Acme");
    let key = KeyPair::generate().expect("a key");
    let der = params.self_signed(&key).expect("a certificate").der().to_vec();
    let certificate = ClientCertificate::from_der(&der).expect("it can be read");
    let digest = HEXLOWER.encode(&Sha256::digest(&der));
    let colons: Vec<&str> = (0..32).map(|at| &digest[2 * at..2 * at + 2]).collect();

    for (entry, is) in [
        ("crawler.acme.example", true),
        ("*.wild.example", true),
        ("a.wild.example", false),
        ("acme.example", false),
        ("spiffe://acme.example/crawler", true),
        ("spiffe://ACME.example/crawler", false),
        ("Acme crawler", true),
        ("acme crawler", false),
        ("Acme", false),
        ("bot@acme.example", false),
        (&format!("sha256:{digest}"), true),
        (&format!("sha256:{}", colons.join(":").to_uppercase()), true),
        (&digest, false),
        (&format!("sha256:{}", "0".repeat(64)), false),
    ] {
        let name = CertificateName::new(entry).expect(entry);
        assert_eq!(certificate.is(&name), is, "{entry}");
    }
}

#[test]
fn an_entry_that_matches_no_certificate_is_an_error() {
    for (entry, error) in [
        ("", BadCertificateName::Empty),
        (" a", BadCertificateName::Empty),
        ("a\n", BadCertificateName::Empty),
        ("sha256:", BadCertificateName::Digest),
        ("sha256:abcd", BadCertificateName::Digest),
        ("sha256:xyz", BadCertificateName::Digest),
    ] {
        assert_eq!(CertificateName::new(entry), Err(error), "{entry:?}");
    }
}

#[test]
fn bytes_that_are_not_a_certificate_are_an_error() {
    for der in [&b""[..], b"\x30\x03\x02\x01\x01", b"-----BEGIN CERTIFICATE-----"] {
        assert_eq!(ClientCertificate::from_der(der), Err(UnreadableCertificate));
    }
}
