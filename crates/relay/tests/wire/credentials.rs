//! Credentials of the relay's own: what is sent with them, and when they are renewed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use relay_core::config::{
    Config, Credential, Held, OAuth, Secret, Source, TokenRequest, Upstream as Entry, UpstreamChoice, Warm,
    Websocket,
};
use relay_sim::fixtures::codex as wire;
use relay_sim::websocket::{Upgrade, WsClient, WsScript, WsUpstream};
use relay_sim::{Answer, Reply, Request, Script, Seen, Signal, Upstream};
use serde_json::json;
use steady_relay::observe::{CredentialNews, Notice};

use crate::started::Folder;
use crate::support::{Bench, SOON, TURN, fast, plain};

/// What a service says of a credential that it does not take.
pub(crate) const WHO: &str = r#"{"error":{"code":"invalid_api_key","message":"who are you"}}"#;

/// A service that takes these keys alone, and answers all others with this status.
pub(crate) async fn service(keys: &'static [&'static str], status: u16) -> Upstream {
    let knows = |seen: &Seen| {
        let key = seen.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        key.is_some_and(|key| keys.contains(&key))
    };
    let reply = move |seen: &Seen, _| {
        let refusal = Reply::status(status).header("x-from", "the service").json(WHO);
        if knows(seen) { Reply::sse(wire::turn("hi")) } else { refusal }
    };
    Upstream::start(Script::by(reply)).await.unwrap()
}

