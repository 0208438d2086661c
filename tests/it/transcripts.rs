//! Checks exchanges byte for byte: the bytes that the origin and the client receive, and the lines in the audit log.
//! `transcripts/*.txt` contains the scripts ([`script`] describes their syntax), and `transcripts/recorded/*.txt` the
//! recorded results.
//!
//! `RECORD=1` writes all recordings again, `RECORD=meant` only those of cases with the setting `may-change`,
//! `RECORD=spelling` only those in which just the order and spelling of fields have changed. `TRANSCRIPT=text` plays
//! only the cases whose names contain the text.

mod http2;
mod peer;
mod play;
mod script;
mod show;

use std::{collections::BTreeMap, fs, path::PathBuf, sync::Arc};

use tokio::{sync::Semaphore, task::JoinSet};

use self::script::Case;
use crate::{exchanges::ledger::Ledger, support::Gate};

type Recording = BTreeMap<String, String>;

#[tokio::test]
async fn exchanges_match_their_recordings() {
    let (usual, quick, copies) = tokio::join!(Gate::start(), Gate::with(QUICK), Gate::with(COPIES));
    let gates = Arc::new([usual, quick, copies].map(|gate| {
        let ledger = Ledger::of(gate.file("audit.jsonl"));
        (gate, ledger)
    }));
    let permits = Arc::new(Semaphore::new(AT_ONCE));
    let wanted = std::env::var("TRANSCRIPT").unwrap_or_default();
    let mut files = BTreeMap::new();
    for path in scripts() {
        let text = fs::read_to_string(&path).expect("a file of scripts");
        let cases = script::parse(&text);
        for (at, case) in cases.iter().enumerate() {
            assert!(
                cases[..at].iter().all(|other| other.name != case.name),
                "twice: {}",
                case.name
            );
        }
        files.insert(path, cases);
    }
    let known: BTreeMap<&PathBuf, Recording> = files.keys().map(|path| (path, read(path))).collect();
    let record = std::env::var("RECORD").unwrap_or_default();
    let mut playing = JoinSet::new();
    for cases in files.values() {
        for case in cases.iter().filter(|case| case.name.contains(&wanted)).cloned() {
            let (gates, permits) = (gates.clone(), permits.clone());
            playing.spawn(async move {
                let _permit = permits.acquire().await.expect("it is never closed");
                // Do not repeat a case that fails: a case whose result depends on a race must not be in a script.
                let played = tokio::spawn({
                    let case = case.clone();
                    async move {
                        let (gate, ledger) = &gates[case.gate as usize];
                        play::play(&case, gate, ledger).await
                    }
                });
                let went = played
                    .await
                    .unwrap_or_else(|error| format!("!! the case panicked: {error}\n"));
                (case.name, went)
            });
        }
    }
    let mut went = Recording::new();
    while let Some(played) = playing.join_next().await {
        let (name, text) = played.expect("a case plays to its end");
        went.insert(name, text);
    }

    let (mut wrong, mut permitted, mut spelling) = (String::new(), String::new(), String::new());
    for (path, cases) in &files {
        let before = &known[path];
        let mut after = before.clone();
        after.retain(|name, _| cases.iter().any(|case| case.name == *name));
        for case in cases {
            let Some(now) = went.get(&case.name) else { continue };
            let then = before.get(&case.name).map_or("", String::as_str);
            if then == now {
                continue;
            }
            let is_spelling = canonical(then) == canonical(now);
            let taken_over = match &*record {
                "1" => true,
                "meant" => case.may_change.is_some(),
                "spelling" => is_spelling,
                _ => false,
            };
            if taken_over {
                after.insert(case.name.clone(), now.clone());
                continue;
            }
            let shown = format!("=== {}\n{}", case.name, difference(then, now));
            match &case.may_change {
                _ if is_spelling => spelling += &shown,
                None => wrong += &shown,
                Some(why) => permitted += &format!("{shown}may change: {why}\n"),
            }
        }
        if !record.is_empty() {
            write(path, cases, &after);
        }
    }
    assert!(
        wrong.is_empty() && permitted.is_empty() && spelling.is_empty(),
        "- as recorded, + as it went now\n\n# ONLY THE ORDER OR SPELLING OF FIELDS (RECORD=spelling takes it over)\n{spelling}\n\
         # MAY CHANGE (RECORD=meant takes it over)\n{permitted}\n# REGRESSIONS\n{wrong}"
    );
}

