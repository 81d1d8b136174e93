//! Anthropic Messages, for the API and for Claude subscriptions.

use super::{Dialect, Heard, Parts, Rule, Statuses};
use crate::evidence::Says;
use crate::fault::Fault;
use crate::json;
use crate::sse;

/// The dialect.
#[derive(Debug)]
pub(super) struct Anthropic;

const CLAUDE_CODE: &str = "Claude Code 2.1.332, source";
const API: &str = "Anthropic API, errors";
/// Why a subscription may not go on at a price.
const DISABLED: &str = "anthropic-ratelimit-unified-overage-disabled-reason";

const RULES: &[Rule] = &[
    // The service could not look the plan up: a short wait, not the end of the plan.
    Rule::header(
        [DISABLED, "fetch_error"],
        Statuses::Only(429),
        Fault::Throttled,
        Says::Refused,
        CLAUDE_CODE,
    ),
    Rule::header([DISABLED, "unknown"], Statuses::Only(429), Fault::Throttled, Says::Refused, CLAUDE_CODE),
    // A cap that the organisation has set is reached: until the month ends.
    Rule::header(
        [DISABLED, "contract_spend_limit_reached"],
        Statuses::Only(429),
        Fault::QuotaSpent,
        Says::Final,
        CLAUDE_CODE,
    ),
    Rule::header(
        [DISABLED, "service_spend_limit_reached"],
        Statuses::Only(429),
        Fault::QuotaSpent,
        Says::Final,
        CLAUDE_CODE,
    ),
    Rule::header(
        [DISABLED, "org_spend_cap_reached"],
        Statuses::Only(429),
        Fault::QuotaSpent,
        Says::Final,
        CLAUDE_CODE,
    ),
    // A subscription's window is used up: hours to days.
    Rule::header(
        ["anthropic-ratelimit-unified-status", "rejected"],
        Statuses::Only(429),
        Fault::QuotaSpent,
        Says::Final,
        CLAUDE_CODE,
    ),
    Rule::code("enforced_spend_limit_reached", Statuses::Any, Fault::QuotaSpent, Says::Final, API),
    Rule::code("contract_spend_limit_reached", Statuses::Any, Fault::QuotaSpent, Says::Final, CLAUDE_CODE),
    Rule::code("service_spend_limit_reached", Statuses::Any, Fault::QuotaSpent, Says::Final, CLAUDE_CODE),
    Rule::code("org_spend_cap_reached", Statuses::Any, Fault::QuotaSpent, Says::Final, CLAUDE_CODE),
    Rule::code("credits_required", Statuses::Any, Fault::QuotaSpent, Says::Final, CLAUDE_CODE),
    Rule::invalid("credit balance is too low", Fault::QuotaSpent, API),
    Rule::invalid("prompt is too long", Fault::TooLong, CLAUDE_CODE),
    Rule::invalid("exceed context limit", Fault::TooLong, CLAUDE_CODE),
    Rule::code("timeout_error", Statuses::Any, Fault::ServerFailed, Says::MaybeRan, API),
];

impl Dialect for Anthropic {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn rules(&self) -> &'static [Rule] {
        RULES
    }

    fn hear(&self, event: &sse::Event<'_>, _parts: &mut Parts) -> Heard {
        if event.data.trim_ascii().is_empty() {
            return Heard::Lifecycle;
        }
        let kind = super::generic::kind(event);
        match kind.as_deref() {
            Some("message_start" | "ping") => Heard::Lifecycle,
            Some("error") => Heard::Fault,
            Some("message_stop") => Heard::End,
            // A gateway may speak of its own failures without a type.
            None if json::is_top_level_error(event.data) => Heard::Fault,
            Some(_) | None => Heard::Output,
        }
    }

    fn names_its_end(&self) -> bool {
        true
    }

    fn heartbeat(&self) -> Option<&'static str> {
        // What the service itself sends, also before the opening event (Anthropic API, streaming).
        Some("event: ping\ndata: {\"type\": \"ping\"}\n\n")
    }

    fn error_event(&self, error: &serde_json::Value) -> String {
        format!("event: error\ndata: {error}\n\n")
    }

    fn error_body(&self, _status: u16, fault: Fault, code: &str, message: &str) -> serde_json::Value {
        let kind = match fault {
            Fault::Overloaded | Fault::AtCapacity | Fault::ModelLoading => "overloaded_error",
            Fault::Throttled => "rate_limit_error",
            Fault::QuotaSpent => "billing_error",
            Fault::Authentication => "authentication_error",
            Fault::BadRequest | Fault::TooLong | Fault::ContentRefused => "invalid_request_error",
            Fault::Challenge => "permission_error",
            Fault::ServerFailed
            | Fault::BrokenStream
            | Fault::EmptyAnswer
            | Fault::NoAnswer
            | Fault::NeverSent => "api_error",
        };
        serde_json::json!({ "type": "error", "error": { "type": kind, "message": message, "code": code } })
    }
}
