//! Plays exchanges in which client and origin can do anything, and checks them against a plain model.
//!
//! A case is a list of bytes, from which [`scenario`] derives what client and origin do. The fuzz target `exchange`
//! does the same with a fuzzer's bytes. The environment variable `EXCHANGES=n` plays at most n cases, and
//! `EXCHANGE=0a1b..` plays the case with these bytes, in hexadecimal.

pub mod ledger;
mod model;
mod play;
mod scenario;
mod site;
pub mod strict;

use std::sync::Arc;

use proptest::{
    collection::vec,
    prelude::any,
    test_runner::{Config, TestCaseError, TestError, TestRunner},
};

use self::play::Bench;
use crate::support::Gate;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_gate_matches_the_model_for_any_client_and_origin() {
    let mut gate = Gate::start().await;
    let bench = Bench::start(gate.address(), gate.file("audit.jsonl"))
        .await
        .expect("a port");
    let bench = Arc::new(bench);
    if let Ok(text) = std::env::var("EXCHANGE") {
        let bytes = data_encoding::HEXLOWER.decode(text.as_bytes()).expect("hexadecimal");
        bench.play(&bytes).await.unwrap_or_else(|wrong| panic!("{wrong}"));
        return;
    }
    let cases = std::env::var("EXCHANGES").map_or(CASES, |number| number.parse().expect("a number"));
    let config = Config {
        cases: cases / AT_ONCE as u32,
        failure_persistence: None,
        max_shrink_iters: 2000,
        ..Config::default()
    };
    let handle = tokio::runtime::Handle::current();
    let playing = bench.clone();
    let result = tokio::task::spawn_blocking(move || {
        let strategy = vec(vec(any::<u8>(), 0..120), 1..=AT_ONCE);
        TestRunner::new(config).run(&strategy, |group| handle.block_on(play_at_once(&playing, group)))
    });
    match result.await.expect("it runs to its end") {
        Ok(()) => {}
        Err(TestError::Fail(wrong, group)) => {
            let cases: Vec<String> = group
                .iter()
                .map(|bytes| data_encoding::HEXLOWER.encode(bytes))
                .collect();
            panic!("{wrong}\nEXCHANGE={}", cases.join("\nEXCHANGE="));
        }
        Err(error) => panic!("{error}"),
    }
    assert!(gate.runs());
    let panic = gate.log().into_iter().find(|line| line.says("panicked"));
    assert!(panic.is_none(), "{panic:#?}");
}

async fn play_at_once(bench: &Arc<Bench>, group: Vec<Vec<u8>>) -> Result<(), TestCaseError> {
    let mut playing = tokio::task::JoinSet::new();
    for bytes in group {
        let bench = bench.clone();
        playing.spawn(async move { bench.play(&bytes).await });
    }
    while let Some(played) = playing.join_next().await {
        played.expect("it plays to its end").map_err(TestCaseError::fail)?;
    }
    Ok(())
}

const CASES: u32 = 1000;
const AT_ONCE: usize = 8;
