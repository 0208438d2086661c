//! Reads, adds and removes the header fields that concern a proxy (RFC 9110 §7.6), and writes strings of structured
//! fields (RFC 9651). Pure functions without I/O.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Version, header};
use pingora_http::RequestHeader;
use sfv::FieldType as _;

/// Over HTTP/1, pingora sends the name with these capital letters.
pub(super) const ROBOTS_DECISION: &str = "Robots-Decision";
pub(super) const PROXY_STATUS: &str = "Proxy-Status";
pub(super) const VIA: &str = "Via";

/// Returns whether a request has already come through a proxy of this name (RFC 9110 §7.6.3).
pub(super) fn has_passed(headers: &HeaderMap, name: &str) -> bool {
    headers
        .get_all(header::VIA)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .filter_map(received_by)
        .any(|passed| passed.eq_ignore_ascii_case(name.as_bytes()))
}

/// Returns the `received-by` part of one Via entry, for example `proxy` in `1.1 proxy (comment)`.
fn received_by(entry: &[u8]) -> Option<&[u8]> {
    entry
        .split(|byte| byte.is_ascii_whitespace())
        .filter(|word| !word.is_empty())
        .nth(1)
}

/// Returns whether a request is a GET or HEAD without a field such as `X-Original-URL`, by which some servers choose
/// another resource. Fields in `stripped` are ignored, because robotgate removes them.
pub(super) fn ask_for_the_target_alone(request: &RequestHeader, stripped: &[HeaderName]) -> bool {
    let names_another = |name: &HeaderName| NAME_ANOTHER_RESOURCE.iter().any(|other| is_same_variable(name, other));
    matches!(request.method, Method::GET | Method::HEAD)
        && !request
            .headers
            .keys()
            .any(|name| names_another(name) && !is_stripped(name, stripped))
}

pub(super) fn strip(request: &mut RequestHeader, stripped: &[HeaderName]) {
    if stripped.is_empty() {
        return;
    }
    let names = request.headers.keys().filter(|name| is_stripped(name, stripped));
    for name in names.cloned().collect::<Vec<_>>() {
        request.remove_header(&name);
    }
}

fn is_stripped(name: &HeaderName, stripped: &[HeaderName]) -> bool {
    stripped.iter().any(|other| is_same_variable(name, other))
}

/// Returns whether some servers treat both field names as the same, because they convert fields to variables (RFC 3875
/// §4.1.18) and do not distinguish `_` from `-`.
pub(super) fn is_same_variable(name: impl AsRef<str>, other: impl AsRef<str>) -> bool {
    let letters = |name: u8| if name == b'_' { b'-' } else { name.to_ascii_lowercase() };
    let (name, other) = (name.as_ref(), other.as_ref());
    name.len() == other.len() && name.bytes().map(letters).eq(other.bytes().map(letters))
}

/// Returns the message's Via entries with a new one for the proxy `name`. `version` is the version of HTTP by which the
/// message came.
pub(super) fn with_via(headers: &HeaderMap, version: Version, name: &str) -> Option<HeaderValue> {
    let version = match version {
        Version::HTTP_10 => "1.0 ",
        Version::HTTP_2 => "2 ",
        _ => "1.1 ",
    };
    let mut value = Vec::with_capacity(version.len() + name.len());
    for there in headers.get_all(header::VIA) {
        value.extend_from_slice(there.as_bytes());
        value.extend_from_slice(b", ");
    }
    value.extend_from_slice(version.as_bytes());
    value.extend_from_slice(name.as_bytes());
    HeaderValue::from_maybe_shared(Bytes::from(value)).ok()
}

/// Joins several Cookie fields into one, because HTTP/2 allows several and HTTP/1.1 does not (RFC 9113 §8.2.3).
pub(super) fn joined_cookie(headers: &HeaderMap) -> Option<HeaderValue> {
    let fields = headers.get_all(header::COOKIE);
    let crumbs: Vec<&[u8]> = fields.iter().map(HeaderValue::as_bytes).collect();
    if crumbs.len() < 2 {
        return None;
    }
    HeaderValue::from_bytes(&crumbs.join(&b"; "[..])).ok()
}

