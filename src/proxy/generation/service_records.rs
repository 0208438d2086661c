//! Logs in the audit log that robotgate starts, stops, reloads its configuration, or forgets an origin. Callers do not
//! wait for these records.

use std::{
    net::SocketAddr,
    path::{self, Path},
    time::SystemTime,
};

use super::Generation;
use crate::{
    audit::{AuditLog, ForgetRecord, ReloadRecord, StartRecord, StopRecord},
    origin::Origin,
    store::Store,
    text::{Timestamp, plain, plain_message},
};

// === impl Generation ===

impl Generation {
    /// Logs the start of robotgate, before it serves anything. `file` is `None` for the built-in configuration.
    pub fn log_start(&self, file: Option<&Path>, listen: &[SocketAddr]) {
        let file = file.map(|file| path::absolute(file).unwrap_or_else(|_| file.to_owned()));
        let file = file.as_deref().map(Path::to_string_lossy);
        let line = StartRecord {
            time: now(),
            instance: self.instance.as_str(),
            version: crate::VERSION,
            config_file: file.as_deref().map(|file| plain(file, MAX_PATH)).as_deref(),
            config_sha256: self.config.canonical.sha256(),
            pid: std::process::id(),
            listen,
        }
        .line();
        self.audit.append_now(&line);
    }

    /// Logs that a reload replaces the configuration of `before` by that of `self`. Call this before `self` is in
    /// force.
    pub fn log_applied(&self, before: &Generation, cause: &str) {
        self.log_reload(before, cause, None);
    }

    /// Logs that a reload rejected a new configuration. Logs only the first line of `error`, because further lines
    /// quote the configuration file.
    pub fn log_rejected(&self, cause: &str, error: &str) {
        self.log_reload(self, cause, Some(error.lines().next().unwrap_or_default()));
    }

    fn log_reload(&self, before: &Generation, cause: &str, error: Option<&str>) {
        let line = ReloadRecord {
            time: now(),
            instance: self.instance.as_str(),
            cause,
            result: if error.is_some() { "rejected" } else { "applied" },
            error: error.map(|error| plain_message(error, MAX_ERROR)).as_deref(),
            config: self.number,
            config_sha256_before: before.config.canonical.sha256(),
            config_sha256: self.config.canonical.sha256(),
        }
        .line();
        self.audit.append_now(&line);
    }

    /// Logs that this process ends. `cut_off` is how many exchanges were cut off, if known.
    pub fn log_stop(&self, cause: &str, cut_off: Option<u64>) {
        let record = StopRecord {
            time: now(),
            instance: self.instance.as_str(),
            cause,
            cut_off,
        };
        self.audit.append_now(&record.line());
    }

    /// Logs that an operator made robotgate forget an origin. `known` says whether robotgate knew anything of the
    /// origin.
    pub fn log_forget(&self, origin: &Origin, known: bool) {
        log_forget(&self.audit, origin, "socket", Some(known));
    }
}

pub(super) fn log_forget_by_fleet(audit: &AuditLog, origin: &Origin, store: &Store) {
    let in_memory = store.held(origin).is_some_and(|state| state.is_known());
    // Code for messages from the fleet must not wait for the disk. So `known` is `None` if the origin may be on disk
    // only.
    let known = (in_memory || store.disk().is_none()).then_some(in_memory);
    log_forget(audit, origin, "fleet", known);
}

fn log_forget(audit: &AuditLog, origin: &Origin, by: &str, known: Option<bool>) {
    let record = ForgetRecord {
        time: now(),
        origin: &origin.to_string(),
        by,
        known,
    };
    audit.append_now(&record.line());
}

fn now() -> Timestamp {
    Timestamp(SystemTime::now())
}

const MAX_PATH: usize = 4096;
const MAX_ERROR: usize = 512;
