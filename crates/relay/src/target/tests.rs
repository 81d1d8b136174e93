use proptest::prelude::*;

use super::*;

fn joined(url: &str, v1: Option<V1>, path: &str) -> String {
    let mut upstream = Upstream::parse("x", url).unwrap();
    upstream.v1 = v1.unwrap_or(upstream.v1);
    upstream.join(path)
}

#[test]
fn what_is_said_to_be_recognised_is() {
    let told = Refusal::UnknownCredential(http::header::AUTHORIZATION).to_string();
    let known = told.split(['(', ')']).nth(1).unwrap();
    let beginnings = known.split([' ', ',']).filter(|word| word.ends_with('-') || *word == "AIza");
    let mut count = 0;
    for beginning in beginnings {
        let mut headers = HeaderMap::new();
        headers.insert("x-api-key", format!("{beginning}abc").parse().unwrap());
        assert!(matches!(crate::credential::judge(&headers, "/"), Verdict::One(_)), "{beginning}");
        count += 1;
    }
    assert_eq!(count, 4);
}

#[test]
fn paths_are_joined() {
    let keep = Some(V1::Keep);
    let strip = Some(V1::Strip);
    let rows = [
        ("https://h/v1", None, "/v1/responses", "/v1/responses"),
        ("https://h/v1/", None, "/responses?a=1", "/v1/responses?a=1"),
        ("https://h", None, "/v1/responses", "/v1/responses"),
        ("https://h", None, "/responses", "/v1/responses"),
        ("https://h", None, "/responses/compact", "/v1/responses/compact"),
        ("https://h", None, "/models?client_version=1", "/v1/models?client_version=1"),
        ("https://h", None, "/messages/count_tokens", "/v1/messages/count_tokens"),
        ("https://h", None, "/responses/resp_1", "/responses/resp_1"),
        ("https://h", None, "/api/chat", "/api/chat"),
        ("https://h", None, "/api/hello", "/api/hello"),
        ("https://h", None, "/", "/"),
        ("https://h", None, "/?a", "/?a"),
        ("https://h/v1", None, "/v1", "/v1"),
        ("https://h/v1", None, "/v1?a", "/v1?a"),
        ("https://h/v1", None, "/v10/x", "/v1/v10/x"),
        ("https://h/api/paas/v4", None, "/v1/chat/completions", "/api/paas/v4/chat/completions"),
        ("https://h/api/paas/v4", None, "/chat/completions", "/api/paas/v4/chat/completions"),
        ("https://h/v1beta", None, "/v1beta/models/g:generateContent", "/v1beta/models/g:generateContent"),
        ("https://h/v1beta/openai", None, "/chat/completions", "/v1beta/openai/chat/completions"),
        ("https://h/v1/acc/gw/openai", None, "/responses", "/v1/acc/gw/openai/responses"),
        ("https://h/anthropic", None, "/v1/messages?beta=true", "/anthropic/v1/messages?beta=true"),
        ("https://h/api", None, "/chat/completions", "/api/v1/chat/completions"),
        ("https://h/backend-api/codex", None, "/v1/responses", "/backend-api/codex/responses"),
        ("https://h/backend-api/codex", None, "/responses", "/backend-api/codex/responses"),
        ("https://h/backend-api/codex", None, "/v1", "/backend-api/codex"),
        ("https://h", strip, "/v1", "/"),
        ("https://h", strip, "/v1?q", "/?q"),
        ("https://h", strip, "/v2/x", "/v2/x"),
        ("https://h/gateway", keep, "/responses", "/gateway/responses"),
        ("https://h/gateway/v1", keep, "/v1/responses", "/gateway/v1/responses"),
        ("https://h", keep, "/responses", "/responses"),
        ("https://h/v1", None, "/v1/a%2Fb%20c?q=%3F&&=", "/v1/a%2Fb%20c?q=%3F&&="),
        ("https://h", None, "/%72esponses?a=1", "/v1/%72esponses?a=1"),
        ("https://h/v1", None, "/%761/%72esponses", "/v1/%72esponses"),
        ("https://h/backend-api/codex", None, "/v%31/responses", "/backend-api/codex/responses"),
        ("https://h/v1", None, "/../../x", "/v1/../../x"),
        ("https://h", None, "//evil.example/x", "//evil.example/x"),
        ("https://h/v1", None, "/v1//x/", "/v1//x/"),
        ("https://h", None, "/responses/", "/responses/"),
        ("https://h/v1", None, "/x?next=/v1/y", "/v1/x?next=/v1/y"),
    ];
    for (url, v1, path, expected) in rows {
        assert_eq!(joined(url, v1, path), expected, "{url} + {path}");
    }
}

