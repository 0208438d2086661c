//! The load generator's HTTP/1.1.

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::super::Outcome;

pub struct Http1<S> {
    stream: S,
    buffer: BytesMut,
    /// Maximum number of bytes in one read.
    size: usize,
}

pub enum Response {
    /// The response's status, and whether the connection is kept.
    Complete { status: u16, kept: bool },
    /// The connection was closed before a byte of a response arrived, which can happen to a kept connection at any
    /// time.
    Closed,
}

struct Head {
    status: u16,
    bytes: usize,
    content: Option<usize>,
    kept: bool,
}

// === impl Http1 ===

impl<S: AsyncRead + AsyncWrite + Unpin> Http1<S> {
    pub fn over(stream: S, size: usize) -> Self {
        Self {
            stream,
            buffer: BytesMut::with_capacity(size),
            size,
        }
    }

    /// Returns the underlying connection, after a response has been read.
    pub fn into_inner(self) -> S {
        self.stream
    }

    /// Sends a request and reads the whole response.
    pub async fn exchange(&mut self, request: &[u8]) -> Outcome<Response> {
        if self.send(request).await.is_err() {
            return Ok(Response::Closed);
        }
        let Some(head) = self.head().await? else {
            return Ok(Response::Closed);
        };
        let mut left = head.content.ok_or("an answer without Content-Length")?;
        loop {
            let come = left.min(self.buffer.len());
            self.buffer.advance(come);
            left -= come;
            if left == 0 {
                break;
            }
            self.fill().await?;
        }
        Ok(Response::Complete {
            status: head.status,
            kept: head.kept,
        })
    }

    /// Sends a CONNECT, reads the head of the response and returns its status.
    pub async fn connect(&mut self, request: &[u8]) -> Outcome<u16> {
        self.send(request).await?;
        let head = self.head().await?.ok_or("the CONNECT was not answered")?;
        Ok(head.status)
    }

    /// Sends a request, reads only the head of the response and returns its status.
    pub async fn begin(&mut self, request: &[u8]) -> Outcome<u16> {
        self.connect(request).await
    }

    async fn send(&mut self, request: &[u8]) -> Outcome<()> {
        self.stream.write_all(request).await?;
        self.stream.flush().await?;
        Ok(())
    }

    /// Reads a head. Returns `None` if the connection ends before the first byte of it.
    async fn head(&mut self) -> Outcome<Option<Head>> {
        loop {
            if let Some(head) = parse(&self.buffer)? {
                self.buffer.advance(head.bytes);
                return Ok(Some(head));
            }
            let began = !self.buffer.is_empty();
            match self.fill().await {
                Ok(()) => {}
                Err(error) if began => return Err(error),
                Err(_) => return Ok(None),
            }
        }
    }

    async fn fill(&mut self) -> Outcome<()> {
        self.buffer.reserve(self.size);
        if self.stream.read_buf(&mut self.buffer).await? == 0 {
            return Err("an answer was cut off".into());
        }
        Ok(())
    }
}

fn parse(bytes: &[u8]) -> Outcome<Option<Head>> {
    let mut fields = [httparse::EMPTY_HEADER; 48];
    let mut response = httparse::Response::new(&mut fields);
    let httparse::Status::Complete(length) = response.parse(bytes)? else {
        return Ok(None);
    };
    let mut head = Head {
        status: response.code.unwrap_or_default(),
        bytes: length,
        content: None,
        kept: true,
    };
    for field in response.headers {
        if field.name.eq_ignore_ascii_case("content-length") {
            head.content = Some(std::str::from_utf8(field.value)?.parse()?);
        } else if field.name.eq_ignore_ascii_case("connection") {
            head.kept = !field.value.eq_ignore_ascii_case(b"close");
        }
    }
    Ok(Some(head))
}
