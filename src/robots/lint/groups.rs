//! Puts records into groups, as Google's parser does: only a rule ends a run of user-agents, and
//! groups for the same agent are one.
//!
//! Never looks into a pattern.

use std::collections::{HashMap, HashSet};

use super::{
    super::{
        RuleKind,
        record::{Key, Record},
    },
    Findings, Lint,
    agents::{Id, UserAgent},
    patterns, reading,
};

/// The groups read so far.
#[derive(Default)]
pub(super) struct Groups<'a> {
    groups: Vec<Group<'a>>,
    /// Whether the next user-agent still belongs to the last group: no rule has come since.
    open: bool,
    /// Whether something that looks like the end of a group came since the last user-agent.
    interrupted: bool,
    /// What to say of the last group once a rule comes.
    joined: Vec<Joined>,
    seen: HashMap<Id, Seen>,
}

/// Where a name has been seen.
#[derive(Clone, Copy)]
struct Seen {
    first: u32,
    last: u32,
    /// That of `last`.
    group: usize,
}

/// Two user-agents that share rules and do not look like it.
struct Joined {
    line: u32,
    before: u32,
    shown: String,
}

/// Consecutive user-agents and the rules that follow.
pub(super) struct Group<'a> {
    pub(super) agents: Vec<UserAgent>,
    pub(super) rules: Vec<Rule<'a>>,
}

/// One allow or disallow line.
pub(super) struct Rule<'a> {
    pub(super) line: u32,
    pub(super) kind: RuleKind,
    /// As written.
    pub(super) value: &'a [u8],
}

// === impl Groups ===

impl<'a> Groups<'a> {
    pub(super) fn record(&mut self, line: u32, record: &Record<'a>, findings: &mut Findings) {
        let kind = match record.key {
            Key::UserAgent => return self.user_agent(line, record.value, findings),
            Key::Rule(kind) => kind,
        };
        let rule = Rule {
            line,
            kind,
            value: record.value,
        };
        patterns::check(&rule, findings);
        if let Some(group) = self.groups.last_mut() {
            group.rules.push(rule);
            self.open = false;
            for joined in self.joined.drain(..) {
                joined.tell(findings);
            }
        } else {
            let name = reading::name(record.key);
            let message = format!(
                "This `{name}` stands before any user-agent, and binds nobody: put `User-agent: *` or another before it."
            );
            findings.add(line, Lint::RuleBeforeUserAgent, message);
        }
    }

    /// A line came that ends a group for those who read the file, but not for Google.
    pub(super) fn interrupt(&mut self) {
        self.interrupted = true;
    }

    /// The groups, after what can only be said at the end.
    pub(super) fn finish(self, findings: &mut Findings) -> Vec<Group<'a>> {
        for group in &self.groups {
            group.check_reach(findings);
        }
        if self.open {
            check_last(&self.groups, findings);
        }
        self.groups
    }

    fn user_agent(&mut self, line: u32, value: &[u8], findings: &mut Findings) {
        let agent = UserAgent::read(line, value, findings);
        if !self.open {
            self.groups.push(Group {
                agents: Vec::new(),
                rules: Vec::new(),
            });
        }
        let group = self.groups.len() - 1;
        if let Some(before) = self.groups[group].agents.last()
            && self.interrupted
            && before.id.is_some()
        {
            self.joined.push(Joined {
                line,
                before: before.line,
                shown: before.shown.clone(),
            });
        }
        self.open = true;
        self.interrupted = false;
        if let Some(id) = &agent.id {
            self.meet(id, group, &agent, findings);
        }
        self.groups[group].agents.push(agent);
    }

    /// Says where a name comes again.
    fn meet(&mut self, id: &Id, group: usize, agent: &UserAgent, findings: &mut Findings) {
        let line = agent.line;
        let Some(seen) = self.seen.get_mut(id) else {
            let new = Seen {
                first: line,
                last: line,
                group,
            };
            self.seen.insert(id.clone(), new);
            return;
        };
        let Seen {
            first,
            last,
            group: before,
        } = *seen;
        *seen = Seen {
            first,
            last: line,
            group,
        };
        let shown = &agent.shown;
        if before == group {
            // A word that no bot should be called by is a name all the same.
            let advice = match agent.ids.last() == Some(id) {
                true => ": remove this line",
                false => "",
            };
            let message = format!("The group names {shown} twice{advice}.");
            findings.relate(line, last, Lint::RepeatedAgent, message);
        } else {
            let message = format!(
                "{shown} has a group at line {first}, too. Google and robotgate merge them, but some crawlers read only \
                 one: give it one group with all its rules."
            );
            findings.relate(line, first, Lint::MergedGroups, message);
        }
    }
}

// === impl Joined ===

impl Joined {
    fn tell(self, findings: &mut Findings) {
        let Self { line, before, shown } = self;
        let message = format!(
            "Only a rule ends a group, so the rules below bind {shown} of line {before} as well: give that one rules of \
             its own (`Disallow:` allows everything), or put the two lines together."
        );
        findings.relate(line, before, Lint::JoinedGroups, message);
    }
}

// === impl Group ===

impl Group<'_> {
    /// Says whose names lead to nobody.
    fn check_reach(&self, findings: &mut Findings) {
        let Some(first) = self.agents.first() else { return };
        if self.agents.iter().all(|agent| agent.id.is_none()) {
            let message = "No user-agent of this group names anybody, and its rules bind nobody: a name begins with a \
                           letter, and `*` stands for everyone only by itself.";
            findings.add(first.line, Lint::UnreachableGroup, message);
            return;
        }
        for agent in self.agents.iter().filter(|agent| agent.is_a_word_alone()) {
            let message = match &agent.id {
                Some(_) => format!(
                    "Names are of letters, `-` and `_` for Google's parser, which finds nobody here. robotgate finds {} \
                     for an agent of that name, other crawlers may not.",
                    agent.shown
                ),
                None => "This names nobody: a name begins with a letter, and `*` stands for everyone only by itself."
                    .to_owned(),
            };
            findings.add(agent.line, Lint::UnnamedAgent, message);
        }
    }
}

/// Of the last group, which ends without a rule, who has none elsewhere either.
fn check_last(groups: &[Group<'_>], findings: &mut Findings) {
    let Some(last) = groups.last() else { return };
    let ruled: HashSet<&Id> = groups
        .iter()
        .filter(|group| !group.rules.is_empty())
        .flat_map(|group| group.agents.iter().flat_map(|agent| &agent.ids))
        .collect();
    let mut free = last
        .agents
        .iter()
        .filter(|agent| agent.id.as_ref().is_some_and(|id| !ruled.contains(id)));
    let Some(agent) = free.next() else { return };
    let others = if free.next().is_some() { " and others" } else { "" };
    let message = match agent.id {
        Some(Id::Everyone) => {
            "No rule follows, so the group forbids nothing: write `Disallow:` if that is meant.".to_owned()
        }
        _ => format!(
            "No rule follows, so {}{others} may fetch everything, and the rules for `*` do not hold: write \
             `Disallow:` if that is meant.",
            agent.shown
        ),
    };
    findings.add(agent.line, Lint::GroupWithoutRules, message);
}
