//! Whether the process lives, and whether it takes requests of bots.

use std::sync::Arc;

use axum::{extract::State, response::IntoResponse};
use http::StatusCode;

use super::Context;

/// That this is answered says all.
pub(super) async fn alive() -> impl IntoResponse {
    "ok\n"
}

/// Not while the audit log takes nothing, since no request is forwarded then, and not from the moment on when the proxy is
/// to stop: a load balancer sends bots elsewhere.
pub(super) async fn ready(State(context): State<Arc<Context>>) -> impl IntoResponse {
    if context.live.is_stopping() {
        (StatusCode::SERVICE_UNAVAILABLE, "draining\n")
    } else if context.live.generation().audit_is_stalled() {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            "the audit log takes nothing; the operational log names it\n",
        )
    } else {
        (StatusCode::OK, "ready\n")
    }
}
