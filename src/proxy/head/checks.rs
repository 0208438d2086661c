//! Checks a request's head, and refuses what parsers are known to interpret differently. Pure functions, without I/O.

use super::HeadError;
use crate::origin::{HostPort, HostPortError, MAX_TARGET, Scheme, TargetForm, split_login, unsendable};

/// Refuses a target that is too long, or has a character that must be percent-encoded. A target over some 64 KiB would
/// make pingora fail, with an error that quotes the target.
pub(super) fn check_target(target: &[u8]) -> Result<(), HeadError> {
    if target.len() > MAX_TARGET {
        return Err(HeadError::TargetTooLong);
    }
    let Some(byte) = unsendable(target) else { return Ok(()) };
    Err(match host_of(target).contains(&byte) {
        true => HeadError::TargetHost(HostPortError::Character(char::from(byte))),
        false => HeadError::TargetCharacter(char::from(byte)),
    })
}

/// Returns the host of an absolute URL with its port, or nothing for another target.
fn host_of(target: &[u8]) -> &[u8] {
    match TargetForm::of(target) {
        TargetForm::Absolute { authority, .. } => authority.rsplit(|byte| *byte == b'@').next().unwrap_or(authority),
        _ => b"",
    }
}

/// Refuses a bare LF, which only some parsers treat as the end of a line (RFC 9112 §2.2).
pub(super) fn check_line_ends(head: &[u8]) -> Result<(), HeadError> {
    let bare = memchr::memchr_iter(b'\n', head).any(|at| at == 0 || head[at - 1] != b'\r');
    if bare {
        return Err(HeadError::Syntax("a line does not end in CRLF"));
    }
    Ok(())
}

/// Returns the `http` or `https` URL for a `ws` or `wss` URL (RFC 6455 §3, §4.1).
pub(super) fn http_url(target: &[u8]) -> Option<Vec<u8>> {
    let end = memchr::memchr(b':', target)?;
    let (scheme, rest) = target.split_at(end);
    let scheme = if scheme.eq_ignore_ascii_case(b"ws") {
        Scheme::Http
    } else if scheme.eq_ignore_ascii_case(b"wss") {
        Scheme::Https
    } else {
        return None;
    };
    Some([scheme.as_str().as_bytes(), rest].concat())
}

/// Removes the login from an ftp URL, so that robotgate never stores it. Returns whether the login names a user other
/// than a user of anonymous FTP (RFC 1635), and the URL without the login.
pub(super) fn without_login(target: &[u8]) -> Option<(bool, Vec<u8>)> {
    let end = memchr::memchr(b':', target)?;
    let scheme = Scheme::parse(&target[..end]).filter(|scheme| scheme.allows_login())?;
    let TargetForm::Absolute {
        scheme: name,
        authority,
        path_and_query,
    } = TargetForm::of(target)
    else {
        return None;
    };
    let (names_user, rest) = split_login(scheme, authority);
    let is_shorter = rest.len() < authority.len();
    is_shorter.then(|| (names_user, [name, b"://", rest, path_and_query].concat()))
}

pub(super) fn values_of<'r, 'b>(
    request: &'r httparse::Request<'_, 'b>,
    name: &'r str,
) -> impl Iterator<Item = &'b [u8]> + 'r {
    request
        .headers
        .iter()
        .filter(move |field| field.name.eq_ignore_ascii_case(name))
        .map(|field| field.value)
}

/// Returns the value of the Host field. Refuses a request with several Host fields (RFC 9112 §3.2), and an HTTP/1.1
/// request without one, unless it is a CONNECT.
pub(super) fn only_host<'b>(request: &httparse::Request<'_, 'b>) -> Result<Option<&'b [u8]>, HeadError> {
    let mut hosts = values_of(request, "host");
    let host = hosts.next();
    if hosts.next().is_some() {
        return Err(HeadError::Syntax("it has several Host fields"));
    }
    // Some clients send a CONNECT without a Host field. Its target already names the host.
    if host.is_none() && request.version == Some(1) && request.method != Some("CONNECT") {
        return Err(HeadError::Syntax("it has no Host field"));
    }
    Ok(host)
}

/// Returns a value for the Host field in the spelling of the request target, or `None` if the field needs no change.
/// Refuses a request whose target and Host field name different hosts, and most invalid hosts; the module `target`
/// checks the rest.
pub(super) fn respelled_host<'b>(target: &'b [u8], host: Option<&'b [u8]>) -> Result<Option<&'b [u8]>, HeadError> {
    if host.is_some_and(|host| host.contains(&b'@')) {
        return Err(HeadError::Host(HostPortError::UserInfo));
    }
    let (scheme, authority) = match TargetForm::of(target) {
        TargetForm::Absolute { scheme, authority, .. } => (scheme, authority),
        TargetForm::Ambiguous => {
            return Err(HeadError::Syntax("the request target can be read in two ways"));
        }
        TargetForm::Other => return Ok(None),
    };
    if !is_usual(authority) {
        let there = HostPort::parse(authority).map_err(HeadError::TargetHost)?;
        // pingora also refuses an http or https URL whose authority the library `http` cannot parse, but less clearly.
        if http::uri::Authority::try_from(authority).is_err() {
            return Err(match Scheme::parse(scheme) {
                None => HeadError::TargetScheme,
                Some(_) if is_escaped(authority) => HeadError::TargetHostEscaped(there.host),
                // A safeguard: no host is known that `HostPort` accepts and `http` does not.
                Some(_) => HeadError::TargetHost(HostPortError::Host),
            });
        }
    }
    let Some(host) = host.filter(|host| *host != authority) else {
        return Ok(None);
    };
    let default_port = Scheme::parse(scheme)
        .map(Scheme::default_port)
        .ok_or(HeadError::TargetScheme)?;
    let there = HostPort::parse(authority).map_err(HeadError::TargetHost)?;
    let here = HostPort::parse(host).map_err(HeadError::Host)?;
    if is_escaped(host) {
        return Err(HeadError::HostEscaped(here.host));
    }
    let port = |authority: &HostPort| authority.port.unwrap_or(default_port);
    if there.host == here.host && port(&there) == port(&here) {
        Ok(Some(authority))
    } else {
        Err(HeadError::HostDiffers)
    }
}

fn is_escaped(authority: &[u8]) -> bool {
    !authority.is_ascii() || authority.contains(&b'%')
}

fn is_usual(authority: &[u8]) -> bool {
    let usual = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':');
    authority.iter().all(usual) && memchr::memchr_iter(b':', authority).count() <= 1
}
