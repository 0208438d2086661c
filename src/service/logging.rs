//! The operational log, on stderr: text for a person at a terminal, else one JSON object a line.
//! It says what the daemon does; what bots do stands in the audit log.

use std::io::IsTerminal as _;

use tracing::{Level, Metadata};
use tracing_subscriber::{EnvFilter, filter::filter_fn, layer::SubscriberExt as _, util::SubscriberInitExt as _};

/// Starts the log. `ROBOTGATE_LOG` sets what it tells (as `RUST_LOG` does for other programs).
pub fn init() {
    let filter = EnvFilter::try_from_env("ROBOTGATE_LOG").unwrap_or_else(|_| EnvFilter::new(DEFAULT));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    if std::io::stderr().is_terminal() {
        let colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let log = builder.with_target(false).with_ansi(colour).finish();
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

/// pingora tells of each client that went away, at the level of errors; what of that matters
/// stands in the audit log.
const DEFAULT: &str =
    "info,pingora_core=off,pingora_proxy=off,pingora_pool=off,hickory_net=error,hickory_resolver=error";
