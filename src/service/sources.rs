//! What the daemon knows of itself, for operators who ask over HTTP.

use std::{
    path::PathBuf,
    sync::{Arc, Weak},
    time::SystemTime,
};

use super::{Daemon, outcome::Reload};
use crate::{
    admin::http::{Authority, LastReload, Listens, Settings, Sources},
    audit::Timestamp,
    proxy::{Generation, Live},
};

/// The daemon, which holds the desk that this is for.
pub(super) struct Known {
    pub(super) daemon: Weak<Daemon>,
    /// The configuration file.
    pub(super) file: Option<PathBuf>,
}

// === impl Known ===

impl Known {
    fn ask<T: Default>(&self, question: impl FnOnce(&Daemon) -> T) -> T {
        // It is there for as long as anybody is answered, but for its very beginning and end.
        self.daemon
            .upgrade()
            .map(|daemon| question(&daemon))
            .unwrap_or_default()
    }

    fn generation(&self) -> Option<Arc<Generation>> {
        self.ask(|daemon| Some(Live::generation(&daemon.live)))
    }
}

impl Sources for Known {
    fn last_reload(&self) -> Option<LastReload> {
        let last = self.ask(|daemon| daemon.reloads.last())?;
        let Reload {
            time,
            cause,
            outcome,
            generation,
        } = &*last;
        let changes = outcome.as_ref().ok();
        Some(LastReload {
            time: Timestamp(*time),
            cause: (*cause).to_owned(),
            ok: outcome.is_ok(),
            error: outcome.as_ref().err().cloned(),
            generation: *generation,
            changes: changes
                .map(|told| told.changes.iter().map(ToString::to_string).collect())
                .unwrap_or_default(),
            restart_needed: changes
                .map(|told| told.restart.iter().map(ToString::to_string).collect())
                .unwrap_or_default(),
        })
    }

    fn loaded(&self) -> Option<SystemTime> {
        Some(self.generation()?.made)
    }

    fn listens(&self) -> Vec<Listens> {
        let addresses = self.ask(|daemon| daemon.listeners.addresses());
        addresses
            .into_iter()
            .map(|(address, speaks)| Listens { address, speaks })
            .collect()
    }

    fn settings(&self) -> Settings {
        let generation = self.generation();
        let settings = generation
            .iter()
            .flat_map(|generation| generation.config.settings.iter());
        Settings {
            file: self.file.clone(),
            settings: settings
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
        }
    }

    fn authority(&self) -> Option<Authority> {
        let generation = self.generation()?;
        let authority = generation.authority()?;
        Some(Authority {
            subject: authority.subject().to_owned(),
            fingerprint: authority.fingerprint(),
            not_after: Timestamp(authority.not_after()),
        })
    }
}
