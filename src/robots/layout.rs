//! Builds the tables of the [`Index`]: sorts the patterns, removes some that can never decide, and links patterns
//! without wildcards to their parents (such as `/a/b` to `/a`). For n patterns, it takes time in proportion to n log n.

use std::cmp::Reverse;

use super::{
    entry::{PatternEntry, Shape, offset},
    index::{Bucket, BucketRange, Buckets, Index, PatternRange},
    prefilter::{Classes, Pair, PairFilter},
};

pub(super) struct Layout<'t> {
    text: &'t [u8],
    entries: Vec<PatternEntry<u32>>,
    tables: Vec<PatternRange<u32>>,
    ranges: Vec<BucketRange<u32>>,
    buckets: Vec<Bucket<u32>>,
    // `literals`, `wilds` and `above` are work space that all tables reuse.
    literals: Vec<PatternEntry<u32>>,
    wilds: Vec<PatternEntry<u32>>,
    above: Vec<usize>,
}

// === impl Layout ===

impl<'t> Layout<'t> {
    /// Patterns are parts of `text`. `patterns` is their approximate number.
    pub(super) fn new(text: &'t [u8], patterns: usize) -> Self {
        Self {
            text,
            entries: Vec::with_capacity(patterns),
            tables: Vec::new(),
            ranges: Vec::new(),
            buckets: Vec::new(),
            literals: Vec::with_capacity(patterns),
            wilds: Vec::new(),
            above: Vec::new(),
        }
    }

    /// Builds a table of `entries`, which can be in any order. Returns the table's index.
    pub(super) fn table<'e>(&mut self, entries: impl Iterator<Item = &'e PatternEntry<u32>>) -> u32 {
        self.literals.clear();
        self.wilds.clear();
        for entry in entries.filter(|entry| entry.is_live(self.text)) {
            if entry.is_wild() {
                self.wilds.push(*entry);
            } else {
                self.literals.push(*entry);
            }
        }
        self.lay_literals();
        let wilds = offset(self.entries.len());
        self.lay_wilds();
        let end = offset(self.entries.len());
        self.tables.push(PatternRange { wilds, end });
        offset(self.tables.len() - 1)
    }

    pub(super) fn tables(&self) -> usize {
        self.tables.len()
    }

    pub(super) fn finish(self) -> Index<u32> {
        Index {
            entries: self.entries.into(),
            tables: self.tables.into(),
            buckets: (!self.ranges.is_empty()).then(|| {
                Box::new(Buckets {
                    ranges: self.ranges.into(),
                    buckets: self.buckets.into(),
                })
            }),
        }
    }

    fn lay_literals(&mut self) {
        let Self { text, literals, .. } = self;
        let text = *text;
        literals.sort_unstable_by(|a, b| {
            let in_order = a.literal(text).cmp(b.literal(text));
            in_order.then_with(|| (a.shape(), Reverse(a.rank())).cmp(&(b.shape(), Reverse(b.rank()))))
        });
        self.above.clear();
        let mut last: Option<&PatternEntry<u32>> = None;
        for entry in &self.literals {
            let literal = entry.literal(text);
            // Keep only the first of several equal patterns, because it has the highest precedence.
            let same = |last: &PatternEntry<u32>| last.shape() == entry.shape() && last.literal(text) == literal;
            if last.replace(entry).is_some_and(same) {
                continue;
            }
            while let Some(&top) = self.above.last()
                && !literal.starts_with(self.entries[top].literal(text))
            {
                self.above.pop();
            }
            let here = self.entries.len();
            let Some(&parent) = self.above.last() else {
                self.entries.push(*entry);
                if entry.shape() == Shape::Prefix {
                    self.above.push(here);
                }
                continue;
            };
            if self.entries[parent].rank() > entry.rank() {
                continue;
            }
            self.entries.push(entry.linked(here - parent));
            if entry.shape() == Shape::Prefix {
                self.above.push(here);
            }
        }
    }

    fn lay_wilds(&mut self) {
        let text = self.text;
        if self.wilds.len() <= MANY {
            self.wilds.sort_unstable_by_key(|entry| Reverse(entry.rank()));
            let noted = |entry: &PatternEntry<u32>| entry.with_needs(Classes::needs(entry.body(text)));
            self.entries.extend(self.wilds.iter().map(noted));
            return;
        }
        self.wilds.sort_unstable_by(|a, b| {
            let alike = (a.body(text), a.shape()).cmp(&(b.body(text), b.shape()));
            alike.then_with(|| b.rank().cmp(&a.rank()))
        });
        self.wilds
            .dedup_by(|b, a| (a.body(text), a.shape()) == (b.body(text), b.shape()));
        self.lay_buckets();
    }

    fn lay_buckets(&mut self) {
        let text = self.text;
        let mut count = vec![0_u32; 1 << 16];
        let of = |Pair(pair): Pair| usize::from(u16::from_be_bytes(pair));
        for pair in self.wilds.iter().flat_map(|entry| Pair::all(entry.body(text))) {
            count[of(pair)] += 1;
        }
        let rarest = |entry: &PatternEntry<u32>, but: Pair| {
            let pairs = Pair::all(entry.body(text)).filter(|pair| *pair != but);
            pairs.min_by_key(|pair| count[of(*pair)]).unwrap_or(but)
        };
        let paired = |entry: &PatternEntry<u32>| {
            let first = rarest(entry, Pair::NONE);
            let second = rarest(entry, first);
            (first, entry.with_needs(PairFilter::needs(second)))
        };
        let mut paired: Vec<_> = self.wilds.iter().map(paired).collect();
        paired.sort_unstable_by_key(|(pair, entry)| (*pair, Reverse(entry.rank())));
        let mut end = 0;
        for alike in paired.chunk_by(|a, b| a.0 == b.0) {
            end += alike.len();
            self.buckets.push(Bucket {
                pair: alike[0].0,
                end: offset(end),
            });
        }
        self.entries.extend(paired.iter().map(|(_, entry)| *entry));
        self.ranges.push(BucketRange {
            // The number that this table gets when it is added to `tables` later.
            table: offset(self.tables.len()),
            end: offset(self.buckets.len()),
        });
    }
}

/// Maximum number of wildcard patterns that a table can have without buckets.
const MANY: usize = 32;
