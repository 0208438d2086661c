//! The list of origins sorted by any column, with a total. Reads all origins for each page if there is time, but does
//! not keep those that cannot be on the page.

use std::{
    cmp::Ordering,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use serde::Deserialize;

use super::{AT_ONCE, Context};
use crate::{
    admin::{
        http::problem::Problem,
        row::{Page, Row},
        view,
    },
    copy::AnswerKind,
    decision::Verdict,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Sort {
    Origin,
    Holds,
    Fetched,
    Expires,
    FailingSince,
    Bytes,
    Allow,
    Deny,
    Unverifiable,
    Defer,
}

/// In both orders, origins without a value in the sorted column come last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Order {
    Asc,
    Desc,
}

/// The origins whose robots.txt has a given state, or whose last fetch failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Holds(AnswerKind),
    Failing,
}

#[derive(Debug)]
pub(super) struct Selection {
    /// In lower case.
    pub(super) search: String,
    pub(super) sort: Sort,
    pub(super) is_descending: bool,
    pub(super) wanted: Option<Wanted>,
    pub(super) offset: usize,
    pub(super) limit: usize,
}

/// The rows that can still be on the requested page. `total` also counts the dropped ones.
struct Best<'s> {
    selection: &'s Selection,
    rows: Vec<Row>,
    total: u64,
}

pub(super) async fn list(context: Arc<Context>, selection: Selection) -> Result<Page, Problem> {
    // The semaphore is never closed.
    let turn = context.counting.clone().acquire_owned().await.ok();
    let listing = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        collect(&context, &selection)
    });
    listing.await.ok().flatten().ok_or(Problem::Disk)
}

fn collect(context: &Context, selection: &Selection) -> Option<Page> {
    let deadline = Instant::now() + MAX_TIME;
    let (store, policy) = (context.live.store(), context.live.generation().config.robots.policy);
    let mut best = Best::new(selection);
    let mut is_complete = true;
    let mut add = |mut row: Row| {
        context.count_verdicts(&mut row);
        best.add(row);
    };
    match store.disk() {
        Some(disk) => {
            let mut next = Some(String::new());
            while let Some(start) = next {
                if Instant::now() >= deadline {
                    is_complete = false;
                    break;
                }
                // Read the file in parts: robotgate can reopen it after an error only between two parts.
                let read = disk.with_file(|file| view::rows(file, &start, &selection.search, AT_ONCE, &policy));
                let (rows, beyond) = read.ok()?;
                rows.into_iter().for_each(&mut add);
                next = beyond;
            }
        }
        None => {
            let now = SystemTime::now();
            let held = store.list_held("", &selection.search, usize::MAX);
            held.iter()
                .for_each(|(origin, state)| add(Row::held(origin, state, &policy, now)));
        }
    }
    let total = best.total;
    let origins = best.page();
    let end = selection.offset + origins.len();
    Some(Page {
        next: (total > end as u64).then(|| end.to_string()),
        origins,
        total: Some(total),
        complete: Some(is_complete),
    })
}

// === impl Best ===

impl<'s> Best<'s> {
    fn new(selection: &'s Selection) -> Self {
        Self {
            selection,
            rows: Vec::new(),
            total: 0,
        }
    }

    fn add(&mut self, row: Row) {
        if !self.selection.wanted.is_none_or(|wanted| wanted.has(&row)) {
            return;
        }
        self.total += 1;
        self.rows.push(row);
        let end = self.selection.offset + self.selection.limit;
        if self.rows.len() >= 2 * end + AT_ONCE {
            self.sort();
            self.rows.truncate(end);
        }
    }

    fn sort(&mut self) {
        self.rows.sort_by(|a, b| self.selection.compare(a, b));
    }

    fn page(mut self) -> Vec<Row> {
        self.sort();
        let rows = self.rows.into_iter();
        rows.skip(self.selection.offset).take(self.selection.limit).collect()
    }
}

// === impl Selection ===

