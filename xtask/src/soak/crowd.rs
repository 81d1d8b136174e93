//! The clients: each makes one call after the other, of every kind in turn, and says how it must end.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use relay_sim::fixtures::chat;
use relay_sim::script::stream_bytes;
use relay_sim::{Answer, Client, Ending, Request};

use crate::services::WORDS;

/// What a call meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A healthy service, no stream.
    Whole,
    /// The same with a large request.
    Large,
    /// A healthy service, a stream.
    Stream,
    /// 503 once.
    Refused,
    /// An error for a first event, once.
    RefusedInStream,
    /// A reset before the answer, once.
    Reset,
    /// A reset in the middle of the stream.
    Broken,
    /// The client leaves in the middle of the stream.
    LeftInStream,
    /// The client leaves while nothing has come.
    LeftInWait,
}

impl Kind {
    pub(crate) const ALL: [Self; 9] = [
        Self::Whole,
        Self::Large,
        Self::Stream,
        Self::Refused,
        Self::RefusedInStream,
        Self::Reset,
        Self::Broken,
        Self::LeftInStream,
        Self::LeftInWait,
    ];

    /// How often each comes in twenty calls.
    const MIX: [(Self, u64); 9] = [
        (Self::Whole, 7),
        (Self::Large, 1),
        (Self::Stream, 4),
        (Self::Refused, 2),
        (Self::RefusedInStream, 2),
        (Self::Reset, 1),
        (Self::Broken, 1),
        (Self::LeftInStream, 1),
        (Self::LeftInWait, 1),
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Large => "large",
            Self::Stream => "stream",
            Self::Refused => "refused",
            Self::RefusedInStream => "refused-in-stream",
            Self::Reset => "reset",
            Self::Broken => "broken",
            Self::LeftInStream => "left-in-stream",
            Self::LeftInWait => "left-in-wait",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    fn of(number: u64) -> Self {
        // A stride that shares no factor with twenty mixes the kinds.
        let mut place = number.wrapping_mul(7) % 20;
        for (kind, often) in Self::MIX {
            if place < often {
                return kind;
            }
            place -= often;
        }
        Self::Whole
    }

    const fn streams(self) -> bool {
        !matches!(self, Self::Whole | Self::Large)
    }
}

/// How many calls of a kind were made, and how many ended otherwise than they must.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Count {
    pub(crate) done: u64,
    pub(crate) odd: u64,
}

/// All clients.
pub(crate) struct Crowd {
    addr: SocketAddr,
    /// The service that serves.
    service: AtomicUsize,
    number: AtomicU64,
    over: AtomicBool,
    counts: Mutex<[(Count, String); 9]>,
    whole: Vec<u8>,
    stream: Vec<u8>,
}

impl Crowd {
    pub(crate) fn new(addr: SocketAddr) -> Self {
        Self {
            addr,
            service: AtomicUsize::new(usize::MAX),
            number: AtomicU64::new(0),
            over: AtomicBool::new(false),
            counts: Mutex::default(),
            whole: chat::completion("pong").into_bytes(),
            stream: stream_bytes(&chat::stream(WORDS)),
        }
    }

    /// Calls go to this service from now on.
    pub(crate) fn address(&self, service: usize) {
        self.service.store(service, Ordering::Relaxed);
    }

    /// No more calls.
    pub(crate) fn stop(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    pub(crate) fn count(&self, kind: Kind) -> Count {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)[kind as usize].0
    }

    /// The first call of a kind that went wrong.
    pub(crate) fn odd(&self, kind: Kind) -> String {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)[kind as usize].1.clone()
    }

    /// One client, until the end.
    pub(crate) async fn call_on(self: Arc<Self>) {
        let mut open = None;
        while !self.over.load(Ordering::Relaxed) {
            let service = self.service.load(Ordering::Relaxed);
            if service == usize::MAX {
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            }
            let number = self.number.fetch_add(1, Ordering::Relaxed);
            let kind = Kind::of(number);
            let (left, odd) = self.call(open.take(), kind, (service, number)).await;
            open = left;
            let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            let (count, first) = &mut counts[kind as usize];
            count.done += 1;
            if let Some(told) = odd {
                count.odd += 1;
                if first.is_empty() {
                    *first = told;
                }
            }
        }
    }

    /// One call: the connection if it can be used again, and what went wrong.
    async fn call(
        &self,
        open: Option<Client>,
        kind: Kind,
        place: (usize, u64),
    ) -> (Option<Client>, Option<String>) {
        let mut client = match open {
            Some(client) => client,
            None => match Client::connect(self.addr).await {
                Ok(client) => client,
                Err(error) => return (None, Some(format!("cannot connect: {error}"))),
            },
        };
        if let Err(error) = client.send(&request(kind, place)).await {
            return (None, Some(format!("cannot send: {error}")));
        }
        match kind {
            Kind::LeftInStream => {
                let began = client.read_until(b"data: ").await;
                leave(client, place.1).await;
                return (None, (!began).then(|| "it did not begin".to_owned()));
            }
            Kind::LeftInWait => {
                tokio::time::sleep(Duration::from_millis(20 + place.1 % 100)).await;
                leave(client, place.1).await;
                return (None, None);
            }
            Kind::Whole
            | Kind::Large
            | Kind::Stream
            | Kind::Refused
            | Kind::RefusedInStream
            | Kind::Reset
            | Kind::Broken => {}
        }
        let answer = client.read().await;
        let odd = (!self.is_right(kind, &answer)).then(|| {
            let start: String = answer.text().chars().take(300).collect();
            format!("{} {:?} {start}", answer.status, answer.ending)
        });
        let usable = answer.ending == Ending::Complete;
        (usable.then_some(client), odd)
    }

    fn is_right(&self, kind: Kind, answer: &Answer) -> bool {
        let body = match kind {
            Kind::Whole | Kind::Large => &self.whole,
            Kind::Broken => {
                return answer.status == 200 && matches!(answer.ending, Ending::Truncated | Ending::Reset);
            }
            Kind::Stream
            | Kind::Refused
            | Kind::RefusedInStream
            | Kind::Reset
            | Kind::LeftInStream
            | Kind::LeftInWait => &self.stream,
        };
        answer.status == 200 && answer.ending == Ending::Complete && answer.body == *body
    }
}

fn request(kind: Kind, (service, number): (usize, u64)) -> Request {
    let size = if kind == Kind::Large { 256 << 10 } else { 200 };
    let said = "x".repeat(size);
    let stream = kind.streams();
    Request::post(&format!("/to/soak{service}/v1/chat/completions"))
        .header("authorization", "Bearer sk-test")
        .header("x-soak", format!("{} {number}", kind.name()))
        .json(format!(
            r#"{{"model":"m","stream":{stream},"messages":[{{"role":"user","content":"{number} {said}"}}]}}"#
        ))
}

/// In every way there is.
async fn leave(client: Client, number: u64) {
    if number.is_multiple_of(2) {
        client.leave_by_reset();
    } else {
        client.leave().await;
    }
}
