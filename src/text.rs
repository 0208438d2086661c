//! Makes text from outside safe to show in a log line or a terminal, and formats times and numbers. Its macro `words`
//! defines an enum with a word for each variant. Reads no clock.

use std::{
    borrow::Cow,
    fmt::{self, Display, Write as _},
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use time::{
    OffsetDateTime, UtcDateTime,
    format_description::{BorrowedFormatItem, well_known::Rfc3339},
    macros::format_description,
};

/// Writes a time as in the log: RFC 3339 in UTC, with microseconds. Sorting the texts also sorts the times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub SystemTime);

/// Writes a time as RFC 3339 in UTC, without fractions of a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Second(pub SystemTime);

/// Writes a time for people, with minutes: `1994-11-06 08:49 UTC`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Minute(pub(crate) SystemTime);

/// Writes a duration for people: `5 h 1 min`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span(pub(crate) Duration);

/// Defines an enum, and for each variant the word that represents it in JSON and TOML.
macro_rules! words {
    ($(#[$about:meta])* pub enum $name:ident { $($(#[$value:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$value])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// All variants, in order.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// Returns the variant's word.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// Returns the variant with this word.
            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|known| known.as_str() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}
pub(crate) use words;

/// Escapes characters that are not safe to show, as in `\u{1b}`, and cuts the text after about `max` bytes. Also
/// escapes the backslash of a `\u{` in the text, so that it does not look like an escaped character.
pub fn plain(text: &str, max: usize) -> Cow<'_, str> {
    let is_simple = || text.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'\\');
    if text.len() <= max && (is_simple() || text.chars().all(is_plain) && !text.contains(ESCAPE)) {
        return Cow::Borrowed(text);
    }
    escaped(text, max, true)
}

/// Escapes like [`plain`], but leaves backslashes as they are, because parts of a message may already be escaped.
pub fn plain_message(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max && text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    escaped(text, max, false)
}

fn escaped(text: &str, max: usize, backslashes: bool) -> Cow<'_, str> {
    let mut out = String::with_capacity(text.len().min(max) + 3);
    for (at, character) in text.char_indices() {
        if out.len() >= max {
            out.push('…');
            break;
        }
        if is_plain(character) && !(backslashes && text[at..].starts_with(ESCAPE)) {
            out.push(character);
        } else {
            let _ = write!(out, "{}", character.escape_unicode());
        }
    }
    Cow::Owned(out)
}

/// Escapes like [`plain_message`], but keeps `\n` and tabs, and puts `indent` before each line except the first.
/// The tabs keep a marker such as `^^^` below the text that it marks.
pub fn plain_lines(text: &str, indent: &str) -> String {
    let line = |line: &str| {
        let cells: Vec<_> = line.split('\t').map(|cell| escaped(cell, usize::MAX, false)).collect();
        cells.join("\t")
    };
    let lines: Vec<_> = text.split('\n').map(line).collect();
    lines.join(&format!("\n{indent}"))
}

