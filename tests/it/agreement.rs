//! All ways to ask the same question give the same answer: the proxy's decision in the log and in its response,
//! `/api/v1/decide`, `/api/v1/explain` (its `decision` and its `report`), `robotgate explain` and `[[expect]]`. If two
//! of these answers have the same field, the tests compare the values.
//!
//! These differences are intended:
//!
//! - The API and the commands assume the proof that the bot needs, unless the question says otherwise. They cannot be
//!   asked about a wrong proof.
//! - A command fetches the robots.txt itself, because it has no copies. So its times differ, it does not know a
//!   robots.txt that the site has stopped serving, and it says what was wrong with redirects.
//! - A question does not count as a request to the site. So for a request that comes too early, only the proxy says
//!   `defer`. The API says what the site allows, and when the request may come.

mod doors;
mod row;
mod sites;
mod table;
mod views;

use robotgate::{bot::SecretHash, copy::AnswerKind, decision::Reason};
use serde_json::{Value, json};

use self::{
    doors::{Proxied, ask_api, command, command_config, decide, explain_all, origin_of},
    row::Row,
    sites::{SITES, Sites},
    table::{ACME, AUDITOR, CONFIG, LATE_ROWS, ROWS, TableRow},
};
use crate::{
    admin::{escaped, get, problem},
    support::{Certificate, CliOutput, Gate, same_members, wait},
    tls_listener,
};

struct Setup {
    mode: &'static str,
    /// Keys in `[identity]`.
    identity: &'static str,
    /// The end of the configuration. It begins inside the section `[https]`.
    more: &'static str,
    /// Whether the proxy or the API is asked first, while there is no copy yet.
    first: First,
    rows: &'static [TableRow],
    /// The index of this gate's answer among the answers of a row.
    column: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum First {
    Proxy,
    Api,
}

const INTERCEPT: Setup = Setup {
    mode: "intercept",
    identity: "",
    more: "",
    first: First::Api,
    rows: ROWS,
    column: 0,
};

#[tokio::test]
async fn all_interfaces_agree_on_intercepted_requests() {
    INTERCEPT.ask_all().await;
}

#[tokio::test]
async fn all_interfaces_agree_on_tunnels() {
    let setup = Setup {
        mode: "tunnel",
        first: First::Proxy,
        column: 1,
        ..INTERCEPT
    };
    setup.ask_all().await;
}

#[tokio::test]
async fn all_interfaces_agree_on_unverifiable_tunnels() {
    let setup = Setup {
        mode: "tunnel",
        identity: "unidentified = 'wildcard'",
        more: "unverifiable = 'allow'",
        column: 2,
        ..INTERCEPT
    };
    setup.ask_all().await;
}

#[tokio::test]
async fn all_interfaces_agree_if_every_connect_is_refused() {
    let setup = Setup {
        mode: "refuse",
        identity: "unidentified = 'wildcard'",
        first: First::Proxy,
        column: 3,
        ..INTERCEPT
    };
    setup.ask_all().await;
}

#[tokio::test]
async fn all_interfaces_agree_if_a_proof_is_required() {
    let setup = Setup {
        identity: REQUIRED,
        first: First::Proxy,
        ..INTERCEPT
    };
    setup.ask_all().await;
}

#[tokio::test]
async fn all_interfaces_agree_on_old_copies_and_on_the_pace() {
    let setup = Setup {
        more: LATE,
        rows: LATE_ROWS,
        ..INTERCEPT
    };
    setup.ask_all().await;
}

#[test]
fn the_table_of_rows_covers_every_reason_and_every_kind_of_answer() {
    let rows = || ROWS.iter().chain(LATE_ROWS);
    let reasons = rows()
        .flat_map(|(.., answers)| *answers)
        .filter(|answer| **answer != "own");
    let reasons = reasons.map(|answer| &answer[1..]);
    same_members("tests/it/agreement/table.rs", reasons, &Reason::ALL.map(Reason::as_str));

    let of_site = |rows: &'static [TableRow], name: &str| {
        let has_site = |(_, what, _): &TableRow| what.split(' ').nth(1) == Some(name);
        rows.iter().any(has_site)
    };
    let kinds = SITES.iter().flat_map(|site| {
        let first = of_site(ROWS, site.name).then_some(site.holds);
        let late = of_site(LATE_ROWS, site.name).then_some(site.holds_late);
        first.into_iter().chain(late)
    });
    // Rows with `inside.example` expect this kind of answer. `SITES` does not contain this site.
    let kinds = kinds.chain(["egress"]);
    // No decision is based on a copy that has expired: robotgate fetches it first.
    let kinds = kinds.chain(["expired"]);
    same_members(
        "tests/it/agreement/table.rs",
        kinds,
        &AnswerKind::ALL.map(AnswerKind::as_str),
    );
}

