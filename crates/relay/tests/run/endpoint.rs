//! The endpoint of sessions, as programs use it, and as those try it who should not.

use relay_sim::{Client, Request, Upstream};
use serde_json::json;

use crate::place::{Place, Serving, good};

const PATH: &str = "/__steady/sessions";
const KEY: &str = "0123456789abcdef0123456789abcdef";

fn open(token: &str, body: &str) -> Request {
    Request::post(PATH).header("x-steady-token", token).json(body)
}

/// A session, and the connection that holds it.
async fn held(relay: &Serving, token: &str, key: &str) -> Client {
    let mut client = relay.client().await;
    let body = json!({"v": 1, "client": "py", "key": key}).to_string();
    client.send(&open(token, &body)).await.unwrap();
    assert!(client.read_until(b"\n").await && client.read_until(key.as_bytes()).await);
    client
}

async fn place() -> (Place, Upstream, Serving) {
    let up = Upstream::start(good()).await.unwrap();
    let place = Place::new();
    let relay = place.serve_at(0, &up, &["--no-upstream"]).await;
    (place, up, relay)
}

#[tokio::test]
async fn a_program_can_hold_a_session_and_ask_how_it_is() {
    let (place, up, relay) = place().await;
    let mut holder = relay.client().await;
    let body = json!({
        "v": 1, "client": "py", "key": KEY, "upstreams": [{"name": "gw", "url": format!("{}/gw", up.url())}],
    });
    holder.send(&open(&place.token(), &body.to_string())).await.unwrap();
    assert!(holder.read_until(KEY.as_bytes()).await);
    let call = Request::post(&format!("/~{KEY}/to/gw/responses")).header("authorization", "Bearer k");
    assert_eq!(relay.ask(&call.json(r#"{"model":"m","stream":true}"#)).await.status, 200);
    assert_eq!(up.requests()[0].target, "/gw/responses");
    let page = relay.session(KEY).await.json();
    assert_eq!(
        (page["v"].as_u64(), page["client"].as_str(), page["open"].as_u64()),
        (Some(1), Some("py"), Some(0))
    );
    // It ends with its connection.
    holder.leave().await;
    relay.forgets(KEY).await;
}

#[tokio::test]
async fn the_documented_keys_are_those_of_the_page() {
    const DOCUMENTED: &str = include_str!("../../../../docs/status.md");
    let (place, _up, relay) = place().await;
    let _holder = held(&relay, &place.token(), KEY).await;
    let page = relay.session(KEY).await.json();
    let section = DOCUMENTED.split_once("\n## Sessions\n").unwrap().1;
    let documented: Vec<&str> = section
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` | "))
        .map(|(key, _)| key)
        .collect();
    for key in page.as_object().unwrap().keys().chain(page["sums"].as_object().unwrap().keys()) {
        assert!(documented.contains(&key.as_str()), "{key} is not in {documented:?}");
    }
}

#[tokio::test]
async fn only_whoever_has_the_local_token_opens_one() {
    let (place, _up, relay) = place().await;
    let body = r#"{"v":1,"client":"x"}"#;
    let status = async |request: Request| relay.ask(&request).await.status;
    assert_eq!(status(Request::post(PATH).json(body)).await, 401);
    assert_eq!(status(open("0123456789abcdef0123456789abcdef", body)).await, 403);
    let token = place.token();
    let right = || open(&token, body);
    assert_eq!(status(right().header("origin", "https://evil.example")).await, 403);
    assert_eq!(status(open(&token, body).header("host", "evil.example")).await, 403);
    for (request, expected) in [
        (open(&token, "{"), 400),
        (open(&token, r#"{"v":2,"client":"x"}"#), 400),
        (open(&token, r#"{"v":1,"client":"x","more":1}"#), 400),
        (open(&token, r#"{"v":1,"client":"x","key":"short"}"#), 400),
        (open(&token, r#"{"v":1,"client":"x","upstreams":[{"name":"a","url":"ftp://x"}]}"#), 400),
        (
            open(
                &token,
                &format!(
                    r#"{{"v":1,"client":"x","upstreams":[{{"name":"a","url":"http://{}"}}]}}"#,
                    relay.addr
                ),
            ),
            400,
        ),
        (open(&token, &format!(r#"{{"v":1,"client":"{}"}}"#, "x".repeat(70_000))), 413),
        (Request::new("PUT", PATH), 405),
        (Request::post(&format!("{PATH}/{KEY}")), 405),
        (Request::get(&format!("{PATH}/{KEY}")), 404),
        (Request::get(&format!("{PATH}/../status")), 404),
        (Request::get(PATH), 400),
        (Request::get(&format!("{PATH}?nonce=short")), 400),
    ] {
        let answer = relay.ask(&request).await;
        assert_eq!(answer.status, expected, "{request:?} {}", answer.text());
    }
    // None of it left a session, and the relay is well.
    assert_eq!(status(Request::get("/healthz")).await, 200);
}

#[tokio::test]
async fn a_body_that_never_ends_is_cut_and_one_of_many_sessions_is_refused() {
    let (place, _up, relay) = place().await;
    let token = place.token();
    let huge = Request::post(PATH).header("x-steady-token", &token).body(vec![b' '; 1 << 20]).chunked(4096);
    let answer = relay.client().await.ask(&huge).await;
    // It is told, or its connection is closed while it still sends.
    assert!(answer.is_err() || matches!(answer.unwrap().status, 413 | 0));
    let mut all = Vec::new();
    for at in 0..256 {
        all.push(held(&relay, &token, &format!("{at:032x}")).await);
    }
    let one_more = relay.ask(&open(&token, r#"{"v":1,"client":"x"}"#)).await;
    assert_eq!((one_more.status, one_more.text().contains("the limit")), (429, true));
    assert_eq!(relay.session(&format!("{:032x}", 255)).await.status, 200);
    all.pop().unwrap().leave().await;
    let mut status = 429;
    while status == 429 {
        let mut client = relay.client().await;
        client.send(&open(&token, r#"{"v":1,"client":"x"}"#)).await.unwrap();
        assert!(client.read_head().await);
        status = if client.read_until(b"\"key\"").await { 200 } else { 429 };
    }
}

#[tokio::test]
async fn a_guessed_key_leads_nowhere_and_shows_nowhere() {
    let (place, up, relay) = place().await;
    let _holder = held(&relay, &place.token(), KEY).await;
    let near = "0123456789abcdef0123456789abcdee";
    for path in [
        format!("/~{near}/v1/responses"),
        format!("/~{near}/__steady/status"),
        format!("/~{near}{PATH}/{KEY}"),
        format!("/~{near}"),
    ] {
        // A relay that has just begun waits for sessions that come back: not for ever.
        let answer = relay.ask(&Request::get(&path).header("authorization", "Bearer k")).await;
        assert_eq!(answer.status, 403, "{path} {}", answer.text());
        assert!(!answer.text().contains(near));
    }
    // A key lets nobody change anything.
    let probe = Request::post(&format!("/~{KEY}/__steady/lanes/0/probe"));
    assert_eq!(relay.ask(&probe).await.status, 403);
    // Where a page asks, the paths of sessions are not in the log either.
    let page = Request::get(&format!("{PATH}/{KEY}")).header("origin", "https://evil.example");
    assert_eq!(relay.ask(&page).await.status, 403);
    let said = relay.said();
    assert!(!said.contains(near) && !said.contains(KEY), "{said}");
    assert_eq!(up.requests().len(), 0);
}

#[tokio::test]
async fn a_key_takes_no_tokens_place() {
    const TOKEN: &str = "one-token-of-everybody";
    let up = Upstream::start(good()).await.unwrap();
    let place = Place::new();
    let lends = format!(
        "[relay]\ntoken = \"{TOKEN}\"\nupstream = \"lent\"\n[upstream.lent]\nurl = \"{}\"\n\
         headers = {{ authorization = \"Bearer lent\" }}\n",
        up.url()
    );
    place.settings(&lends);
    let relay = Serving::start(&mut place.program(&["serve", "--port", "0"])).await;
    let mut holder = relay.client().await;
    let body = json!({"v": 1, "client": "py", "key": KEY}).to_string();
    holder.send(&open(TOKEN, &body).header("x-steady-token", place.token())).await.unwrap();
    assert!(holder.read_until(KEY.as_bytes()).await);
    // The relay's own pages are not behind it.
    for path in ["/healthz", "/__steady/status", PATH] {
        let answer = relay.ask(&Request::get(&format!("/~{KEY}{path}"))).await;
        assert_eq!((answer.status, answer.text().contains("own pages")), (403, true), "{path}");
    }
    // Nor is a credential that is not the client's, while its own goes on.
    let call = || Request::post(&format!("/~{KEY}/v1/responses")).json(r#"{"model":"m","stream":true}"#);
    let answer = relay.ask(&call()).await;
    assert_eq!((answer.status, up.requests().len()), (401, 0), "{}", answer.text());
    assert_eq!(relay.ask(&call().header("x-steady-token", "another")).await.status, 403);
    assert_eq!(relay.ask(&call().header("x-steady-token", TOKEN)).await.status, 200);
    assert_eq!(relay.ask(&call().header("authorization", "Bearer k")).await.status, 200);
    assert_eq!(up.requests().len(), 2);
}

#[tokio::test]
async fn whoever_is_refused_a_session_that_is_open_leaves_it_as_it_was() {
    let (place, up, relay) = place().await;
    let _holder = held(&relay, &place.token(), KEY).await;
    for (url, status) in [(format!("http://{}", relay.addr), 400), ("ftp://x".to_owned(), 400)] {
        let upstreams = json!([{"name": "a", "url": url}]);
        let body = json!({"v": 1, "client": "other", "key": KEY, "upstreams": upstreams}).to_string();
        let answer = relay.ask(&open(&place.token(), &body)).await;
        assert_eq!(answer.status, status, "{}", answer.text());
        assert_eq!(relay.session(KEY).await.json()["client"], "py");
    }
    assert_eq!(up.connections(), 0);
}
