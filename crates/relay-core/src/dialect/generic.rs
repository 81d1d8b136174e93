//! What nothing else recognises: an API of its own behind the relay. Any event is output unless it is an error
//! and nothing else, and no end is known, so a tidy end is an end.

use std::borrow::Cow;

use super::{Dialect, Heard, Parts, Rule};
use crate::fault::Fault;
use crate::json;
use crate::sse;

/// The dialect.
#[derive(Debug)]
pub(super) struct Generic;

impl Dialect for Generic {
    fn name(&self) -> &'static str {
        super::GENERIC
    }

    fn rules(&self) -> &'static [Rule] {
        &[]
    }

    fn hear(&self, event: &sse::Event<'_>, _parts: &mut Parts) -> Heard {
        if event.data.trim_ascii().is_empty() {
            Heard::Lifecycle
        } else if event.data.trim_ascii() == b"[DONE]" {
            Heard::End
        } else if event.name == b"error" || json::is_top_level_error(event.data) {
            Heard::Fault
        } else {
            Heard::Output
        }
    }

    fn names_its_end(&self) -> bool {
        false
    }

    fn error_body(&self, _status: u16, fault: Fault, code: &str, message: &str) -> serde_json::Value {
        openai_error(fault, code, message)
    }
}

/// An event's kind: its `event:` name, or the `type` inside its JSON where it has none but the default one.
pub(super) fn kind<'a>(event: &sse::Event<'a>) -> Option<Cow<'a, str>> {
    if event.name.is_empty() || event.name == b"message" {
        json::type_of(event.data)
    } else {
        std::str::from_utf8(event.name).ok().map(Cow::Borrowed)
    }
}

/// The OpenAI shape of an error, which most clients read.
pub(super) fn openai_error(fault: Fault, code: &str, message: &str) -> serde_json::Value {
    let kind = match fault {
        Fault::Throttled => "rate_limit_error",
        Fault::QuotaSpent => "insufficient_quota",
        Fault::AtCapacity | Fault::Overloaded | Fault::ModelLoading => "service_unavailable_error",
        Fault::Authentication
        | Fault::BadRequest
        | Fault::TooLong
        | Fault::ContentRefused
        | Fault::Challenge => "invalid_request_error",
        Fault::ServerFailed
        | Fault::BrokenStream
        | Fault::EmptyAnswer
        | Fault::NoAnswer
        | Fault::NeverSent => "server_error",
    };
    serde_json::json!({ "error": { "message": message, "type": kind, "param": null, "code": code } })
}
