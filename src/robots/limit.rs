//! How much of a long file counts, and what becomes of the line that the limit falls into.
//!
//! Never reads: the fetcher, `explain` and `lint` do, and all of them cut here.

/// Bytes of a robots.txt that count, after content decoding: 500 KiB, Google's limit and the least
/// that RFC 9309 §2.5 asks for. What comes after them is not read.
pub const LIMIT: usize = 500 * 1024;

/// How many bytes past the limit tell whether there is more than counts: a line's end, which still
/// does, and one.
pub const BEYOND: usize = 3;

/// What counts of `read`, of which there may be more than `limit` bytes, [`BEYOND`] at the least. A line that does not end within the limit could say something else than its
/// author meant, and is dropped; without a limit in the way, the last line needs no end.
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
        // The limit falls between a line and its end, and so cuts nothing.
        Some((_, [b'\r', b'\n', ..])) => &read[..limit + 2],
        Some((_, [b'\n' | b'\r', ..])) => &read[..=limit],
        Some((within, [_, ..])) => {
            let end = memchr::memrchr2(b'\n', b'\r', within).map_or(0, |last| last + 1);
            &within[..end]
        }
        _ => read,
    }
}
