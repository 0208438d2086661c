//! Reads a name and a secret from a Proxy-Authorization field.

use std::fmt;

use data_encoding::BASE64_NOPAD;

/// The name and the secret in the Basic scheme (RFC 7617 §2). The `Debug` output contains neither, because a client
/// could put the secret in place of the name.
pub(super) struct Basic {
    bytes: [u8; MAX_DECODED],
    /// Where in `bytes` the colon between name and secret is.
    colon: usize,
    len: usize,
}

// === impl Basic ===

impl Basic {
    /// Parses the value of a Proxy-Authorization field. Returns `None` if it is malformed, too long or not Basic.
    ///
    /// The base64 padding can be missing (RFC 9110 §11.2). The first colon ends the name.
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

/// Removes at most two `=`. The decoder then reports a third one as an error.
fn without_padding(encoded: &[u8]) -> &[u8] {
    let once = encoded.strip_suffix(b"=").unwrap_or(encoded);
    once.strip_suffix(b"=").unwrap_or(once)
}

const SCHEME: &[u8] = b"Basic";
/// Maximum length of a name, a colon and a secret, in bytes.
const MAX_DECODED: usize = 1024;
