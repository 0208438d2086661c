//! An entry of `user-agents`: the name of a product, or a pattern with `*` for the whole User-Agent field.
//!
//! This module compares bytes, ignoring ASCII case, and does not parse the field.

use std::fmt;

use super::product::is_token_byte;

/// A pattern for the User-Agent field of a bot.
///
/// A pattern without a `*` must be in the field as a whole name, which neither begins nor ends in the middle of a token
/// (RFC 9110 §5.6.2). `AcmeBot` matches `Mozilla/5.0 (compatible; AcmeBot/2.1)` but not `AcmeBot-Images/2.1`.
///
/// A pattern with a `*` must match the whole field; `*` stands for any bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AgentPattern {
    text: Box<str>,
}

/// The pattern is empty, and would match every field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the pattern is empty; write at least one character")]
pub struct EmptyPattern;

// === impl AgentPattern ===

impl AgentPattern {
    /// Parses an entry of `user-agents`. White space around it is ignored.
    ///
    /// # Errors
    ///
    /// Fails if the entry is empty.
    pub fn new(text: &str) -> Result<Self, EmptyPattern> {
        let text = text.trim();
        if text.is_empty() {
            return Err(EmptyPattern);
        }
        Ok(Self { text: text.into() })
    }

    /// Returns the pattern without white space around it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether the pattern contains a `*`, and so must match the whole field.
    pub fn is_glob(&self) -> bool {
        self.text.contains('*')
    }

    /// Returns the product token at the start of the pattern, such as `AcmeBot` in `AcmeBot/2`, if a robots.txt can
    /// name it.
    pub fn product(&self) -> Option<&str> {
        let product = self.text.split(['/', ' ']).next()?;
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        (!product.is_empty() && product.bytes().all(is_name)).then_some(product)
    }

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

/// Returns whether a name can begin at the offset `at` in `field`. It cannot begin in the middle of a token.
pub(super) fn may_begin(field: &[u8], at: usize) -> bool {
    at == 0 || !is_token_byte(field[at - 1]) || !is_token_byte(field[at])
}

/// Returns whether `name` is at the offset `at` in `field`, and no further character of the same token follows it.
pub(super) fn name_at(name: &[u8], field: &[u8], at: usize) -> bool {
    let end = at + name.len();
    field.get(at..end).is_some_and(|found| found.eq_ignore_ascii_case(name))
        && (end == field.len() || may_begin(field, end))
}

/// Returns whether `pattern` matches the whole `text`. After a mismatch, only the last `*` so far is tried with one
/// more byte, so the work is at most the product of both lengths.
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
