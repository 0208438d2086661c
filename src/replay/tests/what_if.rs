//! Tests how logged requests are decided if the configuration, a robots.txt or the User-Agent is changed.

use super::*;
use crate::{bot::ProofKind, decision::Reason, evidence::Version};

const NEW: &str = "User-agent: *\nDisallow: /open\n";

/// Returns the effect, the verdict and the rule (or else the reason), or why there is no new decision.
fn found(line: &Value, old: Option<&Config>, change: &Scenario, text: Option<&str>) -> String {
    let line = line.to_string();
    let logged: LoggedDecision<'_> = serde_json::from_str(&line).expect("a decision");
    let new = change.config().map(|config| &**config).or(old);
    let profile = new.map_or_else(Default::default, |config| config.robots.policy.profile);
    let copy = text.map(|text| Arc::new(copy(text).under(profile)));
    let copy = copy.filter(|copy| logged.robots_sha256 == Some(copy.sha256));
    let missing = Missing::Config(Sha256::of(b""));
    match what_if(&logged, change, old.ok_or(missing), with_robots(copy.as_ref())) {
        Finding::Decided(effect, decision) => {
            let rule = decision.shown_rule();
            let basis = rule.as_deref().unwrap_or(decision.reason.as_str());
            format!("{effect}: {} {basis}", decision.verdict)
        }
        Finding::Unaffected => "unaffected".to_owned(),
        Finding::AsLogged => "as logged".to_owned(),
        Finding::Unknown(unknown) => format!("unknown: {unknown}"),
    }
}

fn with_robots(robots: Option<&Arc<RobotsCopy>>) -> Texts<'_> {
    Texts { robots, tdmrep: None }
}

fn alone(text: &str) -> Config {
    Config::parse_alone("new.toml", text).expect(text)
}

fn to_config(text: &str) -> Scenario {
    Scenario::new(Some(alone(text)), Vec::new(), None)
}

fn to_agent(agent: &str) -> Scenario {
    Scenario::new(None, Vec::new(), Some(agent.to_owned()))
}

fn to_robots(origin: &str, text: &str) -> Scenario {
    let origin = origin.parse().expect("an origin");
    Scenario::new(None, vec![(origin, text.into())], None)
}

