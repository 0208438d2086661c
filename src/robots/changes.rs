//! Compares two texts of a robots.txt: which rules each agent gained and lost, and which other statements, such as
//! sitemaps, were added and removed.
//!
//! It compares meanings: it ignores comments, the order of rules and statements, repetitions, and how the rules of an
//! agent are divided into groups.

use std::collections::{BTreeMap, HashMap};

use super::{
    Profile, RuleKind, StatementKind, escape,
    groups::{self, GroupText},
    names::Named,
    statements,
};

/// The changes from an old text of a robots.txt to a new one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineChanges {
    /// In the order of the new text. The changes for agents that only the old text names come last.
    pub groups: Vec<GroupChange>,
    /// The statements, such as sitemaps, that only the new text has.
    pub statements_added: Vec<ChangedStatement>,
    pub statements_removed: Vec<ChangedStatement>,
    /// Whether `groups` is incomplete, because a complete comparison would take too long.
    pub is_cut: bool,
}

/// Agents whose rules changed in the same way.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct GroupChange {
    /// The agents' names, as the new text first spells them, or the old text if the new one does not name them.
    pub agents: Vec<String>,
    pub kind: GroupChangeKind,
    pub added: Vec<ChangedRule>,
    pub removed: Vec<ChangedRule>,
}

/// How the rules of an agent changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GroupChangeKind {
    /// Only the new text names the agent.
    Added,
    /// Only the old text names the agent.
    Removed,
    Changed,
}

/// A rule that only one of the texts has for the agents of a [`GroupChange`].
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ChangedRule {
    /// Line number, from 1.
    pub line: u32,
    /// The rule as written; see [`Rule::text`](super::Rule::text).
    pub rule: String,
}

/// A statement, such as a sitemap, that the other text lacks or has for other agents.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ChangedStatement {
    pub line: u32,
    pub kind: &'static str,
    /// See [`Statement::value`](super::Statement::value).
    pub value: String,
    /// The first agents that the statement is for, at most 21. Empty if the statement is for the whole file, or if no
    /// user-agent line is above it.
    pub agents: Vec<String>,
}

/// Compares two texts of a robots.txt. For a site without a robots.txt, pass an empty text.
///
/// ```
/// use robotgate::robots::{Profile, changes};
///
/// let before = b"User-agent: *\nDisallow: /a\nDisallow: /b\n";
/// let after = b"# new\nUser-agent: *\nDisallow: /b\nDisallow: /c\nSitemap: https://example.com/map.xml\n";
/// let found = changes(Profile::Google, before, after);
/// let [group] = &found.groups[..] else { panic!("one group") };
/// assert_eq!(group.agents, ["*"]);
/// assert_eq!((group.added[0].line, &*group.added[0].rule), (4, "Disallow: /c"));
/// assert_eq!((group.removed[0].line, &*group.removed[0].rule), (2, "Disallow: /a"));
/// assert_eq!(found.statements_added[0].kind, "Sitemap");
///
/// assert!(!changes(Profile::Google, before, b"User-agent: *\nDisallow: /b\nDisallow: /a # why\n").has_rules());
/// ```
#[must_use]
pub fn changes(profile: Profile, before: &[u8], after: &[u8]) -> LineChanges {
    let (before_groups, after_groups) = (groups::read(profile, before), groups::read(profile, after));
    let mut comparison = Comparison::default();
    let before_index = comparison.index(profile, &before_groups);
    let after_index = comparison.index(profile, &after_groups);
    let (groups, is_cut) = changed_groups(&before_index, &after_index);
    let (statements_added, statements_removed) = changed_statements(profile, before, after);
    LineChanges {
        groups,
        statements_added,
        statements_removed,
        is_cut,
    }
}

/// Numbers the rules and the sets of rules of both texts. Equal ones get the same number, so only numbers have to be
/// compared.
#[derive(Default)]
struct Comparison<'t> {
    rules: HashMap<(RuleKind, std::borrow::Cow<'t, str>), u32>,
    sets: HashMap<Vec<u32>, u32>,
}

