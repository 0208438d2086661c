//! How a site allows its content to be used, according to its robots.txt: `Content-Usage` (draft-ietf-aipref-attach-05
//! with the labels of draft-ietf-aipref-vocab-07) and `Content-Signal` (contentsignals.org, which defines no grammar).
//!
//! An agent's groups are selected as for its rules, with one difference: these lines, too, end a run of user-agent
//! lines. The lines have no meaning for a path that a rule disallows; the caller checks that first.

use std::sync::Arc;

use sfv::{BareItem, Dictionary, ListEntry, Parser};

use super::{
    AgentLine, Choice, Profile, RuleKind, StatementKind,
    entry::{Entry, Shape, offset},
    escape,
    head::Head,
    record::trim,
    statement::{RawStatement, raw_statements},
    wild,
};

/// A vocabulary: a set of labels, each of which names a use of content that sites can permit or forbid.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Vocabulary {
    ContentSignal,
    ContentUsage,
}

/// The lines of a robots.txt that apply to an agent and a path.
#[derive(Clone, Debug, Default)]
pub struct Usage<'a> {
    /// In the order of the file: all `Content-Signal` lines of the agent's groups, and the `Content-Usage` lines with
    /// the longest path that matches.
    lines: Vec<&'a UsageLine>,
}

/// Whether a site permits a use of its content, and the line that says so.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Preference {
    pub allowed: bool,
    /// Number of the line, from 1. If several lines say the same, the first of them.
    pub line: u32,
}

/// All lines of a robots.txt about the use of content.
#[derive(Debug, Default)]
pub(super) struct UsageLines {
    lines: Box<[UsageLine]>,
    /// The runs of user-agent lines above these lines.
    runs: Box<[Run]>,
    /// The patterns in these lines, and padding for [`Head::at`].
    patterns: Box<[u8]>,
}

/// A run of user-agent lines: for each, the offset of its value in the file, and the length of the value.
type Run = Box<[(u32, u32)]>;

/// A line about the use of content.
#[derive(Clone, Copy, Debug)]
struct UsageLine {
    vocabulary: Vocabulary,
    /// Index of the run of user-agent lines to which the line belongs.
    run: u32,
    line: u32,
    /// The pattern for paths. Empty if the line applies to all paths.
    pattern: Entry<u32>,
    /// The values that the line gives to each of [`Vocabulary::labels`].
    values: Values,
}

type Values = [Option<bool>; MAX_LABELS];

// === impl Vocabulary ===

impl Vocabulary {
    /// All vocabularies that can occur in a robots.txt.
    pub const ALL: [Self; 2] = [Self::ContentSignal, Self::ContentUsage];

    /// Returns the name in the configuration, the log and the header of a refusal.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ContentSignal => "content-signal",
            Self::ContentUsage => "content-usage",
        }
    }

    /// Returns the labels that robotgate knows. It ignores other labels.
    #[must_use]
    pub fn labels(self) -> &'static [&'static str] {
        match self {
            Self::ContentSignal => &["search", "ai-input", "ai-train"],
            Self::ContentUsage => &["train-ai", "search"],
        }
    }

    fn of(kind: StatementKind) -> Option<Self> {
        match kind {
            StatementKind::ContentSignal => Some(Self::ContentSignal),
            StatementKind::ContentUsage => Some(Self::ContentUsage),
            _ => None,
        }
    }
}

// === impl Usage ===