#[test]
fn logged_decisions_are_decided_again_under_a_new_configuration() {
    const BOT_A: &str = "[[bot]]\nname = \"A\"\nuser-agents = [\"A\"]\n";
    const PRIVATE: &str = "https://a.example/private";
    const OPEN: &str = "https://a.example/private/open";
    let old = config(CONFIG);
    let text = || Found::Text(ROBOTS);
    for (agent, method, url, fetch, new, expected) in [
        ("A", "GET", PRIVATE, text(), CONFIG, "same: deny Disallow: /private"),
        (
            "A",
            "GET",
            PRIVATE,
            text(),
            "[[bot]]\nname = 'A'\nuser-agents = ['A']\nenforcement = 'report'",
            "forwarded: deny Disallow: /private",
        ),
        (
            "A",
            "GET",
            PRIVATE,
            text(),
            "[[bot]]\nname = 'A'\nuser-agents = ['A']\nenforcement = 'exempt'",
            "forwarded: allow exempt",
        ),
        // In the new configuration, the User-Agent belongs to another bot.
        (
            "A",
            "GET",
            OPEN,
            text(),
            "[[bot]]\nname = 'B'\nuser-agents = ['A']",
            "refused: deny Disallow: /",
        ),
        (
            "Reporter",
            "GET",
            "https://a.example/x",
            text(),
            "",
            "refused: deny Disallow: /",
        ),
        (
            "A",
            "GET",
            OPEN,
            text(),
            "https.mode = 'refuse'",
            "refused: deny connect-refused",
        ),
        (
            "A",
            "GET",
            OPEN,
            text(),
            "https.mode = 'tunnel'",
            "refused: unverifiable unverifiable",
        ),
        (
            "A",
            "GET",
            "http://a.example/private/open",
            text(),
            "https.mode = 'refuse'",
            "same: allow Allow: /private/open",
        ),
        (
            "A",
            "GET",
            OPEN,
            text(),
            "egress.deny = ['a.example']",
            "refused: deny egress",
        ),
        (
            "A",
            "GET",
            "https://a.example/x/../private",
            text(),
            "robots.strict-paths = false",
            "same: deny Disallow: /private",
        ),
        (
            "",
            "GET",
            PRIVATE,
            text(),
            "identity.unidentified = 'deny'",
            "same: deny unidentified",
        ),
        (
            "A",
            "GET",
            PRIVATE,
            Found::Status(404),
            "robots.profile = 'rfc9309'",
            "same: allow no-robots",
        ),
        (
            "A",
            "GET",
            PRIVATE,
            Found::Failed,
            "robots.default-ttl = '1h'",
            "same: deny unreachable",
        ),
        (
            "A",
            "GET",
            PRIVATE,
            Found::LastCopy(ROBOTS),
            BOT_A,
            "same: deny Disallow: /private",
        ),
        (
            "A",
            "CONNECT",
            "https://bank.example",
            text(),
            "https.mode = 'refuse'",
            "refused: deny connect-refused",
        ),
        // From here on, the new decision depends on something that the log does not have.
        (
            "A",
            "GET",
            "https://own.example/private",
            text(),
            BOT_A,
            "unknown: the logged decision used no robots.txt, and it is unknown which one the site had then",
        ),
        (
            "",
            "GET",
            PRIVATE,
            text(),
            "identity.unidentified = 'wildcard'",
            "unknown: the logged decision used no robots.txt, and it is unknown which one the site had then",
        ),
        (
            "A",
            "GET",
            PRIVATE,
            Found::Failed,
            "robots.profile = 'rfc9309'",
            "same: deny unreachable",
        ),
        (
            "A",
            "GET",
            PRIVATE,
            Found::Failed,
            "robots.unreachable.deny-for = '1h'",
            "unknown: the fetch of the robots.txt had failed or not ended, and the new configuration may treat that differently",
        ),
        (
            "A",
            "CONNECT",
            "https://bank.example",
            text(),
            "https.mode = 'intercept'",
            "unknown: the new configuration intercepts the CONNECT, but the log does not have the requests in the tunnel",
        ),
        (
            "A",
            "GET",
            PRIVATE,
            text(),
            "[[bot]]\nname = 'A'\nuser-agents = ['A']\nnetworks = ['10.0.0.0/8']",
            "unknown: the configuration would refuse the client, unless the client had a proof of its identity that \
             the log does not show",
        ),
    ] {
        let line = line(&old, agent, method, url, &fetch);
        let found = found(&line, Some(&old), &to_config(new), Some(ROBOTS));
        assert_eq!(found, expected, "{agent:?} {method} {url} under {new}: {line}");
    }
    let mut failed = line(&old, "A", "GET", PRIVATE, &Found::Failed);
    // The profile `rfc9309` treats a 429 as no robots.txt, and looks for no "not found" page in a 503.
    let rfc = to_config("robots.profile = 'rfc9309'");
    let looks_for_none = config("robots.soft-404 = false");
    for (status, old, new, expected) in [
        (503, &old, &rfc, "same: deny unreachable"),
        (429, &old, &rfc, "unknown"),
        (503, &looks_for_none, &to_config(CONFIG), "unknown"),
    ] {
        failed["robots_status"] = json!(status);
        failed["robots_error"] = json!(format!("the server answered {status}"));
        let found = found(&failed, Some(old), new, None);
        assert!(found.starts_with(expected), "{status}: {found}");
    }
    assert_eq!(
        found(&failed, None, &to_config(CONFIG), None),
        "unknown: the fetch of the robots.txt had failed or not ended, and no usable copy of the old configuration was found"
    );
}