struct Index<'t> {
    groups: &'t [GroupText<'t>],
    /// For each group, the numbers of its rules.
    rules: Vec<Vec<u32>>,
    /// For each group, the number of its set of rules.
    sets: Vec<u32>,
    agents: Vec<IndexedAgent>,
    /// Maps each name, in lower case, to its index in `agents`.
    by_name: HashMap<String, usize>,
}

struct IndexedAgent {
    name: String,
    groups: Vec<usize>,
}

/// The numbers of the sets of rules that one text has for an agent. `None` if the text does not name the agent.
type SetsOfRules = Option<Vec<u32>>;
/// The rules of an agent, from all its groups. Maps the number of each rule (see [`Comparison`]) to the index of a
/// group that contains the rule, and to the rule's index in that group.
type Merged = BTreeMap<u32, (usize, usize)>;

// === impl Comparison ===

impl<'t> Comparison<'t> {
    fn index(&mut self, profile: Profile, groups: &'t [GroupText<'t>]) -> Index<'t> {
        let mut index = Index {
            groups,
            rules: Vec::with_capacity(groups.len()),
            sets: Vec::with_capacity(groups.len()),
            agents: Vec::new(),
            by_name: HashMap::new(),
        };
        for (at, group) in groups.iter().enumerate() {
            let numbers = group.rules.iter().map(|rule| {
                let key = (rule.kind, escape::of_pattern(profile, rule.pattern));
                let next = number(self.rules.len());
                *self.rules.entry(key).or_insert(next)
            });
            let numbers: Vec<u32> = numbers.collect();
            let mut set = numbers.clone();
            set.sort_unstable();
            set.dedup();
            let next = number(self.sets.len());
            index.sets.push(*self.sets.entry(set).or_insert(next));
            index.rules.push(numbers);
            for agent in &group.agents {
                let name = match Named::read(agent.value) {
                    Named::Everyone => "*",
                    Named::Agent { token, word } => word.unwrap_or(token),
                };
                if !name.is_empty() {
                    index.add(name, at);
                }
            }
        }
        index
    }
}

fn number(length: usize) -> u32 {
    // This never fails: `line::MAX_BODY` is 512 MiB, and there are fewer rules than bytes.
    u32::try_from(length).unwrap_or(u32::MAX)
}

// === impl Index ===

impl Index<'_> {
    fn add(&mut self, name: &str, group: usize) {
        let next = self.agents.len();
        let at = *self.by_name.entry(name.to_ascii_lowercase()).or_insert(next);
        if at == next {
            self.agents.push(IndexedAgent {
                name: name.to_owned(),
                groups: Vec::new(),
            });
        }
        let groups = &mut self.agents[at].groups;
        if groups.last() != Some(&group) {
            groups.push(group);
        }
    }

    fn groups_of(&self, name: &str) -> Option<&[usize]> {
        let at = self.by_name.get(&name.to_ascii_lowercase())?;
        Some(&self.agents[*at].groups)
    }

    fn sets_of(&self, groups: &[usize]) -> Vec<u32> {
        let mut sets: Vec<u32> = groups.iter().map(|group| self.sets[*group]).collect();
        sets.sort_unstable();
        sets.dedup();
        sets
    }

    /// Merges the rules of `groups` and removes repetitions. Adds the number of rules, with repetitions, to `work`.
    fn merged(&self, groups: &[usize], work: &mut usize) -> Merged {
        let mut merged = Merged::new();
        for &group in groups {
            *work += self.rules[group].len();
            for (at, rule) in self.rules[group].iter().enumerate() {
                merged.entry(*rule).or_insert((group, at));
            }
        }
        merged
    }

    fn lacking(&self, merged: &Merged, other: &Merged) -> Vec<ChangedRule> {
        let lacking = merged.iter().filter(|(rule, _)| !other.contains_key(rule));
        let mut rules: Vec<_> = lacking
            .map(|(_, &(group, at))| {
                let rule = &self.groups[group].rules[at];
                ChangedRule {
                    line: rule.line,
                    rule: String::from_utf8_lossy(rule.text).into_owned(),
                }
            })
            .collect();
        rules.sort_by_key(|rule| rule.line);
        rules
    }
}

