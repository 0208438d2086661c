//! Reading the credentials file, and whether others could.
//!
//! It writes nothing, and no error of it quotes what is in the file.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::bot::{BadLine, Credentials};

/// Why there are no credentials to be had from a file.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    #[error(
        "cannot read {}: {source}; \"robotgate credential add NAME --config FILE\" makes the file, which the user \
         that robotgate runs as has to be able to read",
        path.display()
    )]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: {exposure}", path.display())]
    Exposed { path: PathBuf, exposure: Exposure },
    #[error("{} is not UTF-8", .0.display())]
    NotText(PathBuf),
    #[error("{}", self.lines().join("\n"))]
    Lines { path: PathBuf, bad: Vec<BadLine> },
}

/// Who has rights to a file that they should not have. Its `Display` says what to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "its mode is {mode:04o}, so {}; run: chmod {kept:o} FILE",
    if *others { "others than its owner and group can get at it" } else { "its group can change it" }
)]
pub struct Exposure {
    mode: u32,
    kept: u32,
    others: bool,
}

// === impl CredentialsError ===

impl CredentialsError {
    /// What there is to complain of, each a line.
    pub(super) fn lines(&self) -> Vec<String> {
        match self {
            Self::Lines { path, bad } => bad.iter().map(|bad| format!("{}:{bad}", path.display())).collect(),
            Self::Exposed { path, exposure } => {
                let path = path.display().to_string();
                vec![format!("{path}: {}", exposure.to_string().replace("FILE", &path))]
            }
            Self::Read { .. } | Self::NotText(_) => vec![self.to_string()],
        }
    }
}

pub(super) fn read(path: &Path) -> Result<Credentials, CredentialsError> {
    let unreadable = |source| CredentialsError::Read {
        path: path.to_owned(),
        source,
    };
    let mut file = File::open(path).map_err(unreadable)?;
    // Of the open file, for the path may lead elsewhere by the time it is read.
    let metadata = file.metadata().map_err(unreadable)?;
    if let Some(exposure) = exposure(metadata.permissions().mode()) {
        return Err(CredentialsError::Exposed {
            path: path.to_owned(),
            exposure,
        });
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(unreadable)?;
    let text = str::from_utf8(&bytes).map_err(|_| CredentialsError::NotText(path.to_owned()))?;
    Credentials::parse(text).map_err(|bad| CredentialsError::Lines {
        path: path.to_owned(),
        bad,
    })
}

/// What is wrong with a credentials file's mode: others may do nothing with it, and its group may read it.
pub fn exposure(mode: u32) -> Option<Exposure> {
    let mode = mode & 0o7777;
    (mode & (OTHERS | GROUP_CHANGES) != 0).then_some(Exposure {
        mode,
        kept: mode & 0o777 & !(OTHERS | GROUP_CHANGES),
        others: mode & OTHERS != 0,
    })
}

const OTHERS: u32 = 0o007;
/// To write and to execute.
const GROUP_CHANGES: u32 = 0o030;
