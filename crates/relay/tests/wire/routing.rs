//! Without an upstream that is named, the credential decides, and goes nowhere else.

use http::{HeaderName, HeaderValue};
use relay_core::Config;
use relay_core::config::{ProfileChoice, Route, Upstream as Entry};
use relay_sim::fixtures::{codex as wire, openai_jwt};
use relay_sim::{Answer, Reply, Request, Script, Upstream};
use serde_json::json;
use steady_relay::observe::Notice;

use crate::support::{Bench, TURN, fast, towards};

const OPENAI_KEY: &str = "sk-proj-abcdefghijklmnop";
const SERVICE_KEY: &str = "sk-svcacct-abcdefghijklmnop";
const OLD_KEY: &str = "sk-abcdefT3BlbkFJabcdef";
const ANTHROPIC_KEY: &str = "sk-ant-api03-abcdefgh";

/// Three pretend services, one for each house.
struct Houses {
    openai: Upstream,
    chatgpt: Upstream,
    anthropic: Upstream,
}

impl Houses {
    async fn built() -> Self {
        let start =
            async |name| Upstream::start(Reply::status(200).json(json!({ "house": name }))).await.unwrap();
        Self {
            openai: start("openai").await,
            chatgpt: start("chatgpt").await,
            anthropic: start("anthropic").await,
        }
    }

    fn config(&self) -> Config {
        let mut config = fast();
        for (name, url) in [
            ("openai", format!("{}/v1", self.openai.url())),
            ("chatgpt", format!("{}/backend-api/codex", self.chatgpt.url())),
            ("anthropic", self.anthropic.url()),
        ] {
            config.upstreams.insert(name.to_owned(), Entry::at(url.parse().unwrap()));
        }
        config
    }

    fn requests(&self) -> usize {
        [&self.openai, &self.chatgpt, &self.anthropic].iter().map(|up| up.requests().len()).sum()
    }
}

fn post(path: &str) -> Request {
    Request::post(path).json(TURN)
}

