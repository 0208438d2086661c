//! Reads URLs by the URL standard, to compare with robotgate.

use robotgate::origin::{Host, Origin};
use url::Url;

/// Asserts that a URL belongs to `origin` and has no user information.
pub fn names(url: &Url, origin: &Origin) {
    let host = match url.host() {
        Some(url::Host::Domain(name)) => Host::Name(name.strip_suffix('.').unwrap_or(name).into()),
        Some(url::Host::Ipv4(address)) => Host::Ip(address.into()),
        Some(url::Host::Ipv6(address)) => Host::Ip(address.into()),
        None => panic!("{url} has no host, but {origin}"),
    };
    assert_eq!(host, origin.host, "{url}");
    let scheme = match url.scheme() {
        "ws" => "http",
        "wss" => "https",
        scheme => scheme,
    };
    assert_eq!(scheme, origin.scheme.as_str(), "{url}");
    assert_eq!(url.port_or_known_default(), Some(origin.port), "{url}");
    assert!(url.username().is_empty() && url.password().is_none(), "{url}");
}
