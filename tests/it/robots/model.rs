//! A second parser of robots.txt, which is simple and slow. For each question it parses the file again, byte by byte,
//! and tries every match of a `*`.
//!
//! It shares no code with the engine, so the same mistake is unlikely in both. Each profile has its own
//! [`Interpretation`]; Google's is in this file.

/// How a profile interprets lines, patterns and paths.
pub struct Interpretation {
    /// Returns the meaning of a line's key, and where the key ends. The line must have no comment and no surrounding
    /// white space.
    pub key: fn(&[u8]) -> Option<(Key, usize)>,
    /// Converts a pattern to the form in which it is compared.
    pub pattern: fn(&[u8]) -> Vec<u8>,
    /// Converts a path to the form in which it is compared.
    pub path: fn(&[u8]) -> Vec<u8>,
    /// Whether an `Allow` for an index page also allows its directory.
    pub index_pages: bool,
}

/// The meaning of a key.
pub enum Key {
    Agent,
    Allow,
    Disallow,
}

/// Returns whether `agent` may fetch `url` in Google's profile, and the line that decides (0 if no rule does).
pub fn decide(body: &[u8], agent: &str, url: &[u8]) -> (bool, u32) {
    GOOGLE.decide(body, agent, url)
}

// === impl Interpretation ===

impl Interpretation {
    /// Returns whether `agent` may fetch `url`, and the line that decides (0 if no rule does).
    pub fn decide(&self, body: &[u8], agent: &str, url: &[u8]) -> (bool, u32) {
        let path = (self.path)(&path(url));
        let records = self.records(body);
        let named = Name::Token(agent.to_ascii_lowercase());
        let rules = rules_for(&records, &named).or_else(|| rules_for(&records, &Name::Star));
        let mut best: Option<(usize, bool, u32)> = None;
        for (line, allow, pattern) in rules.unwrap_or_default() {
            let Some(weight) = self.weight(allow, &pattern, &path) else {
                continue;
            };
            if best.is_none_or(|(most, allowed, _)| weight > most || (weight == most && allow && !allowed)) {
                best = Some((weight, allow, line));
            }
        }
        best.map_or((true, 0), |(weight, allow, line)| (allow || weight == 0, line))
    }

    fn records(&self, body: &[u8]) -> Vec<Record> {
        let numbered = (1..).zip(lines(body));
        numbered
            .filter_map(|(number, line)| self.record(number, line))
            .collect()
    }

    fn record(&self, number: u32, mut line: Vec<u8>) -> Option<Record> {
        line.truncate(LONGEST_LINE);
        let end = line.iter().position(|b| *b == 0 || *b == b'#');
        line.truncate(end.unwrap_or(usize::MAX));
        let line = trim(&line);
        let (key, end) = (self.key)(line)?;
        let value = trim(&line[end + 1..]);
        Some(match key {
            Key::Agent => Record::Agent(name(value)),
            Key::Allow => Record::Rule((number, true, (self.pattern)(value))),
            Key::Disallow => Record::Rule((number, false, (self.pattern)(value))),
        })
    }

    fn weight(&self, allow: bool, pattern: &[u8], path: &[u8]) -> Option<usize> {
        if matches(pattern, path) {
            return Some(pattern.len());
        }
        let slash = pattern.iter().rposition(|b| *b == b'/')?;
        if !self.index_pages || !allow || !pattern[slash..].starts_with(b"/index.htm") {
            return None;
        }
        let directory = [&pattern[..=slash], b"$"].concat();
        matches(&directory, path).then_some(directory.len())
    }
}

/// Maximum number of bytes of a line that are used.
pub const LONGEST_LINE: usize = 16_663;

const GOOGLE: Interpretation = Interpretation {
    key: lenient_key,
    pattern: escape,
    path: <[u8]>::to_vec,
    index_pages: true,
};

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Name {
    Star,
    Token(String),
}

#[derive(Clone, Debug)]
enum Record {
    Agent(Name),
    Rule(Rule),
}

/// A rule: its line, whether it allows, and its pattern.
type Rule = (u32, bool, Vec<u8>);

/// Returns the rules of all groups for `wanted`, in file order; `None` if there is no group.
fn rules_for(records: &[Record], wanted: &Name) -> Option<Vec<Rule>> {
    let mut found = None;
    let (mut ours, mut after_rule) = (false, true);
    for record in records {
        match record {
            Record::Agent(name) => {
                ours = name == wanted || (ours && !after_rule);
                after_rule = false;
                if ours {
                    found.get_or_insert_with(Vec::new);
                }
            }
            Record::Rule(rule) => {
                after_rule = true;
                if let (true, Some(rules)) = (ours, &mut found) {
                    rules.push(rule.clone());
                }
            }
        }
    }
    found
}

