//! The events of a report that concern robotgate itself, such as starts and reloads.

use std::{collections::VecDeque, time::SystemTime};

use super::{
    kept,
    line::{Record, Text},
};

#[derive(Debug)]
pub(super) struct Event {
    pub(super) time: SystemTime,
    pub(super) what: &'static str,
    pub(super) instance: String,
    pub(super) detail: String,
}

/// If there are too many events, only those that were added last are kept.
#[derive(Debug, Default)]
pub(super) struct Events {
    pub(super) kept: VecDeque<Event>,
    pub(super) starts: u64,
    pub(super) stops: u64,
    pub(super) reloads: u64,
    pub(super) rejected: u64,
}

// === impl Events ===

impl Events {
    pub(super) fn add(&mut self, record: &Record<'_>) {
        let text = |text: Option<&Text<'_>>| text.map_or("-", Text::as_str).to_owned();
        let is_rejected = record
            .result
            .as_ref()
            .is_some_and(|result| result.as_str() == "rejected");
        let (what, count, detail) = match record.event() {
            "start" => {
                let file = text(record.config_file.as_ref());
                (
                    "start",
                    &mut self.starts,
                    format!("robotgate {}, {file}", text(record.version.as_ref())),
                )
            }
            "stop" => {
                let cut_off = record.cut_off.filter(|cut_off| *cut_off > 0);
                let cut_off = cut_off.map_or_else(String::new, |cut_off| format!(", exchanges cut off: {cut_off}"));
                ("stop", &mut self.stops, text(record.cause.as_ref()) + &cut_off)
            }
            "reload" if is_rejected => ("reload rejected", &mut self.rejected, text(record.error.as_ref())),
            "reload" => ("reload", &mut self.reloads, text(record.cause.as_ref())),
            "forget" => {
                let detail = format!("{}, by {}", record.origin(), text(record.by.as_ref()));
                return self.push(record, FORGOTTEN, &detail);
            }
            _ => return,
        };
        *count += 1;
        self.push(record, what, &detail);
    }

    pub(super) fn has_forgotten(&self) -> bool {
        self.kept.iter().any(|event| event.what == FORGOTTEN)
    }

    fn push(&mut self, record: &Record<'_>, what: &'static str, detail: &str) {
        self.kept.push_back(Event {
            time: record.time.0,
            what,
            instance: record
                .instance
                .as_ref()
                .map_or_else(|| "-".to_owned(), |instance| kept(instance.as_str())),
            detail: kept(detail),
        });
        if self.kept.len() > MAX_EVENTS {
            self.kept.pop_front();
        }
    }
}

const MAX_EVENTS: usize = 5_000;
const FORGOTTEN: &str = "forgotten site";
