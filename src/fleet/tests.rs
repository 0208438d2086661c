//! Tests fleets with a real server.

mod connection;
mod copies;
mod leases;

use std::{
    env,
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::{Duration, Instant, SystemTime},
};

use std::sync::atomic::Ordering;

use rustix::process::{Pid, Signal, kill_process};

use super::*;
use crate::{
    copy::{Fetched, Freshness, OriginResponse, OriginState, Policy, SiteDocument},
    origin::Origin,
};

/// A Redis server on a socket in a folder of its own. It stops when the test ends.
pub(crate) struct RedisServer {
    child: Child,
    folder: tempfile::TempDir,
}

impl RedisServer {
    /// Returns `None` if redis-server is not installed. Fails in that case if `CI` is set.
    pub(crate) fn start() -> Option<Self> {
        if !Path::new("/usr/bin/redis-server").exists() {
            assert!(env::var_os("CI").is_none(), "redis-server is not installed");
            eprintln!("SKIPPED: redis-server is not installed");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let child = Command::new("/usr/bin/redis-server")
            .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"])
            .arg(folder.path().join("redis.sock"))
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("it starts");
        Some(Self { child, folder })
    }

    pub(crate) fn settings(&self) -> FleetSettings {
        let url = format!("unix://{}", self.folder.path().join("redis.sock").display());
        FleetSettings {
            address: url.parse().expect("an address"),
            username: None,
            password: None,
            ca: None,
            key: None,
            prefix: "test".to_owned(),
            // Longer than the default, because a test machine can be busy.
            call_timeout: Duration::from_secs(1),
        }
    }

    pub(crate) async fn gate(&self) -> Arc<Fleet> {
        self.gate_with(&self.settings(), |_| ()).await
    }

    pub(crate) async fn gate_with(
        &self,
        settings: &FleetSettings,
        on_notice: impl Fn(Notice) + Send + Sync + 'static,
    ) -> Arc<Fleet> {
        let fetched_as = FetchedAs {
            profile: Profile::Google,
            user_agent: &HeaderValue::from_static("test"),
            timeout: Duration::from_secs(60),
        };
        let fleet = Fleet::join(settings, fetched_as, Arc::default(), on_notice).expect("it can be used");
        until(|| fleet.error().is_none()).await;
        Arc::new(fleet)
    }

    /// Suspends the server's process. It does not answer, but its connections stay open.
    pub(crate) fn stop(&self) {
        self.signal(Signal::STOP);
    }

    pub(crate) fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it is ours");
    }

    fn client(&self) -> redis::Client {
        redis::Client::open(self.settings().address.to_string()).expect("a URL")
    }

    async fn messages(&self, channel: &str) -> tokio::sync::mpsc::UnboundedReceiver<String> {
        let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
        let info = redis::IntoConnectionInfo::into_connection_info(self.settings().address.to_string()).expect("a URL");
        let login = info
            .redis_settings()
            .clone()
            .set_protocol(redis::ProtocolVersion::RESP3);
        let client = redis::Client::open(info.set_redis_settings(login)).expect("it can be used");
        let config = redis::AsyncConnectionConfig::new().set_push_sender(move |push| {
            let message = Msg::from_push_info(push).and_then(|message| message.get_payload().ok());
            message.map_or(Ok(()), |message| sender.send(message))
        });
        let connection = client.get_multiplexed_async_connection_with_config(&config).await;
        let mut connection = connection.expect("it answers");
        connection.subscribe(channel).await.expect("it may");
        // The connection is never dropped, so that it receives messages until the end of the test.
        std::mem::forget(connection);
        receiver
    }

    /// Sends a command to the fleet's server, not through a robotgate.
    pub(crate) async fn command(&self, words: &[&[u8]]) -> redis::Value {
        let mut connection = self
            .client()
            .get_multiplexed_async_connection()
            .await
            .expect("it answers");
        let mut command = redis::Cmd::new();
        for word in words {
            command.arg(word);
        }
        command.query_async(&mut connection).await.expect("it does so")
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

pub(crate) async fn until(mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(
            began.elapsed() < Duration::from_secs(120),
            "the condition never became true"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn get(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

fn site() -> Origin {
    "https://a.example".parse().expect("an origin")
}

fn fetched(body: &str, at: SystemTime) -> OriginState {
    let policy = Policy::default();
    let answer = Fetched::Response(OriginResponse::new(200, body));
    OriginState::unknown().after(answer.meaning(&policy, at), 200, Freshness::default(), at, 0.0, &policy)
}

async fn share(gate: &Fleet, lease: Lease, body: &str) {
    gate.end(lease, Some(Arc::new(fetched(body, SystemTime::now())))).await;
}

fn text(state: &OriginState) -> &[u8] {
    state.text().expect("it has a copy")
}

async fn ask(gate: &Fleet, known: &OriginState) -> CopyOrLease {
    gate.copy_or_lease(&SiteDocument::ROBOTS_TXT, &site(), known, &Policy::default())
        .await
}

async fn lease(gate: &Fleet) -> Lease {
    match ask(gate, &OriginState::unknown()).await {
        CopyOrLease::Fetch(task) => granted(task.lease),
        CopyOrLease::Copy(_) => panic!("there is a copy already"),
    }
}

/// Panics if the lease has no token, because the fleet's server then did not answer in time.
fn granted(lease: Option<Lease>) -> Lease {
    let lease = lease.filter(|lease| lease.token().is_some());
    lease.expect("the server answers")
}

async fn ask_in_vain(gate: &Fleet) -> Option<Lease> {
    match ask(gate, &OriginState::unknown()).await {
        CopyOrLease::Fetch(task) => {
            assert!(task.lease.as_ref().is_none_or(|lease| lease.token().is_none()));
            task.lease
        }
        CopyOrLease::Copy(_) => panic!("it answers"),
    }
}

async fn copy(gate: &Fleet) -> OriginState {
    match ask(gate, &OriginState::unknown()).await {
        CopyOrLease::Copy(state) => state,
        CopyOrLease::Fetch(task) => panic!("there is no copy: {task:?}"),
    }
}

fn ask_in_background(gate: &Arc<Fleet>) -> tokio::task::JoinHandle<CopyOrLease> {
    let gate = gate.clone();
    tokio::spawn(async move { ask(&gate, &OriginState::unknown()).await })
}
