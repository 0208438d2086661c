//! How a lookup comes by a fetch: it joins the one that is wanted already, or has one begin in its turn, and waits for it.

use std::{
    hash::BuildHasher as _,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant, SystemTime},
};

use tokio::time::timeout_at;

use super::{
    Query, Store, at_leisure,
    in_flight::{FetchGuard, FetchHandle, QueuedFetch, RunningFetch},
    slot::Slot,
};
use crate::{
    copy::{Answer, CacheStatus, Due, FetchError, Fetched, Lookup, OriginState, Policy},
    fetch::{Fetch, FetchPermit, FinishedFetch, LookupError, Traced},
    origin::Origin,
};

/// A fetch that has begun. If this is dropped before the fetch has ended, the log still has a record of it.
struct Begun<'a, F: Fetch> {
    origin: &'a Origin,
    slot: &'a Slot,
    fetcher: &'a F,
    policy: &'a Policy,
    at: Instant,
    /// The reservation in the log, until the fetch has ended.
    reservation: Option<F::Reservation>,
}

impl Store {
    /// Fetches in the background, in the requester's turn. Where it has as many fetches as it may have, a later request
    /// does it.
    pub(super) fn refresh<F: Fetch>(self: &Arc<Self>, slot: &Arc<Slot>, query: &Query<'_, F>) {
        if slot.fetching.load(Ordering::Relaxed) {
            return;
        }
        if let Ok(FetchHandle::Queued(queued)) = self.join_or_queue(slot, query) {
            slot.fetching.store(true, Ordering::Relaxed);
            let (store, slot, fetcher, policy) = (self.clone(), slot.clone(), query.fetcher.clone(), *query.policy);
            tokio::spawn(async move {
                let begun = store.begin(&queued, &fetcher, &policy).await;
                if !matches!(begun, Ok((_, CacheStatus::Miss))) {
                    slot.fetching.store(false, Ordering::Relaxed);
                }
            });
        }
    }

    /// Waits for a fetch that is due, at most `wait`.
    pub(super) async fn wait_for<F: Fetch>(
        self: &Arc<Self>,
        slot: &Arc<Slot>,
        state: &OriginState,
        query: &Query<'_, F>,
        wait: Duration,
    ) -> Result<Lookup, LookupError> {
        let Query { origin, policy, .. } = *query;
        let started = Instant::now();
        let deadline = tokio::time::Instant::now() + wait;
        let (mut running, status) = match self.join_or_queue(slot, query)? {
            FetchHandle::Running(running) => (running, CacheStatus::Collapsed),
            FetchHandle::Queued(queued) if timeout_at(deadline, queued.turn()).await.is_err() => {
                let running = queued.join();
                // It may have begun in another's turn at the last moment.
                let status = match running.has_begun() {
                    true => CacheStatus::Collapsed,
                    false => CacheStatus::Queued,
                };
                (running, status)
            }
            FetchHandle::Queued(queued) => {
                let begun = timeout_at(deadline, self.begin(&queued, query.fetcher, policy)).await;
                begun.map_err(|_| LookupError::NotLogged)??
            }
        };
        let pending = !timeout_at(deadline, running.finished()).await.unwrap_or(false);
        let slot = running.slot;
        let mut found = slot.state.load_full();
        if !found.is_under(policy) {
            // The fetch was begun before a reload.
            found = self.reread(&slot, origin, policy).await;
        }
        let at = SystemTime::now();
        let is_old = matches!(found.answer(at, policy), Answer::LastCopy(..));
        Ok(Lookup {
            state: found,
            status: match status {
                CacheStatus::Queued => status,
                _ if (pending && state.is_known()) || is_old => CacheStatus::Stale,
                _ => status,
            },
            waited: started.elapsed(),
            at,
            pending,
            tally: slot.tally.clone(),
        })
    }

    /// Joins the fetch that is wanted for the origin, or wants one.
    fn join_or_queue<F: Fetch>(&self, slot: &Arc<Slot>, query: &Query<'_, F>) -> Result<FetchHandle, LookupError> {
        // A fetch may have ended since the caller looked.
        let is_due = || slot.state.load().due(SystemTime::now(), query.policy) != Due::No;
        let enter = || query.fetcher.enter(query.requester);
        self.in_flight
            .join_or_queue(query.origin, slot, is_due, query.requester.name, enter)
    }

