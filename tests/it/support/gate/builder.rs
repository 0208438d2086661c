//! Starts robotgate for a test.

use std::{
    ffi::OsString,
    fs::{self, Permissions},
    net::TcpListener,
    os::{fd::OwnedFd, unix::fs::PermissionsExt as _},
    path::Path,
    process::{Child, Command, Stdio},
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tempfile::TempDir;

use super::{
    Gate,
    config::{CREDENTIALS, Config, FILE, ORIGIN_ROOTS},
    log::{Line, Log},
};
use crate::support::{dns::Dns, tls, wait};

/// Sets how robotgate is started. [`start`](Self::start) starts it.
#[derive(Default)]
pub struct Builder {
    overrides: String,
    without: Vec<String>,
    text: Option<String>,
    credentials: Option<String>,
    files: Vec<(String, Vec<u8>)>,
    env: Vec<(String, String)>,
    set: Vec<String>,
    socket: Option<TcpListener>,
    open_files: Option<usize>,
}

/// How robotgate ended if it did not start.
#[derive(Debug)]
pub struct Failure {
    pub code: Option<i32>,
    /// All output on standard error.
    pub errors: String,
}

impl Builder {
    /// Merges TOML into the default configuration of the tests.
    pub fn config(mut self, overrides: &str) -> Self {
        self.overrides = overrides.to_owned();
        self
    }

    /// Removes a key from the default configuration of the tests, such as `audit.path`.
    pub fn without(mut self, key: &str) -> Self {
        self.without.push(key.to_owned());
        self
    }

    /// Writes this text to the file `credentials` next to the configuration file. The test's configuration has to name
    /// it in `identity.credentials`.
    pub fn credentials(mut self, text: &str) -> Self {
        self.credentials = Some(text.to_owned());
        self
    }

    /// Sets the log filter (`ROBOTGATE_LOG`).
    pub fn log(self, filter: &str) -> Self {
        self.env("ROBOTGATE_LOG", filter)
    }

    /// Sets an environment variable of robotgate.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets a key of the configuration by `--set`.
    pub fn set(mut self, setting: &str) -> Self {
        self.set.push(setting.to_owned());
        self
    }

    /// Passes a listening socket to the gate, as systemd does.
    pub fn socket(mut self, socket: TcpListener) -> Self {
        self.socket = Some(socket);
        self
    }

    /// Limits how many files robotgate can have open (`ulimit -n`).
    pub fn open_files(mut self, count: usize) -> Self {
        self.open_files = Some(count);
        self
    }

    /// Uses exactly this text as the configuration file.
    pub fn file(mut self, text: &str) -> Self {
        self.text = Some(text.to_owned());
        self
    }

    /// Adds a file to robotgate's folder. Only robotgate's user can read it.
    pub fn put(mut self, name: &str, contents: impl Into<Vec<u8>>) -> Self {
        self.files.push((name.to_owned(), contents.into()));
        self
    }

    /// Starts robotgate and waits until it listens.
    ///
    /// # Panics
    /// If robotgate ends before it listens.
    pub async fn start(self) -> Gate {
        let (folder, config, dns, mut child) = self.launch().await;
        let log = Log::collect(child.stderr.take().expect("piped"));
        let output = Log::collect(child.stdout.take().expect("piped"));
        let mut gate = Gate {
            child,
            address: ([0, 0, 0, 0], 0).into(),
            config,
            log,
            output,
            dns,
            folder,
        };
        gate.listening().await;
        gate
    }

    /// Starts robotgate, which is expected to fail, and waits until it has ended.
    pub async fn fail(self) -> Failure {
        let (_folder, _config, _dns, mut child) = self.launch().await;
        let log = Log::collect(child.stderr.take().expect("piped"));
        let ended = wait::until("the gate to end", || {
            let listening = log.lines().iter().any(|line| line.message() == "listening");
            if listening {
                drop(child.kill());
            }
            assert!(!listening, "the gate listens");
            child.try_wait().expect("the child is ours")
        })
        .await;
        wait::until("the end of its errors", || log.is_complete().then_some(())).await;
        Failure {
            code: ended.code(),
            errors: log.tail(usize::MAX),
        }
    }

    async fn launch(self) -> (TempDir, Config, Dns, Child) {
        raise_file_limit();
        let folder = TempDir::new().expect("a folder");
        let dns = Dns::start().await;
        let config = Config::new(dns.address(), &self.without, &self.overrides);
        if let Some(text) = &self.credentials {
            write_credentials(folder.path(), text);
        }
        let text = self.text.unwrap_or_else(|| config.text(""));
        fs::write(folder.path().join(ORIGIN_ROOTS), tls::origin_root_pem()).expect("the folder is ours");
        for (name, contents) in self.files {
            let path = folder.path().join(name);
            fs::write(&path, contents).expect("the folder is ours");
            fs::set_permissions(path, Permissions::from_mode(0o600)).expect("the file is ours");
        }
        fs::write(folder.path().join(FILE), text).expect("the folder is ours");
        let child = spawn(folder.path(), self.env, &self.set, self.socket, self.open_files);
        (folder, config, dns, child)
    }
}

impl Gate {
    /// Starts robotgate again after it has ended, with the same folder, but without the environment variables, the
    /// `--set`, the socket and the limit of the [`Builder`].
    ///
    /// # Panics
    /// If robotgate ends immediately.
    pub async fn start_again(&mut self) {
        self.child = spawn(self.folder.path(), Vec::new(), &[], None, None);
        self.log = Log::collect(self.child.stderr.take().expect("piped"));
        self.output = Log::collect(self.child.stdout.take().expect("piped"));
        self.listening().await;
    }

    async fn listening(&mut self) {
        let listening = wait::until("the gate to listen", || {
            assert!(self.runs(), "the gate ended at once");
            let is_for_bots = |line: &Line| line.message() == "listening" && line.field("speaks") != Some("admin");
            self.log().into_iter().find(is_for_bots)
        })
        .await;
        let address = listening.field("address").expect("the address is told");
        self.address = address.parse().expect("an address and a port");
    }
}

/// Writes a new file and renames it over the old one, as `robotgate credential` does.
pub(super) fn write_credentials(folder: &Path, text: &str) {
    let fresh = folder.join(".fresh-credentials");
    fs::write(&fresh, text).expect("the folder is ours");
    fs::set_permissions(&fresh, fs::Permissions::from_mode(0o640)).expect("the file is ours");
    fs::rename(fresh, folder.join(CREDENTIALS)).expect("the folder is ours");
}

fn spawn(
    folder: &Path,
    env: Vec<(String, String)>,
    set: &[String],
    socket: Option<TcpListener>,
    open_files: Option<usize>,
) -> Child {
    let mut command = command();
    if let Some(count) = open_files {
        let gate = std::mem::replace(&mut command, without_surroundings(Command::new("sh")));
        command
            .args(["-c", "ulimit -n \"$0\" && exec \"$@\"", &count.to_string()])
            .arg(gate.get_program());
    }
    let stdin = match socket {
        // The passed socket must have the file descriptor 3. Rust could do that only with unsafe code, so a shell does
        // it.
        Some(socket) => {
            let gate = std::mem::replace(&mut command, without_surroundings(Command::new("sh")));
            command
                .args(["-c", "exec 3<&0 </dev/null; LISTEN_FDS=1 exec \"$0\" \"$@\""])
                .arg(gate.get_program());
            OwnedFd::from(socket).into()
        }
        None => Stdio::null(),
    };
    command
        .envs(env)
        .args(["run", "--config"])
        .arg(folder.join(FILE))
        .args(set.iter().flat_map(|setting| ["--set", setting]))
        .current_dir(Path::new("/"))
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary is there")
}

fn command() -> Command {
    let built = || OsString::from(env!("CARGO_BIN_EXE_robotgate"));
    without_surroundings(Command::new(std::env::var_os("ROBOTGATE_BIN").unwrap_or_else(built)))
}

/// Removes environment variables of the test that would affect robotgate.
fn without_surroundings(mut command: Command) -> Command {
    for name in [
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "http_proxy",
        "https_proxy",
        "RUST_LOG",
        "NOTIFY_SOCKET",
        "WATCHDOG_USEC",
        "LISTEN_FDS",
    ] {
        command.env_remove(name);
    }
    command
}

fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    setrlimit(Resource::Nofile, raised).expect("up to the maximum is always granted");
}
