//! What can be asked, and what every answer has in common; and the page, whose three files are part of the program, so
//! that it works without the internet.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{DefaultBodyLimit, Request, State},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{MethodRouter, get, post},
};
use http::{HeaderMap, HeaderName, HeaderValue, Uri, header};

use super::{Context, access, decide, explain, health, origins, problem::Problem, refusals, sources::Document, status};

/// A path, and the methods that are documented for it. HEAD goes wherever GET goes.
struct Route(
    &'static str,
    #[cfg_attr(not(test), expect(dead_code, reason = "the tests hold the description against it"))]
    &'static [&'static str],
    MethodRouter<Arc<Context>>,
);

/// Every path that changes nothing.
fn routes() -> Vec<Route> {
    const GET: &[&str] = &["get"];
    vec![
        Route("/", GET, get(async || file("text/html; charset=utf-8", INDEX))),
        Route("/page.css", GET, get(async || file("text/css; charset=utf-8", STYLE))),
        Route(
            "/page.js",
            GET,
            get(async || file("text/javascript; charset=utf-8", SCRIPT)),
        ),
        Route("/healthz", GET, get(health::alive)),
        Route("/readyz", GET, get(health::ready)),
        Route("/metrics", GET, get(metrics)),
        Route("/ca.pem", GET, get(trust)),
        Route("/ca.crt", GET, get(trust)),
        Route("/trust", GET, get(trust)),
        Route(
            "/api/v1/openapi.json",
            GET,
            get(async || file("application/json", OPENAPI)),
        ),
        Route("/api/v1/status", GET, get(status::status)),
        Route("/api/v1/refusals", GET, get(refusals::refusals)),
        Route("/api/v1/origins", GET, get(origins::list)),
        Route("/api/v1/origins/detail", GET, get(origins::detail)),
        Route("/api/v1/origins/stats", GET, get(origins::stats)),
        Route("/api/v1/decide", &["get", "post"], get(decide::one).post(decide::many)),
        Route("/api/v1/explain", GET, get(explain::explain)),
        Route("/api/v1/config", GET, get(status::config)),
    ]
}

/// Those that change something.
fn changing() -> Vec<Route> {
    vec![Route("/api/v1/origins/forget", &["post"], post(origins::forget))]
}

/// What the admin listener answers, to those whom it lets in.
pub(super) fn of_listener(context: Arc<Context>) -> Router {
    let check = middleware::from_fn_with_state(context.clone(), access::check);
    answering(routes(), context)
        .layer(check)
        .layer(middleware::map_response(guarded))
}

/// What is answered on the socket, whose file says who may open it: everything. No browser gets there.
pub(super) fn of_socket(context: Arc<Context>) -> Router {
    answering(routes().into_iter().chain(changing()), context)
}

fn answering(routes: impl IntoIterator<Item = Route>, context: Arc<Context>) -> Router {
    let router = Router::new();
    (routes.into_iter())
        .fold(router, |router, Route(path, _, answers)| router.route(path, answers))
        .fallback(async || Problem::NotFound)
        .method_not_allowed_fallback(async || Problem::Method)
        .layer(DefaultBodyLimit::max(MAX_CONTENT))
        .layer(middleware::from_fn(in_time))
        .with_state(context)
}