// === impl Setup ===

impl Setup {
    async fn start(&self) -> Gate {
        let Self {
            mode, identity, more, ..
        } = self;
        let config = format!("[identity]\ncredentials = 'credentials'\n{identity}\n{CONFIG}");
        let config = [
            &config,
            tls_listener::CONFIG,
            "[https]\nmode = ",
            &format!("'{mode}'\n"),
            more,
        ]
        .concat();
        let lines = [ACME, AUDITOR].map(|credential| {
            let (name, secret) = credential.split_once(':').expect("a name and a secret");
            SecretHash::new([7; 16], secret.as_bytes()).line(name) + "\n"
        });
        let (certificate, key) = Certificate::of(&[tls_listener::PROXY]).to_pem();
        let gate = Gate::builder()
            .config(&config)
            // The gate does not repeat a failed fetch while the questions are asked.
            .set("robots.unreachable.retry-first=1h")
            .credentials(&lines.concat())
            .put("proxy.pem", certificate)
            .put("proxy-key.pem", key);
        gate.start().await
    }

    async fn ask_all(&self) {
        let sites = Sites::spawn().await;
        let gate = self.start().await;
        gate.dns().point("inside.example", [10, 0, 0, 1]);
        let is_late = self.more == LATE;
        let rows = self.rows.iter();
        let rows: Vec<Row> = rows
            .map(|row| Row::new(row, self.column, is_late, &sites, &gate))
            .collect();
        let rows: Vec<Row> = rows.into_iter().map(|row| self.with_required_proof(row)).collect();
        for url in rows.iter().filter(|row| row.holds == "last-copy").map(|row| &row.url) {
            until_robots_txt_is_lost(&gate, url).await;
        }

        let asked: Vec<Row> = rows.iter().filter(|row| row.can_be_asked()).cloned().collect();
        let decided_first = match self.first {
            First::Api => Some(decide(&gate, &asked).await),
            First::Proxy => None,
        };
        let mut proxied = Vec::new();
        for row in &rows {
            proxied.push(match row.can_be_sent() {
                true => Some(Proxied::ask(&gate, self.mode, row).await),
                false => None,
            });
        }
        let decided = match decided_first {
            Some(decided) => decided,
            None => decide(&gate, &asked).await,
        };
        let config = command_config(&gate, &rows);
        let commands = explain_all(&config, &asked).await;
        let check = CliOutput::of(&["check", &config], "").await;

        let mut wrong = Vec::new();
        let mut others = decided.iter().zip(&commands);
        for (row, proxied) in rows.iter().zip(&proxied) {
            let other = if row.can_be_asked() { others.next() } else { None };
            let found = match row.is_own() {
                true => own(&gate, row, proxied.as_ref(), other, &check).await,
                false => compare(&gate, row, proxied.as_ref(), other, &check).await,
            };
            wrong.extend(found.into_iter().map(|what| {
                let url = row.url.get(..100).unwrap_or(&row.url);
                format!("{} {url} ({}): {what}", row.client.name, row.expected)
            }));
        }
        assert!(wrong.is_empty(), "{}\n", wrong.join("\n"));
    }

    fn with_required_proof(&self, row: Row) -> Row {
        let is_unproven = row.proof() == "none" && self.identity == REQUIRED && !row.is_own();
        let expected = if is_unproven { "-unauthenticated" } else { row.expected };
        Row { expected, ..row }
    }
}