impl Usage<'_> {
    /// Returns whether the site permits the use that `label` names, or `None` if no line says so. If lines disagree, a
    /// line that forbids the use wins.
    #[must_use]
    pub fn preference(&self, vocabulary: Vocabulary, label: &str) -> Option<Preference> {
        let at = vocabulary.labels().iter().position(|known| *known == label)?;
        let said = self.lines.iter().filter(|line| line.vocabulary == vocabulary);
        let said = said.filter_map(|line| {
            Some(Preference {
                allowed: line.values[at]?,
                line: line.line,
            })
        });
        said.min_by_key(|preference| (preference.allowed, preference.line))
    }

    /// Returns the numbers of the lines that apply, including lines that cannot be parsed.
    pub fn lines(&self, vocabulary: Vocabulary) -> impl Iterator<Item = u32> {
        let lines = self.lines.iter().filter(move |line| line.vocabulary == vocabulary);
        lines.map(|line| line.line)
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
            let Some(vocabulary) = Vocabulary::of(kind).filter(|_| !agents.is_empty()) else {
                continue;
            };
            if !last.as_ref().is_some_and(|last| Arc::ptr_eq(last, &agents)) {
                let place = |agent: &AgentLine<'_>| {
                    let start = agent.value.as_ptr().addr().wrapping_sub(body.as_ptr().addr());
                    (offset(start), offset(agent.value.len()))
                };
                runs.push(agents.iter().map(place).collect());
                last = Some(agents);
            }
            let (path, value) = match vocabulary {
                Vocabulary::ContentSignal => (&b""[..], value),
                Vocabulary::ContentUsage => split_path(value),
            };
            let start = patterns.len();
            patterns.extend_from_slice(escape::of_pattern(profile, path).as_bytes());
            let length = patterns.len() - start;
            lines.push(UsageLine {
                vocabulary,
                run: offset(runs.len() - 1),
                line,
                pattern: Entry::new(&patterns, start, length, line, RuleKind::Allow),
                values: match vocabulary {
                    Vocabulary::ContentSignal => signals(value),
                    Vocabulary::ContentUsage => usage(value),
                },
            });
        }
        patterns.extend_from_slice(&[0; Head::BYTES]);
        Self {
            lines: lines.into(),
            runs: runs.into(),
            patterns: patterns.into(),
        }
    }

    /// Finds the lines for `path`, which must be in the spelling in which paths are compared. Returns `None` once it
    /// has searched more than `budget` bytes for patterns with wildcards, and subtracts the searched bytes from
    /// `budget`.
    pub(super) fn find(&self, body: &[u8], choice: Choice<'_>, path: &[u8], budget: &mut usize) -> Option<Usage<'_>> {
        let mut found: Vec<&UsageLine> = Vec::new();
        let head = Head::of(path);
        let mut longest = 0;
        let mut run = None;
        for line in &self.lines {
            let applies = match run {
                Some((at, applies)) if at == line.run => applies,
                _ => self.names(body, line.run, choice),
            };
            run = Some((line.run, applies));
            if !applies || !line.matches(&self.patterns, path, head, budget)? {
                continue;
            }
            if line.vocabulary == Vocabulary::ContentUsage {
                let length = line.pattern.length();
                if length < longest {
                    continue;
                }
                if length > longest {
                    longest = length;
                    found.retain(|other| other.vocabulary != Vocabulary::ContentUsage);
                }
            }
            found.push(line);
        }
        Some(Usage { lines: found })
    }

    pub(super) fn weight(&self) -> usize {
        let runs: usize = self.runs.iter().map(|run| size_of_val(&**run)).sum();
        size_of_val(&*self.lines) + size_of_val(&*self.runs) + runs + self.patterns.len()
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
    /// Returns whether the line's pattern matches `path`. `None` if the budget is exceeded.
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
                *budget = budget.checked_sub(rest.len())?;
                wild::matches(rest, pattern.tail(patterns), shape == Shape::WildToEnd)
            }
        })
    }
}

/// Splits `/path dictionary`, or only `dictionary`, into path and dictionary. White space ends the path.
fn split_path(value: &[u8]) -> (&[u8], &[u8]) {
    if !value.starts_with(b"/") {
        return (b"", value);
    }
    match value.iter().position(|byte| matches!(byte, b' ' | b'\t')) {
        Some(end) => (&value[..end], trim(&value[end..])),
        None => (value, b""),
    }
}

/// Parses a dictionary (RFC 9651). A value other than the tokens `y` and `n` is ignored. If the dictionary has an
/// error, all of it is ignored.
fn usage(value: &[u8]) -> Values {
    let mut values = Values::default();
    let Ok(dictionary) = Parser::new(value).parse::<Dictionary>() else {
        return values;
    };
    for (said, label) in values.iter_mut().zip(Vocabulary::ContentUsage.labels()) {
        let token = match dictionary.get(*label) {
            Some(ListEntry::Item(item)) => match &item.bare_item {
                BareItem::Token(token) => Some(token.as_str()),
                _ => None,
            },
            _ => None,
        };
        *said = match token {
            Some("y") => Some(true),
            Some("n") => Some(false),
            _ => None,
        };
    }
    values
}

/// Parses `key=yes|no` items, separated by commas, ignoring case. Ignores unknown keys and values. If a key has both
/// values, `no` wins.
fn signals(value: &[u8]) -> Values {
    let mut values = Values::default();
    for signal in value.split(|byte| *byte == b',') {
        let Some(at) = memchr::memchr(b'=', signal) else {
            continue;
        };
        let (key, value) = (trim(&signal[..at]), trim(&signal[at + 1..]));
        let mut labels = Vocabulary::ContentSignal.labels().iter();
        let Some(label) = labels.position(|label| key.eq_ignore_ascii_case(label.as_bytes())) else {
            continue;
        };
        if value.eq_ignore_ascii_case(b"no") {
            values[label] = Some(false);
        } else if value.eq_ignore_ascii_case(b"yes") {
            values[label].get_or_insert(true);
        }
    }
    values
}

/// Number of labels of the largest vocabulary.
const MAX_LABELS: usize = 3;
