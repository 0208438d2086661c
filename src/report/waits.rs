//! Finds the requests that waited longest: for their turn because of `[pace]` limits, or for the site's robots.txt.

use std::{
    cmp::Reverse,
    collections::HashMap,
    time::{Duration, SystemTime},
};

use super::{
    kept,
    line::{LogLine, Record},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WaitFor {
    Turn,
    Robots,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) waited: Duration,
    pub(super) what: WaitFor,
    pub(super) time: SystemTime,
    pub(super) id: String,
    /// The bot and the URL; `None` if the decision was not found near the completion in the log.
    pub(super) request: Option<(String, String)>,
}

#[derive(Debug, Default)]
pub(super) struct Waits {
    /// The longest waits and some shorter ones, in no order.
    longest: Vec<Wait>,
    /// The shortest of the waits that the last [`cut`](Self::cut) kept. Zero if it kept fewer than `MAX_WAITS`.
    shortest: Duration,
    /// The number of waits for a turn, and how long they took together.
    pub(super) turn: (u64, Duration),
    /// The number of waits for a robots.txt, and how long they took together.
    pub(super) robots: (u64, Duration),
    /// The bot and the URL of each decision that the last [`find_requests`](Self::find_requests) got, by id.
    before: HashMap<String, (String, String)>,
}

// === impl WaitFor ===

impl WaitFor {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Turn => "its turn",
            Self::Robots => "the robots.txt",
        }
    }
}

// === impl Waits ===

impl Waits {
    pub(super) fn add(&mut self, record: &Record<'_>) {
        for (what, waited) in [
            (WaitFor::Turn, record.pace_wait_us),
            (WaitFor::Robots, record.robots_wait_us),
        ] {
            let Some(waited @ 1..) = waited else { continue };
            let waited = Duration::from_micros(waited);
            let total = match what {
                WaitFor::Turn => &mut self.turn,
                WaitFor::Robots => &mut self.robots,
            };
            total.0 += 1;
            total.1 = total.1.saturating_add(waited);
            if waited <= self.shortest {
                continue;
            }
            self.longest.push(Wait {
                waited,
                what,
                time: record.time.0,
                id: record.id.as_ref().map_or_else(String::new, |id| kept(id.as_str())),
                request: None,
            });
            if self.longest.len() >= 2 * MAX_WAITS {
                self.cut();
            }
        }
    }

    fn cut(&mut self) {
        self.longest
            .sort_by_key(|wait| (Reverse(wait.waited), wait.time, wait.what));
        self.longest.truncate(MAX_WAITS);
        self.shortest = self
            .longest
            .get(MAX_WAITS - 1)
            .map_or(Duration::ZERO, |wait| wait.waited);
    }

    /// Adds the bot and the URL to waits whose decision is in `lines`, or was in the lines of the call before.
    pub(super) fn find_requests(&mut self, lines: &[LogLine<'_>]) {
        self.cut();
        let decisions = lines.iter().filter_map(|line| match line {
            LogLine::Record(record) if record.event() == "decision" => {
                let text = |text: Option<&str>| kept(text.unwrap_or("-"));
                let id = record.id.as_ref().map(|id| id.as_str());
                let bot = record.bot.as_ref().map(|bot| bot.as_str());
                let url = record.url.as_ref().map(|url| url.as_str());
                Some((text(id), (text(bot), text(url))))
            }
            _ => None,
        });
        let now: HashMap<_, _> = decisions.collect();
        for wait in self.longest.iter_mut().filter(|wait| wait.request.is_none()) {
            wait.request = now.get(&wait.id).or_else(|| self.before.get(&wait.id)).cloned();
        }
        self.before = now;
    }

    /// Returns the longest waits, the longest first.
    pub(super) fn longest(&self) -> &[Wait] {
        &self.longest
    }
}

const MAX_WAITS: usize = 1000;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_longest_waits_are_kept_in_whatever_order_they_come() {
        let mut waits = Waits::default();
        let short = std::iter::repeat_n(1, MAX_WAITS - 1);
        for micros in short.chain([9, 7, 8, 1, 7]) {
            let line = json!({
                "event": "completion", "time": "2026-11-22T10:00:00.000000Z", "id": "1", "pace_wait_us": micros,
            });
            let line = line.to_string();
            match LogLine::parse(line.as_bytes()) {
                LogLine::Record(record) => waits.add(&record),
                other => panic!("{other:?}"),
            }
        }
        waits.find_requests(&[]);
        let longest = waits.longest().iter().map(|wait| wait.waited.as_micros());
        assert_eq!(longest.take(5).collect::<Vec<_>>(), [9, 8, 7, 7, 1]);
        assert_eq!(waits.turn.0, MAX_WAITS as u64 + 4);
    }
}
