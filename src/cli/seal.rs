//! `robotgate seal`: seals the audit log, and verifies and proves what is sealed.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use super::{Overrides, fail, load, print};
use crate::{
    config::{ConfigError, Output},
    seal::{self, NoteError, SealError, SealOptions, Verification, VerifierKey, Verify},
    text::plain_message,
};

/// Seal the audit log, so that later changes of its lines can be found
///
/// Adds each new line's SHA-256 to a Merkle tree and signs its root. The lines stay in the log. Goes on where it
/// stopped, also after a rotation. Run it by a timer, or set evidence.seal = true instead, so that the proxy does it.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_help = AFTER_HELP)]
pub struct SealArgs {
    #[command(subcommand)]
    action: Option<Action>,
    /// The log; its rotated files next to it are found. Name them too if they lie elsewhere. Without LOG, audit.path
    #[arg(value_name = "LOG")]
    logs: Vec<PathBuf>,
    /// Go on although sealed lines are missing or changed: seal each line that is not sealed yet
    #[arg(long)]
    go_on: bool,
    /// The configuration that the proxy runs with: it names the folder and the log
    #[arg(long, short, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    #[command(flatten)]
    overrides: Overrides,
    /// The folder of the sealed log, instead of the configuration's (evidence.seal-path)
    #[arg(long, value_name = "FOLDER", global = true)]
    folder: Option<PathBuf>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Verify(VerifyArgs),
    Prove(ProveArgs),
    /// Print the current checkpoint, to hand it to a notary or a witness
    Checkpoint,
    /// Replace the key that signs. A checkpoint that both keys sign announces the new one
    RotateKey,
}

/// Check that the log is as it was sealed
///
/// Finds lines that were changed, removed, added or moved, a log that was cut short, and files of the folder that do
/// not fit the signed checkpoint.
#[derive(Debug, clap::Args)]
struct VerifyArgs {
    /// Files of the log, from the oldest to the newest, also rotated and .gz ones. Without LOG, only the folder is
    /// checked
    #[arg(value_name = "LOG")]
    logs: Vec<PathBuf>,
    /// A checkpoint that was handed out before: the tree must extend it. Can be given several times
    #[arg(long, value_name = "FILE")]
    checkpoint: Vec<PathBuf>,
    /// A public key that you trust (a vkey), or a file with some. Without it, the keys in the folder count
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Older files were deleted or are not given: sealed lines before the first line are no error
    #[arg(long)]
    skip_older: bool,
    /// Newer files are not given: sealed lines after the last line are no error
    #[arg(long)]
    skip_newer: bool,
}

/// Write a proof that the lines of a request are sealed
///
/// Writes each line that has the id, and its proof (c2sp.org/tlog-proof). Anyone who trusts the key can check them
/// without robotgate and without the rest of the log.
#[derive(Debug, clap::Args)]
struct ProveArgs {
    /// The id of the request, as its client saw it
    id: String,
    /// Files of the log, in any order. Without LOG, audit.path
    #[arg(value_name = "LOG")]
    logs: Vec<PathBuf>,
    /// The folder to write to
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    out: PathBuf,
}

/// Why the command fails.
#[derive(Debug, thiserror::Error)]
enum SealCommandError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Seal(#[from] SealError),
    #[error("--key: {0}")]
    Key(NoteError),
    #[error("the audit log is on standard output; name the files of the log")]
    NoLog,
}

