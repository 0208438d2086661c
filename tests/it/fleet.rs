//! Several gates that share a real Redis server.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use serde_json::Value;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use tokio::task::JoinSet;

use crate::{
    admin::escaped,
    support::{
        CliOutput, Fault, Gate, Latch, Link, Origin, Redis, Reply, Response, Signal, allowed, origin_root_pem,
        programs::needs, refused, wait,
    },
};

const ROBOTS: &str = "User-agent: *\nDisallow: /private\n";

async fn origin() -> Origin {
    Origin::start().robots(ROBOTS).anything("page").spawn().await
}

/// Starts a gate of the fleet at `url`, and waits until it has connected to the server.
async fn gate(url: &str) -> Gate {
    let gate = Gate::with(&format!("[fleet]\nurl = \"{url}\"")).await;
    connected(&gate).await;
    gate
}

async fn connected(gate: &Gate) {
    wait::until_async("the gate to use the server", async || {
        fleet(gate).await["connected"].as_bool().filter(|connected| *connected)
    })
    .await;
}

/// Returns the part of the gate's status about the fleet.
async fn fleet(gate: &Gate) -> Value {
    crate::admin::get(gate, "/api/v1/status").await["fleet"].clone()
}

/// Returns how often the robots.txt of `host` was fetched.
fn fetches(origin: &Origin, host: &str) -> usize {
    let authority = format!("{host}:{}", origin.port());
    let asked = origin.requests_for("/robots.txt").into_iter();
    asked
        .filter(|request| request.field("Host") == Some(&*authority))
        .count()
}

/// Returns whether a call of one of the gates to the server has failed. On a very busy machine the server can respond
/// too late, and gates then correctly do not wait for it. Such an attempt says nothing about what the gates share, so
/// the test repeats it.
async fn has_failed_calls(gates: &[&Gate]) -> bool {
    for gate in gates {
        if fleet(gate).await["errors"] != 0 {
            return true;
        }
    }
    false
}

