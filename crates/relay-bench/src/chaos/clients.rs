//! The clients: each asks one thing after the other, and looks closely at how each ends.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use relay_sim::fixtures::codex as wire;
use relay_sim::script::stream_bytes;
use relay_sim::{Answer, Client, Ending, Request};
use tokio::task::JoinSet;

/// No call may take longer than that: its patience, and the time that a crawling answer takes.
const PATIENCE: Duration = Duration::from_secs(50);

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// The whole answer, to the byte.
    Served,
    /// An error that says so.
    Refused(u16),
    /// The connection broke, visibly.
    Cut,
    /// A success that is none.
    Dishonest(String),
    /// It had no end.
    Lost,
}

/// One request.
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) end: End,
}

/// The request of this name.
pub(crate) fn request(name: &str) -> Request {
    Request::post("/v1/responses")
        .header("authorization", "Bearer sk-chaos")
        .header("user-agent", "chaos/1")
        .json(format!(r#"{{"model":"gpt-x","stream":true,"input":"{name}","store":false}}"#))
}

/// All clients.
pub(crate) struct Crowd {
    over: Arc<AtomicBool>,
    clients: JoinSet<Vec<Call>>,
}

impl Crowd {
    pub(crate) fn start(relay: SocketAddr, count: usize) -> Self {
        let over = Arc::<AtomicBool>::default();
        let mut clients = JoinSet::new();
        for number in 0..count {
            clients.spawn(one(relay, number, Arc::clone(&over)));
        }
        Self { over, clients }
    }

    /// Nothing more is asked; what is under way has so long.
    pub(crate) async fn end(mut self, within: Duration) -> Result<Vec<Call>> {
        self.over.store(true, Ordering::Relaxed);
        let mut all = Vec::new();
        let ended = async {
            while let Some(calls) = self.clients.join_next().await {
                all.extend(calls?);
            }
            Ok::<_, tokio::task::JoinError>(())
        };
        tokio::time::timeout(within, ended).await??;
        Ok(all)
    }
}

async fn one(relay: SocketAddr, number: usize, over: Arc<AtomicBool>) -> Vec<Call> {
    let mut calls = Vec::new();
    let mut asked = 0_u32;
    while !over.load(Ordering::Relaxed) {
        asked += 1;
        let name = format!("client-{number}-{asked}");
        // A connection of its own: what is wrong with one says nothing about the next.
        let end = match Client::connect(relay).await {
            Ok(client) => match client.patience(PATIENCE).ask(&request(&name)).await {
                Ok(answer) => end_of(&answer, &name),
                Err(_broken) => End::Cut,
            },
            Err(error) => End::Dishonest(format!("the relay does not listen: {error}")),
        };
        calls.push(Call { name, end });
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    calls
}

fn end_of(answer: &Answer, name: &str) -> End {
    let whole = matches!(answer.ending, Ending::Complete | Ending::CompleteByClose);
    match (answer.status, answer.ending) {
        (_, Ending::Timeout | Ending::Open) => End::Lost,
        (0, _) => End::Cut,
        (200, _) if answer.body == stream_bytes(&wire::turn(name)) && whole => End::Served,
        (200, _) if whole => End::Dishonest(format!("a whole answer that is not its own: {}", answer.text())),
        (200, _) => End::Cut,
        (status @ 400.., _) if whole && !answer.body.is_empty() => End::Refused(status),
        (_, Ending::Truncated | Ending::Reset) => End::Cut,
        (status, ending) => End::Dishonest(format!("{status}, {ending:?}: {}", answer.text())),
    }
}
