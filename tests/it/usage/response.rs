//! What the fields of a response say about use. They can withdraw what the robots.txt allows, and never allow more.

mod forms;
mod traces;

use serde_json::{Value, json};

use crate::{
    intercept,
    support::{Alpn, Ask, Connection, End, Field, Gate, Origin, Reply, Request, Response, allowed, refused},
};

const PAGE: &str = "our text";

const BOTS: &str = r#"
    [[bot]]
    name = "Trainer"
    user-agents = ["Trainer", "TestBot"]
    robots-agents = ["AcmeBot"]
    purposes = ["ai-train", "tdm"]

    [[bot]]
    name = "Finder"
    user-agents = ["Finder"]
    purposes = ["search"]

    [[bot]]
    name = "Watched"
    user-agents = ["Watched"]
    purposes = ["ai-train"]
    enforcement = "report"

    [[bot]]
    name = "Scanner"
    user-agents = ["Scanner"]
    purposes = ["ai-train"]
    enforcement = "exempt"

    [[bot]]
    name = "Plain"
    user-agents = ["Plain"]
"#;

/// How a request gets to its origin: the protocol in the CONNECT, or `None` for an http URL, and the protocols that the
/// origin speaks.
type Way = (Option<Alpn>, &'static [&'static str]);

const WAYS: [Way; 5] = [
    (None, &[]),
    (Some(Alpn::Http1), &["http/1.1"]),
    (Some(Alpn::Http2), &["http/1.1"]),
    (Some(Alpn::Http1), &["h2"]),
    (Some(Alpn::Http2), &["h2"]),
];

/// The name and the value of a response field, the bot that gets the response, and what the field says: the vocabulary,
/// the key, the value and the purpose.
type Case = (&'static str, &'static str, &'static str, [&'static str; 4]);

const FORBIDDING: [Case; 10] = [
    (
        "Content-Usage",
        "train-ai=n",
        "Trainer",
        ["content-usage", "train-ai", "n", "ai-train"],
    ),
    (
        "content-usage",
        "search=y, train-ai=n",
        "Trainer",
        ["content-usage", "train-ai", "n", "ai-train"],
    ),
    (
        "Content-Usage",
        "search=n",
        "Finder",
        ["content-usage", "search", "n", "search"],
    ),
    (
        "TDM-Reservation",
        "1",
        "Trainer",
        ["tdmrep", "tdm-reservation", "1", "tdm"],
    ),
    (
        "X-Robots-Tag",
        "noindex, noai",
        "Trainer",
        ["x-robots-tag", "noai", "noai", "ai-train"],
    ),
    (
        "X-Robots-Tag",
        "NoImageAI",
        "Trainer",
        ["x-robots-tag", "noimageai", "noimageai", "ai-train"],
    ),
    (
        "X-Robots-Tag",
        "acmebot: noai",
        "Trainer",
        ["x-robots-tag", "noai", "noai", "ai-train"],
    ),
    (
        "X-Robots-Tag",
        "trainer: noai",
        "Trainer",
        ["x-robots-tag", "noai", "noai", "ai-train"],
    ),
    (
        "X-Robots-Tag",
        "OtherBot: none, AcmeBot: noai",
        "Trainer",
        ["x-robots-tag", "noai", "noai", "ai-train"],
    ),
    (
        "X-Robots-Tag",
        "*: noai",
        "Trainer",
        ["x-robots-tag", "noai", "noai", "ai-train"],
    ),
];

const HARMLESS: [(&str, &str, &str); 9] = [
    ("Content-Usage", "train-ai=y", "Trainer"),
    ("Content-Usage", "search=n", "Trainer"),
    ("Content-Usage", "train-ai=n,", "Trainer"),
    ("Content-Usage", "train-ai=n", "Finder"),
    ("TDM-Reservation", "0", "Trainer"),
    ("TDM-Reservation", "1", "Finder"),
    ("X-Robots-Tag", "noindex", "Trainer"),
    ("X-Robots-Tag", "OtherBot: noai", "Trainer"),
    ("X-Robots-Tag", "noai", "Finder"),
];

fn config(policy: &str) -> String {
    format!("[usage]\ncontent-usage = '{policy}'\ntdmrep = '{policy}'\nx-robots-tag = '{policy}'\n{BOTS}")
}

async fn origin(protocols: &[&str]) -> Origin {
    let origin = Origin::start().otherwise(answer);
    match protocols {
        [] => origin.spawn().await,
        _ => origin.alpn(protocols).spawn().await,
    }
}

fn is_page(request: &Request) -> bool {
    request.path() != "/robots.txt" && !request.path().starts_with("/.well-known/")
}