/// Issues `at-1`, `at-2` and so on, each with a refresh token of its number, and takes only the last of those.
pub(crate) async fn issuer(lifetime: u64) -> Upstream {
    let issued = AtomicUsize::new(0);
    let reply = move |seen: &Seen, _| {
        let number = issued.fetch_add(1, Ordering::SeqCst) + 1;
        let expected = format!("refresh_token=rt-{}", number - 1);
        if !seen.text().split('&').any(|field| field == expected) {
            return Reply::status(400).json(r#"{"error":"invalid_grant","error_description":"CANARY"}"#);
        }
        Reply::status(200).json(json!({
            "access_token": format!("at-{number}"),
            "token_type": "Bearer",
            "expires_in": lifetime,
            "refresh_token": format!("rt-{number}"),
        }))
    };
    Upstream::start(Script::by(reply)).await.unwrap()
}

pub(crate) fn secret(text: &str) -> Secret {
    Secret::new(text.to_owned())
}

pub(crate) fn key(text: &str) -> Source {
    Source::Key(Held::Text(secret(text)))
}

pub(crate) fn oauth(issuer: &Upstream, refresh_token: Held) -> Source {
    Source::OAuth(Box::new(OAuth {
        refresh_token,
        token_url: format!("{}/oauth/token", issuer.url()).parse().unwrap(),
        client_id: Some("a client".to_owned()),
        client_secret: None,
        scope: None,
        form: TokenRequest::Form,
        before: std::time::Duration::from_secs(60),
    }))
}

pub(crate) fn first_token(issuer: &Upstream) -> Source {
    oauth(issuer, Held::Text(secret("rt-0")))
}

/// Everything goes to `service`, with this credential.
pub(crate) fn with(service: &str, source: Source, folder: &Folder) -> Config {
    let mut config = fast();
    let entry = Entry { credential: Some("mine".to_owned()), ..Entry::at(service.parse().unwrap()) };
    config.upstreams.insert("mine".to_owned(), entry);
    config.upstream = Some(UpstreamChoice::Named("mine".to_owned()));
    config.credentials.insert("mine".to_owned(), Credential { source, header: None });
    config.credentials_dir = Some(folder.path().join("credentials"));
    config
}

/// A turn without any credential.
pub(crate) fn bare() -> Request {
    Request::post("/v1/responses").json(TURN)
}

/// A relay that was started with `at-1` in its state folder, issued some time ago.
pub(crate) async fn with_a_kept_token(config: &Config, issuer: &Upstream) -> Bench {
    let before = Bench::with(config.clone()).await;
    before.ask(&bare()).await;
    assert_eq!(issuer.requests().len(), 1);
    before.drain().await;
    Bench::with(config.clone()).await
}

pub(crate) fn keys_of(service: &Upstream) -> Vec<String> {
    service.requests().iter().map(|seen| seen.header("authorization").unwrap_or("none").to_owned()).collect()
}

fn news(bench: &Bench) -> Vec<CredentialNews> {
    let of = |notice| {
        let Notice::Credential { name, news } = notice else { return None };
        assert_eq!(&*name, "mine");
        Some(news)
    };
    bench.recorder().notices().into_iter().filter_map(of).collect()
}

/// It is the service's own refusal, to the byte.
pub(crate) fn is_untouched(answer: &Answer, status: u16) {
    assert_eq!(
        (answer.status, answer.header("x-from"), answer.text().as_str()),
        (status, Some("the service"), WHO)
    );
    assert_eq!(answer.header("x-should-retry"), None);
}

#[tokio::test]
async fn a_key_is_lent_to_requests_that_bring_none() {
    let service = service(&["sk-own", "sk-test"], 401).await;
    let folder = Folder::new();
    let bench = Bench::with(with(&service.url(), key("sk-own"), &folder)).await;
    for request in [bare(), plain(TURN), bare().header("x-api-key", "sk-theirs")] {
        bench.ask(&request).await;
    }
    assert_eq!(keys_of(&service), ["Bearer sk-own", "Bearer sk-test", "none"]);
}

#[tokio::test]
async fn a_key_goes_into_the_header_that_is_named() {
    let service = service(&[], 401).await;
    let folder = Folder::new();
    let mut config = with(&service.url(), key("sk-own"), &folder);
    config.credentials.get_mut("mine").unwrap().header = Some("api-key".parse().unwrap());
    let bench = Bench::with(config).await;
    bench.ask(&bare()).await;
    let seen = &service.requests()[0];
    assert_eq!((seen.header("api-key"), seen.header("authorization")), (Some("sk-own"), None));
}

#[tokio::test]
async fn in_place_of_what_a_client_brings_nothing_of_it_is_sent() {
    let service = service(&["sk-own"], 401).await;
    let folder = Folder::new();
    let mut config = with(&service.url(), key("sk-own"), &folder);
    config.upstreams.get_mut("mine").unwrap().replace_credential = true;
    let bench = Bench::with(config).await;
    let request = Request::post("/v1/responses?key=CANARY&beta=1")
        .header("authorization", "Bearer CANARY")
        .header("x-api-key", "CANARY")
        .header("x-goog-api-key", "CANARY")
        .header("chatgpt-account-id", "CANARY")
        .header("openai-organization", "CANARY")
        .header("cookie", "session=CANARY")
        .header("x-other", "stays")
        .json(TURN);
    assert_eq!(bench.ask(&request).await.status, 200);
    let seen = &service.requests()[0];
    assert!(!String::from_utf8_lossy(&seen.raw_head).contains("CANARY"));
    assert_eq!(seen.target, "/v1/responses?beta=1");
    assert_eq!(
        (seen.header("authorization"), seen.header("x-other")),
        (Some("Bearer sk-own"), Some("stays"))
    );
    // A page whose own name was led here is lent nothing, whatever it brings.
    let port = bench.addr().port();
    let page = plain(TURN).header("host", format!("evil.example:{port}"));
    assert_eq!(bench.ask(&page).await.status, 403);
    assert_eq!(service.requests().len(), 1);
}

#[tokio::test]
async fn a_token_is_issued_once_for_all_that_need_it() {
    let (service, issuer) = (service(&["at-1"], 401).await, issuer(3600).await);
    let folder = Folder::new();
    let bench = Arc::new(Bench::with(with(&service.url(), first_token(&issuer), &folder)).await);
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let bench = Arc::clone(&bench);
        all.spawn(async move { bench.ask(&bare()).await.status });
    }
    assert_eq!(all.join_all().await, [200; 20]);
    let asked = issuer.requests();
    assert_eq!(asked.len(), 1);
    assert_eq!((asked[0].method.as_str(), asked[0].target.as_str()), ("POST", "/oauth/token"));
    assert_eq!(asked[0].header("content-type"), Some("application/x-www-form-urlencoded"));
    assert_eq!(asked[0].text(), "grant_type=refresh_token&refresh_token=rt-0&client_id=a+client");
    assert_eq!(news(&bench), [CredentialNews::Renewed]);
    assert_eq!(bench.page().await["credentials"], json!([{"name": "mine", "state": "renewed", "why": null}]));
}

