//! `robotgate replay`: decides each decision of an audit log again, and lists the decisions that are different now.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use super::{
    Overrides, finish, load,
    logs::{LogError, LogReader},
};
use crate::{
    bot::Enforcement,
    decision::{Decision, Reason},
    evidence::{EvidenceReader, FileError},
    replay::{Difference, LoggedDecision, Missing, ReplayOutcome, Replayed, Replayer, decide},
    text::plain_message,
    trust::{shell_option, shell_word},
};

/// Make each decision of an audit log again, and list those that differ
///
/// Takes the robots.txt and the configuration of each decision from the store of evidence, and decides as this version
/// of robotgate does. Lists the decisions that would now be different, and their fields. Opens no connection,
/// and can run while the proxy runs.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct ReplayArgs {
    /// Files of the audit log, also rotated and .gz ones ("-" is standard input)
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<PathBuf>,
    /// The configuration that the proxy runs with. Its evidence.path names the file of the store of evidence
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    overrides: Overrides,
    /// The file of the store of evidence, instead of evidence.path of the configuration
    #[arg(long, value_name = "FILE")]
    evidence: Option<PathBuf>,
    /// Show the decision with this id, and what decided it
    #[arg(long)]
    id: Option<String>,
    /// List every difference instead of the first 100
    #[arg(long)]
    all: bool,
    /// Exit with 0 even if some decisions cannot be made again, for example because the store no longer has the
    /// robots.txt that they were based on
    #[arg(long)]
    allow_missing: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Default, serde::Serialize)]
struct ReplayOutput {
    decisions: u64,
    same: u64,
    different: u64,
    /// The number of decisions that are not made again, because they depended on an address, a credential or the pace.
    as_logged: u64,
    /// The number of decisions that cannot be replayed, by the reason why.
    not_replayable: BTreeMap<String, u64>,
    /// The SHA-256 of the first text or configuration that is missing or unusable, by the reason in `not_replayable`.
    missing: BTreeMap<String, String>,
    /// Whether the store of evidence lacks a text or configuration.
    #[serde(skip)]
    store_lacks_text: bool,
    unreadable_lines: u64,
    differences: Vec<ChangedDecision>,
}

#[derive(Debug, serde::Serialize)]
struct ChangedDecision {
    log: String,
    line: u64,
    id: String,
    url: String,
    fields: Vec<Difference>,
}

#[derive(Debug, thiserror::Error)]
enum ReplayError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("the store of evidence {} cannot be read: {error}{}", path.display(), match (error, named) {
        (FileError::Io(error), false) if error.kind() == io::ErrorKind::NotFound => {
            "; use --config FILE (the configuration of the proxy that wrote the log) or --evidence FILE (its store)"
        }
        _ => error.advice_for_reader(),
    })]
    Evidence {
        path: PathBuf,
        error: FileError,
        /// Whether the user named the file with `--evidence`.
        named: bool,
    },
    #[error(
        "the configuration has no store of evidence; use --config FILE (the configuration of the proxy that wrote the \
         log) or --evidence FILE (its store). Without that store, the log cannot be replayed"
    )]
    NoEvidence,
    #[error(transparent)]
    Config(#[from] crate::config::ConfigError),
}

/// Replays the logs. Fails if a decision is different now, if one cannot be replayed (unless `--allow-missing` is set),
/// if no decision has the id of `--id`, or if an input is invalid.
pub fn run(args: &ReplayArgs) -> ExitCode {
    finish(report(args))
}

