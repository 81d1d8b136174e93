//! The crowd: clients that call, read the whole answer, think, and call again. Each is a conversation of its own.
//!
//! They do what their kind does by itself. The openai SDK for Python asks again twice after a 5xx or a broken
//! connection, after half a second and a second, less up to a quarter, and does as `x-should-retry` says. Codex asks
//! again four times after a 5xx, after 0.2 s and twice as long each time. A call that fails then is over, and the client
//! goes on to its next one.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use relay_sim::{Answer, Client, Ending, Request};
use serde_json::json;
use tokio::task::JoinSet;

use super::world::{Given, World};

/// Which call it is, for the service.
pub(super) const CALL: &str = "x-bench";
/// As good as for ever.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);

/// The client and the number of a call, as [`CALL`] says it.
pub(super) fn call_of(text: &str) -> Option<(usize, usize)> {
    let (client, number) = text.split_once('.')?;
    Some((client.parse().ok()?, number.parse().ok()?))
}

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A program with the openai SDK for Python, which streams.
    OpenAi,
    /// Codex with a person in front of it.
    Codex,
}

impl Kind {
    pub(super) fn named(name: &str) -> Option<Self> {
        [Self::OpenAi, Self::Codex].into_iter().find(|kind| kind.name() == name)
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Codex => "codex",
        }
    }

    /// How long it waits before its n-th re-send, in seconds; `None`: it has had enough.
    fn waits(self, resend: u32) -> Option<f64> {
        match self {
            Self::OpenAi => (resend <= 2)
                .then(|| 0.5 * 2_f64.powf(f64::from(resend - 1)) * (1.0 - 0.25 * fastrand::f64())),
            Self::Codex => {
                (resend <= 4).then(|| 0.2 * 2_f64.powf(f64::from(resend - 1)) * (0.9 + 0.2 * fastrand::f64()))
            }
        }
    }

    /// Whether it asks again after this answer; a status of zero is a broken connection.
    fn asks_again(self, answer: &Answer) -> bool {
        match (self, answer.header("x-should-retry")) {
            (Self::OpenAi, Some("true")) => true,
            (Self::OpenAi, Some("false")) => false,
            (Self::OpenAi, _) => matches!(answer.status, 0 | 408 | 409 | 429 | 500..),
            (Self::Codex, _) => matches!(answer.status, 0 | 500..),
        }
    }

    fn request(self, client: usize, number: usize, resend: u32) -> Request {
        let session = format!("0199a000-0000-7000-8000-{client:012}");
        let text = format!("call {number} of client {client}");
        match self {
            Self::OpenAi => Request::post("/v1/chat/completions")
                .header("user-agent", "OpenAI/Python 2.8.0")
                .header("x-stainless-lang", "python")
                .header("x-stainless-read-timeout", "600")
                .header("x-stainless-retry-count", resend)
                .header("session-id", session)
                .header("authorization", "Bearer bench")
                .header(CALL, format!("{client}.{number}"))
                .json(json!({"model": "gpt-x", "stream": true, "messages": [{"role": "user", "content": text}]})),
            Self::Codex => Request::post("/v1/responses")
                .header("user-agent", "codex-tui/0.171.0 (Debian)")
                .header("originator", "codex-tui")
                .header("thread-id", &session)
                .header("session-id", &session)
                .header("x-codex-turn-metadata", json!({"turn_id": format!("turn-{client}-{number}")}))
                .header("authorization", "Bearer bench")
                .header(CALL, format!("{client}.{number}"))
                .json(json!({"model": "gpt-x", "stream": true, "store": false, "input": [
                    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
                ]})),
        }
    }

    fn is_whole(self, answer: &Answer) -> bool {
        let last = match self {
            Self::OpenAi => "data: [DONE]\n\n",
            Self::Codex => "\n\n",
        };
        answer.status == 200
            && answer.ending == Ending::Complete
            && answer.body.ends_with(last.as_bytes())
            && (self == Self::OpenAi || answer.text().contains("event: response.completed\n"))
    }
}

/// What became of a call. Times are seconds of the world.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Call {
    pub(super) began: f64,
    /// `None`: it never ended.
    pub(super) ended: Option<f64>,
    /// Where it was served: how much later its first byte came than at a service that has capacity.
    pub(super) waited: Option<f64>,
}

/// The clients at work.
pub(super) struct Crowd {
    world: World,
    calls: Arc<Mutex<Vec<Call>>>,
    clients: JoinSet<()>,
}

impl Crowd {
    /// Starts them; they begin with the world.
    pub(super) fn start(world: &World, count: usize, kind: Kind, address: SocketAddr) -> Self {
        let calls = Arc::default();
        let mut clients = JoinSet::new();
        for number in 0..count {
            let one = One { world: world.clone(), number, kind, address, connection: None };
            clients.spawn(one.work(Arc::clone(&calls)));
        }
        Self { world: world.clone(), calls, clients }
    }

    /// Waits until all have ended their last call, at most until `latest`; all calls.
    pub(super) async fn end(&mut self, latest: f64) -> Vec<Call> {
        let all = async { while self.clients.join_next().await.is_some() {} };
        tokio::select! {
            () = all => {}
            () = self.world.reach(latest) => {}
        }
        self.clients.abort_all();
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

struct One {
    world: World,
    number: usize,
    kind: Kind,
    address: SocketAddr,
    connection: Option<Client>,
}

impl One {
    async fn work(mut self, calls: Arc<Mutex<Vec<Call>>>) {
        self.world.reach(0.0).await;
        for number in 0.. {
            let given = self.world.given(self.number, number);
            self.world.sleep(given.thought).await;
            let began = self.world.now();
            if began >= self.world.until {
                break;
            }
            let note = |call| {
                let mut calls = calls.lock().unwrap_or_else(PoisonError::into_inner);
                calls.push(call);
                calls.len() - 1
            };
            let place = note(Call { began, ended: None, waited: None });
            let waited = self.call(number, given, began).await;
            let ended = Some(self.world.now());
            calls.lock().unwrap_or_else(PoisonError::into_inner)[place] = Call { began, ended, waited };
        }
    }

    /// Makes a call; where it was served, how long it waited.
    async fn call(&mut self, number: usize, given: Given, began: f64) -> Option<f64> {
        for resend in 0.. {
            let asked = self.world.now();
            let answer = self.ask(&self.kind.request(self.number, number, resend)).await;
            if !self.kind.asks_again(&answer) {
                let first = answer.arrivals.first()?.at.as_secs_f64() * self.world.rate;
                return self.kind.is_whole(&answer).then_some(asked + first - given.first - began);
            }
            self.world.sleep(self.kind.waits(resend + 1)?).await;
        }
        None
    }

    /// The answer, over the connection of the one before where that is open; a status of zero: it broke.
    async fn ask(&mut self, request: &Request) -> Answer {
        let client = match self.connection.take() {
            Some(client) => Ok(client),
            None => Client::connect(self.address).await.map(|client| client.patience(PATIENCE)),
        };
        let Ok(mut client) = client else { return Answer::default() };
        let answer = client.ask(request).await.unwrap_or_default();
        if answer.ending == Ending::Complete {
            self.connection = Some(client);
        }
        answer
    }
}
