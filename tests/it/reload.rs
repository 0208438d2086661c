//! Changes of the configuration while the gate runs, signals, invalid configurations at the start, and audit logs
//! that cannot be written, or were renamed or removed.

mod changes;
mod listeners;

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use tokio::task::JoinHandle;

use crate::support::{Alpn, Ask, Gate, Latch, NAME, Origin, Reply, Signal, Step, allowed, refused, wait};

const EXEMPT: &str = "[[bot]]\nname = \"tester\"\nuser-agents = [\"TestBot\"]\nenforcement = \"exempt\"\n";

/// Invalid configurations, and a word in the error of each.
const WRONG: [(&str, &str); 4] = [
    ("[proxy\n", "unclosed"),
    ("[proxy]\nlisten = 5\n", "listen"),
    ("[proxy]\nname = \"robotgate\"\n\n[http]\nmode = \"tunnel\"\n", "http"),
    ("[https]\nmode = \"sometimes\"\n", "mode"),
];

async fn closed_origin() -> Origin {
    Origin::start()
        .robots("User-agent: *\nDisallow: /\n")
        .anything("page")
        .spawn()
        .await
}

#[tokio::test]
async fn a_change_takes_effect_if_the_file_is_rewritten_or_replaced() {
    let origin = closed_origin().await;
    let gate = Gate::start().await;
    let url = origin.url("/x");
    refused(&gate.get(&url).await, "rule");

    gate.reconfigure(EXEMPT);
    gate.reloaded(1).await;
    allowed(&gate.get(&url).await, "exempt");

    gate.replace_config("");
    gate.reloaded(2).await;
    refused(&gate.get(&url).await, "rule");

    let generations: Vec<_> = gate.audit().into_iter().filter(|r| r["event"] == "decision").collect();
    assert_ne!(generations[0]["config"], generations[1]["config"]);
    assert_ne!(generations[1]["config"], generations[2]["config"]);
}

#[tokio::test]
async fn a_new_profile_parses_the_existing_copies_again() {
    let origin = Origin::start()
        .robots("User-agent: *\nDisallow: /%62%61%7A\n")
        .anything("page")
        .spawn()
        .await;
    let gate = Gate::start().await;
    let url = origin.url("/baz");
    allowed(&gate.get(&url).await, "no-rule");

    gate.reconfigure("[robots]\nprofile = \"rfc9309\"");
    gate.reloaded(1).await;
    refused(&gate.get(&url).await, "rule");

    gate.reconfigure("");
    gate.reloaded(2).await;
    allowed(&gate.get(&url).await, "no-rule");

    assert_eq!(origin.count("/robots.txt"), 1);
    let decisions: Vec<_> = gate.audit().into_iter().filter(|r| r["event"] == "decision").collect();
    let profiles: Vec<_> = decisions.iter().map(|record| record["profile"].as_str()).collect();
    assert_eq!(profiles, [Some("google"), Some("rfc9309"), Some("google")]);
    for record in &decisions[1..] {
        for field in ["robots_status", "robots_sha256", "robots_fetched", "robots_expires"] {
            assert_eq!(record[field], decisions[0][field], "{field}");
        }
        assert_eq!(record["robots_cache"], "hit");
    }
}

#[tokio::test]
async fn a_bad_file_changes_nothing_and_its_mistakes_are_logged() {
    let origin = closed_origin().await;
    let gate = Gate::with(EXEMPT).await;

    for (count, (text, named)) in WRONG.into_iter().enumerate() {
        println!("{text}");
        gate.rewrite_config(text);
        wait::until("a rejection", || {
            (gate.logged("the new configuration was rejected; robotgate keeps the current one") > count).then_some(())
        })
        .await;
        let rejections: Vec<_> = gate
            .log()
            .into_iter()
            .filter(|line| line.message() == "the new configuration was rejected; robotgate keeps the current one")
            .collect();
        let error = rejections
            .last()
            .and_then(|line| line.field("error"))
            .unwrap_or_default()
            .to_owned();
        assert!(error.contains(named), "{error:?} does not name {named:?}");
        assert!(error.contains("robotgate.toml"), "{error:?} does not name the file");
        allowed(&gate.get(&origin.url("/x")).await, "exempt");
    }

    assert_eq!(gate.logged("configuration reloaded"), 0);
    let records: Vec<_> = gate.audit().into_iter().filter(|r| r["event"] == "decision").collect();
    assert!(records.iter().all(|record| record["config"] == records[0]["config"]));
    ready_says(
        &gate,
        "ready\nthe new configuration was rejected, and the old one applies; the operational log says why\n",
    )
    .await;
    gate.reconfigure("bot = []");
    gate.reloaded(1).await;
    ready_says(&gate, "ready\n").await;
    refused(&gate.get(&origin.url("/x")).await, "rule");
}

