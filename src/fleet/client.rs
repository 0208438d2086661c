//! Calls the fleet's server. Each call has a time limit. If calls fail, a circuit breaker opens, and no calls are made
//! until a probe in the background has opened a new connection and written to the server.

use std::{
    fmt,
    pin::pin,
    sync::{
        Arc, LazyLock, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use redis::{ErrorKind, PushInfo, PushKind, RedisError, Script, ScriptInvocation, Value};
use tokio::{
    task::yield_now,
    time::{sleep, timeout},
};

use super::{
    FleetCounts,
    breaker::Breaker,
    connection::{Connection, FleetServer},
};
use crate::text::plain_message;

pub(super) struct FleetClient {
    /// Weak, so that background tasks do not keep the client alive.
    this: Weak<Self>,
    server: FleetServer,
    channel: String,
    /// A probe writes this key, to test whether the fleet's server accepts writes.
    probe_key: String,
    on_push: Box<dyn Fn(PushInfo) + Send + Sync>,
    /// `None` while the breaker is open. Only code that has locked the breaker may remove the connection.
    connection: ArcSwapOption<Connection>,
    /// Number of attempts to connect so far. The number of the attempt identifies a connection.
    connections: AtomicU64,
    breaker: Mutex<Breaker>,
    /// Why the breaker is not closed.
    error: Mutex<Option<String>>,
    /// Why the last attempt to subscribe to `channel` failed, if it did.
    subscription_error: Mutex<Option<String>>,
    /// When this robotgate last began to subscribe, by the fleet server's clock, in microseconds since 1970. 0 before
    /// the first time.
    listens_since: AtomicU64,
    /// Maximum time for which a bot's request waits for one answer of the fleet's server.
    pub(super) call_timeout: Duration,
    counts: Arc<FleetCounts>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unavailable {
    /// The fleet's server was not called, or answered with an error.
    NotRun,
    /// The fleet's server may have run the script, or may still run it.
    Unknown,
}

#[derive(Debug, thiserror::Error)]
enum CallError {
    #[error("no answer from the server within {} ms", .0.as_millis())]
    Late(Duration),
    #[error("the server answered with an error: {}", shown(.0))]
    Refused(RedisError),
    #[error("the server does not answer like a Redis or Valkey server; check fleet.url")]
    Foreign,
    #[error("the connection to the server failed: {}", shown(.0))]
    Broken(RedisError),
    #[error("the server ended the connection, or sent too long an answer")]
    Ended,
}

// === impl FleetClient ===

impl FleetClient {
    /// Starts to connect in the background, and then subscribes to `channel`. Needs a tokio runtime.
    pub(super) fn start(
        server: FleetServer,
        prefix: &str,
        channel: &str,
        call_timeout: Duration,
        counts: Arc<FleetCounts>,
        on_push: Box<dyn Fn(PushInfo) + Send + Sync>,
    ) -> Arc<Self> {
        let client = Arc::new_cyclic(|this| Self {
            this: this.clone(),
            server,
            channel: channel.to_owned(),
            probe_key: format!("{prefix}:probe"),
            on_push,
            connection: ArcSwapOption::empty(),
            connections: AtomicU64::new(0),
            breaker: Mutex::new(Breaker::new(Instant::now())),
            error: Mutex::new(Some("robotgate has not connected yet".to_owned())),
            subscription_error: Mutex::default(),
            listens_since: AtomicU64::new(0),
            call_timeout,
            counts,
        });
        client.probe_in_background();
        client
    }

    pub(super) fn error(&self) -> Option<String> {
        self.error.lock().clone()
    }

    /// Returns why the subscription fails. `None` if it works, or while the breaker is not closed.
    pub(super) fn subscription_error(&self) -> Option<String> {
        self.subscription_error.lock().clone().filter(|_| self.is_used())
    }

    /// The caller must ignore messages from before this time, because somebody may have sent old messages again.
    pub(super) fn listens_since(&self) -> u64 {
        self.listens_since.load(Ordering::Relaxed)
    }

    /// Returns the fleet server's time, in microseconds since 1970, or `None` if the call fails.
    pub(super) async fn time(&self) -> Option<u64> {
        match self.call(&TIME.prepare_invoke(), TIME_CALLS * self.call_timeout).await {
            Ok(Value::Int(now)) => u64::try_from(now).ok(),
            _ => None,
        }
    }

    pub(super) fn is_used(&self) -> bool {
        self.breaker.lock().is_closed()
    }

    /// Returns whether a request that comes now would probably get no answer either, because a call has just failed or
    /// the breaker is not closed.
    pub(super) fn has_just_failed(&self) -> bool {
        self.breaker.lock().has_failed_since(Instant::now() - self.call_timeout)
    }

    pub(super) async fn call(&self, script: &ScriptInvocation<'_>, time_left: Duration) -> Result<Value, Unavailable> {
        let connection = self.connection.load_full().filter(|_| self.breaker.lock().is_closed());
        let connection = connection.ok_or(Unavailable::NotRun)?;
        self.counts.calls.fetch_add(1, Ordering::Relaxed);
        let began = Instant::now();
        match bounded(time_left, script.invoke_async(&mut connection.redis.clone())).await {
            Ok(value) => {
                connection.answered();
                // A slow success of a background call, which can have a longer time limit, must not reset the count of
                // failures.
                if began.elapsed() <= self.call_timeout {
                    self.breaker.lock().call_succeeded();
                }
                Ok(value)
            }
            Err(error) => {
                self.counts.errors.fetch_add(1, Ordering::Relaxed);
                let (why, now) = (error.unavailable(), Instant::now());
                self.fail(error, |breaker, error| match error {
                    // Open the breaker at the first of these errors, without counting them: if the fleet's server
                    // refuses only writes, each successful read would reset the count.
                    CallError::Refused(_) | CallError::Foreign | CallError::Ended => breaker.call_refused(now),
                    CallError::Late(_) | CallError::Broken(_) => breaker.call_failed(began, now),
                });
                Err(why)
            }
        }
    }

    /// `note` records the failure and returns whether the breaker opened. If so, drops the connection and starts to
    /// probe the fleet's server.
    fn fail(&self, error: CallError, note: impl FnOnce(&mut Breaker, &CallError) -> bool) {
        {
            let mut breaker = self.breaker.lock();
            if !note(&mut breaker, &error) {
                return;
            }
            // This closes the connection, which could otherwise go on reading an answer that never ends.
            self.connection.store(None);
            *self.error.lock() = Some(error.to_string());
        }
        log_loss(&error);
        self.probe_in_background();
    }

    /// Without this, robotgate would notice the end of the connection only at its next call, and receive no messages
    /// until then.
    fn connection_ended(&self, number: u64) {
        if number == self.connections.load(Ordering::Relaxed) {
            self.fail(CallError::Ended, |breaker, _| {
                let is_closed = breaker.call_refused(Instant::now());
                // If the probe that opened this connection is still running, it will find no connection, and fail.
                self.connection.store(None);
                is_closed
            });
        }
    }

    fn probe_in_background(&self) {
        let this = self.this.clone();
        tokio::spawn(async move {
            loop {
                let Some(left) = this
                    .upgrade()
                    .and_then(|client| client.breaker.lock().begin_probe(Instant::now()))
                else {
                    return;
                };
                if !left.is_zero() {
                    tokio::time::sleep(left).await;
                    continue;
                }
                let Some(client) = this.upgrade() else { return };
                let is_first = client.connections.load(Ordering::Relaxed) == 0;
                let mut probed = client.probe().await;
                {
                    let mut breaker = client.breaker.lock();
                    if probed.is_ok() && client.connection.load().is_none() {
                        probed = Err(CallError::Ended);
                    }
                    breaker.probed(probed.is_ok(), Instant::now());
                    *client.error.lock() = probed.as_ref().err().map(|error| error.to_string());
                }
                match &probed {
                    Ok(()) => tracing::info!("connected to the fleet's server"),
                    Err(error) if is_first => log_loss(error),
                    Err(error) => tracing::debug!(%error, "the fleet's server cannot be used yet"),
                }
            }
        });
    }

    /// Connects, and tests whether the fleet's server accepts writes: without them, no robotgate can take a lease.
    async fn probe(&self) -> Result<(), CallError> {
        let this = self.this.clone();
        let number = self.connections.fetch_add(1, Ordering::Relaxed) + 1;
        let connecting = self.server.connect(move |push: PushInfo| {
            if let Some(client) = this.upgrade() {
                match push.kind {
                    PushKind::Disconnection => client.connection_ended(number),
                    _ => (client.on_push)(push),
                }
            }
        });
        let connection = Arc::new(bounded(CONNECT_TIMEOUT, connecting).await?);
        let mut write = redis::cmd("SET");
        write.arg(&self.probe_key).arg("").arg("PX").arg(PROBE_TTL_MS);
        let () = bounded(self.call_timeout, write.query_async(&mut connection.redis.clone())).await?;
        connection.answered();
        // Subscribe only after storing the connection: if it ends, `connection_ended` removes it, and the probe fails.
        self.connection.store(Some(connection.clone()));
        if !self.subscribe(&connection).await {
            self.subscribe_in_background(&connection);
        }
        Ok(())
    }

    async fn subscribe(&self, connection: &Connection) -> bool {
        let mut redis = connection.redis.clone();
        let subscribed = bounded(CONNECT_TIMEOUT, async {
            // If robotgate asked for the time later, a message just after the subscription could seem to be from before
            // it.
            let now = TIME.prepare_invoke().invoke_async(&mut redis).await?;
            self.listens_since.store(now, Ordering::Relaxed);
            redis.subscribe(&self.channel).await
        })
        .await;
        connection.answered();
        let error = subscribed.err().map(|error| error.to_string());
        let before = std::mem::replace(&mut *self.subscription_error.lock(), error.clone());
        match (error, before) {
            (Some(error), None) => tracing::warn!(
                %error,
                "cannot subscribe to the messages of the fleet; robotgate keeps trying. Until it succeeds, it learns \
                 late that another robotgate fetched a robots.txt or that a site asked for a pause, and it does not \
                 learn that an operator made the fleet forget a site"
            ),
            (None, Some(_)) => tracing::info!("subscribed to the messages of the fleet"),
            (Some(_), Some(_)) | (None, None) => {}
        }
        self.subscription_error.lock().is_none()
    }

    fn subscribe_in_background(&self, connection: &Arc<Connection>) {
        let (this, connection) = (self.this.clone(), Arc::downgrade(connection));
        tokio::spawn(async move {
            let mut pause = FIRST_SUBSCRIBE_PAUSE;
            loop {
                sleep(pause).await;
                pause = (2 * pause).min(LONGEST_SUBSCRIBE_PAUSE);
                let (Some(client), Some(connection)) = (this.upgrade(), connection.upgrade()) else {
                    return;
                };
                if client.subscribe(&connection).await {
                    return;
                }
            }
        });
    }
}

impl fmt::Debug for FleetClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetClient")
            .field("channel", &self.channel)
            .finish_non_exhaustive()
    }
}

// === impl CallError ===

impl CallError {
    fn unavailable(&self) -> Unavailable {
        match self {
            Self::Refused(_) | Self::Foreign => Unavailable::NotRun,
            Self::Late(_) | Self::Broken(_) | Self::Ended => Unavailable::Unknown,
        }
    }
}

fn log_loss(error: &CallError) {
    tracing::error!(
        %error,
        "the fleet's server cannot be used; until it can, robotgate works without it, and applies [pace] as \
         fleet.on-loss says"
    );
}

/// Returns the text of an error without the arguments of the command, which the server quotes and which can include the
/// password.
fn shown(error: &RedisError) -> String {
    let text = error.to_string();
    let text = text.split(", with args").next().unwrap_or_default();
    plain_message(text, MAX_ERROR).into_owned()
}

async fn bounded<T>(time_left: Duration, call: impl Future<Output = Result<T, RedisError>>) -> Result<T, CallError> {
    let mut call = pin!(call);
    let mut answer = timeout(time_left, &mut call).await;
    if answer.is_err() {
        // On a busy machine, the task that reads the answer may not have run yet. The yields let it run.
        yield_now().await;
        yield_now().await;
        answer = timeout(Duration::ZERO, call).await;
    }
    match answer {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) if error.is_io_error() => Err(CallError::Broken(error)),
        Ok(Err(error)) if error.kind() == ErrorKind::Parse => Err(CallError::Foreign),
        Ok(Err(error)) => Err(CallError::Refused(error)),
        Err(_) => Err(CallError::Late(time_left)),
    }
}

