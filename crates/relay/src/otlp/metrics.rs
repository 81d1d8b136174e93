//! The metrics as OTLP has them, from the text that `/metrics` shows: so both tell the same, whatever is added. The
//! registry can be read as text alone, unless a compiler of protocol buffers is at hand when the relay is built.

use std::str::FromStr;

use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, Sum,
};

use super::resource::text as attribute;

/// The times that the figures belong to, in nanoseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) start: u64,
    pub(super) now: u64,
}

/// The metrics of a text in the form of OpenMetrics, as the registry writes it.
pub(super) fn metrics(text: &str, span: Span) -> Vec<Metric> {
    let mut all: Vec<Metric> = Vec::new();
    let mut description = "";
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            description = help.split_once(' ').map_or("", |(_, help)| help);
        } else if let Some(head) = line.strip_prefix("# TYPE ") {
            let Some((name, data)) = head.split_once(' ').and_then(|(name, kind)| Some((name, empty(kind)?)))
            else {
                continue;
            };
            let unit = if name.ends_with("_seconds") { "s" } else { "" };
            all.push(Metric {
                name: name.to_owned(),
                description: description.to_owned(),
                unit: unit.to_owned(),
                data: Some(data),
                ..Metric::default()
            });
        } else if let Some(sample) = Sample::of(line)
            && let Some(metric) = all.last_mut()
            && let Some(part) = sample.name.strip_prefix(metric.name.as_str())
            && let Some(data) = &mut metric.data
        {
            add(data, part, &sample, span);
        }
    }
    all
}

/// A metric of this kind without figures.
fn empty(kind: &str) -> Option<Data> {
    let cumulative = AggregationTemporality::Cumulative.into();
    match kind {
        "counter" => {
            Some(Data::Sum(Sum { aggregation_temporality: cumulative, is_monotonic: true, ..Sum::default() }))
        }
        "gauge" => Some(Data::Gauge(Gauge::default())),
        "histogram" => {
            Some(Data::Histogram(Histogram { aggregation_temporality: cumulative, ..Histogram::default() }))
        }
        _ => None,
    }
}

/// Adds what a line says; `part` is what its name adds to that of the metric.
fn add(data: &mut Data, part: &str, sample: &Sample<'_>, span: Span) {
    let attributes = || sample.labels.iter().map(|(name, value)| attribute(name, value)).collect();
    let point = |start| NumberDataPoint {
        attributes: attributes(),
        start_time_unix_nano: start,
        time_unix_nano: span.now,
        value: number(sample.value),
        ..NumberDataPoint::default()
    };
    match (data, part) {
        (Data::Sum(sum), "_total") => sum.data_points.push(point(span.start)),
        (Data::Gauge(gauge), "") => gauge.data_points.push(point(0)),
        (Data::Histogram(histogram), "_sum" | "_count" | "_bucket") => {
            into_histogram(&mut histogram.data_points, part, sample, (attributes(), span));
        }
        (
            Data::Sum(_)
            | Data::Gauge(_)
            | Data::Histogram(_)
            | Data::ExponentialHistogram(_)
            | Data::Summary(_),
            _,
        ) => {}
    }
}

fn into_histogram(
    points: &mut Vec<HistogramDataPoint>,
    part: &str,
    sample: &Sample<'_>,
    (attributes, span): (Vec<KeyValue>, Span),
) {
    if points.last().is_none_or(|point| point.attributes != attributes) {
        points.push(HistogramDataPoint {
            attributes,
            start_time_unix_nano: span.start,
            time_unix_nano: span.now,
            ..HistogramDataPoint::default()
        });
    }
    let Some(point) = points.last_mut() else { return };
    match part {
        "_sum" => point.sum = sample.value.parse().ok(),
        "_count" => point.count = sample.value.parse().unwrap_or_default(),
        _ => {
            // There each bucket counts those below it, too.
            let below: u64 = point.bucket_counts.iter().sum();
            let upto: u64 = sample.value.parse().unwrap_or_default();
            point.bucket_counts.push(upto.saturating_sub(below));
            point.explicit_bounds.extend(sample.upto.filter(|upto| upto.is_finite()));
        }
    }
}

fn number(text: &str) -> Option<Value> {
    let whole = i64::from_str(text).map(Value::AsInt);
    whole.or_else(|_fraction| text.parse().map(Value::AsDouble)).ok()
}

