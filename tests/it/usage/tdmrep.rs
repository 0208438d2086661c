//! `/.well-known/tdmrep.json`: it is fetched and kept like a robots.txt, and decides for bots that do text and data
//! mining.

use robotgate::{copy::Sha256, evidence::EvidenceReader};
use serde_json::{Value, json};

use crate::support::{
    Alpn, CliOutput, Gate, Latch, NAME, Origin, Record, Reply, Response, Step, allowed, refused, wait,
};

const PATH: &str = "/.well-known/tdmrep.json";
const ROBOTS: &str = "User-agent: *\nDisallow: /private\n";
const FILE: &str = r#"[
    {"location": "/free/", "tdm-reservation": 0},
    {"location": "/*.pdf$", "tdm-reservation": 1},
    {"location": "/reserved", "tdm-reservation": 1}
]"#;
/// The default bot of the tests does text and data mining, and `OtherBot` does not.
const MINER: &str = "
    [usage]
    tdmrep = \"enforce\"

    [[bot]]
    name = \"miner\"
    user-agents = [\"TestBot\"]
    purposes = [\"search\", \"tdm\"]
";
const BRIEF: &str = "
    [robots]
    min-ttl = \"1s\"
    max-ttl = \"1s\"

    [robots.unreachable]
    retry-first = \"1s\"
    retry-busy = \"1s\"
";

fn file(text: impl Into<Vec<u8>>) -> Reply {
    Reply::ok("application/json", text)
}

async fn site(reply: Reply) -> Origin {
    let site = Origin::start().robots(ROBOTS).reply(PATH, reply).anything("page");
    site.spawn().await
}

fn paths(origin: &Origin) -> Vec<String> {
    let requests = origin.requests();
    requests.iter().map(|request| request.path().to_owned()).collect()
}

#[track_caller]
fn reserved(response: &Response, entry: &str) {
    let decision = refused(response, "usage");
    for (name, value) in [
        ("vocabulary", "tdmrep"),
        ("purpose", "tdm"),
        ("key", "tdm-reservation"),
        ("value", "1"),
        ("entry", entry),
    ] {
        assert_eq!(decision.param(name).as_deref(), Some(value), "{name}: {response:#?}");
    }
}

fn fetched(gate: &Gate, origin: &Origin) -> Record {
    let mut records = gate.events("tdmrep");
    records.retain(|record| record["origin"] == origin.url(""));
    records.pop().unwrap_or_default()
}

async fn decided(gate: &Gate, path: &str, origin: &Origin) -> Record {
    gate.decision_for(&origin.url(path)).await
}

#[tokio::test]
async fn a_reserved_path_is_refused() {
    let origin = site(file(FILE)).await;
    let gate = Gate::with(MINER).await;

    reserved(&gate.get(&origin.url("/reserved/x")).await, "3");
    reserved(&gate.get(&origin.url("/a.pdf")).await, "2");
    allowed(&gate.get(&origin.url("/free/a.pdf")).await, "no-rule");
    allowed(&gate.get(&origin.url("/Reserved")).await, "no-rule");
    reserved(&gate.get(&origin.url("/%72eserved")).await, "3");
    reserved(&gate.get(&origin.url("/free/../reserved")).await, "3");
    allowed(
        &gate.get(&origin.url("/reserved")).user_agent("OtherBot").await,
        "no-rule",
    );

    assert_eq!(paths(&origin)[..3], ["/robots.txt", PATH, "/free/a.pdf"]);
    let request = origin.only_request_for(PATH);
    assert_eq!(request.field("Accept"), Some("application/json,*/*;q=0.8"));
    let decision = decided(&gate, "/reserved/x", &origin).await;
    let digest = json!(Sha256::of(FILE.as_bytes()));
    let statement = json!({
        "purpose": "tdm", "vocabulary": "tdmrep", "key": "tdm-reservation", "value": "1", "entry": 3,
        "policy": "enforce"
    });
    let mut refused = statement.clone();
    refused["why"] = json!("forbidden");
    assert_eq!(
        decision["usage"],
        json!({"purposes": ["search", "tdm"], "said": [statement], "refused": refused, "tdmrep": "file", "tdmrep_sha256": digest})
    );
}

#[tokio::test]
async fn inside_https_each_path_is_decided() {
    let origin = Origin::start().robots(ROBOTS).reply(PATH, file(FILE)).anything("page");
    let origin = origin.tls().spawn().await;
    let gate = Gate::with(MINER).await;
    for alpn in [Alpn::Http1, Alpn::Http2] {
        let mut inside = gate.connect(&origin.authority()).await.opened().tls(NAME, alpn).await;
        reserved(&inside.get("/reserved").await, "3");
        allowed(&inside.get("/free/a.pdf").await, "no-rule");
    }
    assert_eq!(origin.count(PATH), 1);
}

#[tokio::test]
async fn a_tunnel_is_refused_if_any_path_is_reserved() {
    let gate = Gate::with(&format!("{MINER}\n[https]\nmode = \"tunnel\"")).await;
    for (text, entry) in [
        (FILE, Some("2")),
        (r#"[{"location": "/", "tdm-reservation": 0}]"#, None),
    ] {
        let origin = Origin::start().reply(PATH, file(text)).tls().spawn().await;
        let connected = gate.connect(&origin.authority()).user_agent("TestBot/1.0").await;
        match entry {
            Some(entry) => reserved(&connected.refused(), entry),
            None => drop(connected.opened()),
        }
    }
}

#[tokio::test]
async fn many_requests_at_once_make_one_fetch() {
    let latch = Latch::new();
    let origin = site(file(FILE).after(&latch)).await;
    let gate = Gate::with(MINER).await;
    let requests: Vec<_> = (0..200)
        .map(|_| tokio::spawn(gate.get(&origin.url("/reserved")).into_future()))
        .collect();
    wait::until("the fetch", || (origin.count(PATH) == 1).then_some(())).await;
    latch.open();
    for request in requests {
        reserved(&request.await.expect("no panic"), "3");
    }
    assert_eq!(paths(&origin), ["/robots.txt", PATH]);
}

#[tokio::test]
async fn a_fetch_is_logged_and_its_text_stored_before_a_decision() {
    let origin = site(file(FILE)).await;
    let gate = Gate::with(MINER).await;
    reserved(&gate.get(&origin.url("/reserved")).await, "3");

    let audit = gate.audit();
    let at = |event: &str| audit.iter().position(|record| record["event"] == event);
    assert!(
        at("robots") < at("tdmrep") && at("tdmrep") < at("decision"),
        "{audit:#?}"
    );
    let digest = Sha256::of(FILE.as_bytes());
    let record = fetched(&gate, &origin);
    for (name, value) in [
        ("tdmrep_url", json!(origin.url(PATH))),
        ("redirects", json!([])),
        ("status", json!(200)),
        ("bytes", json!(FILE.len())),
        ("error", Value::Null),
        ("held", Value::Null),
        ("holds", json!("file")),
        ("held_sha256", Value::Null),
        ("tdmrep_sha256", json!(digest)),
        ("entries", json!(3)),
        ("failing_since", Value::Null),
        ("config", json!(1)),
    ] {
        assert_eq!(record[name], value, "{name}: {record:#}");
    }
    assert!(record["tdmrep_expires"].is_string(), "{record:#}");
    let reader = EvidenceReader::open(&gate.file("evidence.redb")).expect("it can be read beside the proxy");
    let texts = reader.read(&[digest]).expect("read");
    assert_eq!(texts[&digest], FILE.as_bytes());
}

#[tokio::test]
async fn a_missing_or_unusable_tdmrep_json_reserves_nothing() {
    let whole = |length: usize| {
        let all = r#"[{"location": "/", "tdm-reservation": 1}]"#;
        all.to_owned() + &"\n".repeat(length - all.len())
    };
    let limit = 1024 * 1024;
    for (reply, status, holds, error) in [
        (Reply::status(404), json!(404), "none", None),
        (Reply::status(204), json!(204), "file", None),
        (Reply::status(500), json!(500), "unreachable", Some("answered 500")),
        (Reply::status(429), json!(429), "unreachable", Some("answered 429")),
        (file("<html>"), json!(200), "file", None),
        (
            file(r#"{"location": "/", "tdm-reservation": 1}"#),
            json!(200),
            "file",
            None,
        ),
        (file(whole(limit + 1)), json!(200), "none", Some("longer than 1 MiB")),
        (
            Reply::gzip(whole(limit + 1).as_bytes()),
            json!(200),
            "none",
            Some("longer than 1 MiB"),
        ),
        (
            Reply::script([Step::Close]),
            Value::Null,
            "unreachable",
            Some("closed or reset the connection"),
        ),
        (Reply::script([Step::Stall]), Value::Null, "unreachable", Some("")),
        (Reply::redirect(PATH), json!(302), "none", Some("redirects too often")),
        (
            Reply::redirect("http://10.0.0.1/x"),
            Value::Null,
            "unreachable",
            Some("a private address"),
        ),
        (
            Reply::redirect("ftp://a.example/"),
            json!(302),
            "unreachable",
            Some("no URL that robotgate can fetch"),
        ),
    ] {
        let origin = site(reply).await;
        let gate = Gate::with(&format!("{MINER}\n[robots]\nfetch-idle-timeout = \"1s\"")).await;
        println!("{status} {holds} {error:?}");
        for _ in 0..2 {
            allowed(&gate.get(&origin.url("/reserved")).await, "no-rule");
        }
        let record = fetched(&gate, &origin);
        assert_eq!(
            (&record["status"], &record["holds"]),
            (&status, &json!(holds)),
            "{record:#}"
        );
        let found = record["error"].as_str();
        assert_eq!(found.is_some(), error.is_some(), "{record:#}");
        assert!(
            found.unwrap_or_default().contains(error.unwrap_or_default()),
            "{record:#}"
        );
        assert_eq!(gate.events("tdmrep").len(), 1, "the result is kept");
    }
    let origin = site(file(whole(limit))).await;
    let gate = Gate::with(MINER).await;
    reserved(&gate.get(&origin.url("/x")).await, "1");
}

#[tokio::test]
async fn a_file_behind_redirects_counts_for_the_first_origin() {
    let elsewhere = Origin::start().reply("/file", file(FILE)).spawn().await;
    let target = elsewhere.url_at("other.example", "/file");
    let origin = site(Reply::redirect("/moved")).await;
    origin.change("/moved", Reply::redirect(&target));
    let gate = Gate::with(MINER).await;

    reserved(&gate.get(&origin.url("/reserved")).await, "3");

    assert_eq!(
        paths(&elsewhere),
        ["/file"],
        "the other origin is not asked for its own files"
    );
    let record = fetched(&gate, &origin);
    assert_eq!(record["redirects"][1]["to"], json!(target), "{record:#}");
}

#[tokio::test]
async fn after_the_wait_a_request_is_refused_if_the_file_could_refuse_it() {
    for (policy, reason) in [("report", "no-rule"), ("enforce", "usage")] {
        let origin = site(Reply::script([Step::Stall])).await;
        let config = MINER.replace("\"enforce\"", &format!("\"{policy}\""));
        let gate = Gate::with(&config).await;
        // Make the gate fetch the robots.txt before `robots.wait` becomes short.
        allowed(&gate.get(&origin.url("/x")).user_agent("OtherBot").await, "no-rule");
        gate.reconfigure(&format!(
            "robots = {{ wait = \"100ms\", fetch-timeout = \"10m\", fetch-idle-timeout = \"10m\" }}\n{config}"
        ));
        gate.reloaded(1).await;

        let response = gate.get(&origin.url("/reserved")).await;
        if reason == "usage" {
            assert_eq!(refused(&response, reason).param("purpose").as_deref(), Some("tdm"));
            assert_eq!(response.field("Retry-After"), Some("5"));
        } else {
            allowed(&response, reason);
        }
        assert_eq!(gate.events("tdmrep").len(), 0, "the fetch goes on");
        let decision = decided(&gate, "/reserved", &origin).await;
        assert_eq!(decision["usage"]["tdmrep"], "pending");
        let completion = gate.completion_of(&decision).await;
        assert!(completion["robots_wait_us"].as_u64() > Some(0), "{completion:#}");
    }
}

#[tokio::test]
async fn the_last_tdmrep_json_applies_while_the_site_fails() {
    let origin = site(file(FILE)).await;
    let gate = Gate::with(&format!("{MINER}\n{BRIEF}")).await;
    let url = origin.url("/reserved");
    reserved(&gate.get(&url).await, "3");

    origin.change(PATH, Reply::status(503));
    wait::until_async("two failures", async || {
        reserved(&gate.get(&url).await, "3");
        let records = gate.events("tdmrep");
        let failed = records.iter().filter(|record| record["error"].is_string()).count();
        (failed >= 2).then_some(())
    })
    .await;
    let record = fetched(&gate, &origin);
    assert_eq!(
        (&record["held"], &record["holds"]),
        (&json!("file"), &json!("file")),
        "{record:#}"
    );
    assert_eq!(
        record["tdmrep_sha256"],
        json!(Sha256::of(FILE.as_bytes())),
        "{record:#}"
    );
    assert!(record["failing_since"].is_string(), "{record:#}");

    origin.change(PATH, Reply::status(404));
    wait::until_async("the end of the reservation", async || {
        (gate.get(&url).await.status == 200).then_some(())
    })
    .await;
    origin.change(PATH, file(FILE));
    wait::until_async("the new reservation", async || {
        (gate.get(&url).await.status == 403).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_file_survives_a_restart_and_an_outage_of_the_site() {
    let origin = site(file(FILE)).await;
    let mut gate = Gate::with(MINER).await;
    let url = origin.url("/reserved");
    reserved(&gate.get(&url).await, "3");
    assert_eq!(gate.stop().await.code(), Some(0));
    gate.start_again().await;
    reserved(&gate.get(&url).await, "3");
    assert_eq!(origin.count(PATH), 1, "it was read from disk");

    // The site fails from now on. Without a `tdmrep.json` in the cache file, robotgate would treat the site as one that
    // says nothing.
    origin.change(PATH, Reply::status(503));
    gate.stop().await;
    gate.reconfigure(&format!("{MINER}\n{BRIEF}"));
    gate.start_again().await;
    wait::until_async("a failure", async || {
        reserved(&gate.get(&url).await, "3");
        fetched(&gate, &origin)["failing_since"].is_string().then_some(())
    })
    .await;
    gate.kill().await;
    gate.start_again().await;
    reserved(&gate.get(&url).await, "3");
}

#[tokio::test]
async fn an_unchanged_file_is_confirmed_by_a_304() {
    let origin = Origin::start()
        .robots(ROBOTS)
        .on(PATH, |request| match request.field("If-None-Match") {
            Some("\"v1\"") => Reply::status(304),
            _ => file(FILE).header("ETag", "\"v1\""),
        });
    let origin = origin.anything("page").spawn().await;
    let gate = Gate::with(&format!("{MINER}\n{BRIEF}")).await;
    wait::until_async("a 304", async || {
        reserved(&gate.get(&origin.url("/reserved")).await, "3");
        (fetched(&gate, &origin)["status"] == 304).then_some(())
    })
    .await;
    let record = fetched(&gate, &origin);
    assert_eq!(
        (&record["holds"], &record["entries"]),
        (&json!("file"), &json!(3)),
        "{record:#}"
    );
}

#[tokio::test]
async fn no_tdmrep_json_is_fetched_for_bots_that_do_not_mine() {
    let origin = site(file(FILE)).await;
    let url = origin.url("/reserved");
    let idle = MINER.replace("\"search\", \"tdm\"", "\"search\", \"ai-train\"");
    let off = MINER.replace("enforce", "off");
    for config in ["", &idle, &off] {
        let before = origin.requests().len();
        let gate = Gate::with(config).await;
        allowed(&gate.get(&url).await, "no-rule");
        assert_eq!(paths(&origin)[before..], ["/robots.txt", "/reserved"]);
        assert_eq!(gate.events("tdmrep").len(), 0);
        let status = gate.admin("/api/v1/status").await.json();
        assert_eq!(status["origins"]["memory_max_bytes"], MEMORY_WITHOUT_PAGES, "{status}");
    }
}
/// The default of `cache.max-bytes`, without the part that buffers the file of `cache.path`.
const MEMORY_WITHOUT_PAGES: u64 = (256 << 20) - (16 << 20);

#[tokio::test]
async fn no_tdmrep_json_is_fetched_if_robots_txt_decides_without_it() {
    let origin = site(file(FILE)).await;
    let gate = Gate::with(MINER).await;
    refused(&gate.get(&origin.url("/private/reserved")).await, "rule");
    allowed(&gate.get(&origin.url("/robots.txt")).await, "robots-file");
    assert_eq!(paths(&origin), ["/robots.txt", "/robots.txt"]);

    let failing = Origin::start().reply("/robots.txt", Reply::status(500)).spawn().await;
    refused(&gate.get(&failing.url("/x")).await, "unreachable");
    assert_eq!(paths(&failing), ["/robots.txt"]);
}

#[tokio::test]
async fn a_reload_can_change_which_bots_mine_and_keeps_the_files() {
    let origin = site(file(FILE)).await;
    let url = origin.url("/reserved");
    let gate = Gate::start().await;
    allowed(&gate.get(&url).await, "no-rule");
    assert_eq!(origin.count(PATH), 0);

    gate.reconfigure(MINER);
    gate.reloaded(1).await;
    reserved(&gate.get(&url).await, "3");
    gate.reconfigure(&format!("{MINER}\n[cache]\nmax-bytes = \"64MiB\""));
    gate.reloaded(2).await;
    reserved(&gate.get(&url).await, "3");
    gate.reconfigure(&format!("{MINER}\n[robots]\nprofile = \"rfc9309\""));
    gate.reloaded(3).await;
    reserved(&gate.get(&url).await, "3");
    assert_eq!(origin.count(PATH), 1, "the file is kept");

    gate.reconfigure("");
    gate.reloaded(4).await;
    allowed(&gate.get(&url).await, "no-rule");
    assert_eq!(origin.count(PATH), 1);
}

#[tokio::test]
async fn the_policy_report_forwards_and_logs() {
    let origin = site(file(FILE)).await;
    for config in [
        MINER.replace("enforce", "report"),
        format!("{MINER}\n    enforcement = \"report\""),
    ] {
        let gate = Gate::with(&config).await;
        let response = gate.get(&origin.url("/reserved")).await;
        assert_eq!((response.status, response.text().as_str()), (200, "page"));
        let decision = decided(&gate, "/reserved", &origin).await;
        assert_eq!(decision["forwarded"], true, "{decision:#}");
        assert_eq!(decision["usage"]["said"][0]["entry"], 3, "{decision:#}");
        assert_eq!(decision["usage"]["said"][0]["value"], "1", "{decision:#}");
    }
}

#[tokio::test]
async fn a_forgotten_site_is_asked_for_both_files_again() {
    let origin = site(file(FILE)).await;
    let gate = Gate::with(MINER).await;
    reserved(&gate.get(&origin.url("/reserved")).await, "3");
    origin.change(PATH, Reply::status(404));
    reserved(&gate.get(&origin.url("/reserved")).await, "3");

    let config = gate.file("robotgate.toml");
    let config = config.to_str().expect("the tests' paths are text");
    let output = CliOutput::of(&["cache", "forget", &origin.url(""), "--config", config], "").await;
    assert_eq!(output.code, Some(0), "{output:?}");

    allowed(&gate.get(&origin.url("/reserved")).await, "no-rule");
    assert_eq!(paths(&origin), ["/robots.txt", PATH, "/robots.txt", PATH, "/reserved"]);
}

#[tokio::test]
async fn a_tdmrep_json_can_be_forgotten_while_no_bot_mines() {
    let origin = site(file(FILE)).await;
    let gate = Gate::start().await;
    gate.reconfigure(MINER);
    gate.reloaded(1).await;
    let url = origin.url("/reserved");
    reserved(&gate.get(&url).await, "3");
    gate.reconfigure("");
    gate.reloaded(2).await;
    let config = gate.file("robotgate.toml");
    let config = config.to_str().expect("the tests' paths are text");
    let output = CliOutput::of(&["cache", "forget", &origin.url(""), "--config", config], "").await;
    assert_eq!(output.code, Some(0), "{output:?}");

    origin.change(PATH, Reply::status(404));
    gate.reconfigure(MINER);
    gate.reloaded(3).await;
    allowed(&gate.get(&url).await, "no-rule");
    assert_eq!(origin.count(PATH), 2, "the file on disk was forgotten");
}

#[tokio::test]
async fn the_api_decides_like_the_proxy() {
    let origin = site(file(FILE)).await;
    let gate = Gate::with(MINER).await;
    for (path, verdict, reason) in [("/reserved", "deny", "usage"), ("/free/x", "allow", "no-rule")] {
        let query = format!("agent=TestBot/1.0&url={}", origin.url(path).replace(':', "%3A"));
        let decided = gate.admin(&format!("/api/v1/decide?{query}")).await.json();
        assert_eq!(
            (&decided["verdict"], &decided["reason"]),
            (&json!(verdict), &json!(reason)),
            "{decided:#}"
        );
        let explained = gate.admin(&format!("/api/v1/explain?{query}")).await.json();
        let decision = &explained["decision"];
        assert_eq!(
            (&decision["verdict"], &decision["reason"]),
            (&json!(verdict), &json!(reason)),
            "{explained:#}"
        );
    }
    assert_eq!(paths(&origin), ["/robots.txt", PATH]);
}

#[tokio::test]
async fn a_search_that_takes_too_long_is_refused() {
    let entry = r#"{"location": "/*b", "tdm-reservation": 0}"#;
    let entries = vec![entry; 1000].join(",");
    let origin = site(file(format!("[{entries}]"))).await;
    let gate = Gate::with(MINER).await;
    allowed(&gate.get(&origin.url("/aaa")).await, "no-rule");
    refused(
        &gate.get(&origin.url(&format!("/{}", "a".repeat(8000)))).await,
        "too-complex",
    );
}
