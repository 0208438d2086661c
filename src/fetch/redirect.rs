//! The URLs that a fetch requests: resolves redirects (RFC 9110 §10.2.2, RFC 9309 §2.3.1.2) and builds requests. The
//! egress guard, not this module, checks the addresses.

use http::HeaderValue;
use pingora_http::RequestHeader;
use url::Url;

use crate::{
    copy::{FetchError, SiteDocument},
    origin::{HostPort, HostPortError, Origin, Scheme, Target},
    text::plain,
};

/// A URL to request. It contains no user name and no fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hop {
    pub(super) origin: Origin,
    /// The document that the fetch is for. After a redirect, its path can differ from `path_and_query`.
    pub(super) document: &'static SiteDocument,
    /// Begins with `/`.
    path_and_query: String,
}

// === impl Hop ===

impl Hop {
    /// Returns the URL of a document of `origin`.
    pub fn first(document: &'static SiteDocument, origin: &Origin) -> Self {
        Self {
            origin: origin.clone(),
            document,
            path_and_query: document.path.to_owned(),
        }
    }

    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    pub(super) fn target(&self) -> Target {
        Target {
            origin: self.origin.clone(),
            path: self.path_and_query.clone().into_bytes(),
            names_user: false,
        }
    }

    /// Returns the whole URL.
    pub fn url(&self) -> String {
        format!("{}{}", self.origin, self.path_and_query)
    }

    /// Returns the URL to which a redirect with this Location field leads.
    ///
    /// # Errors
    /// Fails if the field is missing or its URL cannot be fetched.
    pub fn redirected(&self, location: Option<&[u8]>) -> Result<Self, FetchError> {
        let location = location.ok_or_else(|| FetchError::Redirect("the redirect has no Location".to_owned()))?;
        let lost = |why: &str| {
            let location = without_secrets(&String::from_utf8_lossy(location));
            FetchError::Redirect(format!("{} ({why})", plain(&location, MAX_LOCATION)))
        };
        let text = std::str::from_utf8(location).map_err(|_| lost("not UTF-8"))?;
        let there = Url::parse(&self.url())
            .and_then(|here| here.join(text))
            .map_err(|error| lost(&error.to_string()))?;
        let scheme = Scheme::parse(there.scheme().as_bytes()).filter(|scheme| scheme.is_web());
        let scheme = scheme.ok_or_else(|| lost("neither http nor https"))?;
        let authority = HostPort::parse(there.authority().as_bytes()).map_err(|error| match error {
            HostPortError::UserInfo => lost("it contains a user name or a password"),
            error => lost(&error.to_string()),
        })?;
        let query = there.query().map(|query| format!("?{query}"));
        Ok(Self {
            origin: Origin::new(scheme, authority),
            document: self.document,
            path_and_query: format!("{}{}", there.path(), query.unwrap_or_default()),
        })
    }

    /// Builds the request. With an `etag`, the request asks for the document only if the document has changed.
    ///
    /// # Errors
    /// Fails if a value is not allowed in a request.
    pub fn request(&self, user_agent: HeaderValue, etag: Option<&str>) -> pingora::Result<RequestHeader> {
        let mut request = RequestHeader::build("GET", self.path_and_query.as_bytes(), Some(5))?;
        request.insert_header("Host", self.origin.host_field())?;
        request.insert_header("User-Agent", user_agent)?;
        request.insert_header("Accept", self.document.accept)?;
        request.insert_header("Accept-Encoding", "gzip")?;
        if let Some(etag) = etag {
            request.insert_header("If-None-Match", etag)?;
        }
        Ok(request)
    }
}

/// Leaves out the parts of a URL that can contain secrets: user information, the query and the fragment.
fn without_secrets(url: &str) -> String {
    let end = url.find(['?', '#']).map_or(url.len(), |end| end + 1);
    let (shown, rest) = url.split_at(end);
    let left_out = if rest.is_empty() { "" } else { "…" };
    let authority = shown.split_once("//").map_or(shown, |(_, authority)| authority);
    match shown.rsplit_once('@') {
        Some((_, host)) => format!("…@{host}{left_out}"),
        // The `?` or `#` may belong to a password, so leave out the beginning of the password too.
        None if rest.contains('@') && !authority.contains(['/', '\\']) => "…".to_owned(),
        None => format!("{shown}{left_out}"),
    }
}

