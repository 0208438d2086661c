//! The gate under systemd: its notifications, and the sockets that it inherits.

use std::{
    net::TcpListener,
    os::unix::net::UnixDatagram,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use crate::support::{Ask, Connection, Gate, Origin, allowed, wait};

struct Systemd {
    socket: UnixDatagram,
    folder: TempDir,
}

// === impl Systemd ===

impl Systemd {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let socket = UnixDatagram::bind(folder.path().join("notify")).expect("the folder is ours");
        socket.set_nonblocking(true).expect("a socket");
        Self { socket, folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("notify")
    }

    /// Waits for a message that contains `text`, and drops those before it.
    async fn wait_for(&self, text: &str) -> String {
        wait::until(&format!("{text:?} to be told"), || {
            self.next().filter(|message| message.contains(text))
        })
        .await
    }

    fn next(&self) -> Option<String> {
        let mut bytes = [0; 4096];
        let length = self.socket.recv(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes[..length]).into_owned())
    }
}

fn path_text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[tokio::test]
async fn systemd_is_notified_of_start_reload_and_stop() {
    let systemd = Systemd::new();
    let socket = systemd.path();
    let mut gate = Gate::builder().env("NOTIFY_SOCKET", path_text(&socket)).start().await;
    let kept = gate.address().to_string().replace(':', "_");
    systemd.wait_for(&format!("FDSTORE=1\nFDNAME={kept}\n")).await;
    systemd.wait_for("STATUS=configuration 1, 0 connections\n").await;
    systemd.wait_for("READY=1\n").await;

    gate.rewrite_config("[proxy]\nlisten = 5\n");
    let reloading = systemd.wait_for("RELOADING=1\n").await;
    assert!(reloading.contains("MONOTONIC_USEC="), "{reloading}");
    let rejected = systemd.wait_for("STATUS=").await;
    assert!(
        rejected.starts_with("STATUS=configuration 1, 0 connections; the file was rejected at "),
        "{rejected}"
    );
    assert!(rejected.contains("listen"), "{rejected}");
    systemd.wait_for("READY=1\n").await;

    gate.reconfigure("");
    systemd.wait_for("RELOADING=1\n").await;
    systemd.wait_for("STATUS=configuration 2, 0 connections\n").await;
    systemd.wait_for("READY=1\n").await;

    gate.stop().await;
    systemd.wait_for("STOPPING=1\n").await;
    systemd.wait_for("STATUS=stopping: waiting for 0 connections, ").await;
}

#[tokio::test]
async fn systemd_is_notified_why_the_start_failed() {
    let systemd = Systemd::new();
    let socket = systemd.path();
    let builder = Gate::builder().env("NOTIFY_SOCKET", path_text(&socket));
    builder.file("[proxy]\nlisten = 5\n").fail().await;
    let message = systemd.wait_for("STATUS=failed: ").await;
    assert!(message.contains("listen"), "{message}");
}

#[tokio::test]
async fn systemd_gets_watchdog_notifications() {
    let systemd = Systemd::new();
    let socket = systemd.path();
    let _gate = Gate::builder()
        .env("NOTIFY_SOCKET", path_text(&socket))
        .env("WATCHDOG_USEC", "100000")
        .start()
        .await;
    for _ in 0..3 {
        systemd.wait_for("WATCHDOG=1\n").await;
    }
}

#[tokio::test]
async fn clients_that_connect_before_the_gate_starts_are_served() {
    let origin = Origin::start().anything("page").spawn().await;
    let socket = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = socket.local_addr().expect("a socket");
    let early = tokio::net::TcpStream::connect(address).await.expect("it is open");

    let gate = Gate::builder()
        .config(&format!("[proxy]\nlisten = \"{address}\"\n"))
        .socket(socket)
        .start()
        .await;

    let url = origin.url("/x");
    let host = url.split('/').nth(2).expect("a host");
    let request = format!("GET {url} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: TestBot/1.0\r\nConnection: close\r\n\r\n");
    early.writable().await.expect("it is open");
    early.try_write(request.as_bytes()).expect("there is room");
    early.readable().await.expect("it is answered");
    let mut answer = [0; 12];
    early.try_read(&mut answer).expect("it is answered");
    assert_eq!(&answer, b"HTTP/1.1 200");
    allowed(&gate.get(&url).await, "no-robots");
}

#[tokio::test]
async fn a_socket_for_a_widened_address_loses_no_client() {
    let origin = Origin::start().anything("page").spawn().await;
    let socket = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = socket.local_addr().expect("a socket");
    let early = tokio::net::TcpStream::connect(address).await.expect("it is open");
    let gate = Gate::builder()
        .config(&format!("[proxy]\nlisten = \"0.0.0.0:{}\"\n", address.port()))
        .socket(socket)
        .start()
        .await;
    let mut early = Connection::over_io(early);
    allowed(
        &early.get(&origin.url("/x")).send().await.expect("an answer"),
        "no-robots",
    );
    let other = std::net::SocketAddr::from(([127, 0, 0, 2], address.port()));
    allowed(&Ask::fresh(other, "GET", &origin.url("/x")).await, "no-robots");
    assert!(!gate.log().iter().any(|line| line.says("does not name")));
}

#[tokio::test]
async fn an_unconfigured_socket_is_closed_and_logged() {
    let socket = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = socket.local_addr().expect("a socket");
    let gate = Gate::builder().socket(socket).start().await;
    let line = gate.wait_for_log("the socket", |line| line.says("does not name")).await;
    assert_eq!(line.field("address"), Some(address.to_string().as_str()));
    let refused = std::net::TcpStream::connect(address).expect_err("nobody holds it");
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
}
