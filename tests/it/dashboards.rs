//! The dashboard and the alert rules in `conf` use only metrics and pages of the documentation that exist, and the
//! documentation lists every metric, reason and kind of answer. `promtool` tests when the rules fire
//! (`tests/prometheus`).

use std::{collections::BTreeSet, fs, path::Path};

use robotgate::{copy::AnswerKind, decision::Reason};
use serde_json::Value;

use crate::{
    docs,
    support::{Gate, same_members},
};

const DASHBOARD: &str = include_str!("../../conf/grafana.json");
const ALERTS: &str = include_str!("../../conf/prometheus-alerts.yml");
/// A metric about exceptions from interception exists only if the configuration has such an exception.
const TUNNEL: &str = "[[https.tunnel]]\nhost = \"bank.example\"\nreason = \"pins\"\nuntil = 2100-01-01\n";

#[tokio::test]
async fn every_metric_in_dashboards_and_alerts_exists() {
    let gate = Gate::with(TUNNEL).await;
    let metrics = gate.admin("/metrics").await.text();
    let exposed = exposed(&metrics);

    for (file, text) in [("grafana.json", DASHBOARD), ("prometheus-alerts.yml", ALERTS)] {
        let named = named(text);
        assert!(named.len() > 15, "{file} names few metrics: {named:?}");
        let unknown: Vec<_> = named.difference(&exposed).collect();
        assert!(unknown.is_empty(), "{file} names {unknown:?}, of {exposed:?}");
    }
}

#[tokio::test]
async fn the_documentation_lists_every_metric_with_its_type() {
    let gate = Gate::with(TUNNEL).await;
    let metrics = gate.admin("/metrics").await.text();
    let exposed: Vec<&str> = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .collect();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/monitoring.md");
    let page = fs::read_to_string(page).expect("there is a page about monitoring");
    let rows = page.lines().filter_map(|row| {
        let (names, row) = row.strip_prefix("| `")?.split_once("` | ")?;
        let (kind, _) = row.split_once(" |")?;
        let is_metric = ["counter", "gauge", "histogram"].contains(&kind);
        is_metric.then(|| names.split("`, `").map(move |name| format!("{name} {kind}")))
    });
    let listed: Vec<String> = rows.flatten().collect();
    same_members("docs/monitoring.md", listed.iter().map(String::as_str), &exposed);
}

#[tokio::test]
async fn dashboards_and_alerts_use_only_existing_decision_labels() {
    let gate = Gate::start().await;
    gate.get("http://a.example/").without("User-Agent").await;
    let metrics = gate.admin("/metrics").await.text();
    let made = metrics
        .lines()
        .find_map(|line| line.strip_prefix("robotgate_decisions_total{"));
    let known: BTreeSet<&str> = labels(made.expect("a decision was made"))
        .chain(["job", "instance"])
        .collect();

    for (file, text) in [
        ("grafana.json", DASHBOARD.replace('\\', "")),
        ("prometheus-alerts.yml", ALERTS.to_owned()),
    ] {
        let used: BTreeSet<&str> = text
            .split("robotgate_decisions_total{")
            .skip(1)
            .flat_map(labels)
            .collect();
        assert!(used.contains("forwarded"), "{file} asks by {used:?}");
        assert!(used.is_subset(&known), "{file} asks by {used:?}, of {known:?}");
    }
}

#[test]
fn the_documentation_lists_every_reason_in_order() {
    let tables = tables("docs/responses.md");
    let reasons = Reason::ALL.map(Reason::as_str);
    assert!(
        tables.contains(&reasons.map(str::to_owned).to_vec()),
        "no table of docs/responses.md lists exactly {reasons:?}"
    );
}

#[test]
fn the_documentation_lists_every_kind_of_answer_in_order() {
    let tables = tables("docs/audit-log.md");
    let kinds = AnswerKind::ALL.map(AnswerKind::as_str);
    assert!(
        tables.contains(&kinds.map(str::to_owned).to_vec()),
        "none of {tables:#?} is {kinds:?}"
    );
    let list = kinds.map(|word| format!("`{word}`")).join(", ");
    assert!(read("docs/monitoring.md").contains(&list), "the states are not {list}");
}

/// Returns the words in the first column of each table of a page.
fn tables(page: &str) -> Vec<Vec<String>> {
    let page = read(page);
    let tables = page.split("\n\n").map(|table| {
        let words = table
            .lines()
            .filter_map(|row| row.strip_prefix("| `")?.split_once("` | "));
        words.map(|(word, _)| word.to_owned()).collect()
    });
    tables.collect()
}

fn read(page: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(page)).expect("there is this page")
}

#[test]
fn every_page_linked_from_dashboards_and_alerts_exists() {
    for (file, text) in [("grafana.json", DASHBOARD), ("prometheus-alerts.yml", ALERTS)] {
        let mut sent = 0;
        let words = text.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\\' | '(' | ')' | ','));
        for page in words.filter(|word| word.starts_with("docs/")) {
            let page = page.trim_end_matches('.');
            let page = page.split('#').next().unwrap_or_default();
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
            assert!(path.exists(), "{file} sends to {page}, which is not there");
            sent += 1;
        }
        assert!(sent > 0, "{file} sends to no page");
    }
}

#[test]
fn every_alert_names_its_page_of_the_documentation() {
    let alerts = ALERTS.split("- alert: ").skip(1);
    let mut count = 0;
    for alert in alerts {
        let name = alert.lines().next().expect("a name");
        let page = alert
            .lines()
            .find_map(|line| line.trim().strip_prefix("documentation: "));
        let page = page.unwrap_or_else(|| panic!("{name} names no page"));
        assert!(page.starts_with("docs/") && page.contains(".md#"), "{name}: {page}");
        assert_eq!(docs::broken(page), None, "{name}: {page}");
        count += 1;
    }
    assert!(count > 30, "{count}");
}

#[test]
fn every_panel_has_a_description_and_uses_the_chosen_source() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("it is JSON");
    let panels = dashboard["panels"].as_array().expect("it has panels");
    let ids: BTreeSet<u64> = panels.iter().filter_map(|panel| panel["id"].as_u64()).collect();
    assert_eq!(ids.len(), panels.len(), "each has an id of its own");

    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        let title = &panel["title"];
        assert!(
            panel["description"].as_str().is_some_and(|text| !text.is_empty()),
            "{title}"
        );
        for target in panel["targets"].as_array().expect("it asks for something") {
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{title}");
            let asks = target["expr"].as_str().unwrap_or_default();
            assert!(
                asks.contains(r#"{job=~"$job",instance=~"$instance""#),
                "{title}: {asks}"
            );
        }
    }
}

/// Returns the names of the labels in a selector or a sample, of which `text` is the part after the `{`.
fn labels(text: &str) -> impl Iterator<Item = &str> {
    let (inside, _) = text.split_once('}').expect("labels end");
    // Values contain no comma.
    inside.split(',').filter_map(|label| label.split(['=', '!']).next())
}

/// Returns the names of the series in a scrape in Prometheus' own format.
fn exposed(metrics: &str) -> BTreeSet<String> {
    let families = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    families
        .flat_map(|(name, kind)| {
            let suffixes: &[&str] = match kind {
                "histogram" => &["_bucket", "_sum", "_count"],
                _ => &[""],
            };
            suffixes.iter().map(move |suffix| format!("{name}{suffix}"))
        })
        .collect()
}

/// Returns the names of metrics in a file, including those in comments and descriptions.
fn named(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with("robotgate_") || word.starts_with("process_"))
        .map(str::to_owned)
        .collect()
}
