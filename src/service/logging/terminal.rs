//! A line of the log for a person: when, how bad, what, and the fields. What takes several lines, such as the mistakes
//! of a configuration, stands in lines below, as it would where a command says it.
//!
//! Nothing that comes from outside moves the cursor.

use std::{
    fmt::{self, Debug, Write as _},
    time::SystemTime,
};

use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    fmt::{FmtContext, FormatEvent, FormatFields, format::Writer},
    registry::LookupSpan,
};

use crate::{
    paint::{Colour, Paint},
    text::{Second, plain_lines, plain_message},
};

/// How lines look.
pub(super) struct ForPerson {
    paint: Paint,
}

/// What a line says, in text.
#[derive(Debug, Default)]
struct Said {
    message: String,
    fields: Vec<(&'static str, String)>,
}

// === impl ForPerson ===

impl ForPerson {
    pub(super) fn new(paint: Paint) -> Self {
        Self { paint }
    }

    fn write(&self, out: &mut impl fmt::Write, level: Level, at: SystemTime, said: &Said) -> fmt::Result {
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
            plain_lines(&said.message, INDENT)
        )?;
        let (below, beside): (Vec<_>, Vec<_>) = said.fields.iter().partition(|(_, value)| value.contains('\n'));
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
        let mut said = Said::default();
        event.record(&mut said);
        self.write(&mut out, *event.metadata().level(), SystemTime::now(), &said)
    }
}

// === impl Said ===

impl Visit for Said {
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
        let said = Said {
            message: message.to_owned(),
            fields: fields
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned()))
                .collect(),
        };
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let mut out = String::new();
        ForPerson::new(Paint::none()).write(&mut out, level, at, &said).unwrap();
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
