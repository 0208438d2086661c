//! Keeps TLS server configurations with leaf certificates in memory, for a limited number of host names. It never
//! issues a leaf on an asynchronous thread, and never two leaves for a name at the same time. It never returns a leaf
//! that is not valid yet or is about to expire.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::SystemTime,
};

use quick_cache::sync::{Cache, EntryAction, EntryResult};
use rustls::{
    ServerConfig,
    crypto::{CryptoProvider, ring::Ticketer},
    server::NoServerSessionStorage,
    sign::{CertifiedKey, SingleCertAndKey},
};
use tokio::sync::Semaphore;

use super::{Authority, error::MintError, leaf};
use crate::origin::Host;

/// A cache of TLS server configurations with leaf certificates of one [`Authority`]. Its size is limited.
///
/// Clones share the cache.
#[derive(Clone)]
pub struct Leaves {
    shared: Arc<SharedLeaves>,
}

struct SharedLeaves {
    authority: Arc<Authority>,
    cache: Cache<Host, Leaf>,
    provider: Arc<CryptoProvider>,
    clock: Box<dyn Fn() -> SystemTime + Send + Sync>,
    /// Limits how many leaves are issued at the same time. Without a limit, many new names at once could take all
    /// blocking threads of the runtime, which also read and write files.
    turns: Semaphore,
    minted: Arc<AtomicU64>,
}

#[derive(Clone)]
struct Leaf {
    config: Arc<ServerConfig>,
    use_from: SystemTime,
    use_until: SystemTime,
}

// === impl Leaves ===

impl Leaves {
    /// Creates an empty cache for about `capacity` names, but at least one. If it is full, the least useful leaf is
    /// removed. Uses the system's clock.
    pub fn new(authority: Arc<Authority>, capacity: usize) -> Self {
        Self::with_clock(authority, capacity, SystemTime::now)
    }

    /// Creates a cache like [`Self::new`], but with a clock that the caller gives.
    pub fn with_clock(
        authority: Arc<Authority>,
        capacity: usize,
        clock: impl Fn() -> SystemTime + Send + Sync + 'static,
    ) -> Self {
        let turns = thread::available_parallelism().map_or(1, usize::from);
        Self {
            shared: Arc::new(SharedLeaves {
                authority,
                cache: Cache::new(capacity.max(1)),
                provider: Arc::new(rustls::crypto::ring::default_provider()),
                clock: Box::new(clock),
                turns: Semaphore::new(turns),
                minted: Arc::default(),
            }),
        }
    }

    /// Creates a cache like [`Self::new`] that adds the number of issued leaves to `minted`.
    pub fn counted(authority: Arc<Authority>, capacity: usize, minted: Arc<AtomicU64>) -> Self {
        let mut leaves = Self::new(authority, capacity);
        // This always succeeds, because `leaves` is not shared yet.
        if let Some(shared) = Arc::get_mut(&mut leaves.shared) {
            shared.minted = minted;
        }
        leaves
    }

    /// Returns the TLS server configuration for `name`. Issues a leaf if there is none yet, or if the old one has
    /// passed half of its life.
    ///
    /// The server offers TLS 1.2 and 1.3, prefers `h2` to `http/1.1`, and resumes a session only under the same name.
    /// Needs a tokio runtime. If the caller stops waiting, the leaf is still issued and serves the next caller.
    ///
    /// # Errors
    ///
    /// Fails in the same cases as [`Authority::mint`]. Errors are not remembered: the next call tries again.
    pub async fn server_config(&self, name: Host) -> Result<Arc<ServerConfig>, MintError> {
        if let Some(ready) = self.ready(&name) {
            return Ok(ready);
        }
        leaf::check(&name)?;
        // Several clients can wait for this leaf. It is issued in a separate task, so that a client that disconnects
        // does not cancel it for the others.
        let fill = Arc::clone(&self.shared).fill(name);
        tokio::spawn(fill).await.unwrap_or(Err(MintError::Interrupted))
    }

