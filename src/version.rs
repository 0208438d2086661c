//! The version of this build. `build.rs` determines it.

/// The version, the commit with its date if it is known, and how the program was built: `0.1.0 (abc1234, 2026-11-20)`.
/// For `--version`, the log, the metrics and the API.
pub const VERSION: &str = env!("ROBOTGATE_VERSION");
