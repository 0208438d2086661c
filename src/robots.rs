//! robots.txt: parse a file once, pick the group for an agent, match a path, and say which rule
//! and line decided. RFC 9309, read as Google's open-source parser reads it, bit for bit, or to the
//! letter: see [`Profile`].
//!
//! Never does I/O, never looks at the time, never allocates to decide. Parsing knows no size limit
//! and deciding no exception for `/robots.txt` itself: those are the fetcher's and the decision's.
//!
//! The way of a file: `line` → `record` → `draft`, which compiles each pattern (`entry`, after
//! `escape`) → `ruleset`, which finds out what each agent gets and has `layout` lay it out as tables
//! of an `index`. The way of a decision: [`RobotsTxt::agent`] (`names`) → [`Agent::decide`]
//! (`search`, `prefilter`, `wild`) → [`RobotsTxt::rule`], which reads the rule's line again.
//!
//! Beside them stand [`explain()`], which says of all rules why they won or lost, [`statements`],
//! what else a file says (and [`audience`] to whom), and [`lint()`], what a person should know of it. All three read the file's
//! text anew, for people.

mod agent;
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
mod prefilter;
mod record;
mod ruleset;
mod search;
mod site_access;
mod statement;
mod url;
mod wild;

pub use agent::{Agent, Match};
pub use explain::{Competitor, Explanation, Group, Lost, Weighed, explain, numbered_lines};
pub use groups::{AgentLine, Choice};
pub use line::{BEYOND, LIMIT, counted};
pub use lint::{Disguise, Finding, Lint, Severity, lint};
pub use site_access::SiteAccess;
pub use statement::{Statement, StatementKind, audience, statements};
pub use url::path_of_url;

use std::borrow::Cow;

use draft::Draft;
use record::{Key, Record};
use ruleset::Ruleset;

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
/// assert_eq!((rule.line, &*rule.text), (2, "Disallow: /search"));
///
/// // Who is not named, and has no group for `*`, may fetch everything.
/// assert!(robots.agent("BarBot").decide(b"/search").allowed);
/// ```
#[derive(Debug)]
pub struct RobotsTxt {
    profile: Profile,
    /// The file, and behind it the patterns that are compared in another spelling than they are
    /// written in, each after the offset of what is written, in four bytes; then a padding.
    text: Box<[u8]>,
    /// How long the file itself is.
    length: u32,
    rules: Rules,
}

/// Whose reading of robots.txt holds.
///
/// ```
/// use robotgate::robots::{Profile, RobotsTxt};
///
/// let body = b"User-agent: *\nDisalow: /tpyo\nDisallow: /%62%61%7A";
/// let google = RobotsTxt::parse_as(Profile::Google, body);
/// let rfc9309 = RobotsTxt::parse_as(Profile::Rfc9309, body);
///
/// // Google knows the usual typos; the RFC's grammar has no such line.
/// assert!(!google.agent("AnyBot").decide(b"/tpyo").allowed);
/// assert!(rfc9309.agent("AnyBot").decide(b"/tpyo").allowed);
///
/// // The RFC compares what escapes mean, Google how they are written.
/// assert!(google.agent("AnyBot").decide(b"/baz").allowed);
/// assert!(!rfc9309.agent("AnyBot").decide(b"/baz").allowed);
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq, clap::ValueEnum, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// As Google's open-source parser reads it, bit for bit.
    #[default]
    Google,
    /// To the letter of RFC 9309: no typos, no missing colons, no index rule. Escapes are compared by what
    /// they mean, and the robots.txt itself is always allowed (§2.2.2).
    Rfc9309,
}

/// A rule of one [`RobotsTxt`]; it means nothing to any other.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct RuleId {
    line: u32,
    /// Where its pattern, as it is compared, begins in the file's text.
    start: u32,
}

/// Whether a rule lets paths through or keeps them out (RFC 9309 §2.2.2).
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum RuleKind {
    /// Before `Disallow` in order, as it wins a tie.
    Allow,
    /// Keeps paths out, unless its pattern is empty.
    Disallow,
}

/// A rule, seen through the file that holds it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rule<'a> {
    /// Allow or disallow, typos understood.
    pub kind: RuleKind,
    /// The pattern as it is compared: in the profile of Google with escapes in upper case and
    /// non-ASCII octets escaped. ASCII, and its length in bytes is the rule's weight against others.
    pub pattern: Cow<'a, str>,
    /// The line as written, without its comment and surrounding white space. Octets that are not
    /// UTF-8 are replaced; control characters are kept.
    pub text: Cow<'a, str>,
    /// The line's number, from 1; LF, CR and CRLF each end a line.
    pub line: u32,
}

