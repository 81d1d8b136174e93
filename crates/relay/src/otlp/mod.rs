//! Traces and metrics for a collector of OpenTelemetry, by OTLP over HTTP; with the feature `otlp`.
//!
//! ```text
//!  events --> queue (bounded) --> task, now and then: assemble --> spans (bounded) --> collector
//!         \-> metrics ---------------------------- as text, as at /metrics -------->
//! ```
//!
//! An observer as every other: nobody who makes an event waits for it, and what finds no room is counted and told of. A
//! span holds what a record of the history does: labels, numbers and names of ours.

#[cfg(not(feature = "otlp"))]
mod absent;
#[cfg(feature = "otlp")]
mod exporter;
#[cfg(feature = "otlp")]
mod metrics;
#[cfg(feature = "otlp")]
mod resource;
#[cfg(feature = "otlp")]
mod spans;

#[cfg(not(feature = "otlp"))]
pub(crate) use absent::{Otlp, close, export};
#[cfg(feature = "otlp")]
pub(crate) use exporter::{Otlp, close, export};
