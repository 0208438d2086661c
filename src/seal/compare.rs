//! Compares the lines of a log with the entries of its tree: the hashes that the lines had when they were sealed.
//! Continues after a difference, unless the next `MAX_AHEAD` lines and entries have nothing in common. Time and memory
//! are at most linear in the lengths of the log and the tree, whatever differs.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    iter::Fuse,
};

use crate::copy::Sha256;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Number of lines that were not changed after they were sealed.
    pub same: u64,
    /// Number of lines that replace an erased line and name its hash.
    pub erased: u64,
    /// Number of entries older than the first line (`before`), and number of entries newer than the last line
    /// (`after`).
    pub before: u64,
    pub after: u64,
    pub unsealed: u64,
    /// The first differences (`differences`), and the number of further ones (`more`).
    pub differences: Vec<Difference>,
    pub more: u64,
    /// The line at which the comparison gave up, because `MAX_AHEAD` lines and entries have nothing in common.
    pub gave_up: Option<u64>,
}

/// A place where the log and the tree differ. Lines and entries are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    /// The line that differs. If a line is missing, the line that follows the gap.
    pub line: u64,
    /// The hash of the line; `None` if a sealed line is missing here.
    pub found: Option<Sha256>,
    /// The entry that no line matches here, as its number and hash; `None` if a line was added here.
    pub sealed: Option<(u64, Sha256)>,
}

struct Window<I> {
    source: Fuse<I>,
    ahead: VecDeque<(Sha256, bool)>,
    /// The number of the first item in `ahead`.
    at: u64,
}

// === impl Window ===

impl<I: Iterator<Item = Result<(Sha256, bool), E>>, E> Window<I> {
    fn new(source: I, at: u64) -> Self {
        Self {
            source: source.fuse(),
            ahead: VecDeque::new(),
            at,
        }
    }

    /// Returns the item that is `ahead` items after the next one.
    fn get(&mut self, ahead: usize) -> Result<Option<(Sha256, bool)>, E> {
        while self.ahead.len() <= ahead
            && let Some(item) = self.source.next()
        {
            self.ahead.push_back(item?);
        }
        Ok(self.ahead.get(ahead).copied())
    }

    fn pop(&mut self) -> Result<Option<(u64, Sha256)>, E> {
        let item = self.get(0)?;
        self.ahead.pop_front();
        self.at += u64::from(item.is_some());
        Ok(item.map(|(hash, _)| (self.at - 1, hash)))
    }
}

// === impl Compared ===

impl Compared {
    fn add(&mut self, difference: Difference) {
        match self.differences.len() < MAX_DIFFERENCES {
            true => self.differences.push(difference),
            false => self.more += 1,
        }
    }
}

/// Compares the lines of a log with the entries of its tree. `entries(n)` iterates over the entries from number `n` on,
/// and each item of `lines` is the entry of a line and whether the line replaces an erased one.
pub(super) fn compare<I, E>(
    entries: impl Fn(u64) -> I,
    size: u64,
    lines: impl Iterator<Item = Result<(Sha256, bool), E>>,
) -> Result<Compared, E>
where
    I: Iterator<Item = Result<Sha256, E>>,
{
    let mut lines = Window::new(lines, 0);
    let start = start(entries(0), size, &mut lines)?;
    let mut entries = Window::new(entries(start).map(|entry| Ok((entry?, false))), start);
    let mut compared = Compared {
        before: start,
        ..Compared::default()
    };
    while let Some((found, is_erased)) = lines.get(0)? {
        let Some((sealed, _)) = entries.get(0)? else {
            lines.pop()?;
            compared.unsealed += 1;
            continue;
        };
        if sealed == found {
            entries.pop()?;
            lines.pop()?;
            compared.same += u64::from(!is_erased);
            compared.erased += u64::from(is_erased);
            continue;
        }
        let Some((missing, added)) = resume(&mut entries, &mut lines)? else {
            compared.gave_up = Some(lines.at);
            return Ok(compared);
        };
        for number in 0..missing.max(added) {
            compared.add(Difference {
                line: lines.at,
                found: if number < added { lines.pop()? } else { None }.map(|(_, hash)| hash),
                sealed: if number < missing { entries.pop()? } else { None },
            });
        }
    }
    // The log has no more lines, so the lines of the remaining entries were moved or are missing. A line was moved if
    // it was found earlier, at another place.
    let added: HashSet<Sha256> = compared.differences.iter().filter_map(|one| one.found).collect();
    while let Some(sealed) = entries.pop()? {
        match added.contains(&sealed.1) {
            true => compared.add(Difference {
                line: lines.at,
                found: None,
                sealed: Some(sealed),
            }),
            false => compared.after += 1,
        }
    }
    Ok(compared)
}

