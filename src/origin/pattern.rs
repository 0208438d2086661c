//! A pattern for hosts: a name, a name with all its subdomains, or an IP address, but not a network.

use std::{fmt, net::IpAddr, str::FromStr};

use super::Host;

/// A pattern for hosts. `.example.com` covers the name and all its subdomains, `example.com` only the name itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern {
    /// In lower case: the name in punycode without a leading dot, or the IP address without brackets.
    host: String,
    subdomains: bool,
}

/// The error for an invalid host pattern. The message says what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HostPatternError(String);

// === impl HostPattern ===

impl HostPattern {
    /// Returns whether the pattern covers `host`: an ASCII name (punycode) or an IP address, without a port. Case, a
    /// trailing dot and the brackets of an IPv6 address are ignored.
    pub fn covers(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host);
        let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        if host.eq_ignore_ascii_case(&self.host) {
            return true;
        }
        // Compare bytes, because slicing a `str` panics in the middle of a character.
        let (host, suffix) = (host.as_bytes(), self.host.as_bytes());
        self.subdomains
            && host.len() > suffix.len() + 1
            && host[host.len() - suffix.len() - 1] == b'.'
            && host[host.len() - suffix.len()..].eq_ignore_ascii_case(suffix)
    }

    /// Returns whether the pattern covers `host`, which is already normalized.
    pub fn is_for(&self, host: &Host) -> bool {
        match host {
            Host::Name(name) => self.covers(name),
            Host::Ip(address) => self.address() == Some(*address),
        }
    }

    /// Returns the IP address, if the pattern is one.
    pub fn address(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.subdomains { "." } else { "" }, self.host)
    }
}

impl FromStr for HostPattern {
    type Err = HostPatternError;

    fn from_str(text: &str) -> Result<Self, HostPatternError> {
        let (subdomains, bare) = match text.strip_prefix('.') {
            Some(bare) => (true, bare),
            None => (false, text),
        };
        let wrong = |message| Err(HostPatternError(message));
        let one = |host| Ok(Self { host, subdomains });
        if let Some(below) = text.strip_prefix("*.") {
            return wrong(format!(
                r#""{text}" has a wildcard; write ".{below}" for "{below}" and all hosts below it"#
            ));
        }
        if text.contains('*') {
            return wrong(format!(
                r#""{text}" has a wildcard; write whole names, or ".bank.example" for "bank.example" and all below it"#
            ));
        }
        if bare.contains("//") {
            return wrong(format!(
                r#""{text}" is a URL; write the host alone, like "bank.example""#
            ));
        }
        let shape = r#"write a name like "bank.example", or ".bank.example" for it and all below it"#;
        if let (Ok(IpAddr::V6(address)), false) = (bare.parse(), subdomains) {
            return one(address.to_string());
        }
        match &url::Host::parse(bare) {
            Ok(url::Host::Domain(name)) if let Some(host) = without_root(name) => one(host.to_owned()),
            Ok(url::Host::Ipv4(address)) if !subdomains => one(address.to_string()),
            Ok(url::Host::Ipv6(address)) if !subdomains => one(address.to_string()),
            Err(_) if let Some(host) = without_port(bare) => wrong(format!(
                r#""{text}" has a port, but an entry applies to every port; write it without the port: "{}""#,
                text.replacen(bare, host.trim_matches(['[', ']']), 1)
            )),
            // The URL standard takes a name with a last label of digits for an IPv4 address.
            Err(_) if bare.rsplit('.').next().is_some_and(is_number) => wrong(format!(
                r#""{text}" is not a valid IP address; correct it, or write a name like "bank.example""#
            )),
            Err(_) if bare.contains(':') => wrong(format!(r#""{text}" is not a host; {shape}, without a port"#)),
            _ => wrong(format!(r#""{text}" is not a host; {shape}"#)),
        }
    }
}

/// Returns the name without a final dot, or `None` if a label is empty.
fn without_root(name: &str) -> Option<&str> {
    let name = name.strip_suffix('.').unwrap_or(name);
    (!name.split('.').any(str::is_empty)).then_some(name)
}

fn is_number(label: &str) -> bool {
    !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit())
}

fn without_port(text: &str) -> Option<&str> {
    let (host, port) = text.rsplit_once(':')?;
    let is_port = port.parse::<u16>().is_ok() && url::Host::parse(host).is_ok();
    is_port.then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_final_dot_is_dropped_and_empty_labels_are_refused() {
        for text in ["a.example", "A.example.", "a.example\u{3002}", "a.example%2e"] {
            let pattern: HostPattern = text.parse().expect(text);
            assert!(pattern.covers("a.example") && pattern.covers("a.example."), "{text}");
        }
        for text in ["pay*.corp.example", "*", ".*.corp.example"] {
            let error = text.parse::<HostPattern>().expect_err(text);
            assert!(
                error.to_string().contains("has a wildcard; write whole names"),
                "{error}"
            );
        }
        for (text, advice) in [
            ("127.0.0.300", "not a valid IP address"),
            ("[::1]:8080", "write it without the port: \"::1\""),
            ("127.0.0.2:8080", "write it without the port: \"127.0.0.2\""),
        ] {
            let error = text.parse::<HostPattern>().expect_err(text).to_string();
            assert!(error.contains(advice), "{error}");
        }
        for text in ["a.example..", "..a.example", "a..example", ".", "", "..."] {
            let error = text.parse::<HostPattern>().expect_err(text);
            assert!(
                error.to_string().contains("is not a host; write a name like"),
                "{error}"
            );
        }
    }
}
