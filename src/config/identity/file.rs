//! Reading the credentials file.
//!
//! It writes nothing, and no error of it quotes what is in the file.

use std::io;
use std::path::{Path, PathBuf};

use crate::bot::{BadLine, Credentials};
use crate::secret_file::{self, SecretError};

/// Why there are no credentials to be had from a file.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    #[error("{0}; \"robotgate credential add NAME --config FILE\" makes the file")]
    Missing(SecretError),
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error("{} is not UTF-8", .0.display())]
    NotText(PathBuf),
    #[error("{}", self.lines().join("\n"))]
    Lines { path: PathBuf, bad: Vec<BadLine> },
}

// === impl CredentialsError ===

impl CredentialsError {
    /// What there is to complain of, each a line.
    pub(super) fn lines(&self) -> Vec<String> {
        match self {
            Self::Lines { path, bad } => bad.iter().map(|bad| format!("{}:{bad}", path.display())).collect(),
            Self::Missing(_) | Self::Secret(_) | Self::NotText(_) => vec![self.to_string()],
        }
    }
}

pub(super) fn read(path: &Path) -> Result<Credentials, CredentialsError> {
    let bytes = secret_file::read(path).map_err(|error| match &error {
        SecretError::Read { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            CredentialsError::Missing(error)
        }
        _ => error.into(),
    })?;
    let text = str::from_utf8(&bytes).map_err(|_| CredentialsError::NotText(path.to_owned()))?;
    Credentials::parse(text).map_err(|bad| CredentialsError::Lines {
        path: path.to_owned(),
        bad,
    })
}
