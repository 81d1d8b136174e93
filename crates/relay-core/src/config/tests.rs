use super::*;

#[test]
fn the_shipped_upstreams_are_whole() {
    let upstreams = shipped_upstreams();
    let shown: Vec<_> = upstreams
        .iter()
        .map(|(name, upstream)| (name.as_str(), upstream.url.to_string(), upstream.strips_v1()))
        .collect();
    assert_eq!(
        shown,
        [
            ("anthropic", "https://api.anthropic.com".to_owned(), false),
            ("chatgpt", "https://chatgpt.com/backend-api/codex".to_owned(), true),
            ("gemini", "https://generativelanguage.googleapis.com".to_owned(), false),
            ("openai", "https://api.openai.com/v1".to_owned(), false),
        ]
    );
}

#[test]
fn a_proxy_is_read_and_its_password_never_shown() {
    for good in ["http://p:3128", "https://u:pw@proxy.example/", "socks5h://[::1]:1080", "socks4://10.0.0.1"]
    {
        let choice: ProxyChoice = good.parse().unwrap();
        assert!(matches!(&choice, ProxyChoice::At(url) if url.expose() == good), "{good}");
        assert!(!format!("{choice:?}").contains("pw"));
    }
    assert_eq!("system".parse(), Ok(ProxyChoice::System));
    assert_eq!("none".parse(), Ok(ProxyChoice::Direct));
    assert_eq!("direct".parse(), Ok(ProxyChoice::Direct));
    for bad in ["", "proxy:3128", "ftp://p", "http://", "http://:80", "http://p/path", "http://a b"] {
        assert!(bad.parse::<ProxyChoice>().is_err(), "{bad}");
    }
}

#[test]
fn an_entry_that_says_whether_v1_is_dropped_is_heeded() {
    let mut upstream = Upstream::at("https://proxy.example/backend-api/codex".parse().unwrap());
    assert!(upstream.strips_v1());
    upstream.strip_v1 = Some(false);
    assert!(!upstream.strips_v1());
}

#[test]
fn a_secret_does_not_show_itself() {
    let secret: Secret = "0123456789abcdef".parse().unwrap();
    let config = Config { token: Some(secret.clone()), ..Config::default() };
    assert!(!format!("{config:?}").contains("0123456789abcdef"));
    assert_eq!(secret.expose(), "0123456789abcdef");
    for bad in ["s3cr3t", "has a space in its middle", "bey\u{f6}nd-ascii-bey\u{f6}nd", ""] {
        let error = bad.parse::<Secret>().unwrap_err();
        assert!(bad.is_empty() || !error.to_string().contains(bad), "{error}");
    }
}

#[test]
fn the_first_route_that_fits_holds() {
    let route = |path: Option<&str>, client, model: Option<&str>| Route {
        path: path.map(str::to_owned),
        client,
        model: model.map(str::to_owned),
        ..Route::default()
    };
    let routes = vec![
        route(Some("/v1/messages"), None, None),
        route(None, Some(Kind::Codex), Some("gpt-5*")),
        route(None, None, Some("o3")),
    ];
    let config = Config { routes, ..Config::default() };
    let nth = |path: &str, client, model| {
        let found = config.route(path, client, model)?;
        config.routes.iter().position(|route| route == found)
    };
    assert_eq!(nth("/v1/messages", Kind::Codex, Some("gpt-5")), Some(0));
    assert_eq!(nth("/v1/messages/count_tokens", Kind::Other, None), Some(0));
    assert_eq!(nth("/v1/messages?beta=true", Kind::Other, None), Some(0));
    assert_eq!(nth("/v1/messagesx", Kind::Other, None), None);
    assert_eq!(nth("/v1/responses", Kind::Codex, Some("gpt-5-codex")), Some(1));
    assert_eq!(nth("/v1/responses", Kind::Other, Some("gpt-5-codex")), None);
    assert_eq!(nth("/v1/responses", Kind::Other, Some("o3")), Some(2));
    assert_eq!(nth("/v1/responses", Kind::Other, Some("o3-mini")), None);
}

#[test]
fn a_route_covers_another_where_it_fits_every_call_of_it() {
    let route = |path: &str, client, model: &str| Route {
        path: Some(path.to_owned()).filter(|path| !path.is_empty()),
        client,
        model: Some(model.to_owned()).filter(|model| !model.is_empty()),
        ..Route::default()
    };
    let codex = Some(Kind::Codex);
    for (one, other, covers) in [
        (route("", None, ""), route("/v1", codex, "o3"), true),
        (route("", None, ""), route("", None, ""), true),
        (route("/v1", None, ""), route("/v1", None, ""), true),
        (route("/v1", None, ""), route("/v1/messages", codex, ""), true),
        (route("/v1/", None, ""), route("/v1/messages", None, ""), true),
        (route("/v1/", None, ""), route("/v1", None, ""), false),
        (route("/v1", None, ""), route("/v1x", None, ""), false),
        (route("/v1", None, ""), route("", codex, "o3"), false),
        (route("", codex, ""), route("", codex, "o3"), true),
        (route("", codex, ""), route("", Some(Kind::Other), ""), false),
        (route("", codex, ""), route("", None, ""), false),
        (route("", None, "gpt-*"), route("", None, "gpt-5"), true),
        (route("", None, "gpt-*"), route("", None, "gpt-5*"), true),
        (route("", None, "gpt-5"), route("", None, "gpt-5"), true),
        (route("", None, "gpt-*"), route("", None, "gpt*"), false),
        (route("", None, "gpt-5"), route("", None, "gpt-5*"), false),
        (route("", None, "*"), route("/v1", None, ""), false),
    ] {
        assert_eq!(one.covers(&other), covers, "{one:?} {other:?}");
    }
}

#[test]
fn a_route_chooses_the_profile_before_the_client_and_the_client_before_all() {
    let mut config = Config { profile: ProfileChoice::from_name("batch"), ..Config::default() };
    let route = Route { profile: Some(ProfileChoice::Auto), ..Route::default() };
    assert_eq!(config.profile_choice(None, Kind::Codex).name(), "batch");
    let codex =
        ClientSettings { profile: Some(ProfileChoice::from_name("strict")), ..ClientSettings::default() };
    config.clients.insert(Kind::Codex, codex);
    assert_eq!(config.profile_choice(None, Kind::Codex).name(), "strict");
    assert_eq!(config.profile_choice(Some(&Route::default()), Kind::Codex).name(), "strict");
    assert_eq!(config.profile_choice(Some(&route), Kind::Codex).name(), "auto");
    assert_eq!(config.profile_choice(None, Kind::Other).name(), "batch");
}

#[test]
fn a_list_of_proxies_has_some_and_none_twice() {
    let list = |texts: &[&str]| ProxyList::of(texts.iter().map(|text| text.parse().unwrap()).collect());
    let ways = list(&["http://p.example", "system", "direct"]).unwrap();
    assert_eq!(ways.iter().filter(|way| matches!(way, ProxyChoice::At(_))).count(), 1);
    assert_eq!(ways.iter().last(), Some(&ProxyChoice::Direct));
    let why = |texts: &[&str]| list(texts).unwrap_err().why;
    assert_eq!(why(&[]), "is an empty list");
    assert_eq!(why(&["none", "http://p", "direct"]), "names the same proxy twice");
    let many: Vec<_> = (0..9).map(|n| format!("http://p{n}")).collect();
    assert_eq!(why(&many.iter().map(String::as_str).collect::<Vec<_>>()), "is too long a list");
}
