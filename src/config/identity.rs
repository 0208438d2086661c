//! `[identity]`: what becomes of requests that name no bot, and by which credentials clients prove who they are.
//!
//! It identifies nobody; see [`crate::bot`]. The only file that it reads is that of the credentials.

use std::path::PathBuf;

use toml::Spanned;

use super::check::Checker;
use super::written;
use crate::bot::{Bots, Credentials, Unidentified};

mod file;

pub use file::CredentialsError;

/// The `[identity]` section. The credentials themselves are with the bots that they stand for
/// ([`Bots::credentials`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdentityRules {
    /// What a request gets that names no bot.
    pub unidentified: Unidentified,
    /// The file of the credentials; without one, none is asked for and none is looked at.
    pub credentials: Option<PathBuf>,
    /// Whether nobody is served who proves nothing.
    pub required: bool,
}

/// What `[identity]` says of credentials, for the bots that name them.
pub(super) enum Named {
    /// There is no file.
    None,
    /// What is in it; nothing, where it could not be read and a complaint says so.
    File(Option<Credentials>),
    /// There is one, which is not looked into: every name counts.
    Unread,
}

// === impl IdentityRules ===

impl IdentityRules {
    pub(super) fn check(written: &written::Identity, checker: &mut Checker<'_>) -> (Self, Named) {
        let credentials = written.credentials.as_ref();
        let path = credentials.and_then(|written| checker.path(written));
        let named = match (credentials, &path) {
            (Some(_), _) if !checker.reads_credentials() => Named::Unread,
            (Some(written), Some(path)) => {
                let read = file::read(path);
                let complaints = read.as_ref().err().map(CredentialsError::lines).unwrap_or_default();
                for complaint in complaints {
                    checker.complain(written.span(), complaint);
                }
                Named::File(read.ok())
            }
            (Some(_), None) => Named::File(None),
            (None, _) => Named::None,
        };
        let rules = Self {
            unidentified: written.unidentified,
            credentials: path,
            required: written.required.as_ref().is_some_and(|required| *required.get_ref()),
        };
        (rules, named)
    }

    /// That somebody can be served at all.
    pub(super) fn check_required(&self, required: Option<&Spanned<bool>>, bots: &Bots, checker: &mut Checker<'_>) {
        let Some(span) = required.filter(|_| self.required).map(Spanned::span) else {
            return;
        };
        if self.credentials.is_none() && !bots.iter().any(|bot| bot.bindings.bind()) {
            checker.complain(
                span,
                "nobody could prove anything, so everybody would be refused; write credentials = \"credentials\" \
                 beside it, or certificates or networks in a [[bot]]",
            );
        }
    }
}