/// Returns the number of the entry that belongs to the first line. Finds the first entry whose line is among the first
/// lines of the log, and counts back from this line to the first one. If no entry has such a line, returns `size`, as
/// if all lines were newer than the entries.
fn start<E>(
    entries: impl Iterator<Item = Result<Sha256, E>>,
    size: u64,
    lines: &mut Window<impl Iterator<Item = Result<(Sha256, bool), E>>>,
) -> Result<u64, E> {
    lines.get(MAX_AHEAD)?;
    let by_hash: HashMap<Sha256, u64> = (0..).zip(&lines.ahead).map(|(line, (hash, _))| (*hash, line)).collect();
    for (entry, hash) in (0_u64..).zip(entries) {
        if let Some(line) = by_hash.get(&hash?) {
            return Ok(entry.saturating_sub(*line));
        }
    }
    Ok(size)
}

/// Returns how many entries and how many lines come before the next line that equals an entry, or `None` if there is no
/// such pair among the next `MAX_AHEAD`. Reads no further than that pair, so that the comparison takes linear time.
fn resume<E>(
    entries: &mut Window<impl Iterator<Item = Result<(Sha256, bool), E>>>,
    lines: &mut Window<impl Iterator<Item = Result<(Sha256, bool), E>>>,
) -> Result<Option<(usize, usize)>, E> {
    let (mut entry_at, mut line_at) = (HashMap::new(), HashMap::new());
    for ahead in 0..MAX_AHEAD {
        let (entry, line) = (entries.get(ahead)?, lines.get(ahead)?);
        if entry.is_none() && line.is_none() {
            let both = entries.ahead.len().min(lines.ahead.len());
            return Ok(Some((both, both)));
        }
        if let Some((hash, _)) = entry {
            entry_at.entry(hash).or_insert(ahead);
        }
        if let Some((hash, _)) = line {
            line_at.entry(hash).or_insert(ahead);
        }
        let of_line = line.and_then(|(hash, _)| Some((*entry_at.get(&hash)?, ahead)));
        let of_entry = entry.and_then(|(hash, _)| Some((ahead, *line_at.get(&hash)?)));
        if let Some(best) = of_line
            .into_iter()
            .chain(of_entry)
            .min_by_key(|(entry, line)| entry + line)
        {
            return Ok(Some(best));
        }
    }
    Ok(None)
}

