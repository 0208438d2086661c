//! `robotgate cache` gets its answers from the proxy while the proxy runs, and otherwise from the cache file.

mod clients;
mod file;

use serde_json::{Value, json};

use crate::support::{CliOutput, Gate, NAME, Origin, ROBOTS, Reply, Signal, allowed, refused};

async fn cache(gate: &Gate, args: &[&str]) -> CliOutput {
    let config = gate.file("robotgate.toml");
    let config = config.to_str().expect("the tests' paths are text");
    CliOutput::of(&[&["cache"], args, &["--config", config]].concat(), "").await
}

async fn rows(gate: &Gate) -> Vec<Value> {
    let output = cache(gate, &["list", "--json"]).await;
    assert_eq!((output.code, &*output.errors), (Some(0), ""), "{output:?}");
    let row = |line| serde_json::from_str(line).expect("an object a line");
    output.out.lines().map(row).collect()
}

/// Removes the values that are lost when the proxy ends.
fn without_proxy(mut rows: Vec<Value>) -> Vec<Value> {
    for row in &mut rows {
        row["verdicts"] = Value::Null;
    }
    rows
}

async fn known() -> (Origin, Origin, Gate) {
    let site = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let broken = Origin::start().reply("/robots.txt", Reply::status(503)).spawn().await;
    let gate = Gate::start().await;
    allowed(&gate.get(&site.url("/x")).await, "no-rule");
    refused(&gate.get(&broken.url("/x")).await, "unreachable");
    (site, broken, gate)
}

#[tokio::test]
async fn the_list_agrees_with_the_audit_log_with_and_without_a_proxy() {
    let (site, broken, mut gate) = known().await;
    let running = rows(&gate).await;
    assert_eq!(running.len(), 2);
    for origin in [&site, &broken] {
        let decision = gate.decision_for(&origin.url("/x")).await;
        let row = running.iter().find(|row| row["origin"] == decision["origin"]);
        let row = row.expect("what was asked is known");
        for field in ["status", "fetched", "sha256", "error"] {
            assert_eq!(row[field], decision[&*format!("robots_{field}")], "{field}");
        }
        let fetch = gate
            .audit()
            .into_iter()
            .find(|record| record["event"] == "robots" && record["origin"] == decision["origin"]);
        let fetch = fetch.expect("the fetch was logged");
        for field in ["holds", "failing_since"] {
            assert_eq!(row[field], fetch[field], "{field}");
        }
    }
    let rules = running.iter().find(|row| row["holds"] == "rules").expect("rules");
    let decision = gate.decision_for(&site.url("/x")).await;
    assert_eq!(
        (&rules["expires"], &rules["verdicts"]["allow"]),
        (&decision["robots_expires"], &1.into())
    );
    assert_eq!((&rules["bytes"], &rules["due"]), (&ROBOTS.len().into(), &"no".into()));

    assert!(gate.stop().await.success());
    assert!(!gate.file("robots.redb.sock").exists());
    assert_eq!(rows(&gate).await, without_proxy(running));
}

#[tokio::test]
async fn the_list_shows_what_a_killed_proxy_had_saved() {
    let (_site, _broken, mut gate) = known().await;
    let running = rows(&gate).await;
    gate.signal(Signal::KILL);
    gate.ended().await;
    assert!(gate.file("robots.redb.sock").exists(), "nobody removed it");
    assert_eq!(rows(&gate).await, without_proxy(running));
}

#[tokio::test]
async fn the_list_is_a_table_that_a_word_filters() {
    let (site, broken, gate) = known().await;
    let output = cache(&gate, &["list"]).await;
    let heads: Vec<_> = output.out.lines().next().unwrap_or_default().split("  ").collect();
    let heads: Vec<_> = heads
        .iter()
        .filter(|head| !head.is_empty())
        .map(|head| head.trim())
        .collect();
    assert_eq!(
        heads,
        ["ORIGIN", "HOLDS", "STATUS", "FETCHED", "UNTIL", "FAILING SINCE"]
    );
    assert_eq!((output.out.lines().count(), output.code), (3, Some(0)), "{output:?}");

    let output = cache(&gate, &["list", &broken.port().to_string()]).await;
    assert!(output.out.contains("unreachable  503"), "{output:?}");
    assert!(!output.out.contains(&site.port().to_string()), "{output:?}");

    let output = cache(&gate, &["list", "--failing"]).await;
    let listed: Vec<_> = output.out.lines().skip(1).collect();
    assert!(
        matches!(listed[..], [line] if line.contains(&broken.port().to_string())),
        "{output:?}"
    );
    let output = cache(&gate, &["list", "--failing", &site.port().to_string()]).await;
    let expected = "robotgate: the last fetch of each matching site succeeded\n";
    assert_eq!((&*output.errors, &*output.out, output.code), (expected, "", Some(0)));

    let output = cache(&gate, &["list", &"x".repeat(10_000)]).await;
    assert_eq!((output.code, &*output.out), (Some(0), ""), "{output:?}");
    let output = cache(&gate, &["list", "nowhere"]).await;
    assert_eq!((output.code, &*output.out), (Some(0), ""));
    assert!(output.errors.contains("no known site has \"nowhere\""), "{output:?}");
}

