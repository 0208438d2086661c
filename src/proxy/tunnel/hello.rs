//! Finds out from the first bytes of a client in a tunnel whether they are TLS, and which host the handshake requests
//! (RFC 8446 §4.1.2, RFC 6066 §3). Does no I/O, and neither consumes nor changes the bytes.

use std::{fmt, net::IpAddr};

use rustls::server::Acceptor;

use crate::{
    origin::{Host, Origin, Scheme},
    proxy::handshake::TLS_HANDSHAKE,
};

/// Parses a client's first bytes in a tunnel as they arrive, or its first bytes after a HelloRetryRequest.
#[derive(Default)]
pub(super) struct Opening {
    acceptor: Acceptor,
    follows_retry: bool,
    /// How many bytes servers skip before the second ClientHello.
    skipped: usize,
    /// How many of the client's bytes `acceptor` has got, without the skipped ones.
    given: usize,
    /// Length of the ClientHello with the heads of its TLS records. 0 if there is no ClientHello.
    hello_length: usize,
    first_bytes: FirstBytes,
}

/// What a client's first bytes in a tunnel are. `Display` writes why robotgate closes the tunnel, for the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum FirstBytes {
    /// No bytes, or too few to tell.
    #[default]
    Nothing,
    OtherProtocol,
    NoName,
    /// TLS with this server name, as sent. Some clients send an IP address, although RFC 6066 §3 forbids it.
    Name(String),
    /// Bytes that begin like TLS or follow a HelloRetryRequest, but are not one ClientHello that robotgate can read.
    /// Another TLS library might find a server name in them.
    Unreadable,
}

// === impl Opening ===

impl Opening {
    /// Creates a parser for what the client sends after a HelloRetryRequest, by which a server asks for a second
    /// ClientHello.
    pub(super) fn after_retry() -> Self {
        Self {
            follows_retry: true,
            ..Self::default()
        }
    }

    /// Parses `bytes`, all that the client has sent so far. Returns whether more bytes are needed.
    pub(super) fn wants_more(&mut self, bytes: &[u8]) -> bool {
        // After a HelloRetryRequest, a server skips records of these two types (RFC 8446 §4.2.10, §5).
        while self.follows_retry
            && let Some([CHANGE_CIPHER_SPEC | APPLICATION_DATA, _, _, high, low, ..]) = bytes.get(self.skipped..)
        {
            self.skipped += RECORD_HEAD + usize::from(u16::from_be_bytes([*high, *low]));
        }
        let bytes = bytes.get(self.skipped..).unwrap_or_default();
        match bytes.first() {
            _ if self.skipped > LONGEST => self.first_bytes = FirstBytes::Unreadable,
            None => return true,
            Some(&TLS_HANDSHAKE) => {}
            Some(&(CHANGE_CIPHER_SPEC | APPLICATION_DATA)) if self.follows_retry => return true,
            Some(_) if self.follows_retry => self.first_bytes = FirstBytes::Unreadable,
            // Refuse other TLS records, because some servers skip them to find a ClientHello after them. Also refuse
            // the ClientHello of SSL 2.0, which cannot name a host.
            Some(0x14..=0x18 | 0x80..) => self.first_bytes = FirstBytes::Unreadable,
            Some(_) => self.first_bytes = FirstBytes::OtherProtocol,
        }
        while self.first_bytes == FirstBytes::Nothing {
            let mut rest = &bytes[self.given.min(bytes.len())..];
            if rest.is_empty() {
                return true;
            }
            match self.acceptor.read_tls(&mut rest) {
                Ok(1..) => self.given = bytes.len() - rest.len(),
                Ok(0) | Err(_) => self.first_bytes = FirstBytes::Unreadable,
            }
            match self.acceptor.accept() {
                Ok(None) => {}
                // Take the server name from the bytes, because rustls returns no name if the name is an address.
                Ok(Some(_)) => {
                    self.first_bytes = match first_message(bytes) {
                        Some((hello, length)) if total_length(&hello) == Some(hello.len()) => {
                            self.hello_length = length;
                            server_name(&hello).map_or(FirstBytes::NoName, FirstBytes::Name)
                        }
                        // The record contains another message, which could be a second ClientHello.
                        _ => FirstBytes::Unreadable,
                    }
                }
                Err(_) => self.first_bytes = FirstBytes::Unreadable,
            }
        }
        false
    }

