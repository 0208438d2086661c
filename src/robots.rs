//! Parses robots.txt files and decides whether an agent may fetch a path, as Google's open-source parser does or to the
//! letter of RFC 9309 (see [`Profile`]).
//!
//! It does no I/O and reads no clock. A decision allocates nothing, unless the RFC profile has to normalize the path.
//!
//! How a file is parsed:
//!
//! 1. `line` splits the file into lines, and `record` parses each line.
//! 2. `draft` collects the groups. For each pattern, `escape` normalizes it and `entry` compiles it.
//! 3. `ruleset` finds the rules of each agent, and `layout` sorts their patterns into the tables of an `index`.
//!
//! How a path is decided:
//!
//! 1. [`RobotsTxt::product`] or [`RobotsTxt::agent`] finds the rules of the agent (`names`).
//! 2. [`Agent::decide_within`] finds the rule that decides (`search`, with `prefilter` and `wild`), within a budget of
//!    work. The path is one of the readings that `origin::readings` returns; with the RFC profile, `escape::of_path`
//!    also normalizes its escapes.
//! 3. [`RobotsTxt::rule`] parses the line of that rule again, so that it can be shown to people.
//!
//! [`Agent::usage_within`] (`usage`) returns how the content of a path may be used.
//!
//! For people, [`explain()`], [`statements`], [`lint()`] and [`changes()`] parse the text again.

mod agent;
mod changes;
mod crawl_delay;
mod draft;
mod entry;
mod escape;
mod explain;
mod groups;
mod head;
mod index;
mod layout;
mod line;
mod lint;
mod names;
mod path_index;
mod path_pattern;
mod prefilter;
mod record;
mod ruleset;
mod search;
mod site_access;
mod statement;
mod url;
mod usage;
mod wild;

pub use agent::{Agent, Match};
pub use changes::{ChangedRule, ChangedStatement, GroupChange, GroupChangeKind, LineChanges, changes};
pub use explain::{Competitor, Explanation, Group, LossReason, Weighed, explain, groups_for, numbered_lines};
pub use groups::{AgentLine, Choice};
pub use line::{BEYOND, LIMIT, counted};
pub use lint::{Disguise, Finding, Lint, Severity, lint};
pub use path_pattern::PathPattern;
pub use site_access::SiteAccess;
pub use statement::{Statement, StatementKind, statements, which_apply};
pub use url::path_of_url;
pub(crate) use usage::split_path;
pub use usage::{Preference, SitePreference, SiteUsage, Usage, content_signal, content_usage};

use std::{borrow::Cow, sync::OnceLock, time::Duration};

use crawl_delay::CrawlDelays;
use draft::Draft;
use record::{GroupLine, LineKey};
use ruleset::Ruleset;
use usage::UsageLines;

use crate::text::words;

/// A parsed and compiled robots.txt.
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
/// assert_eq!((rule.line, &*rule.text), (2, "Disallow: /search"));
///
/// // The file does not name BarBot and has no group for `*`, so BarBot may fetch everything.
/// assert!(robots.agent("BarBot").decide(b"/search").allowed);
/// ```
#[derive(Debug)]
pub struct RobotsTxt {
    profile: Profile,
    /// The file, then normalized patterns and zeros; see [`Draft::text`].
    text: Box<[u8]>,
    /// Length of the file, the first part of `text`.
    length: u32,
    rules: Rules,
    crawl_delays: OnceLock<CrawlDelays>,
    usage: OnceLock<UsageLines>,
    /// The most memory that `usage` can take once it is parsed, in bytes.
    usage_weight: usize,
}

words! {
    /// How a robots.txt is read: as Google's parser does, or as RFC 9309 says.
    ///
    /// ```
    /// use robotgate::robots::{Profile, RobotsTxt};
    ///
    /// let body = b"User-agent: *\nDisalow: /tpyo\nDisallow: /%62%61%7A";
    /// let google = RobotsTxt::parse_as(Profile::Google, body);
    /// let rfc9309 = RobotsTxt::parse_as(Profile::Rfc9309, body);
    ///
    /// // Google accepts common typos. The RFC's grammar does not.
    /// assert!(!google.agent("AnyBot").decide(b"/tpyo").allowed);
    /// assert!(rfc9309.agent("AnyBot").decide(b"/tpyo").allowed);
    ///
    /// // `%62%61%7A` is an escaped `baz`. The RFC treats both as equal, Google does not.
    /// assert!(google.agent("AnyBot").decide(b"/baz").allowed);
    /// assert!(!rfc9309.agent("AnyBot").decide(b"/baz").allowed);
    /// ```
    #[derive(Default, clap::ValueEnum)]
    pub enum Profile {
        /// Exactly like Google's open-source parser.
        #[default]
        Google = "google",
        /// To the letter of RFC 9309: accepts no typos and no missing colons, and has no special rule for index pages.
        /// An escape such as `%62` equals its character, and the robots.txt itself is always allowed (§2.2.2).
        Rfc9309 = "rfc9309",
    }
}

