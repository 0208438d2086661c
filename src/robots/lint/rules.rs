//! Finds rules that never decide a path, and rules that could be removed without changing a decision.
//!
//! To test a pattern, it builds sample paths: the byte [`ANY`] replaces each `*`, and is appended to a pattern without
//! a `$` at the end. No pattern contains this byte, so a rule that matches all samples also matches every path that the
//! pattern matches.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
};

use super::{
    super::{
        Profile, RobotsTxt, RuleKind,
        entry::{can_match, index_directory},
        escape::of_pattern,
        groups::RuleText,
    },
    Findings, Lint,
    groups::{Id, LintGroup},
    quoted,
};

/// The rules that can match a path, from all groups with the same names. An agent gets all of these rules or none.
struct Scope<'a> {
    rules: Vec<&'a RuleText<'a>>,
    patterns: Vec<Cow<'a, str>>,
    /// The same rules, compiled as a file of their own: line 1 is `User-agent: *`, and the first rule is on line 2.
    robots: RobotsTxt,
}

pub(super) fn compare(groups: &[LintGroup<'_>], findings: &mut Findings) {
    let mut scopes: BTreeMap<BTreeSet<&Id>, Vec<&RuleText<'_>>> = BTreeMap::new();
    for group in groups {
        let names = group.agents.iter().flat_map(|agent| &agent.ids).collect();
        scopes.entry(names).or_default().extend(group.rules);
    }
    let mut scopes_of: HashMap<&Id, usize> = HashMap::new();
    for name in scopes.keys().flatten() {
        *scopes_of.entry(name).or_default() += 1;
    }
    let mut budget = BUDGET;
    for (names, rules) in &scopes {
        let scope = Scope::new(rules);
        scope.check_empty(rules, findings);
        // Whether the agents of this scope get no rules from other scopes.
        let alone = names.iter().all(|name| scopes_of[name] == 1);
        let disallows = scope.rules.iter().any(|rule| rule.kind == RuleKind::Disallow);
        if alone && !disallows {
            scope.check_only_allows(findings);
        }
        scope.check(alone && disallows, &mut budget, findings);
    }
}

// === impl Scope ===

impl<'a> Scope<'a> {
    fn new(rules: &[&'a RuleText<'a>]) -> Self {
        let rules: Vec<_> = rules.iter().copied().filter(|rule| can_match(rule.pattern)).collect();
        let mut file = b"User-agent: *".to_vec();
        for rule in &rules {
            file.push(b'\n');
            file.extend_from_slice(rule.text);
        }
        Self {
            patterns: rules
                .iter()
                .map(|rule| of_pattern(Profile::Google, rule.pattern))
                .collect(),
            robots: RobotsTxt::parse(&file),
            rules,
        }
    }

    /// Reports rules that never decide and, if `covered` is set, rules that could be removed without changing a
    /// decision.
    fn check(&self, covered: bool, budget: &mut usize, findings: &mut Findings) {
        let all = 0..self.rules.len();
        let winners: Vec<Option<usize>> = all.map(|at| self.winner(at, budget)).collect();
        // Rules that must stay: without them, a rule of the opposite kind could decide.
        let mut needed = HashSet::new();
        for (at, winner) in winners.iter().enumerate() {
            let (rule, Some(winner)) = (self.rules[at], *winner) else {
                continue;
            };
            let (other, line) = (quoted(self.rules[winner].text), self.rules[winner].line);
            let (code, message) = if self.rules[winner].kind != rule.kind {
                needed.insert(winner);
                let why = match self.patterns[winner].len() > self.patterns[at].len() {
                    true => "is longer",
                    false => "wins ties, because it is an Allow",
                };
                let message = format!(
                    "This rule never decides: {other} in line {line} matches every path that this rule \
                         matches, and {why}."
                );
                (Lint::ShadowedRule, message)
            } else if self.patterns[winner] == self.patterns[at] {
                (Lint::DuplicateRule, format!("This rule is the same as line {line}."))
            } else {
                let message = format!(
                    "This rule never decides, because {other} in line {line} matches every path that this \
                         rule matches, and wins."
                );
                (Lint::RedundantRule, message)
            };
            findings.relate(rule.line, line, code, message);
        }
        // With the budget used up, `winners` can be incomplete, and the check below would report rules that are needed.
        if !covered || *budget == 0 {
            return;
        }
        let lengths = self.lengths();
        for (at, rule) in self.rules.iter().enumerate() {
            if winners[at].is_some() || needed.contains(&at) {
                continue;
            }
            let heir = self.heir(at, &lengths, budget);
            // With the budget used up, `heir` may not have found the rule that would decide.
            if *budget == 0 {
                return;
            }
            match heir {
                Some(Some(heir)) => {
                    let (other, line) = (quoted(self.rules[heir].text), self.rules[heir].line);
                    let message = format!("This rule changes no decision, because {other} in line {line} covers it.");
                    findings.relate(rule.line, line, Lint::RedundantRule, message);
                }
                Some(None) => {
                    let message = "This rule changes no decision, because it wins against no `Disallow`.";
                    findings.add(rule.line, Lint::RedundantRule, message);
                }
                None => {}
            }
        }
    }

    /// Returns the index of another rule that matches every path that the rule at index `at` matches, and wins against
    /// it. Returns `None` if there is no such rule, or if the budget is used up.
    fn winner(&self, at: usize, budget: &mut usize) -> Option<usize> {
        let samples_at = samples(&self.patterns[at]);
        let directory = self.directory(at).map(|pattern| samples(&pattern));
        let mut deciders = samples_at
            .iter()
            .chain(directory.iter().flatten())
            .map(|path| self.decider(path, budget));
        let winner = deciders.next()??;
        (winner != at && deciders.all(|decider| decider == Some(winner))).then_some(winner)
    }

    /// Returns the index of the rule that would decide if the rule at index `at` were removed, or `Some(None)` if no
    /// rule would decide. Returns `None` if the removal could change a decision.
    fn heir(&self, at: usize, lengths: &Lengths, budget: &mut usize) -> Option<Option<usize>> {
        let (kind, pattern) = (self.rules[at].kind, &self.patterns[at]);
        if self.directory(at).is_some() {
            return None;
        }
        let heir = wider(pattern).and_then(|path| self.decider(&path, budget));
        if heir == Some(at) || heir.map_or(RuleKind::Allow, |heir| self.rules[heir].kind) != kind {
            return None;
        }
        // A rival is a rule of the opposite kind that could decide a path instead of the heir: it is at least as long
        // as the heir and at most as long as this rule. If this rule's pattern has no `*`, a rule whose pattern has no
        // `*` is no rival: if that rule matched one of this rule's paths, it would match all of them, and would be the
        // heir.
        let rivals = &lengths[opposite(kind) as usize][usize::from(!pattern.contains('*'))];
        let least = heir.map_or(0, |heir| self.patterns[heir].len());
        let next = rivals.partition_point(|length| *length < least);
        let is_alone = rivals.get(next).is_none_or(|length| *length > pattern.len());
        is_alone.then_some(heir)
    }

    /// Returns the index of the rule that decides `path`. Returns `None` if no rule does, or if the budget is used up.
    fn decider(&self, path: &[u8], budget: &mut usize) -> Option<usize> {
        let rule = self.robots.product("").decide_within(path, budget)?.rule?;
        Some(rule.line() as usize - 2)
    }

    /// Returns the pattern of the directory if the rule is an `Allow` for an index page: `/dir/$` for
    /// `/dir/index.html`.
    fn directory(&self, at: usize) -> Option<String> {
        let pattern = &self.patterns[at];
        let end = index_directory(pattern.as_bytes()).filter(|_| self.rules[at].kind == RuleKind::Allow)?;
        Some(format!("{}$", &pattern[..end]))
    }

    fn lengths(&self) -> Lengths {
        let mut lengths = Lengths::default();
        for (at, rule) in self.rules.iter().enumerate() {
            let [all, wild] = &mut lengths[rule.kind as usize];
            for pattern in [Some(self.patterns[at].to_string()), self.directory(at)]
                .into_iter()
                .flatten()
            {
                all.push(pattern.len());
                wild.extend(pattern.contains('*').then_some(pattern.len()));
            }
        }
        lengths.iter_mut().flatten().for_each(|lengths| lengths.sort_unstable());
        lengths
    }

    /// Reports rules without a pattern. They are in `rules`, but not in `self.rules`.
    fn check_empty(&self, rules: &[&RuleText<'_>], findings: &mut Findings) {
        for rule in rules.iter().filter(|rule| rule.pattern.is_empty()) {
            let message = match rule.kind {
                RuleKind::Allow => "An empty `Allow` does nothing: write `Allow: /` if you mean everything.",
                // Without a rule that can match a path, an empty `Disallow` says that everything is allowed.
                RuleKind::Disallow if self.rules.is_empty() => continue,
                RuleKind::Disallow => "An empty `Disallow` disallows nothing, and does not cancel other rules.",
            };
            findings.add(rule.line, Lint::EmptyRule, message);
        }
    }

    fn check_only_allows(&self, findings: &mut Findings) {
        let allows_everything = self.robots.product("").decide(&[b'/', ANY]).rule.is_some();
        if let Some(rule) = self.rules.first()
            && !allows_everything
        {
            let message = "The rules for these agents only allow, and everything is allowed anyway unless a rule \
                           disallows it: add `Disallow: /` if these agents may fetch nothing else.";
            findings.add(rule.line, Lint::OnlyAllows, message);
        }
    }
}

/// The sorted lengths of patterns: two lists for `Allow`, then two for `Disallow`. The first list of each is for all
/// patterns, the second for those with a `*`.
type Lengths = [[Vec<usize>; 2]; 2];

/// Returns sample paths for `pattern`. A rule that matches all of them also matches every path that `pattern` matches.
fn samples(pattern: &str) -> Vec<Vec<u8>> {
    let open = match pattern.strip_suffix('$') {
        Some(body) => Cow::Borrowed(body),
        None => Cow::Owned(format!("{pattern}*")),
    };
    let filled = |open: &str| {
        let mut path: Vec<u8> = open.bytes().map(|b| if b == b'*' { ANY } else { b }).collect();
        path.dedup_by(|b, a| (*a, *b) == (ANY, ANY));
        path
    };
    let rest = open.trim_start_matches('*');
    if rest.len() == open.len() {
        return vec![filled(&open)];
    }
    // In a pattern that begins with `*`, the `*` or a slash after it can match the first slash of the path.
    let mut paths = vec![filled(&format!("/{open}"))];
    if rest.starts_with('/') {
        paths.push(filled(rest));
    }
    paths
}

/// Returns a path that `pattern` does not match, or `None` if it matches every path. A rule that matches this path also
/// matches every path that `pattern` matches.
fn wider(pattern: &str) -> Option<Vec<u8>> {
    let end = pattern.strip_suffix('$').unwrap_or(pattern);
    let (literal, rest) = pattern.split_at(end.find('*').unwrap_or(end.len()));
    let is_prefix = rest != "$" && rest.bytes().all(|b| matches!(b, b'*' | b'$'));
    let shared = match literal.len() - usize::from(is_prefix && !literal.is_empty()) {
        0 if is_prefix => return None,
        // The path still has to begin with a slash.
        0 => "/",
        end => &literal[..end],
    };
    Some([shared.as_bytes(), &[ANY]].concat())
}

fn opposite(kind: RuleKind) -> RuleKind {
    match kind {
        RuleKind::Allow => RuleKind::Disallow,
        RuleKind::Disallow => RuleKind::Allow,
    }
}

/// Occurs in no pattern, because normalized patterns are ASCII.
const ANY: u8 = 0xFF;

/// How many bytes of paths may be searched because of patterns with wildcards while one file is checked, so that a
/// hostile file does not take long.
const BUDGET: usize = 16 << 20;
