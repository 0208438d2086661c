//! The operational log, on stderr: text for a person at a terminal, else one JSON object a line.
//! It says what the daemon does; what bots do stands in the audit log.

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
    filter::filter_fn,
    fmt::{FmtContext, FormatEvent, FormatFields, format::Writer},
    layer::SubscriberExt as _,
    registry::LookupSpan,
    util::SubscriberInitExt as _,
};

use crate::{
    colour::{Colour, Paint},
    text::{Second, plain_lines, plain_message},
};

/// A line of the log for a person: when, how bad, what, and the fields. What takes several lines, such as the mistakes of a
/// configuration, stands in lines below, as it would where a command says it. Nothing that comes from outside moves the
/// cursor.
struct ForPerson {
    paint: Paint,
}

/// The message and the fields of an event, as text.
#[derive(Debug, Default)]
struct EventText {
    message: String,
    fields: Vec<(&'static str, String)>,
}

/// Starts the log. `ROBOTGATE_LOG` sets what it tells (as `RUST_LOG` does for other programs).
pub fn init() {
    let filter = EnvFilter::try_from_env("ROBOTGATE_LOG").unwrap_or_else(|_| EnvFilter::new(DEFAULT));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(stderr)
        // It would tell stderr that this takes nothing, and panic over it: a terminal is closed, a pipe has no reader.
        .log_internal_errors(false);
    if stderr().is_terminal() {
        let lines = ForPerson::new(Paint::for_output(&stderr()));
        let log = builder.event_format(lines).finish();
        log.with(filter_fn(keeps_secrets)).init();
    } else {
        let log = builder.json().flatten_event(true).with_target(false).finish();
        log.with(filter_fn(keeps_secrets)).init();
    }
}

/// Whether a line holds no header fields as they came: pingora traces whole requests, credentials included.
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
            // Of what other crates say through `log`: where in their code.
            name if name.starts_with("log.") => {}
            name => self.fields.push((name, value.to_owned())),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = write!(text, "{value:?}");
        self.record_str(field, &text);
    }
}

/// Libraries tell of each client that went away, of odd TLS and of odd answers to their queries, as often as it happens.
/// What of that matters robotgate says itself.
const DEFAULT: &str = "info,pingora_core=off,pingora_proxy=off,pingora_pool=off,hickory_net=off,hickory_proto=off,\
                       hickory_resolver=off,h2=off,rustls=off";
/// What tracing calls the sentence of a line.
const MESSAGE: &str = "message";
/// Before what stands below a line.
const INDENT: &str = "    ";

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// The line of these fields at some time.
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
    fn fields_stand_behind_the_sentence_and_those_of_several_lines_below() {
        assert_eq!(
            line(
                Level::ERROR,
                "configuration rejected",
                &[
                    ("cause", "the file changed"),
                    (
                        "error",
                        "a.toml:2:1: proxy.lisen: there is no such key\n    2 | lisen = \"x\""
                    ),
                    ("in_force", "1"),
                ]
            ),
            "1994-11-06T08:49:37Z ERROR configuration rejected cause=\"the file changed\" in_force=1\n    \
             a.toml:2:1: proxy.lisen: there is no such key\n        2 | lisen = \"x\"\n"
        );
    }

    #[test]
    fn what_comes_from_outside_moves_no_cursor() {
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
