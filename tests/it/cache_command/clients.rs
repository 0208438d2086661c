//! Whoever connects to the socket, and whatever they send, bots are served and operators answered.

use std::process::Stdio;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    process::Command,
};

use super::{ROBOTS, rows};
use crate::support::{Gate, Origin, allowed, wait};

async fn connect(gate: &Gate) -> UnixStream {
    let connected = UnixStream::connect(gate.file("robots.redb.sock")).await;
    connected.expect("the gate listens")
}

/// What comes back of `bytes`.
async fn said(gate: &Gate, bytes: &[u8]) -> String {
    let mut client = connect(gate).await;
    // It may be closed before all is sent, or read.
    drop(client.write_all(bytes).await);
    let mut said = Vec::new();
    drop(wait::within("the end of the answer", client.read_to_end(&mut said)).await);
    String::from_utf8(said).expect("text")
}

#[tokio::test]
async fn hostile_clients_disturb_nobody() {
    let site = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let mut gate = Gate::start().await;
    allowed(&gate.get(&site.url("/1")).await, "no-rule");

    assert!(said(&gate, b"\xff\x00nonsense\n").await.starts_with("{\"error\":"));
    assert_eq!(said(&gate, &[b'x'; 100_000]).await, "");
    let silent = [connect(&gate).await, connect(&gate).await, connect(&gate).await];
    let mut deaf = connect(&gate).await;
    deaf.write_all(b"{\"ask\":\"list\",\"filter\":\"\"}\n")
        .await
        .expect("it listens");

    allowed(&gate.get(&site.url("/2")).await, "no-rule");
    assert_eq!(rows(&gate).await.len(), 1);
    assert!(gate.stop().await.success());
    assert!(!gate.file("robots.redb.sock").exists());
    drop((silent, deaf));
}

#[tokio::test]
async fn a_reader_that_goes_away_ends_the_list_quietly() {
    let site = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let gate = Gate::start().await;
    allowed(&gate.get(&site.url("/1")).await, "no-rule");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let ended = Command::new(env!("CARGO_BIN_EXE_robotgate"))
        .args(["cache", "list", "--config"])
        .arg(gate.file("robotgate.toml"))
        .stdout(writer)
        .stderr(Stdio::piped())
        .output()
        .await
        .expect("the binary is there");
    assert_eq!((ended.status.code(), ended.stderr), (Some(0), Vec::new()));
}
