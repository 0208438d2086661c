//! Writes a report for a terminal.

use super::document::{Cell, Document, Section};
use crate::columns::{cut_middle, filled, padded, widest};

/// Writes a report for a terminal that is `columns` wide, if that is known. Shortens long URLs, rules and names in the
/// middle, and wraps lines that are still too long.
pub fn to_text(document: &Document, columns: Option<usize>) -> String {
    let columns = columns.unwrap_or(usize::MAX);
    let mut out = String::new();
    for section in &document.sections {
        if !out.is_empty() {
            out.push('\n');
        }
        push_section(&mut out, section, columns);
    }
    out
}

fn push_section(out: &mut String, section: &Section, columns: usize) {
    let mut line = |line: &str| {
        for part in filled(line.trim_end(), columns, INDENT).lines() {
            out.push_str(part.trim_end());
            out.push('\n');
        }
    };
    line(&section.title.to_uppercase());
    if section.rows.is_empty() {
        line("none");
        return section.notes.iter().for_each(|note| line(note));
    }
    let mut cells: Vec<Vec<String>> = section
        .rows
        .iter()
        .map(|row| row.cells.iter().map(|cell| cell.shown()).collect())
        .collect();
    // The table of totals has no header.
    if section.name != "total" {
        cells.insert(
            0,
            section.columns.iter().map(|column| column.title.to_owned()).collect(),
        );
    }
    let is_number = |column: usize| section.rows.iter().all(|row| row.cells[column].is_number());
    let is_long = |column: usize| {
        section
            .rows
            .iter()
            .any(|row| matches!(row.cells[column], Cell::Long(_)))
    };
    let widths = widths(&cells, columns, is_long);
    for row in &cells {
        let mut text = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            if column > 0 {
                text.push_str(GAP);
            }
            let cell = cut_middle(cell, *width);
            if is_number(column) {
                let missing = width.saturating_sub(widest([&*cell]));
                text.extend(std::iter::repeat_n(' ', missing));
                text.push_str(&cell);
            } else {
                text.push_str(&padded(&cell, *width));
            }
        }
        line(&text);
    }
    for note in &section.notes {
        line(note);
    }
}

/// Returns the widths of the columns. If the table is too wide, narrows columns with long texts, the widest first.
fn widths(cells: &[Vec<String>], columns: usize, is_long: impl Fn(usize) -> bool) -> Vec<usize> {
    let count = cells.first().map_or(0, Vec::len);
    let mut widths: Vec<usize> = (0..count)
        .map(|column| widest(cells.iter().map(|row| &*row[column])))
        .collect();
    let total = |widths: &[usize]| widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1);
    while total(&widths) > columns {
        let long = (0..count).filter(|column| is_long(*column) && widths[*column] > MIN_WIDTH);
        let Some(column) = long.max_by_key(|column| widths[*column]) else {
            break;
        };
        // To save time, first narrow a very wide column to the width of the terminal, and only then by 1 at a time.
        widths[column] = (widths[column] - 1).min(columns);
    }
    widths
}

const GAP: &str = "  ";
const INDENT: usize = 4;
/// Minimum width of a column with long texts.
const MIN_WIDTH: usize = 24;
