//! Codex CLI over a WebSocket, which it tries first.
//!
//! It asks for the socket when it starts and warms it up with a request that wants no answer; that one's id stands in
//! the first real request, so whoever loses the connection to the service cannot send that request there again. The
//! relay then ends the client's socket, and Codex asks once more in full, which it does not show the first time.

use std::fmt;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use relay_sim::websocket::{Upgrade, WsScript, WsStep, WsUpstream, WsWhat, steps};
use serde_json::{Value, json};

use crate::answers::WORD;
use crate::codex::{Codex, assert_at_capacity, assert_done};
use crate::front::{Carried, Frame, frames};
use crate::scene::{SENDS, Tools, run_at};
use crate::{Client, Line, Ran, Via};

const LOGINS: [Codex; 2] = [Codex::Key, Codex::ChatGpt];

/// What six requests with five tool results between them take on the way to the service, measured without the relay:
/// 74 kB for the first one (77 kB with a ChatGPT login), 4 kB for each result. As event streams, with the whole
/// history each time, they take 493 kB.
const fn six_requests(login: Codex) -> u64 {
    match login {
        Codex::Key => 97_000,
        Codex::ChatGpt => 102_000,
    }
}

/// A run with what the service saw of it.
struct Spoken {
    ran: Ran,
    service: WsUpstream,
}

impl Spoken {
    /// The connections on which the client asked for a WebSocket.
    fn sockets(&self) -> Vec<&Carried> {
        self.ran.connections("GET /v1/responses ")
    }

    /// How many requests for an answer the client sent as messages.
    fn asked(&self) -> usize {
        let messages = self.sockets().into_iter().flat_map(|socket| frames(&socket.from_client));
        messages.filter(asks_for_an_answer).count()
    }

    /// How many of them reached the service: what is paid for.
    fn sends(&self) -> usize {
        self.service.creates().len()
    }

    /// The requests for an answer as the service saw them.
    fn creates(&self) -> Vec<Value> {
        self.service.creates().iter().filter_map(|text| serde_json::from_str(text).ok()).collect()
    }

    fn shows_trouble(&self) -> bool {
        ["Reconnecting", "Falling back"].iter().any(|notice| self.ran.err.contains(notice))
    }

    /// What the tool of [`tool_call`] and its like left behind: a line for each time it ran.
    fn tool_ran(&self) -> Result<String> {
        fs::read_to_string(self.ran.home().join("work/tool.txt"))
            .with_context(|| format!("no tool ran: {self}"))
    }

    /// The time from the first to the last request at the service.
    fn between_requests(&self) -> Option<Duration> {
        let seen = self.service.seen();
        let mut messages = seen.iter().filter(|seen| matches!(seen.what, WsWhat::Message(_))).skip(1);
        let first = messages.next()?;
        messages.last().map(|last| last.at - first.at)
    }
}

impl fmt::Display for Spoken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}--- over WebSocket: the client asked {} times", self.ran, self.asked())?;
        for seen in self.service.seen() {
            writeln!(f, "{:>9.3?} connection {} {}", seen.at, seen.connection, brief(&seen.what))?;
        }
        Ok(())
    }
}

/// What came, without the prompt and the history.
fn brief(what: &WsWhat) -> String {
    match what {
        WsWhat::Upgrade { target, .. } => format!("asks for a WebSocket at {target}"),
        WsWhat::Message(text) => {
            let message: Value = serde_json::from_str(text).unwrap_or_default();
            let (kind, previous) = (&message["type"], &message["previous_response_id"]);
            format!("{kind} after {previous}, generate {} ({} bytes)", message["generate"], text.len())
        }
        WsWhat::Http { method, target, body } => format!("{method} {target} ({} bytes)", body.len()),
        WsWhat::Binary(_) | WsWhat::Ping(_) | WsWhat::Pong(_) | WsWhat::Close(_) | WsWhat::Gone => {
            format!("{what:?}")
        }
    }
}