async fn ready_says(gate: &Gate, text: &str) {
    wait::until_async(text, async || {
        (gate.admin("/readyz").await.text() == text).then_some(())
    })
    .await;
}

#[tokio::test]
async fn no_request_fails_while_the_file_changes() {
    let origin = Origin::start().anything("page").spawn().await;
    let gate = Gate::start().await;
    let load: Vec<Load> = (0..4).map(|_| Load::start(&gate, &origin.url("/x"))).collect();

    for round in 1..=5 {
        gate.reconfigure(&format!("[robots]\nuser-agent = \"Round{round}\""));
        gate.reloaded(round).await;
        gate.rewrite_config("wrong = [");
        wait::until("a rejection", || {
            (gate.logged("the new configuration was rejected; robotgate keeps the current one") >= round).then_some(())
        })
        .await;
    }

    for worker in load {
        let (served, failures) = worker.stop().await;
        assert!(served > 0);
        assert_eq!(failures, Vec::<String>::new(), "of {served}");
    }
}

#[tokio::test]
async fn sighup_reads_the_file_again() {
    let origin = closed_origin().await;
    let gate = Gate::with(EXEMPT).await;

    gate.signal(Signal::HUP);

    gate.reloaded(1).await;
    allowed(&gate.get(&origin.url("/x")).await, "exempt");
}

#[tokio::test]
async fn sigterm_lets_running_exchanges_finish() {
    let latch = Latch::new();
    let origin = Origin::start()
        .reply("/slow", Reply::ok("text/plain", "done").after(&latch))
        .spawn()
        .await;
    let mut gate = Gate::start().await;
    let running = tokio::spawn(gate.get(&origin.url("/slow")).into_future());
    wait::until("the request", || (origin.count("/slow") == 1).then_some(())).await;

    gate.signal(Signal::TERM);
    wait::until("the listener to close", || {
        std::net::TcpStream::connect(gate.address()).is_err().then_some(())
    })
    .await;
    assert!(gate.runs(), "it waits for what runs");
    latch.open();

    let response = running.await.expect("no panic");
    allowed(&response, "no-robots");
    assert_eq!(response.text(), "done");
    assert_eq!(gate.ended().await.code(), Some(0));
    gate.audited(1).await;
}

#[tokio::test]
async fn exchanges_after_the_shutdown_timeout_are_logged_as_aborted() {
    let latch = Latch::new();
    let origin = Origin::start()
        .reply("/slow", Reply::ok("text/plain", "never").after(&latch))
        .spawn()
        .await;
    let mut gate = Gate::with("[proxy]\nshutdown-timeout = \"200ms\"").await;
    let running = tokio::spawn(gate.get(&origin.url("/slow")).into_future());
    wait::until("the request", || (origin.count("/slow") == 1).then_some(())).await;

    assert_eq!(gate.stop().await.code(), Some(0));

    running.abort();
    let (_, completions) = gate.audited(1).await;
    assert_eq!(completions[0]["error"], "aborted", "{completions:#?}");
    assert!(completions[0]["status"].is_null(), "{completions:#?}");
}

#[tokio::test]
async fn http_2_exchanges_cut_off_at_shutdown_are_logged_as_aborted() {
    let latch = Latch::new();
    let origin = Origin::start()
        .reply("/slow", Reply::ok("text/plain", "never").after(&latch))
        .tls()
        .spawn()
        .await;
    let mut gate = Gate::with("[proxy]\nshutdown-timeout = \"200ms\"").await;
    let tunnel = gate.connect(&origin.authority()).await.opened();
    let mut client = tunnel.tls(NAME, Alpn::Http2).await;
    let paths: Vec<String> = (0..20).map(|n| format!("/slow?{n}")).collect();
    let running = tokio::spawn(async move { client.get_all(&paths).await });
    wait::until("the requests", || (origin.count("/slow") == 20).then_some(())).await;

    assert_eq!(gate.stop().await.code(), Some(0));

    running.abort();
    let (_, completions) = gate.audited(20).await;
    for completion in completions {
        assert_eq!(completion["error"], "aborted", "{completion:#}");
    }
}

