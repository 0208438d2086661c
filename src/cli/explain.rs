//! `robotgate explain`: explains why a bot may or may not fetch a URL. The verdict comes from [`crate::decision`], as
//! in the proxy; this module decides nothing.

mod excerpt;
mod source;
mod text;

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    time::SystemTime,
};

use clap::builder::{PossibleValuesParser, TypedValueParser};

use self::source::{Source, SourceError};
use super::{
    Overrides,
    colour::Paint,
    fail,
    live::{self, Live},
    load,
};
use crate::{
    config::Config,
    copy::{Policy, SiteDocument},
    decision::{Decision, Question, Reason, Tdmrep, Verdict},
    explanation::{ExplainedDecision, to_json},
    origin::Target,
    robots::Profile,
    usage::Purpose,
};

/// Say why a bot may or may not fetch a URL, and show the lines that decide
///
/// Uses the same code as the proxy. Fetches the site's robots.txt as the proxy would, or reads it from a
/// file. If the decision depends on /.well-known/tdmrep.json (for text and data mining), also fetches this
/// file, unless the robots.txt is from a file. Fetches no page of the site.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct ExplainArgs {
    /// What the bot sends as User-Agent, or only the part that identifies it, such as ExampleBot
    #[arg(long, short, value_name = "UA")]
    agent: String,
    /// The whole URL
    url: String,
    /// Read the robots.txt from a file ("-" is standard input) instead of fetching it
    #[arg(long, value_name = "FILE")]
    robots: Option<PathBuf>,
    /// Decide with this configuration, for example with its bots, its robots section and its egress section
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    overrides: Overrides,
    /// Read robots.txt as Google's parser does, or to the letter of RFC 9309, regardless of the configuration
    #[arg(long, value_enum)]
    profile: Option<Profile>,
    /// If clients have to prove that they are this bot, answer for a client that gives no proof
    #[arg(long)]
    unproven: bool,
    /// Answer for this purpose instead of the purposes of the bot (repeatable)
    #[arg(long = "purpose", value_name = "PURPOSE", value_parser = purpose())]
    purposes: Vec<Purpose>,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// Explains whether the bot may fetch the URL. Fails if the verdict is not `allow`, or an input is bad.
pub fn run(args: &ExplainArgs) -> ExitCode {
    let (mut config, sources) = match load(args.config.as_deref(), &args.overrides) {
        Ok(loaded) => loaded,
        Err(error) => return fail(&error),
    };
    if let Some(profile) = args.profile.filter(|profile| *profile != config.robots.policy.profile) {
        // The default of `soft-404` depends on the profile.
        if !config.settings.iter().any(|(key, _)| key == "robots.soft-404") {
            config.robots.policy.soft_404 = Policy::of(profile).soft_404;
        }
        config.robots.policy.profile = profile;
    }
    let target = Target::parse(&args.url);
    let target = match target {
        Ok(target) => target,
        Err(error) => return fail(&error),
    };
    let purposes = (!args.purposes.is_empty()).then(|| args.purposes.iter().copied().collect());
    let question = config
        .question(&args.agent, args.unproven, target, config.terms(0), SystemTime::now())
        .with_purposes(purposes);
    let (decision, source, tdmrep) = match decide(&config, question.clone(), args.robots.as_deref()) {
        Ok(decided) => decided,
        Err(error) => return fail(&error),
    };
    let report = |decision| ExplainedDecision::new(&config, decision, &args.agent, &args.url, source.body());
    let alone = (decision.reason == Reason::Egress).then(|| without_egress(question, &source, &config.robots.policy));
    let alone = alone.flatten();
    let (alone, report) = (alone.as_ref().map(report), report(&decision));

    let out = if args.json {
        to_json(&report, source.file(), source.record(&decision)) + "\n"
    } else {
        let paint = Paint::for_output(&io::stdout());
        text::write(&report, alone.as_ref(), (&source, tdmrep.as_ref()), &sources, paint)
    };
    match io::stdout().write_all(out.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            fail(&format_args!("cannot write to standard output: {error}"))
        }
        _ if decision.verdict == Verdict::Allow => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Decides by the robots.txt in `file`. Without a file, fetches the robots.txt as the proxy would.
fn decide(
    config: &Config,
    question: Question,
    file: Option<&Path>,
) -> Result<(Decision, Source, Option<Live>), SourceError> {
    let policy = &config.robots.policy;
    let prohibited = config.screen(&question.target.origin).err();
    let prohibited = prohibited.map(|prohibited| prohibited.to_string());
    let mut source = file.map_or(Ok(Source::Unasked), Source::read)?;
    let mut live = None;
    let (robots, tdmrep) = (&mut source, &mut live);
    let decision = question.decide(
        prohibited,
        |origin| {
            if file.is_none() {
                *robots = Source::fetch(config, origin)?;
            }
            // This does not fail: `lookup` returns `None` only if there is neither a file nor a fetch.
            let lookup = robots.lookup(policy);
            Ok(lookup.unwrap_or_else(|| unreachable!("a file or a fetch was looked at")))
        },
        |origin| {
            if file.is_some() {
                return Ok(Tdmrep::NotAsked);
            }
            let fetched = tdmrep.insert(live::fetch(config, &SiteDocument::TDMREP, origin)?);
            let found = fetched
                .copy()
                .and_then(|copy| Some(Tdmrep::Found(copy.tdmrep.as_deref()?, copy.sha256)));
            Ok::<_, SourceError>(found.unwrap_or(Tdmrep::None))
        },
    )?;
    let decision = match source.lookup(policy) {
        Some(lookup) if decision.lookup.is_none() => decision.with_lookup(lookup),
        _ => decision,
    };
    Ok((decision, source, live))
}

fn purpose() -> impl TypedValueParser<Value = Purpose> {
    PossibleValuesParser::new(Purpose::ALL.map(Purpose::as_str)).try_map(|text| text.parse::<Purpose>())
}

/// Decides as if `[egress]` allowed the URL. Returns `None` if the robots.txt is not from a file.
fn without_egress(question: Question, source: &Source, policy: &Policy) -> Option<Decision> {
    source.file()?;
    Some(question.decide_with(None, source.lookup(policy)?))
}

const AFTER_HELP: &str = "\
Exit status: 0 if the URL is allowed; 1 if it is refused, if the proxy forwards it although it is not \
allowed, or if an input is invalid; 2 for a usage error.

To check many URLs, use xargs, or ask a running proxy: docs/admin-api.md, \"Many URLs in one call\".

Try it:
  robotgate explain --agent ExampleBot/1.0 'https://www.google.com/search?q=robots'
  robotgate explain --agent ExampleBot/1.0 https://example.com/private --robots robots.txt
  xargs -d '\\n' -n 1 robotgate explain --agent ExampleBot/1.0 --robots robots.txt < urls.txt";