/// Maximum length of the Location field in an error, in bytes.
const MAX_LOCATION: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn from(origin: &str) -> Hop {
        Hop::first(&SiteDocument::ROBOTS_TXT, &origin.parse().expect("an origin"))
    }

    fn led(location: &[u8]) -> Result<String, String> {
        let to = from("https://a.example:8443").redirected(Some(location));
        to.map(|to| to.url()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_location_is_read_as_browsers_read_it() {
        for (location, url) in [
            ("/r", "https://a.example:8443/r"),
            ("r?q#f", "https://a.example:8443/r?q"),
            ("", "https://a.example:8443/robots.txt"),
            ("#f", "https://a.example:8443/robots.txt"),
            ("?", "https://a.example:8443/robots.txt?"),
            ("../../x", "https://a.example:8443/x"),
            ("//b.example", "https://b.example/"),
            ("//b.example:443/%2e%2e/x", "https://b.example/x"),
            ("\\\\b.example\\x", "https://b.example/x"),
            (" http:\tB.example./ü ", "http://b.example/%C3%BC"),
            ("http:x", "http://x/"),
            ("https:x", "https://a.example:8443/x"),
            ("http://b%C3%BCcher.example?a b", "http://xn--bcher-kva.example/?a%20b"),
            ("http://0x7f.1/", "http://127.0.0.1/"),
            ("http://[::ffff:127.0.0.1]", "http://[::ffff:127.0.0.1]/"),
            ("http://@b.example/", "http://b.example/"),
        ] {
            let url = Ok(url.to_owned());
            assert_eq!(led(location.as_bytes()), url, "{location:?}");
        }
    }

    #[test]
    fn an_unusable_location_is_an_error_with_its_cause() {
        for (location, cause) in [
            (&b"\xff"[..], "not UTF-8"),
            (b"ftp://b.example/", "neither http nor https"),
            (b"data:text/plain,User-agent:", "neither http nor https"),
            (b"javascript:1", "neither http nor https"),
            (
                b"http://user:secret@b.example/",
                "it contains a user name or a password",
            ),
            (b"http://b.example:0/", "the port is not a number"),
            (b"http://", "empty host"),
            (b"http://a b/", "invalid international domain name"),
        ] {
            let error = led(location).expect_err("it leads nowhere");
            assert!(error.contains(cause), "{location:?}: {error}");
        }
        let error = from("http://a.example").redirected(None).expect_err("no Location");
        assert!(error.to_string().ends_with("the redirect has no Location"), "{error}");
    }

    #[test]
    fn the_error_for_a_location_contains_no_secret() {
        for (location, shown) in [
            (&b"ftp://b.example/\x1b?secret"[..], "b.example/"),
            (b"ftp://b.example/#secret", "b.example/#…"),
            (b"http://user:secret@b.example/x", "…@b.example/x"),
            (b"http:user:sec@secret@b.example?secret", "…@b.example?…"),
            (b"http://user:secret?x@b.example/", "… ("),
            (b"http://user:secret#x@b.example/", "… ("),
            (b"ftp://b.example/x?secret@secret", "ftp://b.example/x?…"),
        ] {
            let error = led(location).expect_err("it leads nowhere");
            assert!(error.contains(shown), "{location:?}: {error}");
            assert!(!error.contains("secret") && !error.contains('\x1b'), "{error}");
        }
    }

    #[test]
    fn the_request_of_a_redirect_matches_the_logged_url() {
        let hop = from("http://a.example:8080")
            .redirected(Some(b"/x?y#z"))
            .expect("it leads somewhere");
        let request = hop
            .request(HeaderValue::from_static("robotgate"), None)
            .expect("a request");
        assert_eq!(request.raw_path(), b"/x?y");
        assert_eq!(request.headers["Host"], "a.example:8080");
        assert_eq!(hop.url(), "http://a.example:8080/x?y");
    }
}
