//! Writes which rules are behind a decision: the lines around the rule that decided, and the rules that lost.

use std::fmt::{Result, Write as _};

use super::{MAX_NAMES, more, names};
use crate::{
    cli::{
        colour::{Colour, Paint},
        columns::{cut, padded, widest},
        explain::excerpt::Excerpt,
    },
    explanation::{ExplainedDecision, Why},
    robots::{Choice, Competitor, Explanation, LossReason},
    text::{count, plain},
};

pub(super) fn write(
    report: &ExplainedDecision<'_>,
    why: &Why<'_>,
    paint: Paint,
    width: usize,
    out: &mut String,
) -> Result {
    let explanation = &why.explanation;
    let named: Vec<u32> = naming(explanation).collect();
    if !named.is_empty() {
        writeln!(out)?;
        let rule = why.line;
        // Many user-agent lines can name the bot, so show only a few: the last ones before the rule or, without a rule,
        // the first ones.
        let end = match rule {
            Some(rule) => named.partition_point(|line| *line < rule),
            None => named.len().min(MAX_NAMES),
        };
        let excerpt = Excerpt {
            body: why.body,
            rule,
            agents: &named[end.saturating_sub(MAX_NAMES)..end],
            width,
        };
        excerpt.write(out, paint);
    }
    writeln!(out)?;
    if let Some(rule) = explanation.rule.as_ref().filter(|rule| rule.directory) {
        writeln!(
            out,
            "A rule that allows an index page also allows its directory: {}",
            rule.pattern
        )?;
    }
    considered(report, explanation, out)?;
    losers(why, width, paint, out)
}

/// Returns the numbers of the user-agent lines that name the bot or, if none does, `*`.
fn naming<'e>(explanation: &'e Explanation<'_>) -> impl Iterator<Item = u32> + 'e {
    let agents = explanation.groups.iter().flat_map(|group| &group.agents);
    agents
        .filter(|agent| agent.names(explanation.choice))
        .map(|agent| agent.line)
}

fn considered(report: &ExplainedDecision<'_>, explanation: &Explanation<'_>, out: &mut String) -> Result {
    let agent = plain(report.decision.token(), super::MAX_NAME);
    let Some(line) = naming(explanation).next() else {
        return writeln!(
            out,
            "The file has no group for {agent} and none for *, so it forbids nothing."
        );
    };
    let rules = count(explanation.considered, "rule");
    let groups = match explanation.groups.as_slice() {
        [group] => format!("the group of {}", names(&group.agents)),
        groups => format!("{} groups", groups.len()),
    };
    write!(out, "Considered {rules} in {groups} (line {line}")?;
    let others: Vec<String> = naming(explanation)
        .skip(1)
        .take(MAX_NAMES)
        .map(|line| line.to_string())
        .collect();
    if !others.is_empty() {
        write!(out, ", {}", others.join(", "))?;
    }
    match explanation.choice {
        Choice::Everyone if agent != "*" => writeln!(out, "), as no group names {agent}."),
        _ => writeln!(out, ")."),
    }
}

fn losers(why: &Why<'_>, width: usize, paint: Paint, out: &mut String) -> Result {
    let explanation = &why.explanation;
    let all = &explanation.competitors;
    let shown: Vec<_> = all
        .iter()
        .filter(|other| is_of_interest(other))
        .take(MAX_LOSERS)
        .collect();
    if shown.is_empty() {
        return Ok(());
    }
    let title = match explanation.rule {
        Some(_) => "Rules that lost",
        None => "The nearest rules",
    };
    let path = match &why.read_as {
        Some((_, path)) => format!(", compared with {}", cut(&String::from_utf8_lossy(path), MAX_PART)),
        None => String::new(),
    };
    writeln!(out, "\n{}{path}:", paint.in_colour(Colour::Strong, title))?;
    rows(explanation, &shown, width, out)?;
    more(all.len(), shown.len(), "rule", out)
}

/// Returns whether to show a rule. A rule that does not match is shown only in two cases: the path matches the first
/// two bytes of the pattern, and neither of these is a `*`; or the path matches the whole pattern except the final `$`,
/// and this part has at least two bytes.
fn is_of_interest(other: &Competitor<'_>) -> bool {
    let pattern = &*other.rule.pattern;
    match other.lost {
        LossReason::DoesNotMatch { fits } => other.literal_fit() > 1 || (fits > 1 && pattern.get(fits..) == Some("$")),
        _ => true,
    }
}

/// Writes each rule and the reason why it lost. If the reasons are too wide to stand beside the rules, each reason has
/// its own row.
fn rows(explanation: &Explanation<'_>, shown: &[&Competitor<'_>], width: usize, out: &mut String) -> Result {
    let digits = shown.iter().map(|other| other.rule.line.to_string().len()).max();
    let digits = digits.unwrap_or(0).max(4);
    let lead = "  line ".len() + digits + 1;
    let reasons: Vec<_> = shown.iter().map(|other| reason(explanation, other, width)).collect();
    let longest = widest(reasons.iter().map(String::as_str));
    let beside = width.saturating_sub(lead + longest + 2);
    let room = if beside < MIN_TEXT {
        width - lead
    } else {
        beside.min(width / 2)
    };
    let texts: Vec<_> = shown.iter().map(|other| cut(&other.rule.text, room)).collect();
    let column = widest(texts.iter().map(String::as_str));
    for ((other, text), reason) in shown.iter().zip(texts).zip(reasons) {
        let line = other.rule.line;
        if column <= beside {
            writeln!(out, "  line {line:<digits$} {}  {reason}", padded(&text, column))?;
        } else {
            writeln!(out, "  line {line:<digits$} {text}\n{:INDENT$}{reason}", "")?;
        }
    }
    Ok(())
}

fn reason(explanation: &Explanation<'_>, other: &Competitor<'_>, width: usize) -> String {
    let bytes = other.rule.pattern.len();
    match (other.lost, &explanation.rule) {
        (LossReason::ShorterMatch, Some(won)) => {
            format!(
                "matches, but is shorter: {bytes} against {}",
                count(won.pattern.len(), "byte")
            )
        }
        (LossReason::ShorterMatch, None) => "matches, but is shorter".to_owned(),
        (LossReason::TieAllowWins, _) => "matches and is as long, but then an allow wins".to_owned(),
        (LossReason::TieEarlier, _) => "matches and is as long, but stands later".to_owned(),
        (LossReason::DoesNotMatch { fits: 0 | 1 }, _) => "does not match".to_owned(),
        (LossReason::DoesNotMatch { fits }, _) => {
            // `get` does not return `None`: the pattern is ASCII, so `fits` is never in the middle of a character.
            let part = other.rule.pattern.get(..fits).unwrap_or_default();
            format!("does not match: fits only up to {}", cut(part, MAX_PART.min(width / 3)))
        }
        (LossReason::NeverMatches, _) => "never matches: a pattern has to begin with / or *".to_owned(),
    }
}

const MAX_LOSERS: usize = 5;
const MAX_PART: usize = 60;
const MIN_TEXT: usize = 16;
const INDENT: usize = 4;
