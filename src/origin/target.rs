//! The target of a request: the origin, normalized, and the path and query as sent.
//!
//! [`TargetForm`] splits both request targets and URLs that users ask about, so that an unusual spelling means the same
//! in both.

use super::{FtpPath, FtpPathError, HostPort, HostPortError, MAX_TARGET, Origin, SCHEMES, Scheme, unsendable};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub origin: Origin,
    /// The path and query as sent. Empty for a CONNECT; `*` for an `OPTIONS` request to the whole server (RFC 9112
    /// §3.2.4). For an `ftp://` URL, as [`FtpPath::into_url`] returns it.
    pub path: Vec<u8>,
    /// Whether the URL names a user other than that of anonymous FTP. Name and password are dropped.
    pub names_user: bool,
}

/// Why the target of a request is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    #[error("this is not a whole URL; write one like https://example.com/page")]
    NotAbsolute,
    #[error("the URL has no host; write one like https://example.com/page")]
    NoHost,
    #[error("only {SCHEMES} URLs have a robots.txt")]
    NoRobots,
    #[error("for a WebSocket, write the URL with https instead of wss, or with http instead of ws")]
    WebSocket,
    #[error("this proxy fetches only {SCHEMES} URLs, and ws and wss URLs for a WebSocket")]
    Scheme,
    #[error("the URL is not valid: {0}")]
    HostPort(#[from] HostPortError),
    #[error("the URL is ambiguous, perhaps because of a character before it: write it like https://example.com/page")]
    Ambiguous,
    #[error("the URL has {}: remove it, or write %{:02X} instead", name(*.0), .0)]
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
    #[error("the Host field and the request target name different hosts or ports")]
    HostDiffers,
    #[error("the request in the tunnel names a different host, port or scheme from the CONNECT")]
    ThroughDiffers,
    #[error("the TLS handshake in the tunnel asks for a different host (SNI) from the CONNECT")]
    NameDiffers,
    #[error("the method must begin with a capital letter, and have only capital letters, digits, - and _")]
    Method,
    #[error("the method is longer than {MAX_METHOD} bytes")]
    LongMethod,
    #[error("only GET and HEAD are supported for ftp URLs")]
    FtpMethod,
    #[error("the path of the ftp URL {0}")]
    FtpPath(#[from] FtpPathError),
    #[error("a CONNECT inside a CONNECT is not supported")]
    NestedConnect,
    #[error("robotgate.internal is the proxy itself, so no robots.txt applies to it")]
    InternalSite,
}

/// The forms of a request target (RFC 9112 §3.2) that robotgate distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetForm<'a> {
    /// An absolute URL, with its escapes.
    Absolute {
        scheme: &'a [u8],
        authority: &'a [u8],
        path_and_query: &'a [u8],
    },
    /// A target in which different parsers could find different hosts (`http:/host`, `http://host\other/`).
    Ambiguous,
    /// Not an absolute URL: a path, `*`, or an unknown form.
    Other,
}

// === impl Target ===

impl Target {
    /// Returns the target of a CONNECT, whose paths are not visible.
    pub fn of_connect(origin: Origin) -> Self {
        Self {
            origin,
            path: Vec::new(),
            names_user: false,
        }
    }

    /// Parses a URL that a user asks about.
    ///
    /// # Errors
    /// Fails if `url` is not an absolute http, https or ftp URL, if a client could not send it or the proxy would
    /// refuse it as invalid, or if it is on the proxy's internal site.
    pub fn parse(url: &str) -> Result<Self, TargetError> {
        let (origin, path_and_query, names_user) = split(url)?;
        // For plain HTTP and FTP, a client sends the whole URL as the request target.
        let length = match origin.scheme {
            Scheme::Http | Scheme::Ftp => url.len(),
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
            path: match origin.scheme {
                Scheme::Http | Scheme::Https => path_and_query.to_vec(),
                Scheme::Ftp => FtpPath::parse(sent)?.into_url(),
            },
            origin,
            names_user,
        })
    }

    /// Returns the origin of `url`, without checking the path and query.
    pub fn origin_of(url: &str) -> Result<Origin, TargetError> {
        split(url).map(|(origin, ..)| origin)
    }

    /// Returns the path and query to decide on. For a request to the server as a whole (`OPTIONS *`), returns `/`.
    pub fn decided_path(&self) -> &[u8] {
        if self.path == b"*" { b"/" } else { &self.path }
    }

    /// Returns the path and query as they are in the URL. Empty for a request to the server as a whole (RFC 9112 §3.3).
    pub fn path_of_url(&self) -> &[u8] {
        if self.path == b"*" { b"" } else { &self.path }
    }
}

// === impl TargetForm ===

impl<'a> TargetForm<'a> {
    /// Returns the form of `target`. A test checks that pingora sees the same form.
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
        // With these schemes, URL parsers treat `\` as `/`, and find a host after any number of slashes.
        let is_special = [&b"http"[..], b"https", b"ws", b"wss", b"ftp"]
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

/// Splits the user information off an authority, if the scheme [allows it](Scheme::allows_login). Returns whether
/// this login names a user other than that of anonymous FTP (RFC 1635), and the rest of the authority.
pub fn split_login(scheme: Scheme, authority: &[u8]) -> (bool, &[u8]) {
    let at = memchr::memchr(b'@', authority).filter(|_| scheme.allows_login());
    let Some(at) = at else { return (false, authority) };
    let name = authority[..at].split(|byte| *byte == b':').next().unwrap_or_default();
    let is_anonymous = name.eq_ignore_ascii_case(b"anonymous") || name.eq_ignore_ascii_case(b"ftp");
    (!is_anonymous, &authority[at + 1..])
}

fn split(url: &str) -> Result<(Origin, &[u8], bool), TargetError> {
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
    let is_websocket = [&b"ws"[..], b"wss"]
        .iter()
        .any(|name| scheme.eq_ignore_ascii_case(name));
    let scheme = Scheme::parse(scheme).ok_or(match is_websocket {
        true => TargetError::WebSocket,
        false => TargetError::NoRobots,
    })?;
    let (names_user, authority) = split_login(scheme, authority);
    let origin = Origin::new(scheme, HostPort::parse(authority)?);
    match origin.is_internal_site() {
        true => Err(TargetError::InternalSite),
        false => Ok((origin, path_and_query, names_user)),
    }
}

fn has_no_host(url: &str) -> bool {
    let behind = url.split_once("://").map(|(_, behind)| behind);
    behind.is_some_and(|behind| behind.is_empty() || behind.starts_with(['/', '?', '#']))
}

fn name(byte: u8) -> String {
    match byte {
        b' ' => "a space".to_owned(),
        b'!'..=b'~' => format!("the character '{}'", char::from(byte)),
        _ => format!("the control character U+{byte:04X}"),
    }
}

/// Maximum length of a method, in bytes, because the log contains methods at full length. The longest registered one
/// has 17.
pub const MAX_METHOD: usize = 64;
