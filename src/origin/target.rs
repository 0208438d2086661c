//! What a request is for: the origin, and the path and query as they were sent. Nothing is normalised but the origin.
//!
//! A request target, a URL that somebody asks about and the host of a CONNECT are all read here, so that odd spellings
//! come to the same wherever they stand. Whether a proxied request names its host in one way only is for
//! [`crate::proxy`] to check.

use super::{HostPort, HostPortError, MAX_TARGET, Origin, Scheme, unsendable};

/// What a request is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub origin: Origin,
    /// The path and query as sent, which is what goes upstream. Empty for a CONNECT; `*` for the server as a whole
    /// (RFC 9112 §3.2.4).
    pub path: Vec<u8>,
}

/// Why nobody can say what a request is for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    #[error("this is not a whole URL; write one like https://example.com/page")]
    NotAbsolute,
    #[error("the URL has no host; write one like https://example.com/page")]
    NoHost,
    #[error("only http and https URLs have a robots.txt")]
    NoRobots,
    #[error("this proxy fetches only http and https URLs, and ws and wss URLs for a WebSocket")]
    Scheme,
    #[error("the URL's host is not valid: {0}")]
    HostPort(#[from] HostPortError),
    #[error("the URL is ambiguous: servers could read it in two ways")]
    Ambiguous,
    #[error("the URL has {}, which has to be percent-encoded: write %{:02X} for it", name(*.0), .0)]
    Character(u8),
    #[error("the URL is longer than {} KiB", MAX_TARGET / 1024)]
    TooLong,
    #[error("the request target is not UTF-8; percent-encode it")]
    Encoding,
    #[error(
        "this is a forward proxy: send the whole URL as the request target, or CONNECT first \
         (set http_proxy and https_proxy to its address)"
    )]
    OriginForm,
    #[error("the Host field is not valid: {0}")]
    Host(HostPortError),
    #[error("the Host field names another host than the request target")]
    HostDiffers,
    #[error("the request names another host than the CONNECT that it came through")]
    ThroughDiffers,
    #[error("the TLS inside the CONNECT asks for another server name than the CONNECT")]
    NameDiffers,
    #[error("the method has to be in capital letters")]
    Method,
    #[error("the method is longer than {MAX_METHOD} bytes")]
    LongMethod,
    #[error("a CONNECT inside a CONNECT is not supported")]
    NestedConnect,
    #[error("robotgate.internal is the proxy itself, so no robots.txt applies to it")]
    InternalSite,
}

/// The forms of a request target (RFC 9112 §3.2) that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetForm<'a> {
    /// A whole URL, undecoded.
    Absolute {
        scheme: &'a [u8],
        authority: &'a [u8],
        path_and_query: &'a [u8],
    },
    /// A whole URL to some readers, or one with another host (`http:/host`, `http://host\other/`).
    Ambiguous,
    /// No URL of a server: a path, `*`, or something unknown.
    Other,
}

// === impl Target ===

impl Target {
    /// The server of a CONNECT as a whole, whose paths nobody sees.
    pub fn of_connect(origin: Origin) -> Self {
        Self {
            origin,
            path: Vec::new(),
        }
    }

    /// Reads a URL that somebody asks about, and that a client could send and the proxy would take. The part behind `#`
    /// is never sent.
    ///
    /// # Errors
    /// It is no whole http or https URL, two readers could take it for different ones, or it is the proxy's own.
    pub fn parse(url: &str) -> Result<Self, TargetError> {
        let (origin, path_and_query) = split(url)?;
        // In the clear, a client sends the whole URL.
        let length = match origin.scheme {
            Scheme::Http => url.len(),
            Scheme::Https => path_and_query.len(),
        };
        if length > MAX_TARGET {
            return Err(TargetError::TooLong);
        }
        let sent = path_and_query.split(|byte| *byte == b'#').next().unwrap_or_default();
        if let Some(byte) = unsendable(sent) {
            return Err(TargetError::Character(byte));
        }
        Ok(Self {
            origin,
            path: path_and_query.to_vec(),
        })
    }

