//! Findings for programs: one JSON object on a line.

use std::io::{self, Write};

use super::{Counts, absence::Absence, source::Found};
use crate::{cli::live::Live, explanation::FetchRecord, robots::Finding};

#[derive(serde::Serialize)]
struct Report<'a> {
    source: &'a str,
    /// How the fetch went, where there was one.
    fetch: Option<FetchRecord<'a>>,
    /// Why there is nothing to look at.
    absent: Option<String>,
    errors: usize,
    warnings: usize,
    notes: usize,
    findings: Vec<Item<'a>>,
}

#[derive(serde::Serialize)]
struct Item<'a> {
    /// 0 for the whole file.
    line: u32,
    severity: &'static str,
    code: &'static str,
    message: &'a str,
    related: Option<u32>,
    text: &'a str,
}

pub(super) fn write(
    out: &mut impl Write,
    found: &Found,
    absence: Option<&Absence>,
    findings: &[Finding],
    counts: Counts,
) -> io::Result<()> {
    let findings = findings.iter().map(|finding| Item {
        line: finding.line,
        severity: finding.severity.as_str(),
        code: finding.code.as_str(),
        message: &finding.message,
        related: finding.related,
        text: &finding.text,
    });
    let report = Report {
        source: &found.name,
        fetch: found.live().map(Live::record),
        absent: absence.map(Absence::to_string),
        errors: counts.errors,
        warnings: counts.warnings,
        notes: counts.notes,
        findings: findings.collect(),
    };
    serde_json::to_writer(&mut *out, &report)?;
    out.write_all(b"\n")
}
