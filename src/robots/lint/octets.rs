//! Checks a file's bytes: the length of the file, whether it is a robots.txt at all, byte-order marks, and in each line
//! its length, NULs, invalid UTF-8 and invisible characters.

use memchr::memchr;

use super::{
    super::{
        line::{BYTE_ORDER_MARK, LIMIT, Lines, MAX_LINE, common_prefix, content, counted},
        record::{is_space, trim},
    },
    Findings, Lint,
};
use crate::text::is_plain;

/// What a file is if it is not a robots.txt. Most findings about its lines are then left out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Disguise {
    /// A web page or other markup.
    Html,
    /// Text in UTF-16, which crawlers cannot read.
    Utf16,
    /// Not text, such as compressed data.
    Binary,
}

// === impl Disguise ===

impl Disguise {
    /// Returns what kind of file `body` is, or `None` if it looks like a robots.txt.
    #[must_use]
    pub fn of(body: &[u8]) -> Option<Self> {
        let unmarked = body.strip_prefix(b"\xFF\xFE").or(body.strip_prefix(b"\xFE\xFF"));
        let wide = matches!(
            unmarked.unwrap_or(body),
            [1..=255, 0, 1..=255, 0, ..] | [0, 1..=255, 0, 1..=255, ..]
        );
        if wide {
            return Some(Self::Utf16);
        }
        if is_binary(body) {
            return Some(Self::Binary);
        }
        let text = trim(&body[common_prefix(body, BYTE_ORDER_MARK)..]);
        let markup = matches!(text, [b'<', b'a'..=b'z' | b'A'..=b'Z' | b'!' | b'?', ..]);
        markup.then_some(Self::Html)
    }

    /// Reports that the file is not a robots.txt. `ruled` says whether it nevertheless has rules that apply to an
    /// agent.
    pub(super) fn report(self, ruled: bool, findings: &mut Findings) {
        let (code, what, advice) = match self {
            Self::Html => (
                Lint::Html,
                "a web page (HTML or XML)",
                "Serve plain text, or answer 404 where there are no rules.",
            ),
            Self::Utf16 => (Lint::Utf16, "UTF-16", "Save the file as UTF-8."),
            Self::Binary => (Lint::Binary, "not text", "Save it as plain text, not compressed."),
        };
        let found = match ruled {
            true => "though crawlers find some rules in it",
            false => "and crawlers find no rule in it, so they may fetch everything",
        };
        let message = format!("This is {what}, {found}. {advice}");
        findings.add(0, code, message);
    }
}

/// Returns the part of `body` that robotgate would use, and reports if that is not all of it.
pub(super) fn kept<'a>(body: &'a [u8], findings: &mut Findings) -> &'a [u8] {
    let kept = counted(body, LIMIT);
    if kept.len() == body.len() {
        return body;
    }
    // `kept` is empty or ends with a line end. So the last line of `Lines` is empty, and has the number of the first
    // line that is not in `kept`.
    let line = Lines::new(kept).last().map_or(1, |(number, _)| number);
    let message = "The file continues past 500 KiB, where Google and robotgate stop reading: this line and all after \
                   it have no effect. Shorten the file, best with fewer and broader patterns.";
    findings.add(line, Lint::TooLarge, message);
    kept
}

pub(super) fn start(body: &[u8], findings: &mut Findings) {
    let message = match common_prefix(body, BYTE_ORDER_MARK) {
        0 => return,
        3 => {
            "The file begins with a byte-order mark. Google skips it, but other parsers may take it for a part of the \
             first line: save the file without one."
        }
        _ => {
            "The file begins with a part of a byte-order mark. Google skips it, but other parsers might not: save the \
             file again as UTF-8."
        }
    };
    findings.add(1, Lint::ByteOrderMark, message);
}

/// Checks one line, without its line end. Comments may contain any text.
pub(super) fn line(number: u32, raw: &[u8], findings: &mut Findings) {
    let content = content(raw);
    let comment = memchr(b'#', content);
    if comment.is_none() && content.len() < raw.len() {
        if content.len() < MAX_LINE {
            let message =
                "Crawlers read this line only up to the NUL byte, so what follows it has no effect: remove the byte.";
            findings.add(number, Lint::Nul, message);
        } else if !trim(&raw[MAX_LINE..]).is_empty() {
            let message = format!(
                "The line has {} bytes, of which Google reads the first {MAX_LINE}: the rest has no effect.",
                raw.len()
            );
            findings.add(number, Lint::LongLine, message);
        }
    }
    let text = trim(&content[..comment.unwrap_or(content.len())]);
    if text.is_ascii() || text == BYTE_ORDER_MARK {
        return;
    }
    if text.starts_with(BYTE_ORDER_MARK) {
        let message = "Crawlers skip a byte-order mark only at the start of the file. Here it is part of the key, \
                       and the line has no effect: remove the mark. It comes from files that were joined.";
        findings.add(number, Lint::MisplacedByteOrderMark, message);
    } else if std::str::from_utf8(text).is_err() {
        let message = "The line is not UTF-8, so a pattern in it does not match what browsers send for the same \
                       characters: save the file as UTF-8.";
        findings.add(number, Lint::NotUtf8, message);
    } else if let Some(char) = invisible(text) {
        let message = format!(
            "The character U+{:04X} is invisible or looks like a space, but crawlers read it as a character: remove \
             it.",
            u32::from(char)
        );
        findings.add(number, Lint::InvisibleCharacter, message);
    }
}

/// Returns the first character that is invisible or looks like a space. Ignores zero-width joiners and non-joiners,
/// because some languages need them.
fn invisible(text: &[u8]) -> Option<char> {
    let is_joiner = |char: char| matches!(char, '\u{200c}' | '\u{200d}');
    let is_invisible = |char: &char| !is_plain(*char) && !char.is_control() && !is_joiner(*char);
    std::str::from_utf8(text).ok()?.chars().find(is_invisible)
}

/// Returns whether `body` begins like a gzip file, or has many control characters in its first 1,024 bytes.
fn is_binary(body: &[u8]) -> bool {
    let head = &body[..body.len().min(1024)];
    let controls = head.iter().filter(|b| b.is_ascii_control() && !is_space(**b)).count();
    body.starts_with(b"\x1f\x8b") || (controls > 2 && 10 * controls >= head.len())
}
