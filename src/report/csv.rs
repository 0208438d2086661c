//! Writes a report as one table of comma-separated values (RFC 4180). Its first column names the table that a row is
//! from.

use super::document::{Document, NAMES};
use crate::text::no_formula;

/// Writes a report as CSV.
pub fn to_csv(document: &Document) -> String {
    let mut out = String::new();
    push_row(&mut out, "table", NAMES.iter().map(|name| (*name).to_owned()));
    for section in &document.sections {
        for row in &section.rows {
            let cell = |name: &str| {
                let mut cells = section.columns.iter().zip(&row.cells);
                cells
                    .find(|(column, _)| column.name == name)
                    .map_or(String::new(), |(_, cell)| no_formula(&cell.exact()).into_owned())
            };
            push_row(&mut out, section.name, NAMES.iter().map(|name| cell(name)));
        }
    }
    out
}

fn push_row(out: &mut String, table: &str, cells: impl Iterator<Item = String>) {
    out.push_str(table);
    for cell in cells {
        out.push(',');
        push_quoted(out, &cell);
    }
    out.push_str("\r\n");
}

fn push_quoted(out: &mut String, cell: &str) {
    if !cell.contains([',', '"', '\n', '\r', ' ', '\'']) {
        return out.push_str(cell);
    }
    out.push('"');
    out.push_str(&cell.replace('"', "\"\""));
    out.push('"');
}
