//! Rows that hold in every dialect: gateways hand on each other's codes, so a code means the same wherever it
//! turns up. And the table of statuses, for answers that have no code.

use super::rule::{Rule, Statuses};
use crate::evidence::Says;
use crate::fault::Fault;

use Fault::{
    AtCapacity, Authentication, BadRequest, ContentRefused, Overloaded, QuotaSpent, ServerFailed, Throttled,
    TooLong,
};
use Says::{Failed, Final, Refused};
use Statuses::{Any, Inside, MayHeal, RequestsFault, Unsettled};

const OPENAI: &str = "OpenAI API, error codes";
const CODEX: &str = "Codex CLI 0.171.0, measured";
const GATEWAYS: &str = "documentation of OpenRouter, Groq, Moonshot, Volcengine";

/// Codes and words that mean the same in every dialect.
pub(crate) const RULES: &[Rule] = &[
    // Short of capacity: refused before it ran.
    Rule::code("server_is_overloaded", Unsettled, AtCapacity, Refused, CODEX),
    Rule::code("policy_capacity_unavailable", Unsettled, AtCapacity, Refused, CODEX),
    Rule::code("flex_unavailable", Unsettled, AtCapacity, Refused, CODEX),
    Rule::code("model_at_capacity", Unsettled, AtCapacity, Refused, CODEX),
    Rule::code("resource_unavailable", MayHeal, AtCapacity, Refused, OPENAI),
    Rule::code("capacity_exceeded", Unsettled, AtCapacity, Refused, GATEWAYS),
    Rule::code("service_unavailable_error", Unsettled, AtCapacity, Refused, OPENAI),
    Rule::code("service_unavailable", MayHeal, AtCapacity, Refused, CODEX),
    Rule::code("server_overloaded", Unsettled, Overloaded, Refused, CODEX),
    Rule::code("overloaded_error", Unsettled, Overloaded, Refused, "Anthropic API, errors"),
    Rule::code("overloaded", Unsettled, Overloaded, Refused, GATEWAYS),
    Rule::code("engine_overloaded", Unsettled, Overloaded, Refused, CODEX),
    // Asked too often.
    Rule::code("slow_down", Unsettled, Throttled, Refused, OPENAI),
    Rule::code("rate_limit_exceeded", Unsettled, Throttled, Refused, OPENAI),
    Rule::code("rate_limit_error", Unsettled, Throttled, Refused, "Anthropic API, errors"),
    Rule::code("too_many_requests", Unsettled, Throttled, Refused, GATEWAYS),
    // Spent: minutes to days, no wait in line heals it.
    Rule::code("insufficient_quota", Any, QuotaSpent, Final, OPENAI),
    Rule::code("credit_balance_exhausted", Any, QuotaSpent, Final, OPENAI),
    Rule::code("organization_spend_limit_exceeded", Any, QuotaSpent, Final, OPENAI),
    Rule::code("project_spend_limit_exceeded", Any, QuotaSpent, Final, OPENAI),
    Rule::code("organization_usage_limit_exceeded", Any, QuotaSpent, Final, OPENAI),
    Rule::code("billing_hard_limit_reached", Any, QuotaSpent, Final, OPENAI),
    Rule::code("usage_limit_reached", Any, QuotaSpent, Final, CODEX),
    Rule::code("usage_not_included", Any, QuotaSpent, Final, CODEX),
    Rule::code("quota_exceeded", Any, QuotaSpent, Final, GATEWAYS),
    Rule::code("payment_required", Any, QuotaSpent, Final, GATEWAYS),
    Rule::code("billing_error", Any, QuotaSpent, Final, "Anthropic API, errors"),
    // The request or the credential.
    Rule::code("invalid_api_key", Any, Authentication, Final, OPENAI),
    Rule::code("token_expired", Any, Authentication, Final, OPENAI),
    Rule::code("authentication_error", Any, Authentication, Final, "Anthropic API, errors"),
    Rule::code("permission_error", Any, Authentication, Final, "Anthropic API, errors"),
    Rule::code("unsupported_country_region_territory", Any, Authentication, Final, OPENAI),
    Rule::code("context_length_exceeded", Any, TooLong, Final, OPENAI),
    Rule::code("string_above_max_length", Any, TooLong, Final, OPENAI),
    Rule::code("request_too_large", Any, TooLong, Final, "Anthropic API, errors"),
    Rule::code("content_filter", Any, ContentRefused, Final, OPENAI),
    Rule::code("content_policy_violation", Any, ContentRefused, Final, OPENAI),
    Rule::code("moderation_blocked", Any, ContentRefused, Final, OPENAI),
    Rule::code("cyber_policy", Any, ContentRefused, Final, CODEX),
    Rule::code("bio_policy", Any, ContentRefused, Final, CODEX),
    Rule::code("invalid_prompt", Any, BadRequest, Final, CODEX),
    Rule::code("model_not_found", Any, BadRequest, Final, OPENAI),
    Rule::code("previous_response_not_found", Any, BadRequest, Final, CODEX),
    Rule::code("not_found_error", RequestsFault, BadRequest, Final, "Anthropic API, errors"),
    // A type that also stands on throttles and failures, where the status knows better, and that needs words to
    // tell what is wrong with the request.
    Rule::invalid("maximum context length", TooLong, OPENAI),
    Rule::code("invalid_request_error", RequestsFault, BadRequest, Final, OPENAI),
    // Failed. With a status these say nothing that the status does not: a 503 was refused, a 504 may have run.
    Rule::code("server_error", Inside, ServerFailed, Failed, OPENAI),
    Rule::code("internal_error", Inside, ServerFailed, Failed, GATEWAYS),
    Rule::code("internal_server_error", Inside, ServerFailed, Failed, GATEWAYS),
    Rule::code("api_error", Inside, ServerFailed, Failed, "Anthropic API, errors"),
    // Words, where there is no code.
    Rule::phrase("exceeded your current quota", Any, QuotaSpent, Final, OPENAI),
    Rule::phrase("credit balance", Any, QuotaSpent, Final, "Anthropic API, errors"),
    Rule::phrase("maximum context length", RequestsFault, TooLong, Final, "Together, documentation"),
    Rule::phrase("at capacity", MayHeal, AtCapacity, Refused, CODEX),
    Rule::phrase("overloaded", MayHeal, Overloaded, Refused, "codex-retry, pseudo-200 answers"),
    Rule::phrase("rate limit", MayHeal, Throttled, Refused, GATEWAYS),
    Rule::phrase("too many requests", MayHeal, Throttled, Refused, GATEWAYS),
];

