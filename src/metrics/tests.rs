//! Tests the counters and the text that shows them.

mod format;

use super::*;
use crate::{
    bot::{AcceptedProofs, AgentPattern, Bot, Bots, Cause, Enforcement, Identity},
    decision::{Decision, Reason},
    evidence::EvidenceState,
    seal::SealState,
    store::Memory,
};

fn snapshot() -> Snapshot {
    Snapshot {
        generation: 3,
        draining: false,
        limits: vec![("max-connections", 1), ("header-timeout", 0)],
        memory: Memory {
            origins: 2,
            bytes: 1000,
            max_bytes: 2000,
            fetches: 1,
        },
        tdmrep_bytes: 300,
        pace_waiting: 2,
        copies: vec![("rules", 2), ("unreachable", 0)],
        disk: Some(DiskUse {
            bytes: Some(5000),
            max_bytes: 10_000,
            waiting: 1,
            failures: 2,
        }),
        disk_fails: true,
        evidence: Some(EvidenceState {
            texts: 3,
            bytes: 700,
            max_bytes: 9000,
            failures: 4,
            trouble: Some("the disk is full".to_owned()),
        }),
        seal: Some(SealState { lines: 12, fails: true }),
        fleet_connected: Some(true),
        leaves: 1,
        connections_max: 65_536,
        client_limits: [
            ("max-client-connections", 4096),
            ("max-client-requests", 4095),
            ("max-client-fetches", 4094),
        ],
        fetches_max: 1024,
        authority_ends: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000)),
        tunnel_entry_ends: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(2_000)),
        audit_waiting_bytes: 17,
        audit_stalled: true,
        process: Process::read(),
    }
}

fn bot(name: &str) -> Arc<Bot> {
    Arc::new(Bot {
        name: name.into(),
        user_agents: vec![AgentPattern::new(name).expect("a pattern")],
        robots_agents: Vec::new(),
        enforcement: Enforcement::Enforce,
        exempt_hosts: Vec::new(),
        delay: None,
        purposes: crate::usage::Purposes::default(),
        accepted_proofs: AcceptedProofs::default(),
    })
}

fn meter(metrics: &Arc<Metrics>, bots: &[Arc<Bot>]) -> Meter {
    Meter::new(metrics.clone(), &Bots::new(bots.to_vec()))
}

fn decision(identity: Identity<'_>, verdict: Verdict, reason: Reason) -> Decision {
    Decision::sample(identity, verdict, reason)
}

fn lines(metrics: &Arc<Metrics>, start: &str) -> Vec<String> {
    let text = metrics.text(snapshot(), Format::Prometheus);
    let lines = text.lines().filter(|line| line.starts_with(start));
    lines.map(str::to_owned).collect()
}

#[test]
fn decisions_are_counted_by_verdict_and_configured_bot() {
    let metrics = Arc::new(Metrics::default());
    let bots = [bot("a"), bot("b")];
    let meter = meter(&metrics, &bots);
    let rule = |forwarded| {
        let mut rule = decision(Identity::Bot(bots[1].clone()), Verdict::Deny, Reason::Rule);
        rule.forwarded = forwarded;
        rule
    };
    meter.decided(&rule(false));
    meter.decided(&rule(false));
    meter.decided(&rule(true));
    meter.decided(&decision(
        Identity::Token("Anything".into()),
        Verdict::Allow,
        Reason::NoRule,
    ));
    meter.decided(&decision(
        Identity::Unidentified(Cause::Missing),
        Verdict::Deny,
        Reason::Unidentified,
    ));
    assert_eq!(
        lines(&metrics, "robotgate_decisions_total"),
        [
            r#"robotgate_decisions_total{verdict="allow",reason="no-rule",bot="other",enforcement="enforce",forwarded="true"} 1"#,
            r#"robotgate_decisions_total{verdict="deny",reason="unidentified",bot="none",enforcement="enforce",forwarded="false"} 1"#,
            r#"robotgate_decisions_total{verdict="deny",reason="rule",bot="b",enforcement="enforce",forwarded="false"} 2"#,
            r#"robotgate_decisions_total{verdict="deny",reason="rule",bot="b",enforcement="enforce",forwarded="true"} 1"#,
        ]
    );
    assert_eq!(
        [Verdict::Allow, Verdict::Deny, Verdict::Unverifiable].map(|verdict| metrics.decisions(verdict)),
        [1, 4, 0]
    );
}

