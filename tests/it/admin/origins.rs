//! `/api/v1/origins`: the list of known origins and the details of each.

use serde_json::{Value, json};

use super::{escaped, get, problem};
use crate::support::{Gate, NAME, Origin, Reply, wait};

const ROBOTS: &str = "User-agent: *\nDisallow: /private\n";

/// Configurations with copies on disk, and with copies only in memory.
const CACHES: [&str; 2] = ["", "[cache]\npersist = false"];

async fn gate_with(cache: &str) -> Gate {
    let builder = Gate::builder().config(cache);
    match cache {
        "" => builder.start().await,
        _ => builder.without("cache.path").start().await,
    }
}

fn names(list: &Value) -> Vec<String> {
    let origins = list["origins"].as_array().unwrap().iter();
    origins.map(|row| row["origin"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn the_details_of_an_origin_have_its_file_and_its_verdicts() {
    for cache in CACHES {
        let origin = Origin::start().robots(ROBOTS).page("/", "page").spawn().await;
        let gate = gate_with(cache).await;
        for path in ["/", "/", "/private"] {
            gate.get(&origin.url(path)).await;
        }
        let name = origin.url("");
        let detail = get(&gate, &format!("/api/v1/origins/detail?origin={}", escaped(&name))).await;
        for (field, value) in [
            ("origin", json!(name)),
            ("holds", json!("rules")),
            ("status", json!(200)),
            ("failing_since", Value::Null),
            ("bytes", json!(ROBOTS.len())),
            (
                "verdicts",
                json!({"allow": 2, "deny": 1, "unverifiable": 0, "defer": 0}),
            ),
            ("robots", json!(ROBOTS)),
            ("robots_truncated", json!(false)),
            ("robots_b64", Value::Null),
            ("robots_url", json!(origin.url("/robots.txt"))),
            ("due", json!("no")),
            ("profile", json!("google")),
            ("etag", Value::Null),
            (
                "last_copy",
                json!({"status": 200, "fetched": detail["fetched"], "bytes": ROBOTS.len()}),
            ),
        ] {
            assert_eq!(detail[field], value, "{cache} {field}");
        }
        let list = get(&gate, "/api/v1/origins").await;
        assert_eq!(list["next"], Value::Null);
        for (field, value) in list["origins"][0].as_object().unwrap() {
            assert_eq!(&detail[field], value, "{cache} {field}");
        }
    }
}

#[tokio::test]
async fn the_list_in_parts_has_each_origin_once() {
    for cache in CACHES {
        let origin = Origin::start().robots(ROBOTS).page("/", "page").spawn().await;
        let gate = gate_with(cache).await;
        let hosts: Vec<String> = (0..7).map(|number| format!("h{number}.{NAME}")).collect();
        for host in &hosts {
            gate.get(&origin.url_at(host, "/")).await;
        }
        gate.get(&origin.url("/")).await;
        for (limit, search) in [(1, "H"), (2, NAME), (7, NAME), (50, "http://h"), (3, "")] {
            let (mut found, mut after) = (Vec::new(), String::new());
            loop {
                let list = get(
                    &gate,
                    &format!(
                        "/api/v1/origins?limit={limit}&search={search}&after={}",
                        escaped(&after)
                    ),
                )
                .await;
                assert!(list["origins"].as_array().unwrap().len() <= limit);
                found.extend(names(&list));
                match list["next"].as_str() {
                    Some(next) => after = next.to_owned(),
                    None => break,
                }
            }
            let mut expected: Vec<_> = hosts.iter().map(|host| origin.url_at(host, "")).collect();
            if search != "http://h" {
                expected.push(origin.url(""));
            }
            assert_eq!(found, expected, "{cache} {limit} {search}");
        }
    }
}

#[tokio::test]
async fn an_unknown_origin_is_not_found() {
    for cache in CACHES {
        let gate = gate_with(cache).await;
        assert_eq!(
            get(&gate, "/api/v1/origins").await,
            json!({"origins": [], "next": null})
        );
        let detail = problem(&gate, "/api/v1/origins/detail?origin=https://a.example", 404).await;
        assert_eq!(detail, "nothing is known about https://a.example");
        let detail = problem(&gate, "/api/v1/origins/detail?origin=a.example", 400).await;
        assert!(detail.contains("is not an origin like"), "{detail}");
        problem(&gate, "/api/v1/origins?limit=many", 400).await;
    }
}

#[tokio::test]
async fn the_details_of_an_origin_show_a_failure() {
    let mut origin = Origin::start().robots(ROBOTS).spawn().await;
    let (gate, url) = (Gate::start().await, origin.url("/"));
    origin.shut_down().await;
    gate.get(&url).await;
    let path = format!("/api/v1/origins/detail?origin={}", escaped(url.trim_end_matches('/')));
    let detail = wait::until_async("the origin", async || {
        let response = gate.admin(&path).await;
        (response.status == 200).then(|| response.json())
    })
    .await;
    assert_eq!(detail["holds"], "unreachable");
    assert!(
        detail["failing_since"].is_string() && detail["error"].is_string(),
        "{detail:#}"
    );
    assert_eq!(detail["verdicts"]["deny"], 1);
}

#[tokio::test]
async fn the_details_of_an_origin_say_what_the_site_says_about_use() {
    let robots = "License: https://a.example/rsl.xml\nContent-Signal: search=no\nUser-agent: *\nDisallow: /private\n\
                  Content-Signal: search=yes, ai-train=no, other=no\n\nUser-agent: AcmeBot\nUser-agent: OtherBot\n\
                  Content-Usage: /a/ train-ai=n\n";
    for cache in CACHES {
        let file = r#"[{"location": "/b/*", "tdm-reservation": 1}]"#;
        let origin = Origin::start().robots(robots);
        let origin = origin.reply("/.well-known/tdmrep.json", Reply::ok("application/json", file));
        let origin = origin.spawn().await;
        let miner = "[[bot]]\nname = 'm'\nuser-agents = ['TestBot']\npurposes = ['tdm']\n";
        let gate = gate_with(&format!("{cache}\n{miner}")).await;
        gate.get(&origin.url("/")).await;
        let path = format!("/api/v1/origins/detail?origin={}", escaped(&origin.url("")));
        let detail = wait::until_async("the origin", async || {
            let response = gate.admin(&path).await;
            (response.status == 200).then_some(())
        });
        detail.await;
        let detail = get(&gate, &path).await;
        let of = |line: u32, agents: &[&str], field: &str, path: Option<&str>, key: Option<&str>, value: &str| json!({"line": line, "agents": agents, "field": field, "path": path, "key": key, "value": value});
        let both = ["AcmeBot", "OtherBot"];
        assert_eq!(
            detail["usage"],
            json!([
                of(1, &[], "License", None, None, "https://a.example/rsl.xml"),
                of(5, &["*"], "Content-Signal", None, Some("search"), "yes"),
                of(5, &["*"], "Content-Signal", None, Some("ai-train"), "no"),
                of(9, &both, "Content-Usage", Some("/a/"), Some("train-ai"), "n"),
                of(1, &[], "tdmrep.json", Some("/b/*"), Some("tdm-reservation"), "1"),
            ]),
            "{cache}"
        );
    }
}
