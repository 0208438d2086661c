//! Turns a refusal or an error into an HTTP response to a bot, which no other module does. The body is for a program
//! (RFC 9457) or a person, and the field `Proxy-Status` names the cause.

mod accept;
mod page;
mod problem;
mod texts;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use pingora_http::ResponseHeader;
use serde::Serialize;

use self::accept::Body;
pub(super) use self::accept::shows_html;
pub(super) use self::problem::{InternalSiteError, Problem, explained};
use super::{
    cached_response::{self, CachedResponse},
    fields::{PROXY_STATUS, ROBOTS_DECISION, push_string},
};
use crate::{
    bot::ProofKinds,
    config::Refusals,
    copy::CacheStatus,
    decision::{DecisionTexts, MAX_TEXT, Reason, RefusalStatus, Verdict},
    fetch::opaque,
    pace::Cause,
    text::plain,
    upstream::ProxyError,
    usage::UseRefusal,
};

#[derive(Debug)]
pub(super) struct OwnResponse {
    pub(super) head: ResponseHeader,
    pub(super) body: Bytes,
    /// Whether another request may follow on the connection. None may follow a malformed request, for example, because
    /// it is unknown where the next one begins.
    pub(super) keeps_connection: bool,
}

#[derive(Debug, Serialize)]
struct Details<'a> {
    r#type: String,
    /// The cause in one line, for the title of the HTML page.
    #[serde(skip)]
    cause: &'a str,
    /// The cause as the HTML page shows it, without what the page shows separately, such as the rule.
    #[serde(skip)]
    summary: &'a str,
    #[serde(skip)]
    todo: &'a str,
    #[serde(skip)]
    retry_after: Option<u64>,
    title: &'a str,
    status: u16,
    detail: &'a str,
    #[serde(flatten)]
    refusal: Option<Refusal<'a>>,
}

#[derive(Debug, Serialize)]
struct Refusal<'a> {
    instance: String,
    reason: &'a str,
    #[serde(rename = "cause", skip_serializing_if = "Option::is_none")]
    pace_cause: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<&'a UseRefusal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bot: Option<&'a str>,
    robots: &'a str,
}

// === impl OwnResponse ===

impl OwnResponse {
    /// Returns the response to a refused request. The status is 407 (RFC 9110 §15.5.8) if the client should send a
    /// valid credential, because clients send no credential after a 403.
    pub(super) fn refusal(texts: &DecisionTexts<'_>, request: &HeaderMap, refusals: &Refusals, name: &str) -> Self {
        let reason = texts.reason;
        let (cause, detail) = (texts.cause(), texts.detail());
        let proofs_to_do = texts.proofs.map(ProofKinds::what_to_do);
        let (status, title) = match texts.challenge {
            true => (StatusCode::PROXY_AUTHENTICATION_REQUIRED, AUTHENTICATION_REQUIRED),
            false => (status_of(texts.verdict, reason, refusals), reason.phrase()),
        };
        let details = Details {
            r#type: type_of(reason.as_str()),
            cause: &cause,
            summary: match &texts.rule {
                Some(_) => texts.sentence,
                None => &detail,
            },
            todo: proofs_to_do.as_deref().unwrap_or(reason.what_to_do()),
            retry_after: texts.retry_after,
            title,
            status: status.as_u16(),
            detail: &detail,
            refusal: Some(Refusal {
                instance: format!("urn:uuid:{}", texts.id),
                reason: reason.as_str(),
                pace_cause: texts.pace_cause.map(Cause::as_str),
                usage: texts.use_refusal(),
                rule: texts.rule.as_deref(),
                line: texts.line,
                group: texts.rule_group(),
                bot: texts.bot.as_deref(),
                robots: &texts.robots_url,
            }),
        };
        let mut answer = Self::new(status, &details, request);
        answer.keeps_connection = true;
        if texts.challenge {
            answer.set("Proxy-Authenticate", CHALLENGE.to_owned());
        }
        if let Some(seconds) = texts.retry_after {
            answer.set("Retry-After", seconds.to_string());
        }
        answer.set(ROBOTS_DECISION, texts.field());
        let error = match reason {
            Reason::Egress => ProxyError::DestinationIpProhibited,
            _ => ProxyError::HttpRequestDenied,
        };
        answer.set_proxy_status(name, error, &cause);
        answer
    }

