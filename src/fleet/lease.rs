//! Lets one robotgate fetch a robots.txt (or a `tdmrep.json`) for the whole fleet: the one to which the fleet's server
//! gives the origin's lease. The others wait for the result. A lease expires within seconds unless its holder renews
//! it, so the others do not wait long for a holder that has died.
//!
//! A lease has a fencing token, a number that grows with each lease of the origin. The server accepts a result only if
//! it has granted no later lease, so a slow holder cannot replace a newer result. Tokens are at least the server's
//! time, so they grow even if the server loses its memory.
//!
//! If the server does not answer in time, the robotgate does not know whether it holds the lease. It fetches anyway. To
//! renew and end the lease, it sends its name instead of a token.

use std::{
    convert::Infallible,
    sync::{Arc, LazyLock, atomic::Ordering},
    time::{Duration, Instant, SystemTime},
};

use redis::{Script, ScriptInvocation, Value};
use tokio::time::{sleep, timeout};

use super::{
    Fleet,
    client::Unavailable,
    message::{FETCHED, Message, Notice},
    value::{self, CopyRejection, MAX_BYTES},
};
use crate::{
    copy::{Due, OriginState, Policy, SiteDocument},
    origin::Origin,
};

#[derive(Debug)]
pub(crate) enum CopyOrLease {
    Copy(OriginState),
    Fetch(FetchTask),
}

#[derive(Debug, Default)]
pub(crate) struct FetchTask {
    /// Another robotgate's copy. It is newer than this robotgate's copy, but also due to be fetched again.
    pub(crate) earlier: Option<OriginState>,
    /// `None` if the robotgate has to fetch without the fleet.
    pub(crate) lease: Option<Lease>,
}

/// The right to fetch an origin's robots.txt for the fleet.
#[derive(Debug)]
pub(crate) struct Lease {
    keys: Keys,
    /// The fencing token. `None` if it is unknown whether the fleet's server has granted the lease.
    token: Option<i64>,
}

/// The keys of a document on the fleet's server. The braces in them are for a Redis cluster, which robotgate does not
/// support.
#[derive(Debug)]
pub(super) struct Keys {
    pub(super) copy: String,
    pub(super) lease: String,
    pub(super) token: String,
}

// === impl Fleet ===

impl Fleet {
    /// Gets from the fleet either a copy that is newer than `known`, or the task to fetch the document. While another
    /// robotgate fetches the document, waits for its copy, at most for about `longest_wait`.
    pub(crate) async fn copy_or_lease(
        &self,
        document: &SiteDocument,
        origin: &Origin,
        known: &OriginState,
        policy: &Policy,
    ) -> CopyOrLease {
        let keys = self.keys(document, origin);
        let listener = self.listen(&keys.copy);
        let (mut seen, mut task, mut time_left) = (Vec::new(), FetchTask::default(), self.client.call_timeout);
        let until = Instant::now() + self.longest_wait;
        while Instant::now() < until {
            let asked = Instant::now();
            let mut ask = keys.script(&ASK);
            ask.arg(&seen).arg(&self.name).arg(LEASE_MS).arg(TOKEN_MS);
            let answer = self.client.call(&ask, time_left).await;
            time_left = time_left.saturating_sub(asked.elapsed());
            match answer {
                Ok(Value::Int(token)) => {
                    let token = Some(token);
                    task.lease = Some(Lease { keys, token });
                    break;
                }
                Ok(Value::BulkString(bytes)) => {
                    value::stamp(&bytes).clone_into(&mut seen);
                    let Some(state) = self.read(&keys.copy, bytes, policy).await else {
                        continue;
                    };
                    // If the copy is not newer, ask again: the server leaves out the copy that `seen` identifies.
                    if state.last_fetch() <= known.last_fetch() {
                        continue;
                    }
                    let now = SystemTime::now();
                    match (state.due(now, policy), known.due(now, policy)) {
                        (Due::No, _) | (Due::Background, Due::Now) => {
                            self.counts.copies_used.fetch_add(1, Ordering::Relaxed);
                            return CopyOrLease::Copy(state);
                        }
                        _ => task.earlier = Some(state.without_old_failures(now, policy)),
                    }
                }
                // Another robotgate holds the lease. Wait for its message, or ask again after `POLL`.
                Ok(_) => {
                    let _ = timeout(POLL, listener.notified()).await;
                    time_left = self.client.call_timeout;
                }
                Err(Unavailable::NotRun) => break,
                Err(Unavailable::Unknown) => {
                    task.lease = Some(Lease { keys, token: None });
                    break;
                }
            }
        }
        CopyOrLease::Fetch(task)
    }

