//! Compares the rules of one agent with one path, and says how far each goes with it (RFC 9309 §2.2.2 and §2.2.3): the
//! longest that matches wins, an allow wins a tie, then the earlier one.
//!
//! Never knows which group a rule stands in. Never goes back within a path: the leftmost place for what follows a `*` is
//! always good enough, so the time is in proportion to pattern and path.

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
    Competitor, Lost, Weighed,
};

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

/// How a pattern and a path go together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fit {
    /// The pattern matches.
    Full,
    /// Only so many bytes of the pattern do, from its first one on.
    Part(usize),
    /// The pattern matches no path.
    Never,
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
            (Fit::Full, winner) => Some(match winner {
                Some(winner) if winner.rule.pattern.len() > self.rule.pattern.len() => Lost::ShorterMatch,
                Some(winner) if winner.rule.kind != self.rule.kind => Lost::TieAllowWins,
                _ => Lost::TieEarlier,
            }),
        }
    }
}

/// Which of `weighings`, in the file's order, decides.
pub(super) fn winner(weighings: &[Weighing<'_>]) -> Option<usize> {
    let matching = weighings.iter().enumerate().filter(|(_, rule)| rule.fit == Fit::Full);
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

/// Both in the spelling in which they are compared; `path` begins with `/`.
fn fit(pattern: &str, path: &[u8]) -> Fit {
    if !pattern.is_empty() && !can_match(pattern.as_bytes()) {
        return Fit::Never;
    }
    let (body, anchored) = match pattern.strip_suffix('$') {
        Some(body) => (body, true),
        None => (pattern, false),
    };
    let mut pieces = body.split('*').peekable();
    // What stands before the first `*`, where a path must begin with it.
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
    fn a_pattern_fits_as_far_as_it_fits() {
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
            // Greedy and leftmost is enough: the second piece must not reuse the first one's bytes.
            ("/*aa*aa", "/xaaa", Part(5)),
            ("/*aa*aa", "/xaaaa", Full),
            ("a", "/a", Never),
            ("$", "/", Never),
        ] {
            assert_eq!(fit(pattern, path.as_bytes()), expected, "{pattern} on {path}");
        }
    }
}
