//! The path of an `ftp://` URL, and its form in commands to the server (RFC 1738 §3.2).
//!
//! A path is refused if it contains something that servers are known to interpret in different ways, such as `..` or an
//! escaped slash ([`FtpPathError`]). Otherwise, the decision could be about another file than the one that is fetched.

use super::readings::escaped_octet;

/// A path to which no [`FtpPathError`] applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FtpPath {
    url: Vec<u8>,
    decoded: Vec<u8>,
}

/// Why the path of an `ftp://` URL cannot be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FtpPathError {
    #[error("does not begin with a slash")]
    Relative,
    #[error("has a % that begins no escape: write %25 for it")]
    Escape,
    #[error("has an escaped control character or %FF, which cannot be sent to an FTP server")]
    Control,
    #[error(
        "has a question mark, perhaps escaped (%3F): an ftp URL has no query, and a server could take the character \
         for a wildcard"
    )]
    Question,
    #[error("has an escaped slash or a backslash, which servers read in different ways; write a single / instead")]
    Slash,
    #[error("contains `//`, or a segment `.` or `..`; write the path without these")]
    Segment,
    #[error("has %20 (a space) at the end of its last segment; servers may drop this space")]
    Space,
    #[error("ends with more than one `;type=`: write only one")]
    Type,
    #[error(
        "is longer than {MAX_DECODED} bytes; some FTP servers would read a command with such a path as several commands"
    )]
    TooLong,
}

// === impl FtpPath ===

impl FtpPath {
    /// Parses the path of a URL, up to its fragment. Drops a final `;type=i` or `;type=a`, and replaces a final
    /// `;type=d` by a slash, because it says that the path is a folder.
    ///
    /// # Errors
    /// Fails if an [`FtpPathError`] applies: some servers could take such a path for another one, or a part of it for a
    /// command.
    pub fn parse(path: &[u8]) -> Result<Self, FtpPathError> {
        let path = path.split(|byte| *byte == b'#').next().unwrap_or_default();
        let (mut url, kind) = without_type(path);
        if without_type(&url).1.is_some() {
            return Err(FtpPathError::Type);
        }
        if url.is_empty() || kind == Some(b'd') && url.last() != Some(&b'/') {
            url.push(b'/');
        }
        let decoded = decode(&url)?;
        let name = decoded.strip_prefix(b"/").ok_or(FtpPathError::Relative)?;
        let folder = name.strip_suffix(b"/").unwrap_or(name);
        let mut segments = folder.split(|byte| *byte == b'/');
        if !name.is_empty() && segments.any(|segment| matches!(segment, b"" | b"." | b"..")) {
            return Err(FtpPathError::Segment);
        }
        if folder.last() == Some(&b' ') {
            return Err(FtpPathError::Space);
        }
        if decoded.len() > MAX_DECODED {
            return Err(FtpPathError::TooLong);
        }
        Ok(Self { url, decoded })
    }

    /// Returns the path as in a URL, with its escapes but without the `;type=` at its end.
    pub fn into_url(self) -> Vec<u8> {
        self.url
    }

    /// Returns whether the path is that of a folder: it ends with a slash.
    pub fn is_folder(&self) -> bool {
        self.decoded.last() == Some(&b'/')
    }

    /// Returns the path for a command to the server. A folder has no slash at its end, unless it is the root.
    pub fn for_server(&self) -> &[u8] {
        match &*self.decoded {
            [folder @ .., b'/'] if !folder.is_empty() => folder,
            decoded => decoded,
        }
    }
}

/// Returns the path without the `;type=` at its end (RFC 1738 §3.2.2), and the letter of the type in lower case.
fn without_type(path: &[u8]) -> (Vec<u8>, Option<u8>) {
    let Some((path, kind)) = path.split_last_chunk::<7>() else {
        return (path.to_vec(), None);
    };
    let letter = kind[6].to_ascii_lowercase();
    match kind[..6].eq_ignore_ascii_case(b";type=") && matches!(letter, b'a' | b'd' | b'i') {
        true => (path.to_vec(), Some(letter)),
        false => ([path, kind].concat(), None),
    }
}

