//! Finds the origin and the path of a request, from its target, its Host field and the CONNECT that it came through.
//! Pure functions, without I/O.

use http::{Method, header};
use pingora_http::RequestHeader;

use super::client_connection::OuterConnect;
use crate::origin::{FtpPath, HostPort, MAX_METHOD, MAX_TARGET, Origin, Scheme, Target, TargetError, TargetForm};

/// Returns the origin and the path that `request` asks for. Fails if the request is not valid, is known to be
/// ambiguous, names different hosts, or contains a user name or password.
pub(super) fn target_of(request: &RequestHeader, outer_connect: Option<&OuterConnect>) -> Result<Target, TargetError> {
    check_method(&request.method)?;
    if !request.raw_path_is_utf8() {
        return Err(TargetError::Encoding);
    }
    if outer_connect.is_some_and(|outer_connect| outer_connect.other_name.get().is_some()) {
        return Err(TargetError::NameDiffers);
    }
    let raw = request.raw_path();
    if raw.len() > MAX_TARGET {
        return Err(TargetError::TooLong);
    }
    let (origin, path) = match (TargetForm::of(raw), outer_connect) {
        (TargetForm::Ambiguous, _) => return Err(TargetError::Ambiguous),
        (
            TargetForm::Absolute {
                scheme,
                authority,
                path_and_query,
            },
            outer_connect,
        ) => {
            let scheme = Scheme::parse(scheme).ok_or(TargetError::Scheme)?;
            let origin = Origin::new(scheme, HostPort::parse(authority)?);
            if outer_connect.is_some_and(|outer_connect| outer_connect.origin != origin) {
                return Err(TargetError::ThroughDiffers);
            }
            (origin, path_and_query)
        }
        // Some parsers read a target such as `?q` as `/?q`, others find no path in it (RFC 9112 §3.2.1).
        (TargetForm::Other, Some(_)) if matches!(raw.first(), Some(b'?' | b'#')) => {
            return Err(TargetError::Ambiguous);
        }
        (TargetForm::Other, Some(outer_connect)) => (outer_connect.origin.clone(), raw),
        (TargetForm::Other, None) => return Err(TargetError::OriginForm),
    };
    // An HTTP/2 request also names its scheme in a field of its own (RFC 9113 §8.3.1).
    if let Some(scheme) = request.uri.scheme_str() {
        match Scheme::parse(scheme.as_bytes()) {
            Some(scheme) if scheme == origin.scheme => {}
            Some(_) => return Err(TargetError::ThroughDiffers),
            None => return Err(TargetError::Scheme),
        }
    }
    check_hosts(request, &origin, outer_connect.is_some())?;
    let path = match origin.scheme {
        Scheme::Http | Scheme::Https => origin_form(path, &request.method)?,
        Scheme::Ftp if !matches!(request.method, Method::GET | Method::HEAD) => return Err(TargetError::FtpMethod),
        Scheme::Ftp => FtpPath::parse(path)?.into_url(),
    };
    Ok(Target {
        path,
        origin,
        names_user: false,
    })
}

/// Checks the method. Methods are case-sensitive (RFC 9110 §9.1), but some origins ignore case, so `get` would reach
/// them as GET while the log showed an unknown method.
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
        let name = HostPort::parse(name).map_err(TargetError::Host)?;
        if !origin.is_named_by(&name) {
            return Err(differs());
        }
    }
    Ok(())
}

/// Returns the request target for an origin (RFC 9112 §3.2.1, §3.2.4). Adds a missing path, `/` or `*`, and changes
/// nothing else.
fn origin_form(path_and_query: &[u8], method: &Method) -> Result<Vec<u8>, TargetError> {
    match path_and_query.first() {
        None if *method == Method::OPTIONS => Ok(b"*".to_vec()),
        Some(b'/') => Ok(path_and_query.to_vec()),
        Some(b'*') if path_and_query == b"*" && *method == Method::OPTIONS => Ok(b"*".to_vec()),
        None | Some(b'?' | b'#') => Ok([b"/", path_and_query].concat()),
        Some(_) => Err(TargetError::Ambiguous),
    }
}

#[cfg(test)]
mod tests;
