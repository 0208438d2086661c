//! Writes JSON of limited length, even for a robots.txt of 500 KiB, and escapes characters that a terminal would
//! interpret or not show. A text that was cut ends in `…`.

use std::{
    borrow::Cow,
    io::{self, Write},
};

use serde::Serialize;
use serde_json::{
    ser::{Formatter, Serializer},
    value::RawValue,
};

use crate::text::is_plain;

/// A list of values that are already serialised.
pub(super) type List = Vec<Box<RawValue>>;

struct Visible;

pub(super) fn to_string(value: &impl Serialize) -> String {
    let mut json = Vec::new();
    // Strings, numbers and nulls can always be serialised, and the result is valid UTF-8.
    let _ = value.serialize(&mut Serializer::with_formatter(&mut json, Visible));
    String::from_utf8(json).unwrap_or_default()
}

/// Returns the first `items`: at most [`MAX_ITEMS`], and no more than fit into [`MAX_BYTES`].
pub(super) fn list<T: Serialize>(items: impl Iterator<Item = T>) -> List {
    let mut left = MAX_BYTES;
    items
        .take(MAX_ITEMS)
        .map_while(|item| {
            let json = to_string(&item);
            left = left.checked_sub(json.len())?;
            RawValue::from_string(json).ok()
        })
        .collect()
}

pub(super) fn cut(text: Cow<'_, str>, max: usize) -> Cow<'_, str> {
    match text.char_indices().nth(max) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => text,
    }
}

// === impl Visible ===

impl Formatter for Visible {
    fn write_string_fragment<W: Write + ?Sized>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut written = 0;
        for (at, character) in fragment.char_indices().filter(|(_, character)| !is_plain(*character)) {
            writer.write_all(&fragment.as_bytes()[written..at])?;
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
            written = at + character.len_utf8();
        }
        writer.write_all(&fragment.as_bytes()[written..])
    }
}

const MAX_ITEMS: usize = 1000;
/// Maximum size of a list in bytes. A report has three such lists, so the whole JSON object stays under 1 MB.
const MAX_BYTES: usize = 200 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_for_terminals_are_escaped_in_json() {
        let text = "é\"\u{1b}[2J\u{7f}\u{9b}31m\u{202e}ツ\u{feff}";
        let json = to_string(&[text]);
        assert_eq!(json, "[\"é\\\"\\u001b[2J\\u007f\\u009b31m\\u202eツ\\ufeff\"]");
        let back: Vec<String> = serde_json::from_str(&json).unwrap();
        assert_eq!(back, [text]);
    }

    #[test]
    fn a_list_is_bounded_in_items_and_in_bytes() {
        assert_eq!(list(0..).len(), MAX_ITEMS);
        let long = "\u{1}".repeat(1000);
        let some = list(std::iter::repeat(&long));
        assert_eq!(some.len(), MAX_BYTES / (6 * 1000 + 2));
        assert_eq!(some[0].get(), to_string(&long));
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        for (text, shown) in [("", ""), ("ツツ", "ツツ"), ("ツツツ", "ツツ…")] {
            assert_eq!(cut(Cow::Borrowed(text), 2), shown);
        }
    }
}
