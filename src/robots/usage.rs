//! How a site allows its content to be used, according to its robots.txt: `Content-Usage` (draft-ietf-aipref-attach-05
//! with the labels of draft-ietf-aipref-vocab-07) and `Content-Signal` (contentsignals.org, which defines no grammar).
//!
//! A line about use applies to the agents that the nearest user-agent lines above it name; see [`super::statements`].
//! If a rule disallows a path, what these lines say about the path means nothing. Callers of this module have to check
//! that.

mod values;

use std::sync::Arc;

pub(crate) use self::values::split_path;
use self::values::{MAX_LABELS, Values, signals, usage};
pub use self::values::{content_signal, content_usage};
use super::{
    AgentLine, Choice, Profile, RuleKind, StatementKind,
    entry::{PatternEntry, Shape, offset},
    escape,
    head::Head,
    record::{begins, trim},
    statement::{RawStatement, raw_statements},
    wild,
};
use crate::usage::Vocabulary;

/// What a robots.txt says to an agent about the use of the content at one path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    signals: Preferences,
    /// From the `Content-Usage` lines with the longest pattern that matches the path.
    usage: Preferences,
}

/// All lines about use that apply to an agent, whatever their patterns.
#[derive(Clone, Debug)]
pub struct SiteUsage<'a> {
    lines: Vec<&'a UsageLine>,
}

/// What the file says about each use, in the order of [`Vocabulary::labels`]. `None` for a use that it does not
/// mention.
type Preferences = [Option<Preference>; MAX_LABELS];

/// Whether a site allows a use of its content, and which line says so.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Preference {
    pub allowed: bool,
    /// Number of the first line that says so, from 1.
    pub line: u32,
}

/// Whether a site allows a use of its content, when the path is unknown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SitePreference {
    /// `false` if a line forbids the use for some path. Each pattern is judged alone, so this can be `false` although a
    /// longer pattern allows the use for the same paths.
    pub allowed: bool,
    /// Number of a line that says so, from 1. A line about all paths is preferred.
    pub line: u32,
    /// Whether `allowed` applies to all paths of the site.
    pub everywhere: bool,
}

#[derive(Debug, Default)]
pub(super) struct UsageLines {
    lines: Box<[UsageLine]>,
    /// The user-agent lines that say to whom the lines about use apply.
    runs: Box<[Run]>,
    /// The patterns in the lines about use, followed by the zeros that [`Head::at`] needs.
    patterns: Box<[u8]>,
    /// Number of lines about use, plus number of user-agent lines above them. A search reads each of them at most once.
    searched: usize,
}

/// The most memory that [`UsageLines`] can take, computed without parsing the lines.
#[derive(Debug, Default)]
pub(super) struct UsageBound {
    /// Number of lines that can be about use.
    lines: usize,
    /// Total length of these lines, in bytes.
    bytes: usize,
    agents: usize,
}

/// A row of user-agent lines (see [`super::statements`]): the offset of each value in the file, and its length.
type Run = Box<[(u32, u32)]>;

#[derive(Clone, Copy, Debug)]
struct UsageLine {
    vocabulary: Vocabulary,
    /// Index in [`UsageLines::runs`].
    run: u32,
    line: u32,
    /// The pattern at the start of the line's value. Empty if there is none: the line then applies to all paths.
    pattern: PatternEntry<u32>,
    /// Whether the pattern is empty, `/`, `*` or `/*`, which match every path.
    covers_site: bool,
    values: Values,
}

// === impl Usage ===

impl Usage {
    /// Returns whether the site allows the use that `label` names, or `None` if no line says. If lines disagree, the
    /// use is forbidden.
    #[must_use]
    pub fn preference(&self, vocabulary: Vocabulary, label: &str) -> Option<Preference> {
        let at = vocabulary.labels().iter().position(|known| known.name == label)?;
        match vocabulary {
            Vocabulary::ContentSignal => self.signals[at],
            Vocabulary::ContentUsage => self.usage[at],
            Vocabulary::Tdmrep | Vocabulary::XRobotsTag => None,
        }
    }

    fn add(&mut self, line: &UsageLine) {
        let said = match line.vocabulary {
            Vocabulary::ContentSignal => &mut self.signals,
            _ => &mut self.usage,
        };
        for (said, allowed) in said.iter_mut().zip(line.values) {
            let Some(allowed) = allowed else { continue };
            if said.is_none_or(|old| old.allowed && !allowed) {
                let line = line.line;
                *said = Some(Preference { allowed, line });
            }
        }
    }
}

// === impl SiteUsage ===

