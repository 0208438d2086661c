//! What can be said of a rule's pattern without a look at any other rule.
//!
//! Never says that a pattern matches too much: what a site keeps to itself is its own affair.

use super::{
    super::{Profile, RuleKind, escape::of_pattern, path_of_url, record::is_space},
    Findings, Lint,
    groups::Rule,
    quote::quoted,
    shape::Shape,
};

/// Says what is odd about the pattern of `rule`.
pub(super) fn check(rule: &Rule<'_>, findings: &mut Findings) {
    let value = rule.value;
    if value.is_empty() {
        return;
    }
    let mut add = |code, message: String| findings.add(rule.line, code, message);
    let escaped = of_pattern(Profile::Google, value);
    let Some(shape) = Shape::new(&escaped) else {
        let (code, message) = never_matches(value);
        add(code, message);
        return;
    };
    if value.iter().any(|b| is_space(*b) || b.is_ascii_control()) {
        let message = "URLs have no white space or control characters, so no crawler asks for a path that matches: give \
                       each pattern a line of its own, or write `%20` for a space.";
        add(Lint::SpaceInPattern, message.to_owned());
    }
    if value[..value.len() - 1].contains(&b'$') {
        let message = "A `$` is the end of a path only as the last character; here it stands for itself.";
        add(Lint::DollarInside, message.to_owned());
    }
    if let Some(piece) = regular_expression(value) {
        let message = format!(
            "{} looks like a piece of a regular expression, but patterns are none: `*` stands for any run of characters, a \
             `$` at the end for the end of the path, and every other character for itself.",
            quoted(piece)
        );
        add(Lint::RegularExpression, message);
    }
    if has_dot_segment(value) {
        let message = "Clients resolve `/../` and `/./` before they ask, so paths hardly ever have them: write what they \
                       lead to.";
        add(Lint::DotSegment, message.to_owned());
    }
    check_escapes(value, &mut add);
    if rule.kind == RuleKind::Disallow && shape.is_for("/robots.txt") {
        let message = "Crawlers fetch the robots.txt whatever it says of itself: this does not keep them from it.";
        add(Lint::RobotsTxtRule, message.to_owned());
    }
}

/// Why no path matches `value`.
fn never_matches(value: &[u8]) -> (Lint, String) {
    let begins = |scheme: &[u8]| {
        value
            .get(..scheme.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(scheme))
    };
    if begins(b"http://") || begins(b"https://") {
        let message = format!(
            "A pattern is compared with the path alone, so a whole URL never matches: write {}.",
            quoted(&path_of_url(value))
        );
        (Lint::UrlInRule, message)
    } else if value == b"$" {
        let message = "No path is empty, so `$` by itself never matches: write `/$` for the home page.";
        (Lint::NeverMatches, message.to_owned())
    } else {
        let message = format!(
            "Paths begin with `/`, so {} never matches: begin it with `/`, or with `*` where it may stand anywhere.",
            quoted(value)
        );
        (Lint::NoLeadingSlash, message)
    }
}

/// Says once of each kind what is odd about the escapes.
fn check_escapes(value: &[u8], add: &mut impl FnMut(Lint, String)) {
    let mut needless = None;
    let mut broken = None;
    let mut rest = value;
    while let Some(at) = memchr::memchr(b'%', rest) {
        rest = &rest[at..];
        let digit = |at: usize| rest.get(at).and_then(|b| char::from(*b).to_digit(16));
        let width = match (digit(1), digit(2)) {
            (Some(high), Some(low)) => {
                let char = char::from_u32(high << 4 | low).filter(|char| is_unreserved(*char));
                needless = needless.or(char.map(|char| (&rest[..3], char)));
                3
            }
            _ => {
                broken = broken.or(Some(&rest[..rest.len().min(3)]));
                1
            }
        };
        rest = &rest[width..];
    }
    if let Some((escape, char)) = needless {
        let message = format!(
            "Google compares {} as it is written, and clients ask with `{char}`: write `{char}`.",
            quoted(escape)
        );
        add(Lint::NeedlessEscape, message);
    }
    if let Some(piece) = broken {
        let message = format!(
            "{} is no escape, as two hexadecimal digits have to follow a `%`: write `%25` for the sign itself.",
            quoted(piece)
        );
        add(Lint::BrokenEscape, message);
    }
}

/// RFC 3986 §2.3: what clients do not escape.
fn is_unreserved(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '-' | '.' | '_' | '~')
}

/// The first piece that only makes sense in a regular expression.
fn regular_expression(value: &[u8]) -> Option<&[u8]> {
    let find = |piece: &&'static [u8]| memchr::memmem::find(value, piece).map(|at| &value[at..at + piece.len()]);
    let pieces = REGULAR.iter().filter_map(find);
    pieces.chain(character_class(value)).min_by_key(|piece| piece.as_ptr())
}

/// The first `[…]` that is a set of characters, with ranges in it: `[]` and `[name]` are found in
/// queries.
fn character_class(value: &[u8]) -> Option<&[u8]> {
    memchr::memchr_iter(b'[', value).find_map(|open| {
        let mut rest = &value[open + 1..];
        let mut has_range = false;
        loop {
            rest = match rest {
                [from, b'-', to, after @ ..] if is_range(*from, *to) => {
                    has_range = true;
                    after
                }
                [b'_' | b'-' | b'.' | b'%', after @ ..] => after,
                [b']', after @ ..] => return has_range.then(|| &value[open..value.len() - after.len()]),
                _ => return None,
            };
        }
    })
}

/// Whether `from` and `to` are of one kind, in order.
fn is_range(from: u8, to: u8) -> bool {
    let of = |is: fn(&u8) -> bool| is(&from) && is(&to);
    from < to && (of(u8::is_ascii_digit) || of(u8::is_ascii_lowercase) || of(u8::is_ascii_uppercase))
}

fn has_dot_segment(value: &[u8]) -> bool {
    let path = &value[..memchr::memchr(b'?', value).unwrap_or(value.len())];
    [&b"/../"[..], b"/./"]
        .iter()
        .any(|segment| memchr::memmem::find(path, segment).is_some())
}

const REGULAR: &[&[u8]] = &[b"\\", b"(.*)", b"(?", b"[^", b".*$"];
