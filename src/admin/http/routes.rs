//! The routes of the API, the time limit for a response, and the header fields for security that the admin listener
//! adds.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{DefaultBodyLimit, Request},
    middleware::{self, Next},
    response::Response,
    routing::{MethodRouter, get, post},
};
use http::{HeaderValue, header};

use super::{
    Context, access, changes, decide, documents, explain, health, history, origins, problem::Problem, refusals, status,
    versions, what_if,
};

/// A path and its documented methods. A path that supports GET also supports HEAD.
struct Route(
    &'static str,
    #[cfg_attr(not(test), expect(dead_code, reason = "only a test uses it, to check openapi.json"))]
    &'static [&'static str],
    MethodRouter<Arc<Context>>,
);

/// The routes that change nothing.
fn routes() -> Vec<Route> {
    const GET: &[&str] = &["get"];
    vec![
        Route("/", GET, get(documents::index)),
        Route("/page.css", GET, get(documents::style)),
        Route("/page.js", GET, get(documents::script)),
        Route("/healthz", GET, get(health::alive)),
        Route("/readyz", GET, get(health::ready)),
        Route("/metrics", GET, get(documents::metrics)),
        Route("/ca.pem", GET, get(documents::trust)),
        Route("/ca.crt", GET, get(documents::trust)),
        Route("/trust", GET, get(documents::trust)),
        Route("/api/v1/openapi.json", GET, get(documents::openapi)),
        Route("/api/v1/status", GET, get(status::status)),
        Route("/api/v1/refusals", GET, get(refusals::refusals)),
        Route("/api/v1/refusals.csv", GET, get(refusals::as_table)),
        Route("/api/v1/refusals.jsonl", GET, get(refusals::as_lines)),
        Route("/api/v1/history", GET, get(history::history)),
        Route("/api/v1/changes", GET, get(changes::changes)),
        Route("/api/v1/origins", GET, get(origins::list)),
        Route("/api/v1/origins/detail", GET, get(origins::detail)),
        Route("/api/v1/origins/versions", GET, get(versions::versions)),
        Route("/api/v1/origins/stats", GET, get(origins::stats)),
        Route("/api/v1/decide", &["get", "post"], get(decide::one).post(decide::many)),
        Route("/api/v1/explain", GET, get(explain::explain)),
        Route("/api/v1/what-if", &["post"], post(what_if::what_if)),
        Route("/api/v1/config", GET, get(status::config)),
    ]
}

fn changing() -> Vec<Route> {
    vec![Route("/api/v1/origins/forget", &["post"], post(origins::forget))]
}

/// The admin listener has no routes that change something.
pub(super) fn of_listener(context: Arc<Context>) -> Router {
    let check = middleware::from_fn_with_state(context.clone(), access::check);
    answering(routes(), context)
        .layer(check)
        .layer(middleware::map_response(guarded))
}

/// The socket has all routes. The mode of its file controls access, and no browser can reach it.
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

async fn in_time(request: Request, next: Next) -> Result<Response, Problem> {
    let answered = tokio::time::timeout(ANSWER_TIMEOUT, next.run(request));
    answered.await.map_err(|_| Problem::Overdue)
}

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

/// Maximum size of a request's content, in bytes.
const MAX_CONTENT: usize = 1024 * 1024;
/// Time limit for a response, enough for a `decide` request with many URLs.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Keeps the page from loading files of other origins, and other pages from showing it in a frame.
const POLICY: &str = "default-src 'none'; connect-src 'self'; style-src 'self'; script-src 'self'; \
                      img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;
    use crate::{
        admin::http::input::AssumedProof,
        bot::Enforcement,
        copy::AnswerKind,
        decision::{Reason, Verdict},
    };

    fn document() -> Value {
        serde_json::from_str(documents::OPENAPI).unwrap()
    }

    #[test]
    fn the_api_description_lists_exactly_the_existing_routes() {
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
    fn the_enums_of_the_api_description_match_the_code() {
        let document = document();
        let words = |schema: &str| -> Vec<String> {
            let list = &document["components"]["schemas"][schema]["enum"];
            serde_json::from_value(list.clone()).unwrap()
        };
        let file = "left: openapi.json, right: the code";
        assert_eq!(words("Verdict"), Verdict::ALL.map(Verdict::as_str), "{file}");
        assert_eq!(words("Reason"), Reason::ALL.map(Reason::as_str), "{file}");
        assert_eq!(
            words("Enforcement"),
            Enforcement::ALL.map(Enforcement::as_str),
            "{file}"
        );
        assert_eq!(words("Holds"), AnswerKind::ALL.map(AnswerKind::as_str), "{file}");
        for word in words("Proof") {
            let proof: Result<AssumedProof, _> = serde_json::from_str(&format!("\"{word}\""));
            assert!(proof.is_ok(), "{word}: {proof:?}");
        }
    }

    #[test]
    fn the_page_filters_by_every_kind_of_answer() {
        let (_, list) = documents::SCRIPT
            .split_once("\nconst STATES = [\n")
            .expect("the page's list");
        let (list, _) = list.split_once(",\n];").expect("its end");
        let words = list.lines().map(|line| line.trim_matches([' ', ',', '"']));
        assert!(words.eq(AnswerKind::ALL.map(AnswerKind::as_str)), "{list}");
    }

    #[test]
    fn the_api_description_says_which_routes_need_no_token() {
        let document = document();
        for Route(path, methods, _) in routes() {
            for method in methods {
                let is_open = document["paths"][path][method]["security"] == serde_json::json!([{}]);
                assert_eq!(is_open, access::OPEN.contains(&path), "{path}");
            }
        }
    }
}
