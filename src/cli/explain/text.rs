//! Writes the report of `robotgate explain` as text. Everything from outside is escaped for a terminal.

mod rules;
mod usage;

use std::{fmt::Write as _, time::Duration};

use super::source::Source;
use crate::{
    bot::{Enforcement, Identity},
    cli::{
        colour::{Colour, Paint},
        columns::{columns, cut},
        live::Live,
    },
    config::Sources,
    decision::{Decision, Reason, Scope, Verdict},
    explanation::{AudienceStatement, ExplainedDecision},
    origin::Reading,
    pace::{Cause, CrawlDelay},
    robots::{AgentLine, Disguise, Profile},
    text::{count, plain},
};

/// If `[egress]` forbids the URL and the robots.txt is from a file, `alone` is the report on what the robots.txt alone
/// says.
pub(super) fn write(
    report: &ExplainedDecision<'_>,
    alone: Option<&ExplainedDecision<'_>>,
    (source, tdmrep): (&Source, Option<&Live>),
    sources: &Sources,
    paint: Paint,
) -> String {
    let mut out = String::new();
    let width = columns();
    let _ = verdict(report, source, paint, width, &mut out);
    if let Some(alone) = alone {
        let _ = without_egress(alone, width, &mut out);
    }
    let deciding = alone.unwrap_or(report);
    if let Some(why) = &deciding.why {
        let _ = rules::write(deciding, why, paint, width, &mut out);
    }
    let _ = usage::write(deciding, paint, &mut out);
    let _ = source_of(source, tdmrep, paint, &mut out);
    let _ = statements(report, paint, &mut out);
    match (*sources == Sources::default(), source) {
        (true, _) => {
            out.push_str("\nNo --config was given, so the defaults apply; the running proxy may decide differently.\n")
        }
        (false, Source::Live(live)) => {
            let (origin, options) = (&report.decision.target().origin, sources.options());
            // After a failed fetch, a proxy keeps the copy that it has. Do not suggest `forget`: it would delete this
            // copy, and the site would send no other one.
            let _ = match live.answer().holds().fails() {
                true => writeln!(
                    out,
                    "\nThe running proxy may still use a copy of an earlier robots.txt. To see it:\n  \
                     robotgate cache show {origin}{options}",
                ),
                false => writeln!(
                    out,
                    "\nThe running proxy may still use an older copy or a remembered failure. To see it, or to have the \
                     robots.txt fetched again:\n  robotgate cache show {origin}{options}\n  \
                     robotgate cache forget {origin}{options}",
                ),
            };
        }
        (false, Source::File(_) | Source::Unasked) => {}
    }
    out
}

fn source_of(source: &Source, tdmrep: Option<&Live>, paint: Paint, out: &mut String) -> std::fmt::Result {
    match source {
        Source::Unasked => Ok(()),
        Source::File(file) => {
            writeln!(out, "\nRead from {}, {}.", file.name(), count(file.body.len(), "byte"))?;
            if file.cut {
                writeln!(out, "The file is longer, but robotgate uses only its first 500 KiB.")?;
            }
            Ok(())
        }
        Source::Live(live) => {
            writeln!(out, "\n{}", paint.in_colour(Colour::Strong, "Fetched:"))?;
            write!(out, "{}", live.way())?;
            tdmrep.map_or(Ok(()), |tdmrep| write!(out, "{}", tdmrep.way()))
        }
    }
}

fn without_egress(alone: &ExplainedDecision<'_>, width: usize, out: &mut String) -> std::fmt::Result {
    let start = "Without [egress], this would decide: ";
    match alone.why.as_ref().and_then(|why| why.explanation.rule.as_ref()) {
        Some(rule) => {
            let start = format!("{start}line {}: ", rule.line);
            writeln!(out, "{start}{}", cut(&rule.text, width.saturating_sub(start.len())))
        }
        None => writeln!(out, "{start}{}", alone.decision.sentence()),
    }
}

