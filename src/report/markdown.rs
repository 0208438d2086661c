//! A report as Markdown tables.

use std::fmt::Write as _;

use super::document::{Document, Section};

/// Writes a report as Markdown.
pub fn to_markdown(document: &Document) -> String {
    let mut out = format!("# {}\n", document.title);
    for section in &document.sections {
        push_section(&mut out, section);
    }
    out
}

fn push_section(out: &mut String, section: &Section) {
    let _ = writeln!(out, "\n## {}\n", section.title);
    match section.rows.is_empty() {
        true => out.push_str("None.\n"),
        false => push_table(out, section),
    }
    for note in &section.notes {
        let _ = writeln!(out, "\n{note}");
    }
}

fn push_table(out: &mut String, section: &Section) {
    let titles: Vec<_> = section.columns.iter().map(|column| column.title).collect();
    let is_number = |column: usize| section.rows.iter().all(|row| row.cells[column].is_number());
    let lines: Vec<_> = (0..titles.len())
        .map(|column| if is_number(column) { "---:" } else { "---" })
        .collect();
    let _ = writeln!(out, "| {} |\n| {} |", titles.join(" | "), lines.join(" | "));
    for row in &section.rows {
        let cells: Vec<_> = row.cells.iter().map(|cell| escaped(&cell.shown())).collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '!' | '#' => out.extend(['\\', character]),
            _ => out.push(character),
        }
    }
    out
}
