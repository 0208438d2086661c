//! `[refusals]`: the statuses that refused requests get.

use http::StatusCode;
use toml::Spanned;

use super::check::Checker;
use super::written;

/// The `[refusals]` section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusals {
    /// For what a rule of a robots.txt disallows: 403 or 451.
    pub status: StatusCode,
    /// For what is refused because the robots.txt cannot be had: 403 or 503.
    pub unreachable_status: StatusCode,
}

// === impl Refusals ===

impl Refusals {
    pub(super) fn check(written: written::Refusals, checker: &mut Checker<'_>) -> Self {
        Self {
            status: one_of(
                written.status,
                [StatusCode::FORBIDDEN, StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS],
                checker,
            ),
            unreachable_status: one_of(
                written.unreachable_status,
                [StatusCode::FORBIDDEN, StatusCode::SERVICE_UNAVAILABLE],
                checker,
            ),
        }
    }
}

impl Default for Refusals {
    fn default() -> Self {
        Self {
            status: StatusCode::FORBIDDEN,
            unreachable_status: StatusCode::FORBIDDEN,
        }
    }
}

/// The written one of two statuses, of which the first is the default.
fn one_of(written: Option<Spanned<i64>>, [default, other]: [StatusCode; 2], checker: &mut Checker<'_>) -> StatusCode {
    let Some(written) = written else { return default };
    let number = *written.get_ref();
    let chosen = [default, other]
        .into_iter()
        .find(|status| i64::from(status.as_u16()) == number);
    chosen.unwrap_or_else(|| {
        let message = format!(
            "the status cannot be {number}; write {} or {}",
            default.as_u16(),
            other.as_u16()
        );
        checker.complain(written.span(), message);
        default
    })
}
