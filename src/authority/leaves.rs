//! Keeps TLS server configurations with leaf certificates in memory, for a limited number of host names. It never
//! issues a leaf on an asynchronous thread, and never two leaves for a name at the same time.

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

/// A cache of TLS server configurations with leaf certificates of one [`Authority`]. Clones share the cache.
#[derive(Clone)]
pub struct Leaves {
    shared: Arc<SharedLeaves>,
}

struct SharedLeaves {
    authority: Arc<Authority>,
    cache: Cache<Host, Leaf>,
    provider: Arc<CryptoProvider>,
    clock: Box<dyn Fn() -> SystemTime + Send + Sync>,
    /// Limits how many leaves are issued at the same time, because many new names could take all blocking threads.
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
    /// Creates an empty cache for about `capacity` names, but at least one. Uses the system's clock.
    pub fn new(authority: Arc<Authority>, capacity: usize) -> Self {
        Self::with_clock(authority, capacity, SystemTime::now)
    }

    /// Creates a cache like [`Self::new`] with another clock.
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
        // `leaves` is not shared yet.
        if let Some(shared) = Arc::get_mut(&mut leaves.shared) {
            shared.minted = minted;
        }
        leaves
    }

    /// Returns the TLS server configuration for `name`. Issues a leaf if there is none, or if the old one has passed
    /// half of its life.
    ///
    /// The server offers TLS 1.2 and 1.3, prefers `h2` to `http/1.1`, and resumes a session only under the same name.
    ///
    /// # Errors
    ///
    /// Fails like [`Authority::mint`]. The next call tries again.
    pub async fn server_config(&self, name: Host) -> Result<Arc<ServerConfig>, MintError> {
        if let Some(ready) = self.ready(&name) {
            return Ok(ready);
        }
        leaf::check(&name)?;
        // Issue the leaf in a separate task, which continues for other clients if this client disconnects.
        let fill = Arc::clone(&self.shared).fill(name);
        tokio::spawn(fill).await.unwrap_or(Err(MintError::Interrupted))
    }

    /// Returns the TLS server configuration for `name` if it is in the cache and can still be used.
    pub fn ready(&self, name: &Host) -> Option<Arc<ServerConfig>> {
        let leaf = self.shared.cache.get(name)?;
        leaf.holds((self.shared.clock)()).then_some(leaf.config)
    }

    /// Returns the number of cached configurations.
    pub fn len(&self) -> usize {
        self.shared.cache.len()
    }

    pub fn is_empty(&self) -> bool {
        self.shared.cache.is_empty()
    }

    /// Returns the value of the counter of issued leaves.
    pub fn minted(&self) -> u64 {
        self.shared.minted.load(Ordering::Relaxed)
    }

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
        // Other calls for the name wait here until the call with the guard inserts the leaf or drops the guard.
        let guard = match self.cache.entry_async(&name, check).await {
            EntryResult::Retained(config) => return Ok(config),
            EntryResult::Vacant(guard) | EntryResult::Replaced(guard, _) => guard,
            // `check` never removes an entry, and no time limit is set.
            EntryResult::Removed(..) | EntryResult::Timeout => return Err(MintError::Interrupted),
        };

        let turn = self.turns.acquire().await.map_err(|_| MintError::Interrupted)?;
        let shared = Arc::clone(&self);
        let leaf = tokio::task::spawn_blocking(move || shared.mint(&name, now))
            .await
            .unwrap_or(Err(MintError::Interrupted))?;
        drop(turn);
        let config = Arc::clone(&leaf.config);
        // Inserting fails only if the entry was removed or replaced in the meantime, which nothing here does.
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
    /// Returns whether the leaf can be used at `now`. It cannot be used yet if the clock was set back.
    fn holds(&self, now: SystemTime) -> bool {
        self.use_from <= now && now < self.use_until
    }
}

/// Builds a server configuration that presents `leaf` whatever server name a client sends: for an IP address, clients
/// send none. Accepts no early data, which could be replayed (RFC 8446 §8).
fn server_config(provider: Arc<CryptoProvider>, leaf: CertifiedKey) -> Result<ServerConfig, MintError> {
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(MintError::Server)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(leaf)));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    // Clients resume sessions only with tickets, so the server stores nothing. Each configuration has its own ticket
    // keys, so a ticket for one name is useless for another.
    config.ticketer = Ticketer::new().map_err(|_| MintError::Random)?;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(config)
}
