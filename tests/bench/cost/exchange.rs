//! Exchanges through a gate in this process, which runs on one thread with the client and the origin, so that each run
//! does the same work in the same order. The gate does what the program does, but does not keep robots.txt copies on
//! disk, because other threads would write them.

use std::sync::Arc;

use robotgate::{
    audit::LogFormat,
    config::Config,
    proxy::{Listeners, Live, ServeOperator, Speaks},
};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::peers::{self, Client};

/// Sends `times` requests for a page on one connection, and returns by how much `counter` increases.
pub fn run(times: u64, is_allowed: bool, counter: fn() -> u64) -> u64 {
    let folder = TempDir::new().unwrap();
    std::fs::create_dir(folder.path().join("log")).unwrap();
    peers::on_one_thread(async {
        let origin = peers::origin().await;
        let dns = peers::name_server().await;
        let config = peers::config(dns, "persist = false");
        let config = Config::parse("robotgate.toml", &config, folder.path()).unwrap();
        let (_running, stopping) = watch::channel(false);
        let listeners = Listeners::new(stopping, CancellationToken::new(), Vec::new());
        let planned = listeners.plan(&config).unwrap();
        let live = Live::new(config, LogFormat::default(), String::new()).unwrap();
        let open = planned.open(live.generation().listening()).unwrap();
        let nobody: ServeOperator = Arc::new(|_, _, _| {});
        listeners.start_accepting(open, &live, &nobody);
        let gate = listeners.addresses().into_iter();
        let (gate, _) = gate.into_iter().find(|(_, speaks)| *speaks == Speaks::Http).unwrap();

        let mut client = Client::connect(gate, origin, is_allowed).await;
        // This fetches the robots.txt, connects to the origin, and does everything else that happens only once.
        for _ in 0..WARM_UP {
            client.get().await;
        }
        let before = counter();
        for _ in 0..times {
            client.get().await;
        }
        counter() - before
    })
}

const WARM_UP: usize = 20;
