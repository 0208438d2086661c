//! The conditions of a request for a file: which bytes the client wants, and the date of the copy that it already has
//! (RFC 9110 §13, §14). Does no I/O.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, Method, header};

/// Malformed and repeated header fields are ignored. An `If-Range` that is not a date counts as an entity tag.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Conditions {
    range: Option<ByteRange>,
    if_range: Option<IfRange>,
    modified_since: Option<SystemTime>,
}

/// The bytes that a request asks for. A request for several ranges gets the whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ByteRange {
    From(u64),
    /// The first and the last byte, both included.
    Between(u64, u64),
    /// This many bytes at the end of the file.
    Last(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IfRange {
    Date(SystemTime),
    /// An entity tag matches no file, because files on FTP servers have no entity tags.
    Tag,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Selected {
    Whole,
    /// Includes the byte `last`.
    Part {
        first: u64,
        last: u64,
    },
    Unsatisfiable,
    NotModified,
}

// === impl Conditions ===

impl Conditions {
    pub(super) fn new(method: &Method, headers: &HeaderMap) -> Self {
        let only = |name| {
            let mut values = headers.get_all(name).iter();
            let value = values.next().filter(|_| values.next().is_none());
            value.and_then(|value| value.to_str().ok())
        };
        let date = |text: &str| httpdate::parse_http_date(text).ok();
        let has_tags = headers.contains_key(header::IF_NONE_MATCH);
        Self {
            // `Range` is only defined for GET (RFC 9110 §14.2).
            range: only(header::RANGE)
                .filter(|_| *method == Method::GET)
                .and_then(ByteRange::parse),
            if_range: only(header::IF_RANGE).map(|value| date(value).map_or(IfRange::Tag, IfRange::Date)),
            modified_since: only(header::IF_MODIFIED_SINCE).filter(|_| !has_tags).and_then(date),
        }
    }

    /// Returns which part of a file the response has to contain. `size` (in bytes) and `modified` are `None` if the
    /// server does not report them.
    pub(super) fn select(&self, size: Option<u64>, modified: Option<SystemTime>) -> Selected {
        let is_older = |since| modified.is_some_and(|modified| in_seconds(modified) <= since);
        if self.modified_since.is_some_and(is_older) {
            return Selected::NotModified;
        }
        let holds = match self.if_range {
            None => true,
            Some(IfRange::Date(date)) => modified.map(in_seconds) == Some(date),
            Some(IfRange::Tag) => false,
        };
        match (self.range.filter(|_| holds), size) {
            (Some(range), Some(size)) => range.select(size),
            _ => Selected::Whole,
        }
    }
}

// === impl ByteRange ===

impl ByteRange {
    fn parse(value: &str) -> Option<Self> {
        let (unit, range) = value.split_once('=')?;
        let (first, last) = range.trim_ascii().split_once('-')?;
        let number = |text: &str| {
            text.bytes()
                .all(|byte| byte.is_ascii_digit())
                .then(|| text.parse().ok())?
        };
        if !unit.eq_ignore_ascii_case("bytes") {
            return None;
        }
        match (first, last) {
            ("", last) => Some(Self::Last(number(last)?)),
            (first, "") => Some(Self::From(number(first)?)),
            (first, last) => Some(Self::Between(number(first)?, number(last)?)).filter(Self::is_valid),
        }
    }

    fn is_valid(&self) -> bool {
        !matches!(self, Self::Between(first, last) if first > last)
    }

    fn select(self, size: u64) -> Selected {
        let end = size.saturating_sub(1);
        let (first, last) = match self {
            Self::From(first) => (first, end),
            Self::Between(first, last) => (first, last.min(end)),
            Self::Last(0) => return Selected::Unsatisfiable,
            Self::Last(count) => (size.saturating_sub(count), end),
        };
        match first < size {
            true => Selected::Part { first, last },
            false => Selected::Unsatisfiable,
        }
    }
}

/// Removes the fraction of a second, which header fields do not have.
fn in_seconds(time: SystemTime) -> SystemTime {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    UNIX_EPOCH + Duration::from_secs(since.as_secs())
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

    fn select(fields: &[(HeaderName, &str)]) -> Selected {
        let fields = fields
            .iter()
            .map(|(name, value)| (name.clone(), value.parse().expect("a value")));
        let modified = httpdate::parse_http_date(DATE).expect("a date") + Duration::from_millis(500);
        Conditions::new(&Method::GET, &fields.collect()).select(Some(100), Some(modified))
    }

    #[test]
    fn a_range_selects_a_part() {
        let part = |first, last| Selected::Part { first, last };
        for (range, selected) in [
            ("bytes=0-", part(0, 99)),
            ("bytes=10-", part(10, 99)),
            ("Bytes= 10-19", part(10, 19)),
            ("bytes=99-", part(99, 99)),
            ("bytes=10-1000", part(10, 99)),
            ("bytes=-1", part(99, 99)),
            ("bytes=-1000", part(0, 99)),
            ("bytes=100-", Selected::Unsatisfiable),
            ("bytes=100-200", Selected::Unsatisfiable),
            ("bytes=-0", Selected::Unsatisfiable),
            ("bytes=19-10", Selected::Whole),
            ("bytes=0-1,5-6", Selected::Whole),
            ("bytes=", Selected::Whole),
            ("bytes=-", Selected::Whole),
            ("bytes=+1-2", Selected::Whole),
            ("lines=1-2", Selected::Whole),
            ("bytes=99999999999999999999-", Selected::Whole),
        ] {
            assert_eq!(select(&[(header::RANGE, range)]), selected, "{range}");
        }
    }

    #[test]
    fn a_range_needs_a_size_and_a_get() {
        let headers = HeaderMap::from_iter([(header::RANGE, "bytes=1-".parse().expect("a value"))]);
        let get = Conditions::new(&Method::GET, &headers);
        assert_eq!(get.select(None, None), Selected::Whole);
        assert_eq!(
            Conditions::new(&Method::HEAD, &headers).select(Some(9), None),
            Selected::Whole
        );
    }

    #[test]
    fn a_range_with_if_range_applies_only_if_the_date_matches() {
        let part = Selected::Part { first: 1, last: 99 };
        for (if_range, selected) in [
            (DATE, part),
            ("Sun, 06 Nov 1994 08:49:38 GMT", Selected::Whole),
            ("\"tag\"", Selected::Whole),
        ] {
            let fields = [(header::RANGE, "bytes=1-"), (header::IF_RANGE, if_range)];
            assert_eq!(select(&fields), selected, "{if_range}");
        }
    }

    #[test]
    fn a_file_that_is_not_newer_is_not_modified() {
        for (since, selected) in [
            (DATE, Selected::NotModified),
            ("Sun, 06 Nov 1994 08:49:36 GMT", Selected::Whole),
            ("yesterday", Selected::Whole),
        ] {
            assert_eq!(select(&[(header::IF_MODIFIED_SINCE, since)]), selected, "{since}");
        }
        let with_tag = [(header::IF_MODIFIED_SINCE, DATE), (header::IF_NONE_MATCH, "\"tag\"")];
        assert_eq!(select(&with_tag), Selected::Whole);
    }
}
