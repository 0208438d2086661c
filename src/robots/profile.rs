//! Whose reading of robots.txt holds: a name for each, in the configuration, the log and on the
//! command line.
//!
//! Never reads anything itself: where the readings part, `record` and `escape` say so.

/// Whose reading of robots.txt holds.
///
/// ```
/// use robotgate::robots::{Profile, RobotsTxt};
///
/// let body = b"User-agent: *\nDisalow: /tpyo\nDisallow: /%62%61%7A";
/// let google = RobotsTxt::parse_as(Profile::Google, body);
/// let rfc9309 = RobotsTxt::parse_as(Profile::Rfc9309, body);
///
/// // Google knows the usual typos; the RFC's grammar has no such line.
/// assert!(!google.agent("AnyBot").decide(b"/tpyo").allowed);
/// assert!(rfc9309.agent("AnyBot").decide(b"/tpyo").allowed);
///
/// // The RFC compares what escapes mean, Google how they are written.
/// assert!(google.agent("AnyBot").decide(b"/baz").allowed);
/// assert!(!rfc9309.agent("AnyBot").decide(b"/baz").allowed);
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq, clap::ValueEnum, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// As Google's open-source parser, bit for bit.
    #[default]
    Google,
    /// As RFC 9309 has it: no typos, no missing colons, no index rule; octets are compared by what
    /// their escapes mean, and the robots.txt itself is always allowed (§2.2.2).
    Rfc9309,
}

// === impl Profile ===

impl Profile {
    /// Its name in the configuration and the log.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Google => "google",
            Self::Rfc9309 => "rfc9309",
        }
    }

    /// Whether no rule is asked about `path`: RFC 9309 §2.2.2 implicitly allows the robots.txt
    /// itself, of which Google's parser knows nothing.
    pub(super) fn always_allows(self, path: &[u8]) -> bool {
        self == Self::Rfc9309 && path == b"/robots.txt"
    }
}
