//! The metrics at the admin listener after known events.

use std::process::Stdio;

use rustls::pki_types::ServerName;
use tokio::{io::AsyncWriteExt as _, process::Command};
use tokio_rustls::TlsConnector;

use crate::support::{
    Alpn, Ask, DnsAnswer, Gate, NAME, Origin, ROBOTS, Reply, Response, Roots, Step, allowed, failed, programs::needs,
    refused, wait::until_async,
};

const ADMIN: &str = "[admin]\nlisten = \"127.0.0.1:0\"\n";
const OPENMETRICS: &str = "application/openmetrics-text;version=1.0.0";

async fn gate(config: &str) -> Gate {
    Gate::with(&format!("{ADMIN}{config}")).await
}

async fn scrape_as(gate: &Gate, accept: &str) -> Response {
    let to = gate.admin_address();
    Ask::fresh(to, "GET", "/metrics")
        .set("Host", &to.to_string())
        .set("Accept", accept)
        .await
}

async fn metrics(gate: &Gate) -> String {
    scrape_as(gate, "*/*").await.text()
}

fn value(text: &str, series: &str) -> Option<f64> {
    let mut lines = text.lines().filter_map(|line| line.rsplit_once(' '));
    lines.find(|(name, _)| *name == series)?.1.parse().ok()
}

/// Waits until a series has the value `wanted`: an exchange is counted shortly after its client has the response.
#[track_caller]
fn shows<'a>(gate: &'a Gate, series: &'a str, wanted: f64) -> impl Future<Output = ()> + 'a {
    let shown = async move || (value(&metrics(gate).await, series) == Some(wanted)).then_some(());
    async move { until_async(&format!("{series} {wanted}"), shown).await }
}

