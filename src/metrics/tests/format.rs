//! Tests that parsers can read the text of the metrics.

use std::collections::HashSet;

use super::*;

fn full() -> Arc<Metrics> {
    let metrics = Arc::new(Metrics::default());
    let odd = bot("a\"b\\c");
    meter(&metrics, std::slice::from_ref(&odd)).decided(&decision(
        Identity::Bot(odd.clone()),
        Verdict::Deny,
        Reason::Rule,
    ));
    metrics.decision_took(Duration::from_micros(3), Some(Duration::ZERO));
    metrics
}

/// Returns the name of each family, its type and the names of its samples. Checks that each family occurs once and has
/// a help text, that its lines follow one another, and that no series occurs twice.
fn families(text: &str) -> Vec<(String, String, Vec<String>)> {
    let mut families: Vec<(String, String, Vec<String>)> = Vec::new();
    let (mut help, mut series) = (None, HashSet::new());
    for line in text.lines().filter(|line| *line != "# EOF") {
        if let Some(declared) = line.strip_prefix("# HELP ") {
            let (name, text) = declared.split_once(' ').expect("a help");
            assert!(!text.is_empty(), "{line}");
            help = Some(name.to_owned());
        } else if let Some(declared) = line.strip_prefix("# TYPE ") {
            let (name, kind) = declared.split_once(' ').expect("a type");
            assert_eq!(help.take().as_deref(), Some(name));
            assert!(families.iter().all(|(other, ..)| other != name), "{name} comes twice");
            families.push((name.to_owned(), kind.to_owned(), Vec::new()));
        } else {
            let (name, value) = line.rsplit_once(' ').expect("a value");
            assert!(series.insert(name.to_owned()), "{name} comes twice");
            assert!(value.parse::<f64>().is_ok_and(|value| value >= 0.0), "{line}");
            let end = name.find('{').unwrap_or(name.len());
            let (_, _, samples) = families.last_mut().expect("a family");
            samples.push(name[..end].to_owned());
        }
    }
    families
}

fn suffixes(kind: &str) -> &'static [&'static str] {
    match kind {
        "histogram" => &["_sum", "_count", "_bucket"],
        "gauge" => &[""],
        _ => panic!("{kind}"),
    }
}

#[test]
fn openmetrics_declares_a_counter_without_its_suffix() {
    let text = full().text(snapshot(), Format::OpenMetrics);
    assert!(text.ends_with("\n# EOF\n"));
    for (name, kind, samples) in families(&text) {
        let suffixes = if kind == "counter" {
            &["_total"]
        } else {
            suffixes(&kind)
        };
        assert!(!name.ends_with("_total"), "{name}");
        for sample in samples {
            assert!(
                suffixes.iter().any(|suffix| sample == format!("{name}{suffix}")),
                "{sample} of {name}"
            );
        }
    }
}

#[test]
fn the_older_format_declares_a_counter_by_its_whole_name() {
    let text = full().text(snapshot(), Format::Prometheus);
    assert!(!text.contains("# EOF"));
    for (name, kind, samples) in families(&text) {
        let suffixes = if kind == "counter" { &[""] } else { suffixes(&kind) };
        assert_eq!(name.ends_with("_total"), kind == "counter", "{name}");
        for sample in samples {
            assert!(
                suffixes.iter().any(|suffix| sample == format!("{name}{suffix}")),
                "{sample} of {name}"
            );
        }
    }
}

#[test]
fn both_formats_have_the_same_samples() {
    let metrics = full();
    let of = |format| {
        let text = metrics.text(snapshot(), format);
        let samples = text
            .lines()
            .filter(|line| !line.starts_with('#') && !line.starts_with("process_"));
        samples.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(of(Format::OpenMetrics), of(Format::Prometheus));
}

#[test]
fn every_known_label_value_has_a_series_from_the_start() {
    let text = Arc::new(Metrics::default()).text(snapshot(), Format::Prometheus);
    for error in ProxyError::ALL {
        let series = format!("robotgate_errors_total{{type=\"{}\"}} 0", error.as_str());
        assert!(text.contains(&series), "{series}");
    }
    assert!(text.contains("robotgate_robots_fetches_total{result=\"3xx-loop\"} 0"));
    assert!(text.contains("robotgate_limits_total{limit=\"max-connections\"} 1"));
}

#[test]
fn bot_names_are_escaped_and_histogram_buckets_are_cumulative() {
    let text = full().text(snapshot(), Format::Prometheus);
    assert!(text.contains(r#"bot="a\"b\\c""#));
    let buckets = text
        .lines()
        .filter(|line| line.starts_with("robotgate_decision_seconds_bucket"));
    let counts = buckets.map(|line| line.rsplit(' ').next().unwrap_or_default());
    assert_eq!(counts.take(4).collect::<Vec<_>>(), ["0", "0", "1", "1"]);
    assert!(text.contains("robotgate_decision_seconds_bucket{le=\"+Inf\"} 1"));
}
