//! A Redis server that the gates lose or cannot find yet, and connections to it that are disturbed.

use std::time::Duration;

use super::{cache, connected, fetches, fleet, gate, origin, sites};
use crate::support::{Fault, Gate, Link, Origin, Redis, Signal, programs::needs, refused, wait};

#[tokio::test]
async fn a_lost_server_fails_no_request_and_is_used_again_afterwards() {
    needs!("redis-server");
    let (mut server, origin) = (Redis::start().await, origin().await);
    let gate = gate(&server.url()).await;
    let mut sites = sites();
    for trouble in ["kill", "stop", "pause", "full", "replica"] {
        match trouble {
            "kill" => server.kill(),
            "stop" => server.signal(Signal::STOP),
            "pause" => drop(server.ask(&["CLIENT", "PAUSE", "1000000", "WRITE"]).await),
            "full" => drop(server.ask(&["CONFIG", "SET", "maxmemory", "1"]).await),
            _ => drop(server.ask(&["REPLICAOF", "127.0.0.1", "1"]).await),
        }
        decides_without_the_server(&gate, &origin, &mut sites, trouble).await;
        match trouble {
            "kill" => server.start_again().await,
            "stop" => server.signal(Signal::CONT),
            "pause" => drop(server.ask(&["CLIENT", "UNPAUSE"]).await),
            "full" => drop(server.ask(&["CONFIG", "SET", "maxmemory", "0"]).await),
            _ => drop(server.ask(&["REPLICAOF", "NO", "ONE"]).await),
        }
        connected(&gate).await;
    }
}

#[tokio::test]
async fn a_disturbed_connection_fails_no_request_and_recovers() {
    needs!("redis-server");
    let (server, origin) = (Redis::start().await, origin().await);
    let link = Link::to(server.socket()).await;
    let gate = gate(&link.url()).await;
    let mut sites = sites();
    for fault in [
        Fault::Drop,
        Fault::Delay(Duration::from_millis(60)),
        Fault::Delay(Duration::from_secs(5)),
        Fault::Cut,
    ] {
        link.set(Some(fault));
        decides_without_the_server(&gate, &origin, &mut sites, &format!("{fault:?}")).await;
        link.set(None);
        connected(&gate).await;
    }
}

async fn decides_without_the_server(
    gate: &Gate,
    origin: &Origin,
    sites: &mut impl Iterator<Item = String>,
    trouble: &str,
) {
    let mut status = async || {
        let site = sites.next()?;
        refused(&gate.get(&origin.url_at(&site, "/private")).await, "rule");
        assert_eq!(fetches(origin, &site), 1, "{trouble}");
        Some(fleet(gate).await)
    };
    let lost = wait::until_async(&format!("the breaker to open: {trouble}"), async || {
        status().await.filter(|fleet| fleet["error"].is_string())
    })
    .await;
    let metrics = gate.admin("/metrics").await.text();
    assert!(
        metrics.lines().any(|line| line == "robotgate_fleet_connected 0"),
        "{trouble}"
    );
    let after = status().await.expect("there are more sites");
    assert_eq!(after["calls"], lost["calls"], "{trouble}: no request waits for it");
}

#[tokio::test]
async fn a_gate_starts_without_the_server_and_finds_it_later() {
    needs!("redis-server");
    let (mut server, origin) = (Redis::start().await, origin().await);
    server.kill();
    let gate = Gate::with(&format!("[fleet]\nurl = \"{}\"", server.url())).await;
    refused(&gate.get(&origin.url("/private")).await, "rule");
    let loss = "the fleet's server cannot be used; until it can, robotgate works without it, and applies [pace] as \
                fleet.on-loss says";
    let line = gate.wait_for_log("the loss", |line| line.message() == loss).await;
    assert_eq!(line.level(), "ERROR");
    server.start_again().await;
    connected(&gate).await;
    assert_eq!(gate.logged(loss), 1, "each failed probe is logged");
}

#[tokio::test]
async fn a_reload_joins_a_fleet_and_leaves_it() {
    needs!("redis-server");
    let server = Redis::start().await;
    let gate = Gate::start().await;
    assert!(fleet(&gate).await.is_null());
    gate.reconfigure(&format!("[fleet]\nurl = \"{}\"", server.url()));
    gate.reloaded(1).await;
    connected(&gate).await;
    gate.reconfigure("");
    gate.reloaded(2).await;
    assert!(fleet(&gate).await.is_null());
}

#[tokio::test]
async fn an_answer_without_an_end_does_not_fill_the_memory() {
    needs!("redis-server");
    let (server, origin) = (Redis::start().await, origin().await);
    let link = Link::to(server.socket()).await;
    let gate = gate(&link.url()).await;
    let mut sites = sites();
    let before = gate.peak_memory();
    link.set(Some(Fault::Endless));
    decides_without_the_server(&gate, &origin, &mut sites, "endless").await;
    // The gate connects again, and gets another endless answer.
    let connections = link.connections();
    wait::until("more connections", || {
        (link.connections() > connections + 1).then_some(())
    })
    .await;
    let grown = gate.peak_memory().saturating_sub(before);
    assert!(grown < 128 << 20, "{} MiB", grown >> 20);
    link.set(None);
    connected(&gate).await;
}

#[tokio::test]
async fn forget_reports_that_the_server_of_the_fleet_could_not_be_told() {
    needs!("redis-server");
    let (mut server, origin) = (Redis::start().await, origin().await);
    let gate = gate(&server.url()).await;
    refused(&gate.get(&origin.url("/private")).await, "rule");
    server.kill();
    wait::until_async("the loss to be noticed", async || {
        fleet(&gate).await["error"].as_str().map(drop)
    })
    .await;
    let forgot = cache(&gate, &["forget", &origin.url(""), "--json"]).await;
    assert_eq!(forgot.code, Some(1), "{forgot:?}");
    assert!(
        forgot.errors.contains("the fleet's server could not be told"),
        "{forgot:?}"
    );
    let told = super::json(forgot.out.trim());
    assert_eq!((&told["forgotten"], &told["fleet_told"]), (&true.into(), &false.into()));
    server.start_again().await;
    connected(&gate).await;
    refused(&gate.get(&origin.url("/private")).await, "rule");
    let forgot = cache(&gate, &["forget", &origin.url(""), "--json"]).await;
    assert_eq!(forgot.code, Some(0), "{forgot:?}");
    assert_eq!(super::json(forgot.out.trim())["fleet_told"], true);
}