#[tokio::test]
async fn three_gates_and_two_hundred_requests_at_once_make_one_fetch() {
    needs!("redis-server");
    let (server, origin) = (Redis::start().await, origin().await);
    let url = server.url();
    let gates = [gate(&url).await, gate(&url).await, gate(&url).await];
    // On a very busy machine the server can respond too late, and gates then correctly do not wait for it. Such a round
    // says nothing, so it is repeated with another origin.
    let mut rounds = 0..;
    wait::until_async("a round in which all calls were answered in time", async || {
        let host = format!("cold{}.example", rounds.next()?);
        let mut requests = JoinSet::new();
        for number in 0..200 {
            let ask = gates[number % 3].get(&origin.url_at(&host, &format!("/{number}")));
            requests.spawn(async move { ask.await });
        }
        for response in requests.join_all().await {
            allowed(&response, "no-rule");
        }
        let mut late = 0;
        for gate in &gates {
            late += fleet(gate).await["errors"].as_u64()?;
        }
        let fetches = fetches(&origin, &host) as u64;
        assert!(
            (1..=1 + late).contains(&fetches),
            "{fetches} fetches, {late} late answers"
        );
        (fetches == 1).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_copy_of_another_gate_decides_and_the_log_and_the_list_say_so() {
    needs!("redis-server");
    wait::until_async("an attempt without a late answer", async || {
        let (server, origin) = (Redis::start().await, origin().await);
        let (first, second) = (gate(&server.url()).await, gate(&server.url()).await);
        refused(&first.get(&origin.url("/private/1")).await, "rule");
        refused(&second.get(&origin.url("/private/2")).await, "rule");
        if has_failed_calls(&[&first, &second]).await {
            return None;
        }
        assert_eq!(origin.count("/robots.txt"), 1);

        let decision = second.decision_for(&origin.url("/private/2")).await;
        let audit = second.audit();
        let shared = audit.iter().position(|record| record["event"] == "shared");
        let decided = audit.iter().position(|record| record["event"] == "decision");
        assert!(shared.is_some() && shared < decided, "{audit:#?}");
        let shared = &audit[shared.expect("it is there")];
        assert_eq!(shared["fetched"], decision["robots_fetched"]);
        assert_eq!(shared["robots_sha256"], decision["robots_sha256"]);
        assert!(audit.iter().all(|record| record["event"] != "robots"));

        let fleet = fleet(&second).await;
        assert_eq!(
            (&fleet["copies_used"], &fleet["errors"]),
            (&1.into(), &0.into()),
            "{fleet}"
        );
        let calls = fleet["calls"].clone();
        for (gate, source) in [(&first, Value::Null), (&second, "fleet".into())] {
            let rows: Vec<Value> = cache(gate, &["list", "--json"]).await.out.lines().map(json).collect();
            assert_eq!(
                rows.iter().map(|row| row["source"].clone()).collect::<Vec<_>>(),
                [source]
            );
        }
        allowed(&second.get(&origin.url("/x")).await, "no-rule");
        assert_eq!(
            self::fleet(&second).await["calls"],
            calls,
            "a copy in memory needs no call"
        );
        let metrics = second.admin("/metrics").await.text();
        for line in ["robotgate_fleet_connected 1", "robotgate_fleet_copies_used_total 1"] {
            assert!(metrics.lines().any(|found| found == line), "{line}");
        }
        Some(())
    })
    .await;
}

#[tokio::test]
async fn what_an_operator_has_forgotten_no_gate_knows() {
    needs!("redis-server");
    wait::until_async("an attempt without a late answer", async || {
        let (server, origin) = (Redis::start().await, origin().await);
        let (first, second) = (gate(&server.url()).await, gate(&server.url()).await);
        for gate in [&first, &second] {
            refused(&gate.get(&origin.url("/private")).await, "rule");
        }
        origin.change(
            "/robots.txt",
            Reply::ok("text/plain", "User-agent: *\nDisallow: /other\n"),
        );
        let site = origin.url("");
        let forgot = cache(&first, &["forget", &site]).await;
        assert_eq!(forgot.code, Some(0), "{forgot:?}");
        wait::until_async("the other gate to have forgotten", async || {
            cache(&second, &["list"]).await.out.is_empty().then_some(())
        })
        .await;
        for gate in [&second, &first] {
            allowed(&gate.get(&origin.url("/private")).await, "no-rule");
        }
        if has_failed_calls(&[&first, &second]).await {
            return None;
        }
        assert_eq!(origin.count("/robots.txt"), 2);
        for (gate, by) in [(&first, "socket"), (&second, "fleet")] {
            let records = gate.events("forget");
            assert_eq!(records.len(), 1, "{records:#?}");
            assert_eq!(records[0]["origin"], site);
            assert_eq!((&records[0]["by"], &records[0]["known"]), (&by.into(), &true.into()));
        }
        Some(())
    })
    .await;
}

#[tokio::test]
async fn a_server_that_is_lost_fails_no_request_and_is_used_again_when_it_is_back() {
    needs!("redis-server");
    let (mut server, origin) = (Redis::start().await, origin().await);
    let gate = gate(&server.url()).await;
    let mut sites = sites();
    for trouble in ["kill", "stop", "pause", "full", "replica"] {
        match trouble {
            "kill" => server.kill(),
            "stop" => server.signal(Signal::STOP),
            "pause" => drop(server.ask(&["CLIENT", "PAUSE", "1000000", "WRITE"]).await),
            "full" => drop(server.ask(&["CONFIG", "SET", "maxmemory", "1"]).await),
            _ => drop(server.ask(&["REPLICAOF", "127.0.0.1", "1"]).await),
        }
        decides_without_the_server(&gate, &origin, &mut sites, trouble).await;
        match trouble {
            "kill" => server.start_again().await,
            "stop" => server.signal(Signal::CONT),
            "pause" => drop(server.ask(&["CLIENT", "UNPAUSE"]).await),
            "full" => drop(server.ask(&["CONFIG", "SET", "maxmemory", "0"]).await),
            _ => drop(server.ask(&["REPLICAOF", "NO", "ONE"]).await),
        }
        connected(&gate).await;
    }
}

#[tokio::test]
async fn a_disturbed_connection_fails_no_request_and_is_used_again_afterwards() {
    needs!("redis-server");
    let (server, origin) = (Redis::start().await, origin().await);
    let link = Link::to(server.socket()).await;
    let gate = gate(&link.url()).await;
    let mut sites = sites();
    for fault in [
        Fault::Drop,
        Fault::Delay(Duration::from_millis(60)),
        Fault::Delay(Duration::from_secs(5)),
        Fault::Cut,
    ] {
        link.set(Some(fault));
        decides_without_the_server(&gate, &origin, &mut sites, &format!("{fault:?}")).await;
        link.set(None);
        connected(&gate).await;
    }
}

fn sites() -> impl Iterator<Item = String> {
    (0..).map(|number| format!("site{number}.example"))
}

/// Sends requests to new sites until the gate no longer waits for the server.
async fn decides_without_the_server(
    gate: &Gate,
    origin: &Origin,
    sites: &mut impl Iterator<Item = String>,
    trouble: &str,
) {
    let mut visit = async || {
        let site = sites.next()?;
        refused(&gate.get(&origin.url_at(&site, "/private")).await, "rule");
        assert_eq!(fetches(origin, &site), 1, "{trouble}");
        Some(fleet(gate).await)
    };
    let lost = wait::until_async(&format!("the breaker to open: {trouble}"), async || {
        visit().await.filter(|fleet| fleet["error"].is_string())
    })
    .await;
    let metrics = gate.admin("/metrics").await.text();
    assert!(
        metrics.lines().any(|line| line == "robotgate_fleet_connected 0"),
        "{trouble}"
    );
    let after = visit().await.expect("there are more sites");
    assert_eq!(after["calls"], lost["calls"], "{trouble}: no request waits for it");
}

#[tokio::test]
async fn a_lease_that_is_lost_costs_one_more_fetch() {
    needs!("redis-server");
    for trouble in ["the holder is killed", "the server loses its memory"] {
        wait::until_async("an attempt without a late answer", async || {
            let (server, stalled, latch) = (Redis::start().await, AtomicBool::new(true), Latch::new());
            let origin = Origin::start().anything("page").on("/robots.txt", {
                let latch = latch.clone();
                move |_| match stalled.swap(false, Ordering::SeqCst) {
                    // This robots.txt allows everything, but arrives late.
                    true => Reply::ok("text/plain", "").after(&latch),
                    false => Reply::ok("text/plain", ROBOTS),
                }
            });
            let (origin, url) = (origin.spawn().await, server.url());
            let (mut first, second, third) = (gate(&url).await, gate(&url).await, gate(&url).await);
            let stuck = first.get(&origin.url("/private"));
            let stuck = tokio::spawn(stuck.send());
            wait::until("the first fetch", || (origin.count("/robots.txt") == 1).then_some(())).await;
            match trouble {
                "the holder is killed" => first.kill().await,
                _ => drop(server.ask(&["FLUSHALL"]).await),
            }
            refused(&second.get(&origin.url("/private")).await, "rule");
            latch.open();
            drop(stuck.await);
            refused(&third.get(&origin.url("/private")).await, "rule");
            if has_failed_calls(&[&second, &third]).await {
                return None;
            }
            assert_eq!(origin.count("/robots.txt"), 2, "{trouble}");
            Some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_gate_starts_without_the_server_and_finds_it_later() {
    needs!("redis-server");
    let (mut server, origin) = (Redis::start().await, origin().await);
    server.kill();
    let gate = Gate::with(&format!("[fleet]\nurl = \"{}\"", server.url())).await;
    refused(&gate.get(&origin.url("/private")).await, "rule");
    server.start_again().await;
    connected(&gate).await;
}

#[tokio::test]
async fn a_reload_joins_a_fleet_and_leaves_it() {
    needs!("redis-server");
    let server = Redis::start().await;
    let gate = Gate::start().await;
    assert!(fleet(&gate).await.is_null());
    gate.reconfigure(&format!("[fleet]\nurl = \"{}\"", server.url()));
    gate.reloaded(1).await;
    connected(&gate).await;
    gate.reconfigure("");
    gate.reloaded(2).await;
    assert!(fleet(&gate).await.is_null());
}

#[tokio::test]
async fn over_tls_with_a_password_and_a_key_that_the_gates_share() {
    needs!("redis-server");
    wait::until_async("an attempt without a late answer", async || {
        let origin = origin().await;
        let (_server, url) = Redis::with_tls("a long password").await;
        let config = format!(
            "[fleet]\nurl = \"{url}\"\npassword-file = \"password\"\nca-file = \"redis-ca.pem\"\nkey-file = \"fleet-key\""
        );
        let start = async |key: &str| {
            let gate = Gate::builder()
                .put("password", "a long password\n")
                .put("fleet-key", key);
            let gate = gate
                .put("redis-ca.pem", origin_root_pem())
                .config(&config)
                .start()
                .await;
            connected(&gate).await;
            gate
        };
        let (first, second) = (start("a key of all gates").await, start("a key of all gates").await);
        for gate in [&first, &second] {
            refused(&gate.get(&origin.url("/private")).await, "rule");
        }
        if has_failed_calls(&[&first, &second]).await {
            return None;
        }
        assert_eq!(origin.count("/robots.txt"), 1);
        let stranger = start("a key of nobody else").await;
        refused(&stranger.get(&origin.url("/private")).await, "rule");
        assert_eq!(origin.count("/robots.txt"), 2, "it does not trust their copy");
        assert_eq!(fleet(&stranger).await["copies_rejected"], 1);

        // If the file with the password changes, the new password is read.
        fs::write(first.file("password"), "a wrong password\n").expect("the folder is ours");
        first.reloaded(1).await;
        wait::until_async("the password to be refused", async || {
            fleet(&first).await["error"].as_str().map(drop)
        })
        .await;
        refused(&first.get(&origin.url_at("other.example", "/private")).await, "rule");
        fs::write(first.file("password"), "a long password\n").expect("the folder is ours");
        connected(&first).await;
        Some(())
    })
    .await;
}

#[tokio::test]
async fn nothing_of_a_bot_is_stored() {
    needs!("redis-server");
    let (server, origin) = (Redis::start().await, origin().await);
    let gate = gate(&server.url()).await;
    let ask = gate
        .get(&origin.url("/secret-path?secret-query"))
        .header("Authorization", "secret-header");
    allowed(&ask.header("Cookie", "secret-cookie").await, "no-rule");
    let names = wait::until_async("the copy to be stored", async || {
        let redis::Value::Array(names) = server.ask(&["KEYS", "*"]).await else {
            return None;
        };
        let names: Vec<String> = names
            .into_iter()
            .filter_map(|name| redis::from_redis_value(name).ok())
            .collect();
        names.iter().any(|name| name.contains(":copy:")).then_some(names)
    })
    .await;
    for name in names {
        assert!(name.starts_with("robotgate:"), "{name}");
        let life: i64 = redis::from_redis_value(server.ask(&["PTTL", &name]).await).expect("a number");
        assert!(life > 0, "{name} stays for ever");
        let dump = format!("{:?}", server.ask(&["GET", &name]).await);
        assert!(!format!("{name} {dump}").contains("secret"), "{name}: {dump}");
    }
}

/// Starts a gate of the fleet at `url` with a `[pace]` section, and waits until it has connected to the server.
async fn paced(url: &str, pace: &str) -> Gate {
    let gate = Gate::with(&format!("[fleet]\nurl = \"{url}\"\nsize = 3\n[pace]\n{pace}")).await;
    connected(&gate).await;
    gate
}

/// Returns a field of the pace of `origin` that the server stores: a time in microseconds.
async fn pace_of(server: &Redis, origin: &Origin, field: &str) -> Option<i64> {
    let key = format!("robotgate:{{{}}}:pace", origin.url("").trim_end_matches('/'));
    redis::from_redis_value(server.ask(&["HGET", &key, field]).await).expect("a time or nothing")
}

/// Returns when a refused request may come again, in seconds since 1970.
fn not_before(response: &Response) -> i64 {
    assert_eq!(response.status, 429, "{response:#?}");
    assert_eq!(
        response.decision().param("reason").as_deref(),
        Some("pace"),
        "{response:#?}"
    );
    let not_before = response.decision().param("not-before").expect("a date");
    not_before.trim_start_matches('@').parse().expect("seconds")
}

#[tokio::test]
async fn three_gates_keep_one_pace() {
    needs!("redis-server");
    wait::until_async("an attempt without a late answer", async || {
        let (server, origin) = (Redis::start().await, origin().await);
        let (url, pace) = (server.url(), "delay = '40ms'\nmax-wait = '10m'");
        let gates = [
            paced(&url, pace).await,
            paced(&url, pace).await,
            paced(&url, pace).await,
        ];
        for gate in &gates {
            allowed(&gate.get(&origin.url("/first")).await, "no-rule");
        }
        let first = pace_of(&server, &origin, "last").await.expect("a slot");
        let mut requests = JoinSet::new();
        for number in 0..30 {
            let ask = gates[number % 3].get(&origin.url(&format!("/{number}")));
            requests.spawn(async move { ask.await });
        }
        for response in requests.join_all().await {
            allowed(&response, "no-rule");
        }
        if has_failed_calls(&gates.each_ref()).await {
            return None;
        }
        let last = pace_of(&server, &origin, "last").await.expect("a slot");
        assert!(last - first >= 30 * 40_000, "{}", last - first);
        Some(())
    })
    .await;
}

#[tokio::test]
async fn a_pause_that_one_gate_is_asked_for_holds_for_all() {
    needs!("redis-server");
    wait::until_async("an attempt without a late answer", async || {
        let (server, origin) = (Redis::start().await, origin().await);
        let busy = Reply::status(429).header("Retry-After", "600");
        origin.change("/busy", busy);
        let url = server.url();
        let [first, visited, new] = [paced(&url, "").await, paced(&url, "").await, paced(&url, "").await];
        for gate in [&first, &visited] {
            allowed(&gate.get(&origin.url("/page")).await, "no-rule");
        }
        assert_eq!(first.get(&origin.url("/busy")).await.status, 429);
        wait::until_async("the server to know of the pause", async || {
            pace_of(&server, &origin, "until").await
        })
        .await;
        let mut times = Vec::new();
        for gate in [&first, &visited, &new] {
            times.push(not_before(&gate.get(&origin.url("/page")).await));
        }
        if has_failed_calls(&[&first, &visited, &new]).await {
            return None;
        }
        assert_eq!(origin.count("/page"), 2);
        let differences = times.iter().map(|time| time - times[0]);
        assert!(differences.into_iter().all(|seconds| seconds.abs() <= 1), "{times:?}");
        Some(())
    })
    .await;
}

#[tokio::test]
async fn a_gate_that_is_told_of_a_pause_holds_back_at_once() {
    needs!("redis-server");
    let (server, origin) = (Redis::start().await, origin().await);
    let gate = paced(&server.url(), "").await;
    allowed(&gate.get(&origin.url("/page")).await, "no-rule");
    // The server does not know this pause, so the gate can know it only from the message.
    let site = origin.url("");
    let message = format!("paused {} 600000000", site.trim_end_matches('/'));
    server.ask(&["PUBLISH", "robotgate:messages", &message]).await;
    let response = wait::until_async("the gate to be told", async || {
        let response = gate.get(&origin.url("/page")).await;
        (response.status == 429).then_some(response)
    })
    .await;
    assert!(not_before(&response) > 0);
    assert_eq!(pace_of(&server, &origin, "until").await, None);
}

#[tokio::test]
async fn a_scheduler_can_ask_any_gate_of_the_fleet() {
    needs!("redis-server");
    wait::until_async("an attempt without a late answer", async || {
        let (server, origin) = (Redis::start().await, origin().await);
        let pace = "delay = '1h'";
        let (first, second) = (paced(&server.url(), pace).await, paced(&server.url(), pace).await);
        // The fetch of the robots.txt is counted as a request to the site.
        let refused = not_before(&first.get(&origin.url("/page")).await);
        let path = format!("/api/v1/decide?agent=TestBot&url={}", escaped(&origin.url("/page")));
        let decided = crate::admin::get(&second, &path).await;
        if has_failed_calls(&[&first, &second]).await {
            return None;
        }
        let told = decided["not_before"].as_str().expect("it has to wait");
        let told = OffsetDateTime::parse(told, &Rfc3339).expect("a time").unix_timestamp();
        assert!((told - refused).abs() <= 1, "{told} {refused}");
        // Using a shared robots.txt is not counted: the site received only one request.
        assert_eq!(origin.requests().len(), 1);
        Some(())
    })
    .await;
}

#[tokio::test]
async fn while_the_server_is_gone_a_gate_keeps_its_share_of_the_pace() {
    needs!("redis-server");
    for (on_loss, forwarded) in [("share", true), ("local", true), ("refuse", false)] {
        let (mut server, origin) = (Redis::start().await, origin().await);
        let config = format!(
            "[fleet]\nurl = '{}'\nsize = 3\non-loss = '{on_loss}'\n[pace]",
            server.url()
        );
        let gate = Gate::with(&config).await;
        connected(&gate).await;
        server.kill();
        let response = gate.get(&origin.url("/page")).await;
        match forwarded {
            true => drop(allowed(&response, "no-rule")),
            false => assert!(not_before(&response) > 0),
        }
        server.start_again().await;
        connected(&gate).await;
        allowed(&gate.get(&origin.url("/page")).await, "no-rule");
    }
}

#[tokio::test]
async fn files_with_secrets_must_not_be_open_to_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let check = async |text: &str| {
        let file = folder.path().join("robotgate.toml");
        fs::write(&file, text).expect("the folder is ours");
        CliOutput::of(&["check", file.to_str().expect("text")], "").await
    };
    let write = |name: &str, text: &str, mode: u32| {
        let path: &Path = &folder.path().join(name);
        fs::write(path, text).expect("the folder is ours");
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    write("open", "0123456789abcdef", 0o644);
    write("short", "0123456789", 0o600);
    write("key", "0123456789abcdef", 0o600);
    write("no.pem", "", 0o600);
    let base = "[audit]\npath = \"log/a\"\n[fleet]\n";
    let url = "url = \"rediss://redis.example\"\n";
    for (text, told) in [
        (format!("{base}{url}key-file = \"open\""), "every user can read it"),
        (format!("{base}{url}key-file = \"short\""), "less than 16 bytes"),
        (format!("{base}{url}password-file = \"none\""), "cannot read"),
        (format!("{base}{url}ca-file = \"no.pem\""), "contains no certificate"),
        (format!("{base}key-file = \"key\""), "url is missing"),
        (format!("{base}{url}username-file = \"key\""), "a user needs a password"),
        (
            format!("{base}url = \"redis://u:secret@s.example\""),
            "put them into files",
        ),
        (
            format!("{base}url = \"http://s.example\""),
            "redis://, rediss:// or unix://",
        ),
        (format!("{base}{url}key-prefix = \"a b\""), "cannot begin a key"),
        (format!("{base}{url}[pace]"), "write it like: size = 3"),
        (format!("{base}{url}size = 0"), "write a number from 1 to 10000"),
        (format!("{base}{url}on-loss = \"wait\""), "share"),
    ] {
        let checked = check(&text).await;
        assert_eq!(checked.code, Some(1), "{text}");
        assert!(checked.errors.contains(told), "{told}: {}", checked.errors);
    }
    // Without a shared pace, and in the other modes, the size does not matter.
    for text in [
        "",
        "on-loss = 'local'\n[pace]",
        "on-loss = 'refuse'\n[pace]",
        "size = 3\n[pace]",
    ] {
        let checked = check(&format!("[fleet]\n{url}{text}")).await;
        assert_eq!(checked.code, Some(0), "{text}: {}", checked.errors);
    }
}

/// Runs `robotgate cache` with the configuration of a gate.
async fn cache(gate: &Gate, args: &[&str]) -> CliOutput {
    let config = gate.file("robotgate.toml");
    let config = config.to_str().expect("the tests' paths are text");
    CliOutput::of(&[&["cache"], args, &["--config", config]].concat(), "").await
}

fn json(line: &str) -> Value {
    serde_json::from_str(line).expect("an object a line")
}