#[tokio::test]
async fn requests_are_counted_by_their_outcome() {
    let origin = Origin::start().robots(ROBOTS).page("/x", "page").spawn().await;
    let gate = gate("[[bot]]\nname = \"crawler\"\nuser-agents = [\"crawler\"]\n").await;

    let response = gate.get(&origin.url("/x")).user_agent("crawler/1.0").await;
    allowed(&response, "no-rule");
    refused(&gate.get(&origin.url("/private")).await, "rule");
    gate.dns().answer("nowhere.example", DnsAnswer::NoSuchName);
    let response = gate.get("http://nowhere.example/robots.txt").await;
    failed(&response, 502, &["dns_error"]);
    gate.raw("GET http://a.example/ HTTP/1.1\r\nno field\r\n\r\n").await;

    for (series, wanted) in [
        (
            r#"robotgate_decisions_total{verdict="allow",reason="no-rule",bot="crawler",enforcement="enforce",forwarded="true"}"#,
            1.0,
        ),
        (
            r#"robotgate_decisions_total{verdict="deny",reason="rule",bot="other",enforcement="enforce",forwarded="false"}"#,
            1.0,
        ),
        (r#"robotgate_requests_total{method="GET",outcome="forwarded"}"#, 1.0),
        (r#"robotgate_requests_total{method="GET",outcome="refused"}"#, 1.0),
        (r#"robotgate_requests_total{method="GET",outcome="error"}"#, 1.0),
        (r#"robotgate_responses_total{class="2xx"}"#, 1.0),
        (r#"robotgate_responses_total{class="4xx"}"#, 2.0),
        (r#"robotgate_responses_total{class="5xx"}"#, 1.0),
        (r#"robotgate_errors_total{type="dns_error"}"#, 1.0),
        (r#"robotgate_errors_total{type="http_request_error"}"#, 1.0),
        ("robotgate_malformed_total", 1.0),
        ("robotgate_decision_seconds_count", 3.0),
        ("robotgate_exchange_seconds_count", 3.0),
        ("robotgate_audit_wait_seconds_count", 3.0),
        (r#"robotgate_robots_copies{state="rules"}"#, 1.0),
        (r#"robotgate_robots_fetches_total{result="2xx"}"#, 1.0),
        ("robotgate_robots_fetch_seconds_count", 1.0),
        // Lines for the start, three decisions, three completions and a fetch.
        ("robotgate_audit_lines_total", 8.0),
        ("robotgate_audit_waiting_bytes", 0.0),
        ("robotgate_audit_stalled", 0.0),
        (r#"robotgate_connections{listener="http"}"#, 0.0),
        (r#"robotgate_connections_accepted_total{listener="http"}"#, 4.0),
    ] {
        shows(&gate, series, wanted).await;
    }
    let text = metrics(&gate).await;
    assert!(!text.contains("127.0.0.1") && !text.contains("nowhere"), "{text}");
    let sent = value(&text, "robotgate_sent_bytes_total").expect("a count");
    assert!(sent > 4.0, "{sent}");
}

#[tokio::test]
async fn broken_tls_of_a_client_is_not_counted_as_malformed() {
    let origin = Origin::start().tls().spawn().await;
    let gate = gate("").await;
    let tunnel = gate.connect(&origin.authority()).await.opened().plain().into_io();
    let config = Roots::blind().client_config(&[b"http/1.1"]);
    let name = ServerName::try_from(NAME).expect("a name");
    let mut inside = TlsConnector::from(config)
        .connect(name, tunnel)
        .await
        .expect("a handshake");

    inside
        .write_all(b"GET / HTTP/1.1\r\n")
        .await
        .expect("an open connection");
    inside.flush().await.expect("an open connection");
    let (tunnel, _) = inside.get_mut();
    tunnel.write_all(b"no record of TLS").await.expect("an open connection");

    shows(&gate, r#"robotgate_connections_accepted_total{listener="http"}"#, 1.0).await;
    shows(&gate, r#"robotgate_connections{listener="http"}"#, 0.0).await;
    shows(&gate, "robotgate_malformed_total", 0.0).await;
}

#[tokio::test]
async fn open_connections_and_tunnels_are_counted() {
    let upgraded = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
    let origin = Origin::start()
        .robots("")
        .otherwise(move |_| Reply::script([Step::send(upgraded), Step::Echo]))
        .tls()
        .spawn()
        .await;
    let gate = gate("").await;

    let tunnel = gate.connect(&origin.authority()).await.opened();
    let mut inside = tunnel.tls(NAME, Alpn::Http1).await;
    let response = inside
        .get("/chat")
        .header("Connection", "Upgrade")
        .header("Upgrade", "websocket")
        .header("Sec-WebSocket-Version", "13")
        .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
        .await;
    assert_eq!(response.status, 101, "{response:#?}");

    let series = [
        r#"robotgate_connections{listener="http"}"#,
        r#"robotgate_tunnels{kind="intercept"}"#,
        r#"robotgate_tunnels{kind="websocket"}"#,
    ];
    for series in series {
        shows(&gate, series, 1.0).await;
    }
    shows(&gate, "robotgate_leaves", 1.0).await;
    drop(inside);
    for series in series {
        shows(&gate, series, 0.0).await;
    }
    shows(&gate, r#"robotgate_tunnels_opened_total{kind="websocket"}"#, 1.0).await;
    // The client determines how long the tunnel lasts, so its duration is not measured.
    shows(&gate, "robotgate_exchange_seconds_count", 0.0).await;
}

#[tokio::test]
async fn blind_tunnels_and_rejections_are_counted() {
    let origin = Origin::start().tls().spawn().await;
    let gate = gate("[https]\nmode = \"intercept\"\n").await;
    let distrusting = gate.connect(&origin.authority()).await.opened().trusting(Roots::none());
    assert!(distrusting.try_tls(NAME, Alpn::Http1).await.is_err());
    shows(&gate, r#"robotgate_client_distrust_total{kind="distrust"}"#, 1.0).await;

    gate.reconfigure(&format!("{ADMIN}[https]\nmode = \"tunnel\"\n"));
    shows(&gate, "robotgate_config_generation", 2.0).await;
    let connect = gate.connect(&origin.authority()).user_agent("TestBot/1.0");
    let tunnel = connect.await.opened();
    shows(&gate, r#"robotgate_tunnels{kind="blind"}"#, 1.0).await;
    drop(tunnel);
    shows(&gate, r#"robotgate_tunnels{kind="blind"}"#, 0.0).await;
    shows(
        &gate,
        r#"robotgate_requests_total{method="CONNECT",outcome="forwarded"}"#,
        1.0,
    )
    .await;
}

#[tokio::test]
async fn a_rejected_reload_is_counted() {
    let gate = gate("").await;
    shows(&gate, "robotgate_config_last_reload_success", 1.0).await;
    gate.rewrite_config("[proxy]\nno-such-key = 1\n");
    shows(&gate, "robotgate_config_last_reload_success", 0.0).await;
    shows(&gate, r#"robotgate_config_reloads_total{result="rejected"}"#, 1.0).await;
    shows(&gate, "robotgate_config_generation", 1.0).await;
    gate.reconfigure(ADMIN);
    shows(&gate, "robotgate_config_last_reload_success", 1.0).await;
}

#[tokio::test]
async fn the_requested_format_is_served_and_promtool_accepts_it() {
    needs!("promtool");
    let gate = gate("").await;
    let openmetrics = scrape_as(&gate, OPENMETRICS).await;
    let kind = openmetrics.field("Content-Type").unwrap_or_default();
    assert!(
        kind.starts_with("application/openmetrics-text; version=1.0.0"),
        "{kind}"
    );
    assert!(openmetrics.text().ends_with("# EOF\n"));
    let older = scrape_as(&gate, "text/plain").await;
    let kind = older.field("Content-Type").unwrap_or_default();
    assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");

    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool starts");
    let mut input = promtool.stdin.take().expect("it is piped");
    input.write_all(older.text().as_bytes()).await.expect("promtool reads");
    drop(input);
    let output = promtool.wait_with_output().await.expect("promtool ends");
    let printed = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && printed.is_empty(), "{printed}");
}

#[tokio::test]
async fn the_metrics_show_the_earliest_end_of_the_tunnel_entries() {
    const NAME: &str = "robotgate_tunnel_entry_not_after_timestamp_seconds";
    let entry = |until| format!("[[https.tunnel]]\nhost = 'a.example'\nreason = 'r'\nuntil = {until}\n");
    let (ended, later) = (entry("2020-01-31"), entry("2999-01-01"));
    for (config, line) in [
        (String::new(), None),
        (format!("{later}{ended}"), Some("1580515200.0")),
        (later, Some("32472230400.0")),
    ] {
        let text = metrics(&gate(&config).await).await;
        let value = text.lines().find_map(|line| line.strip_prefix(NAME)).map(str::trim);
        assert_eq!(value, line, "{config}");
    }
}