/// Returns one Content-Length for a message that repeats it, or `None` if the message needs no change. The HTTP library
/// (pingora or h2) has checked that all values are equal.
pub(super) fn only_length(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut lengths = headers.get_all(header::CONTENT_LENGTH).iter();
    let first = lengths.next()?;
    let list = first.as_bytes();
    match memchr::memchr(b',', list) {
        Some(comma) => HeaderValue::from_bytes(list[..comma].trim_ascii()).ok(),
        None => lengths.next().map(|_| first.clone()),
    }
}

/// Returns whether the response has no transfer coding, or only `chunked` and a version after HTTP/1.0 (RFC 9112 §6.1).
/// Otherwise, it is unclear where the response ends.
pub(super) fn is_framed_plainly(headers: &HeaderMap, version: Version) -> bool {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => true,
        (Some(coding), None) => version != Version::HTTP_10 && coding.as_bytes().eq_ignore_ascii_case(b"chunked"),
        _ => false,
    }
}

/// Returns the fields of the message that are for one connection only (RFC 9110 §7.6.1), and those in `also`.
/// `Connection` and `Transfer-Encoding` are returned only if they are in `also`.
pub(super) fn hop_by_hop(headers: &HeaderMap, also: &[HeaderName]) -> Vec<HeaderName> {
    let is_fixed = |name: &&HeaderName| HOP_BY_HOP.contains(name) || also.contains(name);
    let fixed = headers.keys().filter(is_fixed).cloned();
    let nominated = headers
        .get_all(header::CONNECTION)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        .filter(|name| !has_own_rules(name) && headers.contains_key(name));
    fixed.chain(nominated).collect()
}

/// Returns whether other code handles the field, so that it does not matter whether `Connection` names the field.
fn has_own_rules(name: &HeaderName) -> bool {
    [
        header::CONNECTION,
        header::TRANSFER_ENCODING,
        header::CONTENT_LENGTH,
        header::UPGRADE,
        header::HOST,
    ]
    .contains(name)
}

/// Returns the list in `field` (RFC 9651 §3.1) without the members that name the proxy `name`, and without those that
/// name no proxy. Returns `None` if no members remain or if the field is not a valid list.
pub(super) fn without_member(headers: &HeaderMap, field: &str, name: &str) -> Option<HeaderValue> {
    let lines: Vec<&[u8]> = headers.get_all(field).iter().map(HeaderValue::as_bytes).collect();
    let mut list = sfv::Parser::new(&lines.join(&b", "[..])).parse::<sfv::List>().ok()?;
    list.retain(|member| match member {
        sfv::ListEntry::Item(item) => match &item.bare_item {
            sfv::BareItem::Token(token) => !token.as_str().eq_ignore_ascii_case(name),
            sfv::BareItem::String(string) => !string.as_str().eq_ignore_ascii_case(name),
            _ => false,
        },
        sfv::ListEntry::InnerList(_) => false,
    });
    list.serialize().and_then(|list| HeaderValue::try_from(list).ok())
}

