//! Parses each line as Google's parser does, and reports keys and values that probably do not mean what their author
//! intended.

use std::collections::HashMap;

use memchr::{memchr, memchr_iter, memmem};
use url::Url;

use super::{
    super::{
        Profile, RuleKind, StatementKind,
        crawl_delay::crawl_delay,
        line::{BYTE_ORDER_MARK, content},
        record::{GroupLine, KeyValue, LineKey, is_space, trim},
    },
    Findings, Lint, octets, patterns, quoted, usage,
};

#[derive(Default)]
pub(super) struct Reader<'a> {
    /// Whether the file is not a robots.txt, but a web page or the like. Most findings about its lines are then left
    /// out.
    pub(super) disguised: bool,
    /// Lines that look like the end of a group but do not end it, such as empty lines.
    pub(super) breaks: Vec<u32>,
    /// Whether a user-agent line has been read.
    named: bool,
    /// The values of the sitemap lines so far, with the number of the first line that has the value.
    sitemaps: HashMap<&'a [u8], u32>,
}

// === impl Reader ===

impl<'a> Reader<'a> {
    pub(super) fn read(&mut self, number: u32, raw: &'a [u8], findings: &mut Findings) {
        let content = content(raw);
        let hash = memchr(b'#', content);
        if !self.disguised {
            octets::line(number, raw, findings);
        }
        if let Some(record) = GroupLine::read(Profile::Google, content) {
            if !self.disguised {
                check_key(number, &record, findings);
                check_hash(number, content, hash, record.value, findings);
                check_swallowed(number, record.value, findings);
            }
            return self.record(number, &record, findings);
        }
        let text = trim(&content[..hash.unwrap_or(content.len())]);
        if hash.is_some() && matches!(text, [] | BYTE_ORDER_MARK) {
            return;
        }
        self.breaks.push(number);
        if !self.disguised && !text.is_empty() {
            self.other(number, text, findings);
        }
    }

    fn record(&mut self, number: u32, record: &GroupLine<'_>, findings: &mut Findings) {
        let LineKey::Rule(kind) = record.key else {
            self.named = true;
            return;
        };
        patterns::check(number, kind, record.value, findings);
        if !self.named {
            let name = name(record.key);
            let message = format!(
                "This `{name}` stands before any user-agent and applies to no bot: put `User-agent: *` or another before it."
            );
            findings.add(number, Lint::RuleBeforeUserAgent, message);
        }
    }

    /// Checks a line, such as a sitemap, that is neither a user-agent line nor a rule nor a comment.
    fn other(&mut self, number: u32, text: &'a [u8], findings: &mut Findings) {
        if text.starts_with(BYTE_ORDER_MARK) {
            // The check in `octets` has reported this line, unless it is only a byte-order mark, which is harmless.
            return;
        }
        let Some(KeyValue { key, value, .. }) = KeyValue::read(Profile::Google, text) else {
            return report_prose(number, text, findings);
        };
        let has_colon = memchr(b':', text).is_some();
        match StatementKind::of_key(Profile::Google, key) {
            Some(StatementKind::Sitemap) => {
                if !has_colon {
                    findings.add(number, Lint::MissingColon, no_colon(b"Sitemap"));
                } else if key.iter().any(|b| is_space(*b)) {
                    findings.add(number, Lint::MissingColon, late_colon("Sitemap", value));
                }
                check_swallowed(number, value, findings);
                self.sitemap(number, value, findings);
            }
            Some(StatementKind::CrawlDelay) => report_crawl_delay(number, value, findings),
            Some(StatementKind::License) => report_ignored(number, key, findings),
            Some(_) if !has_colon => {
                let message = format!(
                    "The colon after {} is missing, so robotgate ignores the line.",
                    quoted(key)
                );
                findings.add(number, Lint::MissingColon, message);
            }
            Some(kind) => {
                if !self.named {
                    let message = format!(
                        "This {} stands before any user-agent and applies to no bot: put `User-agent: *` or another \
                         before it.",
                        quoted(key)
                    );
                    findings.add(number, Lint::RuleBeforeUserAgent, message);
                }
                usage::check(number, kind, value, findings);
            }
            None => report_key(number, key, has_colon, text, findings),
        }
    }

    fn sitemap(&mut self, number: u32, value: &'a [u8], findings: &mut Findings) {
        if !is_absolute(value) {
            let message = format!(
                "A sitemap has to be an absolute URL, with `https://` and the host, but {} is not.",
                quoted(value)
            );
            findings.add(number, Lint::RelativeSitemap, message);
        }
        let first = *self.sitemaps.entry(value).or_insert(number);
        if first != number && !value.is_empty() {
            let message = format!("Line {first} names the same sitemap: remove one.");
            findings.relate(number, first, Lint::DuplicateSitemap, message);
        }
    }
}

