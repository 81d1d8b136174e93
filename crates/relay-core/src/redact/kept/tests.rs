//! Secrets everywhere, and none of them left.

use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn only_headers_that_are_known_show_their_value() {
    for (name, value, shown) in [
        ("Content-Type", "application/json", "application/json"),
        ("authorization", "Bearer sk-proj-abcdef12345", "[redacted, 26 bytes]"),
        ("X-Anything", "hunter2", "[redacted, 7 bytes]"),
        ("cookie", "a=b", "[redacted, 3 bytes]"),
        ("x-stainless-lang", "python", "python"),
        ("accept", "sk-proj-abcdef12345", "[redacted]"),
        (
            "user-agent",
            "codex_cli_rs/0.171.0 (Linux; me@example.com) hunter2 xterm/1",
            "codex_cli_rs/0.171.0 xterm/1",
        ),
        ("user-agent", "hunter2", "[redacted, 7 bytes]"),
    ] {
        assert_eq!(request_header(name, value), shown, "{name}");
    }
    for (name, value, shown) in [
        ("x-load", "98%", "98%"),
        ("x-places", "4/4", "4/4"),
        ("x-codex-status", "overloaded", "overloaded"),
        ("retry-after", "Fri, 31 Dec 1999 23:59:59 GMT", "Fri, 31 Dec 1999 23:59:59 GMT"),
        ("set-cookie", "session", "[redacted, 7 bytes]"),
        ("x-auth-token", "hunter", "[redacted, 6 bytes]"),
        ("x-request-id", "req_0123456789", "[redacted, 14 bytes]"),
        ("x-account", "42", "[redacted, 2 bytes]"),
    ] {
        assert_eq!(answer_header(name, value), shown, "{name}");
    }
}

#[test]
fn addresses_lose_what_tells_and_keep_what_does_not() {
    for (from, shown) in [
        ("/v1/responses", "/v1/responses"),
        (
            "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse&key=hunter2",
            "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse&key=[redacted]",
        ),
        (
            "/v1/x?api-version=2025-01-01&accessToken=a&sig=b&flag",
            "/v1/x?api-version=2025-01-01&accessToken=[redacted]&sig=[redacted]&flag",
        ),
        ("/~0123456789abcdef0123456789abcdef/v1", "/[redacted]/v1"),
        ("/files/sk-proj-abcdef12345/x", "/files/[redacted]/x"),
        ("/files/sk%2Dproj%2Dabcdef12345", "/files/[redacted]"),
        ("/q?x=jane%40example.com", "/q?x=[redacted]"),
        ("/q?x=jane%2540example.com", "/q?x=[redacted]"),
        ("/home/jane/x", "~/x"),
        ("https://me:hunter2@host/a?b=c#hunter2", "https://[redacted]@host/a?b=c#…"),
    ] {
        assert_eq!(url(from), shown);
        assert_eq!(url(shown), shown, "once redacted is redacted");
    }
}

#[test]
fn json_loses_secrets_by_name_by_look_and_within_texts() {
    let inner = json!({"cmd": "login", "password": "hunter2", "path": "/home/jane/x"}).to_string();
    let twice = json!({"arguments": inner}).to_string();
    let kept = json(json!({
        "model": "claude-sonnet-4-5-20250929",
        "max_tokens": 4096,
        "usage": {"input_tokens": 1, "output_tokens_details": {"reasoning_tokens": 2}},
        "apiKey": "hunter2", "API-KEY": "hunter2", "x_access_token": "hunter2", "user": "jane", "userId": 7,
        "pin": 1234, "tokens": ["hunter2"], "my_tokens": {"a": "hunter2"}, "nested": {"deep": [{"clientSecret": {"a": "hunter2"}}]},
        "sk-proj-abcdef12345": 1,
        "text": "my key is sk-proj-abcdef12345, mail jane@example.com, see /Users/jane/notes",
        "image": format!("data:image/png;base64,{}", "AAAA".repeat(10)),
        "blob": "Zm9v".repeat(100),
        "arguments": twice,
        "link": "see https://x.example/a?token=hunter2&b=1 or (https://me:hunter2@y.example/)",
        "pem": "-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----",
        "hash": "0123456789abcdef0123456789abcdef",
        "call_id": "call_AbCdEf123456GhIjKl7890",
        "number": 123_456_789_012_345_678_u64,
        "on": true, "none": null,
    }));
    let expected = json!({
        "model": "claude-sonnet-4-5-20250929",
        "max_tokens": 4096,
        "usage": {"input_tokens": 1, "output_tokens_details": {"reasoning_tokens": 2}},
        "apiKey": GONE, "API-KEY": GONE, "x_access_token": GONE, "user": GONE, "userId": GONE,
        "pin": GONE, "tokens": GONE, "my_tokens": GONE, "nested": {"deep": [{"clientSecret": GONE}]},
        GONE: 1,
        "text": "my key is [redacted], mail [redacted], see ~/notes",
        "image": "data:image/png;base64,[40 letters of data]",
        "blob": GONE,
        "arguments": json!({"arguments": json!({"cmd": "login", "password": GONE, "path": "~/x"}).to_string()}).to_string(),
        "link": "see https://x.example/a?token=[redacted]&b=1 or (https://[redacted]@y.example/)",
        "pem": GONE,
        "hash": GONE,
        "call_id": GONE,
        "number": GONE,
        "on": true, "none": null,
    });
    assert_eq!(kept, expected);
}

