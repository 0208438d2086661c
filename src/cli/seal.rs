//! `robotgate seal`: seals the audit log, verifies that it is unchanged, and proves that a line is sealed.

use std::{
    fmt::Write as _,
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use super::{Overrides, finish, load};
use crate::{
    config::{ConfigError, Output},
    seal::{self, SealError, SealOptions, Verification, VerifierKey, Verify},
    text::plain_message,
};

/// Seal the audit log, so that later changes of its lines can be found
///
/// Adds the SHA-256 of each new line to a hash tree (a Merkle tree). Then signs a checkpoint: a short text with the
/// name of the log, the number of lines in the tree and the tree's root hash. The tree, the checkpoint and the key are
/// in the seal folder (evidence.seal-path). The lines stay in the log.
///
/// Each run continues where the last one stopped, also after a rotation of the log. Run the command by a timer, or set
/// evidence.seal = true: then the proxy seals the log itself.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_help = AFTER_HELP)]
pub struct SealArgs {
    #[command(subcommand)]
    action: Option<Action>,
    /// The log. seal finds the rotated files next to the log; also name those that are elsewhere. Without LOG, seal
    /// uses audit.path
    #[arg(value_name = "LOG")]
    logs: Vec<PathBuf>,
    /// Seal the lines that are not sealed yet, even if sealed lines are missing or changed. Without this option,
    /// sealing then stops with an error
    #[arg(long)]
    go_on: bool,
    /// The configuration that the proxy runs with. It says where the seal folder (evidence.seal-path) and the log
    /// (audit.path) are, and what name the log has in checkpoints (evidence.seal-origin)
    #[arg(long, short, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    #[command(flatten)]
    overrides: Overrides,
    /// The seal folder, instead of evidence.seal-path of the configuration
    #[arg(long, value_name = "FOLDER", global = true)]
    folder: Option<PathBuf>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Verify(VerifyArgs),
    Prove(ProveArgs),
    /// Print the current checkpoint, so that you can give it to somebody who keeps it, such as a notary
    Checkpoint,
    /// Replace the key that signs the checkpoints. Both keys sign a checkpoint that announces the new key
    RotateKey,
}

/// Check that the log is as it was sealed
///
/// Finds lines of the log that were changed, removed, added or moved after sealing, and files of the seal folder that
/// do not match the folder's checkpoint.
#[derive(Debug, clap::Args)]
struct VerifyArgs {
    /// Files of the log in any order, also rotated and .gz ones. Without LOG, verify reads audit.path and the rotated
    /// files next to it. If audit.path is not set either, verify checks only the seal folder
    #[arg(value_name = "LOG")]
    logs: Vec<PathBuf>,
    /// The file of an earlier checkpoint, which you or somebody else kept. verify checks that the tree still begins
    /// with exactly the lines that this checkpoint covers (repeatable)
    #[arg(long, value_name = "FILE")]
    checkpoint: Vec<PathBuf>,
    /// The public key that must have signed the checkpoints, or a file with such keys. Without this option, verify
    /// trusts the public keys in the seal folder
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Do not report that sealed lines are missing before the first line of the files. Use this option if you do not
    /// name the oldest files of the log
    #[arg(long)]
    skip_older: bool,
    /// Do not report that sealed lines are missing after the last line of the files. Use this option if you do not name
    /// the newest files of the log
    #[arg(long)]
    skip_newer: bool,
}

/// Write a proof that the lines of a request are sealed
///
/// Writes two files for each sealed line with the id: the line, and a proof that it is sealed (c2sp.org/tlog-proof).
/// Anyone who trusts the public key can check both files without robotgate and without the rest of the log.
#[derive(Debug, clap::Args)]
struct ProveArgs {
    /// The id of the request, from the log or from the Robots-Decision header
    id: String,
    /// Files of the log in any order, also rotated and .gz ones. Without LOG, prove reads audit.path and the rotated
    /// files next to it
    #[arg(value_name = "LOG")]
    logs: Vec<PathBuf>,
    /// The file of an earlier checkpoint, to prove that the lines were sealed when it was made. Without this option,
    /// the proof is for the current checkpoint
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// The folder to write the files to
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    out: PathBuf,
}

#[derive(Debug, thiserror::Error)]
enum SealCommandError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The message does not show the argument, which could be a private key.
    #[error("the value of --key is neither a public key nor the path of a file; correct the key or the path")]
    Key,
    #[error("--key: {key:?} is a folder; name a file in it")]
    KeyFolder { key: String },
    #[error("--key: line {line} of {key:?} is not a public key; name a file with only public keys, one on each line")]
    KeyLine { key: String, line: usize },
    #[error("--key: {key:?} has no public key; name a public key, or a file with one")]
    NoKey { key: String },
    #[error(
        "the configuration names no file of the audit log (audit.path); name the configuration of the proxy with \
         --config FILE, or name the files of the log"
    )]
    NoLog,
    #[error(
        "a part of the path {} belongs to user {owner}, who could not use files that root creates there; run the \
         command as that user, for example with \"sudo -u '#{owner}' robotgate seal ...\"", folder.display()
    )]
    Owner { folder: PathBuf, owner: u32 },
}