/// What a status says by itself. `None`: the status is no failure.
#[must_use]
pub(crate) const fn by_status(status: u16) -> Option<(Fault, Says)> {
    Some(match status {
        0..=399 => return None,
        401 | 403 => (Authentication, Final),
        402 => (QuotaSpent, Final),
        413 => (TooLong, Final),
        429 => (Throttled, Refused),
        // Too Early (RFC 8470): refused because it might be a replay.
        425 => (ServerFailed, Refused),
        408 => (ServerFailed, Says::MaybeRan),
        400..=499 => (BadRequest, Final),
        503 => (AtCapacity, Says::RefusedIfPrompt),
        529 => (Overloaded, Refused),
        // Cloudflare: the origin is down, could not be reached, did not shake hands. Nothing ran.
        521 | 522 | 523 | 525 => (ServerFailed, Refused),
        // Gateway timeouts: the origin was at it.
        504 | 524 => (ServerFailed, Says::MaybeRan),
        // Not implemented, version not supported, insufficient storage, network authentication required.
        501 | 505 | 507 | 511 => (ServerFailed, Final),
        _ => (ServerFailed, Failed),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_graded_as_the_documentation_says() {
        for status in [429, 529, 425, 521, 522, 523, 525] {
            assert_eq!(by_status(status).unwrap().1, Refused, "{status}");
        }
        for status in [500, 502, 520, 526, 530, 599] {
            assert_eq!(by_status(status).unwrap().1, Failed, "{status}");
        }
        for status in [408, 504, 524] {
            assert_eq!(by_status(status).unwrap().1, Says::MaybeRan, "{status}");
        }
        for status in
            [400, 401, 402, 403, 404, 405, 409, 410, 413, 422, 426, 428, 431, 451, 501, 505, 507, 511]
        {
            assert_eq!(by_status(status).unwrap().1, Final, "{status}");
        }
        assert_eq!(by_status(503).unwrap().1, Says::RefusedIfPrompt);
        for status in [200, 204, 301, 307, 399] {
            assert_eq!(by_status(status), None, "{status}");
        }
    }
}
