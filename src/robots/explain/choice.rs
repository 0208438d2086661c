//! For whom rules are picked, and the user-agent lines that name them (RFC 9309 §2.2.1).
//!
//! Never sees a User-Agent field: which token an agent goes by was found out before.

use std::borrow::Cow;

use crate::robots::names::{Named, is_product_token};

/// For whom rules are picked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Choice<'a> {
    /// As [`RobotsTxt::agent`](crate::robots::RobotsTxt::agent).
    Agent(&'a str),
    /// As [`RobotsTxt::product`](crate::robots::RobotsTxt::product).
    Product(&'a str),
    /// Only by `*`.
    Everyone,
}

/// One user-agent line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AgentLine<'a> {
    value: &'a [u8],
    /// The line's number, from 1.
    pub line: u32,
}

// === impl AgentLine ===

impl<'a> AgentLine<'a> {
    pub(in crate::robots) fn new(value: &'a [u8], line: u32) -> Self {
        Self { value, line }
    }

    /// What is named, as written. Octets that are not UTF-8 are replaced; control characters are
    /// kept.
    #[must_use]
    pub fn name(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.value)
    }

    /// Whether the line names those of `choice`. An agent is named by its own name alone; `*`
    /// names [`Choice::Everyone`].
    #[must_use]
    pub fn names(&self, choice: Choice<'_>) -> bool {
        match (Named::read(self.value), choice) {
            (Named::Everyone, choice) => choice == Choice::Everyone,
            (Named::Agent { token, .. }, Choice::Agent(agent)) => token.eq_ignore_ascii_case(agent),
            (Named::Agent { token, .. }, Choice::Product(agent)) if is_product_token(agent) => {
                token.eq_ignore_ascii_case(agent)
            }
            (Named::Agent { word, .. }, Choice::Product(agent)) => {
                !agent.is_empty() && word.is_some_and(|word| word.eq_ignore_ascii_case(agent))
            }
            (Named::Agent { .. }, Choice::Everyone) => false,
        }
    }
}
