//! The rules that do nothing, and whether their lines can go from the file.
//!
//! Never tells to remove the last rule of a run of them: only a rule ends a run of user-agents, so
//! those above it would share the rules of the next group, and no longer be hidden from those for
//! `*`. What is told to be removed can go line by line, or all at once.

use std::collections::{HashMap, HashSet};

use super::{Findings, Lint, groups::Group};

/// Rules without which every path is decided the same, as long as groups stay what they are.
#[derive(Default)]
pub(super) struct Removals(Vec<Removal>);

/// Why one of them does nothing.
pub(super) struct Removal {
    pub(super) line: u32,
    pub(super) related: Option<u32>,
    /// Where the line can go.
    pub(super) code: Lint,
    /// A sentence without its end.
    pub(super) why: String,
    /// What else could be done.
    pub(super) or: &'static str,
}

// === impl Removals ===

impl Removals {
    pub(super) fn add(&mut self, removal: Removal) {
        self.0.push(removal);
    }

    /// Says which can go, and of each group that would be left without a rule, which one has to
    /// stay.
    pub(super) fn tell(self, groups: &[Group<'_>], findings: &mut Findings) {
        let idle: HashSet<u32> = self.0.iter().map(|removal| removal.line).collect();
        let keeper = |group: &Group<'_>| {
            let lasts = group.rules.iter().any(|rule| !idle.contains(&rule.line));
            let (first, agent) = (group.rules.first()?, group.agents.first()?);
            (!lasts).then_some((first.line, agent.line))
        };
        let keepers: HashMap<u32, u32> = groups.iter().filter_map(keeper).collect();
        for removal in self.0 {
            let Removal {
                line,
                related,
                code,
                why,
                or,
            } = removal;
            let (code, message) = match keepers.get(&line) {
                None => (code, format!("{why}: remove it{or}.")),
                Some(agent) => (
                    Lint::LoneRule,
                    format!(
                        "{why}. But leave it, as the one rule of the group of line {agent} that stays: without any, its \
                         user-agents would share the rules of a group that follows."
                    ),
                ),
            };
            findings.push(line, related, code, message);
        }
    }
}
