//! Shares copies of robots.txt between several gates through a Redis or Valkey server, so that one gate fetches for all,
//! and all keep one pace.
//!
//! No gate depends on the server. If it does not answer in time, the gate fetches as if it were alone. A copy from the
//! server is trusted no more than an origin's own answer, and nothing of a bot or its requests is stored there. Deciding on a
//! copy in memory makes no call.

mod breaker;
mod client;
mod lease;
mod pace;
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

use self::{
    client::Client,
    lease::{FETCHED, FORGOTTEN},
};
pub(crate) use self::{
    lease::{CopyOrLease, Lease},
    pace::Slot,
};
pub use self::{
    settings::{Address, AddressError, OnLoss, Secret, Settings},
    value::Rejection,
};
use crate::{copy::Sha256, origin::Origin, robots::Profile};

/// A gate's membership of a fleet.
pub struct Fleet {
    client: Arc<Client>,
    listeners: Arc<Listeners>,
    /// Identifies this gate. It gets a new name each time that it joins.
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
    /// Copies of other gates that this gate used.
    pub copies_used: AtomicU64,
    /// Copies that were ignored, by [`Rejection`].
    pub rejected: [AtomicU64; Rejection::ALL.len()],
}

/// What another gate tells this one.
#[derive(Debug, PartialEq, Eq)]
pub enum Notice {
    /// An operator made the fleet forget this origin.
    Forgotten(Origin),
    Paused(Paused),
}

/// An origin wants a pause, of which this much is left.
#[derive(Debug, PartialEq, Eq)]
pub struct Paused {
    pub origin: Origin,
    pub left: Duration,
}

/// Why a fleet cannot be joined.
#[derive(Debug, thiserror::Error)]
#[error("fleet.url: {0}")]
pub struct FleetError(#[from] redis::RedisError);

/// The tasks that wait for another gate's fetch, by the key of the copy.
#[derive(Debug, Default)]
struct Listeners(Mutex<HashMap<String, Weak<Notify>>>);

/// Registers a task that waits for another gate's fetch, until it is dropped.
struct FetchListener {
    notify: Arc<Notify>,
    key: String,
    listeners: Arc<Listeners>,
}

/// The settings that a copy depends on, in addition to its origin. Gates that differ in this share no copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchedAs<'a> {
    pub profile: Profile,
    pub user_agent: &'a HeaderValue,
    /// The longest time for a fetch.
    pub timeout: Duration,
}

// === impl Fleet ===

impl Fleet {
    /// Joins a fleet: begins to connect, and does not wait for that. Calls `on_notice` with what the gates tell each other.
    /// Needs a tokio runtime.
    ///
    /// # Errors
    /// The settings are invalid. Whether the server answers is not known yet.
    pub fn join(
        settings: &Settings,
        fetched_as: FetchedAs<'_>,
        counts: Arc<Counts>,
        on_notice: impl Fn(Notice) + Send + Sync + 'static,
    ) -> Result<Self, FleetError> {
        let name = uuid::Uuid::now_v7().simple().to_string();
        let listeners = Arc::<Listeners>::default();
        let secret = settings.key.as_ref();
        let secret = secret.map(|secret| hmac::Key::new(hmac::HMAC_SHA256, secret.bytes()));
        let on_message = Box::new({
            let (listeners, name, secret) = (listeners.clone(), name.clone(), secret.clone());
            move |push| handle_message(push, &name, secret.as_ref(), &listeners, &on_notice)
        });
        let FetchedAs {
            profile, user_agent, ..
        } = fetched_as;
        let digest = Sha256::of(&[profile.as_str().as_bytes(), b"\0", user_agent.as_bytes()].concat());
        Ok(Self {
            client: Client::start(
                settings.server()?,
                &settings.prefix,
                settings.call_timeout,
                counts.clone(),
                on_message,
            ),
            listeners,
            name,
            prefix: settings.prefix.clone(),
            fetched_as: data_encoding::HEXLOWER.encode(&digest.0[..8]),
            secret,
            longest_wait: fetched_as.timeout,
            counts,
        })
    }

    /// Returns why the server is not used now; `None` while it is used.
    pub fn error(&self) -> Option<String> {
        self.client.error()
    }

    /// Returns whether the server is used now.
    pub(crate) fn is_used(&self) -> bool {
        self.client.is_used()
    }

