//! What the gate writes to standard error and standard output, a JSON object a line, collected as it comes.

use std::{
    io::{BufRead, BufReader, Read},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use serde_json::Value;

/// A line, parsed where it is JSON.
#[derive(Clone, Debug)]
pub struct Line {
    pub text: String,
    pub json: Value,
}

/// All lines so far.
#[derive(Clone, Default)]
pub struct Log {
    lines: Arc<Mutex<Vec<Line>>>,
    complete: Arc<AtomicBool>,
}

// === impl Line ===

impl Line {
    /// The message, or nothing.
    pub fn message(&self) -> &str {
        self.field("message").unwrap_or_default()
    }

    pub fn level(&self) -> &str {
        self.field("level").unwrap_or_default()
    }

    /// A field that is a string.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.json[name].as_str()
    }

    /// Whether any part of the line says `text`.
    pub fn says(&self, text: &str) -> bool {
        self.text.contains(text)
    }
}

// === impl Log ===

impl Log {
    /// Reads in a thread of its own, so that a test that is busy blocks nobody.
    pub fn collect(source: impl Read + Send + 'static) -> Self {
        let log = Self::default();
        let writer = log.clone();
        thread::spawn(move || {
            for text in BufReader::new(source).lines().map_while(Result::ok) {
                let json = serde_json::from_str(&text).unwrap_or(Value::Null);
                writer
                    .lines
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(Line { text, json });
            }
            writer.complete.store(true, Ordering::SeqCst);
        });
        log
    }

    pub fn lines(&self) -> Vec<Line> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the source has ended.
    pub fn is_complete(&self) -> bool {
        self.complete.load(Ordering::SeqCst)
    }

    /// The last lines, as text.
    pub fn tail(&self, count: usize) -> String {
        let lines = self.lines();
        let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        texts[texts.len().saturating_sub(count)..].join("\n")
    }
}