/// Two hundred calls that are refused with the same token make one renewal, and each is sent once more.
async fn storm(change: impl FnOnce(&mut Config)) {
    const CALLS: usize = 200;
    let (all_are_here, issuer) = (Signal::new(), issuer(3600).await);
    let held = all_are_here.clone();
    let reply = move |seen: &Seen, _| match seen.header("authorization") {
        Some("Bearer at-2") => Reply::sse(wire::turn("hi")),
        _ if seen.index == 0 => Reply::status(404).json("{}"),
        _ => Reply::status(401).json(WHO).when(held.clone()),
    };
    let service = Upstream::start(Script::by(reply)).await.unwrap();
    let folder = Folder::new();
    let mut config = with(&service.url(), first_token(&issuer), &folder);
    change(&mut config);
    let bench = Arc::new(with_a_kept_token(&config, &issuer).await);
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..CALLS {
        let bench = Arc::clone(&bench);
        all.spawn(async move { bench.ask(&bare()).await.status });
    }
    assert!(service.wait_for_requests(1 + CALLS, SOON).await, "{}", service.requests().len());
    all_are_here.release();
    assert_eq!(all.join_all().await, [200; CALLS]);
    assert_eq!((issuer.requests().len(), service.requests().len()), (2, 1 + 2 * CALLS));
    assert_eq!((bench.totals().sends, bench.totals().calls_saved), (400, 200));
    let story = bench.story(1).await;
    let told = "opened, send 1, 401, authentication refused, send 2, 200, committed, served";
    assert_eq!(story.replace(" wait,", "").replace(" line,", ""), told);
    // The kept tokens are the last ones, and private.
    let kept = folder.read("credentials/mine.json");
    assert!(kept.contains("at-2") && kept.contains("rt-2") && !kept.contains("rt-0"), "{kept}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode =
            |name: &str| std::fs::metadata(folder.path().join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("credentials"), mode("credentials/mine.json")), (0o700, 0o600));
    }
}

#[tokio::test]
async fn two_hundred_refusals_make_one_renewal() {
    storm(|_| {}).await;
}

#[tokio::test]
async fn two_hundred_refusals_make_one_renewal_in_the_gate_too() {
    storm(|config| config.profiles = Config::default().profiles).await;
}

#[tokio::test]
async fn a_second_refusal_goes_back_as_it_is() {
    let (service, issuer) = (service(&[], 401).await, issuer(3600).await);
    let folder = Folder::new();
    let bench = with_a_kept_token(&with(&service.url(), first_token(&issuer), &folder), &issuer).await;
    is_untouched(&bench.ask(&bare()).await, 401);
    // What was issued just now and is refused, too, is not asked for again.
    is_untouched(&bench.ask(&bare()).await, 401);
    assert_eq!(keys_of(&service)[1..], ["Bearer at-1", "Bearer at-2", "Bearer at-2"]);
    assert_eq!(issuer.requests().len(), 2);
    assert!(bench.story(1).await.ends_with("send 2, 401, authentication final, passed"));
}

