//! Splits a robots.txt into numbered lines, as Google's parser does (RFC 9309 §2.2 leaves the details open), and
//! determines how much of a long file is used.

use memchr::{memchr, memchr2, memrchr2};

/// The lines of a file, numbered from 1 and ended by LF, CR or CRLF. A line's content ends at a NUL or after
/// [`MAX_LINE`] bytes.
pub(super) struct Lines<'a> {
    rest: Option<&'a [u8]>,
    number: u32,
}

// === impl Lines ===

impl<'a> Lines<'a> {
    pub(super) fn new(body: &'a [u8]) -> Self {
        let body = &body[..body.len().min(MAX_BODY)];
        Self {
            rest: Some(without_mark(body)),
            number: 0,
        }
    }

    /// Returns the next line as written, without its line end.
    #[inline]
    pub(super) fn next_raw(&mut self) -> Option<(u32, &'a [u8])> {
        let rest = self.rest?;
        let line = match memchr2(b'\n', b'\r', rest) {
            Some(end) => {
                let ending = if rest[end..].starts_with(b"\r\n") { 2 } else { 1 };
                self.rest = Some(&rest[end + ending..]);
                &rest[..end]
            }
            None => {
                self.rest = None;
                rest
            }
        };
        self.number += 1;
        Some((self.number, line))
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = (u32, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (number, line) = self.next_raw()?;
        Some((number, content(line)))
    }
}

/// Returns the content of the line that contains the byte at `offset`.
pub(super) fn line_at(body: &[u8], offset: usize) -> &[u8] {
    let start = memrchr2(b'\n', b'\r', &body[..offset]).map(|end| end + 1);
    let line = match start {
        Some(start) => &body[start..],
        None => without_mark(body),
    };
    content(memchr2(b'\n', b'\r', line).map_or(line, |end| &line[..end]))
}

/// Returns the part of a file that robotgate uses: the whole lines within the first `limit` bytes, because the
/// beginning of a cut line could mean something else. `read` must contain the file up to [`BEYOND`] bytes after
/// `limit`.
///
/// ```
/// use robotgate::robots::counted;
///
/// assert_eq!(counted(b"Disallow: /a\nDisallow: /b", 20), b"Disallow: /a\n");
/// assert_eq!(counted(b"Disallow: /a\nDisallow: /b", 12), b"Disallow: /a\n");
/// assert_eq!(counted(b"Disallow: /a\nDisallow: /b", 25), b"Disallow: /a\nDisallow: /b");
/// ```
#[must_use]
pub fn counted(read: &[u8], limit: usize) -> &[u8] {
    match read.split_at_checked(limit) {
        // A line ends exactly at the limit, so no line is cut.
        Some((_, [b'\r', b'\n', ..])) => &read[..limit + 2],
        Some((_, [b'\n' | b'\r', ..])) => &read[..=limit],
        Some((within, [_, ..])) => {
            let end = memrchr2(b'\n', b'\r', within).map_or(0, |last| last + 1);
            &within[..end]
        }
        _ => read,
    }
}

/// Skips a byte-order mark or a part of one, as Google's parser does.
fn without_mark(body: &[u8]) -> &[u8] {
    &body[common_prefix(body, BYTE_ORDER_MARK)..]
}

/// Returns the part of a line that is parsed; see [`Lines`].
pub(super) fn content(line: &[u8]) -> &[u8] {
    let line = &line[..line.len().min(MAX_LINE)];
    memchr(0, line).map_or(line, |end| &line[..end])
}

pub(super) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// How many bytes of a robots.txt robotgate uses, after content decoding: 500 KiB, which is Google's limit and the
/// minimum in RFC 9309 §2.5.
pub const LIMIT: usize = 500 * 1024;

/// How many bytes to read after the limit: two for a CRLF that ends the last line, and a third to see whether anything
/// follows.
pub const BEYOND: usize = 3;

/// Maximum length of a line in bytes, as in Google's parser: eight times the longest URL of browsers (2,083 bytes),
/// minus one for a terminator.
pub(super) const MAX_LINE: usize = 2083 * 8 - 1;

/// Maximum size of a file in bytes, so that each offset in `RobotsTxt::text` fits into four bytes. With its normalized
/// patterns and their offsets, that text is at most five times as long as the file.
pub(super) const MAX_BODY: usize = 512 << 20;

pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

const _: () = assert!(MAX_BODY <= (u32::MAX / 6) as usize);

#[cfg(test)]
mod tests {
    use super::{super::entry::offset, *};

    fn lines(body: &[u8]) -> Vec<&[u8]> {
        Lines::new(body).map(|(_, line)| line).collect()
    }

    #[test]
    fn lf_cr_and_crlf_each_end_one_line() {
        assert_eq!(lines(b"a\nb\rc\r\nd"), [b"a", b"b", b"c", b"d"]);
        assert_eq!(lines(b"\r\r\n\n"), [b"", b"", b"", b""]);
        assert_eq!(lines(b"\n\r"), [b"", b"", b""]);
    }

    #[test]
    fn a_partial_byte_order_mark_is_skipped_only_at_the_start() {
        assert_eq!(lines(b"\xEF\xBB\xBFa"), [b"a"]);
        assert_eq!(lines(b"\xEF\xBBa"), [b"a"]);
        assert_eq!(lines(b"\xEFa"), [b"a"]);
        assert_eq!(lines(b"\xBBa"), [b"\xBBa"]);
        assert_eq!(lines(b"a\n\xEF\xBB\xBFb"), [&b"a"[..], b"\xEF\xBB\xBFb"]);
    }

    #[test]
    fn a_nul_byte_ends_the_text_of_a_line_but_not_the_line() {
        assert_eq!(lines(b"a\0b\nc"), [b"a", b"c"]);
    }

    #[test]
    fn a_long_line_keeps_only_its_first_bytes() {
        let mut body = vec![b'x'; MAX_LINE + 10];
        body.extend_from_slice(b"\ny");
        let lines = lines(&body);
        assert_eq!(lines[0].len(), 16_663);
        assert_eq!(lines[1], b"y");
    }

    #[test]
    fn line_numbers_start_at_one() {
        assert_eq!(Lines::new(b"a\n\nb").last(), Some((3, &b"b"[..])));
    }

    #[test]
    fn the_largest_offset_fits_its_type() {
        assert_eq!(offset(MAX_BODY) as usize, MAX_BODY);
    }
}
