//! The connection to the shared server. Each call is bounded in time. When calls fail, the circuit breaker opens: no call
//! is made until a probe in the background has written to the server again.

use std::{
    fmt,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, atomic::Ordering},
    time::{Duration, Instant},
};

use arc_swap::ArcSwapOption;
use redis::{
    PushInfo, RedisError, ScriptInvocation, Value,
    aio::{ConnectionManager, ConnectionManagerConfig},
};
use tokio::{task::yield_now, time::timeout};

use super::{Counts, breaker::Breaker};
use crate::text::plain_message;

/// A connection to the server with a circuit breaker.
pub(super) struct Client {
    /// For tasks that must not keep the client alive.
    this: Weak<Self>,
    server: redis::Client,
    /// The channel for messages between gates.
    channel: String,
    /// The key that a probe writes.
    probe_key: String,
    /// Handles messages of other gates.
    on_message: Box<dyn Fn(PushInfo) + Send + Sync>,
    /// `None` until the first connection is made.
    connection: ArcSwapOption<ConnectionManager>,
    breaker: Mutex<Breaker>,
    /// Why the breaker is not closed.
    error: Mutex<Option<String>>,
    /// How long a request waits for the server.
    pub(super) call_timeout: Duration,
    counts: Arc<Counts>,
}

/// Why a call has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unavailable {
    /// The server did not run the script.
    NotRun,
    /// The answer is late or lost: the server may have run the script, or may yet run it.
    Unknown,
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
enum CallError {
    #[error("it did not answer within {} ms", .0.as_millis())]
    Late(Duration),
    #[error("it answered: {}", shown(.0))]
    Refused(RedisError),
    #[error("it cannot be reached: {}", shown(.0))]
    Broken(RedisError),
}

// === impl Client ===

impl Client {
    /// Starts to connect in the background. Messages of other gates go to `on_message`. Needs a tokio runtime.
    pub(super) fn start(
        server: redis::Client,
        prefix: &str,
        call_timeout: Duration,
        counts: Arc<Counts>,
        on_message: Box<dyn Fn(PushInfo) + Send + Sync>,
    ) -> Arc<Self> {
        let client = Arc::new_cyclic(|this| Self {
            this: this.clone(),
            server,
            channel: format!("{prefix}:messages"),
            probe_key: format!("{prefix}:probe"),
            on_message,
            connection: ArcSwapOption::empty(),
            breaker: Mutex::new(Breaker::new(Instant::now())),
            error: Mutex::new(Some("robotgate has not connected yet".to_owned())),
            call_timeout,
            counts,
        });
        client.probe_in_background();
        client
    }

    pub(super) fn channel(&self) -> &str {
        &self.channel
    }

    /// Returns why no calls are made now; `None` while they are made.
    pub(super) fn error(&self) -> Option<String> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns whether calls are made now.
    pub(super) fn is_used(&self) -> bool {
        self.breaker().is_closed()
    }

    /// Returns whether the last call failed less than `call_timeout` ago, so that a request may have waited for it.
    pub(super) fn has_just_failed(&self) -> bool {
        self.breaker().has_failed_since(Instant::now() - self.call_timeout)
    }

    /// Runs a script, within `time_left`.
    pub(super) async fn call(&self, script: &ScriptInvocation<'_>, time_left: Duration) -> Result<Value, Unavailable> {
        let connection = self.connection.load_full().filter(|_| self.breaker().is_closed());
        let mut connection = ConnectionManager::clone(&*connection.ok_or(Unavailable::NotRun)?);
        self.counts.calls.fetch_add(1, Ordering::Relaxed);
        let began = Instant::now();
        match bounded(time_left, script.invoke_async(&mut connection)).await {
            Ok(value) => {
                // A write may take longer, but that is no sign that requests would get their answers in time.
                if began.elapsed() <= self.call_timeout {
                    self.breaker().call_succeeded();
                }
                Ok(value)
            }
            Err(error) => {
                self.counts.errors.fetch_add(1, Ordering::Relaxed);
                let has_opened = match error {
                    // The server works, but accepts no writes, for example. Calls that only read would go on to succeed.
                    CallError::Refused(_) => self.breaker().call_refused(Instant::now()),
                    CallError::Late(_) | CallError::Broken(_) => self.breaker().call_failed(began, Instant::now()),
                };
                if has_opened {
                    // Otherwise it would go on reading an answer that has no end.
                    self.connection.store(None);
                    tracing::error!(
                        %error,
                        "the fleet's server cannot be used; until it can, robotgate works without it"
                    );
                    self.set_error(Some(&error));
                    self.probe_in_background();
                }
                Err(match error {
                    CallError::Refused(_) => Unavailable::NotRun,
                    CallError::Late(_) | CallError::Broken(_) => Unavailable::Unknown,
                })
            }
        }
    }