    /// If the value must not be used, counts its [`CopyRejection`] and returns `None`.
    async fn read(&self, key: &str, bytes: Vec<u8>, policy: &Policy) -> Option<OriginState> {
        let (key, secret, now) = (key.to_owned(), self.channel.secret.clone(), SystemTime::now());
        let takes_long = bytes.len() > LARGE;
        let decode = move || value::decode(&key, &bytes, secret.as_ref(), now);
        let decoded = match takes_long {
            true => tokio::task::spawn_blocking(decode)
                .await
                .unwrap_or(Err(CopyRejection::Corrupt)),
            false => decode(),
        };
        // The key depends on the profile (`robots.profile`), so a copy with another profile is corrupt.
        let fits = |state: OriginState| match state.is_under(policy) {
            true => Ok(state),
            false => Err(CopyRejection::Corrupt),
        };
        match decoded.and_then(fits) {
            Ok(state) => Some(state),
            Err(rejection) => {
                self.counts.rejected[rejection as usize].fetch_add(1, Ordering::Relaxed);
                None
            }
        }
    }

    pub(crate) async fn while_leased<T>(&self, lease: &Lease, work: impl Future<Output = T>) -> T {
        let renewing = async {
            loop {
                sleep(LEASE / 3).await;
                let mut renew = lease.script(&RENEW, &self.name);
                renew.arg(LEASE_MS).arg(TOKEN_MS);
                let _ = self.client.call(&renew, self.client.call_timeout).await;
            }
        };
        let ended: Result<T, Infallible> = tokio::select! {
            done = work => Ok(done),
            never = renewing => Err(never),
        };
        match ended {
            Ok(done) => done,
            Err(never) => match never {},
        }
    }

    /// Stores the result `fetched` for the other robotgates, unless the fleet's server has granted a later lease.
    pub(crate) async fn end(&self, lease: Lease, fetched: Option<Arc<OriginState>>) {
        let (key, secret) = (lease.keys.copy.clone(), self.channel.secret.clone());
        let encode = move || {
            let state = fetched?;
            let life = value::life(&state, SystemTime::now());
            Some((value::encode(&key, &state, secret.as_ref())?, life))
        };
        // Encoding compresses the document, which can take milliseconds.
        let encoded = tokio::task::spawn_blocking(encode).await.ok().flatten();
        let (value, life) = encoded.unwrap_or_default();
        let life = u64::try_from(life.as_millis()).unwrap_or(u64::MAX);
        let mut end = lease.script(&END, &self.name);
        end.arg(&value).arg(life);
        end.arg(&self.channel.name).arg(format!("{FETCHED}{}", lease.keys.copy));
        let _ = self.client.call(&end, self.write_timeout()).await;
    }

    /// Deletes the copies of an origin on the fleet's server, except those of robotgates with another profile or
    /// User-Agent, and tells all robotgates to forget the origin. Returns whether the server deleted the copies and
    /// accepted the message.
    pub(crate) async fn forget(&self, origin: &Origin) -> bool {
        let tdmrep = self.keys(&SiteDocument::TDMREP, origin);
        if self
            .client
            .call(&tdmrep.script(&FORGET), self.write_timeout())
            .await
            .is_err()
        {
            return false;
        }
        let keys = self.keys(&SiteDocument::ROBOTS_TXT, origin);
        match self.client.call(&keys.script(&FORGET), self.write_timeout()).await {
            Ok(Value::Int(at)) => self.tell(&keys.copy, at, Notice::Forgotten(origin.clone())).await,
            _ => false,
        }
    }

    /// Sends a notice to all robotgates of the fleet, this one included, and returns whether the server accepted it.
    /// `key` can be any key of the origin, and `at` is when the event happened, by the fleet server's clock, in
    /// microseconds since 1970.
    pub(super) async fn tell(&self, key: &str, at: i64, notice: Notice) -> bool {
        let Ok(at) = u64::try_from(at) else { return false };
        let by = self.name.clone();
        let message = self.channel.write(&Message { by, at, notice });
        let mut publish = PUBLISH.key(key);
        publish.arg(&self.channel.name).arg(message);
        self.client.call(&publish, self.write_timeout()).await.is_ok()
    }

    /// The time limit for calls that no bot's request waits for, which is longer than `call_timeout`.
    pub(super) fn write_timeout(&self) -> Duration {
        10 * self.client.call_timeout
    }

    pub(super) fn keys(&self, document: &SiteDocument, origin: &Origin) -> Keys {
        let base = format!("{}:{{{}}}", self.prefix, document.name(origin));
        Keys {
            copy: format!("{base}:copy:{}", self.fetched_as),
            lease: format!("{base}:lease:{}", self.fetched_as),
            token: format!("{base}:token:{}", self.fetched_as),
        }
    }
}