#[test]
fn a_client_is_identified_by_its_logged_proof_if_it_is_configured() {
    let old = config("[[bot]]\nname = 'A'\nuser-agents = ['A']\n");
    let url = "https://a.example/private/open";
    let proven = |identity: &str, matched_by: &str, user_agent: &str| {
        let mut line = line(&old, "A", "GET", url, &Found::Text(ROBOTS));
        line["identity"] = json!(identity);
        line["matched_by"] = json!(matched_by);
        line["user_agent"] = json!(user_agent);
        line
    };
    let tls = "[proxy.tls]\nlisten = '127.0.0.1:1'\ncertificate = 'x'\nkey = 'y'\nclient-roots = ['gone']\n";
    let bot =
        |keys: &str| format!("{tls}[identity]\ncredentials = 'gone'\n[[bot]]\nname = 'A'\nuser-agents = ['A']\n{keys}");
    let other = "[[bot]]\nname = 'B'\nuser-agents = ['B']\ncredentials = ['one']\n";
    for (identity, matched_by, user_agent, new, expected) in [
        (
            "credential",
            "one",
            "A/1",
            bot("credentials = ['one']"),
            "same: allow Allow: /private/open",
        ),
        // If the bot's configuration does not name credentials, its credential has the same name as the bot.
        ("credential", "A", "A/1", bot(""), "same: allow Allow: /private/open"),
        (
            "certificate",
            "a.example",
            "A",
            bot("certificates = ['a.example']"),
            "same: allow Allow: /private/open",
        ),
        (
            "network",
            "127.0.0.0/8",
            "A",
            bot("networks = ['127.0.0.0/8']"),
            "same: allow Allow: /private/open",
        ),
        // Two bots may use this credential. The User-Agent says which of them it is.
        (
            "credential",
            "one",
            "B/1",
            bot(&format!("credentials = ['one']\n{other}")),
            "refused: deny Disallow: /",
        ),
        (
            "credential",
            "one",
            "C/1",
            bot("credentials = ['one']"),
            "refused: deny identity",
        ),
        (
            "credential",
            "gone",
            "A/1",
            bot("credentials = ['one']"),
            "unknown: no [[bot]] of the new configuration accepts the credential \"gone\", by which the client was identified",
        ),
        (
            "certificate",
            "b.example",
            "A",
            bot("certificates = ['a.example']"),
            "unknown: no [[bot]] of the new configuration accepts the certificate \"b.example\", by which the client was identified",
        ),
        (
            "certificate",
            "a.example",
            "C",
            bot("certificates = ['a.example']"),
            "unknown: the configuration would refuse the client, unless the client had a proof of its identity that \
             the log does not show",
        ),
    ] {
        let line = proven(identity, matched_by, user_agent);
        let found = found(&line, None, &to_config(&new), Some(ROBOTS));
        assert_eq!(found, expected, "{identity} {matched_by} {user_agent}\n{new}");
    }
    // A line of an earlier version has the name only in the field `credential`.
    let mut line = proven("credential", "one", "A/1");
    (line["matched_by"], line["credential"]) = (Value::Null, json!("one"));
    let change = to_config(&bot("credentials = ['one']"));
    assert_eq!(
        found(&line, None, &change, Some(ROBOTS)),
        "same: allow Allow: /private/open"
    );
    line["credential"] = Value::Null;
    assert_eq!(
        found(&line, None, &change, Some(ROBOTS)),
        "unknown: the log does not say which credential identified the client"
    );
    assert_eq!(
        ProofKind::ALL.map(ProofKind::as_str),
        ["credential", "certificate", "network"]
    );
}

