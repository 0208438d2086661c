//! Tests replays of decisions about the use of content, with the same configuration and with a changed one.

use super::*;

const BOTS: &str = r#"
[[bot]]
name = "Trainer"
user-agents = ["Trainer"]
purposes = ["ai-train"]
[[bot]]
name = "Miner"
user-agents = ["Miner"]
purposes = ["tdm"]
"#;
const ROBOTS: &str = "User-agent: *\nDisallow: /private\nContent-Usage: train-ai=n\n";
const RESERVED: &str = r#"[{"location": "/free", "tdm-reservation": 0}, {"location": "/", "tdm-reservation": 1}]"#;
const URL: &str = "https://a.example/page";

fn config_with(usage: &str) -> Config {
    config(&format!("[usage]\n{usage}\n{BOTS}"))
}

fn logged(config: &Config, agent: &str, url: &str, tdmrep: Option<&str>) -> Value {
    line_with(config, agent, "GET", url, &Found::Text(ROBOTS), tdmrep)
}

/// Decides `line` again. The store of evidence has `ROBOTS` and `tdmrep`.
fn outcome(line: &Value, config: &Config, tdmrep: Option<&str>) -> ReplayOutcome {
    let line = line.to_string();
    let logged: LoggedDecision<'_> = serde_json::from_str(&line).expect("a decision");
    let (robots, tdmrep) = (copy(ROBOTS), tdmrep.map(|text| TdmRep::parse(text.as_bytes())));
    let texts = Texts {
        robots: Some(&robots),
        tdmrep: tdmrep.as_ref(),
    };
    replay(&logged, config, texts)
}

#[test]
fn a_decision_about_the_use_is_the_same_in_a_replay() {
    let config = config_with("content-usage = 'enforce'\ntdmrep = 'enforce'");
    let replayed = Config::for_replay(config.canonical.text()).expect("valid");
    for (agent, path, tdmrep, reason, refused) in [
        ("Trainer", "/page", None, "usage", json!(3)),
        ("Trainer", "/private", None, "rule", Value::Null),
        ("Miner", "/page", Some(RESERVED), "usage", Value::Null),
        ("Miner", "/free", Some(RESERVED), "no-rule", Value::Null),
        ("Miner", "/page", None, "no-rule", Value::Null),
        ("Other", "/page", None, "no-rule", Value::Null),
    ] {
        let line = logged(&config, agent, &format!("https://a.example{path}"), tdmrep);
        assert_eq!(line["reason"], reason, "{agent} {path}");
        assert_eq!(line["usage"]["refused"]["line"], refused, "{agent} {path}");
        assert_eq!(outcome(&line, &replayed, tdmrep), ReplayOutcome::Same, "{agent} {path}");
    }
}

#[test]
fn a_use_that_is_refused_without_a_robots_txt_is_the_same_in_a_replay() {
    let config = config_with("unknown = 'deny'");
    for found in [Found::Status(404), Found::FailedForLong, Found::Status(302)] {
        let line = line(&config, "Trainer", "GET", URL, &found);
        assert_eq!(line["reason"], "usage", "{line}");
        let line = line.to_string();
        let logged: LoggedDecision<'_> = serde_json::from_str(&line).expect("a decision");
        assert_eq!(
            replay(&logged, &config, Texts::default()),
            ReplayOutcome::Same,
            "{line}"
        );
    }
}

#[test]
fn an_altered_usage_field_is_found() {
    let config = config_with("content-usage = 'enforce'");
    let line = logged(&config, "Trainer", URL, None);
    for (pointer, value, field) in [
        ("/usage/refused/line", json!(4), "usage.refused"),
        ("/usage/said/0/value", json!("y"), "usage.said"),
        ("/usage/purposes", json!(["search"]), "usage.purposes"),
    ] {
        let mut changed = line.clone();
        *changed.pointer_mut(pointer).expect("it is there") = value;
        let ReplayOutcome::Different(differences) = outcome(&changed, &config, None) else {
            panic!("{pointer}")
        };
        let fields: Vec<_> = differences.iter().map(|difference| difference.field).collect();
        assert_eq!(fields, [field]);
    }
    let mut changed = line;
    changed["usage"] = Value::Null;
    assert!(matches!(outcome(&changed, &config, None), ReplayOutcome::Different(_)));
}

