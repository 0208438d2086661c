//! Writes the HTML page about a refusal or an error. The page contains no script and loads nothing, and all text from
//! outside is escaped. Pure functions, without I/O.

use std::fmt::Write as _;

use super::{Details, Refusal};
use crate::{
    text::plain_message,
    trust::{escaped, with_code},
};

pub(super) fn page(details: &Details<'_>) -> String {
    let mut out = String::with_capacity(4096);
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{}</title>{HEAD}\
         <p class=\"status\">robotgate <b>{}</b></p><h1>{}</h1><p>{}</p>",
        escaped(&title(details)),
        details.status,
        escaped(details.title),
        escaped(&sentence(details.summary)),
    );
    let facts = out.len();
    if let Some(refusal) = &details.refusal {
        let robots = refusal.robots;
        row(&mut out, "Site", robots.strip_suffix("/robots.txt"));
        row(&mut out, "Rule", refusal.rule);
        row(&mut out, "Line", refusal.line.map(|line| line.to_string()).as_deref());
        row(&mut out, "Group", refusal.group);
        row(&mut out, "Bot", refusal.bot);
        row(&mut out, "Limit", refusal.pace_cause);
        let purpose = refusal.usage.map(|refused| refused.purpose().as_str());
        row(&mut out, "Purpose", purpose);
        if refusal.rule.is_some() || details.retry_after.is_some() {
            let url = escaped(robots);
            let _ = write!(
                out,
                "<div><dt>robots.txt</dt><dd><a href=\"{url}\">{url}</a></dd></div>"
            );
        }
    }
    if let Some(seconds) = details.retry_after {
        row(&mut out, "Try again in", Some(&format!("{seconds} s")));
    }
    row(&mut out, "Decision", details.refusal.as_ref().map(Refusal::id));
    if out.len() > facts {
        out.insert_str(facts, "<dl>");
        out.push_str("</dl>");
    }
    if !details.todo.is_empty() {
        let _ = write!(out, "<h2>What to do</h2><p>{}</p>", with_code(details.todo));
    }
    let _ = writeln!(
        out,
        "<p class=\"about\"><a href=\"{}\">What this means</a>. This page comes from robotgate, the proxy that this \
         client uses, and not from the site.{}</p></main></html>",
        escaped(&details.r#type),
        if details.refusal.is_some() { IN_THE_LOG } else { "" },
    );
    out
}

fn title(details: &Details<'_>) -> String {
    let full_title = match details
        .refusal
        .as_ref()
        .and_then(|refusal| refusal.rule.zip(refusal.line))
    {
        Some((rule, line)) => format!("{}: {} (line {line})", details.title, plain_message(rule, MAX_RULE)),
        _ if details.cause.starts_with(details.title) => details.cause.to_owned(),
        _ => format!("{}: {}", details.title, details.cause),
    };
    plain_message(&full_title, MAX_TITLE).into_owned()
}

fn row(out: &mut String, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        let value = plain_message(value, usize::MAX);
        let _ = write!(
            out,
            "<div><dt>{name}</dt><dd><code>{}</code></dd></div>",
            escaped(&value)
        );
    }
}

fn sentence(text: &str) -> String {
    let text = plain_message(text, usize::MAX);
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_ascii_uppercase());
    let end = if text.ends_with(['.', '…']) { "" } else { "." };
    first.into_iter().chain(characters).chain(end.chars()).collect()
}

/// Allows the page nothing but its own style.
pub(super) const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
const IN_THE_LOG: &str = " The proxy's operator finds the decision in the audit log by its id.";
/// Maximum length of a rule in the title, in bytes. Leaves room for its line number.
const MAX_RULE: usize = 120;
const MAX_TITLE: usize = 240;
const HEAD: &str = "<meta name=\"viewport\" content=\"width=device-width\"><style>\
    :root{color-scheme:light dark;--ink:#1c2024;--soft:#5d6670;--line:#d8dde3;--back:#f5f7f9;--card:#fff;\
    --accent:#b3261e;--link:#0b57d0}\
    @media(prefers-color-scheme:dark){:root{--ink:#e4e7eb;--soft:#9aa4af;--line:#333a42;--back:#14171a;--card:#1d2125;\
    --accent:#f2b8b5;--link:#8ab4f8}}\
    body{margin:0;background:var(--back);color:var(--ink);font:16px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}\
    main{max-width:44rem;margin:8vh auto;padding:1.5rem 2rem;background:var(--card);border:1px solid var(--line);\
    border-top:4px solid var(--accent);border-radius:6px}\
    @media(max-width:48rem){main{margin:0;padding:1rem;border-width:4px 0 0;border-radius:0}}\
    .status{margin:0;color:var(--soft);font-size:.9rem}.status b{color:var(--accent);margin-left:.3rem}\
    h1{margin:.2rem 0 .6rem;font-size:1.6rem;line-height:1.25}h2{margin:1.6rem 0 .3rem;font-size:1.05rem}p{margin:.4rem 0}\
    dl{margin:1.2rem 0 0;border-top:1px solid var(--line)}\
    dl div{display:flex;flex-wrap:wrap;gap:0 1rem;padding:.45rem 0;border-bottom:1px solid var(--line)}\
    dt{flex:0 0 7rem;color:var(--soft)}dd{flex:1 1 14rem;margin:0}\
    code{font:.92em ui-monospace,monospace}a{color:var(--link)}\
    .about{margin-top:1.8rem;color:var(--soft);font-size:.85rem}</style><main>";
