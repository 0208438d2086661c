//! A real Redis server, which several robotgates share.

use std::{
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use redis::Value;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::{Certificate, wait};

/// A Redis server. It listens on a socket in a folder of its own, and ends with the test.
pub struct Redis {
    child: Child,
    folder: TempDir,
    arguments: Vec<String>,
    _files: Option<TempDir>,
}

// === impl Redis ===

impl Redis {
    pub async fn start() -> Self {
        Self::with(Vec::new(), None).await
    }

    /// Starts a server that also listens with TLS on a port, and requires a password. Returns the server and its URL
    /// for TLS.
    pub async fn with_tls(password: &str) -> (Self, String) {
        let files = tempfile::tempdir().expect("a folder");
        let (certificate, key) = Certificate::of(&["localhost"]).to_pem();
        let write = |name: &str, text: &str| {
            std::fs::write(files.path().join(name), text).expect("a file");
            files.path().join(name).display().to_string()
        };
        let (certificate, key) = (write("server.pem", &certificate), write("server-key.pem", &key));
        // Redis cannot choose a free port itself, so the test finds one.
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = port.expect("a free port").port().to_string();
        let arguments = [
            ["--tls-port", &port],
            ["--tls-cert-file", &certificate],
            ["--tls-key-file", &key],
            ["--tls-ca-cert-file", &certificate],
            ["--tls-auth-clients", "no"],
            ["--requirepass", password],
        ];
        let arguments = arguments.iter().flatten().map(|word| (*word).to_owned());
        let server = Self::with(arguments.collect(), Some(files)).await;
        (server, format!("rediss://localhost:{port}"))
    }

    async fn with(arguments: Vec<String>, files: Option<TempDir>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let child = launch(&folder, &arguments);
        let server = Self {
            child,
            folder,
            arguments,
            _files: files,
        };
        server.listening().await;
        server
    }

    async fn listening(&self) {
        wait::until("the server to listen", || {
            std::os::unix::net::UnixStream::connect(self.socket()).ok()
        })
        .await;
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("redis.sock")
    }

    /// Returns the URL at which a robotgate reaches the server.
    pub fn url(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// Sends a command to the server, as an operator would. The server must not require a password.
    pub async fn ask(&self, words: &[&str]) -> Value {
        let client = redis::Client::open(self.url()).expect("a URL");
        let mut connection = client.get_multiplexed_async_connection().await.expect("it answers");
        let mut command = redis::Cmd::new();
        for word in words {
            command.arg(word);
        }
        command.query_async(&mut connection).await.expect("it does so")
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it is ours");
    }

    /// Kills the server like `kill -9`.
    pub fn kill(&mut self) {
        self.child.kill().expect("it is ours");
        self.child.wait().expect("it is ours");
    }

    pub async fn start_again(&mut self) {
        self.child = launch(&self.folder, &self.arguments);
        self.listening().await;
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn launch(folder: &TempDir, arguments: &[String]) -> Child {
    let fixed = [
        "--port",
        "0",
        "--save",
        "",
        "--appendonly",
        "no",
        "--unixsocket",
        "redis.sock",
    ];
    Command::new("/usr/bin/redis-server")
        .args(fixed)
        .args(arguments)
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .spawn()
        .expect("it is installed")
}
