//! An operator's own authority: which certificates and keys are accepted, and the leaves that it issues.

use rcgen::{
    CertifiedIssuer, CustomExtension, ExtendedKeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384,
    PKCS_ED25519,
};
use x509_parser::{certificate::X509Certificate, prelude::FromDer};

use super::*;

fn self_signed(params: &CertificateParams, key: &KeyPair) -> CaFiles {
    CaFiles::with(&[params.self_signed(key).unwrap().pem()], key)
}

#[track_caller]
fn refusal(change: impl FnOnce(&mut CertificateParams)) -> AuthorityError {
    let mut params = ca_params("an authority");
    change(&mut params);
    let files = self_signed(&params, &KeyPair::generate().unwrap());
    files.load_or_create().unwrap_err()
}

#[test]
fn each_kind_of_key_can_sign() {
    for algorithm in [&PKCS_ECDSA_P256_SHA256, &PKCS_ECDSA_P384_SHA384, &PKCS_ED25519] {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let (authority, origin) = self_signed(&ca_params("an authority"), &key).load_or_create().unwrap();
        assert_eq!(origin, Provenance::Loaded);
        let leaf = authority.mint(&dns("example.com"), SystemTime::now()).unwrap();
        leaf::verify(&authority, leaf, "example.com").unwrap();
    }
}

#[test]
fn a_certificate_that_may_not_sign_is_refused() {
    type Change = fn(&mut CertificateParams);
    let changes: [(Change, &str); 4] = [
        (|params| params.is_ca = IsCa::NoCa, "basicConstraints CA:TRUE"),
        (|params| params.is_ca = IsCa::ExplicitNoCa, "basicConstraints CA:TRUE"),
        (
            |params| params.key_usages = vec![KeyUsagePurpose::CrlSign],
            "keyCertSign",
        ),
        (
            |params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth],
            "serverAuth",
        ),
    ];
    for (change, detail) in changes {
        let error = refusal(change);
        assert!(matches!(error, AuthorityError::NotAuthority { .. }), "{error}");
        assert!(error.to_string().contains(detail), "{error}");
    }
}

#[test]
fn a_certificate_outside_its_validity_is_refused() {
    let error = refusal(|params| params.not_after = (SystemTime::now() - DAY / 2).into());
    assert!(matches!(error, AuthorityError::Expired { .. }), "{error}");
    let error = refusal(|params| params.not_before = (SystemTime::now() + DAY).into());
    assert!(matches!(error, AuthorityError::NotYetValid { .. }), "{error}");
}

