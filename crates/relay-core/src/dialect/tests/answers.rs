//! The rows of the catalogue, answer by answer. A row is one line: number, path, where, headers and body, meaning.

use super::*;

use At::{Body, Status, Stream};

const LIMITED: &str = r#"{"type":"error","error":{"type":"rate_limit_error","message":"Number of requests has exceeded your per-minute rate limit"},"request_id":"req_1"}"#;

#[test]
fn anthropic_refuses() {
    check(&[
        row("1", CLAUDE, Status(529), ["x-should-retry: true\nrequest-id: req_1", r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}"#], "overloaded, refused, -"),
        row("2", CLAUDE, Stream, ["", r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#], "overloaded, refused, -"),
        row("4", CLAUDE, Status(429), ["retry-after: 23\nanthropic-ratelimit-requests-limit: 50\nanthropic-ratelimit-requests-remaining: 0\nanthropic-ratelimit-requests-reset: 2026-11-29T18:41:40Z", LIMITED], "throttled, refused, 23s"),
        row("4, reset only", CLAUDE, Status(429), ["anthropic-ratelimit-tokens-remaining: 0\nanthropic-ratelimit-tokens-reset: 2026-11-29T18:41:40Z\nanthropic-ratelimit-requests-remaining: 49\nanthropic-ratelimit-requests-reset: 2026-11-29T19:41:40Z", LIMITED], "throttled, refused, 40s"),
        row("5", CLAUDE, Status(429), ["", r#"{"type":"error","error":{"type":"rate_limit_error","message":"You have reached your monthly limit","details":{"error_code":"enforced_spend_limit_reached"}}}"#], "quota_spent, final, -"),
        row("6", CLAUDE, Status(429), ["", r#"{"type":"error","error":{"type":"rate_limit_error","message":"m","details":{"error_code":"contract_spend_limit_reached"}}}"#], "quota_spent, final, -"),
        row("6, header", CLAUDE, Status(429), ["anthropic-ratelimit-unified-overage-disabled-reason: org_spend_cap_reached", LIMITED], "quota_spent, final, -"),
        row("6, other header", CLAUDE, Status(429), ["anthropic-ratelimit-unified-overage-disabled-reason: org_level_disabled\nretry-after: 3", LIMITED], "throttled, refused, 3s"),
        row("7", CLAUDE, Status(429), ["anthropic-ratelimit-unified-status: rejected\nanthropic-ratelimit-unified-reset: 1795981260\nanthropic-ratelimit-unified-representative-claim: five_hour", LIMITED], "quota_spent, final, 3600s"),
        row("8", CLAUDE, Status(429), ["anthropic-ratelimit-unified-status: rejected\nanthropic-ratelimit-unified-overage-disabled-reason: fetch_error\nretry-after: 4", LIMITED], "throttled, refused, 4s"),
        row("8, unknown", CLAUDE, Status(429), ["anthropic-ratelimit-unified-status: rejected\nanthropic-ratelimit-unified-overage-disabled-reason: unknown", LIMITED], "throttled, refused, -"),
        row("9", CLAUDE, Status(429), ["", r#"{"type":"error","error":{"type":"rate_limit_error","message":"usage credits are required","details":{"error_code":"credits_required"}}}"#], "quota_spent, final, -"),
        row("17", CLAUDE, Status(409), ["", r#"{"type":"error","error":{"type":"conflict_error","message":"locked"}}"#], "bad_request, final, -"),
        row("18", CLAUDE, Status(504), ["", r#"{"type":"error","error":{"type":"timeout_error","message":"Request timed out"}}"#], "server_failed, maybe ran, -"),
        row("18, 408", CLAUDE, Status(408), ["", r#"{"type":"error","error":{"type":"timeout_error","message":"Request timed out"}}"#], "server_failed, maybe ran, -"),
        row("19", CLAUDE, Status(500), ["", r#"{"type":"error","error":{"type":"api_error","message":"Internal server error"}}"#], "server_failed, failed, -"),
        row("19, declined", CLAUDE, Status(500), ["x-should-retry: false", r#"{"type":"error","error":{"type":"api_error","message":"Internal server error"}}"#], "server_failed, final, -"),
        row("20", CLAUDE, Status(502), ["content-type: text/html", "<html><h1>502 Bad Gateway</h1></html>"], "server_failed, failed, -"),
        row("20, 503", CLAUDE, Status(503), ["", r#"{"type":"error","error":{"type":"api_error","message":"upstream connect error"}}"#], "at_capacity, refused if prompt, -"),
        row("20, 504", CLAUDE, Status(504), ["", r#"{"type":"error","error":{"type":"api_error","message":"upstream timed out"}}"#], "server_failed, maybe ran, -"),
        row("20, 529", CLAUDE, Status(529), ["", r#"{"type":"error","error":{"type":"api_error","message":"busy"}}"#], "overloaded, refused, -"),
        row("20, 429", CLAUDE, Status(429), ["", r#"{"type":"error","error":{"type":"api_error","message":"busy"}}"#], "throttled, refused, -"),
        row("20, stream", CLAUDE, Stream, ["", r#"{"type":"error","error":{"type":"api_error","message":"Internal server error"}}"#], "server_failed, failed, -"),
        row("21", CLAUDE, Status(503), ["x-should-retry: false", ""], "at_capacity, final, -"),
    ]);
}

#[test]
fn anthropic_declines_for_good() {
    check(&[
        row("10", CLAUDE, Status(400), ["", r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}"#], "quota_spent, final, -"),
        row("11", CLAUDE, Status(402), ["", r#"{"type":"error","error":{"type":"billing_error","message":"m"}}"#], "quota_spent, final, -"),
        row("12", CLAUDE, Status(401), ["x-should-retry: false", r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#], "authentication, final, -"),
        row("12, told to retry", CLAUDE, Status(401), ["x-should-retry: true", r#"{"type":"error","error":{"type":"authentication_error","message":"OAuth token has expired"}}"#], "authentication, final, -"),
        row("13", CLAUDE, Status(403), ["", r#"{"type":"error","error":{"type":"permission_error","message":"m"}}"#], "authentication, final, -"),
        row("14", CLAUDE, Status(404), ["", r#"{"type":"error","error":{"type":"not_found_error","message":"model: claude-x"}}"#], "bad_request, final, -"),
        row("15", CLAUDE, Status(400), ["", r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#], "too_long, final, -"),
        row("15, sum", CLAUDE, Status(400), ["", r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"}}"#], "too_long, final, -"),
        row("15, plain", CLAUDE, Status(400), ["", r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages: at least one message is required"}}"#], "bad_request, final, -"),
        row("16", CLAUDE, Status(413), ["", r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#], "too_long, final, -"),
    ]);
}

const RPM: &str = r#"{"error":{"message":"Rate limit reached for gpt-5.6-sol in organization org-1 on requests per min (RPM): Limit 3, Used 3, Requested 1. Please try again in 20s.","type":"requests","param":null,"code":"rate_limit_exceeded"}}"#;

#[test]
fn openai_refuses() {
    check(&[
        row("24", RESPONSES, Status(503), ["", r#"{"error":{"type":"service_unavailable_error","code":"server_is_overloaded","message":"Our servers are currently overloaded. Please try again later.","param":null}}"#], "at_capacity, refused, -"),
        row("24, told", RESPONSES, Status(503), ["retry-after: 7", r#"{"error":{"type":"service_unavailable_error","code":"server_is_overloaded","message":"m"}}"#], "at_capacity, refused, 7s"),
        row("24, plan", RESPONSES, Status(503), ["", r#"{"error":{"code":"policy_capacity_unavailable","message":"m"}}"#], "at_capacity, refused, -"),
        row("24, plan 403", RESPONSES, Status(403), ["", r#"{"error":{"code":"policy_capacity_unavailable","message":"m"}}"#], "at_capacity, refused, -"),
        row("24, flex", CHAT, Status(429), ["", r#"{"error":{"code":"flex_unavailable","message":"m"}}"#], "at_capacity, refused, -"),
        row("24, flex code of the page", CHAT, Status(429), ["", r#"{"error":{"code":"resource_unavailable","message":"m"}}"#], "at_capacity, refused, -"),
        row("24, old", CHAT, Status(503), ["", r#"{"error":{"message":"The server is currently overloaded with other requests. Sorry about that!","type":"server_error","param":null,"code":null}}"#], "at_capacity, refused if prompt, -"),
        row("25", RESPONSES, Status(429), ["", r#"{"error":{"type":"rate_limit_error","code":"slow_down","message":"m"}}"#], "throttled, refused, -"),
        row("26", CHAT, Status(429), ["", RPM], "throttled, refused, 20s"),
        row("26, both", CHAT, Status(429), ["retry-after: 21\nretry-after-ms: 20500", RPM], "throttled, refused, 20.5s"),
        row("26, bucket", CHAT, Status(429), ["x-ratelimit-remaining-tokens: 0\nx-ratelimit-reset-tokens: 6m0s\nx-ratelimit-remaining-requests: 10\nx-ratelimit-reset-requests: 1s", r#"{"error":{"message":"m","type":"tokens","code":"rate_limit_exceeded"}}"#], "throttled, refused, 360s"),
        row("27", CHAT, Status(429), ["", r#"{"error":{"message":"Rate limit reached for m on requests per day (RPD): Limit 200, Used 200, Requested 1. Please try again in 7m12s.","type":"requests","code":"rate_limit_exceeded"}}"#], "throttled, refused, 432s"),
        row("31", RESPONSES, Stream, ["", r#"{"type":"response.failed","response":{"id":"r","status":"failed","error":{"code":"server_is_overloaded","message":"Selected model is at capacity. Please try a different model."}}}"#], "at_capacity, refused, -"),
        row("31, error", RESPONSES, Stream, ["", r#"{"type":"error","sequence_number":2,"error":{"type":"service_unavailable_error","code":"server_is_overloaded","message":"m","param":null}}"#], "at_capacity, refused, -"),
        row("31, flat", RESPONSES, Stream, ["", r#"{"type":"error","code":"server_is_overloaded","message":"m","param":null}"#], "at_capacity, refused, -"),
        row("31, slow", RESPONSES, Stream, ["", r#"{"type":"response.failed","response":{"error":{"code":"slow_down","message":"m"}}}"#], "throttled, refused, -"),
        row("31, words", CHAT, Status(503), ["", r#"{"error":{"message":"Selected model is at capacity. Please try a different model."}}"#], "at_capacity, refused, -"),
        row("32", CHAT, Body, ["", r#"{"error":{"message":"service is overloaded","code":503}}"#], "overloaded, refused, -"),
        row("32, words", CHAT, Body, ["", r#"{"error":{"message":"no healthy upstream","code":503}}"#], "at_capacity, refused, -"),
        row("32, 500", CHAT, Body, ["", r#"{"error":{"message":"m","code":500}}"#], "server_failed, failed, -"),
        row("32, 504", CHAT, Body, ["", r#"{"error":{"message":"m","code":504}}"#], "server_failed, maybe ran, -"),
        row("32, text", CHAT, Body, ["", r#"{"error":"the model is overloaded"}"#], "overloaded, refused, -"),
        row("33", RESPONSES, Stream, ["", r#"{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"Rate limit reached. Please try again in 1.2s."}}}"#], "throttled, refused, 1.2s"),
        row("42", CHAT, Status(500), ["", r#"{"error":{"message":"The server had an error while processing your request","type":"server_error","param":null,"code":null}}"#], "server_failed, failed, -"),
        row("42, stream", RESPONSES, Stream, ["", r#"{"type":"response.failed","response":{"error":{"code":"server_error","message":"An error occurred"}}}"#], "server_failed, failed, -"),
        row("42, 504", CHAT, Status(504), ["", r#"{"error":{"message":"m","type":"server_error"}}"#], "server_failed, maybe ran, -"),
        row("42, 524", CHAT, Status(524), ["", r#"{"error":{"message":"m","code":"internal_error"}}"#], "server_failed, maybe ran, -"),
        row("42, 507", CHAT, Status(507), ["", r#"{"error":{"message":"m","type":"server_error"}}"#], "server_failed, final, -"),
        row("43", RESPONSES, Status(502), ["content-type: text/html", "<html><center>cloudflare</center></html>"], "server_failed, failed, -"),
        row("43, 520", RESPONSES, Status(520), ["", ""], "server_failed, failed, -"),
        row("43, 522", RESPONSES, Status(522), ["content-type: text/html", "<center>cloudflare</center>"], "server_failed, refused, -"),
        row("43, 524", RESPONSES, Status(524), ["content-type: text/html", "<center>cloudflare</center>"], "server_failed, maybe ran, -"),
        row("44", CHAT, Status(408), ["", ""], "server_failed, maybe ran, -"),
        row("44, 409", CHAT, Status(409), ["", ""], "bad_request, final, -"),
    ]);
}

#[test]
fn openai_declines_for_good() {
    check(&[
        row("28", CHAT, Status(429), ["", r#"{"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"You exceeded your current quota, please check your plan and billing details."}}"#], "quota_spent, final, -"),
        row("28, balance", CHAT, Status(429), ["", r#"{"error":{"type":"insufficient_quota","code":"credit_balance_exhausted","message":"m"}}"#], "quota_spent, final, -"),
        row("28, 200", CHAT, Body, ["", r#"{"error":{"code":"insufficient_quota","type":"insufficient_quota","message":"quota spent"}}"#], "quota_spent, final, -"),
        row("28, told to retry", CHAT, Status(429), ["x-should-retry: true\nretry-after: 1", r#"{"error":{"code":"insufficient_quota","message":"m"}}"#], "quota_spent, final, 1s"),
        row("29", CHAT, Status(429), ["", r#"{"error":{"type":"insufficient_quota","code":"project_spend_limit_exceeded","message":"m"}}"#], "quota_spent, final, -"),
        row("30", RESPONSES, Status(429), ["", r#"{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"plus","resets_at":1999999999,"resets_in_seconds":3600}}"#], "quota_spent, final, -"),
        row("34, long", RESPONSES, Stream, ["", r#"{"type":"response.failed","response":{"error":{"code":"context_length_exceeded","message":"m"}}}"#], "too_long, final, -"),
        row("34, quota", RESPONSES, Stream, ["", r#"{"type":"error","code":"insufficient_quota","message":"m"}"#], "quota_spent, final, -"),
        row("34, prompt", RESPONSES, Stream, ["", r#"{"type":"response.failed","response":{"error":{"code":"invalid_prompt","message":"m"}}}"#], "bad_request, final, -"),
        row("34, plan", RESPONSES, Stream, ["", r#"{"type":"response.failed","response":{"error":{"code":"usage_not_included","message":"m"}}}"#], "quota_spent, final, -"),
        row("34, policy", RESPONSES, Stream, ["", r#"{"type":"response.failed","response":{"error":{"code":"cyber_policy","message":"m"}}}"#], "content_refused, final, -"),
        row("34, unknown", RESPONSES, Stream, ["", r#"{"type":"response.failed","response":{"error":{"code":"brand_new","message":"the service is overloaded"}}}"#], "server_failed, final, -"),
        row("36", CHAT, Status(400), ["", r#"{"error":{"code":"context_length_exceeded","type":"invalid_request_error","message":"m"}}"#], "too_long, final, -"),
        row("37", CHAT, Status(400), ["", r#"{"error":{"type":"invalid_request_error","message":"Unknown parameter: 'x'.","code":"unknown_parameter"}}"#], "bad_request, final, -"),
        row("37, policy", CHAT, Status(400), ["", r#"{"error":{"code":"content_policy_violation","message":"m"}}"#], "content_refused, final, -"),
        row("37, detail", RESPONSES, Status(400), ["", r#"{"detail":"The 'x' model is not supported when using Codex with a ChatGPT account."}"#], "bad_request, final, -"),
        row("38", CHAT, Status(401), ["www-authenticate: Bearer", r#"{"error":{"type":"invalid_request_error","code":"invalid_api_key","message":"Key rejected. This is not an at capacity or overloaded condition."}}"#], "authentication, final, -"),
        row("38, words alone", CHAT, Status(401), ["", r#"{"error":{"message":"overloaded, at capacity, rate limit"}}"#], "authentication, final, -"),
        row("38, capacity code", CHAT, Status(401), ["", r#"{"error":{"code":"overloaded_error","message":"m"}}"#], "authentication, final, -"),
        row("38, inside", CHAT, Body, ["", r#"{"error":{"code":401,"message":"overloaded, at capacity, rate limit"}}"#], "authentication, final, -"),
        row("39", CHAT, Status(403), ["", r#"{"error":{"code":"unsupported_country_region_territory","message":"m"}}"#], "authentication, final, -"),
        row("39, edge", RESPONSES, Status(403), ["cf-mitigated: challenge\ncontent-type: text/html", "<html>Just a moment...</html>"], "challenge, final, -"),
        row("39, edge 429", RESPONSES, Status(429), ["cf-mitigated: challenge\nretry-after: 3", ""], "challenge, final, 3s"),
        row("40", CHAT, Status(404), ["", r#"{"error":{"code":"model_not_found","message":"m"}}"#], "bad_request, final, -"),
        row("41", CHAT, Status(413), ["content-type: text/html", "<html><title>413 Request Entity Too Large</title></html>"], "too_long, final, -"),
        row("41, words", CHAT, Status(413), ["", r#"{"error":{"message":"overloaded"}}"#], "too_long, final, -"),
    ]);
}

#[test]
fn gateways() {
    check(&[
        row("71", CHAT, Status(429), ["retry-after: 5", r#"{"error":{"code":429,"message":"Provider returned error","metadata":{"provider_name":"x","raw":"temporarily rate-limited upstream"}}}"#], "throttled, refused, 5s"),
        row("72", CHAT, Status(503), ["", r#"{"error":{"code":503,"message":"m","metadata":{"error_type":"provider_overloaded"}}}"#], "overloaded, refused, -"),
        row("73", CHAT, Status(503), ["", r#"{"error":{"code":503,"message":"No allowed providers are available for the selected model."}}"#], "at_capacity, refused if prompt, -"),
        row("73, 502", CHAT, Status(502), ["", r#"{"error":{"code":502,"message":"Provider returned an invalid response"}}"#], "server_failed, failed, -"),
        row("74", CHAT, Status(402), ["retry-after: 9", r#"{"error":{"code":402,"message":"m","metadata":{"limit_source":"openrouter_in_flight_budget"}}}"#], "throttled, refused, 9s"),
        row("74, named", CHAT, Status(402), ["retry-after: 9", r#"{"error":{"code":"payment_required","message":"m","metadata":{"limit_source":"openrouter_in_flight_budget"}}}"#], "throttled, refused, 9s"),
        row("75", CHAT, Status(402), ["", r#"{"error":{"code":402,"message":"Insufficient credits","metadata":{"limit_source":"account_balance"}}}"#], "quota_spent, final, -"),
        row("76", CHAT, Stream, ["", r#"{"id":"g","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}],"error":{"code":502,"message":"Provider disconnected"}}"#], "server_failed, failed, -"),
        row("76, named", CHAT, Stream, ["", r#"{"id":"g","choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}],"error":{"code":"server_error","message":"Provider disconnected unexpectedly"}}"#], "server_failed, failed, -"),
        row("76, body", CHAT, Body, ["", r#"{"error":{"code":429,"message":"Rate limit exceeded"},"user_id":"u"}"#], "throttled, refused, -"),
        row("76, money", CHAT, Body, ["", r#"{"error":{"code":402,"message":"Insufficient credits"}}"#], "quota_spent, final, -"),
        row("77", CHAT, Status(403), ["", r#"{"error":{"code":403,"message":"Your input was flagged","metadata":{"reasons":["violence"]}}}"#], "authentication, final, -"),
        row("77, 408", CHAT, Status(408), ["", r#"{"error":{"code":408,"message":"timed out"}}"#], "server_failed, maybe ran, -"),
        row("78", CHAT, Status(429), ["", r#"{"error":{"message":"No deployments available for selected model, Try again in 60 seconds.","type":"None","param":"None","code":"429"}}"#], "throttled, refused, 60s"),
        row("79", CHAT, Status(400), ["", r#"{"error":{"message":"Budget has been exceeded! Current cost: 1.2, Max budget: 1.0","type":"budget_exceeded","param":null,"code":"400"}}"#], "quota_spent, final, -"),
        row("79, words", CHAT, Status(400), ["", r#"{"error":{"message":"ExceededBudget: User u over budget."}}"#], "quota_spent, final, -"),
        row("80", CHAT, Status(429), ["retry-after: 2", r#"{"error":{"message":"m","type":"tokens","code":"rate_limit_exceeded"}}"#], "throttled, refused, 2s"),
        row("80, 498", CHAT, Status(498), ["", r#"{"error":{"message":"m","type":"capacity_exceeded"}}"#], "at_capacity, refused, -"),
        row("81", CHAT, Status(413), ["", r#"{"error":{"message":"Request too large for model on tokens per minute (TPM): Limit 6000, Requested 9000","type":"tokens","code":"rate_limit_exceeded"}}"#], "too_long, final, -"),
        row("81, 422", CHAT, Status(422), ["", ""], "bad_request, final, -"),
        row("81, 424", CHAT, Status(424), ["", ""], "bad_request, final, -"),
        row("82", CHAT, Status(429), ["", r#"{"message":"Requests rate limit exceeded"}"#], "throttled, refused, -"),
        row("82, 503", CHAT, Status(503), ["retry-after: 1", r#"{"error":{"message":"The request queue is full."}}"#], "at_capacity, refused, 1s"),
        row("83", CHAT, Status(503), ["", r#"{"error":{"message":"Engine Overloaded","type":null,"code":null}}"#], "overloaded, refused, -"),
        row("83, 403", CHAT, Status(403), ["", r#"{"error":{"message":"Input token count exceeds the model's maximum context length"}}"#], "too_long, final, -"),
        row("84", CHAT, Status(429), ["", r#"{"error":{"message":"Concurrency limit reached for requests"}}"#], "throttled, refused, -"),
        row("84, 503", CHAT, Status(503), ["", r#"{"error":{"message":"The engine is currently overloaded, please try again later"}}"#], "overloaded, refused, -"),
        row("85", OTHER, Status(521), ["content-type: text/html", "<html>Web server is down</html>"], "server_failed, refused, -"),
        row("85, 1015", OTHER, Status(429), ["content-type: text/html\nretry-after: 30", "<html>error code: 1015</html>"], "throttled, refused, 30s"),
        row("96", CHAT, Status(429), ["", r#"{"error":{"code":"1305","message":"The service may be temporarily overloaded, please try again later"}}"#], "overloaded, refused, -"),
        row("95", CHAT, Status(429), ["", r#"{"error":{"code":"1302","message":"m"}}"#], "throttled, refused, -"),
        row("122", RESPONSES, Stream, ["", r#"{"error":{"message":"engine died","type":"InternalServerError","code":500}}"#], "server_failed, failed, -"),
    ]);
}

#[test]
fn the_services_own_word_about_resending() {
    check(&[
        row("false", CHAT, Status(429), ["x-should-retry: false\nretry-after: 1", ""], "throttled, final, 1s"),
        row("false, capacity code", CHAT, Status(503), ["x-should-retry: false", r#"{"error":{"code":"server_is_overloaded"}}"#], "at_capacity, final, -"),
        row("true lifts", CHAT, Status(400), ["x-should-retry: true", ""], "bad_request, failed, -"),
        row("true lifts 409", CLAUDE, Status(409), ["x-should-retry: true", r#"{"type":"error","error":{"type":"conflict_error","message":"m"}}"#], "bad_request, failed, -"),
        row("true, no quota", CHAT, Status(402), ["x-should-retry: true", ""], "quota_spent, final, -"),
        row("true, no key", CHAT, Status(403), ["x-should-retry: true", ""], "authentication, final, -"),
        row("true, not maybe ran", CHAT, Status(504), ["x-should-retry: true", ""], "server_failed, maybe ran, -"),
        row("true, refused stays", CHAT, Status(529), ["x-should-retry: true", ""], "overloaded, refused, -"),
        row("true, failed stays", CHAT, Status(500), ["x-should-retry: true", ""], "server_failed, failed, -"),
        row("false, in capitals", CHAT, Status(503), ["X-Should-Retry: False", ""], "at_capacity, final, -"),
        row("false, shouted", CHAT, Status(503), ["x-should-retry: FALSE", ""], "at_capacity, final, -"),
        row("true, in capitals", CHAT, Status(400), ["x-should-retry: True", ""], "bad_request, failed, -"),
        row("both", CHAT, Status(503), ["x-should-retry: true\nx-should-retry: false", ""], "at_capacity, final, -"),
        row("both", CHAT, Status(503), ["x-should-retry: false\nx-should-retry: true", ""], "at_capacity, final, -"),
        row("another word", CHAT, Status(503), ["x-should-retry: maybe", ""], "at_capacity, refused if prompt, -"),
        row("true in a 200", CHAT, Body, ["x-should-retry: true", r#"{"error":{"code":"model_not_found"}}"#], "bad_request, final, -"),
    ]);
}
