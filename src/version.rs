//! The version of this build. `src/version/build.rs` determines it.

/// The version of this build, such as `0.1.0 (abc1234, 2026-11-20) +static`. The parentheses hold the commit and its
/// date, if known. `+debug` marks a debug build, and `+static` a statically linked one.
pub const VERSION: &str = env!("ROBOTGATE_VERSION");
