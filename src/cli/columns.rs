//! How many columns a terminal has, and texts that fit into some of them.

use std::{io, os::fd::AsFd};

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::text::plain;

/// Columns to fill: those of the terminal that is written to, else as `COLUMNS` wishes.
pub(super) fn columns() -> usize {
    columns_of(io::stdout())
}

/// As [`columns`], of the terminal that `output` is.
pub(super) fn columns_of(output: impl AsFd) -> usize {
    // Shells know COLUMNS, but do not tell their children.
    let terminal = rustix::termios::tcgetwinsize(output).ok();
    let columns = terminal
        .map(|size| usize::from(size.ws_col))
        .filter(|columns| *columns > 0);
    let wished = || std::env::var("COLUMNS").ok()?.parse().ok();
    columns.or_else(wished).unwrap_or(100).clamp(40, 200)
}

/// `text` fit for a terminal, in at most `columns` of it.
pub(super) fn cut(text: &str, columns: usize) -> String {
    // Few characters have more bytes than four for a column.
    let text = plain(text, 4 * columns);
    if text.width() <= columns {
        return text.into_owned();
    }
    let mut left = columns.saturating_sub(1);
    let fits = |character: &char| {
        let width = character.width().unwrap_or(0);
        let fits = width <= left;
        left = left.saturating_sub(width);
        fits
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

/// The columns that the widest text fills.
pub(super) fn widest<'t>(texts: impl IntoIterator<Item = &'t str>) -> usize {
    texts.into_iter().map(|text| text.width()).max().unwrap_or(0)
}

/// `text`, and spaces up to the column `columns`.
pub(super) fn padded(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(text.width());
    format!("{text}{:missing$}", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_never_has_more_columns_than_there_are() {
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
    fn wide_characters_end_at_the_same_column() {
        let rows = ["ツ", "abc"];
        let widest = widest(rows);
        assert_eq!(rows.map(|row| padded(row, widest) + "|"), ["ツ |", "abc|"]);
    }
}
