//! The patterns of one or more groups, indexed by their literal beginnings, so that a decision
//! looks at the few patterns that begin as the path does and not at all of them.
//!
//! Never allocates once built, and never compares patterns by hand: they come ranked, and the
//! lowest rank that matches decides.

use super::{
    line::common_prefix,
    pattern::{Pattern, Shape},
    sieve::Sieve,
    span::{Span, offset},
};

/// All patterns of a file with the text they lie in. A pattern's place is its rank: longest first,
/// an allow before a disallow of the same length, then as they stand in the file.
#[derive(Clone, Copy)]
pub(super) struct Ranked<'a> {
    pub(super) text: &'a str,
    pub(super) patterns: &'a [Pattern],
}

/// An index over some of a file's patterns.
#[derive(Debug)]
pub(super) struct Table {
    /// In byte order of their literals, each literal once.
    nodes: Box<[Node]>,
    wilds: Box<[Wild]>,
    reach: Reach,
}

/// What can be said of patterns without a path; the lowest ranks, [`NONE`] where there are none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    /// That match every path.
    pub(super) universal: u32,
    /// That keep some path out.
    pub(super) disallow: u32,
    /// That let some path through.
    pub(super) allow: u32,
}

/// The patterns that share one literal beginning.
#[derive(Debug)]
struct Node {
    literal: Span,
    /// The node with the longest literal that this one's begins with.
    parent: u32,
    /// The best pattern that matches whatever begins with the literal, parents' ones included.
    prefix: u32,
    /// The best pattern that matches the literal and nothing more.
    exact: u32,
    /// The range of this node's patterns in `wilds`.
    wilds: (u32, u32),
    /// The nearest node above that has any.
    wild_above: u32,
}

/// A pattern with a `*` inside.
#[derive(Debug)]
struct Wild {
    wanted: Sieve,
    rank: u32,
}

// === impl Table ===

impl Table {
    /// Indexes the patterns of `ranks`, which ascend.
    pub(super) fn new(ranked: Ranked<'_>, ranks: &[u32]) -> Self {
        let Ranked { text, .. } = ranked;
        // What no path can match need not be looked at again.
        let mut order: Vec<u32> = ranks
            .iter()
            .copied()
            .filter(|rank| ranked.pattern(*rank).is_live(text))
            .collect();
        let reach = Reach::new(ranked, &order);
        order.sort_by_key(|rank| ranked.pattern(*rank).literal(text));

        let mut nodes = Vec::new();
        let mut wilds = Vec::new();
        let mut above = Vec::new();
        for alike in order.chunk_by(|a, b| ranked.pattern(*a).literal(text) == ranked.pattern(*b).literal(text)) {
            let literal = ranked.pattern(alike[0]).literal_span();
            while let Some(&top) = above.last() {
                let top: &Node = &nodes[top as usize];
                if literal.bytes(text).starts_with(top.literal.bytes(text)) {
                    break;
                }
                above.pop();
            }
            let parent = above.last().copied();
            let node = Node::new(ranked, alike, parent, &nodes, &mut wilds);
            above.push(offset(nodes.len()));
            nodes.push(node);
        }
        Self {
            nodes: nodes.into(),
            wilds: wilds.into(),
            reach,
        }
    }

    /// The lowest rank below `best` whose pattern matches `path`, else `best`. `sieve` is the
    /// path's, made when first needed.
    pub(super) fn find(&self, ranked: Ranked<'_>, path: &[u8], sieve: &mut Option<Sieve>, mut best: u32) -> u32 {
        let Some(mut node) = self.deepest(ranked.text, path) else {
            return best;
        };
        best = best.min(node.prefix);
        if node.literal.len() == path.len() {
            best = best.min(node.exact);
        }
        loop {
            let (start, end) = node.wilds;
            for wild in &self.wilds[start as usize..end as usize] {
                if wild.rank >= best {
                    break;
                }
                let sieve = sieve.get_or_insert_with(|| Sieve::of_path(path));
                if sieve.holds(wild.wanted) && ranked.pattern(wild.rank).matches_tail(ranked.text, path) {
                    best = wild.rank;
                }
            }
            if node.wild_above == NONE {
                return best;
            }
            node = &self.nodes[node.wild_above as usize];
        }
    }

