//! Chooses the form of a response's body by the client's `Accept` field (RFC 9110 §12.5.1). Pure functions, without
//! I/O.

use http::{HeaderMap, header};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    Json,
    Text,
    Html,
}

// === impl Body ===

impl Body {
    /// Returns the form that `Accept` prefers. This is JSON if `Accept` states no preference, and HTML only if `Accept`
    /// names HTML.
    pub(super) fn preferred(request: &HeaderMap) -> Self {
        let accept = Accept::of(request);
        let json = accept.quality(&["application/problem+json", "application/json", "application/*", "*/*"]);
        let text = accept.quality(&["text/plain", "text/*", "*/*"]);
        let html = accept.quality(&["text/html"]);
        match html > json && html >= text {
            true => Self::Html,
            false if text > json => Self::Text,
            false => Self::Json,
        }
    }
}

/// Returns whether `Accept` names HTML and does not prefer plain text. This is so for browsers, but seldom for
/// other programs.
pub(in crate::proxy) fn shows_html(request: &HeaderMap) -> bool {
    let accept = Accept::of(request);
    let html = accept.quality(&["text/html"]);
    html > 0 && html >= accept.quality(&["text/plain"])
}

/// The media ranges in `Accept`, such as `text/*`, with their weights in thousandths.
struct Accept(Vec<(String, u16)>);

// === impl Accept ===

impl Accept {
    fn of(request: &HeaderMap) -> Self {
        let fields = request.get_all(header::ACCEPT);
        let ranges = fields
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .map(|range| {
                let mut parts = range.split(';').map(str::trim);
                let media_range = parts.next().unwrap_or_default().to_ascii_lowercase();
                let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
                (media_range, weight.map_or(1000, thousandths))
            });
        Self(ranges.collect())
    }

    /// Returns the weight of the first of `ranges` that `Accept` contains. Name the most specific range first.
    fn quality(&self, ranges: &[&str]) -> u16 {
        ranges
            .iter()
            .find_map(|range| self.0.iter().find(|(there, _)| there == range))
            .map_or(0, |(_, weight)| *weight)
    }
}

/// Converts a weight, such as `0.5`, to thousandths (RFC 9110 §12.4.2). Text that is not a number becomes 0.
pub(super) fn thousandths(weight: &str) -> u16 {
    let weight: f32 = weight.parse().unwrap_or(0.0);
    // The cast saturates, and converts NaN to 0.
    (weight.clamp(0.0, 1.0) * 1000.0) as u16
}
