//! Spans, their parents and attributes, metrics, and what an upstream gets to see of a trace.

use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use relay_sim::fixtures::codex as wire;
use relay_sim::{Reply, Script, Seen, Upstream};

use crate::collector::{attributes_of, collector, metrics_in, said, spans, spans_in, telling};
use crate::support::{Bench, SOON, TURN, plain, towards};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A service that is at capacity once, and answers then.
async fn busy_once() -> Upstream {
    let refused = || wire::overloaded_503().header("x-request-id", "req-1");
    let script =
        Script::by(move |_, number| if number == 0 { refused() } else { Reply::sse(wire::turn("x")) });
    Upstream::start(script).await.unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The call's span, and those of its sends.
fn sorted(spans: Vec<Span>) -> (Span, Vec<Span>) {
    let is_call = |span: &Span| span.kind() == SpanKind::Server;
    let (mut calls, mut sends): (Vec<_>, Vec<_>) = spans.into_iter().partition(is_call);
    assert_eq!(calls.len(), 1, "{calls:#?}");
    sends.sort_by_key(|send| (send.start_time_unix_nano, send.end_time_unix_nano));
    (calls.swap_remove(0), sends)
}

#[tokio::test]
async fn a_call_is_a_span_with_one_for_each_send_below_the_clients() {
    let (up, collector) = (busy_once().await, collector(|_| Reply::status(200)).await);
    let bench = Bench::with(telling(towards(&up.url()), &collector.url())).await;
    let asked = plain(TURN).header("traceparent", PARENT).header("tracestate", "vendor=1");
    assert_eq!(bench.ask(&asked.header("x-request-id", "mine-1")).await.status, 200);
    let (call, sends) = sorted(spans(&collector, 3).await);
    assert_eq!(hex(&call.trace_id), "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(hex(&call.parent_span_id), "b7ad6b7169203331");
    // Sampled, and its parent is known to be another program's.
    assert_eq!((call.name.as_str(), call.flags, call.status.as_ref()), ("call gpt-x", 0x301, None));
    let words = said(&call);
    for (key, value) in [
        ("steady_relay.call", "c1"),
        ("steady_relay.outcome", "served"),
        ("steady_relay.sends", "2"),
        ("steady_relay.capacity_faults", "1"),
        ("steady_relay.request_id", "mine-1"),
        ("gen_ai.request.model", "gpt-x"),
        ("http.response.status_code", "200"),
    ] {
        assert_eq!(words[key], value, "{key}");
    }
    assert!(!words.contains_key("error.type") && !words.contains_key("gen_ai.usage.input_tokens"));
    let names: Vec<_> = call.events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["wait", "committed"]);
    let wait = attributes_of(&call.events[0].attributes);
    assert_eq!(
        (wait["steady_relay.why"].as_str(), wait["steady_relay.planned"].as_str()),
        ("backoff", "0.020")
    );
    let [first, second] = &sends[..] else { panic!("{sends:#?}") };
    for send in [first, second] {
        assert_eq!((send.kind(), send.name.as_str()), (SpanKind::Client, "chat gpt-x"));
        assert_eq!(
            (&send.trace_id, &send.parent_span_id, send.flags),
            (&call.trace_id, &call.span_id, 0x101)
        );
        assert!(call.start_time_unix_nano <= send.start_time_unix_nano);
        assert!(send.start_time_unix_nano <= send.end_time_unix_nano);
        assert!(send.end_time_unix_nano <= call.end_time_unix_nano);
    }
    assert!(first.end_time_unix_nano <= second.start_time_unix_nano && first.span_id != second.span_id);
    let (refused, answered) = (said(first), said(second));
    for (key, value) in [
        ("error.type", "at_capacity"),
        ("steady_relay.evidence", "refused"),
        ("steady_relay.request_id", "req-1"),
        ("http.response.status_code", "503"),
    ] {
        assert_eq!(refused[key], value, "{key}");
    }
    // 2 is an error.
    assert_eq!(
        first.status.as_ref().map(|status| (status.code, status.message.as_str())),
        Some((2, "at_capacity"))
    );
    assert_eq!((second.status.as_ref(), answered.get("error.type")), (None, None));
    for (key, value) in [
        ("http.request.resend_count", "1"),
        ("gen_ai.provider.name", "openai"),
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.request.model", "gpt-x"),
        ("server.address", "127.0.0.1"),
    ] {
        assert!(answered[key].starts_with(value), "{key}: {}", answered[key]);
    }
    assert!(answered.contains_key("gen_ai.usage.output_tokens"), "{answered:?}");
    // What the client said went on as it was.
    for sent in up.requests() {
        assert_eq!((sent.header("traceparent"), sent.header("tracestate")), (Some(PARENT), Some("vendor=1")));
    }
}

#[tokio::test]
async fn where_it_is_wanted_an_upstream_gets_the_span_of_its_send() {
    let (up, collector) = (busy_once().await, collector(|_| Reply::status(200)).await);
    let mut config = telling(towards(&up.url()), &collector.url());
    config.otlp.propagate = true;
    let bench = Bench::with(config).await;
    let asked = plain(TURN).header("Traceparent", PARENT).header("tracestate", "vendor=1");
    assert_eq!(bench.ask(&asked).await.status, 200);
    let (_, sends) = sorted(spans(&collector, 3).await);
    let got = up.requests();
    assert_eq!(got.len(), 2);
    for (got, send) in got.iter().zip(&sends) {
        let expected = format!("00-0af7651916cd43dd8448eb211c80319c-{}-01", hex(&send.span_id));
        assert_eq!(got.header_values("traceparent"), [expected.as_str()]);
        assert_eq!(got.header("tracestate"), Some("vendor=1"));
    }
}

#[tokio::test]
async fn without_a_parent_a_trace_begins_and_one_that_is_not_recorded_is_not_sent() {
    let (up, collector) = (busy_once().await, collector(|_| Reply::status(200)).await);
    let mut config = telling(towards(&up.url()), &collector.url());
    config.otlp.propagate = true;
    let bench = Bench::with(config).await;
    let unrecorded = PARENT.replace("-01", "-00");
    assert_eq!(bench.ask(&plain(TURN).header("traceparent", &unrecorded)).await.status, 200);
    let invalid = plain(TURN).header("traceparent", "00-nonsense").header("tracestate", "vendor=1");
    assert_eq!(bench.ask(&invalid).await.status, 200);
    let (call, sends) = sorted(spans(&collector, 2).await);
    assert_eq!((call.parent_span_id.len(), call.flags, sends.len()), (0, 0x103, 1));
    assert_eq!(said(&call)["steady_relay.call"], "c2");
    let got = up.requests();
    // That nobody records it goes on.
    assert!(got[0].header("traceparent").unwrap().ends_with("-00"));
    assert_eq!(got[2].header("tracestate"), None);
    assert!(got[2].header("traceparent").unwrap().contains(&hex(&call.trace_id)));
    bench.drain().await;
    assert_eq!(spans_in(&collector.requests()).len(), 2, "nothing was sent of the first");
}

#[tokio::test]
async fn metrics_are_those_that_are_shown() {
    let (up, collector) = (busy_once().await, collector(|_| Reply::status(200)).await);
    let mut config = telling(towards(&up.url()), &collector.url());
    config.otlp.traces = false;
    let bench = Bench::with(config).await;
    assert_eq!(bench.ask(&plain(TURN)).await.status, 200);
    let counted_in = |seen: &[Seen], name: &str| {
        let data = metrics_in(seen).remove(name)?.data?;
        match data {
            Data::Sum(sum) => {
                assert!(sum.is_monotonic && sum.aggregation_temporality == 2);
                sum.data_points.first().cloned()
            }
            Data::Gauge(gauge) => gauge.data_points.first().cloned(),
            other @ (Data::Histogram(_) | Data::ExponentialHistogram(_) | Data::Summary(_)) => {
                panic!("{other:?}")
            }
        }
    };
    let is_told = collector.wait_for(SOON, |seen| counted_in(seen, "steady_relay_calls").is_some()).await;
    let counted = |name: &str| counted_in(&collector.requests(), name);
    assert!(is_told, "{:#?}", metrics_in(&collector.requests()));
    let calls = counted("steady_relay_calls").unwrap();
    assert_eq!(calls.value, Some(Value::AsInt(1)));
    assert!(calls.start_time_unix_nano > 0 && calls.start_time_unix_nano <= calls.time_unix_nano);
    let labels = attributes_of(&calls.attributes);
    assert_eq!((labels["model"].as_str(), labels["outcome"].as_str()), ("gpt-x", "served"));
    assert_eq!(counted("steady_relay_sends").unwrap().value, Some(Value::AsInt(2)));
    let faults = counted("steady_relay_faults").unwrap();
    assert_eq!(attributes_of(&faults.attributes)["fault"], "at_capacity");
    assert_eq!(counted("steady_relay_open_calls").unwrap().value, Some(Value::AsInt(0)));
    let metrics = metrics_in(&collector.requests());
    let Some(Data::Histogram(waits)) = &metrics["steady_relay_wait_seconds"].data else {
        panic!("{metrics:?}")
    };
    assert_eq!((waits.data_points[0].count, metrics["steady_relay_wait_seconds"].unit.as_str()), (1, "s"));
    assert_eq!(spans_in(&collector.requests()), [], "traces are switched off");
}

#[tokio::test]
async fn what_is_switched_off_is_not_sent() {
    let (up, collector) = (busy_once().await, collector(|_| Reply::status(200)).await);
    let mut config = telling(towards(&up.url()), &collector.url());
    config.otlp.metrics = false;
    let bench = Bench::with(config).await;
    assert_eq!(bench.ask(&plain(TURN)).await.status, 200);
    assert_eq!(spans(&collector, 3).await.len(), 3);
    bench.drain().await;
    assert!(metrics_in(&collector.requests()).is_empty());
}
