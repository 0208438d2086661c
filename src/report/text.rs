//! A report for a terminal.

use super::document::{Document, Section};
use crate::columns::{cut_end, cut_middle, padded, widest};

/// Writes a report in lines of at most `columns` columns.
pub fn to_text(document: &Document, columns: usize) -> String {
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
        out.push_str(cut_end(line, columns).trim_end());
        out.push('\n');
    };
    line(&section.title.to_uppercase());
    if section.rows.is_empty() {
        return line("none");
    }
    let mut cells: Vec<Vec<String>> = section
        .rows
        .iter()
        .map(|row| row.cells.iter().map(|cell| cell.shown()).collect())
        .collect();
    // The totals need no header.
    if section.name != "total" {
        cells.insert(
            0,
            section.columns.iter().map(|column| column.title.to_owned()).collect(),
        );
    }
    let is_number = |column: usize| section.rows.iter().all(|row| row.cells[column].is_number());
    let widths = widths(&cells, columns, is_number);
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
        for part in crate::columns::filled(note, columns, 0).lines() {
            line(part);
        }
    }
}

/// Returns the widths of the columns. If they do not fit, the widest columns of text get narrower, and then the last
/// columns are left out.
fn widths(cells: &[Vec<String>], columns: usize, is_number: impl Fn(usize) -> bool) -> Vec<usize> {
    let count = cells.first().map_or(0, Vec::len);
    let mut widths: Vec<usize> = (0..count)
        .map(|column| widest(cells.iter().map(|row| &*row[column])))
        .collect();
    let total = |widths: &[usize]| widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1);
    while total(&widths) > columns {
        let texts = (0..widths.len()).filter(|column| !is_number(*column));
        match texts
            .max_by_key(|column| widths[*column])
            .filter(|column| widths[*column] > MIN_WIDTH)
        {
            // At once, because a text can be very wide.
            Some(column) => widths[column] = (widths[column] - 1).min(columns),
            None if widths.len() > 2 => drop(widths.pop()),
            None => break,
        }
    }
    widths
}

const GAP: &str = "  ";
/// Minimum width of a column of text, if there is more.
const MIN_WIDTH: usize = 10;
