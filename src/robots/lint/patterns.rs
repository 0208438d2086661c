//! Checks the pattern of a single rule. It never reports that a pattern matches too much: what to keep private is up to
//! the site.

use memchr::memmem;

use super::{
    super::{
        RuleKind,
        entry::can_match,
        escape::{Unit, Units},
        path_of_url,
        record::{begins, is_space},
    },
    Findings, Lint, quoted,
};

pub(super) fn check(number: u32, kind: RuleKind, value: &[u8], findings: &mut Findings) {
    if value.is_empty() {
        return;
    }
    if !can_match(value) {
        let (code, message) = never_matches(value);
        return findings.add(number, code, message);
    }
    if value.iter().any(|b| is_space(*b) || b.is_ascii_control()) {
        let message = "URLs have no white space or control characters, so no crawler requests a path that matches: \
                       write each pattern on its own line, or write `%20` for a space.";
        findings.add(number, Lint::SpaceInPattern, message);
    }
    if value[..value.len() - 1].contains(&b'$') {
        let message = "A `$` means the end of a path only as the last character; here it matches a `$`.";
        findings.add(number, Lint::DollarInside, message);
    }
    if let Some(piece) = REGULAR.iter().find(|piece| memmem::find(value, piece).is_some()) {
        let message = format!(
            "{} looks like a piece of a regular expression, but patterns are not regular expressions: `*` stands for \
             any run of characters, a `$` at the end for the end of the path, and every other character for itself.",
            quoted(piece)
        );
        findings.add(number, Lint::RegularExpression, message);
    }
    let path = value.split(|b| *b == b'?').next().unwrap_or_default();
    if memmem::find(path, b"/../").is_some() || memmem::find(path, b"/./").is_some() {
        let message = "Clients resolve `/../` and `/./` before they send a request, so paths hardly ever contain \
                       them: write the resolved path.";
        findings.add(number, Lint::DotSegment, message);
    }
    check_escapes(number, value, findings);
    if let Some(why) = useless_wildcard(value) {
        let message =
            format!("{why}. Needless characters only make the pattern longer, and of two patterns the longer wins.");
        findings.add(number, Lint::UselessWildcard, message);
    }
    let is_of_the_file = matches!(value, b"/robots.txt" | b"/robots.txt$" | b"/robots.txt*");
    if kind == RuleKind::Disallow && is_of_the_file {
        let message = "Crawlers fetch the robots.txt whatever it says about itself, so this rule has no effect.";
        findings.add(number, Lint::RobotsTxtRule, message);
    }
}

fn never_matches(value: &[u8]) -> (Lint, String) {
    if begins(value, b"http://") || begins(value, b"https://") || begins(value, b"ftp://") {
        let message = format!(
            "Crawlers compare a pattern with the path only, so a whole URL never matches: write {}.",
            quoted(&path_of_url(value))
        );
        (Lint::UrlInRule, message)
    } else if value == b"$" {
        let message = "No path is empty, so `$` alone never matches: write `/$` for the home page.";
        (Lint::NeverMatches, message.to_owned())
    } else {
        let message = format!(
            "Paths begin with `/`, so {} never matches: begin it with `/`, or with `*` if it may stand anywhere in \
             the path.",
            quoted(value)
        );
        (Lint::NoLeadingSlash, message)
    }
}

fn check_escapes(number: u32, value: &[u8], findings: &mut Findings) {
    // Clients do not escape these characters (RFC 3986 §2.3).
    let is_unreserved = |octet: &u8| octet.is_ascii_alphanumeric() || b"-._~".contains(octet);
    let needless = Units(value).find_map(|unit| match unit {
        Unit::Escaped(octet) => Some(octet).filter(is_unreserved),
        Unit::Raw(_) => None,
    });
    if let Some(octet) = needless {
        let char = char::from(octet);
        let message =
            format!("Google compares `%{octet:02X}` as it is written, and clients send `{char}`: write `{char}`.");
        findings.add(number, Lint::NeedlessEscape, message);
    }
    if Units(value).any(|unit| matches!(unit, Unit::Raw(b'%'))) {
        let message = "A `%` starts an escape only if two hexadecimal digits follow: write `%25` for a percent sign.";
        findings.add(number, Lint::BrokenEscape, message);
    }
}

/// Returns why a `*` in `value` is useless. Always `None` for a pattern of only `/`, `*` and `$`, such as `/*`.
fn useless_wildcard(value: &[u8]) -> Option<&'static str> {
    let is_anything = value.iter().all(|b| matches!(b, b'/' | b'*' | b'$'));
    let (open, dollar) = match value {
        [open @ .., b'$'] => (open, true),
        _ => (value, false),
    };
    // The `*` at the end of `/a$*` has an effect: without it, the `$` would mean the end of the path.
    let is_last = open.ends_with(b"*") && !open.ends_with(b"$*");
    if is_anything {
        None
    } else if memmem::find(value, b"**").is_some() {
        Some("Two `*` in a row match what one does")
    } else if is_last && dollar {
        Some("A `*` before the final `$` makes the `$` useless: every path that begins this way matches")
    } else if is_last {
        Some("A pattern matches every path that begins with it, with or without a `*` at the end")
    } else {
        None
    }
}

/// Character sequences that make sense only in a regular expression.
const REGULAR: &[&[u8]] = &[
    b"\\", b"(.*)", b"(?", b"[^", b".*$", b"[a-z", b"[A-Z", b"[0-9", b"[a-f", b"[A-F",
];

#[cfg(test)]
mod tests {
    use super::useless_wildcard;

    #[test]
    fn a_wildcard_that_changes_no_match_is_useless() {
        for (pattern, useless) in [
            ("/a*", true),
            ("/a**$", true),
            ("/a*$", true),
            ("/a***b", true),
            ("/a*b", false),
            ("/*a$", false),
            ("/*", false),
            ("*$", false),
            ("/a$*", false),
            ("/a$*$", false),
        ] {
            assert_eq!(useless_wildcard(pattern.as_bytes()).is_some(), useless, "{pattern}");
        }
    }
}
