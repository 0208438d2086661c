//! What the outcome of a fetch says about an origin: rules, no robots.txt, or a failure (RFC 9309 §2.3.1).

use std::{sync::Arc, time::SystemTime};

use super::{Failure, FetchError, Freshness, Policy, RobotsCopy, SiteDocument, robots_copy::LARGE};
use crate::{origin::Scheme, robots::Profile};

/// The response of an origin, after redirects. The body is decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginResponse {
    pub status: u16,
    /// For a 2xx other than 206: the content, up to the limit of 500 KiB (RFC 9309 §2.5), or 1 MiB for a `tdmrep.json`.
    /// For a 5xx: the beginning of the content. Otherwise empty.
    pub body: Vec<u8>,
    /// If the content exceeds the limit: the bytes that were read after the last whole line. They are not parsed.
    pub cut_off: Vec<u8>,
    pub freshness: Freshness,
    pub retry_after: Option<std::time::Duration>,
    /// `None` if the response came through a redirect.
    pub etag: Option<Box<str>>,
    pub redirected: bool,
}

/// The outcome of a fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetched {
    Response(OriginResponse),
    /// The origin responded 304: the robots.txt still has the ETag that the request sent (RFC 9110 §15.4.5).
    NotModified {
        freshness: Freshness,
    },
    /// More than five redirects, as in a loop. This counts as if there were no robots.txt.
    TooManyRedirects {
        status: u16,
    },
    Failed(Failure),
}

/// What the outcome of a fetch says about the origin.
#[derive(Debug, Clone, PartialEq)]
pub enum Meaning {
    Rules(Arc<RobotsCopy>),
    /// The rules that robotgate already has still apply.
    Unchanged,
    NoRobots,
    /// A server error whose page says that the file was not found.
    Soft404,
    Failed(Failure),
}

type Parse = fn(Profile, &[u8], SystemTime) -> RobotsCopy;

// === impl OriginResponse ===

impl OriginResponse {
    /// Creates a response without header fields and without redirects.
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            body: body.into(),
            cut_off: Vec::new(),
            freshness: Freshness::default(),
            retry_after: None,
            etag: None,
            redirected: false,
        }
    }

    /// Returns the length of the decoded content that was read, in bytes.
    pub fn bytes(&self) -> usize {
        self.body.len() + self.cut_off.len()
    }
}

// === impl Fetched ===

impl Fetched {
    /// Returns what the fetch of a robots.txt says about the origin. `at` is when the response was received.
    pub fn meaning(&self, policy: &Policy, at: SystemTime) -> Meaning {
        self.parsed(policy, at, RobotsCopy::new)
    }

    /// Returns what the fetch of `document` says about the origin, whose URL has this `scheme`.
    pub fn meaning_of(&self, document: &SiteDocument, scheme: Scheme, policy: &Policy, at: SystemTime) -> Meaning {
        if is_refused_ftp_login(scheme, self.status()) {
            return Meaning::Failed(FetchError::Status(self.status()).into());
        }
        match *document == SiteDocument::TDMREP {
            true => self.meaning_as_tdmrep(document.max_bytes, policy, at),
            false => self.meaning(policy, at),
        }
    }

    /// Returns what the fetch of a `tdmrep.json` says about the origin. A file longer than `max_bytes` counts as
    /// missing: robotgate reads only its beginning, which can mean something else than the whole file.
    pub fn meaning_as_tdmrep(&self, max_bytes: usize, policy: &Policy, at: SystemTime) -> Meaning {
        // A server error never counts as a missing file: a site that reserves its rights must not lose them because its
        // server fails.
        let policy = Policy {
            soft_404: false,
            ..*policy
        };
        match (self, self.parsed(&policy, at, RobotsCopy::of_tdmrep)) {
            (Fetched::Response(received), Meaning::Rules(_)) if received.bytes() > max_bytes => Meaning::NoRobots,
            (_, meaning) => meaning,
        }
    }

