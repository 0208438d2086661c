//! The version of this build. `build.rs` determines it.

/// The version of this build, such as `0.1.0 (abc1234, 2026-11-20) +static`. Contains the commit and its date if these
/// are known, `+debug` for a debug build, and `+static` for a statically linked one. `--version`, the log, the metrics
/// and the API show it.
pub const VERSION: &str = env!("ROBOTGATE_VERSION");
