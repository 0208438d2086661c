//! Compares the lines of a log with the entries of its tree, and finds where they go on together after a difference.
//! Both come as hashes.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::copy::Sha256;

/// What the comparison found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Compared {
    /// Number of lines that are their entries.
    pub(super) same: u64,
    /// Those of them that name the hash of an erased line.
    pub(super) erased: u64,
    /// Entries before the first line and after the last one.
    pub(super) before: u64,
    pub(super) after: u64,
    /// Lines after the last entry.
    pub(super) unsealed: u64,
    pub(super) differences: Vec<Difference>,
    /// The line from which on nothing fits.
    pub(super) gave_up: Option<u64>,
}

/// A place where log and tree differ. Lines and entries are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Difference {
    /// The line here, or the line before which entries are missing.
    pub(super) line: u64,
    /// The hash of the line; `None` if a line is missing.
    pub(super) found: Option<Sha256>,
    /// The entry that has no line here; `None` if a line was added.
    pub(super) sealed: Option<(u64, Sha256)>,
}

/// An iterator that can look ahead.
struct Window<I> {
    source: I,
    ahead: VecDeque<(Sha256, bool)>,
    /// The number of the first item in `ahead`.
    at: u64,
}

// === impl Window ===

impl<I: Iterator<Item = Result<(Sha256, bool), E>>, E> Window<I> {
    fn new(source: I, at: u64) -> Self {
        Self {
            source,
            ahead: VecDeque::new(),
            at,
        }
    }

