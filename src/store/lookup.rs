//! Looks up the state of an origin: in memory, on disk, or with a fetch from the origin.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant, SystemTime},
};

use super::{
    Query, Store,
    cached_origin::{CachedOrigin, Held},
    tally::Tally,
};
use crate::{
    copy::{Due, Lookup, OriginState, Policy},
    fetch::{Fetch, LookupError},
    origin::Origin,
};

// === impl Store ===

impl Store {
    /// Returns the state of an origin, and the [`Tally`] in which the caller counts what happens to the request. If the
    /// robots.txt has to be fetched first ([`Due::Now`]), fetches it and waits at most `wait`.
    ///
    /// # Errors
    /// Fails if a necessary fetch cannot start, for example because the requester has reached its limit of fetches, or
    /// if evidence is required and the robots.txt cannot be stored as evidence.
    pub async fn lookup<F: Fetch>(
        self: &Arc<Self>,
        query: &Query<'_, F>,
        wait: Duration,
    ) -> Result<(Lookup, Arc<Tally>), LookupError> {
        let Query { origin, policy, .. } = *query;
        let cached = self.cached(origin);
        let mut waited = Duration::ZERO;
        // If memory has no usable copy, or fetches fail, the disk may have a copy.
        let is_lacking = || {
            let state = cached.state.load();
            state.failing_since().is_some() || state.due(SystemTime::now(), policy) == Due::Now
        };
        if !cached.is_recalled() && is_lacking() {
            let started = Instant::now();
            // Even if the disk hangs, a `wait` of more than a second leaves time to fetch from the site.
            let patience = wait.min(MAX_DISK_WAIT);
            let _ = tokio::time::timeout(patience, self.recall(&cached, query)).await;
            waited = started.elapsed();
        }
        let now = SystemTime::now();
        self.watch_clock(now);
        let mut state = cached.state.load_full();
        if !state.is_under(policy) {
            state = self.reread(&cached, origin, policy).await;
        }
        let due = state.due(now, policy);
        if due == Due::Background {
            self.refresh(&cached, query);
        }
        let (mut lookup, tally) = match due {
            Due::No | Due::Background => (Lookup::at_once(state, now, policy), cached.tally.clone()),
            Due::Now => {
                let left = wait.saturating_sub(waited);
                self.wait_for(&cached, &state, query, left).await?
            }
        };
        lookup.waited += waited;
        Ok((lookup, tally))
    }

    /// If this fails, the next lookup tries again.
    async fn recall<F: Fetch>(&self, cached: &Arc<CachedOrigin>, query: &Query<'_, F>) {
        let Query { origin, policy, .. } = *query;
        let _turn = cached.turn.lock().await;
        let Some(disk) = self.disk.as_ref().filter(|_| !cached.is_recalled()) else {
            return;
        };
        let forgotten = cached.forgotten();
        match disk.recall(self.document.name(origin)).await {
            Ok(None) => cached.set_recalled(),
            Ok(Some(earlier)) => {
                let earlier = self.brought_up_to_date(earlier, policy).await;
                if let Some(copy) = earlier.last_copy()
                    && query.fetcher.store_evidence(copy).await.is_err()
                {
                    return;
                }
                cached.state.rcu(|state| match state.is_known() {
                    // An operator made robotgate forget the origin in the meantime.
                    _ if cached.forgotten() != forgotten => state.clone(),
                    true => Arc::new(state.resuming(&earlier)),
                    false => earlier.clone(),
                });
                cached.set_recalled();
                self.weigh_anew(origin, cached);
            }
            Err(error) => tracing::debug!(%origin, %error, "cannot read the state of an origin from the cache file"),
        }
    }