#[test]
fn forbidden_uses_are_counted_once_for_each_vocabulary() {
    use crate::{
        decision::UsageReport,
        usage::{Purpose, UseSource, UseStatement, Vocabulary, VocabularyPolicy},
    };
    let metrics = Arc::new(Metrics::default());
    let meter = meter(&metrics, &[]);
    let said = |vocabulary, purpose, allowed, policy| UseStatement {
        vocabulary,
        label: "x",
        purpose,
        allowed,
        source: UseSource::Line(1),
        policy,
    };
    let usage = UsageReport {
        said: vec![
            said(
                Vocabulary::ContentSignal,
                Purpose::AiTrain,
                false,
                VocabularyPolicy::Report,
            ),
            said(
                Vocabulary::ContentUsage,
                Purpose::AiTrain,
                false,
                VocabularyPolicy::Enforce,
            ),
            said(
                Vocabulary::ContentUsage,
                Purpose::Search,
                true,
                VocabularyPolicy::Enforce,
            ),
        ],
        ..UsageReport::default()
    };
    let without = decision(Identity::Token("a".into()), Verdict::Deny, Reason::Usage);
    let mut decision = without.clone();
    decision.usage = Some(Box::new(usage));
    meter.decided(&decision);
    meter.decided(&without);
    // A decision is counted once for each vocabulary, even if the vocabulary forbids AI training twice.
    let forbids = |vocabulary| said(vocabulary, Purpose::AiTrain, false, VocabularyPolicy::Report);
    let mut decision = decision;
    decision.add_said(&[Vocabulary::ContentUsage, Vocabulary::XRobotsTag, Vocabulary::XRobotsTag].map(forbids));
    meter.decided(&decision);
    assert_eq!(
        lines(&metrics, "robotgate_usage_total"),
        [
            r#"robotgate_usage_total{vocabulary="content-signal",purpose="ai-train",policy="report"} 2"#,
            r#"robotgate_usage_total{vocabulary="x-robots-tag",purpose="ai-train",policy="report"} 1"#,
            r#"robotgate_usage_total{vocabulary="content-usage",purpose="ai-train",policy="enforce"} 2"#,
        ]
    );
}

