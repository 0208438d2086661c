//! A client's open connection to a proxy, or through a proxy, with HTTP/1.1 or HTTP/2.

use std::{io, net::SocketAddr};

use tokio::net::{TcpSocket, TcpStream};

use super::{
    Ask, Response, Tunnel,
    ask::{Message, USER_AGENT},
    h2::Http2,
};
use crate::support::{
    io::{BoxIo, Io},
    tls::Roots,
    wait::within,
    wire::{End, Wire},
};

pub struct Connection {
    kind: Kind,
    /// The value of the Host field for requests whose target contains no host.
    host: String,
    /// The certificate that the peer showed in the TLS handshake, in DER.
    certificate: Option<Vec<u8>>,
}

enum Kind {
    One(Wire),
    Two(Http2),
}

impl Connection {
    pub async fn to(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self::over(Wire::new(stream), &address.to_string()))
    }

    /// Opens a plain connection whose local address is `client`.
    pub async fn from(client: [u8; 4], address: SocketAddr) -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((client, 0).into())?;
        let stream = socket.connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self::over(Wire::new(stream), &address.to_string()))
    }

    /// Speaks HTTP/1.1 over `wire`.
    pub fn over(wire: Wire, host: &str) -> Self {
        Self {
            kind: Kind::One(wire),
            host: host.to_owned(),
            certificate: None,
        }
    }

    /// Speaks HTTP/1.1 over any kind of connection.
    pub fn over_io(io: impl Io + 'static) -> Self {
        Self::over(Wire::new(io), "")
    }

    /// Speaks HTTP/2 over any kind of connection.
    pub async fn http2_over(io: impl Io + 'static, authority: &str) -> Self {
        let kind = Kind::Two(Http2::over(io, authority).await);
        Self {
            kind,
            host: authority.to_owned(),
            certificate: None,
        }
    }

    /// Treats the connection as a tunnel, as if a CONNECT had succeeded.
    pub fn tunnel(self, roots: Roots) -> Tunnel {
        let authority = self.host.clone();
        Tunnel::over(self.into_wire(), &authority, roots)
    }

    /// Does the same as [`tunnel`](Self::tunnel), as if the CONNECT had been for `authority`.
    pub fn tunnel_to(self, authority: &str, roots: Roots) -> Tunnel {
        Tunnel::over(self.into_wire(), authority, roots)
    }

    pub(super) fn showing(self, certificate: Option<Vec<u8>>) -> Self {
        Self { certificate, ..self }
    }

    pub fn certificate(&self) -> Option<&[u8]> {
        self.certificate.as_deref()
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    pub fn get(&mut self, target: &str) -> Ask<'_> {
        self.ask("GET", target)
    }

    pub fn ask(&mut self, method: &str, target: &str) -> Ask<'_> {
        Ask::kept(self, method, target)
    }

    /// Sends many GET requests: concurrently over HTTP/2, one after another over HTTP/1.1.
    pub async fn get_all(&mut self, targets: &[String]) -> Vec<Response> {
        let mut responses = Vec::new();
        if let Kind::Two(http2) = &mut self.kind {
            let headers = [("User-Agent".to_owned(), USER_AGENT.to_owned())];
            let mut sent = Vec::new();
            for target in targets {
                sent.push(http2.start("GET", target, &headers, &[]).await.expect("a stream"));
            }
            for stream in sent {
                responses.push(within("a response", stream.finish()).await.expect("a response"));
            }
        } else {
            for target in targets {
                responses.push(self.get(target).await);
            }
        }
        responses
    }

    /// Sends a POST over HTTP/2 with a part of its content, and does not end the content.
    pub async fn post_without_end(&mut self, target: &str, part: &[u8]) -> Response {
        let Kind::Two(http2) = &mut self.kind else {
            panic!("an HTTP/2 connection is wanted");
        };
        let headers = [("User-Agent".to_owned(), USER_AGENT.to_owned())];
        within("a response", http2.send_in_part(target, &headers, part))
            .await
            .expect("a response")
    }

    /// Sends a request over HTTP/2 and cancels it immediately. Returns `false` if the connection accepts no more
    /// requests.
    pub async fn get_and_reset(&mut self, target: &str) -> bool {
        let Kind::Two(http2) = &mut self.kind else {
            panic!("only HTTP/2 can cancel a request");
        };
        let headers = [("User-Agent".to_owned(), USER_AGENT.to_owned())];
        // Dropping the response future resets the stream.
        within("the peer to take a request", http2.start("GET", target, &headers, &[]))
            .await
            .is_ok()
    }

    pub(super) async fn exchange(&mut self, message: &Message) -> io::Result<Response> {
        match &mut self.kind {
            Kind::One(wire) => {
                // A server can respond and close the connection before it has read the whole request. So the response
                // is read even if sending failed.
                let sent = wire.send(&message.bytes()).await;
                Response::read(wire, &message.method)
                    .await
                    .map_err(|error| sent.err().unwrap_or(error))
            }
            Kind::Two(http2) => {
                http2
                    .start(&message.method, &message.target, &message.headers, &message.body)
                    .await?
                    .finish()
                    .await
            }
        }
    }

    /// Sends raw bytes.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        within("the peer to take bytes", self.wire().send(bytes.as_ref()))
            .await
            .expect("an open connection");
    }

    /// Sends raw bytes. Returns `false` if the peer has closed the connection.
    pub async fn try_send(&mut self, bytes: &[u8]) -> bool {
        within("the peer to take bytes", self.wire().send(bytes)).await.is_ok()
    }

    /// Closes the direction in which this side sends.
    pub async fn finish(&mut self) {
        // This fails if the peer closed the connection first, which does not matter.
        drop(self.wire().finish().await);
    }

    /// Reads once and returns the bytes. They are empty at the end of the connection.
    pub async fn read(&mut self) -> Vec<u8> {
        within("bytes", self.wire().some()).await.expect("an open connection")
    }

    /// Reads once and returns the bytes. Returns `None` if the connection broke.
    pub async fn try_read(&mut self) -> Option<Vec<u8>> {
        within("bytes", self.wire().some()).await.ok()
    }

    /// Reads exactly `length` bytes.
    pub async fn read_exactly(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let end = within("bytes", self.wire().counted(length, &mut bytes)).await;
        assert_eq!(end, End::Length, "only {:?} came", String::from_utf8_lossy(&bytes));
        bytes
    }

    /// Reads until the peer closes or resets the connection.
    pub async fn read_to_end(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        within("the end of the connection", self.wire().until_closed(&mut bytes)).await;
        bytes
    }

    /// Reads once, sends `bytes`, closes the direction in which this side sends, and reads until the peer closes or
    /// resets the connection. Returns all bytes that were read.
    pub async fn read_to_end_after(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut all = self.read().await;
        self.try_send(bytes).await;
        self.finish().await;
        all.extend(self.read_to_end().await);
        all
    }

    /// Reads the response to a request that was sent with [`send`](Self::send).
    pub async fn response_to(&mut self, method: &str) -> Response {
        within("a response", Response::read(self.wire(), method))
            .await
            .expect("a response")
    }

    /// Does the same as [`response_to`](Self::response_to), but returns an error if there is no response.
    ///
    /// # Errors
    /// Fails if there is no response.
    pub async fn try_response_to(&mut self, method: &str) -> io::Result<Response> {
        within("a response", Response::read(self.wire(), method)).await
    }

    /// Returns the underlying connection.
    pub fn into_io(self) -> BoxIo {
        let (io, early) = self.into_wire().into_parts();
        assert!(early.is_empty(), "nothing has come yet: {early:?}");
        io
    }

    pub(super) fn into_wire(self) -> Wire {
        match self.kind {
            Kind::One(wire) => wire,
            Kind::Two(_) => panic!("HTTP/2 has no wire of its own"),
        }
    }

    fn wire(&mut self) -> &mut Wire {
        match &mut self.kind {
            Kind::One(wire) => wire,
            Kind::Two(_) => panic!("HTTP/2 has no wire of its own"),
        }
    }
}
