//! Who is let in, and the relay's own endpoints.

use relay_core::Config;
use relay_core::config::{Route, Secret, UpstreamChoice};
use relay_sim::fixtures::codex as wire;
use relay_sim::{Reply, Request, Signal, Upstream};
use steady_relay::observe::Notice;

use crate::support::{Bench, SOON, TURN, bounded, codex, plain, towards};

async fn guarded(change: impl FnOnce(&mut Config)) -> (Upstream, Bench) {
    let up = Upstream::start(Reply::status(200).json("{}")).await.unwrap();
    let mut config = towards(&up.url());
    change(&mut config);
    let bench = Bench::with(config).await;
    (up, bench)
}

#[tokio::test]
async fn the_own_endpoints_answer_under_own_names_only() {
    let (up, bench) = guarded(|_| {}).await;
    let port = bench.addr().port();
    for path in ["/__steady/status", "/healthz", "/__steady", "/__steady/nothing"] {
        for host in ["evil.example".to_owned(), format!("evil.example:{port}"), "127.0.0.1:1".to_owned()] {
            let answer = bench.ask(&Request::get(path).header("Host", host)).await;
            assert_eq!(answer.status, 403, "{path}");
        }
        let answer = bench.ask(&Request::get(path).header("Origin", "https://evil.example")).await;
        assert_eq!(answer.status, 403);
        for host in [format!("localhost:{port}"), format!("127.0.0.1:{port}"), format!("[::1]:{port}")] {
            let answer = bench.ask(&Request::get(path).header("Host", host)).await;
            assert!(matches!(answer.status, 200 | 308 | 404), "{path}");
        }
    }
    assert_eq!(up.connections(), 0);
}

#[tokio::test]
async fn pages_from_elsewhere_are_not_forwarded() {
    let (up, bench) = guarded(|config| config.allowed_origins = vec!["https://app.example".to_owned()]).await;
    let own = format!("http://localhost:{}", bench.addr().port());
    let refused = [
        ("Origin", "https://evil.example"),
        ("Origin", "null"),
        ("Origin", "http://localhost:1"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
    ];
    for (name, value) in refused {
        let answer = bench.ask(&plain(TURN).header(name, value)).await;
        assert_eq!((answer.status, answer.header("x-should-retry")), (403, Some("false")), "{name}: {value}");
        assert!(answer.text().contains("allowed_origins"), "{}", answer.text());
    }
    assert_eq!(up.connections(), 0);
    let served = [
        ("Origin", own.as_str()),
        ("Origin", "https://app.example"),
        ("Sec-Fetch-Site", "same-origin"),
        ("Sec-Fetch-Site", "none"),
        ("X-Nothing", "1"),
    ];
    for (name, value) in served {
        assert_eq!(bench.ask(&plain(TURN).header(name, value)).await.status, 200, "{name}: {value}");
    }
    let both = plain(TURN).header("Origin", "https://app.example").header("Sec-Fetch-Site", "cross-site");
    assert_eq!(bench.ask(&both).await.status, 200);
}

#[tokio::test]
async fn a_token_is_asked_for_and_goes_no_further() {
    const TOKEN: &str = "0123456789abcdef";
    let (up, bench) = guarded(|config| config.token = Some(Secret::new(TOKEN.to_owned()))).await;
    assert_eq!(bench.ask(&plain(TURN)).await.status, 401);
    assert_eq!(bench.ask(&Request::get("/healthz")).await.status, 401);
    assert_eq!(bench.ask(&plain(TURN).header("x-steady-token", "0123456789abcdeX")).await.status, 403);
    assert_eq!(up.connections(), 0);
    let by_path = |path: &str| Request::post(&format!("/~{TOKEN}{path}")).json(TURN);
    assert_eq!(bench.ask(&plain(TURN).header("x-steady-token", TOKEN)).await.status, 200);
    assert_eq!(bench.ask(&by_path("/v1/responses?a=b")).await.status, 200);
    assert_eq!(bench.ask(&Request::get(&format!("/~{TOKEN}/healthz"))).await.status, 200);
    let seen = up.requests();
    assert_eq!(seen[1].target, "/v1/responses?a=b");
    for sent in &seen {
        assert!(!String::from_utf8_lossy(&sent.raw_head).contains(TOKEN), "the token went upstream");
    }
}

#[tokio::test]
async fn what_may_be_a_damaged_key_goes_no_further() {
    const TOKEN: &str = "0123456789abcdef";
    for token in [None, Some(TOKEN)] {
        let (up, bench) =
            guarded(|config| config.token = token.map(|token| Secret::new(token.to_owned()))).await;
        for start in ["/~0123456789abcde", "/~", "/~0123456789abcdef0123456789abcdeX", "/%7E0123456789abcde"]
        {
            let request = Request::post(&format!("{start}/v1/responses")).header("x-steady-token", TOKEN);
            let answer = bench.ask(&request.json(TURN)).await;
            assert_eq!(answer.status, 403, "{start}");
            let words = answer.text();
            assert!(words.contains("neither the key of a session nor the token"), "{words}");
            assert!(!words.contains("0123456789"), "{words}");
        }
        assert_eq!(up.connections(), 0);
        let told = format!("{:?}", bench.recorder().notices());
        assert!(told.contains("/TOKEN") && !told.contains("0123456789"), "{told}");
    }
}

#[tokio::test]
async fn a_call_by_a_path_with_a_token_is_the_same_call() {
    const TOKEN: &str = "0123456789abcdef";
    let up = Upstream::start(wire::overloaded_503()).await.unwrap();
    let mut config = bounded(&up.url(), |profile| profile.sends = Some(3));
    let profile = Some(std::mem::take(&mut config.profile));
    config.routes = vec![Route { path: Some("/v1/responses".to_owned()), profile, ..Route::default() }];
    config.token = Some(Secret::new(TOKEN.to_owned()));
    let bench = Bench::with(config).await;
    let request = Request::post(&format!("/~{TOKEN}/v1/responses")).json(TURN);
    assert_eq!(bench.ask(&request).await.status, 503);
    assert_eq!(up.requests().len(), 3);
    assert!(bench.story(1).await.ends_with("gave_up"));
}

#[tokio::test]
async fn own_endpoints_can_only_be_read() {
    let (up, bench) = guarded(|_| {}).await;
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        let answer = bench.ask(&Request::new(method, "/__steady/status")).await;
        assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, HEAD")), "{method}");
    }
    let head = bench.ask(&Request::new("HEAD", "/healthz")).await;
    assert_eq!((head.status, head.header("content-length")), (200, Some("3")));
    let health = bench.ask(&Request::get("/healthz")).await;
    assert_eq!((health.text().as_str(), health.header("cache-control")), ("ok\n", Some("no-store")));
    assert_eq!(bench.ask(&Request::get("/__steady/other")).await.status, 404);
    // What only looks like ours is the upstream's.
    for path in ["/__steadyx", "/healthz/x", "/v1/__steady/status"] {
        assert_eq!(bench.ask(&Request::get(path)).await.text(), "{}", "{path}");
    }
    assert_eq!(up.requests().len(), 3);
}