    /// Registers a task that waits for the end of another gate's fetch.
    fn listen(&self, key: &str) -> FetchListener {
        let notify = Arc::<Notify>::default();
        self.listeners.lock().insert(key.to_owned(), Arc::downgrade(&notify));
        FetchListener {
            notify,
            key: key.to_owned(),
            listeners: self.listeners.clone(),
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

/// Handles a message of another gate. A message about the end of a fetch needs no tag: it only makes this
/// gate ask the server.
fn handle_message(
    push: PushInfo,
    name: &str,
    secret: Option<&hmac::Key>,
    listeners: &Listeners,
    on_notice: &impl Fn(Notice),
) {
    let payload = Msg::from_push_info(push).and_then(|message| message.get_payload::<String>().ok());
    let Some(payload) = payload else { return };
    if let Some(key) = payload.strip_prefix(FETCHED) {
        let listener = listeners.lock().get(key).and_then(Weak::upgrade);
        if let Some(listener) = listener {
            // A task that does not wait yet receives it when it begins to wait.
            listener.notify_one();
        }
    } else if let Some((by, origin)) = parse_forget_message(&payload, secret)
        && by != name
    {
        on_notice(Notice::Forgotten(origin));
    } else if let Some(paused) = Paused::parse(&payload, secret) {
        // This gate's own message, too: the pause of the fleet can be longer than its own.
        on_notice(Notice::Paused(paused));
    }
}

/// Returns the message by which the gate `name` makes the fleet forget an origin.
fn forget_message(name: &str, origin: &Origin, secret: Option<&hmac::Key>) -> String {
    tagged(format!("{FORGOTTEN}{name} {origin}"), secret)
}

/// Reads a forget message: which gate sent it, and the origin. `None` for other messages and for a wrong tag.
fn parse_forget_message<'m>(message: &'m str, secret: Option<&hmac::Key>) -> Option<(&'m str, Origin)> {
    let (name, origin) = without_tag(message, secret)?.strip_prefix(FORGOTTEN)?.split_once(' ')?;
    Some((name, origin.parse().ok()?))
}

/// Adds a tag to a message, as a copy has one.
fn tagged(said: String, secret: Option<&hmac::Key>) -> String {
    match secret {
        Some(secret) => {
            let tag = hmac::sign(secret, said.as_bytes());
            format!("{said} {}", data_encoding::HEXLOWER.encode(tag.as_ref()))
        }
        None => said,
    }
}

/// Removes the tag of a message, or returns `None` if the tag is wrong.
fn without_tag<'m>(message: &'m str, secret: Option<&hmac::Key>) -> Option<&'m str> {
    let Some(secret) = secret else { return Some(message) };
    let (said, tag) = message.rsplit_once(' ')?;
    let tag = data_encoding::HEXLOWER.decode(tag.as_bytes()).ok()?;
    hmac::verify(secret, said.as_bytes(), &tag).ok()?;
    Some(said)
}

// === impl Paused ===

impl Paused {
    fn message(&self, secret: Option<&hmac::Key>) -> String {
        tagged(format!("{PAUSED}{} {}", self.origin, self.left.as_micros()), secret)
    }

    /// Reads a message about a pause, or returns `None` for other messages and for a wrong tag.
    fn parse(message: &str, secret: Option<&hmac::Key>) -> Option<Self> {
        let (origin, left) = without_tag(message, secret)?.strip_prefix(PAUSED)?.split_once(' ')?;
        Some(Self {
            origin: origin.parse().ok()?,
            left: Duration::from_micros(left.parse().ok()?),
        })
    }
}

// === impl Listeners ===

impl Listeners {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Weak<Notify>>> {
        // Each change is a single insertion or removal.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl FetchListener ===

impl FetchListener {
    async fn notified(&self) {
        self.notify.notified().await;
    }
}

impl Drop for FetchListener {
    fn drop(&mut self) {
        let mut listeners = self.listeners.lock();
        // The entry may belong to a later task.
        if listeners
            .get(&self.key)
            .is_some_and(|held| held.as_ptr() == Arc::as_ptr(&self.notify))
        {
            listeners.remove(&self.key);
        }
    }
}

/// The first word of messages about pauses.
const PAUSED: &str = "paused ";

#[cfg(test)]
pub(crate) mod tests;
