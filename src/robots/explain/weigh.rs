//! Weighs rules against each other on one path: the longest that matches wins, an allow wins a
//! tie, then the earlier one (RFC 9309 §2.2.2).
//!
//! Never knows which group a rule stands in.

use std::{borrow::Cow, cmp::Reverse};

use super::{
    Competitor, Lost, Weighed,
    fit::{Fit, fit},
    groups::RuleText,
};
use crate::robots::{Profile, RuleKind, escape};

/// What rules are weighed on.
pub(super) struct Scale<'p> {
    profile: Profile,
    /// As it is compared.
    path: Cow<'p, [u8]>,
}

/// What one rule comes to.
pub(super) struct Weighing<'a> {
    pub(super) rule: Weighed<'a>,
    fit: Fit,
}

// === impl Scale ===

impl<'p> Scale<'p> {
    pub(super) fn new(profile: Profile, path: &'p [u8]) -> Self {
        Self {
            profile,
            path: escape::of_path(profile, path),
        }
    }

    pub(super) fn weigh<'a>(&self, rule: &RuleText<'a>) -> Weighing<'a> {
        let pattern = escape::of_pattern(self.profile, rule.pattern);
        let whole = fit(&pattern, &self.path);
        let directory = (self.profile == Profile::Google && rule.kind == RuleKind::Allow && whole != Fit::Whole)
            .then(|| directory_of(&pattern))
            .flatten()
            .filter(|directory| fit(directory, &self.path) == Fit::Whole);
        let (pattern, directory, fit) = match directory {
            Some(directory) => (Cow::Owned(directory), true, Fit::Whole),
            None => (pattern, false, whole),
        };
        Weighing {
            rule: Weighed {
                kind: rule.kind,
                text: String::from_utf8_lossy(rule.text),
                pattern,
                line: rule.line,
                directory,
            },
            fit,
        }
    }
}

// === impl Weighing ===

impl Weighing<'_> {
    /// An empty pattern forbids nothing.
    pub(super) fn allows(&self) -> bool {
        self.rule.kind == RuleKind::Allow || self.rule.pattern.is_empty()
    }

    /// What of it is compared with other rules that match; the least wins.
    fn rank(&self) -> (Reverse<usize>, RuleKind) {
        (Reverse(self.rule.pattern.len()), self.rule.kind)
    }

    /// Why it lost; `None` where it could not have won even by matching.
    fn lost_to(&self, winner: Option<&Self>) -> Option<Lost> {
        match (self.fit, winner) {
            (Fit::Never, _) => Some(Lost::NeverMatches),
            (Fit::Part(_), Some(winner)) if self.rule.pattern.len() < winner.rule.pattern.len() => None,
            (Fit::Part(fits), _) => Some(Lost::DoesNotMatch { fits }),
            // The longest of those that match is the winner.
            (Fit::Whole, winner) => Some(match winner {
                Some(winner) if winner.rule.pattern.len() > self.rule.pattern.len() => Lost::ShorterMatch,
                Some(winner) if winner.rule.kind != self.rule.kind => Lost::TieAllowWins,
                _ => Lost::TieEarlier,
            }),
        }
    }
}

/// Which of `weighings`, in the file's order, decides.
pub(super) fn winner(weighings: &[Weighing<'_>]) -> Option<usize> {
    let matching = weighings.iter().enumerate().filter(|(_, rule)| rule.fit == Fit::Whole);
    // Of equal ones, the first.
    matching.min_by_key(|(_, rule)| rule.rank()).map(|(at, _)| at)
}

/// All others that are of interest, the nearest to winning first.
pub(super) fn competitors<'a>(weighings: Vec<Weighing<'a>>, winner: Option<usize>) -> Vec<Competitor<'a>> {
    let won = winner.map(|at| &weighings[at]);
    let lost: Vec<Option<Lost>> = weighings
        .iter()
        .enumerate()
        .map(|(at, rule)| rule.lost_to(won).filter(|_| Some(at) != winner))
        .collect();
    let mut competitors: Vec<Competitor<'a>> = weighings
        .into_iter()
        .zip(lost)
        .filter_map(|(weighing, lost)| {
            Some(Competitor {
                rule: weighing.rule,
                lost: lost?,
            })
        })
        .collect();
    competitors.sort_by_key(|other| (distance(other), other.rule.line));
    competitors
}

/// How far from winning: by why it lost, then by how much.
fn distance(other: &Competitor<'_>) -> (u8, Reverse<usize>) {
    match other.lost {
        Lost::TieAllowWins | Lost::TieEarlier => (0, Reverse(0)),
        Lost::ShorterMatch => (1, Reverse(other.rule.pattern.len())),
        // What fits behind a `*` may be anywhere in the path.
        Lost::DoesNotMatch { .. } => (2, Reverse(other.literal_fit())),
        Lost::NeverMatches => (3, Reverse(0)),
    }
}

/// Google's index rule: an allow of `/dir/index.html` (anything from `/index.htm` on, in the last
/// segment) also stands for `/dir/$`.
fn directory_of(pattern: &str) -> Option<String> {
    let slash = pattern.rfind('/')?;
    pattern[slash..]
        .starts_with("/index.htm")
        .then(|| format!("{}$", &pattern[..=slash]))
}
