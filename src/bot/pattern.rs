//! An entry of `user-agents`: a product name, or a pattern with `*` over the whole field.
//!
//! It compares bytes, ignoring ASCII case, and never knows what else a field says.

use std::fmt;

use super::product::is_token_byte;

/// What a User-Agent field must hold for a bot to be known by it.
///
/// Without a `*`, the text must stand in the field as a whole name, in a comment too: no token character (RFC 9110
/// §5.6.2) may join it before or after. So `AcmeBot` is in `Mozilla/5.0 (compatible; AcmeBot/2.1)`, and not in
/// `AcmeBot-Images/2.1`. With a `*`, which stands for any run of bytes, the pattern must cover the field from its
/// start to its end. ASCII case is ignored in both.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AgentPattern {
    text: Box<str>,
}

/// An entry without text would match every field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an empty pattern matches nothing; write at least one character")]
pub struct EmptyPattern;

// === impl AgentPattern ===

impl AgentPattern {
    /// Takes an entry as written; white space around it does not count.
    ///
    /// # Errors
    ///
    /// When nothing else is there.
    pub fn new(text: &str) -> Result<Self, EmptyPattern> {
        let text = text.trim();
        if text.is_empty() {
            return Err(EmptyPattern);
        }
        Ok(Self { text: text.into() })
    }

    /// The entry as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it is a pattern over the whole field.
    pub fn is_glob(&self) -> bool {
        self.text.contains('*')
    }

    /// Whether a bot is known by this field.
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

/// Whether a name may begin at a place: no token runs across it.
pub(super) fn may_begin(field: &[u8], at: usize) -> bool {
    at == 0 || !is_token_byte(field[at - 1]) || !is_token_byte(field[at])
}

/// Whether the name stands at this place and no token runs across its end.
pub(super) fn name_at(name: &[u8], field: &[u8], at: usize) -> bool {
    let end = at + name.len();
    field.get(at..end).is_some_and(|found| found.eq_ignore_ascii_case(name))
        && (end == field.len() || may_begin(field, end))
}

/// Whether the pattern covers the whole text. On a mismatch only the last `*` takes one byte more: an earlier one
/// could not do better, so the work is bounded by the product of the lengths.
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
