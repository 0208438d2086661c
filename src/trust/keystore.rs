//! Writes certificates as a Java key store in the format JKS, without `keytool`. JKS is simpler than PKCS #12, for
//! which Java requires special attributes. Does no I/O.

use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};
use rustls::pki_types::CertificateDer;

/// Builds a Java key store with these trusted certificates. The first one is called `name`, the others are numbered.
///
/// Java reads the store without a password. For `keytool`, the password is `changeit`, as for Java's own store.
pub fn jks(name: &str, certificates: &[CertificateDer<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(MAGIC.to_be_bytes());
    out.extend(VERSION.to_be_bytes());
    out.extend(length(certificates.len()).to_be_bytes());
    for (index, certificate) in certificates.iter().enumerate() {
        out.extend(TRUSTED_CERTIFICATE.to_be_bytes());
        let alias = if index == 0 { name.to_owned() } else { index.to_string() };
        text(&mut out, &alias);
        // The creation time is always 0, so that the same certificates give the same file.
        out.extend(0_u64.to_be_bytes());
        text(&mut out, "X.509");
        out.extend(length(certificate.len()).to_be_bytes());
        out.extend_from_slice(certificate);
    }

    let mut digest = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    let password: Vec<u8> = PASSWORD.encode_utf16().flat_map(u16::to_be_bytes).collect();
    digest.update(&password);
    digest.update(b"Mighty Aphrodite");
    digest.update(&out);
    out.extend_from_slice(digest.finish().as_ref());
    out
}

/// Writes an ASCII text like Java's `DataOutput.writeUTF`.
fn text(out: &mut Vec<u8>, text: &str) {
    let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
    out.extend(length.to_be_bytes());
    out.extend_from_slice(&text.as_bytes()[..usize::from(length)]);
}

/// The number of certificates and the size of each always fit into 32 bits.
fn length(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

const MAGIC: u32 = 0xFEED_FEED;
const VERSION: u32 = 2;
const TRUSTED_CERTIFICATE: u32 = 2;
const PASSWORD: &str = "changeit";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_java_keystore_contains_the_given_certificates() {
        let store = jks("robotgate", &[vec![0x30, 1].into(), vec![0x30, 2].into()]);
        assert!(store.starts_with(b"\xFE\xED\xFE\xED\0\0\0\x02\0\0\0\x02\0\0\0\x02\0\x09robotgate"));
        let second = b"\0\0\0\x02\0\x011\0\0\0\0\0\0\0\0\0\x05X.509\0\0\0\x02\x30\x02";
        assert_eq!(&store[store.len() - 20 - second.len()..store.len() - 20], second);
    }
}
