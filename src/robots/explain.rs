//! Explains why a robots.txt allows or disallows a path: which rule decided, which groups apply, and why every other
//! rule lost (RFC 9309 §2.2).
//!
//! It parses the text again and compares each rule with the path. That is far slower than
//! [`Agent::decide`](super::Agent::decide), but has the same result. The proxy never uses it for a decision.

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
    /// Whether the path may be fetched.
    pub allowed: bool,
    /// The rule that decided. `None` if no rule matches; the path is then allowed.
    pub rule: Option<Weighed<'a>>,
    /// The agents whose rules apply: the requested agent if the file names it, otherwise everyone (`*`).
    pub choice: Choice<'a>,
    /// The groups that apply to the agent, in the order of the file: all that name it, or if there is none, all for
    /// `*`.
    pub groups: Vec<Group<'a>>,
    /// Number of rules in `groups`. But 0 if the path is allowed regardless of the rules, as `/robots.txt` is in the
    /// RFC profile.
    pub considered: usize,
    /// The rules that lost. The one that is nearest to winning comes first. Omits each rule that does not match this
    /// path ([`LossReason::DoesNotMatch`]) and is shorter than the winner: it would have lost even if it matched.
    pub competitors: Vec<Competitor<'a>>,
}

/// Consecutive user-agent lines and the rules after them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Group<'a> {
    /// The user-agent lines, at least one.
    pub agents: Vec<AgentLine<'a>>,
    /// Number of rules in the group.
    pub rules: usize,
}

/// A rule and its normalized pattern.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Weighed<'a> {
    /// Whether the line is an `Allow` or a `Disallow`, also if it misspells the word.
    pub kind: RuleKind,
    /// The line as written; see [`Rule::text`](super::Rule::text).
    pub text: Cow<'a, str>,
    /// The normalized pattern, which is ASCII. Of several matching rules, the one with the longest pattern wins.
    pub pattern: Cow<'a, str>,
    /// Line number, from 1.
    pub line: u32,
    /// Whether the pattern is not in the file, but follows from an `Allow` for an index page. In Google's profile, an
    /// `Allow` for `/dir/index.html` also means `/dir/$`.
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
    /// Returns how many bytes at the start of the pattern equal the start of the path. Counts only bytes before the
    /// pattern's first `*`. The higher the number, the nearer the rule is to matching. It is 0 for a rule that never
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
    /// The rule matches, but an `Allow` of the same length matches too and wins (RFC 9309 §2.2.2).
    TieAllowWins,
    /// The rule matches, but an earlier rule of the same kind and length matches too.
    TieEarlier,
    /// The rule matches, but is shorter than the rule that decided.
    ShorterMatch,
    /// The rule does not match this path.
    DoesNotMatch {
        /// How many bytes at the start of the pattern match the path. A `*` counts as one byte.
        fits: usize,
    },
    /// The rule matches no path. Every path begins with `/`, but the pattern begins with neither `/` nor `*`.
    NeverMatches,
}

/// Explains why the robots.txt `body` allows or disallows `path` for the agents of `choice`. Parses `body` with
/// `profile`.
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

/// Returns the `choice` and the `groups` that an [`Explanation`] of any path has. This is for decisions without an
/// explanation, because something other than the rules made them.
#[must_use]
pub fn groups_for<'a>(profile: Profile, body: &'a [u8], choice: Choice<'a>) -> (Choice<'a>, Vec<Group<'a>>) {
    let (choice, groups) = applying(groups::read(profile, body), choice);
    (choice, groups.into_iter().map(Group::new).collect())
}

/// Keeps the groups that apply to the agents of `choice`: all that name them, or if there is none, all for `*`. Also
/// returns `choice` in the first case, and [`Choice::Everyone`] in the second.
fn applying<'a>(mut all: Vec<GroupText<'a>>, choice: Choice<'a>) -> (Choice<'a>, Vec<GroupText<'a>>) {
    let named = all.iter().any(|group| group.names(choice));
    let choice = if named { choice } else { Choice::Everyone };
    all.retain(|group| group.names(choice));
    (choice, all)
}

/// Iterates over the lines of a file as the parser sees them: the number, from 1, and the content. The content lacks
/// the line end and a byte-order mark. It is cut at a NUL and after 16,663 bytes.
pub fn numbered_lines(body: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    Lines::new(body)
}

#[cfg(test)]
mod tests;
