//! Checks which agents each group names, and to which agents the rules apply. It does not look into patterns.

use std::collections::{HashMap, HashSet};

use super::{
    super::{
        groups::{GroupText, RuleText},
        names::Named,
        record::{is_space, trim},
    },
    Findings, Lint,
    lines::swallowed,
    quoted,
};

pub(super) struct LintGroup<'a> {
    pub(super) agents: Vec<UserAgent>,
    pub(super) rules: &'a [RuleText<'a>],
}

pub(super) struct UserAgent {
    /// The names by which agents can find this line. For `MJ12bot`, these are `mj`, which Google's parser reads, and
    /// `mj12bot`.
    pub(super) ids: Vec<Id>,
    /// The name that people would use for the agent. `None` if the line names no agent.
    id: Option<Id>,
    line: u32,
    shown: String,
    empty: bool,
}

/// A name by which an agent can find a user-agent line, in lower case.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) enum Id {
    /// `*`: all agents that no group names.
    Everyone,
    /// The part of the name that Google's parser reads.
    Token(String),
    /// The whole name, if Google's parser does not read all of it.
    Word(String),
}

struct Seen {
    first: u32,
    last: u32,
    /// Index of the group that contains the line `last`.
    group: usize,
}

pub(super) fn check<'a>(texts: &'a [GroupText<'a>], breaks: &[u32], findings: &mut Findings) -> Vec<LintGroup<'a>> {
    let mut groups = Vec::with_capacity(texts.len());
    for text in texts {
        let agents = text.agents.iter();
        let group = LintGroup {
            agents: agents
                .map(|agent| UserAgent::read(agent.line, agent.value, findings))
                .collect(),
            rules: &text.rules,
        };
        group.check_reach(findings);
        group.check_joined(breaks, findings);
        groups.push(group);
    }
    check_repeated(&groups, findings);
    check_last(&groups, findings);
    groups
}

// === impl LintGroup ===

impl LintGroup<'_> {
    pub(super) fn has_effective_rules(&self) -> bool {
        !self.rules.is_empty() && self.agents.iter().any(|agent| agent.id.is_some())
    }

    fn check_reach(&self, findings: &mut Findings) {
        if self.agents.iter().all(|agent| agent.id.is_none()) {
            let message = "No user-agent of this group is a valid name, so its rules apply to no bot: a name begins \
                           with a letter, and `*` means every bot only if it stands alone.";
            let first = self.agents.first().map_or(0, |agent| agent.line);
            findings.add(first, Lint::UnreachableGroup, message);
            return;
        }
        for agent in self.agents.iter().filter(|agent| agent.is_a_word_alone()) {
            let message = match &agent.id {
                Some(_) => format!(
                    "Google's parser allows only letters, `-` and `_` in a name, so it finds no name here. robotgate \
                     applies this group to a bot named {}, but other crawlers may not.",
                    agent.shown
                ),
                None => "This is not a valid name: a name begins with a letter, and `*` means every bot only if it \
                     stands alone."
                    .to_owned(),
            };
            findings.add(agent.line, Lint::UnnamedAgent, message);
        }
    }

    fn check_joined(&self, breaks: &[u32], findings: &mut Findings) {
        if self.rules.is_empty() {
            return;
        }
        for [before, agent] in self.agents.array_windows() {
            let next = breaks.partition_point(|line| *line < before.line);
            let is_apart = breaks.get(next).is_some_and(|line| *line < agent.line);
            if is_apart && before.id.is_some() {
                let message = format!(
                    "Only a rule ends a group, so the rules below also apply to {} of line {}: give that agent its own \
                     rules (`Disallow:` allows everything), or put the two lines together.",
                    before.shown, before.line
                );
                findings.relate(agent.line, before.line, Lint::JoinedGroups, message);
            }
        }
    }
}

