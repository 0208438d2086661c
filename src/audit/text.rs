//! The log as text for a person who watches it: a line for each decision, for each fetch of a robots.txt, for each
//! failed exchange, and for what happens to robotgate itself. The text is derived from the JSON of the record, so both
//! agree, and logging to a file does not depend on this module.

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
    /// Text at a terminal, else JSON.
    #[default]
    Auto,
    /// A readable line for each decision, each fetch of a robots.txt and each exchange that failed.
    Text,
    /// One JSON object a line, which has everything.
    Json,
}

/// Converts the log's lines to text.
#[derive(Debug)]
pub(super) struct TextLines {
    paint: Paint,
    is_terminal: bool,
    /// The requests of running exchanges by their ids: a completion contains only the id.
    open: Mutex<HashMap<String, Request>>,
}

#[derive(Debug, Clone, Default)]
struct Request {
    /// The bot and the method.
    who: String,
    url: String,
}

/// The fields of a record that the text shows.
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
    },
    Completion {
        time: String,
        id: String,
        status: Option<u16>,
        error: Option<String>,
        error_detail: Option<String>,
    },
    Robots {
        time: String,
        robots_url: String,
        status: Option<u16>,
        error: Option<String>,
        holds: String,
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

/// The parts of a line.
struct LineFields {
    time: String,
    label: (Colour, String),
    request: Request,
    why: String,
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

    /// Returns the text of a record including its line end, or nothing for a completion without an error.
    pub(super) fn of<'r>(&self, record: &'r [u8]) -> Cow<'r, [u8]> {
        // The width is read for each line, because the window can be resized.
        self.fitted(record, self.is_terminal.then(columns))
    }

    fn fitted<'r>(&self, record: &'r [u8], columns: Option<usize>) -> Cow<'r, [u8]> {
        match serde_json::from_slice(record) {
            Ok(parsed) => match self.fields(parsed) {
                Some(fields) => self.line(&fields, columns).into_bytes().into(),
                None => Cow::Borrowed(&[]),
            },
            // robotgate's own records always parse. If one did not, its JSON would be written instead.
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
                if forwarded && verdict != "allow" {
                    why.push_str(" (forwarded)");
                }
                let request = Request {
                    who: format!(
                        "{} {method} ",
                        bot.as_deref().map_or(Cow::Borrowed("-"), |bot| cut_end(bot, MAX_BOT))
                    ),
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
            Record::Robots {
                time,
                robots_url,
                status,
                error,
                holds,
            } => {
                let status = status.map_or_else(String::new, |status| format!("{status}, "));
                let colour = if error.is_some() {
                    Colour::Warning
                } else {
                    Colour::Faint
                };
                let error = error.map_or_else(String::new, |error| format!(": {error}"));
                LineFields {
                    time,
                    label: (colour, "robots".to_owned()),
                    request: Request {
                        who: String::new(),
                        url: robots_url,
                    },
                    why: format!("{status}{holds}{error}"),
                }
            }
            Record::Shared { time, origin, holds } => LineFields {
                time,
                label: (Colour::Faint, "robots".to_owned()),
                request: Request {
                    who: String::new(),
                    url: format!("{origin}/robots.txt"),
                },
                why: format!("{holds}, fetched by another gate"),
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
                    (_, None) => "the site has no robots.txt any more; ",
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
                    "fleet" => "another gate asked for it",
                    _ => "an operator asked for it",
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

    /// Formats a line. Shortens the URL if the line would be wider than `columns`, but can leave the line too wide.
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
            // If the reason needs its own row, the URL can take the rest of the first row.
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
        // A decision that could not be logged never gets a completion, so the map could grow forever.
        if open.len() >= MAX_OPEN {
            open.clear();
        }
        open.insert(id, request);
    }

    fn closed(&self, id: &str) -> Option<Request> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(id)
    }
}

