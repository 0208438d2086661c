//! What is at `http://robotgate.internal/problems`, where the `type` of each refusal and error points (RFC 9457 §3.1.1):
//! what it means, and what who meets it can do. Pure.

use std::fmt::Write as _;

use crate::{
    decision::Reason,
    trust::{Document, Form, with_code},
    upstream::ProxyError,
};

/// The document, which a fragment of its address points into.
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

/// Each kind by its name in `type`: what it means, and what to do about it.
fn decisions() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let reasons = Reason::ALL.into_iter();
    reasons.map(|reason| (reason.as_str(), reason.sentence(), what_to_do(reason)))
}

fn errors() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let told = ProxyError::ALL.into_iter();
    told.filter_map(|error| explained(error).map(|(meaning, todo)| (error.as_str(), meaning, todo)))
}

fn text() -> String {
    let mut out = format!("{TITLE}\n\n{INTRODUCTION}\n");
    for (title, list) in sections() {
        let _ = write!(out, "\n=== {title}\n");
        for (name, meaning, todo) in list {
            // Writing to a string cannot fail.
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

/// What a person can do about a refusal; empty where nothing is refused for this reason.
pub(in crate::proxy) fn what_to_do(reason: Reason) -> &'static str {
    match reason {
        Reason::Rule => {
            "If you need the page all the same, ask the site's owner. `robotgate explain --agent BOT URL` shows the rule \
             among the others."
        }
        Reason::Unreachable => {
            "Come back later; robotgate tries again by itself. The operator sets in [robots.unreachable] how long a site \
             that fails is refused."
        }
        Reason::Unverifiable => {
            "Use a client that trusts this proxy's certificate (see /), so that each path can be checked; the operator \
             settles the rest by https.unverifiable."
        }
        Reason::Unidentified => "A browser's User-Agent alone names no bot.",
        Reason::Identity | Reason::Unauthenticated => {
            "Credentials go into the proxy's address: http://NAME:SECRET@HOST:PORT. The operator makes them by \
             `robotgate credential add NAME`."
        }
        Reason::ConnectRefused => "https:// in absolute form, without a CONNECT, is served.",
        Reason::Egress => "The operator opens addresses by egress.allow and ports by egress.ports.",
        Reason::TooComplex => "Ask for a shorter URL. Where the site has no such page, it may mean to keep bots busy.",
        Reason::LastCopy => {
            "A newer robots.txt decides as soon as the site gives one. The operator sets in [robots.unreachable] what \
             holds until then."
        }
        Reason::NoRule
        | Reason::RobotsFile
        | Reason::NoRobots
        | Reason::Soft404
        | Reason::UnreachableTooLong
        | Reason::Exempt => "",
    }
}

/// What a person can do about an error; empty where that is nothing.
pub(in crate::proxy) fn what_to_do_about(error: ProxyError) -> &'static str {
    explained(error).map_or("", |(_, todo)| todo)
}

/// What an error means, and what to do about it; `None` for those that no client is told of.
fn explained(error: ProxyError) -> Option<(&'static str, &'static str)> {
    Some(match error {
        ProxyError::DnsTimeout => ("No name server answered in time.", "The operator looks at egress.dns."),
        ProxyError::DnsError => (
            "The host has no address, or its name is wrong.",
            "Look at the URL's spelling.",
        ),
        ProxyError::DestinationIpProhibited => (
            "The host's address is one that bots may not reach, such as one of the company's own network.",
            "The operator opens it by egress.allow.",
        ),
        ProxyError::DestinationIpUnroutable => ("There is no route to the site's address.", ""),
        ProxyError::ConnectionRefused => ("The site takes no connection at this port.", ""),
        ProxyError::ConnectionTerminated => ("The site closed the connection before it answered.", "Try again."),
        ProxyError::ConnectionTimeout => ("The site could not be connected to in time.", "Try again later."),
        ProxyError::ConnectionReadTimeout => (
            "The site was silent for too long.",
            "For slow answers the operator raises proxy.read-timeout.",
        ),
        ProxyError::ConnectionWriteTimeout => ("The site did not take the request in time.", ""),
        ProxyError::TlsProtocolError => ("The TLS handshake with the site failed.", ""),
        ProxyError::TlsCertificateError => (
            "The site's certificate is not valid, so nothing was sent to it.",
            "Where it is a site of your own, the operator adds its authority to https.extra-roots.",
        ),
        ProxyError::TlsAlertReceived => ("The site refused the TLS handshake.", ""),
        ProxyError::HttpRequestError => (
            "The request cannot be served as it came: it is not valid HTTP, could be read in two ways, is too long, came \
             too slowly, or came over a limit of the proxy.",
            "The status and the answer say which.",
        ),
        ProxyError::HttpResponseIncomplete => ("The site's response broke off.", "Try again."),
        ProxyError::HttpResponseTransferCoding => ("The chunks of the site's response cannot be read.", ""),
        ProxyError::HttpProtocolError => (
            "The site's response is not valid HTTP, or asks for what only a proxy may.",
            "",
        ),
        ProxyError::ProxyInternalError => (
            "robotgate failed inside, or its log takes nothing, without which nothing is forwarded.",
            "The operator's log says why.",
        ),
        ProxyError::ProxyLoopDetected => (
            "The request has come through this proxy before.",
            "Look at the proxy settings along the way; two gates in a row need two names (proxy.name).",
        ),
        // What a decision denies has that as its type.
        ProxyError::HttpRequestDenied
        | ProxyError::ClientGone
        | ProxyError::Idle
        | ProxyError::Lifetime
        | ProxyError::Aborted => return None,
    })
}

const TITLE: &str = "Why robotgate refuses, and what goes wrong";
const INTRODUCTION: &str = "The type of each answer that robotgate gives itself ends in one of these names. Refusals carry \
                            it in Robots-Decision, too, as the reason; errors in Proxy-Status.";
const HEAD: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>robotgate: problems</title>\
    <meta name=\"viewport\" content=\"width=device-width\"><style>:root{color-scheme:light dark}\
    body{font:16px/1.5 system-ui,sans-serif;margin:0}main{max-width:50rem;margin:auto;padding:1rem}\
    dt{margin-top:1rem;font-weight:600}dd{margin:0}:target{outline:2px solid}</style><main>";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_place_and_a_meaning() {
        let body = html();
        for reason in Reason::ALL {
            let place = format!("<dt id=\"{}\">", reason.as_str());
            assert_eq!(body.matches(&place).count(), 1, "{reason:?}");
        }
        for (name, meaning, _) in errors() {
            assert_eq!(body.matches(&format!("<dt id=\"{name}\">")).count(), 1, "{name}");
            assert!(meaning.ends_with('.'), "{meaning}");
        }
        assert!(
            body.contains("<code>robotgate explain --agent BOT URL</code>"),
            "{body}"
        );
        assert!(!body.contains('`'), "{body}");
        let text = text();
        assert!(
            text.contains("\nrule\n  A rule of the site's robots.txt decides this.\n"),
            "{text}"
        );
    }
}