/// Runs the command. Fails if something is wrong with the log or the seal folder.
pub fn run(args: &SealArgs) -> ExitCode {
    let done = match &args.action {
        None => args.seal(),
        Some(Action::Verify(verify)) => args.verify(verify),
        Some(Action::Prove(prove)) => args.prove(prove),
        Some(Action::Checkpoint) => args.checkpoint(),
        Some(Action::RotateKey) => args.rotate_key(),
    };
    finish(done)
}

// === impl SealArgs ===

impl SealArgs {
    fn options(&self) -> Result<SealOptions, SealCommandError> {
        let options = load(self.config.as_deref(), &self.overrides)?.0.seal;
        Ok(match &self.folder {
            Some(path) => SealOptions {
                path: path.clone(),
                ..options
            },
            None => options,
        })
    }

    fn log(&self) -> Result<Option<PathBuf>, SealCommandError> {
        Ok(match load(self.config.as_deref(), &self.overrides)?.0.audit.output {
            Output::File(path) => Some(path),
            Output::Stdout => None,
        })
    }

    fn log_files(&self, named: &[PathBuf]) -> Result<Vec<PathBuf>, SealCommandError> {
        Ok(match (named, self.log()?) {
            ([], None) => Vec::new(),
            ([], Some(log)) => seal::files_of(&log)?,
            (named, _) => named.to_vec(),
        })
    }

