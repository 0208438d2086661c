//! `robotgate what-if`: decides the requests of an audit log again with, for example, another configuration, and lists
//! the decisions that would be different.

use std::{
    fmt::Write as _,
    io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use super::{
    Overrides, complaint, finish,
    logs::{LogError, LogReader, PeriodArgs},
    source,
};
use crate::{
    audit::basis,
    config::{Config, ConfigError},
    evidence::{EvidenceReader, FileError},
    files::Unreadable,
    origin::Origin,
    replay::{
        Cases, DecisionGroup, Effect, Finding, LogPosition, LoggedDecision, Outline, Replayed, Replayer, Scenario,
        Summary, SummaryOutput,
    },
    report::time_of,
    text::{grouped, plain_message},
};

/// Say what would have been decided with another configuration, robots.txt or User-Agent
///
/// Makes each decision of an audit log again with the changes that you name, and compares the result with the log. The
/// old robots.txt files and configurations come from the store of evidence. Opens no connection, and can run while the
/// proxy runs.
///
/// --set changes a key of the configuration of --config. Without --config, the other keys come from ROBOTGATE_CONFIG or
/// have their defaults, and not from the old configurations.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
#[command(group = clap::ArgGroup::new("change").required(true).multiple(true).args(["config", "set", "robots", "agent"]))]
pub struct WhatIfArgs {
    /// Files of the audit log, also rotated and .gz ones ("-" is standard input)
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<PathBuf>,
    /// Decide every request with this configuration. Of the files that this configuration names, the command reads only
    /// the store of evidence
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    overrides: Overrides,
    /// Assume that the site had this robots.txt, regardless of what it sent (repeatable)
    #[arg(long, value_name = "ORIGIN=FILE", value_parser = site)]
    robots: Vec<(Origin, PathBuf)>,
    /// Assume that every request had this User-Agent
    #[arg(long, value_name = "USER-AGENT")]
    agent: Option<String>,
    /// Leave out the decisions for other bots than this one (repeatable), named as in the log's field "bot"
    #[arg(long, value_name = "BOT")]
    bot: Vec<String>,
    /// The file of the store of evidence. By default, evidence.path of the configuration
    #[arg(long, value_name = "FILE")]
    evidence: Option<PathBuf>,
    #[command(flatten)]
    period: PeriodArgs,
    /// List every group of changed decisions, instead of only the 20 largest groups
    #[arg(long)]
    all: bool,
    /// Instead of the result, print one line for each decision that changes: time, id, effect, bot, URL, and the new
    /// rule or reason, with tabs between them. Decisions that cannot be made again have the effect "undecided", and in
    /// the last column why
    #[arg(long, conflicts_with_all = ["json", "all", "expect"])]
    list: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
    // The help of this option is not a doc comment, because rustdoc would parse its brackets as a link.
    #[arg(help = "Instead of the result, print [[expect]] cases: one for each bot, site and rule",
        long, value_enum, value_name = "WHICH", num_args = 0..=1, require_equals = true,
        default_missing_value = "changed", conflicts_with_all = ["json", "all"])]
    expect: Option<CaseSelection>,
}

/// Which decisions `what-if` prints as `[[expect]]` cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum CaseSelection {
    /// Decisions that change
    Changed,
    /// All decisions that can be made again
    All,
}

#[derive(Debug, thiserror::Error)]
enum WhatIfError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("cannot read {}: {}", path.display(), Unreadable(error))]
    Robots { path: PathBuf, error: io::Error },
    #[error(
        "no decision in these logs is for a bot with the name {0:?}; --bot takes the log's field \"bot\", with its case"
    )]
    NoBot(String),
    #[error("--robots names {0} twice")]
    Twice(Origin),
    #[error(
        "this configuration has no store of evidence, which what-if needs; with --evidence FILE, name the store of the \
         proxy that wrote the log"
    )]
    NoEvidence,
    #[error("the store of evidence {} cannot be read: {error}{}", path.display(), match (error, named) {
        (FileError::Io(error), false) if error.kind() == io::ErrorKind::NotFound => {
            "; use --evidence FILE (the store of the proxy that wrote the log)"
        }
        _ => error.advice_for_reader(),
    })]
    Evidence {
        path: PathBuf,
        error: FileError,
        /// Whether the user named the file with `--evidence`.
        named: bool,
    },
}

