//! `robotgate cache`: shows what robotgate knows of sites, and forgets sites.

mod history;
mod list;
mod show;
mod stats;

use std::{
    io::{self, Write as _},
    path::PathBuf,
    process::ExitCode,
};

use serde::Serialize;

use super::{Overrides, colour::Paint, config::advice_for_store, fail, load, progress::Progress};
use crate::{
    admin::{AdminError, Copies},
    config::{Config, ConfigError, Sources},
    evidence::FileError,
    origin::{Origin, Target, TargetError},
    text::plain,
};

/// Show what robotgate knows of sites and how their robots.txt changed, or have a robots.txt fetched again
///
/// The proxy keeps in a file (cache.path) each site's last response to /robots.txt, when it came, how long it applies,
/// how long the site has been failing, and the text of the last robots.txt. The command works whether or not the
/// proxy runs, and fetches nothing.
///
/// A site is an origin: scheme, host and port. Each origin has its own robots.txt.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct CacheArgs {
    #[command(subcommand)]
    action: Action,
    /// The configuration that the proxy runs with. cache.path in it names the file in which the proxy keeps what it
    /// knows of sites
    #[arg(long, short, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    #[command(flatten)]
    overrides: Overrides,
    /// Print JSON: one object, or with "list" one object per line
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    List(list::ListArgs),
    Show(show::ShowArgs),
    History(history::HistoryArgs),
    Forget(ForgetArgs),
    Stats(stats::StatsArgs),
}

/// Forget a site
///
/// Forgets even the site's last good copy and how long the site has been failing, so do not forget a site that still
/// fails. The next request fetches the robots.txt again. If a fetch is already running, robotgate still uses its
/// result. In a fleet, all robotgates forget the site.
#[derive(Debug, clap::Args)]
struct ForgetArgs {
    /// An origin (scheme, host and port), any URL of the site, or a bare host, which means https
    #[arg(value_name = "ORIGIN")]
    origin: String,
}

#[derive(Debug, thiserror::Error)]
enum CacheError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Admin(#[from] AdminError),
    #[error("{url}: {error}")]
    Url { url: String, error: TargetError },
    #[error("the store of evidence {} cannot be read: {error}{}", path.display(), advice_for_store(error))]
    Evidence { path: PathBuf, error: FileError },
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
    #[error("{0}")]
    Unknown(String),
    #[error(
        "this robotgate now knows nothing about {origin}, but the fleet's server could not be told. The other \
         robotgates keep their copies, and this one can get one of these copies again. {}", match running {
            true => "Repeat the command when the page for operators or /api/v1/status shows that robotgate is \
                     connected to the server",
            false => "Start robotgate, and repeat the command",
        }
    )]
    FleetNotTold { origin: Origin, running: bool },
}

