//! How robotgate does, in one object; and the configuration that is in force.

use std::{sync::Arc, time::SystemTime};

use axum::{Json, extract::State};
use serde::Serialize;

use super::{
    Context,
    sources::{Authority, LastReload, Listens, Numbers, Settings, TrustProblem},
};
use crate::text::Timestamp;

#[derive(Serialize)]
pub(super) struct Status {
    version: &'static str,
    started: Timestamp,
    now: Timestamp,
    state: &'static str,
    generation: u64,
    /// When that was put in force.
    loaded: Timestamp,
    last_reload: Option<LastReload>,
    #[serde(flatten)]
    numbers: Numbers,
    fetches_running: usize,
    origins: Origins,
    listen: Vec<Listens>,
    authority: Option<Authority>,
    trust_problems: Vec<TrustProblem>,
}

#[derive(Serialize)]
struct Origins {
    known: u64,
    memory_bytes: u64,
    memory_max_bytes: u64,
    disk_bytes: Option<u64>,
    disk_max_bytes: Option<u64>,
}

#[derive(Serialize)]
pub(super) struct InForce {
    generation: u64,
    #[serde(flatten)]
    settings: Settings,
}

pub(super) async fn status(State(context): State<Arc<Context>>) -> Json<Status> {
    let (live, sources) = (&context.live, &context.sources);
    let generation = live.generation();
    let memory = live.store().memory();
    // Where the disk cannot be read, what memory has is known.
    let disk = context.with_file(|file| Ok((file.origins()?, file.held()))).await.ok();
    Json(Status {
        version: env!("CARGO_PKG_VERSION"),
        started: Timestamp(context.started),
        now: Timestamp(SystemTime::now()),
        state: if live.is_stopping() { "draining" } else { "ready" },
        generation: generation.number,
        loaded: Timestamp(sources.loaded().unwrap_or(context.started)),
        last_reload: sources.last_reload(),
        numbers: sources.numbers(),
        fetches_running: memory.fetches,
        origins: Origins {
            known: disk.map_or(0, |(origins, _)| origins).max(memory.origins as u64),
            memory_bytes: memory.bytes,
            memory_max_bytes: memory.max_bytes,
            disk_bytes: disk.map(|(_, held)| held),
            disk_max_bytes: live.store().disk().map(|_| generation.config.cache.disk.max_bytes),
        },
        listen: sources.listens(),
        authority: sources.authority(),
        trust_problems: sources.trust_problems(),
    })
}

pub(super) async fn config(State(context): State<Arc<Context>>) -> Json<InForce> {
    Json(InForce {
        generation: context.live.generation().number,
        settings: context.sources.settings(),
    })
}
