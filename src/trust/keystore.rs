//! A trust store as Java reads it: the format JKS, which needs no `keytool` and, unlike Java's PKCS #12, no attributes of
//! its own. Pure.

use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};
use rustls::pki_types::CertificateDer;

/// A store that trusts these certificates. `name` is that of its first entry; the others are numbered.
///
/// Java reads a JKS without a password where it is given none, and then leaves the digest at the end unchecked; to
/// `keytool` the password is `changeit`, as that of Java's own store is.
pub fn jks(name: &str, certificates: &[CertificateDer<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(MAGIC.to_be_bytes());
    out.extend(VERSION.to_be_bytes());
    out.extend(length(certificates.len()).to_be_bytes());
    for (index, certificate) in certificates.iter().enumerate() {
        out.extend(TRUSTED_CERTIFICATE.to_be_bytes());
        let alias = if index == 0 { name.to_owned() } else { index.to_string() };
        text(&mut out, &alias);
        // When the entry was made, in milliseconds. Always the same, so that the same certificates make the same file.
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

/// As `DataOutput.writeUTF` writes ASCII: the length in two bytes, then the text.
fn text(out: &mut Vec<u8>, text: &str) {
    let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
    out.extend(length.to_be_bytes());
    out.extend_from_slice(&text.as_bytes()[..usize::from(length)]);
}

/// A number of certificates, or the length of one: both come from files of some kilobytes.
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
    fn a_store_has_its_entries_and_a_digest() {
        let store = jks("robotgate", &[vec![0x30, 1].into(), vec![0x30, 2].into()]);
        assert!(store.starts_with(b"\xFE\xED\xFE\xED\0\0\0\x02\0\0\0\x02\0\0\0\x02\0\x09robotgate"));
        let second = b"\0\0\0\x02\0\x011\0\0\0\0\0\0\0\0\0\x05X.509\0\0\0\x02\x30\x02";
        assert_eq!(&store[store.len() - 20 - second.len()..store.len() - 20], second);
    }
}
