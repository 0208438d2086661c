//! The body of an answer, content coding undone, read only as far as it counts: memory and time
//! are bounded whatever the server sends.

use std::io::Write as _;

use flate2::write::MultiGzDecoder;
use pingora::protocols::http::v1::client::HttpSession;
use pingora_http::ResponseHeader;

use crate::{
    cache::{Failure, FetchError},
    upstream::Fault,
};

/// Reads what counts of the body: of a success the first 500 KiB (RFC 9309 §2.5, Google's limit),
/// without a last line that the limit cut; of a server error enough to see what its page says.
pub(super) async fn read(session: &mut HttpSession, head: &ResponseHeader) -> Result<Vec<u8>, Failure> {
    let limit = match head.status.as_u16() {
        206 => return Ok(Vec::new()),
        200..=299 => MAX_ROBOTS,
        500.. => MAX_ERROR_PAGE,
        _ => return Ok(Vec::new()),
    };
    let mut body = Decoder::new(head, limit)?;
    while let Some(chunk) = session.read_body_bytes().await.map_err(Fault::of_body)? {
        if body.push(&chunk)? == Room::Full {
            return Ok(without_cut_line(body.into_bytes()));
        }
    }
    body.finish()
}

/// Undoes the content coding into a buffer that never grows past a limit.
enum Decoder {
    Identity(Bounded),
    Gzip(Box<MultiGzDecoder<Bounded>>),
}

#[derive(Debug, PartialEq, Eq)]
enum Room {
    Left,
    Full,
}

/// A writer that takes one byte more than `limit`, to know that there was more, and then errs,
/// which stops the decoder in front of it.
#[derive(Debug)]
struct Bounded {
    bytes: Vec<u8>,
    limit: usize,
}

// === impl Decoder ===

impl Decoder {
    fn new(head: &ResponseHeader, limit: usize) -> Result<Self, FetchError> {
        let bounded = Bounded {
            bytes: Vec::new(),
            limit,
        };
        let mut codings = head
            .headers
            .get_all(http::header::CONTENT_ENCODING)
            .iter()
            .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
            .map(<[u8]>::trim_ascii)
            .filter(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity"));
        match (codings.next(), codings.next()) {
            (None, _) => Ok(Self::Identity(bounded)),
            (Some(coding), None) if coding.eq_ignore_ascii_case(b"gzip") || coding.eq_ignore_ascii_case(b"x-gzip") => {
                Ok(Self::Gzip(Box::new(MultiGzDecoder::new(bounded))))
            }
            (Some(coding), _) => Err(FetchError::Coding(format!(
                "\"{}\" was not asked for",
                coding.escape_ascii()
            ))),
        }
    }

    fn push(&mut self, chunk: &[u8]) -> Result<Room, FetchError> {
        let written = match self {
            Self::Identity(bounded) => bounded.write_all(chunk),
            // Flushing brings out all that the chunk holds, so the bound sees it.
            Self::Gzip(decoder) => decoder.write_all(chunk).and_then(|()| decoder.flush()),
        };
        match written {
            _ if self.bounded().is_full() => Ok(Room::Full),
            Ok(()) => Ok(Room::Left),
            Err(error) => Err(FetchError::Coding(error.to_string())),
        }
    }

    fn bounded(&self) -> &Bounded {
        match self {
            Self::Identity(bounded) => bounded,
            Self::Gzip(decoder) => decoder.get_ref(),
        }
    }

    fn into_bytes(mut self) -> Vec<u8> {
        let bounded = match &mut self {
            Self::Identity(bounded) => bounded,
            Self::Gzip(decoder) => decoder.get_mut(),
        };
        bounded.bytes.truncate(bounded.limit);
        std::mem::take(&mut bounded.bytes)
    }

    /// The whole body, which came to its end below the limit.
    fn finish(mut self) -> Result<Vec<u8>, Failure> {
        if let Self::Gzip(decoder) = &mut self
            && let Err(error) = decoder.try_finish()
            && !decoder.get_ref().is_full()
        {
            return Err(FetchError::Coding(error.to_string()).into());
        }
        let full = self.bounded().is_full();
        let bytes = self.into_bytes();
        Ok(if full { without_cut_line(bytes) } else { bytes })
    }
}

// === impl Bounded ===

impl Bounded {
    fn is_full(&self) -> bool {
        self.bytes.len() > self.limit
    }
}

impl std::io::Write for Bounded {
    fn write(&mut self, chunk: &[u8]) -> std::io::Result<usize> {
        if self.is_full() {
            return Err(std::io::Error::other("longer than what counts"));
        }
        let room = self.limit + 1 - self.bytes.len();
        let taken = &chunk[..chunk.len().min(room)];
        self.bytes.extend_from_slice(taken);
        Ok(taken.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A line that the limit cut could say something else than its author meant: it is dropped.
fn without_cut_line(mut body: Vec<u8>) -> Vec<u8> {
    let end = body
        .iter()
        .rposition(|byte| matches!(byte, b'\n' | b'\r'))
        .map_or(0, |last| last + 1);
    body.truncate(end);
    body
}

/// Decoded bytes of a robots.txt that count.
const MAX_ROBOTS: usize = 500 * 1024;
const MAX_ERROR_PAGE: usize = 32 * 1024;
