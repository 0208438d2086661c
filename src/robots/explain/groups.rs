//! The groups of a file with the text of their rules (RFC 9309 §2.2.1).
//!
//! Never compares a rule with a path.

use super::{AgentLine, Choice, Group};
use crate::robots::{
    Profile, RuleKind,
    line::Lines,
    record::{Key, Record},
};

/// A group as it stands in the file.
pub(super) struct GroupText<'a> {
    agents: Vec<AgentLine<'a>>,
    pub(super) rules: Vec<RuleText<'a>>,
}

/// A rule as it stands in the file.
pub(super) struct RuleText<'a> {
    pub(super) kind: RuleKind,
    /// The whole line, without comment and surrounding white space.
    pub(super) text: &'a [u8],
    pub(super) pattern: &'a [u8],
    pub(super) line: u32,
}

/// All groups of `body`, in order. Rules before the first user-agent bind nobody and are in none.
pub(super) fn read(profile: Profile, body: &[u8]) -> Vec<GroupText<'_>> {
    let mut groups: Vec<GroupText<'_>> = Vec::new();
    for (line, bytes) in Lines::new(body) {
        let Some(record) = Record::read(profile, bytes) else {
            continue;
        };
        let kind = match record.key {
            Key::Allow => RuleKind::Allow,
            Key::Disallow => RuleKind::Disallow,
            Key::UserAgent => {
                let agent = AgentLine::new(record.value, line);
                match groups.last_mut() {
                    // Only rules end a run of user-agents.
                    Some(group) if group.rules.is_empty() => group.agents.push(agent),
                    _ => groups.push(GroupText {
                        agents: vec![agent],
                        rules: Vec::new(),
                    }),
                }
                continue;
            }
        };
        if let Some(group) = groups.last_mut() {
            group.rules.push(RuleText {
                kind,
                text: record.text,
                pattern: record.value,
                line,
            });
        }
    }
    groups
}

// === impl GroupText ===

impl<'a> GroupText<'a> {
    pub(super) fn names(&self, choice: Choice<'_>) -> bool {
        self.agents.iter().any(|agent| agent.names(choice))
    }

    pub(super) fn shown(&self) -> Group<'a> {
        Group {
            agents: self.agents.clone(),
            rules: self.rules.len(),
        }
    }
}
