//! Serves the operators' page, openapi.json, the metrics, the authority's certificate, and the instructions to make
//! clients trust it. The page and openapi.json are built into the program.

use std::sync::Arc;

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderName, Uri, header};

use super::{Context, problem::Problem};
use crate::{
    config::{Proxy, host_name},
    metrics::Format,
    proxy::{Listeners, Speaks},
    trust::{self, CA_NAME, Ca, Certificate, ClientSettings, Form},
};

pub(super) async fn index() -> impl IntoResponse {
    file("text/html; charset=utf-8", include_str!("../page/index.html"))
}

pub(super) async fn style() -> impl IntoResponse {
    file("text/css; charset=utf-8", include_str!("../page/page.css"))
}

pub(super) async fn script() -> impl IntoResponse {
    file("text/javascript; charset=utf-8", SCRIPT)
}

pub(super) async fn openapi() -> impl IntoResponse {
    file("application/json", OPENAPI)
}

/// Browsers must ask before they reuse the file, because an upgrade of robotgate can change it.
fn file(kind: &'static str, text: &'static str) -> ([(HeaderName, &'static str); 2], &'static str) {
    let fields = [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-cache")];
    (fields, text)
}

pub(super) async fn metrics(
    State(context): State<Arc<Context>>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, Problem> {
    let format = Format::accepted(accept(&headers));
    // The semaphore is never closed.
    let turn = context.counting.clone().acquire_owned().await.ok();
    let live = context.live.clone();
    // Counting many origins takes long.
    let text = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        live.metrics_text(format)
    })
    .await;
    let text = text.map_err(|_| Problem::Unavailable("the metrics cannot be read now; try again"))?;
    Ok(([(header::CONTENT_TYPE, format.content_type())], text))
}

pub(super) async fn trust(
    State(context): State<Arc<Context>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let form = match accept(&headers).is_some_and(|accept| accept.contains("text/html")) {
        true => Form::Html,
        false => Form::Text,
    };
    let generation = context.live.generation();
    let certificate = generation.authority().map(Certificate::from);
    let settings = ClientSettings::new(&proxy(&context.service_info.listeners), Ca::InHome(CA_NAME)).ok();
    let page = settings.and_then(|settings| trust::page(uri.path(), form, certificate.as_ref(), &settings).ok());
    let page = page.ok_or(Problem::Unavailable(
        "there is no authority, because https.mode is not \"intercept\"",
    ))?;
    let fields = [
        (header::CONTENT_TYPE, page.content_type),
        // `robotgate.internal` serves this page too, but no style sheets. So the page contains its style sheet, and
        // needs its own policy.
        (header::CONTENT_SECURITY_POLICY, POLICY_OF_TRUST),
    ];
    Ok((fields, page.body).into_response())
}

fn proxy(listeners: &Listeners) -> String {
    let addresses = listeners.addresses();
    let find = |wanted, scheme| {
        let found = addresses.iter().find(|(_, speaks)| *speaks == wanted);
        found.map(|(address, _)| (scheme, *address))
    };
    match find(Speaks::Http, "http").or_else(|| find(Speaks::Tls, "https")) {
        Some((scheme, address)) if address.ip().is_unspecified() => {
            format!("{scheme}://{}:{}", host_name(), address.port())
        }
        Some((scheme, address)) => format!("{scheme}://{address}"),
        None => format!("http://{}", Proxy::DEFAULT_LISTEN),
    }
}

fn accept(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::ACCEPT)?.to_str().ok()
}

/// The scripts share functions and variables. The last one starts the page.
pub(super) const SCRIPT: &str = concat!(
    include_str!("../page/tools.js"),
    include_str!("../page/charts.js"),
    include_str!("../page/now.js"),
    include_str!("../page/refusals.js"),
    include_str!("../page/history.js"),
    include_str!("../page/sites.js"),
    include_str!("../page/questions.js"),
    include_str!("../page/page.js"),
);
pub(super) const OPENAPI: &str = include_str!("openapi.json");
const POLICY_OF_TRUST: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; \
                               frame-ancestors 'none'";
