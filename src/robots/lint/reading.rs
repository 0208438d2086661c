//! Reads each line as Google's parser does, and says where a key is not what its author will have
//! thought.
//!
//! Never keeps a line in mind: groups are `groups`'.

use memchr::memchr;

use super::{
    super::{
        Profile,
        line::{BYTE_ORDER_MARK, content},
        record::{Key, Record, is_space, trim},
    },
    Findings, Lint,
    octets::{self, Disguise},
    quote::quoted,
    spelling::{self, Known},
    swallowed,
};

/// What a line says.
pub(super) enum Said<'a> {
    /// A user-agent, an allow or a disallow.
    Record(Record<'a>),
    /// The URL of a sitemap.
    Sitemap(&'a [u8]),
    /// A comment and nothing else.
    Comment,
    /// Nothing that decides: blank, or a line that is ignored.
    Nothing,
}

/// Reads the lines of one file.
pub(super) struct Reader {
    /// Told of the whole file, so its lines that say nothing are no news.
    disguise: Option<Disguise>,
}

/// A line that is no record.
struct Other<'a> {
    number: u32,
    text: &'a [u8],
}

// === impl Reader ===

impl Reader {
    pub(super) fn new(disguise: Option<Disguise>) -> Self {
        Self { disguise }
    }

    /// Reads a line as it stands in the file.
    pub(super) fn read<'a>(&self, number: u32, raw: &'a [u8], findings: &mut Findings) -> Said<'a> {
        let content = content(raw);
        let record = Record::read(Profile::Google, content);
        if self.disguise.is_some() {
            return record.map_or(Said::Nothing, Said::Record);
        }
        octets::line(number, raw, findings);
        let comment = memchr(b'#', content);
        if let Some(record) = record {
            check_key(number, &record, findings);
            check_hash(number, content, comment, &record, findings);
            swallowed::check(number, record.value, findings);
            return Said::Record(record);
        }
        let text = trim(&content[..comment.unwrap_or(content.len())]);
        match (text, comment) {
            ([] | BYTE_ORDER_MARK, Some(_)) => Said::Comment,
            ([], None) => Said::Nothing,
            _ => Other { number, text }.read(findings),
        }
    }
}

// === impl Other ===

impl<'a> Other<'a> {
    fn read(&self, findings: &mut Findings) -> Said<'a> {
        match memchr(b':', self.text) {
            Some(colon) => self.keyed(trim(&self.text[..colon]), trim(&self.text[colon + 1..]), findings),
            None => self.bare(findings),
        }
    }

    /// With a colon.
    fn keyed(&self, key: &[u8], value: &'a [u8], findings: &mut Findings) -> Said<'a> {
        if spelling::is_sitemap(key) {
            if key.iter().any(|b| is_space(*b)) {
                self.tell_colon(b"Sitemap", findings);
            }
            swallowed::check(self.number, value, findings);
            return Said::Sitemap(value);
        }
        self.tell_key(key, findings);
        Said::Nothing
    }

    /// Without one.
    fn bare(&self, findings: &mut Findings) -> Said<'a> {
        let end = self.text.iter().position(|b| is_space(*b));
        let (first, rest) = self.text.split_at(end.unwrap_or(self.text.len()));
        let rest = trim(rest);
        let two = !rest.is_empty() && !rest.iter().any(|b| is_space(*b));
        if spelling::is_sitemap(first) && two {
            self.tell_colon(b"Sitemap", findings);
            return Said::Sitemap(rest);
        }
        match spelling::find(first) {
            Some(Known::Record(name)) => {
                let message = format!(
                    "This is no record, as `{name}` has no colon, and the line is ignored: write `{name}: …`, with one \
                     value."
                );
                self.add(Lint::LostRecord, message, findings);
            }
            Some(Known::Near(_) | Known::Ignored | Known::Index) if two => self.tell_key(first, findings),
            _ => self.tell_prose(findings),
        }
        Said::Nothing
    }

    fn tell_key(&self, key: &[u8], findings: &mut Findings) {
        let shown = quoted(key);
        match spelling::find(key) {
            // The mark has been told of.
            _ if key.starts_with(BYTE_ORDER_MARK) => {}
            Some(Known::Near(name)) => {
                let message = format!(
                    "The key {shown} is misspelt, and Google ignores the line: write `{name}:`, if that is meant."
                );
                self.add(Lint::MisspeltKey, message, findings);
            }
            Some(Known::Index) => {
                let message = format!(
                    "Google ignores {shown} in a robots.txt: use a robots meta tag or an X-Robots-Tag field, on pages \
                     that are not disallowed."
                );
                self.add(Lint::IndexKey, message, findings);
            }
            Some(Known::Ignored) => {
                let message = format!("Google ignores {shown}, and so does robotgate; other crawlers may heed it.");
                self.add(Lint::IgnoredKey, message, findings);
            }
            Some(Known::Record(_)) => {}
            None if spelling::could_be_key(key) => {
                let message = format!("The key {shown} is not known, and the line is ignored.");
                self.add(Lint::UnknownKey, message, findings);
            }
            None => self.tell_prose(findings),
        }
    }

    fn tell_prose(&self, findings: &mut Findings) {
        let message = "This is no record, and the line is ignored: a comment begins with `#`.";
        self.add(Lint::NotARecord, message, findings);
    }

    fn tell_colon(&self, name: &[u8], findings: &mut Findings) {
        self.add(Lint::MissingColon, no_colon(&quoted(name)), findings);
    }

    fn add(&self, code: Lint, message: impl Into<String>, findings: &mut Findings) {
        findings.add(self.number, code, message);
    }
}