#[test]
fn versions_are_told_from_names() {
    for version in ["v1", "v4", "v12", "v1beta", "v1alpha", "v1beta2", "v1.1"] {
        assert!(is_version(version), "{version}");
    }
    for name in ["", "v", "vbeta", "1", "v1x", "version", "v1.", "V1", "v1-beta"] {
        assert!(!is_version(name), "{name}");
    }
}

#[test]
fn the_relay_itself_is_told() {
    let both = ["127.0.0.1:8787".parse().unwrap(), "[::1]:8787".parse().unwrap()];
    let wild = ["0.0.0.0:8787".parse().unwrap()];
    let rows: [(&str, &[SocketAddr], bool); 10] = [
        ("http://127.0.0.1:8787/v1", &both, true),
        ("http://localhost:8787", &both, true),
        ("http://[::1]:8787", &both, true),
        ("http://127.0.0.2:8787", &both, true),
        ("http://0.0.0.0:8787", &both, true),
        ("https://localhost:8787", &both, true),
        ("http://localhost:8788", &both, false),
        ("http://192.0.2.2:8787", &both, false),
        ("http://localhost:8787", &wild, true),
        ("https://api.example:8787", &wild, false),
    ];
    for (url, listening, itself) in rows {
        assert_eq!(Upstream::parse("x", url).unwrap().is_at(listening), itself, "{url}");
    }
}

fn ask<'a>(method: &'a Method, path: &'a str, verdict: &'a Verdict) -> Ask<'a> {
    Ask { method, path_and_query: path, verdict }
}

#[test]
fn without_settings_the_credential_decides() {
    let upstreams = Upstreams::of(&Config::default());
    let rows = [
        (Issuer::OpenAiKey, "/v1/responses", "https://api.openai.com", "/v1/responses"),
        (Issuer::OpenAiKey, "/responses", "https://api.openai.com", "/v1/responses"),
        (
            Issuer::Gemini,
            "/v1beta/models/g:generateContent?key=AIza",
            "https://generativelanguage.googleapis.com",
            "/v1beta/models/g:generateContent?key=AIza",
        ),
        (Issuer::ChatGptSignIn, "/v1/responses", "https://chatgpt.com", "/backend-api/codex/responses"),
        (Issuer::Anthropic, "/v1/messages?beta=true", "https://api.anthropic.com", "/v1/messages?beta=true"),
    ];
    for (issuer, path, origin, there) in rows {
        let target = upstreams.target(ask(&Method::POST, path, &Verdict::One(issuer))).unwrap();
        assert_eq!((target.upstream.shown().as_str(), target.path_and_query.as_str()), (origin, there));
    }
}

#[test]
fn what_names_no_upstream_goes_nowhere() {
    let key = HeaderName::from_static("x-api-key");
    let both = ((key.clone(), Issuer::Anthropic), (http::header::AUTHORIZATION, Issuer::OpenAiKey));
    let unknown = Verdict::Unknown { header: key, beside: Some(Issuer::Anthropic), elsewhere: None };
    let disagree = Verdict::Disagree { one: both.0, other: both.1 };
    let one = Verdict::One(Issuer::OpenAiKey);
    let rows = [
        (Method::POST, "/v1/messages", &unknown),
        (Method::POST, "/v1/messages", &disagree),
        (Method::POST, "/v1/messages", &Verdict::None),
        (Method::GET, "/v1/models", &Verdict::None),
        (Method::HEAD, "/", &Verdict::None),
        (Method::GET, "/v1/messagesX", &Verdict::None),
    ];
    for (method, path, verdict) in rows {
        let refusal = Upstreams::of(&Config::default()).target(ask(&method, path, verdict)).unwrap_err();
        assert!(refusal.status().is_client_error());
        for way in ["--upstream URL", "STEADY_RELAY_UPSTREAM", "[upstream.", "[[route]]", "/to/NAME"] {
            assert!(refusal.to_string().contains(way), "{refusal}");
        }
    }
    assert!(matches!(Upstreams::default().target(ask(&Method::GET, "/", &one)), Err(Refusal::NoEntry(_))));
    for (method, path) in [(Method::CONNECT, "/"), (Method::OPTIONS, "*"), (Method::GET, "evil.example:443")]
    {
        assert_eq!(Upstreams::of(&Config::default()).target(ask(&method, path, &one)), Err(Refusal::NoPath));
    }
}

