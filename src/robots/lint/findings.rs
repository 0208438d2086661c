//! Findings as they come together, and in the order in which they are told.
//!
//! Never judges.

use super::{super::line::Lines, Finding, Lint, quote::shown};

/// What has been found so far, in any order.
#[derive(Debug, Default)]
pub(super) struct Findings(Vec<Finding>);

// === impl Findings ===

impl Findings {
    pub(super) fn add(&mut self, line: u32, code: Lint, message: impl Into<String>) {
        self.push(line, None, code, message.into());
    }

    /// As [`add`](Self::add), where another line has to do with it.
    pub(super) fn relate(&mut self, line: u32, related: u32, code: Lint, message: impl Into<String>) {
        self.push(line, Some(related), code, message.into());
    }

    pub(super) fn push(&mut self, line: u32, related: Option<u32>, code: Lint, message: String) {
        self.0.push(Finding {
            line,
            severity: code.severity(),
            code,
            message,
            related,
            text: String::new(),
        });
    }

    /// By line, each with the text of its line in `body`.
    pub(super) fn finish(mut self, body: &[u8]) -> Vec<Finding> {
        self.0.sort_by_key(|finding| (finding.line, finding.code));
        let mut lines = Lines::new(body);
        let mut current = (0, &[][..]);
        for finding in &mut self.0 {
            while current.0 < finding.line
                && let Some(next) = lines.next_raw()
            {
                current = next;
            }
            finding.text = shown(current.1.trim_ascii_end(), MAX_TEXT);
        }
        self.0
    }
}

/// Characters of a line that are shown.
const MAX_TEXT: usize = 100;