    /// Begins the fetch when its turn has come and the log has room for it.
    async fn begin<F: Fetch>(
        self: &Arc<Self>,
        queued: &QueuedFetch,
        fetcher: &Arc<F>,
        policy: &Policy,
    ) -> Result<(RunningFetch, CacheStatus), LookupError> {
        if !queued.turn().await {
            return Ok((queued.join(), CacheStatus::Collapsed));
        }
        let reservation = fetcher.reserve().await?;
        let running = queued.join();
        let Some((guard, permit)) = queued.begin() else {
            return Ok((running, CacheStatus::Collapsed));
        };
        let (store, fetcher, policy) = (self.clone(), fetcher.clone(), *policy);
        let stopping = self.stopping.clone();
        self.running.spawn(async move {
            let fetch = store.fetch(&guard, permit, &*fetcher, policy, reservation);
            // Dropped where robotgate stops first.
            stopping.run_until_cancelled(fetch).await
        });
        Ok((running, CacheStatus::Miss))
    }

    /// Fetches, and puts what was found in place.
    async fn fetch<F: Fetch>(
        &self,
        guard: &FetchGuard,
        permit: Arc<FetchPermit>,
        fetcher: &F,
        policy: Policy,
        reservation: F::Reservation,
    ) {
        let (origin, slot) = (&guard.origin, guard.slot());
        let mut begun = Begun {
            origin,
            slot,
            fetcher,
            policy: &policy,
            at: Instant::now(),
            reservation: Some(reservation),
        };
        let etag = slot.state.load().etag().map(str::to_owned);
        let mut traced = fetcher.fetch(&permit, origin, etag.as_deref()).await;
        let is_unchanged = etag.is_some() && matches!(traced.fetched, Fetched::NotModified { .. });
        if is_unchanged && slot.state.load().etag().is_none() {
            // What has not changed was forgotten meanwhile.
            traced = fetcher.fetch(&permit, origin, None).await;
        }
        drop(permit);
        let now = SystemTime::now();
        self.watch_clock(now);
        let (status, freshness) = (traced.fetched.status(), traced.fetched.freshness());
        // Parsing may take long enough to keep other requests waiting.
        let understood = at_leisure(traced.fetched.is_large(), move || {
            let meaning = traced.fetched.meaning(&policy, now);
            (traced, meaning)
        });
        // A panic has been reported; whoever waits goes on without a copy.
        let Some((traced, meaning)) = understood.await else {
            return;
        };
        let spread = self.spread.hash_one((origin, now)) as f64 / u64::MAX as f64;
        loop {
            let forgotten = slot.forgotten();
            let before = slot.state.load_full();
            let after = Arc::new(before.after(meaning.clone(), status, freshness, now, spread, &policy));
            if let Some(reservation) = begun.reservation.take() {
                let finished = FinishedFetch {
                    origin,
                    traced: &traced,
                    before: &before,
                    after: &after,
                    at: now,
                    policy: &policy,
                };
                fetcher.finished(&finished, reservation);
            }
            let found = slot.state.compare_and_swap(&before, after.clone());
            // Else it was read anew meanwhile, or brought back from disk, or forgotten.
            if Arc::ptr_eq(&found, &before) {
                if let Some(disk) = self.disk.as_ref().filter(|_| slot.forgotten() == forgotten) {
                    disk.keep(origin, after, slot.is_recalled());
                }
                self.weigh_anew(origin, slot);
                return;
            }
        }
    }
}

// === impl Begun ===

impl<F: Fetch> Drop for Begun<'_, F> {
    fn drop(&mut self) {
        let Some(reservation) = self.reservation.take() else {
            return;
        };
        let traced = Traced {
            fetched: Fetched::Failed(FetchError::CutOff.into()),
            hops: Vec::new(),
            took: self.at.elapsed(),
        };
        // What is known stays as it was: the site has not failed.
        let state = self.slot.state.load_full();
        let finished = FinishedFetch {
            origin: self.origin,
            traced: &traced,
            before: &state,
            after: &state,
            at: SystemTime::now(),
            policy: self.policy,
        };
        self.fetcher.finished(&finished, reservation);
    }
}