/// Width of the column for the first word of a line. `unverifiable` does not fit.
const LABEL: usize = 6;
/// Maximum columns of a bot's name.
const MAX_BOT: usize = 24;
/// Maximum columns of a rule, which a site can make as long as it likes.
const MAX_RULE: usize = 100;
/// Minimum columns of a URL.
const MIN_URL: usize = 24;
/// Maximum number of running exchanges to remember.
const MAX_OPEN: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> TextLines {
        TextLines {
            paint: Paint::none(),
            is_terminal: false,
            open: Mutex::default(),
        }
    }

    fn shown(lines: &TextLines, record: &str, columns: Option<usize>) -> String {
        String::from_utf8(lines.fitted(record.as_bytes(), columns).into_owned()).expect("text")
    }

    /// Returns the record of a decision on `/page` of a site, with the fields in `more` instead of the usual ones.
    fn decision(more: &str) -> String {
        let mut record: serde_json::Value = serde_json::from_str(
            r#"{"event":"decision","time":"2026-11-22T13:24:48.914226Z","id":"1","verdict":"deny","reason":"rule",
                "forwarded":false,"bot":"ExampleBot","method":"GET","url":"http://a.example/page","rule":null,"line":null,
                "robots_error":null,"profile":"google"}"#,
        )
        .expect("JSON");
        let more: serde_json::Value = serde_json::from_str(more).expect("JSON");
        for (name, value) in more.as_object().expect("an object") {
            record[name] = value.clone();
        }
        record.to_string()
    }

    #[test]
    fn a_decision_is_a_line() {
        for (more, line) in [
            (
                r#"{"rule":"Disallow: /page","line":2}"#,
                "13:24:48Z deny   ExampleBot GET http://a.example/page  line 2: Disallow: /page",
            ),
            (
                r#"{"verdict":"allow","reason":"no-rule","forwarded":true}"#,
                "13:24:48Z allow  ExampleBot GET http://a.example/page  no-rule",
            ),
            (
                r#"{"rule":"Disallow: /page","line":2,"forwarded":true}"#,
                "13:24:48Z deny   ExampleBot GET http://a.example/page  line 2: Disallow: /page (forwarded)",
            ),
            (
                r#"{"reason":"last-copy","rule":"Disallow: /page","line":2}"#,
                "13:24:48Z deny   ExampleBot GET http://a.example/page  last-copy, line 2: Disallow: /page",
            ),
            (
                r#"{"reason":"unreachable","robots_error":"the name could not be looked up"}"#,
                "13:24:48Z deny   ExampleBot GET http://a.example/page  unreachable: the name could not be looked up",
            ),
            (
                r#"{"reason":"unidentified","bot":null}"#,
                "13:24:48Z deny   - GET http://a.example/page  unidentified",
            ),
            (
                r#"{"verdict":"unverifiable","reason":"unverifiable","method":"CONNECT","url":"https://a.example"}"#,
                "13:24:48Z unverifiable ExampleBot CONNECT https://a.example  unverifiable",
            ),
        ] {
            assert_eq!(shown(&lines(), &decision(more), None), format!("{line}\n"));
        }
    }

    #[test]
    fn a_failed_completion_is_a_line() {
        let done = r#"{"event":"completion","time":"2026-11-22T13:24:49.1Z","id":"1","status":200,"error":null,"error_detail":null}"#;
        let failed = r#"{"event":"completion","time":"2026-11-22T13:24:49.1Z","id":"1","status":502,
            "error":"connection_refused","error_detail":"the server refused the connection"}"#;
        let lines = lines();
        for (completion, line) in [
            (done, ""),
            (
                failed,
                "13:24:49Z error  ExampleBot GET http://a.example/page  502 connection_refused: the server refused the connection\n",
            ),
        ] {
            shown(&lines, &decision("{}"), None);
            assert_eq!(shown(&lines, completion, None), line);
            assert!(
                lines.open.lock().expect("no panic").is_empty(),
                "a request that ended is forgotten"
            );
        }
        assert_eq!(
            shown(&lines, failed, None),
            "13:24:49Z error  request 1  502 connection_refused: the server refused the connection\n",
            "one whose decision is not known"
        );
    }

    #[test]
    fn a_fetch_is_a_line() {
        for (more, line) in [
            (r#""status":200,"error":null,"holds":"rules""#, "200, rules"),
            (r#""status":404,"error":null,"holds":"no-robots""#, "404, no-robots"),
            (
                r#""status":null,"error":"no answer in time","holds":"unreachable""#,
                "unreachable: no answer in time",
            ),
        ] {
            let record = format!(
                r#"{{"event":"robots","time":"2026-11-22T13:24:48.9Z","robots_url":"http://a.example/robots.txt",{more}}}"#
            );
            let line = format!("13:24:48Z robots http://a.example/robots.txt  {line}\n");
            assert_eq!(shown(&lines(), &record, None), line);
        }
        let shared =
            r#"{"event":"shared","time":"2026-11-22T13:24:48.9Z","origin":"http://a.example","holds":"rules"}"#;
        let line = "13:24:48Z robots http://a.example/robots.txt  rules, fetched by another gate\n";
        assert_eq!(shown(&lines(), shared, None), line);
    }

    #[test]
    fn a_changed_robots_txt_is_a_line() {
        for (fields, line) in [
            (
                r#""robots_sha256_before":"1f","robots_sha256":"2e","rules":"changed","rules_added":2,"rules_removed":1,
                   "requests":40,"newly_denied":3,"newly_allowed":0"#,
                "rules: 2 added, 1 removed; of 40 recent requests, 3 newly denied, 0 newly allowed",
            ),
            (
                r#""robots_sha256_before":"1f","robots_sha256":"2e","rules":"unchanged","rules_added":0,"rules_removed":0,
                   "requests":0,"newly_denied":0,"newly_allowed":0"#,
                "the rules are the same",
            ),
            (
                r#""robots_sha256_before":"1f","robots_sha256":null,"rules":"changed","rules_added":0,"rules_removed":1,
                   "requests":0,"newly_denied":0,"newly_allowed":0"#,
                "the site has no robots.txt any more; rules: 0 added, 1 removed",
            ),
            (
                r#""robots_sha256_before":null,"robots_sha256":"2e","rules":null,"rules_added":0,"rules_removed":0,
                   "requests":0,"newly_denied":0,"newly_allowed":0"#,
                "the site has a robots.txt now; not compared",
            ),
        ] {
            let record = format!(
                r#"{{"event":"robots-changed","time":"2026-11-22T13:24:48.9Z","origin":"http://a.example",{fields}}}"#
            );
            let line = format!("13:24:48Z change http://a.example/robots.txt  {line}\n");
            assert_eq!(shown(&lines(), &record, None), line);
        }
    }

    #[test]
    fn what_happens_to_robotgate_itself_is_a_line() {
        for (fields, line) in [
            (
                r#""event":"start","instance":"1f2e3d4c","version":"0.1.0","config_file":"/etc/robotgate/robotgate.toml""#,
                "start  robotgate 0.1.0, instance 1f2e3d4c, /etc/robotgate/robotgate.toml",
            ),
            (
                r#""event":"start","instance":"1f2e3d4c","version":"0.1.0","config_file":null"#,
                "start  robotgate 0.1.0, instance 1f2e3d4c, no configuration file",
            ),
            (
                r#""event":"stop","instance":"1f2e3d4c","cause":"SIGTERM","cut_off":0"#,
                "stop   robotgate, instance 1f2e3d4c  SIGTERM",
            ),
            (
                r#""event":"stop","instance":"1f2e3d4c","cause":"SIGTERM","cut_off":2"#,
                "stop   robotgate, instance 1f2e3d4c  SIGTERM, exchanges cut off: 2",
            ),
            (
                r#""event":"reload","cause":"SIGHUP","error":null,"config":2"#,
                "reload configuration 2 is in force  SIGHUP",
            ),
            (
                r#""event":"reload","cause":"SIGHUP","error":"gate.toml:1:1: no","config":2"#,
                "reload rejected, configuration 2 stays in force  gate.toml:1:1: no",
            ),
            (
                r#""event":"forget","origin":"http://a.example","by":"socket","known":true"#,
                "forget http://a.example  an operator asked for it",
            ),
            (
                r#""event":"forget","origin":"http://a.example","by":"fleet","known":false"#,
                "forget http://a.example  another gate asked for it, but nothing was known",
            ),
        ] {
            let record = format!(r#"{{"time":"2026-11-22T13:24:48.9Z",{fields}}}"#);
            assert_eq!(shown(&lines(), &record, None), format!("13:24:48Z {line}\n"));
        }
    }

    #[test]
    fn a_terminal_shows_a_long_url_shortened_and_the_full_reason() {
        let url = format!("http://a.example/{}/end.html", "x".repeat(200));
        let denied = decision(&format!(r#"{{"url":"{url}","rule":"Disallow: /x","line":2}}"#));
        let line = shown(&lines(), &denied, Some(80));
        assert_eq!(
            line,
            "13:24:48Z deny   ExampleBot GET http://a.example/…end.html  line 2: Disallow: /x\n"
        );
        let long = "Disallow: /".to_owned() + &"y".repeat(300);
        let denied = decision(&format!(r#"{{"url":"{url}","rule":"{long}","line":2}}"#));
        let line = shown(&lines(), &denied, Some(80));
        assert!(
            line.contains("http://a.example/xxxxxxxxxxxxxxx…xxxxxx/end.html  line 2: Disallow: /y"),
            "{line}"
        );
        assert!(line.ends_with("y…\n") && line.len() < 200, "{line}");
        let piped = shown(&lines(), &denied, None);
        assert!(piped.contains(&url), "no terminal, no width: {piped}");
    }

    #[test]
    fn control_characters_in_a_decision_are_escaped() {
        let denied =
            decision(r#"{"bot":"a\u001b[2J","url":"http://a.example/\u001b[31m\n","reason":"unidentified\r"}"#);
        assert_eq!(
            shown(&lines(), &denied, Some(120)),
            "13:24:48Z deny   a\\u{1b}[2J GET http://a.example/\\u{1b}[31m\\u{a}  unidentified\\u{d}\n"
        );
    }

    #[test]
    fn verdicts_are_in_colour() {
        let lines = TextLines {
            paint: Paint::always(),
            ..lines()
        };
        for (more, label) in [
            (r#"{"verdict":"allow"}"#, "\u{1b}[1m\u{1b}[32mallow\u{1b}[0m  "),
            ("{}", "\u{1b}[1m\u{1b}[31mdeny\u{1b}[0m   "),
            (r#"{"forwarded":true}"#, "\u{1b}[1m\u{1b}[33mdeny\u{1b}[0m   "),
        ] {
            let line = shown(&lines, &decision(more), None);
            assert!(line.contains(label), "{line:?}");
        }
    }
}
