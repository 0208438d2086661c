//! Text from outside, made fit for a log line, a terminal and a person: of bounded length, and
//! without characters that move a cursor, hide text or break a line.

use std::{borrow::Cow, fmt::Write as _};

/// `text` with such characters written out, as in `\u{1b}`, and at most about `max` bytes of it. A backslash that could
/// be taken for the beginning of that is written as `\u{5c}`, so that two texts never look the same.
pub fn plain(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max && text.chars().all(is_plain) && !text.contains(ESCAPE) {
        return Cow::Borrowed(text);
    }
    escaped(text, max, true)
}

/// As [`plain`], for a message some of whose parts are plain already: their backslashes stay as they are, so that no text
/// is escaped twice.
pub fn plain_message(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max && text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    escaped(text, max, false)
}

fn escaped(text: &str, max: usize, backslashes: bool) -> Cow<'_, str> {
    let mut out = String::with_capacity(text.len().min(max) + 3);
    for (at, character) in text.char_indices() {
        if out.len() >= max {
            out.push('…');
            break;
        }
        if is_plain(character) && !(backslashes && text[at..].starts_with(ESCAPE)) {
            out.push(character);
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "{}", character.escape_unicode());
        }
    }
    Cow::Owned(out)
}

/// The lines of `text`, each [`plain`] and those behind the first after `indent`. Tabs stay, so that what points at a place
/// in the line above stands right.
pub fn plain_lines(text: &str, indent: &str) -> String {
    let line = |line: &str| {
        let cells: Vec<_> = line.split('\t').map(|cell| escaped(cell, usize::MAX, false)).collect();
        cells.join("\t")
    };
    let lines: Vec<_> = text.split('\n').map(line).collect();
    lines.join(&format!("\n{indent}"))
}

/// Not: controls, spaces other than the usual one, line and paragraph separators, marks that turn the direction of
/// text, and what shows as nothing (Unicode's `Default_Ignorable_Code_Point` and blank letters).
pub(crate) fn is_plain(character: char) -> bool {
    !character.is_control()
        && !matches!(
            character,
            '\u{a0}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{1680}' | '\u{17b4}' | '\u{17b5}'
                | '\u{180b}'..='\u{180f}' | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}'
                | '\u{2800}' | '\u{3000}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
        )
}

/// How a character begins that is written out.
const ESCAPE: &str = "\\u{";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_lines() {
        assert_eq!(plain_lines("a\r\n\tb\u{1b}\n\t^", "  "), "a\\u{d}\n  \tb\\u{1b}\n  \t^");
    }

    #[test]
    fn what_could_mislead_a_reader_is_written_out() {
        for (text, shown) in [
            ("Disallow: /é/ツ", "Disallow: /é/ツ"),
            ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
            ("a\nb\tc", "a\\u{a}b\\u{9}c"),
            ("a\u{2028}b\u{85}c\u{7f}", "a\\u{2028}b\\u{85}c\\u{7f}"),
            ("a\u{202e}b", "a\\u{202e}b"),
            ("a\u{61c}b\u{3164}", "a\\u{61c}b\\u{3164}"),
            ("a\u{a0}b\u{e0041}", "a\\u{a0}b\\u{e0041}"),
            ("a\\u{202e}b", "a\\u{5c}u{202e}b"),
            ("a\\u{5c}u{202e}b", "a\\u{5c}u{5c}u{202e}b"),
            ("C:\\users\\{1}", "C:\\users\\{1}"),
        ] {
            assert_eq!(plain(text, 100), shown, "{text:?}");
            assert_eq!(
                plain_message(&plain(text, 100), 100),
                shown,
                "{text:?} is not escaped twice"
            );
        }
    }

    #[test]
    fn a_cut_shows_and_never_splits_a_character() {
        assert_eq!(plain("0123456789abc", 10), "0123456789…");
        assert_eq!(plain("ツツツ", 4), "ツツ…");
    }
}
