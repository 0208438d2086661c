//! How many columns there are, and texts that fit into some.
//!
//! Counts characters: those that are two columns wide are not known.

use std::{io, os::fd::AsFd};

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

/// `text` fit for a terminal, in `columns` of it at most.
pub(super) fn cut(text: &str, columns: usize) -> String {
    // No character has more bytes than four.
    let text = plain(text, 4 * columns);
    if text.chars().count() <= columns {
        return text.into_owned();
    }
    let shown = text.chars().take(columns.saturating_sub(1));
    shown.chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_never_has_more_columns_than_there_are() {
        for (text, columns, shown) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("ツツツ", 3, "ツツツ"),
            ("ツツツツ", 3, "ツツ…"),
            ("a\u{1b}b", 4, "a\\u…"),
            ("𝒳𝒳𝒳𝒳𝒳", 4, "𝒳𝒳𝒳…"),
        ] {
            assert_eq!(cut(text, columns), shown);
        }
    }
}
