//! Runs the real program on a free port, in a folder of its own, and reads its log and audit records. Tests call it the
//! gate.

mod audit;
mod builder;
mod config;
mod log;

use std::{
    net::SocketAddr,
    path::PathBuf,
    process::{Child, ExitStatus},
};

use rustix::process::{Pid, kill_process};
use tempfile::TempDir;

pub use self::{audit::Record, builder::Builder};
use self::{
    config::Config,
    log::{Line, Log},
};
use super::{
    client::{Ask, Connected, Connection, connect},
    dns::Dns,
    wait,
};

pub use rustix::process::Signal;

pub struct Gate {
    child: Child,
    address: SocketAddr,
    config: Config,
    log: Log,
    output: Log,
    dns: Dns,
    folder: TempDir,
}

pub struct Connect {
    proxy: SocketAddr,
    ask: Ask<'static>,
    ca: PathBuf,
}

impl Gate {
    /// Starts robotgate with the default configuration of the tests.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// Starts robotgate with this TOML merged into the default configuration of the tests.
    pub async fn with(overrides: &str) -> Self {
        Self::builder().config(overrides).start().await
    }

    pub fn builder() -> Builder {
        Builder::default()
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until robotgate listens with TLS, and returns the address of this listener.
    pub async fn tls_address(&self) -> SocketAddr {
        let listening = wait::until("the TLS listener", || {
            let is_tls = |line: &Line| line.message() == "listening" && line.json["tls"] == true;
            self.log().into_iter().rev().find(is_tls)
        })
        .await;
        let address = listening.field("address").expect("the address is told");
        address.parse().expect("an address and a port")
    }

    /// Returns the address of the admin listener.
    ///
    /// # Panics
    /// If robotgate has no admin listener.
    pub fn admin_address(&self) -> SocketAddr {
        let lines = self.log();
        let mut listening = lines.iter().rev().filter(|line| line.message() == "listening");
        let line = listening.find(|line| line.field("speaks") == Some("admin"));
        let address = line.and_then(|line| line.field("address"));
        address
            .expect("it listens for operators")
            .parse()
            .expect("an address and a port")
    }

    /// Returns the name server that robotgate uses.
    pub fn dns(&self) -> &Dns {
        &self.dns
    }

    /// Returns the path of a file in robotgate's folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Creates a GET of a URL in absolute form, on a new connection.
    pub fn get(&self, url: &str) -> Ask<'static> {
        self.ask("GET", url)
    }

