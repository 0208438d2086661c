//! `/api/v1/origins`: the list of known origins and the details of each.

use serde_json::{Value, json};

use super::{escaped, get, problem};
use crate::support::{Gate, NAME, Origin, ROBOTS, Reply, refused, wait};

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
async fn a_paged_list_has_each_origin_once() {
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

#[tokio::test]
async fn the_list_is_sorted_by_a_column_and_has_a_total() {
    for cache in CACHES {
        let origin = Origin::start().robots(ROBOTS).page("/", "page").spawn().await;
        let gate = gate_with(cache).await;
        let hosts: Vec<String> = (0..5)
            .map(|number| origin.url_at(&format!("h{number}.{NAME}"), ""))
            .collect();
        for (number, host) in hosts.iter().enumerate() {
            for _ in 0..(number * 3 % 5) + 1 {
                gate.get(&format!("{host}/private")).await;
            }
        }
        let in_order = |order: [usize; 5]| order.map(|number| hosts[number].clone()).to_vec();
        for (query, expected) in [
            ("sort=origin", in_order([0, 1, 2, 3, 4])),
            ("sort=origin&order=desc", in_order([4, 3, 2, 1, 0])),
            ("sort=deny&order=desc", in_order([3, 1, 4, 2, 0])),
            (
                "sort=deny&order=desc&limit=2&offset=2",
                in_order([3, 1, 4, 2, 0])[2..4].to_vec(),
            ),
            ("sort=failing-since&search=h3", vec![hosts[3].clone()]),
            ("state=rules&limit=1", vec![hosts[0].clone()]),
            ("state=failing", Vec::new()),
        ] {
            let list = get(&gate, &format!("/api/v1/origins?{query}")).await;
            assert_eq!(names(&list), expected, "{cache} {query}");
            assert_eq!(list["complete"], true);
            let total = match query {
                "state=failing" => 0,
                "sort=failing-since&search=h3" => 1,
                _ => 5,
            };
            assert_eq!(list["total"], total, "{cache} {query}");
        }
        let list = get(&gate, "/api/v1/origins?sort=deny&limit=2&offset=2").await;
        assert_eq!(list["next"], "4");
        let detail = problem(&gate, "/api/v1/origins?state=odd", 400).await;
        assert!(detail.contains("\"odd\" is not one of rules, expired, "), "{detail}");
    }
}

#[tokio::test]
async fn the_columns_to_sort_by_are_described_in_order() {
    let gate = Gate::start().await;
    let described = gate.admin("/api/v1/openapi.json").await.json();
    let parameters = &described["paths"]["/api/v1/origins"]["get"]["parameters"];
    let sort = parameters.as_array().unwrap().iter().find(|one| one["name"] == "sort");
    let words = sort.unwrap()["schema"]["enum"].as_array().unwrap().iter();
    let words: Vec<&str> = words.map(|word| word.as_str().unwrap()).collect();
    let detail = problem(&gate, "/api/v1/origins?sort=odd", 400).await;
    let expected = format!("\"odd\" is not one of {};", words.join(", "));
    assert!(detail.contains(&expected), "{detail}");
}

#[tokio::test]
async fn the_versions_of_a_robots_txt_are_listed_and_compared() {
    let brief = |text: &str| Reply::ok("text/plain", text).header("Cache-Control", "max-age=1");
    let origin = Origin::start()
        .reply("/robots.txt", brief(ROBOTS))
        .page("/", "page")
        .spawn()
        .await;
    let gate = Gate::with("[robots]\nmin-ttl = \"1s\"").await;
    let path = format!("/api/v1/origins/versions?origin={}", escaped(&origin.url("")));
    gate.get(&origin.url("/")).await;
    let versions = wait::until_async("a version", async || {
        let found = get(&gate, &path).await;
        (found["versions"].as_array()?.len() == 1).then_some(found)
    })
    .await;
    assert_eq!(
        (&versions["versions"][0]["bytes"], &versions["difference"]),
        (&json!(ROBOTS.len()), &Value::Null)
    );
    assert_eq!(get(&gate, &format!("{path}&to=1")).await["difference"], Value::Null);
    origin.change("/robots.txt", brief("User-agent: *\nDisallow: /other\n"));
    let compared = wait::until_async("another version", async || {
        gate.get(&origin.url("/")).await;
        let found = gate.admin(&format!("{path}&to=2")).await;
        (found.status == 200).then(|| found.json())
    })
    .await;
    let difference = &compared["difference"];
    assert_eq!(
        (&difference["rules_added"], &difference["rules_removed"]),
        (&json!(1), &json!(1))
    );
    let diff = difference["diff"].as_str().expect("a text");
    assert!(diff.contains("-Disallow: /private\n+Disallow: /other\n"), "{diff}");
    let back = get(&gate, &format!("{path}&from=2&to=1")).await;
    assert_eq!(back["difference"]["to"]["version"], 1);
    let detail = problem(&gate, &format!("{path}&to=9"), 400).await;
    assert!(detail.contains("there is no version \"9\""), "{detail}");
}

#[tokio::test]
async fn the_details_show_the_pace_and_the_purposes_of_bots() {
    let robots = "User-agent: *\nCrawl-delay: 2\nContent-Usage: train-ai=n\n";
    let origin = Origin::start().robots(robots).page("/", "page").spawn().await;
    let config = "[pace]\ncrawl-delay = 'enforce'\n[usage]\ncontent-usage = 'report'\n\
                  [[bot]]\nname = 'Trainer'\nuser-agents = ['acme-fetch']\npurposes = ['ai-train']\n\
                  [[bot]]\nname = 'Slow'\nuser-agents = ['*slow*']\ndelay = '5s'\n";
    let gate = Gate::with(config).await;
    gate.get(&origin.url("/")).await;
    let detail = get(
        &gate,
        &format!("/api/v1/origins/detail?origin={}", escaped(&origin.url(""))),
    )
    .await;
    let [trainer, slow] = &detail["bots"].as_array().expect("bots")[..] else {
        panic!("{detail:#}")
    };
    assert_eq!(
        (&trainer["gap_ms"], &trainer["gap_cause"]),
        (&json!(2000), &json!("crawl-delay"))
    );
    assert_eq!(trainer["usage"]["said"][0]["purpose"], "ai-train");
    assert_eq!(
        (&slow["gap_ms"], &slow["gap_cause"]),
        (&json!(5000), &json!("bot-delay"))
    );
    assert_eq!(slow["usage"], Value::Null);
    assert!(trainer["not_before"].is_string(), "a request was sent just now");
}

#[tokio::test]
async fn the_details_show_what_the_tdmrep_json_says() {
    let file = Reply::ok("application/json", r#"[{"location": "/", "tdm-reservation": 1}]"#);
    let origin = Origin::start().robots(ROBOTS).reply("/.well-known/tdmrep.json", file);
    let origin = origin.spawn().await;
    let config = "[usage]\ntdmrep = 'enforce'\n\
                  [[bot]]\nname = 'Miner'\nuser-agents = ['TestBot']\npurposes = ['tdm']\n";
    let gate = Gate::with(config).await;
    refused(&gate.get(&origin.url("/x")).await, "usage");

    let path = format!("/api/v1/origins/detail?origin={}", escaped(&origin.url("")));
    let usage = &get(&gate, &path).await["bots"][0]["usage"];
    assert_eq!(usage["tdmrep"], "file");
    assert_eq!(usage["refused"]["why"], "forbidden");
}
