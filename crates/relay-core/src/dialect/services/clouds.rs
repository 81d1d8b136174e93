//! Google (Gemini API, Vertex AI, Code Assist), Amazon Bedrock and Azure.

use super::super::rule::{Rule, Statuses};
use crate::evidence::Says;
use crate::fault::Fault;

use Fault::{
    AtCapacity, Authentication, BadRequest, ContentRefused, ModelLoading, QuotaSpent, ServerFailed,
    Throttled, TooLong,
};
use Says::{Failed, Final, MaybeRan, Refused, RefusedIfPrompt};
use Statuses::{Any, Inside, MayHeal, Only, RequestsFault, Unsettled};

const GEMINI: &str = "Gemini API, documentation";
const SEEN: &str = "Gemini API, public issues";
const VERTEX: &str = "Vertex AI, documentation";
const CODE_ASSIST: &str = "Gemini CLI 0.61.0, source";
const BEDROCK: &str = "Amazon Bedrock runtime API, errors";
const AZURE: &str = "Azure OpenAI, documentation";

/// Google's list of the limits that were hit.
const QUOTA_ID: &str = "error.details.*.violations.*.quotaId";
const QUOTA_VALUE: &str = "error.details.*.violations.*.quotaValue";
/// Amazon's name of an error; a colon and an address may follow.
const TYPE: &str = "x-amzn-errortype";

pub(super) const RULES: &[Rule] = &[
    // A day's quota says the same words, and even the same delay, as a minute's.
    Rule::path_has([QUOTA_ID, "perday"], MayHeal, QuotaSpent, Final, SEEN),
    Rule::path([QUOTA_VALUE, "0"], MayHeal, QuotaSpent, Final, SEEN),
    Rule::code_and(["RESOURCE_EXHAUSTED", "limit: 0,"], MayHeal, QuotaSpent, Final, SEEN),
    Rule::code_and(["RESOURCE_EXHAUSTED", "limit: 0\n"], MayHeal, QuotaSpent, Final, SEEN),
    Rule::code_and(["RESOURCE_EXHAUSTED", "requests per day"], MayHeal, QuotaSpent, Final, CODE_ASSIST),
    // Everybody's share of a pool, not this account's.
    Rule::code_and(
        ["RESOURCE_EXHAUSTED", "resource exhausted, please try again later"],
        MayHeal,
        AtCapacity,
        Refused,
        VERTEX,
    ),
    Rule::code("MODEL_CAPACITY_EXHAUSTED", Unsettled, AtCapacity, Refused, CODE_ASSIST),
    Rule::code("QUOTA_EXHAUSTED", Any, QuotaSpent, Final, CODE_ASSIST),
    Rule::code("RESOURCE_EXHAUSTED", MayHeal, Throttled, Refused, GEMINI),
    Rule::code_and(["UNAVAILABLE", "overloaded"], MayHeal, AtCapacity, Refused, GEMINI),
    Rule::code_and(["UNAVAILABLE", "high demand"], MayHeal, AtCapacity, Refused, SEEN),
    Rule::code("UNAVAILABLE", MayHeal, AtCapacity, RefusedIfPrompt, GEMINI),
    Rule::code("DEADLINE_EXCEEDED", Any, ServerFailed, MaybeRan, GEMINI),
    Rule::code("INTERNAL", Inside, ServerFailed, Failed, GEMINI),
    Rule::code("CANCELLED", Any, BadRequest, Final, CODE_ASSIST),
    Rule::code("API_KEY_INVALID", Any, Authentication, Final, GEMINI),
    Rule::code("UNAUTHENTICATED", Any, Authentication, Final, GEMINI),
    Rule::code("PERMISSION_DENIED", Any, Authentication, Final, GEMINI),
    Rule::code_and(["INVALID_ARGUMENT", "exceeds the maximum number of tokens"], Any, TooLong, Final, GEMINI),
    Rule::code("INVALID_ARGUMENT", Any, BadRequest, Final, GEMINI),
    Rule::code("FAILED_PRECONDITION", Any, BadRequest, Final, GEMINI),
    Rule::code("NOT_FOUND", RequestsFault, BadRequest, Final, GEMINI),
    // Bedrock names its errors in a header, and some of its gateways in `__type` of the body.
    Rule::header([TYPE, "ThrottlingException*"], Any, Throttled, Refused, BEDROCK),
    Rule::header([TYPE, "ModelNotReadyException*"], Any, ModelLoading, Refused, BEDROCK),
    Rule::header([TYPE, "ServiceUnavailableException*"], Any, AtCapacity, Refused, BEDROCK),
    Rule::header([TYPE, "ServiceQuotaExceededException*"], Any, QuotaSpent, Final, BEDROCK),
    Rule::header([TYPE, "ModelTimeoutException*"], Any, ServerFailed, MaybeRan, BEDROCK),
    Rule::header([TYPE, "ModelErrorException*"], Any, ServerFailed, MaybeRan, BEDROCK),
    Rule::header([TYPE, "AccessDeniedException*"], Any, Authentication, Final, BEDROCK),
    Rule::header([TYPE, "ExpiredTokenException*"], Any, Authentication, Final, BEDROCK),
    Rule::header([TYPE, "ResourceNotFoundException*"], Any, BadRequest, Final, BEDROCK),
    Rule::code("ThrottlingException", Unsettled, Throttled, Refused, BEDROCK),
    Rule::code("ModelNotReadyException", Unsettled, ModelLoading, Refused, BEDROCK),
    Rule::code("ServiceUnavailableException", Unsettled, AtCapacity, Refused, BEDROCK),
    Rule::code("ServiceQuotaExceededException", Any, QuotaSpent, Final, BEDROCK),
    Rule::code("ModelTimeoutException", Any, ServerFailed, MaybeRan, BEDROCK),
    Rule::code("ModelErrorException", Any, ServerFailed, MaybeRan, BEDROCK),
    Rule::code("ModelStreamErrorException", Any, ServerFailed, MaybeRan, BEDROCK),
    Rule::code_and(["ValidationException", "input is too long"], Any, TooLong, Final, BEDROCK),
    // Azure.
    Rule::phrase("experiencing high demand", MayHeal, AtCapacity, Refused, AZURE),
    Rule::phrase("temporarily unable to process your request", MayHeal, AtCapacity, Refused, AZURE),
    Rule::sentence("resource has been temporarily blocked", Only(403), Authentication, Final, AZURE),
    Rule::code("ResponsibleAIPolicyViolation", Any, ContentRefused, Final, AZURE),
];