/// How many lines and entries to read ahead at most.
const MAX_AHEAD: usize = 100_000;
/// Maximum number of differences to keep.
const MAX_DIFFERENCES: usize = 100_000;

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn compared(entries: &str, lines: &str) -> Compared {
        let hashes = |text: &str| -> Vec<Result<(Sha256, bool), Infallible>> {
            let hash = |c: char| Ok((Sha256::of(&[c.to_ascii_lowercase() as u8]), c.is_ascii_uppercase()));
            text.chars().map(hash).collect()
        };
        let all = hashes(entries);
        let from = |start: u64| all[start as usize..].iter().map(|item| item.map(|(hash, _)| hash));
        let Ok(compared) = compare(from, all.len() as u64, hashes(lines).into_iter());
        compared
    }

    /// Writes each difference as `line:found<sealed`.
    fn differences(compared: &Compared) -> String {
        let name = |hash: Option<Sha256>| {
            let letter = ('!'..='~').find(|c| hash == Some(Sha256::of(&[*c as u8])));
            letter.map_or("-".to_owned(), String::from)
        };
        let one = |one: &Difference| {
            let sealed = one.sealed.map(|(_, hash)| hash);
            format!("{}:{}<{}", one.line, name(one.found), name(sealed))
        };
        compared.differences.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn each_difference_is_found_at_its_line() {
        // The entries and the lines (a letter is the hash of one line), the differences, `before`, `after` and
        // `unsealed`.
        for (entries, lines, expected, ends) in [
            ("abcdef", "abcdef", "", (0, 0, 0)),
            ("abcdef", "ab?def", "2:?<c", (0, 0, 0)),
            ("abcdef", "abdef", "2:-<c", (0, 0, 0)),
            ("abcdef", "abef", "2:-<c 2:-<d", (0, 0, 0)),
            ("abcdef", "ab12cdef", "2:1<- 3:2<-", (0, 0, 0)),
            ("abcdef", "abdcef", "2:d<- 4:-<d", (0, 0, 0)),
            ("abcdef", "aecdbf", "1:e<b 4:b<e", (0, 0, 0)),
            ("abcdef", "abcd", "", (0, 2, 0)),
            ("abcdef", "abcde?", "5:?<f", (0, 0, 0)),
            ("abcdef", "abcde?123", "5:?<f", (0, 0, 3)),
            ("abcdef", "abcdef123", "", (0, 0, 3)),
            ("abcdef", "cdef", "", (2, 0, 0)),
            ("abcdef", "?bcdef", "0:?<a", (0, 0, 0)),
            ("abcdef", "12abcdef", "0:1<- 1:2<-", (0, 0, 0)),
            ("abcdef", "?def", "0:?<c", (2, 0, 0)),
            ("abcdef", "cd", "", (2, 2, 0)),
            ("abcdef", "123", "", (6, 0, 3)),
            ("abcdef", "", "", (6, 0, 0)),
            ("", "123", "", (0, 0, 3)),
        ] {
            let found = compared(entries, lines);
            assert_eq!(differences(&found), expected, "{entries} {lines}");
            assert_eq!((found.before, found.after, found.unsealed), ends, "{entries} {lines}");
        }
    }

    #[test]
    fn an_erased_line_counts_only_at_the_place_of_its_sealed_hash() {
        let found = compared("abcdef", "aBcd1F2");
        assert_eq!((found.same, found.erased, found.unsealed), (3, 2, 1));
        assert_eq!(differences(&found), "4:1<e");
        assert_eq!(compared("abc", "abcD").erased, 0);
    }

    #[test]
    fn a_comparison_stops_where_the_log_no_longer_matches() {
        let hash = |text: String| Sha256::of(text.as_bytes());
        let count = MAX_AHEAD as u64 + 10;
        let entries =
            |start: u64| (start..count).map(move |number| Ok::<_, Infallible>(hash(format!("entry {number}"))));
        let lines = (0..count).map(|number| match number < 5 {
            true => Ok((hash(format!("entry {number}")), false)),
            false => Ok((hash(format!("other {number}")), false)),
        });
        let Ok(found) = compare(entries, count, lines);
        assert_eq!((found.same, found.gave_up), (5, Some(5)));
    }

    #[test]
    fn the_number_of_kept_differences_is_limited() {
        let hash = |number: u64| Sha256::of(&number.to_le_bytes());
        let count = 2 * MAX_DIFFERENCES as u64 + 100;
        let entries = |start: u64| (start..count).map(move |number| Ok::<_, Infallible>(hash(number)));
        let lines = (0..count).map(|number| Ok((hash(number + (number % 2) * count), false)));
        let Ok(found) = compare(entries, count, lines);
        assert_eq!((found.same, found.after, found.gave_up), (count / 2, 0, None));
        assert_eq!((found.differences.len(), found.more), (MAX_DIFFERENCES, 50));
    }
}