#[tokio::test]
async fn a_403_renews_nothing() {
    let (service, issuer) = (service(&[], 403).await, issuer(3600).await);
    let folder = Folder::new();
    let bench = with_a_kept_token(&with(&service.url(), first_token(&issuer), &folder), &issuer).await;
    is_untouched(&bench.ask(&bare()).await, 403);
    assert_eq!((issuer.requests().len(), service.requests().len()), (1, 2));
}

#[tokio::test]
async fn who_brings_a_credential_renews_nothing() {
    let (service, issuer) = (service(&["at-1"], 401).await, issuer(3600).await);
    let folder = Folder::new();
    let bench = with_a_kept_token(&with(&service.url(), first_token(&issuer), &folder), &issuer).await;
    is_untouched(&bench.ask(&plain(TURN)).await, 401);
    assert_eq!(issuer.requests().len(), 1);
}

#[tokio::test]
async fn what_cannot_be_sent_again_renews_nothing() {
    let (service, issuer) = (service(&[], 401).await, issuer(3600).await);
    let folder = Folder::new();
    let mut config = with(&service.url(), first_token(&issuer), &folder);
    config.bodies.each = 8;
    let bench = with_a_kept_token(&config, &issuer).await;
    is_untouched(&bench.ask(&bare()).await, 401);
    // Nor does what its client wants untouched.
    is_untouched(&bench.ask(&bare().header("x-steady", "off")).await, 401);
    assert_eq!(issuer.requests().len(), 1);
}