/// Finds a second record in the value of the first one, as in `Disallow: /a Disallow: /b`.
pub(super) fn swallowed(value: &[u8]) -> Option<&[u8]> {
    memchr_iter(b':', value).find_map(|colon| {
        // This never goes back beyond the previous colon, so it takes linear time for all colons together.
        let key_end = value[..colon].iter().rposition(|b| !is_space(*b))? + 1;
        let begins_at = |key: &&str| {
            let start = key_end.checked_sub(key.len())?;
            let is_word = start.checked_sub(1).is_none_or(|before| is_space(value[before]));
            (is_word && value[start..key_end].eq_ignore_ascii_case(key.as_bytes())).then_some(start)
        };
        let start = KEYS.iter().find_map(begins_at)?;
        Some(&value[start..])
    })
}

fn check_swallowed(number: u32, value: &[u8], findings: &mut Findings) {
    if let Some(lost) = swallowed(value) {
        let message = format!(
            "A line holds one record, so {} is lost: it becomes part of the value before it. Write it on its own \
             line.",
            quoted(lost)
        );
        findings.add(number, Lint::SwallowedRecord, message);
    }
}

/// Reports a missing colon or a misspelt key in a record that Google accepts nevertheless.
fn check_key(number: u32, record: &GroupLine<'_>, findings: &mut Findings) {
    let name = name(record.key);
    let head = trim(&record.text[..record.text.len() - record.value.len()]);
    let key = head.strip_suffix(b":").map_or(head, trim);
    if key.len() == head.len() {
        findings.add(number, Lint::MissingColon, no_colon(head));
    }
    let rest = key
        .get(..name.len())
        .filter(|start| start.eq_ignore_ascii_case(name.as_bytes()))
        .map(|_| &key[name.len()..]);
    match rest {
        Some([]) => {}
        Some([b' ' | b'\t', ..]) => {
            findings.add(number, Lint::MissingColon, late_colon(name, record.value));
        }
        _ => {
            let message = format!(
                "Google reads {} as `{name}`, but other parsers may ignore the line: write `{name}`.",
                quoted(key)
            );
            findings.add(number, Lint::AcceptedTypo, message);
        }
    }
}

/// Reports a `#` that was probably meant as part of a URL or a name.
fn check_hash(number: u32, content: &[u8], hash: Option<usize>, value: &[u8], findings: &mut Findings) {
    let Some(hash) = hash else { return };
    let touches = |byte: Option<&u8>| byte.is_some_and(|b| !is_space(*b) && *b != b'#');
    let before = hash.checked_sub(1).and_then(|at| content.get(at));
    if value.is_empty() || !touches(before) || !touches(content.get(hash + 1)) {
        return;
    }
    let message = format!(
        "`#` starts a comment, so the value is {}: write `%23` for a `#` in a URL, and put a space before a comment.",
        quoted(value)
    );
    findings.add(number, Lint::HashInValue, message);
}

fn report_key(number: u32, key: &[u8], has_colon: bool, text: &[u8], findings: &mut Findings) {
    let is = |name: &&str| key.eq_ignore_ascii_case(name.as_bytes());
    if IGNORED.iter().any(is) {
        report_ignored(number, key, findings);
    } else if INDEX.iter().any(is) {
        let message = format!(
            "Google ignores {} in a robots.txt: use a robots meta tag or an X-Robots-Tag field, on pages that are not \
             disallowed.",
            quoted(key)
        );
        findings.add(number, Lint::IndexKey, message);
    } else if let Some(name) = near(key) {
        let message = format!(
            "The key {} is misspelt, and Google ignores the line: write `{name}:` if you mean that.",
            quoted(key)
        );
        findings.add(number, Lint::MisspeltKey, message);
    } else if has_colon && could_be_key(key) {
        let message = format!("The key {} is unknown, and crawlers ignore the line.", quoted(key));
        findings.add(number, Lint::UnknownKey, message);
    } else {
        report_prose(number, text, findings);
    }
}

fn report_ignored(number: u32, key: &[u8], findings: &mut Findings) {
    let message = format!(
        "Google ignores {}, and so does robotgate; other crawlers may heed it.",
        quoted(key)
    );
    findings.add(number, Lint::IgnoredKey, message);
}

fn report_crawl_delay(number: u32, value: &[u8], findings: &mut Findings) {
    let message = "Google ignores `Crawl-delay`, and robotgate keeps to it only if its configuration says so \
                   (pace.crawl-delay); other crawlers may heed it.";
    findings.add(number, Lint::IgnoredKey, message);
    if crawl_delay(&String::from_utf8_lossy(value)).is_none() {
        let message = format!(
            "{} is not a number of seconds, so crawlers that heed `Crawl-delay` ignore this line: write a number, like \
             `10` or `0.5`.",
            quoted(value)
        );
        findings.add(number, Lint::CrawlDelayValue, message);
    }
}