/// Returns the lines of a file at full length.
pub fn lines(mut body: &[u8]) -> Vec<Vec<u8>> {
    for mark in [0xEF, 0xBB, 0xBF] {
        match body {
            [first, rest @ ..] if *first == mark => body = rest,
            _ => break,
        }
    }
    let mut lines = vec![Vec::new()];
    let mut after_cr = false;
    for &byte in body {
        match byte {
            b'\n' if after_cr => {}
            b'\n' | b'\r' => lines.push(Vec::new()),
            _ => lines.last_mut().expect("there is one").push(byte),
        }
        after_cr = byte == b'\r';
    }
    lines
}

/// Accepts a missing colon and the usual typos.
pub fn lenient_key(line: &[u8]) -> Option<(Key, usize)> {
    let at = match line.iter().position(|b| *b == b':') {
        Some(colon) => colon,
        None => {
            let words = line.split(|b| *b == b' ' || *b == b'\t');
            if words.filter(|word| !word.is_empty()).count() != 2 {
                return None;
            }
            line.iter().position(|b| *b == b' ' || *b == b'\t')?
        }
    };
    let key = String::from_utf8_lossy(trim(&line[..at])).to_ascii_lowercase();
    let is = |names: &[&str]| names.iter().any(|name| key.starts_with(name));
    if is(&["user-agent", "useragent", "user agent"]) {
        Some((Key::Agent, at))
    } else if is(&["allow"]) {
        Some((Key::Allow, at))
    } else if is(&["disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"]) {
        Some((Key::Disallow, at))
    } else {
        None
    }
}

pub fn name(value: &[u8]) -> Name {
    if value == b"*" || (value.len() > 1 && value[0] == b'*' && is_space(value[1])) {
        return Name::Star;
    }
    let token = value
        .iter()
        .take_while(|b| b.is_ascii_alphabetic() || b"-_".contains(b));
    Name::Token(token.map(|b| b.to_ascii_lowercase() as char).collect())
}

pub fn escape(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < value.len() {
        let hex = |n: usize| value.get(at + n).is_some_and(u8::is_ascii_hexdigit);
        if value[at] == b'%' && hex(1) && hex(2) {
            out.extend(value[at..at + 3].to_ascii_uppercase());
            at += 3;
        } else if value[at] >= 0x80 {
            out.extend(format!("%{:02X}", value[at]).bytes());
            at += 1;
        } else {
            out.push(value[at]);
            at += 1;
        }
    }
    out
}

/// Returns whether the pattern matches `path`. Tracks which prefixes of `path` the pattern can match, one pattern byte
/// at a time.
pub fn matches(pattern: &[u8], path: &[u8]) -> bool {
    let mut reached = vec![false; path.len() + 1];
    reached[0] = true;
    for (at, byte) in pattern.iter().enumerate() {
        match byte {
            b'$' if at + 1 == pattern.len() => return reached[path.len()],
            b'*' => {
                for end in 1..reached.len() {
                    reached[end] |= reached[end - 1];
                }
            }
            _ => {
                for end in (1..reached.len()).rev() {
                    reached[end] = reached[end - 1] && path[end - 1] == *byte;
                }
                reached[0] = false;
            }
        }
    }
    reached.contains(&true)
}

pub fn path(url: &[u8]) -> Vec<u8> {
    let url = if url.starts_with(b"//") { &url[2..] } else { url };
    let starts = |at: &usize| b"/?;".contains(&url[*at]);
    let scheme = (0..url.len()).find(|at| url[*at..].starts_with(b"://"));
    let first = (0..url.len()).find(starts);
    let from = match (scheme, first) {
        (Some(scheme), Some(first)) if scheme < first => scheme + 3,
        _ => 0,
    };
    let hash = url.iter().position(|b| *b == b'#').unwrap_or(url.len());
    let Some(start) = (from..url.len()).find(starts).filter(|start| *start < hash) else {
        return b"/".to_vec();
    };
    let mut path = url[start..hash].to_vec();
    if path[0] != b'/' {
        path.insert(0, b'/');
    }
    let nul = path.iter().position(|b| *b == 0);
    path.truncate(nul.unwrap_or(usize::MAX));
    path
}

pub fn trim(mut bytes: &[u8]) -> &[u8] {
    while bytes.first().is_some_and(|b| is_space(*b)) {
        bytes = &bytes[1..];
    }
    while bytes.last().is_some_and(|b| is_space(*b)) {
        bytes = &bytes[..bytes.len() - 1];
    }
    bytes
}

pub fn is_space(byte: u8) -> bool {
    b" \t\n\x0b\x0c\r".contains(&byte)
}
