//! Gets the robots.txt for a lookup that needs a fetch: joins the origin's fetch, or queues a new one.

use std::{
    hash::BuildHasher as _,
    ops::ControlFlow,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant, SystemTime},
};

use tokio::time::timeout_at;

use super::{
    Query, Store,
    cached_origin::CachedOrigin,
    in_flight::{FetchGuard, FetchHandle, QueuedFetch, RunningFetch},
    lookup::at_leisure,
    tally::Tally,
};
use crate::{
    copy::{
        Answer, CacheStatus, Due, FetchError, Fetched, Lookup, OriginState, Policy, SiteDocument, is_refused_ftp_login,
    },
    fetch::{Fetch, FetchPermit, FinishedFetch, Learned, LookupError, SharedCopy, Traced},
    fleet::{CopyOrLease, Fleet, Lease},
    origin::Origin,
};

/// A running fetch. If this is dropped before the fetch ends, the audit log still gets a record of the fetch.
struct FetchInProgress<'a, F: Fetch> {
    document: &'static SiteDocument,
    origin: &'a Origin,
    cached: &'a Arc<CachedOrigin>,
    fetcher: &'a F,
    policy: &'a Policy,
    at: Instant,
    /// Reserved space in the audit log for the record of this fetch. `None` once the record is written.
    reservation: Option<F::Reservation>,
}

impl Store {
    /// Fetches the robots.txt in the background. Does nothing if another fetch already runs, or if the requester has
    /// reached its limit of fetches: a later request then starts the fetch.
    pub(super) fn refresh<F: Fetch>(self: &Arc<Self>, cached: &Arc<CachedOrigin>, query: &Query<'_, F>) {
        if cached.fetching.load(Ordering::Relaxed) {
            return;
        }
        if let Ok(FetchHandle::Queued(queued)) = self.join_or_queue(cached, query) {
            cached.fetching.store(true, Ordering::Relaxed);
            let (store, cached, fetcher, policy) = (self.clone(), cached.clone(), query.fetcher.clone(), *query.policy);
            tokio::spawn(async move {
                let begun = store.begin(&queued, &fetcher, &policy).await;
                if !matches!(begun, Ok((_, CacheStatus::Miss))) {
                    cached.fetching.store(false, Ordering::Relaxed);
                }
            });
        }
    }

