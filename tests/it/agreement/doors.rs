//! The ways to ask a question: a request through the proxy, the API, and the commands.

use serde_json::Value;
use tokio::task::JoinSet;
use toml::Table;

use super::{
    row::Row,
    table::Proof,
    views::{self, View},
};
use crate::{
    admin::{escaped, get, post},
    support::{Alpn, Certificate, CliOutput, Connected, Connection, Gate, Response},
    tls_listener,
};

/// What the proxy said about a request.
pub struct Proxied {
    /// The record of the decision. `None` if the proxy responded without a decision, as to a malformed request.
    pub record: Option<Value>,
    /// The response, unless the client got a tunnel.
    response: Option<Response>,
}

// === impl Proxied ===

impl Proxied {
    /// Sends a request. `mode` is the gate's `https.mode`.
    pub async fn ask(gate: &Gate, mode: &str, row: &Row) -> Self {
        let seen = gate.audit_length();
        let response = send(gate, mode, row).await;
        // The decision is in the log before the response arrives. For a CONNECT and the requests in it, use the last
        // decision.
        let mut records = gate.audit_from(seen).into_iter();
        Self {
            record: records.rfind(|record| record["event"] == "decision"),
            response,
        }
    }

    /// Returns what the record and the response say.
    pub fn views(&self) -> Vec<(&'static str, View)> {
        let mut views = Vec::new();
        views.extend(self.record.as_ref().map(|record| ("the log", views::decision(record))));
        if let Some(response) = &self.response {
            views.push(("Robots-Decision", views::header(response)));
            if response.field("Content-Type") == Some("application/problem+json") {
                views.push(("the refusal", views::problem(response)));
            }
        }
        views
    }
}

async fn send(gate: &Gate, mode: &str, row: &Row) -> Option<Response> {
    let (scheme, rest) = row.url.split_once("://").unwrap();
    let (authority, path) = rest.split_at(rest.find('/').unwrap());
    if scheme != "https" {
        let mut connection = match row.client.proof {
            Proof::None | Proof::Credential(_) => gate.dial().await,
            Proof::Network => Connection::from([127, 0, 0, 2], gate.address()).await.unwrap(),
            Proof::Certificate => {
                let certificate = Certificate::of(&["bot.example"]);
                tls_listener::dial(gate, Some(&certificate)).await.unwrap()
            }
        };
        return Some(row.dress(connection.get(&row.url), true).await);
    }
    let (host, port) = authority.split_once(':').unwrap_or((authority, "443"));
    let connect = gate.connect(&format!("{host}:{port}"));
    match connect.with_ask(|ask| row.dress(ask, true)).await {
        Connected::Refused(response) => Some(response),
        Connected::Tunnel(tunnel) if mode == "intercept" && host != "other.example" => {
            let mut inside = tunnel.tls(host, Alpn::Http1).await;
            Some(row.dress(inside.get(path), false).await)
        }
        Connected::Tunnel(_) => None,
    }
}

/// Returns the decisions of the API, which is asked about all rows in one request.
pub async fn decide(gate: &Gate, rows: &[Row]) -> Vec<Value> {
    let requests: Vec<Value> = rows.iter().map(Row::question).collect();
    let answer = post(gate, "/api/v1/decide", &serde_json::json!({ "requests": requests })).await;
    answer["decisions"].as_array().unwrap().clone()
}

/// Returns what the API says about one question.
pub async fn ask_api(gate: &Gate, row: &Row) -> Vec<(&'static str, View)> {
    let one = get(gate, &format!("/api/v1/decide?{}", row.query())).await;
    let explained = get(gate, &format!("/api/v1/explain?{}", row.query())).await;
    vec![
        ("decide", views::decision(&one)),
        ("explain's decision", views::decision(&explained["decision"])),
        ("explain's report", views::report(&explained["report"])),
    ]
}

/// Returns what the API says about the origin of a decision.
pub async fn origin_of(gate: &Gate, record: &Value) -> View {
    let origin = escaped(record["origin"].as_str().unwrap());
    let detail = get(gate, &format!("/api/v1/origins/detail?origin={origin}")).await;
    views::origin(&detail, &record["reason"])
}

/// Runs `robotgate explain` for each row, a few at a time.
pub async fn explain_all(config: &str, rows: &[Row]) -> Vec<CliOutput> {
    let mut outputs = Vec::new();
    for rows in rows.chunks(4) {
        let mut running = JoinSet::new();
        for (at, row) in rows.iter().cloned().enumerate() {
            let config = config.to_owned();
            running.spawn(async move {
                let agent = row.client.agent;
                let mut args = vec!["explain", "--config", &config, "--json", "--agent", agent, &row.url];
                args.extend((row.proof() == "none").then_some("--unproven"));
                args.extend(row.client.purposes.iter().flat_map(|purpose| ["--purpose", purpose]));
                (at, CliOutput::of(&args, "").await)
            });
        }
        let mut done = running.join_all().await;
        done.sort_by_key(|(at, _)| *at);
        outputs.extend(done.into_iter().map(|(_, output)| output));
    }
    outputs
}

/// Returns the view of what a command printed.
pub fn command(output: &CliOutput) -> View {
    let report = output.json();
    let mut view = views::report(&report);
    // The command has fetched the robots.txt itself, at another time than the gate.
    view.retain(|name, _| !["robots_fetched", "robots_expires"].contains(name));
    // The command also says what was wrong with redirects, which a copy does not contain.
    if report["robots"]["redirects"] != Value::Array(Vec::new()) && view["reason"] == "no-robots" {
        view.remove("robots_error");
    }
    view
}

/// Writes a configuration for the commands, and returns its path. Each `[[expect]]` in it has a wrong verdict, so that
/// `robotgate check` reports the right one.
pub fn command_config(gate: &Gate, rows: &[Row]) -> String {
    let text = std::fs::read_to_string(gate.file("robotgate.toml")).unwrap();
    let mut config: Table = text.parse().unwrap();
    for (section, address) in [("proxy", gate.address()), ("admin", gate.admin_address())] {
        let section = config[section].as_table_mut().unwrap();
        section.insert("listen".into(), address.to_string().into());
    }
    let mut expectations = toml::value::Array::new();
    for row in rows {
        if !row.is_own() && row.expectation_error().is_none() {
            continue;
        }
        let verdict = if row.verdict() == "allow" { "deny" } else { "allow" };
        let mut case = Table::new();
        for (key, value) in [
            ("agent", row.client.agent),
            ("url", &row.url),
            ("robots", row.robots.unwrap_or_default()),
            ("verdict", verdict),
        ] {
            case.insert(key.into(), value.into());
        }
        if let [purpose] = row.client.purposes {
            case.insert("purpose".into(), (*purpose).into());
        }
        expectations.push(case.into());
    }
    config.insert("expect".into(), expectations.into());
    let file = gate.file("commands.toml");
    std::fs::write(&file, config.to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}