/// Compares all answers to the question of a row. Returns what is wrong.
async fn compare(
    gate: &Gate,
    row: &Row,
    proxied: Option<&Proxied>,
    other: Option<(&Value, &CliOutput)>,
    check: &CliOutput,
) -> Vec<String> {
    let mut answers = proxied.map(Proxied::views).unwrap_or_default();
    let mut wrong = Vec::new();
    if let Some(proxied) = proxied {
        let Some(record) = &proxied.record else {
            return vec!["the proxy has decided nothing".to_owned()];
        };
        if !record["robots_fetched"].is_null() {
            answers.push(("the origin", origin_of(gate, record).await));
        }
    }
    let mut asked = Vec::new();
    if let Some((decided, command_output)) = other {
        asked.push(("decide on several", views::decision(decided)));
        asked.extend(ask_api(gate, row).await);
        if row.can_be_fetched() {
            asked.push(("the command", command(command_output)));
        }
        if row.is_deferred() && decided["not_before"].is_null() {
            wrong.push("the API does not say when".to_owned());
        }
    }
    let (whom, view) = answers.iter().chain(&asked).next().expect("somebody is asked");
    let outcome = json!(["verdict", "reason", "forwarded"].map(|name| view.get(name)));
    if outcome != row.outcome() {
        wrong.push(format!("{whom} says {outcome}, and not {}", row.outcome()));
    }
    let holds = answers.iter().find_map(|(_, view)| view.get("holds"));
    if let Some(holds) = holds.filter(|holds| **holds != row.holds) {
        wrong.push(format!("the origin holds {holds}, and not {}", row.holds));
    }
    if row.is_deferred() {
        wrong.extend(views::differences(&answers));
        for (_, view) in &mut answers {
            view.retain(|name, _| !OF_DEFERRAL.contains(name));
        }
    }
    answers.extend(asked);
    wrong.extend(views::differences(&answers));
    if let Some(error) = row.expectation_error()
        && !check.errors.contains(&error)
    {
        wrong.push(format!("check does not say: {error}"));
    }
    wrong
}

/// Checks that the proxy itself responds without a decision, and that the API and the commands say that they cannot
/// decide. Returns what is wrong.
async fn own(
    gate: &Gate,
    row: &Row,
    proxied: Option<&Proxied>,
    other: Option<(&Value, &CliOutput)>,
    check: &CliOutput,
) -> Vec<String> {
    let mut wrong = Vec::new();
    if proxied.is_none_or(|proxied| proxied.record.is_some()) {
        wrong.push("the proxy has decided it".to_owned());
    }
    let (decided, command) = other.expect("a question about the proxy itself can be asked");
    let explained = problem(gate, &format!("/api/v1/explain?{}", row.query()), 400).await;
    let checked = check.errors.lines().find(|line| line.contains(&row.url));
    for (whom, answer) in [
        ("decide", decided["error"].as_str().unwrap_or_default()),
        ("explain", &explained),
        ("the command", &command.errors),
        ("check", checked.unwrap_or_default()),
    ] {
        if !answer.contains("robotgate.internal is the proxy itself") {
            wrong.push(format!("{whom} says {answer:?}"));
        }
    }
    wrong
}

async fn until_robots_txt_is_lost(gate: &Gate, url: &str) {
    let path = format!("/api/v1/decide?agent=Shopper&url={}", escaped(url));
    wait::until_async("a robots.txt to expire", async || {
        let error = get(gate, &path).await["robots_error"].clone();
        (!error.is_null()).then_some(())
    })
    .await;
}

const REQUIRED: &str = "required = true";

/// A robotgate with this configuration uses an old robots.txt from the first failure on, and enforces `[pace]`.
const LATE: &str = r#"
[robots]
min-ttl = "1s"

[robots.unreachable]
deny-for = "0s"

[pace]
crawl-delay = "enforce"
beyond-max = "refuse"

[[bot]]
name = "snail"
user-agents = ["Snail"]
credentials = []
delay = "1h"
"#;

/// The fields that a deferral changes.
const OF_DEFERRAL: [&str; 7] = ["verdict", "reason", "forwarded", "rule", "line", "reading", "read_as"];
