//! The small sections: `[refusals]`, `[cache]`, `[audit]`, `[evidence]` and `[usage]`.
//!
//! This module opens no file.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use http::StatusCode;

use super::environment::host_name;
use super::table::Table;
use crate::audit::{ClientMask, LoggedUserAgent, Output, Privacy, RedactQuery};
use crate::evidence::EvidenceOptions;
use crate::seal::{self, SealOptions};
use crate::store::DiskOptions;
use crate::usage::{Unknown, UsagePolicy, VocabularyPolicy};

/// Allowed memory for robots.txt copies. Two texts of the largest size have to fit.
const LIMITS: (RangeInclusive<u64>, &str) = (1 << 20..=1 << 40, "from 1MiB to 1TiB");
/// Allowed sizes of the cache file and of the evidence file. Several robots.txt files of the largest size have to fit.
const DISK_LIMITS: (RangeInclusive<u64>, &str) = (16 << 20..=1 << 50, "from 16MiB to 1024TiB");
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Allowed values of `keep`. A cached copy must survive a night without requests.
const KEEPS: RangeInclusive<Duration> = DAY..=Duration::from_secs(3650 * 24 * 60 * 60);

/// The `[refusals]` section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusals {
    /// The status of a refusal because of a rule in a robots.txt: 403 or 451.
    pub status: StatusCode,
    /// The status of a refusal because the robots.txt is unreachable: 403 or 503.
    pub unreachable_status: StatusCode,
}

/// The `[cache]` section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// The file that keeps robots.txt copies across restarts. It need not exist yet. `None` if `cache.persist` is
    /// false.
    pub path: Option<PathBuf>,
    pub disk: DiskOptions,
    /// Maximum memory for robots.txt copies and the data parsed from them, in bytes.
    pub max_bytes: u64,
}

/// The `[audit]` section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audit {
    pub output: Output,
    /// What the log leaves out.
    pub privacy: Privacy,
}

// === impl Refusals ===

impl Refusals {
    pub(super) fn read(table: &Table<'_>) -> Self {
        let default = Self::default();
        Self {
            status: one_of(
                table,
                "status",
                [default.status, StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS],
            ),
            unreachable_status: one_of(
                table,
                "unreachable-status",
                [default.unreachable_status, StatusCode::SERVICE_UNAVAILABLE],
            ),
        }
    }
}

impl Default for Refusals {
    fn default() -> Self {
        Self {
            status: StatusCode::FORBIDDEN,
            unreachable_status: StatusCode::FORBIDDEN,
        }
    }
}

/// The first of the two statuses is the default.
fn one_of(table: &Table<'_>, key: &'static str, [default, other]: [StatusCode; 2]) -> StatusCode {
    let Some(raw) = table.one_of(key, &[default.as_u16(), other.as_u16()]) else {
        return default;
    };
    let number = *raw.get_ref();
    let chosen = [default, other]
        .into_iter()
        .find(|status| i128::from(status.as_u16()) == number);
    chosen.unwrap_or_else(|| {
        let (one, two) = (default.as_u16(), other.as_u16());
        let message = format!("the status cannot be {number}; write {one} or {two}");
        table.checker.complain(raw.span(), message);
        default
    })
}

// === impl Cache ===

impl Cache {
    pub(super) fn read(table: &Table<'_>) -> Self {
        let max_disk_bytes = table.size("max-disk-bytes", 2 << 30, DISK_LIMITS);
        let path = table.text("path");
        let persist = table.flag_or("persist", true);
        if let Some(path) = path.as_ref().filter(|_| !persist) {
            table.checker.complain(
                path.span(),
                "persist = false means that there is no cache file, so this path has no effect; remove this key, or remove `persist = false`",
            );
        }
        Self {
            path: persist.then(|| table.path_or_state("path", path, "robots.redb")),
            disk: DiskOptions {
                keep: table.duration("keep", 90 * DAY, KEEPS),
                max_bytes: max_disk_bytes,
            },
            max_bytes: table.size("max-bytes", 256 << 20, LIMITS),
        }
    }
}

