//! Times as the log writes them: UTC by RFC 3339, to the microsecond, always equally long so that
//! lines sort as text.

use std::{fmt, time::SystemTime};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use time::{OffsetDateTime, UtcDateTime, format_description::well_known::Rfc3339};

/// A time of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub SystemTime);

// === impl Timestamp ===

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = UtcDateTime::from(OffsetDateTime::from(self.0));
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z",
            time.year(),
            u8::from(time.month()),
            time.day(),
            time.hour(),
            time.minute(),
            time.second(),
            time.microsecond()
        )
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let time = OffsetDateTime::parse(&text, &Rfc3339).map_err(D::Error::custom)?;
        Ok(Self(time.into()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_time_is_utc_to_the_microsecond() {
        let time = SystemTime::UNIX_EPOCH + Duration::new(784_111_777, 42_000);
        assert_eq!(Timestamp(time).to_string(), "1994-11-06T08:49:37.000042Z");
    }

    #[test]
    fn a_time_that_was_written_reads_as_the_same() {
        let time = Timestamp(SystemTime::UNIX_EPOCH + Duration::new(784_111_777, 42_000));
        let written = serde_json::to_string(&time).unwrap();
        assert_eq!(serde_json::from_str::<Timestamp>(&written).unwrap(), time);
        assert!(serde_json::from_str::<Timestamp>("\"yesterday\"").is_err());
    }
}