fn verdict(
    report: &ExplainedDecision<'_>,
    source: &Source,
    paint: Paint,
    width: usize,
    out: &mut String,
) -> std::fmt::Result {
    let decision = report.decision;
    let word = match decision.verdict {
        Verdict::Allow => paint.in_colour(Colour::Good, "ALLOWED").to_string(),
        _ if decision.forwarded => paint.in_colour(Colour::Bad, "DISALLOWED, but forwarded").to_string(),
        Verdict::Deny | Verdict::Unverifiable | Verdict::Defer => paint.in_colour(Colour::Bad, "REFUSED").to_string(),
    };
    writeln!(
        out,
        "{word}  {}",
        paint.in_colour(Colour::Strong, plain(report.url, MAX_URL))
    )?;
    let rule = report.why.as_ref().and_then(|why| why.explanation.rule.as_ref());
    if let Some(rule) = rule {
        let line = format!("line {}: ", rule.line);
        writeln!(out, "{line}{}", cut(&rule.text, width.saturating_sub(line.len())))?;
    }
    let usage = decision.usage.as_deref();
    if let Some(refused) = usage.and_then(|usage| usage.refused.as_ref()) {
        writeln!(out, "{refused}")?;
    }
    let agent = plain(report.user_agent, MAX_VALUE);
    match &decision.question.subject.identity {
        Identity::Bot(bot) => writeln!(
            out,
            "for the bot \"{}\", found by \"{agent}\"",
            plain(&bot.name, MAX_VALUE)
        )?,
        Identity::Token(token) if *token == report.user_agent => writeln!(out, "for {agent}")?,
        Identity::Token(token) => writeln!(out, "for {}, found in \"{agent}\"", plain(token, MAX_VALUE))?,
        Identity::Unidentified(cause) => writeln!(out, "for no bot: {cause} (\"{agent}\")")?,
        Identity::Refused(mismatch) => writeln!(out, "for no bot: {mismatch} (\"{agent}\")")?,
    }
    match source.detour() {
        Some(detour) => writeln!(
            out,
            "The site's robots.txt {detour}, which is treated as no robots.txt: everything is allowed."
        )?,
        None => match prohibited(decision) {
            Some(error) => writeln!(out, "{}: {error}.", decision.sentence().trim_end_matches('.'))?,
            None => writeln!(out, "{}", decision.sentence())?,
        },
    }
    if let Some(disguise) = report.disguise {
        unmask(report, source, disguise, out)?;
    }
    if decision.forwarded && decision.verdict != Verdict::Allow {
        let why = match (decision.enforcement, decision.exception()) {
            (Enforcement::Report, _) => "the enforcement is \"report\"",
            (_, Some(_)) => "[[https.tunnel]] lets tunnels to this host through",
            (_, None) => "https.unverifiable is \"allow\"",
        };
        writeln!(out, "The proxy forwards and logs the request, because {why}.")?;
    }
    if let Some((reading, path)) = report.why.as_ref().and_then(|why| why.read_as.as_ref())
        && let Some(phrase) = reading.phrase()
    {
        let path = String::from_utf8_lossy(path);
        let key = match reading {
            Reading::Strict(_) => " (robots.strict-paths = false turns this off)",
            _ => "",
        };
        writeln!(out, "The decision is based on {phrase}: {}{key}", plain(&path, MAX_URL))?;
    }
    if decision.question.terms.policy.profile == Profile::Rfc9309 {
        writeln!(
            out,
            "The file is read to the letter of RFC 9309, not as Google reads it."
        )?;
    }
    if let Some((delay, by)) = delay(decision) {
        let seconds = delay.as_secs_f64();
        writeln!(
            out,
            "The proxy sends the request at least {seconds} s after the previous request to this site ([pace]: {by})."
        )?;
    }
    if let Some(proofs) = &report.proofs {
        writeln!(
            out,
            "Note: the client has to prove that it is this bot, by {proofs}. Without proof the proxy refuses it."
        )?;
    }
    match (&decision.question.scope, decision.reason) {
        (
            Scope::Tunnel {
                exception: Some(reason),
            },
            _,
        ) => writeln!(
            out,
            "Note: an entry of [[https.tunnel]] makes a CONNECT to this host a tunnel. The proxy sees no path there \
             and decides for the whole site. The entry's reason: {}",
            plain(reason, MAX_VALUE)
        ),
        (Scope::Tunnel { exception: None }, Reason::ConnectRefused) | (Scope::Path { .. }, _) => Ok(()),
        (Scope::Tunnel { exception: None }, _) => writeln!(
            out,
            "Note: with https.mode = \"tunnel\" the proxy sees no path inside a CONNECT and decides for the whole \
             site."
        ),
    }
}

/// Returns why bots may not reach the site, or that its Crawl-delay is too long.
fn prohibited(decision: &Decision) -> Option<String> {
    match decision.reason {
        // If the host's name is allowed, but its resolved address is forbidden, the field `prohibited` is not set. Then
        // the error of the fetch says why.
        Reason::Egress => decision.shown_error(),
        _ => decision.prohibited.clone(),
    }
}

