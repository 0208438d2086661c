//! Determines the width of a terminal and fits text into it.

use std::{borrow::Cow, io, os::fd::AsFd};

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::text::plain;

/// Returns the width of the terminal on standard output; without a terminal, the value of `COLUMNS`, or else 100. The
/// result is between 40 and 200.
pub(crate) fn columns() -> usize {
    columns_of(io::stdout())
}

pub(crate) fn columns_of(output: impl AsFd) -> usize {
    let terminal = rustix::termios::tcgetwinsize(output).ok();
    let columns = terminal
        .map(|size| usize::from(size.ws_col))
        .filter(|columns| *columns > 0);
    let wished = || std::env::var("COLUMNS").ok()?.parse().ok();
    columns.or_else(wished).unwrap_or(100).clamp(40, 200)
}

/// Escapes `text` for a terminal and truncates it to `columns`.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    // `plain` limits bytes, not columns. Four bytes for each column are enough for nearly every text.
    cut_end(&plain(text, 4 * columns), columns).into_owned()
}

/// Cuts off the end of `text` so that it fits into `columns`. Escapes nothing.
pub(crate) fn cut_end(text: &str, columns: usize) -> Cow<'_, str> {
    cut_from(text, columns, 0)
}

/// Removes the middle of `text` so that it fits into `columns`. This is for texts whose end matters, such as URLs.
/// Escapes nothing.
pub(crate) fn cut_middle(text: &str, columns: usize) -> Cow<'_, str> {
    cut_from(text, columns, columns.saturating_sub(1) / 3)
}

/// If `text` is wider than `columns`, replaces a part of it by `…`, but keeps its last `tail` columns.
fn cut_from(text: &str, columns: usize, tail: usize) -> Cow<'_, str> {
    if text.width() <= columns {
        return Cow::Borrowed(text);
    }
    let head = &text[..bytes_of(text.chars(), columns.saturating_sub(1 + tail))];
    let tail = &text[text.len() - bytes_of(text.chars().rev(), tail)..];
    Cow::Owned(format!("{head}…{tail}"))
}

/// Returns the length in bytes of the longest prefix of `characters` that fits into `columns`.
fn bytes_of(characters: impl Iterator<Item = char>, columns: usize) -> usize {
    let mut left = columns;
    let fits = |character: &char| {
        let width = character.width().unwrap_or(0);
        let fits = width <= left;
        left = left.saturating_sub(width);
        fits
    };
    characters.take_while(fits).map(char::len_utf8).sum()
}

/// Wraps `text` between words, with `indent` spaces before all lines but the first. Shortens long URLs in the middle;
/// other long words stay whole. Escapes nothing.
pub(crate) fn filled(text: &str, columns: usize, indent: usize) -> String {
    let mut out = String::with_capacity(text.len());
    let mut used = 0;
    for (number, word) in text.split(' ').enumerate() {
        let is_url = word.contains("://");
        let word = if is_url {
            cut_middle(word, columns.saturating_sub(indent))
        } else {
            word.into()
        };
        let width = word.width();
        if number == 0 {
        } else if used + 1 + width > columns && used > indent {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
            used = indent;
        } else {
            out.push(' ');
            used += 1;
        }
        out.push_str(&word);
        used += width;
    }
    out
}

pub(crate) fn widest<'t>(texts: impl IntoIterator<Item = &'t str>) -> usize {
    texts.into_iter().map(|text| text.width()).max().unwrap_or(0)
}

pub(crate) fn padded(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(text.width());
    format!("{text}{:missing$}", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_to_the_number_of_columns() {
        for (text, columns, shown) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("ツツツ", 6, "ツツツ"),
            ("ツツツ", 5, "ツツ…"),
            ("aツツ", 4, "aツ…"),
            ("ツツツ", 4, "ツ…"),
            ("e\u{301}e\u{301}", 2, "e\u{301}e\u{301}"),
            ("a\u{1b}b", 4, "a\\u…"),
            ("𝒳𝒳𝒳𝒳𝒳", 4, "𝒳𝒳𝒳…"),
        ] {
            assert_eq!(cut(text, columns), shown);
        }
    }

    #[test]
    fn a_url_keeps_its_beginning_and_its_end() {
        let url = "https://a.example/one/two/three.html";
        for (text, columns, shown) in [
            (url, 36, url),
            (url, 35, "https://a.example/one/t…/three.html"),
            (url, 10, "https:…tml"),
            ("ツツツツツツ", 8, "ツツ…ツ"),
            ("ab", 1, "…"),
        ] {
            assert_eq!(cut_middle(text, columns), shown);
        }
    }

    #[test]
    fn lines_are_wrapped_between_words() {
        for (text, columns, shown) in [
            ("one two three", 13, "one two three"),
            ("one two three", 12, "one two\n  three"),
            ("one two three", 7, "one two\n  three"),
            ("a-word-that-is-long two", 8, "a-word-that-is-long\n  two"),
            ("  two  spaces", 20, "  two  spaces"),
            ("see https://a.example/one/two.html", 20, "see\n  https://a.ex….html"),
        ] {
            assert_eq!(filled(text, columns, 2), shown);
        }
    }

    #[test]
    fn wide_characters_are_padded_to_the_same_column() {
        let rows = ["ツ", "abc"];
        let widest = widest(rows);
        assert_eq!(rows.map(|row| padded(row, widest) + "|"), ["ツ |", "abc|"]);
    }
}
