//! Destinations that bots must not reach, by default and by configuration, for every kind of request.

mod listeners;
mod lists;
mod rebinding;
mod redirects;
mod refusals;

use crate::support::{Gate, Origin, Response};

const CLOSED: &str = "[egress]\nallow = []";
const OPEN: &str = "[egress]\nallow = ['127.0.0.0/8']";

async fn open_origin() -> Origin {
    Origin::start()
        .reply("/robots.txt", crate::support::Reply::status(404))
        .anything("page")
        .spawn()
        .await
}

/// Sends a request through a CONNECT. robotgate refuses the request and not the CONNECT, because many clients do not
/// show the response to a CONNECT.
async fn through_connect(gate: &Gate, authority: &str) -> Response {
    gate.connect(authority).await.opened().plain().get("/x").await
}

/// Returns reason and cause of the only decision, and the error in its completion.
async fn logged(gate: &Gate) -> (String, String, Option<String>) {
    let (decisions, completions) = gate.audited(1).await;
    let text = |record: &crate::support::Record, name: &str| record[name].as_str().map(str::to_owned);
    (
        text(&decisions[0], "reason").unwrap_or_default(),
        text(&decisions[0], "robots_error").unwrap_or_default(),
        text(&completions[0], "error"),
    )
}
