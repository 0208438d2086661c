//! Whether the process lives, and whether it takes requests of bots.

use std::sync::Arc;

use axum::{extract::State, response::IntoResponse};
use http::StatusCode;

use super::Context;

/// That this is answered says all.
pub(super) async fn alive() -> impl IntoResponse {
    "ok\n"
}

/// Not from the moment on when the proxy is to stop: a load balancer sends bots elsewhere then.
pub(super) async fn ready(State(context): State<Arc<Context>>) -> impl IntoResponse {
    match context.live.is_stopping() {
        true => (StatusCode::SERVICE_UNAVAILABLE, "draining\n"),
        false => (StatusCode::OK, "ready\n"),
    }
}
