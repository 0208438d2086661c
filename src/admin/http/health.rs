//! Answers health checks: is the process alive, and does it accept requests of bots?

use std::{borrow::Cow, sync::Arc};

use axum::{extract::State, response::IntoResponse};
use http::StatusCode;

use super::Context;

/// Always returns `ok`, because any response shows that the process is alive.
pub(super) async fn alive() -> impl IntoResponse {
    "ok\n"
}

/// Returns whether the proxy is ready for requests of bots. If not, a load balancer sends bots to another proxy. The
/// proxy is not ready:
///
/// - when it is stopping,
/// - while the audit log cannot be written, because the proxy then forwards no request,
/// - while evidence cannot be stored, if the configuration requires evidence.
///
/// The text of the response also says if robots.txt copies cannot be kept on disk, evidence cannot be stored, or the
/// audit log cannot be sealed.
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
            // The configuration has `evidence.required`, and evidence cannot be stored. So no request can be decided
            // with a new robots.txt.
            true => (StatusCode::SERVICE_UNAVAILABLE, "evidence cannot be stored\n"),
            // Without `evidence.required`, requests are decided even if evidence cannot be stored.
            false => (StatusCode::OK, "ready\n"),
        };
        (status, format!("{state}{}", troubles.collect::<String>()).into())
    }
}