#[tokio::test]
async fn a_response_cut_off_at_shutdown_is_logged_with_its_status() {
    let origin = Origin::start()
        .reply(
            "/half",
            Reply::script([
                Step::send("HTTP/1.1 203 OK\r\nContent-Length: 8\r\n\r\nhalf"),
                Step::Stall,
            ]),
        )
        .spawn()
        .await;
    let mut gate = Gate::with("[proxy]\nshutdown-timeout = \"200ms\"").await;
    let mut client = gate.dial().await;
    client
        .send(format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: TestBot\r\n\r\n",
            origin.url("/half"),
            origin.authority()
        ))
        .await;
    let mut response = Vec::new();
    while !response.ends_with(b"half") {
        response.extend(client.read().await);
    }

    assert_eq!(gate.stop().await.code(), Some(0));

    let (_, completions) = gate.audited(1).await;
    assert_eq!(completions[0]["error"], "aborted", "{completions:#?}");
    assert_eq!(completions[0]["status"], 203, "{completions:#?}");
}

#[tokio::test]
async fn a_briefly_empty_file_is_rejected() {
    let origin = closed_origin().await;
    let gate = Gate::start().await;

    gate.rewrite_config("\n");
    gate.wait_for_log("a rejection", |line| {
        line.says("the new configuration was rejected; robotgate keeps the current one")
    })
    .await;

    refused(&gate.get(&origin.url("/x")).await, "rule");
    let line = gate.wait_for_log("why", |line| line.says("is empty")).await;
    assert_eq!(
        line.message(),
        "the new configuration was rejected; robotgate keeps the current one"
    );
}

#[tokio::test]
async fn sighup_reopens_the_log_after_rotation() {
    let origin = Origin::start().anything("page").spawn().await;
    let gate = Gate::start().await;
    allowed(&gate.get(&origin.url("/before")).await, "no-robots");
    gate.audited(1).await;
    std::fs::rename(gate.file("audit.jsonl"), gate.file("audit.jsonl.1")).expect("moved");

    gate.signal(Signal::HUP);
    gate.reloaded(1).await;
    allowed(&gate.get(&origin.url("/after")).await, "no-robots");

    let (decisions, _) = gate.audited(1).await;
    assert_eq!(decisions[0]["url"], origin.url("/after"));
}

#[tokio::test]
async fn lines_that_wait_for_a_full_disk_go_to_the_new_log() {
    let origin = Origin::start().robots("").anything("page").spawn().await;
    // Every write to `/dev/full` fails with "no space left".
    let gate = Gate::with("[audit]\npath = \"/dev/full\"").await;
    let waiting = tokio::spawn(gate.get(&origin.url("/x")).into_future());
    gate.wait_for_log("a full disk", |line| {
        line.message().starts_with("the audit log cannot be written")
    })
    .await;

    gate.reconfigure("[audit]\npath = \"audit.jsonl\"");
    gate.reloaded(1).await;

    allowed(&waiting.await.unwrap(), "no-rule");
    let again = gate
        .wait_for_log("the new log", |line| {
            line.message() == "the audit log can be written again"
        })
        .await;
    assert_eq!(again.field("output"), gate.file("audit.jsonl").to_str(), "{again:?}");
    allowed(&gate.get(&origin.url("/y")).await, "no-rule");
    let (decisions, _) = gate.audited(2).await;
    let fetches = gate.fetches_of(origin.url("/").trim_end_matches('/'));
    assert_eq!(
        fetches.len(),
        1,
        "the fetch that both decisions rest on is in the log: {fetches:#?}"
    );
    for decision in &decisions {
        assert_eq!(decision["robots_fetched"], fetches[0]["time"], "{decision:#?}");
    }
}

#[tokio::test]
async fn a_stop_with_a_full_disk_reports_the_lost_lines_once() {
    let origin = Origin::start().robots("").anything("page").spawn().await;
    let config = "[audit]\npath = \"/dev/full\"\n[proxy]\nshutdown-timeout = \"1ms\"";
    let mut gate = Gate::with(config).await;
    let first = tokio::spawn(gate.get(&origin.url("/x")).into_future());
    gate.wait_for_log("a full disk", |line| {
        line.message().starts_with("the audit log cannot be written")
    })
    .await;
    // The line of this request is not part of the failing write, but waits for the next write.
    let second = tokio::spawn(gate.get(&origin.url("/y")).into_future());
    wait::until_async("two decisions", async || {
        let metrics = gate.admin("/metrics").await.text();
        let mut series = metrics
            .lines()
            .filter(|line| line.starts_with("robotgate_decisions_total{"));
        series.any(|line| line.ends_with(" 2")).then_some(())
    })
    .await;
    first.abort();
    second.abort();
    gate.stop().await;
    let mut lost = gate.log();
    lost.retain(|line| line.message().starts_with("the last lines of the audit log are lost"));
    assert_eq!(lost.len(), 1, "{lost:#?}");
    assert_eq!(lost[0].field("output"), Some("/dev/full"));
    // With only one of the two decisions, the lost lines would have about 2200 bytes.
    assert!(lost[0].json["bytes"].as_u64() > Some(2500), "{lost:#?}");
}

