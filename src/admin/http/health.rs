//! Answers health checks.

use std::{borrow::Cow, sync::Arc};

use axum::{extract::State, response::IntoResponse};
use http::StatusCode;

use super::Context;

pub(super) async fn alive() -> impl IntoResponse {
    "ok\n"
}

/// Returns 503 while robotgate stops, or cannot write the audit log or required evidence. A load balancer then sends
/// bots to another proxy.
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
        let reload = (context.service_info.last_reload)();
        let rejected = reload.filter(|reload| reload.error.is_some());
        let troubles = [
            context.live.store().disk_trouble(),
            evidence.and_then(|evidence| evidence.trouble()),
            sealing.map(|()| "the audit log cannot be sealed; the operational log says why".to_owned()),
            // Clients without a token can read this text, so it does not quote the configuration.
            rejected.map(|_| {
                "the new configuration was rejected, and the old one applies; the operational log says why".to_owned()
            }),
        ];
        let troubles = troubles.into_iter().flatten().map(|trouble| format!("{trouble}\n"));
        let (status, state) = match context.live.generation().evidence_is_stalled() {
            // With `evidence.required`, robotgate uses no newly fetched robots.txt until it can store evidence again.
            true => (StatusCode::SERVICE_UNAVAILABLE, "evidence cannot be stored\n"),
            false => (StatusCode::OK, "ready\n"),
        };
        (status, format!("{state}{}", troubles.collect::<String>()).into())
    }
}