/// Maximum time for connecting, and for subscribing. No request waits for them.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
const PROBE_TTL_MS: u32 = 10_000;
/// Time limit of the call that asks for the server's time, as a multiple of `call_timeout`. No request waits for it.
const TIME_CALLS: u32 = 10;
/// The pause after the first failed attempt to subscribe. After each further attempt, it doubles.
const FIRST_SUBSCRIBE_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_SUBSCRIBE_PAUSE: Duration = Duration::from_secs(60);
/// Maximum length of an error's text, in bytes.
const MAX_ERROR: usize = 300;

static TIME: LazyLock<Script> =
    LazyLock::new(|| Script::new("local now = redis.call('TIME') return now[1] * 1000000 + now[2]"));

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn an_answer_that_arrives_in_time_but_is_read_late_is_accepted() {
        let limit = Duration::from_millis(5);
        let (answer, unread) = oneshot::channel();
        tokio::spawn(async move {
            // Blocks the only thread, so the call can read its answer only after the time limit.
            std::thread::sleep(2 * limit);
            yield_now().await;
            answer.send(1)
        });
        let call = async { Ok(unread.await.expect("it is sent")) };
        assert!(matches!(bounded(limit, call).await, Ok(1)));
        let none = bounded::<i32>(limit, std::future::pending()).await;
        assert!(matches!(none, Err(CallError::Late(_))), "{none:?}");
    }

    #[tokio::test]
    async fn an_answer_in_another_protocol_is_no_error_of_the_server() {
        let answer = RedisError::from((ErrorKind::Parse, "Unexpected `33`"));
        let error = bounded::<i32>(Duration::from_secs(1), async { Err(answer) }).await;
        let error = error.unwrap_err().to_string();
        assert!(error.contains("check fleet.url") && !error.contains("33"), "{error}");
    }

    #[test]
    fn an_error_shows_no_argument_of_the_rejected_command() {
        let text = "unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'gate' 'a password' ";
        let error = RedisError::from((ErrorKind::Parse, "An error", text.to_owned()));
        assert!(error.to_string().contains("password"), "the library shows it: {error}");
        let shown = CallError::Refused(error).to_string();
        assert!(
            shown.contains("unknown command 'HELLO'") && !shown.contains("password"),
            "{shown}"
        );
    }
}
