//! Who it is that tells, and the values that are told.

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;

use crate::clock::drawn;

/// Who tells.
#[derive(Debug, Clone)]
pub(super) struct Teller {
    service_name: String,
    /// What tells this relay from another of the same name.
    instance: String,
}

impl Teller {
    pub(super) fn named(service_name: &str) -> Self {
        Self { service_name: service_name.to_owned(), instance: format!("{:016x}", drawn()) }
    }

    pub(super) fn resource(&self) -> Resource {
        let attributes = vec![
            text("service.name", &self.service_name),
            text("service.version", env!("CARGO_PKG_VERSION")),
            text("service.instance.id", &self.instance),
        ];
        Resource { attributes, ..Resource::default() }
    }
}

/// What the names of spans and metrics belong to.
pub(super) fn scope() -> InstrumentationScope {
    let (name, version) = ("steady-relay".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    InstrumentationScope { name, version, ..InstrumentationScope::default() }
}

/// An attribute.
pub(super) fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Value::StringValue(value.to_owned()))
}

/// An attribute that counts.
pub(super) fn number(key: &str, value: u64) -> KeyValue {
    attribute(key, Value::IntValue(i64::try_from(value).unwrap_or(i64::MAX)))
}

/// An attribute in seconds.
pub(super) fn seconds(key: &str, millis: u64) -> KeyValue {
    attribute(key, Value::DoubleValue(std::time::Duration::from_millis(millis).as_secs_f64()))
}

/// An attribute that is so.
pub(super) fn is_so(key: &str) -> KeyValue {
    attribute(key, Value::BoolValue(true))
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}