fn changed_groups(before: &Index<'_>, after: &Index<'_>) -> (Vec<GroupChange>, bool) {
    let only_before = before
        .agents
        .iter()
        .filter(|agent| after.groups_of(&agent.name).is_none());
    let mut changed: Vec<GroupChange> = Vec::new();
    // Agents with the same pair of old and new rules share a change, so each pair is compared only once. The value is
    // the index of the change in `changed`, or `None` if only the division of the rules into groups changed.
    let mut known: HashMap<(SetsOfRules, SetsOfRules), Option<usize>> = HashMap::new();
    let mut work = 0;
    for agent in after.agents.iter().chain(only_before) {
        let (was, is) = (before.groups_of(&agent.name), after.groups_of(&agent.name));
        let pair = (was.map(|was| before.sets_of(was)), is.map(|is| after.sets_of(is)));
        if pair.0 == pair.1 {
            continue;
        }
        if let Some(change) = known.get(&pair) {
            if let Some(change) = change {
                changed[*change].agents.push(agent.name.clone());
            }
            continue;
        }
        if work > MAX_WORK {
            return (changed, true);
        }
        let was_rules = before.merged(was.unwrap_or_default(), &mut work);
        let is_rules = after.merged(is.unwrap_or_default(), &mut work);
        let change = GroupChange {
            agents: vec![agent.name.clone()],
            kind: match (was, is) {
                (None, _) => GroupChangeKind::Added,
                (_, None) => GroupChangeKind::Removed,
                _ => GroupChangeKind::Changed,
            },
            added: after.lacking(&is_rules, &was_rules),
            removed: before.lacking(&was_rules, &is_rules),
        };
        let is_same = change.kind == GroupChangeKind::Changed && change.added.is_empty() && change.removed.is_empty();
        known.insert(pair, (!is_same).then_some(changed.len()));
        if !is_same {
            changed.push(change);
        }
    }
    (changed, false)
}

fn changed_statements(profile: Profile, before: &[u8], after: &[u8]) -> (Vec<ChangedStatement>, Vec<ChangedStatement>) {
    let (before, after) = (statements(profile, before), statements(profile, after));
    // Many statements can have the same long list of agents, so number the lists and compare the numbers.
    let mut lists: HashMap<Vec<String>, u32> = HashMap::new();
    let mut keys = |all: &[super::Statement<'_>]| -> Vec<(StatementKind, String, u32)> {
        let mut last = None;
        let keys = all.iter().map(|statement| {
            let list = match &last {
                Some((agents, list)) if std::sync::Arc::ptr_eq(agents, &statement.agents) => *list,
                _ => {
                    let mut names: Vec<_> = (statement.agents.iter())
                        .map(|agent| agent.name().to_ascii_lowercase())
                        .collect();
                    names.sort_unstable();
                    names.dedup();
                    let next = number(lists.len());
                    let list = *lists.entry(names).or_insert(next);
                    last = Some((statement.agents.clone(), list));
                    list
                }
            };
            (statement.kind, statement.value.clone().into_owned(), list)
        });
        keys.collect()
    };
    let (before_keys, after_keys) = (keys(&before), keys(&after));
    let lacking = |all: &[super::Statement<'_>], keys: &[_], others: &[_]| {
        let others: std::collections::HashSet<_> = others.iter().collect();
        let lacking = all.iter().zip(keys).filter(|(_, key)| !others.contains(key));
        let changed = lacking.map(|(statement, _)| ChangedStatement {
            line: statement.line,
            kind: statement.kind.as_str(),
            value: statement.value.clone().into_owned(),
            agents: (statement.agents.iter().take(MAX_AGENTS))
                .map(|agent| agent.name().into_owned())
                .collect(),
        });
        changed.collect::<Vec<_>>()
    };
    (
        lacking(&after, &after_keys, &before_keys),
        lacking(&before, &before_keys, &after_keys),
    )
}

// === impl LineChanges ===

impl LineChanges {
    /// Returns whether rules or groups changed, or may have changed in the part that was not compared.
    #[must_use]
    pub fn has_rules(&self) -> bool {
        !self.groups.is_empty() || self.is_cut
    }

    /// Returns how many rules were added, over all groups.
    #[must_use]
    pub fn rules_added(&self) -> usize {
        self.groups.iter().map(|group| group.added.len()).sum()
    }

