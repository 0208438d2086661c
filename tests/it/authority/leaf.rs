//! The content of leaf certificates, and whether clients accept them.

use std::collections::HashSet;

use robotgate::authority::{LEAF_LIFE, MintError, NameError};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use x509_parser::{
    certificate::X509Certificate,
    extensions::{GeneralName, ParsedExtension},
    oid_registry::Oid,
    prelude::FromDer,
};

use super::*;

/// Verifies `leaf` for `name`, as a client that trusts the authority does.
pub(super) fn verify(authority: &Authority, leaf: CertifiedKey, name: &str) -> Result<(), rustls::Error> {
    verify_under(authority.certificate_der(), leaf, name)
}

pub(super) fn verify_under(
    root: &CertificateDer<'static>,
    leaf: CertifiedKey,
    name: &str,
) -> Result<(), rustls::Error> {
    let server = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(leaf)));
    handshake(&Arc::new(server), &Arc::new(client_trusting(root)), name).map(drop)
}

fn mint(authority: &Authority, name: &Host) -> CertificateDer<'static> {
    let leaf = authority.mint(name, SystemTime::now()).unwrap();
    assert_eq!(leaf.cert.len(), 1, "a root is not sent along");
    leaf.cert[0].clone()
}

fn parse<'a>(der: &'a CertificateDer<'_>) -> X509Certificate<'a> {
    X509Certificate::from_der(der).unwrap().1
}

/// Returns the dotted identifier and the criticality of each extension, sorted.
fn extensions(certificate: &X509Certificate<'_>) -> Vec<(String, bool)> {
    let id = |oid: &Oid<'_>| oid.to_id_string();
    let mut extensions: Vec<_> = certificate
        .extensions()
        .iter()
        .map(|extension| (id(&extension.oid), extension.critical))
        .collect();
    extensions.sort();
    extensions
}

fn key_id(certificate: &X509Certificate<'_>) -> Vec<u8> {
    certificate
        .iter_extensions()
        .find_map(|extension| match extension.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0.to_vec()),
            _ => None,
        })
        .unwrap()
}

fn authority_key_id(certificate: &X509Certificate<'_>) -> Vec<u8> {
    certificate
        .iter_extensions()
        .find_map(|extension| match extension.parsed_extension() {
            ParsedExtension::AuthorityKeyIdentifier(id) => Some(id.key_identifier.as_ref().unwrap().0.to_vec()),
            _ => None,
        })
        .unwrap()
}

const SUBJECT_KEY_ID: &str = "2.5.29.14";
const KEY_USAGE: &str = "2.5.29.15";
const SUBJECT_ALT_NAME: &str = "2.5.29.17";
const BASIC_CONSTRAINTS: &str = "2.5.29.19";
const AUTHORITY_KEY_ID: &str = "2.5.29.35";
const EXTENDED_KEY_USAGE: &str = "2.5.29.37";

#[test]
fn a_new_authority_has_exactly_the_expected_extensions() {
    let (authority, other) = (authority(), authority());
    let certificate = parse(authority.certificate_der());
    assert_eq!(
        extensions(&certificate),
        [(SUBJECT_KEY_ID, false), (KEY_USAGE, true), (BASIC_CONSTRAINTS, true)]
            .map(|(id, critical)| (id.to_owned(), critical)),
    );
    let constraints = certificate.basic_constraints().unwrap().unwrap().value;
    assert!(constraints.ca);
    assert_eq!(constraints.path_len_constraint, Some(0));
    let usage = certificate.key_usage().unwrap().unwrap().value;
    assert_eq!(usage.to_string(), "Key Cert Sign, CRL Sign");
    assert_eq!(certificate.issuer().as_raw(), certificate.subject().as_raw());
    assert!(authority.subject().starts_with("O=robotgate, CN=robotgate authority "));
    assert_ne!(authority.subject(), other.subject());

    let now = SystemTime::now();
    assert!(authority.not_before() < now - Duration::from_secs(3590));
    assert!(authority.not_after() > now + 3650 * DAY);
    assert_eq!(authority.lacks(), [""; 0]);
    assert_eq!(authority.fingerprint().len(), 32 * 3 - 1);
}

