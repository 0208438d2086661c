//! Rules against each other, within the groups that bind exactly the same agents.
//!
//! Never compares rules that no agent is given together.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
};

use super::{
    super::{Profile, RuleKind, escape::of_pattern},
    Findings, Lint,
    agents::Id,
    groups::{Group, Rule},
    overlap::{Entry, Fate, fates},
    quote::quoted,
    removals::{Removal, Removals},
    shape::{Rank, Shape},
    stars::{self, Lengths},
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
    let mut removals = Removals::default();
    let all = Lengths::of(groups.iter().flat_map(|group| &group.rules));
    for scope in scopes(groups) {
        scope.check(&all, &mut removals, findings);
    }
    removals.tell(groups, findings);
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
    /// `all` is of all rules in the file.
    fn check(&self, all: &Lengths, removals: &mut Removals, findings: &mut Findings) {
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
        self.check_empty(&compiled, removals);
        if !disallows && self.alone {
            self.check_only_allows(&compiled, findings);
        }
        // Where nothing is disallowed, that has been said of all allows at once, or they say it
        // themselves: `Allow: /`.
        let fates = fates(&compiled.entries, self.alone && disallows);
        let own = self.alone.then(|| Lengths::of(self.rules.iter().copied()));
        let lengths = own.as_ref().unwrap_or(all);
        for (place, rule) in self.rules.iter().enumerate() {
            stars::check(rule, &patterns[place], lengths, findings);
            self.judge(place, &patterns, &compiled, &fates, removals, findings);
        }
    }

    /// Says of the rule at `place` that it never decides, or that it does nothing.
    fn judge(
        &self,
        place: usize,
        patterns: &[Cow<'_, str>],
        compiled: &Compiled<'_>,
        fates: &[Fate],
        removals: &mut Removals,
        findings: &mut Findings,
    ) {
        let rule = self.rules[place];
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
        if let Fate::Beaten(index) = fates[own]
            && by(index).kind != rule.kind
            && all.clone().all(beaten)
        {
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
        } else if all.clone().all(no_use) {
            let other = |index: usize| self.rules[by(index).place];
            let (code, related, why) = match fates[own] {
                Fate::Beaten(index) if patterns[by(index).place] == patterns[place] => {
                    let line = other(index).line;
                    let why = format!("This is the same rule as line {line}");
                    (Lint::DuplicateRule, Some(line), why)
                }
                Fate::Beaten(index) => {
                    let Rule { line, .. } = other(index);
                    let winner = shown(other(index));
                    let why =
                        format!("This never decides, as {winner} of line {line} matches all that it does and wins");
                    (Lint::RedundantRule, Some(*line), why)
                }
                Fate::Idle(Some(index)) => {
                    let Rule { line, .. } = other(index);
                    let why = format!(
                        "This changes no decision, as {} of line {line} covers it",
                        shown(other(index))
                    );
                    (Lint::RedundantRule, Some(*line), why)
                }
                Fate::Idle(None) | Fate::Decides => {
                    let why = "This changes no decision, as it wins against no `Disallow`".to_owned();
                    (Lint::RedundantRule, None, why)
                }
            };
            removals.add(Removal {
                line: rule.line,
                related,
                code,
                why,
                or: "",
            });
        }
    }

    fn check_empty(&self, compiled: &Compiled<'_>, removals: &mut Removals) {
        for rule in self.rules.iter().filter(|rule| rule.value.is_empty()) {
            let (why, or) = match rule.kind {
                RuleKind::Allow => ("An empty `Allow` does nothing", ", or write `Allow: /` for everything"),
                RuleKind::Disallow if !compiled.entries.is_empty() => (
                    "An empty `Disallow` forbids nothing, and takes nothing back of what other rules forbid",
                    "",
                ),
                // By itself it says that everything is allowed.
                RuleKind::Disallow => continue,
            };
            removals.add(Removal {
                line: rule.line,
                related: None,
                code: Lint::EmptyRule,
                why: why.to_owned(),
                or,
            });
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