/// The `bool` says whether the command succeeds.
fn report(args: &ReplayArgs) -> Result<(String, bool), ReplayError> {
    let (path, options) = match &args.evidence {
        Some(path) => (
            path.clone(),
            shell_option("set", &format!("evidence.path={}", path.display())),
        ),
        None => {
            let (config, sources) = load(args.config.as_deref(), &args.overrides)?;
            (config.evidence.ok_or(ReplayError::NoEvidence)?.path, sources.options())
        }
    };
    let unreadable = |error| ReplayError::Evidence {
        path: path.clone(),
        error,
        named: args.evidence.is_some(),
    };
    let mut replayer = Replayer::new(EvidenceReader::open(&path).map_err(unreadable)?);
    let mut report = ReplayOutput::default();
    let mut shown = None;
    for path in &args.logs {
        let name = path.display().to_string();
        let mut log = LogReader::open(path)?;
        while let Some((first, lines)) = log.next_lines()? {
            let wanted =
                |line: &[u8]| (args.id.as_ref()).is_none_or(|id| memchr::memmem::find(line, id.as_bytes()).is_some());
            let (numbers, lines): (Vec<u64>, Vec<&[u8]>) =
                (first..).zip(lines).filter(|(_, line)| wanted(line)).unzip();
            let results = replayer.replay(&lines).map_err(unreadable)?;
            for (number, replayed) in numbers.into_iter().zip(results) {
                match (&args.id, &replayed) {
                    (Some(id), Replayed::Decision(logged, outcome)) if logged.id == **id => {
                        let text = match args.json {
                            true => shown_json(&name, number, logged, outcome, &replayer),
                            false => show(&format!("{name}:{number}"), logged, outcome, &replayer, &options),
                        };
                        let passes = match outcome {
                            ReplayOutcome::Same | ReplayOutcome::AsLogged => true,
                            ReplayOutcome::Different(_) => false,
                            ReplayOutcome::NotReplayable(_) => args.allow_missing,
                        };
                        shown = Some((text, passes));
                    }
                    (Some(_), _) => {}
                    (None, _) => report.add(replayed, &name, number, args.all),
                }
            }
        }
    }
    let passes = report.different == 0
        && report.unreadable_lines == 0
        && (args.allow_missing || report.not_replayable.is_empty());
    match (&args.id, shown) {
        // Serializing does not fail, because all keys of the maps are strings.
        (None, _) if args.json => Ok((serde_json::to_string(&report).unwrap_or_default() + "\n", passes)),
        (None, _) => Ok((report.text(&path), passes)),
        (Some(_), Some(shown)) => Ok(shown),
        (Some(id), None) => Ok((
            format!("no decision in these logs has the id {}\n", plain_message(id, 64)),
            false,
        )),
    }
}

// === impl ReplayOutput ===

impl ReplayOutput {
    fn add(&mut self, replayed: Replayed<'_>, log: &str, line: u64, all: bool) {
        let (logged, outcome) = match replayed {
            Replayed::Decision(logged, outcome) => (logged, outcome),
            Replayed::Unreadable => return self.unreadable_lines += 1,
            Replayed::Skipped | Replayed::Other => return,
        };
        self.decisions += 1;
        match outcome {
            ReplayOutcome::Same => self.same += 1,
            ReplayOutcome::AsLogged => self.as_logged += 1,
            ReplayOutcome::NotReplayable(missing) => {
                let why = missing.reason();
                if let Some(sha256) = missing.sha256() {
                    self.store_lacks_text |= !matches!(missing, Missing::BadConfig(_));
                    self.missing.entry(why.clone()).or_insert_with(|| sha256.to_string());
                }
                *self.not_replayable.entry(why).or_default() += 1;
            }
            ReplayOutcome::Different(fields) => {
                self.different += 1;
                if all || self.differences.len() < LISTED {
                    self.differences.push(ChangedDecision {
                        log: log.to_owned(),
                        line,
                        id: logged.id.into_owned(),
                        url: logged.url.into_owned(),
                        fields,
                    });
                }
            }
        }
    }

