//! The command and the proxy give the same answers.

use serde_json::Value;
use time::{Duration, OffsetDateTime, format_description::well_known::Rfc3339};

use super::{explain, text};
use crate::support::{Gate, Origin, Record, Reply};

#[tokio::test]
async fn the_proxy_and_the_explain_command_agree() {
    let origin = Origin::start().robots(RULES).anything("page").spawn().await;
    let gate = Gate::with(BOTS).await;
    for agent in [
        "ExampleBot/1.0",
        "Other",
        "Reporter",
        "Scanner",
        "Mozilla/5.0",
        "MJ12bot/1.4",
    ] {
        for path in [
            "/",
            "/private",
            "/private/ok",
            "/x/../private",
            "/%70rivate",
            "/private/index.html",
            "/private/dir/",
            "/~a",
            "/%7ea",
            "/robots.txt",
        ] {
            let url = origin.url(path);
            let explained = compare(&gate, agent, &url, &format!("{url}?{}", agent.len())).await;
            println!("{agent} {path}: {} {}", explained["verdict"], explained["reason"]);
        }
    }
}

#[tokio::test]
async fn the_proxy_and_explain_agree_on_the_meaning_of_an_answer() {
    for reply in [
        Reply::ok("text/html", RULES),
        Reply::gzip(RULES.as_bytes()),
        Reply::status(404),
        Reply::status(403).header("Cache-Control", "max-age=7200"),
        Reply::status(503).header("Retry-After", "120"),
        Reply::status(500).body("<h1>Page not found</h1>"),
        Reply::status(429),
        Reply::status(206).body(RULES),
        Reply::status(302),
        Reply::redirect("/robots.txt"),
        Reply::redirect("http://10.0.0.1/robots.txt"),
        Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nUser-agent: *"),
        Reply::raw("nonsense\r\n\r\n"),
    ] {
        let origin = Origin::start()
            .reply("/robots.txt", reply)
            .anything("page")
            .spawn()
            .await;
        let gate = Gate::start().await;
        let url = origin.url("/private");
        compare(&gate, "ExampleBot/1.0", &url, &url).await;
    }
}

#[tokio::test]
async fn explain_rejects_the_urls_that_the_proxy_rejects() {
    let origin = Origin::start().robots("").anything("page").spawn().await;
    let gate = Gate::start().await;
    let config = gate.file("robotgate.toml");
    for byte in (1..=0x7F)
        .map(char::from)
        .filter(|byte| *byte != '#' && !byte.is_ascii_alphanumeric())
    {
        for place in ["", "?"] {
            let url = origin.url(&format!("/{place}{byte}x"));
            let host = origin.url("");
            let host = host.trim_start_matches("http://").trim_end_matches('/');
            let sent = format!("GET {url} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: a\r\nConnection: close\r\n\r\n");
            let answer = gate.raw(sent).await;
            let taken = !answer.starts_with(b"HTTP/1.1 400");
            let output = explain(&["--config", text(&config), "--agent", "a", &url]).await;
            assert_eq!(output.errors.is_empty(), taken, "{url:?}: {}", output.errors);
        }
    }
}

/// Requests `fetched` from the proxy, or `url` if that is a robots.txt, and asks the command about the same URL.
/// Compares the decisions, and returns the JSON of the command.
async fn compare(gate: &Gate, agent: &str, url: &str, fetched: &str) -> Value {
    // `fetched` can have a query by which its record is found. `/robots.txt` with a query would be a different path.
    let fetched = if url.ends_with("/robots.txt") { url } else { fetched };
    gate.get(fetched).user_agent(agent).await;
    let records = gate.audit();
    let about =
        |record: &&Record| record["event"] == "decision" && record["url"] == fetched && record["user_agent"] == agent;
    let decided = records.iter().find(about).expect("the proxy has decided");

    let config = gate.file("robotgate.toml");
    let output = explain(&["--config", text(&config), "--json", "--agent", agent, fetched]).await;
    let explained = output.json();
    for field in ["verdict", "reason", "enforcement", "agent", "profile"] {
        assert_eq!(explained[field], decided[field], "{field}\n{explained:#}\n{decided:#}");
    }
    assert_eq!(explained["rule"]["text"], decided["rule"], "{explained:#}\n{decided:#}");
    assert_eq!(explained["rule"]["line"], decided["line"], "{explained:#}\n{decided:#}");
    assert_eq!(explained["robots"]["url"], decided["robots_url"]);
    assert_eq!(
        explained["robots"]["sha256"], decided["robots_sha256"],
        "{explained:#}\n{decided:#}"
    );
    let robots = &explained["robots"];
    assert_eq!(robots["status"], decided["robots_status"], "{explained:#}\n{decided:#}");
    let life = life(&robots["fetched"], &robots["expires"]);
    let decided_life = self::life(&decided["robots_fetched"], &decided["robots_expires"]);
    // The proxy makes the pause after a failure up to a tenth longer, at random.
    let longest = life.map(|life| match decided["robots_error"].is_null() {
        true => life,
        false => life * 11 / 10,
    });
    assert!(
        (life..=longest).contains(&decided_life),
        "{life:?} {decided_life:?}\n{explained:#}\n{decided:#}"
    );
    assert_eq!(output.code, Some(i32::from(decided["verdict"] != "allow")));
    if decided["robots_error"] != Value::Null {
        assert_eq!(explained["robots"]["error"], decided["robots_error"]);
    }
    explained
}

fn life(fetched: &Value, expires: &Value) -> Option<Duration> {
    let time = |value: &Value| OffsetDateTime::parse(value.as_str()?, &Rfc3339).ok();
    Some(time(expires)? - time(fetched)?)
}

const RULES: &str = "\
User-agent: *
Disallow: /private
Allow: /private/ok
Allow: /private/dir/index.html
Disallow: /%7Ea

User-agent: MJ12bot
Disallow: /
";

const BOTS: &str = r#"
[[bot]]
name = "Reporter"
user-agents = ["Reporter"]
robots-agents = ["Reporter"]
enforcement = "report"

[[bot]]
name = "Scanner"
user-agents = ["Scanner"]
robots-agents = ["Scanner"]
enforcement = "exempt"
"#;
