//! The operational log, on stderr: text for a person at a terminal, else one JSON object a line.
//! It says what the daemon does; what bots do stands in the audit log.

mod terminal;

use std::io::{IsTerminal as _, stderr};

use tracing::{Level, Metadata};
use tracing_subscriber::{EnvFilter, filter::filter_fn, layer::SubscriberExt as _, util::SubscriberInitExt as _};

use self::terminal::ForPerson;
use crate::paint::Paint;

/// Starts the log. `ROBOTGATE_LOG` sets what it tells (as `RUST_LOG` does for other programs).
pub fn init() {
    let filter = EnvFilter::try_from_env("ROBOTGATE_LOG").unwrap_or_else(|_| EnvFilter::new(DEFAULT));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(stderr)
        // It would tell stderr that this takes nothing, and panic over it: a terminal is closed, a pipe has no reader.
        .log_internal_errors(false);
    if stderr().is_terminal() {
        let lines = ForPerson::new(Paint::for_output(&stderr()));
        let log = builder.event_format(lines).finish();
        log.with(filter_fn(keeps_secrets)).init();
    } else {
        let log = builder.json().flatten_event(true).with_target(false).finish();
        log.with(filter_fn(keeps_secrets)).init();
    }
}

/// Whether a line holds no header fields as they came: pingora traces whole requests, credentials included.
fn keeps_secrets(line: &Metadata<'_>) -> bool {
    *line.level() != Level::TRACE || !line.target().starts_with("pingora")
}

/// Libraries tell of each client that went away, of odd TLS and of odd answers to their queries, as often as it happens.
/// What of that matters robotgate says itself.
const DEFAULT: &str = "info,pingora_core=off,pingora_proxy=off,pingora_pool=off,hickory_net=off,hickory_proto=off,\
                       hickory_resolver=off,h2=off,rustls=off";
