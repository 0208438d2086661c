//! What can be asked, and what every answer has in common.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{DefaultBodyLimit, Request, State},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{MethodRouter, get},
};
use http::{HeaderMap, HeaderValue, Uri, header};

use super::{Context, access, files, health, problem::Problem, sources::Document};

/// Every path, with the methods that are documented for it. HEAD goes wherever GET goes.
fn routes() -> Vec<(&'static str, &'static [&'static str], MethodRouter<Arc<Context>>)> {
    const GET: &[&str] = &["get"];
    vec![
        ("/", GET, get(files::index)),
        ("/page.css", GET, get(files::style)),
        ("/page.js", GET, get(files::script)),
        ("/healthz", GET, get(health::alive)),
        ("/readyz", GET, get(health::ready)),
        ("/metrics", GET, get(metrics)),
        ("/ca.pem", GET, get(trust)),
        ("/ca.crt", GET, get(trust)),
        ("/trust", GET, get(trust)),
        ("/api/v1/openapi.json", GET, get(files::openapi)),
    ]
}

/// Answers to everything, by what `context` knows.
pub(super) fn router(context: Arc<Context>) -> Router {
    routes()
        .into_iter()
        .fold(Router::new(), |router, (path, _, answers)| router.route(path, answers))
        .fallback(async || Problem::NotFound)
        .method_not_allowed_fallback(async || Problem::Method)
        .layer(DefaultBodyLimit::max(MAX_CONTENT))
        .layer(middleware::from_fn(in_time))
        .layer(middleware::from_fn_with_state(context.clone(), access::check))
        .layer(middleware::map_response(guarded))
        .with_state(context)
}

async fn metrics(State(context): State<Arc<Context>>, headers: HeaderMap) -> Result<Document, Problem> {
    let metrics = context.sources.metrics(accept(&headers));
    metrics.ok_or(Problem::Unavailable("there are no metrics"))
}

async fn trust(State(context): State<Arc<Context>>, uri: Uri, headers: HeaderMap) -> Result<Document, Problem> {
    let document = context.sources.trust(uri.path(), accept(&headers));
    document.ok_or(Problem::Unavailable(
        "there is no authority: by https.mode nothing is intercepted",
    ))
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
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        fields.insert(name, HeaderValue::from_static(value));
    }
    let cached = fields.entry(header::CACHE_CONTROL);
    cached.or_insert(HeaderValue::from_static("no-store"));
    response
}

// === impl Document ===

impl IntoResponse for Document {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, self.media_type)], self.content).into_response()
    }
}

/// Bytes of the content of a request.
const MAX_CONTENT: usize = 1024 * 1024;
/// For all that it takes to answer, many decisions included.
const TO_ANSWER: Duration = Duration::from_secs(60);
/// Nothing but what comes from here, in no frame of another page.
const POLICY: &str = "default-src 'none'; connect-src 'self'; style-src 'self'; script-src 'self'; \
                      img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