/// Appends `text` as a quoted string of a structured field (RFC 9651 §3.3.3), cut after `max` bytes of `text`. Escapes
/// or percent-encodes bytes, so that no value from outside can end the string or the header line.
pub(super) fn push_string(out: &mut String, text: &str, max: usize) {
    out.push('"');
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    if text.len() <= max && text.bytes().fold(true, |all, byte| all & is_plain(byte)) {
        out.push_str(text);
        out.push('"');
        return;
    }
    let mut left = max;
    for byte in text.bytes() {
        if left == 0 {
            out.push_str("...");
            break;
        }
        left -= 1;
        match byte {
            b'"' | b'\\' => {
                out.push('\\');
                out.push(char::from(byte));
            }
            b' '..=b'~' => out.push(char::from(byte)),
            _ => {
                use std::fmt::Write as _;
                // Writing to a string cannot fail.
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out.push('"');
}

const NAME_ANOTHER_RESOURCE: [HeaderName; 6] = [
    HeaderName::from_static("x-original-url"),
    HeaderName::from_static("x-rewrite-url"),
    HeaderName::from_static("x-http-method-override"),
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("destination"),
    header::FORWARDED,
];

static HOP_BY_HOP: [HeaderName; 8] = [
    header::UPGRADE,
    HeaderName::from_static("proxy-authentication-info"),
    HeaderName::from_static("http2-settings"),
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn the_name_of_the_proxy_is_found_in_any_entry_of_any_via_field() {
        for (value, passed) in [
            ("1.1 robotgate", true),
            ("1.0 other, 1.1 RobotGate", true),
            ("HTTP/1.1 robotgate (comment)", true),
            ("1.1 robotgate2", false),
            ("1.1 other (robotgate)", false),
            ("robotgate", false),
            ("", false),
        ] {
            assert_eq!(has_passed(&headers(&[("via", value)]), "robotgate"), passed, "{value}");
        }
        let two = headers(&[("via", "1.1 a"), ("via", "2 robotgate")]);
        assert!(has_passed(&two, "robotgate"));
    }

    #[test]
    fn hop_by_hop_fields_include_those_that_connection_names() {
        let headers = headers(&[
            ("connection", "close, X-Private"),
            ("x-private", "1"),
            ("x-public", "1"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("upgrade", "h2c"),
            ("trailer", "x-public"),
        ]);
        let found = hop_by_hop(&headers, &[header::TRAILER, header::TRANSFER_ENCODING]);
        let names: Vec<&str> = found.iter().map(HeaderName::as_str).collect();
        assert_eq!(names, ["keep-alive", "te", "upgrade", "trailer", "x-private"]);
    }

    #[test]
    fn repeated_equal_lengths_become_one() {
        let length = |fields: &[(&'static str, &'static str)]| {
            only_length(&headers(fields)).map(|value| value.to_str().expect("digits").to_owned())
        };
        assert_eq!(length(&[]), None);
        assert_eq!(length(&[("content-length", "4")]), None, "it can stay");
        assert_eq!(
            length(&[("content-length", "4"), ("content-length", "4")]).as_deref(),
            Some("4")
        );
        assert_eq!(length(&[("content-length", "4 , 4")]).as_deref(), Some("4"));
    }

    #[test]
    fn only_chunked_over_http_1_1_is_plain_framing() {
        for (coding, version, plain) in [
            ("chunked", Version::HTTP_11, true),
            ("Chunked", Version::HTTP_11, true),
            ("chunked", Version::HTTP_10, false),
            ("gzip, chunked", Version::HTTP_11, false),
            ("identity", Version::HTTP_11, false),
            ("", Version::HTTP_11, false),
        ] {
            let found = is_framed_plainly(&headers(&[("transfer-encoding", coding)]), version);
            assert_eq!(found, plain, "{coding} {version:?}");
        }
        let twice = headers(&[("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")]);
        assert!(!is_framed_plainly(&twice, Version::HTTP_11));
        assert!(is_framed_plainly(&HeaderMap::new(), Version::HTTP_10));
    }

    #[test]
    fn members_that_name_this_proxy_or_no_proxy_are_removed() {
        for (value, kept) in [
            ("robotgate; error=dns_error", None),
            ("cdn; error=dns_error", Some("cdn;error=dns_error")),
            (
                "a; details=\"x, robotgate; y\", \"RobotGate\";error=e, b",
                Some("a;details=\"x, robotgate; y\", b"),
            ),
            (
                "a; details=\"\\\", robotgate\", c",
                Some("a;details=\"\\\", robotgate\", c"),
            ),
            ("robotgate-2, robotgate", Some("robotgate-2")),
            ("cdn,\tROBOTGATE; error=e", Some("cdn")),
            ("(robotgate); error=e, cdn", Some("cdn")),
            ("\"robot\\gate\"; error=e", None),
            ("cdn; details=\"x, robotgate; error=e", None),
            ("cdn robotgate", None),
            ("cdn,", None),
            ("3, cdn", Some("cdn")),
        ] {
            let found = without_member(&headers(&[("proxy-status", value)]), PROXY_STATUS, "robotgate");
            assert_eq!(found.as_ref().and_then(|value| value.to_str().ok()), kept, "{value}");
        }
    }

    #[test]
    fn a_string_cannot_break_out_of_its_quotes() {
        let mut out = String::new();
        push_string(&mut out, "a\"b\\c\r\nd\u{e9}", 100);
        assert_eq!(out, r#""a\"b\\c%0D%0Ad%C3%A9""#);
        out.clear();
        push_string(&mut out, "abcdef", 3);
        assert_eq!(out, r#""abc...""#);
    }
}