#[tokio::test]
async fn the_status_shows_a_call_that_waits_and_one_that_streams() {
    let go = Signal::new();
    let streams = go.clone();
    let up = Upstream::start(relay_sim::Script::by(move |seen, _| {
        if seen.json()["model"] == "busy" {
            return wire::overloaded_503();
        }
        let mut events = wire::partial("hello");
        events.push(relay_sim::Event::wait_for(streams.clone()));
        Reply::sse(events)
    }))
    .await
    .unwrap();
    let bench = Bench::with(bounded(&up.url(), |profile| {
        profile.curve.base = SOON;
        profile.curve.cap = SOON;
    }))
    .await;
    let mut waits = bench.client().await;
    waits.send(&codex("u", r#"{"model":"busy","stream":true,"input":"hi"}"#)).await.unwrap();
    bench.faults(1, 1).await;
    let mut streams = bench.client().await;
    streams.send(&plain(TURN)).await.unwrap();
    assert!(streams.read_until(b"hello").await);
    let page = bench.page().await;
    assert_eq!((&page["v"], &page["totals"]["sends"]), (&1.into(), &2.into()));
    let waiting = &page["open_calls"][0];
    for (key, value) in [
        ("id", "c1"),
        ("client", "codex"),
        ("dialect", "openai_responses"),
        ("operation", "generation"),
        ("upstream", &up.addr().to_string()),
        ("model", "busy"),
        ("profile", "tested"),
        ("state", "waiting"),
        ("fault", "at_capacity"),
    ] {
        assert_eq!(waiting[key], value);
    }
    assert_eq!(waiting["sends"], 1);
    let left = waiting["next_send_in_s"].as_f64().unwrap();
    assert!(left > 5.0 && left <= 10.0, "{left}");
    assert_eq!(
        (&page["open_calls"][1]["state"], &page["open_calls"][1]["fault"]),
        (&"streaming".into(), &serde_json::Value::Null)
    );
    let health = bench.ask(&Request::get("/healthz")).await;
    assert_eq!(health.status, 200);
    waits.leave().await;
    streams.leave().await;
    assert!(bench.story(1).await.ends_with("client_left") && bench.story(2).await.ends_with("client_left"));
    let after = bench.page().await;
    assert_eq!((after["open_calls"].as_array().unwrap().len(), &after["totals"]["calls"]), (0, &2.into()));
}

#[tokio::test]
async fn what_is_no_path_is_no_proxy_request() {
    let (up, bench) = guarded(|_| {}).await;
    for target in ["*", "example.com:443"] {
        let method = if target == "*" { "OPTIONS" } else { "CONNECT" };
        let answer = bench.ask(&Request::new(method, target)).await;
        assert_eq!(answer.status, 400, "{method} {target}");
        assert!(answer.text().contains("no general proxy"), "{}", answer.text());
    }
    // A client that takes the relay for its proxy reaches the relay's upstream and nobody else.
    let answer = bench.ask(&Request::get("http://elsewhere.example/v1/models?x=1")).await;
    assert_eq!((answer.status, up.requests()[0].target.as_str()), (200, "/v1/models?x=1"));
}

#[tokio::test]
async fn a_name_that_was_pointed_at_us_is_not_our_origin() {
    let (up, bench) = guarded(|config| config.allowed_origins = vec!["https://app.example".to_owned()]).await;
    let port = bench.addr().port();
    let page =
        |host: &str| Request::get("/v1/files").header("Host", host).header("Sec-Fetch-Site", "same-origin");
    // A page whose own name was made to resolve to this machine: to the browser it is the same origin.
    for host in [format!("evil.example:{port}"), "evil.example".to_owned()] {
        assert_eq!(bench.ask(&page(&host)).await.status, 403);
    }
    assert_eq!(up.connections(), 0);
    for host in [format!("localhost:{port}"), format!("127.0.0.1:{port}"), "app.example".to_owned()] {
        assert_eq!(bench.ask(&page(&host)).await.status, 200, "{host}");
    }
    // What is no browser may call us as it likes.
    assert_eq!(bench.ask(&Request::get("/v1/files").header("Host", "relay.internal")).await.status, 200);
}

/// To a name that is no secure one browsers add no `Sec-Fetch-Site`, and to a read from the same origin no `Origin`.
#[tokio::test]
async fn a_name_that_was_pointed_at_us_is_lent_no_key() {
    let (up, bench) = guarded(|config| {
        config.allowed_origins = vec!["https://app.example".to_owned()];
        let Some(UpstreamChoice::Url(upstream)) = &mut config.upstream else {
            panic!("{:?}", config.upstream)
        };
        upstream.api_key = Some(Secret::new("sk-lent".to_owned()));
    })
    .await;
    let port = bench.addr().port();
    let read = |host: &str| Request::get("/v1/files").header("Host", host);
    for host in [format!("evil.example:{port}"), "evil.example".to_owned()] {
        let answer = bench.ask(&read(&host)).await;
        assert_eq!(answer.status, 403, "{host}");
        assert!(answer.text().contains("allowed_origins"), "{}", answer.text());
        let tunnel = read(&host).header("Connection", "Upgrade").header("Upgrade", "x");
        assert_eq!(bench.ask(&tunnel).await.status, 403, "{host}");
    }
    assert_eq!(up.connections(), 0);
    // Through a forwarded port, say, or a page that is allowed; and who brings a credential is lent none.
    for host in ["localhost:1", "127.0.0.1:2", "[::1]:3", "app.example"] {
        assert_eq!(bench.ask(&read(host)).await.status, 200, "{host}");
    }
    let own = read("relay.internal").header("Authorization", "Bearer sk-own");
    assert_eq!(bench.ask(&own).await.status, 200);
    let keys =
        up.requests().iter().map(|seen| seen.header("authorization").unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(keys[3..], ["Bearer sk-lent", "Bearer sk-own"]);
}

#[tokio::test]
async fn who_is_turned_away_is_told_of_and_counted_and_no_token_is_shown() {
    let (up, bench) =
        guarded(|config| config.token = Some(Secret::new("the-token-of-this-relay".to_owned()))).await;
    let right = |path: &str| Request::get(path).header("x-steady-token", "the-token-of-this-relay");
    bench.ask(&Request::get("/v1/models")).await;
    bench.ask(&Request::get("/~another-relays-token/v1/models")).await;
    bench.ask(&right("/v1/files").header("Origin", "https://evil.example")).await;
    bench.ask(&right("/to/nowhere/v1/models")).await;
    bench.ask(&right("/v1/models").header("x-steady", "maybe")).await;
    bench.ask(&right("/v1/models")).await;
    let told: Vec<_> = bench
        .recorder()
        .notices()
        .into_iter()
        .filter_map(|notice| {
            let Notice::TurnedAway { status, code, path } = notice else { return None };
            Some(format!("{status} {code} {path}"))
        })
        .collect();
    assert_eq!(
        told,
        [
            "401 refused_by_relay /v1/models",
            "403 refused_by_relay /TOKEN",
            "403 refused_by_relay /v1/files",
            "404 no_upstream /v1/models",
            "400 bad_steady_header /v1/models",
        ]
    );
    assert_eq!((bench.totals().requests_refused, bench.totals().calls, up.requests().len()), (5, 1, 1));
}
