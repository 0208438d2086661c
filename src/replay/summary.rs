//! Counts what a change would do to logged decisions, and groups the decisions that it would change.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::{Effect, Finding, LoggedDecision, Replayed, Unknown};
use crate::decision::Decision;

/// What a change would do to the decisions of a log.
#[derive(Debug, Default, Serialize)]
pub struct Summary {
    pub decisions: u64,
    /// Numbers of decisions by the [`Effect`] of the change on them: `refused`, `forwarded`, `verdict`, `basis` and
    /// `same`. `same` also counts the requests with which the change has nothing to do.
    pub refused: u64,
    pub forwarded: u64,
    pub verdict: u64,
    pub basis: u64,
    pub same: u64,
    /// Decisions that depended on the address or port of the site, the client's proof or the pace. A replay cannot make
    /// them again.
    pub as_logged: u64,
    /// Numbers of decisions whose result with the change is not known, by the text of [`Unknown`].
    pub unknown: BTreeMap<String, u64>,
    /// For each text in `unknown`, the URL of the first decision with this text.
    #[serde(skip)]
    pub unknown_urls: BTreeMap<String, String>,
    /// Whether a robots.txt given by the user would decide some of the `unknown` decisions.
    #[serde(skip)]
    pub lacks_robots: bool,
    /// Whether the store of evidence lacks a text for some of the `unknown` decisions.
    #[serde(skip)]
    pub lacks_copy: bool,
    pub unreadable_lines: u64,
    /// Whether the change has `[pace]` limits that differ from those of a logged decision. The effect of this
    /// difference is not computed.
    pub pace_changes: bool,
    /// Changed decisions that are in no group, because there are too many groups.
    pub ungrouped: u64,
    #[serde(skip)]
    groups: HashMap<GroupKey, DecisionGroup>,
}

/// Decisions with the same bot, site, logged result and new result.
#[derive(Debug, Serialize)]
pub struct DecisionGroup {
    pub decisions: u64,
    pub effect: Effect,
    /// The logged bot (`bot`), and the bot with the change (`new_bot`).
    pub bot: Option<String>,
    pub new_bot: Option<String>,
    pub origin: String,
    pub was: Outline,
    pub now: Outline,
    pub example: Example,
}

/// The parts of a decision that the summary shows.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Outline {
    pub verdict: String,
    pub reason: String,
    pub rule: Option<String>,
    pub forwarded: bool,
}

/// One logged decision, as an example for the decisions of a [`DecisionGroup`].
#[derive(Debug, Serialize)]
pub struct Example {
    pub time: String,
    pub id: String,
    pub url: String,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub position: Option<LogPosition>,
}

/// A log file, and the number of a line in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogPosition {
    pub log: String,
    pub line: u64,
}

/// A summary and its largest groups, for the output.
#[derive(Debug, Serialize)]
pub struct SummaryOutput<'s> {
    #[serde(flatten)]
    pub summary: &'s Summary,
    pub groups_total: usize,
    pub groups: Vec<&'s DecisionGroup>,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct GroupKey {
    bots: [Option<String>; 2],
    origin: String,
    was: Outline,
    now: Outline,
}

// === impl Summary ===

impl Summary {
    /// Counts the result for a line. Calls `position` only if the line becomes the example of a group.
    pub fn add(&mut self, replayed: &Replayed<'_, Finding>, position: impl FnOnce() -> Option<LogPosition>) {
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
                self.lacks_robots |= unknown.lacks_robots();
                self.lacks_copy |= unknown.lacks_copy();
                let why = match unknown {
                    Unknown::Missing(missing) => missing.reason(),
                    other => other.to_string(),
                };
                if !self.unknown_urls.contains_key(&why) {
                    self.unknown_urls.insert(why.clone(), logged.url.to_string());
                }
                *self.unknown.entry(why).or_default() += 1;
            }
            Finding::Decided(effect, decision) => {
                let count = match effect {
                    Effect::Same => return self.same += 1,
                    Effect::Refused => &mut self.refused,
                    Effect::Forwarded => &mut self.forwarded,
                    Effect::Verdict => &mut self.verdict,
                    Effect::Basis => &mut self.basis,
                };
                *count += 1;
                self.group(logged, *effect, decision, position);
            }
        }
    }

    fn group(
        &mut self,
        logged: &LoggedDecision<'_>,
        effect: Effect,
        decision: &Decision,
        position: impl FnOnce() -> Option<LogPosition>,
    ) {
        let key = GroupKey {
            bots: [logged.bot.clone(), decision.shown_bot()],
            origin: logged.origin.to_string(),
            was: Outline::logged(logged),
            now: Outline::of(decision),
        };
        if let Some(group) = self.groups.get_mut(&key) {
            return group.decisions += 1;
        }
        if self.groups.len() >= MAX_GROUPS {
            return self.ungrouped += 1;
        }
        let [bot, new_bot] = key.bots.clone();
        let group = DecisionGroup {
            decisions: 1,
            effect,
            bot,
            new_bot,
            origin: key.origin.clone(),
            was: key.was.clone(),
            now: key.now.clone(),
            example: Example {
                time: logged.time.to_string(),
                id: logged.id.to_string(),
                url: logged.url.to_string(),
                position: position(),
            },
        };
        self.groups.insert(key, group);
    }

    /// Returns how many decisions would be different with the change.
    pub fn changed(&self) -> u64 {
        self.refused + self.forwarded + self.verdict + self.basis
    }

    /// Returns the summary with the `limit` largest groups.
    pub fn report(&self, limit: usize) -> SummaryOutput<'_> {
        let mut groups: Vec<_> = self.groups.values().collect();
        groups.sort_unstable_by(|a, b| {
            let by_size = b.decisions.cmp(&a.decisions);
            by_size.then_with(|| (&a.origin, &a.bot, &a.example.id).cmp(&(&b.origin, &b.bot, &b.example.id)))
        });
        groups.truncate(limit);
        SummaryOutput {
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

    fn of(decision: &Decision) -> Self {
        Self {
            verdict: decision.verdict.as_str().to_owned(),
            reason: decision.reason.as_str().to_owned(),
            rule: decision.shown_rule(),
            forwarded: decision.forwarded,
        }
    }
}

/// Maximum number of groups. Each takes about a kilobyte.
const MAX_GROUPS: usize = 100_000;