fn scripts() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/transcripts");
    let entries = fs::read_dir(folder).expect("the folder of the scripts");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|ext| ext == "txt"))
        .collect();
    paths.sort();
    paths
}

fn recording(path: &std::path::Path) -> PathBuf {
    path.with_file_name("recorded").join(path.file_name().expect("a file"))
}

fn read(path: &std::path::Path) -> Recording {
    let text = fs::read_to_string(recording(path)).unwrap_or_default();
    let cases = text.split("=== ").skip(1);
    let parts = cases.filter_map(|case| case.split_once('\n'));
    parts
        .map(|(name, text)| (name.to_owned(), text.trim_end().to_owned() + "\n"))
        .collect()
}

fn write(path: &std::path::Path, cases: &[Case], recorded: &Recording) {
    let text: Vec<String> = cases
        .iter()
        .filter_map(|case| Some(format!("=== {}\n{}", case.name, recorded.get(&case.name)?)))
        .collect();
    let path = recording(path);
    fs::create_dir_all(path.parent().expect("a folder")).expect("the folder of the recordings");
    fs::write(path, text.join("\n")).expect("the recording");
}

/// Sorts the fields in each message, writes their names in lower case, and removes `Connection: keep-alive`, which is
/// the default.
fn canonical(text: &str) -> String {
    let is_field = |line: &str| {
        line.starts_with("  ")
            && line
                .split_once(": ")
                .is_some_and(|(name, _)| !name.trim().contains(' '))
    };
    let mut lines: Vec<String> = Vec::new();
    let mut fields: Vec<String> = Vec::new();
    for line in text.lines() {
        if is_field(line) {
            let (name, value) = line.split_once(": ").expect("a field has a colon");
            let field = format!("{}: {value}", name.to_ascii_lowercase());
            if !field.ends_with("connection: keep-alive") {
                fields.push(field);
            }
            continue;
        }
        // Keep the order of fields with the same name.
        fields.sort_by(|a, b| a.split(':').next().cmp(&b.split(':').next()));
        lines.append(&mut fields);
        lines.push(line.to_owned());
    }
    lines.append(&mut fields);
    lines.join("\n")
}

/// Returns the lines of both texts, and marks those that are only in one of them (longest common subsequence).
fn difference(then: &str, now: &str) -> String {
    let (then, now): (Vec<&str>, Vec<&str>) = (then.lines().collect(), now.lines().collect());
    let mut common = vec![vec![0; now.len() + 1]; then.len() + 1];
    for i in (0..then.len()).rev() {
        for j in (0..now.len()).rev() {
            common[i][j] = match then[i] == now[j] {
                true => common[i + 1][j + 1] + 1,
                false => common[i + 1][j].max(common[i][j + 1]),
            };
        }
    }
    let (mut i, mut j, mut text) = (0, 0, String::new());
    while i < then.len() || j < now.len() {
        if i < then.len() && j < now.len() && then[i] == now[j] {
            text += &format!("    {}\n", then[i]);
            (i, j) = (i + 1, j + 1);
        } else if j == now.len() || (i < then.len() && common[i + 1][j] >= common[i][j + 1]) {
            text += &format!("  - {}\n", then[i]);
            i += 1;
        } else {
            text += &format!("  + {}\n", now[j]);
            j += 1;
        }
    }
    text
}

/// A configuration for cases that end with a time-out.
const QUICK: &str = "[proxy]\nread-timeout = \"2500ms\"\nbody-timeout = \"1s\"\nheader-timeout = \"2s\"";
const COPIES: &str = "[robots]\nserve-copies = true";
/// Number of cases to play concurrently.
const AT_ONCE: usize = 32;