fn asks_for_an_answer(frame: &Frame) -> bool {
    let Frame::Text(text) = frame else { return false };
    let message: Value = serde_json::from_str(text).unwrap_or_default();
    message["type"] == "response.create" && message["generate"] != false
}

/// One run with this login.
async fn turn(login: Codex, via: Via, script: &WsScript) -> Result<Spoken> {
    spoken(&login, via, script).await
}

async fn spoken(client: &(dyn Client + Sync), via: Via, script: &WsScript) -> Result<Spoken> {
    let service = WsUpstream::start(script.clone()).await?;
    let ran = run_at(client, via, service.addr()).await?;
    Ok(Spoken { ran, service })
}

/// Without the relay and with it, at the same time: with a ChatGPT login most of a run is waiting.
async fn both(login: Codex, script: &WsScript) -> Result<(Spoken, Spoken)> {
    tokio::try_join!(turn(login, Via::Direct, script), turn(login, Via::Relay, script))
}

fn script() -> WsScript {
    WsScript::good(WORD).remembering()
}

/// Answers so often with these steps before there is a good one.
fn failing(times: usize, answer: &[WsStep]) -> WsScript {
    let failures = vec![answer.to_vec(); times];
    script().creates(failures.into_iter().chain([steps::good(WORD)]))
}

/// An answer that has begun, but says nothing yet, and then this.
fn begun_then(step: WsStep) -> Vec<WsStep> {
    let mut answer = steps::created();
    answer.push(step);
    answer
}

/// Five tool calls and then the word, with this in the place of the third answer.
fn five_tools_but_third(failure: Vec<WsStep>) -> WsScript {
    let answers = [tool_call(1), tool_call(2), failure, tool_call(3), tool_call(4), tool_call(5)];
    script().creates(answers.into_iter().chain([steps::good(WORD)]))
}

const FIVE_TOOLS: &str = "1\n2\n3\n4\n5\n";

/// Has Codex run a shell command that leaves a line and prints enough for a request of 4 kB.
fn tool_call(number: usize) -> Vec<WsStep> {
    let command = format!("echo {number} >> tool.txt; head -c 1900 /dev/zero | tr '\\0' x");
    steps::tool_call(&format!("call_{number}"), "exec_command", &json!({ "cmd": command }).to_string())
}

/// Done, with one request of the client, and none of it shown.
fn assert_absorbed(relayed: &Spoken, sends: usize) {
    assert_done(&relayed.ran);
    assert_eq!((relayed.asked(), relayed.sends()), (1, sends), "{relayed}");
    assert!(!relayed.shows_trouble(), "{relayed}");
    assert_no_post(relayed);
}

fn assert_no_post(spoken: &Spoken) {
    assert_eq!((spoken.ran.requests(), spoken.service.posts().len()), (0, 0), "no HTTP: {spoken}");
}

