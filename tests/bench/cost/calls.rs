//! Runs the real program under strace, which counts its system calls.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use super::peers::{self, Client};

/// The number of calls of each system call.
pub struct Calls(BTreeMap<String, u64>);

/// Counts the system calls of a gate, from its start to its end. The gate serves `requests` requests on each of
/// [`CONNECTIONS`] connections.
///
/// # Panics
/// If strace is not installed, or may not trace.
pub fn count(requests: u64) -> Calls {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("log")).unwrap();
    let counts = folder.path().join("counts");
    peers::on_one_thread(async {
        let origin = peers::origin().await;
        let dns = peers::name_server().await;
        let config = peers::config(dns, "path = \"robots.redb\"");
        fs::write(folder.path().join("robotgate.toml"), config).unwrap();
        // The shell prints its process id and then becomes the gate. SIGTERM is sent to the gate itself, because strace
        // ignores it.
        let mut strace = Command::new("strace")
            .args(["-f", "-c", "-o"])
            .arg(&counts)
            .args(["sh", "-c", "echo $$ >&2; exec \"$0\" \"$@\""])
            .args([env!("CARGO_BIN_EXE_robotgate"), "run", "--config"])
            .arg(folder.path().join("robotgate.toml"))
            .env_remove("NOTIFY_SOCKET")
            .env_remove("LISTEN_FDS")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("strace counts system calls: install it");
        let (process, gate) = started(&mut strace);
        let mut clients = Vec::new();
        for _ in 0..CONNECTIONS {
            clients.push(Client::connect(gate, origin, true).await);
        }
        // This fetches the robots.txt and opens the first connections.
        clients[0].get().await;
        let clients = clients.into_iter().map(|mut client| {
            tokio::spawn(async move {
                for _ in 0..requests {
                    client.get().await;
                }
            })
        });
        for client in clients.collect::<Vec<_>>() {
            client.await.unwrap();
        }
        kill_process(process, Signal::TERM).unwrap();
        let ended = strace.wait().unwrap();
        assert!(ended.success(), "the gate under strace: {ended}");
    });
    Calls::read(&fs::read_to_string(counts).expect("strace writes what it counted"))
}

fn started(strace: &mut Child) -> (Pid, SocketAddr) {
    let mut lines = BufReader::new(strace.stderr.take().expect("piped")).lines();
    let mut all = String::new();
    let mut process = None;
    for line in lines.by_ref().map_while(Result::ok) {
        process = process.or_else(|| Pid::from_raw(line.trim().parse().ok()?));
        let json: Value = serde_json::from_str(&line).unwrap_or(Value::Null);
        if json["message"] == "listening" && json["speaks"] == "http" {
            let address = json["address"].as_str().and_then(|address| address.parse().ok());
            // Keep reading, so that further output does not block the gate.
            std::thread::spawn(move || lines.for_each(drop));
            return (process.expect("the shell tells it"), address.expect("the log tells it"));
        }
        all = all + &line + "\n";
    }
    let ended = strace.wait().unwrap();
    panic!("system calls cannot be counted, as the gate does not run under strace ({ended}):\n{all}");
}

// === impl Calls ===

impl Calls {
    /// Reads the table of `strace -c`: `% time, seconds, usecs/call, calls, [errors,] syscall`.
    fn read(table: &str) -> Self {
        let row = |line: &str| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let name = fields.last()?.to_string();
            Some((name, fields.get(3)?.parse().ok()?)).filter(|(name, _)| name != "total")
        };
        let calls: BTreeMap<String, u64> = table.lines().filter_map(row).collect();
        assert!(calls.contains_key("epoll_wait"), "strace counted nothing:\n{table}");
        Self(calls)
    }

    fn of(&self, names: &[&str]) -> u64 {
        names.iter().filter_map(|name| self.0.get(*name)).sum()
    }

    pub fn sends(&self) -> u64 {
        self.of(&["sendto", "sendmsg", "writev"])
    }

    pub fn receives(&self) -> u64 {
        self.of(&["recvfrom", "recvmsg", "readv"])
    }

    /// Returns the number of all calls except the sleeps of pingora's clock, which happen every 10 ms and do not depend
    /// on requests.
    pub fn all(&self) -> u64 {
        self.0.values().sum::<u64>() - self.of(&["clock_nanosleep"])
    }

    /// Lists, for each system call, how many more were made than in `before`, divided by the number of requests.
    pub fn table(&self, before: &Self, requests: u64) -> String {
        let each = |(name, count): (&String, &u64)| {
            let more = count.saturating_sub(before.of(&[name])) as f64 / requests as f64;
            (more >= 0.01).then(|| format!("{name} {more:.2}"))
        };
        let calls: Vec<String> = self.0.iter().filter_map(each).collect();
        format!("system calls of an exchange: {}", calls.join(", "))
    }
}

/// Number of connections from clients to the gate.
pub const CONNECTIONS: u64 = 32;
