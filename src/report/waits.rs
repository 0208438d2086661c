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
    /// The number of waits for a turn or for a robots.txt, and their sum.
    pub(super) turn: (u64, Duration),
    pub(super) robots: (u64, Duration),
    /// The bot and the URL of each decision in the previous portion of lines, by id.
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
            let is_short = self.longest.len() >= MAX_WAITS && waited <= self.longest[MAX_WAITS - 1].waited;
            if is_short {
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
    }

    /// Finds the bots and URLs of the longest waits in the decisions of `lines` and of the portion before. A decision
    /// is usually near its completion in the log.
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
