//! Checks how a request says where its content ends. It must say so in at most one way and in the plainest spelling,
//! because parsers interpret other spellings differently (RFC 9112 §6). Pure functions, without I/O.

use http::{HeaderMap, HeaderValue, header};

use super::{HeadError, checks::values_of};
use crate::proxy::fields::is_same_variable;

pub(super) fn check_framing(request: &httparse::Request<'_, '_>, head: &[u8]) -> Result<(), HeadError> {
    let wrong = |what| Err(HeadError::Syntax(what));
    if request.headers.iter().any(|field| is_disguised(field.name)) {
        return wrong(DISGUISED);
    }
    let mut lengths = values_of(request, CONTENT_LENGTH);
    let mut codings = values_of(request, TRANSFER_ENCODING);
    let (length, coding) = (lengths.next(), codings.next());
    if length.is_none() && coding.is_none() {
        return Ok(());
    }
    if lengths.next().is_some() {
        return wrong("it has several Content-Length fields");
    }
    if length.is_some_and(|value| value.is_empty() || !value.iter().all(u8::is_ascii_digit)) {
        return wrong("its Content-Length is not a number");
    }
    if length.is_some_and(|value| !is_plain_length(value)) {
        return wrong(NO_PLAIN_LENGTH);
    }
    if let Some(coding) = coding {
        if length.is_some() {
            return wrong("it has both a Content-Length and a Transfer-Encoding");
        }
        if codings.next().is_some() || !coding.eq_ignore_ascii_case(b"chunked") {
            return wrong("its Transfer-Encoding is not \"chunked\"");
        }
        if request.version == Some(0) {
            return wrong("an HTTP/1.0 request must not have a Transfer-Encoding");
        }
    }
    if !is_written_plainly(head) {
        return wrong("its Content-Length or Transfer-Encoding has unusual white space");
    }
    let has_content = coding.is_some() || length.is_some_and(|length| length != b"0");
    match request.method {
        Some("CONNECT") if has_content => wrong("a CONNECT request must not have content"),
        Some("TRACE") if has_content => wrong("a TRACE request must not have content"),
        _ => Ok(()),
    }
}

/// Checks the framing fields of a request that came over HTTP/2, because it may be forwarded over HTTP/1.
pub(super) fn check_framing_fields(headers: &HeaderMap) -> Result<(), HeadError> {
    if headers.keys().any(|name| is_disguised(name.as_str())) {
        return Err(HeadError::Syntax(DISGUISED));
    }
    let plain = |length: &HeaderValue| is_plain_length(length.as_bytes());
    match headers.get_all(header::CONTENT_LENGTH).iter().all(plain) {
        true => Ok(()),
        false => Err(HeadError::Syntax(NO_PLAIN_LENGTH)),
    }
}

fn is_plain_length(value: &[u8]) -> bool {
    (1..=MAX_DIGITS).contains(&value.len())
        && value.iter().all(u8::is_ascii_digit)
        && (value.len() == 1 || value[0] != b'0')
}

/// Returns whether some servers would mistake the field, such as `Content_Length`, for Content-Length or
/// Transfer-Encoding, because they do not distinguish `_` from `-` (RFC 3875 §4.1.18).
fn is_disguised(name: &str) -> bool {
    let is_one = |other| is_same_variable(name, other);
    name.contains('_') && (is_one(CONTENT_LENGTH) || is_one(TRANSFER_ENCODING))
}

/// Returns whether Content-Length and Transfer-Encoding have at most one space before the value and no other blanks
/// around it. Some parsers have treated further blanks, which RFC 9112 §5 allows, as part of the value.
fn is_written_plainly(head: &[u8]) -> bool {
    head.split_inclusive(|byte| *byte == b'\n').all(|line| {
        let Some(colon) = memchr::memchr(b':', line) else {
            return true;
        };
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        if ![CONTENT_LENGTH, TRANSFER_ENCODING]
            .iter()
            .any(|framing| name.eq_ignore_ascii_case(framing.as_bytes()))
        {
            return true;
        }
        let value = value.strip_suffix(b"\r\n").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        value.iter().all(u8::is_ascii_alphanumeric)
    })
}

const DISGUISED: &str = "a field name is Content-Length or Transfer-Encoding with \"_\" instead of \"-\"";
const NO_PLAIN_LENGTH: &str = "its Content-Length is not a plain decimal number of at most 18 digits";
const CONTENT_LENGTH: &str = "content-length";
const TRANSFER_ENCODING: &str = "transfer-encoding";
/// Maximum number of digits of a length, which then fits into 63 bits.
const MAX_DIGITS: usize = 18;
