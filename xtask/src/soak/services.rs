//! The pretend services behind the program. One serves for some seconds and then makes room for the next: each
//! remembers what it has seen, and the program must let go of the connections to one that is gone.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use relay_sim::fixtures::chat;
use relay_sim::{Event, Refused, Reply, Script, Seen, Upstream};

use crate::crowd::{Crowd, Kind};

/// How long one serves.
const TURN: Duration = Duration::from_secs(10);
/// How long it stays for the calls that it has begun.
const TO_END: Duration = Duration::from_secs(3);

/// The words of a whole stream.
pub(crate) const WORDS: &str = "one two three four five six seven eight nine ten eleven twelve";

/// The ports of all of them, until they serve.
pub(crate) struct Services {
    waiting: Vec<Refused>,
}

impl Services {
    /// Takes ports for a run of this length.
    pub(crate) fn reserve(time: Duration) -> Result<Self> {
        let count = time.as_secs().div_ceil(TURN.as_secs()).max(1);
        let waiting = (0..count).map(|_| Refused::port()).collect::<Result<_, _>>();
        Ok(Self { waiting: waiting.context("no free ports")? })
    }

    /// The settings of the program: one upstream each, waits of milliseconds.
    pub(crate) fn settings(&self) -> String {
        let mut text = String::from(
            "[relay]\nprofile = \"soak\"\n\n[profile.soak]\nbased_on = \"interactive\"\nbase = \"10ms\"\n\
             cap = \"20ms\"\njitter = \"1ms\"\noverloaded_base = \"10ms\"\noverloaded_cap = \"20ms\"\n\
             useless_floor = \"10ms\"\n\n[waiting]\ninterim = \"50ms\"\n",
        );
        for (number, service) in self.waiting.iter().enumerate() {
            text.push_str(&format!("\n[upstream.soak{number}]\nurl = \"{}\"\n", service.url()));
        }
        text
    }

    /// Lets one after the other serve; hands out those that are left at the end.
    pub(crate) async fn take_turns(self, crowd: &Crowd, time: Duration) -> Result<Left> {
        let end = tokio::time::Instant::now() + time;
        let mut left = Left(None);
        for (number, port) in self.waiting.into_iter().enumerate() {
            let service = port.open(script()).context("cannot open a reserved port")?;
            crowd.address(number);
            let turn = (tokio::time::Instant::now() + TURN).min(end);
            if let Some(last) = left.0.replace(service) {
                tokio::time::sleep(TO_END.min(turn - tokio::time::Instant::now())).await;
                last.stop().await;
            }
            tokio::time::sleep_until(turn).await;
        }
        Ok(left)
    }
}

/// The service that served last.
pub(crate) struct Left(Option<Upstream>);

impl Left {
    pub(crate) async fn stop(self) {
        if let Some(last) = self.0 {
            last.stop().await;
        }
    }
}

/// What a service does to a request says the request's own kind, in a header; what it does first, it does once for
/// each number of a request.
fn script() -> Script {
    let met = Arc::new(Mutex::new(HashSet::new()));
    Script::by(move |seen, _| {
        let Some((kind, number)) = named(seen) else { return Reply::status(400) };
        let first = {
            let mut met = met.lock().unwrap_or_else(PoisonError::into_inner);
            let first = met.insert(number);
            if !first {
                met.remove(&number);
            }
            first
        };
        answer(kind, first)
    })
    .forgetting_bodies()
}

fn named(seen: &Seen) -> Option<(Kind, u64)> {
    let (kind, number) = seen.header("x-soak")?.split_once(' ')?;
    Some((Kind::named(kind)?, number.parse().ok()?))
}

fn answer(kind: Kind, first: bool) -> Reply {
    let stream = || Reply::sse(chat::stream(WORDS));
    let partial = || chat::stream(WORDS).into_iter().take(4);
    match kind {
        Kind::Whole | Kind::Large => Reply::status(200).json(chat::completion("pong")),
        Kind::Stream => stream(),
        Kind::Refused if first => {
            Reply::status(503).json(chat::error("service_unavailable_error", "overloaded"))
        }
        Kind::RefusedInStream if first => {
            Reply::sse([chat::error_chunk("server_is_overloaded", "overloaded")])
        }
        Kind::Reset if first => Reply::reset_after_request(),
        Kind::Refused | Kind::RefusedInStream | Kind::Reset => stream(),
        Kind::Broken => Reply::sse(partial().chain([Event::pause(Duration::from_millis(1))])).reset(),
        Kind::LeftInStream => Reply::sse(partial()).hang(),
        Kind::LeftInWait => Reply::silence(),
    }
}
