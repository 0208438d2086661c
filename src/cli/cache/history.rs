//! `robotgate cache history`: prints the versions of a site's robots.txt, and the difference between two of them.

use std::{
    fmt::Write as _,
    io::{self, IsTerminal as _},
};

use serde::Serialize;

use super::{CacheArgs, CacheError, origin_of, paint, print, print_json, show::escaped, unknown};
use crate::{
    admin::{Difference, UNCHANGED, Version, VersionError, Versions, short},
    cli::{
        colour::{Colour, Paint},
        progress::Progress,
    },
    origin::Origin,
    robots::GroupChangeKind,
    text::{Minute, Timestamp, plain},
};

/// List the versions of a site's robots.txt, or show what changed between two
///
/// The proxy records in the store of evidence (evidence.path) which robots.txt each site had, and when. For the
/// last version, LAST SEEN can be up to a day too early, because the proxy records an unchanged robots.txt only
/// once a day. Times are in UTC. The command fetches nothing, and can run while the proxy runs.
#[derive(Debug, clap::Args)]
pub struct HistoryArgs {
    /// An origin (scheme, host and port), any URL of the site, or a bare host, which means https
    #[arg(value_name = "ORIGIN")]
    origin: String,
    /// Show the difference from version A to version B. With A alone, show the difference from the version before A.
    /// With neither, show the last change. Name a version by its number in the list, or by at least six digits of its
    /// SHA-256
    #[arg(long, num_args = 0..=2, value_names = ["A", "B"])]
    diff: Option<Vec<String>>,
    /// Print only the text of a version: byte for byte, but with control characters escaped at a terminal
    #[arg(long, value_name = "VERSION", conflicts_with_all = ["diff", "json"])]
    show: Option<String>,
}

#[derive(Debug, Serialize)]
struct VersionList<'a> {
    origin: String,
    versions: &'a [Version],
}

#[derive(Debug, Serialize)]
struct Comparison<'a> {
    origin: String,
    #[serde(flatten)]
    difference: &'a Difference,
}

// === impl HistoryArgs ===

impl HistoryArgs {
    pub(super) fn run(&self, args: &CacheArgs) -> Result<(), CacheError> {
        let origin = origin_of(&self.origin)?;
        let (config, sources) = args.load()?;
        let Some(options) = &config.evidence else {
            return Err(CacheError::Unknown(
                "this configuration has no store of evidence, so the proxy keeps no old versions; evidence.enabled = \
                 true adds one"
                    .to_owned(),
            ));
        };
        let _progress = Progress::begin(|| "reading the store of evidence".to_owned());
        let unreadable = |error| CacheError::Evidence {
            path: options.path.clone(),
            error,
        };
        let versions = Versions::read(&options.path, &origin).map_err(unreadable)?;
        if versions.list.is_empty() {
            let missing = "the store of evidence has no version of the robots.txt of";
            return Err(unknown(missing, &origin, &self.origin, &sources));
        }
        let failed = |error| match error {
            VersionError::File(error) => unreadable(error),
            VersionError::Unknown(why) => CacheError::Unknown(why),
        };
        match (&self.show, &self.diff) {
            (Some(show), _) => {
                let version = versions.find(show).map_err(failed)?;
                if version.sha256.is_none() {
                    return Err(CacheError::Unknown(format!("{origin} had no robots.txt at that time")));
                }
                let text = versions.text(version).map_err(failed)?;
                match io::stdout().is_terminal() {
                    true => print(escaped(&text).as_bytes()),
                    false => print(&text),
                }
            }
            (None, Some(named)) => {
                let (from, to) = versions.pair(named).map_err(failed)?;
                let profile = config.robots.policy.profile;
                let found = versions.difference(profile, from, to).map_err(failed)?;
                print_difference(args, &origin, &found)
            }
            (None, None) if args.json => print_json(&VersionList {
                origin: origin.to_string(),
                versions: &versions.list,
            }),
            (None, None) => print(table(&versions.list, paint()).as_bytes()),
        }
    }
}

fn table(versions: &[Version], paint: Paint) -> String {
    let heads = ["VERSION", "FIRST SEEN", "LAST SEEN", "STATUS", "BYTES", "SHA-256"].map(str::to_owned);
    let rows = versions.iter().map(|version| {
        let minute = |time: Timestamp| Minute(time.0).to_string().trim_end_matches(" UTC").to_owned();
        let or_none = |value: Option<String>| value.unwrap_or_else(|| NONE.to_owned());
        [
            version.version.to_string(),
            minute(version.first_seen),
            minute(version.last_seen),
            or_none(version.status.map(|status| status.to_string())),
            or_none(version.bytes.map(|bytes| bytes.to_string())),
            or_none(version.sha256.map(short)),
        ]
    });
    let rows: Vec<_> = rows.collect();
    let widths: [usize; 6] =
        std::array::from_fn(|at| rows.iter().chain([&heads]).map(|row| row[at].len()).max().unwrap_or(0));
    let line = |cells: &[String; 6]| {
        let cells = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let mut out = format!("{}\n", paint.in_colour(Colour::Strong, line(&heads)));
    for row in &rows {
        let _ = writeln!(out, "{}", line(row));
    }
    out
}

fn print_difference(args: &CacheArgs, origin: &Origin, found: &Difference) -> Result<(), CacheError> {
    if args.json {
        return print_json(&Comparison {
            origin: origin.to_string(),
            difference: found,
        });
    }
    print(format!("{}\n{}", coloured(&found.diff, paint()), summary(found)).as_bytes())
}

fn coloured(diff: &str, paint: Paint) -> String {
    let mut out = String::new();
    for line in diff.lines() {
        let colour = match line.as_bytes().first() {
            Some(b'+') => Colour::Good,
            Some(b'-') => Colour::Bad,
            Some(b'@') => Colour::Faint,
            _ => {
                out.push_str(line);
                out.push('\n');
                continue;
            }
        };
        let _ = writeln!(out, "{}", paint.in_colour(colour, line));
    }
    out
}

fn summary(found: &Difference) -> String {
    if found.rules == UNCHANGED {
        return "The rules are the same.\n".to_owned();
    }
    let mut out = String::new();
    for group in found.groups.iter().take(MAX_GROUPS) {
        let mut agents: Vec<_> = group
            .agents
            .iter()
            .take(MAX_AGENTS)
            .map(|agent| plain(agent, MAX_NAME))
            .collect();
        if group.agents.len() > MAX_AGENTS {
            agents.push(format!("and {} more", group.agents.len() - MAX_AGENTS).into());
        }
        let kind = match group.kind {
            GroupChangeKind::Added => " (new)",
            GroupChangeKind::Removed => " (gone)",
            GroupChangeKind::Changed => "",
        };
        let _ = writeln!(
            out,
            "Rules for {}{kind}: {} added, {} removed",
            agents.join(", "),
            group.added.len(),
            group.removed.len()
        );
    }
    if found.groups.len() > MAX_GROUPS || found.is_cut {
        out.push_str("More groups changed.\n");
    }
    out
}

const NONE: &str = "-";
const MAX_GROUPS: usize = 50;
const MAX_AGENTS: usize = 10;
/// Maximum length of an agent's name in the summary, in bytes.
const MAX_NAME: usize = 100;
