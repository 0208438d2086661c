//! Why a robots.txt allows or disallows one path: the rule that decided, the groups it stands in,
//! and of each rule that did not decide, what it lost to (RFC 9309 §2.2).
//!
//! It reads the text anew and compares every rule plainly, one after the other: slower than
//! [`Agent::decide`](super::Agent::decide) by far, never different. It never decides for the proxy.

mod weigh;

use std::borrow::Cow;

use self::weigh::{Scale, Weighing};
use super::{
    AgentLine, Choice, Profile, RuleKind,
    groups::{self, GroupText},
    line::Lines,
};

/// Why a path is allowed or not.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Explanation<'a> {
    /// As [`Match::allowed`](super::Match::allowed).
    pub allowed: bool,
    /// The rule that decided; `None` where none matches, which allows.
    pub rule: Option<Weighed<'a>>,
    /// For whom the rules were picked: the agent asked for, where the file names it, else
    /// [`Choice::Everyone`].
    pub choice: Choice<'a>,
    /// The groups that hold for the agent, in the file's order: all that name it, else all for `*`,
    /// else none.
    pub groups: Vec<Group<'a>>,
    /// How many rules these groups have, or none where the profile always allows the path.
    pub considered: usize,
    /// The rules that lost, the nearest to winning first: those that match, and those that would
    /// have won or tied had they matched.
    pub competitors: Vec<Competitor<'a>>,
}

/// A run of user-agent lines and the rules that follow.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Group<'a> {
    /// Its user-agent lines, one at the least.
    pub agents: Vec<AgentLine<'a>>,
    /// How many rules it has.
    pub rules: usize,
}

/// A rule and what it weighs against others.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Weighed<'a> {
    /// Allow or disallow, typos understood.
    pub kind: RuleKind,
    /// As [`Rule::text`](super::Rule::text).
    pub text: Cow<'a, str>,
    /// The pattern as it is compared; its length in bytes is the rule's weight. ASCII.
    pub pattern: Cow<'a, str>,
    /// The line's number, from 1.
    pub line: u32,
    /// Whether the pattern is that of the directory, for which an allow of its index page also
    /// stands in Google's reading: `/dir/$` for `/dir/index.html`.
    pub directory: bool,
}

/// A rule that did not decide.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Competitor<'a> {
    pub rule: Weighed<'a>,
    pub lost: Lost,
}

// === impl Competitor ===

impl Competitor<'_> {
    /// How many bytes of its pattern the path begins with, up to the first `*`: how near the rule
    /// is to the path. A rule that never matches is near to none.
    #[must_use]
    pub fn literal_fit(&self) -> usize {
        let pattern = &*self.rule.pattern;
        let literal = pattern.find('*').unwrap_or(pattern.len());
        match self.lost {
            Lost::DoesNotMatch { fits } => fits.min(literal),
            Lost::NeverMatches => 0,
            Lost::TieAllowWins | Lost::TieEarlier | Lost::ShorterMatch => literal,
        }
    }
}

/// Why a rule did not decide.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Lost {
    /// It matches, and is as long as an allow that does, too (RFC 9309 §2.2.2).
    TieAllowWins,
    /// It matches, and another rule of its kind and length stands before it.
    TieEarlier,
    /// It matches, and is shorter than the rule that decided.
    ShorterMatch,
    /// It does not match this path.
    DoesNotMatch {
        /// How many bytes of its pattern, from the first on, the path does fit.
        fits: usize,
    },
    /// It matches no path at all, since each begins with `/` and its pattern with something else.
    NeverMatches,
}

/// Explains what `body` says of `path` to the agents of `choice`, in the reading of `profile`.
///
/// `path` begins with `/` and holds the query, too; see [`path_of_url`](super::path_of_url).
///
/// ```
/// use robotgate::robots::{Choice, Lost, Profile, explain};
///
/// let body = b"User-agent: *\nDisallow: /shop\nAllow: /shop/sale/\nAllow: /shop/*.css$\n";
/// let why = explain(Profile::Google, body, Choice::Product("AnyBot"), b"/shop/sale/1");
/// assert!(why.allowed);
/// assert_eq!((why.choice, why.considered), (Choice::Everyone, 3));
/// assert_eq!(why.rule.expect("a rule matches").line, 3);
///
/// let lost: Vec<_> = why.competitors.iter().map(|other| (other.rule.line, other.lost)).collect();
/// assert_eq!(lost, [(2, Lost::ShorterMatch), (4, Lost::DoesNotMatch { fits: 7 })]);
/// ```
#[must_use]
pub fn explain<'a>(profile: Profile, body: &'a [u8], choice: Choice<'a>, path: &[u8]) -> Explanation<'a> {
    let all = groups::read(profile, body);
    let named = all.iter().any(|group| group.names(choice));
    let choice = if named { choice } else { Choice::Everyone };
    let groups: Vec<_> = all.iter().filter(|group| group.names(choice)).collect();
    let scale = Scale::new(profile, path);
    let is_matched = !profile.always_allows(path);
    let rules = groups.iter().flat_map(|group| &group.rules).filter(|_| is_matched);
    let weighings: Vec<Weighing<'a>> = rules.map(|rule| scale.weigh(rule)).collect();
    let winner = weigh::winner(&weighings);
    Explanation {
        allowed: winner.is_none_or(|at| weighings[at].allows()),
        rule: winner.map(|at| weighings[at].rule.clone()),
        choice,
        groups: groups.into_iter().map(GroupText::shown).collect(),
        considered: weighings.len(),
        competitors: weigh::competitors(weighings, winner),
    }
}

/// The lines of a file as the parser counts them: number (from 1) and content, without line ends,
/// a byte-order mark, what follows a NUL, and what is beyond a line's first 16,663 bytes.
pub fn numbered_lines(body: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    Lines::new(body)
}

#[cfg(test)]
mod tests;
