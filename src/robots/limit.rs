//! How much of a long file counts, and what becomes of the line that the limit falls into.
//!
//! Never cuts by itself: the fetcher does, and `lint` tells of it.

/// Bytes of a robots.txt that count, after content decoding: 500 KiB, Google's limit and the least
/// that RFC 9309 §2.5 asks for. What comes after them is not read.
pub const LIMIT: usize = 500 * 1024;

/// All up to the end of the last line that has one: a line that was cut could say something else
/// than its author meant.
///
/// ```
/// use robotgate::robots::whole_lines;
///
/// assert_eq!(whole_lines(b"Disallow: /a\nDisallow: /b"), b"Disallow: /a\n");
/// ```
#[must_use]
pub fn whole_lines(bytes: &[u8]) -> &[u8] {
    let end = memchr::memrchr2(b'\n', b'\r', bytes).map_or(0, |last| last + 1);
    &bytes[..end]
}