/// Returns the delay after the previous request to the site, and what demands it: a setting, or the site itself.
fn delay(decision: &Decision) -> Option<(Duration, &'static str)> {
    let policy = decision.question.terms.pace.filter(|_| decision.forwarded)?;
    let limits = decision.limits().ok()??;
    let by = match limits.gap_cause {
        _ if limits.gap.is_zero() => return None,
        Cause::BotDelay => "the bot's delay",
        Cause::CrawlDelay if limits.crawl_delay > policy.crawl_delay_max => {
            "the site's Crawl-delay, up to pace.crawl-delay-max"
        }
        Cause::CrawlDelay => "the site's Crawl-delay",
        _ => "pace.delay",
    };
    Some((limits.gap, by))
}

fn unmask(report: &ExplainedDecision<'_>, source: &Source, disguise: Disguise, out: &mut String) -> std::fmt::Result {
    let what = match source {
        Source::Live(_) => "What the site sent",
        Source::File(_) | Source::Unasked => "What was read",
    };
    let is = match disguise {
        Disguise::Html => "a web page",
        Disguise::Utf16 => "text in UTF-16",
        Disguise::Binary => "no text",
    };
    write!(out, "{what} is {is}, not a robots.txt")?;
    match &report.why {
        Some(why) if why.explanation.considered > 0 => {
            writeln!(out, ": robotgate applies only the lines that it can read as rules.")
        }
        Some(_) => writeln!(out, ": it has no rules for this bot."),
        None => writeln!(out, "."),
    }
}

fn statements(report: &ExplainedDecision<'_>, paint: Paint, out: &mut String) -> std::fmt::Result {
    if report.statements.is_empty() {
        return Ok(());
    }
    // With `[pace]` or with purposes, some of these lines can decide. The words "which do not decide this" would then
    // be wrong.
    let decision = report.decision;
    let heading = match decision.question.terms.pace {
        Some(policy) if policy.crawl_delay == CrawlDelay::Enforce => "Other lines of the file:",
        _ if decision.usage.is_some() => "Other lines of the file:",
        _ => "Other lines of the file, which do not decide this:",
    };
    writeln!(out, "\n{}", paint.in_colour(Colour::Strong, heading))?;
    // Lines for this bot come first, because the list may be cut.
    let (applying, others): (Vec<_>, Vec<_>) = report
        .statements
        .iter()
        .partition(|statement| statement.applies == Some(true));
    for listed in applying.iter().chain(&others).take(MAX_STATEMENTS) {
        let statement = &listed.statement;
        let text = plain(&statement.value, MAX_VALUE);
        write!(out, "  line {:<4} {}: {text}", statement.line, statement.kind.as_str())?;
        match whom(listed) {
            Some(whom) => writeln!(out, "  {}", paint.in_colour(Colour::Faint, format_args!("({whom})")))?,
            None => writeln!(out)?,
        }
    }
    more(report.statements.len(), MAX_STATEMENTS, "line", out)
}

/// Says for which bots a statement is. Returns `None` for a statement about the whole file.
fn whom(listed: &AudienceStatement<'_>) -> Option<String> {
    let statement = &listed.statement;
    if !statement.kind.is_of_a_group() {
        return None;
    }
    Some(match listed.applies {
        _ if statement.agents.is_empty() => "for no bot: it stands before the first user-agent".to_owned(),
        Some(true) => "for this bot".to_owned(),
        Some(false) => format!("only for {}", names(&statement.agents)),
        None => format!("for {}", names(&statement.agents)),
    })
}

fn names(agents: &[AgentLine<'_>]) -> String {
    let shown: Vec<String> = agents
        .iter()
        .take(MAX_NAMES)
        .map(|agent| plain(&agent.name(), MAX_NAME).into_owned())
        .collect();
    let more = agents.len().saturating_sub(MAX_NAMES);
    match more {
        0 => shown.join(", "),
        _ => format!("{} and {more} more", shown.join(", ")),
    }
}

fn more(all: usize, shown: usize, what: &str, out: &mut String) -> std::fmt::Result {
    match all.saturating_sub(shown) {
        0 => Ok(()),
        1 => writeln!(out, "  and 1 more {what}"),
        more => writeln!(out, "  and {more} more {what}s"),
    }
}

/// Maximum lengths in bytes of what is printed: a URL, a value, and the name of a bot.
const MAX_URL: usize = 500;
const MAX_VALUE: usize = 200;
const MAX_NAME: usize = 60;
const MAX_STATEMENTS: usize = 12;
const MAX_NAMES: usize = 4;
