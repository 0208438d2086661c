//! Bytes of a file made fit for a sentence and a terminal.
//!
//! Never lets a control character, a mark that turns text around or more than a line's worth pass.

/// The start of `bytes` in backticks, for a sentence.
pub(super) fn quoted(bytes: &[u8]) -> String {
    format!("`{}`", shown(bytes, MAX_QUOTE))
}

/// `bytes`, with what cannot be shown written out as in `\u{1b}` and `\xff`, and `…` in place of
/// what goes beyond about `max` characters.
pub(super) fn shown(bytes: &[u8], max: usize) -> String {
    // No character has more bytes than four; a line of a megabyte is not looked at.
    let head = &bytes[..bytes.len().min(4 * max + 4)];
    let mut out = String::with_capacity(head.len());
    let mut count = 0;
    for chunk in head.utf8_chunks() {
        let valid = chunk.valid().chars().map(Shown::Char);
        let invalid = chunk.invalid().iter().copied().map(Shown::Byte);
        for unit in valid.chain(invalid) {
            if count >= max {
                out.push('…');
                return out;
            }
            let before = out.len();
            match unit {
                // What `escape_debug` would touch for the sake of Rust's literals alone.
                Shown::Char(char @ ('"' | '\'' | '\\')) => out.push(char),
                Shown::Char(char) => out.extend(char.escape_debug()),
                Shown::Byte(byte) => out.extend(byte.escape_ascii().map(char::from)),
            }
            count += out[before..].chars().count();
        }
    }
    out
}

enum Shown {
    Char(char),
    Byte(u8),
}

/// Characters of a quotation in a sentence.
const MAX_QUOTE: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_moves_a_cursor_or_hides_text_is_shown() {
        for (bytes, expected) in [
            (&b"Disallow: /\xC3\xA9\""[..], "Disallow: /\u{e9}\""),
            (b"a\x1b[2Jb\0", "a\\u{1b}[2Jb\\0"),
            (b"a\tb\rc\x7f", "a\\tb\\rc\\u{7f}"),
            (b"\xFFa\xC3", "\\xffa\\xc3"),
            (
                "\u{202e}\u{200b}\u{feff}\u{2028}\u{9b}".as_bytes(),
                "\\u{202e}\\u{200b}\\u{feff}\\u{2028}\\u{9b}",
            ),
            ("\u{a0}".as_bytes(), "\\u{a0}"),
        ] {
            assert_eq!(shown(bytes, 100), expected);
        }
    }

    #[test]
    fn a_cut_shows_and_never_splits_a_character() {
        assert_eq!(shown("ツツツ".as_bytes(), 2), "ツツ…");
        assert_eq!(shown("ツツ".as_bytes(), 2), "ツツ");
        assert_eq!(shown(&vec![b'x'; 1 << 20], 3), "xxx…");
        assert_eq!(shown(b"\0\x1b\0", 5), "\\0\\u{1b}…");
        assert_eq!(quoted(b"/a"), "`/a`");
    }
}