/// A line with a figure.
#[derive(Debug, PartialEq)]
struct Sample<'a> {
    name: &'a str,
    /// But `le`.
    labels: Vec<(&'a str, String)>,
    /// The limit of a bucket.
    upto: Option<f64>,
    value: &'a str,
}

impl<'a> Sample<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let end = line.find(['{', ' '])?;
        let (name, rest) = line.split_at(end);
        let (mut labels, mut upto) = (Vec::new(), None);
        let mut rest = rest.strip_prefix('{').unwrap_or(rest);
        while !rest.starts_with([' ', '}']) {
            let (label, after) = rest.split_once("=\"")?;
            let (value, after) = quoted(after)?;
            if label == "le" {
                upto = value.parse().ok();
            } else {
                labels.push((label, value));
            }
            rest = after.strip_prefix(',').unwrap_or(after);
        }
        let value = rest.trim_start_matches('}').strip_prefix(' ')?;
        Some(Self { name, labels, upto, value })
    }
}

/// A value up to its closing quotes, and what follows those.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, text.get(at + 1..)?)),
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use relay_core::Moment;
    use relay_core::event::{CallId, Closing, Event, Outcome};

    use super::*;
    use crate::history::tests::opened;
    use crate::observe::Observer as _;
    use crate::observe::metrics::Metrics;

    const SPAN: Span = Span { start: 1, now: 2 };

    fn ms(millis: u64) -> Moment {
        Moment::after_start(std::time::Duration::from_millis(millis))
    }

    #[test]
    fn whatever_metrics_are_shown_are_sent() {
        let shown = Metrics::default();
        shown.see(CallId(1), ms(0), &opened());
        shown.see(CallId(1), ms(10), &Event::SendStarted { send: 1 });
        shown.see(CallId(1), ms(300), &Event::Committed { send: 1 });
        let took = std::time::Duration::from_millis(600);
        let closing = Closing { took, ..Closing::new(Outcome::Served) };
        shown.see(CallId(1), ms(600), &Event::CallClosed(closing));
        let text = shown.text(&[]);
        let sent = metrics(&text, SPAN);
        let named = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
        assert_eq!(
            sent.iter().map(|metric| metric.name.as_str()).collect::<Vec<_>>(),
            named.collect::<Vec<_>>()
        );
        // As many figures as there are lines with one, of which a histogram has many.
        let figures = |metric: &Metric| match metric.data.as_ref().unwrap() {
            Data::Sum(sum) => sum.data_points.len(),
            Data::Gauge(gauge) => gauge.data_points.len(),
            Data::Histogram(histogram) => {
                histogram.data_points.iter().map(|point| point.bucket_counts.len() + 2).sum()
            }
            other @ (Data::ExponentialHistogram(_) | Data::Summary(_)) => panic!("{other:?}"),
        };
        let lines = text.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(sent.iter().map(figures).sum::<usize>(), lines, "{text}");
        let times = sent.iter().find(|metric| metric.name == "steady_relay_call_seconds").unwrap();
        assert_eq!((times.unit.as_str(), times.description.is_empty()), ("s", false));
        let Some(Data::Histogram(times)) = &times.data else { panic!("{times:?}") };
        let [point] = &times.data_points[..] else { panic!("{times:?}") };
        assert_eq!((point.count, point.sum), (1, Some(0.6)));
        assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
        let at = point.explicit_bounds.iter().position(|bound| *bound >= 0.6).unwrap();
        assert_eq!(point.bucket_counts.iter().position(|count| *count == 1), Some(at));
        assert_eq!(point.bucket_counts.iter().sum::<u64>(), 1);
    }

    #[test]
    fn labels_are_read_as_they_are_written() {
        let sample = Sample::of(r#"a_total{x="1",y="a\"b\\c\nd,}{="} 3.5"#).unwrap();
        assert_eq!(sample.labels, [("x", "1".to_owned()), ("y", "a\"b\\c\nd,}{=".to_owned())]);
        assert_eq!((sample.name, sample.value), ("a_total", "3.5"));
        assert_eq!(Sample::of("open 3").unwrap().value, "3");
        for odd in ["", "name", "name{", "name{x", "name{x=\"1", "name{x=\"1\"}"] {
            assert_eq!(Sample::of(odd), None, "{odd}");
        }
    }
}