impl SiteUsage<'_> {
    /// Returns whether the site allows the use that `label` names, or `None` if no line says.
    #[must_use]
    pub fn of_site(&self, vocabulary: Vocabulary, label: &str) -> Option<SitePreference> {
        let at = vocabulary.labels().iter().position(|known| known.name == label)?;
        let lines = || self.lines.iter().filter(|line| line.vocabulary == vocabulary);
        // Of the lines that match all paths, only those with the longest pattern apply.
        let longest = lines()
            .filter(|line| line.covers_site)
            .map(|line| line.pattern.length());
        let longest = longest.max().unwrap_or(0);
        let counts = |line: &&&UsageLine| !line.covers_site || line.pattern.length() == longest;
        let stated = lines().filter(counts).filter_map(|line| Some((line, line.values[at]?)));
        let (line, allowed) = stated.min_by_key(|(line, allowed)| (*allowed, !line.covers_site, line.line))?;
        let says_the_same = |line: &&UsageLine| line.covers_site || line.values[at] == Some(allowed);
        Some(SitePreference {
            allowed,
            line: line.line,
            everywhere: line.covers_site && lines().all(says_the_same),
        })
    }
}

// === impl UsageBound ===

impl UsageBound {
    pub(super) fn add_agent(&mut self) {
        self.agents += 1;
    }

    /// `line` is neither a rule nor a user-agent line. Counts it if it can be about the use of content.
    pub(super) fn add_other(&mut self, line: &[u8]) {
        let line = trim(line);
        if begins(line, b"content-") {
            self.lines += 1;
            self.bytes += line.len();
        }
    }

    pub(super) fn weight(&self) -> usize {
        if self.lines == 0 {
            return 0;
        }
        let runs = self.lines.min(self.agents) * size_of::<Run>() + self.agents * size_of::<(u32, u32)>();
        // Escaping turns one byte of a pattern into at most three.
        self.lines * size_of::<UsageLine>() + runs + 3 * self.bytes + Head::BYTES
    }
}

// === impl UsageLines ===

impl UsageLines {
    pub(super) fn new(profile: Profile, body: &[u8]) -> Self {
        let (mut lines, mut runs, mut patterns) = (Vec::new(), Vec::new(), Vec::new());
        let mut last: Option<Arc<[AgentLine<'_>]>> = None;
        for statement in raw_statements(profile, body) {
            let RawStatement {
                kind,
                value,
                line,
                agents,
            } = statement;
            let Some(vocabulary) = vocabulary_of(kind).filter(|_| !agents.is_empty()) else {
                continue;
            };
            if !last.as_ref().is_some_and(|last| Arc::ptr_eq(last, &agents)) {
                let position = |agent: &AgentLine<'_>| {
                    let start = agent.value.as_ptr().addr().wrapping_sub(body.as_ptr().addr());
                    (offset(start), offset(agent.value.len()))
                };
                runs.push(agents.iter().map(position).collect());
                last = Some(agents);
            }
            let (path, value) = match vocabulary {
                Vocabulary::ContentUsage => split_path(value),
                _ => (&b""[..], value),
            };
            let start = patterns.len();
            patterns.extend_from_slice(escape::of_pattern(profile, path).as_bytes());
            let length = patterns.len() - start;
            let covers_site = matches!(&patterns[start..], b"" | b"/" | b"*" | b"/*");
            lines.push(UsageLine {
                vocabulary,
                run: offset(runs.len() - 1),
                line,
                pattern: PatternEntry::new(&patterns, start, length, line, RuleKind::Allow),
                covers_site,
                values: match vocabulary {
                    Vocabulary::ContentUsage => usage(value),
                    _ => signals(value),
                },
            });
        }
        patterns.extend_from_slice(&[0; Head::BYTES]);
        let agents: usize = runs.iter().map(|run: &Run| run.len()).sum();
        Self {
            searched: lines.len() + agents,
            lines: lines.into(),
            runs: runs.into(),
            patterns: patterns.into(),
        }
    }

    /// Returns what the lines say about the normalized `path`. Subtracts the work from `budget`, and returns `None` if
    /// the budget does not suffice.
    pub(super) fn find(&self, body: &[u8], choice: Choice<'_>, path: &[u8], budget: &mut usize) -> Option<Usage> {
        let mut found = Usage::default();
        self.search(body, choice, path, budget, |line, is_longer| {
            if is_longer {
                found.usage = Preferences::default();
            }
            found.add(line);
        })?;
        Some(found)
    }