#[test]
fn bodies_are_read_by_their_kind_and_others_are_not_kept() {
    let text = |kind: &str, bytes: &str| match body(Some(kind), bytes.as_bytes()) {
        Some(Body::Text(text)) => text,
        other => panic!("{kind}: {other:?}"),
    };
    assert_eq!(
        text(
            "application/x-www-form-urlencoded; charset=utf-8",
            "grant_type=refresh&refresh_token=hunter2&x=a%40b.example"
        ),
        "grant_type=refresh&refresh_token=[redacted]&x=[redacted]"
    );
    assert_eq!(
        text("text/event-stream", "event: error\ndata: {\"token\":\"hunter2\",\"n\":1}\n\ndata: [DONE]\n"),
        "event: error\ndata: {\"n\":1,\"token\":\"[redacted]\"}\n\ndata: [DONE]\n"
    );
    assert_eq!(
        text("application/x-ndjson", "{\"key\":\"a\"}\n{\"b\":1}"),
        "{\"key\":\"[redacted]\"}\n{\"b\":1}"
    );
    assert_eq!(
        text("text/html", "<a href=\"https://x.example/?key=a\">x</a>"),
        "<a href=\"https://x.example/?key=[redacted]\">x</a>"
    );
    assert_eq!(body(None, b"{\"a\":1}"), Some(Body::Json(json!({"a": 1}))));
    assert_eq!(body(Some("application/problem+json"), b"[]"), Some(Body::Json(json!([]))));
    for (kind, bytes) in [
        ("multipart/form-data; boundary=x", &b"--x"[..]),
        ("application/octet-stream", b"{}"),
        ("application/json", b"{\"a\":"),
        ("text/plain", b"\xff\xfe"),
    ] {
        assert_eq!(body(Some(kind), bytes), None, "{kind}");
    }
}

#[test]
fn texts_lose_what_stands_in_parts_of_something_else() {
    for (words, shown) in [
        // Claude Code's name for a user, in JSON in a string in a longer text.
        (
            r#"body {"metadata":{"user_id":"{\"device_id\":\"hunter2\",\"account_uuid\":\"hunter2\"}"},"n":1} sent"#,
            r#"body {"metadata":{"user_id":"[redacted]"},"n":1} sent"#,
        ),
        (
            r#"got {\"account_uuid\": \"hunter2\", \"session_id\":\"hunter2\", \"model\": \"m\"}, then"#,
            r#"got {\"account_uuid\": \"[redacted]\", \"session_id\":\"[redacted]\", \"model\": \"m\"}, then"#,
        ),
        ("{'user': 'hunter2', 'n': 1} and", "{'user': '[redacted]', 'n': 1} and"),
        (r#"a "user_id": 4711, "max_tokens": 5"#, r#"a "user_id": [redacted], "max_tokens": 5"#),
        (
            r#"a "tokens": ["hunter2", "b"], "org_id": {"a": {"b": "hunter2"}}."#,
            r#"a "tokens": [redacted], "org_id": [redacted]."#,
        ),
        (r#"cut off in "session_id": "hunter"#, r#"cut off in "session_id": "[redacted]"#),
        ("Cookie: session=hunter2; a=b\nHost: x", "Cookie: [redacted]\nHost: x"),
        ("Set-Cookie: a=hunter2; Path=/", "Set-Cookie: [redacted]"),
        ("GET /x?sv=1&sig=hunter2&sp=r and", "GET /x?sv=1&sig=[redacted]&sp=r and"),
        (
            "'https://b.example/c?X-Amz-Credential=hunter2&X-Amz-Signature=hunter2&x=1'",
            "'https://b.example/c?X-Amz-Credential=[redacted]&X-Amz-Signature=[redacted]&x=1'",
        ),
        ("see \"https://x.example/?a=sk%2Dproj%2Dabcdef12345\".", "see \"https://x.example/?a=[redacted]\"."),
        ("see https%3A%2F%2Fx.example%2F%3Fkey%3Dhunter2 now", "see [redacted] now"),
        ("a=jane%40example.com 100%25", "[redacted] 100%25"),
        (r"open C:\\Users\\jane\\x and C:\Users\jane\x", r"open C:~\\x and C:~\x"),
    ] {
        assert_eq!(text(words), shown);
        assert_eq!(text(shown), shown, "once redacted is redacted");
        assert!(!json(json!({ "a": words })).to_string().contains("hunter2"), "{words}");
    }
    assert_eq!(url("/cb?code=a&state=b&error_code=c"), "/cb?code=[redacted]&state=[redacted]&error_code=c");
}

/// Whoever asks with an address may have put another one into it, and so on.
#[test]
fn what_holds_itself_is_read_in_no_time() {
    for piece in ["https://x/?a=", "?a=", "&a=", "%25", "a%253D", "\"user\":", "\"user\":[", "cookie:a=", "'"]
    {
        let words = piece.repeat((1 << 14) / piece.len());
        let _any = (text(&words), url(&words), json(words.clone().into()));
    }
}

#[test]
fn words_of_people_stay() {
    for words in [
        "Fix the bug in src/main.rs, please: the key `max_tokens` of gpt-5.6-sol is ignored.",
        "The model claude-sonnet-4-5-20250929 answered at 2026-11-30T11:45:00Z with 1,234 tokens",
        "请修复这个错误",
        "a rise of 100%, or 50%+x; x%2By",
        "if a&&b==c || d?e:f { user::new(key) }",
        "see https://docs.example/a/b?page=2",
    ] {
        assert_eq!(text(words), words);
    }
}

/// What a secret may look like, in any place.
fn secret() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z0-9]{12}".prop_map(|rest| format!("sk-proj-{rest}")),
        "[a-zA-Z0-9]{20}".prop_map(|rest| format!("Bearer zz{rest}1Aa")),
        "[a-z]{4,10}".prop_map(|name| format!("{name}zq@example.com")),
        "[a-z]{4,10}".prop_map(|name| format!("/home/{name}zq/notes")),
        "[a-zA-Z0-9]{36}".prop_map(|rest| format!("eyJhbGciOi{rest}")),
        "[0-9a-f]{30}".prop_map(|rest| format!("a1{rest}")),
        "[g-z]{40}",
        "[a-z]{4,10}".prop_map(|name| format!(r"C:\\Users\\{name}zq\\notes")),
    ]
}