#[test]
fn a_decision_is_not_replayed_without_its_tdmrep_json() {
    let config = config_with("tdmrep = 'enforce'");
    let missing = Missing::Tdmrep(Sha256::of(RESERVED.as_bytes()));
    for path in ["/page", "/free"] {
        let line = logged(&config, "Miner", &format!("https://a.example{path}"), Some(RESERVED));
        assert_eq!(
            outcome(&line, &config, None),
            ReplayOutcome::NotReplayable(missing.clone())
        );
    }
    assert_eq!(missing.reason(), "the store of evidence does not have the tdmrep.json");

    let line = logged(&config, "Miner", URL, Some(RESERVED)).to_string();
    let texts = [config.canonical.text(), ROBOTS, RESERVED].map(str::to_owned);
    for (has, expected) in [(3, true), (2, false)] {
        let texts: Vec<_> = texts[..has].to_vec();
        let read = move |digests: &[Sha256]| {
            let texts = texts
                .iter()
                .map(|text| (Sha256::of(text.as_bytes()), text.clone().into_bytes()));
            Ok(texts.filter(|(sha256, _)| digests.contains(sha256)).collect())
        };
        let mut replayer = Replayer::with(Box::new(read), 1, 1 << 20);
        let found = replayer.replay(&[line.as_bytes()]).expect("read");
        let is_same = matches!(&found[..], [Replayed::Decision(_, ReplayOutcome::Same)]);
        assert_eq!(is_same, expected, "{found:?}");
    }
}

#[test]
fn what_if_shows_decisions_that_change_with_the_policy_or_the_purposes() {
    let new = |usage: &str, bots: &str| {
        let config = Config::parse_alone("new.toml", &format!("[usage]\n{usage}\n{bots}")).expect("valid");
        Scenario::new(Some(config), Vec::new(), None)
    };
    let (enforced, reported) = (
        config_with("content-usage = 'enforce'\ntdmrep = 'enforce'"),
        config_with(""),
    );
    let off = config_with("tdmrep = 'off'");
    let searcher = BOTS.replace("ai-train", "search");
    let miner = BOTS.replace("ai-train", "tdm");
    let no_store = "unknown: found no copy of the tdmrep.json that the decision was based on";
    let unknown = "unknown: the decision depends on the site's tdmrep.json, and the log does not say whether the site has \
                   one";
    let (train, mine) = ("content-usage = 'enforce'", "tdmrep = 'enforce'");
    for (old, agent, tdmrep, stored, change, expected) in [
        (&enforced, "Trainer", None, true, new(train, BOTS), "same: usage"),
        (&enforced, "Trainer", None, true, new("", BOTS), "forwarded: no-rule"),
        (
            &enforced,
            "Trainer",
            None,
            true,
            new(train, &searcher),
            "forwarded: no-rule",
        ),
        (&reported, "Trainer", None, true, new(train, BOTS), "refused: usage"),
        (
            &reported,
            "Trainer",
            None,
            true,
            new("unknown = 'deny'", &searcher),
            "refused: usage",
        ),
        (
            &reported,
            "Miner",
            Some(RESERVED),
            true,
            new(mine, BOTS),
            "refused: usage",
        ),
        (&reported, "Miner", Some(RESERVED), false, new(mine, BOTS), no_store),
        (&reported, "Miner", None, true, new(mine, BOTS), "same: no-rule"),
        // For these two logged decisions, robotgate did not ask the site for a `tdmrep.json`.
        (&off, "Miner", None, true, new(mine, BOTS), unknown),
        (&reported, "Trainer", None, true, new(mine, &miner), unknown),
    ] {
        let line = logged(old, agent, URL, tdmrep).to_string();
        let logged: LoggedDecision<'_> = serde_json::from_str(&line).expect("a decision");
        let (robots, file) = (copy(ROBOTS), TdmRep::parse(RESERVED.as_bytes()));
        let texts = Texts {
            robots: Some(&robots),
            tdmrep: Some(&file).filter(|_| stored && tdmrep.is_some()),
        };
        let found = match what_if(&logged, &change, Ok(old), texts) {
            Finding::Decided(effect, decision) => format!("{effect}: {}", decision.reason.as_str()),
            Finding::Unknown(unknown) => format!("unknown: {unknown}"),
            other => panic!("{other:?}"),
        };
        assert_eq!(found, expected, "{agent} {tdmrep:?}");
    }
}

#[test]
fn a_decision_under_another_robots_txt_uses_the_logged_tdmrep_json() {
    let config = config_with("tdmrep = 'enforce'");
    let site = AnsweredSite::new(Some(&copy("User-agent: *\nDisallow: /x\n")), SystemTime::now(), &config);
    let decide = |line: Value| {
        let line = line.to_string();
        let logged: LoggedDecision<'_> = serde_json::from_str(&line).expect("a decision");
        let decision = site.decide(&logged, &config)?.expect("it is decided");
        Ok::<_, Missing>(decision.reason)
    };
    assert_eq!(decide(logged(&config, "Miner", URL, Some(RESERVED))), Ok(Reason::Usage));
    assert_eq!(decide(logged(&config, "Miner", URL, None)), Ok(Reason::NoRule));
    let disallowed = logged(&config, "Miner", "https://a.example/private", Some(RESERVED));
    assert_eq!(decide(disallowed), Err(Missing::NoTdmrep));
}
