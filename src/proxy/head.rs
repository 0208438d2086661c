//! Reads the head of an HTTP/1 request, and checks it before pingora sees it. So faults get clear responses, and heads
//! that parsers are known to interpret differently are refused or rewritten.

mod checks;
mod error;
mod framing;
mod hops;

use std::{fmt, time::Duration};

use bytes::BytesMut;
use http::Method;
use pingora_http::RequestHeader;
use tokio::time::Instant;

pub(super) use self::error::HeadError;
use self::{
    checks::{check_line_ends, check_target, http_url, only_host, respelled_host, without_login},
    framing::{check_framing, check_framing_fields},
    hops::{check_connection, check_upgrade},
};
use super::{client_connection::ClientConnection, handshake::TLS_HANDSHAKE, timer::Timer};
use crate::{config::HeadLimits, origin::HostPort, ratelimited::ratelimited, wire::Wire};

#[derive(Debug)]
pub(super) struct Head {
    /// The head, and perhaps bytes that follow it, such as the content.
    pub(super) bytes: BytesMut,
    pub(super) len: usize,
    pub(super) connect: Option<ConnectHead>,
    /// Whether the login in an ftp URL named a user, other than a user of anonymous FTP (RFC 1635). `bytes` does not
    /// contain the login.
    pub(super) names_user: bool,
}

#[derive(Debug)]
pub(super) struct ConnectHead {
    pub(super) authority: HostPort,
    pub(super) headers: http::HeaderMap,
}

/// A checked head, and what has to change in it before pingora parses it.
struct ScannedHead {
    len: usize,
    connect: Option<ConnectHead>,
    new_target: Option<Vec<u8>>,
    new_host: Option<Vec<u8>>,
    names_user: bool,
}

pub(super) fn log_malformed(connection: &ClientConnection, error: &dyn fmt::Display) {
    ratelimited!(info, client = %connection.client_for_log(), %error, "a request was refused as malformed");
}

// === impl Head ===

impl Head {
    /// Reads a head, and waits at most `idle` for its first byte. Calls `limits` only when this byte has arrived, so
    /// that a reload also applies to idle connections.
    pub(super) async fn read(
        wire: &Wire,
        idle: Duration,
        limits: impl FnOnce() -> (HeadLimits, Duration),
        timer: &mut Timer,
    ) -> Result<Self, HeadError> {
        let first = timer.run(Instant::now() + idle, wire.read_some()).await;
        let Some(Ok(mut bytes)) = first.filter(|first| first.as_ref().is_ok_and(|bytes| !bytes.is_empty())) else {
            return Err(HeadError::Gone);
        };
        if bytes.first() == Some(&TLS_HANDSHAKE) {
            return Err(HeadError::Tls);
        }
        let (limits, timeout) = limits();
        // Most heads arrive in one piece, so start the timer only if a part is missing.
        let head = match Self::parse(&mut bytes, limits)? {
            Some(head) => head,
            None => {
                let rest = Self::read_rest(wire, bytes, limits);
                let rest = timer.run(Instant::now() + timeout, rest).await;
                rest.unwrap_or(Err(HeadError::Timeout))?
            }
        };
        Ok(head)
    }

    async fn read_rest(wire: &Wire, mut bytes: BytesMut, limits: HeadLimits) -> Result<Self, HeadError> {
        loop {
            // These bytes contain no complete head, so the head is longer than the limit.
            if bytes.len() > limits.bytes {
                return Err(HeadError::TooLarge(limits.bytes));
            }
            let seen = bytes.len();
            match wire.read_some().await {
                Ok(more) if !more.is_empty() => bytes.extend_from_slice(&more),
                Ok(_) | Err(_) => return Err(HeadError::Gone),
            }
            // Do not parse after each piece, because a head may arrive byte by byte.
            if may_end(&bytes[seen.saturating_sub(END.len() - 1)..])
                && let Some(head) = Self::parse(&mut bytes, limits)?
            {
                return Ok(head);
            }
        }
    }

