//! A second parser of `Content-Usage` and `Content-Signal`, which is simple and slow. It has its own parser of
//! structured dictionaries, and shares no code with the engine.

use std::collections::BTreeMap;

use super::model::{Key, LONGEST_LINE, Name, escape, lenient_key, lines, matches, name, path, trim};

/// How an agent may use the content of a URL, according to a robots.txt.
#[derive(Debug, Default, PartialEq)]
pub struct Said {
    /// For each label, whether the file allows the use, or `None` if it does not say.
    pub usage: BTreeMap<&'static str, Option<bool>>,
    pub usage_lines: Vec<u32>,
    pub signals: BTreeMap<&'static str, Option<bool>>,
}

enum Line {
    Usage(u32, Vec<u8>),
    Signal(Vec<u8>),
}

/// Returns what the file says about the use of a URL's content, in Google's profile. Does not check whether the agent
/// may fetch the URL.
pub fn read(body: &[u8], agent: &str, url: &[u8]) -> Said {
    let named = Name::Token(agent.to_ascii_lowercase());
    let wanted = match is_named(body, &named) {
        true => named,
        false => Name::Star,
    };
    let (mut usage, mut signals) = (Vec::new(), Vec::new());
    let path = path(url);
    for line in lines_for(body, &wanted) {
        match line {
            Line::Usage(number, value) => {
                let (pattern, value) = split(&value);
                let pattern = escape(&pattern);
                if matches(&pattern, &path) {
                    usage.push((pattern.len(), number, dictionary(&value).unwrap_or_default()));
                }
            }
            Line::Signal(value) => signals.push(value),
        }
    }
    let longest = usage.iter().map(|(length, ..)| *length).max();
    usage.retain(|(length, ..)| Some(*length) == longest);
    let label = |label: &'static str| {
        let values: Vec<_> = usage.iter().filter_map(|(.., values)| values.get(label)).collect();
        let has = |token: &str| values.iter().any(|value| **value == Some(token.to_owned()));
        (
            label,
            if has("n") {
                Some(false)
            } else {
                has("y").then_some(true)
            },
        )
    };
    Said {
        usage: ["train-ai", "search"].map(label).into(),
        usage_lines: usage.iter().map(|(_, number, _)| *number).collect(),
        signals: ["search", "ai-input", "ai-train"]
            .map(|label| (label, signal(&signals, label)))
            .into(),
    }
}

fn is_named(body: &[u8], wanted: &Name) -> bool {
    lines(body)
        .iter()
        .any(|line| agent(&content(line)).as_ref() == Some(wanted))
}

fn lines_for(body: &[u8], wanted: &Name) -> Vec<Line> {
    let (mut found, mut ours, mut ended) = (Vec::new(), false, true);
    for (number, line) in (1..).zip(lines(body)) {
        let line = content(&line);
        if let Some(name) = agent(&line) {
            ours = name == *wanted || (ours && !ended);
            ended = false;
        } else if lenient_key(&line).is_some() {
            ended = true;
        } else if let Some(colon) = line.iter().position(|byte| *byte == b':') {
            let value = trim(&line[colon + 1..]).to_vec();
            let said = match &*trim(&line[..colon]).to_ascii_lowercase() {
                b"content-usage" => Line::Usage(number, value),
                b"content-signal" => Line::Signal(value),
                _ => continue,
            };
            ended = true;
            found.extend(ours.then_some(said));
        }
    }
    found
}

fn agent(line: &[u8]) -> Option<Name> {
    match lenient_key(line)? {
        (Key::Agent, at) => Some(name(trim(&line[at + 1..]))),
        _ => None,
    }
}

/// Returns a line without its comment and surrounding white space.
fn content(line: &[u8]) -> Vec<u8> {
    let line = &line[..line.len().min(LONGEST_LINE)];
    let end = line.iter().position(|byte| *byte == 0 || *byte == b'#');
    trim(&line[..end.unwrap_or(line.len())]).to_vec()
}

fn split(value: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let end = value
        .iter()
        .position(|byte| b" \t".contains(byte))
        .unwrap_or(value.len());
    match value.first() {
        Some(b'/') => (value[..end].to_vec(), trim(&value[end..]).to_vec()),
        _ => (Vec::new(), value.to_vec()),
    }
}