// === impl Lease ===

impl Lease {
    /// Prepares a call of a script that begins with [`IF_HOLDER`].
    fn script<'s>(&self, script: &'s Script, name: &str) -> ScriptInvocation<'s> {
        let mut call = self.keys.script(script);
        call.arg(self.token.map(|token| token.to_string()).unwrap_or_default());
        call.arg(name);
        call
    }

    #[cfg(test)]
    pub(super) fn token(&self) -> Option<i64> {
        self.token
    }
}

// === impl Keys ===

impl Keys {
    fn script<'s>(&self, script: &'s Script) -> ScriptInvocation<'s> {
        let mut call = script.prepare_invoke();
        call.key(&self.copy).key(&self.lease).key(&self.token);
        call
    }
}

/// How long a lease lasts unless its holder renews it.
const LEASE: Duration = Duration::from_millis(LEASE_MS);
const LEASE_MS: u64 = 3_000;
/// How long the fleet's server keeps the last token of an origin. Must be longer than any fetch takes.
const TOKEN_MS: u64 = 60 * 60 * 1000;
/// How long to wait for the message that another robotgate's fetch has ended, before asking again.
const POLL: Duration = Duration::from_millis(250);
/// Values with more bytes than this are decoded on a blocking thread.
const LARGE: usize = 16 * 1024;

/// Returns the stored copy if the robotgate has not seen it yet, the token of a new lease, or nothing if another
/// robotgate holds the lease. If the robotgate that asks holds the lease, the answer to its earlier call was lost, so
/// it gets a new token.
///
/// All scripts in this file except [`PUBLISH`] get the keys of the copy, the lease and the token, in this order.
static ASK: LazyLock<Script> = LazyLock::new(|| Script::new(&format!("local MAX_BYTES = {MAX_BYTES}\n{ASK_BODY}")));

const ASK_BODY: &str = r"
local copy = redis.pcall('GET', KEYS[1])
if type(copy) == 'string' and string.sub(copy, 1, 33) ~= ARGV[1] then
  -- No gate stores a copy of more than MAX_BYTES. If there is one, the gate rejects it, so its beginning is enough.
  return string.sub(copy, 1, MAX_BYTES + 1)
end
local holder = redis.pcall('GET', KEYS[2])
local life = redis.call('PTTL', KEYS[2])
-- ARGV[3] is how long a new lease lasts. A lease that lasts longer, or for ever, is not from a gate, so ignore it.
if type(holder) == 'string' and holder ~= ARGV[2] and life > 0 and life <= tonumber(ARGV[3]) then return false end
local now = redis.call('TIME')
local token = now[1] * 1000000 + now[2]
local last = redis.pcall('GET', KEYS[3])
last = type(last) == 'string' and tonumber(last)
-- A token that is a day ahead of the clock is not from this script, so ignore it.
if last and last >= token and last < token + 86400000000 then token = last + 1 end
-- A server whose memory is full refuses a SET only if the script has written nothing yet. So the first write is a SET.
redis.call('SET', KEYS[3], string.format('%.0f', token), 'PX', ARGV[4])
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
return token";

/// The beginning of the scripts that only the holder of a lease may run. The first two arguments are the holder's
/// token, which can be empty, and the holder's name.
const IF_HOLDER: &str = r"
local is_holder
if ARGV[1] ~= '' then
  is_holder = redis.pcall('GET', KEYS[3]) == ARGV[1]
else
  is_holder = redis.pcall('GET', KEYS[2]) == ARGV[2]
end
if not is_holder then return 0 end
";

static RENEW: LazyLock<Script> = LazyLock::new(|| {
    let renew = r"
redis.call('PEXPIRE', KEYS[3], ARGV[4])
return redis.call('PEXPIRE', KEYS[2], ARGV[3])";
    Script::new(&[IF_HOLDER, renew].concat())
});

static END: LazyLock<Script> = LazyLock::new(|| {
    let end = r"
if ARGV[3] ~= '' then redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4]) end
redis.call('DEL', KEYS[2])
redis.call('PUBLISH', ARGV[5], ARGV[6])
return 1";
    Script::new(&[IF_HOLDER, end].concat())
});

/// Returns the fleet server's time, which the message to the other robotgates must contain.
static FORGET: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
local now = redis.call('TIME')
return now[1] * 1000000 + now[2]",
    )
});

static PUBLISH: LazyLock<Script> = LazyLock::new(|| Script::new("return redis.call('PUBLISH', ARGV[1], ARGV[2])"));
