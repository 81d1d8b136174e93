//! Calls wait in lanes: what shuts one, who asks, who follows, and whom it does not hold.

use std::collections::BTreeSet;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use relay_core::config::{Secret, Upstream as Entry};
use relay_core::event::{CallId, Event};
use relay_core::gate::Preset;
use relay_core::{Config, Curve, Profile};
use relay_sim::fixtures::{anthropic, codex as wire};
use relay_sim::script::stream_bytes;
use relay_sim::{Client, Ending, Reply, Request, Script, Seen, Signal, Upstream};
use serde_json::Value;
use tokio::time::Instant;

use crate::support::{Bench, SOON, TURN, bounded, ms};

/// Everything to `url`, through the gate. A lane that shuts is asked `first` later, and then not for seconds.
pub(crate) fn gated(url: &str, first: Duration) -> Config {
    bounded(url, |profile| careful(profile, first))
}

/// The preset that asks least often.
pub(crate) const fn careful(profile: &mut Profile, first: Duration) {
    profile.gate = Some(Preset::Strict);
    profile.curve = Curve { base: first, factor: 1.0, cap: first, jitter: Duration::ZERO };
    profile.overloaded = profile.curve;
}

/// What Codex asks in one of its conversations.
pub(crate) fn of(thread: &str) -> Request {
    asks(thread, TURN)
}

