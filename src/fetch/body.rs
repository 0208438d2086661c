//! Reads the body of a response up to a limit, and decodes it. Whatever the server sends, memory is limited. The caller
//! limits the time.

use std::io::Write as _;

use flate2::write::MultiGzDecoder;
use pingora_http::ResponseHeader;

use super::session::Session;
use crate::{
    copy::{Failure, FetchError},
    robots,
    text::plain,
};

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Body {
    /// The part within the limit. If the body is longer, the part ends with a whole line.
    pub(super) counts: Vec<u8>,
    /// What was read after `counts`: the line that the limit cuts, and up to [`robots::BEYOND`] bytes after the limit.
    pub(super) cut_off: Vec<u8>,
}

/// Reads the part of the body that robotgate uses: the first `max_bytes` of a successful response, and the first 32 KiB
/// of a server error, which may say "page not found".
pub(super) async fn read(session: &mut Session, head: &ResponseHeader, max_bytes: usize) -> Result<Body, Failure> {
    let limit = match head.status.as_u16() {
        206 => return Ok(Body::default()),
        200..=299 => max_bytes,
        500.. => MAX_ERROR_PAGE,
        _ => return Ok(Body::default()),
    };
    let mut body = Decoder::new(head, limit)?;
    let mut empty = true;
    while let Some(chunk) = session.content().await? {
        empty &= chunk.is_empty();
        if body.push(&chunk)? == Room::Full {
            return Ok(body.into_body());
        }
    }
    if empty {
        // An empty body is valid in every coding.
        return Ok(Body::default());
    }
    body.finish()
}

enum Decoder {
    Identity(Bounded),
    Gzip(Box<MultiGzDecoder<Bounded>>),
}

#[derive(Debug, PartialEq, Eq)]
enum Room {
    Left,
    Full,
}

/// Keeps the first `limit` bytes, and [`robots::BEYOND`] more, which show whether a line ends at the limit. When it is
/// full, writing fails, which stops the decoder.
#[derive(Debug)]
struct Bounded {
    bytes: Vec<u8>,
    limit: usize,
}

// === impl Body ===

impl Body {
    /// A line that the limit cuts does not count, because its beginning can mean something else than the whole line.
    fn new(mut read: Vec<u8>, limit: usize) -> Self {
        let cut_off = read.split_off(robots::counted(&read, limit).len());
        Self { counts: read, cut_off }
    }
}

// === impl Decoder ===

impl Decoder {
    fn new(head: &ResponseHeader, limit: usize) -> Result<Self, FetchError> {
        let bounded = Bounded {
            bytes: Vec::new(),
            limit,
        };
        let codings: Vec<&[u8]> = head
            .headers
            .get_all(http::header::CONTENT_ENCODING)
            .iter()
            .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
            .map(<[u8]>::trim_ascii)
            .filter(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity"))
            .collect();
        match codings[..] {
            [] => Ok(Self::Identity(bounded)),
            [coding] if coding.eq_ignore_ascii_case(b"gzip") || coding.eq_ignore_ascii_case(b"x-gzip") => {
                Ok(Self::Gzip(Box::new(MultiGzDecoder::new(bounded))))
            }
            _ => Err(FetchError::Coding(format!(
                "the site encoded it with \"{}\", although robotgate accepts only gzip",
                plain(&codings.join(&b", "[..]).escape_ascii().to_string(), MAX_CODING)
            ))),
        }
    }

    fn push(&mut self, chunk: &[u8]) -> Result<Room, FetchError> {
        let written = match self {
            Self::Identity(bounded) => bounded.write_all(chunk),
            // Flush, so that the limit is checked after each chunk.
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

    fn into_body(mut self) -> Body {
        let bounded = match &mut self {
            Self::Identity(bounded) => bounded,
            Self::Gzip(decoder) => decoder.get_mut(),
        };
        Body::new(std::mem::take(&mut bounded.bytes), bounded.limit)
    }

    /// Fails if the compressed data is incomplete or damaged.
    fn finish(mut self) -> Result<Body, Failure> {
        if let Self::Gzip(decoder) = &mut self
            && let Err(error) = decoder.try_finish()
            && !decoder.get_ref().is_full()
        {
            return Err(FetchError::Coding(error.to_string()).into());
        }
        Ok(self.into_body())
    }
}

// === impl Bounded ===

impl Bounded {
    fn is_full(&self) -> bool {
        self.bytes.len() == self.limit + robots::BEYOND
    }
}

impl std::io::Write for Bounded {
    fn write(&mut self, chunk: &[u8]) -> std::io::Result<usize> {
        if self.is_full() {
            return Err(std::io::Error::other("longer than the limit"));
        }
        let room = self.limit + robots::BEYOND - self.bytes.len();
        let taken = &chunk[..chunk.len().min(room)];
        self.bytes.extend_from_slice(taken);
        Ok(taken.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Cuts a robots.txt that robotgate did not fetch, such as a local file, as a fetch would cut it.
pub fn within_limit(body: Vec<u8>) -> Vec<u8> {
    Body::new(body, robots::LIMIT).counts
}

const MAX_ERROR_PAGE: usize = 32 * 1024;
/// Maximum length of a coding's name in an error, in bytes. The cache keeps such errors.
const MAX_CODING: usize = 64;

#[cfg(test)]
mod tests;