/// What can be said of the key of a record that Google accepts.
fn check_key(number: u32, record: &Record<'_>, findings: &mut Findings) {
    let name = name(record.key);
    let head = trim(&record.text[..record.text.len() - record.value.len()]);
    let Some(key) = head.strip_suffix(b":").map(trim) else {
        findings.add(number, Lint::MissingColon, no_colon(&quoted(head)));
        if !head.eq_ignore_ascii_case(name.as_bytes()) {
            findings.add(number, Lint::AcceptedTypo, typo(head, name));
        }
        return;
    };
    if key.eq_ignore_ascii_case(name.as_bytes()) {
        return;
    }
    let parts_after_name = key
        .get(..name.len())
        .filter(|head| head.eq_ignore_ascii_case(name.as_bytes()))
        .map(|_| &key[name.len()..]);
    if let Some([b' ' | b'\t', ..]) = parts_after_name {
        let message = format!(
            "The colon after `{name}` is missing. The next one ends the key, so the value is {}.",
            quoted(record.value)
        );
        findings.add(number, Lint::MissingColon, message);
    } else {
        findings.add(number, Lint::AcceptedTypo, typo(key, name));
    }
}

/// A `#` in a URL or a name that was pasted with it.
fn check_hash(number: u32, content: &[u8], hash: Option<usize>, record: &Record<'_>, findings: &mut Findings) {
    let Some(hash) = hash else { return };
    let touches = |byte: Option<&u8>| byte.is_some_and(|b| !is_space(*b) && *b != b'#');
    let before = hash.checked_sub(1).and_then(|at| content.get(at));
    if record.value.is_empty() || !touches(before) || !touches(content.get(hash + 1)) {
        return;
    }
    let message = format!(
        "`#` starts a comment, so the value is {}: write `%23` if a `#` is meant, and a space before a comment.",
        quoted(record.value)
    );
    findings.add(number, Lint::HashInValue, message);
}

fn no_colon(key: &str) -> String {
    format!("The colon after {key} is missing. Google takes the white space for one, other parsers may not: add it.")
}

fn typo(key: &[u8], name: &str) -> String {
    format!(
        "Google reads {} as `{name}`, but other parsers may ignore the line: write `{name}`.",
        quoted(key)
    )
}

/// As it should be written.
pub(super) fn name(key: Key) -> &'static str {
    match key {
        Key::UserAgent => "User-agent",
        Key::Rule(crate::robots::RuleKind::Allow) => "Allow",
        Key::Rule(crate::robots::RuleKind::Disallow) => "Disallow",
    }
}