    pub(super) fn problem(problem: &Problem<'_>, request: &HeaderMap, name: &str) -> Self {
        let (status, error, title) = problem.kind();
        let detail = problem.detail();
        // These two statuses mean that the same request can succeed a little later.
        let passes = matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        let retry_after = passes.then_some(RETRY_AFTER);
        let details = Details {
            r#type: type_of(error.as_str()),
            cause: &detail,
            summary: &detail,
            todo: match problem {
                // The advice for this error is about requests to sites, but this request was for one of robotgate's own
                // pages.
                Problem::InternalSite(_) => "",
                _ => problem::what_to_do_about(error),
            },
            retry_after,
            title,
            status: status.as_u16(),
            detail: &detail,
            refusal: None,
        };
        let mut answer = Self::new(status, &details, request);
        answer.set_proxy_status(name, error, &detail);
        answer.keeps_connection = passes;
        if let Some(seconds) = retry_after {
            answer.set("Retry-After", seconds.to_string());
        }
        if status == StatusCode::METHOD_NOT_ALLOWED {
            // The request was for one of robotgate's own pages or for an FTP site (RFC 9110 §15.5.6).
            answer.set("Allow", "GET, HEAD".to_owned());
        }
        answer
    }

    pub(super) fn document(content_type: &'static str, body: Vec<u8>) -> Self {
        let mut answer = Self::with_body(StatusCode::OK, content_type, body.into());
        answer.keeps_connection = true;
        answer.set("X-Content-Type-Options", "nosniff".to_owned());
        answer
    }

    /// Returns the response to a bot's request for a robots.txt from robotgate's copy, with the fields of a cache (RFC
    /// 9111 §4, RFC 9211). It is a 304 if the bot already has the file.
    pub(super) fn cached(
        cached: &CachedResponse<'_>,
        request: &HeaderMap,
        decision: Option<String>,
        name: &str,
    ) -> Self {
        let etag = cached.copy.and_then(|copy| copy.etag.as_deref());
        let is_known = etag.is_some_and(|etag| cached_response::is_known(request, etag));
        let status = if is_known {
            StatusCode::NOT_MODIFIED
        } else {
            cached.status
        };
        let body = match cached.copy {
            Some(copy) if !is_known => Bytes::copy_from_slice(copy.robots.body()),
            _ => Bytes::new(),
        };
        let mut answer = Self::with_body(status, "text/plain; charset=utf-8", body);
        answer.keeps_connection = true;
        if is_known {
            answer.head.remove_header("Content-Length");
            answer.head.remove_header("Content-Type");
        }
        if let Some(etag) = etag {
            // The tag may belong to a compressed form of the file, but this body is not compressed, so make the tag
            // weak (RFC 9110 §8.8.3.3).
            answer.set("ETag", format!("W/{}", opaque(etag)));
        }
        let (age, life) = (cached.age.as_secs(), cached.life.as_secs());
        answer.set("Age", age.to_string());
        answer.set("Cache-Control", format!("max-age={life}"));
        let found = match cached.found {
            CacheStatus::Hit | CacheStatus::Stale => "hit",
            // `Queued` does not occur: a request whose fetch is still queued gets no cached response.
            CacheStatus::Miss | CacheStatus::Queued => "fwd=miss; stored",
            CacheStatus::Collapsed => "fwd=miss; collapsed",
        };
        answer.set(
            "Cache-Status",
            format!("{name}; {found}; ttl={}", life.saturating_sub(age)),
        );
        if let Some(decision) = decision {
            answer.set(ROBOTS_DECISION, decision);
        }
        answer
    }

    fn new(status: StatusCode, details: &Details<'_>, request: &HeaderMap) -> Self {
        let form = Body::preferred(request);
        let (content_type, body) = match form {
            Body::Html => ("text/html; charset=utf-8", page::page(details).into_bytes()),
            Body::Text => ("text/plain; charset=utf-8", text_body(details)),
            Body::Json => {
                let mut body = Vec::with_capacity(1024);
                // Serialising strings and numbers into memory cannot fail.
                let _ = serde_json::to_writer(&mut body, details);
                body.push(b'\n');
                ("application/problem+json", body)
            }
        };
        let mut answer = Self::with_body(status, content_type, body.into());
        if form == Body::Html {
            // A browser takes the page for a page of the site, so scripts must not run in it with the site's rights.
            answer.set("Content-Security-Policy", page::POLICY.to_owned());
            answer.set("X-Content-Type-Options", "nosniff".to_owned());
        }
        // This does not fail, because pingora does not check the phrase. No title has control characters.
        let _ = answer.head.set_reason_phrase(Some(details.title));
        answer
    }