    fn parsed(&self, policy: &Policy, at: SystemTime, parse: Parse) -> Meaning {
        match self {
            Fetched::Response(received) => Meaning::parsed(received, policy, at, parse),
            Fetched::NotModified { .. } => Meaning::Unchanged,
            Fetched::TooManyRedirects { .. } => Meaning::NoRobots,
            Fetched::Failed(failure) => Meaning::Failed(failure.clone()),
        }
    }

    /// Returns whether parsing the body takes long enough to delay other requests.
    pub fn is_large(&self) -> bool {
        matches!(self, Fetched::Response(received) if received.body.len() > LARGE)
    }

    /// Returns the HTTP status of the last response, or 0 for [`Fetched::Failed`].
    pub fn status(&self) -> u16 {
        match self {
            Fetched::Response(received) => received.status,
            Fetched::NotModified { .. } => 304,
            Fetched::TooManyRedirects { status } => *status,
            Fetched::Failed(_) => 0,
        }
    }

    pub fn freshness(&self) -> Freshness {
        match self {
            Fetched::Response(received) => received.freshness,
            Fetched::NotModified { freshness } => *freshness,
            Fetched::TooManyRedirects { .. } | Fetched::Failed(_) => Freshness::default(),
        }
    }
}

// === impl Meaning ===

impl Meaning {
    /// Returns what `received` means for the robots.txt. Unlike in RFC 9309, a 206 is a failure, and so is a 429 under
    /// the profile `google`. With `policy.soft_404`, a 5xx with a "not found" page is no failure.
    pub fn of(received: &OriginResponse, policy: &Policy, at: SystemTime) -> Self {
        Self::parsed(received, policy, at, RobotsCopy::new)
    }

    fn parsed(received: &OriginResponse, policy: &Policy, at: SystemTime, parse: Parse) -> Self {
        let failed = || {
            Meaning::Failed(Failure {
                error: FetchError::Status(received.status),
                retry_after: received.retry_after,
            })
        };
        match received.status {
            // robotgate asked for the whole file, so a partial response is an error of the server.
            206 => failed(),
            200..=299 => Meaning::Rules(Arc::new(RobotsCopy {
                status: received.status,
                etag: received.etag.clone(),
                complete: received.cut_off.is_empty() && !received.redirected,
                ..parse(policy.profile, &received.body, at)
            })),
            status if is_busy(status, policy.profile) => failed(),
            400..=499 => Meaning::NoRobots,
            500..=599 if policy.soft_404 && says_not_found(&received.body) => Meaning::Soft404,
            _ => failed(),
        }
    }
}

/// Under the profile `google`, a 429 says that the server is busy, and not that it has no robots.txt.
pub(super) fn is_busy(status: u16, profile: Profile) -> bool {
    status == 429 && profile == Profile::Google
}

/// Returns whether the page contains a whole phrase such as "page not found". A single word on an error page must not
/// allow access to a site.
fn says_not_found(page: &[u8]) -> bool {
    let page: Vec<u8> = page
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .flat_map(|word| [word, b" "])
        .flatten()
        .map(u8::to_ascii_lowercase)
        .collect();
    NOT_FOUND_PHRASES
        .iter()
        .any(|phrase| memchr::memmem::find(&page, phrase.as_bytes()).is_some())
}

const NOT_FOUND_PHRASES: [&str; 7] = [
    "page not found",
    "file not found",
    "404 not found",
    "page was not found",
    "page could not be found",
    "page cannot be found",
    "page can't be found",
];