#[tokio::test]
async fn one_site_is_shown_with_its_text() {
    let (site, broken, mut gate) = known().await;
    for runs in [true, false] {
        if !runs {
            gate.stop().await;
        }
        let output = cache(&gate, &["show", &site.url("/any/page?x=1")]).await;
        assert!(output.out.starts_with(&format!(
            "Origin:           {}\nHolds:            rules\n",
            site.url("")
        )));
        assert!(
            output
                .out
                .ends_with("\n\n  1 | User-agent: *\n  2 | Disallow: /private\n"),
            "{output:?}"
        );

        let output = cache(&gate, &["show", "--text", &site.url("")]).await;
        assert_eq!((&*output.out, &*output.errors, output.code), (ROBOTS, "", Some(0)));

        let detail = cache(&gate, &["show", "--json", &site.url("")]).await.json();
        assert_eq!(
            (&detail["holds"], &detail["profile"]),
            (&"rules".into(), &"google".into())
        );
        assert_eq!(detail["robots"], ROBOTS);
        assert_eq!(detail["last_copy"]["bytes"], ROBOTS.len());

        let output = cache(&gate, &["show", &broken.url("")]).await;
        assert!(
            output.out.contains("\nLast failure:     the server answered 503\n"),
            "{output:?}"
        );
        let output = cache(&gate, &["show", "--text", &broken.url("")]).await;
        assert!(output.errors.contains("no robots.txt of http://"), "{output:?}");
        assert_eq!((output.code, &*output.out), (Some(1), ""));

        let output = cache(&gate, &["show", "nowhere.example"]).await;
        let expected = "robotgate: nothing is known about https://nowhere.example; if you mean http, write \
                    http://nowhere.example\n";
        assert_eq!((&*output.errors, output.code), (expected, Some(1)));
    }
}

#[tokio::test]
async fn a_long_list_is_complete_and_in_order() {
    let site = Origin::start().robots(ROBOTS).spawn().await;
    let mut gate = Gate::start().await;
    let urls: Vec<_> = (0..1_000)
        .map(|number| site.url_at(&format!("h{number:03}.{NAME}"), "/"))
        .collect();
    let questions: Vec<_> = urls.iter().map(|url| json!({"agent": "TestBot", "url": url})).collect();
    let request = gate
        .ask_admin("POST", "/api/v1/decide")
        .header("Content-Type", "application/json");
    let decided = request
        .body(json!({"requests": questions}).to_string().as_bytes())
        .await;
    assert_eq!(decided.status, 200);
    gate.get(&site.url_at(&format!("h{}.{NAME}", "999x"), "/")).await;

    let names = async |gate: &Gate| -> Vec<String> {
        let rows = rows(gate).await.into_iter();
        rows.map(|row| row["origin"].as_str().unwrap().to_owned()).collect()
    };
    let running = names(&gate).await;
    assert_eq!(running.len(), 1_001);
    assert!(running.is_sorted());
    gate.stop().await;
    assert_eq!(names(&gate).await, running);
}

#[tokio::test]
async fn a_forgotten_site_is_fetched_again() {
    let site = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let mut gate = Gate::start().await;
    let status = async |path: &str| {
        allowed(&gate.get(&site.url(path)).await, "no-rule");
        gate.decision_for(&site.url(path)).await["robots_cache"].clone()
    };
    assert_eq!(status("/1").await, "miss");
    assert_eq!(status("/2").await, "hit");
    let output = cache(&gate, &["forget", &site.url("")]).await;
    let expected = format!(
        "{} is forgotten; the next request for it fetches its robots.txt\n",
        site.url("")
    );
    assert_eq!((&*output.out, &*output.errors, output.code), (&*expected, "", Some(0)));
    assert!(rows(&gate).await.is_empty());
    assert_eq!(status("/3").await, "miss");
    assert_eq!(site.count("/robots.txt"), 2);
    let other = site.url_at("other.example", "/x");
    allowed(&gate.get(&other).await, "no-rule");

    gate.stop().await;
    let output = cache(&gate, &["forget", &other]).await;
    assert!(output.out.contains("which no running robotgate uses\n"), "{output:?}");
    let output = cache(&gate, &["forget", "--json", &site.url("/page")]).await;
    assert_eq!(output.json(), json!({"origin": site.url(""), "forgotten": true}));
    assert!(rows(&gate).await.is_empty());
    let output = cache(&gate, &["forget", &site.url("")]).await;
    assert_eq!((output.code, &*output.out), (Some(1), ""));
    assert!(
        output.errors.starts_with("robotgate: nothing is known about http://"),
        "{output:?}"
    );
}

#[tokio::test]
async fn statistics_are_shown_with_and_without_a_proxy() {
    let site = Origin::start().robots(ROBOTS).anything("page").spawn().await;
    let mut gate = Gate::start().await;
    for host in ["a.example", "b.example", "c.example"] {
        allowed(&gate.get(&site.url_at(host, "/x")).await, "no-rule");
    }
    let stats = cache(&gate, &["stats", "--json"]).await.json();
    for (field, number) in [
        ("origins", 3),
        ("texts", 1),
        ("text_bytes", ROBOTS.len()),
        ("origins_with_text", 3),
        ("failing", 0),
    ] {
        assert_eq!(stats[field], number, "{field}: {stats}");
    }
    assert_eq!(stats["holds"], json!({"rules": 3}));
    assert_eq!(stats["running"]["memory_origins"], 3);
    assert_eq!(stats["running"]["fetches"], 0);
    let size = std::fs::metadata(gate.file("robots.redb")).expect("a file").len();
    assert!(stats["file_bytes"].as_u64() > Some(0) && size > 0, "{stats}");

    let output = cache(&gate, &["stats"]).await;
    assert!(output.out.contains("\nOrigins:  3 (3 rules)\n"), "{output:?}");
    assert!(
        output.out.contains("\nTexts:    1, 33 bytes; 3 origins share them\n"),
        "{output:?}"
    );
    assert!(output.out.contains("\nMemory:   3 origins, "), "{output:?}");
    gate.stop().await;
    let output = cache(&gate, &["stats"]).await;
    assert!(
        output.out.ends_with("\nProxy:    no proxy runs with this file\n"),
        "{output:?}"
    );
}
