//! Writes a report as one HTML page with charts. The page needs no script and loads nothing.

use std::fmt::Write as _;

use super::{
    OutcomeCounts,
    document::{Document, Section},
};
use crate::{
    text::{Minute, Span, grouped},
    trust::escaped,
};

/// Writes a report as HTML.
pub fn to_html(document: &Document) -> String {
    let title = escaped(document.title);
    let mut out = format!("{HEAD}<title>{title}</title><style>{STYLE}</style></head><body><main><h1>{title}</h1>");
    for section in &document.sections {
        push_section(&mut out, section);
        if section.name == "total" {
            push_timeline(&mut out, document);
        }
    }
    out.push_str("</main></body></html>\n");
    out
}

fn push_section(out: &mut String, section: &Section) {
    let _ = write!(out, "<section><h2>{}</h2>", escaped(section.title));
    match section.rows.is_empty() {
        true => out.push_str("<p>None.</p>"),
        false => push_table(out, section),
    }
    for note in &section.notes {
        let _ = write!(out, "<p>{}</p>", escaped(note));
    }
    out.push_str("</section>");
}

fn push_table(out: &mut String, section: &Section) {
    let is_number = |column: usize| section.rows.iter().all(|row| row.cells[column].is_number());
    let class = |column: usize| if is_number(column) { " class=\"number\"" } else { "" };
    let most = section
        .rows
        .iter()
        .filter_map(|row| row.counts)
        .map(|counts| counts.requests)
        .max();
    out.push_str("<div class=\"wide\" tabindex=\"0\"><table><thead><tr>");
    for (column, heading) in section.columns.iter().enumerate() {
        let _ = write!(
            out,
            "<th scope=\"col\"{}>{}</th>",
            class(column),
            escaped(heading.title)
        );
    }
    if most.is_some() {
        out.push_str("<th scope=\"col\">Share</th>");
    }
    out.push_str("</tr></thead><tbody>");
    for row in &section.rows {
        out.push_str("<tr>");
        for (column, cell) in row.cells.iter().enumerate() {
            let _ = write!(out, "<td{}>{}</td>", class(column), breakable(&cell.shown()));
        }
        if let (Some(counts), Some(most)) = (row.counts, most) {
            let _ = write!(out, "<td>{}</td>", bar(&counts, most));
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>");
}

fn push_timeline(out: &mut String, document: &Document) {
    let (width, intervals) = &document.timeline;
    let (Some((first, _)), Some((last, _))) = (intervals.first(), intervals.last()) else {
        return;
    };
    let most = intervals
        .iter()
        .map(|(_, counts)| counts.requests)
        .max()
        .unwrap_or(0)
        .max(1);
    let key = [
        ("forwarded", "forwarded"),
        ("unenforced", "not enforced"),
        ("refused", "refused"),
    ];
    let key: String = key
        .iter()
        .map(|(class, name)| format!("<span><i class=\"{class}\"></i>{name}</span> "))
        .collect();
    let _ = write!(
        out,
        "<section><h2>Requests over time</h2><p class=\"key\">{key}</p>\
         <p class=\"scale\">{} in {}</p><svg class=\"time\" viewBox=\"0 0 {} 100\" preserveAspectRatio=\"none\" \
         role=\"img\" aria-label=\"Requests over time\">",
        grouped(most),
        Span(*width),
        intervals.len() * 10,
    );
    for (index, (start, counts)) in intervals.iter().enumerate() {
        let _ = write!(
            out,
            "<g><title>{}: {} requests, {} refused, {} not enforced</title>",
            Minute(*start),
            grouped(counts.requests),
            grouped(counts.refused),
            grouped(counts.not_enforced),
        );
        let mut top = 100.0;
        for (class, number) in parts(counts) {
            let height = share(number, most);
            top -= height;
            if number > 0 {
                let x = index * 10 + 1;
                let _ = write!(
                    out,
                    "<rect class=\"{class}\" x=\"{x}\" y=\"{top:.2}\" width=\"8\" height=\"{height:.2}\"/>"
                );
            }
        }
        out.push_str("</g>");
    }
    let _ = write!(
        out,
        "</svg><p class=\"ends\"><span>{}</span><span>{}</span></p></section>",
        Minute(*first),
        Minute(*last + *width),
    );
}

/// Draws counts as a bar, which is full at `most` requests.
fn bar(counts: &OutcomeCounts, most: u64) -> String {
    let mut out =
        "<svg class=\"bar\" viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">".to_owned();
    let mut x = 0.0;
    for (class, number) in parts(counts) {
        let width = share(number, most.max(1));
        let _ = write!(
            out,
            "<rect class=\"{class}\" x=\"{x:.2}\" y=\"0\" width=\"{width:.2}\" height=\"10\"/>"
        );
        x += width;
    }
    out + "</svg>"
}

fn parts(counts: &OutcomeCounts) -> [(&'static str, u64); 3] {
    // In a damaged log, more requests can count as not enforced than as forwarded.
    let allowed = counts.forwarded().saturating_sub(counts.not_enforced);
    [
        ("forwarded", allowed),
        ("unenforced", counts.not_enforced),
        ("refused", counts.refused),
    ]
}

#[expect(clippy::cast_precision_loss, reason = "a chart needs three digits")]
fn share(number: u64, most: u64) -> f64 {
    number as f64 * 100.0 / most as f64
}

/// Escapes text for HTML, and lets the browser break the line after each `/`.
fn breakable(text: &str) -> String {
    escaped(text).replace('/', "/<wbr>")
}

const HEAD: &str = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
    <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
    <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">";
const STYLE: &str = include_str!("html/style.css");
