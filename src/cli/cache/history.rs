//! `robotgate cache history`: prints the versions of a site's robots.txt, and the difference between two.

use std::{
    fmt::Write as _,
    io::{self, IsTerminal as _},
    time::Duration,
};

use serde::Serialize;
use similar::TextDiff;

use super::{CacheArgs, CacheError, origin_of, paint, print, print_json, show::tamed, unknown};
use crate::{
    cli::{
        colour::{Colour, Paint},
        progress::Progress,
    },
    copy::Sha256,
    evidence::{self, EvidenceReader},
    origin::Origin,
    robots::{Changes, GroupChange, GroupChangeKind, Profile, changes},
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
    /// Show the difference from version A to version B. With A alone, show what changed in version A; with neither,
    /// show what changed last. Name a version by its number in the list, or by at least six digits of its SHA-256
    #[arg(long, num_args = 0..=2, value_names = ["A", "B"])]
    diff: Option<Vec<String>>,
    /// Print only the text of a version: byte for byte, but with control characters escaped at a terminal
    #[arg(long, value_name = "VERSION", conflicts_with_all = ["diff", "json"])]
    show: Option<String>,
}

/// A version as printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Version {
    version: usize,
    first_seen: Timestamp,
    last_seen: Timestamp,
    status: Option<u16>,
    bytes: Option<u32>,
    /// `None` if the site had no robots.txt.
    sha256: Option<Sha256>,
}

/// The JSON of a list.
#[derive(Debug, Serialize)]
struct History<'a> {
    origin: String,
    versions: &'a [Version],
}

/// The JSON of a comparison.
#[derive(Debug, Serialize)]
struct Difference<'a> {
    origin: String,
    from: &'a Version,
    to: &'a Version,
    rules: &'static str,
    rules_added: usize,
    rules_removed: usize,
    groups: &'a [GroupChange],
    /// The difference between the texts, line by line.
    diff: &'a str,
}

// === impl HistoryArgs ===

impl HistoryArgs {
    pub(super) fn run(&self, args: &CacheArgs) -> Result<(), CacheError> {
        let origin = origin_of(&self.origin)?;
        let (config, sources) = args.load()?;
        let Some(options) = &config.evidence else {
            return Err(CacheError::Unknown(
                "with evidence.enabled = false the proxy does not keep old versions".to_owned(),
            ));
        };
        let _progress = Progress::begin(|| "reading the store of evidence".to_owned());
        let unreadable = |error| CacheError::Evidence {
            path: options.path.clone(),
            error,
        };
        let store = EvidenceReader::open(&options.path).map_err(unreadable)?;
        let found = store.history(&origin).map_err(unreadable)?;
        let versions: Vec<Version> = (1..)
            .zip(&found)
            .map(|(number, found)| Version::new(number, found))
            .collect();
        if versions.is_empty() {
            return Err(unknown(&origin, &self.origin, &sources));
        }
        let read = |version: &Version| -> Result<Vec<u8>, CacheError> {
            let Some(sha256) = version.sha256 else {
                return Ok(Vec::new());
            };
            let text = store.read(&[sha256]).map_err(unreadable)?.remove(&sha256);
            text.ok_or_else(|| {
                CacheError::Unknown(format!(
                    "the store of evidence no longer has the text of version {}",
                    version.version
                ))
            })
        };
        match (&self.show, &self.diff) {
            (Some(show), _) => {
                let version = find(&versions, show)?;
                if version.sha256.is_none() {
                    return Err(CacheError::Unknown(format!("{origin} had no robots.txt then")));
                }
                let text = read(version)?;
                match io::stdout().is_terminal() {
                    true => print(tamed(&text).as_bytes()),
                    false => print(&text),
                }
            }
            (None, Some(named)) => {
                let (from, to) = pair(&versions, named)?;
                let texts = (read(from)?, read(to)?);
                let profile = config.robots.policy.profile;
                difference(args, &origin, profile, (from, to), (&texts.0, &texts.1))
            }
            (None, None) if args.json => print_json(&History {
                origin: origin.to_string(),
                versions: &versions,
            }),
            (None, None) => print(table(&versions, paint()).as_bytes()),
        }
    }
}

