//! A piece of the one text buffer that a parsed file owns.
//!
//! Never holds text itself: offsets are half the size of a slice and let the file move freely.

/// The byte range `start..start + len` of a file's text buffer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Span {
    start: u32,
    len: u32,
}

// === impl Span ===

impl Span {
    /// Appends `piece` to `text` and remembers where it lies.
    pub(super) fn push(text: &mut String, piece: &str) -> Self {
        let start = offset(text.len());
        text.push_str(piece);
        Self {
            start,
            len: offset(piece.len()),
        }
    }

    pub(super) fn of(self, text: &str) -> &str {
        &text[self.range()]
    }

    pub(super) fn bytes(self, text: &str) -> &[u8] {
        &text.as_bytes()[self.range()]
    }

    pub(super) fn len(self) -> usize {
        self.len as usize
    }

    /// The first `len` bytes.
    pub(super) fn head(self, len: usize) -> Self {
        debug_assert!(len <= self.len());
        Self {
            len: offset(len),
            ..self
        }
    }

    /// The last `len` bytes.
    pub(super) fn tail(self, len: usize) -> Self {
        Self {
            start: self.start + self.len - offset(len),
            len: offset(len),
        }
    }

    fn range(self) -> std::ops::Range<usize> {
        let start = self.start as usize;
        start..start + self.len()
    }
}

/// An offset or a count in its stored form. [`super::line::MAX_BODY`] keeps every one of them far
/// below the limit, so the cast loses nothing.
#[expect(
    clippy::cast_possible_truncation,
    reason = "MAX_BODY bounds every offset and count below 2^32"
)]
pub(super) fn offset(n: usize) -> u32 {
    debug_assert!(u32::try_from(n).is_ok());
    n as u32
}
