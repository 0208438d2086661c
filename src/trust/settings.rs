//! Where the proxy is and where its certificate lies, written as shells and programs take them. Pure.

use percent_encoding::percent_decode_str;
use url::Url;

/// What the texts of [`clients`](super::clients) are filled in with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// As given, with a name and secret where there are any.
    proxy: String,
    /// Without them.
    server: String,
    host: String,
    port: String,
    /// The name and secret, decoded, where the address has both.
    user: Option<(String, String)>,
    ca: Ca,
    /// Where files are written: an absolute path that needs no quotes anywhere.
    folder: Option<String>,
    /// `robotgate env` with the options that it was given.
    command: String,
}

/// Where a client finds the authority's certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ca {
    /// At this path.
    At(String),
    /// In the home folder of the reader, under this name.
    Here(&'static str),
}

/// Why an address is none of a proxy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadProxy {
    #[error("{0:?} is not a proxy's address: write http://HOST:PORT")]
    Url(String),
    #[error("{0:?}: write the proxy as http://HOST:PORT, or, for a listener of [proxy.tls], as https://HOST:PORT")]
    Scheme(String),
}

// === impl Settings ===

impl Settings {
    /// # Errors
    /// `proxy` is no `http://` or `https://` URL of a host. `HOST:PORT` alone is taken for `http://`.
    pub fn new(proxy: &str, ca: Ca) -> Result<Self, BadProxy> {
        let bad = || BadProxy::Url(proxy.to_owned());
        let url = match proxy.contains("://") {
            true => Url::parse(proxy),
            false => Url::parse(&format!("http://{proxy}")),
        };
        let url = url.map_err(|_| bad())?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(BadProxy::Scheme(proxy.to_owned()));
        }
        let host = url.host_str().ok_or_else(bad)?;
        let port = url.port_or_known_default().ok_or_else(bad)?;
        let scheme = url.scheme();
        let decoded = |part| percent_decode_str(part).decode_utf8_lossy().into_owned();
        let user = match (url.username(), url.password()) {
            ("", _) => String::new(),
            (user, None) => format!("{user}@"),
            (user, Some(secret)) => format!("{user}:{secret}@"),
        };
        Ok(Self {
            proxy: format!("{scheme}://{user}{host}:{port}"),
            server: format!("{scheme}://{host}:{port}"),
            host: host.to_owned(),
            port: port.to_string(),
            user: url.password().map(|secret| (decoded(url.username()), decoded(secret))),
            ca,
            folder: None,
            command: "robotgate env".to_owned(),
        })
    }

    /// The same where advice to run `robotgate env` once more repeats `options`: words of a shell, each behind a space,
    /// on one line and without a secret.
    #[must_use]
    pub fn with_options(self, options: &str) -> Self {
        Self {
            command: format!("robotgate env{options}"),
            ..self
        }
    }

    /// The same where files are written to a folder, copies of the certificate among them. [`is_plain`] holds of its
    /// path.
    #[must_use]
    pub fn with_folder(self, folder: &str) -> Self {
        Self {
            ca: Ca::At(format!("{folder}/ca.pem")),
            folder: Some(folder.to_owned()),
            ..self
        }
    }

    /// Where files are written.
    pub fn folder(&self) -> Option<&str> {
        self.folder.as_deref()
    }

    /// Whether the proxy's address has a secret.
    pub fn has_secret(&self) -> bool {
        self.user.is_some()
    }

    /// `text` with what stands in braces filled in: for a shell `{proxy}`, `{server}` (the proxy without a secret),
    /// `{host}`, `{port}`, `{ca}`, `{roots}` (for what replaces the system's roots), `{dir}` (where files are
    /// written) and `{env}` (`robotgate env` with its options); between quotation marks, for programs, `{proxy-text}`, `{server-text}`, `{name-text}`,
    /// `{secret-text}`, `{ca-text}` and `{roots-text}`. `{replaces}` is a comment on `{roots}`.
    pub(super) fn fill(&self, text: &str) -> String {
        let (roots, replaces) = match &self.folder {
            Some(folder) => (&Ca::At(format!("{folder}/roots.pem")), HAS_ROOTS),
            None => (&self.ca, REPLACES_ROOTS),
        };
        let user = self.user.as_ref();
        let (name, secret) = user.map_or(("NAME", "SECRET"), |(name, secret)| (name, secret));
        let mut out = text.to_owned();
        for (name, value) in [
            ("{replaces}", replaces.to_owned()),
            ("{name-text}", quoted(name)),
            ("{secret-text}", quoted(secret)),
            ("{proxy}", shell_word(&self.proxy)),
            ("{proxy-text}", quoted(&self.proxy)),
            ("{server}", shell_word(&self.server)),
            ("{server-text}", quoted(&self.server)),
            ("{host}", shell_word(&self.host)),
            ("{port}", self.port.clone()),
            ("{dir}", self.folder.clone().unwrap_or_default()),
            ("{env}", self.command.clone()),
            // Last: a path may hold anything, names in braces too.
            ("{roots-text}", quoted(roots.name())),
            ("{roots}", roots.shell_word()),
            ("{ca-text}", quoted(self.ca.name())),
            ("{ca}", self.ca.shell_word()),
        ] {
            out = out.replace(name, &value);
        }
        out
    }
}