    /// Parses the head at the beginning of `bytes`. If it is complete, takes all of `bytes`, including what follows the
    /// head.
    pub(super) fn parse(bytes: &mut BytesMut, limits: HeadLimits) -> Result<Option<Self>, HeadError> {
        let found = if limits.fields <= USUAL_FIELDS {
            let mut fields = [httparse::EMPTY_HEADER; USUAL_FIELDS];
            ScannedHead::parse(bytes, &mut fields[..limits.fields], limits)?
        } else {
            let mut fields = vec![httparse::EMPTY_HEADER; limits.fields];
            ScannedHead::parse(bytes, &mut fields, limits)?
        };
        let Some(found) = found else { return Ok(None) };
        let mut head = Self {
            bytes: std::mem::take(bytes),
            len: found.len,
            connect: found.connect,
            names_user: found.names_user,
        };
        if let Some(target) = found.new_target {
            head.set_target(&target);
        }
        if let Some(host) = found.new_host {
            head.set_host(&host);
        }
        Ok(Some(head))
    }

    fn set_target(&mut self, target: &[u8]) {
        let mut out = BytesMut::with_capacity(self.bytes.len() + target.len());
        let rest = {
            let mut parts = self.bytes[..self.len].splitn(3, |byte| *byte == b' ');
            let method = parts.next().unwrap_or_default();
            out.extend_from_slice(method);
            method.len() + 1 + parts.next().unwrap_or_default().len()
        };
        out.extend_from_slice(b" ");
        out.extend_from_slice(target);
        out.extend_from_slice(&self.bytes[rest..]);
        self.len = self.len + out.len() - self.bytes.len();
        self.bytes = out;
    }

    /// Replaces the value of the Host field. If the request target names a host, `host` has to be in the spelling of
    /// the target, because pingora requires the field to equal the host in the target byte for byte.
    fn set_host(&mut self, host: &[u8]) {
        let mut out = BytesMut::with_capacity(self.bytes.len() + host.len());
        for line in self.bytes[..self.len].split_inclusive(|byte| *byte == b'\n') {
            let is_host = line.get(..5).is_some_and(|name| name.eq_ignore_ascii_case(b"host:"));
            if is_host {
                out.extend_from_slice(b"Host: ");
                out.extend_from_slice(host);
                out.extend_from_slice(b"\r\n");
            } else {
                out.extend_from_slice(line);
            }
        }
        let len = out.len();
        out.extend_from_slice(&self.bytes[self.len..]);
        self.bytes = out;
        self.len = len;
    }
}

// === impl ScannedHead ===

impl ScannedHead {
    fn parse<'b>(
        bytes: &'b [u8],
        fields: &mut [httparse::Header<'b>],
        limits: HeadLimits,
    ) -> Result<Option<Self>, HeadError> {
        let mut request = httparse::Request::new(fields);
        let len = match request.parse(bytes) {
            Ok(httparse::Status::Complete(len)) => len,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(httparse::Error::TooManyHeaders) => return Err(HeadError::TooManyFields(limits.fields)),
            // httparse mistakes the text after a space in the target for the version.
            Err(httparse::Error::Version) if has_space_in_target(bytes) => {
                return Err(HeadError::Syntax(SPACE_IN_TARGET));
            }
            Err(error) => return Err(error.into()),
        };
        if len > limits.bytes {
            return Err(HeadError::TooLarge(limits.bytes));
        }
        let head = &bytes[..len];
        // pingora cannot read field names longer than `MAX_NAME`.
        if len > MAX_NAME && request.headers.iter().any(|field| field.name.len() > MAX_NAME) {
            return Err(HeadError::Syntax("a field name is longer than 64 KiB"));
        }
        check_line_ends(head)?;
        check_framing(&request, head)?;
        check_connection(&request)?;
        let asks_for_websocket = check_upgrade(&request)?;
        let method = request
            .method
            .and_then(|method| Method::from_bytes(method.as_bytes()).ok())
            .ok_or(HeadError::Syntax("the method has an invalid character"))?;
        let target = request.path.unwrap_or_default().as_bytes();
        let host = only_host(&request)?;
        if method == Method::CONNECT {
            return Ok(Some(Self {
                len,
                connect: Some(ConnectHead::new(target, host, request.headers)?),
                new_target: None,
                new_host: None,
                names_user: false,
            }));
        }
        check_target(target)?;
        let (names_user, without_login) = without_login(target).unzip();
        let new_target = if asks_for_websocket {
            http_url(target).or(without_login)
        } else {
            without_login
        };
        let target = new_target.as_deref().unwrap_or(target);
        // Some clients repeat the login of the URL in the Host field.
        let host = host.map(|host| match names_user {
            Some(_) => host.rsplit(|byte| *byte == b'@').next().unwrap_or(host),
            None => host,
        });
        Ok(Some(Self {
            len,
            connect: None,
            new_host: match names_user {
                Some(_) => respelled_host(target, host)?.or(host).map(<[u8]>::to_vec),
                None => respelled_host(target, host)?.map(<[u8]>::to_vec),
            },
            new_target,
            names_user: names_user == Some(true),
        }))
    }
}

