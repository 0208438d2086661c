//! What several gates share by a Redis or Valkey server: the copies of robots.txt that one of them has fetched, and whose
//! turn it is to fetch.
//!
//! The server is a help and never needed: where it does not answer at once, a gate goes on as if it were alone. What it
//! says is trusted no more than an origin's own answer, and nothing of a bot or its requests is stored there. A copy in
//! memory is never looked for here.

mod breaker;
mod client;
mod lease;
mod settings;
mod value;

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use http::HeaderValue;
use redis::{Msg, PushInfo};
use ring::hmac;
use tokio::sync::Notify;

pub(crate) use self::lease::{Asked, Lease};
use self::{
    client::Client,
    lease::{FORGOTTEN, LANDED},
};
pub use self::{
    settings::{Address, AddressError, Secret, Settings},
    value::Rejection,
};
use crate::{copy::Sha256, origin::Origin, robots::Profile};

/// The other gates, by the server that they share.
pub struct Fleet {
    client: Arc<Client>,
    waiting: Arc<Waiting>,
    /// Of this gate, and of this start of it.
    name: String,
    prefix: String,
    /// What copies are fetched and read as, in hex: gates that differ in this share none.
    fetched_as: String,
    secret: Option<hmac::Key>,
    /// How long another gate's fetch is waited for.
    longest_wait: Duration,
    counts: Arc<Counts>,
}

/// What has been counted since the start, over all reloads.
#[derive(Debug, Default)]
pub struct Counts {
    /// Calls of the server, and those of them that failed.
    pub calls: AtomicU64,
    pub errors: AtomicU64,
    /// Copies that another gate had fetched.
    pub taken: AtomicU64,
    /// Copies that were ignored, by [`Rejection`].
    pub rejected: [AtomicU64; Rejection::ALL.len()],
}

/// The fleet cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("fleet.url: {0}")]
pub struct FleetError(#[from] redis::RedisError);

/// Those who wait for the fetch of another gate, by the key of the copy.
#[derive(Debug, Default)]
struct Waiting(Mutex<HashMap<String, Weak<Notify>>>);

/// Held by one who waits.
struct Told {
    notify: Arc<Notify>,
    key: String,
    waiting: Arc<Waiting>,
}

/// What copies are fetched and read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchedAs<'a> {
    pub profile: Profile,
    pub user_agent: &'a HeaderValue,
    /// The longest that a fetch may take.
    pub timeout: Duration,
}

// === impl Fleet ===

impl Fleet {
    /// Joins a fleet: begins to connect, and does not wait for that. `forget` is called when another gate has an origin
    /// forgotten. It needs a runtime.
    ///
    /// # Errors
    /// The settings cannot be used. Whether the server answers is not known yet.
    pub fn join(
        settings: &Settings,
        fetched_as: FetchedAs<'_>,
        counts: Arc<Counts>,
        forget: impl Fn(&Origin) + Send + Sync + 'static,
    ) -> Result<Self, FleetError> {
        let name = uuid::Uuid::now_v7().simple().to_string();
        let waiting = Arc::<Waiting>::default();
        let told = Box::new({
            let (waiting, name) = (waiting.clone(), name.clone());
            move |push| tell(push, &name, &waiting, &forget)
        });
        let FetchedAs {
            profile, user_agent, ..
        } = fetched_as;
        let digest = Sha256::of(&[profile.as_str().as_bytes(), b"\0", user_agent.as_bytes()].concat());
        let secret = settings.key.as_ref();
        Ok(Self {
            client: Client::start(settings.server()?, &settings.prefix, counts.clone(), told),
            waiting,
            name,
            prefix: settings.prefix.clone(),
            fetched_as: data_encoding::HEXLOWER.encode(&digest.0[..8]),
            secret: secret.map(|secret| hmac::Key::new(hmac::HMAC_SHA256, secret.bytes())),
            longest_wait: fetched_as.timeout,
            counts,
        })
    }

    /// Why the server is not used now; `None` while it is.
    pub fn trouble(&self) -> Option<String> {
        self.client.trouble()
    }

    /// Begins to listen for the end of another gate's fetch.
    fn listen(&self, key: &str) -> Told {
        let notify = Arc::<Notify>::default();
        self.waiting.lock().insert(key.to_owned(), Arc::downgrade(&notify));
        Told {
            notify,
            key: key.to_owned(),
            waiting: self.waiting.clone(),
        }
    }
}

impl fmt::Debug for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fleet")
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

/// What another gate has told. Anyone who can write to the server can tell this, so all that it leads to is a look or a
/// fetch.
fn tell(push: PushInfo, name: &str, waiting: &Waiting, forget: &(impl Fn(&Origin) + ?Sized)) {
    let payload = Msg::from_push_info(push).and_then(|message| message.get_payload::<String>().ok());
    let Some(payload) = payload else { return };
    if let Some(key) = payload.strip_prefix(LANDED) {
        let told = waiting.lock().get(key).and_then(Weak::upgrade);
        if let Some(told) = told {
            // It is kept for one who does not wait yet.
            told.notify_one();
        }
    } else if let Some((by, origin)) = payload.strip_prefix(FORGOTTEN).and_then(|rest| rest.split_once(' '))
        && by != name
        && let Ok(origin) = origin.parse()
    {
        forget(&origin);
    }
}

// === impl Counts ===

impl Counts {
    pub fn get(count: &AtomicU64) -> u64 {
        count.load(Ordering::Relaxed)
    }
}

// === impl Waiting ===

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Weak<Notify>>> {
        // Entries come and go whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Told ===

impl Told {
    async fn notified(&self) {
        self.notify.notified().await;
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        let mut waiting = self.waiting.lock();
        // The entry may be of the next who waits.
        if waiting
            .get(&self.key)
            .is_some_and(|held| held.as_ptr() == Arc::as_ptr(&self.notify))
        {
            waiting.remove(&self.key);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
