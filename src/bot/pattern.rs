//! An entry of `user-agents`: a product name, or a pattern with `*` for the whole field.
//!
//! It compares bytes, ignoring ASCII case, and does not parse the field.

use std::fmt;

use super::product::is_token_byte;

/// A pattern for the User-Agent field of a bot.
///
/// Without a `*`, the text must be in the field as a whole name: no token character (RFC 9110 §5.6.2) may directly
/// precede or follow it. A name in a comment matches too. So `AcmeBot` matches `Mozilla/5.0 (compatible; AcmeBot/2.1)`
/// but not `AcmeBot-Images/2.1`. With a `*`, which matches any run of bytes, the pattern must match the field from
/// start to end. Both ignore ASCII case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AgentPattern {
    text: Box<str>,
}

/// The error for an empty pattern, which would match every field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an empty pattern matches nothing; write at least one character")]
pub struct EmptyPattern;

// === impl AgentPattern ===

impl AgentPattern {
    /// Parses an entry of the configuration. White space around it is ignored.
    ///
    /// # Errors
    ///
    /// Fails if the entry is empty or only white space.
    pub fn new(text: &str) -> Result<Self, EmptyPattern> {
        let text = text.trim();
        if text.is_empty() {
            return Err(EmptyPattern);
        }
        Ok(Self { text: text.into() })
    }

    /// Returns the pattern, trimmed.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether this is a pattern for the whole field.
    pub fn is_glob(&self) -> bool {
        self.text.contains('*')
    }

    /// Returns the product token that the pattern begins with, if it is one that a robots.txt can name: `AcmeBot` of
    /// `AcmeBot/2`.
    pub fn product(&self) -> Option<&str> {
        let product = self.text.split(['/', ' ']).next()?;
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        (!product.is_empty() && product.bytes().all(is_name)).then_some(product)
    }

    /// Returns whether the field matches the pattern.
    pub fn matches(&self, field: &[u8]) -> bool {
        let pattern = self.text.as_bytes();
        if self.is_glob() {
            glob(pattern, field)
        } else {
            (0..field.len()).any(|at| may_begin(field, at) && name_at(pattern, field, at))
        }
    }
}

impl fmt::Display for AgentPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Returns whether a name can begin at this position: the bytes before and after it do not belong to the same token.
pub(super) fn may_begin(field: &[u8], at: usize) -> bool {
    at == 0 || !is_token_byte(field[at - 1]) || !is_token_byte(field[at])
}

/// Returns whether the name is at this position and no token continues beyond its end.
pub(super) fn name_at(name: &[u8], field: &[u8], at: usize) -> bool {
    let end = at + name.len();
    field.get(at..end).is_some_and(|found| found.eq_ignore_ascii_case(name))
        && (end == field.len() || may_begin(field, end))
}

/// Returns whether the pattern matches the whole text. On a mismatch, only the last `*` is tried with one more byte,
/// because a different choice for an earlier `*` could not match better. So the work is bounded by the product of the
/// lengths.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut last_star = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                last_star = Some((p + 1, t));
                p += 1;
            }
            Some(byte) if byte.eq_ignore_ascii_case(&text[t]) => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((after, covered)) = last_star else {
                    return false;
                };
                last_star = Some((after, covered + 1));
                (p, t) = (after, covered + 1);
            }
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}