#[tokio::test]
async fn sigusr1_reopens_the_log_even_if_the_configuration_is_bad() {
    let origin = Origin::start().anything("page").spawn().await;
    let gate = Arc::new(Gate::start().await);
    gate.rewrite_config("[proxy\n");
    gate.wait_for_log("the mistake", |line| {
        line.message() == "the new configuration was rejected; robotgate keeps the current one"
    })
    .await;
    let load: Vec<_> = (0..4)
        .map(|bot| {
            let (gate, origin) = (gate.clone(), origin.url("/"));
            tokio::spawn(async move {
                for number in 0..50 {
                    allowed(&gate.get(&format!("{origin}{bot}-{number}")).await, "no-robots");
                }
            })
        })
        .collect();

    let mut files = Vec::new();
    while !load.iter().all(JoinHandle::is_finished) {
        let moved = gate.file(&format!("moved.{}", files.len()));
        std::fs::rename(gate.file("audit.jsonl"), &moved).expect("the folder is ours");
        files.push(moved);
        gate.signal(Signal::USR1);
        wait::until("a new log", || gate.file("audit.jsonl").exists().then_some(())).await;
    }
    for bot in load {
        bot.await.expect("no panic");
    }
    files.push(gate.file("audit.jsonl"));

    let ids = wait::until("every line", || {
        let text: String = files
            .iter()
            .map(|file| std::fs::read_to_string(file).expect("a file"))
            .collect();
        let lines = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("a whole line"));
        let lines: Vec<serde_json::Value> = lines.filter(|line: &serde_json::Value| !line["id"].is_null()).collect();
        let ids = |event| -> Vec<String> {
            let of_event = lines.iter().filter(|line| line["event"] == event);
            of_event.map(|line| line["id"].to_string()).collect()
        };
        let (decided, completed) = (ids("decision"), ids("completion"));
        (decided.len() >= 200 && completed.len() >= 200).then_some([decided, completed])
    })
    .await;
    for mut ids in ids {
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 200, "each once");
    }
}

#[tokio::test]
async fn sigterm_ends_an_idle_gate_immediately() {
    for signal in [Signal::TERM, Signal::INT] {
        let origin = Origin::start().anything("page").spawn().await;
        let mut gate = Gate::start().await;
        let mut kept = gate.dial().await;
        allowed(&kept.get(&origin.url("/x")).await, "no-robots");

        gate.signal(signal);

        assert_eq!(
            gate.ended().await.code(),
            Some(0),
            "an idle connection holds nothing up"
        );
    }
}

#[tokio::test]
async fn at_exit_all_audit_records_are_on_disk() {
    let origin = Origin::start().anything("page").spawn().await;
    let mut gate = Gate::start().await;
    for _ in 0..50 {
        allowed(&gate.get(&origin.url("/x")).await, "no-robots");
    }

    assert_eq!(gate.stop().await.code(), Some(0));

    let count = |event: &str| gate.audit().iter().filter(|record| record["event"] == event).count();
    assert_eq!((count("decision"), count("completion")), (50, 50));
}

#[tokio::test]
async fn the_gate_does_not_start_with_a_bad_file() {
    for (text, named) in WRONG {
        println!("{text}");
        let failure = Gate::builder().file(text).fail().await;
        assert_eq!(failure.code, Some(1), "{failure:#?}");
        assert!(failure.errors.contains(named), "{failure:#?}");
        assert!(failure.errors.contains("robotgate.toml"), "{failure:#?}");
    }
}

#[tokio::test]
async fn the_log_is_reopened_even_if_an_earlier_log_is_gone() {
    let origin = Origin::start().anything("page").spawn().await;
    let gate = Gate::start().await;
    for folder in ["old", "new"] {
        std::fs::create_dir(gate.file(folder)).expect("the folder is ours");
        gate.reconfigure(&format!("[audit]\npath = \"{folder}/audit.jsonl\""));
        let wanted = gate.file(folder).join("audit.jsonl");
        wait::until("the other log", || wanted.exists().then_some(())).await;
    }
    gate.reloaded(2).await;
    std::fs::remove_dir_all(gate.file("old")).expect("the folder is ours");
    std::fs::rename(gate.file("new/audit.jsonl"), gate.file("new/moved")).expect("the folder is ours");

    gate.signal(Signal::USR1);
    gate.wait_for_log("a new log", |line| line.message() == "audit log reopened")
        .await;
    allowed(&gate.get(&origin.url("/x")).await, "no-robots");
    let lines = std::fs::read_to_string(gate.file("new/audit.jsonl")).expect("a log");
    assert!(lines.contains("\"event\":\"decision\""), "{lines}");
}

