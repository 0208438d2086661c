//! Whether the process lives, and whether it takes requests of bots.

use std::{borrow::Cow, sync::Arc};

use axum::{extract::State, response::IntoResponse};
use http::StatusCode;

use super::Context;

/// That this is answered says all.
pub(super) async fn alive() -> impl IntoResponse {
    "ok\n"
}

/// Not while the audit log takes nothing, since no request is forwarded then, and not from the moment on when the proxy is
/// to stop: a load balancer sends bots elsewhere. Where copies cannot be kept on disk, the text says why.
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
            // Every decision is made all the same.
            Some(trouble) => (StatusCode::OK, format!("ready\n{trouble}\n").into()),
            None => (StatusCode::OK, "ready\n".into()),
        }
    }
}
