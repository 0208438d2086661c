//! Where bots may go: what is closed by default and by configuration, on every way out.

mod listeners;
mod lists;
mod rebinding;
mod redirects;
mod refusals;

use crate::support::{Gate, Origin, Response};

/// Nothing is open but the internet.
const CLOSED: &str = "[egress]\nallow = []";
/// So are the origins of the tests.
const OPEN: &str = "[egress]\nallow = ['127.0.0.0/8']";

/// An origin whose robots.txt allows everything.
async fn open_origin() -> Origin {
    Origin::start()
        .reply("/robots.txt", crate::support::Reply::status(404))
        .anything("page")
        .spawn()
        .await
}

/// What a client is told that CONNECTs to where bots may not go: inside, where clients show why.
async fn through_connect(gate: &Gate, authority: &str) -> Response {
    gate.connect(authority).await.opened().plain().get("/x").await
}

/// What the log has of the only exchange: reason and cause of the decision, error of the completion.
async fn logged(gate: &Gate) -> (String, String, Option<String>) {
    let (decisions, completions) = gate.audited(1).await;
    let text = |record: &crate::support::Record, name: &str| record[name].as_str().map(str::to_owned);
    (
        text(&decisions[0], "reason").unwrap_or_default(),
        text(&decisions[0], "robots_error").unwrap_or_default(),
        text(&completions[0], "error"),
    )
}