fn signal(lines: &[Vec<u8>], label: &str) -> Option<bool> {
    let text = lines.iter().map(|line| String::from_utf8_lossy(line).to_lowercase());
    let text = text.collect::<Vec<_>>().join(",");
    let says = |value: &str| {
        let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
        pairs.into_iter().any(|(key, said)| {
            let bare = |text: &str| text.trim_matches(|c| " \t\n\u{b}\u{c}\r".contains(c)).to_owned();
            bare(key) == label && bare(said) == value
        })
    };
    if says("no") {
        Some(false)
    } else {
        says("yes").then_some(true)
    }
}

/// Parses a dictionary (RFC 9651 §4.2.2). Returns the token for each key, or `None` for a key whose value is not a
/// token. Returns `None` if the dictionary has an error.
fn dictionary(value: &[u8]) -> Option<BTreeMap<String, Option<String>>> {
    let text = String::from_utf8(value.to_vec()).ok().filter(|text| text.is_ascii())?;
    let mut rest = Rest(text.trim_matches(' ').chars().collect::<Vec<_>>());
    let mut found = BTreeMap::new();
    while !rest.0.is_empty() {
        let key = rest.key()?;
        let token = match rest.next_if("=") {
            true => rest.item_or_list()?,
            false => None,
        };
        rest.parameters()?;
        found.insert(key, token);
        rest.skip(" \t");
        if rest.0.is_empty() {
            break;
        }
        if !rest.next_if(",") {
            return None;
        }
        rest.skip(" \t");
        if rest.0.is_empty() {
            return None;
        }
    }
    Some(found)
}

struct Rest(Vec<char>);

// === impl Rest ===

impl Rest {
    fn next_if(&mut self, any: &str) -> bool {
        let is = self.0.first().is_some_and(|next| any.contains(*next));
        if is {
            self.0.remove(0);
        }
        is
    }

    fn skip(&mut self, any: &str) {
        while self.next_if(any) {}
    }

    fn take(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let length = self.0.iter().take_while(|next| wanted(**next)).count();
        self.0.drain(..length).collect()
    }

    fn key(&mut self) -> Option<String> {
        let starts = self
            .0
            .first()
            .is_some_and(|next| next.is_ascii_lowercase() || *next == '*');
        starts.then(|| self.take(|next| next.is_ascii_lowercase() || next.is_ascii_digit() || "_-.*".contains(next)))
    }

    fn parameters(&mut self) -> Option<()> {
        while self.next_if(";") {
            self.skip(" ");
            self.key()?;
            if self.next_if("=") {
                self.item()?;
            }
        }
        Some(())
    }

    fn item_or_list(&mut self) -> Option<Option<String>> {
        if !self.next_if("(") {
            return self.item();
        }
        loop {
            self.skip(" ");
            if self.next_if(")") {
                return Some(None);
            }
            self.item()?;
            self.parameters()?;
            if !matches!(self.0.first()?, ' ' | ')') {
                return None;
            }
        }
    }

    /// Parses an item. Returns its token, `Some(None)` if it is not a token, and `None` if there is an error.
    fn item(&mut self) -> Option<Option<String>> {
        let is_token = |next: char| next.is_ascii_alphanumeric() || ":/!#$%&'*+-.^_`|~".contains(next);
        match *self.0.first()? {
            '?' => {
                self.0.remove(0);
                self.next_if("01").then_some(None)
            }
            '"' => {
                self.0.remove(0);
                loop {
                    match *self.0.first()? {
                        '"' => {
                            self.0.remove(0);
                            return Some(None);
                        }
                        '\\' => {
                            self.0.remove(0);
                            if !self.next_if("\"\\") {
                                return None;
                            }
                        }
                        ' '..='~' => drop(self.0.remove(0)),
                        _ => return None,
                    }
                }
            }
            '-' | '0'..='9' => {
                self.next_if("-");
                let whole = self.take(|next| next.is_ascii_digit());
                let fraction = self.next_if(".").then(|| self.take(|next| next.is_ascii_digit()));
                match fraction {
                    None => (1..=15).contains(&whole.len()).then_some(None),
                    Some(fraction) => {
                        let fits = (1..=12).contains(&whole.len()) && (1..=3).contains(&fraction.len());
                        fits.then_some(None)
                    }
                }
            }
            next if next.is_ascii_alphabetic() || next == '*' => Some(Some(self.take(is_token))),
            // The generated files contain no byte sequences, dates or display strings.
            _ => None,
        }
    }
}