/// Runs the command. Fails if a decision would be different, or if an input is invalid.
pub fn run(args: &WhatIfArgs) -> ExitCode {
    finish(output(args))
}

/// The `bool` says whether the decisions stay the same. A decision that cannot be made again counts as unchanged.
fn output(args: &WhatIfArgs) -> Result<(String, bool), WhatIfError> {
    let sources = args.overrides.sources(args.config.as_deref())?;
    let is_change = args.config.is_some() || !args.overrides.is_empty();
    let config = (is_change || args.evidence.is_none()).then(|| Config::load_alone(&sources));
    let config = config.transpose()?;
    let path = store(args, config.as_ref())?;
    let config = config.filter(|_| is_change);
    let change = Scenario::new(config, texts(&args.robots)?, args.agent.clone());
    let unreadable = |error| WhatIfError::Evidence {
        path: path.clone(),
        error,
        named: args.evidence.is_some(),
    };
    let mut replayer = Replayer::new(EvidenceReader::open(&path).map_err(unreadable)?);
    let (mut summary, mut cases, mut list) = (Summary::default(), Cases::default(), String::new());
    let period = args.period.period();
    let mut unseen = args.bot.clone();
    let is_limited = period.since.is_some() || period.until.is_some();
    for path in &args.logs {
        let mut log = LogReader::open(path)?;
        while let Some((first, lines)) = log.next_lines()? {
            let mut is_wanted = |line: &[u8]| {
                (!is_limited || time_of(line).is_none_or(|time| period.contains(time)))
                    && (args.bot.is_empty() || is_of_bot(line, &args.bot, &mut unseen))
            };
            let (numbers, lines): (Vec<u64>, Vec<&[u8]>) =
                (first..).zip(lines).filter(|(_, line)| is_wanted(line)).unzip();
            let results = replayer.what_if(&lines, &change, || false).map_err(unreadable)?;
            summary.pace_changes = summary.pace_changes || replayer.changes_pace(&results, &change);
            for (line, replayed) in numbers.into_iter().zip(&results) {
                summary.add(replayed, || {
                    let log = path.display().to_string();
                    Some(LogPosition { log, line })
                });
                let (logged, effect, decision) = match replayed {
                    Replayed::Decision(logged, Finding::Decided(effect, decision)) => (logged, effect, decision),
                    Replayed::Decision(logged, Finding::Unknown(why)) if args.list => {
                        let bot = logged.bot.as_deref();
                        add_to_list(&mut list, logged, "undecided", bot, &why.to_string());
                        continue;
                    }
                    _ => continue,
                };
                if args.list && *effect != Effect::Same {
                    let rule = decision.shown_rule();
                    let basis = rule.as_deref().unwrap_or(decision.reason.as_str());
                    add_to_list(
                        &mut list,
                        logged,
                        effect.as_str(),
                        decision.shown_bot().as_deref(),
                        basis,
                    );
                }
                if let Some(which) = args.expect
                    && (which == CaseSelection::All || *effect != Effect::Same)
                    && let Ok(config) = replayer.config_of(logged, Some(&change))
                {
                    cases.add(logged, decision, config, change.agent());
                }
            }
        }
    }
    if let Some(bot) = unseen.pop() {
        return Err(WhatIfError::NoBot(bot));
    }
    let undecided: u64 = summary.unknown.values().sum();
    if args.list && undecided > 0 {
        complaint::say(&format_args!(
            "decisions that cannot be made again: {}; the list has them as undecided (the store of evidence is {})",
            grouped(undecided),
            path.display()
        ));
    }
    if args.list && summary.unreadable_lines > 0 {
        complaint::say(&format_args!(
            "lines that are not a JSON record of the log: {}",
            grouped(summary.unreadable_lines)
        ));
    }
    let limit = if args.all { usize::MAX } else { LISTED };
    let text = match args.expect {
        Some(_) => case_file(&summary, &cases),
        None if args.list => list,
        None if args.json => {
            // Serializing does not fail, because all keys of the maps are strings.
            serde_json::to_string(&summary.report(limit)).unwrap_or_default() + "\n"
        }
        None => shown(&summary.report(limit), &path, is_change && sources.file.is_none()),
    };
    Ok((text, summary.changed() == 0))
}