/// A reference to a rule of one [`RobotsTxt`]. It has no meaning for another file.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct RuleId {
    line: u32,
    /// Offset of the normalized pattern in `RobotsTxt::text`.
    start: u32,
}

/// Whether a rule allows or disallows paths (RFC 9309 §2.2.2).
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum RuleKind {
    /// Allows paths. It sorts first, because it wins against a `Disallow` with an equally long pattern.
    Allow,
    /// Disallows paths, or nothing if its pattern is empty.
    Disallow,
}

/// A rule, borrowed from the file that contains it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rule<'a> {
    pub kind: RuleKind,
    /// The normalized pattern, which is ASCII. The longest matching pattern wins.
    pub pattern: Cow<'a, str>,
    /// The line without its comment and surrounding white space. Invalid UTF-8 is replaced, control characters stay.
    pub text: Cow<'a, str>,
    /// Line number, from 1.
    pub line: u32,
}

/// The compiled rules, with the smallest integer type that can hold their offsets.
#[derive(Debug)]
enum Rules {
    Narrow(Ruleset<u16>),
    Wide(Ruleset<u32>),
}

// === impl RobotsTxt ===

impl RobotsTxt {
    /// Parses any bytes with the `google` profile. Skips invalid lines (RFC 9309 §2.2).
    #[must_use]
    pub fn parse(body: &[u8]) -> Self {
        Self::parse_as(Profile::Google, body)
    }

    /// Parses any bytes with the given profile.
    #[must_use]
    pub fn parse_as(profile: Profile, body: &[u8]) -> Self {
        let body = &body[..body.len().min(line::MAX_BODY)];
        Self::new(Draft::read(profile, body), body.len())
    }

    /// Stores a file that is not a robots.txt, such as a `tdmrep.json`. The result has no rules.
    #[must_use]
    pub fn without_rules(profile: Profile, body: &[u8]) -> Self {
        let body = &body[..body.len().min(line::MAX_BODY)];
        let mut draft = Draft::read(profile, b"");
        draft.text.splice(..0, body.iter().copied());
        Self::new(draft, body.len())
    }

    fn new(draft: Draft<'_>, length: usize) -> Self {
        let (profile, usage_weight) = (draft.profile, draft.usage.weight());
        let (rules, text) = Ruleset::new(draft);
        Self {
            profile,
            text,
            length: entry::offset(length),
            rules: rules.narrow().map_or(Rules::Wide(rules), Rules::Narrow),
            crawl_delays: OnceLock::new(),
            usage: OnceLock::new(),
            usage_weight,
        }
    }