/// After an upgrade there may be another.
fn file(kind: &'static str, text: &'static str) -> ([(HeaderName, &'static str); 2], &'static str) {
    let fields = [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-cache")];
    (fields, text)
}

async fn metrics(State(context): State<Arc<Context>>, headers: HeaderMap) -> Result<Document, Problem> {
    let accept = accept(&headers).map(str::to_owned);
    let _turn = context.counting.acquire().await;
    let context = context.clone();
    // Where many origins are known, it takes a while to count them.
    let metrics = tokio::task::spawn_blocking(move || context.sources.metrics(accept.as_deref())).await;
    metrics
        .ok()
        .flatten()
        .ok_or(Problem::Unavailable("there are no metrics"))
}

async fn trust(State(context): State<Arc<Context>>, uri: Uri, headers: HeaderMap) -> Result<Response, Problem> {
    let document = context.sources.trust(uri.path(), accept(&headers));
    let document = document.ok_or(Problem::Unavailable(
        "there is no authority: by https.mode nothing is intercepted",
    ))?;
    // The page brings its style along, as it is the same on the proxy's side, where there is no other file.
    let policy = [(header::CONTENT_SECURITY_POLICY, POLICY_OF_TRUST)];
    Ok((policy, document).into_response())
}

fn accept(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::ACCEPT)?.to_str().ok()
}

/// No answer is waited for without end.
async fn in_time(request: Request, next: Next) -> Result<Response, Problem> {
    let answered = tokio::time::timeout(TO_ANSWER, next.run(request));
    answered.await.map_err(|_| Problem::Overdue)
}

/// What browsers are told with every answer.
async fn guarded(mut response: Response) -> Response {
    let fields = response.headers_mut();
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        fields.insert(name, HeaderValue::from_static(value));
    }
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        fields.entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

// === impl Document ===

impl IntoResponse for Document {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, self.media_type)], self.content).into_response()
    }
}

const INDEX: &str = include_str!("../page/index.html");
const STYLE: &str = include_str!("../page/page.css");
const SCRIPT: &str = include_str!("../page/page.js");
/// What there is to ask, for programs.
const OPENAPI: &str = include_str!("openapi.json");
/// Bytes of the content of a request.
const MAX_CONTENT: usize = 1024 * 1024;
/// For all that it takes to answer, many decisions included.
const TO_ANSWER: Duration = Duration::from_secs(60);
const POLICY_OF_TRUST: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; \
                               frame-ancestors 'none'";
/// Nothing but what comes from here, in no frame of another page.
const POLICY: &str = "default-src 'none'; connect-src 'self'; style-src 'self'; script-src 'self'; \
                      img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;
    use crate::{bot::Enforcement, decision::Reason, decision::Verdict};

    fn document() -> Value {
        serde_json::from_str(OPENAPI).unwrap()
    }

    #[test]
    fn what_is_documented_is_what_can_be_asked() {
        let document = document();
        let documented: BTreeSet<(String, String)> = (document["paths"].as_object().unwrap().iter())
            .flat_map(|(path, methods)| {
                let methods = methods.as_object().unwrap().keys();
                methods.map(|method| (path.clone(), method.clone()))
            })
            .collect();
        let routed = routes()
            .into_iter()
            .chain(changing())
            .flat_map(|Route(path, methods, _)| {
                let methods = methods.iter();
                methods.map(move |method| (path.to_owned(), (*method).to_owned()))
            });
        assert_eq!(routed.collect::<BTreeSet<_>>(), documented);
    }

    #[test]
    fn documented_words_are_those_of_the_code() {
        let document = document();
        let words = |schema: &str| -> Vec<String> {
            let list = &document["components"]["schemas"][schema]["enum"];
            serde_json::from_value(list.clone()).unwrap()
        };
        let verdicts = [Verdict::Allow, Verdict::Deny, Verdict::Unverifiable];
        assert_eq!(words("Verdict"), verdicts.map(Verdict::as_str));
        assert_eq!(words("Reason"), Reason::ALL.map(Reason::as_str));
        let enforcements = [Enforcement::Enforce, Enforcement::Report, Enforcement::Exempt];
        assert_eq!(words("Enforcement"), enforcements.map(Enforcement::as_str));
        // Those of `word_for`.
        let holds = words("Holds");
        assert_eq!(holds[..2], ["rules", "expired"]);
        assert!(
            holds[2..].iter().all(|word| words("Reason").contains(word)),
            "{holds:?}"
        );
    }

    #[test]
    fn what_needs_no_token_is_documented_so() {
        let document = document();
        for Route(path, methods, _) in routes() {
            for method in methods {
                let is_open = document["paths"][path][method]["security"] == serde_json::json!([{}]);
                assert_eq!(is_open, access::OPEN.contains(&path), "{path}");
            }
        }
    }
}