fn check_repeated(groups: &[LintGroup<'_>], findings: &mut Findings) {
    let mut names: HashMap<&Id, Seen> = HashMap::new();
    let agents = groups.iter().enumerate();
    for (group, agent) in agents.flat_map(|(at, group)| group.agents.iter().map(move |agent| (at, agent))) {
        let (Some(id), line, shown) = (&agent.id, agent.line, &agent.shown) else {
            continue;
        };
        let Some(seen) = names.get_mut(id) else {
            let (first, last) = (line, line);
            names.insert(id, Seen { first, last, group });
            continue;
        };
        if seen.group == group {
            // A line such as `User-agent: a*` does more than an earlier line for `a`, because it also applies to a bot
            // that is configured as `a*`. So do not advise to remove it.
            let advice = match agent.ids.last() == Some(id) {
                true => ": remove this line",
                false => "",
            };
            let message = format!("The group names {shown} twice{advice}.");
            findings.relate(line, seen.last, Lint::RepeatedAgent, message);
        } else {
            let first = seen.first;
            let message = format!(
                "{shown} has a group at line {first}, too. Google and robotgate merge them, but some crawlers read only \
                 one: give it one group with all its rules."
            );
            findings.relate(line, first, Lint::MergedGroups, message);
        }
        (seen.last, seen.group) = (line, group);
    }
}

/// Reports a group without rules at the end of the file, if it names agents that have no rules elsewhere either.
fn check_last(groups: &[LintGroup<'_>], findings: &mut Findings) {
    let Some(last) = groups.last().filter(|group| group.rules.is_empty()) else {
        return;
    };
    let ruled: HashSet<&Id> = groups
        .iter()
        .filter(|group| !group.rules.is_empty())
        .flat_map(|group| group.agents.iter().flat_map(|agent| &agent.ids))
        .collect();
    let is_free = |agent: &&UserAgent| agent.id.as_ref().is_some_and(|id| !ruled.contains(id));
    let mut free = last.agents.iter().filter(is_free);
    let Some(agent) = free.next() else { return };
    let others = if free.next().is_some() { " and others" } else { "" };
    let message = match agent.id {
        Some(Id::Everyone) => {
            "No rule follows, so the group disallows nothing: write `Disallow:` if you mean that.".to_owned()
        }
        _ => format!(
            "No rule follows, so {}{others} may fetch everything, and the rules for `*` do not apply: write \
             `Disallow:` if you mean that.",
            agent.shown
        ),
    };
    findings.add(agent.line, Lint::GroupWithoutRules, message);
}

// === impl UserAgent ===

impl UserAgent {
    fn read(line: u32, value: &[u8], findings: &mut Findings) -> Self {
        let Named::Agent { token, word } = Named::read(value) else {
            if value != b"*" && swallowed(value).is_none() {
                let message = "Crawlers ignore what follows the `*`: the group applies to every bot without its own \
                     group.";
                findings.add(line, Lint::CutAgent, message);
            }
            return Self {
                line,
                ids: vec![Id::Everyone],
                id: Some(Id::Everyone),
                shown: "`*`".to_owned(),
                empty: false,
            };
        };
        let token_id = Id::Token(token.to_ascii_lowercase());
        let word_id = word.map(|word| Id::Word(word.to_ascii_lowercase()));
        let name = word.filter(|word| could_be_name(word));
        check_name(line, value, token, name, findings);
        Self {
            line,
            id: match name {
                Some(_) => word_id.clone(),
                None => Some(&token_id).filter(|_| !token.is_empty()).cloned(),
            },
            ids: [Some(token_id), word_id].into_iter().flatten().collect(),
            shown: quoted(name.unwrap_or(token).as_bytes()),
            empty: value.is_empty(),
        }
    }

    /// Returns whether Google's parser finds no agent in this line, but other parsers might.
    fn is_a_word_alone(&self) -> bool {
        !self.empty && matches!(&*self.ids, [Id::Token(token), ..] if token.is_empty())
    }
}

/// `token` is the part of the name that Google's parser reads. `name` is the whole name, if it is longer than `token`
/// and looks like a name.
fn check_name(line: u32, value: &[u8], token: &str, name: Option<&str>, findings: &mut Findings) {
    let (rest, read_as) = (&value[token.len()..], quoted(token.as_bytes()));
    if value.is_empty() {
        let message = "The user-agent has no name: write `*` for every bot.";
        findings.add(line, Lint::EmptyUserAgent, message);
    } else if rest.is_empty() || token.is_empty() {
        // Google's parser reads the whole name, or none of it. `check_reach` reports the latter.
    } else if let [b',' | b';' | b'|' | b'&', ..] = trim(rest) {
        let message = format!("Google reads only the first name, {read_as}: write a User-agent line for each agent.");
        findings.add(line, Lint::SeveralAgents, message);
    } else if rest[0] == b'/' && !token.eq_ignore_ascii_case("mozilla") {
        let message = format!("A version is not part of a name: leave it out. Google reads only {read_as}.");
        findings.add(line, Lint::AgentVersion, message);
    } else if swallowed(value).is_none() {
        let why = match (rest[0], name) {
            (b'*', _) => "A `*` means every bot only if it stands alone".to_owned(),
            (first, _) if is_space(first) => "A name is one word".to_owned(),
            (_, Some(name)) => format!(
                "Google allows only letters, `-` and `_` in a name (robotgate also applies the group to a bot named {})",
                quoted(name.as_bytes())
            ),
            _ => "A name has only letters, `-` and `_`".to_owned(),
        };
        findings.add(line, Lint::CutAgent, format!("{why}. Google reads only {read_as}."));
    }
}

fn could_be_name(word: &str) -> bool {
    let of_name = |char: char| char.is_alphanumeric() || matches!(char, '-' | '_' | '.');
    word.starts_with(char::is_alphanumeric) && word.chars().all(of_name)
}
