//! Which origin a request is for, and which path of it: from the request target, the Host field
//! and, inside an interception, the CONNECT that it came through. Pure.

use http::{Method, header};
use pingora::protocols::http::authority::{RawTargetAuthority, raw_target_authority};
use pingora_http::RequestHeader;

use super::arrival::Through;
use crate::origin::{Authority, AuthorityError, MAX_TARGET, Origin, Scheme};

/// What a request is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) origin: Origin,
    /// The path and query as sent; what is sent upstream.
    pub(super) path: Vec<u8>,
}

/// Why nobody can say what a request is for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum TargetError {
    #[error(
        "this is a forward proxy: send the whole URL as the request target, or CONNECT first \
         (set http_proxy and https_proxy to its address)"
    )]
    OriginForm,
    #[error(
        "only http and https URLs can be fetched through this proxy, and ws and wss where a WebSocket is asked for"
    )]
    Scheme,
    #[error("the request target's host cannot be read: {0}")]
    Authority(#[from] AuthorityError),
    #[error("the Host field cannot be read: {0}")]
    Host(AuthorityError),
    #[error("the Host field names another host than the request target")]
    HostDiffers,
    #[error("the request names another host than the CONNECT that it came through")]
    ThroughDiffers,
    #[error("the TLS inside the CONNECT asks for another server name than the CONNECT")]
    NameDiffers,
    #[error("the request target is not UTF-8; percent-encode it")]
    Encoding,
    #[error("the request target is longer than {} KiB", MAX_TARGET / 1024)]
    TooLong,
    #[error("the request target can be read in two ways")]
    Ambiguous,
    #[error("a method is written in capital letters")]
    Method,
    #[error("the method is longer than {MAX_METHOD} bytes")]
    LongMethod,
    #[error("a CONNECT inside a CONNECT is not served")]
    NestedConnect,
}

// === impl Target ===

impl Target {
    /// What `request` is for. `through` is the CONNECT that it came by, if any.
    ///
    /// # Errors
    /// Nobody can say, or two readers could say different things.
    pub(super) fn of(request: &RequestHeader, through: Option<&Through>) -> Result<Self, TargetError> {
        check_method(&request.method)?;
        if !request.raw_path_is_utf8() {
            return Err(TargetError::Encoding);
        }
        if through.is_some_and(|through| through.other_name.get().is_some()) {
            return Err(TargetError::NameDiffers);
        }
        let raw = request.raw_path();
        if raw.len() > MAX_TARGET {
            return Err(TargetError::TooLong);
        }
        let (origin, path) = match (raw_target_authority(raw), through) {
            (RawTargetAuthority::AmbiguousAuthority, _) => return Err(TargetError::Ambiguous),
            (
                RawTargetAuthority::Absolute {
                    scheme,
                    authority,
                    path_and_query,
                },
                through,
            ) => {
                let scheme = Scheme::parse(scheme).ok_or(TargetError::Scheme)?;
                let origin = Origin::new(scheme, Authority::parse(authority)?);
                if through.is_some_and(|through| through.origin != origin) {
                    return Err(TargetError::ThroughDiffers);
                }
                (origin, path_and_query)
            }
            // `?q` is `/?q` to some and nothing to others (RFC 9112 §3.2.1).
            (RawTargetAuthority::None, Some(_)) if matches!(raw.first(), Some(b'?' | b'#')) => {
                return Err(TargetError::Ambiguous);
            }
            (RawTargetAuthority::None, Some(through)) => (through.origin.clone(), raw),
            (RawTargetAuthority::None, None) => return Err(TargetError::OriginForm),
        };
        // HTTP/2 says it in a field of its own (RFC 9113 §8.3.1).
        if let Some(scheme) = request.uri.scheme_str()
            && Scheme::parse(scheme.as_bytes()) != Some(origin.scheme)
        {
            return Err(TargetError::Scheme);
        }
        check_hosts(request, &origin, through.is_some())?;
        Ok(Self {
            path: origin_form(path, &request.method)?,
            origin,
        })
    }

    /// The path and query on which to decide: the server as a whole (`OPTIONS *`) stands for its root.
    pub(super) fn decided_path(&self) -> &[u8] {
        if self.path == b"*" { b"/" } else { &self.path }
    }

    /// The path and query of the target URI. That of the server as a whole has none (RFC 9112 §3.3).
    pub(super) fn path_of_url(&self) -> &[u8] {
        if self.path == b"*" { b"" } else { &self.path }
    }
}

/// Methods are case-sensitive (RFC 9110 §9.1), but not to every origin: `get` would be logged as one thing
/// and served as another.
fn check_method(method: &Method) -> Result<(), TargetError> {
    if *method == Method::CONNECT {
        return Err(TargetError::NestedConnect);
    }
    let capital = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
    let name = method.as_str();
    if name.len() > MAX_METHOD {
        return Err(TargetError::LongMethod);
    }
    if name.starts_with(|first: char| first.is_ascii_uppercase()) && name.bytes().all(capital) {
        Ok(())
    } else {
        Err(TargetError::Method)
    }
}

/// Every name that the request has for its host must be the same one.
fn check_hosts(request: &RequestHeader, origin: &Origin, inside: bool) -> Result<(), TargetError> {
    let differs = || {
        if inside {
            TargetError::ThroughDiffers
        } else {
            TargetError::HostDiffers
        }
    };
    let host_fields = request.headers.get_all(header::HOST);
    let hosts = host_fields.iter().map(http::HeaderValue::as_bytes);
    let authority = request.uri.authority().map(|authority| authority.as_str().as_bytes());
    for name in hosts.chain(authority) {
        let name = Authority::parse(name).map_err(TargetError::Host)?;
        if !origin.is_named_by(&name) {
            return Err(differs());
        }
    }
    Ok(())
}

/// The form in which an origin takes a request target (RFC 9112 §3.2.1, §3.2.4). Nothing of what
/// was sent is rewritten; only a path that was left out is put in.
fn origin_form(path_and_query: &[u8], method: &Method) -> Result<Vec<u8>, TargetError> {
    match path_and_query.first() {
        None if *method == Method::OPTIONS => Ok(b"*".to_vec()),
        Some(b'/') => Ok(path_and_query.to_vec()),
        Some(b'*') if path_and_query == b"*" && *method == Method::OPTIONS => Ok(b"*".to_vec()),
        None | Some(b'?' | b'#') => Ok([b"/", path_and_query].concat()),
        Some(_) => Err(TargetError::Ambiguous),
    }
}

/// Bytes of a method. The longest that is registered has 17; the log holds it whole.
const MAX_METHOD: usize = 64;

#[cfg(test)]
mod tests;