/// The compiled rules, with offsets as wide as the file needs.
#[derive(Debug)]
enum Rules {
    Narrow(Ruleset<u16>),
    Wide(Ruleset<u32>),
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
        let body = &body[..body.len().min(line::MAX_BODY)];
        let (rules, text) = Ruleset::new(Draft::read(profile, body));
        Self {
            profile,
            text,
            length: entry::offset(body.len()),
            rules: rules.narrow().map_or(Rules::Wide(rules), Rules::Narrow),
        }
    }

    /// The rules for `agent`, exactly as Google's parser picks them: groups whose user-agent,
    /// cut to its leading `[A-Za-z_-]*`, equals `agent` ignoring case, else those for `*`
    /// (RFC 9309 §2.2.1). An empty `agent` equals a user-agent that is cut to nothing.
    #[must_use]
    pub fn agent(&self, agent: &str) -> Agent<'_> {
        match &self.rules {
            Rules::Narrow(rules) => self.pick(rules.tokens.find(&self.text, agent), rules.everyone),
            Rules::Wide(rules) => self.pick(rules.tokens.find(&self.text, agent), rules.everyone),
        }
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
        if names::is_product_token(token) {
            return self.agent(token);
        }
        match &self.rules {
            Rules::Narrow(rules) => self.pick(rules.words.find(&self.text, token), rules.everyone),
            Rules::Wide(rules) => self.pick(rules.words.find(&self.text, token), rules.everyone),
        }
    }

    /// The rule behind a decision of this file.
    ///
    /// # Panics
    ///
    /// May panic on the id of another file's rule; never on this one's.
    #[must_use]
    pub fn rule(&self, id: RuleId) -> Rule<'_> {
        let body = self.body();
        let line = line::line_at(body, self.offset_of(id));
        let Some(Record {
            key: Key::Rule(kind),
            value,
            text,
        }) = Record::read(self.profile, line)
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

    /// The file as it was parsed.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.text[..self.length as usize]
    }

    /// What else the file says, deciding nothing; see [`statements`].
    ///
    /// ```
    /// let robots = robotgate::robots::RobotsTxt::parse(b"Sitemap: https://example.com/map.xml");
    /// assert_eq!(robots.statements()[0].value, "https://example.com/map.xml");
    /// ```
    #[must_use]
    pub fn statements(&self) -> Vec<Statement<'_>> {
        statements(self.profile, self.body())
    }

    /// Whose reading it was parsed in.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// The bytes of memory it holds, for a cache bounded by size; the allocator's overhead apart.
    #[must_use]
    pub fn weight(&self) -> usize {
        let rules = match &self.rules {
            Rules::Narrow(rules) => rules.weight(),
            Rules::Wide(rules) => rules.weight(),
        };
        size_of::<Self>() + self.text.len() + rules
    }

    fn pick<'a>(&'a self, named: Option<(&'a str, u32)>, everyone: Option<u32>) -> Agent<'a> {
        match named {
            Some((name, set)) => Agent::named(self, name, set),
            None => Agent::unnamed(self, everyone),
        }
    }

    /// Where in the file the pattern of a rule is written.
    fn offset_of(&self, id: RuleId) -> usize {
        let (file, spelled) = self.text.split_at(self.length as usize);
        let start = id.start as usize;
        // A pattern in another spelling has the place of what is written before it.
        let before = start.checked_sub(file.len()).and_then(|at| spelled[..at].last_chunk());
        before.map_or(start, |offset| u32::from_le_bytes(*offset) as usize)
    }
}

// === impl Profile ===

impl Profile {
    /// Its name in the configuration and the log.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Google => "google",
            Self::Rfc9309 => "rfc9309",
        }
    }

    /// Whether no rule is asked about `path`: RFC 9309 §2.2.2 implicitly allows the robots.txt
    /// itself, of which Google's parser knows nothing.
    fn always_allows(self, path: &[u8]) -> bool {
        self == Self::Rfc9309 && path == b"/robots.txt"
    }
}

// === impl RuleId ===

impl RuleId {
    /// The line that the rule stands in, from 1.
    #[must_use]
    pub fn line(self) -> u32 {
        self.line
    }
}
