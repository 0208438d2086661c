//! Durations and sizes as people write them, such as `1h 30m`, `500ms` and `256MiB`.
//!
//! This module never guesses: a duration without a unit, a fraction and an ambiguous unit are errors.

use std::fmt;
use std::time::Duration;

/// Units of time in nanoseconds, from large to small. robotgate reads all names of a unit, and prints the first.
const TIMES: &[(&[&str], u128)] = &[
    (&["w", "week", "weeks"], 604_800_000_000_000),
    (&["d", "day", "days"], 86_400_000_000_000),
    (&["h", "hour", "hours", "hr"], 3_600_000_000_000),
    (&["m", "min", "minute", "minutes"], 60_000_000_000),
    (&["s", "sec", "second", "seconds"], 1_000_000_000),
    (&["ms"], 1_000_000),
    (&["us", "µs"], 1_000),
    (&["ns"], 1),
];

/// Units of size in bytes. `M` alone is missing, because it is ambiguous.
const SIZES: &[(&str, u64)] = &[
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("B", 1),
];

/// Why a string is not a duration or size. In an error message, this text follows the quoted string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    #[error(r#"is not a duration; write a number and a unit, like "24h" or "5m 30s""#)]
    Duration,
    /// Units are out of order or repeated, such as `1m 1h`.
    #[error(r#"must have its units from large to small, each once; write it like "1h 30m""#)]
    Order,
    #[error(r#"is not a size; write a number and a unit, like "256MiB" or "1GB""#)]
    Size,
    #[error("is too large; write a smaller value")]
    TooLarge,
}

/// Displays a duration in the form that [`duration`] reads: `1h 30m`.
pub struct HumanDuration(pub Duration);

/// Returns a regular expression for texts that [`duration`] can read. It also matches units in the wrong order.
pub(super) fn duration_pattern() -> String {
    let units = TIMES.iter().flat_map(|(names, _)| names.iter().copied());
    format!("^(\\s*[0-9]+\\s*({}))+\\s*$", any_case(units))
}

pub(super) fn size_pattern() -> String {
    let units = SIZES.iter().map(|(name, _)| *name);
    format!("^\\s*[0-9]+\\s*({})\\s*$", any_case(units))
}

fn any_case<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let letter = |c: char| match c.is_ascii_alphabetic() {
        true => format!("[{}{}]", c.to_ascii_lowercase(), c.to_ascii_uppercase()),
        false => c.to_string(),
    };
    let names: Vec<String> = names.map(|name| name.chars().map(letter).collect()).collect();
    names.join("|")
}

/// Displays a size in bytes in the form that [`size`] reads: `64KiB`.
pub struct HumanSize(pub u64);

/// Reads a duration: numbers with units, from large to small, with or without spaces. Ignores case.
///
/// # Errors
///
/// Fails for any other string, if the duration is 2⁶⁴ seconds or more, or if a number in it is 2⁶⁴ or more.
pub fn duration(text: &str) -> Result<Duration, UnitError> {
    let mut rest = text.trim();
    let mut nanos = 0_u128;
    let mut last_unit = u128::MAX;
    while !rest.is_empty() {
        let (number, after) = split_number(rest).ok_or(UnitError::Duration)?;
        let end = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
        let (name, after) = after.split_at(end);
        let name = name.to_lowercase();
        let (_, unit) = TIMES
            .iter()
            .find(|(names, _)| names.contains(&&*name))
            .ok_or(UnitError::Duration)?;
        if *unit >= last_unit {
            return Err(UnitError::Order);
        }
        last_unit = *unit;
        let number = number.map_err(|TooLarge| UnitError::TooLarge)?;
        nanos = u128::from(number)
            .checked_mul(*unit)
            .and_then(|n| n.checked_add(nanos))
            .ok_or(UnitError::TooLarge)?;
        rest = after.trim_start();
    }
    if last_unit == u128::MAX {
        return Err(UnitError::Duration);
    }

    let seconds = u64::try_from(nanos / 1_000_000_000).map_err(|_| UnitError::TooLarge)?;
    // This is a remainder of a division by 10⁹, so it fits into 32 bits.
    let below = (nanos % 1_000_000_000) as u32;
    Ok(Duration::new(seconds, below))
}

