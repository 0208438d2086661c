//! Where the proxy is and where its certificate lies, written as shells and programs take them. Pure.

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
    ca: Ca,
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
    #[error("{0:?} is no proxy's address: write it as http://HOST:PORT")]
    Url(String),
    #[error("{0:?}: a proxy is named by http:// or, where [proxy.tls] listens, by https://")]
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
            ca,
        })
    }

    /// `text` with what stands in braces filled in: for a shell `{proxy}`, `{server}` (the proxy without a secret),
    /// `{host}`, `{port}` and `{ca}`; between quotation marks, for programs, `{proxy-text}`, `{server-text}` and
    /// `{ca-text}`.
    pub(super) fn fill(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for (name, value) in [
            ("{proxy}", word(&self.proxy)),
            ("{proxy-text}", quoted(&self.proxy)),
            ("{server}", word(&self.server)),
            ("{server-text}", quoted(&self.server)),
            ("{host}", word(&self.host)),
            ("{port}", self.port.clone()),
            // Last: a path may hold anything, names in braces too.
            ("{ca-text}", quoted(self.ca.name())),
            ("{ca}", self.ca.word()),
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

    fn word(&self) -> String {
        match self {
            Ca::At(path) => word(path),
            Ca::Here(name) => format!("\"$HOME\"/{name}"),
        }
    }
}

/// `text` as one word of a POSIX shell (XCU §2.2).
fn word(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:@%+,=".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// `text` as a string of JSON, and so of JavaScript and Python.
fn quoted(text: &str) -> String {
    // A string makes JSON.
    serde_json::to_string(text).unwrap_or_default()
}

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