/// Returns whether an FTP server refused the login, or the file because of the login (`status` 403). The server may
/// just be busy, so this must not allow everything, as other 4xx do.
pub fn is_refused_ftp_login(scheme: Scheme, status: u16) -> bool {
    scheme == Scheme::Ftp && status == 403
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::Sha256;

    fn meaning(status: u16, body: &str) -> Meaning {
        meaning_under(&Policy::default(), status, body)
    }

    fn meaning_under(policy: &Policy, status: u16, body: &str) -> Meaning {
        Meaning::of(&OriginResponse::new(status, body), policy, SystemTime::UNIX_EPOCH)
    }

    #[test]
    fn a_status_decides_what_an_answer_means() {
        for status in [200, 201, 202, 204, 299] {
            assert!(matches!(meaning(status, ""), Meaning::Rules(_)), "{status}");
        }
        for status in [400, 401, 403, 404, 410, 418, 451, 499] {
            assert_eq!(meaning(status, ""), Meaning::NoRobots, "{status}");
        }
        for status in [206, 300, 304, 429, 500, 502, 503, 504, 507, 599, 600, 999] {
            assert_eq!(
                meaning(status, ""),
                Meaning::Failed(FetchError::Status(status).into()),
                "{status}"
            );
        }
    }

    #[test]
    fn in_the_rfc9309_profile_429_is_like_any_other_4xx() {
        let policy = Policy {
            profile: Profile::Rfc9309,
            ..Policy::default()
        };
        assert_eq!(meaning_under(&policy, 429, ""), Meaning::NoRobots);
    }

    #[test]
    fn only_a_server_error_can_be_a_soft_404() {
        assert_eq!(meaning(500, "<h1>Page\n  NOT found</h1>"), Meaning::Soft404);
        assert_eq!(meaning(503, "404 Not Found"), Meaning::Soft404);
        assert!(matches!(meaning(500, "backend not found"), Meaning::Failed(_)));
        for status in [206, 429, 600, 999] {
            assert!(
                matches!(meaning(status, "page not found"), Meaning::Failed(_)),
                "{status}"
            );
        }
    }

    #[test]
    fn a_refused_ftp_login_is_a_failure() {
        let error = FetchError::Status(403);
        assert_eq!(
            error.to_string(),
            "the FTP server refused the anonymous login or the file"
        );
        let failed = Meaning::Failed(error.into());
        for (scheme, status, expected) in [
            (Scheme::Ftp, 403, failed),
            (Scheme::Ftp, 404, Meaning::NoRobots),
            (Scheme::Https, 403, Meaning::NoRobots),
        ] {
            let fetched = Fetched::Response(OriginResponse::new(status, ""));
            for document in [&SiteDocument::ROBOTS_TXT, &SiteDocument::TDMREP] {
                let found = fetched.meaning_of(document, scheme, &Policy::default(), SystemTime::UNIX_EPOCH);
                assert_eq!(found, expected, "{scheme} {status} {}", document.path);
            }
        }
    }

    #[test]
    fn a_truncated_tdmrep_json_is_ignored() {
        let text = br#"[{"location": "/", "tdm-reservation": 1}]"#;
        let entries = |body: &[u8], cut_off: &[u8], max_bytes| {
            let fetched = Fetched::Response(OriginResponse {
                cut_off: cut_off.to_vec(),
                ..OriginResponse::new(200, body)
            });
            match fetched.meaning_as_tdmrep(max_bytes, &Policy::default(), SystemTime::UNIX_EPOCH) {
                Meaning::Rules(copy) => copy.tdmrep.as_ref().map(|file| file.len()),
                Meaning::NoRobots => None,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(entries(text, b"", text.len()), Some(1));
        assert_eq!(entries(b"<html>", b"", 10), Some(0));
        assert_eq!(entries(text, b"\n", text.len()), None);
        assert_eq!(entries(b"", text, text.len() - 1), None);
    }

    #[test]
    fn a_tdmrep_json_keeps_its_bytes_and_has_no_rules() {
        let text = b"[]\nUser-agent: *\nDisallow: /\nContent-Usage: train-ai=n\n";
        let fetched = Fetched::Response(OriginResponse::new(200, text));
        let meaning = fetched.meaning_as_tdmrep(text.len(), &Policy::default(), SystemTime::UNIX_EPOCH);
        let Meaning::Rules(copy) = meaning else {
            panic!("{meaning:?}");
        };
        let as_robots_txt = RobotsCopy::new(Profile::Google, text, SystemTime::UNIX_EPOCH);
        for copy in [&*copy, &copy.under(Profile::Rfc9309)] {
            assert!(copy.robots.agent("a").decide(b"/").allowed);
            assert_eq!(copy.robots.body(), text);
            assert_eq!(copy.sha256, Sha256::of(text));
            assert!(copy.weight() > text.len() && copy.weight() < as_robots_txt.weight());
        }
    }
}
