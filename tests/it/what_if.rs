//! `robotgate what-if` on the log of a proxy. Its prediction must be what the proxy decides after the change.

use std::fs;

use serde_json::{Value, json};

use crate::{
    changes,
    support::{CliOutput, Gate, Origin, Reply, refused},
};

const ROBOTS: &str = "User-agent: *\nDisallow: /private\nAllow: /private/open\n\nUser-agent: B\nDisallow: /b\n";
const OLD: &str = "
    [[bot]]
    name = \"A\"
    user-agents = [\"A\"]
    [[bot]]
    name = \"Reporter\"
    user-agents = [\"Reporter\"]
    enforcement = \"report\"
";
const AGENTS: [&str; 5] = ["A/1", "B/2", "Reporter", "Other", "Mozilla/5.0"];
const PATHS: [&str; 5] = ["/private/x", "/private/open", "/b", "/x/../private", "/robots.txt"];

async fn what_if(gate: &Gate, args: &[&str]) -> CliOutput {
    let (store, log) = (gate.file("evidence.redb"), gate.file("audit.jsonl"));
    let [store, log] = [store, log].map(|path| path.display().to_string());
    CliOutput::of(&[&["what-if", &log, "--evidence", &store], args].concat(), "").await
}

async fn request_pages(gate: &Gate, origin: &Origin) -> Vec<Value> {
    let before = gate.events("decision").len();
    for agent in AGENTS {
        for path in PATHS {
            gate.get(&origin.url(path)).user_agent(agent).await;
        }
    }
    let made = AGENTS.len() * PATHS.len();
    gate.audited(before + made).await;
    gate.events("decision").split_off(before)
}

fn effect(was: &Value, now: &Value) -> &'static str {
    let differs = |field: &str| was[field] != now[field];
    match (&was["forwarded"], &now["forwarded"]) {
        (Value::Bool(true), Value::Bool(false)) => "refused",
        (Value::Bool(false), Value::Bool(true)) => "forwarded",
        _ if differs("verdict") => "verdict",
        _ if differs("reason") || differs("rule") => "basis",
        _ => "same",
    }
}

#[tokio::test]
async fn what_if_predicts_the_decisions_under_the_new_configuration() {
    let origin = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let gate = Gate::with(OLD).await;
    let before = request_pages(&gate, &origin).await;
    let text = fs::read_to_string(gate.file("robotgate.toml")).expect("the file");
    let text = text.replace("enforcement = \"report\"", "enforcement = \"enforce\"");
    // The new configuration names a missing file of root certificates, which `what-if` does not read.
    let text = text.replace("origin-ca.pem", "./origin-ca.pem")
        + "\n[[bot]]\nname = \"B2\"\nuser-agents = [\"Other\"]\nrobots-agents = [\"B\"]\n"
        + "[[bot]]\nname = \"Gone\"\nuser-agents = [\"B\"]\nenforcement = \"exempt\"\n";
    let new = gate.file("new.toml");
    fs::write(&new, text.replace("./origin-ca.pem", "gone.pem")).expect("written");
    let new = new.display().to_string();
    let report = what_if(&gate, &["--config", &new, "--json", "--all"]).await;
    let found = report.json();
    let cases = what_if(&gate, &["--config", &new, "--expect=all"]).await;
    let shown = what_if(&gate, &["--config", &new]).await;
    let listed = what_if(&gate, &["--config", &new, "--list"]).await;
    let middle = before[10]["time"].as_str().expect("a time");
    for (option, expected) in [("--since", before.len() - 10), ("--until", 10)] {
        let part = what_if(&gate, &["--config", &new, "--json", "--all", option, middle])
            .await
            .json();
        assert_eq!(part["decisions"], json!(expected), "{option}: {part:#}");
        let log = fs::read_to_string(gate.file("audit.jsonl")).expect("the log");
        for group in part["groups"].as_array().expect("an array") {
            let (id, number) = (
                &group["example"]["id"],
                group["example"]["line"].as_u64().expect("a number"),
            );
            let line: Value =
                serde_json::from_str(log.lines().nth(number as usize - 1).expect("a line")).expect("JSON");
            assert_eq!(line["id"], *id, "{option}: {group:#}");
        }
    }

    let part = what_if(&gate, &["--config", &new, "--json", "--bot", "A", "--bot", "Reporter"])
        .await
        .json();
    assert_eq!(part["decisions"], json!(2 * PATHS.len()), "{part:#}");
    let typo = what_if(&gate, &["--config", &new, "--bot", "a"]).await;
    assert!(typo.errors.contains("is for a bot with the name \"a\""), "{typo:?}");
    assert!(!shown.out.contains("no --config was given"), "{}", shown.out);
    let default = what_if(&gate, &["--set", "robots.profile=rfc9309"]).await;
    assert!(default.out.contains("no --config was given"), "{}", default.out);

    gate.rewrite_config(&text);
    gate.reloaded(1).await;
    let after = request_pages(&gate, &origin).await;
    let pairs = || before.iter().zip(&after);
    for word in ["refused", "forwarded", "verdict", "basis", "same"] {
        let count = pairs().filter(|(was, now)| effect(was, now) == word).count();
        assert_eq!(found[word], json!(count), "{word}: {found:#}");
    }
    assert_eq!(
        (&found["unknown"], &found["as_logged"]),
        (&json!({}), &json!(0)),
        "{found:#}"
    );
    assert_eq!(report.code, Some(1));
    for group in found["groups"].as_array().expect("an array") {
        let field = |record: &Value, field: &str| record[field].clone();
        let fits = |outline: &Value, record: &Value| {
            ["verdict", "reason", "rule", "forwarded"]
                .iter()
                .all(|name| outline[name] == field(record, name))
        };
        let count = pairs().filter(|(was, now)| {
            fits(&group["was"], was)
                && fits(&group["now"], now)
                && (&group["bot"], &group["new_bot"]) == (&was["bot"], &now["bot"])
        });
        assert_eq!(group["decisions"], json!(count.count()), "{group:#}");
        assert_eq!(group["origin"], json!(origin.url("")));
    }
    assert!(
        found["refused"].as_u64() > Some(0) && found["forwarded"].as_u64() > Some(0),
        "{found:#}"
    );
    let first = shown.out.lines().next();
    assert_eq!(first, Some("25 decisions"), "{}", shown.out);
    assert!(
        shown.out.contains("would be refused instead of forwarded\n"),
        "{}",
        shown.out
    );
    assert!(
        shown.out.contains("\n            new    deny: Disallow: /private\n"),
        "{}",
        shown.out
    );

    let changed = pairs()
        .filter(|(was, now)| effect(was, now) != "same")
        .map(|(was, now)| {
            let basis = [&now["rule"], &now["reason"]].into_iter().find_map(Value::as_str);
            let bot = now["bot"].as_str().unwrap_or("-");
            let [time, id, url] = ["time", "id", "url"].map(|field| was[field].as_str().expect("text"));
            [time, id, effect(was, now), bot, url, basis.expect("a reason")].join("\t") + "\n"
        });
    assert_eq!(listed.out, changed.collect::<String>());
    assert_eq!(listed.code, Some(1));

    fs::write(&new, text + "\n" + &cases.out).expect("written");
    let checked = CliOutput::of(&["check", &new], "").await;
    assert_eq!(checked.code, Some(0), "{}\n{}", checked.errors, cases.out);
    assert!(cases.out.matches("[[expect]]").count() > 8, "{}", cases.out);
}

#[tokio::test]
async fn a_decision_that_would_need_an_unknown_robots_txt_is_reported() {
    let origin = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let gate = Gate::start().await;
    refused(&gate.get(&origin.url("/page")).user_agent("").await, "unidentified");
    gate.audited(1).await;
    let new = gate.file("new.toml").display().to_string();
    let wildcard = "egress.allow = [\"127.0.0.0/8\"]\nidentity.unidentified = \"wildcard\"";
    fs::write(&new, wildcard).expect("written");
    let shown = what_if(&gate, &["--config", &new]).await;
    let line = format!(
        "1 cannot be decided: {NONE_THEN} (for example for {})\n",
        origin.url("/page")
    );
    assert!(shown.out.starts_with("1 decision\n"), "{}", shown.out);
    assert!(shown.out.contains(&line), "{}{}", shown.out, shown.errors);
    let store = format!(
        "\nnote: the store of evidence is {}; if another proxy wrote the log, name its store with --evidence FILE\nnote: with --robots ORIGIN=FILE, you can name the robots.txt of a site\n",
        gate.file("evidence.redb").display()
    );
    assert!(shown.out.contains(&store), "{}", shown.out);
}

const NONE_THEN: &str = "the logged decision used no robots.txt, and it is unknown which one the site had then";

#[tokio::test]
async fn a_decision_without_a_robots_txt_gets_the_one_that_the_site_had_then() {
    let robots = |path: &str| changes::brief(&format!("User-agent: *\nDisallow: {path}\n"));
    let [site, without] = [robots("/one"), Reply::status(404)].map(|robots| {
        let site = Origin::start().reply("/robots.txt", robots).anything("page");
        site.spawn()
    });
    let (site, without) = (site.await, without.await);
    let exempt = "[[bot]]\nname = \"Free\"\nuser-agents = [\"Free\"]\nenforcement = \"exempt\"\n";
    let gate = Gate::with(&format!("{exempt}{}", changes::BRIEF)).await;
    let get = async |url: String, agent: &str| assert_eq!(gate.get(&url).user_agent(agent).await.status, 200, "{url}");
    // For this exempt bot, robotgate fetches no robots.txt. So the store has none yet.
    get(site.url("/one?early"), "Free").await;
    for site in [&site, &without] {
        get(site.url("/"), "Other").await;
        get(site.url("/one"), "Free").await;
    }
    site.change("/robots.txt", robots("/two"));
    changes::changes(&gate, &site, 1).await;
    get(site.url("/one?late"), "Free").await;
    changes::versions(&gate, &site, 2).await;
    changes::versions(&gate, &without, 1).await;
    let new = gate.file("new.toml");
    let text = fs::read_to_string(gate.file("robotgate.toml")).expect("the file");
    fs::write(&new, text.replace("\"exempt\"", "\"enforce\"")).expect("written");
    let new = new.display().to_string();
    let found = what_if(&gate, &["--config", &new, "--list"]).await;
    let listed: Vec<[&str; 3]> = found
        .out
        .lines()
        .map(|line| {
            let fields: Vec<_> = line.split('\t').collect();
            [fields[2], fields[4], fields[5]]
        })
        .collect();
    assert_eq!(
        listed,
        [
            ["undecided", &*site.url("/one?early"), NONE_THEN],
            ["refused", &*site.url("/one"), "Disallow: /one"],
            ["basis", &*without.url("/one"), "no-robots"],
            ["basis", &*site.url("/one?late"), "no-rule"],
        ],
        "{}",
        found.errors
    );
    let early = "decisions that cannot be made again: 1; the list has them as undecided";
    assert!(found.errors.contains(early), "{}", found.errors);
}

#[tokio::test]
async fn a_new_robots_txt_or_user_agent_changes_only_affected_decisions() {
    let origin = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let other = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let gate = Gate::with(OLD).await;
    request_pages(&gate, &origin).await;
    gate.get(&other.url("/x")).user_agent("A").await;
    gate.audited(26).await;
    let file = gate.file("new.txt");
    fs::write(&file, "User-agent: *\nDisallow: /b\n").expect("written");
    let site = format!("{}={}", origin.url(""), file.display());
    let report = what_if(&gate, &["--robots", &site, "--json"]).await;
    let found = report.json();
    // The bots A and Other may now fetch /private/x and /x/../private, as B could before, and may no longer fetch /b.
    // The requests of the Reporter are still forwarded, and /private/open is allowed without a rule.
    let counts = ["refused", "forwarded", "verdict", "basis", "same"].map(|word| &found[word]);
    assert_eq!(
        counts,
        [2, 4, 3, 3, 14].map(|count| json!(count)).each_ref(),
        "{found:#}"
    );
    let same = what_if(
        &gate,
        &[
            "--agent",
            "A/1",
            "--robots",
            &format!("http://elsewhere={}", file.display()),
        ],
    )
    .await;
    assert_eq!(same.code, Some(1), "{}", same.out);
    assert!(same.out.contains(" for B (would be A) at "), "{}", same.out);
}

#[tokio::test]
async fn without_a_difference_the_exit_status_is_zero() {
    let origin = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let gate = Gate::with(OLD).await;
    request_pages(&gate, &origin).await;
    let config = gate.file("robotgate.toml").display().to_string();
    // robotgate finds the store of evidence through the configuration.
    let log = gate.file("audit.jsonl").display().to_string();
    let report = CliOutput::of(&["what-if", "--config", &config, &log], "").await;
    assert_eq!((&*report.errors, report.code), ("", Some(0)), "{}", report.out);
    assert_eq!(report.out, "25 decisions\n         25 would stay the same\n");
}

#[tokio::test]
async fn errors_say_what_to_do() {
    let gate = Gate::start().await;
    let log = gate.file("audit.jsonl").display().to_string();
    let bad = gate.file("bad.toml");
    fs::write(&bad, "[robots]\nprofle = \"google\"\n").expect("written");
    let elsewhere = gate.file("elsewhere.toml");
    fs::write(&elsewhere, "evidence.path = \"gone.redb\"\n").expect("written");
    let [bad, elsewhere] = [bad, elsewhere].map(|path| path.display().to_string());
    for (args, code, error) in [
        (&[][..], 2, "required"),
        (&["--config", &*bad], 1, "bad.toml:2"),
        (
            &["--config", &*elsewhere],
            1,
            "use --evidence FILE (the store of the proxy that wrote the log)",
        ),
        (&["--robots", "a.example=x"], 2, "is not an origin"),
        (
            &["--robots", "http://a.example=gone.txt"],
            1,
            "cannot read gone.txt: there is no such file",
        ),
    ] {
        let output = CliOutput::of(&[&["what-if", &log], args].concat(), "").await;
        assert!(output.errors.contains(error), "{args:?}: {}", output.errors);
        assert_eq!(output.code, Some(code), "{args:?}: {}", output.errors);
    }
}
