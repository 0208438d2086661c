//! Prints errors and warnings on stderr, wrapped and coloured only at a terminal.

use std::{
    fmt::Display,
    io::{IsTerminal as _, stderr},
};

use crate::{
    colour::{Colour, Paint},
    columns::{columns_of, cut_end, filled},
    text::plain_lines,
};

/// Prints an error or a warning on stderr. Escapes control characters except line ends and tabs, because the text can
/// quote an argument or a line of a file.
pub(super) fn say(complaint: &dyn Display) {
    let text = plain_lines(&format!("robotgate: {complaint}"), "");
    let text = match stderr().is_terminal() {
        true => fitted(&text, columns_of(stderr()), Paint::for_output(&stderr())),
        false => text,
    };
    eprintln!("{text}");
}

fn fitted(text: &str, columns: usize, paint: Paint) -> String {
    let mut fitted = Vec::new();
    let mut lines = text.split('\n').peekable();
    while let Some(line) = lines.next() {
        match lines.next_if(|next| mark(next).is_some()).and_then(mark) {
            Some(marked) => fitted.extend(quoted(line, marked, columns, paint)),
            None => fitted.push(filled(line, columns, INDENT)),
        }
    }
    fitted.join("\n")
}

/// Parses a line such as `      |    ^^^`: the text before the carets, and the number of carets.
fn mark(line: &str) -> Option<(&str, usize)> {
    let before = line.trim_end_matches('^');
    let is_mark = before.len() < line.len() && before.trim() == "|";
    is_mark.then_some((before, line.len() - before.len()))
}

/// Formats a quoted line and the carets below it. Cuts the end of a line that does not fit, and the beginning of a line
/// whose marked part is far to the right.
fn quoted(line: &str, (before, carets): (&str, usize), columns: usize, paint: Paint) -> [String; 2] {
    let room = columns.saturating_sub(GUTTER);
    let start = before.chars().count().saturating_sub(GUTTER);
    let skipped = if start < room / 2 { 0 } else { start - room / 3 };
    let from = |text: &str, cut: &str| match skipped {
        0 => text.to_owned(),
        _ => {
            let gutter = text.chars().take(GUTTER);
            let shown = text.chars().skip(GUTTER + skipped + 1);
            gutter.chain(cut.chars()).chain(shown).collect()
        }
    };
    let line = from(line, "…");
    let carets = "^".repeat(carets.min(room - (start - skipped)));
    let marks = format!("{}{}", from(before, " "), paint.in_colour(Colour::Bad, carets));
    [cut_end(&line, columns).into_owned(), marks]
}

const INDENT: usize = 4;
/// Width in columns of the line number and the bar before a quoted line.
const GUTTER: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_wrap_at_words_and_markers_stay_in_their_column() {
        let url = "https://a.example/one/two/three/four/five/six.html";
        for (text, expected) in [
            (
                "robotgate: a.toml:2:1: there is no such key; did you mean \"x\"?\n    2 | lisen = 1\n      | ^^^^^"
                    .to_owned(),
                "robotgate: a.toml:2:1: there is no such\n    key; did you mean \"x\"?\n    2 | lisen = 1\n      | ^^^^^",
            ),
            (
                format!("expected \"allow\" for {url} as \"x\""),
                "expected \"allow\" for\n    https://a.example/one/tw…ve/six.html\n    as \"x\"",
            ),
            (
                format!("wrong\n   12 | url = \"{url}\"\n      |       {}", "^".repeat(52)),
                "wrong\n   12 | url = \"https://a.example/one/tw…\n      |       ^^^^^^^^^^^^^^^^^^^^^^^^^^",
            ),
            (
                format!("wrong\n   12 | [\"{url}\", bad]\n      | {}^^^", " ".repeat(55)),
                "wrong\n   12 | …x.html\", bad]\n      |           ^^^",
            ),
        ] {
            assert_eq!(fitted(&text, 40, Paint::none()), expected);
        }
    }
}