/// Returns the two versions to compare.
fn pair<'v>(versions: &'v [Version], named: &[String]) -> Result<(&'v Version, &'v Version), CacheError> {
    let (from, to) = match named {
        [from, to] => (find(versions, from)?, find(versions, to)?),
        [] | [_] => {
            let to = match named.first() {
                Some(named) => find(versions, named)?,
                // The caller has made sure that there is one.
                None => &versions[versions.len() - 1],
            };
            let from = to.version.checked_sub(2).map(|before| &versions[before]);
            let from = from.ok_or_else(|| {
                CacheError::Unknown(format!(
                    "version {} is the oldest, so there is none to compare it with",
                    to.version
                ))
            })?;
            (from, to)
        }
        // clap accepts two at most.
        _ => return Err(CacheError::Unknown("--diff compares two versions at most".to_owned())),
    };
    Ok((from, to))
}

/// Finds a version by its number or the beginning of its SHA-256. If several versions match, returns the last.
fn find<'v>(versions: &'v [Version], named: &str) -> Result<&'v Version, CacheError> {
    let number: Option<usize> = named.parse().ok();
    let by_number = number.and_then(|number| versions.get(number.checked_sub(1)?));
    let is_named = |version: &&Version| {
        let sha256 = version.sha256.map(|sha256| sha256.to_string());
        sha256.is_some_and(|sha256| named.len() >= MIN_DIGITS && sha256.starts_with(&named.to_ascii_lowercase()))
    };
    let found = by_number.or_else(|| versions.iter().rev().find(is_named));
    found.ok_or_else(|| {
        CacheError::Unknown(format!(
            "there is no version {:?}; name it by its number, 1 to {}, or by the first digits of its SHA-256 \
             ({MIN_DIGITS} at least)",
            plain(named, MAX_NAME),
            versions.len()
        ))
    })
}

// === impl Version ===

impl Version {
    fn new(number: usize, found: &evidence::Version) -> Self {
        Self {
            version: number,
            first_seen: Timestamp(found.first_seen),
            last_seen: Timestamp(found.last_seen),
            status: Some(found.status).filter(|status| *status != 0),
            bytes: found.text.map(|text| text.bytes),
            sha256: found.text.map(|text| text.sha256),
        }
    }

    fn title(&self) -> String {
        let what = match (self.sha256, self.status) {
            (Some(sha256), _) => format!("SHA-256 {}", short(sha256)),
            (None, Some(status)) => format!("no robots.txt ({status})"),
            (None, None) => "no robots.txt".to_owned(),
        };
        format!("version {}, {}, {what}", self.version, Minute(self.first_seen.0))
    }
}

fn short(sha256: Sha256) -> String {
    sha256.to_string()[..SHOWN_DIGITS].to_owned()
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
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{}", line(row));
    }
    out
}

fn difference(
    args: &CacheArgs,
    origin: &Origin,
    profile: Profile,
    (from, to): (&Version, &Version),
    (before, after): (&[u8], &[u8]),
) -> Result<(), CacheError> {
    let found = changes(profile, before, after);
    let diff = unified(before, after, &from.title(), &to.title());
    if args.json {
        return print_json(&Difference {
            origin: origin.to_string(),
            from,
            to,
            rules: if found.has_rules() { "changed" } else { "unchanged" },
            rules_added: found.rules_added(),
            rules_removed: found.rules_removed(),
            groups: &found.groups,
            diff: &diff,
        });
    }
    print(format!("{}\n{}", coloured(&diff, paint()), summary(&found)).as_bytes())
}

/// Formats the difference between the texts, line by line. Control characters are escaped.
fn unified(before: &[u8], after: &[u8], from: &str, to: &str) -> String {
    let lines = |text: &[u8]| -> Vec<String> {
        let text = String::from_utf8_lossy(text);
        let text = text.strip_suffix('\n').unwrap_or(&text);
        match text {
            "" => Vec::new(),
            text => text
                .split('\n')
                .map(|line| plain(line, usize::MAX).into_owned())
                .collect(),
        }
    };
    let (before, after) = (lines(before), lines(after));
    let [before, after] = [&before, &after].map(|lines| lines.iter().map(String::as_str).collect::<Vec<_>>());
    let diff = TextDiff::configure()
        .timeout(MAX_TIME)
        .newline_terminated(false)
        .diff_slices(&before, &after);
    let diff = diff.unified_diff().header(from, to).to_string();
    match diff.match_indices('\n').nth(MAX_LINES) {
        Some((end, _)) => {
            let more = diff[end + 1..].lines().count();
            format!("{}\n… {more} more lines; --show prints each text\n", &diff[..end])
        }
        None => diff,
    }
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
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{}", paint.in_colour(colour, line));
    }
    out
}