    pub(super) fn reach(&self) -> Reach {
        self.reach
    }

    /// How many patterns with wildcards there are.
    pub(super) fn wilds(&self) -> usize {
        self.wilds.len()
    }

    /// Bytes of memory behind the table.
    pub(super) fn weight(&self) -> usize {
        size_of_val(&*self.nodes) + size_of_val(&*self.wilds)
    }

    /// The node with the longest literal that `path` begins with. In byte order every such literal
    /// stands at or above the last one that is not after the path.
    fn deepest(&self, text: &str, path: &[u8]) -> Option<&Node> {
        let after = self.nodes.partition_point(|node| node.literal.bytes(text) <= path);
        let mut node = &self.nodes[after.checked_sub(1)?];
        if path.starts_with(node.literal.bytes(text)) {
            return Some(node);
        }
        let shared = common_prefix(node.literal.bytes(text), path);
        while node.literal.len() > shared {
            if node.parent == NONE {
                return None;
            }
            node = &self.nodes[node.parent as usize];
        }
        Some(node)
    }
}

// === impl Node ===

impl Node {
    /// A node for the patterns `alike`, best first, below `parent`. What can never beat a pattern
    /// that matches just as well is left out.
    fn new(ranked: Ranked<'_>, alike: &[u32], parent: Option<u32>, nodes: &[Self], wilds: &mut Vec<Wild>) -> Self {
        let first = |shape| {
            let mut ranks = alike.iter().copied();
            ranks.find(|rank| ranked.pattern(*rank).shape() == shape)
        };
        let up = parent.map(|index| (index, &nodes[index as usize]));
        let prefix = first(Shape::Prefix)
            .unwrap_or(NONE)
            .min(up.map_or(NONE, |(_, node)| node.prefix));
        let start = offset(wilds.len());
        for &rank in alike.iter().take_while(|rank| **rank < prefix) {
            let pattern = ranked.pattern(rank);
            if matches!(pattern.shape(), Shape::Wild { .. }) {
                let wanted = Sieve::of_tail(pattern.tail(ranked.text));
                wilds.push(Wild { wanted, rank });
            }
        }
        Self {
            literal: ranked.pattern(alike[0]).literal_span(),
            parent: parent.unwrap_or(NONE),
            prefix,
            exact: first(Shape::Exact).unwrap_or(NONE),
            wilds: (start, offset(wilds.len())),
            wild_above: up.map_or(
                NONE,
                |(index, node)| {
                    if node.has_wilds() { index } else { node.wild_above }
                },
            ),
        }
    }

    fn has_wilds(&self) -> bool {
        self.wilds.0 < self.wilds.1
    }
}

// === impl Reach ===

impl Reach {
    pub(super) const NOWHERE: Self = Self {
        universal: NONE,
        disallow: NONE,
        allow: NONE,
    };

    /// Of the patterns of `ranks`, which ascend and can match.
    fn new(ranked: Ranked<'_>, ranks: &[u32]) -> Self {
        let first = |wanted: &dyn Fn(&Pattern) -> bool| {
            let mut ranks = ranks.iter().copied();
            ranks.find(|rank| wanted(ranked.pattern(*rank))).unwrap_or(NONE)
        };
        Self {
            universal: first(&|pattern| pattern.is_universal(ranked.text)),
            disallow: first(&|pattern| !pattern.allows()),
            allow: first(&Pattern::allows),
        }
    }

    /// Of these patterns and `other`'s together.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            universal: self.universal.min(other.universal),
            disallow: self.disallow.min(other.disallow),
            allow: self.allow.min(other.allow),
        }
    }
}

// === impl Ranked ===

impl<'a> Ranked<'a> {
    pub(super) fn pattern(self, rank: u32) -> &'a Pattern {
        &self.patterns[rank as usize]
    }
}

/// No rank, no node. Higher than any, so that `min` just works.
pub(super) const NONE: u32 = u32::MAX;
