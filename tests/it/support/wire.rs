//! Reads and writes HTTP/1.1 on a connection, as bytes. The test sites and the test clients both use it.
//!
//! The parser does not reject invalid heads, so that tests see what was sent.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::io::{BoxIo, Io};

/// Header fields in their original order and spelling, but without the spaces around the values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(pub Vec<(String, String)>);

/// How a body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// There is no body.
    Nothing,
    Length,
    Chunked,
    /// The body ended because the peer closed the connection in an orderly way.
    Close,
    /// The connection ended, or the framing broke, before the body was complete.
    Cut,
}

/// A connection, and the bytes that were read from it but not used yet.
pub struct Wire {
    io: BoxIo,
    buffer: Vec<u8>,
}

// === impl Fields ===

impl Fields {
    /// Returns the first value of the header field `name`.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter(move |(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, v)| v.as_str())
    }

    pub fn has(&self, name: &str) -> bool {
        self.field(name).is_some()
    }

    /// Returns whether a header field that is a list, such as `Connection`, contains `token`.
    pub fn lists(&self, name: &str, token: &str) -> bool {
        self.all(name)
            .flat_map(|v| v.split(','))
            .any(|t| t.trim().eq_ignore_ascii_case(token))
    }

    /// Parses header fields: the lines of a head after its first line.
    pub fn parse(lines: &str) -> Self {
        let pair = |line: &str| {
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            (name.to_owned(), value.trim().to_owned())
        };
        Self(lines.split("\r\n").filter(|line| !line.is_empty()).map(pair).collect())
    }
}

// === impl Wire ===

impl Wire {
    pub fn new(io: impl Io + 'static) -> Self {
        Self {
            io: Box::new(io),
            buffer: Vec::new(),
        }
    }

    /// Returns the connection, and the bytes that have been read but not used.
    pub fn into_parts(self) -> (BoxIo, Vec<u8>) {
        (self.io, self.buffer)
    }

    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.io.write_all(bytes).await?;
        self.io.flush().await
    }

    /// Closes the direction in which this side sends. The peer can still send.
    pub async fn finish(&mut self) -> io::Result<()> {
        self.io.shutdown().await
    }

    pub fn reset_on_close(&self) {
        self.io.reset_on_close();
    }

    /// Reads once and returns the bytes. They are empty at the end of the connection.
    pub async fn some(&mut self) -> io::Result<Vec<u8>> {
        if self.buffer.is_empty() {
            self.fill().await?;
        }
        Ok(std::mem::take(&mut self.buffer))
    }

    /// Puts bytes back, so that they are read next.
    pub fn unread(&mut self, bytes: &[u8]) {
        self.buffer.splice(..0, bytes.iter().copied());
    }

    /// Reads the first line and the fields of a message. Returns `None` if the peer closed the connection before a
    /// message began.
    pub async fn head(&mut self) -> io::Result<Option<(String, Fields)>> {
        let end = loop {
            if let Some(at) = find(&self.buffer, b"\r\n\r\n") {
                break at;
            }
            if self.fill().await? == 0 {
                return if self.buffer.is_empty() { Ok(None) } else { Err(cut()) };
            }
        };
        let head: Vec<u8> = self.buffer.drain(..end + 4).collect();
        let head = String::from_utf8_lossy(&head);
        let (first, rest) = head.split_once("\r\n").expect("a head has a line end");
        Ok(Some((first.to_owned(), Fields::parse(rest))))
    }

    /// Reads exactly `length` bytes and appends them to `body`. If the connection ends before that, returns
    /// [`End::Cut`].
    pub async fn counted(&mut self, length: usize, body: &mut Vec<u8>) -> End {
        while self.buffer.len() < length {
            if !matches!(self.fill().await, Ok(1..)) {
                body.append(&mut self.buffer);
                return End::Cut;
            }
        }
        body.extend(self.buffer.drain(..length));
        End::Length
    }

    pub async fn chunked(&mut self, body: &mut Vec<u8>) -> End {
        loop {
            let Some(line) = self.line().await else { return End::Cut };
            let size = line.split(';').next().unwrap_or_default().trim();
            let Ok(size) = usize::from_str_radix(size, 16) else {
                return End::Cut;
            };
            if size == 0 {
                break;
            }
            if self.counted(size, body).await == End::Cut || self.line().await.as_deref() != Some("") {
                return End::Cut;
            }
        }
        loop {
            match self.line().await.as_deref() {
                None => return End::Cut,
                Some("") => return End::Chunked,
                Some(_trailer) => {}
            }
        }
    }

    /// Reads until the peer closes the connection, and appends the bytes to `body`.
    pub async fn until_closed(&mut self, body: &mut Vec<u8>) -> End {
        loop {
            body.append(&mut self.buffer);
            match self.fill().await {
                Ok(0) => return End::Close,
                Ok(_) => {}
                Err(_) => return End::Cut,
            }
        }
    }

    async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(at) = find(&self.buffer, b"\r\n") {
                let line: Vec<u8> = self.buffer.drain(..at + 2).collect();
                return Some(String::from_utf8_lossy(&line[..at]).into_owned());
            }
            if !matches!(self.fill().await, Ok(1..)) {
                return None;
            }
        }
    }

    async fn fill(&mut self) -> io::Result<usize> {
        let mut chunk = vec![0; 64 * 1024];
        let read = self.io.read(&mut chunk).await?;
        self.buffer.extend_from_slice(&chunk[..read]);
        Ok(read)
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the connection ended inside a head")
}