#[test]
fn a_leaf_for_a_host_name_has_the_expected_fields() {
    let authority = authority();
    let der = mint(&authority, &dns("www.example.com"));
    let leaf = parse(&der);
    let issuer = parse(authority.certificate_der());

    assert_eq!(leaf.version().0, 2);
    assert_eq!(leaf.subject().to_string(), "CN=www.example.com");
    assert_eq!(leaf.issuer().as_raw(), issuer.subject().as_raw());
    assert_eq!(
        extensions(&leaf),
        [
            (SUBJECT_KEY_ID, false),
            (KEY_USAGE, true),
            (SUBJECT_ALT_NAME, false),
            (BASIC_CONSTRAINTS, true),
            (AUTHORITY_KEY_ID, false),
            (EXTENDED_KEY_USAGE, false),
        ]
        .map(|(id, critical)| (id.to_owned(), critical)),
    );
    let names = &leaf.subject_alternative_name().unwrap().unwrap().value.general_names;
    assert_eq!(*names, [GeneralName::DNSName("www.example.com")]);
    assert_eq!(
        leaf.key_usage().unwrap().unwrap().value.to_string(),
        "Digital Signature"
    );
    let purposes = leaf.extended_key_usage().unwrap().unwrap().value;
    assert!(purposes.server_auth && !purposes.client_auth && !purposes.any && purposes.other.is_empty());
    assert!(!leaf.basic_constraints().unwrap().unwrap().value.ca);
    assert_eq!(authority_key_id(&leaf), key_id(&issuer));
    assert_ne!(key_id(&leaf), key_id(&issuer));
    let life = leaf.validity().not_after.timestamp() - leaf.validity().not_before.timestamp();
    // Leaves are backdated by an hour, or by less if the authority is younger.
    assert!((LEAF_LIFE.as_secs()..=LEAF_LIFE.as_secs() + 3601).contains(&life.unsigned_abs()));
    assert!(leaf.validity().not_before >= issuer.validity().not_before);
}

#[test]
fn clients_accept_leaves_for_names_and_addresses() {
    let authority = authority();
    let long = format!("{}.example.com", "a".repeat(60));
    for name in [
        "example.com",
        "localhost",
        "foo_bar.example",
        "xn--bcher-kva.example",
        &long,
    ] {
        let leaf = authority.mint(&dns(name), SystemTime::now()).unwrap();
        verify(&authority, leaf, name).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    for address in ["192.0.2.1", "127.0.0.1", "2001:db8::1", "::1"] {
        let der = mint(&authority, &ip(address));
        let leaf = parse(&der);
        let names = &leaf.subject_alternative_name().unwrap().unwrap().value.general_names;
        assert!(
            matches!(names[..], [GeneralName::IPAddress(octets)] if octets.len() == if address.contains(':') { 16 } else { 4 })
        );
        let leaf = authority.mint(&ip(address), SystemTime::now()).unwrap();
        verify(&authority, leaf, address).unwrap_or_else(|error| panic!("{address}: {error}"));
    }
}

#[test]
fn clients_refuse_a_leaf_for_another_name() {
    let authority = authority();
    let leaf = authority.mint(&dns("example.com"), SystemTime::now()).unwrap();
    let error = verify(&authority, leaf, "www.example.com").unwrap_err();
    assert!(error.to_string().contains("not valid for name"), "{error}");
}

#[test]
fn a_leaf_for_a_long_name_has_an_empty_subject() {
    let authority = authority();
    let name = format!("{}.example", "a".repeat(56));
    assert_eq!(name.len(), 64);
    let der = mint(&authority, &dns(&name));
    assert_eq!(parse(&der).subject().to_string(), format!("CN={name}"));

    let der = mint(&authority, &dns(&format!("a{name}")));
    let leaf = parse(&der);
    assert_eq!(leaf.subject().iter().count(), 0);
    assert!(leaf.subject_alternative_name().unwrap().unwrap().critical);
}

#[test]
fn serial_numbers_are_positive_long_and_unique() {
    let authority = authority();
    let serials: HashSet<_> = (0..50)
        .map(|_| {
            let der = mint(&authority, &dns("example.com"));
            let serial = parse(&der).raw_serial().to_vec();
            assert_eq!(serial.len(), 20);
            assert_eq!(serial[0] & 0x80, 0, "negative");
            serial
        })
        .collect();
    assert_eq!(serials.len(), 50);
}

#[test]
fn each_leaf_has_its_own_key() {
    let authority = authority();
    let (one, other) = (
        mint(&authority, &dns("example.com")),
        mint(&authority, &dns("example.com")),
    );
    assert_ne!(parse(&one).public_key().raw, parse(&other).public_key().raw);
    assert_ne!(
        parse(&one).public_key().raw,
        parse(authority.certificate_der()).public_key().raw
    );
}

#[test]
fn names_that_a_certificate_cannot_have_are_refused() {
    let authority = authority();
    for (name, expected) in [
        ("*.example.com", NameError::Character),
        ("", NameError::Empty),
        ("example.com.", NameError::EmptyLabel),
        ("192.0.2.1", NameError::Address),
    ] {
        let error = authority.mint(&dns(name), SystemTime::now()).unwrap_err();
        assert!(
            matches!(error, MintError::Name { reason, .. } if reason == expected),
            "{error}"
        );
    }
}

#[test]
fn an_authority_outside_its_validity_issues_no_leaf() {
    let authority = authority();
    let error = authority.mint(&dns("example.com"), authority.not_after()).unwrap_err();
    assert!(matches!(error, MintError::Expired { .. }), "{error}");
    let error = authority
        .mint(&dns("example.com"), SystemTime::now() - DAY)
        .unwrap_err();
    assert!(matches!(error, MintError::NotYetValid { .. }), "{error}");
}