    /// Returns the TLS server configuration for `name` if it is in the cache and its leaf can still be used.
    pub fn ready(&self, name: &Host) -> Option<Arc<ServerConfig>> {
        let leaf = self.shared.cache.get(name)?;
        leaf.holds((self.shared.clock)()).then_some(leaf.config)
    }

    /// Returns the number of cached configurations.
    pub fn len(&self) -> usize {
        self.shared.cache.len()
    }

    /// Returns whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.shared.cache.is_empty()
    }

    /// Returns how many leaves were issued since this cache was created. With [`Self::counted`], returns the value of
    /// the given counter.
    pub fn minted(&self) -> u64 {
        self.shared.minted.load(Ordering::Relaxed)
    }

    /// Returns the authority that signs the leaves.
    pub fn authority(&self) -> &Arc<Authority> {
        &self.shared.authority
    }
}

impl fmt::Debug for Leaves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leaves")
            .field("authority", &self.shared.authority)
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

// === impl SharedLeaves ===

impl SharedLeaves {
    async fn fill(self: Arc<Self>, name: Host) -> Result<Arc<ServerConfig>, MintError> {
        let now = (self.clock)();
        let check = |_: &Host, leaf: &mut Leaf| {
            if leaf.holds(now) {
                EntryAction::Retain(Arc::clone(&leaf.config))
            } else {
                EntryAction::ReplaceWithGuard
            }
        };
        // For each name, the cache gives a guard to one call only, which then issues the leaf. Other calls for the name
        // wait here until this call inserts the leaf with its guard. If the guard is dropped without a leaf, because of
        // an error, the cache gives a guard to one of the waiting calls.
        let guard = match self.cache.entry_async(&name, check).await {
            EntryResult::Retained(config) => return Ok(config),
            EntryResult::Vacant(guard) | EntryResult::Replaced(guard, _) => guard,
            // This does not happen, because `check` never asks to remove an entry, and no time limit is set.
            EntryResult::Removed(..) | EntryResult::Timeout => return Err(MintError::Interrupted),
        };

        let turn = self.turns.acquire().await.map_err(|_| MintError::Interrupted)?;
        let shared = Arc::clone(&self);
        let leaf = tokio::task::spawn_blocking(move || shared.mint(&name, now))
            .await
            .unwrap_or(Err(MintError::Interrupted))?;
        drop(turn);
        let config = Arc::clone(&leaf.config);
        // Inserting fails if the entry was removed to make room while the leaf was issued. This caller still gets its
        // configuration.
        let _ = guard.insert(leaf);
        Ok(config)
    }

    fn mint(&self, name: &Host, now: SystemTime) -> Result<Leaf, MintError> {
        let validity = self.authority.leaf_validity(now)?;
        let key = self.authority.mint_valid(name, validity)?;
        self.minted.fetch_add(1, Ordering::Relaxed);
        Ok(Leaf {
            config: Arc::new(server_config(Arc::clone(&self.provider), key)?),
            use_from: validity.not_before,
            use_until: validity.renew_at(now),
        })
    }
}

// === impl Leaf ===

impl Leaf {
    /// Returns whether the leaf can be used at `now`. It cannot be used after it should have been replaced. It also
    /// cannot be used before it becomes valid, which can happen if the clock was set back.
    fn holds(&self, now: SystemTime) -> bool {
        self.use_from <= now && now < self.use_until
    }
}

/// Builds a server configuration that always presents `leaf`, whatever name the client asks for. The leaf is for the
/// target of the CONNECT, and clients ask for no name at all if the target is an IP address. The server asks for no
/// client certificate. It accepts no early data, because that could be replayed (RFC 8446 §8).
fn server_config(provider: Arc<CryptoProvider>, leaf: CertifiedKey) -> Result<ServerConfig, MintError> {
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(MintError::Server)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(leaf)));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    // Sessions resume only with tickets, so the server stores nothing for each client. The keys of the tickets belong
    // to this name. So a ticket for one name cannot be used for another. The keys change every six hours.
    config.ticketer = Ticketer::new().map_err(|_| MintError::Random)?;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(config)
}
