//! The keys that people write into a robots.txt, and how far a misspelt one is from them.
//!
//! Never says what Google accepts: that is [`super::super::record`]'s.

/// What a key that is no record's is known as.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Known {
    /// A key that has a meaning, spelt right.
    Record(&'static str),
    /// One that nearly is.
    Near(&'static str),
    /// One for what the index shows.
    Index,
    /// One that some crawlers know.
    Ignored,
}

pub(super) fn find(key: &[u8]) -> Option<Known> {
    let is = |name: &&str| key.eq_ignore_ascii_case(name.as_bytes());
    if let Some(name) = NAMES.iter().find(|name| is(name)) {
        return Some(Known::Record(name));
    }
    if IGNORED.iter().any(is) {
        return Some(Known::Ignored);
    }
    if INDEX.iter().any(is) {
        return Some(Known::Index);
    }
    if key.len() > MAX_NEAR {
        return None;
    }
    let letters: Vec<char> = String::from_utf8_lossy(key).to_lowercase().chars().collect();
    let near = |name: &&&str| is_near(&letters, name);
    NAMES.iter().find(near).map(|name| Known::Near(name))
}

/// As in Google's parser, a key need only begin so.
pub(super) fn is_sitemap(key: &[u8]) -> bool {
    let begins = |name: &[u8]| {
        key.get(..name.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(name))
    };
    begins(b"sitemap") || begins(b"site-map")
}

/// Whether `key` is made as keys are, and no piece of prose or markup.
pub(super) fn could_be_key(key: &[u8]) -> bool {
    let of_key = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b' ' | b'.');
    key.first().is_some_and(u8::is_ascii_alphabetic)
        && key.iter().all(of_key)
        && key.split(|b| *b == b' ').filter(|word| !word.is_empty()).count() <= 2
}

/// Whether a slip or two of the finger lie between `letters` and `name`; in a short name one.
fn is_near(letters: &[char], name: &str) -> bool {
    let name: Vec<char> = name.to_lowercase().chars().collect();
    let most = if name.len() > 5 { 2 } else { 1 };
    letters.len().abs_diff(name.len()) <= most && distance(letters, &name) <= most
}

/// How many letters to add, drop, change, or swap with the next (each at most once).
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let swapped = i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y;
            let swap = if swapped { before[j - 1] + 1 } else { usize::MAX };
            let change = last[j] + usize::from(x != y);
            row.push(change.min(last[j + 1] + 1).min(row[j] + 1).min(swap));
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

const NAMES: &[&str] = &["User-agent", "Allow", "Disallow", "Sitemap"];

const IGNORED: &[&str] = &[
    "crawl-delay",
    "crawldelay",
    "request-rate",
    "visit-time",
    "host",
    "clean-param",
    "content-signal",
    "content-usage",
    "comment",
    "cache-delay",
    "robot-version",
    "disallowaitraining",
    "license",
    "llms",
    "llms-txt",
    "llm-content",
];

const INDEX: &[&str] = &["noindex", "nofollow", "noarchive", "nosnippet", "noimageindex"];

/// Longer keys are near to none.
const MAX_NEAR: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_finger_are_near() {
        for (key, expected) in [
            ("disallow", Some(Known::Record("Disallow"))),
            ("Disllow", Some(Known::Near("Disallow"))),
            ("Dsiallow", Some(Known::Near("Disallow"))),
            ("Disalllow", Some(Known::Near("Disallow"))),
            ("Dissallllow", None),
            ("user_agent", Some(Known::Near("User-agent"))),
            ("User\u{2013}agent", Some(Known::Near("User-agent"))),
            ("Useragent", Some(Known::Near("User-agent"))),
            ("Alow", Some(Known::Near("Allow"))),
            ("\u{feff}Allow", Some(Known::Near("Allow"))),
            ("Below", None),
            ("Site map", Some(Known::Near("Sitemap"))),
            ("CRAWL-delay", Some(Known::Ignored)),
            ("Noindex", Some(Known::Index)),
            ("", None),
        ] {
            assert_eq!(find(key.as_bytes()), expected, "{key}");
        }
    }
}
