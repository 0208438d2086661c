//! `/api/v1/decide`: may this bot fetch this URL?

use serde_json::{Value, json};

use super::{escaped, get, post, problem};
use crate::support::{Gate, NAME, Origin, Reply, allowed, refused, wait};

const ROBOTS: &str = "User-agent: *\nDisallow: /private\n\nUser-agent: OtherBot\nDisallow: /\n";

fn decide_path(agent: &str, url: &str) -> String {
    format!("/api/v1/decide?agent={}&url={}", escaped(agent), escaped(url))
}

#[tokio::test]
async fn decide_returns_all_that_a_refusal_contains() {
    let origin = Origin::start().robots(ROBOTS).spawn().await;
    let gate = Gate::start().await;
    let decided = get(&gate, &decide_path("TestBot/1.0", &origin.url("/private/x"))).await;
    for (field, value) in [
        ("verdict", json!("deny")),
        ("reason", json!("rule")),
        ("enforcement", json!("enforce")),
        ("forwarded", json!(false)),
        ("bot", json!("TestBot")),
        ("needs_proof", json!(false)),
        ("rule", json!("Disallow: /private")),
        ("line", json!(2)),
        ("group", json!("*")),
        ("robots_url", json!(origin.url("/robots.txt"))),
        ("robots_status", json!(200)),
        ("robots_error", Value::Null),
        ("agent", json!("TestBot/1.0")),
        ("url", json!(origin.url("/private/x"))),
    ] {
        assert_eq!(decided[field], value, "{field}");
    }
}

#[tokio::test]
async fn decide_agrees_with_the_proxy_and_shares_its_copy() {
    let origin = Origin::start().robots(ROBOTS).page("/open", "page").spawn().await;
    let gate = Gate::start().await;
    for (agent, path, verdict, reason) in [
        ("TestBot/1.0", "/open", "allow", "no-rule"),
        ("TestBot/1.0", "/private", "deny", "rule"),
        ("TestBot/1.0", "/%70rivate", "deny", "rule"),
        ("OtherBot", "/open", "deny", "rule"),
        ("OtherBot", "/robots.txt", "allow", "robots-file"),
        ("", "/open", "deny", "unidentified"),
        ("Mozilla/5.0", "/open", "deny", "unidentified"),
    ] {
        let url = origin.url(path);
        let decided = get(&gate, &decide_path(agent, &url)).await;
        assert_eq!(
            (&decided["verdict"], &decided["reason"]),
            (&json!(verdict), &json!(reason)),
            "{agent} {path}"
        );
        let response = gate.get(&url).user_agent(agent).await;
        match verdict {
            "allow" => allowed(&response, reason),
            _ => refused(&response, reason),
        };
    }
    assert_eq!(gate.fetches_of(&origin.url("")).len(), 1);
}

#[tokio::test]
async fn decide_logs_its_fetch_but_no_decision() {
    let origin = Origin::start().robots(ROBOTS).spawn().await;
    let gate = Gate::start().await;
    let url = origin.url("/private");
    get(&gate, &decide_path("TestBot", &url)).await;
    get(&gate, &format!("/api/v1/explain?agent=TestBot&url={}", escaped(&url))).await;
    let records = wait::until("the fetch in the log", || {
        Some(gate.audit()).filter(|records| !records.is_empty())
    });
    let events: Vec<_> = records.await.iter().map(|record| record["event"].clone()).collect();
    assert_eq!(events, ["robots"]);
    assert_eq!(get(&gate, "/api/v1/refusals").await["refusals"], json!([]));
    let detail = get(
        &gate,
        &format!("/api/v1/origins/detail?origin={}", escaped(&origin.url(""))),
    )
    .await;
    assert_eq!(
        detail["verdicts"],
        json!({"allow": 0, "deny": 0, "unverifiable": 0, "defer": 0})
    );
    assert_eq!(origin.requests().len(), 1);
}