    /// Looks `length` items ahead. Returns whether there are as many.
    fn fill(&mut self, length: usize) -> Result<bool, E> {
        while self.ahead.len() < length {
            match self.source.next() {
                Some(item) => self.ahead.push_back(item?),
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    fn front(&mut self) -> Result<Option<(Sha256, bool)>, E> {
        self.fill(1)?;
        Ok(self.ahead.front().copied())
    }

    fn pop(&mut self) -> Option<(u64, Sha256)> {
        let (hash, _) = self.ahead.pop_front()?;
        self.at += 1;
        Some((self.at - 1, hash))
    }
}

impl Compared {
    /// Finds lines that do not fit where they are among the entries after the last line.
    fn find_moved<E>(
        &mut self,
        entries: &mut Window<impl Iterator<Item = Result<(Sha256, bool), E>>>,
        line: u64,
    ) -> Result<(), E> {
        let added: HashSet<Sha256> = self.differences.iter().filter_map(|one| one.found).collect();
        if !added.is_empty() {
            entries.fill(MAX_WINDOW)?;
            while let Some(sealed) = entries.pop() {
                if added.contains(&sealed.1) {
                    self.after -= 1;
                    self.differences.push(Difference {
                        line,
                        found: None,
                        sealed: Some(sealed),
                    });
                }
            }
        }
        Ok(())
    }
}

/// Compares lines with entries. `entries` returns those from an entry on; `size` is their number. Each line comes as
/// its hash, and whether the line stands for an erased one.
///
/// # Errors
/// Those of the iterators.
pub(super) fn compare<I, E>(
    entries: impl Fn(u64) -> I,
    size: u64,
    lines: impl Iterator<Item = Result<(Sha256, bool), E>>,
) -> Result<Compared, E>
where
    I: Iterator<Item = Result<(Sha256, bool), E>>,
{
    let mut compared = Compared::default();
    let mut lines = Window::new(lines, 0);
    let start = start(entries(0), size, &mut lines)?;
    let mut entries = Window::new(entries(start), start);
    compared.before = start;
    loop {
        match (entries.front()?, lines.front()?) {
            (Some((sealed, _)), Some((found, is_erased))) if sealed == found => {
                entries.pop();
                lines.pop();
                compared.same += 1;
                compared.erased += u64::from(is_erased);
            }
            (Some(_), Some(_)) => {
                let Some((missing, added)) = resume(&mut entries, &mut lines)? else {
                    compared.gave_up = Some(lines.at);
                    return Ok(compared);
                };
                for number in 0..missing.max(added) {
                    compared.differences.push(Difference {
                        line: lines.at,
                        found: (number < added).then(|| lines.pop()).flatten().map(|(_, hash)| hash),
                        sealed: (number < missing).then(|| entries.pop()).flatten(),
                    });
                }
            }
            (Some(_), None) => {
                compared.after = size - entries.at;
                compared.find_moved(&mut entries, lines.at)?;
                return Ok(compared);
            }
            (None, Some(_)) => {
                lines.pop();
                compared.unsealed += 1;
            }
            (None, None) => return Ok(compared),
        }
    }
}

/// Returns the entry that the first line should have. The first two neighbours among the entries that are neighbours in
/// the log too decide, else the first entry that the log has. If none of the first lines has an entry, the lines come
/// after all entries.
fn start<E>(
    entries: impl Iterator<Item = Result<(Sha256, bool), E>>,
    size: u64,
    lines: &mut Window<impl Iterator<Item = Result<(Sha256, bool), E>>>,
) -> Result<u64, E> {
    lines.fill(MAX_WINDOW)?;
    let by_hash: HashMap<Sha256, u64> = (0..).zip(&lines.ahead).map(|(line, (hash, _))| (*hash, line)).collect();
    let (mut first, mut last) = (None, None);
    for (entry, item) in (0_u64..).zip(entries) {
        let Some(line) = by_hash.get(&item?.0).copied() else {
            continue;
        };
        first = first.or(Some((entry, line)));
        if last.replace((entry, line)) == entry.checked_sub(1).zip(line.checked_sub(1)) && line > 0 {
            first = last;
            break;
        }
        if by_hash.len() == 1 {
            break;
        }
    }
    Ok(first.map_or(size, |(entry, line)| entry.saturating_sub(line)))
}

/// Finds where entries and lines go on together: returns how many entries and lines come before. What comes before the
/// end of both counts if nothing fits. Returns `None` if there is too much that does not fit.
fn resume<E>(
    entries: &mut Window<impl Iterator<Item = Result<(Sha256, bool), E>>>,
    lines: &mut Window<impl Iterator<Item = Result<(Sha256, bool), E>>>,
) -> Result<Option<(usize, usize)>, E> {
    for length in [64, 4096, MAX_WINDOW] {
        let is_full = (entries.fill(length)?, lines.fill(length)?);
        let mut by_hash = HashMap::new();
        for (line, (hash, _)) in lines.ahead.iter().take(length).enumerate() {
            by_hash.entry(*hash).or_insert(line);
        }
        let fits = entries.ahead.iter().take(length).enumerate();
        let fits = fits.filter_map(|(entry, (hash, _))| Some((entry, *by_hash.get(hash)?)));
        if let Some(best) = fits.min_by_key(|(entry, line)| (entry + line, entry.abs_diff(*line))) {
            return Ok(Some(best));
        }
        match is_full {
            (true, true) => {}
            // Nothing fits up to the end of one. The rest of the other is counted after this.
            _ => {
                let both = entries.ahead.len().min(lines.ahead.len());
                return Ok(Some((both, both)));
            }
        }
    }
    Ok(None)
}

/// How many lines to look ahead at most.
const MAX_WINDOW: usize = 100_000;

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
        let from = |start: u64| all[start as usize..].iter().copied();
        let Ok(compared) = compare(from, all.len() as u64, hashes(lines).into_iter());
        compared
    }

    /// Differences as `line:found<sealed`.
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
    fn differences_are_found_where_they_are() {
        // entries, lines, differences, before, after, unsealed
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
    fn erased_lines_count_where_their_hash_is_sealed() {
        let found = compared("abcdef", "aBcd1F2");
        assert_eq!((found.same, found.erased, found.unsealed), (5, 2, 1));
        assert_eq!(differences(&found), "4:1<e");
        assert_eq!(compared("abc", "abcD").erased, 0);
    }

    #[test]
    fn a_log_that_stops_fitting_is_given_up_where_it_does() {
        let hash = |text: String| Ok::<_, Infallible>((Sha256::of(text.as_bytes()), false));
        let count = MAX_WINDOW as u64 + 10;
        let entries = |start: u64| (start..count).map(move |number| hash(format!("entry {number}")));
        let lines = (0..count).map(|number| match number < 5 {
            true => hash(format!("entry {number}")),
            false => hash(format!("other {number}")),
        });
        let Ok(found) = compare(entries, count, lines);
        assert_eq!((found.same, found.gave_up), (5, Some(5)));
    }
}
