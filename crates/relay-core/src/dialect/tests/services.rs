//! The rows of the catalogue that are about single services: Google, Azure and Bedrock, the services of China, and
//! servers of one's own.

use super::*;

use At::{Body, Status, Stream};

const GENERATE: &str = "/v1beta/models/gemini-3-pro:generateContent";
const BEDROCK: &str = "/model/anthropic.claude/invoke";

const PER_MINUTE: &str = r#"{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.\n* Quota exceeded for metric: m, limit: 10, model: gemini-3-pro\nPlease retry in 3.2s.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"m","quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier","quotaValue":"10"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"46s"}]}}"#;
const PER_DAY: &str = r#"{"error":{"code":429,"message":"You exceeded your current quota.\nPlease retry in 8.2s.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier"},{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier","quotaValue":"250"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"8s"}]}}"#;
const NO_SUCH_QUOTA: &str = r#"{"error":{"code":429,"message":"Quota exceeded for metric: m, limit: 0, model: gemini-3-pro\nPlease retry in 59.9s.","status":"RESOURCE_EXHAUSTED"}}"#;

#[test]
fn google() {
    check(&[
        row("50", GENERATE, Status(503), ["", r#"{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}"#], "at_capacity, refused, -"),
        row("50, demand", GENERATE, Status(503), ["", r#"{"error":{"code":503,"message":"This model is currently experiencing high demand. Spikes in demand are usually temporary.","status":"UNAVAILABLE"}}"#], "at_capacity, refused, -"),
        row("50, plain", GENERATE, Status(503), ["", r#"{"error":{"code":503,"message":"The service is currently unavailable.","status":"UNAVAILABLE"}}"#], "at_capacity, refused if prompt, -"),
        row("50, chat", CHAT, Status(503), ["", r#"[{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}]"#], "at_capacity, refused, -"),
        row("51", GEMINI, Stream, ["", r#"{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}"#], "at_capacity, refused, -"),
        row("51, bare", GEMINI, Stream, ["", r#"{"error":{"code":503,"status":"UNAVAILABLE"}}"#], "at_capacity, refused if prompt, -"),
        row("51, list", GEMINI, Body, ["", r#"[{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}]"#], "at_capacity, refused, -"),
        row("52", GENERATE, Status(429), ["", PER_MINUTE], "throttled, refused, 46s"),
        row("52, text", GENERATE, Status(429), ["", r#"{"error":{"code":429,"message":"Please retry in 3.2s.","status":"RESOURCE_EXHAUSTED"}}"#], "throttled, refused, 3.2s"),
        row("53", GENERATE, Status(429), ["", PER_DAY], "quota_spent, final, 8.2s"),
        row("53, list", CHAT, Status(429), ["", r#"[{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}]}}]"#], "quota_spent, final, -"),
        row("53, hours", GENERATE, Status(429), ["", r#"{"error":{"code":429,"message":"Please retry in 10h17m5.7s.","status":"RESOURCE_EXHAUSTED"}}"#], "throttled, refused, 37025.7s"),
        row("53, limit 0", GENERATE, Status(429), ["", NO_SUCH_QUOTA], "quota_spent, final, 59.9s"),
        row("53, value 0", GENERATE, Status(429), ["", r#"{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"PerMinute","quotaValue":"0"}]}]}}"#], "quota_spent, final, -"),
        row("54", GENERATE, Status(429), ["", r#"{"error":{"code":"rate_limit_exceeded","message":"m"}}"#], "throttled, refused, -"),
        row("54, many", GENERATE, Status(429), ["", r#"{"error":{"code":"too_many_requests","message":"m"}}"#], "throttled, refused, -"),
        row("54, daily", GENERATE, Status(429), ["", r#"{"error":{"code":"quota_exceeded","message":"m"}}"#], "quota_spent, final, -"),
        row("55", GENERATE, Status(429), ["", r#"{"error":{"code":429,"message":"Spend-based rate limit exceeded over a rolling 10 minute window.","status":"RESOURCE_EXHAUSTED"}}"#], "throttled, refused, -"),
        row("56", GENERATE, Status(402), ["", r#"{"error":{"code":402,"message":"m","status":"RESOURCE_EXHAUSTED"}}"#], "quota_spent, final, -"),
        row("56, named", GENERATE, Status(402), ["", r#"{"error":{"code":"payment_required","message":"m"}}"#], "quota_spent, final, -"),
        row("57", GENERATE, Status(429), ["", r#"{"error":{"code":429,"message":"Resource exhausted, please try again later.","status":"RESOURCE_EXHAUSTED"}}"#], "at_capacity, refused, -"),
        row("57, provisioned", GENERATE, Status(429), ["", r#"{"error":{"code":429,"message":"Too many requests. Exceeded the Provisioned Throughput.","status":"RESOURCE_EXHAUSTED"}}"#], "throttled, refused, -"),
        row("58", GENERATE, Status(429), ["", r#"{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"RATE_LIMIT_EXCEEDED"},{"retryDelay":"0.5s"}]}}"#], "throttled, refused, 500ms"),
        row("58, capacity", GENERATE, Status(429), ["", r#"{"error":{"code":429,"message":"No capacity available for model gemini-3-pro on the server","status":"RESOURCE_EXHAUSTED","details":[{"reason":"MODEL_CAPACITY_EXHAUSTED"}]}}"#], "at_capacity, refused, -"),
        row("58, quota", GENERATE, Status(429), ["", r#"{"error":{"code":429,"message":"You have exhausted your capacity on this model.","status":"RESOURCE_EXHAUSTED","details":[{"reason":"QUOTA_EXHAUSTED"},{"retryDelay":"34123s"}]}}"#], "quota_spent, final, 34123s"),
        row("58, day", GENERATE, Status(429), ["", r#"{"error":{"code":429,"message":"Quota exceeded for quota metric 'Gemini 2.5 Pro Requests' and limit 'Gemini 2.5 Pro Requests per day per user per tier'","status":"RESOURCE_EXHAUSTED"}}"#], "quota_spent, final, -"),
        row("59", GENERATE, Status(499), ["", r#"{"error":{"code":499,"message":"The operation was cancelled.","status":"CANCELLED"}}"#], "bad_request, final, -"),
        row("60", GENERATE, Status(500), ["", r#"{"error":{"code":500,"message":"An internal error has occurred.","status":"INTERNAL"}}"#], "server_failed, failed, -"),
        row("60, stream", GEMINI, Stream, ["", r#"{"error":{"message":"An internal error has occurred.","status":"INTERNAL"}}"#], "server_failed, failed, -"),
        row("61", GENERATE, Status(504), ["", r#"{"error":{"code":504,"message":"Deadline expired before operation could complete.","status":"DEADLINE_EXCEEDED"}}"#], "server_failed, maybe ran, -"),
        row("61, stream", GEMINI, Stream, ["", r#"{"error":{"message":"m","status":"DEADLINE_EXCEEDED"}}"#], "server_failed, maybe ran, -"),
        row("62", GENERATE, Status(400), ["", r#"{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT"}}"#], "bad_request, final, -"),
        row("62, long", GENERATE, Status(400), ["", r#"{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#], "too_long, final, -"),
        row("62, region", GENERATE, Status(400), ["", r#"{"error":{"code":400,"message":"User location is not supported for the API use.","status":"FAILED_PRECONDITION"}}"#], "bad_request, final, -"),
        row("62, key", GENERATE, Status(400), ["", r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#], "authentication, final, -"),
        row("63", GENERATE, Status(401), ["", r#"{"error":{"code":401,"message":"m","status":"UNAUTHENTICATED"}}"#], "authentication, final, -"),
        row("63, 403", GENERATE, Status(403), ["", r#"{"error":{"code":403,"message":"m","status":"PERMISSION_DENIED"}}"#], "authentication, final, -"),
        row("63, 404", GENERATE, Status(404), ["", r#"{"error":{"code":404,"message":"models/x is not found","status":"NOT_FOUND"}}"#], "bad_request, final, -"),
    ]);
}

#[test]
fn azure_and_bedrock() {
    check(&[
        row("45", CHAT, Status(429), ["retry-after-ms: 2500\nretry-after: 3", r#"{"error":{"code":"429","message":"Requests to the ChatCompletions_Create Operation have been limited. Please retry after 3 seconds."}}"#], "throttled, refused, 3s"),
        row("46", CHAT, Status(429), ["", r#"{"error":{"code":"429","message":"The system is currently experiencing high demand and cannot process your request. Please retry after 6 seconds."}}"#], "at_capacity, refused, 6s"),
        row("46, unable", CHAT, Status(503), ["", r#"{"error":{"code":"503","message":"The service is temporarily unable to process your request. Please try again later."}}"#], "at_capacity, refused, -"),
        row("47", CHAT, Status(429), ["x-ratelimit-limit-tokens: 1000\nretry-after: 40", ""], "throttled, refused, 40s"),
        row("48", CHAT, Status(400), ["", r#"{"error":{"code":"content_filter","message":"m","innererror":{"code":"ResponsibleAIPolicyViolation","content_filter_result":{}}}}"#], "content_refused, final, -"),
        row("49", CHAT, Status(403), ["", r#"{"error":{"code":"403","message":"Your resource has been temporarily blocked"}}"#], "authentication, final, -"),
        row("65", BEDROCK, Status(429), ["x-amzn-errortype: ThrottlingException:http://internal.amazon.com/coral/com.amazon.bedrock/", r#"{"message":"Too many tokens, please wait before trying again."}"#], "throttled, refused, -"),
        row("65, type", BEDROCK, Status(400), ["", r#"{"__type":"ThrottlingException","message":"Too many requests"}"#], "throttled, refused, -"),
        row("66", BEDROCK, Status(429), ["x-amzn-errortype: ModelNotReadyException", r#"{"message":"m"}"#], "model_loading, refused, -"),
        row("67", BEDROCK, Status(503), ["x-amzn-errortype: ServiceUnavailableException", r#"{"message":"m"}"#], "at_capacity, refused, -"),
        row("68", BEDROCK, Status(400), ["x-amzn-errortype: ServiceQuotaExceededException", r#"{"message":"m"}"#], "quota_spent, final, -"),
        row("69", BEDROCK, Status(408), ["x-amzn-errortype: ModelTimeoutException", r#"{"message":"m"}"#], "server_failed, maybe ran, -"),
        row("69, 424", BEDROCK, Status(424), ["x-amzn-errortype: ModelErrorException", r#"{"message":"m"}"#], "server_failed, maybe ran, -"),
        row("69, stream", BEDROCK, Body, ["", r#"{"__type":"ModelStreamErrorException","message":"m"}"#], "server_failed, maybe ran, -"),
        row("70", BEDROCK, Status(400), ["x-amzn-errortype: ValidationException", r#"{"message":"m"}"#], "bad_request, final, -"),
        row("70, 403", BEDROCK, Status(403), ["x-amzn-errortype: AccessDeniedException", r#"{"message":"m"}"#], "authentication, final, -"),
        row("70, 404", BEDROCK, Status(404), ["x-amzn-errortype: ResourceNotFoundException", r#"{"message":"m"}"#], "bad_request, final, -"),
    ]);
}

#[test]
fn more_of_the_gateways() {
    check(&[
        row("31 of cc-switch", CHAT, Status(400), ["", r#"{"detail":"Decode server is overloaded"}"#], "overloaded, refused, -"),
        row("other words on a 400", CHAT, Status(400), ["", r#"{"detail":"at capacity, overloaded, too busy, rate limit, queue is full"}"#], "bad_request, final, -"),
        row("82, tier", CHAT, Status(429), ["", r#"{"object":"error","message":"Service tier capacity exceeded for this model.","type":"service_tier_capacity_exceeded","code":"3505"}"#], "at_capacity, refused, -"),
        row("84, 402", CHAT, Status(402), ["", r#"{"error":{"message":"You exceeded your current quota"}}"#], "quota_spent, final, -"),
        row("83, 402", CHAT, Status(402), ["", ""], "quota_spent, final, -"),
        row("81, 424", CHAT, Status(424), ["", ""], "bad_request, final, -"),
    ]);
}

/// As LiteLLM 1.110.2 gave them for an OpenAI service, measured.
#[test]
fn behind_litellm() {
    check(&[
        row("overloaded", CLAUDE, Status(503), ["", r#"{"type":"error","error":{"type":"api_error","message":"litellm.ServiceUnavailableError: ServiceUnavailableError: OpenAIException - The server is currently overloaded with other requests. Sorry about that!\n\nLiteLLM: model group 'm' failed with the error above. No fallback was attempted."}}"#], "overloaded, refused, -"),
        row("overloaded", CHAT, Status(503), ["", r#"{"error":{"message":"litellm.ServiceUnavailableError: ServiceUnavailableError: OpenAIException - The server is currently overloaded with other requests. Sorry about that!\n\nLiteLLM: model group 'm' failed with the error above. No fallback was attempted.","type":"internal_server_error","param":null,"code":"503"}}"#], "overloaded, refused, -"),
        row("overloaded, its body", CLAUDE, Status(503), ["", r#"{"type":"error","error":{"type":"api_error","message":"litellm.ServiceUnavailableError: ServiceUnavailableError: OpenAIException - {\"error\": {\"message\": \"The server is currently overloaded with other requests. Sorry about that!\", \"type\": \"service_unavailable_error\", \"param\": null, \"code\": null}}\n\nLiteLLM: model group 'm' failed with the error above. No fallback was attempted."}}"#], "at_capacity, refused, -"),
        row("overloaded, its body", RESPONSES, Status(503), ["", r#"{"error":{"message":"litellm.ServiceUnavailableError: ServiceUnavailableError: OpenAIException - {\"error\": {\"message\": \"The server is currently overloaded with other requests. Sorry about that!\", \"type\": \"service_unavailable_error\", \"param\": null, \"code\": null}}\n\nLiteLLM: model group 'm' failed with the error above. No fallback was attempted.","type":"internal_server_error","param":null,"code":"503"}}"#], "at_capacity, refused, -"),
        row("at capacity", RESPONSES, Status(503), ["", r#"{"error":{"message":"litellm.ServiceUnavailableError: ServiceUnavailableError: OpenAIException - Selected model is at capacity. Please try a different model.\n\nLiteLLM: model group 'm' failed with the error above. No fallback was attempted.","type":"internal_server_error","param":null,"code":"503"}}"#], "at_capacity, refused, -"),
        row("503 alone", CLAUDE, Status(503), ["", r#"{"type":"error","error":{"type":"api_error","message":"litellm.ServiceUnavailableError: ServiceUnavailableError: OpenAIException - Error code: 503\n\nLiteLLM: model group 'm' failed with the error above. No fallback was attempted."}}"#], "at_capacity, refused if prompt, -"),
        row("529", CLAUDE, Status(529), ["", r#"{"type":"error","error":{"type":"overloaded_error","message":"litellm.APIError: APIError: OpenAIException - Overloaded\n\nLiteLLM: model group 'm' failed with the error above. No fallback was attempted."}}"#], "overloaded, refused, -"),
        row("529", CHAT, Status(503), ["", r#"{"error":{"message":"litellm.APIError: APIError: OpenAIException - Overloaded\n\nLiteLLM: model group 'm' failed with the error above. No fallback was attempted.","type":"service_unavailable_error","param":null,"code":"server_is_overloaded"}}"#], "overloaded, refused, -"),
        row("429", CLAUDE, Status(429), ["", r#"{"type":"error","error":{"type":"rate_limit_error","message":"litellm.RateLimitError: RateLimitError: OpenAIException - Rate limit reached. Please try again in 1.2s.\n\nLiteLLM: model group 'm' failed with the error above. No fallback was attempted."}}"#], "throttled, refused, 1.2s"),
        row("429, told", CHAT, Status(429), ["llm_provider-retry-after: 2", r#"{"error":{"message":"litellm.RateLimitError: RateLimitError: OpenAIException - Rate limit reached. Please try again in 1.2s.\n\nLiteLLM: model group 'm' failed with the error above. No fallback was attempted.","type":"throttling_error","param":null,"code":"429"}}"#], "throttled, refused, 2s"),
        row("spent", CLAUDE, Status(429), ["", r#"{"type":"error","error":{"type":"rate_limit_error","message":"litellm.RateLimitError: RateLimitError: OpenAIException - You exceeded your current quota, please check your plan and billing details.\n\nLiteLLM: model group 'm' failed with the error above. No fallback was attempted."}}"#], "quota_spent, final, -"),
        row("spent", CHAT, Status(429), ["", r#"{"error":{"message":"litellm.RateLimitError: RateLimitError: OpenAIException - You exceeded your current quota, please check your plan and billing details.\n\nLiteLLM: model group 'm' failed with the error above. No fallback was attempted.","type":"throttling_error","param":null,"code":"429"}}"#], "quota_spent, final, -"),
        row("spent, its body", CLAUDE, Status(429), ["", r#"{"type":"error","error":{"type":"rate_limit_error","message":"litellm.RateLimitError: RateLimitError: OpenAIException - {\"error\": {\"message\": \"You exceeded your current quota, please check your plan and billing details.\", \"type\": \"insufficient_quota\", \"param\": null, \"code\": \"insufficient_quota\"}}\n\nLiteLLM: model group 'm' failed with the error above. No fallback was attempted."}}"#], "quota_spent, final, -"),
        row("spent, Azure", CHAT, Status(429), ["", r#"{"error":{"message":"litellm.RateLimitError: AzureException RateLimitError - You exceeded your current quota","type":"throttling_error","param":null,"code":"429"}}"#], "quota_spent, final, -"),
        row("too long", CLAUDE, Status(400), ["", r#"{"type":"error","error":{"type":"invalid_request_error","message":"litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: OpenAIException - This model's maximum context length is 10 tokens.\nmodel=m. context_window_fallbacks=None. fallbacks=None.\n\nLiteLLM: model group 'm' failed with the error above. No fallback was attempted."}}"#], "too_long, final, -"),
        row("wrong", CHAT, Status(400), ["", r#"{"error":{"message":"litellm.BadRequestError: OpenAIException - Unknown parameter: overloaded\n\nLiteLLM: model group 'm' failed with the error above. No fallback was attempted.","type":"invalid_request_error","param":null,"code":"400"}}"#], "bad_request, final, -"),
        row("key", CLAUDE, Status(401), ["", r#"{"type":"error","error":{"type":"authentication_error","message":"litellm.AuthenticationError: AuthenticationError: OpenAIException - Incorrect API key provided\n\nLiteLLM: model group 'm' failed with the error above. No fallback was attempted."}}"#], "authentication, final, -"),
        row("balance", CLAUDE, Status(402), ["", r#"{"type":"error","error":{"type":"api_error","message":"litellm.APIError: APIError: OpenAIException - Insufficient Balance\n\nLiteLLM: model group 'm' failed with the error above. No fallback was attempted."}}"#], "quota_spent, final, -"),
        row("timeout", CLAUDE, Status(504), ["", r#"{"type":"error","error":{"type":"api_error","message":"litellm.Timeout: Timeout Error: OpenAIException - Error code: 504\n\nLiteLLM: model group 'm' failed with the error above. No fallback was attempted."}}"#], "server_failed, maybe ran, -"),
        row("timeout in the stream", CLAUDE, Stream, ["", r#"{"type":"error","error":{"type":"api_error","message":"litellm.Timeout: Timeout Error: OpenAIException - Request timed out, overloaded."}}"#], "server_failed, maybe ran, -"),
        row("overloaded in the stream", CLAUDE, Stream, ["", r#"{"type":"error","error":{"type":"api_error","message":"litellm.APIConnectionError: APIConnectionError: OpenAIException - The server is currently overloaded"}}"#], "overloaded, refused, -"),
        row("overloaded in the stream", RESPONSES, Stream, ["", r#"{"type":"response.failed","response":{"id":"resp_1","error":{"code":"server_error","message":"litellm.APIConnectionError: APIConnectionError: OpenAIException - The server is currently overloaded"},"object":"response","output":[],"status":"failed"},"sequence_number":0}"#], "overloaded, refused, -"),
        row("overloaded in the stream", CHAT, Status(500), ["", r#"{"error":{"message":"litellm.APIConnectionError: APIConnectionError: OpenAIException - The server is currently overloaded\n\nLiteLLM: model group 'm' failed with the error above. No fallback was attempted.","type":"internal_server_error","param":null,"code":"500"}}"#], "overloaded, refused, -"),
        row("cut", CHAT, Stream, ["", r#"{"error": {"message": "litellm.APIConnectionError: APIConnectionError: OpenAIException - Stream ended before a finish_reason was received", "type": "internal_server_error", "param": null, "code": "500"}}"#], "server_failed, failed, -"),
        row("unreachable", CHAT, Status(500), ["", r#"{"error":{"message":"litellm.InternalServerError: InternalServerError: OpenAIException - Connection error.\n\nLiteLLM: model group 'm' failed with the error above. No fallback was attempted.","type":"internal_server_error","param":null,"code":"500"}}"#], "server_failed, failed, -"),
        row("an answer, quoted", CLAUDE, Status(500), ["", r#"{"type":"error","error":{"type":"api_error","message":"litellm.InternalServerError: InternalServerError: OpenAIException - Empty or invalid response from LLM endpoint. Received: 'data: {\"choices\":[{\"delta\":{\"content\":\"overloaded, at capacity\"}}]}'. Check the reverse proxy or model server configuration.\n\nLiteLLM: model group 'm' failed with the error above. No fallback was attempted."}}"#], "server_failed, failed, -"),
        row("an answer for an error", CLAUDE, Status(500), ["", r#"{"type":"error","error":{"type":"api_error","message":"litellm.APIError: APIError: OpenAIException - {\"error\": {\"code\": \"server_is_overloaded\"}, \"choices\": [{\"index\": 0}]}\n\nLiteLLM: model group 'm' failed with the error above. No fallback was attempted."}}"#], "server_failed, failed, -"),
        row("words of others", CLAUDE, Stream, ["", r#"{"type":"error","error":{"type":"api_error","message":"You said: litellm.APIError: OpenAIException - overloaded"}}"#], "server_failed, failed, -"),
    ]);
}

#[test]
fn deepseek_and_moonshot() {
    check(&[
        row("86", CHAT, Status(503), ["", r#"{"error":{"message":"Service is too busy. We advise users to temporarily switch to alternative LLM API service providers.","type":"service_unavailable_error","param":null,"code":"service_unavailable_error"}}"#], "at_capacity, refused, -"),
        row("87", CHAT, Status(429), ["", r#"{"error":{"message":"m","type":"unknown_error","param":null,"code":"invalid_request_error"}}"#], "throttled, refused, -"),
        row("88", CHAT, Body, ["", "\n\n\n{\"error\":{\"message\":\"busy\",\"code\":503}}"], "at_capacity, refused, -"),
        row("89", CHAT, Status(402), ["", r#"{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}"#], "quota_spent, final, -"),
        row("89, 401", CHAT, Status(401), ["", r#"{"error":{"message":"Authentication Fails","type":"authentication_error"}}"#], "authentication, final, -"),
        row("89, 422", CHAT, Status(422), ["", ""], "bad_request, final, -"),
        row("90", CHAT, Status(429), ["", r#"{"error":{"message":"The engine is currently overloaded, please try again later","type":"engine_overloaded_error"}}"#], "overloaded, refused, -"),
        row("91", CHAT, Status(429), ["", r#"{"error":{"message":"max organization concurrency: 1, please try again after 1 seconds","type":"rate_limit_reached_error"}}"#], "throttled, refused, 1s"),
        row("91, Kimi", CLAUDE, Status(429), ["", r#"{"error":{"type":"rate_limit_error","message":"We're receiving too many requests at the moment."},"type":"error"}"#], "throttled, refused, -"),
        row("92", CHAT, Status(429), ["", r#"{"error":{"message":"Your account is suspended, please check your plan","type":"exceeded_current_quota_error"}}"#], "quota_spent, final, -"),
        row("93", CLAUDE, Status(429), ["", r#"{"type":"error","error":{"type":"rate_limit_error","message":"You've reached your usage limit for this period."}}"#], "quota_spent, final, -"),
        row("93, 403", CLAUDE, Status(403), ["", r#"{"type":"error","error":{"type":"permission_error","message":"You've reached your usage limit for this billing cycle."}}"#], "quota_spent, final, -"),
        row("94", CLAUDE, Status(403), ["", r#"{"error":{"type":"permission_error","message":"Access terminated: only available for Coding Agents"}}"#], "authentication, final, -"),
    ]);
}

#[test]
fn zhipu() {
    let meant = |status, code: &str| {
        let body = format!(r#"{{"error":{{"code":"{code}","message":"m"}}}}"#);
        let failure = judged(CHAT, Status(status), "", &body, 2);
        (failure.fault, failure.evidence.map_or("final", Evidence::name))
    };
    for code in ["1302", "1303"] {
        assert_eq!(meant(429, code), (Fault::Throttled, "refused"), "row 95, {code}");
    }
    assert_eq!(meant(429, "1305"), (Fault::Overloaded, "refused"), "row 96");
    assert_eq!(meant(429, "1312"), (Fault::AtCapacity, "refused"), "row 96");
    for code in ["1304", "1308", "1310", "1113", "1309", "1311", "1313"] {
        assert_eq!(meant(429, code), (Fault::QuotaSpent, "final"), "rows 97 and 98, {code}");
    }
    assert_eq!(meant(400, "1261"), (Fault::TooLong, "final"), "row 99");
    assert_eq!(meant(400, "1301"), (Fault::ContentRefused, "final"), "row 99");
    for code in ["1000", "1001", "1002", "1003", "1004"] {
        assert_eq!(meant(401, code), (Fault::Authentication, "final"), "row 99, {code}");
    }
    assert_eq!(meant(500, "1234"), (Fault::ServerFailed, "failed"), "row 99");
    assert_eq!(meant(500, "500"), (Fault::ServerFailed, "failed"), "row 99");
    check(&[
        row("95, stream", CHAT, Stream, ["", r#"{"error":{"code":"1302","message":"m"}}"#], "throttled, refused, -"),
        row("96, words", CHAT, Status(429), ["", r#"{"error":{"message":"该模型当前访问量过大，请您稍后再试"}}"#], "overloaded, refused, -"),
    ]);
}

#[test]
fn dashscope_and_volcengine() {
    check(&[
        row("100", CHAT, Status(429), ["", r#"{"code":"Throttling.RateQuota","message":"Requests rate limit exceeded, please try again later.","request_id":"r"}"#], "throttled, refused, -"),
        row("100, chat", CHAT, Status(429), ["", r#"{"error":{"code":"limit_requests","message":"You exceeded your current requests list.","type":"limit_requests"},"request_id":"r"}"#], "throttled, refused, -"),
        row("100, words", CHAT, Status(429), ["", r#"{"error":{"message":"You exceeded your current requests list."}}"#], "throttled, refused, -"),
        row("101", CHAT, Status(429), ["", r#"{"code":"Throttling.AllocationQuota","message":"You exceeded your current quota, please check your plan and billing details.","request_id":"r"}"#], "throttled, refused, -"),
        row("101, words", CHAT, Status(429), ["", r#"{"message":"Allocated quota exceeded, please increase your quota limit."}"#], "throttled, refused, -"),
        row("102", CHAT, Status(429), ["", r#"{"code":"Throttling.BurstRate","message":"Request rate increased too quickly."}"#], "throttled, refused, -"),
        row("102, chat", CHAT, Status(429), ["", r#"{"error":{"code":"limit_burst_rate","message":"m"}}"#], "throttled, refused, -"),
        row("103", CHAT, Status(429), ["", r#"{"code":"Throttling.AllocationQuota","message":"Free allocated quota exceeded."}"#], "quota_spent, final, -"),
        row("103, 403", CHAT, Status(403), ["", r#"{"error":{"code":"AllocationQuota.FreeTierOnly","message":"m"}}"#], "quota_spent, final, -"),
        row("104", CHAT, Status(400), ["", r#"{"code":"Arrearage","message":"Access denied, please make sure your account is in good standing."}"#], "quota_spent, final, -"),
        row("104, content", CHAT, Status(400), ["", r#"{"error":{"code":"data_inspection_failed","message":"m"}}"#], "content_refused, final, -"),
        row("104, native", CHAT, Status(400), ["", r#"{"code":"DataInspectionFailed","message":"m"}"#], "content_refused, final, -"),
        row("104, long", CHAT, Status(400), ["", r#"{"error":{"code":"invalid_parameter_error","message":"<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]"}}"#], "too_long, final, -"),
        row("105", CHAT, Status(500), ["", r#"{"code":"InternalError","message":"m"}"#], "server_failed, failed, -"),
        row("105, inside", CHAT, Body, ["", r#"{"code":"InternalError.Timeout","message":"m","request_id":"r"}"#], "server_failed, failed, -"),
        row("105, serving", CHAT, Status(503), ["", r#"{"code":"ModelServingError","message":"Too many requests. Your requests are being throttled due to system capacity limits."}"#], "at_capacity, refused, -"),
        row("106", CHAT, Status(429), ["", r#"{"error":{"code":"ServerOverloaded","message":"m","type":"TooManyRequests"}}"#], "overloaded, refused, -"),
        row("107", CHAT, Status(429), ["", r#"{"error":{"code":"RateLimitExceeded.EndpointRPMExceeded","message":"m"}}"#], "throttled, refused, -"),
        row("107, account", CHAT, Status(429), ["", r#"{"error":{"code":"AccountRateLimitExceeded","message":"m"}}"#], "throttled, refused, -"),
        row("107, burst", CHAT, Status(429), ["", r#"{"error":{"code":"RequestBurstTooFast","message":"m"}}"#], "throttled, refused, -"),
        row("108", CHAT, Status(429), ["", r#"{"error":{"code":"QuotaExceeded","message":"m"}}"#], "quota_spent, final, -"),
        row("108, own limit", CHAT, Status(429), ["", r#"{"error":{"code":"SetLimitExceeded","message":"m"}}"#], "quota_spent, final, -"),
        row("109", CHAT, Status(400), ["", r#"{"error":{"code":"InputTextRiskDetection","message":"m"}}"#], "content_refused, final, -"),
        row("109, content", CHAT, Status(400), ["", r#"{"error":{"code":"SensitiveContentDetected.Violence","message":"m"}}"#], "content_refused, final, -"),
        row("109, overdue", CHAT, Status(403), ["", r#"{"error":{"code":"AccountOverdueError","message":"m"}}"#], "quota_spent, final, -"),
        row("109, access", CHAT, Status(403), ["", r#"{"error":{"code":"AccessDenied","message":"m"}}"#], "authentication, final, -"),
        row("109, 404", CHAT, Status(404), ["", r#"{"error":{"code":"ModelNotOpen","message":"m"}}"#], "bad_request, final, -"),
    ]);
}

#[test]
fn minimax_siliconflow_and_baidu() {
    let minimax = |code: u32| {
        let body = format!(r#"{{"choices":null,"base_resp":{{"status_code":{code},"status_msg":"m"}}}}"#);
        let failure = judged(CHAT, Body, "", &body, 2);
        (failure.fault, failure.evidence.map_or("final", Evidence::name))
    };
    for code in [1002, 1039, 1041] {
        assert_eq!(minimax(code), (Fault::Throttled, "refused"), "row 110, {code}");
    }
    for code in [1000, 1013, 1024, 1033] {
        assert_eq!(minimax(code), (Fault::ServerFailed, "failed"), "row 110, {code}");
    }
    assert_eq!(minimax(1001), (Fault::ServerFailed, "maybe_ran"), "row 110, a timeout");
    for (code, fault) in [
        (1004, Fault::Authentication),
        (1008, Fault::QuotaSpent),
        (1026, Fault::ContentRefused),
        (1027, Fault::ContentRefused),
        (2013, Fault::BadRequest),
        (2056, Fault::QuotaSpent),
    ] {
        assert_eq!(minimax(code), (fault, "final"), "row 111, {code}");
    }
    check(&[
        row("112", CHAT, Status(429), ["", r#"{"code":50602,"message":"Request was rejected due to rate limiting. Details: TPM limit reached.","data":null}"#], "throttled, refused, -"),
        row("112, daily", CHAT, Status(429), ["", r#"{"code":50603,"message":"Request was rejected due to rate limiting. Details: RPD limit reached.","data":null}"#], "quota_spent, final, -"),
        row("113", CHAT, Status(503), ["", r#"{"code":50505,"message":"Model service overloaded. Please try again later.","data":null}"#], "at_capacity, refused, -"),
        row("113, busy", CHAT, Status(503), ["", r#"{"code":50508,"message":"System is too busy now. Please try again later.","data":null}"#], "at_capacity, refused, -"),
        row("113, 504", CHAT, Status(504), ["", r#"{"code":50508,"message":"System is too busy now.","data":null}"#], "at_capacity, refused, -"),
        row("113, inside", CHAT, Body, ["", r#"{"code":50505,"message":"m","data":null}"#], "at_capacity, refused, -"),
        row("114", CHAT, Status(400), ["", r#"{"code":20012,"message":"Model does not exist.","data":null}"#], "bad_request, final, -"),
        row("114, 403", CHAT, Status(403), ["", r#"{"code":30001,"message":"Sorry, your account balance is insufficient","data":null}"#], "authentication, final, -"),
        row("115", CHAT, Status(429), ["", r#"{"error":{"code":"RATE_LIMIT_TOTAL_QPS","message":"m","type":"rate_limit_exceeded"}}"#], "throttled, refused, -"),
        row("115, daily", CHAT, Status(429), ["", r#"{"error":{"code":"QUOTA_USER_DAILY_REQUEST","message":"m"}}"#], "quota_spent, final, -"),
        row("115, money", CHAT, Status(429), ["", r#"{"error":{"code":"BILLING_INSUFFICIENT_BALANCE","message":"m"}}"#], "quota_spent, final, -"),
        row("116", CHAT, Status(400), ["", r#"{"error":{"code":"tokens_too_long","message":"m"}}"#], "too_long, final, -"),
        row("116, chars", CHAT, Status(400), ["", r#"{"error":{"code":"characters_too_long","message":"m"}}"#], "too_long, final, -"),
    ]);
}

#[test]
fn servers_of_ones_own() {
    check(&[
        row("117", OLLAMA, Status(503), ["", r#"{"error":"server busy, please try again.  maximum pending requests exceeded"}"#], "at_capacity, refused, -"),
        row("118", OLLAMA, Stream, ["", r#"{"error":"model runner has unexpectedly stopped, this may be due to resource limitations or an internal error"}"#], "server_failed, failed, -"),
        row("118, memory", OLLAMA, Stream, ["", r#"{"error":"CUDA error: out of memory"}"#], "server_failed, failed, -"),
        row("118, unknown", OLLAMA, Stream, ["", r#"{"error":"something new"}"#], "server_failed, final, -"),
        row("119", OLLAMA, Stream, ["", r#"{"error":"unexpected server status: llm server loading model"}"#], "model_loading, refused, -"),
        row("120", OLLAMA, Status(400), ["", r#"{"error":"registry.ollama.ai/library/m does not support tools"}"#], "bad_request, final, -"),
        row("120, 404", OLLAMA, Status(404), ["", r#"{"error":"model 'm' not found, try pulling it first"}"#], "bad_request, final, -"),
        row("120, 401", OLLAMA, Status(401), ["", r#"{"error":"unauthorized"}"#], "authentication, final, -"),
        row("120, 429", OLLAMA, Status(429), ["", r#"{"error":"you have reached the hourly limit"}"#], "throttled, refused, -"),
        row("121", OLLAMA, Status(499), ["", r#"{"error":"request canceled"}"#], "bad_request, final, -"),
        row("121, 500", OLLAMA, Status(500), ["", r#"{"error":"llama runner process has terminated: exit status 2"}"#], "server_failed, failed, -"),
        row("121, memory", OLLAMA, Status(500), ["", r#"{"error":"model requires more system memory (8.0 GiB) than is available (4.0 GiB)"}"#], "server_failed, failed, -"),
        row("122", CHAT, Stream, ["", r#"{"error":{"message":"engine died","type":"InternalServerError","param":null,"code":500}}"#], "server_failed, failed, -"),
        row("123", CHAT, Status(503), ["", r#"{"object":"error","message":"The request queue is full.","type":"ServiceUnavailableError","param":null,"code":503}"#], "at_capacity, refused, -"),
        row("123, stream", CHAT, Stream, ["", r#"{"error":{"object":"error","message":"The request queue is full.","type":"service_unavailable","code":503}}"#], "at_capacity, refused, -"),
        row("124", CHAT, Status(500), ["", r#"{"error":{"message":"EngineCore encountered an issue.","type":"EngineDeadError","code":500}}"#], "server_failed, failed, -"),
        row("125", CHAT, Status(400), ["", r#"{"error":{"message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","param":null,"code":400}}"#], "too_long, final, -"),
        row("125, old", CHAT, Status(400), ["", r#"{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","param":null,"code":400}"#], "too_long, final, -"),
        row("126", CHAT, Status(503), ["", r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#], "model_loading, refused, -"),
        row("126, inside", CHAT, Body, ["", r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#], "model_loading, refused, -"),
        row("127", CHAT, Status(400), ["", r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#], "too_long, final, -"),
        row("127, slot", CHAT, Status(503), ["", r#"{"error":{"code":503,"message":"no slot available","type":"unavailable_error"}}"#], "at_capacity, refused, -"),
        row("128", OTHER, Status(429), ["", r#"{"error":"Model is overloaded","error_type":"overloaded"}"#], "overloaded, refused, -"),
        row("129", CHAT, Status(404), ["", r#"{"error":{"message":"No models loaded. Please load a model in the developer page.","type":"invalid_request_error"}}"#], "bad_request, final, -"),
        row("129, 200", CHAT, Body, ["", r#"{"error":"Unexpected endpoint or method. (POST /v1/x)"}"#], "bad_request, final, -"),
        row("129, loading", CHAT, Status(400), ["", r#"{"error":{"message":"Failed to load model","type":"invalid_request_error"}}"#], "bad_request, final, -"),
        row("hub", OTHER, Status(503), ["", r#"{"error":"Model m is currently loading","estimated_time":20.0}"#], "model_loading, refused, -"),
    ]);
}