#[test]
fn a_path_that_names_an_upstream_goes_there_and_a_wrong_name_is_told() {
    let upstreams = Upstreams::of(&Config::default());
    let unknown = Verdict::Unknown { header: http::header::AUTHORIZATION, beside: None, elsewhere: None };
    for verdict in [Verdict::None, unknown, Verdict::One(Issuer::Anthropic)] {
        let target = upstreams.addressed("openai", ask(&Method::POST, "/responses", &verdict)).unwrap();
        assert_eq!(target.upstream.name, "openai");
        assert_eq!(target.path_and_query, "/v1/responses");
    }
    let refusal = upstreams.addressed("opnai\u{7}", ask(&Method::POST, "/x", &Verdict::None)).unwrap_err();
    assert_eq!(refusal.status(), 404);
    let words = refusal.to_string();
    assert!(words.contains("`opnai`") && words.contains("anthropic, chatgpt, gemini, openai"), "{words}");
    let mut plain = Upstreams::default();
    plain.set(Upstream::parse("lan", "http://10.0.0.5").unwrap());
    let known = Verdict::One(Issuer::Anthropic);
    let refusal = plain.addressed("lan", ask(&Method::POST, "/x", &known)).unwrap_err();
    assert!(matches!(refusal, Refusal::Plaintext { .. }));
}

#[test]
fn a_service_that_no_credential_finds_is_named_with_what_to_do() {
    for (service, name, way) in [
        (Elsewhere::Azure, "Azure OpenAI", "--upstream https://RESOURCE.openai.azure.com"),
        (Elsewhere::Bedrock, "Amazon Bedrock", "let the client connect to Bedrock itself"),
        (Elsewhere::Vertex, "Vertex AI", "--upstream https://REGION-aiplatform.googleapis.com"),
    ] {
        let header = http::header::AUTHORIZATION;
        let verdict = Verdict::Unknown { header, beside: None, elsewhere: Some(service) };
        let upstreams = Upstreams::of(&Config::default());
        let refusal = upstreams.target(ask(&Method::POST, "/x", &verdict)).unwrap_err();
        let words = refusal.to_string();
        assert!(words.contains(name) && words.contains(way), "{words}");
        assert!(words.lines().count() <= 3 && refusal.status() == 400, "{words}");
    }
}

#[test]
fn claudes_greeting_needs_no_credential() {
    for (method, path) in [(Method::HEAD, "/api/hello"), (Method::GET, "/v1/messages/batches?limit=1")] {
        let target = Upstreams::of(&Config::default()).target(ask(&method, path, &Verdict::None)).unwrap();
        assert_eq!(target.upstream.name, "anthropic");
        assert_eq!(target.path_and_query, path);
    }
}

#[test]
fn with_one_upstream_everything_goes_there() {
    let mut upstreams = Upstreams::of(&Config::default());
    upstreams.send_everything_to(Upstream::parse("own", "http://127.0.0.1:4000").unwrap());
    let unknown = Verdict::Unknown { header: http::header::AUTHORIZATION, beside: None, elsewhere: None };
    for verdict in [Verdict::None, unknown, Verdict::One(Issuer::Anthropic)] {
        let target = upstreams.target(ask(&Method::POST, "/responses", &verdict)).unwrap();
        assert_eq!((target.upstream.name.as_str(), target.path_and_query.as_str()), ("own", "/v1/responses"));
    }
}