/// Decodes all escapes. Refuses control characters, the byte FF, `?`, `\` and escaped slashes.
fn decode(path: &[u8]) -> Result<Vec<u8>, FtpPathError> {
    let mut decoded = Vec::with_capacity(path.len());
    let mut rest = path;
    while let [first, tail @ ..] = rest {
        let octet = match first {
            b'%' => {
                let octet = escaped_octet(tail).ok_or(FtpPathError::Escape)?;
                rest = &tail[2..];
                octet
            }
            octet => {
                rest = tail;
                *octet
            }
        };
        match octet {
            0..b' ' | 0x7F | 0xFF => return Err(FtpPathError::Control),
            b'?' => return Err(FtpPathError::Question),
            b'\\' => return Err(FtpPathError::Slash),
            b'/' if *first == b'%' => return Err(FtpPathError::Slash),
            octet => decoded.push(octet),
        }
    }
    Ok(decoded)
}

/// Maximum length of a decoded path, in bytes. Some servers have executed what follows the first 512 bytes of a line as
/// another command (CVE-2008-4247).
const MAX_DECODED: usize = 400;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(path: &str) -> Result<(String, String), FtpPathError> {
        let path = FtpPath::parse(path.as_bytes())?;
        let sent = String::from_utf8_lossy(path.for_server()).into_owned();
        Ok((String::from_utf8_lossy(&path.into_url()).into_owned(), sent))
    }

    #[test]
    fn a_path_is_sent_decoded_and_absolute() {
        for (path, url, sent) in [
            ("", "/", "/"),
            ("/", "/", "/"),
            ("/a", "/a", "/a"),
            ("/a/b/", "/a/b/", "/a/b"),
            ("/a;type=i", "/a", "/a"),
            ("/a;TYPE=A", "/a", "/a"),
            ("/a/;type=i", "/a/", "/a"),
            ("/a;type=d", "/a/", "/a"),
            ("/a/;type=d", "/a/", "/a"),
            (";type=d", "/", "/"),
            ("/a;type=x", "/a;type=x", "/a;type=x"),
            ("/a;type=i/b", "/a;type=i/b", "/a;type=i/b"),
            ("/a%3Btype=i", "/a%3Btype=i", "/a;type=i"),
            ("/a%20b", "/a%20b", "/a b"),
            ("/%7Ea/~b", "/%7Ea/~b", "/~a/~b"),
            ("/a*[b]{c}", "/a*[b]{c}", "/a*[b]{c}"),
            ("/a%2541", "/a%2541", "/a%41"),
            ("/a#b", "/a", "/a"),
            ("/...", "/...", "/..."),
            ("/.a", "/.a", "/.a"),
        ] {
            assert_eq!(parsed(path), Ok((url.to_owned(), sent.to_owned())), "{path}");
        }
    }

    #[test]
    fn a_path_that_servers_could_take_for_another_is_refused() {
        use FtpPathError::{Control, Escape, Question, Relative, Segment, Slash, Space, TooLong, Type};
        for (path, error) in [
            ("a", Relative),
            ("/a%", Escape),
            ("/a%zz", Escape),
            ("/a%0D%0ADELE%20b", Control),
            ("/a%00", Control),
            ("/a%7F", Control),
            ("/a%FF", Control),
            ("/a?b", Question),
            ("/a%3Fb", Question),
            ("?a", Question),
            ("/a%2Fb", Slash),
            ("/%2fetc", Slash),
            ("/a\\b", Slash),
            ("/a%5Cb", Slash),
            ("//a", Segment),
            ("/a//b", Segment),
            ("/a//", Segment),
            ("//", Segment),
            ("/./a", Segment),
            ("/a/..", Segment),
            ("/a/%2e%2e/b", Segment),
            ("/../", Segment),
            ("/a%20", Space),
            ("/a%20/", Space),
            ("/a;type=i;type=a", Type),
        ] {
            assert_eq!(parsed(path), Err(error), "{path}");
        }
        let long = format!("/{}", "a".repeat(MAX_DECODED));
        assert_eq!(parsed(&long), Err(TooLong));
        assert!(parsed(&long[..MAX_DECODED]).is_ok());
    }

    proptest! {
        /// The path is parsed when the request is decided, and again when it is fetched.
        #[test]
        fn the_path_that_is_decided_is_the_path_that_is_sent(path in "(/|/[a-d;=%0-9F ~.]{0,6}){0,4}(;type=[aid]){0,3}") {
            if let Ok(once) = FtpPath::parse(path.as_bytes()) {
                let again = FtpPath::parse(&once.clone().into_url());
                prop_assert_eq!(again, Ok(once));
            }
        }
    }
}
