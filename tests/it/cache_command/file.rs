//! Which cache file the command reads, and its errors if it cannot read it.

use std::{fs, os::unix::fs::PermissionsExt as _};

use super::{ROBOTS, cache, rows};
use crate::support::{Gate, Origin, Signal, allowed, wait};

#[tokio::test]
async fn a_missing_file_is_reported_and_not_created() {
    let mut gate = Gate::with("[cache]\npath = \"state/robots.redb\"").await;
    gate.stop().await;
    fs::remove_dir_all(gate.file("state")).expect("the folder is ours");
    for args in [
        &["list"][..],
        &["stats"],
        &["show", "a.example"],
        &["forget", "a.example"],
    ] {
        let output = cache(&gate, args).await;
        assert!(
            output.errors.starts_with("robotgate: there is no cache file at /"),
            "{output:?}"
        );
        assert_eq!((output.code, &*output.out), (Some(1), ""));
    }
    assert!(!gate.file("state").exists());
}

#[tokio::test]
async fn the_command_says_that_persist_is_off() {
    let gate = Gate::builder()
        .without("cache.path")
        .config("[cache]\npersist = false")
        .start()
        .await;
    let output = cache(&gate, &["list"]).await;
    assert!(
        output
            .errors
            .starts_with("robotgate: with cache.persist = false there is no cache file"),
        "{output:?}"
    );
    assert_eq!(output.code, Some(1));
}

#[tokio::test]
async fn wrong_arguments_are_usage_errors() {
    let gate = Gate::start().await;
    for args in [
        &[][..],
        &["show"],
        &["list", "a", "b"],
        &["show", "--text", "--json", "a.example"],
    ] {
        assert_eq!(cache(&gate, args).await.code, Some(2), "{args:?}");
    }
    let output = cache(&gate, &["show", "ftp://a.example"]).await;
    assert_eq!((output.code, &*output.out), (Some(1), ""));
}

#[tokio::test]
async fn the_socket_is_private_and_a_stale_one_is_replaced() {
    let mut gate = Gate::start().await;
    let socket = gate.file("robots.redb.sock");
    let mode = fs::metadata(&socket).expect("a socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "{mode:o}");
    gate.signal(Signal::KILL);
    gate.ended().await;
    assert!(socket.exists());

    let path = gate.file("robots.redb");
    let mut next = Gate::with(&format!("[cache]\npath = {path:?}")).await;
    assert!(rows(&next).await.is_empty());
    next.stop().await;
    assert!(!socket.exists());
}

#[tokio::test]
async fn the_proxy_that_has_the_file_open_responds_to_the_command() {
    let site = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let first = Gate::start().await;
    let path = first.file("robots.redb");
    let second = Gate::with(&format!("[cache]\npath = {path:?}")).await;
    allowed(&second.get(&site.url("/x")).await, "no-rule");
    assert!(rows(&second).await.is_empty(), "what it knows is in its memory alone");
    allowed(&first.get(&site.url("/x")).await, "no-rule");
    assert_eq!(rows(&second).await.len(), 1);
}

#[tokio::test]
async fn a_file_in_use_by_a_silent_process_is_reported() {
    let gate = Gate::start().await;
    fs::remove_file(gate.file("robots.redb.sock")).expect("a socket");
    let output = cache(&gate, &["list"]).await;
    assert!(
        output.errors.contains("is in use by a process that does not answer"),
        "{output:?}"
    );
    assert_eq!((output.code, &*output.out), (Some(1), ""));
}

#[tokio::test]
async fn the_proxy_runs_without_its_cache_socket() {
    let site = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let long = "x".repeat(100);
    let gate = Gate::with(&format!("[cache]\npath = \"{long}/robots.redb\"")).await;
    allowed(&gate.get(&site.url("/x")).await, "no-rule");
    let warned = wait::until("a warning", || {
        let lines = gate.log();
        let output: Vec<_> = lines
            .into_iter()
            .filter(|line| line.says("cannot create the socket that"))
            .collect();
        (!output.is_empty()).then_some(output)
    })
    .await;
    assert_eq!(warned.len(), 1, "{warned:?}");
    assert!(warned[0].says("107 bytes") && warned[0].level() == "WARN", "{warned:?}");
}

#[tokio::test]
async fn a_damaged_file_is_reported_and_not_changed() {
    let mut gate = Gate::start().await;
    gate.stop().await;
    let file = gate.file("robots.redb");
    let damaged = vec![b'x'; 100_000];
    fs::write(&file, &damaged).expect("the folder is ours");
    let output = cache(&gate, &["list"]).await;
    assert_eq!((output.code, &*output.out), (Some(1), ""));
    assert!(output.errors.contains("robots.redb cannot be used: "), "{output:?}");
    assert_eq!(fs::read(&file).expect("it is there"), damaged);
}
