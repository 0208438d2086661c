//! Shares copies of robots.txt between several gates by a Redis or Valkey server, so that one gate fetches for all.
//!
//! No gate depends on the server. If it does not answer in time, the gate fetches as if it were alone. A copy from the
//! server is trusted no more than an origin's own answer, and nothing of a bot or its requests is stored there. A
//! decision on a copy in memory never gets here.

mod breaker;
mod client;
mod lease;
mod settings;
mod value;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, atomic::AtomicU64},
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

/// A gate's place in a fleet.
pub struct Fleet {
    client: Arc<Client>,
    waiting: Arc<Waiting>,
    /// Names this gate, anew each time that it joins.
    name: String,
    prefix: String,
    /// The digest of [`FetchedAs`] in hex, which is part of each key.
    fetched_as: String,
    secret: Option<hmac::Key>,
    /// How long to wait for another gate's fetch.
    longest_wait: Duration,
    counts: Arc<Counts>,
}

/// Counters since the start, across all reloads.
#[derive(Debug, Default)]
pub struct Counts {
    /// Calls of the server, and how many of them failed.
    pub calls: AtomicU64,
    pub errors: AtomicU64,
    /// Copies that were taken from the fleet.
    pub taken: AtomicU64,
    /// Copies that were ignored, by [`Rejection`].
    pub rejected: [AtomicU64; Rejection::ALL.len()],
}

/// Why a fleet cannot be joined.
#[derive(Debug, thiserror::Error)]
#[error("fleet.url: {0}")]
pub struct FleetError(#[from] redis::RedisError);

/// The tasks that wait for another gate's fetch, by the key of the copy.
#[derive(Debug, Default)]
struct Waiting(Mutex<HashMap<String, Weak<Notify>>>);

/// Held by a task that waits for another gate's fetch.
struct Told {
    notify: Arc<Notify>,
    key: String,
    waiting: Arc<Waiting>,
}

/// What a copy depends on beside its origin. Gates that differ in this share no copies.
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
        let secret = settings.key.as_ref();
        let secret = secret.map(|secret| hmac::Key::new(hmac::HMAC_SHA256, secret.bytes()));
        let told = Box::new({
            let (waiting, name, secret) = (waiting.clone(), name.clone(), secret.clone());
            move |push| tell(push, &name, secret.as_ref(), &waiting, &forget)
        });
        let FetchedAs {
            profile, user_agent, ..
        } = fetched_as;
        let digest = Sha256::of(&[profile.as_str().as_bytes(), b"\0", user_agent.as_bytes()].concat());
        Ok(Self {
            client: Client::start(settings.server()?, &settings.prefix, counts.clone(), told),
            waiting,
            name,
            prefix: settings.prefix.clone(),
            fetched_as: data_encoding::HEXLOWER.encode(&digest.0[..8]),
            secret,
            longest_wait: fetched_as.timeout,
            counts,
        })
    }

    /// Returns why the server is not used now; `None` while it is used.
    pub fn trouble(&self) -> Option<String> {
        self.client.trouble()
    }

    /// Registers a task that waits for the end of another gate's fetch.
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

/// Handles a message of another gate. A message that a fetch has ended needs no tag: it only makes this gate look.
fn tell(
    push: PushInfo,
    name: &str,
    secret: Option<&hmac::Key>,
    waiting: &Waiting,
    forget: &(impl Fn(&Origin) + ?Sized),
) {
    let payload = Msg::from_push_info(push).and_then(|message| message.get_payload::<String>().ok());
    let Some(payload) = payload else { return };
    if let Some(key) = payload.strip_prefix(LANDED) {
        let told = waiting.lock().get(key).and_then(Weak::upgrade);
        if let Some(told) = told {
            // A task that does not wait yet gets it when it begins to wait.
            told.notify_one();
        }
    } else if let Some((by, origin)) = forgotten(&payload, secret)
        && by != name
    {
        forget(&origin);
    }
}

/// Returns the message by which the gate `name` makes the fleet forget an origin. It carries a tag, as copies do.
fn forgetting(name: &str, origin: &Origin, secret: Option<&hmac::Key>) -> String {
    let said = format!("{FORGOTTEN}{name} {origin}");
    match secret {
        Some(secret) => {
            let tag = hmac::sign(secret, said.as_bytes());
            format!("{said} {}", data_encoding::HEXLOWER.encode(tag.as_ref()))
        }
        None => said,
    }
}

/// Reads such a message: which gate sent it, and the origin. `None` for any other message, and for a wrong tag.
fn forgotten<'m>(message: &'m str, secret: Option<&hmac::Key>) -> Option<(&'m str, Origin)> {
    let said = match secret {
        Some(secret) => {
            let (said, tag) = message.rsplit_once(' ')?;
            let tag = data_encoding::HEXLOWER.decode(tag.as_bytes()).ok()?;
            hmac::verify(secret, said.as_bytes(), &tag).ok()?;
            said
        }
        None => message,
    };
    let (name, origin) = said.strip_prefix(FORGOTTEN)?.split_once(' ')?;
    Some((name, origin.parse().ok()?))
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
        // The entry may belong to a later task.
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