fn is_refusal(answer: &Answer, words: &str) {
    assert_eq!((answer.status, answer.header("x-should-retry")), (400, Some("false")));
    let message = answer.json()["error"]["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.starts_with("steady-relay: ") && message.contains(words), "{message}");
    assert!(message.contains("hint: "), "{message}");
}

#[tokio::test]
async fn a_credential_goes_to_the_house_that_issued_it() {
    let houses = Houses::built().await;
    let bench = Bench::with(houses.config()).await;
    let jwt = openai_jwt(&json!({}));
    let bearer = |secret: &str| ("authorization", format!("Bearer {secret}"));
    let rows = [
        (post("/v1/responses"), bearer(OPENAI_KEY), "openai", "/v1/responses"),
        (post("/responses"), bearer(OLD_KEY), "openai", "/v1/responses"),
        (post("/v1/chat/completions"), bearer(SERVICE_KEY), "openai", "/v1/chat/completions"),
        (post("/v1/responses"), bearer(&jwt), "chatgpt", "/backend-api/codex/responses"),
        (post("/responses?a=b"), bearer(&jwt), "chatgpt", "/backend-api/codex/responses?a=b"),
        (
            post("/v1/messages?beta=true"),
            ("x-api-key", ANTHROPIC_KEY.to_owned()),
            "anthropic",
            "/v1/messages?beta=true",
        ),
        (post("/v1/messages"), bearer("sk-ant-oat01-abcdefgh"), "anthropic", "/v1/messages"),
        (Request::new("HEAD", "/api/hello"), ("x-nothing", "1".to_owned()), "anthropic", "/api/hello"),
    ];
    for (request, (name, value), house, target) in rows {
        let answer = bench.ask(&request.header(name, &value)).await;
        assert_eq!(answer.status, 200, "{value}");
        let up = match house {
            "openai" => &houses.openai,
            "chatgpt" => &houses.chatgpt,
            _ => &houses.anthropic,
        };
        let seen = up.requests().pop().unwrap();
        assert_eq!((seen.target.as_str(), seen.header(name)), (target, Some(value.as_str())));
        assert_eq!(seen.header("host"), Some(up.addr().to_string().as_str()));
    }
    assert_eq!(houses.requests(), 8);
}

#[tokio::test]
async fn what_is_unknown_or_disagrees_goes_nowhere() {
    let houses = Houses::built().await;
    let bench = Bench::with(houses.config()).await;
    let foreign = openai_jwt(&json!({"iss": "https://auth.elsewhere.example"}));
    let rows: Vec<(Request, &str)> = vec![
        (post("/v1/responses"), "carries no credential"),
        (post("/v1/responses").header("authorization", "Bearer canary"), "not one this relay can tell"),
        (
            post("/v1/responses").header("authorization", format!("Bearer {foreign}")),
            "not one this relay can tell",
        ),
        (
            post("/v1/responses").header("authorization", "Basic Y2FuYXJ5OmNhbmFyeQ=="),
            "not one this relay can tell",
        ),
        (
            post("/v1/messages")
                .header("authorization", format!("Bearer {OPENAI_KEY}"))
                .header("x-api-key", ANTHROPIC_KEY),
            "one request cannot go to both",
        ),
        (
            post("/v1/messages").header("authorization", "Bearer canary").header("x-api-key", ANTHROPIC_KEY),
            "not one this relay can tell",
        ),
    ];
    for (request, words) in rows {
        let answer = bench.ask(&request).await;
        is_refusal(&answer, words);
        for secret in ["canary", OPENAI_KEY, ANTHROPIC_KEY, foreign.as_str()] {
            assert!(!answer.text().contains(secret), "{}", answer.text());
        }
    }
    assert_eq!(houses.requests(), 0);
    // Codex prints the text of a 400 as it is.
    let answer = bench.ask(&post("/v1/responses").header("originator", "codex_cli_rs")).await;
    assert_eq!((answer.status, answer.header("content-type")), (400, Some("text/plain; charset=utf-8")));
    assert!(answer.text().starts_with("steady-relay: the request carries no credential"));
}

#[tokio::test]
async fn a_credential_never_reaches_another_house() {
    let houses = Houses::built().await;
    let bench = Bench::with(houses.config()).await;
    let canaries = ["sk-proj-CANARY-one", "sk-ant-CANARY-two"];
    for path in ["/v1/responses", "/v1/messages", "/v1/models", "/api/hello"] {
        for header in ["authorization", "x-api-key", "api-key", "x-goog-api-key"] {
            for canary in canaries {
                let value =
                    if header == "authorization" { format!("Bearer {canary}") } else { canary.to_owned() };
                bench.ask(&post(path).header(header, value)).await;
            }
        }
    }
    let heads = |up: &Upstream| {
        up.requests()
            .iter()
            .map(|seen| String::from_utf8_lossy(&seen.raw_head).into_owned())
            .collect::<String>()
    };
    assert!(heads(&houses.openai).contains("CANARY-one") && !heads(&houses.openai).contains("CANARY-two"));
    assert!(
        heads(&houses.anthropic).contains("CANARY-two") && !heads(&houses.anthropic).contains("CANARY-one")
    );
    assert_eq!(houses.chatgpt.connections(), 0);
}

#[tokio::test]
async fn headers_of_the_entry_take_the_place_of_the_clients() {
    let houses = Houses::built().await;
    let mut config = houses.config();
    let entry = config.upstreams.get_mut("openai").unwrap();
    entry.headers = vec![
        (HeaderName::from_static("x-openai-account-routing-override"), HeaderValue::from_static("eu")),
        (HeaderName::from_static("openai-organization"), HeaderValue::from_static("org-mine")),
        (HeaderName::from_static("x-team"), HeaderValue::from_static("blue")),
        (HeaderName::from_static("x-team"), HeaderValue::from_static("red")),
    ];
    let bench = Bench::with(config).await;
    let request = post("/v1/responses")
        .header("Authorization", format!("Bearer {OPENAI_KEY}"))
        .header("OpenAI-Organization", "org-other")
        .header("openai-organization", "org-third");
    assert_eq!(bench.ask(&request).await.status, 200);
    let seen = houses.openai.requests().remove(0);
    assert_eq!(seen.header_values("openai-organization"), ["org-mine"]);
    assert_eq!(seen.header_values("x-openai-account-routing-override"), ["eu"]);
    assert_eq!(seen.header_values("x-team"), ["blue", "red"]);
}

#[tokio::test]
async fn a_recognised_credential_does_not_cross_a_network_in_the_clear() {
    let mut config = fast();
    config.upstreams.insert("openai".to_owned(), Entry::at("http://relay-test.invalid/v1".parse().unwrap()));
    let bench = Bench::with(config.clone()).await;
    let request = post("/v1/responses").header("authorization", format!("Bearer {OPENAI_KEY}"));
    is_refusal(&bench.ask(&request).await, "would cross the network unencrypted");
    // Said so in its entry, it is tried, and found not to exist.
    config.upstreams.get_mut("openai").unwrap().allow_plaintext = true;
    for profile in config.profiles.values_mut() {
        profile.sends = Some(1);
    }
    let bench = Bench::with(config).await;
    assert_eq!(bench.ask(&request).await.status, 502);
}

#[tokio::test]
async fn v1_is_dropped_where_the_entry_says_so() {
    let houses = Houses::built().await;
    let mut config = houses.config();
    let mut entry = Entry::at(format!("{}/own/gateway", houses.openai.url()).parse().unwrap());
    entry.strip_v1 = Some(true);
    config.upstreams.insert("openai".to_owned(), entry);
    let bench = Bench::with(config).await;
    let key = format!("Bearer {OPENAI_KEY}");
    for path in ["/v1/responses", "/responses"] {
        bench.ask(&post(path).header("authorization", &key)).await;
    }
    let targets: Vec<String> = houses.openai.requests().into_iter().map(|seen| seen.target).collect();
    assert_eq!(targets, ["/own/gateway/responses", "/own/gateway/responses"]);
}

#[tokio::test]
async fn a_managed_plan_gets_one_warning() {
    let houses = Houses::built().await;
    let bench = Bench::with(houses.config()).await;
    let claims = json!({"https://api.openai.com/auth": {"chatgpt_plan_type": "enterprise"}});
    let request = post("/v1/responses").header("authorization", format!("Bearer {}", openai_jwt(&claims)));
    for _ in 0..3 {
        assert_eq!(bench.ask(&request).await.status, 200);
    }
    let advice =
        bench.recorder().notices().into_iter().filter(|notice| matches!(notice, Notice::Advice(_))).count();
    assert_eq!(advice, 1);
}

/// RFC 3986, section 6.2.2.2: letters that are escaped without need are the same path.
#[tokio::test]
async fn a_path_that_is_escaped_without_need_is_understood_and_forwarded_as_it_came() {
    let refused = || Reply::sse(wire::overloaded_stream());
    let up = Upstream::start(Script::of([refused(), Reply::sse(wire::turn("hi")), refused()])).await.unwrap();
    let mut config = towards(&up.url());
    let once = Route {
        path: Some("/v1/once".to_owned()),
        profile: Some(ProfileChoice::Named("once".to_owned())),
        ..Route::default()
    };
    config.routes = vec![once];
    let mut profile = config.profiles["interactive"].clone();
    profile.sends = Some(1);
    config.profiles.insert("once".to_owned(), profile);
    let bench = Bench::with(config).await;
    let answer = bench.ask(&post("/v1/%72esponses?a=%62")).await;
    assert!(answer.text().contains("hi"), "{}", answer.text());
    assert_eq!(
        bench.story(1).await,
        "opened, send 1, 200, at_capacity refused, wait, send 2, 200, committed, served"
    );
    // The route of the settings holds for it as well.
    bench.ask(&post("/v1/%6Fnce/%72esponses")).await;
    let targets: Vec<String> = up.requests().into_iter().map(|seen| seen.target).collect();
    assert_eq!(targets, ["/v1/%72esponses?a=%62", "/v1/%72esponses?a=%62", "/v1/%6Fnce/%72esponses"]);
}