#[test]
fn a_known_credential_does_not_cross_the_network_in_the_clear() {
    let one = Verdict::One(Issuer::OpenAiKey);
    let beside = Verdict::Unknown {
        header: http::header::AUTHORIZATION,
        beside: Some(Issuer::Anthropic),
        elsewhere: None,
    };
    let unknown = Verdict::Unknown { header: http::header::AUTHORIZATION, beside: None, elsewhere: None };
    let rows = [
        ("http://10.0.0.5:4000", false, &one, false),
        ("http://10.0.0.5:4000", false, &beside, false),
        ("http://10.0.0.5:4000", true, &one, true),
        ("http://10.0.0.5:4000", false, &unknown, true),
        ("http://10.0.0.5:4000", false, &Verdict::None, true),
        ("https://10.0.0.5:4000", false, &one, true),
        ("http://127.0.0.1:4000", false, &one, true),
        ("http://localhost:4000", false, &one, true),
        ("http://localhost.evil.example:4000", false, &one, false),
    ];
    for (url, allow_plaintext, verdict, passes) in rows {
        let mut upstreams = Upstreams::default();
        let upstream = Upstream { allow_plaintext, ..Upstream::parse("own", url).unwrap() };
        upstreams.send_everything_to(upstream);
        let target = upstreams.target(ask(&Method::POST, "/v1/responses", verdict));
        assert_eq!(target.is_ok(), passes, "{url} {verdict:?}: {target:?}");
    }
}

#[test]
fn what_an_entry_says_of_calls_at_once_is_the_upstreams() {
    let mut entry = config::Upstream::at("http://10.0.0.5:8000".parse().unwrap());
    assert_eq!(Upstream::of("own", &entry).max_running, None);
    entry.max_running = NonZeroU32::new(12);
    assert_eq!(Upstream::of("own", &entry).max_running, NonZeroU32::new(12));
}

fn any_path() -> impl Strategy<Value = String> {
    let segment = prop_oneof![
        "[a-zA-Z0-9._~:@!$&'()*+,;=-]{0,6}",
        Just("v1".to_owned()),
        Just("v1beta".to_owned()),
        Just("..".to_owned()),
        Just("%2e%2E%2F".to_owned()),
        Just("responses".to_owned()),
    ];
    (prop::collection::vec(segment, 0..5), prop::option::of("[a-zA-Z0-9?/%&=._:@-]{0,20}")).prop_map(
        |(path, query)| {
            let query = query.map(|query| format!("?{query}")).unwrap_or_default();
            format!("/{}{query}", path.join("/"))
        },
    )
}

fn any_upstream() -> impl Strategy<Value = Upstream> {
    let path = prop::sample::select(vec!["", "/v1", "/a/v4", "/backend-api/codex", "/a/b/", "/v1beta"]);
    let v1 = prop::sample::select(vec![V1::Add, V1::Strip, V1::Keep]);
    (path, v1).prop_map(|(path, v1)| {
        let url = format!("https://api.example:444{path}");
        Upstream { v1, ..Upstream::parse("x", &url).unwrap() }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn joining_never_changes_the_origin_and_keeps_the_query(path in any_path(), upstream in any_upstream()) {
        let mut upstreams = Upstreams::default();
        upstreams.send_everything_to(upstream.clone());
        let target = upstreams.target(ask(&Method::POST, &path, &Verdict::None)).unwrap();
        prop_assert_eq!(&*target.upstream, &upstream);
        let there = target.path_and_query.as_str();
        prop_assert!(there.starts_with(upstream.url.path()) && there.starts_with('/'));
        prop_assert_eq!(target.path_and_query.query(), path.split_once('?').map(|(_, query)| query));
        // As a whole URL, too, the origin is the upstream's.
        let whole: http::Uri = format!("{}{there}", upstream.shown()).parse().unwrap();
        prop_assert_eq!(whole.host(), Some("api.example"));
        prop_assert_eq!(whole.port_u16(), Some(444));
    }

    #[test]
    fn the_clients_path_is_only_ever_shortened_by_its_version(path in any_path(), upstream in any_upstream()) {
        let there = upstream.join(&path);
        let kept = first_segment(path.split('?').next().unwrap_or_default());
        let bare = path.split('?').next().unwrap_or_default();
        let whole = there.contains(bare);
        prop_assert!(whole || is_version(kept.0) && there.contains(kept.1));
    }

    #[test]
    fn nothing_panics(path in "\\PC{0,30}", upstream in any_upstream()) {
        let mut upstreams = Upstreams::default();
        upstreams.send_everything_to(upstream);
        drop(upstreams.target(ask(&Method::POST, &path, &Verdict::None)));
        drop(Upstream::parse("x", &path));
    }
}
