//! The versions of a site's robots.txt, and what changed between two.

use std::sync::Arc;

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};

use super::{
    Context,
    input::{Form, StrictQuery},
    origins::parse,
    problem::Problem,
};
use crate::{
    admin::{Difference, Version, VersionError, Versions},
    ratelimited::ratelimited,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Params {
    origin: String,
    from: Option<String>,
    to: Option<String>,
}

#[derive(Serialize)]
pub(super) struct SiteVersions {
    origin: String,
    /// The oldest first. Empty without a store of evidence.
    versions: Vec<Version>,
    /// How `to` differs from `from` or, by default, from the version before `to`. `None` without `to`, or if there is
    /// no earlier version.
    difference: Option<Difference>,
}

impl Form for Params {
    const FORM: &'static str = "?origin=ORIGIN, percent-encoded, and maybe &to=VERSION or &from=VERSION&to=VERSION";
}

pub(super) async fn versions(
    State(context): State<Arc<Context>>,
    StrictQuery(which): StrictQuery<Params>,
) -> Result<Json<SiteVersions>, Problem> {
    let origin = parse(&which.origin)?;
    if which.from.is_some() && which.to.is_none() {
        return Err(Problem::Bad("\"from\" needs \"to\": name both versions".to_owned()));
    }
    let generation = context.live.generation();
    // The semaphore is never closed.
    let turn = context.assuming.clone().acquire_owned().await.ok();
    let reading = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        let mut found = SiteVersions {
            origin: origin.to_string(),
            versions: Vec::new(),
            difference: None,
        };
        let Some(options) = &generation.config.evidence else {
            return Ok(found);
        };
        let versions = Versions::read(&options.path, &origin)?;
        if let Some(to) = which.to {
            let named: Vec<_> = which.from.into_iter().chain([to]).collect();
            let is_oldest = named.len() == 1 && versions.find(&named[0])?.version == 1;
            if !is_oldest {
                let (from, to) = versions.pair(&named)?;
                found.difference = Some(versions.difference(generation.config.robots.policy.profile, from, to)?);
            }
        }
        found.versions = versions.list;
        Ok(found)
    });
    match reading.await {
        Ok(Ok(found)) => Ok(Json(found)),
        Ok(Err(VersionError::Unknown(why))) => Err(Problem::Bad(why)),
        Ok(Err(VersionError::File(error))) => {
            ratelimited!(warn, %error, "the store of evidence cannot be read");
            Err(Problem::Unavailable(UNREADABLE))
        }
        // The thread panicked. The panic is already on stderr.
        Err(_) => Err(Problem::Unavailable(UNREADABLE)),
    }
}

const UNREADABLE: &str = "the store of evidence cannot be read now; try again";
