//! Explains in plain words what is wrong with the certificate of a server or client. It parses the text of rustls'
//! error, because pingora passes on only that text.

use std::net::IpAddr;

/// Explains `error`, the text of rustls after "invalid peer certificate: ". Returns an unknown text unchanged.
pub(crate) fn in_words(error: &str) -> String {
    let words = match error {
        _ if error.starts_with("certificate expired") => {
            return dated("it has expired", "on", error, "not valid after ");
        }
        _ if error.starts_with("certificate not valid yet") => {
            return dated("it is not valid yet", "before", error, "not valid before ");
        }
        _ if error.starts_with("certificate not valid for name") => return of_other_names(error),
        _ if error.contains("extended key usage") => {
            let allows = error.split_once("allows ").map_or("", |(_, allows)| allows);
            return format!("it is not meant for this use (its extended key usage: {allows})");
        }
        "Expired" => "it has expired",
        "NotValidYet" => "it is not valid yet",
        "NotValidForName" => "it is for other names",
        "UnknownIssuer" => {
            "it was issued by an authority that is not trusted (https.extra-roots can name one), or an \
             intermediate certificate is missing"
        }
        "BadSignature" => "its signature is wrong",
        "BadEncoding" => "it cannot be read",
        "Revoked" => "it has been revoked",
        "InvalidPurpose" => "it is not meant for this use",
        _ if error.contains("CaUsedAsEndEntity") => {
            "it is the certificate of an authority, not of a site, as \"openssl req -x509\" makes it; issue a certificate for \
             the site with it, and name the authority in https.extra-roots"
        }
        _ if error.contains("EndEntityUsedAsCa") => "the certificate that issued it does not belong to an authority",
        _ if error.contains("SignatureAlgorithm") => "its signature algorithm is not supported",
        _ if error.contains("UnhandledCriticalExtension") => "it has a critical extension that is not known",
        other => other,
    };
    words.to_owned()
}

/// Appends the date that follows `mark` in `error` (in seconds since 1970), as in `it has expired (on 2020-02-01)`.
fn dated(words: &str, at: &str, error: &str, mark: &str) -> String {
    let seconds = error.split_once(mark).and_then(|(_, rest)| {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit())
            .map_or(rest, |end| &rest[..end]);
        digits.parse().ok()
    });
    match seconds.and_then(|seconds| time::OffsetDateTime::from_unix_timestamp(seconds).ok()) {
        Some(day) => format!("{words} ({at} {})", day.date()),
        None => words.to_owned(),
    }
}

/// Lists the names in a text like `DnsName("a.example"), DnsName("b.example") or IpAddress(192.0.2.1)`.
fn of_other_names(error: &str) -> String {
    let Some((_, names)) = error.split_once("only valid for ") else {
        return "it names no host (robotgate ignores the common name)".to_owned();
    };
    let mut names = names
        .split([',', ' '])
        .filter(|word| !word.is_empty() && *word != "or")
        .map(|name| {
            let (kind, name) = name.split_once('(').unwrap_or(("", name));
            let name = name.trim_matches(['"', ')']);
            match kind == "DnsName" && name.parse::<IpAddr>().is_ok() {
                true => format!("{name} (as a DNS name; an address needs subjectAltName=IP:{name})"),
                false => name.to_owned(),
            }
        });
    let mut words = "it is for other names: ".to_owned();
    let first: Vec<String> = names.by_ref().take(MAX_NAMES).collect();
    words.push_str(&first.join(", "));
    match names.count() {
        0 => {}
        more => words.push_str(&format!(" and {more} more")),
    }
    words
}

/// Maximum number of names in an explanation. A certificate can have thousands.
const MAX_NAMES: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_certificate_fault_is_explained() {
        for (error, words) in [
            (
                "certificate expired: verification time 1795241138 (UNIX), but certificate is not valid after \
                 1580515200 (214725938 seconds ago)",
                "it has expired (on 2020-02-01)",
            ),
            (
                "certificate not valid yet: verification time 1795241138 (UNIX), but certificate is not valid before \
                 4070908800 (2275667662 seconds in future)",
                "it is not valid yet (before 2099-01-01)",
            ),
            ("certificate expired: oddly", "it has expired"),
            ("UnknownIssuer", "it was issued by an authority that is not trusted"),
            (
                "certificate not valid for name \"a.example\"; certificate is only valid for DnsName(\"b.example\")",
                "it is for other names: b.example",
            ),
            (
                "certificate not valid for name \"a.example\"; certificate is only valid for DnsName(\"b.example\"), \
                 DnsName(\"*.c.example\") or IpAddress(192.0.2.1)",
                "it is for other names: b.example, *.c.example, 192.0.2.1",
            ),
            (
                "certificate not valid for name \"192.0.2.1\"; certificate is only valid for DnsName(\"192.0.2.1\")",
                "it is for other names: 192.0.2.1 (as a DNS name; an address needs subjectAltName=IP:192.0.2.1)",
            ),
            (
                "certificate not valid for name \"a.example\"; certificate is not valid for any names (according to \
                 its subjectAltName extension)",
                "it names no host",
            ),
            (
                "certificate does not allow extended key usage for server authentication, allows client authentication",
                "it is not meant for this use (its extended key usage: client authentication)",
            ),
            (
                "Other(OtherError(EndEntityUsedAsCa))",
                "the certificate that issued it does not belong to an authority",
            ),
            ("SomethingNew", "SomethingNew"),
        ] {
            assert!(in_words(error).starts_with(words), "{}", in_words(error));
        }
    }

    #[test]
    fn a_long_list_of_names_is_shortened() {
        let names = "DnsName(\"b.example\"), ".repeat(1000);
        let error =
            format!("certificate not valid for name \"a\"; certificate is only valid for {names}or DnsName(\"c\")");
        assert!(
            in_words(&error).ends_with("b.example and 996 more"),
            "{}",
            in_words(&error)
        );
    }
}
