//! What the sections share in checking: each takes a value as written, and gives back what it means or the default
//! with a complaint.
//!
//! It never stops at the first mistake, so that a file is mended in one go.

use std::fmt::Display;
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::Spanned;

use super::environment::Environment;
use super::place::{self, Complaint};
use super::units::{self, Written};
use super::written::Amount;

/// Collects what is wrong.
pub(super) struct Checker<'c> {
    environment: &'c Environment,
    base_dir: &'c Path,
    text: &'c str,
    reads_credentials: bool,
    complaints: Vec<Complaint>,
}

// === impl Checker ===

impl<'c> Checker<'c> {
    pub(super) fn new(environment: &'c Environment, base_dir: &'c Path, text: &'c str) -> Self {
        Self {
            environment,
            base_dir,
            text,
            reads_credentials: true,
            complaints: Vec::new(),
        }
    }

    /// For those who make the credentials that the configuration names.
    pub(super) fn without_credentials(self) -> Self {
        Self {
            reads_credentials: false,
            ..self
        }
    }

    /// Whether the credentials file has to be there and hold what the bots name.
    pub(super) fn reads_credentials(&self) -> bool {
        self.reads_credentials
    }

    pub(super) fn environment(&self) -> &'c Environment {
        self.environment
    }

    pub(super) fn into_complaints(self) -> Vec<Complaint> {
        self.complaints
    }

    pub(super) fn complain(&mut self, span: Range<usize>, message: impl Into<String>) {
        self.complaints.push(Complaint {
            span,
            missing: None,
            message: message.into(),
        });
    }

    /// A key that must stand in the table whose header is at `table`.
    pub(super) fn missing(&mut self, table: Range<usize>, key: &'static str, message: impl Into<String>) {
        self.complaints.push(Complaint {
            span: table,
            missing: Some(key),
            message: message.into(),
        });
    }

    /// The value of a required key.
    ///
    /// The example is a value as TOML writes it.
    pub(super) fn required<T>(
        &mut self,
        written: Option<T>,
        table: &Range<usize>,
        (key, example): (&'static str, &str),
    ) -> Option<T> {
        if written.is_none() {
            let message = format!("this key is missing, and has no default; write it like: {key} = {example}");
            self.missing(table.clone(), key, message);
        }
        written
    }

    /// What a parser makes of the text; a complaint and nothing where it fails.
    pub(super) fn parsed<T, E: Display>(
        &mut self,
        written: &Spanned<String>,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        parse(written.get_ref())
            .map_err(|error| self.complain(written.span(), error.to_string()))
            .ok()
    }

    /// A list, each of whose items is parsed on its own.
    pub(super) fn each<T, E: Display>(
        &mut self,
        written: Option<Spanned<Vec<Spanned<String>>>>,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Vec<T> {
        let items = written.map(Spanned::into_inner).unwrap_or_default();
        items.iter().filter_map(|item| self.parsed(item, &parse)).collect()
    }

    pub(super) fn duration(
        &mut self,
        written: Option<Spanned<Amount>>,
        default: Duration,
        limits: RangeInclusive<Duration>,
    ) -> Duration {
        let Some(written) = written else { return default };
        let span = written.span();
        let text = match written.into_inner() {
            Amount::Text(text) => text,
            Amount::Number(number) => {
                self.complain(
                    span,
                    format!("{number} has no unit; write \"{number}s\" if seconds are meant"),
                );
                return default;
            }
        };
        match units::duration(&text) {
            Err(error) => self.complain(span, format!("\"{text}\" {error}")),
            Ok(duration) if !limits.contains(&duration) => {
                let (low, high) = (Written(*limits.start()), Written(*limits.end()));
                self.complain(
                    span,
                    format!("\"{text}\" is out of range; write a time from {low} to {high}"),
                );
            }
            Ok(duration) => return duration,
        }
        default
    }

    /// A size in bytes; a bare number counts bytes.
    pub(super) fn size(
        &mut self,
        written: Option<Spanned<Amount>>,
        default: u64,
        (limits, in_words): (RangeInclusive<u64>, &str),
    ) -> u64 {
        let Some(written) = written else { return default };
        let span = written.span();
        let (text, size) = match written.into_inner() {
            Amount::Text(text) => {
                let size = units::size(&text);
                (format!("\"{text}\""), size)
            }
            Amount::Number(number) => (
                number.to_string(),
                u64::try_from(number).map_err(|_| units::UnitError::Size),
            ),
        };
        match size {
            Err(error) => self.complain(span, format!("{text} {error}")),
            Ok(size) if !limits.contains(&size) => {
                self.complain(span, format!("{text} is out of range; write a size {in_words}"));
            }
            Ok(size) => return size,
        }
        default
    }

    /// A number of things.
    pub(super) fn number(&mut self, written: &Option<Spanned<i64>>, default: u32, range: RangeInclusive<u32>) -> u32 {
        let Some(written) = written else { return default };
        match u32::try_from(*written.get_ref()) {
            Ok(number) if range.contains(&number) => number,
            _ => {
                let (low, high) = (range.start(), range.end());
                let message = format!("{} cannot be; write a number from {low} to {high}", written.get_ref());
                self.complain(written.span(), message);
                default
            }
        }
    }

    /// A path, counted from the folder of the file.
    pub(super) fn path(&mut self, written: &Spanned<String>) -> Option<PathBuf> {
        let base = self.base_dir;
        self.parsed(written, |text| match text {
            "" => Err("an empty path names no file; leave the key out for the default".to_owned()),
            _ if text.starts_with('~') => Err(format!("\"{text}\": a ~ is not expanded here; write the path in full")),
            _ if text.contains('\0') => Err("a path cannot hold a NUL".to_owned()),
            _ => Ok(base.join(text)),
        })
    }

    /// A path, or a file of the state directory.
    pub(super) fn path_or_state(&mut self, written: Option<Spanned<String>>, file: &str) -> PathBuf {
        written
            .and_then(|written| self.path(&written))
            .unwrap_or_else(|| self.environment.state_dir.join(file))
    }

    /// The line of a place, from 1.
    pub(super) fn line(&self, span: &Range<usize>) -> usize {
        place::line(self.text, span.start)
    }
}
