//! Sends a CONNECT. The result is either the refusal, or the tunnel, in which a test can use several protocols.

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

/// The protocols that a client offers in TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alpn {
    None,
    Http1,
    Http2,
}

/// The result of a CONNECT.
pub enum Connected {
    Tunnel(Tunnel),
    Refused(Response),
}

/// An open tunnel to the target of a CONNECT.
pub struct Tunnel {
    wire: Wire,
    authority: String,
    roots: Roots,
    /// The bytes of the first read. They begin with the response to the CONNECT, and contain all of it if the proxy
    /// sent it in one write.
    pub answer: Vec<u8>,
    pub headers: Fields,
}

/// Sends the CONNECT in `ask`, and waits for the response. For TLS in the tunnel, the client trusts the certificates in
/// the file `ca`.
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
        // A proxy that does not intercept TLS has no such file.
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
    /// Returns the tunnel.
    ///
    /// # Panics
    /// If the CONNECT was refused.
    #[track_caller]
    pub fn opened(self) -> Tunnel {
        match self {
            Self::Tunnel(tunnel) => tunnel,
            Self::Refused(response) => panic!("CONNECT was refused: {response:#?}"),
        }
    }

    /// Returns the refusal.
    ///
    /// # Panics
    /// If the CONNECT was not refused.
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

    /// Sets the root certificates that the client trusts for TLS in the tunnel. Without this, it trusts the proxy's
    /// authority.
    pub fn trusting(self, roots: Roots) -> Self {
        Self { roots, ..self }
    }

    /// Uses the tunnel without TLS, for plain HTTP/1.1 or raw bytes.
    pub fn plain(self) -> Connection {
        Connection::over(self.wire, &self.authority)
    }

    /// Starts TLS in the tunnel. Returns a connection that uses HTTP/2 if `alpn` is [`Alpn::Http2`], and otherwise
    /// HTTP/1.1.
    ///
    /// # Panics
    /// If the handshake fails, or the server chooses another protocol.
    pub async fn tls(self, server_name: &str, alpn: Alpn) -> Connection {
        let what = format!("TLS with {server_name} ({alpn:?})");
        self.try_tls(server_name, alpn)
            .await
            .unwrap_or_else(|error| panic!("{what}: {error}"))
    }

    /// Does the same as [`tls`](Self::tls), but returns an error if the handshake fails.
    ///
    /// # Errors
    /// Fails if the handshake fails.
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

    /// Starts TLS in the tunnel. A test can send any bytes over it.
    ///
    /// # Panics
    /// If the handshake fails.
    pub async fn io(self, server_name: &str, alpn: Alpn) -> BoxIo {
        Box::new(self.handshake(server_name, alpn).await.expect("a handshake"))
    }

    /// Starts TLS in the tunnel. A test can send single HTTP/2 frames over it, even invalid ones.
    ///
    /// # Panics
    /// If the handshake fails.
    pub async fn frames(self, server_name: &str) -> Frames {
        let stream = self.handshake(server_name, Alpn::Http2).await.expect("a handshake");
        Frames::over(stream).await
    }

    /// Starts TLS in the tunnel and closes it without sending a byte.
    ///
    /// # Panics
    /// If the handshake fails.
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
