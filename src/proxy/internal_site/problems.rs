//! The page `http://robotgate.internal/problems`, which explains the reasons of decisions and most errors. Refusals and
//! errors link to it in their `type` member (RFC 9457 §3.1.1).

use std::fmt::Write as _;

use crate::{
    decision::Reason,
    proxy::respond::explained,
    trust::{Document, Form, with_code},
    upstream::ProxyError,
};

pub(super) fn page(form: Form) -> Document {
    match form {
        Form::Text => Document {
            content_type: "text/plain; charset=utf-8",
            body: text().into_bytes(),
        },
        Form::Html => Document {
            content_type: "text/html; charset=utf-8",
            body: html().into_bytes(),
        },
    }
}

/// Returns the name of each reason, what it means, and what to do about it. The name is also the fragment in a
/// refusal's `type`.
fn decisions() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let reasons = Reason::ALL.into_iter();
    reasons.map(|reason| (reason.as_str(), reason.sentence(), reason.what_to_do()))
}

fn errors() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let errors = ProxyError::ALL.into_iter();
    errors.filter_map(|error| explained(error).map(|(meaning, todo)| (error.as_str(), meaning, todo)))
}

fn text() -> String {
    let mut out = format!("{TITLE}\n\n{INTRODUCTION}\n");
    for (title, list) in sections() {
        let _ = write!(out, "\n=== {title}\n");
        for (name, meaning, todo) in list {
            let _ = write!(out, "\n{name}\n  {meaning}\n");
            if !todo.is_empty() {
                let _ = writeln!(out, "  {todo}");
            }
        }
    }
    out
}

fn html() -> String {
    let mut out = format!("{HEAD}<h1>{TITLE}</h1><p>{INTRODUCTION}</p>");
    for (title, list) in sections() {
        let _ = write!(out, "<h2>{title}</h2><dl>");
        for (name, meaning, todo) in list {
            let _ = write!(
                out,
                "<dt id=\"{name}\"><code>{name}</code></dt><dd>{} {}</dd>",
                with_code(meaning),
                with_code(todo)
            );
        }
        out.push_str("</dl>");
    }
    out.push_str("</main></html>\n");
    out
}

type Kinds = Vec<(&'static str, &'static str, &'static str)>;

fn sections() -> [(&'static str, Kinds); 2] {
    [
        ("Decisions", decisions().collect()),
        ("Errors on the way", errors().collect()),
    ]
}

const TITLE: &str = "Why robotgate refuses, and what goes wrong";
const INTRODUCTION: &str = "If robotgate refuses a request or cannot serve it, the type in its response ends in one of \
                            these names. A refusal also has the name in Robots-Decision, as the reason; an error has \
                            it in Proxy-Status.";
const HEAD: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>robotgate: problems</title>\
    <meta name=\"viewport\" content=\"width=device-width\"><style>:root{color-scheme:light dark}\
    body{font:16px/1.5 system-ui,sans-serif;margin:0}main{max-width:50rem;margin:auto;padding:1rem}\
    dt{margin-top:1rem;font-weight:600}dd{margin:0}:target{outline:2px solid}</style><main>";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_problem_has_an_anchor_and_a_meaning() {
        let body = html();
        for reason in Reason::ALL {
            let anchor = format!("<dt id=\"{}\">", reason.as_str());
            assert_eq!(body.matches(&anchor).count(), 1, "{reason:?}");
        }
        for (name, meaning, _) in errors() {
            assert_eq!(body.matches(&format!("<dt id=\"{name}\">")).count(), 1, "{name}");
            assert!(meaning.ends_with('.'), "{meaning}");
        }
        assert!(
            body.contains("<dt id=\"http_request_denied\">"),
            "an exceeded limit links to it"
        );
        assert!(
            body.contains("<code>robotgate explain --config FILE --agent BOT URL</code>"),
            "{body}"
        );
        assert!(
            body.contains("the operator ends the wait with <code>robotgate cache forget --config FILE ORIGIN</code>"),
            "{body}"
        );
        assert!(!body.contains('`'), "{body}");
        let text = text();
        assert!(
            text.contains("\nrule\n  A rule of the site's robots.txt disallows this URL.\n"),
            "{text}"
        );
    }
}