#[tokio::test]
async fn where_the_issuer_refuses_the_401_goes_back_and_nobody_asks_again_until_the_file_changes() {
    let service = service(&["at-9"], 401).await;
    let reply = |seen: &Seen, number: usize| match number {
        0 => Reply::status(200).json(r#"{"access_token":"at-1","refresh_token":"rt-1"}"#),
        _ if seen.text().contains("rt-nine") => Reply::status(200).json(r#"{"access_token":"at-9"}"#),
        _ => Reply::status(400).json(r#"{"error":"invalid_grant","error_description":"CANARY"}"#),
    };
    let issuer = Upstream::start(Script::by(reply)).await.unwrap();
    let folder = Folder::new();
    let file = folder.write("refresh-token", "rt-0\n");
    let config = with(&service.url(), oauth(&issuer, Held::File(file)), &folder);
    let bench = with_a_kept_token(&config, &issuer).await;
    for _ in 0..3 {
        is_untouched(&bench.ask(&bare()).await, 401);
    }
    assert_eq!((issuer.requests().len(), service.requests().len()), (2, 4));
    let news = news(&bench);
    let [CredentialNews::Failed { why, for_good: true, again: false }] = news.as_slice() else {
        panic!("{news:?}")
    };
    assert!(why.contains("400 invalid_grant") && !why.contains("CANARY"), "{why}");
    assert_eq!(bench.page().await["credentials"][0]["state"], "failed_for_good");
    folder.write("refresh-token", "rt-nine\n");
    assert_eq!(bench.ask(&bare()).await.status, 200);
    assert_eq!(issuer.requests().len(), 3);
}

#[tokio::test]
async fn without_any_token_a_call_is_told_so_and_not_sent() {
    let (service, issuer) = (service(&["at-1"], 401).await, issuer(3600).await);
    let folder = Folder::new();
    let echo = r#"{"error":"invalid_grant:rt-CANARY","error_description":"rt-CANARY"}"#;
    let issuer_of_echoes = Upstream::start(Script::of([Reply::status(400).json(echo)])).await.unwrap();
    let source = oauth(&issuer_of_echoes, Held::Text(secret("rt-CANARY")));
    let bench = Bench::with(with(&service.url(), source, &folder)).await;
    let told = bench.ask(&bare()).await.text();
    assert!(told.contains("invalid_grant:") && !told.contains("CANARY"), "{told}");
    let seen = format!("{:?} {}", bench.recorder().notices(), bench.page().await);
    assert!(seen.contains("invalid_grant:") && !seen.contains("CANARY"), "{seen}");
    let source = oauth(&issuer, Held::Text(secret("rt-CANARY")));
    let bench = Bench::with(with(&service.url(), source, &folder)).await;
    for _ in 0..2 {
        let told = bench.ask(&bare()).await;
        assert_eq!((told.status, told.header("x-should-retry")), (502, Some("false")));
        let words = told.text();
        assert!(words.contains("relay_credential_missing") && words.contains("invalid_grant"), "{words}");
        assert!(words.contains("credential `mine`") && !words.contains("CANARY"), "{words}");
    }
    assert_eq!((issuer.requests().len(), service.requests().len()), (1, 0));
    assert_eq!(bench.story(1).await, "opened, refused");
}

#[tokio::test]
async fn while_the_issuer_fails_calls_wait_and_never_earlier_than_it_asks() {
    let service = service(&["at-1"], 401).await;
    let reply = |_: &Seen, number: usize| match number {
        0 => Reply::status(503).header("retry-after", "2").json("{}"),
        _ => Reply::status(200).json(r#"{"access_token":"at-1"}"#),
    };
    let issuer = Upstream::start(Script::by(reply)).await.unwrap();
    let folder = Folder::new();
    let bench = Bench::with(with(&service.url(), first_token(&issuer), &folder)).await;
    assert_eq!(bench.ask(&bare()).await.status, 200);
    let asked = issuer.requests();
    assert!(asked.len() == 2 && asked[1].at - asked[0].at >= std::time::Duration::from_secs(2), "{asked:?}");
    assert_eq!(bench.story(1).await, "opened, renewing, send 1, 200, committed, served");
}

#[tokio::test]
async fn a_token_is_renewed_before_its_end_and_nobody_waits_for_it() {
    let (service, issuer) = (service(&["at-1", "at-2"], 401).await, issuer(2).await);
    let folder = Folder::new();
    let bench = Bench::with(with(&service.url(), first_token(&issuer), &folder)).await;
    assert_eq!(bench.ask(&bare()).await.status, 200);
    // It lives for two seconds, and is renewed in the second half of that.
    let mut sent = 1;
    while issuer.requests().len() < 2 {
        assert_eq!(bench.ask(&bare()).await.status, 200);
        sent += 1;
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(bench.totals().sends, sent, "none of them was refused");
    let renewed = |seen: &[Seen]| seen.iter().any(|seen| seen.header("authorization") == Some("Bearer at-2"));
    while !renewed(&service.requests()) {
        bench.ask(&bare()).await;
    }
    assert!(issuer.requests()[1].text().contains("refresh_token=rt-1"), "the one that was issued last");
}

#[tokio::test]
async fn relays_of_one_folder_use_each_others_tokens() {
    let (service, issuer) = (service(&["at-2"], 401).await, issuer(3600).await);
    let folder = Folder::new();
    let config = with(&service.url(), first_token(&issuer), &folder);
    let one = with_a_kept_token(&config, &issuer).await;
    let other = Bench::with(config.clone()).await;
    let (here, there) = (bare(), bare());
    let (here, there) = tokio::join!(one.ask(&here), other.ask(&there));
    assert_eq!((here.status, there.status), (200, 200));
    assert_eq!(issuer.requests().len(), 2, "one of the two was enough");
}

#[tokio::test]
async fn another_refresh_token_in_the_settings_holds_from_a_reload_on() {
    let (service, issuer) = (service(&["at-1", "at-2"], 401).await, issuer(3600).await);
    let folder = Folder::new();
    let config = with(&service.url(), first_token(&issuer), &folder);
    let bench = with_a_kept_token(&config, &issuer).await;
    // Settings that say the same keep the token.
    bench.reload(Config { gate: false, ..config.clone() });
    assert_eq!(bench.ask(&bare()).await.status, 200);
    assert_eq!(issuer.requests().len(), 1);
    bench.reload(with(&service.url(), oauth(&issuer, Held::Text(secret("rt-1"))), &folder));
    assert_eq!(bench.ask(&bare()).await.status, 200);
    assert_eq!((issuer.requests().len(), keys_of(&service)[2].as_str()), (2, "Bearer at-2"));
}

#[tokio::test]
async fn a_credential_that_works_again_is_shown_so_and_one_that_is_gone_is_not() {
    let service = service(&["sk-new"], 401).await;
    let folder = Folder::new();
    let config = with(&service.url(), Source::Key(Held::File(folder.path().join("key"))), &folder);
    let bench = Bench::with(config.clone()).await;
    assert_eq!(bench.ask(&bare()).await.status, 502);
    let shown = bench.page().await["credentials"].clone();
    assert_eq!((&shown[0]["name"], &shown[0]["state"]), (&json!("mine"), &json!("failed")), "{shown}");
    folder.write("key", "sk-new");
    while bench.ask(&bare()).await.status != 200 {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(bench.page().await["credentials"][0]["state"], "renewed");
    bench.reload(Config {
        credentials: std::collections::BTreeMap::new(),
        ..crate::support::towards(&service.url())
    });
    assert_eq!(bench.page().await["credentials"], json!([]));
}

#[tokio::test]
async fn a_lane_is_that_of_the_credential_and_outlives_its_tokens() {
    let (service, issuer) = (service(&["at-2", "sk-own"], 401).await, issuer(3600).await);
    let folder = Folder::new();
    let mut config = with(&service.url(), first_token(&issuer), &folder);
    let other = Entry { credential: Some("other".to_owned()), ..config.upstreams["mine"].clone() };
    config.upstreams.insert("other".to_owned(), other);
    config.credentials.insert("other".to_owned(), Credential { source: key("sk-own"), header: None });
    let bench = with_a_kept_token(&config, &issuer).await;
    let lanes = async || -> BTreeSet<String> {
        let page = bench.page().await;
        page["lanes"].as_array().unwrap().iter().map(|lane| lane["id"].to_string()).collect()
    };
    bench.ask(&bare()).await;
    let one = lanes().await;
    bench.ask(&bare()).await;
    assert_eq!((one.len(), lanes().await), (1, one.clone()), "two tokens, and one lane");
    bench.ask(&Request::post("/to/other/v1/responses").json(TURN)).await;
    assert!(lanes().await.len() == 2 && lanes().await.is_superset(&one));
}

#[tokio::test]
async fn a_websocket_is_opened_with_it_and_once_more_with_a_newer_one() {
    for websocket in [Websocket::Speak, Websocket::Tunnel] {
        let issuer = issuer(3600).await;
        let refused = Upgrade::refuse_with(401, &[], WHO);
        let script = WsScript::good("word").upgrades([Upgrade::accept(), refused, Upgrade::accept()]);
        let service = WsUpstream::start(script).await.unwrap();
        let folder = Folder::new();
        let config = Config { websocket, ..with(&service.url(), first_token(&issuer), &folder) };
        for _ in 0..2 {
            let bench = Bench::with(config.clone()).await;
            let client = WsClient::connect(bench.addr(), "/v1/responses", &[]).await;
            assert!(client.is_ok(), "{websocket:?}: {:?}", client.err());
        }
        let upgrades = service.upgrades();
        let keys: Vec<_> = upgrades.iter().map(|seen| seen.what.header("authorization").unwrap()).collect();
        assert_eq!(keys, ["Bearer at-1", "Bearer at-1", "Bearer at-2"], "{websocket:?}");
    }
}

#[tokio::test]
async fn a_model_is_warmed_with_it() {
    let service = service(&["sk-own"], 401).await;
    let folder = Folder::new();
    let mut config = with(&service.url(), key("sk-own"), &folder);
    let entry = config.upstreams.get_mut("mine").unwrap();
    (entry.warm, entry.warm_on_start) = (Some(Warm::ollama("llama3")), true);
    let _bench = Bench::with(config).await;
    assert!(service.wait_for_requests(1, SOON).await);
    assert_eq!(keys_of(&service), ["Bearer sk-own"]);
}