// === impl ConnectHead ===

impl ConnectHead {
    /// Checks a CONNECT (RFC 9110 §9.3.6). Many clients send no Host field, or one without the port.
    fn new(target: &[u8], host: Option<&[u8]>, fields: &[httparse::Header<'_>]) -> Result<Self, HeadError> {
        // If the target is a URL, `HostPort::parse` would report an invalid port, which would mislead.
        if target.contains(&b'/') {
            return Err(HeadError::ConnectPort);
        }
        let authority = HostPort::parse(target).map_err(HeadError::ConnectTarget)?;
        if authority.port.is_none() {
            return Err(HeadError::ConnectPort);
        }
        if let Some(host) = host {
            let host = HostPort::parse(host).map_err(HeadError::Host)?;
            let same_port = host.port.is_none() || host.port == authority.port;
            if host.host != authority.host || !same_port {
                return Err(HeadError::HostDiffers);
            }
        }
        let mut headers = http::HeaderMap::with_capacity(fields.len());
        for field in fields {
            let name = http::HeaderName::from_bytes(field.name.as_bytes());
            let value = http::HeaderValue::from_bytes(field.value);
            if let (Ok(name), Ok(value)) = (name, value) {
                headers.append(name, value);
            }
        }
        Ok(Self { authority, headers })
    }
}

// === impl HeadLimits ===

impl HeadLimits {
    /// Checks the size of a head that came over HTTP/2, as if it were written in HTTP/1, and refuses fields that a
    /// parser of HTTP/1 could misinterpret. The HTTP/2 library and the module `target` check the rest.
    pub(super) fn check_http2(self, request: &RequestHeader) -> Result<(), HeadError> {
        if request.headers.len() > self.fields {
            return Err(HeadError::TooManyFields(self.fields));
        }
        let fields = request.headers.iter();
        let bytes: usize = fields.map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
        if bytes + request.raw_path().len() > self.bytes {
            return Err(HeadError::TooLarge(self.bytes));
        }
        check_framing_fields(&request.headers)
    }
}

fn has_space_in_target(head: &[u8]) -> bool {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    words.next_back().is_some_and(|last| last.starts_with(b"HTTP/")) && words.count() > 2
}

/// Maximum length of a field name, in bytes.
const MAX_NAME: usize = 65_535;
const SPACE_IN_TARGET: &str = "the request target has a space: write %20 for it";

/// Returns whether `bytes` contains the end of a head, with CRLF or only LF as line ends.
fn may_end(bytes: &[u8]) -> bool {
    [END, b"\n\n"]
        .iter()
        .any(|end| memchr::memmem::find(bytes, end).is_some())
}

/// The end of a head: the LF of its last line, and an empty line.
const END: &[u8] = b"\n\r\n";
const USUAL_FIELDS: usize = 128;

#[cfg(test)]
mod tests;
