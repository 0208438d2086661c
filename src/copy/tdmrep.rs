//! Parses a site's `/.well-known/tdmrep.json` (TDM Reservation Protocol, W3C community group report of 2024-02-02, §4).

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::robots::PathPattern;

/// The entries of a `tdmrep.json`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TdmRep {
    entries: Box<[TdmrepEntry]>,
}

/// A valid entry of a `tdmrep.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location<'a> {
    /// The paths of the entry: a pattern, as in a robots.txt.
    pub paths: &'a str,
    pub reservation: Reservation,
}

/// What a `tdmrep.json` says about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Whether the site reserves the right to text and data mining, and so forbids mining.
    pub reserved: bool,
    /// Number of the entry in the file, from 1.
    pub entry: u32,
}

#[derive(Debug, PartialEq, Eq)]
struct TdmrepEntry {
    location: PathPattern,
    reserved: bool,
    /// Number in the file, from 1.
    number: u32,
}

struct Entries(Vec<TdmrepEntry>);

/// The `location` and `tdm-reservation` of one entry. Each is `None` if it is missing or invalid.
struct RawEntry<'a>(Option<Cow<'a, str>>, Option<bool>);

// === impl TdmRep ===

impl TdmRep {
    /// Parses the file, without elements that lack a valid `location` or `tdm-reservation`. A file that is not a JSON
    /// array has no entries.
    #[must_use]
    pub fn parse(file: &[u8]) -> Self {
        let file = file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file);
        let entries = serde_json::from_slice::<Entries>(file);
        Self {
            entries: entries.map_or_else(|_| Box::default(), |entries| entries.0.into()),
        }
    }

    /// Returns what the first matching entry says about `path`, which begins with `/` and includes the query. The
    /// search reduces `budget` by the number of bytes that it looks at.
    ///
    /// # Errors
    /// Fails if the search takes more than `budget`.
    pub fn find(&self, path: &[u8], budget: &mut usize) -> Result<Option<Reservation>, TooLong> {
        for entry in &self.entries {
            *budget = budget.checked_sub(entry.location.searched(path)).ok_or(TooLong)?;
            if entry.location.matches(path) {
                return Ok(Some(entry.reservation()));
            }
        }
        Ok(None)
    }

    /// Iterates over the valid entries, in the order of the file.
    pub fn locations(&self) -> impl Iterator<Item = Location<'_>> {
        self.entries.iter().map(|entry| Location {
            paths: entry.location.as_str(),
            reservation: entry.reservation(),
        })
    }

    /// Returns the number of valid entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether the file has no valid entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the memory that the entries use, in bytes, without the allocator's overhead.
    #[must_use]
    pub fn weight(&self) -> usize {
        let patterns = self.entries.iter().map(|entry| entry.location.weight());
        size_of::<Self>() + size_of_val(&*self.entries) + patterns.sum::<usize>()
    }

    /// Returns what the file says about a tunnel, whose path is not visible: the first entry that reserves the right to
    /// mining, whatever its paths, or else the first entry that applies to all paths.
    #[must_use]
    pub fn find_any(&self) -> Option<Reservation> {
        let reserved = self.entries.iter().find(|entry| entry.reserved);
        let for_all = || self.entries.iter().find(|entry| entry.location.matches_all());
        reserved.or_else(for_all).map(TdmrepEntry::reservation)
    }
}

/// The search for an entry takes more than its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

// === impl TdmrepEntry ===

impl TdmrepEntry {
    fn of(raw: &RawEntry<'_>, number: u32) -> Option<Self> {
        let RawEntry(Some(location), Some(reserved)) = raw else {
            return None;
        };
        Some(Self {
            location: PathPattern::new(location).filter(|_| location.starts_with(['/', '*']))?,
            reserved: *reserved,
            number,
        })
    }

    fn reservation(&self) -> Reservation {
        Reservation {
            reserved: self.reserved,
            entry: self.number,
        }
    }
}

// === impl Entries ===

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Self(Vec::new()))
    }
}

impl<'de> Visitor<'de> for Entries {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    /// Keeps only valid entries, so that a file with millions of small values does not fill the memory.
    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<Self, A::Error> {
        let mut number = 0;
        while let Some(element) = elements.next_element::<&RawValue>()? {
            number += 1;
            let entry = serde_json::from_str::<RawEntry<'_>>(element.get()).ok();
            self.0.extend(entry.and_then(|raw| TdmrepEntry::of(&raw, number)));
        }
        Ok(self)
    }
}

// === impl RawEntry ===

impl<'de> Deserialize<'de> for RawEntry<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Self(None, None))
    }
}