    /// Probes until the breaker is closed.
    fn probe_in_background(&self) {
        let this = self.this.clone();
        tokio::spawn(async move {
            loop {
                let Some(left) = this
                    .upgrade()
                    .and_then(|client| client.breaker().begin_probe(Instant::now()))
                else {
                    return;
                };
                if !left.is_zero() {
                    tokio::time::sleep(left).await;
                    continue;
                }
                let Some(client) = this.upgrade() else { return };
                let probed = client.probe().await;
                match &probed {
                    Ok(()) => tracing::info!("connected to the fleet's server"),
                    Err(error) => tracing::debug!(%error, "the fleet's server cannot be used yet"),
                }
                client.set_error(probed.as_ref().err());
                client.breaker().probed(probed.is_ok(), Instant::now());
            }
        });
    }

    /// Makes a new connection and writes. A server that accepts no writes is useless, because no gate could take a lease.
    ///
    /// With TLS, the client reads the system's roots from disk each time (3 ms for 150 of them), also if it has others.
    /// That is too short to need a blocking thread.
    async fn probe(&self) -> Result<(), CallError> {
        let this = self.this.clone();
        let config = ConnectionManagerConfig::new()
            // The breaker decides when to retry.
            .set_number_of_retries(0)
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(CONNECT_TIMEOUT))
            .set_push_sender(move |push: PushInfo| {
                if let Some(client) = this.upgrade() {
                    (client.on_message)(push);
                }
                Ok::<(), ()>(())
            })
            .set_automatic_resubscription();
        let connecting = ConnectionManager::new_with_config(self.server.clone(), config);
        let mut connection = bounded(2 * CONNECT_TIMEOUT, connecting).await?;
        let mut write = redis::cmd("SET");
        write.arg(&self.probe_key).arg("").arg("PX").arg(PROBE_TTL_MS);
        let () = bounded(self.call_timeout, write.query_async(&mut connection)).await?;
        // Without a subscription, the gate still finds the copies by polling, but later.
        if let Err(error) = bounded(CONNECT_TIMEOUT, connection.subscribe(&self.channel)).await {
            tracing::warn!(%error, "cannot subscribe to the messages of the fleet; robotgate polls instead");
        }
        self.connection.store(Some(Arc::new(connection)));
        Ok(())
    }

    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        // Each change replaces the whole value.
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_error(&self, error: Option<&CallError>) {
        *self.error.lock().unwrap_or_else(PoisonError::into_inner) = error.map(CallError::to_string);
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("channel", &self.channel)
            .finish_non_exhaustive()
    }
}

/// Waits for `call` at most for `time_left`.
/// Returns the text of an error, shortened and safe to show. A server that rejects a command quotes its arguments, which can
/// be the password.
fn shown(error: &RedisError) -> String {
    let text = error.to_string();
    let text = text.split(", with args").next().unwrap_or_default();
    plain_message(text, MAX_ERROR).into_owned()
}

async fn bounded<T>(time_left: Duration, call: impl Future<Output = Result<T, RedisError>>) -> Result<T, CallError> {
    let mut call = pin!(call);
    let mut answer = timeout(time_left, &mut call).await;
    if answer.is_err() {
        // On a busy machine the answer can be here, but not yet read.
        yield_now().await;
        yield_now().await;
        answer = timeout(Duration::ZERO, call).await;
    }
    match answer {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) if error.is_io_error() => Err(CallError::Broken(error)),
        Ok(Err(error)) => Err(CallError::Refused(error)),
        Err(_) => Err(CallError::Late(time_left)),
    }
}

/// How long connecting may take. No request waits for it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
const PROBE_TTL_MS: u32 = 10_000;
/// Bytes of the text of an error.
const MAX_ERROR: usize = 300;

#[cfg(test)]
mod tests {
    use redis::ErrorKind;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn an_answer_that_is_here_but_not_read_is_not_late() {
        let limit = Duration::from_millis(5);
        let (answer, unread) = oneshot::channel();
        tokio::spawn(async move {
            // The only thread is busy until the time is over, and reads the answer after that.
            std::thread::sleep(2 * limit);
            yield_now().await;
            answer.send(1)
        });
        let call = async { Ok(unread.await.expect("it is sent")) };
        assert!(matches!(bounded(limit, call).await, Ok(1)));
        let none = bounded::<i32>(limit, std::future::pending()).await;
        assert!(matches!(none, Err(CallError::Late(_))), "{none:?}");
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
