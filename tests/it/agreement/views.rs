//! What each answer says, under the names that the audit log gives to its fields. So fields of two answers can be
//! compared if they have the same name.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::Response;

/// The fields of an answer, by the names of the audit log.
pub type View = BTreeMap<&'static str, Value>;

/// Returns the view of a decision: its record in the audit log, or an object in a response of `decide` or `explain`.
pub fn decision(object: &Value) -> View {
    let mut view = common(object);
    let agent = if object["event"] == "decision" {
        "user_agent"
    } else {
        "agent"
    };
    view.insert("user_agent", text_or_null(&object[agent]));
    if object["event"] == "decision" {
        view.insert("agent", object["agent"].clone());
    }
    // The URL of a CONNECT has no path.
    if object["method"] == "CONNECT" {
        view.remove("url");
    }
    view
}

/// Returns the view of a report of `explain`.
pub fn report(object: &Value) -> View {
    let mut view = common(object);
    let (rule, group, robots) = (&object["rule"], &object["group"], &object["robots"]);
    let mut agents = group["agents"].as_array().into_iter().flatten();
    let first = agents.find(|agent| agent["line"] == group["line"]);
    view.extend([
        ("user_agent", text_or_null(&object["user_agent"])),
        ("agent", object["agent"].clone()),
        ("rule", rule["text"].clone()),
        ("line", rule["line"].clone()),
        ("group", first.map_or(Value::Null, |agent| agent["agent"].clone())),
        ("robots_url", robots["url"].clone()),
        ("robots_status", robots["status"].clone()),
        ("robots_sha256", robots["sha256"].clone()),
        ("robots_fetched", robots["fetched"].clone()),
        ("robots_expires", robots["expires"].clone()),
        ("robots_error", robots["error"].clone()),
    ]);
    view
}

/// Returns the view of what the API says about the origin of a decision. `reason` is that of the decision.
pub fn origin(detail: &Value, reason: &Value) -> View {
    let mut view = View::from([
        ("holds", detail["holds"].clone()),
        ("robots_url", detail["robots_url"].clone()),
        ("robots_status", detail["status"].clone()),
        ("robots_fetched", detail["fetched"].clone()),
        ("robots_expires", detail["expires"].clone()),
        ("robots_error", detail["error"].clone()),
        ("profile", detail["profile"].clone()),
    ]);
    // In other states, `sha256` is the digest of an old copy, on which the decision is not based.
    if detail["holds"] == "rules" || detail["holds"] == "last-copy" {
        view.insert("robots_sha256", detail["sha256"].clone());
    }
    // With the reason `pace`, `robots_error` can be about the Crawl-delay instead of the fetch.
    if reason == "pace" {
        view.remove("robots_error");
    }
    view
}

/// Returns the view of the field `Robots-Decision` of a response.
pub fn header(response: &Response) -> View {
    let field = response.decision();
    let param = |name: &str| json!(field.param(name));
    let mut view = View::from([
        ("verdict", json!(field.value())),
        ("reason", param("reason")),
        ("rule", param("rule")),
        ("pace_cause", param("cause")),
        ("robots_url", param("robots")),
        ("id", param("id")),
    ]);
    if field.param("rule").is_some() {
        view.insert("group", param("group"));
    }
    if field.value() != "allow" {
        view.insert("bot", param("bot"));
        if field.param("rule").is_some() {
            view.insert("read_as", param("read-as"));
        }
    }
    if field.param("enforcement").is_some() {
        view.insert("enforcement", param("enforcement"));
    }
    let line = field.param("line").map(|line| line.parse::<u32>().unwrap());
    match field.param("vocabulary") {
        None => drop(view.insert("line", json!(line))),
        Some(_) => drop(view.insert("use", json!(USE.map(|name| field.param(name))))),
    }
    view
}

/// Returns the view of the body of a refusal.
pub fn problem(response: &Response) -> View {
    let body = response.json();
    let instance = body["instance"].as_str().unwrap_or_default();
    let mut view = View::from([
        ("reason", body["reason"].clone()),
        ("rule", body["rule"].clone()),
        ("line", body["line"].clone()),
        ("bot", body["bot"].clone()),
        ("pace_cause", body["cause"].clone()),
        ("robots_url", body["robots"].clone()),
        ("id", json!(instance.trim_start_matches("urn:uuid:"))),
    ]);
    if !body["rule"].is_null() {
        view.insert("group", body["group"].clone());
    }
    if !body["usage"].is_null() {
        view.insert("use", use_of(&body["usage"]));
    }
    view
}

/// Returns the names of the fields that differ between two of the views, and what these views say.
pub fn differences(views: &[(&str, View)]) -> Vec<String> {
    let mut found = Vec::new();
    let mut said: BTreeMap<&str, (&str, &Value)> = BTreeMap::new();
    for (whom, view) in views {
        for (name, value) in view {
            let (first, expected) = *said.entry(name).or_insert((whom, value));
            if value != expected {
                found.push(format!("{name}: {whom} says {value}, and {first} {expected}"));
            }
        }
    }
    found
}

/// Returns the view of the fields that have the same name and form in the log, in `decide` and in reports.
fn common(object: &Value) -> View {
    let present = COMMON
        .iter()
        .filter_map(|name| Some((*name, object.get(name)?.clone())));
    let mut view: View = present.collect();
    // The log leaves out the user in a URL, and the other answers repeat the URL as it was given.
    if object["url"].as_str().is_some_and(|url| url.contains('@')) {
        view.remove("url");
    }
    // Only the API has this member. It repeats the other members as sentences.
    if let Some(usage) = view.get_mut("usage").and_then(Value::as_object_mut) {
        usage.remove("sentences");
    }
    let refused = &object["usage"]["refused"];
    if !refused["vocabulary"].is_null() {
        view.insert("use", use_of(refused));
    }
    view
}

fn use_of(refused: &Value) -> Value {
    json!(USE.map(|name| &refused[name]))
}

/// Returns `null` for an empty text: for a request without a User-Agent, the log has `null` and a report an empty text.
fn text_or_null(text: &Value) -> Value {
    match text.as_str() {
        Some("") | None => Value::Null,
        Some(text) => json!(text),
    }
}

/// The members that say why a use is refused.
const USE: [&str; 4] = ["vocabulary", "purpose", "key", "value"];
const COMMON: [&str; 25] = [
    "id",
    "verdict",
    "reason",
    "enforcement",
    "forwarded",
    "url",
    "bot",
    "rule",
    "line",
    "group",
    "reading",
    "read_as",
    "robots_url",
    "robots_status",
    "robots_sha256",
    "robots_fetched",
    "robots_expires",
    "robots_error",
    "profile",
    "usage",
    "pace_cause",
    "sentence",
    "needs_proof",
    "unidentified",
    "tdmrep_asked",
];
