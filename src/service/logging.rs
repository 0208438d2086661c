//! The operational log on stderr, about the daemon itself: text at a terminal, otherwise one JSON object per line.

use std::{
    fmt::{self, Debug, Write as _},
    io::{IsTerminal as _, stderr},
    time::SystemTime,
};

use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    EnvFilter,
    filter::{LevelFilter, filter_fn},
    fmt::{FmtContext, FormatEvent, FormatFields, format::Writer},
    layer::SubscriberExt as _,
    registry::LookupSpan,
    util::SubscriberInitExt as _,
};

use crate::{
    colour::{Colour, Paint},
    text::{Second, plain_lines, plain_message},
};

/// The log format for a terminal. Characters that could move the cursor are escaped.
struct ForPerson {
    paint: Paint,
}

#[derive(Debug, Default)]
struct EventText {
    message: String,
    fields: Vec<(&'static str, String)>,
}

/// Starts the operational log. The environment variable `ROBOTGATE_LOG` filters it, as `RUST_LOG` does for other
/// programs, but the name of a target needs a level, as in `h2=debug`.
pub fn init() {
    let wanted = std::env::var("ROBOTGATE_LOG").unwrap_or_default();
    let parsed = filter(&wanted);
    let is_valid = parsed.is_some();
    let filter = parsed.unwrap_or_else(|| EnvFilter::new(DEFAULT));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(stderr)
        // If a write to stderr fails, reporting this on stderr would panic.
        .log_internal_errors(false);
    if stderr().is_terminal() {
        let lines = ForPerson::new(Paint::for_output(&stderr()));
        let log = builder.event_format(lines).finish();
        log.with(filter_fn(keeps_secrets)).init();
    } else {
        let log = builder.json().flatten_event(true).with_target(false).finish();
        log.with(filter_fn(keeps_secrets)).init();
    }
    if !is_valid {
        tracing::warn!(
            "ROBOTGATE_LOG: {wanted:?} is not valid, so the level is info; write error, warn, info, debug, trace or \
             TARGET=LEVEL"
        );
    }
}

/// Returns `None` if `wanted` is invalid. Without a check, a misspelt level would be the name of a target, and silence
/// the whole log.
fn filter(wanted: &str) -> Option<EnvFilter> {
    let parts = wanted.split(',').map(str::trim).filter(|part| !part.is_empty());
    let parts: Vec<&str> = parts.collect();
    let is_name = |part: &&str| !part.contains('=') && part.parse::<LevelFilter>().is_err();
    match (parts.is_empty(), parts.iter().any(is_name)) {
        (true, _) => Some(EnvFilter::new(DEFAULT)),
        (false, true) => None,
        // Join the trimmed parts: with a space beside it, a level would be taken for the name of a target.
        (false, false) => EnvFilter::try_new(parts.join(",")).ok(),
    }
}

/// Returns false for trace lines of pingora, which contain whole requests with their credentials.
fn keeps_secrets(line: &Metadata<'_>) -> bool {
    *line.level() != Level::TRACE || !line.target().starts_with("pingora")
}

// === impl ForPerson ===

impl ForPerson {
    fn new(paint: Paint) -> Self {
        Self { paint }
    }

    fn write(&self, out: &mut impl fmt::Write, level: Level, at: SystemTime, event_text: &EventText) -> fmt::Result {
        let (colour, name) = match level {
            Level::ERROR => (Colour::Bad, "ERROR"),
            Level::WARN => (Colour::Warning, "WARN "),
            Level::INFO => (Colour::Good, "INFO "),
            Level::DEBUG => (Colour::Note, "DEBUG"),
            Level::TRACE => (Colour::Note, "TRACE"),
        };
        write!(
            out,
            "{} {} {}",
            self.paint.in_colour(Colour::Faint, Second(at)),
            self.paint.in_colour(colour, name),
            plain_lines(&event_text.message, INDENT)
        )?;
        let (below, beside): (Vec<_>, Vec<_>) = event_text.fields.iter().partition(|(_, value)| value.contains('\n'));
        for (name, value) in beside {
            let value = plain_message(value, usize::MAX);
            write!(out, " {}=", self.paint.in_colour(Colour::Faint, name))?;
            match value.is_empty() || value.contains(char::is_whitespace) {
                true => write!(out, "\"{value}\"")?,
                false => out.write_str(&value)?,
            }
        }
        for (_, value) in below {
            write!(out, "\n{INDENT}{}", plain_lines(value, INDENT))?;
        }
        writeln!(out)
    }
}

impl<S, N> FormatEvent<S, N> for ForPerson
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut event_text = EventText::default();
        event.record(&mut event_text);
        self.write(&mut out, *event.metadata().level(), SystemTime::now(), &event_text)
    }
}

// === impl EventText ===

impl Visit for EventText {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            MESSAGE => value.clone_into(&mut self.message),
            // The fields `log.…` say where in its code a library has logged.
            name if name.starts_with("log.") => {}
            name => self.fields.push((name, value.to_owned())),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut text = String::new();
        let _ = write!(text, "{value:?}");
        self.record_str(field, &text);
    }
}

/// The default filter. It hides the lines of some libraries, because some of them log every client that disconnects.
const DEFAULT: &str = "info,pingora_core=off,pingora_proxy=off,pingora_pool=off,hickory_net=off,hickory_proto=off,\
                       hickory_resolver=off,h2=off,rustls=off,suppaftp=off";
const MESSAGE: &str = "message";
const INDENT: &str = "    ";

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn line(level: Level, message: &str, fields: &[(&'static str, &str)]) -> String {
        let event_text = EventText {
            message: message.to_owned(),
            fields: fields
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned()))
                .collect(),
        };
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let mut out = String::new();
        ForPerson::new(Paint::none())
            .write(&mut out, level, at, &event_text)
            .unwrap();
        out
    }

    #[test]
    fn a_misspelt_level_is_invalid_instead_of_silencing_the_log() {
        for (valid, means) in [
            (" info", "info"),
            ("debug ", "debug"),
            ("warn, robotgate=debug,", "robotgate=debug,warn"),
            ("off", "off"),
        ] {
            assert_eq!(filter(valid).map(|filter| filter.to_string()).as_deref(), Some(means));
        }
        assert!(filter("").is_some());
        for invalid in ["loud", "robotgate", "debug,robotgate", "robotgate=loud"] {
            assert!(filter(invalid).is_none(), "{invalid}");
        }
    }

    #[test]
    fn fields_follow_the_message_and_multiline_ones_are_below() {
        assert_eq!(
            line(
                Level::ERROR,
                "the new configuration was rejected; robotgate keeps the current one",
                &[
                    ("trigger", "the file changed"),
                    (
                        "error",
                        "a.toml:2:1: proxy.lisen: there is no such key\n    2 | lisen = \"x\""
                    ),
                    ("current_generation", "1"),
                ]
            ),
            "1994-11-06T08:49:37Z ERROR the new configuration was rejected; robotgate keeps the current one trigger=\"the file changed\" current_generation=1\n    \
             a.toml:2:1: proxy.lisen: there is no such key\n        2 | lisen = \"x\"\n"
        );
    }

    #[test]
    fn control_characters_in_a_log_line_are_escaped() {
        let shown = line(
            Level::WARN,
            "a\u{1b}[2Jb",
            &[("user_agent", "x\u{1b}[31m"), ("error", "y\n\rz\u{9b}1m")],
        );
        assert_eq!(
            shown,
            "1994-11-06T08:49:37Z WARN  a\\u{1b}[2Jb user_agent=x\\u{1b}[31m\n    y\n    \\u{d}z\\u{9b}1m\n"
        );
    }
}
