//! Compares the rules of one agent with one path, and measures how much of each rule matches (RFC 9309 §2.2.2 and
//! §2.2.3).
//!
//! Matching takes linear time and never goes back in the path: for the text between two `*`, the leftmost match is
//! always the best.

use std::{borrow::Cow, cmp::Reverse};

use memchr::memmem;

use super::{
    super::{
        Profile, RuleKind,
        entry::{can_match, index_directory},
        escape,
        groups::RuleText,
        line::common_prefix,
    },
    Competitor, LossReason, Weighed,
};

pub(super) struct RuleComparer<'p> {
    profile: Profile,
    /// The normalized path.
    path: Cow<'p, [u8]>,
}

pub(super) struct Weighing<'a> {
    pub(super) rule: Weighed<'a>,
    fit: Fit,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fit {
    Full,
    /// Only this many bytes at the start of the pattern match.
    Part(usize),
    /// The pattern matches no path.
    Never,
}

// === impl RuleComparer ===

impl<'p> RuleComparer<'p> {
    pub(super) fn new(profile: Profile, path: &'p [u8]) -> Self {
        Self {
            profile,
            path: escape::of_path(profile, path),
        }
    }

    pub(super) fn weigh<'a>(&self, rule: &RuleText<'a>) -> Weighing<'a> {
        let pattern = escape::of_pattern(self.profile, rule.pattern);
        let full = fit(&pattern, &self.path);
        let directory = (self.profile == Profile::Google && rule.kind == RuleKind::Allow && full != Fit::Full)
            .then(|| index_directory(pattern.as_bytes()))
            .flatten()
            .map(|end| format!("{}$", &pattern[..end]))
            .filter(|directory| fit(directory, &self.path) == Fit::Full);
        let (pattern, directory, fit) = match directory {
            Some(directory) => (Cow::Owned(directory), true, Fit::Full),
            None => (pattern, false, full),
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
    /// Returns whether the rule allows a path that it matches. A rule with an empty pattern does.
    pub(super) fn allows(&self) -> bool {
        self.rule.kind == RuleKind::Allow || self.rule.pattern.is_empty()
    }

    /// Returns the precedence of a rule that matches. The smallest wins.
    fn rank(&self) -> (Reverse<usize>, RuleKind) {
        (Reverse(self.rule.pattern.len()), self.rule.kind)
    }

    /// Returns why the rule lost, or `None` if [`Explanation::competitors`](super::Explanation::competitors) omits it.
    fn lost_to(&self, winner: Option<&Self>) -> Option<LossReason> {
        match (self.fit, winner) {
            (Fit::Never, _) => Some(LossReason::NeverMatches),
            (Fit::Part(_), Some(winner)) if self.rule.pattern.len() < winner.rule.pattern.len() => None,
            (Fit::Part(fits), _) => Some(LossReason::DoesNotMatch { fits }),
            // This rule matches and did not win, so it is at most as long as the winner.
            (Fit::Full, winner) => Some(match winner {
                Some(winner) if winner.rule.pattern.len() > self.rule.pattern.len() => LossReason::ShorterMatch,
                Some(winner) if winner.rule.kind != self.rule.kind => LossReason::TieAllowWins,
                _ => LossReason::TieEarlier,
            }),
        }
    }
}

/// Returns the index of the rule that decides. `weighings` has to be in the order of the file.
pub(super) fn winner(weighings: &[Weighing<'_>]) -> Option<usize> {
    let matching = weighings.iter().enumerate().filter(|(_, rule)| rule.fit == Fit::Full);
    // `min_by_key` returns the first of several equal rules, which is the one that wins.
    matching.min_by_key(|(_, rule)| rule.rank()).map(|(at, _)| at)
}

pub(super) fn competitors<'a>(weighings: Vec<Weighing<'a>>, winner: Option<usize>) -> Vec<Competitor<'a>> {
    let won = winner.map(|at| &weighings[at]);
    let lost: Vec<Option<LossReason>> = weighings
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

/// Returns how far a rule that lost is from winning. The smallest value is the nearest.
fn distance(other: &Competitor<'_>) -> (u8, Reverse<usize>) {
    match other.lost {
        LossReason::TieAllowWins | LossReason::TieEarlier => (0, Reverse(0)),
        LossReason::ShorterMatch => (1, Reverse(other.rule.pattern.len())),
        // The bytes after the first `*` do not count, because they can match anywhere in the path.
        LossReason::DoesNotMatch { .. } => (2, Reverse(other.literal_fit())),
        LossReason::NeverMatches => (3, Reverse(0)),
    }
}

/// Compares a normalized pattern with a normalized path, which begins with `/`.
fn fit(pattern: &str, path: &[u8]) -> Fit {
    if !pattern.is_empty() && !can_match(pattern.as_bytes()) {
        return Fit::Never;
    }
    let (body, anchored) = match pattern.strip_suffix('$') {
        Some(body) => (body, true),
        None => (pattern, false),
    };
    let mut pieces = body.split('*').peekable();
    let head = pieces.next().unwrap_or_default();
    let mut fitting = common_prefix(head.as_bytes(), path);
    if fitting < head.len() {
        return Fit::Part(fitting);
    }
    let mut rest = &path[fitting..];
    if anchored && pieces.peek().is_none() && !rest.is_empty() {
        return Fit::Part(fitting);
    }
    while let Some(piece) = pieces.next() {
        fitting += 1;
        if anchored && pieces.peek().is_none() && rest.ends_with(piece.as_bytes()) {
            return Fit::Full;
        }
        let Some(at) = memmem::find(rest, piece.as_bytes()) else {
            return Fit::Part(fitting);
        };
        fitting += piece.len();
        if anchored && pieces.peek().is_none() {
            return Fit::Part(fitting);
        }
        rest = &rest[at + piece.len()..];
    }
    Fit::Full
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fit_of_a_pattern_is_how_far_it_matches() {
        use Fit::{Full, Never, Part};
        for (pattern, path, expected) in [
            ("", "/", Full),
            ("/", "/", Full),
            ("/a", "/ab", Full),
            ("/ab", "/a", Part(2)),
            ("/ab", "/ac", Part(2)),
            ("/a$", "/a", Full),
            ("/a$", "/ab", Part(2)),
            ("/a$b", "/a$bc", Full),
            ("*", "/", Full),
            ("/*", "/", Full),
            ("/**$", "/x", Full),
            ("/a*c", "/abc", Full),
            ("/a*d", "/abc", Part(3)),
            ("/a*c*e", "/abcd", Part(5)),
            ("/a*c$", "/abcc", Full),
            ("/a*c$", "/abcd", Part(4)),
            ("/a*c$", "/abd", Part(3)),
            ("*.gif$", "/a.gif", Full),
            ("*.gif$", "/a.gif?x", Part(5)),
            // The second `aa` must not use bytes that the first one has matched.
            ("/*aa*aa", "/xaaa", Part(5)),
            ("/*aa*aa", "/xaaaa", Full),
            ("a", "/a", Never),
            ("$", "/", Never),
        ] {
            assert_eq!(fit(pattern, path.as_bytes()), expected, "{pattern} on {path}");
        }
    }
}