    pub(super) fn usage_lines(&self, body: &[u8], choice: Choice<'_>, path: &[u8]) -> Vec<u32> {
        let mut lines = Vec::new();
        let searched = self.search(body, choice, path, &mut usize::MAX.clone(), |line, is_longer| {
            if is_longer {
                lines.clear();
            }
            lines.extend((line.vocabulary == Vocabulary::ContentUsage).then_some(line.line));
        });
        debug_assert!(searched.is_some(), "the largest budget suffices");
        lines
    }

    /// Calls `add` for each line that applies, except a `Content-Usage` line after another one with a longer pattern.
    /// Passes `true` if the line replaces the earlier `Content-Usage` lines, because its pattern is longer.
    fn search(
        &self,
        body: &[u8],
        choice: Choice<'_>,
        path: &[u8],
        budget: &mut usize,
        mut add: impl FnMut(&UsageLine, bool),
    ) -> Option<()> {
        *budget = budget.checked_sub(self.searched)?;
        let head = Head::of(path);
        let mut longest = 0;
        for line in self.applying(body, choice) {
            if !line.matches(&self.patterns, path, head, budget)? {
                continue;
            }
            let is_usage = line.vocabulary == Vocabulary::ContentUsage;
            let length = line.pattern.length();
            if is_usage && length < longest {
                continue;
            }
            add(line, is_usage && length > longest);
            longest = longest.max(length);
        }
        Some(())
    }

    pub(super) fn of_site(&self, body: &[u8], choice: Choice<'_>) -> SiteUsage<'_> {
        SiteUsage {
            lines: self.applying(body, choice).collect(),
        }
    }

    fn applying(&self, body: &[u8], choice: Choice<'_>) -> impl Iterator<Item = &UsageLine> {
        let mut run = None;
        self.lines.iter().filter(move |line| match run {
            Some((at, applies)) if at == line.run => applies,
            _ => {
                let applies = self.names(body, line.run, choice);
                run = Some((line.run, applies));
                applies
            }
        })
    }

    fn names(&self, body: &[u8], run: u32, choice: Choice<'_>) -> bool {
        self.runs[run as usize].iter().any(|(start, length)| {
            let start = *start as usize;
            AgentLine::new(&body[start..start + *length as usize], 0).names(choice)
        })
    }
}

// === impl UsageLine ===

impl UsageLine {
    /// Returns whether the line's pattern matches `path`, or `None` if the budget does not suffice. Takes from the
    /// budget only for the part of the pattern from its first `*` on.
    fn matches(&self, patterns: &[u8], path: &[u8], head: Head, budget: &mut usize) -> Option<bool> {
        let pattern = &self.pattern;
        if !pattern.begins(patterns, path, head) {
            return Some(false);
        }
        let rest = &path[pattern.literal_len()..];
        Some(match pattern.shape() {
            Shape::Prefix => true,
            Shape::Exact => rest.is_empty(),
            shape => {
                let tail = pattern.tail(patterns);
                *budget = budget.checked_sub(rest.len() + tail.len())?;
                wild::matches(rest, tail, shape == Shape::WildToEnd)
            }
        })
    }
}

fn vocabulary_of(kind: StatementKind) -> Option<Vocabulary> {
    match kind {
        StatementKind::ContentSignal => Some(Vocabulary::ContentSignal),
        StatementKind::ContentUsage => Some(Vocabulary::ContentUsage),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::robots::RobotsTxt;

    #[test]
    fn the_weight_covers_the_usage_lines_before_they_are_parsed() {
        for body in [
            "User-agent: a\n".repeat(100) + "Content-Signal: ai-train=no",
            "User-agent: *\n".to_owned() + &"CONTENT-USAGE:\n".repeat(100),
            "User-agent: *\ncontent-signal:\n".repeat(100),
            format!(
                "User-agent: *\n \t content-usage: /{} train-ai=n",
                "\u{fc}".repeat(1000)
            ),
        ] {
            let robots = RobotsTxt::parse(body.as_bytes());
            let before = robots.weight();
            let lines = UsageLines::new(Profile::Google, body.as_bytes());
            let runs: usize = lines
                .runs
                .iter()
                .map(|run| size_of_val(run) + size_of_val(&**run))
                .sum();
            let weight = size_of_val(&*lines.lines) + runs + lines.patterns.len();
            assert!(weight <= robots.usage_weight, "{weight} {body}");
            let _ = robots.agent("a").usage_of_site();
            assert_eq!(robots.weight(), before);
        }
        let without = RobotsTxt::parse(b"User-agent: *\nDisallow: /\nSitemap: /map");
        assert_eq!(without.usage_weight, 0);
    }
}