#[test]
fn a_logged_address_proves_a_bot_by_its_network_unless_it_is_masked() {
    let old = config("");
    let mut line = line(&old, "A", "GET", "https://a.example/private/open", &Found::Text(ROBOTS));
    let change = to_config("[[bot]]\nname = 'A'\nuser-agents = ['A']\nnetworks = ['127.0.0.0/8']");
    let is_proven = found(&line, Some(&old), &change, Some(ROBOTS));
    assert_eq!(is_proven, "same: allow Allow: /private/open");
    line["client"] = json!("127.0.0.0:0");
    let is_masked = found(&line, Some(&old), &change, Some(ROBOTS));
    assert!(is_masked.contains("only a part of the client's address"), "{is_masked}");
}

#[test]
fn a_decision_whose_user_agent_is_not_fully_logged_is_unknown() {
    let old = config("[[bot]]\nname = 'A'\nuser-agents = ['A/2*']\n");
    let change = to_config("[[bot]]\nname = 'A'\nuser-agents = ['A']\n");
    let line = line(&old, "A/2.1", "GET", "https://a.example/x", &Found::Text(ROBOTS));
    assert_eq!(found(&line, Some(&old), &change, Some(ROBOTS)), "same: allow no-rule");
    for (user_agent, bot) in [
        (json!("A"), json!("A")),
        (json!(null), json!("A")),
        (json!("A/2…"), json!("A")),
        (json!("A/2 | B/1"), json!(null)),
    ] {
        let mut line = line.clone();
        (line["user_agent"], line["bot"]) = (user_agent, bot);
        let found = found(&line, Some(&old), &change, Some(ROBOTS));
        assert!(found.contains("does not have the User-Agent field"), "{found}: {line}");
    }
}

#[test]
fn a_new_robots_txt_affects_only_decisions_on_its_site() {
    let old = config(CONFIG);
    let change = to_robots("https://a.example", NEW);
    for (url, fetch, expected) in [
        (
            "https://a.example/open",
            Found::Text(ROBOTS),
            "refused: deny Disallow: /open",
        ),
        (
            "https://a.example/private",
            Found::Text(ROBOTS),
            "forwarded: allow no-rule",
        ),
        ("https://a.example/x", Found::Text(ROBOTS), "same: allow no-rule"),
        (
            "https://a.example/open",
            Found::Status(404),
            "refused: deny Disallow: /open",
        ),
        ("https://a.example/x", Found::Status(404), "basis: allow no-rule"),
        ("https://a.example/x", Found::Failed, "forwarded: allow no-rule"),
        ("https://a.example/x", Found::LastCopy(ROBOTS), "basis: allow no-rule"),
        ("https://a.example:8443/open", Found::Text(ROBOTS), "unaffected"),
        ("http://a.example/open", Found::Text(ROBOTS), "unaffected"),
    ] {
        let line = line(&old, "A", "GET", url, &fetch);
        // The robots.txt of the logged decision is not needed: the change replaces it, or does not affect the site.
        assert_eq!(found(&line, Some(&old), &change, None), expected, "{url}: {line}");
    }
    let line = line(&old, "A", "GET", "https://a.example/x", &Found::Text(ROBOTS));
    let without_config = found(&line, None, &change, None);
    assert!(
        without_config.contains("does not have the configuration"),
        "{without_config}"
    );
    let exempt = super::line(&old, "A", "GET", "https://own.example/open", &Found::Text(ROBOTS));
    let change = Scenario::new(
        Some(alone("")),
        vec![("https://own.example".parse().expect("an origin"), NEW.into())],
        None,
    );
    assert_eq!(found(&exempt, None, &change, None), "refused: deny Disallow: /open");
}

