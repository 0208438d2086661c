//! Collects what robotgate writes to standard error and standard output. Usually each line is a JSON object.

use std::{
    io::{BufRead, BufReader, Read},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use parking_lot::Mutex;
use serde_json::Value;

/// A line of output. `json` is null if the line is not JSON.
#[derive(Clone, Debug)]
pub struct Line {
    pub text: String,
    pub json: Value,
}

#[derive(Clone, Default)]
pub struct Log {
    lines: Arc<Mutex<Vec<Line>>>,
    complete: Arc<AtomicBool>,
}

// === impl Line ===

impl Line {
    /// Returns the message of the line, or an empty text.
    pub fn message(&self) -> &str {
        self.field("message").unwrap_or_default()
    }

    pub fn level(&self) -> &str {
        self.field("level").unwrap_or_default()
    }

    /// Returns a field that is a string.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.json[name].as_str()
    }

    /// Returns whether the line contains `text`.
    pub fn says(&self, text: &str) -> bool {
        self.text.contains(text)
    }
}

// === impl Log ===

impl Log {
    /// Collects lines on a thread of its own, so that robotgate does not have to wait for a busy test.
    pub fn collect(source: impl Read + Send + 'static) -> Self {
        let log = Self::default();
        let writer = log.clone();
        thread::spawn(move || {
            for text in BufReader::new(source).lines().map_while(Result::ok) {
                let json = serde_json::from_str(&text).unwrap_or(Value::Null);
                writer.lines.lock().push(Line { text, json });
            }
            writer.complete.store(true, Ordering::SeqCst);
        });
        log
    }

    pub fn lines(&self) -> Vec<Line> {
        self.lines.lock().clone()
    }

    /// Returns whether robotgate has closed this output.
    pub fn is_complete(&self) -> bool {
        self.complete.load(Ordering::SeqCst)
    }

    /// Returns the last `count` lines as text.
    pub fn tail(&self, count: usize) -> String {
        let lines = self.lines();
        let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        texts[texts.len().saturating_sub(count)..].join("\n")
    }
}
