//! The statements of a robots.txt other than `Allow` and `Disallow`: sitemaps, crawl delays, and how content may be
//! used.
//!
//! This module does not interpret the values. The modules `crawl_delay` and `usage` do that, for decisions.

use std::{borrow::Cow, sync::Arc};

use super::{
    AgentLine, Choice, Profile,
    line::Lines,
    record::{GroupLine, KeyValue, LineKey, begins},
};
use crate::text::words;

/// A line of a robots.txt that is neither a rule nor a user-agent line, such as a sitemap.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Statement<'a> {
    pub kind: StatementKind,
    /// The value without comment and surrounding white space. Invalid UTF-8 is replaced, control characters stay.
    pub value: Cow<'a, str>,
    /// Line number, from 1.
    pub line: u32,
    /// The user-agent lines to which the statement applies. Empty if there are none above it, or if it applies to the
    /// whole file.
    pub agents: Arc<[AgentLine<'a>]>,
}

words! {
    /// What a statement is about. The string of each kind is its key in a robots.txt, as the key's specification spells
    /// it.
    pub enum StatementKind {
        /// `Sitemap`: the URL of a sitemap (sitemaps.org). It applies to the whole file.
        Sitemap = "Sitemap",
        /// `Crawl-delay`: seconds between requests. It was never standardised.
        CrawlDelay = "Crawl-delay",
        /// `Content-Signal`, such as `search=yes, ai-train=no` (contentsignals.org).
        ContentSignal = "Content-Signal",
        /// `Content-Usage`, such as `train-ai=n` or `/path train-ai=n` (draft-ietf-aipref-attach).
        ContentUsage = "Content-Usage",
        /// `License`: the URL of a licence (RSL 1.0). It applies to the whole file.
        License = "License",
    }
}

/// Returns all statements of `body`, in order.
///
/// A `Crawl-delay`, `Content-Signal` or `Content-Usage` applies to the last row of user-agent lines above it:
///
/// - For a `Crawl-delay`, a rule or one of these three statements ends the row.
/// - For `Content-Signal` and `Content-Usage`, a rule or one of these two statements ends the row.
/// - For a rule, only another rule ends the row, so a delay can apply to fewer agents than the rules below it.
///
/// ```
/// use robotgate::robots::{Choice, Profile, StatementKind, statements};
///
/// let body = b"Sitemap: https://example.com/map.xml\nUser-agent: a\nCrawl-delay: 9\n";
/// let found = statements(Profile::Google, body);
/// assert_eq!((found[0].kind, &*found[0].value), (StatementKind::Sitemap, "https://example.com/map.xml"));
/// assert_eq!((found[1].line, found[1].applies_to(Choice::Product("A"))), (3, true));
/// assert!(!found[1].applies_to(Choice::Everyone));
/// ```
#[must_use]
pub fn statements(profile: Profile, body: &[u8]) -> Vec<Statement<'_>> {
    let raw = raw_statements(profile, body).into_iter();
    raw.map(|raw| Statement {
        kind: raw.kind,
        value: String::from_utf8_lossy(raw.value),
        line: raw.line,
        agents: raw.agents,
    })
    .collect()
}

/// A [`Statement`] whose value need not be UTF-8.
pub(super) struct RawStatement<'a> {
    pub(super) kind: StatementKind,
    pub(super) value: &'a [u8],
    pub(super) line: u32,
    pub(super) agents: Arc<[AgentLine<'a>]>,
}

