//! Which of the two texts a client asks for.

/// A text that Prometheus reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus' own, version 0.0.4.
    Prometheus,
}

// === impl Format ===

impl Format {
    /// By the `Accept` field of a request: OpenMetrics for whoever names it, else what everybody reads.
    pub fn accepted(accept: Option<&str>) -> Self {
        let mut ranges = accept.unwrap_or_default().split(',');
        let asks = ranges.any(|range| {
            let mut parts = range.split(';').map(str::trim);
            let named = parts
                .next()
                .is_some_and(|range| range.eq_ignore_ascii_case("application/openmetrics-text"));
            let mut weights = parts.filter_map(|part| part.strip_prefix("q="));
            named && !weights.any(|weight| weight.parse() == Ok(0.0))
        });
        if asks { Self::OpenMetrics } else { Self::Prometheus }
    }

    /// The `Content-Type` of the text.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openmetrics_is_for_whoever_names_it() {
        let of_prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1";
        for (accept, format) in [
            (None, Format::Prometheus),
            (Some(""), Format::Prometheus),
            (Some("*/*"), Format::Prometheus),
            (Some("text/plain"), Format::Prometheus),
            (Some(of_prometheus), Format::OpenMetrics),
            (Some("text/html, Application/OpenMetrics-Text"), Format::OpenMetrics),
            (
                Some("application/openmetrics-text; q=0, text/plain"),
                Format::Prometheus,
            ),
        ] {
            assert_eq!(Format::accepted(accept), format, "{accept:?}");
        }
    }
}
