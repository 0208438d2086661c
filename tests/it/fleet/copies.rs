//! One gate fetches a robots.txt for the whole fleet. Also tests what the server stores, and what the fleet forgets.

use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering},
};

use redis::from_redis_value;
use serde_json::Value;
use tokio::task::JoinSet;

use super::{ROBOTS, cache, connected, fetches, fleet, gate, has_failed_calls, json, origin};
use crate::support::{Gate, Latch, Origin, Redis, Reply, allowed, origin_root_pem, programs::needs, refused, wait};

#[tokio::test]
async fn three_gates_and_two_hundred_requests_at_once_make_one_fetch() {
    needs!("redis-server");
    let (server, origin) = (Redis::start().await, origin().await);
    let url = server.url();
    let gates = [gate(&url).await, gate(&url).await, gate(&url).await];
    // On a very busy machine, the server can respond too late. Then the test tries again with another origin.
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
async fn a_gate_uses_a_shared_copy_and_the_log_and_the_list_show_it() {
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
async fn a_tdmrep_json_is_fetched_by_one_gate_and_forgotten_by_all() {
    const PATH: &str = "/.well-known/tdmrep.json";
    needs!("redis-server");
    wait::until_async("an attempt without a late answer", async || {
        let server = Redis::start().await;
        let file = r#"[{"location": "/reserved", "tdm-reservation": 1}]"#;
        let site = Origin::start().robots(ROBOTS).anything("page");
        let origin = site.reply(PATH, Reply::ok("application/json", file)).spawn().await;
        let miner = format!(
            "[fleet]\nurl = '{}'\n[usage]\ntdmrep = 'enforce'\n\
             [[bot]]\nname = 'm'\nuser-agents = ['TestBot']\npurposes = ['tdm']\n",
            server.url()
        );
        let gates = [Gate::with(&miner).await, Gate::with(&miner).await];
        for gate in &gates {
            connected(gate).await;
            refused(&gate.get(&origin.url("/reserved")).await, "usage");
        }
        origin.change(PATH, Reply::status(404));
        let fetched = origin.count(PATH);
        assert_eq!(
            cache(&gates[0], &["forget", &origin.url("")]).await.code,
            Some(0),
            "the fleet was told"
        );
        wait::until_async("the second gate to forget it", async || {
            (gates[1].get(&origin.url("/reserved")).await.status == 200).then_some(())
        })
        .await;
        allowed(&gates[0].get(&origin.url("/reserved")).await, "no-rule");
        if has_failed_calls(&[&gates[0], &gates[1]]).await {
            return None;
        }
        assert_eq!((fetched, origin.count(PATH)), (1, 2));
        let sources = |gate: &Gate| {
            let records = gate.events("tdmrep").into_iter();
            records.map(|record| record["source"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(sources(&gates[0]), ["site", "fleet"]);
        assert_eq!(sources(&gates[1]), ["fleet", "site"]);
        let shared = &gates[1].events("tdmrep")[0];
        let read = &gates[0].events("tdmrep")[0];
        for field in ["fetched", "tdmrep_sha256", "entries", "tdmrep_expires"] {
            assert!(!shared[field].is_null(), "{field}: {shared:#}");
            assert_eq!(shared[field], read[field], "{field}");
        }
        Some(())
    })
    .await;
}

#[tokio::test]
async fn forgetting_a_site_at_one_gate_forgets_it_at_all_gates() {
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
async fn a_fetch_whose_text_cannot_be_stored_as_evidence_ends_its_lease() {
    needs!("redis-server");
    let server = Redis::start().await;
    let config = format!("[fleet]\nurl = \"{}\"\n[evidence]\nrequired = true", server.url());
    let gate = Gate::with(&config).await;
    connected(&gate).await;
    let path = gate.file("evidence.redb");
    fs::remove_file(&path).expect("removed");
    fs::create_dir(&path).expect("made");
    // The gate finds the folder only when it opens `evidence.redb` again, to store the text of a later fetch.
    let mut fetched = 0;
    wait::until_async("a 503", async || {
        fetched += 1;
        let robots = format!("{ROBOTS}# {fetched}\n");
        let origin = Origin::start().robots(&robots).anything("page").spawn().await;
        (gate.get(&origin.url("/page")).await.status == 503).then_some(())
    })
    .await;
    let all_ended = format!("cmdstat_publish:calls={fetched},");
    wait::until_async("the end of each lease", async || {
        let counts = from_redis_value::<String>(server.ask(&["INFO", "commandstats"]).await).expect("a text");
        counts.contains(&all_ended).then_some(())
    })
    .await;
}

#[tokio::test]
async fn gates_share_copies_over_tls_with_a_password_and_a_key() {
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

        // robotgate reads the password again when its file changes.
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
async fn the_server_stores_no_data_of_requests() {
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
