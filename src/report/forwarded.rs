//! Remembers forwarded requests of bots with purposes (what they use content for). If the site's response then forbids
//! such a purpose, the report counts the request as refused.

use std::{collections::HashMap, time::SystemTime};

use super::line::{Record, Text};

#[derive(Debug, Default)]
pub(super) struct Forwarded {
    requests: HashMap<String, Request>,
    /// Whether requests are missing because there were too many.
    pub(super) is_incomplete: bool,
}

#[derive(Debug)]
pub(super) struct Request {
    pub(super) time: SystemTime,
    pub(super) bot: String,
    pub(super) site: String,
    pub(super) reason: String,
    pub(super) rule: Option<String>,
}

// === impl Forwarded ===

impl Forwarded {
    /// Adds the request if the site's response can still forbid a purpose of the bot.
    pub(super) fn add(&mut self, record: &Record<'_>) {
        let Some(id) = &record.id else { return };
        let can_end = record.forwarded == Some(true) && record.usage.is_some();
        if !can_end {
            return;
        }
        if self.requests.len() >= MAX_REQUESTS {
            self.is_incomplete = true;
            return;
        }
        let owned = |text: &Option<Text<'_>>| text.as_ref().map(|text| text.as_str().to_owned());
        let request = Request {
            time: record.time.0,
            bot: owned(&record.bot).unwrap_or_else(|| "-".to_owned()),
            site: record.origin().to_owned(),
            reason: record.reason().to_owned(),
            rule: owned(&record.rule),
        };
        self.requests.insert(id.as_str().to_owned(), request);
    }

    pub(super) fn remove(&mut self, record: &Record<'_>) -> Option<Request> {
        self.requests.remove(record.id.as_ref()?.as_str())
    }
}

/// Maximum number of remembered requests. A log that lacks many completions can exceed it.
const MAX_REQUESTS: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_beyond_the_maximum_are_noted() {
        let mut forwarded = Forwarded::default();
        let mut add = |id: usize| {
            let line = format!(
                r#"{{"event":"decision","time":"2026-11-22T10:00:00Z","id":"{id}","forwarded":true,"usage":{{}}}}"#
            );
            forwarded.add(&serde_json::from_str(&line).expect("a record"));
            forwarded.is_incomplete
        };
        assert!(!(0..MAX_REQUESTS).any(&mut add));
        assert!(add(MAX_REQUESTS));
    }
}