/// Returns whether a character is safe to show: visible (no `Default_Ignorable_Code_Point` of Unicode), no control
/// character, no separator or space except U+0020, and without effect on the direction of text.
pub(crate) fn is_plain(character: char) -> bool {
    !character.is_control()
        && !matches!(
            character,
            '\u{a0}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{1680}' | '\u{17b4}' | '\u{17b5}'
                | '\u{180b}'..='\u{180f}' | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}'
                | '\u{2800}' | '\u{3000}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Writes a number with a comma between thousands: `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Writes a number with a noun: `3 rules`, `1 rule`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// Makes `text` safe for a spreadsheet: puts a `'` before a text that a spreadsheet could run as a formula.
pub(crate) fn no_formula(text: &str) -> Cow<'_, str> {
    let is_formula = text.trim_start().starts_with(['=', '+', '-', '@']) || text.starts_with(['\t', '\r']);
    match is_formula && text != "-" {
        true => format!("'{text}").into(),
        false => text.into(),
    }
}

const ESCAPE: &str = "\\u{";

/// Converts a duration to microseconds, at most `u64::MAX`.
pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Returns 0 for a time before 1970, which comes from a wrong clock.
pub(crate) fn micros_since_1970(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, micros)
}

/// Converts a time to a date and time in UTC. Returns `None` outside the years 1 to 9999.
pub(crate) fn calendar(time: SystemTime) -> Option<UtcDateTime> {
    let calendar = match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => {
            let second = UtcDateTime::from_unix_timestamp(i64::try_from(since.as_secs()).ok()?).ok()?;
            second.replace_nanosecond(since.subsec_nanos()).ok()?
        }
        Err(before) => UtcDateTime::UNIX_EPOCH.checked_sub(before.duration().try_into().ok()?)?,
    };
    Some(calendar).filter(|calendar| calendar.year() >= 1)
}

/// Writes `time` without allocating.
fn write_time(f: &mut fmt::Formatter<'_>, time: SystemTime, format: &[BorrowedFormatItem<'_>]) -> fmt::Result {
    let mut text = [0; 32];
    let formatted = calendar(time).and_then(|calendar| calendar.format_into(&mut &mut text[..], format).ok());
    match formatted.map(|length| std::str::from_utf8(&text[..length])) {
        Some(Ok(text)) => f.write_str(text),
        _ => f.write_str("a time beyond the calendar"),
    }
}

// === impl Timestamp ===

impl Timestamp {
    /// Calls `then` with the text of the time. Does not format it with the crate `time`, which would be too slow: each
    /// request needs several timestamps.
    pub(crate) fn with_text<T>(self, then: impl FnOnce(&str) -> T) -> T {
        match calendar(self.0) {
            // The text is ASCII, so this cannot fail.
            Some(time) if (0..=9999).contains(&time.year()) => {
                then(std::str::from_utf8(&digits(time)).unwrap_or_default())
            }
            _ => then("a time beyond the calendar"),
        }
    }
}

impl Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_text(|text| f.write_str(text))
    }
}

/// Formats a time in the years 0 to 9999 like [`Timestamp`].
fn digits(time: UtcDateTime) -> [u8; 27] {
    let mut text = *b"0000-00-00T00:00:00.000000Z";
    let mut put = |end: usize, mut number: u32| {
        let mut index = end;
        while number > 0 {
            index -= 1;
            text[index] = b"0123456789"[(number % 10) as usize];
            number /= 10;
        }
    };
    put(4, time.year().unsigned_abs());
    put(7, u8::from(time.month()).into());
    put(10, time.day().into());
    put(13, time.hour().into());
    put(16, time.minute().into());
    put(19, time.second().into());
    put(26, time.microsecond());
    text
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.with_text(|text| serializer.serialize_str(text))
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        let time = OffsetDateTime::parse(&text, &Rfc3339).map_err(D::Error::custom)?;
        Ok(Self(time.into()))
    }
}

// === impl Second ===

impl Display for Second {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const FORMAT: &[BorrowedFormatItem<'_>] = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z");
        write_time(f, self.0, FORMAT)
    }
}

// === impl Minute ===

impl Display for Minute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const FORMAT: &[BorrowedFormatItem<'_>] = format_description!("[year]-[month]-[day] [hour]:[minute] UTC");
        write_time(f, self.0, FORMAT)
    }
}

// === impl Span ===

impl Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs_f64().round() as u64;
        let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        match (hours, minutes, seconds) {
            (0, 0, seconds) => write!(f, "{seconds} s"),
            (0, minutes, 0) => write!(f, "{minutes} min"),
            (0, minutes, seconds) => write!(f, "{minutes} min {seconds} s"),
            (48.., ..) if hours % 24 == 0 => write!(f, "{} d", hours / 24),
            (48.., ..) => write!(f, "{} d {} h", hours / 24, hours % 24),
            (hours, 0, _) => write!(f, "{hours} h"),
            (hours, minutes, _) => write!(f, "{hours} h {minutes} min"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_lines_keeps_line_breaks_and_escapes_the_rest() {
        assert_eq!(plain_lines("a\r\n\tb\u{1b}\n\t^", "  "), "a\\u{d}\n  \tb\\u{1b}\n  \t^");
    }

    #[test]
    fn misleading_characters_are_escaped() {
        for (text, shown) in [
            ("Disallow: /é/ツ", "Disallow: /é/ツ"),
            ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
            ("a\nb\tc", "a\\u{a}b\\u{9}c"),
            ("a\u{2028}b\u{85}c\u{7f}", "a\\u{2028}b\\u{85}c\\u{7f}"),
            ("a\u{202e}b", "a\\u{202e}b"),
            ("a\u{61c}b\u{3164}", "a\\u{61c}b\\u{3164}"),
            ("a\u{a0}b\u{e0041}", "a\\u{a0}b\\u{e0041}"),
            ("a\\u{202e}b", "a\\u{5c}u{202e}b"),
            ("a\\u{5c}u{202e}b", "a\\u{5c}u{5c}u{202e}b"),
            ("C:\\users\\{1}", "C:\\users\\{1}"),
        ] {
            assert_eq!(plain(text, 100), shown, "{text:?}");
            assert_eq!(
                plain_message(&plain(text, 100), 100),
                shown,
                "{text:?} is not escaped twice"
            );
        }
    }

    #[test]
    fn a_cut_text_ends_with_an_ellipsis_between_characters() {
        assert_eq!(plain("0123456789abc", 10), "0123456789…");
        assert_eq!(plain("ツツツ", 4), "ツツ…");
    }

    #[test]
    fn numbers_have_commas_between_thousands() {
        for (number, text) in [(0, "0"), (999, "999"), (1204, "1,204"), (1_000_000, "1,000,000")] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn a_time_in_the_log_is_utc_to_the_microsecond() {
        let time = SystemTime::UNIX_EPOCH + Duration::new(784_111_777, 42_000);
        assert_eq!(Timestamp(time).to_string(), "1994-11-06T08:49:37.000042Z");
        assert_eq!(Second(time).to_string(), "1994-11-06T08:49:37Z");
        assert_eq!(Minute(time).to_string(), "1994-11-06 08:49 UTC");
    }

    #[test]
    fn a_time_after_the_year_9999_does_not_panic() {
        let last = SystemTime::UNIX_EPOCH + Duration::from_secs(253_402_300_799);
        assert_eq!(Second(last).to_string(), "9999-12-31T23:59:59Z");
        let beyond = last + Duration::from_secs(1);
        assert_eq!(Second(beyond).to_string(), "a time beyond the calendar");
    }

    #[test]
    fn a_printed_time_is_read_back() {
        let time = Timestamp(SystemTime::UNIX_EPOCH + Duration::new(784_111_777, 42_000));
        let formatted = serde_json::to_string(&time).unwrap();
        assert_eq!(serde_json::from_str::<Timestamp>(&formatted).unwrap(), time);
        assert!(serde_json::from_str::<Timestamp>("\"yesterday\"").is_err());
    }

    #[test]
    fn spans_are_printed_in_common_units() {
        for (seconds, expected) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (66, "1 min 6 s"),
            (3600, "1 h"),
            (86_400, "24 h"),
            (5 * 3600 + 62, "5 h 1 min"),
            (48 * 3600, "2 d"),
            (30 * 86_400 + 3 * 3600 + 62, "30 d 3 h"),
        ] {
            assert_eq!(Span(Duration::from_secs(seconds)).to_string(), expected);
        }
    }
}