fn answer(request: &Request) -> Reply {
    if !is_page(request) {
        return Reply::status(404);
    }
    let status = request.field("X-Status").map_or(200, |status| status.parse().unwrap());
    let reply = Reply::status(status).header("Robots-Decision", "allow; reason=forged");
    let (name, value) = request
        .field("X-Reply")
        .and_then(|field| field.split_once(": "))
        .unwrap();
    reply.header(name, value).body(PAGE)
}

async fn open(gate: &Gate, origin: &Origin, way: Way) -> Connection {
    match way.0 {
        None => gate.dial().await,
        Some(alpn) => intercept::open(gate, &origin.authority(), alpn).await,
    }
}

fn ask<'c>(
    connection: &'c mut Connection,
    (method, path): (&str, &str),
    origin: &Origin,
    way: Way,
    (name, value, bot): (&str, &str, &str),
) -> Ask<'c> {
    let target = way.0.map_or_else(|| origin.url(path), |_| path.to_owned());
    let reply = format!("{name}: {value}");
    connection
        .ask(method, &target)
        .user_agent(bot)
        .header("X-Reply", &reply)
}

fn parameters(decision: &Field) -> [String; 4] {
    ["vocabulary", "key", "value", "purpose"].map(|name| decision.param(name).unwrap_or_default())
}

async fn records(gate: &Gate, url: &str) -> Vec<Value> {
    let decision = gate.decision_for(url).await;
    gate.completion_of(&decision).await;
    let mut records = gate.audit();
    records.retain(|record| record["id"] == decision["id"]);
    records
}

fn events(records: &[Value]) -> Vec<&str> {
    records.iter().map(|record| record["event"].as_str().unwrap()).collect()
}

async fn withdrawn(gate: &Gate, url: &str, response: &Response, [vocabulary, key, value, purpose]: [&str; 4]) {
    let decision = refused(response, "usage");
    assert_eq!(
        parameters(&decision),
        [vocabulary, key, value, purpose],
        "{response:#?}"
    );
    let field = decision.param("field").unwrap();
    assert!(!response.text().contains(PAGE), "{response:#?}");
    let [decided, withdrawn, completed] = &records(gate, url).await[..] else {
        panic!("three records of {url}: {:#?}", records(gate, url).await);
    };
    let events = [decided, withdrawn, completed].map(|record| record["event"].as_str().unwrap());
    assert_eq!(events, ["decision", "withdrawn", "completion"]);
    assert_eq!(
        (&decided["verdict"], &decided["forwarded"]),
        (&json!("allow"), &json!(true))
    );
    assert_eq!(withdrawn["id"], decision.param("id").unwrap());
    let expected = json!({
        "event": "withdrawn", "time": withdrawn["time"], "id": decided["id"], "instance": decided["instance"],
        "bot": decided["bot"], "url": url, "purpose": purpose, "vocabulary": vocabulary, "key": key, "value": value,
        "field": field, "status": withdrawn["status"],
    });
    assert_eq!(*withdrawn, expected);
    assert_eq!((&completed["status"], &completed["error"]), (&json!(403), &Value::Null));
    let said = completed["usage"].as_array().unwrap();
    let mut deciding = json!({
        "purpose": purpose, "vocabulary": vocabulary, "key": key, "value": value, "field": field, "policy": "enforce",
    });
    assert!(said.contains(&deciding), "{completed:#?}");
    deciding["why"] = json!("forbidden");
    let recent = gate.admin("/api/v1/refusals").await.json();
    let recent = recent["refusals"].as_array().unwrap().iter();
    let shown: Vec<_> = recent.filter(|record| record["id"] == decided["id"]).collect();
    let [shown] = &shown[..] else {
        panic!("one recent refusal: {shown:#?}")
    };
    assert_eq!(
        [&shown["url"], &shown["verdict"], &shown["reason"], &shown["forwarded"]],
        [&json!(url), &json!("deny"), &json!("usage"), &json!(false)]
    );
    assert_eq!(shown["usage"]["refused"], deciding);
}

#[tokio::test]
async fn a_response_that_forbids_an_enforced_purpose_is_withdrawn() {
    let gate = Gate::with(&config("enforce")).await;
    for way in WAYS {
        let origin = origin(way.1).await;
        let mut connection = open(&gate, &origin, way).await;
        for (number, (name, value, bot, says)) in FORBIDDING.into_iter().enumerate() {
            println!("{way:?}: {name}: {value}");
            let path = format!("/{number}");
            let response = ask(&mut connection, ("GET", &path), &origin, way, (name, value, bot)).await;
            withdrawn(&gate, &origin.url(&path), &response, says).await;
            let problem = response.json();
            assert_eq!(
                (&problem["reason"], &problem["usage"]["value"]),
                (&json!("usage"), &json!(says[2]))
            );
        }
        if way.1 != ["h2"] {
            let mut requests = origin.requests();
            requests.retain(is_page);
            let mut numbers: Vec<_> = requests.iter().map(|request| request.connection).collect();
            numbers.dedup();
            assert_eq!(numbers.len(), FORBIDDING.len(), "{way:?}: a connection was used again");
        }
    }
}