/// The same with another body.
pub(crate) fn asks(thread: &str, body: &str) -> Request {
    Request::post("/v1/responses")
        .header("authorization", "Bearer sk-test")
        .header("user-agent", "codex_cli_rs/0.171.0 (Linux 6.1; x86_64) xterm")
        .header("thread-id", thread)
        .header("x-codex-turn-metadata", format!(r#"{{"turn_id":"turn of {thread}"}}"#))
        .json(body)
}

/// What Claude Code asks in one of its conversations.
fn claude_of(session: &str) -> Request {
    crate::support::claude().header("x-claude-code-session-id", session)
}

/// The conversation that a request belongs to.
pub(crate) fn whose(seen: &Seen) -> String {
    let name = seen.header("thread-id").or(seen.header("x-claude-code-session-id"));
    name.unwrap_or_default().to_owned()
}

/// An answer for this conversation alone.
pub(crate) fn answer_to(seen: &Seen) -> Reply {
    Reply::sse(events_for(seen.path(), &whose(seen)))
}

fn events_for(path: &str, name: &str) -> Vec<relay_sim::Event> {
    let words = format!("only for {name}");
    if path.ends_with("/messages") { anthropic::stream(&words) } else { wire::turn(&words) }
}

/// The bytes of the answer for a conversation of Codex.
pub(crate) fn bytes_for(thread: &str) -> Vec<u8> {
    stream_bytes(&events_for("/v1/responses", thread))
}

/// A service without capacity, until it is back. From then on it answers, each once `door` is open.
pub(crate) struct Busy {
    pub(crate) up: Upstream,
    pub(crate) back: Signal,
    pub(crate) door: Signal,
}

impl Busy {
    pub(crate) async fn start() -> Self {
        Self::but(|_| None).await
    }

    /// The same, with other replies to some.
    pub(crate) async fn but(other: impl Fn(&Seen) -> Option<Reply> + Send + Sync + 'static) -> Self {
        let (back, door) = (Signal::new(), Signal::new());
        let (is_back, gate) = (back.clone(), door.clone());
        let script = Script::by(move |seen, _| match other(seen) {
            Some(reply) => reply,
            None if is_back.released() => answer_to(seen).when(gate.clone()),
            None => wire::overloaded_503(),
        });
        Self { up: Upstream::start(script).await.unwrap(), back, door }
    }

    /// Whose requests came since the first `before`.
    pub(crate) fn after(&self, before: usize) -> Vec<String> {
        self.up.requests()[before..].iter().map(whose).collect()
    }
}

/// A client whose call is under way.
pub(crate) async fn sent(bench: &Bench, request: &Request) -> Client {
    let mut client = bench.client().await;
    client.send(request).await.unwrap();
    client
}

/// Waits until the status page is as wished.
pub(crate) async fn page_until(bench: &Bench, wish: impl Fn(&Value) -> bool) -> Value {
    let by = Instant::now() + SOON;
    loop {
        let page = bench.page().await;
        if wish(&page) {
            return page;
        }
        assert!(Instant::now() < by, "not as wished: {page:#}");
        tokio::time::sleep(ms(5)).await;
    }
}

/// Waits until the one lane of a model is as wished.
pub(crate) async fn lane_until(bench: &Bench, wish: impl Fn(&Value) -> bool) -> Value {
    let page = page_until(bench, |page| lanes(page).iter().any(&wish)).await;
    lanes(&page).into_iter().find(wish).unwrap()
}

/// The lanes that have a model, or a stated number of places.
pub(crate) fn lanes(page: &Value) -> Vec<Value> {
    let all = page["lanes"].as_array().unwrap();
    all.iter().filter(|lane| !lane["model"].is_null() || !lane["max_running"].is_null()).cloned().collect()
}

/// Waits until so many calls stand in the line of the lane of a model.
pub(crate) async fn waits(bench: &Bench, count: u64) -> Value {
    lane_until(bench, |lane| lane["waiting"] == count).await
}

/// Waits until a call stands in line, which it tells of after it has taken its place there.
pub(crate) async fn in_line(bench: &Bench, call: u64) {
    let stands =
        |(id, event): &(CallId, Event)| id.0 == call && matches!(event, Event::InLine { fault: None, .. });
    bench.until(|events| events.iter().any(stands)).await;
}

/// Two conversations are refused, so that the lane shuts. Their clients wait; the calls are the next two.
pub(crate) async fn shut(bench: &Bench) -> [Client; 2] {
    shut_by(bench, [of("a"), of("b")]).await
}

pub(crate) async fn shut_by(bench: &Bench, requests: [Request; 2]) -> [Client; 2] {
    let first = bench.totals().calls + 1;
    let [one, other] = requests;
    let one = sent(bench, &one).await;
    bench.faults(first, 1).await;
    let other = sent(bench, &other).await;
    bench.faults(first + 1, 1).await;
    lane_until(bench, |lane| lane["state"] == "shut" && lane["waiting"] == 2).await;
    [one, other]
}

/// Whether the one answer is that of the upstream, to the byte.
pub(crate) async fn gets(client: &mut Client, bytes: &[u8]) {
    let answer = client.read().await;
    assert_eq!((answer.status, answer.ending), (200, Ending::Complete), "{}", answer.text());
    assert!(answer.body == bytes, "{}", answer.text());
}

#[tokio::test]
async fn two_refused_conversations_shut_a_lane_and_one_that_is_accepted_opens_it_for_all() {
    for ask in [of, claude_of] {
        let busy = Busy::start().await;
        let bench = Bench::with(gated(&busy.up.url(), ms(1500))).await;
        let [mut a, mut b] = shut_by(&bench, [ask("a"), ask("b")]).await;
        let mut others = Vec::new();
        for (call, name) in [(3, "c"), (4, "d"), (5, "e")] {
            others.push((name, sent(&bench, &ask(name)).await));
            in_line(&bench, call).await;
        }
        busy.back.release();
        // Now and then one of those that wait asks: the one whose conversation was refused least.
        let lane = waits(&bench, 4).await;
        assert!(busy.up.wait_for(SOON, |seen| seen.iter().any(|it| whose(it) == "c")).await);
        assert_eq!((&lane["state"], &lane["sending"]), (&"shut".into(), &1.into()), "{lane}");
        let asked: Vec<_> = busy
            .up
            .requests()
            .iter()
            .filter(|it| ["c", "d", "e"].contains(&&*whose(it)))
            .map(whose)
            .collect();
        assert_eq!(asked, ["c"], "nobody follows one that was not accepted");
        busy.door.release();
        let path = busy.up.requests()[0].path().to_owned();
        for (name, client) in
            [("a", &mut a), ("b", &mut b)].into_iter().chain(others.iter_mut().map(|(name, it)| (*name, it)))
        {
            gets(client, &stream_bytes(&events_for(&path, name))).await;
        }
        for call in 3..=5 {
            let story = bench.story(call).await;
            assert_eq!(story, "opened, line, send 1, 200, committed, served");
        }
        let lane = lane_until(&bench, |lane| lane["state"] == "open").await;
        assert_eq!((&lane["waiting"], &lane["running"]), (&0.into(), &0.into()), "{lane}");
    }
}

#[tokio::test]
async fn one_conversation_that_is_refused_for_ever_holds_no_other() {
    let busy = Busy::but(|seen| (whose(seen) != "a").then(|| answer_to(seen))).await;
    // Ten sends at once are none too many for it.
    let config = bounded(&busy.up.url(), |profile| profile.gate = Some(Preset::Interactive));
    let bench = Bench::with(config).await;
    assert_eq!(bench.ask(&of("b")).await.body, bytes_for("b"));
    let mut refused = Vec::new();
    for number in 1..=3 {
        let call = bench.totals().calls + 1;
        refused.push(sent(&bench, &of("a")).await);
        bench.faults(call, 1).await;
        let call = bench.totals().calls + 1;
        let name = format!("other {}", number % 2);
        assert_eq!(bench.ask(&of(&name)).await.body, bytes_for(&name));
        assert_eq!(bench.story(call).await, "opened, send 1, 200, committed, served");
    }
    bench.faults(2, 3).await;
    let lane = waits(&bench, 3).await;
    assert_eq!(lane["state"], "open", "{lane}");
    let sessions: BTreeSet<_> =
        lane["line"].as_array().unwrap().iter().map(|place| place["session"].to_string()).collect();
    assert_eq!(sessions.len(), 1, "{lane}");
}

#[tokio::test]
async fn calls_without_a_conversation_are_each_their_own() {
    let busy = Busy::start().await;
    let bench = Bench::with(gated(&busy.up.url(), SOON)).await;
    let _two = shut_by(&bench, [crate::support::plain(TURN), crate::support::plain(TURN)]).await;
    let _third = sent(&bench, &crate::support::plain(TURN)).await;
    in_line(&bench, 3).await;
    assert_eq!(bench.recorder().story(3), "opened, line");
}

#[tokio::test]
async fn what_one_lane_is_told_holds_no_other() {
    let (busy, elsewhere) = (Busy::start().await, Upstream::start(Script::by(|seen, _| answer_to(seen))));
    let elsewhere = elsewhere.await.unwrap();
    let mut config = gated(&busy.up.url(), SOON);
    config.upstreams.insert("elsewhere".to_owned(), Entry::at(elsewhere.url().parse().unwrap()));
    let bench = Bench::with(config).await;
    let _shut = shut(&bench).await;
    busy.back.release();
    busy.door.release();
    let before = busy.up.requests().len();
    let other_model = asks("c", &TURN.replace("gpt-x", "gpt-y"));
    let other_key = Request::post("/v1/responses").header("authorization", "Bearer sk-other").json(TURN);
    let other_place = Request::post("/to/elsewhere/v1/responses").header("authorization", "Bearer sk-test");
    let rows = [other_model, other_key, other_place.json(TURN), Request::get("/v1/models")];
    for (call, request) in (3..).zip(rows) {
        let request = request.header("x-number", call);
        assert_eq!(bench.ask(&request).await.status, 200);
        assert_eq!(bench.story(call).await, "opened, send 1, 200, committed, served");
    }
    assert_eq!((busy.up.requests().len() - before, elsewhere.requests().len()), (3, 1));
    let page = bench.page().await;
    let all = page["lanes"].as_array().unwrap();
    let shut: Vec<_> = all.iter().filter(|lane| lane["state"] == "shut").collect();
    assert_eq!((all.len(), shut.len()), (5, 1), "{page:#}");
    assert_eq!((&shut[0]["model"], &shut[0]["waiting"]), (&"gpt-x".into(), &2.into()));
    let ids: BTreeSet<_> = all.iter().map(|lane| lane["id"].to_string()).collect();
    assert_eq!(ids.len(), 5, "{page:#}");
}

#[tokio::test]
async fn a_lane_that_is_asked_in_vain_stays_shut_and_nobody_follows() {
    let busy = Busy::start().await;
    let bench = Bench::with(gated(&busy.up.url(), ms(700))).await;
    let _shut = shut(&bench).await;
    let _c = sent(&bench, &of("c")).await;
    in_line(&bench, 3).await;
    let before = busy.up.requests().len();
    bench.faults(3, 1).await;
    let lane = waits(&bench, 3).await;
    assert_eq!((&lane["state"], &lane["why"]), (&"shut".into(), &"at_capacity".into()));
    assert_eq!(busy.after(before), ["c"]);
    assert_eq!(bench.recorder().story(3), "opened, line, send 1, 503, at_capacity refused, line");
}

/// With nobody beside it to tell whether it is the service or the conversation, two refusals shut the lane. Whoever
/// comes then is the next to ask, and opens it.
#[tokio::test]
async fn a_conversation_that_asks_alone_shuts_its_lane_until_another_one_is_accepted() {
    let busy = Busy::but(|seen| (whose(seen) != "a").then(|| answer_to(seen))).await;
    let config = bounded(&busy.up.url(), |profile| {
        careful(profile, ms(1500));
        profile.gate = Some(Preset::Interactive);
    });
    let bench = Bench::with(config).await;
    let _a = sent(&bench, &of("a")).await;
    bench.faults(1, 1).await;
    assert_eq!(waits(&bench, 1).await["state"], "open");
    bench.faults(1, 2).await;
    lane_until(&bench, |lane| lane["state"] == "shut").await;
    let mut b = sent(&bench, &of("b")).await;
    gets(&mut b, &bytes_for("b")).await;
    let story = bench.story(2).await;
    assert!(story.ends_with("line, send 1, 200, committed, served"), "{story}");
    let order: Vec<_> = busy.up.requests().iter().map(whose).collect();
    assert_eq!(order[..3], ["a", "a", "b"]);
}

/// The names of the lanes after these paths and models were asked once each, by a client without a key.
async fn lanes_of(entries: [(&str, Entry); 2], asks: &[(&str, &str)]) -> BTreeSet<String> {
    let up = Upstream::start(Script::by(|seen, _| answer_to(seen))).await.unwrap();
    let mut config = gated(&up.url(), SOON);
    for (name, mut entry) in entries {
        entry.url = up.url().parse().unwrap();
        config.upstreams.insert(name.to_owned(), entry);
    }
    let bench = Bench::with(config).await;
    for (path, model) in asks {
        let request = Request::post(&format!("{path}/v1/responses")).header("thread-id", "a");
        let answer = bench.ask(&request.json(TURN.replace("gpt-x", model))).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    lanes(&bench.page().await).iter().map(|lane| lane["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn whose_key_is_lent_has_a_lane_of_its_own() {
    let at = || Entry::at("http://127.0.0.1:1".parse().unwrap());
    let key = |key: &str| Entry { api_key: Some(Secret::new(key.to_owned())), ..at() };
    let adds = |name: &'static str, value: &'static str| Entry {
        headers: vec![(HeaderName::from_static(name), HeaderValue::from_static(value))],
        ..at()
    };
    for (one, other, count) in [
        (key("sk-one"), key("sk-other"), 2),
        (key("sk-one"), at(), 2),
        (adds("authorization", "Bearer one"), adds("authorization", "Bearer other"), 2),
        (adds("x-gateway-key", "one"), adds("x-gateway-key", "other"), 2),
        (key("sk-one"), key("sk-one"), 1),
        (at(), at(), 1),
    ] {
        let words = format!("{one:?} and {other:?}");
        let ids =
            lanes_of([("one", one), ("other", other)], &[("/to/one", "gpt-x"), ("/to/other", "gpt-x")]).await;
        assert_eq!(ids.len(), count, "{words}");
    }
}

#[tokio::test]
async fn models_whose_names_begin_alike_have_lanes_of_their_own() {
    let at = || Entry::at("http://127.0.0.1:1".parse().unwrap());
    let long = "m".repeat(64);
    let (a, b) = (format!("{long}-a"), format!("{long}-b"));
    let asks = [("", &*long), ("", &a), ("", &b), ("", "a b"), ("", "ab")];
    assert_eq!(lanes_of([("one", at()), ("other", at())], &asks).await.len(), 5);
}
