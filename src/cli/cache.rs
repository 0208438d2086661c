//! `robotgate cache`: what is known of the sites, and forgetting it.
//!
//! Where it is known from, a proxy that runs or the file, is [`crate::admin`]'s to find out.

mod list;
mod show;
mod stats;

use std::{
    io::{self, Write as _},
    path::PathBuf,
    process::ExitCode,
};

use serde::Serialize;

use super::{fail, load, paint::Paint, progress::Progress};
use crate::{
    admin::{AdminError, Copies},
    config::ConfigError,
    origin::{Origin, Target, TargetError},
    text::plain,
};

/// Show what is known of the sites that were visited, or forget a site
///
/// The proxy keeps in a file (cache.path of the configuration) what it knows of each site: the last
/// answer to /robots.txt, when it came and how long it holds, since when a site fails, and the text of
/// the last robots.txt. This shows it, also while the proxy runs. Nothing is fetched.
///
/// A site is an origin: scheme, host and port. Each has a robots.txt of its own.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct CacheArgs {
    #[command(subcommand)]
    action: Action,
    /// The configuration that the proxy runs by: it names the file
    #[arg(long, short, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Print JSON instead of text: one object, of the list one a line
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    List(list::ListArgs),
    Show(show::ShowArgs),
    Forget(ForgetArgs),
    Stats(stats::StatsArgs),
}

/// Forget all that is known of a site: its robots.txt is fetched when a bot next needs it
///
/// The last copy goes, too, and since when the site fails. Where a fetch runs, what it brings counts.
#[derive(Debug, clap::Args)]
struct ForgetArgs {
    /// An origin (scheme, host and port), any URL of it, or just a host, of which https is meant
    #[arg(value_name = "ORIGIN")]
    origin: String,
}

/// Why nothing is shown.
#[derive(Debug, thiserror::Error)]
enum CacheError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Admin(#[from] AdminError),
    #[error("{url}: {error}")]
    Url { url: String, error: TargetError },
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
    #[error("{0}")]
    Unknown(String),
}

/// Shows or forgets. Fails where the site is not known; a reader of the output that goes away early
/// changes nothing.
pub fn run(args: &CacheArgs) -> ExitCode {
    let done = match &args.action {
        Action::List(list) => list.run(args),
        Action::Show(show) => show.run(args),
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
    /// What `ask` finds out from the copies of the configuration that was named.
    fn ask<T>(&self, ask: impl FnOnce(Copies) -> Result<T, AdminError>) -> Result<T, CacheError> {
        let config = load(self.config.as_deref())?;
        let _progress = Progress::begin(|| "looking through what is known of sites".to_owned());
        let copies = Copies::find(&config, |note| {
            eprintln!("robotgate: note: {}", plain(note, usize::MAX));
        })?;
        Ok(ask(copies)?)
    }
}

// === impl ForgetArgs ===

impl ForgetArgs {
    fn run(&self, args: &CacheArgs) -> Result<(), CacheError> {
        let origin = origin_of(&self.origin)?;
        let forgot = args.ask(|copies| copies.forget(&origin))?;
        if args.json {
            print_json(&forgot)?;
        }
        match (forgot.forgotten, args.json) {
            (false, _) => Err(unknown(&origin, &self.origin)),
            (true, true) => Ok(()),
            (true, false) => {
                let said = format!("{origin} is forgotten; its robots.txt is fetched when a bot next needs it\n");
                print(said.as_bytes())
            }
        }
    }
}

/// The origin that a person means by an origin, by any URL of it, or by its host.
fn origin_of(written: &str) -> Result<Origin, CacheError> {
    let url = match written.contains("://") {
        true => written.to_owned(),
        false => format!("https://{written}"),
    };
    Target::origin_of(&url).map_err(|error| CacheError::Url { url, error })
}

/// What to say of an origin of which nothing is known.
fn unknown(origin: &Origin, written: &str) -> CacheError {
    let hint = match written.contains("://") {
        true => String::new(),
        false => format!("; where http is meant, write http://{written}"),
    };
    CacheError::Unknown(format!("nothing is known of {origin}{hint}"))
}

/// Prints one JSON object.
fn print_json(said: &impl Serialize) -> Result<(), CacheError> {
    let mut line = serde_json::to_vec(said).map_err(io::Error::from)?;
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

const AFTER_HELP: &str = "\
While a proxy runs it answers on a socket beside the file, for the user that it runs as (and root).

Exit status: 0 when all is well; 1 where the site is not known, or nothing can be shown; 2 for a
usage error.

Try it:
  robotgate cache list
  robotgate cache show example.com
  robotgate cache forget https://example.com";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_named_by_its_origin_a_url_or_its_host() {
        for (written, origin) in [
            ("https://example.com", "https://example.com"),
            ("http://Example.com:80/page?x=1#y", "http://example.com"),
            ("example.com", "https://example.com"),
            ("example.com:8443/robots.txt", "https://example.com:8443"),
            ("[::1]", "https://[::1]"),
        ] {
            let found = origin_of(written).map(|origin| origin.to_string());
            assert_eq!(found.ok().as_deref(), Some(origin), "{written}");
        }
        for written in ["", "ftp://example.com", "a b", "https://"] {
            assert!(matches!(origin_of(written), Err(CacheError::Url { .. })), "{written}");
        }
    }
}
