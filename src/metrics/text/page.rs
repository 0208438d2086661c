//! Writes families, one after the other.

use std::fmt;

use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeGaugeValue, MetricEncoder, NoLabelSet},
    metrics::{MetricType, exemplar::Exemplar},
};

use crate::metrics::{Format, histogram::Histogram};

/// What is written to.
pub(super) struct Page<'a> {
    encoder: DescriptorEncoder<'a>,
    format: Format,
}

// === impl Page ===

impl<'a> Page<'a> {
    pub(super) fn new(encoder: DescriptorEncoder<'a>, format: Format) -> Self {
        Self { encoder, format }
    }

    /// A counter; `name` is without `_total`.
    pub(super) fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.counters(name, help, [([], value)])
    }

    /// Counters of one name, each under its labels. None may come twice.
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
            // Where the name is the family's, the suffix of the value is, too.
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

    /// Gauges of one name, each under its labels. None may come twice.
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
        // An empty set would be written as `{}`.
        match N {
            0 => write(&mut family, value)?,
            _ => write(&mut family.encode_family(&labels)?, value)?,
        }
    }
    Ok(())
}
