//! Finds out which settings a reload has changed, and logs them without the content of secrets and other files.

use crate::{
    config::{How, KeyChange},
    proxy::Generation,
    text::plain,
};

#[derive(Debug, Default)]
pub(super) struct ReloadChanges {
    pub(super) changes: Vec<KeyChange>,
    /// Keys whose new values take effect only at the next start.
    pub(super) restart: Vec<&'static str>,
}

/// `threads` is the number of threads with which the process started.
pub(super) fn between(before: &Generation, after: &Generation, threads: usize) -> ReloadChanges {
    let mut changes = before.config.settings.changes(&after.config.settings);
    let unseen = |key: String, how| KeyChange {
        key,
        how: How::Unseen(how),
    };
    let credentials = [before, after].map(|generation| generation.config.bots.credentials());
    if let [Some(before), Some(after)] = credentials {
        let changed = before.changes(after).into_iter();
        changes.extend(changed.map(|(name, how)| unseen(format!("{CREDENTIALS}.{name}"), how)));
    }
    if let (Some(before), Some(after)) = (before.authority(), after.authority())
        && before.fingerprint() != after.fingerprint()
    {
        changes.push(unseen(AUTHORITY.to_owned(), "another certificate"));
    }
    if before.config.admin.token != after.config.admin.token {
        changes.push(unseen(TOKEN.to_owned(), "another token"));
    }
    if let (Some(before), Some(after)) = (before.server_certificate(), after.server_certificate())
        && before != after
    {
        changes.push(unseen(SERVER.to_owned(), "another certificate"));
    }
    if before.config.https.extra_roots != after.config.https.extra_roots
        && !changes.iter().any(|change| change.key == EXTRA_ROOTS)
    {
        changes.push(unseen(EXTRA_ROOTS.to_owned(), "other certificates"));
    }
    let secrets = [before, after].map(|generation| generation.config.fleet.as_ref().map(|fleet| &fleet.settings));
    if let [Some(before), Some(after)] = secrets {
        for (key, changed) in [
            ("fleet.username-file", before.username != after.username),
            ("fleet.password-file", before.password != after.password),
            ("fleet.key-file", before.key != after.key),
            ("fleet.ca-file", before.ca != after.ca),
        ] {
            if changed && !changes.iter().any(|change| change.key == key) {
                changes.push(unseen(key.to_owned(), "other content"));
            }
        }
    }
    let mut restart = Vec::new();
    if after.config.proxy.threads != threads {
        restart.push(THREADS);
    }
    ReloadChanges { changes, restart }
}

pub(super) fn log(ReloadChanges { changes, restart }: &ReloadChanges, generation: &Generation, cause: &'static str) {
    for change in changes.iter().take(MAX_LOGGED) {
        match &change.how {
            How::Value { before, after } => tracing::info!(
                key = change.key,
                before = &*plain(before, MAX_VALUE),
                after = &*plain(after, MAX_VALUE),
                "a setting changed"
            ),
            How::Unseen(how) => tracing::info!(key = change.key, how, "a setting changed"),
        }
    }
    if let Some(more @ 1..) = changes.len().checked_sub(MAX_LOGGED) {
        tracing::info!(more, "more settings changed");
    }
    for key in restart {
        tracing::warn!(key, "this setting takes effect at the next start");
    }
    tracing::info!(
        generation = generation.number,
        trigger = cause,
        changes = changes.len(),
        "configuration reloaded"
    );
}

const CREDENTIALS: &str = "identity.credentials";
const AUTHORITY: &str = "https.ca-certificate";
const SERVER: &str = "proxy.tls.certificate";
const EXTRA_ROOTS: &str = "https.extra-roots";
const TOKEN: &str = "admin.token-file";
const THREADS: &str = "proxy.threads";
/// Maximum number of settings that a reload logs, and maximum length of each value in bytes.
const MAX_LOGGED: usize = 200;
const MAX_VALUE: usize = 256;