#[tokio::test]
async fn a_turn_goes_through_as_it_is() -> Result<()> {
    for login in LOGINS {
        let (alone, relayed) = both(login, &script()).await?;
        for spoken in [&alone, &relayed] {
            assert_absorbed(spoken, 1);
            assert_eq!(
                (spoken.service.upgrades().len(), spoken.service.prewarms().len()),
                (1, 1),
                "{spoken}"
            );
        }
        let (direct, through) = (&alone.service.upgrades()[0].what, &relayed.service.upgrades()[0].what);
        for header in ["authorization", "chatgpt-account-id", "openai-beta", "originator", "user-agent"] {
            assert_eq!(through.header(header), direct.header(header), "{header}: {relayed}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn six_requests_with_tools_take_no_more_bytes_than_alone() -> Result<()> {
    for login in LOGINS {
        let script = script().creates((1..=5).map(tool_call).chain([steps::good(WORD)]));
        let (alone, relayed) = both(login, &script).await?;
        for spoken in [&alone, &relayed] {
            assert_done(&spoken.ran);
            assert_eq!((spoken.asked(), spoken.sends()), (6, 6), "{spoken}");
            assert_eq!(spoken.service.upgrades().len(), 1, "{spoken}");
            assert_eq!(spoken.tool_ran()?, FIVE_TOOLS, "each tool once: {spoken}");
            assert!(!spoken.shows_trouble(), "{spoken}");
            assert_no_post(spoken);
            let bytes = spoken.service.bytes_in();
            assert!(bytes <= six_requests(login) * 105 / 100, "{bytes} bytes: {spoken}");
        }
        let (direct, through) = (alone.service.bytes_in(), relayed.service.bytes_in());
        assert!(through <= direct * 105 / 100, "{through} bytes instead of {direct}: {relayed}");
        report(login, &alone, &relayed);
    }
    Ok(())
}

fn report(login: Codex, alone: &Spoken, relayed: &Spoken) {
    let figures = |spoken: &Spoken| (spoken.between_requests(), spoken.service.bytes_in());
    show(&format!("six requests, {login:?}: alone {:?}, relayed {:?}", figures(alone), figures(relayed)));
}

#[expect(clippy::print_stderr, reason = "a figure to look at, which a busy machine may change")]
fn show(figure: &str) {
    eprintln!("{figure}");
}

/// A figure, not a check: `docs/performance.md` says how to take it.
#[tokio::test]
#[ignore = "it takes a quiet machine, and fails nowhere"]
async fn the_time_of_six_requests() -> Result<()> {
    const ROUNDS: usize = 11;
    for login in LOGINS {
        let mut took = [Vec::new(), Vec::new()];
        for round in 0..ROUNDS {
            for at in [round % 2, 1 - round % 2] {
                let via = [Via::Direct, Via::Relay][at];
                let script = script().creates((1..=5).map(tool_call).chain([steps::good(WORD)]));
                let spoken = turn(login, via, &script).await?;
                assert_done(&spoken.ran);
                took[at].push(spoken.between_requests().context("six requests")?);
            }
        }
        for times in &mut took {
            times.sort();
        }
        let [direct, relayed] = took.map(|times| times[ROUNDS / 2]);
        show(&format!("six requests, {login:?}, median of {ROUNDS}: alone {direct:?}, relayed {relayed:?}"));
    }
    Ok(())
}

#[tokio::test]
async fn overloaded_at_the_upgrade_twice() -> Result<()> {
    for login in LOGINS {
        let script = script().upgrades([Upgrade::overloaded(), Upgrade::overloaded(), Upgrade::accept()]);
        let (alone, relayed) = both(login, &script).await?;
        assert_at_capacity(&alone.ran);
        assert_absorbed(&relayed, 1);
        assert_eq!(relayed.service.upgrades().len(), 3, "{relayed}");
    }
    Ok(())
}

#[tokio::test]
async fn overloaded_before_output_twice() -> Result<()> {
    for login in LOGINS {
        let (alone, relayed) = both(login, &failing(2, &steps::overloaded_failed())).await?;
        assert_at_capacity(&alone.ran);
        assert_eq!((alone.asked(), alone.sends()), (1, 1), "{alone}");
        assert_absorbed(&relayed, 3);
    }
    Ok(())
}

#[tokio::test]
async fn overloaded_as_a_wrapped_503_twice() -> Result<()> {
    for login in LOGINS {
        let (alone, relayed) = both(login, &failing(2, &steps::overloaded_wrapped(None))).await?;
        assert_at_capacity(&alone.ran);
        assert_eq!((alone.asked(), alone.sends()), (1, 1), "{alone}");
        assert_absorbed(&relayed, 3);
    }
    Ok(())
}

#[tokio::test]
async fn overloaded_between_tools() -> Result<()> {
    for login in LOGINS {
        let script = five_tools_but_third(steps::overloaded_failed());
        let (alone, relayed) = both(login, &script).await?;
        assert_at_capacity(&alone.ran);
        assert_eq!(alone.tool_ran()?, "1\n2\n", "{alone}");

        assert_done(&relayed.ran);
        assert_eq!(relayed.tool_ran()?, FIVE_TOOLS, "each tool once: {relayed}");
        assert_eq!((relayed.asked(), relayed.sends()), (6, 7), "{relayed}");
        assert_eq!((relayed.sockets().len(), relayed.shows_trouble()), (1, false), "{relayed}");
        assert_no_post(&relayed);
    }
    Ok(())
}

#[tokio::test]
async fn overloaded_for_ever() -> Result<()> {
    let relayed = turn(Codex::Key, Via::Relay, &failing(100, &steps::overloaded_failed())).await?;
    assert_at_capacity(&relayed.ran);
    assert_eq!((relayed.asked(), relayed.sends()), (1, SENDS), "{relayed}");
    assert_no_post(&relayed);
    Ok(())
}

/// What a user has who has set nothing, and one who has only put two words before `codex`.
#[tokio::test]
async fn overloaded_once_with_the_relay_as_shipped_and_with_run() -> Result<()> {
    let script = failing(1, &steps::overloaded_failed());
    let shipped = turn(Codex::Key, Via::RelayAsShipped, &script).await?;
    assert_absorbed(&shipped, 2);

    let wrapped = turn(Codex::Key, Via::Run, &script).await?;
    assert_done(&wrapped.ran);
    assert_eq!((wrapped.sends(), wrapped.service.upgrades().len()), (2, 1), "{wrapped}");
    assert!(!wrapped.shows_trouble(), "{wrapped}");
    assert_no_post(&wrapped);
    Ok(())
}

#[tokio::test]
async fn overloaded_with_a_time_to_come_back() -> Result<()> {
    let (alone, relayed) = both(Codex::Key, &failing(2, &steps::overloaded_wrapped(Some("1")))).await?;
    assert_done(&alone.ran);
    assert_eq!((alone.asked(), alone.shows_trouble()), (3, true), "{alone}");

    assert_absorbed(&relayed, 3);
    let seen = relayed.service.seen();
    let sends: Vec<_> = seen.iter().filter(|seen| matches!(seen.what, WsWhat::Message(_))).skip(1).collect();
    for pair in sends.windows(2) {
        assert!(pair[1].at >= pair[0].at + Duration::from_secs(1), "never early: {relayed}");
    }
    Ok(())
}

#[tokio::test]
async fn overloaded_at_the_prewarm() -> Result<()> {
    let script = script().prewarms([steps::overloaded_failed(), steps::prewarmed()]);
    let (alone, relayed) = both(Codex::Key, &script).await?;
    for spoken in [&alone, &relayed] {
        assert_absorbed(spoken, 1);
    }
    Ok(())
}

#[tokio::test]
async fn overloaded_after_a_tool_call() -> Result<()> {
    for login in LOGINS {
        let command = json!({"cmd": "echo 1 >> tool.txt"}).to_string();
        let call = steps::tool_call_unfinished("call_1", "exec_command", &command);
        let refusal = steps::overloaded_failed().into_iter().skip(1);
        let answer: Vec<_> = call.into_iter().chain(refusal).collect();
        let (alone, relayed) = both(login, &failing(1, &answer)).await?;
        assert_at_capacity(&alone.ran);
        assert_eq!(alone.tool_ran()?, "1\n", "{alone}");

        assert_done(&relayed.ran);
        assert_eq!(relayed.tool_ran()?, "1\n", "the tool ran once: {relayed}");
        assert_eq!((relayed.asked(), relayed.sends()), (2, 2), "{relayed}");
        assert!(!relayed.shows_trouble(), "{relayed}");
        assert_no_post(&relayed);
        let resumed = relayed.creates().pop().context("two requests")?;
        assert!(resumed["input"].to_string().contains("function_call_output"), "with the result: {relayed}");
    }
    Ok(())
}

/// What ends the connection before any output. The request that met it named the prewarm, which no other connection
/// knows: Codex asks again in full, once and unseen, with the relay as without.
#[tokio::test]
async fn a_connection_lost_before_output() -> Result<()> {
    let endings = [
        begun_then(WsStep::Close(1011, "internal error".to_owned())),
        vec![WsStep::Close(1013, "try again later".to_owned())],
        vec![WsStep::Reset],
        vec![WsStep::Drop],
        steps::limit_reached(),
    ];
    for ending in endings {
        for login in LOGINS {
            let (alone, relayed) = both(login, &failing(1, &ending)).await?;
            for spoken in [&alone, &relayed] {
                assert_asked_again(spoken);
            }
        }
    }
    Ok(())
}

/// The second request names nothing and can be sent by the relay once more.
#[tokio::test]
async fn a_connection_lost_twice_before_output() -> Result<()> {
    for login in LOGINS {
        let ending = begun_then(WsStep::Close(1011, "internal error".to_owned()));
        let (alone, relayed) = both(login, &failing(2, &ending)).await?;
        assert_done(&alone.ran);
        assert_eq!((alone.asked(), alone.shows_trouble()), (3, true), "{alone}");

        assert_done(&relayed.ran);
        assert_eq!((relayed.asked(), relayed.sends()), (2, 3), "{relayed}");
        assert!(!relayed.shows_trouble(), "{relayed}");
        assert_no_post(&relayed);
    }
    Ok(())
}

/// In the middle of a conversation the request in full is the whole of it, and no tool runs again.
#[tokio::test]
async fn a_connection_lost_between_tools() -> Result<()> {
    for login in LOGINS {
        let script = five_tools_but_third(vec![WsStep::Reset]);
        let (alone, relayed) = both(login, &script).await?;
        for spoken in [&alone, &relayed] {
            assert_done(&spoken.ran);
            assert_eq!(spoken.tool_ran()?, FIVE_TOOLS, "each tool once: {spoken}");
            assert_eq!((spoken.asked(), spoken.sends(), spoken.sockets().len()), (7, 7, 2), "{spoken}");
            assert!(!spoken.shows_trouble(), "{spoken}");
            assert_no_post(spoken);
        }
    }
    Ok(())
}

/// Waiting does not help here, and Codex is told at once.
#[tokio::test]
async fn what_is_hopeless_is_told_at_once() -> Result<()> {
    let usage = ("usage_limit_reached", "The usage limit has been reached");
    let cases = [
        (steps::failed("invalid_prompt", "no such thing"), "no such thing"),
        (
            steps::wrapped(400, "invalid_request_error", ("bad_request", "no such thing"), &[]),
            "no such thing",
        ),
        (steps::wrapped(429, "usage_limit_reached", usage, &[]), "hit your usage limit"),
    ];
    for (answer, text) in cases {
        let (alone, relayed) = both(Codex::Key, &failing(1, &answer)).await?;
        for spoken in [&alone, &relayed] {
            assert_eq!((spoken.ran.code, spoken.asked(), spoken.sends()), (Some(1), 1, 1), "{spoken}");
            assert!(spoken.ran.err.contains(text), "{spoken}");
            assert_no_post(spoken);
        }
    }
    Ok(())
}

fn assert_asked_again(spoken: &Spoken) {
    assert_done(&spoken.ran);
    assert_eq!((spoken.asked(), spoken.sends()), (2, 2), "{spoken}");
    assert_eq!(spoken.sockets().len(), 2, "{spoken}");
    assert!(!spoken.shows_trouble(), "{spoken}");
    assert_no_post(spoken);
    let creates = spoken.creates();
    let previous = creates.iter().map(|create| create["previous_response_id"].is_string());
    assert_eq!(previous.collect::<Vec<_>>(), [true, false], "the second one in full: {spoken}");
}

/// Codex that takes two seconds of silence for the end; its own provider has five minutes, and no setting for them.
struct Impatient(Codex);

impl Client for Impatient {
    fn furnish(&self, home: &Path) -> Result<()> {
        self.0.furnish(home)
    }

    fn line(&self, tools: &Tools, home: &Path, base: Option<&str>) -> Line {
        let mut line = self.0.line(tools, home, None);
        let base = base.unwrap_or_default();
        let provider = format!(
            "{{name=\"impatient\",base_url=\"{base}/v1\",requires_openai_auth=true,supports_websockets=true,\
             stream_idle_timeout_ms=2000}}"
        );
        let settings =
            [format!("model_providers.impatient={provider}"), "model_provider=\"impatient\"".to_owned()];
        for setting in settings {
            line.words.splice(1..1, ["-c".to_owned(), setting]);
        }
        line
    }
}

#[tokio::test]
async fn silence_before_output() -> Result<()> {
    let script = failing(1, &[WsStep::Silent]);
    for login in LOGINS {
        let client = Impatient(login);
        let (alone, relayed) =
            tokio::try_join!(spoken(&client, Via::Direct, &script), spoken(&client, Via::Relay, &script))?;
        for spoken in [&alone, &relayed] {
            assert_asked_again(spoken);
            let authorized = spoken.service.upgrades()[0].what.header("authorization").map(str::to_owned);
            let is_key = authorized.as_deref().is_some_and(|value| value.starts_with("Bearer sk-"));
            assert_eq!(is_key, login == Codex::Key, "{authorized:?}: {spoken}");
        }
        // With a login there is one for the list of models before.
        let first = relayed.service.upgrades()[0].connection;
        let first =
            |seen: &relay_sim::websocket::WsSeen| seen.connection == first && seen.what == WsWhat::Gone;
        assert!(relayed.service.seen().iter().any(first), "nobody waits for the first any more: {relayed}");
    }
    Ok(())
}

#[tokio::test]
async fn a_service_without_websockets() -> Result<()> {
    for (status, login) in [(404, Codex::Key), (426, Codex::Key), (426, Codex::ChatGpt)] {
        let script = script().upgrades([Upgrade::refuse(status)]);
        let (alone, relayed) = both(login, &script).await?;
        assert_done(&alone.ran);
        assert_eq!(
            (alone.shows_trouble(), alone.sockets().len() > 1),
            (status == 404, status == 404),
            "{alone}"
        );

        assert_done(&relayed.ran);
        assert!(!relayed.shows_trouble(), "{relayed}");
        assert_eq!(relayed.sockets().len(), 1, "it goes to HTTP at once: {relayed}");
        for spoken in [&alone, &relayed] {
            let counts = (spoken.asked(), spoken.ran.requests(), spoken.service.posts().len());
            assert_eq!(counts, (0, 1, 1), "{spoken}");
        }
    }
    Ok(())
}

/// The setting for networks that lose long connections.
#[tokio::test]
async fn a_relay_that_is_set_to_refuse() -> Result<()> {
    for login in LOGINS {
        let relayed = turn(login, Via::RelayWithoutWebSocket, &script()).await?;
        assert_done(&relayed.ran);
        let sockets = relayed.sockets();
        assert_eq!((sockets.len(), relayed.ran.requests()), (1, 1), "{relayed}");
        assert!(sockets[0].to_client.starts_with(b"HTTP/1.1 426 "), "{relayed}");
        assert!(!relayed.shows_trouble(), "{relayed}");
        let service = &relayed.service;
        assert_eq!(
            (service.upgrades().len(), service.posts().len()),
            (0, 1),
            "it hears nothing of it: {relayed}"
        );
    }
    Ok(())
}