/// Returns whether the line is about one of the `bots`, and removes this bot from `unseen`. A line that is no JSON counts
/// as one about them, so that the command reports it.
fn is_of_bot(line: &[u8], bots: &[String], unseen: &mut Vec<String>) -> bool {
    #[derive(serde::Deserialize)]
    struct Named {
        bot: Option<String>,
    }
    let Ok(Named { bot }) = serde_json::from_slice(line) else {
        return true;
    };
    unseen.retain(|name| bot.as_ref() != Some(name));
    bot.is_some_and(|bot| bots.contains(&bot))
}

fn add_to_list(list: &mut String, logged: &LoggedDecision<'_>, effect: &str, bot: Option<&str>, basis: &str) {
    let line = [&logged.time, &logged.id, effect, bot.unwrap_or("-"), &logged.url, basis];
    // `plain_message` escapes the tabs inside a field, so tabs only separate fields.
    let line = line.map(|field| plain_message(field, MAX_LINE));
    let _ = writeln!(list, "{}", line.join("\t"));
}

fn store(args: &WhatIfArgs, config: Option<&Config>) -> Result<PathBuf, WhatIfError> {
    if let Some(path) = &args.evidence {
        return Ok(path.clone());
    }
    let evidence = config.and_then(|config| config.evidence.clone());
    Ok(evidence.ok_or(WhatIfError::NoEvidence)?.path)
}

fn texts(robots: &[(Origin, PathBuf)]) -> Result<Vec<(Origin, Vec<u8>)>, WhatIfError> {
    let mut texts: Vec<(Origin, Vec<u8>)> = Vec::new();
    for (origin, path) in robots {
        if texts.iter().any(|(other, _)| other == origin) {
            return Err(WhatIfError::Twice(origin.clone()));
        }
        let text = source::of_file(path).map_err(|error| WhatIfError::Robots {
            path: path.clone(),
            error,
        })?;
        texts.push((origin.clone(), text));
    }
    Ok(texts)
}

fn site(text: &str) -> Result<(Origin, PathBuf), String> {
    let form = || "write the site and the file, like https://a.example=new.txt".to_owned();
    let (origin, path) = text.split_once('=').ok_or_else(form)?;
    let name = origin.strip_suffix('/').unwrap_or(origin);
    let origin = name.parse().map_err(|_| {
        format!("{name:?} is not an origin; write a scheme, a host and, if needed, a port, like https://a.example")
    })?;
    match path.is_empty() {
        true => Err(form()),
        false => Ok((origin, Path::new(path).to_owned())),
    }
}

/// `is_default` says whether the changed configuration has no file, so that most keys have their defaults.
fn shown(report: &SummaryOutput<'_>, evidence: &Path, is_default: bool) -> String {
    let summary = report.summary;
    let decisions = if summary.decisions == 1 {
        "decision"
    } else {
        "decisions"
    };
    let mut text = format!("{} {decisions}\n", grouped(summary.decisions));
    let mut count = |number: u64, what: &str| {
        if number > 0 {
            let _ = writeln!(text, "{:>11} {what}", grouped(number));
        }
    };
    count(summary.refused, "would be refused instead of forwarded");
    count(summary.forwarded, "would be forwarded instead of refused");
    count(
        summary.verdict,
        "would get a different verdict, but be forwarded or refused as before",
    );
    count(
        summary.basis,
        "would have a different rule or reason, but the same result",
    );
    count(summary.same, "would stay the same");
    count(
        summary.as_logged,
        "taken as logged, because an address, a credential or the pace decided",
    );
    for (why, number) in &summary.unknown {
        let url = summary.unknown_urls.get(why).map_or("", String::as_str);
        let more = if *number > 1 { "; --list shows all" } else { "" };
        count(
            *number,
            &format!(
                "cannot be decided: {why} (for example for {}{more})",
                plain_message(url, MAX_LINE)
            ),
        );
    }
    count(summary.unreadable_lines, "left out: not a JSON record of the log");
    if is_default {
        text.push_str("note: no --config was given, so all keys that are not set have their defaults\n");
    }
    if summary.lacks_copy {
        let _ = writeln!(
            text,
            "note: the store of evidence is {}; if another proxy wrote the log, name its store with --evidence FILE",
            evidence.display()
        );
    }
    if summary.lacks_robots {
        text.push_str("note: with --robots ORIGIN=FILE, you can name the robots.txt of a site\n");
    }
    if summary.pace_changes {
        text.push_str(
            "note: [pace] changes, but turns at sites are not simulated: some requests may also wait or be refused\n",
        );
    }
    for group in &report.groups {
        show(&mut text, group);
    }
    let unlisted = report.groups_total - report.groups.len();
    if unlisted > 0 {
        let groups = if unlisted == 1 { "group" } else { "groups" };
        let _ = writeln!(
            text,
            "\n... and {} more {groups} (--all lists them)",
            grouped(unlisted as u64)
        );
    }
    if summary.ungrouped > 0 {
        let _ = writeln!(
            text,
            "\n... and {} decisions in other groups",
            grouped(summary.ungrouped)
        );
    }
    text
}