fn report_prose(number: u32, text: &[u8], findings: &mut Findings) {
    let first = text.split(|b| is_space(*b)).next().unwrap_or_default();
    let known = KEYS.iter().find(|name| first.eq_ignore_ascii_case(name.as_bytes()));
    match known {
        Some(name) => {
            let message =
                format!("Crawlers ignore this line, because `{name}` has no colon: write `{name}: …`, with one value.");
            findings.add(number, Lint::LostRecord, message);
        }
        None => {
            let message = "Crawlers ignore this line, because it is not `key: value`. A comment begins with `#`.";
            findings.add(number, Lint::NotARecord, message);
        }
    }
}

fn no_colon(key: &[u8]) -> String {
    format!(
        "The colon after {} is missing. Google accepts the space in its place, other parsers might not: add the colon.",
        quoted(key)
    )
}

fn late_colon(name: &str, value: &[u8]) -> String {
    format!(
        "The colon after `{name}` is missing. The next colon ends the key, so the value is {}.",
        quoted(value)
    )
}

/// Returns the known key that `key` is probably meant to be: with at most two typos, or one in a short key.
fn near(key: &[u8]) -> Option<&'static str> {
    if key.len() > MAX_NEAR {
        return None;
    }
    let lowercase = String::from_utf8_lossy(key).to_lowercase();
    let slips = |name: &str| strsim::osa_distance(&lowercase, &name.to_lowercase());
    KEYS.into_iter()
        .find(|name| slips(name) <= if name.len() > 5 { 2 } else { 1 })
}

fn could_be_key(key: &[u8]) -> bool {
    let of_key = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b' ' | b'.');
    key.first().is_some_and(u8::is_ascii_alphabetic)
        && key.iter().all(of_key)
        && key.split(|b| *b == b' ').filter(|word| !word.is_empty()).count() <= 2
}

fn is_absolute(value: &[u8]) -> bool {
    let url = std::str::from_utf8(value).ok().and_then(|text| Url::parse(text).ok());
    // Require `://`: the URL standard accepts `https:host` too, but other parsers do not.
    url.is_some_and(|url| url.has_host()) && memmem::find(value, b"://").is_some()
}

fn name(key: LineKey) -> &'static str {
    match key {
        LineKey::UserAgent => KEYS[0],
        LineKey::Rule(RuleKind::Allow) => KEYS[1],
        LineKey::Rule(RuleKind::Disallow) => KEYS[2],
    }
}

const KEYS: [&str; 4] = ["User-agent", "Allow", "Disallow", "Sitemap"];

/// Keys that some crawlers understand but Google's does not, in addition to those of a [`StatementKind`].
const IGNORED: &[&str] = &[
    "crawldelay",
    "request-rate",
    "visit-time",
    "host",
    "clean-param",
    "comment",
    "cache-delay",
    "robot-version",
    "disallowaitraining",
    "llms",
    "llms-txt",
    "llm-content",
];

/// Keys that were meant to control indexing.
const INDEX: &[&str] = &["noindex", "nofollow", "noarchive", "nosnippet", "noimageindex"];

/// Maximum length in bytes of an unknown key that is checked for typos.
const MAX_NEAR: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_key_is_recognized() {
        for (key, expected) in [
            ("Disllow", Some("Disallow")),
            ("Dsiallow", Some("Disallow")),
            ("Disalllow", Some("Disallow")),
            ("Dissallllow", None),
            ("user_agent", Some("User-agent")),
            ("User\u{2013}agent", Some("User-agent")),
            ("Alow", Some("Allow")),
            ("Below", None),
            ("Site mop", Some("Sitemap")),
            ("", None),
        ] {
            assert_eq!(near(key.as_bytes()), expected, "{key}");
        }
    }

    #[test]
    fn a_record_inside_a_value_is_found_by_its_key_and_colon() {
        for (value, expected) in [
            ("Googlebot Disallow: /", Some("Disallow: /")),
            ("*\tALLOW : /a Disallow: /", Some("ALLOW : /a Disallow: /")),
            ("Disallow: /", Some("Disallow: /")),
            ("/a user-agent: *", Some("user-agent: *")),
            ("/disallow:", None),
            ("a, allow", None),
            ("Disallow /", None),
            (":", None),
            ("  :", None),
            ("https://a.example/", None),
        ] {
            assert_eq!(swallowed(value.as_bytes()), expected.map(str::as_bytes), "{value}");
        }
    }
}
