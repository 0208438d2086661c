//! CONNECT: the refusal, or the tunnel and what can be spoken through it.

use std::{fs, io, net::SocketAddr, path::Path};

use rustls::pki_types::ServerName;
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::{Ask, Connection, Frames, Response};
use crate::support::{
    io::BoxIo,
    tls::Roots,
    wait::within,
    wire::{Fields, Wire},
};

/// Which protocols a client offers inside TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alpn {
    None,
    Http1,
    Http2,
}

/// What came of a CONNECT.
pub enum Connected {
    Tunnel(Tunnel),
    Refused(Response),
}

/// An open way to the target of a CONNECT.
pub struct Tunnel {
    wire: Wire,
    authority: String,
    roots: Roots,
    /// What the first read yielded: the whole answer to the CONNECT.
    pub answer: Vec<u8>,
    pub headers: Fields,
}

/// Sends a CONNECT, given by `ask`, and waits for the answer. TLS inside will trust what is in the file `ca`.
pub async fn connect(proxy: SocketAddr, ask: Ask<'static>, ca: &Path) -> Connected {
    let exchange = async {
        let connection = Connection::to(proxy).await?;
        let mut wire = connection.into_wire();
        wire.send(&ask.message.bytes()).await?;
        let answer = wire.some().await?;
        wire.unread(&answer);
        let response = Response::read(&mut wire, "CONNECT").await?;
        io::Result::Ok((wire, answer, response))
    };
    let what = format!("the answer to CONNECT {}", ask.message.target);
    let (wire, answer, response) = within(&what, exchange).await.expect("an answer to CONNECT");
    if (200..300).contains(&response.status) {
        // Read only now: the authority may have been made for this very request.
        let roots = fs::read_to_string(ca).map_or_else(|_| Roots::none(), |pem| Roots::from_pem(&pem));
        let tunnel = Tunnel::over(wire, &ask.message.target, roots);
        Connected::Tunnel(Tunnel {
            answer,
            headers: response.headers,
            ..tunnel
        })
    } else {
        Connected::Refused(response)
    }
}

// === impl Connected ===

impl Connected {
    /// # Panics
    /// When it was refused.
    #[track_caller]
    pub fn opened(self) -> Tunnel {
        match self {
            Self::Tunnel(tunnel) => tunnel,
            Self::Refused(response) => panic!("CONNECT was refused: {response:#?}"),
        }
    }

    /// # Panics
    /// When it was not.
    #[track_caller]
    pub fn refused(self) -> Response {
        match self {
            Self::Tunnel(tunnel) => panic!("CONNECT was answered {:?}", String::from_utf8_lossy(&tunnel.answer)),
            Self::Refused(response) => response,
        }
    }
}

// === impl Tunnel ===

impl Tunnel {
    pub(super) fn over(wire: Wire, authority: &str, roots: Roots) -> Self {
        let (authority, headers) = (authority.to_owned(), Fields::default());
        Self {
            wire,
            authority,
            roots,
            answer: Vec::new(),
            headers,
        }
    }

    /// Changes what TLS inside will trust: by default the gate's authority.
    pub fn trusting(self, roots: Roots) -> Self {
        Self { roots, ..self }
    }

    /// Plain HTTP/1.1, or whatever else, right inside the tunnel.
    pub fn plain(self) -> Connection {
        Connection::over(self.wire, &self.authority)
    }

    /// TLS inside, and over it HTTP of the version that was agreed.
    ///
    /// # Panics
    /// When the handshake fails.
    pub async fn tls(self, server_name: &str, alpn: Alpn) -> Connection {
        let what = format!("TLS with {server_name} ({alpn:?})");
        self.try_tls(server_name, alpn)
            .await
            .unwrap_or_else(|error| panic!("{what}: {error}"))
    }

    /// As [`tls`](Self::tls).
    ///
    /// # Errors
    /// When the handshake fails.
    pub async fn try_tls(self, server_name: &str, alpn: Alpn) -> io::Result<Connection> {
        let authority = self.authority.clone();
        let stream = self.handshake(server_name, alpn).await?;
        let (_, session) = stream.get_ref();
        let certificate = session
            .peer_certificates()
            .and_then(<[_]>::first)
            .map(|der| der.to_vec());
        let connection = if alpn == Alpn::Http2 {
            Connection::http2_over(stream, &authority).await
        } else {
            Connection::over(Wire::new(stream), &authority)
        };
        Ok(connection.showing(certificate))
    }

    /// TLS inside, and nothing over it.
    ///
    /// # Panics
    /// When the handshake fails.
    pub async fn io(self, server_name: &str, alpn: Alpn) -> BoxIo {
        Box::new(self.handshake(server_name, alpn).await.expect("a handshake"))
    }

    /// TLS inside, and over it HTTP/2 as single frames, which need not make sense.
    ///
    /// # Panics
    /// When the handshake fails.
    pub async fn frames(self, server_name: &str) -> Frames {
        let stream = self.handshake(server_name, Alpn::Http2).await.expect("a handshake");
        Frames::over(stream).await
    }

    /// TLS inside, closed without a byte in it.
    ///
    /// # Panics
    /// When the handshake fails.
    pub async fn closed_unused(self, server_name: &str, alpn: Alpn) {
        drop(self.handshake(server_name, alpn).await.expect("a handshake"));
    }

    async fn handshake(self, server_name: &str, alpn: Alpn) -> io::Result<TlsStream<BoxIo>> {
        let (io, early) = self.wire.into_parts();
        assert!(early.is_empty(), "a TLS server never speaks first: {early:?}");
        let offers: &[&[u8]] = match alpn {
            Alpn::None => &[],
            Alpn::Http1 => &[b"http/1.1"],
            Alpn::Http2 => &[b"h2", b"http/1.1"],
        };
        let name = ServerName::try_from(server_name.to_owned()).map_err(io::Error::other)?;
        let connector = TlsConnector::from(self.roots.client_config(offers));
        let stream = within("a TLS handshake", connector.connect(name, io)).await?;
        let agreed = stream.get_ref().1.alpn_protocol();
        if alpn == Alpn::Http2 {
            assert_eq!(agreed, Some(&b"h2"[..]), "HTTP/2 was offered");
        } else {
            assert!(matches!(agreed, None | Some(b"http/1.1")), "agreed on {agreed:?}");
        }
        Ok(stream)
    }
}