    /// Creates a request for a URL in absolute form, on a new connection.
    pub fn ask(&self, method: &str, url: &str) -> Ask<'static> {
        Ask::fresh(self.address, method, url)
    }

    /// Creates a GET to the admin listener.
    pub fn admin(&self, path: &str) -> Ask<'static> {
        self.ask_admin("GET", path)
    }

    /// Creates a request to the admin listener, on a new connection.
    pub fn ask_admin(&self, method: &str, path: &str) -> Ask<'static> {
        let address = self.admin_address();
        Ask::fresh(address, method, path).set("Host", &address.to_string())
    }

    /// Creates a CONNECT without a User-Agent, as most clients send it.
    pub fn connect(&self, authority: &str) -> Connect {
        let ask = Ask::fresh(self.address, "CONNECT", authority).without("User-Agent");
        Connect {
            proxy: self.address,
            ask,
            ca: self.file(config::CA_CERTIFICATE),
        }
    }

    /// Opens a connection to the proxy.
    pub async fn dial(&self) -> Connection {
        Connection::to(self.address).await.expect("the gate listens")
    }

    /// Sends bytes and returns everything that robotgate sends until it closes the connection.
    pub async fn raw(&self, bytes: impl AsRef<[u8]>) -> Vec<u8> {
        let mut connection = self.dial().await;
        connection.send(bytes).await;
        connection.read_to_end().await
    }

    /// Returns all lines of the operational log so far.
    pub fn log(&self) -> Vec<Line> {
        self.log.lines()
    }

    /// Waits for a line of the log for which `wanted` returns true, and returns the first one.
    pub async fn wait_for_log(&self, what: &str, wanted: impl Fn(&Line) -> bool) -> Line {
        wait::until(&format!("a log line: {what}"), || {
            self.log.lines().into_iter().find(&wanted)
        })
        .await
    }

    /// Returns all lines on standard output so far.
    pub fn output(&self) -> Vec<Line> {
        self.output.lines()
    }

    /// Returns the most memory that robotgate has used so far, in bytes. Linux counts it only approximately, so a later
    /// value can be smaller.
    pub fn peak_memory(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("the gate runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<usize>().ok());
        kib.expect("Linux tells it") * 1024
    }

    /// Returns the names of robotgate's threads.
    pub fn threads(&self) -> Vec<String> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("the gate runs");
        let name =
            |task: std::io::Result<std::fs::DirEntry>| std::fs::read_to_string(task.ok()?.path().join("comm")).ok();
        tasks.filter_map(name).map(|name| name.trim().to_owned()).collect()
    }

    /// Returns how many lines of the operational log have this message.
    pub fn logged(&self, message: &str) -> usize {
        self.log.lines().iter().filter(|line| line.message() == message).count()
    }

    /// Returns how many lines of the operational log are about the limit with this configuration key.
    pub fn logged_limit(&self, key: &str) -> usize {
        self.log
            .lines()
            .iter()
            .filter(|line| line.field("limit") == Some(key))
            .count()
    }

    /// Merges this TOML into the configuration with which the gate was built, and overwrites the file in place.
    pub fn reconfigure(&self, overrides: &str) {
        self.rewrite_config(&self.config.text(overrides));
    }

    /// Overwrites the configuration file in place with any text.
    pub fn rewrite_config(&self, text: &str) {
        std::fs::write(self.file(config::FILE), text).expect("the folder is ours");
    }

    /// Does the same as [`reconfigure`](Self::reconfigure), but writes a new file and renames it over the old one, as
    /// editors do.
    pub fn replace_config(&self, overrides: &str) {
        let fresh = self.file("fresh.toml");
        std::fs::write(&fresh, self.config.text(overrides)).expect("the folder is ours");
        std::fs::rename(fresh, self.file(config::FILE)).expect("the folder is ours");
    }

    /// Replaces the credentials file.
    pub fn replace_credentials(&self, text: &str) {
        builder::write_credentials(self.folder.path(), text);
    }

    /// Waits until robotgate has reloaded its configuration `count` times since the start.
    pub async fn reloaded(&self, count: usize) {
        wait::until("a reload", || {
            (self.logged("configuration reloaded") >= count).then_some(())
        })
        .await;
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("the gate runs");
    }

    /// Sends SIGTERM and waits for robotgate to end.
    pub async fn stop(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.ended().await
    }

    pub async fn ended(&mut self) -> ExitStatus {
        wait::until("the gate to end", || self.child.try_wait().expect("the child is ours")).await
    }

    /// Kills robotgate (`kill -9`).
    pub async fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.ended().await;
    }

    pub fn runs(&mut self) -> bool {
        self.child.try_wait().expect("the child is ours").is_none()
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        // These calls do nothing if robotgate has already ended.
        drop(self.child.kill());
        drop(self.child.wait());
        if std::thread::panicking() {
            eprintln!("--- the gate's configuration\n{}", self.config.text(""));
            eprintln!("--- the end of the gate's log\n{}", self.log.tail(40));
        }
    }
}

// === impl Connect ===

impl Connect {
    /// Changes the CONNECT before it is sent.
    pub fn with_ask(self, change: impl FnOnce(Ask<'static>) -> Ask<'static>) -> Self {
        Self {
            ask: change(self.ask),
            ..self
        }
    }

    pub fn user_agent(self, value: &str) -> Self {
        self.with_ask(|ask| ask.user_agent(value))
    }
}

impl IntoFuture for Connect {
    type Output = Connected;
    type IntoFuture = std::pin::Pin<Box<dyn Future<Output = Connected> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { connect(self.proxy, self.ask, &self.ca).await })
    }
}