/// Runs the action. Fails if something is wrong with the log or the folder.
pub fn run(args: &SealArgs) -> ExitCode {
    let done = match &args.action {
        None => args.seal(),
        Some(Action::Verify(verify)) => args.verify(verify),
        Some(Action::Prove(prove)) => args.prove(prove),
        Some(Action::Checkpoint) => args.checkpoint(),
        Some(Action::RotateKey) => args.rotate_key(),
    };
    match done {
        Ok((text, is_good)) => match print(text) {
            ExitCode::SUCCESS if !is_good => ExitCode::FAILURE,
            code => code,
        },
        Err(error) => fail(&error),
    }
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

    /// Returns `logs`, or the log of the configuration.
    fn logs(&self, logs: &[PathBuf]) -> Result<Vec<PathBuf>, SealCommandError> {
        if !logs.is_empty() {
            return Ok(logs.to_vec());
        }
        match load(self.config.as_deref(), &self.overrides)?.0.audit.output {
            Output::File(path) => Ok(vec![path]),
            Output::Stdout => Err(SealCommandError::NoLog),
        }
    }

    fn seal(&self) -> Result<(String, bool), SealCommandError> {
        let options = self.options()?;
        let sealed = seal::seal(&options, &self.logs(&self.logs)?, self.go_on, || false)?;
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
        let found = seal::verify(&Verify {
            folder: self.options()?.path,
            logs: verify.logs.clone(),
            keys: verify.key.as_deref().map_or_else(|| Ok(Vec::new()), trusted)?,
            checkpoints: verify.checkpoint.clone(),
            skip_older: verify.skip_older,
            skip_newer: verify.skip_newer,
        })?;
        let is_good = found.findings.is_empty();
        Ok((text(&found, !verify.logs.is_empty()), is_good))
    }

    fn prove(&self, prove: &ProveArgs) -> Result<(String, bool), SealCommandError> {
        let proven = seal::prove(&self.options()?.path, &prove.id, &self.logs(&prove.logs)?)?;
        let mut text = String::new();
        let mut events = Vec::new();
        for proven in proven {
            let mut name = format!("{}-{}", prove.id, proven.event);
            if events.contains(&proven.event) {
                let _ = write!(name, "-{}", proven.entry);
            }
            events.push(proven.event.clone());
            let write = |end: &str, bytes: &[u8]| -> Result<PathBuf, SealCommandError> {
                let path = prove.out.join(format!("{name}.{end}"));
                let written = fs::write(&path, bytes);
                written.map_err(SealError::write(&path))?;
                Ok(path)
            };
            let line = write("json", &proven.line)?;
            let proof = write("tlog-proof", proven.proof.as_bytes())?;
            let (line, proof) = (line.display(), proof.display());
            let _ = writeln!(text, "{line} is entry {}; {proof} proves it", proven.entry);
        }
        Ok((text, true))
    }

    fn checkpoint(&self) -> Result<(String, bool), SealCommandError> {
        Ok((seal::checkpoint(&self.options()?.path)?, true))
    }

    fn rotate_key(&self) -> Result<(String, bool), SealCommandError> {
        let key = seal::rotate_key(&self.options()?)?;
        let text = format!(
            "the new public key is\n{key}\nHand it out with the checkpoint that announces it: robotgate seal checkpoint\n"
        );
        Ok((text, true))
    }
}

/// Reads the keys of `--key`: a vkey, or a file with one a line.
fn trusted(key: &str) -> Result<Vec<VerifierKey>, SealCommandError> {
    let text = match Path::new(key).is_file() {
        true => fs::read_to_string(key).map_err(SealError::read(key.as_ref()))?,
        false => key.to_owned(),
    };
    let keys = text.lines().filter(|line| !line.is_empty()).map(VerifierKey::parse);
    keys.collect::<Result<_, _>>().map_err(SealCommandError::Key)
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
            "{}: its last line is incomplete, so it is not sealed",
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
    let mut count = |number: u64, what: &str| {
        if number > 0 {
            let _ = writeln!(text, "{number:>10} {what}");
        }
    };
    count(found.checkpoints, "older checkpoints fit");
    if has_logs {
        count(found.lines.same, "lines are as they were sealed");
        count(found.lines.erased, "lines were erased; their hashes fit");
        count(found.lines.before, "sealed lines are before the first line given");
        count(found.lines.after, "sealed lines are after the last line given");
        count(found.lines.unsealed, "lines are not sealed yet");
    }
    if found.more > 0 {
        let _ = writeln!(text, "{:>10} more things are wrong, which are not listed", found.more);
    }
    let _ = match found.findings.len() as u64 + found.more {
        0 => writeln!(text, "nothing is wrong"),
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

/// Maximum length of a name in the report.
const MAX_NAME: usize = 2 * 1024;

const AFTER_HELP: &str = "\
A log whose name is that of a subcommand needs a path, such as ./verify.

Exit status: 0 if nothing is wrong; 1 if something is, or an input is bad; 2 for a usage error.

Try it:
  robotgate seal --config /etc/robotgate/robotgate.toml
  robotgate seal verify --folder seal --checkpoint last-year.txt audit.jsonl.1.gz audit.jsonl
  robotgate seal prove --folder seal 019a9f5c-8a44-7c3e-9d5f-2f4f8a1c7b10 audit.jsonl
  robotgate seal checkpoint --folder seal > checkpoint.txt";
