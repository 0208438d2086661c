//! Health checks: whether the process is alive, and whether it accepts requests of bots.

use std::{borrow::Cow, sync::Arc};

use axum::{extract::State, response::IntoResponse};
use http::StatusCode;

use super::Context;

/// Responds always: any response means that the process is alive.
pub(super) async fn alive() -> impl IntoResponse {
    "ok\n"
}

/// Returns whether the proxy is ready. The proxy is not ready once shutdown has begun, while the audit log cannot be
/// written (it then forwards no request), or while evidence is required and cannot be stored. A load balancer then
/// sends bots to another proxy. If copies cannot be kept on disk, evidence cannot be stored or the log cannot be
/// sealed, the text says so.
pub(super) async fn ready(State(context): State<Arc<Context>>) -> (StatusCode, Cow<'static, str>) {
    if context.live.is_stopping() {
        (StatusCode::SERVICE_UNAVAILABLE, "draining\n".into())
    } else if context.live.generation().audit_is_stalled() {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            "the audit log cannot be written; the operational log says why\n".into(),
        )
    } else {
        let evidence = context.live.generation().evidence().cloned();
        let sealer = context.live.generation().sealer().cloned();
        let sealing = sealer.filter(|sealer| sealer.state().fails).map(drop);
        let troubles = [
            context.live.store().disk_trouble(),
            evidence.and_then(|evidence| evidence.trouble()),
            sealing.map(|()| "the audit log cannot be sealed; the operational log says why".to_owned()),
        ];
        let troubles = troubles.into_iter().flatten().map(|trouble| format!("{trouble}\n"));
        let (status, state) = match context.live.generation().evidence_is_stalled() {
            // With `evidence.required`, no request can be decided with a robots.txt that is not stored yet.
            true => (StatusCode::SERVICE_UNAVAILABLE, "evidence cannot be stored\n"),
            // Decisions do not depend on stored evidence.
            false => (StatusCode::OK, "ready\n"),
        };
        (status, format!("{state}{}", troubles.collect::<String>()).into())
    }
}
