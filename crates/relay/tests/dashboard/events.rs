//! Server-sent events: live, taken up again, and never in the way of a call.

use relay_sim::{Client, Ending, Request, Script, Signal, Upstream};
use serde_json::Value;

use crate::child::SOON;
use crate::program::{Home, Serving, good, turn};
use crate::soon::soon;

async fn listener(relay: &Serving, request: &Request) -> Client {
    let mut client = relay.client().await;
    client.send(request).await.unwrap();
    client
}

fn events() -> Request {
    Request::get("/__steady/events")
}

/// The last id that was given.
fn last_id(text: &str) -> Option<String> {
    text.lines().rev().find_map(|line| line.strip_prefix("id: ")).map(str::to_owned)
}

/// What was said under this name.
fn said(client: &Client, name: &str) -> Vec<Value> {
    let events = client.answer().events();
    events.iter().filter(|(of, _)| of == name).map(|(_, data)| serde_json::from_str(data).unwrap()).collect()
}

/// Reads until something is as wished.
async fn until(client: &mut Client, wish: impl Fn(&Client) -> bool) {
    while !wish(client) {
        assert!(client.read_some().await, "it ended: {}", client.answer().text());
    }
}

fn has_closed(call: u64) -> impl Fn(&Client) -> bool {
    move |client| said(client, "call").iter().any(|it| it["call"] == call && it["state"] == "closed")
}

#[tokio::test]
async fn who_comes_back_hears_what_came_meanwhile() {
    let up = Upstream::start(Script::by(|_, _| good())).await.unwrap();
    let home = Home::new();
    let relay = home.serve(&["--upstream", &up.url()]).await;
    let mut first = listener(&relay, &events()).await;
    until(&mut first, |client| !said(client, "status").is_empty()).await;
    assert_eq!(first.answer().header("content-type"), Some("text/event-stream"));
    assert_eq!(first.answer().header("cache-control"), Some("no-store"));
    let hello = &said(&first, "hello")[0];
    assert_eq!((&hello["v"], &hello["resumes"]), (&1.into(), &false.into()));
    relay.ask(&turn()).await;
    until(&mut first, has_closed(1)).await;
    until(&mut first, |client| said(client, "status").iter().any(|it| it["totals"]["calls"] == 1)).await;
    let id = last_id(&first.answer().text()).unwrap();
    assert_eq!(id.split('-').next(), hello["run"].as_str());
    first.leave().await;
    relay.ask(&turn()).await;
    for request in
        [events().header("Last-Event-ID", &id), Request::get(&format!("/__steady/events?since={id}"))]
    {
        let mut again = listener(&relay, &request).await;
        until(&mut again, has_closed(2)).await;
        assert_eq!(said(&again, "hello")[0]["resumes"], true);
        assert!(said(&again, "call").iter().all(|call| call["call"] == 2), "{}", again.answer().text());
    }
    // An id of another run says nothing: all is told.
    let mut other = listener(&relay, &events().header("Last-Event-ID", "0123456789abcdef-99")).await;
    until(&mut other, has_closed(2)).await;
    assert!(has_closed(1)(&other));
}

#[tokio::test]
async fn there_is_a_sign_of_life_where_nothing_happens() {
    let home = Home::new();
    let relay = home.serve(&["--upstream", "http://127.0.0.1:9"]).await;
    let mut client = listener(&relay, &events()).await;
    assert!(client.read_until(b"\n\n:\n\n").await, "{}", client.answer().text());
    assert_eq!(said(&client, "status").len(), 1, "what has not changed is not told again");
}

#[tokio::test]
async fn who_does_not_read_slows_nobody() {
    let up = Upstream::start(Script::by(|_, _| good())).await.unwrap();
    let home = Home::new();
    let relay = home.serve(&["--upstream", &up.url()]).await;
    let mut lazy = Client::connect_narrow(relay.addr, 4096).await.unwrap().patience(SOON);
    lazy.send(&events()).await.unwrap();
    let mut client = relay.client().await;
    for _ in 0..300 {
        assert_eq!(client.ask(&turn()).await.unwrap().status, 200);
    }
    // Everything is there when it reads at last, each call as it is then or nearly so.
    until(&mut lazy, has_closed(300)).await;
    assert!((1..=300).all(|call| has_closed(call)(&lazy)));
    assert!(said(&lazy, "call").len() < 1500, "changes are gathered");
}

#[tokio::test]
async fn there_is_room_for_so_many_and_a_place_comes_free() {
    let home = Home::new();
    let relay = home.serve(&["--upstream", "http://127.0.0.1:9"]).await;
    let mut all = Vec::new();
    for _ in 0..32 {
        let mut client = listener(&relay, &events()).await;
        assert!(client.read_until(b"event: hello").await);
        all.push(client);
    }
    let over = relay.ask(&events()).await;
    assert_eq!((over.status, over.header("retry-after")), (503, Some("5")));
    all.pop().unwrap().leave().await;
    soon("no place came free", async || {
        let mut client = listener(&relay, &events()).await;
        (client.read_until(b"event: hello").await && client.answer().status == 200).then_some(())
    })
    .await;
}

#[cfg(unix)]
#[tokio::test]
async fn listeners_do_not_keep_a_relay_that_stops() {
    let release = Signal::new();
    let held = release.clone();
    let up = Upstream::start(Script::by(move |_, _| good().when(held.clone()))).await.unwrap();
    let home = Home::new();
    let mut relay = home.serve(&["--upstream", &up.url()]).await;
    let mut open = listener(&relay, &events()).await;
    assert!(open.read_until(b"event: status").await);
    let mut call = relay.client().await;
    call.send(&turn()).await.unwrap();
    until(&mut open, |client| !said(client, "call").is_empty()).await;
    relay.signal(rustix::process::Signal::TERM);
    // While a call is still open, the listener is sent away.
    let heard = open.read().await;
    assert!(matches!(heard.ending, Ending::Complete | Ending::CompleteByClose), "{:?}", heard.ending);
    release.release();
    assert_eq!(call.read().await.status, 200);
    tokio::time::timeout(SOON, relay.child.wait()).await.unwrap().unwrap();
}
