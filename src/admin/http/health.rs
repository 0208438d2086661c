//! Health checks: whether the process is alive, and whether it accepts requests of bots.

use std::{borrow::Cow, sync::Arc};

use axum::{extract::State, response::IntoResponse};
use http::StatusCode;

use super::Context;

/// Any answer means that the process is alive.
pub(super) async fn alive() -> impl IntoResponse {
    "ok\n"
}

/// Returns whether the proxy is ready. It is not while the audit log cannot be written, because then no request is
/// forwarded, nor once shutdown has begun. A load balancer then sends bots elsewhere. If copies cannot be kept on disk,
/// the text says why.
pub(super) async fn ready(State(context): State<Arc<Context>>) -> (StatusCode, Cow<'static, str>) {
    if context.live.is_stopping() {
        (StatusCode::SERVICE_UNAVAILABLE, "draining\n".into())
    } else if context.live.generation().audit_is_stalled() {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            "the audit log cannot be written; the operational log says why\n".into(),
        )
    } else {
        match context.live.store().disk_trouble() {
            // Decisions still work.
            Some(trouble) => (StatusCode::OK, format!("ready\n{trouble}\n").into()),
            None => (StatusCode::OK, "ready\n".into()),
        }
    }
}