/// Runs the subcommand. `show`, `history` and `forget` fail if robotgate knows nothing about the site.
pub fn run(args: &CacheArgs) -> ExitCode {
    let done = match &args.action {
        Action::List(list) => list.run(args),
        Action::Show(show) => show.run(args),
        Action::History(history) => history.run(args),
        Action::Forget(forget) => forget.run(args),
        Action::Stats(stats) => stats.run(args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(CacheError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

// === impl CacheArgs ===

impl CacheArgs {
    fn load(&self) -> Result<(Config, Sources), ConfigError> {
        load(self.config.as_deref(), &self.overrides)
    }

    /// Calls `ask` with access to the copies of the running proxy or, if none runs, of the cache file.
    fn ask_of<T>(&self, config: &Config, ask: impl FnOnce(Copies) -> Result<T, AdminError>) -> Result<T, CacheError> {
        let _progress = Progress::begin(|| "reading the saved robots.txt files".to_owned());
        let copies = Copies::find(config, |note| {
            eprintln!("robotgate: note: {}", plain(note, usize::MAX));
        })?;
        Ok(ask(copies)?)
    }
}

// === impl ForgetArgs ===

impl ForgetArgs {
    fn run(&self, args: &CacheArgs) -> Result<(), CacheError> {
        let origin = origin_of(&self.origin)?;
        let (config, sources) = args.load()?;
        let mut file = None;
        let forgot = args.ask_of(&config, |copies| {
            file = copies.file_without_proxy().map(PathBuf::from);
            copies.forget(&origin)
        })?;
        if args.json {
            print_json(&forgot)?;
        }
        if forgot.fleet_told == Some(false) {
            let running = file.is_none();
            return Err(CacheError::FleetNotTold { origin, running });
        }
        match (forgot.forgotten, args.json) {
            (false, _) => {
                let missing = match forgot.fleet_told {
                    Some(_) => "the fleet's server has been told, but this robotgate knew nothing about",
                    None => NOTHING_KNOWN,
                };
                Err(unknown(missing, &origin, &self.origin, &sources))
            }
            (true, true) => Ok(()),
            (true, false) => {
                let mut message = match &file {
                    None => format!("{origin} is forgotten; the next request for it fetches its robots.txt\n"),
                    Some(file) => format!(
                        "{origin} is forgotten in {}, which no running robotgate uses{}\n",
                        plain(&file.to_string_lossy(), usize::MAX),
                        without_config(&sources)
                    ),
                };
                if !self.origin.contains("://") {
                    let other = format!("http://{}", self.origin);
                    message.push_str(&format!(
                        "If you mean the http site, run: robotgate cache forget {other}{}\n",
                        sources.options()
                    ));
                }
                print(message.as_bytes())
            }
        }
    }
}

fn origin_of(argument: &str) -> Result<Origin, CacheError> {
    let url = match argument.contains("://") {
        true => argument.to_owned(),
        false => format!("https://{argument}"),
    };
    Target::origin_of(&url).map_err(|error| CacheError::Url { url, error })
}

/// `missing` begins the message. `argument` is the origin as the user typed it.
fn unknown(missing: &str, origin: &Origin, argument: &str, sources: &Sources) -> CacheError {
    let mut hint = match argument.contains("://") {
        true => String::new(),
        false => format!("; if you mean http, write http://{argument}"),
    };
    hint.push_str(without_config(sources));
    CacheError::Unknown(format!("{missing} {origin}{hint}"))
}

fn without_config(sources: &Sources) -> &'static str {
    match sources.file() {
        Some(_) => "",
        None => "; if the proxy runs with a configuration file, name it with --config",
    }
}

fn print_json(value: &impl Serialize) -> Result<(), CacheError> {
    let mut line = serde_json::to_vec(value).map_err(io::Error::from)?;
    line.push(b'\n');
    print(&line)
}

fn print(bytes: &[u8]) -> Result<(), CacheError> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    Ok(out.flush()?)
}

fn paint() -> Paint {
    Paint::for_output(&io::stdout())
}

const NOTHING_KNOWN: &str = "nothing is known about";
const AFTER_HELP: &str = "\
While the proxy runs, the command queries the proxy over a socket next to the file of cache.path. Only \
root and the user that the proxy runs as can use the command.

Exit status: 0 if the command succeeded; 1 if it failed, for example because the site is not known, show or history \
has nothing to show, or the server of a fleet could not be told to forget the site; 2 for a usage error.

Try it:
  robotgate cache list --failing
  robotgate cache show example.com
  robotgate cache history example.com --diff
  robotgate cache forget https://example.com";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_named_by_its_origin_a_url_or_its_host() {
        for (argument, origin) in [
            ("https://example.com", "https://example.com"),
            ("http://Example.com:80/page?x=1#y", "http://example.com"),
            ("example.com", "https://example.com"),
            ("example.com:8443/robots.txt", "https://example.com:8443"),
            ("[::1]", "https://[::1]"),
        ] {
            let found = origin_of(argument).map(|origin| origin.to_string());
            assert_eq!(found.ok().as_deref(), Some(origin), "{argument}");
        }
        for argument in ["", "gopher://example.com", "a b", "https://"] {
            assert!(matches!(origin_of(argument), Err(CacheError::Url { .. })), "{argument}");
        }
    }
}
