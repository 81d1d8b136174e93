//! `[otlp]`.

use super::upstream::header;
use crate::settings::read::Key;
use http::{HeaderName, HeaderValue};
use relay_core::config::OtlpSettings;
use relay_core::units::Invalid;
use std::ops::RangeInclusive;
use std::time::Duration;

/// More often than ten times a second nobody looks, and what is older than an hour is of no use.
const INTERVALS: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(3600);

/// `[otlp]`.
pub(in crate::settings) const OTLP: &[Key<OtlpSettings>] = &[
    Key {
        name: "endpoint",
        shape: "URL",
        default: "",
        doc: "The collector that traces and metrics are sent to, by OTLP over HTTP: `http://127.0.0.1:4318`; `/v1/traces` \
              and `/v1/metrics` are appended. Not set: nothing is sent. Also `OTEL_EXPORTER_OTLP_ENDPOINT`.",
        set: |otlp, given| given.parsed().map(|value| otlp.endpoint = Some(value)),
    },
    Key {
        name: "headers",
        shape: "table of texts",
        default: "{}",
        doc: "Headers of each request to the collector, such as its key. They are shown nowhere. \
              Also `OTEL_EXPORTER_OTLP_HEADERS`, as `name=value,name=value`.",
        set: |otlp, given| {
            otlp.headers = given.named_texts()?.into_iter().map(header).collect::<Result<_, _>>()?;
            Ok(())
        },
    },
    Key {
        name: "service_name",
        shape: "text",
        default: "\"steady-relay\"",
        doc: "What the relay is called there. Also `OTEL_SERVICE_NAME`.",
        set: |otlp, given| given.text().map(|text| text.clone_into(&mut otlp.service_name)),
    },
    Key {
        name: "traces",
        shape: "true or false",
        default: "true",
        doc: "Whether traces are sent: a span for each call that is over, and one for each of its sends.",
        set: |otlp, given| given.flag().map(|value| otlp.traces = value),
    },
    Key {
        name: "metrics",
        shape: "true or false",
        default: "true",
        doc: "Whether metrics are sent: those of `metrics_port`, which need not be set for it.",
        set: |otlp, given| given.flag().map(|value| otlp.metrics = value),
    },
    Key {
        name: "interval",
        shape: "time",
        default: "\"60s\"",
        doc: "How often metrics are sent. Traces are sent within 5 s, or in this time where that is shorter.",
        set: |otlp, given| given.duration(INTERVALS).map(|value| otlp.interval = value),
    },
    Key {
        name: "propagate",
        shape: "true or false",
        default: "false",
        doc: "Whether an upstream gets the `traceparent` of the relay's own span of a send, in place of the client's; not over \
              a WebSocket. `false`: what a client sends passes unchanged.",
        set: |otlp, given| given.flag().map(|value| otlp.propagate = value),
    },
];

/// Headers as a variable holds them: `name=value,name=value`, the values percent-encoded where they have to be.
pub(in crate::settings) fn headers(text: &str) -> Result<Vec<(HeaderName, HeaderValue)>, Invalid> {
    let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    let read = |pair: &str| {
        let (name, value) = pair.split_once('=').ok_or_else(|| {
            Invalid::new("is no list of headers", "write name=value,name=value, with %20 for a space")
        })?;
        header((name.trim(), &decoded(value.trim())))
    };
    pairs.map(read).collect()
}

/// With each `%20` as the character that it stands for; what stands for none stays.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits =
            after.get(..2).filter(|digits| *first == b'%' && digits.iter().all(u8::is_ascii_hexdigit));
        let byte = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_as_a_variable_holds_them() {
        let read = |text: &str| {
            headers(text).map(|all| {
                let said = |(name, value): &(HeaderName, HeaderValue)| {
                    assert!(value.is_sensitive());
                    format!("{name}: {}", value.to_str().unwrap_or("?"))
                };
                all.iter().map(said).collect::<Vec<_>>()
            })
        };
        assert_eq!(read(""), Ok(vec![]));
        assert_eq!(
            read("authorization=Basic%20a=b, X-Team = blue ,"),
            Ok(vec!["authorization: Basic a=b".to_owned(), "x-team: blue".to_owned()])
        );
        assert_eq!(read("a=100%,b=%zz,c=%2"), Ok(vec!["a: 100%".into(), "b: %zz".into(), "c: %2".into()]));
        for bad in ["alone", "a b=c", "a=b%0ac", "host=x"] {
            let error = read(bad).unwrap_err();
            assert!(!error.why.contains("b%0ac"), "{error}");
        }
    }
}