    /// Returns how many rules were removed, over all groups.
    #[must_use]
    pub fn rules_removed(&self) -> usize {
        self.groups.iter().map(|group| group.removed.len()).sum()
    }
}

/// A comparison stops after it has merged this many rules, which takes a fraction of a second. A text of 500 KiB can
/// give thousands of agents thousands of rules each.
const MAX_WORK: usize = 1_000_000;
/// Maximum number of agents that a [`ChangedStatement`] lists: one more than the log does, so that the log can say that
/// some are missing.
const MAX_AGENTS: usize = 21;

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(profile: Profile, before: &str, after: &str) -> Vec<String> {
        let found = changes(profile, before.as_bytes(), after.as_bytes());
        assert!(!found.is_cut);
        let groups = found.groups.iter().map(|group| {
            let signed = |sign: char, rules: &[ChangedRule]| -> Vec<String> {
                let rules = rules.iter();
                rules.map(|rule| format!("{sign}{} {}", rule.line, rule.rule)).collect()
            };
            let rules = [signed('+', &group.added), signed('-', &group.removed)].concat();
            format!("{} {:?}: {}", group.agents.join(" "), group.kind, rules.join(", "))
        });
        groups.collect()
    }

    #[test]
    fn rules_are_compared_by_agent_and_by_meaning() {
        for (what, before, after, expected) in [
            (
                "nothing",
                "User-agent: *\nDisallow: /a",
                "User-agent: *\nDisallow: /a",
                &[][..],
            ),
            (
                "comments, blank lines, case, order and repetition",
                "User-agent: *\nDisallow: /a\nAllow: /b",
                "# hello\n\nUSER-AGENT: *\n allow : /b # why\nDisallow: /a\nDisallow: /a\n",
                &[],
            ),
            (
                "sitemaps",
                "Sitemap: x\nUser-agent: *\nDisallow: /a",
                "User-agent: *\nDisallow: /a\nSitemap: y",
                &[],
            ),
            (
                "a rule more and one less",
                "User-agent: *\nDisallow: /a\nDisallow: /b",
                "User-agent: *\nDisallow: /b\nDisallow: /c",
                &["* Changed: +3 Disallow: /c, -2 Disallow: /a"],
            ),
            (
                "the other kind",
                "User-agent: *\nDisallow: /a",
                "User-agent: *\nAllow: /a",
                &["* Changed: +2 Allow: /a, -2 Disallow: /a"],
            ),
            (
                "a group is split in two, and merged",
                "User-agent: a\nUser-agent: b\nDisallow: /1\nDisallow: /2",
                "User-agent: a\nDisallow: /1\nUser-agent: b\nDisallow: /2\nDisallow: /1\nUser-agent: A\nDisallow: /2",
                &[],
            ),
            (
                "a new group for an agent, which no longer follows the rules for *",
                "User-agent: *\nDisallow: /a",
                "User-agent: *\nDisallow: /a\nUser-agent: FooBot/2\nDisallow:",
                &["FooBot Added: +4 Disallow:"],
            ),
            (
                "a group without rules",
                "User-agent: *\nDisallow: /a",
                "User-agent: *\nDisallow: /a\nUser-agent: foo",
                &["foo Added: "],
            ),
            (
                "agents with the same change are listed together",
                "User-agent: a\nDisallow: /1\nUser-agent: b\nDisallow: /1\nUser-agent: c\nDisallow: /2",
                "User-agent: a\nUser-agent: b\nDisallow: /1\nDisallow: /3",
                &["a b Changed: +4 Disallow: /3", "c Removed: -6 Disallow: /2"],
            ),
            (
                "a name with digits",
                "User-agent: MJ12bot\nDisallow: /",
                "User-agent: MJ13bot\nDisallow: /",
                &["MJ13bot Added: +2 Disallow: /", "MJ12bot Removed: -2 Disallow: /"],
            ),
            (
                "escapes in another case",
                "User-agent: *\nDisallow: /%c3%a9",
                "User-agent: *\nDisallow: /\u{e9}",
                &[],
            ),
            (
                "a file is new",
                "",
                "User-agent: *\nDisallow: /",
                &["* Added: +2 Disallow: /"],
            ),
            (
                "a file is gone",
                "User-agent: *\nDisallow: /",
                "",
                &["* Removed: -2 Disallow: /"],
            ),
            ("rules that belong to no agent", "Disallow: /a", "Disallow: /b", &[]),
        ] {
            assert_eq!(shown(Profile::Google, before, after), expected, "{what}");
        }
    }

    #[test]
    fn the_profile_decides_what_is_a_rule_and_which_patterns_are_equal() {
        let typo = ("User-agent: *\nDisallow: /a", "User-agent: *\nDisalow: /a");
        assert!(shown(Profile::Google, typo.0, typo.1).is_empty());
        assert_eq!(shown(Profile::Rfc9309, typo.0, typo.1), ["* Changed: -2 Disallow: /a"]);
        let escaped = ("User-agent: *\nDisallow: /a", "User-agent: *\nDisallow: /%61");
        assert!(shown(Profile::Rfc9309, escaped.0, escaped.1).is_empty());
        assert_eq!(shown(Profile::Google, escaped.0, escaped.1).len(), 1);
    }

    #[test]
    fn statements_are_compared_by_value_and_agents() {
        let before = b"Sitemap: x\nUser-agent: a\nCrawl-delay: 1\nUser-agent: b\nContent-Signal: ai-train=no";
        let after = b"User-agent: a\nCrawl-delay: 2\nUser-agent: c\nContent-Signal: ai-train=no\nSitemap: x";
        let found = changes(Profile::Google, before, after);
        let text = |all: &[ChangedStatement]| -> Vec<String> {
            let all = all.iter();
            all.map(|one| format!("{} {}: {} {:?}", one.line, one.kind, one.value, one.agents))
                .collect()
        };
        assert_eq!(
            text(&found.statements_added),
            [
                "2 Crawl-delay: 2 [\"a\"]",
                "4 Content-Signal: ai-train=no [\"a\", \"c\"]"
            ]
        );
        assert_eq!(
            text(&found.statements_removed),
            [
                "3 Crawl-delay: 1 [\"a\"]",
                "5 Content-Signal: ai-train=no [\"a\", \"b\"]"
            ]
        );
    }

    #[test]
    fn the_comparison_of_a_hostile_text_stops_at_the_work_limit() {
        let mut text = String::new();
        for agent in 0..4000 {
            text.push_str(&format!("User-agent: a{agent}\n"));
        }
        for rule in 0..10_000 {
            text.push_str(&format!("Disallow: /{rule}\n"));
        }
        for agent in 0..4000 {
            text.push_str(&format!("User-agent: a{agent}\nDisallow: /x{agent}\n"));
        }
        let found = changes(Profile::Google, b"", text.as_bytes());
        assert!(found.is_cut && found.has_rules());
        let rules: usize = found.groups.iter().map(|group| group.added.len()).sum();
        assert!((MAX_WORK..MAX_WORK + 20_000).contains(&rules), "{rules}");
        assert!(
            !changes(Profile::Google, text.as_bytes(), text.as_bytes()).has_rules(),
            "the same"
        );
    }

    #[test]
    fn any_bytes_can_be_compared() {
        use proptest::prelude::*;

        let line = prop_oneof![
            "(?i)(user-agent|allow|disallow|sitemap|crawl-delay)[: ]{1,2}[a-c/*$%\u{e9}]{0,4}",
            "[ -~\u{0}\r]{0,6}",
        ];
        let text = proptest::collection::vec(line, 0..12).prop_map(|lines| lines.join("\n"));
        let mut runner = proptest::test_runner::TestRunner::default();
        let result = runner.run(&(text.clone(), text), |(before, after)| {
            for profile in [Profile::Google, Profile::Rfc9309] {
                let (there, back) = (
                    changes(profile, before.as_bytes(), after.as_bytes()),
                    changes(profile, after.as_bytes(), before.as_bytes()),
                );
                prop_assert_eq!(there.rules_added(), back.rules_removed());
                prop_assert_eq!(there.statements_added.len(), back.statements_removed.len());
                prop_assert!(!changes(profile, after.as_bytes(), after.as_bytes()).has_rules());
            }
            Ok(())
        });
        result.unwrap();
    }
}
