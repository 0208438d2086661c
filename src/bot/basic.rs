//! The value of a Proxy-Authorization field in the Basic scheme (RFC 7617 §2): a name and a secret.
//!
//! It allocates nothing, says nothing of what is wrong with a value, and prints neither part: a client may well put the
//! secret where the name belongs.

use std::fmt;

use data_encoding::BASE64_NOPAD;

/// A name and a secret as a client sent them.
pub(super) struct Basic {
    bytes: [u8; MAX_DECODED],
    /// Where the first colon is.
    colon: usize,
    len: usize,
}

// === impl Basic ===

impl Basic {
    /// Reads a field's value; `None` where it is of another scheme, or malformed.
    ///
    /// The scheme's case does not count, and neither does padding that was left out. The name is not empty and ends at
    /// the first colon; what follows is the secret, further colons included.
    pub(super) fn parse(value: &[u8]) -> Option<Self> {
        let value = value.trim_ascii();
        let (scheme, rest) = value.split_at_checked(SCHEME.len())?;
        if !scheme.eq_ignore_ascii_case(SCHEME) || !rest.starts_with(b" ") {
            return None;
        }
        let encoded = without_padding(rest.trim_ascii_start());
        let mut bytes = [0; MAX_DECODED];
        let room = bytes.get_mut(..BASE64_NOPAD.decode_len(encoded.len()).ok()?)?;
        let len = BASE64_NOPAD.decode_mut(encoded, room).ok()?;
        let colon = bytes[..len]
            .iter()
            .position(|&byte| byte == b':')
            .filter(|at| *at > 0)?;
        Some(Self { bytes, colon, len })
    }

    pub(super) fn name(&self) -> &[u8] {
        &self.bytes[..self.colon]
    }

    pub(super) fn secret(&self) -> &[u8] {
        &self.bytes[self.colon + 1..self.len]
    }
}

impl fmt::Debug for Basic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Basic(..)")
    }
}

/// At most two signs are padding; a third is a mistake, which the decoder finds.
fn without_padding(encoded: &[u8]) -> &[u8] {
    let once = encoded.strip_suffix(b"=").unwrap_or(encoded);
    once.strip_suffix(b"=").unwrap_or(once)
}

const SCHEME: &[u8] = b"Basic";
/// Bytes of a name, a colon and a secret. What is longer was not made here.
const MAX_DECODED: usize = 1024;