/// Reads a size in bytes: one number and one unit. Ignores case.
///
/// # Errors
///
/// Fails for any other string, or if the size is 2⁶⁴ bytes or more.
pub fn size(text: &str) -> Result<u64, UnitError> {
    let (number, unit) = split_number(text.trim()).ok_or(UnitError::Size)?;
    let (_, bytes) = SIZES
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(unit))
        .ok_or(UnitError::Size)?;
    let number = number.map_err(|TooLarge| UnitError::TooLarge)?;
    number.checked_mul(*bytes).ok_or(UnitError::TooLarge)
}

struct TooLarge;

fn split_number(text: &str) -> Option<(Result<u64, TooLarge>, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if digits.is_empty() {
        return None;
    }
    Some((digits.parse().map_err(|_| TooLarge), rest.trim_start()))
}

// === impl HumanDuration ===

impl fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut nanos = self.0.as_nanos();
        if nanos == 0 {
            return f.write_str("0s");
        }
        let mut space = "";
        // Print "24h" and "36h", but "30d": weeks are never used, and days only for seven or more whole days.
        let (days, rest) = (nanos / TIMES[1].1, nanos % TIMES[1].1);
        let largest = if days >= 7 && rest == 0 { 1 } else { 2 };
        for (names, unit) in &TIMES[largest..] {
            let count = nanos / unit;
            nanos %= unit;
            if count > 0 {
                write!(f, "{space}{count}{}", names[0])?;
                space = " ";
            }
        }
        Ok(())
    }
}

impl fmt::Display for HumanSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_fit = |(_, unit): &&(&str, u64)| self.0 != 0 && self.0.is_multiple_of(*unit);
        let (name, unit) = SIZES.iter().find(is_fit).unwrap_or(&("B", 1));
        write!(f, "{}{name}", self.0 / unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed() {
        let good = [
            ("24h", 86_400_000),
            ("1h 30m", 5_400_000),
            ("1h30m", 5_400_000),
            (" 500ms ", 500),
            ("5 min", 300_000),
            ("1 day", 86_400_000),
            ("2w", 1_209_600_000),
            ("1m 1s 1ms", 61_001),
            ("0s", 0),
            ("90S", 90_000),
        ];
        for (text, millis) in good {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        let bad = [
            ("", UnitError::Duration),
            ("24", UnitError::Duration),
            ("24 hurs", UnitError::Duration),
            ("h", UnitError::Duration),
            ("-1h", UnitError::Duration),
            ("1.5h", UnitError::Duration),
            ("1h,30m", UnitError::Duration),
            ("١h", UnitError::Duration),
            ("30m 1h", UnitError::Order),
            ("1h 1h", UnitError::Order),
            ("99999999999999999999h", UnitError::TooLarge),
            ("18446744073709551615w", UnitError::TooLarge),
        ];
        for (text, error) in bad {
            assert_eq!(duration(text), Err(error), "{text}");
        }
    }

    #[test]
    fn sizes_are_parsed() {
        let good = [
            ("256MiB", 268_435_456),
            ("64 KiB", 65_536),
            ("1GB", 1_000_000_000),
            ("1gb", 1_000_000_000),
            ("7B", 7),
        ];
        for (text, bytes) in good {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "256", "MiB", "1M", "1.5GiB", "-1B", "1GiB 1MiB"] {
            assert_eq!(size(text), Err(UnitError::Size), "{text}");
        }
        for text in ["99999999TiB", "99999999999999999999B"] {
            assert_eq!(size(text), Err(UnitError::TooLarge), "{text}");
        }
    }

    #[test]
    fn many_whole_days_are_printed_as_days() {
        for (text, printed) in [
            ("0s", "0s"),
            ("1d", "24h"),
            ("90m", "1h 30m"),
            ("6d", "144h"),
            ("1w", "7d"),
            ("365d", "365d"),
            ("7d 1ms", "168h 1ms"),
        ] {
            assert_eq!(
                duration(text).map(|it| HumanDuration(it).to_string()),
                Ok(printed.into()),
                "{text}"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn printed_durations_are_read_back(seconds: u32, millis in 0_u32..1000) {
            let it = Duration::new(u64::from(seconds), millis * 1_000_000);
            assert_eq!(duration(&HumanDuration(it).to_string()), Ok(it));
        }

        #[test]
        fn whole_days_are_read_back(days in 0_u32..4000) {
            let it = Duration::from_secs(u64::from(days) * 86_400);
            assert_eq!(duration(&HumanDuration(it).to_string()), Ok(it));
        }

        #[test]
        fn no_text_makes_the_parsers_of_units_panic(text in "[0-9a-zµ ]{0,40}|.{0,40}") {
            let _ = (duration(&text), size(&text));
        }
    }
}
