//! Tests sealing, verifying and proving with a log in a folder.

mod durability;
mod keys;
mod rotated;
mod sealing;
mod verifying;

use std::{
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};
use tempfile::TempDir;

use super::{
    folder::crash,
    note::Checkpoint,
    tree::{Tree, leaf},
    verify::{Finding, FindingKind},
    *,
};
use crate::copy::Sha256;

struct Bench {
    folder: TempDir,
}

// === impl Bench ===

impl Bench {
    fn new() -> Self {
        Self {
            folder: TempDir::new().unwrap(),
        }
    }

    fn sealed(number: u64) -> Self {
        let bench = Self::new();
        bench.append(0..number);
        assert_eq!(bench.seal().unwrap().new, number);
        bench
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn options(&self) -> SealOptions {
        SealOptions {
            path: self.file("seal"),
            origin: Some("example.com/log".to_owned()),
            new_origin: "example.com/log".to_owned(),
        }
    }

    fn write(&self, text: &str) {
        let log = fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(self.file("audit.jsonl"));
        log.unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn append(&self, lines: std::ops::Range<u64>) {
        self.write(&lines.map(|number| line(number) + "\n").collect::<String>());
    }

    fn rotate(&self, name: &str) {
        fs::rename(self.file("audit.jsonl"), self.file(name)).unwrap();
    }

    fn compress(&self, name: &str) {
        let packed = fs::File::create(self.file(&format!("{name}.gz"))).unwrap();
        let mut packed = GzEncoder::new(packed, Compression::fast());
        packed.write_all(&fs::read(self.file(name)).unwrap()).unwrap();
        packed.finish().unwrap();
        fs::remove_file(self.file(name)).unwrap();
    }

    fn seal(&self) -> Result<Sealed, SealError> {
        seal(&self.options(), &[self.file("audit.jsonl")], false, || false)
    }

    fn go_on(&self) -> Result<Sealed, SealError> {
        seal(&self.options(), &[self.file("audit.jsonl")], true, || false)
    }

    fn edit(&self, edit: impl FnOnce(&mut Vec<String>)) {
        let path = self.file("audit.jsonl");
        let text = fs::read_to_string(&path).unwrap();
        let mut lines = text.lines().map(str::to_owned).collect();
        edit(&mut lines);
        fs::write(path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    }

    fn verify_with(&self, what: Verify) -> Result<Verification, SealError> {
        verify(&Verify {
            folder: self.file("seal"),
            ..what
        })
    }

    fn verify(&self, logs: &[&str]) -> Verification {
        let logs = logs.iter().map(|log| self.file(log)).collect();
        self.verify_with(Verify {
            logs,
            ..Verify::default()
        })
        .unwrap()
    }

    fn checkpoint(&self) -> Checkpoint {
        let note = checkpoint(&self.file("seal")).unwrap();
        Checkpoint::parse(note.split_inclusive("\n\n").next().unwrap().strip_suffix('\n').unwrap()).unwrap()
    }
}

fn line(number: u64) -> String {
    format!("{{\"event\":\"decision\",\"time\":\"2026-11-22T00:00:00.{number:06}Z\",\"id\":\"id-{number}\"}}")
}

fn erased(number: u64) -> String {
    format!(
        "{{\"event\":\"erased\",\"sha256\":\"{}\"}}",
        Sha256::of(line(number).as_bytes())
    )
}

fn root(lines: u64) -> Sha256 {
    let mut tree = Tree::default();
    for number in 0..lines {
        tree.push(leaf(&Sha256::of(line(number).as_bytes()).0), |_, _| ());
    }
    tree.root()
}

fn kinds(found: &Verification) -> Vec<(FindingKind, Option<u64>, u64)> {
    let kind = |finding: &Finding| (finding.kind.clone(), finding.line, finding.count);
    found.findings.iter().map(kind).collect()
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(files_in(&path)),
            false => files.push(path),
        }
    }
    files.sort();
    files
}