    /// Corrects a state from disk for what has happened since it was written, such as a reload or a jump of the clock.
    async fn brought_up_to_date(&self, earlier: Arc<OriginState>, policy: &Policy) -> Arc<OriginState> {
        let retry_from = Duration::from_micros(self.retry_from.load(Ordering::Relaxed));
        let jumps = self.clocks.jumps();
        let earlier = jumps
            .iter()
            .fold(earlier, |earlier, jump| Arc::new(earlier.after_jump(jump)));
        // A reload or a restart may have made the origin reachable since its fetch failed.
        let is_mended = earlier.is_prohibited()
            || earlier
                .last_fetch()
                .is_some_and(|last| last < SystemTime::UNIX_EPOCH + retry_from);
        let earlier = match is_mended {
            true => Arc::new(earlier.retrying_now()),
            false => earlier,
        };
        if earlier.is_under(policy) {
            return earlier;
        }
        let policy = *policy;
        let reread = at_leisure(earlier.is_large(), move || earlier.under(&policy)).await;
        Arc::new(reread.unwrap_or_else(OriginState::unknown))
    }

    /// If a reload has changed the profile, one lookup parses the robots.txt again, and the others wait for its result.
    pub(super) async fn reread(
        &self,
        cached: &Arc<CachedOrigin>,
        origin: &Origin,
        policy: &Policy,
    ) -> Arc<OriginState> {
        let _turn = cached.turn.lock().await;
        loop {
            let state = cached.state.load_full();
            if state.is_under(policy) {
                return state;
            }
            let (earlier, policy) = (state.clone(), *policy);
            let reread = at_leisure(state.is_large(), move || earlier.under(&policy)).await;
            // If parsing panicked, the panic has been printed already. An unknown state allows nothing.
            let reread = Arc::new(reread.unwrap_or_else(OriginState::unknown));
            let before = cached.state.compare_and_swap(&state, reread.clone());
            // If another task has replaced the state, try again with the newer one.
            if Arc::ptr_eq(&before, &state) {
                self.weigh_anew(origin, cached);
                return reread;
            }
        }
    }

    /// Corrects the states if the machine's clock was set since the last call. If the clock was set back, copies
    /// expire, because their age is unknown.
    pub(super) fn watch_clock(&self, now: SystemTime) {
        let Some(jump) = self.clocks.look(now) else {
            return;
        };
        let held = self.cache.iter().map(|(origin, held)| (origin, held.cached));
        for (origin, cached) in held.chain(self.in_flight.cache()) {
            let before = cached.state.rcu(|state| state.after_jump(&jump));
            let state = cached.state.load_full();
            // Write the corrected state to disk, so that the next start does not read uncorrected times there.
            if let Some(disk) = self
                .disk
                .as_ref()
                .filter(|_| before.failing_since() != state.failing_since())
            {
                disk.keep(self.document.name(&origin), state, cached.is_recalled());
            }
        }
    }

    /// Inserts a cached origin again, because the cache weighs it only on insertion.
    pub(super) fn weigh_anew(&self, origin: &Origin, cached: &Arc<CachedOrigin>) {
        // The cache may hold a newer object for the same origin.
        let is_another = |held: Held| !Arc::ptr_eq(&held.cached, cached);
        if !self.cache.peek(origin).is_some_and(is_another) {
            self.cache.insert(origin.clone(), Held::new(origin, cached.clone()));
        }
    }

    pub(super) fn cached(&self, origin: &Origin) -> Arc<CachedOrigin> {
        if let Some(held) = self.cache.get(origin) {
            return held.cached;
        }
        // If a fetch runs for an evicted origin, cache the object that the fetch will update.
        let fetching = self.in_flight.of(origin);
        let cached = fetching.unwrap_or_else(|| Arc::new(CachedOrigin::new(self.disk.is_none())));
        let made = self
            .cache
            .get_or_insert_with(origin, || Ok::<_, std::convert::Infallible>(Held::new(origin, cached)));
        match made {
            Ok(held) => held.cached,
            Err(never) => match never {},
        }
    }
}

/// Runs `work`, on a blocking thread if `takes_long` is set. Returns `None` if `work` panics on that thread.
pub(super) async fn at_leisure<T: Send + 'static>(
    takes_long: bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    match takes_long {
        true => tokio::task::spawn_blocking(work).await.ok(),
        false => Some(work()),
    }
}

const MAX_DISK_WAIT: Duration = Duration::from_secs(1);
