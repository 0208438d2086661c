//! Reads the audit log.

use std::{fs, path::Path};

use serde_json::Value;

use super::{Gate, config};
use crate::support::wait;

/// A line of the audit log.
pub type Record = Value;

impl Gate {
    /// Returns the records of requests and of fetches so far. Ignores an incomplete last line.
    pub fn audit(&self) -> Vec<Record> {
        let mut records = self.whole_audit();
        records.retain(|record| !OTHER_EVENTS.iter().any(|event| record["event"] == *event));
        records
    }

    /// Returns how many bytes the log has now, for [`audit_from`](Self::audit_from).
    pub fn audit_length(&self) -> usize {
        fs::read(self.file(config::AUDIT)).map_or(0, |text| complete(&text).len())
    }

    /// Returns the records after the first `length` bytes. With many records, this is faster than to parse all of them.
    pub fn audit_from(&self, length: usize) -> Vec<Record> {
        let text = fs::read(self.file(config::AUDIT)).unwrap_or_default();
        parse(&complete(&text)[length..])
    }

    /// Returns all records so far, including those about robotgate itself.
    pub fn whole_audit(&self) -> Vec<Record> {
        read(&self.file(config::AUDIT))
    }

    /// Returns the records so far whose `event` is this one.
    pub fn events(&self, event: &str) -> Vec<Record> {
        let mut records = self.whole_audit();
        records.retain(|record| record["event"] == event);
        records
    }

    /// Waits until there are `exchanges` decisions and as many completions, and returns both. The completions are
    /// sorted like their decisions.
    ///
    /// # Panics
    ///
    /// If there are more, or too few after some time.
    pub async fn audited(&self, exchanges: usize) -> (Vec<Record>, Vec<Record>) {
        let (decisions, mut completions) = wait::until(&format!("{exchanges} audited exchanges"), || {
            let (decisions, completions) = split(self.audit());
            (decisions.len() >= exchanges && completions.len() >= exchanges).then_some((decisions, completions))
        })
        .await;
        assert_eq!(decisions.len(), exchanges, "{decisions:#?}");
        assert_eq!(completions.len(), exchanges, "{completions:#?}");
        completions.sort_by_key(|completion| decisions.iter().position(|decision| decision["id"] == completion["id"]));
        (decisions, completions)
    }

    /// Waits for the only decision about a URL.
    pub async fn decision_for(&self, url: &str) -> Record {
        let about = |record: &Record| record["event"] == "decision" && record["url"] == url;
        let mut found = wait::until(&format!("a decision about {url}"), || {
            let found: Vec<Record> = self.audit().into_iter().filter(about).collect();
            (!found.is_empty()).then_some(found)
        })
        .await;
        assert_eq!(found.len(), 1, "{found:#?}");
        found.remove(0)
    }

    /// Returns the records of all fetches of an origin's robots.txt so far, in order.
    pub fn fetches_of(&self, origin: &str) -> Vec<Record> {
        let of_it = |record: &Record| record["event"] == "robots" && record["origin"] == origin;
        self.audit().into_iter().filter(of_it).collect()
    }

    /// Waits for the completion of a decision.
    pub async fn completion_of(&self, decision: &Record) -> Record {
        let belongs = |record: &Record| record["event"] == "completion" && record["id"] == decision["id"];
        let what = format!("the completion of {decision}");
        wait::until(&what, || self.audit().into_iter().find(belongs)).await
    }
}

/// The events that [`Gate::audit`] leaves out, because they are not about a single request or fetch.
const OTHER_EVENTS: [&str; 5] = ["robots-changed", "start", "stop", "reload", "forget"];

/// Reads the records in a file. Returns no records if there is no file.
pub fn read(path: &Path) -> Vec<Record> {
    parse(complete(&fs::read(path).unwrap_or_default()))
}

fn complete(text: &[u8]) -> &[u8] {
    &text[..text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)]
}

fn parse(lines: &[u8]) -> Vec<Record> {
    let record = |line: &[u8]| {
        let text = || String::from_utf8_lossy(line);
        serde_json::from_slice(line).unwrap_or_else(|error| panic!("no record ({error}): {}", text()))
    };
    lines.split_inclusive(|byte| *byte == b'\n').map(record).collect()
}

/// Splits records into decisions and completions.
pub fn split(records: Vec<Record>) -> (Vec<Record>, Vec<Record>) {
    let of = |event: &str| {
        records
            .iter()
            .filter(|record| record["event"] == event)
            .cloned()
            .collect()
    };
    (of("decision"), of("completion"))
}
