//! The operators' page in a real browser: headless Chromium, which `admin_page/drive.py` drives step by step.
//!
//! The README's test command installs the browser. Without it these tests are skipped, or fail if `CI` is set.

mod questions;
mod refusals;
mod sites;

use std::process::Stdio;

use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

use crate::support::{Gate, Origin, Reply, allowed, programs::needs, refused, wait};

const ROBOTS: &str = "# What bots may do here.\nUser-agent: *\nAllow: /private/press\nDisallow: /private\n";
const TOKEN: &str = "open-sesame-open-sesame";

struct Operator {
    steps: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    // The driver and its browser end when `steps` is dropped.
    _driver: Child,
}

// === impl Operator ===

impl Operator {
    async fn open(gate: &Gate) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/admin_page/drive.py");
        let mut driver = Command::new("/usr/bin/python3")
            .arg("-B")
            .arg(script)
            .arg(format!("http://{}/", gate.admin_address()))
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python starts");
        let mut operator = Self {
            steps: driver.stdin.take().expect("piped"),
            answers: BufReader::new(driver.stdout.take().expect("piped")).lines(),
            _driver: driver,
        };
        operator.perform(json!(["open", 1400])).await;
        operator
    }

    /// Performs a step and waits until it has succeeded.
    #[track_caller]
    fn perform(&mut self, step: serde_json::Value) -> impl Future<Output = ()> {
        let place = std::panic::Location::caller();
        async move {
            let line = format!("{step}\n");
            let reply = async {
                self.steps.write_all(line.as_bytes()).await.ok()?;
                self.answers.next_line().await.ok()?
            };
            let answer = reply.await.unwrap_or_else(|| "the driver has ended".to_owned());
            assert!(answer == "ok", "{place}: {step}: {}", answer.replace(" ⏎ ", "\n"));
        }
    }

    /// Closes the browser and checks that it reported no error.
    async fn close(mut self) {
        self.perform(json!(["clean"])).await;
        drop(self.steps);
        assert_eq!(self.answers.next_line().await.unwrap_or_default(), None);
    }
}

async fn origin() -> Origin {
    Origin::start().robots(ROBOTS).anything("page").spawn().await
}

#[tokio::test]
async fn the_history_shows_what_was_refused_and_links_to_the_refusals() {
    needs!("python3", "chromium");
    let site = Origin::start()
        .robots(ROBOTS)
        .anything("page")
        .reply("/broken", Reply::status(500))
        .spawn()
        .await;
    let gate = Gate::with("[[bot]]\nname = 'AcmeBot'\nuser-agents = ['AcmeBot']").await;
    let mut operator = Operator::open(&gate).await;
    operator.perform(json!(["empty", "curl -x http://127.0.0.1:"])).await;
    operator.perform(json!(["fits", 400])).await;
    operator.perform(json!(["within", 1400, "configuration"])).await;
    for _ in 0..3 {
        refused(&gate.get(&site.url("/private")).user_agent("AcmeBot").await, "rule");
    }
    allowed(&gate.get(&site.url("/x")).await, "no-rule");
    gate.get(&site.url("/broken")).await;
    let name = site.url("");
    let why = ["Disallow: /private", "AcmeBot", &name];
    operator
        .perform(json!(["history", "1h", "bot", why[0], why[1], why[2]]))
        .await;
    for (by, texts) in [
        ("verdict", ["deny 3", "allow 2"]),
        ("reason", ["rule 3", "no-rule 2"]),
        ("answer", ["answered 1", "failed 1"]),
    ] {
        operator.perform(json!(["history", "1h", by, texts[0], texts[1]])).await;
    }
    operator
        .perform(json!(["history", "1h", "site", format!("{name} 5")]))
        .await;
    operator
        .perform(json!([
            "history",
            "yesterday",
            "verdict",
            "Nothing happened in this time",
            "curl -x"
        ]))
        .await;
    operator.perform(json!(["history", "1h", "verdict", "deny 3"])).await;
    // The Enter key, at the last minute of the chart, lists the refusals of that minute.
    operator.perform(json!(["read_chart", ["End"], "UTC: "])).await;
    operator
        .perform(json!(["read_chart", ["End", "Enter"], "filter=since"]))
        .await;
    operator.perform(json!(["fits", 400])).await;
    operator.perform(json!(["height", "now", 1000])).await;
    operator.perform(json!(["fits", 1400])).await;
    operator.close().await;
}

#[tokio::test]
async fn the_page_shows_the_configuration_and_a_rejected_reload() {
    needs!("python3", "chromium");
    let gate = Gate::with("[robots]\nuser-agent = \"PageBot\"").await;
    let mut operator = Operator::open(&gate).await;
    operator
        .perform(json!([
            "configuration",
            "robotgate.toml",
            "robots.user-agent",
            "PageBot",
            "None since the start."
        ]))
        .await;

    gate.rewrite_config("[https]\nmode = \"sometimes\"\n");
    operator.perform(json!(["rejected", "robotgate.toml", "mode"])).await;
    operator.perform(json!(["fits", 400])).await;
    operator.perform(json!(["fits", 1400])).await;

    gate.reconfigure("[robots]\nuser-agent = \"OtherBot\"");
    gate.reloaded(1).await;
    operator.perform(json!(["not_rejected"])).await;
    operator
        .perform(json!([
            "configuration",
            "Took effect",
            "OtherBot",
            "robots.user-agent: "
        ]))
        .await;
    operator.close().await;
}

#[tokio::test]
async fn the_page_asks_for_the_token_and_keeps_it_until_the_log_out() {
    needs!("python3", "chromium");
    let gate = Gate::builder()
        .config("[admin]\ntoken-file = \"admin-token\"")
        .put("admin-token", TOKEN)
        .start()
        .await;
    let mut operator = Operator::open(&gate).await;
    operator.perform(json!(["log_in", "a-wrong-one-a-wrong-one"])).await;
    operator.perform(json!(["not_logged_in"])).await;
    operator.perform(json!(["log_in", TOKEN])).await;
    operator.perform(json!(["ready"])).await;
    operator.perform(json!(["configuration", "admin.token-file"])).await;
    // The browser's tab still has the token.
    operator.perform(json!(["open", 400])).await;
    operator.perform(json!(["ready"])).await;
    operator.perform(json!(["log_out"])).await;
    operator.close().await;
}

#[tokio::test]
async fn the_page_reports_a_lost_connection_and_reconnects() {
    needs!("python3", "chromium");
    let mut gate = Gate::start().await;
    let admin = gate.admin_address();
    let mut operator = Operator::open(&gate).await;
    operator.perform(json!(["ready"])).await;
    gate.stop().await;
    operator.perform(json!(["gone"])).await;

    // Use the same port, which the system chose the first time.
    gate.reconfigure(&format!("[admin]\nlisten = \"{admin}\""));
    wait::within("the gate to start again", gate.start_again()).await;
    operator.perform(json!(["ready"])).await;
    // Ignore the browser's reports about requests that failed in the meantime.
    operator.perform(json!(["forgive", "net::ERR_"])).await;
    operator.close().await;
}
