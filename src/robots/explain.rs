//! Explains why a robots.txt allows or disallows a path: which rule decided, and why other rules lost (RFC 9309 §2.2).
//!
//! It parses the text again, so it is far slower than [`Agent::decide`](super::Agent::decide), with the same result.
//! The proxy never uses it for a decision.

mod weigh;

use std::borrow::Cow;

use self::weigh::{RuleComparer, Weighing};
use super::{
    AgentLine, Choice, Profile, RuleKind,
    groups::{self, GroupText},
    line::Lines,
};

/// Why a path is allowed or disallowed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Explanation<'a> {
    pub allowed: bool,
    /// The rule that decided. `None` if no rule matches, or for `/robots.txt` in the RFC profile: both allow the path.
    pub rule: Option<Weighed<'a>>,
    /// Whose rules apply: the requested agent's if the file names it, otherwise everyone's (`*`).
    pub choice: Choice<'a>,
    /// The groups that apply, in the order of the file.
    pub groups: Vec<Group<'a>>,
    /// Number of rules in `groups`, or 0 if the path is allowed regardless of them.
    pub considered: usize,
    /// The rules that lost, nearest to winning first. A rule that matches only other paths and is shorter than the
    /// winner is left out, because it would have lost even if it matched.
    pub competitors: Vec<Competitor<'a>>,
}

/// Consecutive user-agent lines and the rules after them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Group<'a> {
    /// The user-agent lines, at least one.
    pub agents: Vec<AgentLine<'a>>,
    pub rules: usize,
}

/// A rule and its normalized pattern.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Weighed<'a> {
    pub kind: RuleKind,
    /// See [`Rule::text`](super::Rule::text).
    pub text: Cow<'a, str>,
    /// See [`Rule::pattern`](super::Rule::pattern).
    pub pattern: Cow<'a, str>,
    /// Line number, from 1.
    pub line: u32,
    /// Whether `pattern` is the pattern of a directory, such as `/dir/$`, that the rule also allows. In Google's
    /// profile, `Allow: /dir/index.html` is such a rule.
    pub directory: bool,
}

/// A rule that did not decide.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Competitor<'a> {
    pub rule: Weighed<'a>,
    pub lost: LossReason,
}

// === impl Group ===

impl<'a> Group<'a> {
    fn new(group: GroupText<'a>) -> Self {
        Self {
            rules: group.rules.len(),
            agents: group.agents,
        }
    }
}

// === impl Competitor ===

impl Competitor<'_> {
    /// Returns how many bytes of the pattern before its first `*` match the path. It is 0 for a rule that never
    /// matches.
    #[must_use]
    pub fn literal_fit(&self) -> usize {
        let pattern = &*self.rule.pattern;
        let literal = pattern.find('*').unwrap_or(pattern.len());
        match self.lost {
            LossReason::DoesNotMatch { fits } => fits.min(literal),
            LossReason::NeverMatches => 0,
            LossReason::TieAllowWins | LossReason::TieEarlier | LossReason::ShorterMatch => literal,
        }
    }
}

/// Why a rule did not decide.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LossReason {
    /// The rule matches, but an `Allow` of the same length wins (RFC 9309 §2.2.2).
    TieAllowWins,
    /// The rule matches, but an earlier rule of the same kind and length wins.
    TieEarlier,
    /// The rule matches, but is shorter than the rule that decided.
    ShorterMatch,
    DoesNotMatch {
        /// How many bytes at the start of the pattern match the path. A `*` counts as one byte.
        fits: usize,
    },
    /// The rule matches no path, because its pattern begins with neither `/` nor `*`.
    NeverMatches,
}

/// Explains why the robots.txt `body` allows or disallows `path` for the agents of `choice`.
///
/// `path` begins with `/` and includes the query; see [`path_of_url`](super::path_of_url).
///
/// ```
/// use robotgate::robots::{Choice, LossReason, Profile, explain};
///
/// let body = b"User-agent: *\nDisallow: /shop\nAllow: /shop/sale/\nAllow: /shop/*.css$\n";
/// let why = explain(Profile::Google, body, Choice::Product("AnyBot"), b"/shop/sale/1");
/// assert!(why.allowed);
/// assert_eq!((why.choice, why.considered), (Choice::Everyone, 3));
/// assert_eq!(why.rule.expect("a rule matches").line, 3);
///
/// let lost: Vec<_> = why.competitors.iter().map(|other| (other.rule.line, other.lost)).collect();
/// assert_eq!(lost, [(2, LossReason::ShorterMatch), (4, LossReason::DoesNotMatch { fits: 7 })]);
/// ```
#[must_use]
pub fn explain<'a>(profile: Profile, body: &'a [u8], choice: Choice<'a>, path: &[u8]) -> Explanation<'a> {
    let (choice, groups) = applying(groups::read(profile, body), choice);
    let scale = RuleComparer::new(profile, path);
    let is_matched = !profile.always_allows(path);
    let rules = groups.iter().flat_map(|group| &group.rules).filter(|_| is_matched);
    let weighings: Vec<Weighing<'a>> = rules.map(|rule| scale.weigh(rule)).collect();
    let winner = weigh::winner(&weighings);
    Explanation {
        allowed: winner.is_none_or(|at| weighings[at].allows()),
        rule: winner.map(|at| weighings[at].rule.clone()),
        choice,
        groups: groups.into_iter().map(Group::new).collect(),
        considered: weighings.len(),
        competitors: weigh::competitors(weighings, winner),
    }
}

/// Returns only the `choice` and the `groups` of an [`Explanation`]. Compares no rule with a path.
#[must_use]
pub fn groups_for<'a>(profile: Profile, body: &'a [u8], choice: Choice<'a>) -> (Choice<'a>, Vec<Group<'a>>) {
    let (choice, groups) = applying(groups::read(profile, body), choice);
    (choice, groups.into_iter().map(Group::new).collect())
}

/// Keeps the groups that name the agents of `choice` or, if there is none, those for `*`.
fn applying<'a>(mut all: Vec<GroupText<'a>>, choice: Choice<'a>) -> (Choice<'a>, Vec<GroupText<'a>>) {
    let named = all.iter().any(|group| group.names(choice));
    let choice = if named { choice } else { Choice::Everyone };
    all.retain(|group| group.names(choice));
    (choice, all)
}

/// Iterates over the lines of a file as the parser sees them: the number, from 1, and the content without the line end.
/// The content is cut at a NUL and after 16,663 bytes.
pub fn numbered_lines(body: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    Lines::new(body)
}

#[cfg(test)]
mod tests;