    pub(super) fn hello_length(&self) -> usize {
        self.hello_length
    }

    pub(super) fn first_bytes(self) -> FirstBytes {
        self.first_bytes
    }
}

// === impl FirstBytes ===

impl FirstBytes {
    /// Returns whether a client may send these bytes through a tunnel to `origin`.
    ///
    /// A TLS handshake must name the origin's host, because the server could otherwise answer for a different site. On
    /// the port of https, other protocols are not allowed, because plain HTTP could name any host.
    pub(super) fn means(&self, origin: &Origin) -> bool {
        match (self, &origin.host) {
            (Self::OtherProtocol, _) => origin.port != Scheme::Https.default_port(),
            (Self::NoName, host) => matches!(host, Host::Ip(_)),
            (Self::Name(name), Host::Ip(address)) => name.parse::<IpAddr>().is_ok_and(|named| named == *address),
            (Self::Name(name), host) => host.matches(name),
            (Self::Nothing | Self::Unreadable, _) => false,
        }
    }
}

impl fmt::Display for FirstBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(
                f,
                "the TLS handshake in the tunnel asks for {}, a different host from the CONNECT",
                name.escape_debug()
            ),
            Self::Unreadable => f.write_str("the tunnel begins like TLS, but not with a readable TLS handshake"),
            Self::Nothing => f.write_str("the client began a TLS handshake in the tunnel and did not complete it"),
            Self::NoName => f.write_str(
                "the TLS handshake in the tunnel has no server name (SNI), so the server might answer for a different \
                 host than the CONNECT named",
            ),
            Self::OtherProtocol => {
                f.write_str("the tunnel does not begin with TLS from the client, which port 443 requires")
            }
        }
    }
}

/// Returns whether the server's first bytes are a HelloRetryRequest (RFC 8446 §4.1.3), or `None` if more bytes are
/// needed.
pub(super) fn asks_again(answer: &[u8]) -> Option<bool> {
    let Some((message, _)) = first_message(answer) else {
        return Some(false);
    };
    match (message.first(), message.get(4 + 2..4 + 2 + 32)) {
        (None | Some(&SERVER_HELLO), None) => None,
        (Some(&SERVER_HELLO), Some(RETRY)) => total_length(&message)
            .is_some_and(|length| message.len() >= length)
            .then_some(true),
        _ => Some(false),
    }
}

/// Returns the first handshake message in `records`, as far as it has arrived. The bytes that follow the message in its
/// last record are included. Also returns the total length of the records up to the end of this last record.
///
/// Skips alerts, because a server may send a warning first.
fn first_message(records: &[u8]) -> Option<(Vec<u8>, usize)> {
    let (mut message, mut at) = (Vec::new(), 0);
    while total_length(&message).is_none_or(|length| message.len() < length)
        && let Some([kind, _, _, high, low, rest @ ..]) = records.get(at..)
    {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        match *kind {
            TLS_HANDSHAKE => message.extend_from_slice(&rest[..length.min(rest.len())]),
            ALERT => {}
            _ => return None,
        }
        at += RECORD_HEAD + length;
    }
    Some((message, at))
}

fn total_length(mut message: &[u8]) -> Option<usize> {
    let head = message.split_off(..4)?;
    Some(4 + number(&head[1..]))
}

fn server_name(message: &[u8]) -> Option<String> {
    let mut message = message.get(1..)?;
    let mut hello = vector(&mut message, 3)?;
    let _version_and_random = hello.split_off(..2 + 32)?;
    let _session = vector(&mut hello, 1)?;
    let _cipher_suites = vector(&mut hello, 2)?;
    let _compression = vector(&mut hello, 1)?;
    let mut extensions = vector(&mut hello, 2)?;
    loop {
        let kind = extensions.split_off(..2)?;
        let mut content = vector(&mut extensions, 2)?;
        if kind == SERVER_NAME {
            let mut names = vector(&mut content, 2)?;
            let _type = names.split_off(..1)?;
            return vector(&mut names, 2).map(|name| String::from_utf8_lossy(name).into_owned());
        }
    }
}

/// Takes a TLS vector from the front of `bytes`. Its length is in the first `width` bytes (RFC 8446 §3.4).
fn vector<'b>(bytes: &mut &'b [u8], width: usize) -> Option<&'b [u8]> {
    let length = bytes.split_off(..width)?;
    bytes.split_off(..number(length))
}

