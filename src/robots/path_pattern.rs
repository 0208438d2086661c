//! A pattern with the syntax of robots.txt patterns, from a file of another kind, such as `tdmrep.json`.

use memchr::memchr;

use super::{Profile, escape, line::MAX_LINE, wild};

/// A pattern with `*` and `$`, as in a rule of a robots.txt (RFC 9309 §2.2.3). Upper and lower case differ.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PathPattern(Box<str>);

// === impl PathPattern ===

impl PathPattern {
    /// Creates a pattern. Returns `None` if it is longer than a line of a robots.txt can be.
    #[must_use]
    pub fn new(pattern: &str) -> Option<Self> {
        let is_short = pattern.len() <= MAX_LINE;
        is_short.then(|| Self(escape::of_pattern(Profile::Google, pattern.as_bytes()).into()))
    }

    /// Returns the pattern, normalized as in Google's profile.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns how many bytes [`matches`](Self::matches) searches at most.
    #[must_use]
    pub fn searched(&self, path: &[u8]) -> usize {
        let pattern = self.0.as_bytes();
        match memchr(b'*', pattern) {
            Some(star) if path.starts_with(&pattern[..star]) => path.len() + pattern.len(),
            literal => literal.unwrap_or(pattern.len()).min(path.len()),
        }
    }

    /// Returns the memory on the heap that the pattern takes, in bytes, without the allocator's overhead.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn matches_all(&self) -> bool {
        matches!(&*self.0, "/" | "*" | "/*")
    }

    /// Returns whether the pattern matches `path`, which begins with `/` and includes the query.
    #[must_use]
    pub fn matches(&self, path: &[u8]) -> bool {
        let pattern = self.0.as_bytes();
        let (pattern, to_end) = match pattern {
            [inner @ .., b'$'] => (inner, true),
            _ => (pattern, false),
        };
        match memchr(b'*', pattern) {
            Some(star) => path.starts_with(&pattern[..star]) && wild::matches(&path[star..], &pattern[star..], to_end),
            None if to_end => path == pattern,
            None => path.starts_with(pattern),
        }
    }
}