/// Describes how many rules each group gained and lost.
fn summary(found: &Changes) -> String {
    if !found.has_rules() {
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
        // Writing to a string cannot fail.
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

/// Shown for unknown values.
const NONE: &str = "-";
/// How many digits of a SHA-256 are shown, and how many digits are needed to name a version.
const SHOWN_DIGITS: usize = 12;
const MIN_DIGITS: usize = 6;
/// How long the comparison searches for the shortest difference.
const MAX_TIME: Duration = Duration::from_secs(1);
/// Maximum numbers of shown lines of a difference, groups, and agents of a group.
const MAX_LINES: usize = 5000;
const MAX_GROUPS: usize = 50;
const MAX_AGENTS: usize = 10;
/// Maximum size of a shown name in bytes.
const MAX_NAME: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(digests: &[Option<&str>]) -> Vec<Version> {
        let version = |(number, text): (usize, &Option<&str>)| Version {
            version: number,
            first_seen: Timestamp(std::time::SystemTime::UNIX_EPOCH),
            last_seen: Timestamp(std::time::SystemTime::UNIX_EPOCH),
            status: Some(if text.is_some() { 200 } else { 404 }),
            bytes: text.map(|text| u32::try_from(text.len()).expect("short")),
            sha256: text.map(|text| Sha256::of(text.as_bytes())),
        };
        (1..).zip(digests).map(version).collect()
    }

    #[test]
    fn versions_are_named_by_number_or_digest_and_the_last_two_by_default() {
        let versions = versions(&[Some("a"), None, Some("b"), Some("a")]);
        let a = Sha256::of(b"a").to_string();
        for (named, expected) in [
            (&[][..], Some((3, 4))),
            (&["2"], Some((1, 2))),
            (&["1", "3"], Some((1, 3))),
            (&["3", "1"], Some((3, 1))),
            (&["2", &a[..6].to_uppercase()], Some((2, 4))),
            (&["1"], None),
            (&["0"], None),
            (&["5"], None),
            (&[&a[..5]], None),
            (&["example.com"], None),
        ] {
            let named: Vec<String> = named.iter().map(|named| (*named).to_owned()).collect();
            let found = pair(&versions, &named).map(|(from, to)| (from.version, to.version));
            assert_eq!(found.ok(), expected, "{named:?}");
        }
    }

    #[test]
    fn the_difference_shows_lines_with_their_context() {
        let before = b"User-agent: *\nDisallow: /a\nDisallow: /b\nDisallow: /c\nDisallow: /d\nDisallow: /e\n";
        let after = b"User-agent: *\nDisallow: /a\nDisallow: /b\nDisallow: /c\nDisallow: /d\nAllow: /\x1b[2J\n";
        assert_eq!(
            unified(before, after, "one", "two"),
            "--- one\n+++ two\n@@ -3,4 +3,4 @@\n Disallow: /b\n Disallow: /c\n Disallow: /d\n\
             -Disallow: /e\n+Allow: /\\u{1b}[2J\n"
        );
        assert_eq!(
            unified(b"", b"a\n", "one", "two"),
            "--- one\n+++ two\n@@ -0,0 +1 @@\n+a\n"
        );
        assert_eq!(unified(b"a", b"a\n", "one", "two"), "");
    }

    #[test]
    fn a_long_difference_is_cut() {
        let long = (0..MAX_LINES * 2).map(|line| format!("{line}\n")).collect::<String>();
        let diff = unified(b"", long.as_bytes(), "one", "two");
        assert_eq!(diff.lines().count(), MAX_LINES + 2);
        assert!(
            diff.ends_with("… 5002 more lines; --show prints each text\n"),
            "{}",
            &diff[diff.len() - 80..]
        );
    }
}
