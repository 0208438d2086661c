//! The origin's HTTP/1.1: one request after the other, without pipelining.

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::{super::Outcome, Answers};

/// Serves a connection until the peer closes it or asks to close it.
pub async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, answers: &Answers) -> Outcome<()> {
    let mut buffer = BytesMut::with_capacity(BUFFER);
    loop {
        let (answer, content, closes) = loop {
            if let Some(request) = parse(&buffer, answers)? {
                buffer.advance(request.head);
                break (request.answer, request.content, request.closes);
            }
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        };
        let mut left = content;
        loop {
            let come = left.min(buffer.len());
            buffer.advance(come);
            left -= come;
            if left == 0 {
                break;
            }
            buffer.reserve(BUFFER);
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        }
        stream.write_all(&answer.response).await?;
        for _ in 1..answer.times {
            stream.write_all(&answer.content).await?;
        }
        stream.flush().await?;
        if closes {
            stream.shutdown().await?;
            return Ok(());
        }
        buffer.reserve(BUFFER);
    }
}

struct Request<'a> {
    answer: &'a super::answers::Page,
    /// Length of the head in bytes.
    head: usize,
    content: usize,
    closes: bool,
}

fn parse<'a>(bytes: &[u8], answers: &'a Answers) -> Outcome<Option<Request<'a>>> {
    let mut fields = [httparse::EMPTY_HEADER; 32];
    let mut request = httparse::Request::new(&mut fields);
    let httparse::Status::Complete(head) = request.parse(bytes)? else {
        return Ok(None);
    };
    let answer = answers.of(request.path.unwrap_or_default());
    let (mut content, mut closes) = (0, false);
    for field in request.headers {
        if field.name.eq_ignore_ascii_case("content-length") {
            content = std::str::from_utf8(field.value)?.parse()?;
        } else if field.name.eq_ignore_ascii_case("connection") {
            closes = field.value.eq_ignore_ascii_case(b"close");
        } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
            return Err("the load generator sends no chunks, and a proxy should not make any".into());
        }
    }
    Ok(Some(Request {
        answer,
        head,
        content,
        closes,
    }))
}

const BUFFER: usize = 4096;
