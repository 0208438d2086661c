//! Ready TLS servers, one a name, bounded in number. It never mints on an asynchronous thread, never twice at a time for
//! one name, and never hands out a leaf that its clients would find too young or nearly over.

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

use super::{
    Authority,
    leaf::{self, MintError},
};
use crate::origin::Host;

/// A bounded cache of TLS server configurations for the leaves of one [`Authority`].
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
    /// Keeps a burst of new names from taking all of the blocking pool, on which files are written too.
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
    /// An empty cache for about `capacity` names, at least one; the least useful leave first. By the system's clock.
    pub fn new(authority: Arc<Authority>, capacity: usize) -> Self {
        Self::with_clock(authority, capacity, SystemTime::now)
    }

    /// As [`Self::new`], by a clock of the caller's.
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

    /// An empty cache as [`Self::new`] makes it, of which what is minted is added to `minted`.
    pub fn counted(authority: Arc<Authority>, capacity: usize, minted: Arc<AtomicU64>) -> Self {
        let mut leaves = Self::new(authority, capacity);
        // Nobody shares it yet.
        if let Some(shared) = Arc::get_mut(&mut leaves.shared) {
            shared.minted = minted;
        }
        leaves
    }

    /// The TLS server for `name`, minted when there is none or the one there has gone half of its way.
    ///
    /// TLS 1.2 and 1.3, `h2` before `http/1.1`, sessions that resume under the same name only. Needs a tokio runtime.
    /// May be dropped at any point: minting goes on and serves the next caller.
    ///
    /// # Errors
    ///
    /// As [`Authority::mint`]. Errors are not kept: the next call tries again.
    pub async fn server_config(&self, name: Host) -> Result<Arc<ServerConfig>, MintError> {
        if let Some(ready) = self.ready(&name) {
            return Ok(ready);
        }
        leaf::check(&name)?;
        // A task of its own, for a client that goes away must not take the work of those that wait for it along.
        let fill = Arc::clone(&self.shared).fill(name);
        tokio::spawn(fill).await.unwrap_or(Err(MintError::Interrupted))
    }

    /// The TLS server for `name`, where nothing has to be minted for it.
    pub fn ready(&self, name: &Host) -> Option<Arc<ServerConfig>> {
        let leaf = self.shared.cache.get(name)?;
        leaf.holds((self.shared.clock)()).then_some(leaf.config)
    }

    /// How many names there are servers for now.
    pub fn len(&self) -> usize {
        self.shared.cache.len()
    }

    /// Whether there is no server for any name yet.
    pub fn is_empty(&self) -> bool {
        self.shared.cache.is_empty()
    }

    /// How many leaves have been minted since the count began.
    pub fn minted(&self) -> u64 {
        self.shared.minted.load(Ordering::Relaxed)
    }

    /// The authority that signs them.
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
        // While this call holds the guard, others for the name wait here. Dropped without a value, as on an error, it
        // passes to one of them.
        let guard = match self.cache.entry_async(&name, check).await {
            EntryResult::Retained(config) => return Ok(config),
            EntryResult::Vacant(guard) | EntryResult::Replaced(guard, _) => guard,
            // Neither is asked for above.
            EntryResult::Removed(..) | EntryResult::Timeout => return Err(MintError::Interrupted),
        };

        let turn = self.turns.acquire().await.map_err(|_| MintError::Interrupted)?;
        let shared = Arc::clone(&self);
        let leaf = tokio::task::spawn_blocking(move || shared.mint(&name, now))
            .await
            .unwrap_or(Err(MintError::Interrupted))?;
        drop(turn);
        let config = Arc::clone(&leaf.config);
        // It fails when the place has been given to another name meanwhile; this caller is served all the same.
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
    /// Whether the leaf serves still. It does not, either, when the clock has been set back to before it began.
    fn holds(&self, now: SystemTime) -> bool {
        self.use_from <= now && now < self.use_until
    }
}

/// A server that shows `leaf` whatever name the client asks for, or none: to an IP address clients send no name, and the
/// tunnel's target has settled which leaf it is. It asks clients for no certificate, and takes no early data, which could be
/// replayed (RFC 8446 §8).
fn server_config(provider: Arc<CryptoProvider>, leaf: CertifiedKey) -> Result<ServerConfig, MintError> {
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(MintError::Server)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(leaf)));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    // Sessions resume by tickets alone, under keys that belong to this name: a ticket for one name opens no tunnel to
    // another, and however many clients come, nothing is kept for them. The keys turn over every six hours.
    config.ticketer = Ticketer::new().map_err(|_| MintError::Random)?;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(config)
}
