mod accept;
mod hostile;
mod page;
mod problem;
mod refusal;
mod wire;

use sfv::{BareItem, Item, List, ListEntry, Parser};

use super::{
    accept::{Body, thousandths},
    *,
};
use http::header;

use crate::{bot::Enforcement, decision::Verdict};
use crate::{origin::TargetError, proxy::head::HeadError, upstream::Fault};

/// A structured field that is one item: its value and its parameters.
type Field = (String, Vec<(String, String)>);

fn plain(item: &BareItem) -> String {
    match item {
        BareItem::Token(token) => token.as_str().to_owned(),
        BareItem::String(string) => format!("\"{}\"", string.as_str()),
        BareItem::Integer(number) => i64::from(*number).to_string(),
        other => panic!("robotgate sends none of these: {other:?}"),
    }
}

fn field(item: Item) -> Field {
    let params = item
        .params
        .iter()
        .map(|(key, value)| (key.as_str().to_owned(), plain(value)));
    (plain(&item.bare_item), params.collect())
}

fn item(value: &str) -> Field {
    let item = Parser::new(value).parse::<Item>();
    field(item.unwrap_or_else(|error| panic!("{error}: {value:?}")))
}

fn only_member(value: &str) -> Field {
    let list = Parser::new(value).parse::<List>();
    let mut list = list.unwrap_or_else(|error| panic!("{error}: {value:?}"));
    assert_eq!(list.len(), 1, "{value:?}");
    match list.pop() {
        Some(ListEntry::Item(item)) => field(item),
        other => panic!("no item: {other:?}"),
    }
}

fn expected(value: &str, params: &[(&str, &str)]) -> Field {
    let params = params
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    (value.to_owned(), params.collect())
}

fn header<'a>(answer: &'a OwnResponse, name: &str) -> &'a str {
    let mut values = answer.head.headers.get_all(name).iter();
    let value = values.next().unwrap_or_else(|| panic!("it has no {name}"));
    assert_eq!(values.next(), None, "{name} stands there once");
    value.to_str().expect("printable ASCII")
}

fn has(answer: &OwnResponse, name: &str) -> bool {
    answer.head.headers.contains_key(name)
}

fn json(answer: &OwnResponse) -> serde_json::Value {
    assert_eq!(header(answer, "content-type"), "application/problem+json");
    serde_json::from_slice(&answer.body).expect("JSON")
}

fn html(answer: &OwnResponse) -> &str {
    assert_eq!(header(answer, "content-type"), "text/html; charset=utf-8");
    std::str::from_utf8(&answer.body).expect("UTF-8")
}

fn text(answer: &OwnResponse) -> &str {
    assert_eq!(header(answer, "content-type"), "text/plain; charset=utf-8");
    std::str::from_utf8(&answer.body).expect("UTF-8")
}

fn accepting(values: &[&str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for value in values {
        headers.append(header::ACCEPT, value.parse().expect("a field value"));
    }
    headers
}

fn decided(verdict: Verdict, reason: Reason) -> DecisionTexts<'static> {
    DecisionTexts {
        verdict,
        reason,
        sentence: reason.sentence(),
        enforcement: Enforcement::Enforce,
        forwarded: false,
        bot: Some("AcmeBot".into()),
        agent: None,
        rule: None,
        line: None,
        group: None,
        read_as: None,
        robots_url: "https://a.example/robots.txt".to_owned(),
        robots_error: None,
        id: ID,
        challenge: false,
        proofs: None,
        retry_after: None,
        not_before: None,
        pace_cause: None,
        usage: None,
    }
}

fn by_rule<'a>(texts: &DecisionTexts<'a>, rule: &'a str) -> DecisionTexts<'a> {
    DecisionTexts {
        rule: Some(rule.into()),
        line: Some(3),
        group: Some("*".into()),
        ..texts.clone()
    }
}

const ID: &str = "0192f0c1-2345-7abc-8def-0123456789ab";
