//! Finds the line, the column and the key of each mistake.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Complaint, Problem, Problems};
use super::text::{SourceText, TextSource};

/// A search for the innermost key or value that encloses a range of bytes.
struct Search<'s> {
    span: &'s Range<usize>,
    here: String,
    /// The smallest enclosing range that was found so far: its width in bytes, and its dotted key.
    best: Option<(usize, String)>,
}

/// Masks what can be a password: the text between the first colon and the last `@`, except slashes and quotes. If the
/// line has the URL of the fleet's server (`is_address`), masks all after the colon, because the `@` may be missing by
/// mistake.
fn without_password(line: &str, is_address: bool) -> String {
    let colon = line.find(':').map(|colon| colon + 1);
    let end = match is_address {
        true => Some(line.len()),
        false => line.rfind('@'),
    };
    let (Some(from), Some(to)) = (colon, end) else {
        return line.to_owned();
    };
    let hide = |(at, c): (usize, char)| {
        if at < from || at >= to || "/\"'".contains(c) {
            c
        } else {
            '*'
        }
    };
    line.char_indices().map(hide).collect()
}

/// Escapes control characters, which could control the terminal.
fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            printable.extend(c.escape_default())
        } else {
            printable.push(c)
        }
    }
    printable
}

// === impl Problems ===

impl Problems {
    pub(super) fn new(source: &SourceText, document: &DeTable<'_>, mut complaints: Vec<Complaint>) -> Self {
        complaints.sort_by_key(|complaint| complaint.span.start);
        let problem = |complaint| Problem::new(source, document, complaint);
        Self(complaints.into_iter().map(problem).collect())
    }
}

// === impl Problem ===

impl Problem {
    fn new(source: &SourceText, document: &DeTable<'_>, complaint: Complaint) -> Self {
        let text = &*source.text;
        let Range { start, end } = complaint.span;
        let start = text.floor_char_boundary(start);
        let part = source.range(start);
        let from = text[part.start..start]
            .rfind('\n')
            .map_or(part.start, |newline| part.start + newline + 1);
        let to = text[start..part.end]
            .find('\n')
            .map_or(part.end, |length| start + length);
        let source_line = text[from..to].trim_end_matches('\r');
        let column = text[from..start].chars().count();
        let shown = source_line.chars().count();
        let marked = text
            .get(start..end.min(to))
            .map_or(1, |marked| marked.trim_end().chars().count());
        let mut key = Search::key(document, &(start..end));
        if let Some(missing) = complaint.missing {
            let dot = if key.is_empty() { "" } else { "." };
            key.extend([dot, missing]);
        }

        let is_address = key == "fleet.url";
        let mut message = without_password(&complaint.message, false);
        if let Some((_, value)) = source_line.split_once('=').filter(|_| is_address) {
            let value = value.trim();
            // A scheme alone is no secret, and the advice in the message has one too.
            if !["redis", "rediss", "unix", ""].contains(&value.trim_end_matches(['/', ':'])) {
                message = message.replace(value, "the URL");
            }
        }
        let source_line = without_password(source_line, is_address);
        let (source_name, line) = match source.source_of(start) {
            TextSource::File(file, line) => (file, line),
            TextSource::Override(name) => (name, 0),
        };
        Self {
            source_name: source_name.clone(),
            line,
            column: column + 1,
            key,
            message: printable(&message),
            source_line: source_line.replace(|c: char| c.is_control() && c != '\t', "\u{fffd}"),
            width: marked.min(shown.saturating_sub(column)).max(1),
        }
    }
}

// === impl Search ===

impl Search<'_> {
    fn key(document: &DeTable<'_>, span: &Range<usize>) -> String {
        let mut search = Search {
            span,
            here: String::new(),
            best: None,
        };
        search.table(document);
        search.best.map(|(_, key)| key).unwrap_or_default()
    }

    fn table(&mut self, table: &DeTable<'_>) {
        let length = self.here.len();
        for (key, value) in table {
            if length > 0 {
                self.here.push('.');
            }
            self.here.push_str(&printable(key.get_ref()));
            self.offer(key.span());
            self.value(value);
            self.here.truncate(length);
        }
    }

    fn value(&mut self, value: &Spanned<DeValue<'_>>) {
        self.offer(value.span());
        match value.get_ref() {
            DeValue::Table(table) => self.table(table),
            DeValue::Array(list) => {
                let length = self.here.len();
                for (index, item) in list.iter().enumerate() {
                    self.here.push_str(&format!("[{index}]"));
                    self.value(item);
                    self.here.truncate(length);
                }
            }
            _ => {}
        }
    }

    /// Keeps `range` if it contains `span` and is not larger than the best range so far. Of two equal ranges, the later
    /// one wins, because its key is deeper: `bot` and `bot[0]` both have the range of the first `[[bot]]` header.
    fn offer(&mut self, range: Range<usize>) {
        // The range 0..0 means that a table is not written in the text. An example is `a` in `[a.b]`.
        let somewhere = range != (0..0);
        let around = range.start <= self.span.start && self.span.end <= range.end;
        if somewhere && around && self.best.as_ref().is_none_or(|(width, _)| range.len() <= *width) {
            self.best = Some((range.len(), self.here.clone()));
        }
    }
}
