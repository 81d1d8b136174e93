//! A collector that takes what it is sent, and what the tests ask of that.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use relay_core::config::Config;
use relay_sim::{Reply, Script, Seen, Upstream};

use crate::support::{SOON, ms};

/// A place that answers like this.
pub(crate) async fn collector(reply: impl Fn(usize) -> Reply + Send + Sync + 'static) -> Upstream {
    Upstream::start(Script::by(move |_, number| reply(number))).await.unwrap()
}

/// The same settings, with everything sent there soon.
pub(crate) fn telling(mut config: Config, collector: &str) -> Config {
    config.otlp.endpoint = Some(collector.parse().unwrap());
    config.otlp.interval = ms(100);
    config
}

fn decoded<M: Message + Default>(seen: &Seen) -> M {
    assert_eq!(
        (seen.method.as_str(), seen.header("content-type")),
        ("POST", Some("application/x-protobuf")),
        "{seen:?}"
    );
    M::decode(seen.body.as_slice()).unwrap()
}

/// All spans that these requests hold, with what their resource is.
pub(crate) fn spans_in(seen: &[Seen]) -> Vec<Span> {
    let of_traces = seen.iter().filter(|seen| seen.path() == "/v1/traces" && seen.body_complete);
    let mut all = Vec::new();
    for request in of_traces.map(decoded::<ExportTraceServiceRequest>) {
        for of in request.resource_spans {
            resource_is_ours(&of.resource.unwrap().attributes);
            for scoped in of.scope_spans {
                assert_eq!(scoped.scope.unwrap().name, "steady-relay");
                all.extend(scoped.spans);
            }
        }
    }
    all
}

/// The metrics of the last request that holds some.
pub(crate) fn metrics_in(seen: &[Seen]) -> BTreeMap<String, Metric> {
    let last = seen.iter().rfind(|seen| seen.path() == "/v1/metrics" && seen.body_complete);
    let mut all = BTreeMap::new();
    let request = last.map(decoded::<ExportMetricsServiceRequest>).unwrap_or_default();
    for of in request.resource_metrics {
        resource_is_ours(&of.resource.unwrap().attributes);
        let metrics = of.scope_metrics.into_iter().flat_map(|scoped| scoped.metrics);
        all.extend(metrics.map(|metric| (metric.name.clone(), metric)));
    }
    all
}

fn resource_is_ours(attributes: &[KeyValue]) {
    let all = attributes_of(attributes);
    assert_eq!(all["service.version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(all["service.instance.id"].len(), 16);
    assert!(all.contains_key("service.name"), "{all:?}");
}

/// Waits until so many spans were sent, and gives them, those that began first before the others.
pub(crate) async fn spans(collector: &Upstream, count: usize) -> Vec<Span> {
    let in_time = collector.wait_for(SOON, |seen| spans_in(seen).len() >= count).await;
    let mut spans = spans_in(&collector.requests());
    assert!(in_time, "{} spans: {spans:#?}", spans.len());
    spans.sort_by_key(|span| span.start_time_unix_nano);
    spans
}

/// Attributes as text.
pub(crate) fn attributes_of(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let said = |value: &KeyValue| match value.value.as_ref().unwrap().value.as_ref().unwrap() {
        Value::StringValue(text) => text.clone(),
        Value::IntValue(number) => number.to_string(),
        Value::DoubleValue(number) => format!("{number:.3}"),
        Value::BoolValue(is_so) => is_so.to_string(),
        other @ (Value::ArrayValue(_)
        | Value::KvlistValue(_)
        | Value::BytesValue(_)
        | Value::StringValueStrindex(_)) => panic!("{other:?}"),
    };
    attributes.iter().map(|value| (value.key.clone(), said(value))).collect()
}

/// The attributes of a span.
pub(crate) fn said(span: &Span) -> BTreeMap<String, String> {
    attributes_of(&span.attributes)
}