    /// If the fetch takes longer than `wait`, the returned lookup may have an expired copy or none.
    pub(super) async fn wait_for<F: Fetch>(
        self: &Arc<Self>,
        cached: &Arc<CachedOrigin>,
        state: &Arc<OriginState>,
        query: &Query<'_, F>,
        wait: Duration,
    ) -> Result<(Lookup, Arc<Tally>), LookupError> {
        let Query { origin, policy, .. } = *query;
        let started = Instant::now();
        let deadline = tokio::time::Instant::now() + wait;
        let (mut running, status) = match self.join_or_queue(cached, query)? {
            FetchHandle::Running(running) => (running, CacheStatus::Collapsed),
            FetchHandle::Queued(queued) if timeout_at(deadline, queued.turn()).await.is_err() => {
                let running = queued.join();
                // Another requester may just have started the fetch.
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
        let cached = running.cached;
        let mut found = cached.state.load_full();
        if !found.is_under(policy) {
            // A fetch that began before a reload can have parsed the robots.txt with another profile.
            found = self.reread(&cached, origin, policy).await;
        }
        if pending || Arc::ptr_eq(&found, state) {
            // The fetch may have got a robots.txt that could not be stored as evidence.
            query.fetcher.check_evidence()?;
        }
        let at = SystemTime::now();
        let is_old = matches!(found.answer(at, policy), Answer::LastCopy(..));
        let lookup = Lookup {
            state: found,
            status: match status {
                CacheStatus::Queued => status,
                _ if (pending && state.is_known()) || is_old => CacheStatus::Stale,
                _ => status,
            },
            waited: started.elapsed(),
            at,
            pending,
        };
        Ok((lookup, cached.tally.clone()))
    }

    fn join_or_queue<F: Fetch>(
        &self,
        cached: &Arc<CachedOrigin>,
        query: &Query<'_, F>,
    ) -> Result<FetchHandle, LookupError> {
        // Check again, because another request's fetch may just have ended.
        let is_due = || cached.state.load().due(SystemTime::now(), query.policy) != Due::No;
        let enter = || query.fetcher.enter(query.requester);
        self.in_flight
            .join_or_queue(query.origin, cached, is_due, query.requester.name, enter)
    }

    /// Waits for a permit and for room in the audit log. If another requester starts the fetch meanwhile, joins it.
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
            stopping.run_until_cancelled(fetch).await
        });
        Ok((running, CacheStatus::Miss))
    }

    async fn fetch<F: Fetch>(
        &self,
        guard: &FetchGuard,
        permit: Arc<FetchPermit>,
        fetcher: &F,
        policy: Policy,
        reservation: F::Reservation,
    ) {
        let (origin, cached) = (&guard.origin, guard.cached());
        let document = self.document;
        let mut begun = FetchInProgress {
            document,
            origin,
            cached,
            fetcher,
            policy: &policy,
            at: Instant::now(),
            reservation: Some(reservation),
        };
        let fleet = fetcher.fleet();
        let lease = match fleet {
            Some(fleet) => match self.take_from_fleet(fleet, &mut begun).await {
                ControlFlow::Continue(lease) => lease,
                ControlFlow::Break(()) => return,
            },
            None => None,
        };
        let fetching = async {
            let etag = cached.state.load().etag().map(str::to_owned);
            let traced = fetcher.fetch(&permit, document, origin, etag.as_deref()).await;
            let is_unchanged = etag.is_some() && matches!(traced.fetched, Fetched::NotModified { .. });
            match is_unchanged && cached.state.load().etag().is_none() {
                // The site answered 304, but an operator made robotgate forget the robots.txt during the fetch. So
                // fetch the whole file.
                true => fetcher.fetch(&permit, document, origin, None).await,
                false => traced,
            }
        };
        let traced = match (fleet, &lease) {
            (Some(fleet), Some(lease)) => fleet.while_leased(lease, fetching).await,
            _ => fetching.await,
        };
        drop(permit);
        let now = SystemTime::now();
        self.watch_clock(now);
        let (status, freshness) = (traced.fetched.status(), traced.fetched.freshness());
        let scheme = origin.scheme;
        // Parsing a large robots.txt on this thread would delay other requests.
        let understood = at_leisure(traced.fetched.is_large(), move || {
            let meaning = traced.fetched.meaning_of(document, scheme, &policy, now);
            (traced, meaning)
        });
        // If parsing panicked, the panic has been printed already. The requests that wait use what was known before.
        let Some((traced, meaning)) = understood.await else {
            return;
        };
        let spread = self.spread.hash_one((origin, now)) as f64 / u64::MAX as f64;
        loop {
            let forgotten = cached.forgotten();
            let before = cached.state.load_full();
            let after = Arc::new(before.after(meaning.clone(), status, freshness, now, spread, &policy));
            let is_stored = match after.last_copy() {
                Some(copy) => fetcher.store_evidence(copy).await.is_ok(),
                None => true,
            };
            if let Some(reservation) = begun.reservation.take() {
                let finished = FinishedFetch {
                    document,
                    origin,
                    traced: &traced,
                    before: &before,
                    after: if is_stored { &after } else { &before },
                    at: now,
                    policy: &policy,
                };
                fetcher.finished(&finished, reservation);
            }
            if !is_stored {
                self.end_lease(fleet, lease, None);
                return;
            }
            let found = cached.state.compare_and_swap(&before, after.clone());
            // If the swap failed, another task has changed the state, so try again.
            if Arc::ptr_eq(&found, &before) {
                let is_remembered = cached.forgotten() == forgotten;
                // If the fetch failed, the cause may be the network of this robotgate alone. A refused FTP login must
                // not replace the rules that other robotgates have.
                let is_answer = is_remembered
                    && !matches!(traced.fetched, Fetched::Failed(_))
                    && !is_refused_ftp_login(scheme, status);
                self.end_lease(fleet, lease, is_answer.then(|| after.clone()));
                if is_remembered {
                    fetcher.learned(&Learned {
                        document,
                        origin,
                        before: &before,
                        after: &after,
                    });
                }
                if let Some(disk) = self.disk.as_ref().filter(|_| is_remembered) {
                    disk.keep(self.document.name(origin), after, cached.is_recalled());
                }
                self.weigh_anew(origin, cached);
                return;
            }
        }
    }

    /// Ends the lease, if there is one, and shares what the site `answered`.
    fn end_lease(&self, fleet: Option<&Arc<Fleet>>, lease: Option<Lease>, answered: Option<Arc<OriginState>>) {
        if let (Some(fleet), Some(lease)) = (fleet.cloned(), lease) {
            self.running.spawn(async move { fleet.end(lease, answered).await });
        }
    }

    /// Asks the fleet's server for the document, and returns `Break` if another robotgate has fetched it. Otherwise,
    /// the caller has to fetch it, and to share the result if this returns a lease.
    async fn take_from_fleet<F: Fetch>(
        &self,
        fleet: &Arc<Fleet>,
        begun: &mut FetchInProgress<'_, F>,
    ) -> ControlFlow<(), Option<Lease>> {
        let FetchInProgress {
            document,
            origin,
            cached,
            policy,
            ..
        } = *begun;
        let forgotten = cached.forgotten();
        let asked = fleet
            .copy_or_lease(document, origin, &cached.state.load_full(), policy)
            .await;
        let (shared, flow) = match asked {
            CopyOrLease::Copy(state) => (Some(state), ControlFlow::Break(())),
            CopyOrLease::Fetch(task) => (task.earlier, ControlFlow::Continue(task.lease)),
        };
        let Some(shared) = shared else { return flow };
        let shared = Arc::new(shared.shared());
        loop {
            let before = cached.state.load_full();
            // An operator made robotgate forget the origin in the meantime, so do not use the fleet's older copy.
            if cached.forgotten() != forgotten {
                return match flow {
                    ControlFlow::Break(()) => ControlFlow::Continue(None),
                    lease => lease,
                };
            }
            let after = Arc::new(shared.resuming(&before));
            if let Some(copy) = after.last_copy()
                && begun.fetcher.store_evidence(copy).await.is_err()
            {
                // Do not fetch if the fleet's rules cannot be used: if the fetch failed, robotgate could allow what
                // these rules disallow.
                if let ControlFlow::Continue(lease) = flow {
                    self.end_lease(Some(fleet), lease, None);
                }
                return ControlFlow::Break(());
            }
            if let (ControlFlow::Break(()), Some(reservation)) = (&flow, begun.reservation.take()) {
                let shared = SharedCopy {
                    document,
                    origin,
                    before: &before,
                    after: &after,
                    at: SystemTime::now(),
                    policy,
                };
                begun.fetcher.took_shared_copy(&shared, reservation);
            }
            let found = cached.state.compare_and_swap(&before, after.clone());
            if Arc::ptr_eq(&found, &before) {
                begun.fetcher.learned(&Learned {
                    document,
                    origin,
                    before: &before,
                    after: &after,
                });
                if let Some(disk) = &self.disk {
                    disk.keep(self.document.name(origin), after.clone(), cached.is_recalled());
                }
                self.weigh_anew(origin, cached);
                return flow;
            }
        }
    }
}

// === impl FetchInProgress ===

impl<F: Fetch> Drop for FetchInProgress<'_, F> {
    fn drop(&mut self) {
        let Some(reservation) = self.reservation.take() else {
            return;
        };
        let traced = Traced {
            fetched: Fetched::Failed(FetchError::CutOff.into()),
            hops: Vec::new(),
            took: self.at.elapsed(),
        };
        // A cancelled fetch is no failure of the site, so the state stays the same.
        let state = self.cached.state.load_full();
        let finished = FinishedFetch {
            document: self.document,
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