pub(super) fn raw_statements(profile: Profile, body: &[u8]) -> Vec<RawStatement<'_>> {
    let mut found = Vec::new();
    let (mut run, mut run_of_use) = (Run::default(), Run::default());
    for (line, bytes) in Lines::new(body) {
        if let Some(record) = GroupLine::read(profile, bytes) {
            for run in [&mut run, &mut run_of_use] {
                match record.key {
                    LineKey::UserAgent => run.push(AgentLine::new(record.value, line)),
                    LineKey::Rule(_) => drop(run.end()),
                }
            }
            continue;
        }
        let Some((kind, value)) = read(profile, bytes) else {
            continue;
        };
        found.push(RawStatement {
            kind,
            value,
            line,
            agents: match kind {
                StatementKind::CrawlDelay => run.end(),
                StatementKind::ContentSignal | StatementKind::ContentUsage => {
                    run.end();
                    run_of_use.end()
                }
                StatementKind::Sitemap | StatementKind::License => Arc::default(),
            },
        });
    }
    found
}

/// Iterates over `statements`, and returns for each whether it applies to the agents of `choice`.
///
/// This is faster than [`Statement::applies_to`] for each, because statements can share thousands of user-agent lines.
pub fn which_apply<'s>(statements: &'s [Statement<'_>], choice: Choice<'s>) -> impl Iterator<Item = bool> + 's {
    let mut last = None;
    statements.iter().map(move |statement| match last {
        _ if !statement.kind.is_of_a_group() => true,
        Some((run, speaks)) if Arc::ptr_eq(run, &statement.agents) => speaks,
        _ => {
            let speaks = statement.applies_to(choice);
            last = Some((&statement.agents, speaks));
            speaks
        }
    })
}

/// The current row of user-agent lines (`open`), and the last row that has ended (`ended`). [`statements`] says what
/// ends a row.
#[derive(Default)]
struct Run<'a> {
    open: Vec<AgentLine<'a>>,
    /// The statements that apply to this row share this list, because a file can have thousands of statements and of
    /// user-agent lines.
    ended: Arc<[AgentLine<'a>]>,
}

// === impl Run ===

impl<'a> Run<'a> {
    fn push(&mut self, agent: AgentLine<'a>) {
        self.open.push(agent);
    }

    fn end(&mut self) -> Arc<[AgentLine<'a>]> {
        if !self.open.is_empty() {
            self.ended = std::mem::take(&mut self.open).into();
        }
        Arc::clone(&self.ended)
    }
}

// === impl Statement ===

impl Statement<'_> {
    /// Returns whether the statement applies to the whole file, or to the agents of `choice`.
    #[must_use]
    pub fn applies_to(&self, choice: Choice<'_>) -> bool {
        !self.kind.is_of_a_group() || self.agents.iter().any(|agent| agent.names(choice))
    }
}

// === impl StatementKind ===

impl StatementKind {
    /// In Google's profile, a sitemap's key only needs to begin with `sitemap` or `site-map`.
    pub(super) fn of_key(profile: Profile, key: &[u8]) -> Option<Self> {
        if profile == Profile::Google && (begins(key, b"sitemap") || begins(key, b"site-map")) {
            return Some(Self::Sitemap);
        }
        Self::ALL
            .into_iter()
            .find(|kind| key.eq_ignore_ascii_case(kind.as_str().as_bytes()))
    }

    /// Returns whether the statement applies only to the agents above it, and not to the whole file.
    #[must_use]
    pub fn is_of_a_group(self) -> bool {
        matches!(self, Self::CrawlDelay | Self::ContentSignal | Self::ContentUsage)
    }
}

