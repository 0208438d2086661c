//! Writes what the site says about using its content for the bot's purposes, and what robotgate makes of that.

use std::fmt::{Result, Write as _};

use crate::{
    cli::{
        colour::{Colour, Paint},
        columns::padded,
    },
    decision::UsageReport,
    explanation::ExplainedDecision,
    usage::{UseRefusal, UseSource, UseStatement, VocabularyPolicy},
};

pub(super) fn write(report: &ExplainedDecision<'_>, paint: Paint, out: &mut String) -> Result {
    let Some(usage) = report.decision.usage.as_deref() else {
        return Ok(());
    };
    writeln!(
        out,
        "\n{}",
        paint.in_colour(Colour::Strong, "What the site says about the use:")
    )?;
    let mut rows = Vec::new();
    for purpose in usage.purposes.iter() {
        let said = usage.said.iter().filter(|statement| statement.purpose == purpose);
        let before = rows.len();
        rows.extend(said.map(|statement| (purpose, shown(statement), effect(statement, usage))));
        if rows.len() == before {
            let effect = match usage.refused == Some(UseRefusal::Unknown(purpose)) {
                true => "so it is refused (usage.unknown)",
                false => "so nothing forbids it",
            };
            rows.push((purpose, "nothing".to_owned(), effect));
        }
    }
    let column = |of: fn(&Row) -> usize| rows.iter().map(of).max().unwrap_or(0);
    let widths = (column(|row| row.0.as_str().len()), column(|row| row.1.len()));
    for (purpose, said, effect) in &rows {
        let (purpose, said) = (padded(purpose.as_str(), widths.0), padded(said, widths.1));
        writeln!(out, "  {purpose}  {said}  {effect}")?;
    }
    match report.tdmrep_asked {
        Some(false) => writeln!(
            out,
            "With --robots, this command does not ask the site for its /.well-known/tdmrep.json, which may forbid the \
             purpose tdm."
        ),
        Some(true) | None => Ok(()),
    }
}

type Row = (crate::usage::Purpose, String, &'static str);

fn shown(statement: &UseStatement) -> String {
    let text = statement.text();
    match statement.source {
        UseSource::Line(line) => format!("line {line}: {text}"),
        UseSource::Entry(entry) => format!("entry {entry} of tdmrep.json: {text}"),
        UseSource::Field(field) => format!("{field}: {text}"),
    }
}

fn effect(statement: &UseStatement, usage: &UsageReport) -> &'static str {
    match (statement.allowed, statement.policy) {
        (true, _) => "allowed",
        (false, VocabularyPolicy::Enforce) => "forbidden, enforced",
        (false, _) if usage.refused == Some(UseRefusal::Unknown(statement.purpose)) => {
            "forbidden, and refused because usage.unknown is \"deny\""
        }
        (false, _) => "forbidden, only reported",
    }
}
