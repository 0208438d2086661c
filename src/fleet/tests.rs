//! Tests fleets with a real server.

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
    copy::{Fetched, Freshness, OriginState, Policy, Received, SiteDocument},
    origin::Origin,
};

/// A Redis server on a socket in a folder of its own. It stops when the test ends.
pub(crate) struct Server {
    child: Child,
    folder: tempfile::TempDir,
}

impl Server {
    /// Starts a server. Returns `None` if redis-server is not installed; fails in that case if `CI` is set.
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

    pub(crate) fn settings(&self) -> Settings {
        let url = format!("unix://{}", self.folder.path().join("redis.sock").display());
        Settings {
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

    /// Joins the fleet as a robotgate, and waits until it is connected.
    pub(crate) async fn gate(&self) -> Arc<Fleet> {
        self.gate_with(&self.settings(), |_| ()).await
    }

    pub(crate) async fn gate_with(
        &self,
        settings: &Settings,
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

    /// Suspends the fleet server's process, so that it does not answer but its connections stay open.
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

    /// Returns a receiver for the messages on a channel.
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

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Waits until the condition is true. Fails the test if that takes too long.
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

/// Returns what a robotgate knows of an origin after it fetched the robots.txt `body` at the time `at`.
fn fetched(body: &str, at: SystemTime) -> OriginState {
    let policy = Policy::default();
    let answer = Fetched::Received(Received::new(200, body));
    OriginState::unknown().after(answer.meaning(&policy, at), 200, Freshness::default(), at, 0.0, &policy)
}

/// Ends a lease with the robots.txt `body`, as if it had just been fetched.
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

/// Returns the lease, and checks that the fleet's server has answered that it granted it.
fn granted(lease: Option<Lease>) -> Lease {
    let lease = lease.filter(|lease| lease.token().is_some());
    lease.expect("the server answers")
}

/// Asks for a robots.txt copy or a lease while the fleet's server does not answer.
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

#[tokio::test]
async fn one_gate_fetches_and_the_others_wait_for_what_it_writes() {
    let Some(server) = Server::start() else { return };
    let (first, second) = (server.gate().await, server.gate().await);
    let held = lease(&first).await;
    let waiting = ask_in_background(&second);
    until(|| get(&second.counts.calls) > 0).await;
    share(&first, held, "# a").await;
    match waiting.await.expect("no panic") {
        CopyOrLease::Copy(state) => assert_eq!(text(&state), b"# a"),
        CopyOrLease::Fetch(task) => panic!("it fetches too: {task:?}"),
    }
    assert_eq!(get(&second.counts.copies_used), 1);
}

#[tokio::test]
async fn a_fetch_that_gives_nothing_leaves_the_turn_to_the_next() {
    let Some(server) = Server::start() else { return };
    let (first, second) = (server.gate().await, server.gate().await);
    let held = lease(&first).await;
    let waiting = ask_in_background(&second);
    first.end(held, None).await;
    assert!(matches!(waiting.await.expect("no panic"), CopyOrLease::Fetch(task) if task.lease.is_some()));
}

#[tokio::test]
async fn a_holder_that_dies_is_followed_and_changes_nothing_when_it_comes_late() {
    let Some(server) = Server::start() else { return };
    let (first, second) = (server.gate().await, server.gate().await);
    let stale = lease(&first).await;
    // Nobody renews the first lease, so this call waits until that lease has expired.
    let held = lease(&second).await;
    assert!(held.token() > stale.token());
    share(&first, stale, "# late").await;
    share(&second, held, "# new").await;
    let third = server.gate().await;
    assert_eq!(text(&copy(&third).await), b"# new");
}

#[tokio::test]
async fn a_late_result_does_not_replace_a_newer_one() {
    let Some(server) = Server::start() else { return };
    let (first, second) = (server.gate().await, server.gate().await);
    let stale = lease(&first).await;
    let held = lease(&second).await;
    share(&second, held, "# new").await;
    share(&first, stale, "# late").await;
    assert_eq!(text(&copy(&first).await), b"# new");
}

#[tokio::test]
async fn a_stale_token_stays_stale_when_the_server_loses_its_memory() {
    let Some(server) = Server::start() else { return };
    let (first, second) = (server.gate().await, server.gate().await);
    let stale = lease(&first).await;
    server.command(&[b"FLUSHALL"]).await;
    let held = lease(&second).await;
    assert!(held.token() > stale.token());
    share(&first, stale, "# late").await;
    share(&second, held, "# new").await;
    assert_eq!(text(&copy(&first).await), b"# new");
}

#[tokio::test]
async fn tokens_grow_whatever_the_server_has_kept() {
    let Some(server) = Server::start() else { return };
    let gate = server.gate().await;
    let key = gate.keys(&SiteDocument::ROBOTS_TXT, &site()).token;
    let mut last = lease(&gate).await.token();
    for garbage in ["-1", "9007199254740993", "1e300", "inf", "nan", "token", ""] {
        server.command(&[b"SET", key.as_bytes(), garbage.as_bytes()]).await;
        let token = lease(&gate).await.token();
        assert!(token > last, "{garbage:?}: {token:?} after {last:?}");
        last = token;
    }
    // Acts as if the fleet server's clock had been set back by an hour: the last token is an hour in the future.
    let ahead = last.expect("it is granted") + 3_600_000_000;
    server
        .command(&[b"SET", key.as_bytes(), ahead.to_string().as_bytes()])
        .await;
    assert_eq!(lease(&gate).await.token(), Some(ahead + 1));
}

#[tokio::test]
async fn a_lease_whose_answer_was_lost_ends_with_the_fetch() {
    let Some(server) = Server::start() else { return };
    let mut settings = server.settings();
    settings.call_timeout = Duration::from_millis(100);
    let (first, second) = (server.gate_with(&settings, |_| ()).await, server.gate().await);
    // This call makes the fleet's server load the script.
    second.end(lease(&second).await, None).await;
    for is_granted in [true, false] {
        server.command(&[b"FLUSHALL"]).await;
        let other = match is_granted {
            true => None,
            false => Some(lease(&second).await),
        };
        server.command(&[b"CLIENT", b"PAUSE", b"1000000", b"WRITE"]).await;
        let held = ask_in_vain(&first).await.expect("it may be granted");
        server.command(&[b"CLIENT", b"UNPAUSE"]).await;
        share(&first, held, "# first").await;
        let expected: &[u8] = match other {
            None => b"# first",
            Some(other) => {
                share(&second, other, "# second").await;
                b"# second"
            }
        };
        assert_eq!(text(&copy(&second).await), expected);
        let lease = second.keys(&SiteDocument::ROBOTS_TXT, &site()).lease;
        let left = server.command(&[b"EXISTS", lease.as_bytes()]).await;
        assert_eq!(left, redis::Value::Int(0), "no gate has to wait for it");
    }
}

#[tokio::test]
async fn a_lease_that_no_gate_wrote_keeps_no_gate_waiting() {
    let Some(server) = Server::start() else { return };
    let gate = server.gate().await;
    let key = gate.keys(&SiteDocument::ROBOTS_TXT, &site()).lease;
    for forged in [
        &[&b"SET"[..], key.as_bytes(), b"forged"][..],
        &[b"SET", key.as_bytes(), b"forged", b"PX", b"60000"],
        &[b"RPUSH", key.as_bytes(), b"forged"],
    ] {
        server.command(&[b"DEL", key.as_bytes()]).await;
        server.command(forged).await;
        let lease = lease(&gate).await;
        assert!(lease.token().is_some(), "{forged:?}");
        gate.end(lease, None).await;
    }
}

#[tokio::test]
async fn a_lease_lasts_as_long_as_its_work() {
    let Some(server) = Server::start() else { return };
    let (first, second) = (server.gate().await, server.gate().await);
    let held = lease(&first).await;
    let waiting = ask_in_background(&second);
    // The waiting robotgate asks again and again. 20 calls take longer than a lease lasts if it is not renewed.
    let work = until(|| get(&second.counts.calls) > 20);
    first.while_leased(&held, work).await;
    assert!(!waiting.is_finished());
    share(&first, held, "# a").await;
    assert!(matches!(waiting.await.expect("no panic"), CopyOrLease::Copy(_)));
}

#[tokio::test]
async fn an_older_fetch_than_the_gates_own_tells_it_nothing() {
    let Some(server) = Server::start() else { return };
    let (first, second) = (server.gate().await, server.gate().await);
    let now = SystemTime::now();
    let old = fetched("User-agent: *\nAllow: /", now - Duration::from_secs(60));
    first.end(lease(&first).await, Some(Arc::new(old))).await;
    match ask(&second, &fetched("User-agent: *\nDisallow: /", now)).await {
        CopyOrLease::Fetch(task) => assert!(task.earlier.is_none() && task.lease.is_some()),
        CopyOrLease::Copy(_) => panic!("it takes the older one"),
    }
}

#[tokio::test]
async fn a_copy_past_its_time_goes_along_with_the_lease() {
    let Some(server) = Server::start() else { return };
    let (first, second) = (server.gate().await, server.gate().await);
    let old = fetched("# old", SystemTime::now() - Duration::from_secs(2 * 24 * 60 * 60));
    first.end(lease(&first).await, Some(Arc::new(old))).await;
    match ask(&second, &OriginState::unknown()).await {
        CopyOrLease::Fetch(task) => {
            assert_eq!(text(&task.earlier.expect("it is newer than nothing")), b"# old");
            assert!(task.lease.is_some());
        }
        CopyOrLease::Copy(_) => panic!("it is past its time"),
    }
}

#[tokio::test]
async fn what_does_not_fit_is_counted_and_fetched_anew() {
    let Some(server) = Server::start() else { return };
    let writer = server.gate().await;
    share(&writer, lease(&writer).await, "# a").await;
    let key = writer.keys(&SiteDocument::ROBOTS_TXT, &site()).copy;
    let redis::Value::BulkString(value) = server.command(&[b"GET", key.as_bytes()]).await else {
        panic!("a copy is there");
    };
    let other: Origin = "https://b.example".parse().expect("an origin");
    let reader = server.gate().await;
    for (wrong, rejection) in [
        (b"\x01garbage".to_vec(), Some(Rejection::Corrupt)),
        ([&b"\x02"[..], &value[1..]].concat(), Some(Rejection::Later)),
        (Vec::new(), None),
    ] {
        server.command(&[b"SET", key.as_bytes(), &wrong]).await;
        let held = lease(&reader).await;
        reader.end(held, None).await;
        if let Some(rejection) = rejection {
            assert_eq!(get(&reader.counts.rejected[rejection as usize]), 1, "{rejection}");
        }
    }
    server.command(&[b"DEL", key.as_bytes()]).await;
    server.command(&[b"RPUSH", key.as_bytes(), b"another type"]).await;
    let held = lease(&reader).await;
    share(&reader, held, "# b").await;
    assert_eq!(text(&copy(&reader).await), b"# b");

    server
        .command(&[
            b"SET",
            reader.keys(&SiteDocument::ROBOTS_TXT, &other).copy.as_bytes(),
            &value,
        ])
        .await;
    let asked = reader
        .copy_or_lease(
            &SiteDocument::ROBOTS_TXT,
            &other,
            &OriginState::unknown(),
            &Policy::default(),
        )
        .await;
    assert!(matches!(asked, CopyOrLease::Fetch(_)));
    assert_eq!(get(&reader.counts.rejected[Rejection::Misplaced as usize]), 1);
    assert_eq!(get(&reader.counts.errors), 0);
}

#[tokio::test]
async fn gates_with_a_key_take_nothing_from_those_without() {
    let Some(server) = Server::start() else { return };
    let open = server.gate().await;
    let mut settings = server.settings();
    settings.key = Some(Secret::new(b"a key that the gates share"));
    let closed = server.gate_with(&settings, |_| ()).await;
    open.end(
        lease(&open).await,
        Some(Arc::new(fetched("# forged", SystemTime::now()))),
    )
    .await;
    let held = lease(&closed).await;
    assert_eq!(get(&closed.counts.rejected[Rejection::Forged as usize]), 1);
    share(&closed, held, "# a").await;
    assert_eq!(text(&copy(&closed).await), b"# a");
}

#[tokio::test]
async fn what_one_gate_forgets_the_others_forget_too() {
    let Some(server) = Server::start() else { return };
    let first = server.gate().await;
    let (forget, forgotten) = mpsc::channel();
    let second = server
        .gate_with(&server.settings(), move |notice| drop(forget.send(notice)))
        .await;
    share(&first, lease(&first).await, "# a").await;
    let running = match ask(&second, &fetched("# newer", SystemTime::now())).await {
        CopyOrLease::Fetch(task) => granted(task.lease),
        CopyOrLease::Copy(_) => panic!("it is older"),
    };
    assert!(first.forget(&site()).await);
    until(|| forgotten.try_recv() == Ok(Notice::Forgotten(site()))).await;
    share(&second, running, "# of before").await;
    let held = lease(&first).await;
    first.end(held, None).await;
}

#[tokio::test]
async fn a_message_that_is_repeated_later_changes_nothing() {
    let Some(server) = Server::start() else { return };
    let mut settings = server.settings();
    settings.key = Some(Secret::new(b"a key that the gates share"));
    let first = server.gate_with(&settings, |_| ()).await;
    let (tell, told) = mpsc::channel();
    let second = server.gate_with(&settings, move |notice| drop(tell.send(notice))).await;
    let mut eavesdropper = server.messages("test:messages").await;
    assert!(first.forget(&site()).await);
    let message = eavesdropper.recv().await.expect("it is published");
    until(|| told.try_recv() == Ok(Notice::Forgotten(site()))).await;
    let (tell, told_later) = mpsc::channel();
    let _joins_later = server.gate_with(&settings, move |notice| drop(tell.send(notice))).await;
    // When the robotgate reacts to the next message, it has read the repeated one too.
    let calls = get(&second.counts.calls);
    server
        .command(&[b"PUBLISH", b"test:messages", message.as_bytes()])
        .await;
    until(|| get(&second.counts.calls) > calls).await;
    let other: Origin = "https://b.example".parse().expect("an origin");
    assert!(first.forget(&other).await);
    for told in [told, told_later] {
        let mut notice = None;
        until(|| {
            notice = told.try_recv().ok();
            notice.is_some()
        })
        .await;
        assert_eq!(notice, Some(Notice::Forgotten(other.clone())));
    }
}

#[tokio::test]
async fn a_failed_subscription_is_repeated_and_told() {
    let Some(server) = Server::start() else { return };
    let acl = |rule: &'static str| [&b"ACL"[..], b"SETUSER", b"default", rule.as_bytes()];
    let other = server.gate().await;
    server.command(&acl("-subscribe")).await;
    let (tell, told) = mpsc::channel();
    let gate = server
        .gate_with(&server.settings(), move |notice| drop(tell.send(notice)))
        .await;
    let error = gate.subscription_error().expect("it is told");
    assert!(error.contains("permission"), "{error}");
    server.command(&acl("+subscribe")).await;
    until(|| gate.subscription_error().is_none()).await;
    assert!(other.forget(&site()).await);
    until(|| told.try_recv() == Ok(Notice::Forgotten(site()))).await;
}

#[tokio::test]
async fn a_connection_that_ends_is_made_again_without_a_call() {
    let Some(server) = Server::start() else { return };
    let (tell, told) = mpsc::channel();
    let gate = server
        .gate_with(&server.settings(), move |notice| drop(tell.send(notice)))
        .await;
    server.command(&[b"CLIENT", b"KILL", b"TYPE", b"pubsub"]).await;
    until(|| gate.error().is_some()).await;
    until(|| gate.error().is_none()).await;
    assert_eq!(get(&gate.counts.calls), 0);
    let other = server.gate().await;
    assert!(other.forget(&site()).await);
    until(|| told.try_recv() == Ok(Notice::Forgotten(site()))).await;
}

#[tokio::test]
async fn no_request_waits_for_a_killed_server_and_it_is_used_again_when_it_is_back() {
    let Some(mut server) = Server::start() else { return };
    let gate = server.gate().await;
    server.kill();
    for _ in 0..3 {
        ask_in_vain(&gate).await;
    }
    until(|| gate.error().is_some()).await;
    let calls = get(&gate.counts.calls);
    assert!(ask_in_vain(&gate).await.is_none());
    assert_eq!(get(&gate.counts.calls), calls, "none is made");
    let again = Command::new("/usr/bin/redis-server")
        .args(["--port", "0", "--save", "", "--unixsocket"])
        .arg(server.folder.path().join("redis.sock"))
        .current_dir(server.folder.path())
        .stdout(Stdio::null())
        .spawn();
    server.child = again.expect("it starts");
    until(|| gate.error().is_none()).await;
    let held = lease(&gate).await;
    gate.end(held, None).await;
}
