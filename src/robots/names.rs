//! Looks up the agents that a robots.txt names (RFC 9309 §2.2.1). It does not read the User-Agent field of a request.

use std::cmp::Ordering;

use super::{
    entry::{Offset, offset},
    head::Head,
    record::is_space,
};

/// The names of agents in a file, sorted by their lower-case forms. Each name occurs once.
#[derive(Debug)]
pub(super) struct Names<W>(Box<[Name<W>]>);

#[derive(Clone, Copy, Debug)]
struct Name<W> {
    /// Where the name occurs first in the file.
    start: W,
    /// The number of the agent's set of rules; see [`super::ruleset`].
    set: W,
    length: u16,
}

/// The agents that the value of a user-agent line names.
pub(super) enum Named<'a> {
    /// `*`, alone or before white space: all agents that no group names.
    Everyone,
    Agent {
        /// The part that Google's parser reads: letters, `-` and `_`, up to the first other character. Can be empty.
        token: &'a str,
        /// The text up to the first white space or `/`, if it is UTF-8 and longer than the token.
        word: Option<&'a str>,
    },
}

#[derive(Clone, Copy)]
pub(super) struct Mention {
    start: u32,
    length: u16,
    group: u32,
}

// === impl Names ===

impl Names<u32> {
    /// `mentions`, the places where the file names agents, must be in the order of the file. `set_of` returns the
    /// number of the set of rules for a list of groups.
    pub(super) fn new(mut mentions: Vec<Mention>, text: &[u8], mut set_of: impl FnMut(&[u32]) -> u32) -> Self {
        mentions.sort_by(|a, b| caseless(a.of(text), b.of(text)));
        let mut groups = Vec::new();
        let names = mentions.chunk_by(|a, b| caseless(a.of(text), b.of(text)).is_eq());
        let names = names.map(|alike| {
            groups.clear();
            groups.extend(alike.iter().map(|mention| mention.group));
            groups.dedup();
            Name {
                start: alike[0].start,
                set: set_of(&groups),
                length: alike[0].length,
            }
        });
        Self(names.collect())
    }

    pub(super) fn sets(&mut self) -> impl Iterator<Item = &mut u32> {
        self.0.iter_mut().map(|name| &mut name.set)
    }

    pub(super) fn narrow(&self) -> Option<Names<u16>> {
        let name = |name: &Name<u32>| {
            Some(Name {
                start: name.start.try_into().ok()?,
                set: name.set.try_into().ok()?,
                length: name.length,
            })
        };
        Some(Names(self.0.iter().map(name).collect::<Option<_>>()?))
    }
}

impl<W: Offset> Names<W> {
    /// Finds the name that equals `wanted`, ignoring ASCII case. Returns it as the file first spells it, with the
    /// number of its set of rules.
    pub(super) fn find<'t>(&self, text: &'t [u8], wanted: &str) -> Option<(&'t str, u32)> {
        let wanted = wanted.as_bytes();
        let head = Head::of(wanted).lower();
        let order = |name: &Name<W>| {
            let ordering = Head::at(text, name.start.at()).first(name.length.into()).lower();
            let ordering = ordering
                .cmp(&head)
                .then_with(|| caseless(rest(name.of(text)), rest(wanted)));
            // Compare the lengths too: NULs at the end of `wanted` look like the zeros at the end of a short `Head`.
            ordering.then(usize::from(name.length).cmp(&wanted.len()))
        };
        let at = self.0.binary_search_by(order).ok()?;
        let name = &self.0[at];
        // This never fails, because all names are valid UTF-8.
        Some((str::from_utf8(name.of(text)).ok()?, name.set.into()))
    }

    pub(super) fn weight(&self) -> usize {
        size_of_val(&*self.0)
    }
}

// === impl Name ===

impl<W: Offset> Name<W> {
    fn of<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        let start = self.start.at();
        &text[start..start + usize::from(self.length)]
    }
}

// === impl Mention ===

impl Mention {
    pub(super) fn new(start: usize, name: &str, group: u32) -> Self {
        Self {
            start: offset(start),
            // The length fits, because MAX_LINE limits it.
            length: u16::try_from(name.len()).unwrap_or(u16::MAX),
            group,
        }
    }

    fn of(self, text: &[u8]) -> &[u8] {
        let start = self.start.at();
        &text[start..start + usize::from(self.length)]
    }
}

// === impl Named ===

impl<'a> Named<'a> {
    /// Parses the value of a user-agent line, which has no white space at its ends.
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

/// Returns whether Google's parser accepts all of `agent` as a product token.
pub(super) fn is_product_token(agent: &str) -> bool {
    !agent.is_empty() && agent.bytes().all(is_token)
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'_')
}

fn utf8(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// Returns the bytes after those in the [`Head`].
fn rest(name: &[u8]) -> &[u8] {
    name.get(Head::BYTES..).unwrap_or_default()
}

fn caseless(a: &[u8], b: &[u8]) -> Ordering {
    let a = a.iter().map(u8::to_ascii_lowercase);
    a.cmp(b.iter().map(u8::to_ascii_lowercase))
}
