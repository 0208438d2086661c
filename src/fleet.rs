//! Lets several robotgates (a fleet) share robots.txt copies and the pace of their requests through a Redis or Valkey
//! server. In the code, a *gate* is one running robotgate of a fleet.
//!
//! If the server does not answer in time, a robotgate fetches a robots.txt itself. It trusts a copy from the server no
//! more than an origin's own response. The server stores nothing about a bot, and no path or query of a request.

mod breaker;
mod client;
mod connection;
mod lease;
mod message;
mod pace;
mod settings;
mod value;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Weak, atomic::AtomicU64},
    time::Duration,
};

use http::HeaderValue;
use parking_lot::Mutex;
use redis::{Msg, PushInfo};
use ring::hmac;
use tokio::sync::{Notify, mpsc};

use self::{
    client::FleetClient,
    message::{Channel, FETCHED, INBOX, Message, deliver},
};
pub(crate) use self::{
    lease::{CopyOrLease, Lease},
    pace::SlotReservation,
};
pub use self::{
    message::{Notice, Paused},
    settings::{Address, AddressError, FleetSettings, OnLoss, Secret},
    value::CopyRejection,
};
use crate::{copy::Sha256, robots::Profile};

/// This robotgate as a member of a fleet.
pub struct Fleet {
    client: Arc<FleetClient>,
    listeners: Arc<FetchListeners>,
    /// The name of this robotgate, random and new each time it joins.
    name: String,
    prefix: String,
    /// Identifies the profile and the User-Agent with which this robotgate fetches, in the keys on the fleet's server.
    fetched_as: String,
    channel: Channel,
    /// How long to wait at most while another robotgate fetches a robots.txt.
    longest_wait: Duration,
    counts: Arc<FleetCounts>,
}

/// Counters since the program's start. A reload does not reset them.
#[derive(Debug, Default)]
pub struct FleetCounts {
    /// Calls to the fleet's server.
    pub calls: AtomicU64,
    /// Calls that failed.
    pub errors: AtomicU64,
    /// Copies of other robotgates that this robotgate used.
    pub copies_used: AtomicU64,
    /// Copies from the fleet's server that this robotgate ignored, for each [`CopyRejection`].
    pub rejected: [AtomicU64; CopyRejection::ALL.len()],
}

/// Why this robotgate cannot join a fleet.
#[derive(Debug, thiserror::Error)]
#[error("fleet.ca-file: {0}")]
pub struct FleetError(#[from] rustls::Error);

/// The tasks that wait while another robotgate fetches a robots.txt, by the fleet server's key for that robots.txt.
#[derive(Debug, Default)]
struct FetchListeners(Mutex<HashMap<String, Weak<Notify>>>);

/// The registration of one task in `FetchListeners`. It ends when this value is dropped.
struct FetchListener {
    notify: Arc<Notify>,
    key: String,
    listeners: Arc<FetchListeners>,
}

/// How this robotgate fetches a robots.txt. Robotgates with different profiles or User-Agents share no copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchedAs<'a> {
    pub profile: Profile,
    pub user_agent: &'a HeaderValue,
    pub timeout: Duration,
}

// === impl Fleet ===

impl Fleet {
    /// Joins a fleet, and connects to its server in a background task. Calls `on_notice` when the fleet forgets an
    /// origin or an origin has asked for a pause.
    ///
    /// # Errors
    /// Fails if the settings are invalid. Does not check whether the fleet's server answers.
    pub fn join(
        settings: &FleetSettings,
        fetched_as: FetchedAs<'_>,
        counts: Arc<FleetCounts>,
        on_notice: impl Fn(Notice) + Send + Sync + 'static,
    ) -> Result<Self, FleetError> {
        let name = uuid::Uuid::now_v7().simple().to_string();
        let listeners = Arc::<FetchListeners>::default();
        let secret = settings.key.as_ref();
        let channel = Channel {
            name: format!("{}:messages", settings.prefix),
            secret: secret.map(|secret| hmac::Key::new(hmac::HMAC_SHA256, secret.bytes())),
        };
        let (outbox, inbox) = mpsc::channel(INBOX);
        let on_push = Box::new({
            let (listeners, name, channel) = (listeners.clone(), name.clone(), channel.clone());
            move |push| handle_push(push, &name, &channel, &listeners, &outbox)
        });
        let FetchedAs {
            profile, user_agent, ..
        } = fetched_as;
        let digest = Sha256::of(&[profile.as_str().as_bytes(), b"\0", user_agent.as_bytes()].concat());
        let server = settings.server()?;
        let client = FleetClient::start(
            server,
            &settings.prefix,
            &channel.name,
            settings.call_timeout,
            counts.clone(),
            on_push,
        );
        tokio::spawn(deliver(Arc::downgrade(&client), inbox, on_notice));
        Ok(Self {
            client,
            listeners,
            name,
            prefix: settings.prefix.clone(),
            fetched_as: data_encoding::HEXLOWER.encode(&digest.0[..8]),
            channel,
            longest_wait: fetched_as.timeout,
            counts,
        })
    }

    /// Returns why the fleet's server cannot be used now, or `None` if it can.
    pub fn error(&self) -> Option<String> {
        self.client.error()
    }

    /// Returns why this robotgate gets no messages of the other robotgates, although the fleet's server can be used.
    pub fn subscription_error(&self) -> Option<String> {
        self.client.subscription_error()
    }

    pub(crate) fn is_used(&self) -> bool {
        self.client.is_used()
    }

    fn listen(&self, key: &str) -> FetchListener {
        let notify = Arc::<Notify>::default();
        self.listeners.0.lock().insert(key.to_owned(), Arc::downgrade(&notify));
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

fn handle_push(
    push: PushInfo,
    name: &str,
    channel: &Channel,
    listeners: &FetchListeners,
    inbox: &mpsc::Sender<Message>,
) {
    let payload = Msg::from_push_info(push).and_then(|message| message.get_payload::<String>().ok());
    let Some(payload) = payload else { return };
    if let Some(key) = payload.strip_prefix(FETCHED) {
        let listener = listeners.0.lock().get(key).and_then(Weak::upgrade);
        if let Some(listener) = listener {
            // If the task does not wait yet, it gets this notification when it starts to wait.
            listener.notify_one();
        }
    } else if let Some(message) = channel.read(&payload)
        // A robotgate needs its own messages about a pause, because the fleet's server can have made the pause longer.
        && !(message.by == name && matches!(message.notice, Notice::Forgotten(_)))
        && inbox.try_send(message).is_err()
    {
        tracing::debug!("dropped a message of the fleet, because too many messages wait");
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
        let mut listeners = self.listeners.0.lock();
        // Another task may have registered for the same key after this one.
        if listeners
            .get(&self.key)
            .is_some_and(|held| held.as_ptr() == Arc::as_ptr(&self.notify))
        {
            listeners.remove(&self.key);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