    fn text(&self, evidence: &Path) -> String {
        let mut text = String::new();
        for found in &self.differences {
            let ChangedDecision {
                log,
                line,
                id,
                url,
                fields,
            } = found;
            let url = plain_message(url, MAX_URL);
            let _ = writeln!(text, "{log}:{line}: {id} {url}: {}", differences(fields));
        }
        let unlisted = self.different - self.differences.len() as u64;
        if unlisted > 0 {
            let _ = writeln!(text, "... and {unlisted} more (--all lists them)");
        }
        let _ = writeln!(text, "{} decisions", self.decisions);
        let mut count = |number: u64, what: &str| {
            if number > 0 {
                let _ = writeln!(text, "{number:>10} {what}");
            }
        };
        count(self.same, "the same");
        count(self.different, "different");
        count(
            self.as_logged,
            "taken as logged, because an address, a credential or the pace decided",
        );
        for (why, number) in &self.not_replayable {
            let example = self.missing.get(why).map(|sha256| format!(" (such as {sha256})"));
            count(
                *number,
                &format!("cannot be replayed: {why}{}", example.unwrap_or_default()),
            );
        }
        count(self.unreadable_lines, "left out: not a JSON record of the log");
        if self.store_lacks_text {
            let _ = writeln!(
                text,
                "note: the store of evidence is {}; if another proxy wrote the log, name its store with --evidence FILE",
                evidence.display()
            );
        }
        text
    }
}

fn differences(fields: &[Difference]) -> String {
    let value = |value: &Option<String>| match value {
        Some(value) => plain_message(value, MAX_URL).into_owned(),
        None => "null".to_owned(),
    };
    let fields = fields.iter().map(|field| {
        format!(
            "{}: logged {}, replayed {}",
            field.field,
            value(&field.logged),
            value(&field.now)
        )
    });
    fields.collect::<Vec<_>>().join("; ")
}

fn shown_json(
    log: &str,
    line: u64,
    logged: &LoggedDecision<'_>,
    outcome: &ReplayOutcome,
    replayer: &Replayer,
) -> String {
    let (word, why, fields) = match outcome {
        ReplayOutcome::Same => ("same", None, &[][..]),
        ReplayOutcome::Different(fields) => ("different", None, &fields[..]),
        ReplayOutcome::AsLogged => ("as-logged", None, &[][..]),
        ReplayOutcome::NotReplayable(missing) => ("not-replayable", Some(missing.to_string()), &[][..]),
    };
    let (config, texts) = replayer.sources(logged);
    let decision = config.and_then(|config| decide(logged, config, texts).ok());
    let rule = decision.as_ref().and_then(Decision::rule);
    let shown = serde_json::json!({
        "log": log,
        "line": line,
        "id": logged.id,
        "time": logged.time,
        "method": logged.method,
        "url": logged.url,
        "bot": logged.bot,
        "identity": logged.identity,
        "verdict": logged.verdict,
        "reason": logged.reason,
        "forwarded": logged.forwarded,
        "enforcement": logged.enforcement,
        "exemption": logged.exemption,
        "exception": logged.exception,
        "config_sha256": logged.config_sha256.map(|sha256| sha256.to_string()),
        "robots_sha256": logged.robots_sha256.map(|sha256| sha256.to_string()),
        "outcome": word,
        "not_replayable": why,
        "fields": fields,
        "rule": rule.map(|rule| serde_json::json!({"line": rule.line, "text": rule.text})),
        "group": decision.as_ref().and_then(Decision::group),
        "usage": decision.as_ref().and_then(|decision| decision.usage.as_deref()),
    });
    shown.to_string() + "\n"
}