fn number(bytes: &[u8]) -> usize {
    bytes.iter().fold(0, |number, byte| number << 8 | usize::from(*byte))
}

/// Maximum length of a server's answer to a ClientHello, or of what precedes a second ClientHello, in bytes. rustls
/// limits a ClientHello to the same size.
pub(super) const LONGEST: usize = 0xffff;

const RECORD_HEAD: usize = 5;

/// Types of TLS records (RFC 8446 §5.1).
const CHANGE_CIPHER_SPEC: u8 = 0x14;
const ALERT: u8 = 0x15;
const APPLICATION_DATA: u8 = 0x17;

const SERVER_HELLO: u8 = 2;

/// A ServerHello with these bytes in its random field is a HelloRetryRequest. They are the SHA-256 of the text
/// `HelloRetryRequest` (RFC 8446 §4.1.3).
const RETRY: &[u8] = b"\xCF\x21\xAD\x74\xE5\x9A\x61\x11\xBE\x1D\x8C\x02\x1E\x65\xB8\x91\
                       \xC2\xA2\x11\x16\x7A\xBB\x8C\x5E\x07\x9E\x09\xE2\xC8\xA8\x33\x9C";

const SERVER_NAME: &[u8] = &[0, 0];

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::{ClientConfig, ClientConnection, RootCertStore, crypto::ring, pki_types::ServerName};

    use super::*;

    fn hello(name: &'static str) -> Vec<u8> {
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        let name = ServerName::try_from(name).unwrap();
        let mut bytes = Vec::new();
        ClientConnection::new(Arc::new(config), name)
            .unwrap()
            .write_tls(&mut bytes)
            .unwrap();
        bytes
    }

    fn in_pieces(hello: &[u8]) -> Vec<u8> {
        let (head, message) = hello.split_at(5);
        let record = |piece: &[u8]| [&head[..3], &(piece.len() as u16).to_be_bytes(), piece].concat();
        message.chunks(7).flat_map(record).collect()
    }

    fn first_bytes(bytes: &[u8]) -> FirstBytes {
        let mut opening = Opening::default();
        for end in 0..=bytes.len() {
            if !opening.wants_more(&bytes[..end]) {
                break;
            }
        }
        let all_at_once = {
            let mut opening = Opening::default();
            opening.wants_more(bytes);
            opening.first_bytes()
        };
        let first_bytes = opening.first_bytes();
        assert_eq!(first_bytes, all_at_once);
        first_bytes
    }

    #[test]
    fn the_server_name_is_read_from_a_hello_in_any_pieces() {
        let name = FirstBytes::Name("a.example".to_owned());
        assert_eq!(first_bytes(&hello("a.example")), name);
        assert_eq!(first_bytes(&in_pieces(&hello("a.example"))), name);
        let and_more = [hello("A.Example"), b"more".to_vec()].concat();
        assert_eq!(first_bytes(&and_more), FirstBytes::Name("A.Example".to_owned()));
    }

    fn hello_with_address(address: &str) -> Vec<u8> {
        let name = format!("{}.example", "a".repeat(address.len() - ".example".len()));
        let bytes = hello(Box::leak(name.clone().into_boxed_str()));
        let at = memchr::memmem::find(&bytes, name.as_bytes()).unwrap();
        [&bytes[..at], address.as_bytes(), &bytes[at + name.len()..]].concat()
    }

    #[test]
    fn a_hello_that_shares_its_record_is_unreadable() {
        let hello = hello("a.example");
        let both = [&hello[5..], &hello[5..]].concat();
        let record = [&hello[..3], &(both.len() as u16).to_be_bytes(), &both].concat();
        assert_eq!(first_bytes(&record), FirstBytes::Unreadable);
    }

    #[test]
    fn a_second_hello_is_read_after_records_that_servers_skip() {
        let (ccs, early_data) = (b"\x14\x03\x03\x00\x01\x01", b"\x17\x03\x03\x00\x02ab");
        let skipped = [&ccs[..], early_data, ccs].concat();
        let long = [&b"\x17\x03\x03\x80\x00"[..], &[0; 0x8000]].concat();
        for (bytes, wanted) in [
            (
                [skipped.clone(), hello("b.example")].concat(),
                FirstBytes::Name("b.example".to_owned()),
            ),
            (skipped, FirstBytes::Nothing),
            (long.repeat(2), FirstBytes::Unreadable),
            (b"\x15\x03\x03\x00\x02\x01\x5a".to_vec(), FirstBytes::Unreadable),
            (b"GET / HTTP/1.1\r\n\r\n".to_vec(), FirstBytes::Unreadable),
        ] {
            let mut opening = Opening::after_retry();
            for end in 0..=bytes.len() {
                if !opening.wants_more(&bytes[..end]) {
                    break;
                }
            }
            assert_eq!(opening.first_bytes(), wanted);
        }
    }

    #[test]
    fn a_hello_retry_request_is_distinguished_from_other_answers() {
        let server_hello = |random: &[u8]| {
            let body = [&b"\x02\x00\x00\x26\x03\x03"[..], random, b"\x00\x13\x01\x00"].concat();
            [&b"\x16\x03\x03\x00\x2a"[..], &body].concat()
        };
        let retry = server_hello(RETRY);
        let warning = b"\x15\x03\x03\x00\x02\x01\x70";
        for (answer, wanted) in [
            (retry.clone(), Some(true)),
            (in_pieces(&retry), Some(true)),
            ([&warning[..], &retry].concat(), Some(true)),
            (retry[..retry.len() - 1].to_vec(), None),
            (warning.to_vec(), None),
            (server_hello(&[7; 32]), Some(false)),
            (server_hello(&[7; 32])[..43].to_vec(), Some(false)),
            (b"HTTP/1.1 400 Bad Request\r\n".to_vec(), Some(false)),
        ] {
            assert_eq!(asks_again(&answer), wanted, "{answer:x?}");
        }
    }

    #[test]
    fn an_address_as_server_name_is_read() {
        let hello = hello_with_address("192.0.2.77");
        assert_eq!(first_bytes(&hello), FirstBytes::Name("192.0.2.77".to_owned()));
        assert_eq!(
            first_bytes(&in_pieces(&hello)),
            FirstBytes::Name("192.0.2.77".to_owned())
        );
    }

    #[test]
    fn first_bytes_fit_only_the_host_of_the_connect() {
        let origin = |host: &str| format!("https://{host}").parse::<Origin>().unwrap();
        let name = |name: &str| FirstBytes::Name(name.to_owned());
        for (first_bytes, connect, means) in [
            (name("a.example"), "a.example", true),
            (name("A.example."), "a.example", true),
            (name("b.example"), "a.example", false),
            (FirstBytes::NoName, "a.example", false),
            (name("192.0.2.7"), "a.example", false),
            (name("192.0.2.7"), "192.0.2.7", true),
            (name("2001:db8::7"), "[2001:db8::7]", true),
            (name("192.0.2.8"), "192.0.2.7", false),
            (name("a.example"), "192.0.2.7", false),
            (FirstBytes::NoName, "192.0.2.7", true),
            (FirstBytes::Unreadable, "192.0.2.7", false),
            (FirstBytes::OtherProtocol, "a.example", false),
            (FirstBytes::OtherProtocol, "a.example:8443", true),
        ] {
            assert_eq!(
                first_bytes.means(&origin(connect)),
                means,
                "{first_bytes:?} through a CONNECT to {connect}"
            );
        }
    }

    #[test]
    fn a_hello_without_a_name_differs_from_unreadable_bytes() {
        for (bytes, wanted) in [
            (b"".to_vec(), FirstBytes::Nothing),
            (hello("a.example")[..40].to_vec(), FirstBytes::Nothing),
            (hello("192.0.2.7"), FirstBytes::NoName),
            (b"SSH-2.0-x\r\n".to_vec(), FirstBytes::OtherProtocol),
            (b"\x16\x03\x01\xff\xff".to_vec(), FirstBytes::Unreadable),
            (
                [b"\x15\x03\x03\x00\x02\x01\x5a".to_vec(), hello("a.example")].concat(),
                FirstBytes::Unreadable,
            ),
            (
                [b"\x14\x03\x03\x00\x01\x01".to_vec(), hello("a.example")].concat(),
                FirstBytes::Unreadable,
            ),
            (b"\x80\x2e\x01\x03\x01\x00".to_vec(), FirstBytes::Unreadable),
            (b"\x16GET / HTTP/1.1\r\n\r\n".to_vec(), FirstBytes::Unreadable),
        ] {
            assert_eq!(first_bytes(&bytes), wanted, "{:?}", String::from_utf8_lossy(&bytes));
        }
    }
}