impl<'de> Visitor<'de> for RawEntry<'de> {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    /// If an entry has two `tdm-reservation` members, the one that reserves the right to mining wins. If it has two
    /// `location` members, the last wins.
    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<Self, A::Error> {
        while let Some(key) = members.next_key::<Cow<'_, str>>()? {
            let value = members.next_value::<&RawValue>()?.get();
            match &*key {
                "location" => self.0 = serde_json::from_str::<String>(value).ok().map(Cow::Owned),
                "tdm-reservation" => {
                    let reserved = match value.parse::<f64>() {
                        Ok(1.0) => Some(true),
                        Ok(0.0) => Some(false),
                        _ => None,
                    };
                    self.1 = reserved.max(self.1);
                }
                _ => {}
            }
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(file: &str, path: &str) -> Option<(u32, bool)> {
        let found = TdmRep::parse(file.as_bytes()).find(path.as_bytes(), &mut usize::MAX.clone());
        found
            .expect("within the budget")
            .map(|reservation| (reservation.entry, reservation.reserved))
    }

    #[test]
    fn the_first_entry_that_matches_decides() {
        let file = r#"[
            {"location": "/free/*", "tdm-reservation": 0},
            {"location": "/*.pdf$", "tdm-reservation": 1, "tdm-policy": "https://a.example/p.json"},
            {"location": "/Über", "tdm-reservation": 1},
            {"location": "/", "tdm-reservation": 0}
        ]"#;
        for (path, expected) in [
            ("/free/paper.pdf", (1, false)),
            ("/paper.pdf", (2, true)),
            ("/paper.pdf?v=2", (4, false)),
            ("/paper.PDF", (4, false)),
            ("/%C3%9Cber/uns", (3, true)),
            ("/", (4, false)),
        ] {
            assert_eq!(find(file, path), Some(expected), "{path}");
        }
        assert_eq!(find(r#"[{"location": "/a$", "tdm-reservation": 1}]"#, "/a/b"), None);
    }

    #[test]
    fn invalid_files_and_entries_are_ignored() {
        for file in [
            "",
            "nonsense",
            r#"{"location": "/", "tdm-reservation": 1}"#,
            r#"[{"location": "/", "tdm-reservation": 1}"#,
            r#"[{"location": "/", "tdm-reservation": "1"}]"#,
            r#"[{"location": "/", "tdm-reservation": 2}]"#,
            r#"[["/", 1]]"#,
            r#"[{"location": "/", "tdm-reservation": true}]"#,
            r#"[{"location": "a", "tdm-reservation": 1}]"#,
            r#"[{"location": ["/"], "tdm-reservation": 1}]"#,
            r#"[{"tdm-reservation": 1}, {"location": "/"}]"#,
            &format!("[{}1{}]", "[".repeat(1000), "]".repeat(1000)),
        ] {
            assert_eq!(find(file, "/"), None, "{file}");
        }
        let after_others = r#"[1, "a", {}, {"location": "/", "tdm-reservation": 1, "x": {"y": []}}]"#;
        assert_eq!(find(after_others, "/"), Some((4, true)));
        for strict in ["1.0", "1, \"tdm-reservation\": 0", "0, \"tdm-reservation\": 1"] {
            let file = format!(r#"[{{"location": "/", "tdm-reservation": {strict}}}]"#);
            assert_eq!(find(&file, "/"), Some((1, true)), "{file}");
        }
        let with_mark = "\u{feff}[{\"location\": \"/\", \"tdm-reservation\": 1}]";
        assert_eq!(find(with_mark, "/"), Some((1, true)));
    }

    #[test]
    fn a_search_that_exceeds_its_budget_fails() {
        let file =
            TdmRep::parse(br#"[{"location": "/*a", "tdm-reservation": 1}, {"location": "/", "tdm-reservation": 1}]"#);
        let mut budget = 4;
        assert_eq!(file.find(b"/bcd", &mut budget), Err(TooLong));
    }

    #[test]
    fn long_patterns_use_up_the_budget_and_too_long_ones_are_ignored() {
        let file = |stars| format!(r#"[{{"location": "/{}a", "tdm-reservation": 1}}]"#, "*".repeat(stars));
        let mut budget = 1000;
        let found = TdmRep::parse(file(1000).as_bytes()).find(b"/a", &mut budget);
        assert_eq!(found, Err(TooLong));
        assert_eq!(TdmRep::parse(file(16_661).as_bytes()).len(), 1);
        assert!(
            TdmRep::parse(file(16_662).as_bytes()).is_empty(),
            "longer than a line of a robots.txt"
        );
    }

    #[test]
    fn one_entry_that_reserves_is_enough_to_reserve_a_tunnel() {
        let file = br#"[{"location": "/a", "tdm-reservation": 0}, {"location": "/b", "tdm-reservation": 1}]"#;
        let found = TdmRep::parse(file).find_any().expect("an entry");
        assert_eq!((found.entry, found.reserved), (2, true));
        assert_eq!(TdmRep::parse(b"[]").find_any(), None);
        let allows = |location: &str| {
            let file = format!(r#"[{{"location": "{location}", "tdm-reservation": 0}}]"#);
            TdmRep::parse(file.as_bytes()).find_any().map(|found| found.reserved)
        };
        assert_eq!(
            [allows("/free"), allows("/*")],
            [None, Some(false)],
            "only if it covers the site"
        );
    }
}