#[test]
fn counts_of_a_bot_continue_after_a_reload() {
    let metrics = Arc::new(Metrics::default());
    let rule = |identity| decision(identity, Verdict::Deny, Reason::Rule);
    for bots in [[bot("a"), bot("b")], [bot("b"), bot("c")]] {
        let meter = meter(&metrics, &bots);
        for bot in bots {
            meter.decided(&rule(Identity::Bot(bot)));
        }
    }
    let counts = lines(&metrics, "robotgate_decisions_total").into_iter();
    let counts: Vec<String> = counts
        .map(|line| line.rsplit(' ').next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(counts, ["1", "2", "1"]);
}

#[test]
fn bots_over_the_limit_or_with_reserved_names_count_as_other() {
    let metrics = Arc::new(Metrics::default());
    let many: Vec<_> = (0..MAX_BOTS + 5).map(|number| bot(&format!("bot{number}"))).collect();
    let mut bots = vec![bot("other"), bot("none")];
    bots.extend(many);
    let meter = meter(&metrics, &bots);
    let rule = |identity| decision(identity, Verdict::Deny, Reason::Rule);
    for bot in &bots {
        meter.decided(&rule(Identity::Bot(bot.clone())));
    }
    meter.decided(&rule(Identity::Token("x".into())));
    let lines = lines(&metrics, "robotgate_decisions_total");
    assert_eq!(lines.len(), MAX_BOTS + 2);
    let other = r#"robotgate_decisions_total{verdict="deny",reason="rule",bot="other",enforcement="enforce",forwarded="false"} 7"#;
    assert!(lines.iter().any(|line| line == other), "{:?}", &lines[..2]);
    assert_eq!(metrics.decisions(Verdict::Deny), MAX_BOTS as u64 + 8);
}

#[test]
fn open_connections_and_tunnels_are_counted_until_dropped() {
    let metrics = Arc::new(Metrics::default());
    let first = metrics.connection_opened(Listener::Http);
    let second = metrics.connection_opened(Listener::Tls);
    let tunnel = metrics.tunnel_opened(Tunnel::Blind);
    assert_eq!((metrics.connections(), metrics.tunnels()), (2, 1));
    drop((first, tunnel));
    assert_eq!((metrics.connections(), metrics.tunnels()), (1, 0));
    drop(second);
    assert_eq!(
        lines(&metrics, "robotgate_connections"),
        [
            r#"robotgate_connections{listener="http"} 0"#,
            r#"robotgate_connections{listener="tls"} 0"#,
            "robotgate_connections_max 65536",
            r#"robotgate_connections_accepted_total{listener="http"} 1"#,
            r#"robotgate_connections_accepted_total{listener="tls"} 1"#,
        ]
    );
}

#[test]
fn an_ended_exchange_is_counted_by_its_outcome() {
    let metrics = Arc::new(Metrics::default());
    let ended = ExchangeEnd {
        method: Method::from(&http::Method::GET),
        outcome: Outcome::Forwarded,
        status: Some(204),
        error: None,
        bytes_in: 3,
        bytes_out: 5,
        took: Some(Duration::from_millis(2)),
    };
    metrics.ended(&ended);
    metrics.ended(&ExchangeEnd {
        method: Method::from(&http::Method::TRACE),
        outcome: Outcome::Error,
        status: None,
        error: Some(ProxyError::ClientGone),
        took: None,
        ..ended
    });
    let some = |start: &str| {
        let mut lines = lines(&metrics, start);
        lines.retain(|line| !line.ends_with(" 0"));
        lines
    };
    assert_eq!(
        some("robotgate_requests_total"),
        [
            r#"robotgate_requests_total{method="GET",outcome="forwarded"} 1"#,
            r#"robotgate_requests_total{method="other",outcome="error"} 1"#,
        ]
    );
    assert_eq!(
        some("robotgate_responses_total"),
        [r#"robotgate_responses_total{class="2xx"} 1"#]
    );
    assert_eq!(
        some("robotgate_errors_total"),
        [r#"robotgate_errors_total{type="client_gone"} 1"#]
    );
    assert_eq!(
        some("robotgate_received_bytes_total"),
        ["robotgate_received_bytes_total 6"]
    );
    assert_eq!(
        some("robotgate_exchange_seconds_count"),
        ["robotgate_exchange_seconds_count 1"]
    );
    assert_eq!(metrics.requests(), 2);
}

#[test]
fn the_metrics_show_a_rejected_reload_until_one_succeeds() {
    let metrics = Arc::new(Metrics::default());
    let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    let shown = || {
        let mut lines = lines(&metrics, "robotgate_config_");
        lines.retain(|line| !line.contains("generation"));
        lines
            .into_iter()
            .map(|line| line.rsplit(' ').next().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(shown()[0], "1");
    metrics.reloads.note(true, at(100));
    metrics.reloads.note(false, at(200));
    assert_eq!(shown(), ["0", "200.0", "100.0", "1", "1"]);
    metrics.reloads.note(true, at(300));
    assert_eq!(shown(), ["1", "300.0", "300.0", "2", "1"]);
}
