//! What a client says first through a tunnel: whether it is TLS and, if so, which host it asks for (RFC 8446 §4.1.2,
//! RFC 6066 §3). Pure: bytes go in, and nothing of them is taken or changed.

use std::fmt;

use rustls::server::Acceptor;

use crate::proxy::handshake::TLS_HANDSHAKE;

/// The first bytes of a tunnel, as they come.
#[derive(Default)]
pub(super) struct Opening {
    acceptor: Acceptor,
    /// How many of the bytes the acceptor has been given.
    given: usize,
    said: Said,
}

/// What was said. Its `Display` is for where that ends the tunnel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Said {
    /// Nothing that is whole.
    #[default]
    Nothing,
    /// Something else than TLS.
    OtherProtocol,
    /// TLS that names no host.
    NoName,
    Name(String),
    /// What begins like TLS, and cannot be read as such; others may read a name there.
    Unreadable,
}

// === impl Opening ===

impl Opening {
    /// Looks at `bytes`, all that has come so far. Whether more of them are needed.
    pub(super) fn wants_more(&mut self, bytes: &[u8]) -> bool {
        match bytes.first() {
            None => return true,
            Some(&TLS_HANDSHAKE) => {}
            // Other records of TLS, which some servers pass over to find the hello behind them, and the hello of old,
            // which cannot name a host.
            Some(0x14..=0x18 | 0x80..) => self.said = Said::Unreadable,
            Some(_) => self.said = Said::OtherProtocol,
        }
        while self.said == Said::Nothing {
            let mut rest = &bytes[self.given.min(bytes.len())..];
            if rest.is_empty() {
                return true;
            }
            match self.acceptor.read_tls(&mut rest) {
                Ok(1..) => self.given = bytes.len() - rest.len(),
                Ok(0) | Err(_) => self.said = Said::Unreadable,
            }
            match self.acceptor.accept() {
                Ok(None) => {}
                Ok(Some(accepted)) => {
                    let name = accepted.client_hello().server_name().map(str::to_owned);
                    self.said = name.map_or(Said::NoName, Said::Name);
                }
                Err(_) => self.said = Said::Unreadable,
            }
        }
        false
    }

    pub(super) fn said(self) -> Said {
        self.said
    }
}

// === impl Said ===

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(
                f,
                "the TLS inside asks for {}, another host than the CONNECT",
                name.escape_debug()
            ),
            Self::Unreadable => f.write_str("what begins like TLS inside cannot be read as such"),
            Self::Nothing => f.write_str("the client was silent in the middle of what begins like TLS"),
            Self::NoName | Self::OtherProtocol => f.write_str("the client spoke"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::{ClientConfig, ClientConnection, RootCertStore, crypto::ring, pki_types::ServerName};

    use super::*;

    /// What a client sends first.
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

    /// The same handshake message in records of a few bytes each, as RFC 8446 §5.1 allows.
    fn in_pieces(hello: &[u8]) -> Vec<u8> {
        let (head, message) = hello.split_at(5);
        let record = |piece: &[u8]| [&head[..3], &(piece.len() as u16).to_be_bytes(), piece].concat();
        message.chunks(7).flat_map(record).collect()
    }

    fn said(bytes: &[u8]) -> Said {
        let mut opening = Opening::default();
        // Byte by byte, as the network may bring them.
        for end in 0..=bytes.len() {
            if !opening.wants_more(&bytes[..end]) {
                break;
            }
        }
        let all_at_once = {
            let mut opening = Opening::default();
            opening.wants_more(bytes);
            opening.said()
        };
        let said = opening.said();
        assert_eq!(said, all_at_once);
        said
    }

    #[test]
    fn the_name_is_read_however_the_hello_comes() {
        let name = Said::Name("a.example".to_owned());
        assert_eq!(said(&hello("a.example")), name);
        assert_eq!(said(&in_pieces(&hello("a.example"))), name);
        assert_eq!(said(&[hello("A.Example"), b"more".to_vec()].concat()), name);
    }

    #[test]
    fn what_names_no_host_is_told_from_what_cannot_be_read() {
        for (bytes, wanted) in [
            (b"".to_vec(), Said::Nothing),
            (hello("a.example")[..40].to_vec(), Said::Nothing),
            (hello("192.0.2.7"), Said::NoName),
            (b"SSH-2.0-x\r\n".to_vec(), Said::OtherProtocol),
            (b"\x16\x03\x01\xff\xff".to_vec(), Said::Unreadable),
            (
                [b"\x15\x03\x03\x00\x02\x01\x5a".to_vec(), hello("a.example")].concat(),
                Said::Unreadable,
            ),
            (
                [b"\x14\x03\x03\x00\x01\x01".to_vec(), hello("a.example")].concat(),
                Said::Unreadable,
            ),
            (b"\x80\x2e\x01\x03\x01\x00".to_vec(), Said::Unreadable),
            (b"\x16GET / HTTP/1.1\r\n\r\n".to_vec(), Said::Unreadable),
        ] {
            assert_eq!(said(&bytes), wanted, "{:?}", String::from_utf8_lossy(&bytes));
        }
    }
}
