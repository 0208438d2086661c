//! The proxy's address and the path of its certificate, as shells and programs need them. Does no I/O.

use percent_encoding::percent_decode_str;
use url::Url;

use crate::text::plain;

/// The values that replace the placeholders in the texts of [`clients`](super::clients).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientSettings {
    /// The proxy's URL, which can contain a name and a secret.
    proxy: String,
    /// The proxy's URL without the name and the secret.
    server: String,
    host: String,
    port: String,
    /// The name and the secret in the proxy's URL, percent-decoded.
    user: Option<(String, String)>,
    ca: Ca,
    /// The folder into which `robotgate env --write` writes: an absolute path for which [`is_plain`] is true.
    folder: Option<String>,
    /// `robotgate env` with the options that the user gave.
    command: String,
}

/// Where a client finds the authority's certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ca {
    /// The certificate is in the file at this path.
    At(String),
    /// The certificate is in a file of this name in the home folder of the user who sets up the client.
    InHome(&'static str),
}

/// Why a text is not a valid address of a proxy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadProxy {
    #[error("{0:?} is not the address of a proxy: write http://HOST:PORT")]
    Url(String),
    #[error("{0:?}: write the proxy as http://HOST:PORT, or, for a listener of [proxy.tls], as https://HOST:PORT")]
    Scheme(String),
}

// === impl ClientSettings ===

impl ClientSettings {
    /// Creates settings for a proxy. `HOST:PORT` alone means `http://HOST:PORT`.
    ///
    /// # Errors
    /// Fails if `proxy` is not an `http://` or `https://` URL with a host.
    pub fn new(proxy: &str, ca: Ca) -> Result<Self, BadProxy> {
        // Do not show what is before an `@`: it can contain a secret.
        let shown = || match proxy.rsplit_once('@') {
            Some((_, host)) => format!("…@{host}"),
            None => proxy.to_owned(),
        };
        let bad = || BadProxy::Url(shown());
        let url = match proxy.contains("://") {
            true => Url::parse(proxy),
            false => Url::parse(&format!("http://{proxy}")),
        };
        let url = url.map_err(|_| bad())?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(BadProxy::Scheme(shown()));
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

    /// Sets the options that messages repeat when they tell the user to run `robotgate env` again: shell words, each
    /// after a space, without the secret.
    #[must_use]
    pub fn with_options(self, options: &str) -> Self {
        Self {
            command: format!("robotgate env{options}"),
            ..self
        }
    }

    /// Sets the folder into which files are written. [`is_plain`] must be true for its path.
    #[must_use]
    pub fn with_folder(self, folder: &str) -> Self {
        Self {
            ca: Ca::At(format!("{folder}/ca.pem")),
            folder: Some(folder.to_owned()),
            ..self
        }
    }

    /// Returns the folder into which files are written; `None` if no files are written.
    pub fn folder(&self) -> Option<&str> {
        self.folder.as_deref()
    }

    /// Returns whether the proxy's address contains a secret.
    pub fn has_secret(&self) -> bool {
        self.user.is_some()
    }

    /// Replaces the placeholders in `text`.
    ///
    /// `{roots}` is the file that a client uses instead of the system's root certificates, and `{replaces}` is a shell
    /// comment about that file. Placeholders with `-text` stand for strings in programs, most others for shell words.
    pub(super) fn fill(&self, text: &str) -> String {
        let (roots, replaces) = match &self.folder {
            Some(folder) => (&Ca::At(format!("{folder}/roots.pem")), HAS_ROOTS),
            None => (&self.ca, REPLACES_ROOTS),
        };
        let user = self.user.as_ref();
        let (name, secret) = user.map_or(("NAME", "SECRET"), |(name, secret)| (name, secret));
        // Replace `{replaces}` before the other placeholders, because its text can contain some of them.
        let text = text.replace("{replaces}", replaces);
        let values = [
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
            ("{roots-text}", quoted(roots.name())),
            ("{roots}", roots.shell_word()),
            ("{ca-text}", quoted(self.ca.name())),
            ("{ca}", self.ca.shell_word()),
        ];
        let (mut out, mut rest) = (String::new(), &*text);
        // Replace all of these in one pass, because a value can contain text that looks like a placeholder.
        while let Some(at) = rest.find('{') {
            let (before, from) = rest.split_at(at);
            let (name, value) = values
                .iter()
                .find(|(name, _)| from.starts_with(name))
                .map_or(("{", "{"), |(name, value)| (name, value));
            out.push_str(before);
            out.push_str(value);
            rest = &from[name.len()..];
        }
        out + rest
    }
}

// === impl Ca ===

impl Ca {
    fn name(&self) -> &str {
        match self {
            Ca::At(path) => path,
            Ca::InHome(name) => name,
        }
    }

    fn shell_word(&self) -> String {
        match self {
            Ca::At(path) => shell_word(path),
            Ca::InHome(name) => format!("\"$HOME\"/{name}"),
        }
    }
}

/// Returns whether a text needs no quotes in a shell, nor in any file that `robotgate env --write` writes.
pub fn is_plain(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:@%+,=".contains(&byte);
    !text.is_empty() && text.bytes().all(is_plain)
}

/// Quotes `text` as one word of a POSIX shell (XCU §2.2), if necessary.
pub fn shell_word(text: &str) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Returns a command's option and its value, quoted for a shell, with a space before them.
pub fn shell_option(name: &str, value: &str) -> String {
    // `robotgate env` prints the options in a shell comment, which a line break in a value would end.
    format!(" --{name} {}", shell_word(&plain(value, usize::MAX)))
}

/// Quotes `text` as a JSON string, which JavaScript and Python can also read.
fn quoted(text: &str) -> String {
    // Serialising a string cannot fail.
    serde_json::to_string(text).unwrap_or_default()
}

const REPLACES_ROOTS: &str = "\
# This file replaces the system's roots, but hosts in [[https.tunnel]] show their own certificates. For a file with
# the proxy's authority and the system's roots, use robotgate env --write, or:
#   cat /etc/ssl/certs/ca-certificates.crt {ca} > both.pem
";
const HAS_ROOTS: &str = "# This file has the system's roots and the proxy's authority.\n";

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(proxy: &str, ca: &str, text: &str) -> String {
        let settings = ClientSettings::new(proxy, Ca::At(ca.to_owned()));
        settings.unwrap_or_else(|error| panic!("{error}")).fill(text)
    }

    #[test]
    fn any_path_is_quoted_as_one_shell_word() {
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
    fn a_value_that_looks_like_a_placeholder_stays_as_it_is() {
        let text = "a={roots} b={name-text} c={secret-text} { {other}";
        let filled = filled("http://%7Bproxy%7D:%7Bca%7D@a:1", "/{ca}/{port}", text);
        let path = "'/{ca}/{port}'";
        assert_eq!(filled, format!("a={path} b=\"{{proxy}}\" c=\"{{ca}}\" {{ {{other}}"));
    }

    #[test]
    fn a_proxy_url_is_split_and_its_secret_left_out() {
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
            assert!(ClientSettings::new(bad, Ca::InHome("x")).is_err(), "{bad}");
        }
    }
}
