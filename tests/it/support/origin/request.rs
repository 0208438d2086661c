//! A request as the test site received it. Only the transfer coding of its body is decoded.

use std::{io, time::Instant};

use super::super::wire::{End, Fields, Wire};

#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    /// The request target, exactly as sent.
    pub target: String,
    pub version: String,
    pub headers: Fields,
    pub body: Vec<u8>,
    pub end: End,
    /// The number of the connection that the request came on. The first connection is 0.
    pub connection: usize,
    /// When the head of the request had arrived, or over HTTP/2 the whole request.
    pub received: Instant,
    /// The server name in the TLS handshake.
    pub sni: Option<String>,
}

impl Request {
    pub(super) async fn read(wire: &mut Wire) -> io::Result<Option<Self>> {
        let Some((line, headers)) = wire.head().await? else {
            return Ok(None);
        };
        let received = Instant::now();
        let mut words = line.splitn(3, ' ').map(str::to_owned);
        let mut word = || words.next().unwrap_or_default();
        let (method, target, version) = (word(), word(), word());
        if headers.lists("Expect", "100-continue") {
            wire.send(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        let mut body = Vec::new();
        let end = if headers.lists("Transfer-Encoding", "chunked") {
            wire.chunked(&mut body).await
        } else if let Some(length) = headers.field("Content-Length") {
            let length = length.parse().map_err(io::Error::other)?;
            wire.counted(length, &mut body).await
        } else {
            End::Nothing
        };
        Ok(Some(Self {
            method,
            target,
            version,
            headers,
            body,
            end,
            connection: 0,
            received,
            sni: None,
        }))
    }

    /// Returns the target without scheme, host and query.
    pub fn path(&self) -> &str {
        let target = match self.target.split_once("://") {
            Some((_, rest)) if !self.target.starts_with('/') => rest.find('/').map_or("/", |slash| &rest[slash..]),
            _ => &self.target,
        };
        target.split('?').next().unwrap_or_default()
    }

    /// Returns the first value of the header field `name`.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.headers.field(name)
    }
}
