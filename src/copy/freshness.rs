//! How long a response stays fresh, according to its headers (RFC 9111 §4.2, RFC 9309 §2.4). Reads no clock.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, header};

/// The freshness lifetime of a response. `None` if its headers specify none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Freshness(pub Option<Duration>);

// === impl Freshness ===

impl Freshness {
    /// Returns `max-age` minus `Age`, or else `Expires` minus `Date` (minus `received` if there is no `Date`). The
    /// lifetime is zero for `no-store`, `no-cache` and an `Expires` that is not a date (RFC 9111 §5.3).
    pub fn from_headers(headers: &HeaderMap, received: SystemTime) -> Self {
        let max_age = headers
            .get_all(header::CACHE_CONTROL)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .filter_map(directive_age)
            .min();
        if let Some(max_age) = max_age {
            return Self(Some(max_age.saturating_sub(age(headers))));
        }
        let Some(expires) = headers.get(header::EXPIRES) else {
            return Self(None);
        };
        let life = match (date(expires), headers.get(header::DATE).and_then(date)) {
            (Some(expires), sent) => expires
                .duration_since(sent.unwrap_or(received))
                .unwrap_or(Duration::ZERO),
            (None, _) => Duration::ZERO,
        };
        Self(Some(life))
    }
}

/// Returns the delay that `Retry-After` asks for (RFC 9110 §10.2.3), counted from `received`. If there are several
/// values, the longest delay counts, because a server in front of the site may have added its own.
pub(crate) fn retry_after(headers: &HeaderMap, received: SystemTime) -> Option<Duration> {
    let delay = |value: &http::HeaderValue| match date(value) {
        Some(date) => Some(date.duration_since(received).unwrap_or(Duration::ZERO)),
        None => value.to_str().ok()?.split(',').filter_map(seconds_rounded_up).max(),
    };
    headers.get_all(header::RETRY_AFTER).iter().filter_map(delay).max()
}

fn directive_age(directive: &str) -> Option<Duration> {
    let (name, value) = match directive.split_once('=') {
        Some((name, value)) => (name.trim(), value.trim().trim_matches('"')),
        None => (directive.trim(), ""),
    };
    if name.eq_ignore_ascii_case("no-store") || name.eq_ignore_ascii_case("no-cache") {
        return Some(Duration::ZERO);
    }
    if name.eq_ignore_ascii_case("max-age") {
        // An invalid value makes the response stale (RFC 9111 §4.2.1).
        return Some(seconds(value).unwrap_or(Duration::ZERO));
    }
    None
}

fn age(headers: &HeaderMap) -> Duration {
    headers
        .get(header::AGE)
        .and_then(|value| value.to_str().ok())
        .and_then(seconds)
        .unwrap_or(Duration::ZERO)
}

/// Parses a number of seconds and rounds it up. Some servers send a fraction, which RFC 9110 does not allow.
fn seconds_rounded_up(text: &str) -> Option<Duration> {
    let (integer, fraction) = text.trim().split_once('.').unwrap_or((text, "0"));
    let has_rest = !seconds(fraction)?.is_zero();
    Some(seconds(integer)? + Duration::from_secs(u64::from(has_rest)))
}

/// Parses `delta-seconds`. A number that is too large becomes the largest 32-bit value (RFC 9111 §1.2.2).
fn seconds(text: &str) -> Option<Duration> {
    let text = text.trim();
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(Duration::from_secs(
        text.parse::<u32>().map_or(u64::from(u32::MAX), u64::from),
    ))
}

fn date(value: &http::HeaderValue) -> Option<SystemTime> {
    httpdate::parse_http_date(value.to_str().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
        fields
            .iter()
            .map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value")))
            .collect()
    }

    #[test]
    fn the_lifetime_of_an_answer_is_read_from_its_headers() {
        let received = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        for (fields, seconds) in [
            (vec![], None),
            (vec![("cache-control", "max-age=3600")], Some(3600)),
            (vec![("cache-control", "public, MAX-AGE=\"60\"")], Some(60)),
            (vec![("cache-control", "max-age=3600"), ("age", "600")], Some(3000)),
            (vec![("cache-control", "max-age=60"), ("age", "600")], Some(0)),
            (vec![("cache-control", "max-age=soon")], Some(0)),
            (
                vec![("cache-control", "max-age=99999999999")],
                Some(u64::from(u32::MAX)),
            ),
            (vec![("cache-control", "no-cache")], Some(0)),
            (vec![("cache-control", "max-age=60, no-store")], Some(0)),
            (vec![("cache-control", "public")], None),
            (vec![("expires", "Sun, 06 Nov 1994 09:49:37 GMT")], Some(3600)),
            (
                vec![
                    ("date", "Sun, 06 Nov 1994 09:00:00 GMT"),
                    ("expires", "Sun, 06 Nov 1994 09:00:30 GMT"),
                ],
                Some(30),
            ),
            (vec![("expires", "0")], Some(0)),
            (
                vec![
                    ("cache-control", "max-age=5"),
                    ("expires", "Sun, 06 Nov 2094 09:00:30 GMT"),
                ],
                Some(5),
            ),
        ] {
            assert_eq!(
                Freshness::from_headers(&headers(&fields), received),
                Freshness(seconds.map(Duration::from_secs)),
                "{fields:?}"
            );
        }
    }

    #[test]
    fn retry_after_is_a_number_or_a_date() {
        let received = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        for (value, seconds) in [
            ("120", Some(120)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("Sunday, 06-Nov-94 08:50:37 GMT", Some(60)),
            ("5,90", Some(90)),
            ("90 , soon, 5", Some(90)),
            ("3600.5", Some(3601)),
            ("0.04, 5.0", Some(5)),
            ("soon", None),
            ("-1", None),
            ("", None),
            (",", None),
            ("1.", None),
            (".5", None),
            ("1.5.5", None),
            ("1e3", None),
        ] {
            assert_eq!(
                retry_after(&headers(&[("retry-after", value)]), received),
                seconds.map(Duration::from_secs),
                "{value}"
            );
        }
        for (several, delay) in [(["60", "3600"], 3600), (["3600", "soon"], 3600), (["soon", "5"], 5)] {
            let fields = several.map(|value| ("retry-after", value));
            let mut both = HeaderMap::new();
            for (name, value) in fields {
                both.append(name, value.parse().expect("a value"));
            }
            assert_eq!(
                retry_after(&both, received),
                Some(Duration::from_secs(delay)),
                "{several:?}"
            );
        }
    }
}