/// The `bool` says whether the proxy itself seals the audit log.
///
/// By default, the evidence file is next to the cache file. Without a cache file, there is no evidence store unless
/// this section sets `enabled = true` or `path`.
pub(super) fn evidence(table: &Table<'_>, cache: &Cache) -> (Option<EvidenceOptions>, SealOptions, bool) {
    let path = table.text("path");
    let enabled = table.flag("enabled");
    let is_enabled = match &enabled {
        Some(enabled) => *enabled.get_ref(),
        None => cache.path.is_some() || path.is_some(),
    };
    if let Some(path) = path.as_ref().filter(|_| !is_enabled) {
        table.checker.complain(
            path.span(),
            "enabled = false means that nothing is stored here; remove this key, or remove `enabled = false`",
        );
    }
    table.has_default("enabled", cache.path.is_some() || path.is_some());
    let path = match &cache.path {
        Some(cache) => table.path_or("path", path, cache.with_file_name(EVIDENCE_FILE)),
        None => table.path_or_state("path", path, EVIDENCE_FILE),
    };
    if !is_enabled {
        table.has_no_default("path");
    }
    let options = EvidenceOptions {
        path,
        keep: table.duration("keep", 400 * DAY, KEEPS),
        max_bytes: table.size("max-bytes", 4 << 30, DISK_LIMITS),
        required: table.flag_or("required", false),
    };
    let seal_path = table.text("seal-path");
    let seal = table.path_or("seal-path", seal_path, options.path.with_file_name(SEAL_FOLDER));
    let origin = table.parsed("seal-origin", |name| match seal::is_origin(name) {
        true => Ok(name.to_owned()),
        false => Err("the name is empty, or has a space or a +; write one like example.com/robotgate-1"),
    });
    let seal = SealOptions {
        path: seal,
        new_origin: origin.clone().unwrap_or_else(|| format!("{}/robotgate", host_name())),
        origin,
    };
    (is_enabled.then_some(options), seal, table.flag_or("seal", false))
}

const SEAL_FOLDER: &str = "seal";
const EVIDENCE_FILE: &str = "evidence.redb";

// === impl Audit ===

impl Audit {
    pub(super) fn read(table: &Table<'_>) -> Self {
        let (path, stdout) = (table.text("path"), table.flag("stdout"));
        table.has_default("stdout", path.is_none());
        if let Some(stdout) = stdout {
            let complaint = match (&path, stdout.get_ref()) {
                (Some(_), true) => Some("the log can go to one place only; remove either this key or audit.path"),
                (None, false) => Some("the log has to go somewhere; name a file in audit.path"),
                (Some(_), false) | (None, true) => None,
            };
            if let Some(complaint) = complaint {
                table.checker.complain(stdout.span(), complaint);
            }
        }
        let path = path.and_then(|path| table.checker.path(&path));
        Self {
            output: path.map_or(Output::Stdout, Output::File),
            privacy: Privacy {
                mask_client: table.table("mask-client", mask_client),
                redact_query: redact_query(table),
                user_agent: table.choice_or("user-agent", LoggedUserAgent::default()),
            },
        }
    }
}

/// A missing `ipv4` or `ipv6` has its default, so that no address is logged whole by mistake.
fn mask_client(table: &Table<'_>) -> Option<ClientMask> {
    table.span()?;
    Some(ClientMask {
        ipv4: table.number("ipv4", 24, 0..=32),
        ipv6: table.number("ipv6", 64, 0..=128),
    })
}

fn redact_query(table: &Table<'_>) -> RedactQuery {
    let redacted = table.flag_or_list("redact-query", "true, false, or a list of names of parameters");
    table.has_default("redact-query", false);
    let Some((all, names)) = redacted else {
        return RedactQuery::Nothing;
    };
    let named = |name: &str| match name {
        "" => Err("the name of a parameter cannot be empty; remove this entry"),
        name => Ok(name.to_owned()),
    };
    match (all, table.checker.each(names, named)) {
        (true, _) => RedactQuery::All,
        (false, names) if names.is_empty() => RedactQuery::Nothing,
        (false, names) => RedactQuery::Values(names.into()),
    }
}

pub(super) fn usage(table: &Table<'_>) -> UsagePolicy {
    let policy = |key| table.choice_or(key, VocabularyPolicy::default());
    UsagePolicy {
        content_signal: policy("content-signal"),
        content_usage: policy("content-usage"),
        tdmrep: policy("tdmrep"),
        x_robots_tag: policy("x-robots-tag"),
        unknown: table.choice_or("unknown", Unknown::default()),
    }
}
