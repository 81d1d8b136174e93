//! Where traces and metrics are sent by OTLP.

use crate::base_url::BaseUrl;
use http::{HeaderName, HeaderValue};
use std::time::Duration;

/// What is sent to a collector of OpenTelemetry, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtlpSettings {
    /// The collector; the paths of traces and metrics are appended. `None`: nothing is sent.
    pub endpoint: Option<BaseUrl>,
    /// Headers of each request to it. Their values are secret.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// What the relay is called there.
    pub service_name: String,
    /// Whether traces are sent: who names a collector wants them.
    pub traces: bool,
    /// Whether metrics are sent.
    pub metrics: bool,
    /// How often. A minute, as OpenTelemetry has it.
    pub interval: Duration,
    /// Whether an upstream gets the relay's own span in place of the client's. Off: what a client sends goes on as it is.
    pub propagate: bool,
}

impl Default for OtlpSettings {
    fn default() -> Self {
        Self {
            endpoint: None,
            headers: Vec::new(),
            service_name: "steady-relay".to_owned(),
            traces: true,
            metrics: true,
            interval: Duration::from_secs(60),
            propagate: false,
        }
    }
}

impl OtlpSettings {
    /// Whether calls have a place in a trace.
    #[must_use]
    pub const fn has_traces(&self) -> bool {
        self.endpoint.is_some() && self.traces
    }
}