#[tokio::test]
async fn a_batch_is_answered_in_order_including_its_errors() {
    let origin = Origin::start().robots(ROBOTS).spawn().await;
    let gate = Gate::start().await;
    let good = |number: usize| json!({"agent": "TestBot", "url": origin.url(&format!("/private/{number}"))});
    let mut requests: Vec<Value> = (0..400).map(good).collect();
    requests[7] = json!({"agent": "TestBot", "url": "/relative"});
    requests[8] = json!({"agent": "Test\u{1}Bot", "url": origin.url("/")});
    requests[9] = json!({"agent": "TestBot", "url": "gopher://a.example/"});
    let answer = post(&gate, "/api/v1/decide", &json!({ "requests": requests })).await;
    let decisions = answer["decisions"].as_array().unwrap();
    assert_eq!(decisions.len(), requests.len());
    for (number, (request, decided)) in requests.iter().zip(decisions).enumerate() {
        assert_eq!(
            (&request["agent"], &request["url"]),
            (&decided["agent"], &decided["url"])
        );
        match number {
            7 => assert!(decided["error"].as_str().unwrap().contains("not a whole URL")),
            8 => assert!(decided["error"].as_str().unwrap().contains("control character")),
            9 => assert!(decided["error"].as_str().unwrap().contains("only http, https and ftp")),
            _ => assert_eq!(decided["verdict"], "deny", "{number}"),
        }
    }
    assert_eq!(origin.count("/robots.txt"), 1);
}

#[tokio::test]
async fn decide_reports_that_a_bot_needs_proof() {
    let origin = Origin::start().robots("").spawn().await;
    let config = "[[bot]]\nname = 'AcmeBot'\nuser-agents = ['AcmeBot']\nnetworks = ['192.0.2.0/24']";
    let gate = Gate::with(config).await;
    let decided = get(&gate, &decide_path("AcmeBot/2", &origin.url("/"))).await;
    assert_eq!(
        (&decided["verdict"], &decided["needs_proof"]),
        (&json!("allow"), &json!(true))
    );
}

#[tokio::test]
async fn decide_can_assume_a_client_without_proof() {
    let origin = Origin::start().robots("").spawn().await;
    let config = "[[bot]]\nname = 'AcmeBot'\nuser-agents = ['AcmeBot']\nenforcement = 'report'\n\
                  networks = ['192.0.2.0/24']";
    let gate = Gate::with(config).await;
    let url = origin.url("/");
    for (agent, proof, verdict, reason) in [
        ("AcmeBot/2", "assumed", "allow", "no-rule"),
        ("AcmeBot/2", "none", "deny", "unauthenticated"),
        ("OtherBot/2", "none", "allow", "no-rule"),
    ] {
        let question = json!({"agent": agent, "url": url, "proof": proof});
        let explain = format!(
            "/api/v1/explain?agent={}&url={}&proof={proof}",
            escaped(agent),
            escaped(&url)
        );
        for decided in [
            &get(&gate, &format!("{}&proof={proof}", decide_path(agent, &url))).await,
            &post(&gate, "/api/v1/decide", &json!({"requests": [question]})).await["decisions"][0],
            &get(&gate, &explain).await["decision"],
            &get(&gate, &explain).await["report"],
        ] {
            assert_eq!(
                (&decided["verdict"], &decided["reason"], &decided["forwarded"]),
                (&json!(verdict), &json!(reason), &json!(verdict == "allow")),
                "{agent} {proof}"
            );
        }
    }
}

#[tokio::test]
async fn decide_uses_the_connect_if_the_proxy_cannot_see_the_path() {
    let origin = Origin::start().robots(ROBOTS).tls().spawn().await;
    let url = origin.url("/open");
    for (mode, agent, verdict, reason) in [
        ("tunnel", "TestBot", "unverifiable", "unverifiable"),
        ("tunnel", "OtherBot", "deny", "rule"),
        ("refuse", "TestBot", "deny", "connect-refused"),
    ] {
        let gate = Gate::with(&format!("[https]\nmode = '{mode}'")).await;
        let decided = get(&gate, &decide_path(agent, &url)).await;
        assert_eq!(
            (&decided["verdict"], &decided["reason"]),
            (&json!(verdict), &json!(reason)),
            "{mode}"
        );
        let connect = gate.connect(&origin.authority()).user_agent(agent).await;
        refused(&connect.refused(), reason);
        get(&gate, &format!("/api/v1/explain?agent={agent}&url={}", escaped(&url))).await;
    }
}

#[tokio::test]
async fn decide_denies_a_prohibited_address_without_contacting_it() {
    let gate = Gate::with(&format!("[egress]\nallow = []\ndeny = ['{NAME}']")).await;
    for url in ["http://127.0.0.1:1/", &format!("http://{NAME}/")] {
        let decided = get(&gate, &decide_path("TestBot", url)).await;
        assert_eq!(
            (&decided["reason"], &decided["forwarded"]),
            (&json!("egress"), &json!(false)),
            "{url}"
        );
        assert!(decided["robots_error"].is_string(), "{decided:#}");
    }
}