#[tokio::test]
async fn every_method_and_status_can_be_withdrawn() {
    let gate = Gate::with(&config("enforce")).await;
    let (name, value, bot, says) = FORBIDDING[0];
    for way in WAYS {
        let origin = origin(way.1).await;
        let mut connection = open(&gate, &origin, way).await;
        for method in ["GET", "HEAD", "POST", "OPTIONS"] {
            for status in [200, 204, 206, 301, 304, 404, 503] {
                println!("{way:?}: {method} {status}");
                let path = format!("/{method}/{status}");
                let asked = ask(&mut connection, (method, &path), &origin, way, (name, value, bot));
                let asked = asked.header("X-Status", &status.to_string());
                let response = match method {
                    "POST" => asked.body(b"question").await,
                    _ => asked.await,
                };
                withdrawn(&gate, &origin.url(&path), &response, says).await;
                let records = records(&gate, &origin.url(&path)).await;
                assert_eq!(records[1]["status"], status, "the status of the origin");
                assert_eq!(response.body.is_empty(), method == "HEAD", "{response:#?}");
            }
        }
    }
}

#[tokio::test]
async fn a_reported_purpose_is_in_the_header_and_in_the_log() {
    let reporting = Gate::with(&config("report")).await;
    let enforcing = Gate::with(&config("enforce")).await;
    for (gate, policy, bot) in [(&reporting, "report", "Trainer"), (&enforcing, "enforce", "Watched")] {
        for way in WAYS {
            let origin = origin(way.1).await;
            let mut connection = open(gate, &origin, way).await;
            for (number, (name, value, of, says)) in FORBIDDING.into_iter().enumerate() {
                if bot == "Watched"
                    && (of == "Finder"
                        || says[3] == "tdm"
                        || value.to_lowercase().contains("bot:")
                        || value.starts_with("trainer"))
                {
                    continue;
                }
                let bot = if bot == "Watched" { bot } else { of };
                println!("{way:?}: {bot}: {name}: {value}");
                let path = format!("/{number}");
                let response = ask(&mut connection, ("GET", &path), &origin, way, (name, value, bot)).await;
                let decision = allowed(&response, "no-robots");
                assert_eq!(parameters(&decision), says.map(str::to_owned), "{response:#?}");
                assert_eq!(
                    (response.text(), response.end),
                    (PAGE.to_owned(), End::Length),
                    "{response:#?}"
                );
                let records = records(gate, &origin.url(&path)).await;
                assert_eq!(events(&records), ["decision", "completion"]);
                let said = records[1]["usage"].as_array().unwrap();
                let [vocabulary, key, value, purpose] = says;
                let deciding = json!({
                    "purpose": purpose, "vocabulary": vocabulary, "key": key, "value": value,
                    "field": name.to_lowercase(), "policy": policy,
                });
                assert!(said.contains(&deciding), "{said:#?}");
            }
        }
        let line =
            format!(r#"robotgate_usage_total{{vocabulary="x-robots-tag",purpose="ai-train",policy="{policy}"}}"#);
        let metrics = gate.admin("/metrics").await.text();
        assert!(metrics.contains(&line), "{metrics}");
    }
}

#[tokio::test]
async fn a_response_that_forbids_nothing_is_passed_on() {
    let gate = Gate::with(&config("enforce")).await;
    let off = Gate::with(&config("off")).await;
    let of_others = FORBIDDING.into_iter().flat_map(|(name, value, ..)| {
        let bots = ["Plain", "Scanner", "Unknown"];
        bots.map(|bot| (&gate, (name, value, bot)))
    });
    let when_off = FORBIDDING
        .into_iter()
        .map(|(name, value, bot, _)| (&off, (name, value, bot)));
    let harmless = HARMLESS.into_iter().map(|case| (&gate, case));
    let cases: Vec<_> = harmless.chain(of_others).chain(when_off).collect();
    for way in WAYS {
        let origin = origin(way.1).await;
        for (number, (gate, case)) in cases.iter().enumerate() {
            println!("{way:?}: {case:?}");
            let path = format!("/{number}");
            let mut connection = open(gate, &origin, way).await;
            let response = ask(&mut connection, ("GET", &path), &origin, way, *case).await;
            assert_eq!(
                (response.status, response.text()),
                (200, PAGE.to_owned()),
                "{response:#?}"
            );
            let decision = response.decision();
            assert_eq!(decision.value(), "allow", "{response:#?}");
            assert_eq!(decision.param("purpose"), None, "{response:#?}");
            let records = records(gate, &origin.url(&path)).await;
            assert_eq!(events(&records), ["decision", "completion"]);
            let says_yes = case.1.ends_with("=y") || case.1 == "0";
            assert_eq!(records[1]["usage"].is_array(), says_yes, "{records:#?}");
        }
    }
}