// === impl Ca ===

impl Ca {
    fn name(&self) -> &str {
        match self {
            Ca::At(path) => path,
            Ca::Here(name) => name,
        }
    }

    fn shell_word(&self) -> String {
        match self {
            Ca::At(path) => shell_word(path),
            Ca::Here(name) => format!("\"$HOME\"/{name}"),
        }
    }
}

/// Whether a text means itself in a shell and in every file that is written.
pub fn is_plain(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:@%+,=".contains(&byte);
    !text.is_empty() && text.bytes().all(is_plain)
}

/// `text` as one word of a POSIX shell (XCU §2.2).
pub fn shell_word(text: &str) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// `text` as a string of JSON, and so of JavaScript and Python.
fn quoted(text: &str) -> String {
    // A string makes JSON.
    serde_json::to_string(text).unwrap_or_default()
}

const REPLACES_ROOTS: &str = "\
# It replaces the system's roots. Hosts in [[https.tunnel]] show their own certificates: robotgate env --write joins
# both, or:
#   cat /etc/ssl/certs/ca-certificates.crt {ca} > both.pem
";
const HAS_ROOTS: &str = "# This file has the system's roots and the proxy's authority.\n";

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(proxy: &str, ca: &str, text: &str) -> String {
        let settings = Settings::new(proxy, Ca::At(ca.to_owned()));
        settings.unwrap_or_else(|error| panic!("{error}")).fill(text)
    }

    #[test]
    fn a_path_is_one_word_whatever_is_in_it() {
        for (path, word) in [
            ("/a/ca.pem", "/a/ca.pem"),
            ("/a b/ca.pem", "'/a b/ca.pem'"),
            ("/it's/$(id)", r"'/it'\''s/$(id)'"),
            ("/{ca}", "'/{ca}'"),
            ("", "''"),
        ] {
            assert_eq!(filled("http://a:1", path, "X={ca}"), format!("X={word}"));
        }
        assert_eq!(filled("http://a:1", "/a\"b", "{ca-text}"), r#""/a\"b""#);
    }

    #[test]
    fn a_proxy_is_taken_apart_and_its_secret_left_out() {
        let all = "{proxy} {server} {host} {port}";
        for (proxy, shown) in [
            (
                "http://127.0.0.1:3128",
                "http://127.0.0.1:3128 http://127.0.0.1:3128 127.0.0.1 3128",
            ),
            ("gate:3128", "http://gate:3128 http://gate:3128 gate 3128"),
            ("http://gate/", "http://gate:80 http://gate:80 gate 80"),
            ("https://n:s@gate:1", "https://n:s@gate:1 https://gate:1 gate 1"),
            (
                "http://[::1]:3128",
                "'http://[::1]:3128' 'http://[::1]:3128' '[::1]' 3128",
            ),
        ] {
            assert_eq!(filled(proxy, "x", all), shown, "{proxy}");
        }
        for bad in ["socks5://a:1", "http://", "a b", "ftp://a"] {
            assert!(Settings::new(bad, Ca::Here("x")).is_err(), "{bad}");
        }
    }
}
