//! Formats the results as text.

use super::{
    crowds, numbers,
    proxies::Kind,
    races::{Row, Sample},
};

/// Formats the table of a case that measures requests per second.
pub fn race(rows: &[Row]) -> String {
    let of = |kind| rows.iter().find(|row| row.kind == kind);
    let (squid, bare) = (of(Kind::SQUID), of(Kind::Bare));
    let mut lines = vec![HEADS.map(str::to_owned).to_vec()];
    for row in rows {
        let mut line = vec![row.label.clone()];
        if row.samples.iter().flatten().next().is_none() {
            line.push("–".to_owned());
        } else {
            let median = |of: fn(&Sample) -> f64| row.median(of).unwrap_or_default();
            line.extend([
                numbers::bytes(median(|sample| sample.rate) as usize),
                numbers::duration(median(|sample| sample.p50.as_nanos() as f64)),
                numbers::duration(median(|sample| sample.p99.as_nanos() as f64)),
                numbers::duration(median(cpu)),
            ]);
            if row.kind == Kind::Nothing {
                line.push("–".to_owned());
            } else {
                line.push(megabytes(median(|sample| sample.memory as f64) as u64));
                for other in [squid, bare] {
                    line.push(other.and_then(|other| ratios(row, other)).unwrap_or_default());
                }
            }
        }
        lines.push(line);
    }
    let mut text = aligned(&lines);
    for row in rows {
        if let Some(problem) = &row.problem {
            text += &format!("  {}: {problem}\n", row.label);
        }
    }
    text
}

/// Formats the table of a case that measures memory.
pub fn crowd(rows: &[crowds::Row]) -> String {
    let heads = ["", "memory each", "before", "with all", "2 s after they closed"];
    let mut lines = vec![heads.map(str::to_owned).to_vec()];
    let mut problems = String::new();
    for row in rows {
        let mut line = vec![row.label.clone()];
        match &row.memory {
            Ok(memory) => line.extend([
                format!("{} KiB", numbers::digits(memory.each() as f64 / 1024.0)),
                megabytes(memory.before),
                megabytes(memory.during),
                megabytes(memory.after),
            ]),
            Err(error) => {
                line.push("–".to_owned());
                problems += &format!("  {}: {error}\n", row.label);
            }
        }
        lines.push(line);
    }
    aligned(&lines) + &problems
}

fn ratios(row: &Row, other: &Row) -> Option<String> {
    let rate = row.ratio(other, |sample| sample.rate)?;
    let cpu = row.ratio(other, cpu)?;
    Some(format!("{rate:.2} ({cpu:.2})"))
}

fn cpu(sample: &Sample) -> f64 {
    sample.cpu.as_nanos() as f64
}

fn megabytes(bytes: u64) -> String {
    format!("{} MiB", numbers::digits(bytes as f64 / (1024.0 * 1024.0)))
}

/// Aligns cells in columns, the first to the left and the others to the right.
fn aligned(lines: &[Vec<String>]) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let cells = |column: usize| lines.iter().filter_map(move |line| line.get(column));
    let width = |column| cells(column).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for line in lines {
        let mut row = String::from("  ");
        for (at, (cell, &width)) in line.iter().zip(&widths).enumerate() {
            row += &if at == 0 {
                format!("{cell:<width$}")
            } else {
                format!("   {cell:>width$}")
            };
        }
        text += row.trim_end();
        text.push('\n');
    }
    text
}

const HEADS: [&str; 8] = [
    "",
    "requests/s",
    "p50",
    "p99",
    "CPU",
    "memory",
    "to squid (CPU)",
    "to bare (CPU)",
];
