//! Makes decisions, writes them as log lines like the proxy does, and decides them again from these lines.

use std::{
    net::SocketAddr,
    path::Path,
    time::{Duration, SystemTime},
};

mod usage;
mod what_if;

use serde_json::{Value, json};

use super::*;
use crate::{
    audit::{GenerationFields, Instance, RequestFacts, decision_line},
    bot::Proof,
    config::Environment,
    copy::{Failure, FetchError, Freshness, Lookup, Meaning, OriginState, Policy},
    decision::{DecisionTexts, Question, Scope, Subject, Tdmrep},
    origin::Target,
};

const CONFIG: &str = r#"
[https]
unverifiable = "allow"
[[https.tunnel]]
host = "bank.example"
reason = "pins its certificate"
until = 9000-01-01
[[bot]]
name = "A"
user-agents = ["A"]
exempt-hosts = ["own.example"]
[[bot]]
name = "Reporter"
user-agents = ["Reporter"]
enforcement = "report"
"#;
const ROBOTS: &str = "User-agent: A\nAllow: /private/open\nDisallow: /private\n\nUser-agent: *\nDisallow: /\n";

fn config(text: &str) -> Config {
    let environment = Environment::from_vars(|_| None);
    Config::parse_in(&environment, "robotgate.toml", text, Path::new("/")).expect("valid")
}

fn copy(text: &str) -> Arc<RobotsCopy> {
    Arc::new(RobotsCopy::new(
        Policy::default().profile,
        text.as_bytes(),
        SystemTime::now(),
    ))
}