#[tokio::test]
async fn decide_reports_an_unreachable_robots_txt_as_a_decision() {
    let origin = Origin::start().reply("/robots.txt", Reply::status(503)).spawn().await;
    let gate = Gate::start().await;
    let decided = get(&gate, &decide_path("TestBot", &origin.url("/"))).await;
    assert_eq!(decided["reason"], "unreachable");
    assert!(decided["robots_error"].as_str().unwrap().contains("503"), "{decided:#}");
}

#[tokio::test]
async fn decide_rejects_invalid_requests() {
    let gate = Gate::start().await;
    for (path, expected) in [
        ("/api/v1/decide", "agent is missing; write ?agent=BOT"),
        ("/api/v1/decide?agent=a", "url is missing"),
        ("/api/v1/decide?agent=a&url=b", "not a whole URL"),
        ("/api/v1/decide?agent=a&agent=b&url=c", "agent occurs twice"),
        (
            "/api/v1/decide?agent=a&url=b&path=c",
            "there is no parameter path; write",
        ),
        ("/api/v1/explain?agent=a&url=https://", "no host"),
        (
            "/api/v1/decide?agent=a&url=b&proof=all",
            "\"all\" is not assumed or none; write",
        ),
    ] {
        let detail = problem(&gate, path, 400).await;
        assert!(detail.contains(expected), "{path}: {detail}");
    }
    let json = |body: &str| {
        let ask = gate.ask_admin("POST", "/api/v1/decide");
        ask.header("Content-Type", "application/json; charset=utf-8")
            .body(body.as_bytes())
    };
    let many = json!({"requests": vec![json!({"agent": "a", "url": "http://a.example"}); 1001]}).to_string();
    for (body, status, expected) in [
        ("{}", 400, "requests is missing; send {\"requests\""),
        ("[", 400, "the content is not JSON (line 1, column 1); send"),
        (
            r#"{"requests": [{"agent": 1, "url": ""}]}"#,
            400,
            "a value of the wrong type ends at line 1, column 25; send",
        ),
        (&*many, 400, "at most 1000"),
        (&*"x".repeat(1024 * 1024 + 1), 413, "1 MiB"),
    ] {
        let response = json(body).await;
        assert_eq!(response.status, status, "{expected}");
        assert!(
            response.json()["detail"].as_str().unwrap().contains(expected),
            "{response:#?}"
        );
    }
    let form = gate.ask_admin("POST", "/api/v1/decide");
    let form = form
        .header("Content-Type", "text/plain")
        .body(b"{\"requests\":[]}")
        .await;
    assert_eq!(form.status, 415);
    let wrong = gate.ask_admin("PUT", "/api/v1/decide").await;
    assert_eq!((wrong.status, wrong.field("Allow")), (405, Some("GET,HEAD,POST")));
}

#[tokio::test]
async fn an_invalid_query_gets_an_error_that_shows_its_form() {
    let gate = Gate::start().await;
    let question = "write ?agent=BOT&url=URL, both percent-encoded";
    for (path, wrong, right) in [
        ("decide?agent=a", "url is missing", question),
        ("explain?agent=a&url=b&ua=c", "there is no parameter ua", question),
        (
            "refusals?after=x",
            "after is not a number",
            "write ?after=NUMBER&limit=NUMBER",
        ),
        (
            "origins?page=2",
            "there is no parameter page",
            "write ?search=TEXT&after=ORIGIN&limit=NUMBER",
        ),
        ("origins/detail", "origin is missing", "write ?origin=ORIGIN"),
        (
            "origins?sort=deny&after=http://a.example",
            "\"after\" does not go with",
            "for the next page, send \"offset\"",
        ),
        (
            "origins/versions?origin=http://a.example&from=1",
            "\"from\" needs \"to\"",
            "name both versions",
        ),
    ] {
        let expected = problem(&gate, &format!("/api/v1/{path}"), 400).await;
        assert!(
            expected.starts_with(wrong) && expected.contains(right) && !expected.contains('`'),
            "{expected}"
        );
    }
}