fn show(text: &mut String, group: &DecisionGroup) {
    let bot = match &group.bot {
        Some(bot) => format!("for {bot}"),
        None => "without a bot".to_owned(),
    };
    let new_bot = match &group.new_bot {
        new if *new == group.bot => String::new(),
        Some(new) => format!(" (would be {new})"),
        None => " (would be without a bot)".to_owned(),
    };
    let decisions = if group.decisions == 1 { "decision" } else { "decisions" };
    let example = &group.example;
    let position = example
        .position
        .as_ref()
        .map_or_else(String::new, |position| format!(", {}:{}", position.log, position.line));
    let mut line = |line: String| {
        let _ = writeln!(text, "{}", plain_message(&line, MAX_LINE));
    };
    line(String::new());
    line(format!(
        "{:>11} {decisions} {bot}{new_bot} at {}",
        grouped(group.decisions),
        group.origin
    ));
    line(format!("            logged {}", outline(&group.was)));
    line(format!("            new    {}", outline(&group.now)));
    line(format!("            e.g.   {} ({}{position})", example.url, example.id));
}

fn outline(outline: &Outline) -> String {
    let basis = basis(&outline.reason, outline.rule.as_deref());
    let passes = match (&*outline.verdict, outline.forwarded) {
        ("allow", true) | ("deny", false) => "",
        (_, true) => " (forwarded)",
        (_, false) => " (refused)",
    };
    format!("{}{passes}: {basis}", outline.verdict)
}

fn case_file(summary: &Summary, cases: &Cases) -> String {
    let mut text = format!(
        "# {} {} from {} decisions; {} of the decisions change.\n",
        grouped(cases.count() as u64),
        if cases.count() == 1 { "case" } else { "cases" },
        grouped(summary.decisions),
        grouped(summary.changed()),
    );
    if cases.impossible() > 0 {
        let impossible = grouped(cases.impossible() as u64);
        let _ = writeln!(
            text,
            "# Combinations of a bot, a site and a rule without a case, because their decision depends on more than a case can express: {impossible}"
        );
    }
    text + "\n" + cases.text()
}

/// How many groups of changed decisions are listed without `--all`.
const LISTED: usize = 20;
/// Maximum length of a line in the report, in bytes.
const MAX_LINE: usize = 2 * 1024;

const AFTER_HELP: &str = "\
Exit status: 0 if no decision changes, even if some cannot be decided; 1 if a decision changes, or an input is \
invalid; 2 for a usage error.

Try it:
  robotgate what-if --config new.toml /var/log/robotgate/audit.jsonl
  robotgate what-if --robots https://example.com=new.txt audit.jsonl audit.jsonl.1.gz
  robotgate what-if --config new.toml --since 7d --list audit.jsonl*
  robotgate what-if --config new.toml --expect audit.jsonl >> new.toml";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_has_an_origin_and_a_file() {
        let site = |text| site(text).map(|(origin, path)| (origin.to_string(), path.display().to_string()));
        let found = |origin: &str, path: &str| Ok((origin.to_owned(), path.to_owned()));
        assert_eq!(
            site("https://A.example/=a=b.txt"),
            found("https://a.example", "a=b.txt")
        );
        assert_eq!(site("http://[::1]:8080=/x"), found("http://[::1]:8080", "/x"));
        for (text, why) in [
            ("https://a.example", "write the site and the file"),
            ("https://a.example=", "write the site and the file"),
            ("a.example=x", "is not an origin"),
            ("https://a.example/page=x", "is not an origin"),
        ] {
            let error = site(text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
