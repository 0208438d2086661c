//! What the daemon knows of itself, for operators who ask over HTTP.

use std::{
    path::PathBuf,
    sync::{Arc, Weak},
    time::SystemTime,
};

use super::{Daemon, outcome::Reload};
use crate::{
    admin::http::{Audit, Authority, Document, LastReload, Listens, Numbers, Settings, Sources, TrustProblem},
    config::host_name,
    decision::Verdict,
    metrics::Format,
    proxy::{Generation, Live, Speaks},
    store::VerdictCounts,
    text::Timestamp,
    trust::{self, CA_NAME, Ca, Certificate, Form, Rejection},
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

    /// The proxy as clients reach it.
    fn proxy(&self) -> String {
        let addresses = self.ask(|daemon| daemon.listeners.addresses());
        let find = |wanted| {
            addresses
                .iter()
                .find(|(_, speaks)| *speaks == wanted)
                .map(|(address, _)| *address)
        };
        let plain = find(Speaks::Http).map(|address| ("http", address));
        let (scheme, address) = match plain.or_else(|| find(Speaks::Tls).map(|address| ("https", address))) {
            Some(found) => found,
            None => return format!("http://{}", Proxy::DEFAULT_LISTEN),
        };
        match address.ip().is_unspecified() {
            true => format!("{scheme}://{}:{}", host_name(), address.port()),
            false => format!("{scheme}://{address}"),
        }
    }

    fn generation(&self) -> Option<Arc<Generation>> {
        self.ask(|daemon| Some(Live::generation(&daemon.live)))
    }
}

impl Sources for Known {
    fn numbers(&self) -> Numbers {
        self.ask(|daemon| {
            let metrics = daemon.live.metrics();
            Numbers {
                decisions: VerdictCounts {
                    allow: metrics.decisions(Verdict::Allow),
                    deny: metrics.decisions(Verdict::Deny),
                    unverifiable: metrics.decisions(Verdict::Unverifiable),
                },
                requests: metrics.requests(),
                connections: metrics.connections(),
                tunnels: metrics.tunnels(),
                audit: Audit {
                    lines: metrics.audit.both().0,
                    stalled: daemon.live.audit_logs().iter().any(|log| log.is_stalled()),
                },
            }
        })
    }

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

    fn trust_problems(&self) -> Vec<TrustProblem> {
        let problem = |rejection: Rejection| TrustProblem {
            fix: rejection.fix(),
            client: rejection.client,
            user_agent: rejection.user_agent,
            origin: rejection.origin,
            kind: rejection.kind.as_str(),
            first: Timestamp(rejection.first),
            last: Timestamp(rejection.last),
            count: rejection.count,
        };
        self.ask(|daemon| daemon.live.distrust().list())
            .into_iter()
            .map(problem)
            .collect()
    }

    fn trust(&self, path: &str, accept: Option<&str>) -> Option<Document> {
        let generation = self.generation()?;
        let certificate = generation.authority().map(Certificate::of);
        let settings = trust::Settings::new(&self.proxy(), Ca::Here(CA_NAME)).ok()?;
        let form = match accept.is_some_and(|accept| accept.contains("text/html")) {
            true => Form::Html,
            false => Form::Text,
        };
        let page = trust::page(path, form, certificate.as_ref(), &settings).ok()?;
        Some(Document {
            media_type: page.content_type,
            content: page.body,
        })
    }

    fn metrics(&self, accept: Option<&str>) -> Option<Document> {
        let format = Format::accepted(accept);
        let text = self.ask(|daemon| Some(daemon.live.metrics_text(format)))?;
        Some(Document {
            media_type: format.content_type(),
            content: text.into_bytes(),
        })
    }
}
