//! Findings for programs: one JSON object on a line.

use std::io::{self, Write};

use super::Counts;
use crate::robots::Finding;

#[derive(serde::Serialize)]
struct Report<'a> {
    source: &'a str,
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

pub(super) fn write(out: &mut impl Write, source: &str, findings: &[Finding], counts: Counts) -> io::Result<()> {
    let findings = findings.iter().map(|finding| Item {
        line: finding.line,
        severity: finding.severity.as_str(),
        code: finding.code.as_str(),
        message: &finding.message,
        related: finding.related,
        text: &finding.text,
    });
    let report = Report {
        source,
        errors: counts.errors,
        warnings: counts.warnings,
        notes: counts.notes,
        findings: findings.collect(),
    };
    serde_json::to_writer(&mut *out, &report)?;
    out.write_all(b"\n")
}
