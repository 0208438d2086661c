//! Several gates that share a real Redis server.

mod configuration;
mod copies;
mod loss;
mod pace;

use serde_json::Value;

use crate::support::{CliOutput, Gate, Origin, ROBOTS, wait};

async fn origin() -> Origin {
    Origin::start().robots(ROBOTS).anything("page").spawn().await
}

async fn gate(url: &str) -> Gate {
    let gate = Gate::with(&format!("[fleet]\nurl = \"{url}\"")).await;
    connected(&gate).await;
    gate
}

async fn connected(gate: &Gate) {
    wait::until_async("the gate to use the server", async || {
        fleet(gate).await["connected"].as_bool().filter(|connected| *connected)
    })
    .await;
}

async fn fleet(gate: &Gate) -> Value {
    crate::admin::get(gate, "/api/v1/status").await["fleet"].clone()
}

fn fetches(origin: &Origin, host: &str) -> usize {
    let authority = format!("{host}:{}", origin.port());
    let asked = origin.requests_for("/robots.txt").into_iter();
    asked
        .filter(|request| request.field("Host") == Some(&*authority))
        .count()
}

/// Returns whether a call to the server has failed, as happens on a very busy machine. In this case, a test learns
/// nothing about what the gates share, and tries again.
async fn has_failed_calls(gates: &[&Gate]) -> bool {
    for gate in gates {
        if fleet(gate).await["errors"] != 0 {
            return true;
        }
    }
    false
}

fn sites() -> impl Iterator<Item = String> {
    (0..).map(|number| format!("site{number}.example"))
}

async fn paced(url: &str, pace: &str) -> Gate {
    let gate = Gate::with(&format!("[fleet]\nurl = \"{url}\"\nsize = 3\n[pace]\n{pace}")).await;
    connected(&gate).await;
    gate
}

async fn cache(gate: &Gate, args: &[&str]) -> CliOutput {
    let config = gate.file("robotgate.toml");
    let config = config.to_str().expect("the tests' paths are text");
    CliOutput::of(&[&["cache"], args, &["--config", config]].concat(), "").await
}

fn json(line: &str) -> Value {
    serde_json::from_str(line).expect("an object a line")
}