fn read(profile: Profile, line: &[u8]) -> Option<(StatementKind, &[u8])> {
    let KeyValue { text, key, value } = KeyValue::read(profile, line)?;
    let kind = StatementKind::of_key(profile, key)?;
    // In Google's profile, white space can replace the colon, but not in `Content-Signal` and `Content-Usage`.
    let is_about_use = matches!(kind, StatementKind::ContentSignal | StatementKind::ContentUsage);
    (!is_about_use || text.contains(&b':')).then_some((kind, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(profile: Profile, body: &str) -> Vec<(u32, &'static str, String, Vec<u32>)> {
        let found = statements(profile, body.as_bytes()).into_iter();
        found
            .map(|statement| {
                let agents = statement.agents.iter().map(|agent| agent.line).collect();
                (
                    statement.line,
                    statement.kind.as_str(),
                    statement.value.into_owned(),
                    agents,
                )
            })
            .collect()
    }

    #[test]
    fn keys_are_recognized_in_their_spellings() {
        for (line, google, rfc9309) in [
            ("Sitemap: https://e/s.xml", Some("Sitemap"), Some("Sitemap")),
            ("SITEMAPS : https://e/s.xml", Some("Sitemap"), None),
            ("site-map: https://e/s.xml", Some("Sitemap"), None),
            ("sitemap https://e/s.xml", Some("Sitemap"), None),
            ("sitemap /s.xml", Some("Sitemap"), None),
            ("crawl-DELAY: 1.5 # s", Some("Crawl-delay"), Some("Crawl-delay")),
            ("crawl-delays: 1", None, None),
            (
                "content-signal: search=yes,ai-train=no",
                Some("Content-Signal"),
                Some("Content-Signal"),
            ),
            (
                "Content-Usage: /a train-ai=n",
                Some("Content-Usage"),
                Some("Content-Usage"),
            ),
            ("License: https://e/l.xml", Some("License"), Some("License")),
            ("Licence: https://e/l.xml", None, None),
            ("# Sitemap: https://e/s.xml", None, None),
            ("Allow: /sitemap", None, None),
        ] {
            for (profile, expected) in [(Profile::Google, google), (Profile::Rfc9309, rfc9309)] {
                let found = statements(profile, line.as_bytes());
                let key = found.first().map(|statement| statement.kind.as_str());
                assert_eq!(key, expected, "{line} as {profile:?}");
            }
        }
    }

    #[test]
    fn a_value_is_kept_as_written() {
        let body = "Sitemap:https://e/a:b?c=d&e \u{b} # map\ncontent-usage:   /x  train-ai=n;q  ";
        assert_eq!(
            found(Profile::Google, body),
            [
                (1, "Sitemap", "https://e/a:b?c=d&e".to_owned(), vec![]),
                (2, "Content-Usage", "/x  train-ai=n;q".to_owned(), vec![]),
            ]
        );
    }

    #[test]
    fn statements_of_a_group_have_its_agents() {
        let body = "Crawl-delay: 0\nUser-agent: a\nLicense: l\nCrawl-delay: 1\nUser-agent: b\n\
                    User-agent: c\nDisallow: /\nCrawl-delay: 2\nContent-Signal: search=yes\nSitemap: s\n\
                    User-agent: *\nContent-Usage: train-ai=n";
        let agents: Vec<_> = found(Profile::Google, body)
            .into_iter()
            .map(|(line, _, _, agents)| (line, agents))
            .collect();
        assert_eq!(
            agents,
            [
                (1, vec![]),
                (3, vec![]),
                (4, vec![2]),
                (8, vec![5, 6]),
                // The crawl delay in line 4 does not end the row of user-agents to which a line about use applies.
                (9, vec![2, 5, 6]),
                (10, vec![]),
                (12, vec![11]),
            ]
        );
    }

    #[test]
    fn a_statement_applies_to_the_agents_above_it() {
        let body = b"License: l\nUser-agent: Foo/1\nCrawl-delay: 1\nUser-agent: *\nCrawl-delay: 2";
        let found = statements(Profile::Google, body);
        let heard = |choice| {
            found
                .iter()
                .map(|statement| statement.applies_to(choice))
                .collect::<Vec<_>>()
        };
        for choice in [Choice::Product("foo"), Choice::Everyone, Choice::Product("bar")] {
            assert_eq!(
                which_apply(&found, choice).collect::<Vec<_>>(),
                heard(choice),
                "{choice:?}"
            );
        }
        assert_eq!(heard(Choice::Product("foo")), [true, true, false]);
        assert_eq!(heard(Choice::Everyone), [true, false, true]);
        assert_eq!(heard(Choice::Product("bar")), [true, false, false]);
    }
}
