//! Sends and reads HTTP/2 as single frames (RFC 9113, RFC 7541). A test can send frames that a well-behaved library
//! refuses to send. Header fields are not compressed, and can contain any bytes.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{
    io::{BoxIo, Io},
    wait::within,
};

/// An HTTP/2 connection that does not check or correct what a test sends.
pub struct Frames {
    io: BoxIo,
    next_stream: u32,
}

/// The first sign of how the peer handles a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A response with this status began. The status is 0 if the function `status` cannot decode it.
    Status(u16),
    /// The peer reset the stream, with this error code.
    Reset(u32),
    /// The peer closed the connection, or sent a GOAWAY frame that ends this stream.
    Closed,
}

impl Frames {
    /// Begins as a client: sends the preface and empty settings.
    pub async fn over(io: impl Io + 'static) -> Self {
        let mut frames = Self {
            io: Box::new(io),
            next_stream: 1,
        };
        frames
            .io
            .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            .await
            .expect("an open connection");
        frames.frame(SETTINGS, 0, 0, &[]).await;
        frames
    }

    /// Begins as a server: reads the preface and sends empty settings.
    ///
    /// # Errors
    /// Fails if the peer closes the connection.
    pub async fn answering(io: impl Io + 'static) -> std::io::Result<Self> {
        let mut frames = Self {
            io: Box::new(io),
            next_stream: 2,
        };
        frames.io.read_exact(&mut [0; 24]).await?;
        frames.frame(SETTINGS, 0, 0, &[]).await;
        Ok(frames)
    }

    /// Waits for the next request head and returns its stream number. Returns `None` at the end of the connection.
    pub async fn request(&mut self) -> Option<u32> {
        loop {
            match self.read().await? {
                (SETTINGS, flags, ..) if flags & ACK == 0 => self.frame(SETTINGS, ACK, 0, &[]).await,
                (HEADERS, _, stream, _) => return Some(stream),
                _ => {}
            }
        }
    }

    /// Reads until the peer closes.
    pub async fn drain(&mut self) {
        while self.read().await.is_some() {}
    }

    /// Sends a complete field block on a stream.
    pub async fn fields(&mut self, stream: u32, fields: &[(&[u8], &[u8])], last: bool) {
        let ends = if last { END_STREAM } else { 0 };
        self.frame(HEADERS, END_HEADERS | ends, stream, &block(fields)).await;
    }

    /// Sends one frame. Does not fail if the peer has closed the connection.
    pub async fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        bytes.extend([kind, flags]);
        bytes.extend(stream.to_be_bytes());
        bytes.extend(payload);
        drop(self.io.write_all(&bytes).await);
        drop(self.io.flush().await);
    }

    /// Starts a stream with these header fields, which must include the pseudo-header fields, and these data frames.
    /// Sends all of it, even if the peer responds earlier.
    pub async fn send(&mut self, fields: &[(&[u8], &[u8])], data: &[&[u8]]) -> u32 {
        let stream = self.next_stream;
        self.next_stream += 2;
        let ends = |last: bool| if last { END_STREAM } else { 0 };
        self.frame(HEADERS, END_HEADERS | ends(data.is_empty()), stream, &block(fields))
            .await;
        for (at, piece) in data.iter().enumerate() {
            self.frame(DATA, ends(at + 1 == data.len()), stream, piece).await;
        }
        stream
    }

    /// Reads until the response on `stream` begins, or until it is clear that there will be no response.
    pub async fn outcome(&mut self, stream: u32) -> Outcome {
        within("the outcome of a stream", async {
            loop {
                let Some((kind, flags, of, payload)) = self.read().await else {
                    return Outcome::Closed;
                };
                match kind {
                    SETTINGS if flags & ACK == 0 => self.frame(SETTINGS, ACK, 0, &[]).await,
                    HEADERS if of == stream => return Outcome::Status(status(&payload)),
                    RST_STREAM if of == stream => return Outcome::Reset(number(&payload)),
                    // A GOAWAY frame without an error does not end the streams that the peer has accepted.
                    GO_AWAY if number(&payload) < stream || number(&payload[4..]) != 0 => return Outcome::Closed,
                    _ => {}
                }
            }
        })
        .await
    }

    /// Enlarges the flow-control windows of the connection and its streams, so that the peer can send `bytes` of
    /// content without waiting.
    pub async fn open_window(&mut self, bytes: u32) {
        let initial_window = [&[0, 4][..], &bytes.to_be_bytes()].concat();
        self.frame(SETTINGS, 0, 0, &initial_window).await;
        self.frame(WINDOW_UPDATE, 0, 0, &bytes.to_be_bytes()).await;
    }

    /// Reads the content of `stream`. Returns its number of bytes, and whether the peer ended the stream (and did not only
    /// close the connection). Sends a PING for each data frame, even if the peer has stopped reading.
    pub async fn content_with_pings(&mut self, stream: u32) -> (usize, bool) {
        within("the end of a stream", async {
            let mut bytes = 0;
            loop {
                let Some((kind, flags, of, payload)) = self.read().await else {
                    return (bytes, false);
                };
                match kind {
                    SETTINGS | PING if flags & ACK == 0 => {
                        let payload = if kind == PING { &payload[..] } else { &[] };
                        self.frame(kind, ACK, 0, payload).await;
                    }
                    DATA if of == stream => {
                        bytes += payload.len();
                        self.frame(PING, 0, 0, &[0; 8]).await;
                    }
                    _ => {}
                }
                if matches!(kind, DATA | HEADERS) && of == stream && flags & END_STREAM != 0 {
                    return (bytes, true);
                }
            }
        })
        .await
    }

    async fn read(&mut self) -> Option<(u8, u8, u32, Vec<u8>)> {
        let mut head = [0; 9];
        self.io.read_exact(&mut head).await.ok()?;
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        self.io.read_exact(&mut payload).await.ok()?;
        Some((head[3], head[4], number(&head[5..]) & 0x7fff_ffff, payload))
    }
}

/// Encodes header fields without compression and without adding them to the peer's table (RFC 7541 §6.2.3).
fn block(fields: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0x10);
        for text in [name, value] {
            length(&mut block, text.len());
            block.extend(*text);
        }
    }
    block
}

/// Encodes an integer with a prefix of seven bits (RFC 7541 §5.1).
fn length(block: &mut Vec<u8>, length: usize) {
    if length < 127 {
        return block.push(length as u8);
    }
    block.push(127);
    let mut rest = length - 127;
    while rest >= 128 {
        block.push((rest % 128) as u8 | 128);
        rest /= 128;
    }
    block.push(rest as u8);
}

/// Decodes the status, which is the first field, from its index in the static table (RFC 7541, appendix A). Returns 0
/// for any other encoding.
fn status(block: &[u8]) -> u16 {
    // The block can begin with updates of the table size, which are skipped.
    let first = block.iter().find(|byte| **byte & 0xe0 != 0x20);
    match first {
        Some(0x88) => 200,
        Some(0x89) => 204,
        Some(0x8b) => 304,
        Some(0x8c) => 400,
        Some(0x8d) => 404,
        Some(0x8e) => 500,
        _ => 0,
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes
        .get(..4)
        .map_or(0, |bytes| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GO_AWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;
const ACK: u8 = 1;
pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;
