//! The dashboard and the alert rules in `conf` ask for what there is: metrics of a scrape, sections of
//! the README. Whether the rules fire when they should is `promtool`'s to test (`tests/prometheus`).

use std::collections::BTreeSet;

use robotgate::decision::Reason;
use serde_json::Value;

use crate::support::Gate;

const DASHBOARD: &str = include_str!("../../conf/grafana.json");
const ALERTS: &str = include_str!("../../conf/prometheus-alerts.yml");
const README: &str = include_str!("../../README.md");

#[tokio::test]
async fn every_metric_that_they_name_is_in_a_scrape() {
    let gate = Gate::start().await;
    let scrape = gate.admin("/metrics").await.text();
    let exposed = exposed(&scrape);

    for (file, text) in [("grafana.json", DASHBOARD), ("prometheus-alerts.yml", ALERTS)] {
        let named = named(text);
        assert!(named.len() > 15, "{file} names few metrics: {named:?}");
        let unknown: Vec<_> = named.difference(&exposed).collect();
        assert!(unknown.is_empty(), "{file} names {unknown:?}, of {exposed:?}");
    }
}

#[tokio::test]
async fn they_tell_decisions_apart_by_labels_that_decisions_have() {
    let gate = Gate::start().await;
    gate.get("http://a.example/").without("User-Agent").await;
    let scrape = gate.admin("/metrics").await.text();
    let made = scrape
        .lines()
        .find_map(|line| line.strip_prefix("robotgate_decisions_total{"));
    let known: BTreeSet<&str> = labels(made.expect("a decision was made"))
        .chain(["job", "instance"])
        .collect();

    for (file, text) in [
        ("grafana.json", DASHBOARD.replace('\\', "")),
        ("prometheus-alerts.yml", ALERTS.to_owned()),
    ] {
        let asked: BTreeSet<&str> = text
            .split("robotgate_decisions_total{")
            .skip(1)
            .flat_map(labels)
            .collect();
        assert!(asked.contains("forwarded"), "{file} asks by {asked:?}");
        assert!(asked.is_subset(&known), "{file} asks by {asked:?}, of {known:?}");
    }
}

#[test]
fn the_readme_lists_every_reason_in_order() {
    let (_, table) = README
        .split_once("| reason | the request is |\n| --- | --- |\n")
        .expect("the table");
    let words = table
        .lines()
        .map_while(|row| row.strip_prefix("| `")?.split_once("` | "));
    let words: Vec<&str> = words.map(|(word, _)| word).collect();
    assert_eq!(words, Reason::ALL.map(Reason::as_str));
}

#[test]
fn every_section_that_the_alerts_send_to_is_in_the_readme() {
    let headings: BTreeSet<&str> = README
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| line.trim_start_matches('#').trim())
        .collect();
    let text = ALERTS.split_whitespace().collect::<Vec<_>>().join(" ");

    let mut sent = 0;
    for rest in text.split("See \"").skip(1) {
        let (sections, _) = rest.split_once("\".").expect("the name of a section ends in \".");
        for section in sections.split("\" and \"") {
            assert!(headings.contains(section), "the README has no {section:?}");
            sent += 1;
        }
    }
    assert!(sent > 10, "{sent}");
}

#[test]
fn every_panel_says_what_it_shows_and_asks_the_chosen_source() {
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

/// The names of the labels in a selector or a sample, from behind its `{` on.
fn labels(text: &str) -> impl Iterator<Item = &str> {
    let (inside, _) = text.split_once('}').expect("labels end");
    // Values hold no comma.
    inside.split(',').filter_map(|label| label.split(['=', '!']).next())
}

/// The names of the series that a scrape may have, in Prometheus' own format.
fn exposed(scrape: &str) -> BTreeSet<String> {
    let families = scrape
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

/// The names of metrics in a file, those in its comments and descriptions included.
fn named(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with("robotgate_") || word.starts_with("process_"))
        .map(str::to_owned)
        .collect()
}
