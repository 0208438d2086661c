//! The audit log: one decision and one completion for every request, with everything needed to explain it.

mod privacy;
mod robots;
mod service;

use std::{
    collections::{BTreeSet, HashSet},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use parking_lot::Mutex;
use serde_json::Value;

use crate::support::{Alpn, Connected, Gate, NAME, Origin, ROBOTS, Record, Reply, Step, allowed, refused, wait};

#[tokio::test]
async fn a_line_cut_by_a_crash_does_not_damage_the_next_one() {
    let origin = Origin::start().anything("page").spawn().await;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("audit.jsonl");
    std::fs::write(&path, "{\"event\":\"completion\",\"id\":\"").expect("written");
    let gate = Gate::with(&format!("[audit]\npath = {:?}", path.display().to_string())).await;

    allowed(&gate.get(&origin.url("/x")).await, "no-robots");

    let lines = wait::until("the end", || {
        let text = std::fs::read_to_string(&path).ok()?;
        let lines: Vec<_> = text.lines().map(str::to_owned).collect();
        (lines.len() == 5).then_some(lines)
    })
    .await;
    assert_eq!(lines[0], "{\"event\":\"completion\",\"id\":\"", "it is left as it is");
    let next: Value = serde_json::from_str(&lines[1]).expect("a whole line");
    assert_eq!(next["event"], "start");
}

#[track_caller]
fn has_documented_fields(record: &Record, event: &str) {
    let (_, section) = include_str!("../../docs/audit-log.md")
        .split_once(&format!("\n### {event}\n"))
        .expect("a section for each kind of record");
    let rows = section.split("\n###").next().into_iter().flat_map(str::lines);
    let names = rows.filter_map(|row| row.strip_prefix("| `")?.split("` | ").next());
    let documented: BTreeSet<&str> = names.flat_map(|names| names.split("`, `")).collect();
    let fields = record.as_object().expect("an object").keys().map(String::as_str);
    assert_eq!(fields.collect::<BTreeSet<_>>(), documented, "{record:#}");
}

#[tokio::test]
async fn the_log_alone_explains_a_refusal() {
    let origin = Origin::start().robots(ROBOTS).spawn().await;
    let gate = Gate::start().await;
    let url = origin.url("/private?a=1");

    let response = gate.get(&url).await;

    let record = gate.decision_for(&url).await;
    has_documented_fields(&record, "decision");
    let at = origin.url("");
    for (name, value) in [
        ("verdict", Value::from("deny")),
        ("reason", "rule".into()),
        ("enforcement", "enforce".into()),
        ("agent", "TestBot".into()),
        ("user_agent", "TestBot/1.0".into()),
        ("method", "GET".into()),
        ("origin", at.as_str().into()),
        ("rule", "Disallow: /private".into()),
        ("line", 2.into()),
        ("group", "*".into()),
        ("robots_url", format!("{at}/robots.txt").into()),
        ("robots_status", 200.into()),
        ("robots_cache", "miss".into()),
        ("profile", "google".into()),
    ] {
        assert_eq!(record[name], value, "{name}");
    }
    assert!(
        record["client"]
            .as_str()
            .is_some_and(|client| client.starts_with("127.0.0.1")),
        "{record:#}"
    );
    assert_eq!(record["id"].as_str(), response.decision().param("id").as_deref());
    let completion = gate.completion_of(&record).await;
    has_documented_fields(&completion, "completion");
    assert_eq!(
        (&completion["status"], &completion["upstream"]),
        (&403.into(), &Value::Null)
    );
}

#[tokio::test]
async fn a_decision_says_if_its_request_was_forwarded() {
    let robots = Origin::start().robots(ROBOTS).anything("page");
    let (plain, tls) = (robots.spawn().await, Origin::start().robots(ROBOTS).tls().spawn().await);
    let bot = |name, enforcement| {
        format!("[[bot]]\nname = '{name}'\nuser-agents = ['{name}']\nenforcement = '{enforcement}'\n")
    };
    let bots = bot("Watched", "report") + &bot("Scanner", "exempt");
    let lax = Gate::with(&format!("[https]\nmode = 'tunnel'\nunverifiable = 'allow'\n{bots}")).await;
    let strict = Gate::with(&format!(
        "[https]\nmode = 'tunnel'\n[egress]\ndeny = ['closed.example']\n{bots}"
    ))
    .await;
    let entry = format!("[[https.tunnel]]\nhost = '{NAME}'\nreason = 'pins'\nuntil = 2999-01-01\n");
    let entry = Gate::with(&entry).await;
    let (open, private, closed) = (
        plain.url("/x"),
        plain.url("/private"),
        "http://closed.example/x".to_owned(),
    );
    let connect = tls.authority();

    for (gate, method, target, agent, (verdict, reason, enforcement), forwarded) in [
        (&strict, "GET", &open, "TestBot", ("allow", "no-rule", "enforce"), true),
        (&strict, "GET", &private, "TestBot", ("deny", "rule", "enforce"), false),
        (&strict, "GET", &private, "Watched", ("deny", "rule", "report"), true),
        (&strict, "GET", &private, "Scanner", ("allow", "exempt", "exempt"), true),
        (&strict, "GET", &closed, "TestBot", ("deny", "egress", "enforce"), false),
        (&strict, "GET", &closed, "Watched", ("deny", "egress", "report"), false),
        (&strict, "GET", &closed, "Scanner", ("deny", "egress", "exempt"), false),
        (
            &strict,
            "GET",
            &open,
            "Mozilla/5.0",
            ("deny", "unidentified", "enforce"),
            false,
        ),
        (
            &strict,
            "CONNECT",
            &connect,
            "TestBot",
            ("unverifiable", "unverifiable", "enforce"),
            false,
        ),
        (
            &strict,
            "CONNECT",
            &connect,
            "Watched",
            ("unverifiable", "unverifiable", "report"),
            true,
        ),
        (
            &lax,
            "CONNECT",
            &connect,
            "TestBot",
            ("unverifiable", "unverifiable", "enforce"),
            true,
        ),
        (
            &entry,
            "CONNECT",
            &connect,
            "TestBot",
            ("unverifiable", "unverifiable", "enforce"),
            true,
        ),
    ] {
        let case = format!("{method} {target} {agent} {reason}");
        let count = plain.count("/x") + plain.count("/private");
        let went_on = match method {
            "CONNECT" => matches!(gate.connect(target).user_agent(agent).await, Connected::Tunnel(_)),
            _ => {
                gate.get(target).user_agent(agent).await;
                plain.count("/x") + plain.count("/private") > count
            }
        };
        assert_eq!(went_on, forwarded, "{case}");
        let records = gate.audit();
        let record = records.iter().rfind(|record| record["event"] == "decision");
        let record = record.unwrap_or_else(|| panic!("{case}: no decision"));
        assert_eq!(
            (
                &record["verdict"],
                &record["reason"],
                &record["enforcement"],
                &record["forwarded"]
            ),
            (&verdict.into(), &reason.into(), &enforcement.into(), &forwarded.into()),
            "{case}"
        );
    }
}

#[tokio::test]
async fn the_documentation_shows_a_decision_with_all_its_fields() {
    let origin = Origin::start().robots(ROBOTS).spawn().await;
    let gate = Gate::start().await;
    gate.get(&origin.url("/private")).await;

    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/audit-log.md");
    let page = std::fs::read_to_string(page).expect("there is a page about the log");
    let shown = page.lines().find(|line| line.starts_with(r#"{"event":"decision""#));
    let shown: Value = serde_json::from_str(shown.expect("the page has one")).expect("it is JSON");
    let record = gate.decision_for(&origin.url("/private")).await;
    let names = |record: &Value| {
        record
            .as_object()
            .map(|fields| fields.keys().cloned().collect::<Vec<_>>())
    };
    assert_eq!(names(&shown), names(&record));
}

#[tokio::test]
async fn a_completion_shows_the_result_of_the_request() {
    let origin = Origin::start().robots(ROBOTS).page("/x", "twelve bytes").spawn().await;
    let gate = Gate::start().await;
    let url = origin.url("/x");

    allowed(&gate.ask("POST", &url).body(b"a body").await, "no-rule");

    let record = gate.decision_for(&url).await;
    assert_eq!(
        (&record["verdict"], &record["reason"]),
        (&"allow".into(), &"no-rule".into())
    );
    assert_eq!((&record["rule"], &record["line"]), (&Value::Null, &Value::Null));
    let completion = gate.completion_of(&record).await;
    has_documented_fields(&completion, "completion");
    assert_eq!(
        (&completion["status"], &completion["error"]),
        (&200.into(), &Value::Null)
    );
    let upstream = completion["upstream"].as_str().unwrap_or_default();
    assert_eq!(upstream, origin.address().to_string());
    let number = |name: &str| {
        completion[name]
            .as_u64()
            .unwrap_or_else(|| panic!("{name} in {completion:#}"))
    };
    assert!(number("bytes_in") >= 6 && number("bytes_out") >= 12, "{completion:#}");
    assert!(number("duration_us") >= number("robots_wait_us"), "{completion:#}");
}

#[tokio::test]
async fn the_decision_is_written_before_the_origin_is_contacted() {
    let file: Arc<OnceLock<PathBuf>> = Arc::default();
    let seen: Arc<Mutex<Option<String>>> = Arc::default();
    let (path, note) = (file.clone(), seen.clone());
    let origin = Origin::start()
        .on("/x", move |_| {
            let text = path.get().and_then(|path| std::fs::read_to_string(path).ok());
            *note.lock() = text;
            Reply::ok("text/plain", "page")
        })
        .spawn()
        .await;
    let gate = Gate::start().await;
    file.set(gate.file("audit.jsonl")).expect("set once");

    allowed(&gate.get(&origin.url("/x")).await, "no-robots");

    let text = seen.lock().take().expect("the log is there");
    assert!(text.contains(&origin.url("/x")), "{text}");
}

#[tokio::test]
async fn every_request_is_logged_as_one_decision_and_one_completion() {
    let robots = "User-agent: *\nDisallow: /private\n";
    let plain = Origin::start()
        .robots(robots)
        .page("/x", "page")
        .reply("/reset", Reply::script([Step::Reset]));
    let plain = plain.spawn().await;
    let tls = Origin::start().robots(robots).page("/x", "page").tls().spawn().await;
    let gate = Gate::start().await;
    for path in ["/x", "/private", "/reset", "/missing", "/robots.txt"] {
        gate.get(&plain.url(path)).await;
    }
    gate.get(&plain.url("/unidentified")).without("User-Agent").await;
    for (alpn, mark) in [(Alpn::Http1, "1"), (Alpn::Http2, "2")] {
        let mut inside = gate.connect(&tls.authority()).await.opened().tls(NAME, alpn).await;
        allowed(&inside.get(&format!("/x?{mark}")).await, "no-rule");
        refused(&inside.get(&format!("/private?{mark}")).await, "rule");
    }

    let urls = ["/x", "/private", "/reset", "/missing", "/robots.txt", "/unidentified"].map(|path| plain.url(path));
    let inside = ["/x?1", "/private?1", "/x?2", "/private?2"].map(|path| tls.url(path));
    let mut ids = HashSet::new();
    for url in urls.iter().chain(&inside) {
        let decision = gate.decision_for(url).await;
        has_documented_fields(&decision, "decision");
        has_documented_fields(&gate.completion_of(&decision).await, "completion");
        assert!(ids.insert(decision["id"].as_str().expect("an id").to_owned()), "{url}");
    }
    for id in ids {
        let of_it = gate.audit().iter().filter(|record| record["id"] == id.as_str()).count();
        assert_eq!(of_it, 2, "{id}");
    }
}

#[tokio::test]
async fn queries_can_be_redacted_from_the_log() {
    let origin = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let gate = Gate::with("[audit]\nredact-query = true").await;

    allowed(&gate.get(&origin.url("/x?token=hunter2")).await, "no-rule");
    refused(&gate.get(&origin.url("/private?token=hunter2")).await, "rule");

    gate.audited(2).await;
    let text = std::fs::read_to_string(gate.file("audit.jsonl")).expect("the log is there");
    assert!(!text.contains("hunter2"), "{text}");
    assert!(text.contains(&origin.url("/private")), "{text}");
    assert_eq!(origin.requests_for("/x")[0].target, "/x?token=hunter2");
    assert!(
        gate.log().iter().all(|line| !line.says("hunter2")),
        "nor in the other log"
    );
}

#[tokio::test]
async fn the_log_can_be_written_to_standard_output() {
    let origin = Origin::start().anything("page").spawn().await;
    let gate = Gate::builder()
        .without("audit.path")
        .config("[audit]\nstdout = true")
        .start()
        .await;

    allowed(&gate.get(&origin.url("/x")).await, "no-robots");

    let line = |event: &'static str| gate.output().into_iter().find(move |line| line.json["event"] == event);
    let decision = wait::until("a decision", || line("decision")).await;
    let completion = wait::until("a completion", || line("completion")).await;
    assert_eq!(decision.json["url"], origin.url("/x"));
    assert_eq!(decision.json["id"], completion.json["id"]);
    assert!(
        gate.output().iter().all(|line| line.json.is_object()),
        "nothing else is on standard output"
    );
}

#[tokio::test]
async fn a_user_agent_cannot_forge_a_record() {
    let origin = Origin::start().anything("page").spawn().await;
    let gate = Gate::start().await;
    let forged = r#"TestBot/1.0 "}{"event":"decision","verdict":"allow"\u000a"#;

    gate.get(&origin.url("/x")).user_agent(forged).await;

    assert_eq!(gate.decision_for(&origin.url("/x")).await["user_agent"], forged);
    gate.audited(1).await;
}

/// One path has the text `\u{202e}`, which looks like the log's escape of the character U+202E.
#[tokio::test]
async fn different_targets_have_different_urls_in_the_log() {
    let origin = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let gate = Gate::start().await;
    let host = origin.authority();
    for (line, url) in [
        (format!("OPTIONS http://{host}"), format!("http://{host}")),
        (format!("OPTIONS http://{host}/"), format!("http://{host}/")),
        (format!("OPTIONS http://{host}/*"), format!("http://{host}/*")),
        (
            format!("GET http://{host}/a\u{202e}b"),
            format!("http://{host}/a\\u{{202e}}b"),
        ),
        (
            format!("GET http://{host}/a\\u{{202e}}b"),
            format!("http://{host}/a\\u{{5c}}u{{202e}}b"),
        ),
    ] {
        let sent = format!("{line} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: TestBot/1.0\r\nConnection: close\r\n\r\n");
        let answer = gate.raw(sent).await;
        assert!(
            answer.starts_with(b"HTTP/1.1 200 "),
            "{line}: {}",
            String::from_utf8_lossy(&answer)
        );
        assert_eq!(gate.decision_for(&url).await["verdict"], "allow", "{line}");
    }
}

#[tokio::test]
async fn redaction_also_applies_to_readings() {
    let origin = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let gate = Gate::with("[audit]\nredact-query = true").await;
    refused(&gate.get(&origin.url("//private?secret")).await, "rule");
    let decision = gate.decision_for(&origin.url("//private?redacted")).await;
    assert_eq!(decision["read_as"], "/private?redacted", "{decision:#}");
}
