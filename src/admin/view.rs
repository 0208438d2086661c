//! Looks at the file for an operator: a part of the list, one origin, a part of the count. A part at
//! a time, so that nobody holds the file, or memory for all of it, for as long as somebody reads.
//!
//! It blocks, and never changes the file.

use std::time::SystemTime;

use super::{
    row::{Detail, Row},
    stats::Count,
};
use crate::{
    copy::Policy,
    origin::Origin,
    store::{CopyFile, FileError, Record},
};

/// Where something goes on, if there is more.
pub(super) type Next = Option<String>;

/// The rows from the origin `start` on whose name has `filter` in it, of at most `limit` origins.
pub(super) fn rows(
    file: &CopyFile,
    start: &str,
    filter: &str,
    limit: usize,
    policy: &Policy,
) -> Result<(Vec<Row>, Next), FileError> {
    let now = SystemTime::now();
    let mut rows = Vec::new();
    let next = some(file, start, limit, |origin, record| {
        if origin.contains(filter) {
            rows.extend(Row::of(origin, record, policy, now));
        }
    })?;
    Ok((rows, next))
}

/// Counts at most `limit` origins more, from `start` on.
pub(super) fn count(
    file: &CopyFile,
    start: &str,
    limit: usize,
    count: &mut Count,
    policy: &Policy,
) -> Result<Next, FileError> {
    let now = SystemTime::now();
    some(file, start, limit, |_, record| count.add(record, policy, now))
}

/// All that is known of an origin.
pub(super) fn detail(file: &CopyFile, origin: &Origin, policy: &Policy) -> Result<Option<Detail>, FileError> {
    let state = file.read(&origin.to_string())?;
    Ok(state.map(|state| Detail::of(origin, state, policy, SystemTime::now())))
}

fn some(file: &CopyFile, start: &str, limit: usize, mut each: impl FnMut(&str, Record)) -> Result<Next, FileError> {
    let (mut seen, mut next) = (0, None);
    file.each_from(start, |origin, record| {
        if seen == limit {
            next = Some(origin.to_owned());
            return false;
        }
        seen += 1;
        each(origin, record);
        true
    })?;
    Ok(next)
}
