//! Parses a robots.txt into the patterns and the agents of each group, in one pass over its lines.
//!
//! It accepts any bytes. Which rules an agent gets is decided in [`super::ruleset`].

use std::borrow::Cow;

use super::{
    Profile, RuleKind,
    entry::{PatternEntry, offset},
    escape,
    head::Head,
    line::Lines,
    names::{Mention, Named},
    record::{GroupLine, LineKey},
    usage::UsageBound,
};

/// A parsed robots.txt, before its rules are compiled for each agent.
pub(super) struct Draft<'a> {
    pub(super) profile: Profile,
    body: &'a [u8],
    /// The file, then the normalized patterns that can differ from those in the file, then the zeros that [`Head::at`]
    /// needs. The four bytes before a normalized pattern are the offset of the pattern in the file.
    pub(super) text: Vec<u8>,
    pub(super) patterns: Vec<PatternEntry<u32>>,
    /// Index in `patterns` of the first pattern of each group.
    pub(super) groups: Vec<usize>,
    pub(super) everyone: Vec<u32>,
    pub(super) tokens: Vec<Mention>,
    /// The whole names that Google's parser reads only in part, such as `MJ12bot` (it reads `MJ`), or not at all.
    pub(super) words: Vec<Mention>,
    pub(super) usage: UsageBound,
    /// Whether the next user-agent line belongs to the current group, because the group has no rule yet.
    open: bool,
}

// === impl Draft ===

impl<'a> Draft<'a> {
    pub(super) fn read(profile: Profile, body: &'a [u8]) -> Self {
        let mut text = Vec::with_capacity(body.len() + Head::BYTES);
        text.extend_from_slice(body);
        let mut draft = Self {
            profile,
            body,
            text,
            patterns: Vec::with_capacity(body.len() / TYPICAL_LINE),
            groups: Vec::new(),
            everyone: Vec::new(),
            tokens: Vec::new(),
            words: Vec::new(),
            usage: UsageBound::default(),
            open: false,
        };
        for (line, bytes) in Lines::new(body) {
            let Some(record) = GroupLine::read(profile, bytes) else {
                draft.usage.add_other(bytes);
                continue;
            };
            match record.key {
                LineKey::UserAgent => draft.user_agent(record.value),
                LineKey::Rule(kind) => draft.rule(kind, line, record.value),
            }
        }
        draft.text.extend_from_slice(&[0; Head::BYTES]);
        draft
    }

    pub(super) fn patterns_of(&self, group: u32) -> &[PatternEntry<u32>] {
        let group = group as usize;
        let end = self.groups.get(group + 1);
        &self.patterns[self.groups[group]..end.copied().unwrap_or(self.patterns.len())]
    }

    fn user_agent(&mut self, value: &[u8]) {
        self.usage.add_agent();
        if !self.open {
            self.groups.push(self.patterns.len());
            self.open = true;
        }
        let group = offset(self.groups.len() - 1);
        match Named::read(value) {
            Named::Everyone if self.everyone.last() == Some(&group) => {}
            Named::Everyone => self.everyone.push(group),
            Named::Agent { token, word } => {
                let start = self.offset_of(value);
                self.tokens.push(Mention::new(start, token, group));
                self.words.extend(word.map(|word| Mention::new(start, word, group)));
            }
        }
    }

    fn rule(&mut self, kind: RuleKind, line: u32, value: &[u8]) {
        // Rules before the first user-agent apply to no agent.
        if self.groups.is_empty() {
            return;
        }
        self.open = false;
        let start_in_body = self.offset_of(value);
        let (start, length) = match escape::of_pattern(self.profile, value) {
            Cow::Borrowed(same) => (start_in_body, same.len()),
            Cow::Owned(spelled) => {
                self.text.extend_from_slice(&offset(start_in_body).to_le_bytes());
                let start = self.text.len();
                self.text.extend_from_slice(spelled.as_bytes());
                (start, spelled.len())
            }
        };
        self.patterns
            .push(PatternEntry::new(&self.text, start, length, line, kind));
        if kind == RuleKind::Allow && self.profile == Profile::Google {
            self.patterns
                .extend(PatternEntry::directory(&self.text, start, length, line));
        }
    }

    /// Returns the offset in the file of `part`, which must be a slice of the file itself.
    fn offset_of(&self, part: &[u8]) -> usize {
        let offset = part.as_ptr().addr().wrapping_sub(self.body.as_ptr().addr());
        debug_assert!(offset <= self.body.len());
        offset
    }
}

/// A low estimate of the average length of a line in bytes, to reserve memory for patterns.
const TYPICAL_LINE: usize = 20;