    /// The origin of a URL, whatever its path.
    ///
    /// # Errors
    /// As those of [`parse`](Self::parse), but for the path's.
    pub fn origin_of(url: &str) -> Result<Origin, TargetError> {
        split(url).map(|(origin, _)| origin)
    }

    /// The path and query on which to decide: the server as a whole (`OPTIONS *`) stands for its root.
    pub fn decided_path(&self) -> &[u8] {
        if self.path == b"*" { b"/" } else { &self.path }
    }

    /// The path and query of the target URI. That of the server as a whole has none (RFC 9112 §3.3).
    pub fn path_of_url(&self) -> &[u8] {
        if self.path == b"*" { b"" } else { &self.path }
    }
}

// === impl TargetForm ===

impl<'a> TargetForm<'a> {
    /// The form of `target`. What URL parsers could take for another host than it seems to have is ambiguous; pingora
    /// draws the same lines, which a test holds this to.
    pub fn of(target: &'a [u8]) -> Self {
        let Some(colon) = memchr::memchr(b':', target).filter(|_| target.first() != Some(&b'/')) else {
            return Self::Other;
        };
        let (scheme, rest) = (&target[..colon], &target[colon + 1..]);
        let authority = rest.strip_prefix(b"//");
        let is_scheme = scheme.first().is_some_and(u8::is_ascii_alphabetic)
            && scheme
                .iter()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
        // Of these, URL parsers take `\` for `/`, and find a host behind any number of slashes.
        let is_special = [&b"http"[..], b"https", b"ws", b"wss"]
            .iter()
            .any(|name| scheme.eq_ignore_ascii_case(name));
        let Some(behind) = authority.filter(|_| is_scheme) else {
            return match authority.is_some() || is_special {
                true => Self::Ambiguous,
                false => Self::Other,
            };
        };
        let end = behind.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#'));
        let (authority, path_and_query) = behind.split_at(end.unwrap_or(behind.len()));
        if is_special && (authority.is_empty() || authority.contains(&b'\\')) {
            return Self::Ambiguous;
        }
        Self::Absolute {
            scheme,
            authority,
            path_and_query,
        }
    }
}

/// The origin of a URL, and its path and query.
fn split(url: &str) -> Result<(Origin, &[u8]), TargetError> {
    let (scheme, authority, path_and_query) = match TargetForm::of(url.as_bytes()) {
        TargetForm::Absolute {
            scheme,
            authority,
            path_and_query,
        } => (scheme, authority, path_and_query),
        TargetForm::Ambiguous if has_no_host(url) => return Err(TargetError::NoHost),
        TargetForm::Ambiguous => return Err(TargetError::Ambiguous),
        TargetForm::Other => return Err(TargetError::NotAbsolute),
    };
    let scheme = Scheme::parse(scheme).ok_or(TargetError::NoRobots)?;
    let origin = Origin::new(scheme, HostPort::parse(authority)?);
    match origin.is_internal_site() {
        true => Err(TargetError::InternalSite),
        false => Ok((origin, path_and_query)),
    }
}

/// Of a URL whose authority cannot be read: whether it has none.
fn has_no_host(url: &str) -> bool {
    let behind = url.split_once("://").map(|(_, behind)| behind);
    behind.is_some_and(|behind| behind.is_empty() || behind.starts_with(['/', '?', '#']))
}

fn name(byte: u8) -> String {
    match byte {
        b' ' => "a space".to_owned(),
        b'!'..=b'~' => format!("the character {}", char::from(byte)),
        _ => format!("the control character U+{byte:04X}"),
    }
}

/// Bytes of a method. The longest that is registered has 17; the log holds it whole.
pub const MAX_METHOD: usize = 64;
