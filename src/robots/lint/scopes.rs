//! Rules against each other: within the groups that bind exactly the same agents, and of the file as
//! a whole.
//!
//! Never compares rules that no agent is given together.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
};

use super::{
    super::{Profile, RobotsTxt, Whole, escape::of_pattern, rule::RuleKind},
    Findings, Lint,
    agents::Id,
    groups::{Group, Rule},
    octets::Disguise,
    overlap::{Entry, Fate, fates},
    quote::quoted,
    shape::{Rank, Shape},
};

/// The rules of all groups with the same names.
struct Scope<'a> {
    rules: Vec<&'a Rule<'a>>,
    /// Whether those names have no other groups.
    alone: bool,
}

/// What the rules of a scope stand for.
struct Compiled<'a> {
    entries: Vec<Entry<'a>>,
    /// Of each rule, its pattern and the directory that it may stand for as well.
    of_rule: Vec<[Option<usize>; 2]>,
}

/// Says which rules do nothing beside others.
pub(super) fn compare(groups: &[Group<'_>], findings: &mut Findings) {
    for scope in scopes(groups) {
        scope.check(findings);
    }
}

/// What can be said of the file as a whole. `kept` is what counts of `body`.
pub(super) fn whole(
    body: &[u8],
    kept: &[u8],
    disguise: Option<Disguise>,
    groups: &[Group<'_>],
    findings: &mut Findings,
) {
    let binds = |group: &Group<'_>| !group.rules.is_empty() && group.agents.iter().any(|agent| agent.id.is_some());
    let ruled = groups.iter().any(binds);
    if let Some(disguise) = disguise {
        disguise.tell(ruled, findings);
    } else if body.is_empty() {
        findings.add(
            0,
            Lint::EmptyFile,
            "The file is empty: every crawler may fetch everything.",
        );
    } else if !ruled {
        let message = "No rule in the file binds anybody: every crawler may fetch everything.";
        findings.add(0, Lint::NoRules, message);
    }
    if ruled {
        check_everyone(kept, findings);
    }
}

fn check_everyone(kept: &[u8], findings: &mut Findings) {
    let robots = RobotsTxt::parse(kept);
    let everyone = robots.product("");
    if everyone.whole() != Whole::AllDisallowed {
        return;
    }
    if let Some(rule) = everyone.decide(b"/").rule {
        let message = "This shuts every crawler that has no group of its own out of the whole site.";
        findings.add(robots.rule(rule).line, Lint::BlocksEverything, message);
    }
}

fn scopes<'a>(groups: &'a [Group<'a>]) -> Vec<Scope<'a>> {
    let mut scopes: Vec<Scope<'a>> = Vec::new();
    let mut scope_of: BTreeMap<Vec<&Id>, usize> = BTreeMap::new();
    // Of each name, the only scope that has it, if it is the only one.
    let mut home: HashMap<&Id, Option<usize>> = HashMap::new();
    for group in groups {
        let mut ids: Vec<&Id> = group.agents.iter().flat_map(|agent| &agent.ids).collect();
        ids.sort_unstable();
        ids.dedup();
        let next = scopes.len();
        let scope = *scope_of.entry(ids.clone()).or_insert(next);
        if scope == next {
            scopes.push(Scope {
                rules: Vec::new(),
                alone: true,
            });
        }
        scopes[scope].rules.extend(&group.rules);
        for id in ids {
            let home = home.entry(id).or_insert(Some(scope));
            if *home != Some(scope) {
                scopes[scope].alone = false;
                if let Some(first) = home.take() {
                    scopes[first].alone = false;
                }
            }
        }
    }
    scopes
}

// === impl Scope ===

impl Scope<'_> {
    fn check(&self, findings: &mut Findings) {
        let patterns: Vec<Cow<'_, str>> = self
            .rules
            .iter()
            .map(|rule| of_pattern(Profile::Google, rule.value))
            .collect();
        let compiled = Compiled::new(&self.rules, &patterns);
        let disallows = compiled
            .entries
            .iter()
            .any(|entry| entry.rank.kind == RuleKind::Disallow);
        self.check_empty(&compiled, findings);
        if !disallows && self.alone {
            self.check_only_allows(&compiled, findings);
        }
        // Where nothing is disallowed, that has been said of all allows at once, or they say it
        // themselves: `Allow: /`.
        let fates = fates(&compiled.entries, self.alone && disallows);
        for (place, rule) in self.rules.iter().enumerate() {
            self.tell(rule, place, &patterns, &compiled, &fates, findings);
        }
    }

    fn tell(
        &self,
        rule: &Rule<'_>,
        place: usize,
        patterns: &[Cow<'_, str>],
        compiled: &Compiled<'_>,
        fates: &[Fate],
        findings: &mut Findings,
    ) {
        let [pattern, directory] = compiled.of_rule[place];
        let Some(own) = pattern.or(directory) else { return };
        let all = [pattern, directory].into_iter().flatten();
        let by = |index: usize| compiled.entries[index].rank;
        let beaten = |index: usize| matches!(fates[index], Fate::Beaten(_));
        let no_use = |index: usize| match fates[index] {
            Fate::Beaten(winner) => by(winner).kind == rule.kind,
            Fate::Idle(_) => true,
            Fate::Decides => false,
        };
        match fates[own] {
            Fate::Beaten(index) if by(index).kind != rule.kind && all.clone().all(beaten) => {
                let winner = by(index);
                let other = self.rules[winner.place];
                let also = if compiled.of_rule[winner.place][0] == Some(index) {
                    ""
                } else {
                    ", which stands for its directory as well,"
                };
                let why = if winner.length > by(own).length {
                    "is longer"
                } else {
                    "wins the tie, as an allow does"
                };
                let message = format!(
                    "This never decides: {} of line {}{also} matches all that this does and {why}.",
                    shown(other),
                    other.line
                );
                findings.relate(rule.line, other.line, Lint::ShadowedRule, message);
            }
            Fate::Beaten(winner) if all.clone().all(no_use) => {
                let winner = by(winner);
                let other = self.rules[winner.place];
                if patterns[winner.place] == patterns[place] {
                    let message = format!("This is the same rule as line {}: remove one.", other.line);
                    findings.relate(rule.line, other.line, Lint::DuplicateRule, message);
                } else {
                    let message = format!(
                        "This never decides: {} of line {} matches all that this does and wins. Remove it.",
                        shown(other),
                        other.line
                    );
                    findings.relate(rule.line, other.line, Lint::RedundantRule, message);
                }
            }
            Fate::Idle(Some(heir)) if all.clone().all(no_use) => {
                let other = self.rules[by(heir).place];
                let message = format!(
                    "Without this every path is decided the same, as {} of line {} covers it: remove it.",
                    shown(other),
                    other.line
                );
                findings.relate(rule.line, other.line, Lint::RedundantRule, message);
            }
            Fate::Idle(None) if all.clone().all(no_use) => {
                let message =
                    "Without this every path is decided the same, as it wins against no `Disallow`: remove it.";
                findings.add(rule.line, Lint::RedundantRule, message);
            }
            _ => {}
        }
    }

    fn check_empty(&self, compiled: &Compiled<'_>, findings: &mut Findings) {
        for rule in self.rules.iter().filter(|rule| rule.value.is_empty()) {
            let message = match rule.kind {
                RuleKind::Allow => "An empty `Allow` does nothing: remove it, or write `Allow: /` for everything.",
                RuleKind::Disallow if !compiled.entries.is_empty() => {
                    "An empty `Disallow` forbids nothing, and takes nothing back of what other rules forbid: remove it."
                }
                // By itself it says that everything is allowed.
                RuleKind::Disallow => continue,
            };
            findings.add(rule.line, Lint::EmptyRule, message);
        }
    }

    fn check_only_allows(&self, compiled: &Compiled<'_>, findings: &mut Findings) {
        let Some(entry) = compiled.entries.iter().find(|entry| !entry.shape.is_universal()) else {
            return;
        };
        let message = "The rules for these agents only allow, and what nothing disallows is allowed anyway: add \
                       `Disallow: /` if only this may be fetched.";
        findings.add(self.rules[entry.rank.place].line, Lint::OnlyAllows, message);
    }
}

// === impl Compiled ===

impl<'a> Compiled<'a> {
    fn new(rules: &[&Rule<'_>], patterns: &'a [Cow<'_, str>]) -> Self {
        let mut compiled = Self {
            entries: Vec::new(),
            of_rule: Vec::new(),
        };
        for (place, (rule, pattern)) in rules.iter().zip(patterns).enumerate() {
            let of_rule = if pattern.is_empty() {
                [None, None]
            } else {
                let directory = Shape::directory(pattern).filter(|_| rule.kind == RuleKind::Allow);
                let own = Shape::new(pattern).map(|shape| (shape, pattern.len()));
                [own, directory]
                    .map(|shape| shape.map(|(shape, length)| compiled.push(shape, length, rule.kind, place)))
            };
            compiled.of_rule.push(of_rule);
        }
        compiled
    }

    fn push(&mut self, shape: Shape<'a>, length: usize, kind: RuleKind, place: usize) -> usize {
        let rank = Rank { length, kind, place };
        self.entries.push(Entry { shape, rank });
        self.entries.len() - 1
    }
}

/// The rule in a few words.
fn shown(rule: &Rule<'_>) -> String {
    let name = match rule.kind {
        RuleKind::Allow => "Allow",
        RuleKind::Disallow => "Disallow",
    };
    quoted(&[name.as_bytes(), b": ", rule.value].concat())
}
