//! `robotgate replay` with the log of a proxy that has run.

use std::{fs, io::Write as _, path::Path};

use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};

use crate::support::{CliOutput, Gate, Origin};

const ROBOTS: &str = "User-agent: *\nDisallow: /private\nAllow: /private/open\n";
const BOTS: &str = "
    [[bot]]
    name = \"Exempt\"
    user-agents = [\"Exempt\"]
    exempt-hosts = [\"127.0.0.1\"]
    [[bot]]
    name = \"Reporter\"
    user-agents = [\"Reporter\"]
    enforcement = \"report\"
";

async fn replay(gate: &Gate, args: &[&str], log: &Path, input: &str) -> CliOutput {
    let (store, log) = (gate.file("evidence.redb"), log.display().to_string());
    let store = store.display().to_string();
    let args = [&["replay", "--evidence", &store], args, &[&log]].concat();
    CliOutput::of(&args, input).await
}

/// Runs a proxy that makes every common kind of decision, before and after a reload. Returns the gate and the number of
/// its decisions.
async fn busy() -> (Gate, u64) {
    let origin = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let empty = Origin::start().anything("page").spawn().await;
    let gate = Gate::with(BOTS).await;
    let mut made = 0;
    for round in 0..2 {
        for path in [
            "/private/x",
            "/private/open",
            "/page?q=%7Etilde",
            "/x/../private",
            "/robots.txt",
        ] {
            for agent in ["A/1.0", "Exempt", "Reporter", "Mozilla/5.0"] {
                gate.get(&origin.url(path)).user_agent(agent).await;
                made += 1;
            }
        }
        gate.get(&empty.url("/")).await;
        gate.get("http://nowhere.invalid/").await;
        gate.get("http://10.0.0.1/").await;
        made += 3;
        if round == 0 {
            gate.replace_config(&format!(
                "{BOTS}\n[robots]\nprofile = \"rfc9309\"\nstrict-paths = false"
            ));
            gate.reloaded(1).await;
        }
    }
    gate.audited(usize::try_from(made).expect("few")).await;
    (gate, made)
}

#[tokio::test]
async fn a_log_is_decided_again_while_the_proxy_runs() {
    let (gate, made) = busy().await;
    let log = gate.file("audit.jsonl");
    let report = replay(&gate, &["--json"], &log, "").await;
    let found = report.json();
    assert_eq!(found["differences"], json!([]));
    assert_eq!(
        (&found["decisions"], &found["not_replayable"]),
        (&json!(made), &json!({})),
        "{found}"
    );
    assert_eq!(found["as_logged"], 2, "the requests to a private address");
    assert_eq!((found["same"].as_u64(), report.code), (Some(made - 2), Some(0)));
}

#[tokio::test]
async fn altered_lines_are_found_in_plain_and_compressed_logs_and_on_standard_input() {
    let (gate, _) = busy().await;
    let text = fs::read_to_string(gate.file("audit.jsonl")).expect("the log");
    let mut altered = None;
    let lines = text.lines().map(|line| {
        let mut record: Value = serde_json::from_str(line).expect("JSON");
        if altered.is_none() && record["reason"] == "rule" && record["verdict"] == "deny" {
            record["verdict"] = json!("allow");
            altered = record["id"].as_str().map(str::to_owned);
        }
        record.to_string() + "\n"
    });
    let text: String = lines.collect();
    let id = altered.expect("there is one");
    let plain = gate.file("altered.jsonl");
    fs::write(&plain, &text).expect("written");
    let packed = gate.file("altered.jsonl.1.gz");
    let mut gz = GzEncoder::new(fs::File::create(&packed).expect("made"), Compression::fast());
    gz.write_all(text.as_bytes())
        .and_then(|()| gz.finish())
        .expect("written");
    for (log, input) in [(&*plain, ""), (&packed, ""), (Path::new("-"), &*text)] {
        let report = replay(&gate, &["--json"], log, input).await;
        let found = report.json();
        assert_eq!((&found["different"], report.code), (&json!(1), Some(1)), "{found}");
        let difference = &found["differences"][0];
        assert_eq!(difference["id"], json!(id));
        assert_eq!(
            difference["fields"][0],
            json!({"field": "verdict", "logged": "allow", "now": "deny"})
        );
    }
    let shown = replay(&gate, &["--id", &id], &plain, "").await;
    for part in [
        "verdict: logged allow, replayed deny",
        "line 2: Disallow: /private (group *)",
    ] {
        assert!(shown.out.contains(part), "{part}: {}", shown.out);
    }
    assert_eq!(shown.code, Some(1));
    let command = |what: &str| {
        let (_, command) = shown.out.split_once(what).expect("the command");
        let line = command.lines().next().unwrap_or_default();
        line.split_whitespace().collect::<Vec<_>>()
    };
    let read = command("To read this robots.txt: robotgate ");
    assert_eq!(CliOutput::of(&read, "").await.out, ROBOTS, "{read:?}");
    let read = command("To read this configuration: robotgate ");
    let stored = CliOutput::of(&read, "").await.out;
    assert!(stored.contains("[egress]"), "{read:?}: {stored}");
    // The store also has the robots.txt, which is no configuration.
    let robots = command("robots.txt  ")[0].to_owned();
    let unknown: Vec<&str> = read
        .iter()
        .map(|word| if word.len() == 64 { &*robots } else { *word })
        .collect();
    let unknown = CliOutput::of(&unknown, "").await;
    assert!(
        unknown
            .errors
            .contains(&format!("does not have the configuration {robots}")),
        "{unknown:?}"
    );
    let shown = replay(&gate, &["--id", &id, "--json"], &plain, "").await;
    let found = shown.json();
    assert_eq!(
        (&found["outcome"], &found["rule"]["line"]),
        (&json!("different"), &json!(2)),
        "{found}"
    );
    assert_eq!(found["fields"][0]["field"], "verdict");
    let is_it = |line: &str| line.contains(&*id) && line.contains("\"event\":\"decision\"");
    let number = text.lines().position(is_it).map(|before| before + 1);
    assert_eq!(found["line"], json!(number), "{found}");
    assert_eq!(shown.code, Some(1));
}

#[tokio::test]
async fn a_line_that_cannot_be_read_fails_the_replay() {
    let (gate, _) = busy().await;
    let text = fs::read_to_string(gate.file("audit.jsonl")).expect("the log");
    let report = replay(&gate, &["--json"], Path::new("-"), &text[..text.len() - 2]).await;
    assert_eq!((&report.json()["unreadable_lines"], report.code), (&json!(1), Some(1)));
    let report = replay(&gate, &["--json"], Path::new("-"), &format!("{text}{{garbage}}\n")).await;
    assert_eq!((&report.json()["unreadable_lines"], report.code), (&json!(1), Some(1)));

    // In JSON, `decisio\u006e` means `decision`, and other programs read it so. An altered decision must not hide from
    // the replay in this way.
    let denied = text
        .lines()
        .find(|line| line.contains("\"verdict\":\"deny\",\"reason\":\"rule\""));
    let altered = denied
        .expect("there is one")
        .replace("\"verdict\":\"deny\"", "\"verdict\":\"allow\"")
        .replace("\"event\":\"decision\"", "\"event\":\"decisio\\u006e\"");
    let report = replay(&gate, &["--json"], Path::new("-"), &format!("{text}{altered}\n")).await;
    assert_eq!((&report.json()["different"], report.code), (&json!(1), Some(1)));
    // A decision is not replayed if its `origin` in the log is not the origin of its `url`.
    let moved = text.replacen("\"origin\":\"http://", "\"origin\":\"http://other.", 1_000);
    let report = replay(&gate, &["--json"], Path::new("-"), &moved).await;
    assert_eq!((&report.json()["same"], report.code), (&json!(0), Some(1)));
}

#[tokio::test]
async fn without_its_text_a_decision_is_not_replayed() {
    let (mut gate, made) = busy().await;
    gate.stop().await;
    fs::remove_file(gate.file("evidence.redb")).expect("removed");
    // The new store contains the latest configuration, but not the one before the reload, and no robots.txt.
    gate.start_again().await;
    let log = gate.file("audit.jsonl");
    let report = replay(&gate, &["--json"], &log, "").await;
    let found = report.json();
    let missing = found["not_replayable"].as_object().expect("an object");
    assert!(
        missing
            .keys()
            .all(|why| why.contains("the store of evidence does not have")),
        "{found}"
    );
    let reasons = ["configuration", "robots.txt"].map(|text| format!("the store of evidence does not have the {text}"));
    assert!(missing.keys().eq(&reasons), "{found}");
    assert_eq!(
        found["missing"][&reasons[1]].as_str().map(str::len),
        Some(64),
        "{found}"
    );
    assert_eq!(
        (&found["different"], report.code),
        (&json!(0), Some(1)),
        "{found} of {made}"
    );
    let report = replay(&gate, &["--allow-missing"], &log, "").await;
    assert_eq!(report.code, Some(0), "{}", report.out);
    assert!(report.out.contains("have the robots.txt (such as "), "{}", report.out);
}

#[tokio::test]
async fn replay_of_a_decision_shows_why_robots_txt_was_not_enforced() {
    let origin = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let bots = "[[bot]]\nname = \"Free\"\nuser-agents = [\"Free\"]\nenforcement = \"exempt\"\n\
                [[bot]]\nname = \"Partner\"\nuser-agents = [\"Partner\"]\nexempt-hosts = [\"127.0.0.1\"]\n\
                [[bot]]\nname = \"Trial\"\nuser-agents = [\"Trial\"]\nenforcement = \"report\"\n";
    let gate = Gate::with(bots).await;
    let shown = [
        ("Free", "\nenforcement     exempt\n"),
        ("Partner", "\nexempt host     127.0.0.1\n"),
        ("Trial", "\nenforcement     report\n"),
    ];
    for (made, (agent, expected)) in (1..).zip(shown) {
        let url = origin.url_at("127.0.0.1", "/private");
        let response = gate.get(&url).user_agent(agent).await;
        let id = response.decision().param("id").expect("an id").to_owned();
        gate.audited(made).await;
        let shown = replay(&gate, &["--id", &id], &gate.file("audit.jsonl"), "").await;
        assert!(shown.out.contains(expected), "{agent}: {}", shown.out);
        assert!(shown.out.contains("\nline of the log /"), "{}", shown.out);
        let names_host = shown.out.contains("\nexempt host ");
        assert_eq!(names_host, agent == "Partner", "{agent}: {}", shown.out);
    }
}

#[tokio::test]
async fn replay_of_a_decision_names_the_group_without_a_matching_rule() {
    let origin = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let gate = Gate::start().await;
    let response = gate.get(&origin.url("/page")).await;
    let id = response.decision().param("id").expect("an id").to_owned();
    gate.audited(1).await;
    let shown = replay(&gate, &["--id", &id], &gate.file("audit.jsonl"), "").await;
    let rule = "\nrule            none matches (group *)\n";
    assert!(shown.out.contains(rule), "{}", shown.out);
}

#[tokio::test]
async fn requests_without_a_bot_are_the_same_in_a_replay() {
    let origin = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let report = "[identity]\nenforcement = \"report\"\n";
    let wildcard = "[identity]\nenforcement = \"report\"\nunidentified = \"wildcard\"\n";
    // With `bots`, each client has a proof of both bots, so it is identified only if its User-Agent names one of them.
    let bots = "[[bot]]\nname = \"One\"\nuser-agents = [\"One\"]\nnetworks = [\"127.0.0.0/8\"]\n\
                [[bot]]\nname = \"Two\"\nuser-agents = [\"Two\"]\nnetworks = [\"127.0.0.0/8\"]\n";
    let mut forwarded = Vec::new();
    for settings in [report, wildcard] {
        for bots in ["", bots] {
            let gate = Gate::with(&format!("{settings}{bots}")).await;
            let url = origin.url("/private");
            for agents in [
                &[""][..],
                &["Mozilla/5.0"],
                &["Mozilla/5.0 | x"],
                &["Mozilla/5.0", "One/1.0"],
            ] {
                let ask = gate.get(&url).user_agent(agents[0]);
                let response = match agents.get(1) {
                    Some(second) => ask.header("User-Agent", second).await,
                    None => ask.await,
                };
                forwarded.push(response.status == 200);
            }
            gate.audited(4).await;
            let report = replay(&gate, &["--json"], &gate.file("audit.jsonl"), "").await;
            let found = report.json();
            assert_eq!(
                (&found["decisions"], &found["differences"]),
                (&json!(4), &json!([])),
                "{settings}{bots}"
            );
            assert_eq!(
                (&found["not_replayable"], report.code),
                (&json!({}), Some(0)),
                "{found}"
            );
            // Without `bots`, the replay decides every request again. With `bots`, it does not decide those requests
            // again that were refused because of the proof.
            assert_eq!(bots.is_empty(), found["same"] == 4, "{found}");
            assert!(found["same"].as_u64() > Some(0), "{found}");
        }
    }
    let without_proof = [true, true, true, false];
    assert_eq!(
        forwarded,
        [without_proof, [false; 4], without_proof, [false; 4]].concat()
    );
}

#[tokio::test]
async fn errors_name_the_file() {
    let gate = Gate::start().await;
    let report = replay(&gate, &[], Path::new("gone.jsonl"), "").await;
    assert!(
        report.errors.contains("cannot read gone.jsonl: there is no such file"),
        "{}",
        report.errors
    );
    let args = ["replay", "--evidence", "gone.redb", "audit.jsonl"];
    let report = CliOutput::of(&args, "").await;
    assert!(
        report.errors.contains("the store of evidence gone.redb cannot be read"),
        "{}",
        report.errors
    );
    assert_eq!(report.code, Some(1));
    let report = replay(&gate, &["--id", "x"], &gate.file("audit.jsonl"), "").await;
    assert_eq!(
        (&*report.out, report.code),
        ("no decision in these logs has the id x\n", Some(1))
    );
}

#[tokio::test]
async fn only_decisions_that_need_a_redacted_parameter_are_not_replayable() {
    let origin = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let empty = Origin::start().anything("page").spawn().await;
    let gate = Gate::with(
        "[audit]\nmask-client = { ipv4 = 8 }\nuser-agent = \"product\"\nredact-query = [\"token\"]\n\
         [[bot]]\nname = \"Known\"\nuser-agents = [\"*contact: jane*\"]",
    )
    .await;
    for agent in ["A/1.0 (jane)", "Known/2 (contact: jane)", "Mozilla/5.0"] {
        gate.get(&origin.url("/private/x?page=1")).user_agent(agent).await;
        gate.get(&origin.url("/private/x?token=1")).user_agent(agent).await;
        gate.get(&empty.url("/private/x?token=1")).user_agent(agent).await;
    }
    gate.audited(9).await;
    let found = replay(&gate, &["--json"], &gate.file("audit.jsonl"), "").await.json();
    let why = "the value of a parameter was left out of the log (audit.redact-query)";
    // Only two of the six decisions about a URL with a `token` need its value. The others would be the same for any
    // value: `empty` has no rules, and Mozilla names no bot.
    assert_eq!((&found["same"], &found["different"]), (&json!(7), &json!(0)), "{found}");
    assert_eq!(found["not_replayable"], json!({ why: 2 }), "{found}");
}
