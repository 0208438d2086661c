//! Compiles a robots.txt: one pass over its lines into a draft, then one ranking of all patterns
//! and an index for each set of groups that some agent may be given.
//!
//! Never fails and never matches. Time and memory stay in proportion to the file whatever is in
//! it, but for the logarithm of sorting.

use std::{borrow::Cow, cmp::Reverse, collections::BTreeMap, ops::Range};

use super::{
    Profile, RobotsTxt, escape,
    line::Lines,
    names::{Named, Names, Roll},
    pattern::Pattern,
    record::{Key, Record},
    rule::{RuleId, RuleKind, StoredRule},
    span::{Span, offset},
    table::{Ranked, Table},
};

/// What has been read so far.
pub(super) struct Draft {
    profile: Profile,
    text: String,
    rules: Vec<StoredRule>,
    /// In file order.
    patterns: Vec<Pattern>,
    groups: Vec<Group>,
    /// Whether the next user-agent still belongs to the last group: no rule has come since.
    open: bool,
    everyone: Option<Vec<u32>>,
    tokens: Roll,
    words: Roll,
}

/// Consecutive user-agents and the rules that follow.
struct Group {
    opener: Span,
    patterns: Range<usize>,
}

/// Builds tables and shares them among the agents that are given the same groups.
struct Binder<'a> {
    ranked: Ranked<'a>,
    /// Of each group, the ranks of its patterns, ascending.
    groups: Vec<Vec<u32>>,
    table_of_group: Vec<Option<u32>>,
    tables: Vec<Table>,
    sets: Vec<Box<[u32]>>,
    set_of_groups: BTreeMap<Vec<u32>, u32>,
    /// How many more patterns may be indexed a second time.
    spare: usize,
}

// === impl Draft ===

impl Draft {
    pub(super) fn read(profile: Profile, body: &[u8]) -> Self {
        let mut draft = Self {
            profile,
            text: String::new(),
            rules: Vec::new(),
            patterns: Vec::new(),
            groups: Vec::new(),
            open: false,
            everyone: None,
            tokens: Roll::new(),
            words: Roll::new(),
        };
        for (line, bytes) in Lines::new(body) {
            let Some(record) = Record::read(profile, bytes) else {
                continue;
            };
            match record.key {
                Key::UserAgent => draft.user_agent(record.value),
                Key::Allow => draft.rule(RuleKind::Allow, line, &record),
                Key::Disallow => draft.rule(RuleKind::Disallow, line, &record),
            }
        }
        draft
    }

    pub(super) fn finish(self) -> RobotsTxt {
        let mut order: Vec<usize> = (0..self.patterns.len()).collect();
        order.sort_by_key(|at| {
            let pattern = &self.patterns[*at];
            (Reverse(pattern.length), pattern.kind)
        });
        let groups = ranks_of_groups(&self.groups, &order);
        let patterns = permute(self.patterns, &order);
        let ranked = Ranked {
            text: &self.text,
            patterns: &patterns,
        };
        let mut binder = Binder::new(ranked, groups);
        // First, so that of all sets the one for everyone is sure to have one table.
        let everyone = self.everyone.map(|groups| binder.bind(groups));
        let tokens = Names::new(self.tokens, |groups| binder.bind(groups));
        let words = Names::new(self.words, |groups| binder.bind(groups));
        let Binder { tables, sets, .. } = binder;
        RobotsTxt {
            profile: self.profile,
            text: self.text.into(),
            rules: self.rules.into(),
            patterns: patterns.into(),
            openers: self.groups.iter().map(|group| group.opener).collect(),
            wildest: tables.iter().map(Table::wilds).sum(),
            tables: tables.into(),
            sets: sets.into(),
            everyone,
            tokens,
            words,
        }
    }

    fn user_agent(&mut self, value: &[u8]) {
        let named = Named::read(value);
        if !self.open {
            self.open_group(&named);
        }
        let group = offset(self.groups.len() - 1);
        match named {
            Named::Everyone => push_once(self.everyone.get_or_insert_default(), group),
            Named::Agent { token, word } => {
                enroll(&mut self.tokens, &mut self.text, token, group);
                if let Some(word) = word {
                    enroll(&mut self.words, &mut self.text, word, group);
                }
            }
        }
    }

    fn open_group(&mut self, named: &Named<'_>) {
        let opener = match named {
            Named::Everyone => "*",
            Named::Agent { token, word } => word.unwrap_or(token),
        };
        let here = self.patterns.len();
        self.groups.push(Group {
            opener: Span::push(&mut self.text, opener),
            patterns: here..here,
        });
        self.open = true;
    }

