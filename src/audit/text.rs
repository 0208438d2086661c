//! The log as text for a person who watches it at a terminal. It has a line for each decision, fetch of a robots.txt,
//! withdrawn response and failed exchange, and for what happens to robotgate itself. The text is made from the JSON of
//! the record, so that both say the same. A log in a file does not use this module.

use std::{
    borrow::Cow,
    collections::HashMap,
    io::{IsTerminal as _, stdout},
    sync::{Mutex, PoisonError},
};

use serde::Deserialize;
use unicode_width::UnicodeWidthStr as _;

use crate::{
    colour::{Colour, Paint},
    columns::{columns, cut_end, cut_middle},
    text::plain_message,
};

/// The format of lines on standard output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// Text if standard output is a terminal, otherwise JSON.
    #[default]
    Auto,
    /// A readable line for each decision, each fetch of a robots.txt and each exchange that failed.
    Text,
    /// One JSON object a line, with all fields.
    Json,
}

/// Converts lines of the log from JSON to text.
#[derive(Debug)]
pub(super) struct TextLines {
    paint: Paint,
    is_terminal: bool,
    /// The requests whose completion is still to come, by id. The text of a completion shows the request, but its JSON
    /// contains only the id.
    open: Mutex<HashMap<String, Request>>,
}

#[derive(Debug, Clone, Default)]
struct Request {
    /// The name of the bot, and the method.
    who: String,
    url: String,
}

/// What a site says about the purposes for which a bot uses content.
#[derive(Debug, Deserialize)]
struct Usage {
    refused: Option<Refused>,
}

/// Why a purpose is refused. If only `purpose` is set, the site says nothing about that purpose.
#[derive(Debug, Deserialize)]
struct Refused {
    purpose: String,
    vocabulary: Option<String>,
    key: Option<String>,
    value: Option<String>,
    line: Option<u32>,
}

/// A record of the log, with the fields that the text shows.
#[derive(Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Record {
    Decision {
        time: String,
        id: String,
        verdict: String,
        reason: String,
        forwarded: bool,
        bot: Option<String>,
        method: String,
        url: String,
        rule: Option<String>,
        line: Option<u32>,
        robots_error: Option<String>,
        #[serde(default)]
        usage: Option<Usage>,
    },
    Completion {
        time: String,
        id: String,
        status: Option<u16>,
        error: Option<String>,
        error_detail: Option<String>,
    },
    Withdrawn {
        time: String,
        bot: Option<String>,
        url: String,
        purpose: String,
        key: String,
        value: String,
        field: Option<String>,
    },
    Robots {
        time: String,
        robots_url: String,
        status: Option<u16>,
        error: Option<String>,
        holds: String,
    },
    Tdmrep {
        time: String,
        tdmrep_url: String,
        status: Option<u16>,
        error: Option<String>,
        holds: Option<String>,
    },
    Shared {
        time: String,
        origin: String,
        holds: String,
    },
    #[serde(rename = "robots-changed")]
    RobotsChanged {
        time: String,
        origin: String,
        robots_sha256_before: Option<String>,
        robots_sha256: Option<String>,
        rules: Option<String>,
        rules_added: usize,
        rules_removed: usize,
        requests: usize,
        newly_denied: usize,
        newly_allowed: usize,
    },
    Start {
        time: String,
        instance: String,
        version: String,
        config_file: Option<String>,
    },
    Stop {
        time: String,
        instance: String,
        cause: String,
        cut_off: Option<u64>,
    },
    Reload {
        time: String,
        cause: String,
        error: Option<String>,
        config: u64,
    },
    Forget {
        time: String,
        origin: String,
        by: String,
        known: Option<bool>,
    },
}

/// The parts of a line of text.
struct LineFields {
    time: String,
    label: (Colour, String),
    request: Request,
    why: String,
}

// === impl LineFields ===

impl LineFields {
    fn of_fetch(
        label: &str,
        time: String,
        url: String,
        status: Option<u16>,
        holds: &str,
        error: Option<String>,
    ) -> Self {
        let status = status.map_or_else(String::new, |status| format!("{status}, "));
        let colour = if error.is_some() {
            Colour::Warning
        } else {
            Colour::Faint
        };
        let error = error.map_or_else(String::new, |error| format!(": {error}"));
        Self {
            time,
            label: (colour, label.to_owned()),
            request: Request {
                who: String::new(),
                url,
            },
            why: format!("{status}{holds}{error}"),
        }
    }
}

// === impl LogFormat ===

impl LogFormat {
    /// Returns whether standard output gets text.
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
    /// Creates a converter for standard output.
    pub(super) fn new() -> Self {
        Self {
            paint: Paint::for_output(&stdout()),
            is_terminal: stdout().is_terminal(),
            open: Mutex::default(),
        }
    }

