//! robots.txt: parse a file once, pick the group for an agent, match a path, and say which rule
//! and line decided. RFC 9309, read as Google's open-source parser reads it, bit for bit, or to the
//! letter: see [`Profile`].
//!
//! Never does I/O, never looks at the time, never allocates to decide. It knows no size limit and
//! no exception for `/robots.txt` itself: those are the fetcher's and the decision's.
//!
//! The way of a file: `line` → `record` → `draft`, which compiles each `pattern` (after `escape`),
//! ranks them all, and builds a `table` for each set of groups that some agent is given. The way of
//! a decision: [`RobotsTxt::agent`] (`names`) → [`Agent::decide`] (`table`, `sieve`, `pattern`) →
//! [`RobotsTxt::rule`].

mod agent;
mod draft;
mod escape;
mod line;
mod names;
mod pattern;
mod profile;
mod record;
mod rule;
mod sieve;
mod span;
mod table;
mod url;

pub use agent::{Agent, Match, Whole};
pub use profile::Profile;
pub use rule::{Rule, RuleId, RuleKind};
pub use url::path_of_url;

use draft::Draft;
use names::Names;
use pattern::Pattern;
use rule::StoredRule;
use span::Span;
use table::{Ranked, Table};

/// A robots.txt, parsed and compiled.
///
/// ```
/// use robotgate::robots::{RobotsTxt, path_of_url};
///
/// let robots = RobotsTxt::parse(
///     b"User-agent: FooBot\n\
///       Disallow: /search  # too dear\n\
///       Allow: /search/help\n",
/// );
///
/// let agent = robots.agent("foobot");
/// assert_eq!(agent.group(), Some("FooBot"));
/// assert!(agent.decide(&path_of_url(b"https://example.com/search/help")).allowed);
///
/// let refused = agent.decide(b"/search?q=1");
/// assert!(!refused.allowed);
/// let rule = robots.rule(refused.rule.expect("a rule forbids it"));
/// assert_eq!((rule.line, rule.text), (2, "Disallow: /search"));
///
/// // Who is not named, and has no group for `*`, may fetch everything.
/// assert!(robots.agent("BarBot").decide(b"/search").allowed);
/// ```
#[derive(Debug)]
pub struct RobotsTxt {
    profile: Profile,
    /// All that is quoted: rules, patterns, names.
    text: Box<str>,
    /// In file order.
    rules: Box<[StoredRule]>,
    /// By rank: the first that matches decides.
    patterns: Box<[Pattern]>,
    /// The first user-agent of each group.
    openers: Box<[Span]>,
    tables: Box<[Table]>,
    /// How many patterns have wildcards, over all tables.
    wildest: usize,
    /// What agents are given: indices into `tables`, nearly always one.
    sets: Box<[Box<[u32]>]>,
    /// The set of the groups for `*`.
    everyone: Option<u32>,
    tokens: Names,
    /// Names that Google's parser cuts short, whole.
    words: Names,
}

// === impl RobotsTxt ===

impl RobotsTxt {
    /// Parses any bytes at all, in the `google` profile: what is no record is skipped
    /// (RFC 9309 §2.2).
    #[must_use]
    pub fn parse(body: &[u8]) -> Self {
        Self::parse_as(Profile::Google, body)
    }

    /// As [`parse`](Self::parse), in the reading of `profile`.
    #[must_use]
    pub fn parse_as(profile: Profile, body: &[u8]) -> Self {
        Draft::read(profile, body).finish()
    }

    /// The rules for `agent`, exactly as Google's parser picks them: groups whose user-agent,
    /// cut to its leading `[A-Za-z_-]*`, equals `agent` ignoring case, else those for `*`
    /// (RFC 9309 §2.2.1). An empty `agent` equals a user-agent that is cut to nothing.
    #[must_use]
    pub fn agent(&self, agent: &str) -> Agent<'_> {
        self.pick(&self.tokens, agent)
    }

    /// As [`agent`](Self::agent), for a bot's configured product token. Google's parser never
    /// finds a token with other characters (`MJ12bot`), whatever the file says; here it matches
    /// a user-agent whose first word, up to white space or `/`, is the same ignoring case. An empty
    /// token is no name, and gets the rules for `*`.
    ///
    /// ```
    /// let robots = robotgate::robots::RobotsTxt::parse(b"User-agent: MJ12bot/1.4\nDisallow: /");
    /// assert!(robots.agent("MJ12bot").decide(b"/").allowed);
    /// assert!(!robots.product("MJ12bot").decide(b"/").allowed);
    /// ```
    #[must_use]
    pub fn product(&self, token: &str) -> Agent<'_> {
        if token.is_empty() {
            Agent::unnamed(self)
        } else if names::is_product_token(token) {
            self.agent(token)
        } else {
            self.pick(&self.words, token)
        }
    }

    /// The rule behind a decision of this file.
    ///
    /// # Panics
    ///
    /// May panic on the id of another file's rule; never on this one's.
    #[must_use]
    pub fn rule(&self, id: RuleId) -> Rule<'_> {
        let rule = &self.rules[id.index()];
        Rule {
            kind: rule.kind,
            pattern: rule.pattern.of(&self.text),
            text: rule.text.of(&self.text),
            line: rule.line,
            group: self.openers[rule.group as usize].of(&self.text),
        }
    }

    /// How much work a decision on a path of `length` bytes may be at worst: patterns with
    /// wildcards times bytes that each may have to be searched in.
    #[must_use]
    pub fn work(&self, length: usize) -> usize {
        self.wildest.saturating_mul(length)
    }

    /// The bytes of memory it holds, for a cache bounded by size; the allocator's overhead apart.
    #[must_use]
    pub fn weight(&self) -> usize {
        let tables: usize = self.tables.iter().map(Table::weight).sum();
        let sets: usize = self.sets.iter().map(|set| size_of_val(&**set)).sum();
        size_of::<Self>()
            + self.text.len()
            + size_of_val(&*self.rules)
            + size_of_val(&*self.patterns)
            + size_of_val(&*self.openers)
            + size_of_val(&*self.tables)
            + tables
            + size_of_val(&*self.sets)
            + sets
            + self.tokens.weight()
            + self.words.weight()
    }

    fn pick(&self, names: &Names, agent: &str) -> Agent<'_> {
        match names.find(&self.text, agent) {
            Some(name) => Agent::named(self, name),
            None => Agent::unnamed(self),
        }
    }

    fn ranked(&self) -> Ranked<'_> {
        Ranked {
            text: &self.text,
            patterns: &self.patterns,
        }
    }
}