#[test]
fn a_file_without_a_valid_certificate_is_refused() {
    let files = CaFiles::new();
    files.create();
    let block = |content| format!("# mine\n-----BEGIN CERTIFICATE-----\n{content}\n-----END CERTIFICATE-----\n");
    for (contents, why) in [
        (String::new(), "it has no CERTIFICATE block"),
        ("hello".to_owned(), "it has no CERTIFICATE block"),
        (block("MAA="), ": the certificate at line 2 is damaged"),
        (block("!"), ": line 3 is not base64"),
    ] {
        fs::write(&files.certificate, contents).unwrap();
        let error = files.load().unwrap_err();
        assert!(matches!(error, AuthorityError::Certificate { .. }), "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[test]
fn certificate_pem_contains_only_the_certificates_of_the_file() {
    let files = CaFiles::new();
    let pem = files.create().certificate_pem().to_owned();
    let key = fs::read_to_string(&files.key).unwrap();
    fs::write(&files.certificate, format!("a comment\n{key}{pem}")).unwrap();
    assert_eq!(files.load().unwrap().certificate_pem(), pem);
}

#[test]
fn an_intermediate_is_sent_and_its_root_is_not() {
    let root = CertifiedIssuer::self_signed(ca_params("root"), KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let intermediate = ca_params("intermediate").signed_by(&key, &root).unwrap();
    let authority = CaFiles::with(&[intermediate.pem(), root.pem()], &key).load().unwrap();
    assert_eq!(authority.certificate_der(), intermediate.der());
    assert_eq!(authority.subject(), "CN=intermediate");
    assert_eq!(
        authority.certificate_pem(),
        format!("{}{}", intermediate.pem(), root.pem())
    );

    let leaf = authority.mint(&dns("example.com"), SystemTime::now()).unwrap();
    assert_eq!(leaf.cert[1..], [intermediate.der().clone()]);
    leaf::verify_under(root.der(), leaf, "example.com").unwrap();
}

#[test]
fn certificates_out_of_order_are_refused() {
    let root = CertifiedIssuer::self_signed(ca_params("root"), KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let intermediate = ca_params("intermediate").signed_by(&key, &root).unwrap();
    let error = CaFiles::with(&[root.pem(), intermediate.pem()], &key)
        .load()
        .unwrap_err();
    assert!(
        matches!(&error, AuthorityError::Chain { subject, .. } if subject == "CN=root"),
        "{error}"
    );
    let error = CaFiles::with(&[intermediate.pem(), root.pem()], root.key())
        .load()
        .unwrap_err();
    assert!(matches!(error, AuthorityError::Mismatch { .. }), "{error}");
}

#[test]
fn a_leaf_expires_no_later_than_any_certificate_of_its_chain() {
    let mut params = ca_params("root");
    params.not_after = (SystemTime::now() + 10 * DAY).into();
    let root = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let intermediate = ca_params("intermediate").signed_by(&key, &root).unwrap();
    let authority = CaFiles::with(&[intermediate.pem(), root.pem()], &key).load().unwrap();
    assert!(authority.not_after() < SystemTime::now() + 11 * DAY);
    let leaf = authority.mint(&dns("example.com"), SystemTime::now()).unwrap();
    let (_, leaf) = X509Certificate::from_der(&leaf.cert[0]).unwrap();
    let (_, root) = X509Certificate::from_der(root.der()).unwrap();
    assert_eq!(leaf.validity().not_after, root.validity().not_after);
}

/// Subjects from the directories of companies can have two organizational units (`OU=b, OU=a`).
#[test]
fn the_issuer_of_a_leaf_equals_the_subject_byte_for_byte() {
    let mut params = ca_params("issuing");
    params.distinguished_name.push(DnType::OrganizationalUnitName, "one");
    params
        .distinguished_name
        .push(DnType::CustomDnType(vec![2, 5, 4, 11]), "another");
    let authority = self_signed(&params, &KeyPair::generate().unwrap()).load().unwrap();
    assert_eq!(authority.subject(), "CN=issuing, OU=one, OU=another");

    let leaf = authority.mint(&dns("example.com"), SystemTime::now()).unwrap();
    let (_, certificate) = X509Certificate::from_der(&leaf.cert[0]).unwrap();
    let (_, issuer) = X509Certificate::from_der(authority.certificate_der()).unwrap();
    assert_eq!(certificate.issuer().as_raw(), issuer.subject().as_raw());
    leaf::verify(&authority, leaf, "example.com").unwrap();
}

#[test]
fn an_authority_without_extensions_for_strict_clients_is_accepted() {
    let mut params = ca_params("old");
    // Write basicConstraints CA:TRUE by hand, because rcgen's own adds the key identifier too.
    params.is_ca = IsCa::NoCa;
    let mut constraints = CustomExtension::from_oid_content(&[2, 5, 29, 19], vec![0x30, 0x03, 0x01, 0x01, 0xff]);
    constraints.set_criticality(true);
    params.custom_extensions = vec![constraints];
    params.key_usages.clear();
    let authority = self_signed(&params, &KeyPair::generate().unwrap()).load().unwrap();
    assert_eq!(authority.lacks(), ["keyUsage", "subjectKeyIdentifier"]);
    let leaf = authority.mint(&dns("example.com"), SystemTime::now()).unwrap();
    leaf::verify(&authority, leaf, "example.com").unwrap();
}
