//! How wide the offsets of a compiled file are: two bytes where the file is as small as nearly all
//! are, else four.
//!
//! Never loses a bit: what does not fit in two bytes gets four.

/// A stored offset or count.
pub(super) trait Width: Copy + Into<u32> {
    /// It, to index with.
    fn at(self) -> usize {
        let wide: u32 = self.into();
        wide as usize
    }
}

impl Width for u16 {}
impl Width for u32 {}

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