#[test]
fn a_new_user_agent_asks_as_another_bot() {
    let old = config(CONFIG);
    for (agent, url, expected) in [
        ("A/2", "http://a.example/private", "same: deny Disallow: /private"),
        ("Reporter", "http://a.example/private", "forwarded: deny Disallow: /"),
        ("Other/1", "http://a.example/private/open", "refused: deny Disallow: /"),
        (
            "Mozilla/5.0",
            "http://a.example/private/open",
            "refused: deny unidentified",
        ),
    ] {
        let line = line(&old, "A", "GET", url, &Found::Text(ROBOTS));
        assert_eq!(
            found(&line, Some(&old), &to_agent(agent), Some(ROBOTS)),
            expected,
            "{agent} {url}"
        );
    }
    let line = line(&old, "A", "GET", "http://a.example/", &Found::Text(ROBOTS));
    let without_text = found(&line, Some(&old), &to_agent("B"), None);
    assert_eq!(
        without_text,
        "unknown: found no copy of the robots.txt that the decision was based on"
    );
}

#[test]
fn decisions_that_depend_on_network_or_time_stay_as_logged() {
    let old = config(CONFIG);
    let mut line = line(&old, "A", "GET", "http://a.example/", &Found::Text(ROBOTS));
    for reason in ["egress", "pace", "unauthenticated", "identity"] {
        line["reason"] = json!(reason);
        for change in [to_config(""), to_agent("B"), to_robots("http://a.example", NEW)] {
            assert_eq!(found(&line, Some(&old), &change, Some(ROBOTS)), "as logged", "{reason}");
        }
    }
}

#[test]
fn changes_are_grouped_by_bot_site_and_rule() {
    let old = config(CONFIG);
    let change = to_robots("http://a.example", NEW);
    let mut summary = Summary::default();
    for (agent, url) in [
        ("A", "http://a.example/private/1"),
        ("A", "http://a.example/open/1"),
        ("A", "http://a.example/private/2"),
        ("B", "http://a.example/private/3"),
        ("A", "http://a.example/x"),
        ("A", "http://b.example/private"),
    ] {
        let line = line(&old, agent, "GET", url, &Found::Text(ROBOTS)).to_string();
        let logged: LoggedDecision<'_> = serde_json::from_str(&line).expect("a decision");
        let finding = what_if(&logged, &change, Ok(&old), Texts::default());
        summary.add(&Replayed::Decision(Box::new(logged), finding), || None);
    }
    assert_eq!((summary.decisions, summary.changed()), (6, 4));
    assert_eq!((summary.refused, summary.forwarded, summary.same), (1, 3, 2));
    let report = summary.report(2);
    assert_eq!((report.groups_total, report.groups.len()), (3, 2));
    let largest = report.groups[0];
    assert_eq!((largest.decisions, largest.bot.as_deref()), (2, Some("A")));
    assert_eq!(largest.was.rule.as_deref(), Some("Disallow: /private"));
    assert_eq!((&*largest.now.reason, largest.effect), ("no-rule", Effect::Forwarded));
    assert_eq!(largest.example.url, "http://a.example/private/1");
}

