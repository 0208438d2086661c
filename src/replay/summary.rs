//! Counts how a change would affect logged decisions, and groups the decisions that it would change.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::{Effect, Finding, LoggedDecision, Replayed, Unknown, what_if::Assumed};

/// How a change would affect the decisions of a log.
#[derive(Debug, Default, Serialize)]
pub struct Summary {
    pub decisions: u64,
    /// Decisions by their [`Effect`].
    pub refused: u64,
    pub forwarded: u64,
    pub verdict: u64,
    pub basis: u64,
    pub same: u64,
    /// Decisions that the network or the time of the request made.
    pub as_logged: u64,
    /// Decisions whose new result is unknown, by the reason.
    pub unknown: BTreeMap<String, u64>,
    pub unreadable_lines: u64,
    /// Whether the change affects `[pace]`. Turns at sites are not simulated.
    pub pace_changes: bool,
    /// Changed decisions for which there was no room in `groups`.
    pub ungrouped: u64,
    #[serde(skip)]
    groups: HashMap<Key, Group>,
}

/// The changed decisions of one bot and site that have the same logged outcome and the same new outcome.
#[derive(Debug, Serialize)]
pub struct Group {
    pub decisions: u64,
    pub effect: Effect,
    /// The bot in the log, and the bot that the change would identify.
    pub bot: Option<String>,
    pub new_bot: Option<String>,
    pub origin: String,
    pub was: Outline,
    pub now: Outline,
    /// The decision that was added first.
    pub example: Example,
}

/// The part of a decision that is compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Outline {
    pub verdict: String,
    pub reason: String,
    pub rule: Option<String>,
    pub forwarded: bool,
}

/// A decision, and where its line is.
#[derive(Debug, Serialize)]
pub struct Example {
    pub time: String,
    pub id: String,
    pub url: String,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    pub log: String,
    pub line: u64,
}

/// A summary with its largest groups.
#[derive(Debug, Serialize)]
pub struct Report<'s> {
    #[serde(flatten)]
    pub summary: &'s Summary,
    pub groups_total: usize,
    pub groups: Vec<&'s Group>,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    bots: [Option<String>; 2],
    origin: String,
    was: Outline,
    now: Outline,
}

// === impl Summary ===

impl Summary {
    /// Counts a line. `place` is called only if the line becomes an example.
    pub fn add(&mut self, replayed: &Replayed<'_, Finding>, place: impl FnOnce() -> Option<Place>) {
        let (logged, finding) = match replayed {
            Replayed::Decision(logged, finding) => (logged, finding),
            Replayed::Unreadable => return self.unreadable_lines += 1,
            Replayed::Skipped | Replayed::Other => return,
        };
        self.decisions += 1;
        match finding {
            Finding::Unaffected => self.same += 1,
            Finding::AsLogged => self.as_logged += 1,
            Finding::Unknown(unknown) => {
                let why = match unknown {
                    Unknown::Missing(missing) => missing.reason(),
                    other => other.to_string(),
                };
                *self.unknown.entry(why).or_default() += 1;
            }
            Finding::Decided(assumed) => {
                let count = match assumed.effect {
                    Effect::Same => return self.same += 1,
                    Effect::Refused => &mut self.refused,
                    Effect::Forwarded => &mut self.forwarded,
                    Effect::Verdict => &mut self.verdict,
                    Effect::Basis => &mut self.basis,
                };
                *count += 1;
                self.group(logged, assumed, place);
            }
        }
    }

    fn group(&mut self, logged: &LoggedDecision<'_>, assumed: &Assumed, place: impl FnOnce() -> Option<Place>) {
        let key = Key {
            bots: [logged.bot.clone(), assumed.bot.clone()],
            origin: logged.origin.to_string(),
            was: Outline::logged(logged),
            now: Outline::assumed(assumed),
        };
        if let Some(group) = self.groups.get_mut(&key) {
            return group.decisions += 1;
        }
        if self.groups.len() >= MAX_GROUPS {
            return self.ungrouped += 1;
        }
        let [bot, new_bot] = key.bots.clone();
        let group = Group {
            decisions: 1,
            effect: assumed.effect,
            bot,
            new_bot,
            origin: key.origin.clone(),
            was: key.was.clone(),
            now: key.now.clone(),
            example: Example {
                time: logged.time.to_string(),
                id: logged.id.to_string(),
                url: logged.url.to_string(),
                place: place(),
            },
        };
        self.groups.insert(key, group);
    }

    /// Returns the number of decisions that the change would change.
    pub fn changed(&self) -> u64 {
        self.refused + self.forwarded + self.verdict + self.basis
    }

    /// Returns the summary with the `limit` largest groups.
    pub fn report(&self, limit: usize) -> Report<'_> {
        let mut groups: Vec<_> = self.groups.values().collect();
        groups.sort_unstable_by(|a, b| {
            let by_size = b.decisions.cmp(&a.decisions);
            by_size.then_with(|| (&a.origin, &a.bot, &a.example.id).cmp(&(&b.origin, &b.bot, &b.example.id)))
        });
        groups.truncate(limit);
        Report {
            summary: self,
            groups_total: self.groups.len(),
            groups,
        }
    }
}

// === impl Outline ===

impl Outline {
    fn logged(logged: &LoggedDecision<'_>) -> Self {
        Self {
            verdict: logged.verdict.to_string(),
            reason: logged.reason.to_string(),
            rule: logged.rule.clone(),
            forwarded: logged.forwarded,
        }
    }

    fn assumed(assumed: &Assumed) -> Self {
        Self {
            verdict: assumed.verdict.as_str().to_owned(),
            reason: assumed.reason.as_str().to_owned(),
            rule: assumed.rule.clone(),
            forwarded: assumed.forwarded,
        }
    }
}

/// Maximum number of groups. Each takes about a kilobyte.
const MAX_GROUPS: usize = 100_000;
