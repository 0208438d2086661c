//! Finds the patterns of one set of rules that others leave nothing to decide, or nothing that they
//! do not decide the same way.
//!
//! Never compares pairs: the patterns are walked in the order of the literals that they begin with,
//! so that those which may match more stand on a stack. It errs to silence, where a `*` would have
//! to be followed into another pattern.

use std::ops::Range;

use super::{
    super::RuleKind,
    shape::{Rank, Shape},
};

/// One pattern of a rule.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    pub(super) shape: Shape<'a>,
    pub(super) rank: Rank,
}

/// What others leave to a pattern.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fate {
    /// Something, for all that is known here.
    Decides,
    /// Nothing: the entry at this index matches all that it does, and wins.
    Beaten(usize),
    /// What is decided the same way without it: by the entry at this index or one that comes before
    /// it, or else, for an allow, by nothing.
    Idle(Option<usize>),
}

/// What the patterns of either kind add up to.
#[derive(Clone, Copy, Debug, Default)]
struct ByKind<T> {
    allow: T,
    disallow: T,
}

/// The patterns that begin with the same literal.
struct Node {
    /// In the walk's order.
    run: Range<usize>,
    /// The winner of those that match all that begins with this literal, or more.
    covers: ByKind<Option<usize>>,
    /// The lengths of those with a `*`, ascending.
    wild: ByKind<Vec<usize>>,
    /// The least length of all whose literal begins with this one; these may share paths with it.
    least: ByKind<Option<usize>>,
}

struct Walk<'a> {
    entries: &'a [Entry<'a>],
    /// By literal, equal shapes side by side, the winner first.
    order: Vec<usize>,
    /// Each node's literal is the start of the next one's.
    stack: Vec<Node>,
    fates: Vec<Fate>,
    alone: bool,
}

/// The fate of each entry. Rules that are idle are found only if nothing but `entries` binds those
/// who are bound by them.
///
/// All that are not [`Fate::Decides`] can go at once, and no path is decided otherwise.
pub(super) fn fates(entries: &[Entry<'_>], alone: bool) -> Vec<Fate> {
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by(|a, b| {
        let (a, b) = (&entries[*a], &entries[*b]);
        a.shape.order(&b.shape).then_with(|| b.rank.cmp(&a.rank))
    });
    let mut walk = Walk {
        entries,
        order,
        stack: Vec::new(),
        fates: vec![Fate::Decides; entries.len()],
        alone,
    };
    let mut at = 0;
    while at < entries.len() {
        at = walk.enter(at);
    }
    while walk.leave() {}
    walk.fates
}

// === impl Walk ===

impl<'a> Walk<'a> {
    /// Puts the node that starts at `start` of the order on the stack. Returns where the next one
    /// does.
    fn enter(&mut self, start: usize) -> usize {
        let literal = self.literal(start);
        while self
            .stack
            .last()
            .is_some_and(|top| !literal.starts_with(self.literal(top.run.start)))
        {
            self.leave();
        }
        let mut end = start + 1;
        while end < self.order.len() && self.literal(end) == literal {
            end += 1;
        }
        let covers = self.stack.last().map(|parent| parent.covers);
        let mut node = Node {
            run: start..end,
            covers: covers.unwrap_or_default(),
            wild: ByKind::default(),
            least: ByKind::default(),
        };
        for &index in &self.order[start..end] {
            let Entry { shape, rank } = &self.entries[index];
            if shape.is_prefix() {
                let cover = node.covers.of_mut(rank.kind);
                if cover.is_none_or(|cover| *rank > self.entries[cover].rank) {
                    *cover = Some(index);
                }
            } else if shape.is_wild() {
                node.wild.of_mut(rank.kind).push(rank.length);
            }
            lower(node.least.of_mut(rank.kind), Some(rank.length));
        }
        node.wild.allow.sort_unstable();
        node.wild.disallow.sort_unstable();
        self.stack.push(node);
        end
    }

    /// Judges the node on top, whose literal no other will begin with. Returns whether there was one.
    fn leave(&mut self) -> bool {
        let Some(node) = self.stack.pop() else {
            return false;
        };
        let mut first = node.run.start;
        for at in node.run.clone() {
            let index = self.order[at];
            if self.entries[index].shape != self.entries[self.order[first]].shape {
                first = at;
            }
            self.fates[index] = match self.winner(&node, self.order[first]) {
                winner if winner != index => Fate::Beaten(winner),
                _ if self.alone => self.idle(&node, index),
                _ => Fate::Decides,
            };
        }
        if let Some(parent) = self.stack.last_mut() {
            lower(&mut parent.least.allow, node.least.allow);
            lower(&mut parent.least.disallow, node.least.disallow);
        }
        true
    }

    /// Which one always wins where `best`, the first of its shape, matches: itself or one that covers
    /// it.
    fn winner(&self, node: &Node, best: usize) -> usize {
        let candidates = [Some(best), node.covers.allow, node.covers.disallow];
        let rank = |index: &usize| self.entries[*index].rank;
        candidates.into_iter().flatten().max_by_key(rank).unwrap_or(best)
    }

    /// Whether what the entry decides comes out the same without it: after it, there is another of
    /// its kind that covers it, and nothing of the other kind between the two.
    fn idle(&self, node: &Node, index: usize) -> Fate {
        let Entry { shape, rank } = &self.entries[index];
        let rank_of = |index: usize| self.entries[index].rank;
        let covers = if shape.is_prefix() {
            // At its own node that is itself.
            self.stack.last().map(|parent| parent.covers).unwrap_or_default()
        } else {
            node.covers
        };
        let heir = *covers.of(rank.kind);
        let floor = heir.map(rank_of);
        if heir.is_none() && rank.kind == RuleKind::Disallow {
            return Fate::Decides;
        }
        let other = opposite(rank.kind);
        let ranked = |length| Rank {
            length,
            kind: other,
            place: 0,
        };
        let between = |rival: Rank| rival < *rank && floor.is_none_or(|floor| rival > floor);
        let below = node.least.of(other).is_some_and(|least| ranked(least) < *rank);
        let covering = node.covers.of(other).is_some_and(|cover| between(rank_of(cover)));
        let crossing = self.stack.iter().any(|ancestor| {
            let lengths = ancestor.wild.of(other);
            let above = lengths.partition_point(|length| floor.is_some_and(|floor| ranked(*length) < floor));
            lengths.get(above).is_some_and(|length| between(ranked(*length)))
        });
        if below || covering || crossing {
            Fate::Decides
        } else {
            Fate::Idle(heir)
        }
    }

    fn literal(&self, at: usize) -> &'a str {
        let entries: &'a [Entry<'a>] = self.entries;
        entries[self.order[at]].shape.literal()
    }
}

// === impl ByKind ===

impl<T> ByKind<T> {
    fn of(&self, kind: RuleKind) -> &T {
        match kind {
            RuleKind::Allow => &self.allow,
            RuleKind::Disallow => &self.disallow,
        }
    }

    fn of_mut(&mut self, kind: RuleKind) -> &mut T {
        match kind {
            RuleKind::Allow => &mut self.allow,
            RuleKind::Disallow => &mut self.disallow,
        }
    }
}

fn opposite(kind: RuleKind) -> RuleKind {
    match kind {
        RuleKind::Allow => RuleKind::Disallow,
        RuleKind::Disallow => RuleKind::Allow,
    }
}

fn lower(least: &mut Option<usize>, length: Option<usize>) {
    *least = match (*least, length) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
}
