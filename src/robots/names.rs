//! The agents that a file names, and the rules picked for each (RFC 9309 §2.2.1).
//!
//! Never sees a User-Agent field: what it looks up is a product token.

use std::{cmp::Ordering, collections::BTreeMap};

use super::{record::is_space, span::Span};

/// Names in the order of their lower-case spelling.
#[derive(Debug)]
pub(super) struct Names {
    names: Box<[Name]>,
}

/// One agent that the file names.
#[derive(Debug)]
pub(super) struct Name {
    /// As written where the file first names it.
    pub(super) written: Span,
    /// Which of the file's sets of rules is its own.
    pub(super) set: u32,
}

/// What one user-agent record names.
pub(super) enum Named<'a> {
    /// `*`, alone or before white space: everyone without a group of their own.
    Everyone,
    /// One agent.
    Agent {
        /// The leading `[A-Za-z_-]*`, all that Google's parser looks at. May be empty.
        token: &'a str,
        /// All up to the first white space or `/`, where that is longer than the token.
        word: Option<&'a str>,
    },
}

/// Names being collected: by lower-case spelling, the first one as written and the groups, each
/// once and in order.
pub(super) type Roll = BTreeMap<String, (Span, Vec<u32>)>;

// === impl Names ===

impl Names {
    /// Takes over `roll`; `set_of` says which set of rules stands for a list of groups.
    pub(super) fn new(roll: Roll, mut set_of: impl FnMut(Vec<u32>) -> u32) -> Self {
        let names = roll.into_values().map(|(written, groups)| Name {
            written,
            set: set_of(groups),
        });
        Self { names: names.collect() }
    }

    /// The name equal to `wanted`, ignoring ASCII case.
    pub(super) fn find(&self, text: &str, wanted: &str) -> Option<&Name> {
        let at = self
            .names
            .binary_search_by(|name| caseless(name.written.of(text), wanted));
        at.ok().map(|at| &self.names[at])
    }

    /// Bytes of memory behind the names, their text apart.
    pub(super) fn weight(&self) -> usize {
        size_of_val(&*self.names)
    }
}

// === impl Named ===

impl<'a> Named<'a> {
    /// Reads a user-agent record's value, which is trimmed.
    pub(super) fn read(value: &'a [u8]) -> Self {
        if let [b'*', rest @ ..] = value
            && rest.first().is_none_or(|b| is_space(*b))
        {
            return Self::Everyone;
        }
        let end = value.iter().position(|b| !is_token(*b));
        let token = &value[..end.unwrap_or(value.len())];
        let end = value.iter().position(|b| is_space(*b) || *b == b'/');
        let word = &value[..end.unwrap_or(value.len())];
        Self::Agent {
            token: utf8(token).unwrap_or_default(),
            word: utf8(word).filter(|word| word.len() > token.len()),
        }
    }
}

/// Whether Google's parser takes all of `agent` for a product token. The empty string is none.
pub(super) fn is_product_token(agent: &str) -> bool {
    !agent.is_empty() && agent.bytes().all(is_token)
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'_')
}

/// A word that is not UTF-8 is no agent's name, as those are text.
fn utf8(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// The order of `a` and `b` in ASCII lower case, which is [`Roll`]'s.
fn caseless(a: &str, b: &str) -> Ordering {
    let a = a.bytes().map(|b| b.to_ascii_lowercase());
    a.cmp(b.bytes().map(|b| b.to_ascii_lowercase()))
}
