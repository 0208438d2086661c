//! The page: three files that are part of the program, so that it works without the internet. They hold no data.

use axum::response::IntoResponse;
use http::{HeaderName, header};

pub(super) async fn index() -> impl IntoResponse {
    file("text/html; charset=utf-8", include_str!("../page/index.html"))
}

pub(super) async fn style() -> impl IntoResponse {
    file("text/css; charset=utf-8", include_str!("../page/page.css"))
}

pub(super) async fn script() -> impl IntoResponse {
    file("text/javascript; charset=utf-8", include_str!("../page/page.js"))
}

/// What there is to ask, for programs.
pub(super) async fn openapi() -> impl IntoResponse {
    file("application/json", OPENAPI)
}

/// After an upgrade there may be another.
fn file(kind: &'static str, text: &'static str) -> ([(HeaderName, &'static str); 2], &'static str) {
    (
        [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-cache")],
        text,
    )
}

pub(super) const OPENAPI: &str = include_str!("openapi.json");
