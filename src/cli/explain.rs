//! `robotgate explain`: why a bot would be allowed or refused a URL, for a person or a program.
//!
//! The verdict is [`crate::decision`]'s, as in the proxy; what is told around it is
//! `crate::explanation`'s. Nothing is decided here.

mod excerpt;
mod source;
mod text;

use std::{
    io::{self, IsTerminal as _, Write as _},
    path::PathBuf,
    process::ExitCode,
};

use self::source::Source;
use super::{fail, load, paint::Paint};
use crate::{
    decision::{Asker, Decision, Verdict},
    explanation::{Question, Report, to_json},
    origin::{Target, readings},
    robots::Profile,
};

/// Say why a URL would be allowed or refused, and show the lines of the robots.txt that decide.
///
/// Fetches the site's robots.txt as the proxy would, with the same bounds and time-outs, or reads
/// it from a file. Nothing else is fetched, and no page of the site is asked for.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct ExplainArgs {
    /// Who asks: a whole User-Agent field, or just the bot's name
    #[arg(long, short, value_name = "UA")]
    agent: String,
    /// The whole URL that is asked for
    url: String,
    /// Read the robots.txt from a file ("-" is standard input) instead of fetching it
    #[arg(long, value_name = "FILE")]
    robots: Option<PathBuf>,
    /// The configuration to go by: its bots, its reading of robots.txt, its way out
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Whose reading of robots.txt holds, whatever the configuration says
    #[arg(long, value_enum)]
    profile: Option<Profile>,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// Explains. Fails where the verdict is not to allow, or an input is bad.
pub fn run(args: &ExplainArgs) -> ExitCode {
    let mut config = match load(args.config.as_deref()) {
        Ok(config) => config,
        Err(error) => return fail(&error),
    };
    if let Some(profile) = args.profile.filter(|profile| *profile != config.robots.profile) {
        // What a page of a server error says counts for Google alone, as where nothing else is written.
        config.robots.soft_404 = profile == Profile::Google;
        config.robots.profile = profile;
    }
    let target = Target::parse(&args.url);
    let target = match target {
        Ok(target) => target,
        Err(error) => return fail(&error),
    };
    let identity = config.bots.identify([args.agent.as_bytes()]);
    let asker = Asker::new(&identity, config.identity.unidentified);
    let readings = readings(&target.path, config.robots.strict_paths);

    // Where no bot may go, the proxy says so to all; an attempt to fetch the robots.txt tells why.
    let origin = &target.origin;
    let is_closed = args.robots.is_none() && config.guard().screen(&origin.host, origin.port).is_err();
    let without_copy = Decision::without_copy(asker, &readings).filter(|_| !is_closed);
    let source = match (&args.robots, without_copy) {
        (Some(file), _) => Source::read(file, config.robots.profile),
        (None, None) => Source::fetch(&config, origin),
        // The proxy would not fetch it either.
        (None, Some(_)) => Ok(Source::Unasked),
    };
    let source = match source {
        Ok(source) => source,
        Err(error) => return fail(&error),
    };
    let question = Question {
        user_agent: &args.agent,
        url: &args.url,
        target: &target,
        identity: &identity,
        asker,
        readings: &readings,
    };
    let report = Report::new(&config, &question, without_copy, &source.evidence());

    let out = if args.json {
        to_json(&report, source.file(), source.record()) + "\n"
    } else {
        text::write(&report, &source, Paint::for_output(io::stdout().is_terminal()))
    };
    match io::stdout().write_all(out.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            fail(&format_args!("cannot write to standard output: {error}"))
        }
        _ if report.decision.verdict == Verdict::Allow => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

const AFTER_HELP: &str = "\
The exit status is 0 where the URL is allowed, 1 where it is refused or an input is bad, 2 for a
usage error.

Try it:
  robotgate explain --agent ExampleBot/1.0 'https://www.google.com/search?q=robots'
  robotgate explain --agent ExampleBot/1.0 https://example.com/private --robots robots.txt";