    /// Fails if this process is root, and `folder` or a folder above it belongs to another user. That user's proxy
    /// could not use files that root creates there.
    fn check_owner(folder: &Path) -> Result<(), SealCommandError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(());
        }
        let folder = std::path::absolute(folder).map_err(SealError::read(folder))?;
        match other_owner(&folder, MAX_LINKS) {
            Some(owner) => Err(SealCommandError::Owner { folder, owner }),
            None => Ok(()),
        }
    }

    fn seal(&self) -> Result<(String, bool), SealCommandError> {
        let options = self.options()?;
        Self::check_owner(&options.path)?;
        let logs = match self.logs.is_empty() {
            true => vec![self.log()?.ok_or(SealCommandError::NoLog)?],
            false => self.logs.clone(),
        };
        let sealed = seal::seal(&options, &logs, self.go_on, || false)?;
        let mut text = String::new();
        if let Some(key) = &sealed.created {
            let _ = writeln!(
                text,
                "created a key in {}. Its public key is\n{key}",
                options.path.display()
            );
        }
        let _ = writeln!(text, "sealed {}; {} in all", lines(sealed.new), lines(sealed.size));
        Ok((text, true))
    }

    fn verify(&self, verify: &VerifyArgs) -> Result<(String, bool), SealCommandError> {
        let logs = self.log_files(&verify.logs)?;
        let has_logs = !logs.is_empty();
        let found = seal::verify(&Verify {
            folder: self.options()?.path,
            logs,
            keys: verify.key.as_deref().map_or_else(|| Ok(Vec::new()), trusted)?,
            checkpoints: verify.checkpoint.clone(),
            skip_older: verify.skip_older,
            skip_newer: verify.skip_newer,
        })?;
        let is_good = found.findings.is_empty();
        Ok((text(&found, has_logs), is_good))
    }

    fn prove(&self, prove: &ProveArgs) -> Result<(String, bool), SealCommandError> {
        let logs = self.log_files(&prove.logs)?;
        if logs.is_empty() {
            return Err(SealCommandError::NoLog);
        }
        let (proven, missing) = seal::prove(&self.options()?.path, &prove.id, &logs, prove.checkpoint.as_deref())?;
        let mut text = String::new();
        let mut events = Vec::new();
        for proven in proven {
            // The event is part of a file name, so it must not contain a path to another folder.
            let event: String = (proven.event.chars())
                .filter(|c| c.is_ascii_lowercase() || *c == '-')
                .collect();
            let mut name = format!("{}-{event}", prove.id);
            if events.contains(&event) {
                let _ = write!(name, "-{}", proven.entry);
            }
            events.push(event);
            let write = |end: &str, bytes: &[u8]| -> Result<PathBuf, SealCommandError> {
                let path = prove.out.join(format!("{name}.{end}"));
                let result = fs::write(&path, bytes);
                result.map_err(SealError::write(&path))?;
                Ok(path)
            };
            let line = write("json", &proven.line)?;
            let proof = write("tlog-proof", proven.proof.as_bytes())?;
            let (line, proof) = (line.display(), proof.display());
            let _ = writeln!(
                text,
                "{line} is entry {} of the tree; {proof} proves it, with the checkpoint of {}",
                proven.entry,
                lines(proven.size)
            );
        }
        if missing > 0 {
            let _ = writeln!(
                text,
                "not proven: {} of this request, which the checkpoint does not cover, or which changed after sealing \
                 (`robotgate seal verify` shows changes)",
                lines(missing as u64)
            );
        }
        Ok((text, missing == 0))
    }

    fn checkpoint(&self) -> Result<(String, bool), SealCommandError> {
        Ok((seal::checkpoint(&self.options()?.path)?, true))
    }

    fn rotate_key(&self) -> Result<(String, bool), SealCommandError> {
        let options = self.options()?;
        Self::check_owner(&options.path)?;
        let (key, announced_in) = seal::rotate_key(&options)?;
        let text = format!(
            "the new public key is\n{key}\nHand it out as soon as possible, with the checkpoint that announces it:\n{}\n",
            plain_message(&announced_in.display().to_string(), MAX_NAME)
        );
        Ok((text, true))
    }
}

/// Returns a user, other than root, who owns a folder or a symbolic link in `path`, or in the path to a link's target.
/// The owner of a link could let root write elsewhere.
fn other_owner(path: &Path, links: u32) -> Option<u32> {
    path.ancestors().find_map(|part| {
        let metadata = fs::symlink_metadata(part).ok()?;
        if metadata.uid() != 0 {
            return Some(metadata.uid());
        }
        let target = fs::read_link(part).ok()?;
        other_owner(&part.parent()?.join(target), links.checked_sub(1)?)
    })
}

fn trusted(key: &str) -> Result<Vec<VerifierKey>, SealCommandError> {
    // If `key` is a valid key, do not look for a file of this name: somebody else could create such a file.
    let is_file = VerifierKey::parse(key).is_err() && Path::new(key).is_file();
    let text = match is_file {
        true => fs::read_to_string(key).map_err(SealError::read(key.as_ref()))?,
        false => key.to_owned(),
    };
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.is_empty());
    let keys = lines.map(|(line, text)| {
        VerifierKey::parse(text).map_err(|_| match is_file {
            true => SealCommandError::KeyLine {
                key: key.to_owned(),
                line,
            },
            false if Path::new(key).is_dir() => SealCommandError::KeyFolder { key: key.to_owned() },
            false => SealCommandError::Key,
        })
    });
    let keys = keys.collect::<Result<Vec<_>, _>>()?;
    // Never return an empty list: with it, `verify` would trust the keys in the seal folder.
    match keys.is_empty() {
        true => Err(SealCommandError::NoKey { key: key.to_owned() }),
        false => Ok(keys),
    }
}