#[tokio::test]
async fn decide_shows_what_the_site_says_about_the_purposes() {
    let robots = "User-agent: *\nDisallow: /private\nContent-Signal: search=yes, ai-train=no\n\
                  Content-Usage: train-ai=n\n";
    let origin = Origin::start().robots(robots).spawn().await;
    let config = "[usage]\ncontent-usage = 'enforce'\n[[bot]]\nname = 'AcmeBot'\nuser-agents = ['AcmeBot']\n\
                  purposes = ['search']";
    let gate = Gate::with(config).await;
    let url = origin.url("/page");
    let allowed = json!({"purpose": "search", "vocabulary": "content-signal", "key": "search", "value": "yes",
        "line": 3, "policy": "report"});
    let reported = json!({"purpose": "ai-train", "vocabulary": "content-signal", "key": "ai-train", "value": "no",
        "line": 3, "policy": "report"});
    let enforced = json!({"purpose": "ai-train", "vocabulary": "content-usage", "key": "train-ai", "value": "n",
        "line": 4, "policy": "enforce"});
    let report = |purposes: Value, said: Value, refused: Value| json!({"purposes": purposes, "said": said, "refused": refused, "tdmrep": null, "tdmrep_sha256": null});
    let mut refused = enforced.clone();
    refused["why"] = json!("forbidden");
    let own_report = report(json!(["search"]), json!([allowed]), Value::Null);
    let train = report(json!(["ai-train"]), json!([reported, enforced]), refused.clone());
    let both = report(
        json!(["search", "ai-train"]),
        json!([allowed, reported, enforced]),
        refused,
    );
    for (agent, path, purpose, verdict, usage) in [
        ("AcmeBot", "/page", "", "allow", own_report),
        ("AcmeBot", "/page", "ai-train", "deny", train.clone()),
        ("AcmeBot", "/page", "ai-train,search", "deny", both),
        // A bot without a configuration has no purposes of its own.
        ("OtherBot", "/page", "ai-train", "deny", train),
        ("OtherBot", "/page", "", "allow", Value::Null),
        // For a path that a rule disallows, the answer contains nothing about the use of content.
        ("AcmeBot", "/private", "", "deny", Value::Null),
    ] {
        let url = origin.url(path);
        let query = match purpose {
            "" => String::new(),
            purpose => format!("&purpose={}", escaped(purpose)),
        };
        let decided = get(&gate, &(decide_path(agent, &url) + &query)).await;
        let explain = format!("/api/v1/explain?agent={agent}&url={}{query}", escaped(&url));
        let explained = get(&gate, &explain).await;
        let list: Vec<_> = purpose.split(',').collect();
        let mut request = json!({"agent": agent, "url": url});
        if !purpose.is_empty() {
            request["purpose"] = json!(list);
        }
        let batch = post(&gate, "/api/v1/decide", &json!({"requests": [request]})).await;
        for decided in [&decided, &explained["decision"], &batch["decisions"][0]] {
            assert_eq!(decided["verdict"], verdict, "{agent} {path} {purpose}");
            let mut shown = decided["usage"].clone();
            let sentences = shown.as_object_mut().and_then(|usage| usage.remove("sentences"));
            assert_eq!(shown, usage, "{agent} {path} {purpose}");
            let purposes = usage["said"].as_array().into_iter().flatten();
            let ends: Vec<_> = purposes.map(|said| said["purpose"].as_str().unwrap()).collect();
            let sentences = sentences.iter().flat_map(|sentences| sentences.as_array().unwrap());
            let sentences: Vec<_> = sentences.map(|sentence| sentence.as_str().unwrap()).collect();
            assert!(
                sentences.len() == ends.len()
                    && std::iter::zip(&sentences, ends).all(|(text, end)| text.ends_with(end)),
                "{sentences:?}"
            );
            let by_usage = decided["reason"] == "usage";
            assert_eq!(by_usage, !usage["refused"].is_null(), "{agent} {path} {purpose}");
        }
    }

    let wrong = "\"train\" is not a purpose; write one of search, ai-input, ai-train, tdm";
    for purpose in ["train", "search,train"] {
        let path = decide_path("AcmeBot", &url) + "&purpose=" + purpose;
        let detail = problem(&gate, &path, 400).await;
        assert!(detail.starts_with(wrong), "{detail}");
    }
    for purpose in [json!("train"), json!(["search", "train"])] {
        let questions = json!({"requests": [{"agent": "AcmeBot", "url": url, "purpose": purpose}]});
        let response = gate
            .ask_admin("POST", "/api/v1/decide")
            .header("Content-Type", "application/json")
            .body(questions.to_string().as_bytes())
            .await;
        let detail = response.json()["detail"].to_string();
        assert!(
            response.status == 400 && detail.contains("write one of search, ai-input"),
            "{detail}"
        );
    }
}