    fn with_body(status: StatusCode, content_type: &'static str, body: Bytes) -> Self {
        let head = match ResponseHeader::build(status, Some(8)) {
            Ok(head) => head,
            // Every `StatusCode` is a valid status.
            Err(_) => unreachable!("a status code makes a response"),
        };
        let mut answer = Self {
            head,
            body,
            keeps_connection: false,
        };
        answer.set("Content-Type", content_type.to_owned());
        answer.set("Content-Length", answer.body.len().to_string());
        answer.set("Cache-Control", "no-store".to_owned());
        answer
    }

    fn set_proxy_status(&mut self, name: &str, error: ProxyError, details: &str) {
        let error = error.as_str();
        let mut value = format!("{name}; error={error}; details=");
        push_string(&mut value, details, MAX_STRING);
        self.set(PROXY_STATUS, value);
    }

    fn set(&mut self, name: &'static str, value: String) {
        // This does not fail: every value that robotgate writes here is printable ASCII.
        let _ = self.head.insert_header(name, value);
    }

    /// Returns the response as bytes of HTTP/1.1, for code that does not use pingora. Close the connection after
    /// sending them.
    pub(super) fn to_http1(&self, with_body: bool) -> Vec<u8> {
        let mut out = Vec::with_capacity(1024 + self.body.len());
        let phrase = self.head.get_reason_phrase().unwrap_or_default();
        out.extend_from_slice(format!("HTTP/1.1 {} {phrase}\r\n", self.head.status.as_u16()).as_bytes());
        let mut fields = bytes::BytesMut::new();
        self.head.header_to_h1_wire(&mut fields);
        out.extend_from_slice(&fields);
        out.extend_from_slice(b"Connection: close\r\n\r\n");
        if with_body {
            out.extend_from_slice(&self.body);
        }
        out
    }
}

// === impl Refusal ===

impl Refusal<'_> {
    fn id(&self) -> &str {
        self.instance.trim_start_matches("urn:uuid:")
    }
}

/// A request that came too early gets a 429 (RFC 6585 §4).
fn status_of(verdict: Verdict, reason: Reason, refusals: &Refusals) -> StatusCode {
    match reason.status() {
        _ if verdict == Verdict::Defer => StatusCode::TOO_MANY_REQUESTS,
        RefusalStatus::Disallowed => refusals.status,
        RefusalStatus::Unreachable => refusals.unreachable_status,
        RefusalStatus::Forbidden => StatusCode::FORBIDDEN,
    }
}

/// Returns the URI of a kind of problem (RFC 9457 §3.1.1), which is also the address of a page that explains it.
fn type_of(kind: &str) -> String {
    format!("http://robotgate.internal/problems#{kind}")
}

fn text_body(details: &Details<'_>) -> Vec<u8> {
    let mut text = format!("{} {}\n\n{}\n", details.status, details.title, details.detail);
    if let Some(seconds) = details.retry_after {
        text.push_str(&format!("Try again in {seconds} s.\n"));
    }
    if let Some(refusal) = &details.refusal {
        text.push('\n');
        if let Some(group) = refusal.group {
            let group = plain(group, MAX_TEXT);
            text.push_str(&format!("The rule's group in the robots.txt: {group}\n"));
        }
        if let Some(bot) = refusal.bot {
            let bot = plain(bot, MAX_TEXT);
            text.push_str(&format!("The bot that robotgate identified: {bot}\n"));
        }
        text.push_str(&format!("The decision's id in the audit log: {}\n", refusal.id()));
    }
    text.into_bytes()
}

/// The value of `Proxy-Authenticate` in a 407 (RFC 7617 §2).
const CHALLENGE: &str = "Basic realm=\"robotgate\", charset=\"UTF-8\"";
/// The reason phrase of a 407, which is all that most clients show if a CONNECT fails.
const AUTHENTICATION_REQUIRED: &str = "Proxy Authentication Required";
/// In seconds.
const RETRY_AFTER: u64 = 10;
/// Maximum length of the text of a string in `Robots-Decision` and `Proxy-Status`, in bytes before it is escaped.
const MAX_STRING: usize = 512;

#[cfg(test)]
mod tests;