fn text(found: &Verification, has_logs: bool) -> String {
    let mut text = String::new();
    for finding in &found.findings {
        let line = finding.line.map_or_else(String::new, |line| format!(":{line}"));
        let file = plain_message(&finding.file, MAX_NAME);
        let _ = writeln!(text, "{file}{line}: {}", plain_message(&finding.to_string(), MAX_NAME));
    }
    for file in &found.incomplete {
        let _ = writeln!(
            text,
            "{}: its last line is incomplete, so this line is not sealed",
            plain_message(file, MAX_NAME)
        );
    }
    let _ = writeln!(
        text,
        "{}: {} sealed, signed by the key {}",
        plain_message(&found.origin, MAX_NAME),
        lines(found.sealed),
        found.key
    );
    let checkpoints = match (found.checkpoints, found.older_checkpoints) {
        (1, 1) => "older checkpoint matches".to_owned(),
        (1, all) => format!("of {all} older checkpoints (named, and of replaced keys) matches"),
        (some, all) if some == all => "older checkpoints match".to_owned(),
        (_, all) => format!("of {all} older checkpoints (named, and of replaced keys) match"),
    };
    if found.checkpoints > 0 {
        let _ = writeln!(text, "{:>10} {checkpoints} the sealed lines", found.checkpoints);
    }
    if has_logs {
        if found.lines.same > 0 {
            let unit = if found.lines.same == 1 {
                "line matches"
            } else {
                "lines match"
            };
            let _ = writeln!(text, "{:>10} {unit} the seal", found.lines.same);
        }
        let mut count = |number, what| {
            if number > 0 {
                let unit = if number == 1 { "line" } else { "lines" };
                let _ = writeln!(text, "{number:>10} {unit} {what}");
            }
        };
        count(found.lines.erased, "erased, with the sealed hash");
        count(found.lines.before, "sealed before the first line given");
        count(found.lines.after, "sealed after the last line given");
        count(found.lines.unsealed, "not sealed yet");
    }
    if found.more > 0 {
        let _ = writeln!(text, "{:>10} more things are wrong, which are not listed", found.more);
    }
    let _ = match found.findings.len() as u64 + found.more {
        0 if has_logs => writeln!(text, "nothing is wrong"),
        0 => writeln!(
            text,
            "nothing is wrong with the seal folder; to compare a log with it, name the log"
        ),
        1 => writeln!(text, "1 thing is wrong"),
        number => writeln!(text, "{number} things are wrong"),
    };
    text
}

fn lines(number: u64) -> String {
    match number {
        1 => "1 line".to_owned(),
        _ => format!("{number} lines"),
    }
}

/// Maximum length of a name or a finding in the output of `verify`, in bytes.
const MAX_NAME: usize = 2 * 1024;
/// Maximum number of symbolic links to follow from a path, as in Linux.
const MAX_LINKS: u32 = 40;

const AFTER_HELP: &str = "\
If a log has the name of a subcommand, write its path, such as ./verify.

Exit status: 0 if the command succeeds and verify finds nothing wrong; 1 if verify finds something wrong, or \
the command fails; 2 for a usage error.

Try it:
  robotgate seal --config /etc/robotgate/robotgate.toml
  robotgate seal verify --config /etc/robotgate/robotgate.toml --checkpoint last-year.txt
  robotgate seal prove --folder seal 019a9f5c-8a44-7c3e-9d5f-2f4f8a1c7b10 audit.jsonl
  robotgate seal checkpoint --folder seal > checkpoint.txt";