impl Selection {
    fn compare(&self, a: &Row, b: &Row) -> Ordering {
        let verdict = |row: &Row, verdict: Verdict| {
            row.verdicts.map(|counts| match verdict {
                Verdict::Allow => counts.allow,
                Verdict::Deny => counts.deny,
                Verdict::Unverifiable => counts.unverifiable,
                Verdict::Defer => counts.defer,
            })
        };
        let by = |of: Verdict| self.ordered(verdict(a, of), verdict(b, of));
        let order = match self.sort {
            Sort::Origin => self.ordered(Some(&a.origin), Some(&b.origin)),
            Sort::Holds => self.ordered(Some(&a.holds), Some(&b.holds)),
            Sort::Fetched => self.ordered(a.fetched, b.fetched),
            Sort::Expires => self.ordered(a.expires, b.expires),
            Sort::FailingSince => self.ordered(a.failing_since, b.failing_since),
            Sort::Bytes => self.ordered(a.bytes, b.bytes),
            Sort::Allow => by(Verdict::Allow),
            Sort::Deny => by(Verdict::Deny),
            Sort::Unverifiable => by(Verdict::Unverifiable),
            Sort::Defer => by(Verdict::Defer),
        };
        order.then_with(|| a.origin.cmp(&b.origin))
    }

    fn ordered<T: Ord>(&self, a: Option<T>, b: Option<T>) -> Ordering {
        match (a, b) {
            (Some(a), Some(b)) if self.is_descending => b.cmp(&a),
            (Some(a), Some(b)) => a.cmp(&b),
            (a, b) => b.is_some().cmp(&a.is_some()),
        }
    }
}

// === impl Wanted ===

impl Wanted {
    fn has(self, row: &Row) -> bool {
        match self {
            Self::Holds(holds) => row.holds == holds.as_str(),
            Self::Failing => row.error.is_some() || row.failing_since.is_some(),
        }
    }
}

impl<'de> Deserialize<'de> for Wanted {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        if word == FAILING {
            return Ok(Self::Failing);
        }
        let known = || AnswerKind::ALL.map(AnswerKind::as_str).join("`, `");
        AnswerKind::from_word(&word).map(Self::Holds).ok_or_else(|| {
            serde::de::Error::custom(format!(
                "unknown variant `{word}`, expected one of `{}`, `{FAILING}`",
                known()
            ))
        })
    }
}

const FAILING: &str = "failing";
/// How long to read origins for one page.
const MAX_TIME: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        copy::{OriginState, Policy},
        store::VerdictCounts,
    };

    fn row(name: &str, deny: u64, bytes: Option<usize>) -> Row {
        let origin = format!("https://{name}.example").parse().expect("an origin");
        let state = OriginState::unknown();
        Row {
            bytes,
            verdicts: Some(VerdictCounts {
                deny,
                ..VerdictCounts::default()
            }),
            ..Row::held(&origin, &state, &Policy::default(), SystemTime::UNIX_EPOCH)
        }
    }

    fn sorted(sort: Sort, is_descending: bool, offset: usize, limit: usize) -> (String, u64) {
        let selection = Selection {
            search: String::new(),
            sort,
            is_descending,
            wanted: None,
            offset,
            limit,
        };
        let mut best = Best::new(&selection);
        for each in [
            row("b", 2, Some(9)),
            row("a", 1, None),
            row("d", 2, Some(3)),
            row("c", 7, Some(4)),
        ] {
            best.add(each);
        }
        let total = best.total;
        let names = best.page().into_iter().map(|row| row.origin.as_bytes()[8] as char);
        (names.collect(), total)
    }

    #[test]
    fn rows_are_sorted_and_those_without_a_value_come_last() {
        for (sort, is_descending, expected) in [
            (Sort::Origin, false, "abcd"),
            (Sort::Origin, true, "dcba"),
            (Sort::Deny, false, "abdc"),
            (Sort::Deny, true, "cbda"),
            (Sort::Bytes, false, "dcba"),
            (Sort::Bytes, true, "bcda"),
        ] {
            assert_eq!(
                sorted(sort, is_descending, 0, 10),
                (expected.to_owned(), 4),
                "{sort:?} {is_descending}"
            );
        }
        assert_eq!(sorted(Sort::Origin, false, 1, 2).0, "bc");
        assert_eq!(sorted(Sort::Origin, false, 3, 2).0, "d");
        assert_eq!(sorted(Sort::Origin, false, 9, 2).0, "");
    }

    #[test]
    fn a_long_list_is_cut_to_the_page_while_it_is_read() {
        let selection = Selection {
            search: String::new(),
            sort: Sort::Deny,
            is_descending: true,
            wanted: None,
            offset: 1,
            limit: 2,
        };
        let mut best = Best::new(&selection);
        for number in 0..3000 {
            best.add(row(&format!("n{number}"), number, None));
            assert!(best.rows.len() <= AT_ONCE + 6);
        }
        assert_eq!(best.total, 3000);
        let page = best.page();
        let names: Vec<_> = page.iter().map(|row| &*row.origin).collect();
        assert_eq!(names, ["https://n2998.example", "https://n2997.example"]);
    }
}
