//! Gateways and resellers: OpenRouter, LiteLLM, Groq, Mistral, Together, W&B and CoreWeave, Cloudflare.

use super::super::rule::{Rule, Statuses};
use crate::evidence::Says;
use crate::fault::Fault;

use Fault::{AtCapacity, Overloaded, QuotaSpent, ServerFailed, Throttled, TooLong};
use Says::{Final, MaybeRan, Refused};
use Statuses::{Any, MayHeal, Only, Unsettled};

const OPENROUTER: &str = "OpenRouter, documentation of errors";
const LITELLM: &str = "LiteLLM, source";
const MISTRAL: &str = "Mistral, public issues";
const TOGETHER: &str = "Together, documentation";
const WANDB: &str = "W&B and CoreWeave inference, documentation";
const CC_SWITCH: &str = "farion1231/cc-switch, issue 2140";

pub(super) const RULES: &[Rule] = &[
    // OpenRouter says 402, but what is spent is what may be under way at once, and it comes back.
    Rule::code("openrouter_in_flight_budget", Any, Throttled, Refused, OPENROUTER),
    Rule::code("provider_overloaded", Unsettled, Overloaded, Refused, OPENROUTER),
    // LiteLLM.
    Rule::sentence("no deployments available for selected model", Only(429), Throttled, Refused, LITELLM),
    Rule::code("budget_exceeded", Any, QuotaSpent, Final, LITELLM),
    Rule::sentence("budget has been exceeded!", Any, QuotaSpent, Final, LITELLM),
    Rule::sentence("exceededbudget", Any, QuotaSpent, Final, LITELLM),
    // Inside a stream it has the type of any failure.
    Rule::sentence("litellm.timeout", MayHeal, ServerFailed, MaybeRan, LITELLM),
    // An overload that a gateway hands on as the request's own fault: these words, and on 400 no others.
    Rule::phrase("decode server is overloaded", Only(400), Overloaded, Refused, CC_SWITCH),
    Rule::phrase("prefill server is overloaded", Only(400), Overloaded, Refused, CC_SWITCH),
    Rule::code("service_tier_capacity_exceeded", Unsettled, AtCapacity, Refused, MISTRAL),
    // Together refuses a request that is too long as one that is not allowed.
    Rule::sentence("maximum context length", Only(403), TooLong, Final, TOGETHER),
    Rule::phrase("concurrency limit reached", MayHeal, Throttled, Refused, WANDB),
];
