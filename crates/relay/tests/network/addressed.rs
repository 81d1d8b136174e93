//! Upstreams by path, and requests that no upstream is known for.

use relay_core::config::{Upstream as Entry, Websocket};
use relay_sim::{Reply, Request, Script, Upstream};

use crate::support::{quick, relay, towards};

async fn ask(at: std::net::SocketAddr, request: Request) -> relay_sim::Answer {
    relay_sim::Client::connect(at).await.unwrap().ask(&request).await.unwrap()
}

#[tokio::test]
async fn a_path_that_names_an_upstream_goes_there_whatever_else_says() {
    let everything = Upstream::start(Script::of([Reply::status(200).text("everything")])).await.unwrap();
    let other = Upstream::start(Script::of([Reply::status(200).text("other")])).await.unwrap();
    let mut config = towards(&everything.url());
    config.upstreams.insert("other".to_owned(), Entry::at(format!("{}/v1", other.url()).parse().unwrap()));
    let at = relay(config).await;
    for (path, there) in [
        ("/to/other/responses?a=b", "/v1/responses?a=b"),
        ("/to/other/v1/models", "/v1/models"),
        ("/to/other", "/v1/"),
        ("/to/other?x=1", "/v1/?x=1"),
    ] {
        let request = Request::get(path).header("authorization", "Bearer sk-ant-secret");
        assert_eq!(ask(at, request).await.text(), "other", "{path}");
        assert_eq!(other.requests().last().unwrap().target, there);
    }
    assert_eq!(ask(at, Request::get("/v1/models")).await.text(), "everything");
    assert_eq!(ask(at, Request::get("/together")).await.text(), "everything");
    let unknown = ask(at, Request::get("/to/othr/v1/models")).await;
    assert_eq!(unknown.status, 404);
    assert!(unknown.text().contains("anthropic, chatgpt, gemini, openai, other"), "{}", unknown.text());
    assert_eq!(unknown.header("x-should-retry"), Some("false"));
}

#[tokio::test]
async fn what_is_generated_there_is_understood_and_sent_again() {
    let busy = Reply::status(503).json(r#"{"error":{"code":"server_is_overloaded","message":"busy"}}"#);
    let served = Reply::status(200).json(r#"{"id":"x","choices":[]}"#);
    let up = Upstream::start(Script::of([busy, served])).await.unwrap();
    let mut config = quick();
    let refuses = Some(Websocket::Refuse);
    config
        .upstreams
        .insert("mine".to_owned(), Entry { websocket: refuses, ..Entry::at(up.url().parse().unwrap()) });
    let at = relay(config).await;
    let turn = r#"{"model":"m","messages":[]}"#;
    let request =
        Request::post("/to/mine/v1/chat/completions").header("authorization", "Bearer x").json(turn);
    assert_eq!(ask(at, request).await.status, 200);
    assert_eq!(up.requests().len(), 2);
    // A WebSocket on a path that generates is declined here too, where they are.
    let socket =
        Request::get("/to/mine/v1/responses").header("connection", "upgrade").header("upgrade", "websocket");
    assert_eq!(ask(at, socket).await.status, 426);
}

#[tokio::test]
async fn without_settings_services_that_cannot_be_found_are_named_with_what_to_do() {
    let at = relay(quick()).await;
    for (name, value, service, way) in [
        ("api-key", "0123456789abcdef", "Azure OpenAI", "--upstream"),
        (
            "authorization",
            "AWS4-HMAC-SHA256 Credential=AKIA/20260101/x, Signature=1",
            "Bedrock",
            "connect to Bedrock",
        ),
        ("authorization", "Bearer ya29.a0AfB", "Vertex AI", "--upstream"),
    ] {
        let answer = ask(at, Request::post("/v1/messages").header(name, value).json("{}")).await;
        assert_eq!(answer.status, 400, "{service}");
        assert!(answer.text().contains(service) && answer.text().contains(way), "{}", answer.text());
        assert!(
            !answer.text().contains("AKIA") && !answer.text().contains("0123456789"),
            "{}",
            answer.text()
        );
    }
}

#[tokio::test]
async fn a_key_of_gemini_goes_to_gemini_and_stays_where_it_was() {
    let up = Upstream::start(Script::of([Reply::status(200).json("{}")])).await.unwrap();
    let mut config = quick();
    config.upstreams.insert("gemini".to_owned(), Entry::at(up.url().parse().unwrap()));
    let at = relay(config).await;
    let path = "/v1beta/models/g:generateContent";
    let request = Request::post(path).header("x-goog-api-key", "AIzaSyOne").json("{}");
    assert_eq!(ask(at, request).await.status, 200);
    let request = Request::post(&format!("{path}?key=AIzaSyTwo")).json("{}");
    assert_eq!(ask(at, request).await.status, 200);
    let seen = up.requests();
    assert_eq!(seen[0].header("x-goog-api-key"), Some("AIzaSyOne"));
    assert_eq!((seen[0].target.as_str(), seen[1].target.as_str()), (path, &*format!("{path}?key=AIzaSyTwo")));
}