    /// Returns the rules for `agent`, or those for `*` if no user-agent line names it (RFC 9309 §2.2.1). Like Google's
    /// parser, this compares only the letters, `-` and `_` at the start of each user-agent in the file, ignoring case.
    #[must_use]
    pub fn agent(&self, agent: &str) -> Agent<'_> {
        match &self.rules {
            Rules::Narrow(rules) => self.pick(rules.tokens.find(&self.text, agent), rules.everyone),
            Rules::Wide(rules) => self.pick(rules.tokens.find(&self.text, agent), rules.everyone),
        }
    }

    /// Returns the rules for a bot's product token, or those for `*` if the token is empty or not named. Google's
    /// parser cannot find a token such as `MJ12bot`, so this compares such a token with the first word of each
    /// user-agent, ignoring case.
    ///
    /// ```
    /// let robots = robotgate::robots::RobotsTxt::parse(b"User-agent: MJ12bot/1.4\nDisallow: /");
    /// assert!(robots.agent("MJ12bot").decide(b"/").allowed);
    /// assert!(!robots.product("MJ12bot").decide(b"/").allowed);
    /// ```
    #[must_use]
    pub fn product(&self, token: &str) -> Agent<'_> {
        if names::is_product_token(token) {
            return self.agent(token);
        }
        match &self.rules {
            Rules::Narrow(rules) => self.pick(rules.words.find(&self.text, token), rules.everyone),
            Rules::Wide(rules) => self.pick(rules.words.find(&self.text, token), rules.everyone),
        }
    }

    /// Returns the rule that `id` refers to.
    ///
    /// # Panics
    ///
    /// Can panic if `id` belongs to another file.
    #[must_use]
    pub fn rule(&self, id: RuleId) -> Rule<'_> {
        let body = self.body();
        let line = line::line_at(body, self.offset_of(id));
        let Some(GroupLine {
            key: LineKey::Rule(kind),
            value,
            text,
        }) = GroupLine::read(self.profile, line)
        else {
            unreachable!("an id of another file: {id:?}");
        };
        Rule {
            kind,
            pattern: escape::of_pattern(self.profile, value),
            text: String::from_utf8_lossy(text),
            line: id.line,
        }
    }

    /// Returns the bytes of the file, at most 512 MiB.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.text[..self.length as usize]
    }

    /// Returns the sitemaps, crawl delays and other statements of the file; see [`statements`].
    ///
    /// ```
    /// let robots = robotgate::robots::RobotsTxt::parse(b"Sitemap: https://example.com/map.xml");
    /// assert_eq!(robots.statements()[0].value, "https://example.com/map.xml");
    /// ```
    #[must_use]
    pub fn statements(&self) -> Vec<Statement<'_>> {
        statements(self.profile, self.body())
    }

    /// Returns the longest `Crawl-delay` for the agents of `choice`. Ignores values that are not a number of seconds.
    ///
    /// ```
    /// use robotgate::robots::{Choice, RobotsTxt};
    ///
    /// let robots = RobotsTxt::parse(b"User-agent: *\nCrawl-delay: 2.5\nUser-agent: FooBot\nDisallow: /a");
    /// assert_eq!(robots.crawl_delay(Choice::Everyone).map(|delay| delay.as_secs_f64()), Some(2.5));
    /// assert_eq!(robots.crawl_delay(Choice::Product("FooBot")), None);
    /// ```
    #[must_use]
    pub fn crawl_delay(&self, choice: Choice<'_>) -> Option<Duration> {
        let read = || CrawlDelays::new(self.body(), &self.statements());
        self.crawl_delays.get_or_init(read).of(self.body(), choice)
    }

    /// Returns the profile that the file was parsed with.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// Returns the memory that the file uses, in bytes, without the allocator's overhead. The lines about the use of
    /// content are parsed later, so this counts the most memory that they can take.
    #[must_use]
    pub fn weight(&self) -> usize {
        let rules = match &self.rules {
            Rules::Narrow(rules) => rules.weight(),
            Rules::Wide(rules) => rules.weight(),
        };
        let delays = self.crawl_delays.get().map_or(0, CrawlDelays::weight);
        size_of::<Self>() + self.text.len() + rules + delays + self.usage_weight
    }

    fn usage_lines(&self) -> &UsageLines {
        let read = || UsageLines::new(self.profile, self.body());
        self.usage.get_or_init(read)
    }

    fn pick<'a>(&'a self, named: Option<(&'a str, u32)>, everyone: Option<u32>) -> Agent<'a> {
        match named {
            Some((name, set)) => Agent::named(self, name, set),
            None => Agent::unnamed(self, everyone),
        }
    }

    fn offset_of(&self, id: RuleId) -> usize {
        let (file, spelled) = self.text.split_at(self.length as usize);
        let start = id.start as usize;
        // A `start` after the end of the file is in the list of normalized patterns. The four bytes before it are the
        // pattern's offset in the file.
        let before = start.checked_sub(file.len()).and_then(|at| spelled[..at].last_chunk());
        before.map_or(start, |offset| u32::from_le_bytes(*offset) as usize)
    }
}

// === impl Profile ===

impl Profile {
    /// Returns whether `path` is allowed whatever the rules say, as the robots.txt itself is in RFC 9309 (§2.2.2).
    fn always_allows(self, path: &[u8]) -> bool {
        self == Self::Rfc9309 && path == b"/robots.txt"
    }
}

// === impl RuleId ===

impl RuleId {
    /// Returns the line of the rule, from 1.
    #[must_use]
    pub fn line(self) -> u32 {
        self.line
    }
}