    fn rule(&mut self, kind: RuleKind, line: u32, record: &Record<'_>) {
        // Rules before the first user-agent bind nobody.
        let Some(group) = self.groups.last_mut() else {
            return;
        };
        self.open = false;
        let text = Span::push(&mut self.text, &String::from_utf8_lossy(record.text));
        let written = match escape::of_pattern(self.profile, record.value) {
            // Then the line ends with it, byte for byte.
            Cow::Borrowed(same) => text.tail(same.len()),
            Cow::Owned(escaped) => Span::push(&mut self.text, &escaped),
        };
        let id = RuleId::new(self.rules.len());
        self.patterns.push(Pattern::new(&self.text, written, kind, id));
        if kind == RuleKind::Allow && self.profile == Profile::Google {
            self.patterns.extend(Pattern::directory(&self.text, written, id));
        }
        group.patterns.end = self.patterns.len();
        self.rules.push(StoredRule {
            kind,
            pattern: written,
            text,
            line,
            group: offset(self.groups.len() - 1),
        });
    }
}

// === impl Binder ===

impl<'a> Binder<'a> {
    fn new(ranked: Ranked<'a>, groups: Vec<Vec<u32>>) -> Self {
        Self {
            ranked,
            table_of_group: vec![None; groups.len()],
            groups,
            tables: Vec::new(),
            sets: Vec::new(),
            set_of_groups: BTreeMap::new(),
            spare: SPARE * ranked.patterns.len(),
        }
    }

    /// The set of rules for whoever is named by exactly these groups.
    fn bind(&mut self, groups: Vec<u32>) -> u32 {
        if let Some(set) = self.set_of_groups.get(&groups) {
            return *set;
        }
        let tables = match *groups {
            [group] => [self.table_of_group(group)].into(),
            _ => self.merged(&groups).map_or_else(
                || groups.iter().map(|group| self.table_of_group(*group)).collect(),
                |table| [table].into(),
            ),
        };
        let set = offset(self.sets.len());
        self.sets.push(tables);
        self.set_of_groups.insert(groups, set);
        set
    }

    fn table_of_group(&mut self, group: u32) -> u32 {
        if let Some(table) = self.table_of_group[group as usize] {
            return table;
        }
        let table = Table::new(self.ranked, &self.groups[group as usize]);
        let index = self.push(table);
        self.table_of_group[group as usize] = Some(index);
        index
    }

    /// One table for several groups, as long as there is room for it.
    fn merged(&mut self, groups: &[u32]) -> Option<u32> {
        let ranks = groups.iter().map(|group| &self.groups[*group as usize]);
        let count = ranks.clone().map(Vec::len).sum();
        self.spare = self.spare.checked_sub(count)?;
        let mut ranks: Vec<u32> = ranks.flatten().copied().collect();
        ranks.sort_unstable();
        let table = Table::new(self.ranked, &ranks);
        Some(self.push(table))
    }

    fn push(&mut self, table: Table) -> u32 {
        self.tables.push(table);
        offset(self.tables.len() - 1)
    }
}

fn enroll(roll: &mut Roll, text: &mut String, name: &str, group: u32) {
    let (_, groups) = roll
        .entry(name.to_ascii_lowercase())
        .or_insert_with(|| (Span::push(text, name), Vec::new()));
    push_once(groups, group);
}

fn push_once(groups: &mut Vec<u32>, group: u32) {
    if groups.last() != Some(&group) {
        groups.push(group);
    }
}

/// Of each group, the ranks of its patterns. `order` has the patterns' places in the file by rank,
/// so each list comes out ascending.
fn ranks_of_groups(groups: &[Group], order: &[usize]) -> Vec<Vec<u32>> {
    let mut group_of = vec![0; order.len()];
    for (index, group) in groups.iter().enumerate() {
        group_of[group.patterns.clone()].fill(index);
    }
    let mut ranks = vec![Vec::new(); groups.len()];
    for (rank, at) in order.iter().enumerate() {
        ranks[group_of[*at]].push(offset(rank));
    }
    ranks
}

/// `items` in the given order, which names each place once.
fn permute<T>(items: Vec<T>, order: &[usize]) -> Vec<T> {
    let mut items: Vec<Option<T>> = items.into_iter().map(Some).collect();
    order.iter().filter_map(|at| items[*at].take()).collect()
}

/// How often each pattern may be indexed again, on average, so that agents with several groups
/// have one table. Without a bound, a file in which thousands of agents share a large group and
/// have a small one each would grow to the square of its size.
const SPARE: usize = 4;