#[derive(Clone)]
enum Found {
    Text(&'static str),
    Status(u16),
    Failed,
    /// The first fetch found this text, and all later ones failed for a long time.
    LastCopy(&'static str),
    FailedForLong,
    /// The request stopped waiting for the first fetch.
    Pending,
}

fn line(config: &Config, agent: &str, method: &str, url: &str, found: &Found) -> Value {
    line_with(config, agent, method, url, found, None)
}

fn line_with(config: &Config, agent: &str, method: &str, url: &str, found: &Found, tdmrep: Option<&str>) -> Value {
    let policy = &config.robots.policy;
    let now = SystemTime::now();
    let target = Target::parse(url).expect("a URL");
    let exception = config.https.tunnel_exception(&target.origin.host.to_string(), now);
    let is_connect = method == "CONNECT";
    let identity = config.bots.identify_by([agent.as_bytes()], &Proof::None, false);
    let question = Question {
        subject: Subject::of(identity),
        scope: match is_connect {
            true => Scope::Tunnel {
                exception: exception.map(|exception| exception.reason.clone()),
            },
            false => Scope::Path { alone: true },
        },
        target: match is_connect {
            true => Target::of_connect(target.origin),
            false => target,
        },
        terms: config.terms(1),
    };
    let long_ago = now - policy.unreachable.deny_for - Duration::from_secs(24 * 60 * 60);
    let after =
        |state: OriginState, meaning, status, at| state.after(meaning, status, Freshness::default(), at, 0.0, policy);
    let failed = || Meaning::Failed(Failure::from(FetchError::Status(503)));
    let unknown = OriginState::unknown();
    let state = match found {
        Found::Text(text) => after(unknown, Meaning::Rules(copy(text)), 200, now),
        Found::Status(status) => after(unknown, Meaning::NoRobots, *status, now),
        Found::Failed => after(unknown, failed(), 503, now),
        Found::FailedForLong => after(unknown, failed(), 503, long_ago),
        Found::Pending => unknown,
        Found::LastCopy(text) => after(
            after(
                unknown,
                Meaning::Rules(copy(text)),
                200,
                long_ago - Duration::from_secs(1),
            ),
            failed(),
            503,
            long_ago,
        ),
    };
    let lookup = Lookup {
        pending: matches!(found, Found::Pending),
        ..Lookup::at_once(Arc::new(state), now, policy)
    };
    let tdmrep = tdmrep.map(|file| (TdmRep::parse(file.as_bytes()), Sha256::of(file.as_bytes())));
    let tdmrep = match &tdmrep {
        Some((file, sha256)) => Tdmrep::Found(file, *sha256),
        None => Tdmrep::None,
    };
    let Ok(decision) = question.decide(None, |_| Ok::<_, std::convert::Infallible>(lookup), |_| Ok(tdmrep));
    let texts = DecisionTexts::of(&decision, "an-id", false);
    let generation = GenerationFields::new(1, &Instance::random(), config.canonical.sha256());
    let facts = RequestFacts {
        generation: &generation,
        client: SocketAddr::from(([127, 0, 0, 1], 1)),
        method,
        user_agent: Some(agent),
        privacy: &config.audit.privacy,
    };
    let line = decision_line(&decision, &texts, &facts);
    serde_json::from_slice(&line).expect("JSON")
}

fn outcome(line: &Value, config: &Config, text: Option<&str>) -> ReplayOutcome {
    let line = line.to_string();
    let logged: LoggedDecision<'_> = serde_json::from_str(&line).expect("a decision");
    // Like the store of evidence, find the text only by the digest in the line.
    let copy = text.map(copy).filter(|copy| logged.robots_sha256 == Some(copy.sha256));
    let texts = Texts {
        robots: copy.as_ref(),
        tdmrep: None,
    };
    replay(&logged, config, texts)
}

/// The expected reason, the User-Agent, the method, the URL, and what fetches of the robots.txt found.
fn cases() -> Vec<(&'static str, &'static str, &'static str, &'static str, Found)> {
    let text = || Found::Text(ROBOTS);
    vec![
        ("rule", "A", "GET", "http://a.example/private/x?q=%zz", text()),
        ("rule", "A", "GET", "http://a.example/private/open", text()),
        ("rule", "Other/1.0", "GET", "http://a.example/x", text()),
        ("rule", "Reporter", "GET", "http://a.example/x", text()),
        ("rule", "A", "GET", "http://a.example/x/../private", text()),
        ("no-rule", "A", "POST", "https://a.example/x", text()),
        ("robots-file", "A", "GET", "https://a.example/robots.txt", text()),
        ("exempt", "A", "GET", "https://own.example/private", text()),
        ("unidentified", "", "GET", "https://a.example/", text()),
        ("no-robots", "A", "GET", "https://a.example/private", Found::Status(404)),
        ("no-robots", "A", "GET", "https://a.example/private", Found::Status(301)),
        ("unreachable", "A", "GET", "https://a.example/", Found::Failed),
        (
            "unreachable-too-long",
            "A",
            "GET",
            "https://a.example/",
            Found::FailedForLong,
        ),
        (
            "last-copy",
            "A",
            "GET",
            "https://a.example/private",
            Found::LastCopy(ROBOTS),
        ),
        ("unverifiable", "A", "CONNECT", "https://bank.example", text()),
        ("rule", "", "CONNECT", "https://bank.example", text()),
    ]
}

#[test]
fn decisions_are_the_same_in_a_replay() {
    let config = config(CONFIG);
    let replayed = Config::for_replay(config.canonical.text()).expect("valid");
    for (reason, agent, method, url, found) in cases() {
        let line = line(&config, agent, method, url, &found);
        assert_eq!(line["reason"], reason, "{url}: {line}");
        assert_eq!(
            outcome(&line, &replayed, Some(ROBOTS)),
            ReplayOutcome::Same,
            "{reason} {url}: {line}"
        );
    }
}

#[test]
fn each_altered_field_is_found() {
    let config = config(CONFIG);
    let line = line(&config, "A", "GET", "http://a.example/private/x", &Found::Text(ROBOTS));
    for (field, value) in [
        ("verdict", json!("allow")),
        ("reason", json!("no-rule")),
        ("enforcement", json!("report")),
        ("forwarded", json!(true)),
        ("rule", json!("Disallow: /")),
        ("line", json!(2)),
        ("group", json!("*")),
        ("agent", json!("B")),
        ("reading", json!("strict")),
        ("exception", json!("none")),
        ("exemption", json!("enforcement")),
        ("origin", json!("http://b.example")),
        ("robots_url", json!("http://b.example/robots.txt")),
        ("identity", json!("product-token")),
        ("user_agent", json!("Reporter")),
        ("user_agent", Value::Null),
    ] {
        let mut altered = line.clone();
        altered[field] = value;
        match outcome(&altered, &config, Some(ROBOTS)) {
            ReplayOutcome::Different(differences) => {
                let field = if field == "user_agent" { "bot" } else { field };
                assert_eq!(differences[0].field, field, "{differences:?}");
            }
            other => panic!("{field}: {other:?}"),
        }
    }
    for (field, value) in [("url", json!("http://a.example/x")), ("bot", json!("Reporter"))] {
        let mut altered = line.clone();
        altered[field] = value;
        let found = outcome(&altered, &config, Some(ROBOTS));
        assert!(matches!(found, ReplayOutcome::Different(_)), "{field}: {found:?}");
    }
}

#[test]
fn a_fetch_that_was_running_is_not_a_failure() {
    let text = format!("{CONFIG}\n[robots.unreachable]\ndeny-for = \"0s\"\nthen = \"allow\"\n");
    let config = config(&text);
    let mut line = line(&config, "A", "GET", "https://a.example/", &Found::Pending);
    assert_eq!(
        (&line["verdict"], &line["reason"]),
        (&json!("deny"), &json!("unreachable"))
    );
    assert_eq!(outcome(&line, &config, None), ReplayOutcome::Same);
    for (field, value) in [
        ("verdict", json!("allow")),
        ("reason", json!("unreachable-too-long")),
        ("forwarded", json!(true)),
    ] {
        line[field] = value;
    }
    assert!(matches!(outcome(&line, &config, None), ReplayOutcome::Different(_)));
}

#[test]
fn a_replay_distinguishes_the_last_copy_from_a_current_one() {
    let config = config(CONFIG);
    for (found, reason) in [(Found::Text(ROBOTS), "last-copy"), (Found::LastCopy(ROBOTS), "rule")] {
        let mut line = line(&config, "A", "GET", "https://a.example/private", &found);
        line["reason"] = json!(reason);
        let ReplayOutcome::Different(differences) = outcome(&line, &config, Some(ROBOTS)) else {
            panic!("{reason}");
        };
        assert_eq!(differences[0].field, "reason");
    }
}

#[test]
fn a_decision_with_missing_information_is_not_replayed() {
    let config = config(CONFIG);
    let line = line(
        &config,
        "A",
        "GET",
        "http://a.example/private/x?token=1",
        &Found::Text(ROBOTS),
    );
    let sha256 = Sha256::of(ROBOTS.as_bytes());
    assert_eq!(
        outcome(&line, &config, None),
        ReplayOutcome::NotReplayable(Missing::Text(sha256))
    );
    let with = |field: &str, value: Value| {
        let mut line = line.clone();
        line[field] = value;
        outcome(&line, &config, Some(ROBOTS))
    };
    for (field, value, missing) in [
        ("url", json!("http://a.example/private/x?redacted"), Missing::Redacted),
        ("url", json!("http://a.example/\\u{200e}"), Missing::Escaped),
        ("url", json!("/private"), Missing::Malformed("url")),
        ("robots_sha256", Value::Null, Missing::Malformed("robots_sha256")),
    ] {
        assert_eq!(
            with(field, value.clone()),
            ReplayOutcome::NotReplayable(missing),
            "{field}: {value}"
        );
    }
    let mut gone = line.clone();
    (gone["bot"], gone["identity"]) = (json!("Gone"), json!("network"));
    let found = outcome(&gone, &config, Some(ROBOTS));
    assert_eq!(found, ReplayOutcome::NotReplayable(Missing::UnknownBot));
    // Without a robots.txt, no rule can depend on the query, which was left out of the log.
    let mut unreachable = self::line(&config, "A", "GET", "http://a.example/x?token=1", &Found::Failed);
    for query in ["redacted", "token=redacted"] {
        unreachable["url"] = json!(format!("http://a.example/x?{query}"));
        assert_eq!(outcome(&unreachable, &config, None), ReplayOutcome::Same, "{query}");
    }
}

#[test]
fn decisions_that_depend_on_network_or_time_must_fit_their_reason() {
    let config = config(CONFIG);
    let altered = |path: &str, fields: Value| {
        let url = format!("http://a.example/{path}");
        let mut line = line(&config, "A", "GET", &url, &Found::Text(ROBOTS));
        let refused = json!({"verdict": "deny", "forwarded": false, "rule": null, "line": null, "reading": null});
        for fields in [refused, fields] {
            for (field, value) in fields.as_object().expect("an object") {
                line[field] = value.clone();
            }
        }
        outcome(&line, &config, Some(ROBOTS))
    };
    let nobody = || json!({"bot": null, "identity": "failed"});
    for (reason, path, mut fields, different) in [
        ("egress", "private", json!({}), ""),
        ("egress", "private", json!({"verdict": "allow"}), "verdict"),
        ("egress", "private", json!({"forwarded": true}), "forwarded"),
        ("egress", "private", json!({"rule": "Disallow: /"}), "rule"),
        ("unauthenticated", "private", nobody(), ""),
        ("identity", "private", nobody(), ""),
        ("identity", "private", json!({}), "bot"),
        ("pace", "open", json!({"verdict": "defer"}), ""),
        ("pace", "robots.txt", json!({"verdict": "defer"}), ""),
        ("pace", "open", json!({"verdict": "allow"}), "verdict"),
        // A rule denies this request, so its reason cannot be `pace`.
        ("pace", "private", json!({"verdict": "defer"}), "verdict"),
        // The verdict is `deny`, which `pace` gives only if a Crawl-delay is too long. This robots.txt has none.
        ("pace", "open", json!({}), "verdict"),
    ] {
        fields["reason"] = json!(reason);
        match altered(path, fields.clone()) {
            ReplayOutcome::AsLogged => assert_eq!(different, "", "{path} {fields}"),
            ReplayOutcome::Different(found) => assert_eq!(found[0].field, different, "{path} {fields}: {found:?}"),
            other => panic!("{path} {fields}: {other:?}"),
        }
    }
}

#[test]
fn a_url_with_a_parameter_left_out_is_not_replayed() {
    let config = config(&format!("[audit]\nredact-query = [\"token\"]\n{CONFIG}"));
    for (url, missing) in [
        ("http://a.example/private/x?token=1", Some(Missing::RedactedParameter)),
        (
            "http://a.example/private/x?a=1;t%6Fken=1",
            Some(Missing::RedactedParameter),
        ),
        ("http://a.example/private/x?page=1", None),
    ] {
        let line = line(&config, "A", "GET", url, &Found::Text(ROBOTS));
        let expected = missing.map_or(ReplayOutcome::Same, ReplayOutcome::NotReplayable);
        assert_eq!(outcome(&line, &config, Some(ROBOTS)), expected, "{line}");
    }
}

#[test]
fn the_texts_that_are_in_memory_together_are_bounded() {
    let config = config(CONFIG);
    let lines: Vec<String> = ["/a", "/b", "/c"]
        .map(|path| {
            let mut line = line(
                &config,
                "A",
                "GET",
                &format!("http://a.example{path}"),
                &Found::Text(ROBOTS),
            );
            line["robots_sha256"] = json!(Sha256::of(path.as_bytes()).to_string());
            line.to_string()
        })
        .into();
    let lines: Vec<&[u8]> = lines.iter().map(String::as_bytes).collect();
    let stored = (config.canonical.sha256(), config.canonical.text().as_bytes().to_vec());
    let read = move |digests: &[Sha256]| {
        assert_eq!(digests.len(), 1);
        Ok([stored.clone()].into())
    };
    let found = Replayer::with(Box::new(read), 1, 0).replay(&lines).expect("read");
    let is_missing = |found: &Replayed<'_>| {
        matches!(
            found,
            Replayed::Decision(_, ReplayOutcome::NotReplayable(Missing::Text(_)))
        )
    };
    assert!(found.len() == 3 && found.iter().all(is_missing), "{found:?}");
}

#[test]
fn the_value_redacted_counts_as_left_out_under_another_configuration() {
    let [with_bot, other] = [CONFIG, ""].map(config);
    let line = line(
        &with_bot,
        "A",
        "GET",
        "http://a.example/x?token=redacted",
        &Found::Text(ROBOTS),
    )
    .to_string();
    let logged: LoggedDecision<'_> = serde_json::from_str(&line).expect("a decision");
    let decided = |config: &Config| {
        let site = AnsweredSite::new(Some(&copy(ROBOTS)), SystemTime::now(), config);
        site.decide(&logged, config).map(|decision| decision.is_some())
    };
    assert_eq!(decided(&with_bot), Ok(true));
    assert_eq!(decided(&other), Err(Missing::RedactedParameter));
}

#[test]
fn a_stored_configuration_needs_none_of_its_files() {
    let text = r#"
        [proxy.tls]
        listen = "127.0.0.1:0"
        certificate = "gone.pem"
        key = "gone.pem"
        client-roots = ["gone.pem"]
        [https]
        mode = "tunnel"
        extra-roots = ["gone.pem"]
        [identity]
        credentials = "gone"
        required = true
        [[bot]]
        name = "A"
        user-agents = ["A"]
        credentials = ["a"]
        certificates = ["a.example"]
        networks = ["10.0.0.0/8"]
        [fleet]
        url = "redis://a.example"
        key-file = "gone"
    "#;
    let config = Config::for_replay(text).expect("it reads no file");
    assert_eq!(config.https.mode, crate::decision::HttpsMode::Tunnel);
    assert!(config.bots.named("A").is_some());
}
