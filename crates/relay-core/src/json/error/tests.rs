use super::*;
use proptest::prelude::*;

fn of(body: &str) -> ErrorFields {
    error_fields(body.as_bytes()).unwrap_or_else(|| panic!("no error in {body}"))
}

/// Code, kind, status, message and HTTP status of an error.
type Row<'a> = (Option<&'a str>, Option<&'a str>, Option<&'a str>, Option<&'a str>, Option<u16>);

fn row(fields: &ErrorFields) -> Row<'_> {
    let ErrorFields { code, kind, status, message, http, .. } = fields;
    (code.as_deref(), kind.as_deref(), status.as_deref(), message.as_deref(), *http)
}

#[test]
fn error_objects_of_every_service() {
    for (source, body, expected) in [
        (
            "OpenAI",
            r#"{"error":{"message":"m","type":"requests","param":null,"code":"rate_limit_exceeded"}}"#,
            (Some("rate_limit_exceeded"), Some("requests"), None, Some("m"), None),
        ),
        (
            "a 503 in a 200",
            r#"{"error":{"message":"service is overloaded","code":503}}"#,
            (Some("503"), None, None, Some("service is overloaded"), Some(503)),
        ),
        (
            "Anthropic",
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            (None, Some("overloaded_error"), None, Some("Overloaded"), None),
        ),
        (
            "Anthropic, with the precise code",
            r#"{"type":"error","error":{"type":"rate_limit_error","message":"m",
                "details":{"error_code":"credits_required"}}}"#,
            (Some("credits_required"), Some("rate_limit_error"), None, Some("m"), None),
        ),
        (
            "Gemini",
            r#"{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}"#,
            (Some("503"), None, Some("UNAVAILABLE"), Some("The model is overloaded."), Some(503)),
        ),
        (
            "Gemini without alt=sse",
            r#" [{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}]"#,
            (Some("429"), None, Some("RESOURCE_EXHAUSTED"), None, Some(429)),
        ),
        (
            "LiteLLM",
            r#"{"error":{"message":"m","type":"None","param":"None","code":"429"}}"#,
            (Some("429"), Some("None"), None, Some("m"), Some(429)),
        ),
        ("Zhipu", r#"{"error":{"code":"1302","message":"m"}}"#, (Some("1302"), None, None, Some("m"), None)),
        ("a proxy around it", r#"{"error":{"error":{"code":"c"}}}"#, (Some("c"), None, None, None, None)),
        ("FastAPI around it", r#"{"detail":{"error":{"code":"c"}}}"#, (Some("c"), None, None, None, None)),
        ("escaped keys", r#"{"\u0065rror":{"cod\u0065":"\u0063"}}"#, (Some("c"), None, None, None, None)),
    ] {
        assert_eq!(row(&of(body)), expected, "{source}");
    }
}

#[test]
fn errors_without_an_error_object() {
    for (source, body, expected) in [
        ("Ollama", r#"{"error":"server busy"}"#, (None, None, None, Some("server busy"), None)),
        (
            "TGI",
            r#"{"error":"Model is overloaded","error_type":"overloaded"}"#,
            (None, Some("overloaded"), None, Some("Model is overloaded"), None),
        ),
        (
            "Fastify",
            r#"{"statusCode":429,"error":"Too Many Requests","message":"retry in 1 minute"}"#,
            (Some("429"), Some("Too Many Requests"), None, Some("retry in 1 minute"), Some(429)),
        ),
        (
            "Responses, flat event",
            r#"{"type":"error","sequence_number":1,"code":"server_is_overloaded","message":"m"}"#,
            (Some("server_is_overloaded"), None, None, Some("m"), None),
        ),
        (
            "Responses, failed",
            r#"{"type":"response.failed","response":{"id":"r","status":"failed","output":[],
                "error":{"code":"rate_limit_exceeded","message":"Please try again in 1.2s"}}}"#,
            (Some("rate_limit_exceeded"), None, None, Some("Please try again in 1.2s"), None),
        ),
        (
            "Responses over a WebSocket",
            r#"{"type":"error","status":429,"error":{"type":"usage_limit_reached","message":"m"}}"#,
            (None, Some("usage_limit_reached"), None, Some("m"), Some(429)),
        ),
        ("FastAPI", r#"{"detail":"not supported"}"#, (None, None, None, Some("not supported"), None)),
        (
            "FastAPI, of a field",
            r#"{"detail":[{"loc":["body"],"msg":"field required","type":"missing"}]}"#,
            (None, Some("missing"), None, Some("field required"), None),
        ),
        (
            "RFC 9457",
            r#"{"type":"about:blank","title":"t","status":429,"detail":"slow down"}"#,
            (None, Some("about:blank"), None, Some("slow down"), Some(429)),
        ),
        (
            "Cloudflare",
            r#"{"success":false,"errors":[{"code":10000,"message":"m"}],"messages":[],"result":null}"#,
            (Some("10000"), None, None, Some("m"), None),
        ),
        ("plain errors", r#"{"errors":["m"]}"#, (None, None, None, Some("m"), None)),
        (
            "vLLM, older",
            r#"{"object":"error","message":"m","type":"BadRequestError","param":null,"code":400}"#,
            (Some("400"), Some("BadRequestError"), None, Some("m"), Some(400)),
        ),
        (
            "SiliconFlow",
            r#"{"code":50505,"message":"System is too busy now.","data":null}"#,
            (Some("50505"), None, None, Some("System is too busy now."), None),
        ),
        (
            "DashScope",
            r#"{"code":"Throttling.RateQuota","message":"m","request_id":"r"}"#,
            (Some("Throttling.RateQuota"), None, None, Some("m"), None),
        ),
        (
            "MiniMax",
            r#"{"id":"x","choices":null,"base_resp":{"status_code":1002,"status_msg":"rate limit"}}"#,
            (Some("1002"), None, None, Some("rate limit"), None),
        ),
        (
            "Baidu",
            r#"{"error_code":336501,"error_msg":"m","id":"as-1"}"#,
            (Some("336501"), None, None, Some("m"), None),
        ),
        ("no words", r#"{"type":"response.failed"}"#, (None, Some("response.failed"), None, None, None)),
        ("no words", r#"{"error":true,"msg":"m"}"#, (None, None, None, Some("m"), None)),
        ("a number", r#"{"error":503}"#, (Some("503"), None, None, None, Some(503))),
    ] {
        assert_eq!(row(&of(body)), expected, "{source}");
        assert!(is_top_level_error(body.as_bytes()), "{source}");
    }
}

#[test]
fn health() {
    for body in [
        r#"{"error":null,"choices":[{"message":{"content":"overloaded"}}]}"#,
        r#"{"object":"response","status":"completed","error":null,"output":[{"type":"message"}]}"#,
        r#"{"type":"response.completed","response":{"error":null,"output":[]}}"#,
        r#"{"error":{}}"#,
        r#"{"error":{ }}"#,
        r#"{"error":false}"#,
        r#"{"error":""}"#,
        r#"{"error":[]}"#,
        r#"{"error":0}"#,
        r#"{"errors":[],"messages":[]}"#,
        r#"{"detail":null}"#,
        r#"{"base_resp":{"status_code":0,"status_msg":"success"}}"#,
        r#"{"code":20000,"message":"OK","status":true}"#,
        r#"{"code":"","message":"","output":{"text":"x"}}"#,
        r#"{"code":0,"message":"m"}"#,
        r#"{"code":"Success","message":"m"}"#,
        r#"{"code":1,"message":"m","data":{"x":1}}"#,
        r#"{"code":1,"message":"m","balance":7}"#,
        r#"{"message":"hello"}"#,
        r#"{"type":"progress","detail":"50 %"}"#,
        r#"{"type":"message","content":[{"type":"text","text":"{\"error\":{\"code\":503}}"}]}"#,
        r#"{"type":"content_block_delta","delta":{"type":"error","error":{"message":"m"}}}"#,
        r#"[{"candidates":[{}]}]"#,
        r#"["error"]"#,
        r#""error""#,
        r#"{"error":{"code":503}"#,
        "",
        "null",
        "<html>503</html>",
    ] {
        assert_eq!(error_fields(body.as_bytes()), None, "{body}");
        assert!(!is_top_level_error(body.as_bytes()), "{body}");
    }
}

#[test]
fn an_error_beside_an_answer_is_not_the_whole_answer() {
    for body in [
        r#"{"error":{"code":502},"choices":[{"delta":{"content":""},"finish_reason":"error"}]}"#,
        r#"{"status":"failed","error":{"code":"server_error"},"output":[{"type":"reasoning"}]}"#,
        r#"{"type":"response.failed","response":{"error":{"code":"c"},"output":[{}]}}"#,
        r#"[{"candidates":[{}]},{"error":{"code":503}}]"#,
        r#"{"error":"x","message":{"role":"assistant"}}"#,
        r#"{"error":"x","response":"text"}"#,
    ] {
        assert!(of(body).names_output, "{body}");
        assert!(!is_top_level_error(body.as_bytes()), "{body}");
    }
    for body in
        [r#"{"error":"x","choices":[],"output":{},"content":"","data":null}"#, "\n\n{\"error\":\"x\"}"]
    {
        assert!(is_top_level_error(body.as_bytes()), "{body}");
    }
}

#[test]
fn times_and_reasons() {
    let google = of(r#"{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED","details":[
        {"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"RATE_LIMIT_EXCEEDED","metadata":{}},
        {"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[
            {"quotaId":"RequestsPerMinute"},{"quotaId":"RequestsPerDay"},{"quotaId":"TokensPerMinute"}]},
        {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"3.2s"}]}}"#);
    assert_eq!(google.retry_delay, Some(Duration::from_millis(3200)));
    assert_eq!(google.reason.as_deref(), Some("RATE_LIMIT_EXCEEDED"));
    assert_eq!(google.quota.as_deref(), Some("RequestsPerDay"));

    let codex =
        of(r#"{"error":{"type":"usage_limit_reached","resets_in_seconds":12.5,"resets_at":1795977660}}"#);
    assert_eq!((codex.resets_in, codex.resets_at), (Some(12.5), Some(1_795_977_660.0)));

    let router = of(r#"{"error":{"code":402,"message":"m","metadata":{
        "limit_source":"openrouter_in_flight_budget","raw":"busy","provider_name":"p"}}}"#);
    assert_eq!(router.reason.as_deref(), Some("openrouter_in_flight_budget"));
    assert_eq!((router.behind.as_deref(), router.http), (Some("busy"), Some(402)));
}

#[test]
fn a_refusal_may_be_told_in_any_words() {
    let message = |body: &str| refusal_fields(body.as_bytes()).and_then(|fields| fields.message);
    assert_eq!(
        message(r#"{"message":"API rate limit exceeded"}"#).as_deref(),
        Some("API rate limit exceeded")
    );
    assert_eq!(message(r#"{"msg":"m","anything":1}"#).as_deref(), Some("m"));
    assert_eq!(message(r#""Too many requests""#).as_deref(), Some("Too many requests"));
    assert_eq!(message(r#"{"error":{"message":"m"}}"#).as_deref(), Some("m"));
    for body in ["", "{}", "[]", "7", "<html>", r#"{"x":"y"}"#] {
        assert_eq!(refusal_fields(body.as_bytes()), None, "{body}");
    }
}

/// Values of any kind under the names that matter.
fn values() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        (-1_i64..700).prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        "(|error|response.failed|429|3.2s|\\PC{0,5})".prop_map(Into::into),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        let names = proptest::sample::select([TOP, ERROR, &["reason", "retryDelay", "violations"]].concat());
        let members = proptest::collection::vec((names, inner.clone()), 0..6);
        prop_oneof![
            proptest::collection::vec(inner, 0..4).prop_map(Into::into),
            members.prop_map(|it| it.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    })
}

/// An answer of a few kilobytes must not use up the stack, which ends the whole program.
#[test]
fn lists_without_end_are_an_error_of_which_nothing_is_known() {
    let deep = "[".repeat(30_000) + "1" + &"]".repeat(30_000);
    for name in ["error", "errors", "detail"] {
        let fields = of(&format!(r#"{{"{name}":{deep},"message":"m"}}"#));
        assert_eq!(fields.message.as_deref(), Some("m"), "{name}");
    }
    assert_eq!(error_fields(deep.as_bytes()), None);
}

#[test]
fn a_number_that_json_does_not_have_hides_no_error() {
    let fields = of(r#"{"error":{"code":"x","type":"t","resets_at":NaN,"resets_in_seconds":5}}"#);
    assert_eq!((row(&fields).0, row(&fields).1, fields.resets_at), (Some("x"), Some("t"), None));
    assert_eq!(fields.resets_in, Some(5.0));
    assert_eq!(of(r#"[{"error":{"code":503,"n":-Infinity}}]"#).http, Some(503));
    let bare = refusal_fields(br#"{"message":"m","wait":Infinity}"#).unwrap();
    assert_eq!(bare.message.as_deref(), Some("m"));
    // What is otherwise no JSON stays none.
    assert_eq!(error_fields(br#"{"error":{"code":"x"},"n":NaN"#), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn arbitrary_text_does_no_harm(
        text in "([{}\\[\\],:]|\"(error|errors|type|code|message|reason)\"|[0-9]{1,4}|null){0,9}",
    ) {
        let is_json = serde_json::from_str::<serde_json::Value>(&text).is_ok();
        prop_assert!(is_json || refusal_fields(text.as_bytes()).is_none());
        prop_assert!(!is_top_level_error(text.as_bytes()) || error_fields(text.as_bytes()).is_some());
    }

    #[test]
    fn any_kind_under_any_name_does_no_harm(value in values()) {
        let body = value.to_string();
        let (error, refusal) = (error_fields(body.as_bytes()), refusal_fields(body.as_bytes()));
        prop_assert!(error.is_none() || refusal == error);
        let http = error.and_then(|fields| fields.http);
        prop_assert!(http.is_none_or(|status| (400..600).contains(&status)));
    }

    #[test]
    fn a_code_is_found_as_it_was_written(
        code in "[a-z_.]{3,20}x", number in 300_u16..20000, message in "\\PC{1,20}",
    ) {
        let json = serde_json::json!({"error": {"code": code, "message": message}}).to_string();
        let fields = of(&json);
        prop_assert_eq!(row(&fields), (Some(code.as_str()), None, None, Some(message.as_str()), None));
        let text = number.to_string();
        let http = (400..600).contains(&number).then_some(number);
        let fields = of(&format!(r#"{{"error":{{"code":{number}}}}}"#));
        prop_assert_eq!(row(&fields), (Some(text.as_str()), None, None, None, http));
    }
}
