//! Reads the cache file for an operator. The functions block, and never change the file.
//!
//! The file can grow while a read runs, because the database cannot reuse the pages that the read may still need. So
//! callers can split a long read into parts.

use std::time::SystemTime;

use super::{
    row::{Detail, Row},
    stats::Count,
};
use crate::{
    copy::{Policy, SiteDocument},
    origin::Origin,
    store::{CopyFile, FileError, OriginRecord},
};

/// The origin at which the next part of the file begins; `None` at the end.
pub(super) type Next = Option<String>;

/// Reads the next `limit` origins, beginning with `start`, and returns those whose name contains `filter`.
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

/// Adds the next `limit` origins, beginning with `start`, to `count`.
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

pub(super) fn detail(file: &CopyFile, origin: &Origin, policy: &Policy) -> Result<Option<Detail>, FileError> {
    let state = file.read(&origin.to_string())?;
    let Some(state) = state else { return Ok(None) };
    let tdmrep = file.read(&SiteDocument::TDMREP.name(origin))?;
    Ok(Some(Detail::of(
        origin,
        state,
        tdmrep.as_ref(),
        policy,
        SystemTime::now(),
    )))
}

fn some(
    file: &CopyFile,
    start: &str,
    limit: usize,
    mut each: impl FnMut(&str, OriginRecord),
) -> Result<Next, FileError> {
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
