//! The log as text, for a person at a terminal. The text is made from the JSON of the record, so that both say the
//! same.

mod record;

use std::{
    borrow::Cow,
    collections::HashMap,
    io::{IsTerminal as _, stdout},
};

use parking_lot::Mutex;
use unicode_width::UnicodeWidthStr as _;

pub use self::record::basis;
pub(super) use self::record::refused;
use self::record::{Record, Request, Shown};
use crate::{
    colour::{Colour, Paint},
    columns::{columns, cut_middle},
    text::plain_message,
};

/// The format of lines on standard output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// Text if standard output is a terminal, otherwise JSON.
    #[default]
    Auto,
    /// Short lines for people, which leave out most fields.
    Text,
    /// One JSON object a line, with all fields.
    Json,
}

#[derive(Debug)]
pub(super) struct TextLines {
    paint: Paint,
    is_terminal: bool,
    /// The requests that have no `completion` record yet, by id. A `completion` record does not repeat the URL.
    open: Mutex<HashMap<String, Request>>,
}

// === impl LogFormat ===

impl LogFormat {
    /// Returns whether standard output gets text instead of JSON.
    pub fn is_text(self) -> bool {
        match self {
            Self::Auto => stdout().is_terminal(),
            Self::Text => true,
            Self::Json => false,
        }
    }
}

// === impl TextLines ===

impl TextLines {
    pub(super) fn new() -> Self {
        Self {
            paint: Paint::for_output(&stdout()),
            is_terminal: stdout().is_terminal(),
            open: Mutex::default(),
        }
    }

    /// Returns `record` as text, which is empty for a completion without an error.
    pub(super) fn of<'r>(&self, record: &'r [u8]) -> Cow<'r, [u8]> {
        // The terminal's window can be resized, so read its width for each line.
        self.fitted(record, self.is_terminal.then(columns))
    }

    fn fitted<'r>(&self, record: &'r [u8], columns: Option<usize>) -> Cow<'r, [u8]> {
        let Ok(parsed) = serde_json::from_slice::<Record>(record) else {
            // Records that robotgate wrote can always be parsed.
            return Cow::Borrowed(record);
        };
        let time = parsed.time.clone();
        let shown = match &*parsed.event {
            "decision" => {
                let id = parsed.id.clone();
                let shown = parsed.decision();
                self.opened(id, shown.request.clone());
                shown
            }
            "completion" => {
                let request = self.closed(&parsed.id);
                let Some(shown) = parsed.completion(request) else {
                    return Cow::Borrowed(&[]);
                };
                shown
            }
            "withdrawn" => parsed.withdrawn(),
            "robots" | "tdmrep" => parsed.fetch(),
            "shared" => parsed.shared(),
            "robots-changed" => parsed.robots_changed(),
            "start" => parsed.start(),
            "stop" => parsed.stop(),
            "reload" => parsed.reload(),
            "forget" => parsed.forget(),
            _ => return Cow::Borrowed(record),
        };
        self.line(&time, &shown, columns).into_bytes().into()
    }

    /// Shortens the URL to fit the line into `columns`, but not below `MIN_URL` columns.
    fn line(&self, time: &str, shown: &Shown, columns: Option<usize>) -> String {
        let Shown {
            colour,
            label,
            request,
            why,
        } = shown;
        let shown = |text| plain_message(text, usize::MAX);
        // Show only the time of day, in UTC. The operational log, usually on the same terminal, has the date.
        let time = format!("{}Z", time.get(11..19).unwrap_or(time));
        let (who, mut url, why) = (shown(&request.who), shown(&request.url), shown(why));
        if let Some(columns) = columns {
            let before = time.len() + 1 + label.len().max(LABEL) + 1 + who.width();
            let beside = columns.saturating_sub(before + 2 + why.width());
            // If the reason does not fit next to the URL, the terminal wraps the reason, so the URL can fill the row.
            let room = if beside < MIN_URL {
                columns.saturating_sub(before)
            } else {
                beside
            };
            url = cut_middle(&url, room.max(MIN_URL)).into_owned().into();
        }
        let faint = |text: &str| self.paint.in_colour(Colour::Faint, text).to_string();
        let is_usual = matches!(colour, Colour::Good | Colour::Faint);
        format!(
            "{} {}{:pad$} {who}{url}{}{}\n",
            faint(&time),
            self.paint.in_colour(*colour, label),
            "",
            if why.is_empty() { "" } else { "  " },
            if is_usual { faint(&why) } else { why.into_owned() },
            pad = LABEL.saturating_sub(label.len()),
        )
    }

    fn opened(&self, id: String, request: Request) {
        let mut open = self.open.lock();
        // Requests whose decision could not be logged would stay forever, because they never get a completion.
        if open.len() >= MAX_OPEN {
            open.clear();
        }
        open.insert(id, request);
    }

    fn closed(&self, id: &str) -> Option<Request> {
        self.open.lock().remove(id)
    }
}

/// Minimum width of the column for the verdict. `unverifiable` is wider.
const LABEL: usize = 6;
/// Minimum width of a shortened URL, in columns of the terminal.
const MIN_URL: usize = 24;
/// Maximum number of requests to remember for the lines of their completions.
const MAX_OPEN: usize = 10_000;

#[cfg(test)]
mod tests;