fn show(
    place: &str,
    logged: &LoggedDecision<'_>,
    outcome: &ReplayOutcome,
    replayer: &Replayer,
    options: &str,
) -> String {
    let mut text = format!(
        "{} {} {}\n",
        logged.time,
        logged.method,
        plain_message(&logged.url, MAX_URL)
    );
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:<15} {}", plain_message(value, MAX_URL));
    };
    line("line of the log", place);
    let bot = match (&logged.bot, &*logged.identity) {
        (Some(bot), by) => format!("{bot} (by {by})"),
        (None, "none") => "none".to_owned(),
        (None, by) => format!("none (by {by})"),
    };
    line("bot", &bot);
    line(
        "logged",
        &format!("{}, {}, forwarded: {}", logged.verdict, logged.reason, logged.forwarded),
    );
    let enforcement = Some(&*logged.enforcement).filter(|word| *word != Enforcement::Enforce.as_str());
    // If a bot is exempt everywhere, the log has the word "enforcement" in place of the exempt host. The line
    // "enforcement" of the output already says that the bot is exempt.
    let host = logged.exemption.as_deref().filter(|host| *host != "enforcement");
    let exceptions = [
        ("enforcement", enforcement),
        ("exempt host", host),
        ("tunnel for", logged.exception.as_deref()),
    ];
    for (name, why) in exceptions {
        if let Some(why) = why {
            line(name, why);
        }
    }
    let (config, texts) = replayer.sources(logged);
    let again = match outcome {
        ReplayOutcome::Same => "the same".to_owned(),
        ReplayOutcome::AsLogged => "not replayed, because an address, a credential or the pace decided".to_owned(),
        ReplayOutcome::NotReplayable(missing) => format!("cannot be replayed: {missing}"),
        ReplayOutcome::Different(fields) => differences(fields),
    };
    line("replayed", &again);
    if let Some(version) = &logged.version {
        line("version", version);
    }
    if let Some(sha256) = logged.config_sha256 {
        line("configuration", &sha256.to_string());
    }
    if let Some(sha256) = logged.robots_sha256 {
        line("robots.txt", &sha256.to_string());
    }
    let has_text = texts.robots.is_some();
    let has_config = config.is_some();
    let decision = config.and_then(|config| decide(logged, config, texts).ok());
    let rule = decision
        .as_ref()
        .and_then(|decision| Some((decision.group()?, decision.rule()?)));
    match rule {
        Some((group, rule)) => line("rule", &format!("line {}: {} (group {group})", rule.line, rule.text)),
        None if logged.reason == Reason::NoRule.as_str() => {
            let group = decision.as_ref().and_then(Decision::group);
            let group = group.map_or_else(String::new, |group| format!(" (group {group})"));
            line("rule", &format!("none matches{group}"));
        }
        None => {}
    }
    let usage = decision.as_ref().and_then(|decision| decision.usage.as_deref());
    if let Some(refused) = usage.and_then(|usage| usage.refused.as_ref()) {
        line("usage", &refused.to_string());
    }
    if has_text || has_config {
        text.push('\n');
    }
    if let Some(sha256) = logged.config_sha256.filter(|_| has_config) {
        let _ = writeln!(
            text,
            "To read this configuration: robotgate config show --stored {sha256}{options}"
        );
    }
    if let Some(sha256) = logged.robots_sha256.filter(|_| has_text) {
        let origin = shell_word(&plain_message(&logged.origin, MAX_URL));
        let _ = writeln!(
            text,
            "To read this robots.txt: robotgate cache history {origin} --show {sha256}{options}"
        );
    }
    text
}

/// How many differences are listed without `--all`.
const LISTED: usize = 100;
/// Maximum length of a URL or another value in the report, in bytes.
const MAX_URL: usize = 2 * 1024;

const AFTER_HELP: &str = "\
Exit status: 0 if every decision is the same or taken as logged; 1 if a decision differs, a decision cannot \
be made again (unless you give --allow-missing), a line cannot be read, or an input is invalid; 2 for a usage \
error.

Try it:
  robotgate replay --config /etc/robotgate/robotgate.toml /var/log/robotgate/audit.jsonl
  robotgate replay --id 019a9f5c-8a44-7c3e-9d5f-2f4f8a1c7b10 audit.jsonl audit.jsonl.1.gz";