/// What of it must not be left.
fn core_of(secret: &str) -> String {
    let bare = secret.trim_start_matches("Bearer ").trim_start_matches("sk-proj-");
    bare.split("@example")
        .next()
        .unwrap_or_default()
        .trim_start_matches("/home/")
        .trim_end_matches("/notes")
        .trim_start_matches(r"C:\\Users\\")
        .trim_end_matches(r"\\notes")
        .to_owned()
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z_]{1,8}", Just("content".to_owned()), Just("Items".to_owned())]
}

/// JSON with the secret in it somewhere, as a value, a name, or within a text.
fn holding(secret: String) -> impl Strategy<Value = Value> {
    let inner = secret.clone();
    let leaf = prop_oneof![
        Just(Value::from(secret.clone())),
        Just(Value::from(format!("before {secret} after"))),
        Just(Value::from(format!("\"{secret}\""))),
        Just(json!({"text": inner}).to_string().into()),
        Just(json!({ secret.clone(): true })),
        "[a-z ]{0,10}".prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name(), inner.clone()), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            inner.prop_map(|value| Value::from(value.to_string())),
        ]
    })
}

proptest! {
    #[test]
    fn no_secret_is_left_in_json((secret, value) in secret().prop_flat_map(|it| (Just(it.clone()), holding(it)))) {
        let kept = json(value.clone());
        prop_assert!(!kept.to_string().contains(&core_of(&secret)), "{value} -> {kept}");
        prop_assert_eq!(json(kept.clone()), kept, "once redacted is redacted");
    }

    #[test]
    fn nothing_is_left_under_a_name_that_tells(secret in "[a-z]{8}zq", name in "[a-z_]{0,5}", at in 0..TELLING.len()) {
        for name in [format!("{name}_{}", TELLING[at]), format!("{name}-{}", TELLING[at].to_uppercase())] {
            let kept = json(json!({ name.clone(): { "a": [secret] } })).to_string();
            prop_assert!(!kept.contains(&secret), "{kept}");
            let kept = url(&format!("/x?{name}={secret}"));
            prop_assert!(!kept.contains(&secret), "{kept}");
            prop_assert!(!answer_header(&name, &secret).contains(&secret));
        }
        prop_assert!(!request_header(&name, &secret).contains(&secret));
    }

    #[test]
    fn no_secret_is_left_in_an_address(secret in secret(), escaped in any::<bool>(), in_query in any::<bool>()) {
        let part: String = if escaped {
            secret.bytes().map(|byte| format!("%{byte:02X}")).collect()
        } else {
            secret.replace(' ', "+")
        };
        let from = if in_query { format!("/v1/x?a={part}&b=1") } else { format!("/v1/{part}/x") };
        let kept = url(&from);
        prop_assert!(!kept.contains(&core_of(&secret)) && (!escaped || !kept.contains(&part)), "{from} -> {kept}");
    }

    #[test]
    fn nothing_makes_it_panic_and_once_is_enough(words in ".{0,80}", kind in "[a-z/+;-]{0,30}") {
        let kept = text(&words);
        prop_assert_eq!(text(&kept), kept);
        let _any = (url(&words), body(Some(&kind), words.as_bytes()), request_header(&words, &words));
    }
}