#[tokio::test]
async fn a_log_whose_file_was_renamed_or_replaced_is_opened_again_without_a_signal() {
    let origin = Origin::start().anything("page").spawn().await;
    let gate = Gate::start().await;
    let log = gate.file("audit.jsonl");
    let warnings = || {
        let removed = "somebody removed or replaced the file of the audit log";
        gate.log().iter().filter(|line| line.says(removed)).count()
    };
    let text = |name: &str| std::fs::read_to_string(gate.file(name)).expect("a log");
    let renamed = |to: &str| std::fs::rename(&log, gate.file(to)).expect("the folder is ours");

    allowed(&gate.get(&origin.url("/one")).await, "no-robots");
    gate.audited(1).await;
    renamed("first");
    wait::until("a new file", || (gate.logged("audit log reopened") == 1).then_some(())).await;
    allowed(&gate.get(&origin.url("/two")).await, "no-robots");
    gate.audited(1).await;
    assert!(text("first").contains("/one") && text("audit.jsonl").contains("/two"));
    assert_eq!(warnings(), 0);

    // An editor or `sed -i` replaces the file, so the old one has no name any more.
    std::fs::copy(&log, gate.file("copy")).expect("the folder is ours");
    std::fs::rename(gate.file("copy"), &log).expect("the folder is ours");
    wait::until("a warning", || {
        (warnings() == 1 && gate.logged("audit log reopened") == 2).then_some(())
    })
    .await;
    allowed(&gate.get(&origin.url("/three")).await, "no-robots");
    let (decisions, _) = gate.audited(2).await;
    let urls: Vec<_> = decisions.iter().map(|decision| decision["url"].clone()).collect();
    assert_eq!(urls, [origin.url("/two"), origin.url("/three")]);
}

#[tokio::test]
async fn no_request_is_forwarded_while_the_removed_log_cannot_be_opened() {
    let origin = Origin::start().anything("page").spawn().await;
    let gate = Gate::start().await;
    let log = gate.file("audit.jsonl");
    allowed(&gate.get(&origin.url("/first")).await, "no-robots");
    std::fs::remove_file(&log).expect("the folder is ours");
    std::fs::create_dir(&log).expect("the folder is ours");
    gate.wait_for_log("an error", |line| {
        line.message().starts_with("cannot reopen the audit log")
    })
    .await;

    let waiting = tokio::spawn(gate.get(&origin.url("/waiting")).send());
    std::fs::remove_dir(&log).expect("the folder is ours");
    gate.wait_for_log("the new file", |line| line.message() == "audit log reopened")
        .await;
    drop(waiting.await);
    allowed(&gate.get(&origin.url("/last")).await, "no-robots");

    let text = std::fs::read_to_string(&log).expect("a log");
    for path in ["/waiting", "/last"] {
        let logged = text.matches(&format!("\"url\":\"{}\"", origin.url(path))).count();
        assert!(logged >= origin.count(path), "{path}: {text}");
    }
}

/// A client that requests one page repeatedly.
struct Load {
    done: Arc<AtomicBool>,
    served: Arc<AtomicUsize>,
    task: JoinHandle<Vec<String>>,
}

impl Load {
    fn start(gate: &Gate, url: &str) -> Self {
        let (done, served) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let (stop, count, address, url) = (done.clone(), served.clone(), gate.address(), url.to_owned());
        let task = tokio::spawn(async move {
            let mut failures = Vec::new();
            while !stop.load(Ordering::SeqCst) {
                match Ask::fresh(address, "GET", &url).send().await {
                    Ok(response) if response.status == 200 => drop(count.fetch_add(1, Ordering::SeqCst)),
                    other => failures.push(format!("{other:?}")),
                }
            }
            failures
        });
        Self { done, served, task }
    }

    async fn stop(self) -> (usize, Vec<String>) {
        self.done.store(true, Ordering::SeqCst);
        let failures = self.task.await.expect("no panic");
        (self.served.load(Ordering::SeqCst), failures)
    }
}