#[test]
fn the_generated_cases_are_met_and_cover_each_bot_site_and_rule_once() {
    let old = config(CONFIG);
    let text = format!("{CONFIG}\n[robots]\nstrict-paths = false\n");
    let new = alone(&text);
    let change = to_config(&text);
    let mut cases = Cases::default();
    let add = |cases: &mut Cases, agent: &str, url: &str, fetch: Found, robots: Option<&str>| {
        let line = line(&old, agent, "GET", url, &fetch).to_string();
        let logged: LoggedDecision<'_> = serde_json::from_str(&line).expect("a decision");
        let copy = robots.map(copy);
        match what_if(&logged, &change, Ok(&old), with_robots(copy.as_ref())) {
            Finding::Decided(_, decision) => cases.add(&logged, &decision, &new, None),
            other => panic!("{url}: {other:?}"),
        }
    };
    for (agent, url) in [
        ("A", "http://a.example/private/1"),
        ("A", "http://a.example/private/2"),
        ("A", "http://a.example/private/open"),
        ("B/1", "http://a.example/private/1"),
        ("A", "http://own.example/private"),
    ] {
        add(&mut cases, agent, url, Found::Text(ROBOTS), Some(ROBOTS));
    }
    add(&mut cases, "A", "http://c.example/x", Found::Status(404), None);
    assert_eq!((cases.count(), cases.impossible()), (5, 0));
    // A case cannot say how long the site has been failing.
    add(&mut cases, "A", "http://d.example/x", Found::Failed, None);
    assert_eq!((cases.count(), cases.impossible()), (5, 1));
    // This robots.txt is too long for a case, so the case has only the rule.
    let long: &'static str = format!("{ROBOTS}#{}\n", "x".repeat(8 * 1024)).leak();
    add(
        &mut cases,
        "A",
        "http://e.example/private/1",
        Found::Text(long),
        Some(long),
    );
    assert_eq!(cases.count(), 6);
    let text = format!("{text}\n{}", cases.text());
    let kept = alone(&text);
    assert_eq!(kept.expect.len(), 6, "{text}");
    assert!(
        kept.expect.iter().all(|case| crate::expect::is_met(case, &kept)),
        "{text}"
    );
    assert!(text.len() < 4096, "{text}");
    let first = &kept.expect[0];
    assert_eq!((&*first.agent, &*first.url), ("A", "http://a.example/private/1"));
    assert_eq!((&*first.robots, first.verdict.as_str()), (ROBOTS, "deny"));
}

#[test]
fn the_effect_of_a_changed_wait_or_pace_is_not_guessed() {
    let old = config(CONFIG);
    let mut line = line(&old, "A", "GET", "https://a.example/x", &Found::Failed);
    (line["robots_error"], line["robots_status"]) = (json!(FetchError::Pending.to_string()), Value::Null);
    let [wait, pace] =
        ["robots]\nwait = '1s'", "pace]\ndelay = '1s'"].map(|more| to_config(&format!("{CONFIG}\n[{more}")));
    assert_eq!(
        found(&line, Some(&old), &to_config(CONFIG), None),
        "same: deny unreachable"
    );
    assert_eq!(
        found(&line, Some(&old), &wait, None),
        "unknown: robotgate had stopped waiting for the robots.txt, and the new configuration has another robots.wait"
    );
    for (change, with_old, without) in [(&pace, true, true), (&wait, false, false)] {
        assert_eq!(
            (change.changes_pace(Some(&old)), change.changes_pace(None)),
            (with_old, without)
        );
    }
}

#[test]
fn a_stored_status_is_used_only_if_every_configuration_reads_it_alike() {
    let old = config(CONFIG);
    let line = line(&old, "A", "GET", "https://own.example/private", &Found::Text(ROBOTS)).to_string();
    let change = to_config("[[bot]]\nname = 'A'\nuser-agents = ['A']");
    for (status, expected) in [
        (404, Some(Reason::NoRobots)),
        (301, Some(Reason::NoRobots)),
        (429, None),
        (503, None),
    ] {
        let stored = (old.canonical.sha256(), old.canonical.text().as_bytes().to_vec());
        let version = Version {
            first_seen: SystemTime::UNIX_EPOCH,
            last_seen: SystemTime::UNIX_EPOCH,
            text: None,
            status,
        };
        let mut replayer = Replayer::with(Box::new(move |_| Ok([stored.clone()].into())), 1, 1 << 20)
            .with_histories(Box::new(move |origins| Ok(vec![vec![version.clone()]; origins.len()])));
        let replayed = replayer
            .what_if(&[line.as_bytes()], &change, || false)
            .expect("readable");
        let found = match &replayed[..] {
            [Replayed::Decision(_, Finding::Decided(_, decision))] => Some(decision.reason),
            [Replayed::Decision(_, Finding::Unknown(Unknown::NoLookup))] => None,
            other => panic!("{status}: {other:?}"),
        };
        assert_eq!(found, expected, "{status}");
    }
}
