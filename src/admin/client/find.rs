//! Where the copies are: with a proxy that answers beside one of the files that may be theirs, or in
//! the first of those files that can be used.

use std::{
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{AdminError, talk::Talk};
use crate::{
    admin::socket::path_beside,
    config::Config,
    copy::Policy,
    store::{CopyFile, Disk, FileError, Why},
};

/// The copies that a configuration names, to be asked once.
pub struct Copies {
    /// The file that they are in.
    pub(super) path: PathBuf,
    pub(super) policy: Policy,
    pub(super) source: Source,
    pub(super) tell: fn(&str),
}

/// Who knows them.
pub(super) enum Source {
    Proxy(Talk),
    File(CopyFile),
}

// === impl Copies ===

impl Copies {
    /// Finds them. What else the person should know is told by `tell`, now or with the answer.
    ///
    /// # Errors
    /// There are none, or they cannot be had.
    pub fn find(config: &Config, tell: fn(&str)) -> Result<Self, AdminError> {
        let path = config.cache.path.as_deref().ok_or(AdminError::NotKept)?;
        let started = Instant::now();
        loop {
            let found = Self::look(path, config.robots.policy, tell);
            match found {
                // A proxy that starts has the file before it answers, and another command is done soon.
                Err(AdminError::Locked { .. }) if started.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
                found => return found,
            }
        }
    }

    fn look(path: &Path, policy: Policy, tell: fn(&str)) -> Result<Self, AdminError> {
        let found = |found: PathBuf, source| {
            if found != path {
                tell(&format!(
                    "this is of {}, which stands in for {}",
                    found.display(),
                    path.display()
                ));
            }
            Self {
                path: found,
                policy,
                source,
                tell,
            }
        };
        let mut candidates = Disk::candidates(path);
        while let Some(candidate) = candidates.next() {
            if let Some(talk) = Talk::with(&path_beside(&candidate))? {
                for other in candidates {
                    if matches!(Talk::with(&path_beside(&other)), Ok(Some(_))) {
                        tell(&format!(
                            "another proxy answers for {}, which this is not of; give each a cache.path of its own",
                            other.display()
                        ));
                    }
                }
                return Ok(found(candidate, Source::Proxy(talk)));
            }
        }
        let mut passed_over = None;
        for candidate in Disk::candidates(path) {
            let why = match Disk::read_only(&candidate, path) {
                Ok(file) => {
                    if let Some(error) = passed_over {
                        tell(&format!("{error}"));
                    }
                    return Ok(found(candidate, Source::File(file)));
                }
                Err(Why::Io(error)) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(why) => why,
            };
            match why {
                Why::Locked => {
                    let socket = path_beside(&candidate);
                    return Err(AdminError::Locked {
                        path: candidate,
                        socket,
                    });
                }
                // Nor can the one beside it be had, which may not be the one that is used.
                Why::Io(_) => return Err(AdminError::Unusable { path: candidate, why }),
                why => passed_over = passed_over.or(Some(AdminError::Unusable { path: candidate, why })),
            }
        }
        Err(passed_over.unwrap_or_else(|| AdminError::Nothing(path.to_owned())))
    }

    /// Works with the file, and closes it. It must not be asked of a proxy's.
    pub(super) fn in_file<T>(self, work: impl FnOnce(&CopyFile) -> Result<T, FileError>) -> Result<T, AdminError> {
        let Source::File(file) = self.source else {
            return Err(AdminError::Foreign);
        };
        Disk::guarded(&file, work).map_err(|error| AdminError::File { path: self.path, error })
    }
}

/// How long a file that is in use is waited for.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(50);
