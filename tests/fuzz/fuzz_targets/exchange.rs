//! Plays exchanges in which client and origin can do anything, through a whole proxy in this process. What each side
//! received and what the audit log has is checked against the plain model of the integration tests
//! (`tests/it/exchanges/model.rs`).
//!
//! An input is the bytes from which `tests/it/exchanges/scenario.rs` derives what both sides do; each byte is one
//! choice. The proxy and the origin communicate over 127.0.0.1, and the proxy keeps connections between inputs. So a
//! result can depend on earlier inputs, and `-runs=1` with only the crashing input may not reproduce it.

#![no_main]

use std::{
    fs,
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process,
    sync::LazyLock,
    thread,
    time::Duration,
};

use libfuzzer_sys::fuzz_target;
use robotgate::{audit::LogFormat, config::Sources, service::Service};
use tokio::runtime::Runtime;

use play::Bench;

#[path = "../../it/exchanges/ledger.rs"]
mod ledger;
#[path = "../../it/exchanges/model.rs"]
mod model;
#[path = "../../it/exchanges/play.rs"]
mod play;
#[path = "../../it/exchanges/scenario.rs"]
mod scenario;
#[path = "../seeds.rs"]
mod seeds;
#[path = "../../it/exchanges/site.rs"]
mod site;
#[path = "../../it/exchanges/strict.rs"]
mod strict;

fuzz_target!(init: seeds::write("exchange", SEEDS), |data: &[u8]| {
    let (runtime, bench) = &*BENCH;
    if let Err(wrong) = runtime.block_on(bench.play(data)) {
        panic!("{wrong}");
    }
});

static BENCH: LazyLock<(Runtime, Bench)> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("robotgate-fuzz-{}", process::id()));
    let (proxy, audit) = start(&folder);
    let runtime = Runtime::new().expect("a runtime");
    let bench = runtime.block_on(Bench::start(proxy, audit)).expect("a port");
    (runtime, bench)
});

fn start(folder: &Path) -> (SocketAddr, PathBuf) {
    fs::create_dir_all(folder).expect("a folder");
    // The configuration needs the port before the proxy listens.
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = free.local_addr().expect("a bound socket has an address");
    drop(free);
    let config = folder.join("robotgate.toml");
    let text = format!(
        r#"
        [proxy]
        listen = "{address}"
        [audit]
        path = "audit/log.jsonl"
        [cache]
        path = "robots.redb"
        [https]
        ca-certificate = "ca.pem"
        ca-key = "ca-key.pem"
        [robots]
        wait = "1m"
        [egress]
        allow = ["127.0.0.0/8"]
        "#
    );
    let log = folder.join("audit/log.jsonl");
    fs::create_dir_all(folder.join("audit")).expect("a folder");
    fs::write(&config, text).expect("a file");
    thread::spawn(move || {
        let ended = Service::run(&Sources::from(&*config), LogFormat::default());
        eprintln!("the proxy ended: {ended:?}");
        process::abort();
    });
    while TcpStream::connect(address).is_err() {
        thread::sleep(Duration::from_millis(10));
    }
    (address, log)
}

/// Inputs for a plain exchange, for several exchanges on a kept connection, for a client that breaks off, for content
/// that contains requests, and for responses in pieces.
const SEEDS: [(&str, &[u8]); 5] = [
    ("plain", &[]),
    ("kept", &[3]),
    ("broken-off", &[1, 0, 0, 3, 1, 0, 128, 1]),
    ("smuggled", &[2, 0, 4, 0, 3, 1, 0, 0, 0, 0, 4, 1, 0, 0, 3, 2, 6, 1]),
    ("pieces", &[1, 5, 6, 0, 2, 0, 0, 0, 0, 3, 0, 2, 6, 4]),
];
