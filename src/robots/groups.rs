//! The groups in the text of a robots.txt: their agents and rules (RFC 9309 §2.2.1). [`super::explain()`],
//! [`super::lint()`] and [`super::changes()`] use them to describe a file to people.

use std::borrow::Cow;

use super::{
    Profile, RuleKind,
    line::Lines,
    names::{Named, is_product_token},
    record::{GroupLine, LineKey},
};

/// For whom the rules of a robots.txt are looked up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Choice<'a> {
    /// The agent of this name, as [`RobotsTxt::agent`](super::RobotsTxt::agent) finds it.
    Agent(&'a str),
    /// The bot with this product token, as [`RobotsTxt::product`](super::RobotsTxt::product) finds it.
    Product(&'a str),
    /// All agents that no group names. They get the rules for `*`.
    Everyone,
}

/// A user-agent line of a robots.txt.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AgentLine<'a> {
    pub(super) value: &'a [u8],
    /// Line number, from 1.
    pub line: u32,
}

pub(super) struct GroupText<'a> {
    pub(super) agents: Vec<AgentLine<'a>>,
    pub(super) rules: Vec<RuleText<'a>>,
}

pub(super) struct RuleText<'a> {
    pub(super) kind: RuleKind,
    /// The line without its comment and surrounding white space.
    pub(super) text: &'a [u8],
    pub(super) pattern: &'a [u8],
    pub(super) line: u32,
}

/// Returns all groups, in order. Rules before the first user-agent apply to no agent and are in no group.
pub(super) fn read(profile: Profile, body: &[u8]) -> Vec<GroupText<'_>> {
    let mut groups: Vec<GroupText<'_>> = Vec::new();
    for (line, bytes) in Lines::new(body) {
        let Some(record) = GroupLine::read(profile, bytes) else {
            continue;
        };
        match record.key {
            LineKey::UserAgent => {
                let agent = AgentLine::new(record.value, line);
                match groups.last_mut() {
                    Some(group) if group.rules.is_empty() => group.agents.push(agent),
                    _ => groups.push(GroupText {
                        agents: vec![agent],
                        rules: Vec::new(),
                    }),
                }
            }
            LineKey::Rule(kind) => {
                if let Some(group) = groups.last_mut() {
                    group.rules.push(RuleText {
                        kind,
                        text: record.text,
                        pattern: record.value,
                        line,
                    });
                }
            }
        }
    }
    groups
}

// === impl AgentLine ===

impl<'a> AgentLine<'a> {
    pub(super) fn new(value: &'a [u8], line: u32) -> Self {
        Self { value, line }
    }

    /// Returns the name as written, with invalid UTF-8 replaced. Control characters stay.
    #[must_use]
    pub fn name(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.value)
    }

    /// Returns whether the line names the agents of `choice`. A line for `*` names only [`Choice::Everyone`].
    #[must_use]
    pub fn names(&self, choice: Choice<'_>) -> bool {
        match (Named::read(self.value), choice) {
            (Named::Everyone, choice) => choice == Choice::Everyone,
            (Named::Agent { token, .. }, Choice::Agent(agent)) => token.eq_ignore_ascii_case(agent),
            (Named::Agent { token, .. }, Choice::Product(agent)) if is_product_token(agent) => {
                token.eq_ignore_ascii_case(agent)
            }
            (Named::Agent { word, .. }, Choice::Product(agent)) => {
                !agent.is_empty() && word.is_some_and(|word| word.eq_ignore_ascii_case(agent))
            }
            (Named::Agent { .. }, Choice::Everyone) => false,
        }
    }
}

// === impl GroupText ===

impl GroupText<'_> {
    pub(super) fn names(&self, choice: Choice<'_>) -> bool {
        self.agents.iter().any(|agent| agent.names(choice))
    }
}