    /// Returns the text of a record including its line end. Returns nothing for a completion without an error, because
    /// the text does not show it.
    pub(super) fn of<'r>(&self, record: &'r [u8]) -> Cow<'r, [u8]> {
        // The width is read again for each line, because the terminal's window can be resized.
        self.fitted(record, self.is_terminal.then(columns))
    }

    fn fitted<'r>(&self, record: &'r [u8], columns: Option<usize>) -> Cow<'r, [u8]> {
        match serde_json::from_slice(record) {
            Ok(parsed) => match self.fields(parsed) {
                Some(fields) => self.line(&fields, columns).into_bytes().into(),
                None => Cow::Borrowed(&[]),
            },
            // Records that robotgate wrote can always be parsed. If one could not, its JSON would be written instead of
            // text.
            Err(_) => Cow::Borrowed(record),
        }
    }

    fn fields(&self, record: Record) -> Option<LineFields> {
        Some(match record {
            Record::Decision {
                time,
                id,
                verdict,
                reason,
                forwarded,
                bot,
                method,
                url,
                rule,
                line,
                robots_error,
                usage,
            } => {
                let colour = match (&*verdict, forwarded) {
                    ("allow", _) => Colour::Good,
                    (_, true) => Colour::Warning,
                    (_, false) => Colour::Bad,
                };
                let rule = line
                    .zip(rule)
                    .map(|(line, rule)| format!("line {line}: {}", cut_end(&rule, MAX_RULE)));
                let mut why = match rule {
                    Some(rule) if reason == "rule" => rule,
                    Some(rule) => format!("{reason}, {rule}"),
                    None => reason,
                };
                if let Some(error) = robots_error {
                    why = format!("{why}: {error}");
                }
                if let Some(refused) = usage.and_then(|usage| usage.refused) {
                    why = format!("{why}: {}", refused.text());
                }
                if forwarded && verdict != "allow" {
                    why.push_str(" (forwarded)");
                }
                let request = Request {
                    who: format!("{} {method} ", shown_bot(bot.as_deref())),
                    url,
                };
                self.opened(id, request.clone());
                LineFields {
                    time,
                    label: (colour, verdict),
                    request,
                    why,
                }
            }
            Record::Completion {
                time,
                id,
                status,
                error,
                error_detail,
            } => {
                let request = self.closed(&id);
                let error = error?;
                let status = status.map_or_else(String::new, |status| format!("{status} "));
                let detail = error_detail.map_or_else(String::new, |detail| format!(": {detail}"));
                LineFields {
                    time,
                    label: (Colour::Warning, "error".to_owned()),
                    request: request.unwrap_or_else(|| Request {
                        who: "request ".to_owned(),
                        url: id,
                    }),
                    why: format!("{status}{error}{detail}"),
                }
            }
            Record::Withdrawn {
                time,
                bot,
                url,
                purpose,
                key,
                value,
                field,
            } => {
                let field = field.unwrap_or_default();
                let said = match key == value || key == field {
                    true => value,
                    false => format!("{key}={value}"),
                };
                LineFields {
                    time,
                    label: (Colour::Bad, "withdrawn".to_owned()),
                    request: Request {
                        who: format!("{} ", shown_bot(bot.as_deref())),
                        url,
                    },
                    why: format!("the response says {field}: {said}, which forbids {purpose}"),
                }
            }
            Record::Robots {
                time,
                robots_url,
                status,
                error,
                holds,
            } => LineFields::of_fetch("robots", time, robots_url, status, &holds, error),
            Record::Tdmrep {
                time,
                tdmrep_url,
                status,
                error,
                holds,
            } => {
                let holds = holds.as_deref().unwrap_or("unknown");
                LineFields::of_fetch("tdmrep", time, tdmrep_url, status, holds, error)
            }
            Record::Shared { time, origin, holds } => LineFields {
                time,
                label: (Colour::Faint, "robots".to_owned()),
                request: Request {
                    who: String::new(),
                    url: format!("{origin}/robots.txt"),
                },
                why: format!("{holds}, fetched by another robotgate"),
            },
            Record::RobotsChanged {
                time,
                origin,
                robots_sha256_before,
                robots_sha256,
                rules,
                rules_added,
                rules_removed,
                requests,
                newly_denied,
                newly_allowed,
            } => {
                let what = match (&robots_sha256_before, &robots_sha256) {
                    (None, _) => "the site has a robots.txt now; ",
                    (_, None) => "the site no longer has a robots.txt; ",
                    _ => "",
                };
                let rules = match rules.as_deref() {
                    Some("unchanged") => "the rules are the same".to_owned(),
                    Some(_) => format!("rules: {rules_added} added, {rules_removed} removed"),
                    None => "not compared".to_owned(),
                };
                let effect = match requests {
                    0 => String::new(),
                    _ => format!(
                        "; of {requests} recent requests, {newly_denied} newly denied, {newly_allowed} newly allowed"
                    ),
                };
                let colour = match newly_denied + newly_allowed {
                    0 => Colour::Faint,
                    _ => Colour::Warning,
                };
                LineFields {
                    time,
                    label: (colour, "change".to_owned()),
                    request: Request {
                        who: String::new(),
                        url: format!("{origin}/robots.txt"),
                    },
                    why: format!("{what}{rules}{effect}"),
                }
            }
            Record::Start {
                time,
                instance,
                version,
                config_file,
            } => LineFields {
                time,
                label: (Colour::Faint, "start".to_owned()),
                request: Request {
                    who: format!("robotgate {version}, instance {instance}, "),
                    url: config_file.unwrap_or_else(|| "no configuration file".to_owned()),
                },
                why: String::new(),
            },
            Record::Stop {
                time,
                instance,
                cause,
                cut_off,
            } => {
                let cut_off = cut_off.filter(|count| *count > 0);
                let cut_off = cut_off.map_or_else(String::new, |count| format!(", exchanges cut off: {count}"));
                LineFields {
                    time,
                    label: (Colour::Faint, "stop".to_owned()),
                    request: Request {
                        who: format!("robotgate, instance {instance}"),
                        url: String::new(),
                    },
                    why: format!("{cause}{cut_off}"),
                }
            }
            Record::Reload {
                time,
                cause,
                error,
                config,
            } => {
                let colour = if error.is_some() {
                    Colour::Warning
                } else {
                    Colour::Faint
                };
                LineFields {
                    time,
                    label: (colour, "reload".to_owned()),
                    request: Request {
                        who: match error {
                            Some(_) => format!("rejected, configuration {config} stays in force"),
                            None => format!("configuration {config} is in force"),
                        },
                        url: String::new(),
                    },
                    why: error.unwrap_or(cause),
                }
            }
            Record::Forget {
                time,
                origin,
                by,
                known,
            } => {
                let by = match &*by {
                    "fleet" => "at the request of another robotgate",
                    _ => "at the request of an operator",
                };
                let known = if known == Some(false) {
                    ", but nothing was known"
                } else {
                    ""
                };
                LineFields {
                    time,
                    label: (Colour::Faint, "forget".to_owned()),
                    request: Request {
                        who: String::new(),
                        url: origin,
                    },
                    why: format!("{by}{known}"),
                }
            }
        })
    }

    /// Formats a line. If it would be wider than `columns`, shortens the URL, down to a minimum. So the line can still
    /// be too wide.
    fn line(&self, fields: &LineFields, columns: Option<usize>) -> String {
        let shown = |text| plain_message(text, usize::MAX);
        let LineFields {
            time,
            label: (colour, label),
            request,
            why,
        } = fields;
        // Shows only the time of day, in UTC. The lines of the operational log next to it have the date.
        let time = format!("{}Z", time.get(11..19).unwrap_or(time));
        let (who, mut url, why) = (shown(&request.who), shown(&request.url), shown(why));
        if let Some(columns) = columns {
            let before = time.len() + 1 + label.len().max(LABEL) + 1 + who.width();
            let beside = columns.saturating_sub(before + 2 + why.width());
            // If the reason does not fit next to the URL, the terminal wraps it into the next row. The URL can then
            // fill this row.
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
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // A decision that could not be logged never gets a completion and would stay here forever. So a full map is
        // cleared.
        if open.len() >= MAX_OPEN {
            open.clear();
        }
        open.insert(id, request);
    }

    fn closed(&self, id: &str) -> Option<Request> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(id)
    }
}

