//! Writes counters, gauges and histograms in the two text formats for metrics.

use std::fmt;

use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeGaugeValue, MetricEncoder, NoLabelSet},
    metrics::{MetricType, exemplar::Exemplar},
};

use super::histogram::Histogram;

/// A text format for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// The Prometheus text format, version 0.0.4.
    Prometheus,
}

pub(super) struct Page<'a> {
    encoder: DescriptorEncoder<'a>,
    format: Format,
}

// === impl Format ===

impl Format {
    /// Selects OpenMetrics if the `Accept` field of a request names it with a weight above 0, otherwise the Prometheus
    /// format.
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

    /// Returns the `Content-Type` of the text.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

// === impl Page ===

impl<'a> Page<'a> {
    pub(super) fn new(encoder: DescriptorEncoder<'a>, format: Format) -> Self {
        Self { encoder, format }
    }

    /// `name` does not include the suffix `_total`.
    pub(super) fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.counters(name, help, [([], value)])
    }

    /// No two series may have the same values of their labels.
    pub(super) fn counters<'l, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        series: impl IntoIterator<Item = ([(&'l str, &'l str); N], u64)>,
    ) -> fmt::Result {
        let total = format!("{name}_total");
        match self.format {
            Format::OpenMetrics => {
                let family = self.encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
                each(family, series, |one, value| {
                    one.encode_counter(&value, None::<&Exemplar<NoLabelSet, u64>>)
                })
            }
            // In this format, the `# HELP` and `# TYPE` lines of a counter also have the suffix `_total`.
            Format::Prometheus => {
                let family = self
                    .encoder
                    .encode_descriptor(&total, help, None, MetricType::Counter)?;
                each(family, series, |one, value| one.encode_gauge(&value))
            }
        }
    }

    pub(super) fn counter_f64(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        let total = format!("{name}_total");
        match self.format {
            Format::OpenMetrics => self
                .encoder
                .encode_descriptor(name, help, None, MetricType::Counter)?
                .encode_counter(&value, None::<&Exemplar<NoLabelSet, f64>>),
            Format::Prometheus => self
                .encoder
                .encode_descriptor(&total, help, None, MetricType::Counter)?
                .encode_gauge(&value),
        }
    }

    pub(super) fn gauge(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.gauges(name, help, [([], value)])
    }

    pub(super) fn gauge_f64(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        self.all_gauges(name, help, [([], value)])
    }

    pub(super) fn gauges<'l, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        series: impl IntoIterator<Item = ([(&'l str, &'l str); N], u64)>,
    ) -> fmt::Result {
        self.all_gauges(name, help, series)
    }

    fn all_gauges<'l, V: EncodeGaugeValue, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        series: impl IntoIterator<Item = ([(&'l str, &'l str); N], V)>,
    ) -> fmt::Result {
        let family = self.encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        each(family, series, |one, value| one.encode_gauge(&value))
    }

    pub(super) fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) -> fmt::Result {
        let counted = histogram.counted();
        self.encoder
            .encode_descriptor(name, help, None, MetricType::Histogram)?
            .encode_histogram::<NoLabelSet>(counted.sum, counted.count, &counted.buckets, None)
    }
}

fn each<'l, V, const N: usize>(
    mut family: MetricEncoder<'_>,
    series: impl IntoIterator<Item = ([(&'l str, &'l str); N], V)>,
    write: impl Fn(&mut MetricEncoder<'_>, V) -> fmt::Result,
) -> fmt::Result {
    for (labels, value) in series {
        // The encoder would write an empty set of labels as `{}`.
        match N {
            0 => write(&mut family, value)?,
            _ => write(&mut family.encode_family(&labels)?, value)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openmetrics_is_sent_only_to_clients_that_accept_it_by_name() {
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
