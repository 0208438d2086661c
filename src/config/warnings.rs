//! What an operator should know of a configuration that can be used as it is. Sentences for `check`, and for the log of a
//! start or a reload.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use time::OffsetDateTime;

use super::{Config, Output};

impl Config {
    /// The sentences, for the configuration in `file` at the time `now`. It looks where the folders of files really are.
    pub fn warnings(&self, file: &Path, now: SystemTime) -> Vec<String> {
        let ended = self.https.tunnels.iter().filter(|tunnel| !tunnel.holds(now));
        let ended = ended.map(|tunnel| {
            format!(
                "https.tunnel: the entry for {} has ended: its last day was {}; a CONNECT to it gets what https.mode \
                 says. Write a later date, or remove the entry",
                tunnel.host,
                OffsetDateTime::from(tunnel.until - Duration::from_nanos(1)).date()
            )
        });
        ended.chain(self.audit_is_watched(file)).collect()
    }

    /// Each line of a log in a watched folder wakes the watcher.
    fn audit_is_watched(&self, file: &Path) -> Option<String> {
        let Output::File(log) = &self.audit.output else {
            return None;
        };
        let folder = |path: &Path| fs::canonicalize(std::path::absolute(path).ok()?.parent()?).ok();
        let log_folder = folder(log)?;
        let secrets = [&self.identity.credentials, &self.admin.token_file];
        let mut watched = secrets.into_iter().flatten().map(|path| &**path).chain([file]);
        let beside = watched.find(|path| folder(path).as_ref() == Some(&log_folder))?;
        Some(format!(
            "audit.path: the audit log {} is in the folder of {}, which is watched for changes, so each line that is written costs \
             time; give it a folder of its own",
            log.display(),
            beside.display()
        ))
    }
}
