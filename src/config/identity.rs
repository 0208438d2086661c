//! `[identity]`: what becomes of requests that name no bot.
//!
//! It identifies nobody; see [`crate::bot`].

use crate::bot::Unidentified;

/// The `[identity]` section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdentityRules {
    /// What a request gets that names no bot.
    pub unidentified: Unidentified,
}
