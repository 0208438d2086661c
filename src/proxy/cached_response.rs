//! Finds out whether robotgate can answer a bot's own request for a robots.txt with its stored copy
//! (`robots.serve-copies`), by the rules for an HTTP cache (RFC 9111).

use std::time::{Duration, SystemTime};

use http::{HeaderMap, Method, StatusCode, header};
use pingora_http::RequestHeader;

use crate::{
    copy::{Answer, CacheStatus, Lookup, Policy, RobotsCopy},
    decision::Decision,
    fetch::opaque,
};

/// The stored response to the fetch of an origin's robots.txt. It is complete, and was fresh when it was looked up.
#[derive(Debug)]
pub(super) struct CachedResponse<'a> {
    pub(super) status: StatusCode,
    pub(super) copy: Option<&'a RobotsCopy>,
    /// Time since the origin sent or confirmed the response, which is fresh until `age` reaches `life`.
    pub(super) age: Duration,
    pub(super) life: Duration,
    pub(super) found: CacheStatus,
}

/// Returns whether a stored robots.txt may answer `request`: a GET or HEAD without a field, such as `Range`, that only
/// the origin can evaluate (RFC 9111 §3.5, §5.2.1; RFC 9110 §13.1).
pub(super) fn can_answer(request: &RequestHeader) -> bool {
    let is_read = matches!(request.method, Method::GET | Method::HEAD);
    is_read && !ORIGIN_ONLY.iter().any(|name| request.headers.contains_key(name))
}

/// Returns whether the lookup of `decision` found a [`CachedResponse`].
pub(super) fn is_there(decision: &Decision) -> bool {
    let lookup = decision.lookup.as_ref();
    lookup
        .is_some_and(|lookup| CachedResponse::of(lookup, &decision.question.terms.policy, SystemTime::now()).is_some())
}

/// Returns whether the client's `If-None-Match` contains `etag` or `*` (RFC 9110 §13.1.2).
pub(super) fn is_known(request: &HeaderMap, etag: &str) -> bool {
    let fields = request.get_all(header::IF_NONE_MATCH);
    let tags = fields.iter().filter_map(|value| value.to_str().ok());
    // A tag that contains a comma is not recognised, so the client gets the whole response again.
    tags.flat_map(|tags| tags.split(','))
        .map(str::trim)
        .any(|tag| tag == "*" || opaque(tag) == opaque(etag))
}

// === impl CachedResponse ===

impl<'a> CachedResponse<'a> {
    pub(super) fn of(lookup: &'a Lookup, policy: &Policy, now: SystemTime) -> Option<Self> {
        let source_fetch = lookup.source_fetch(policy);
        let (fetched, expires) = (source_fetch.fetched?, source_fetch.expires?);
        let copy = match lookup.answer(policy) {
            Answer::Rules(copy) if copy.complete && copy.status == 200 => Some(&**copy),
            Answer::NoRobots if source_fetch.status.is_some_and(|status| ABSENCES.contains(&status)) => None,
            _ => return None,
        };
        Some(Self {
            status: StatusCode::from_u16(source_fetch.status?).ok()?,
            copy,
            age: now.duration_since(fetched).unwrap_or_default(),
            life: expires.duration_since(fetched).ok()?,
            found: lookup.status,
        })
    }
}

const ORIGIN_ONLY: [header::HeaderName; 10] = [
    header::AUTHORIZATION,
    header::CACHE_CONTROL,
    header::PRAGMA,
    header::IF_MATCH,
    header::IF_UNMODIFIED_SINCE,
    header::RANGE,
    header::UPGRADE,
    header::EXPECT,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
];
/// Statuses that mean "no robots.txt" and need none of the origin's header fields, which are not stored. A 401, for
/// example, needs `WWW-Authenticate`.
const ABSENCES: [u16; 4] = [403, 404, 410, 451];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_get_or_head_without_special_fields_can_use_the_copy() {
        for (method, field, can) in [
            ("GET", None, true),
            ("HEAD", None, true),
            ("GET", Some("if-none-match"), true),
            ("GET", Some("if-modified-since"), true),
            ("GET", Some("cookie"), true),
            ("POST", None, false),
            ("OPTIONS", None, false),
            ("GET", Some("authorization"), false),
            ("GET", Some("cache-control"), false),
            ("GET", Some("pragma"), false),
            ("GET", Some("range"), false),
            ("GET", Some("if-match"), false),
            ("GET", Some("content-length"), false),
            ("GET", Some("upgrade"), false),
        ] {
            let mut request = RequestHeader::build(method, b"/robots.txt", None).expect("a request");
            if let Some(field) = field {
                request.insert_header(field, "x").expect("a field");
            }
            assert_eq!(can_answer(&request), can, "{method} {field:?}");
        }
    }

    #[test]
    fn tags_are_compared_weakly() {
        for (field, etag, known) in [
            ("\"a\"", "\"a\"", true),
            ("W/\"a\"", "\"a\"", true),
            ("\"a\"", "W/\"a\"", true),
            ("\"b\", \"a\"", "\"a\"", true),
            ("*", "\"a\"", true),
            ("\"b\"", "\"a\"", false),
            ("a", "\"a\"", false),
        ] {
            let mut request = HeaderMap::new();
            request.insert(header::IF_NONE_MATCH, field.parse().expect("a value"));
            assert_eq!(is_known(&request, etag), known, "{field} {etag}");
        }
        assert!(!is_known(&HeaderMap::new(), "\"a\""));
    }
}