/// Returns the name of a bot, or `-` if none was identified.
fn shown_bot(bot: Option<&str>) -> Cow<'_, str> {
    bot.map_or(Cow::Borrowed("-"), |bot| cut_end(bot, MAX_BOT))
}

// === impl Refused ===

impl Refused {
    /// Returns a sentence with the purpose, and what the site says about it.
    fn text(&self) -> String {
        let Self {
            purpose,
            vocabulary,
            key,
            value,
            line,
        } = self;
        let (Some(vocabulary), Some(key), Some(value)) = (vocabulary, key, value) else {
            return format!("{purpose}, which the site does not allow (usage.unknown)");
        };
        let place = line.map_or_else(|| vocabulary.clone(), |line| format!("line {line}: {vocabulary}"));
        format!("{purpose}, {place} {key}={value}")
    }
}

/// Minimum width of the column for the verdict. `unverifiable` is wider, so its lines are not aligned with the others.
const LABEL: usize = 6;
/// Maximum width of a bot's name, in columns of the terminal.
const MAX_BOT: usize = 24;
/// Maximum width of a rule, in columns of the terminal. A site can write a rule of any length.
const MAX_RULE: usize = 100;
/// Minimum width of a URL, in columns of the terminal.
const MIN_URL: usize = 24;
/// Maximum number of requests that wait for their completion and are remembered.
const MAX_OPEN: usize = 10_000;

#[cfg(test)]
mod tests;
