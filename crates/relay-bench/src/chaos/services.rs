//! Three services, one of them behind TLS, each in a mood that changes.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use relay_sim::fixtures::codex as wire;
use relay_sim::{Identity, Refused, Reply, Script, Seen, Upstream};

/// How a service behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    /// It answers.
    Well,
    /// It has no capacity, and says so.
    Busy,
    /// It asks to be left alone for a second.
    Throttles,
    /// It fails at once.
    Fails,
    /// It resets the connection once it has the request.
    Resets,
    /// It says nothing.
    Hangs,
    /// It breaks off in the middle of its answer.
    BreaksOff,
    /// It announces more bytes than it sends.
    Lies,
    /// It sends a byte now and then.
    Crawls,
    /// Nobody listens.
    Dead,
    /// It shows a certificate that nobody trusts; without TLS it is dead.
    Impostor,
}

impl Mood {
    const ALL: [Self; 11] = [
        Self::Well,
        Self::Busy,
        Self::Throttles,
        Self::Fails,
        Self::Resets,
        Self::Hangs,
        Self::BreaksOff,
        Self::Lies,
        Self::Crawls,
        Self::Dead,
        Self::Impostor,
    ];

    /// Any; well as often as not, or nobody would ever be served.
    pub(crate) fn any(chance: &mut fastrand::Rng) -> Self {
        let index = chance.usize(..Self::ALL.len() * 2);
        Self::ALL.get(index).copied().unwrap_or(Self::Well)
    }
}

/// How often each request was worked on, by its name, and the mood.
#[derive(Default)]
struct State {
    mood: Option<Mood>,
    ran: BTreeMap<String, u32>,
}

/// One service.
pub(crate) struct Service {
    port: u16,
    identity: Option<Identity>,
    impostor: Option<Identity>,
    state: Arc<Mutex<State>>,
    up: Option<Upstream>,
    /// What `up` shows.
    shows: Mood,
}

impl Service {
    /// Three of them; the last behind TLS.
    pub(crate) async fn three() -> Result<Vec<Self>> {
        let mut all = Vec::new();
        for tls in [false, false, true] {
            let identity = if tls { Some(Identity::new()?) } else { None };
            let impostor = if tls { Some(Identity::new()?) } else { None };
            let port = Refused::port()?.release();
            let state = Arc::default();
            let mut service = Self { port, identity, impostor, state, up: None, shows: Mood::Dead };
            service.turns(Mood::Well).await?;
            all.push(service);
        }
        Ok(all)
    }

    pub(crate) fn url(&self) -> String {
        let scheme = if self.identity.is_some() { "https" } else { "http" };
        format!("{scheme}://127.0.0.1:{}", self.port)
    }

    pub(crate) fn pem(&self) -> Option<&str> {
        self.identity.as_ref().map(|identity| identity.pem.as_str())
    }

    /// From now on it is in this mood. What is under way goes on as it began, unless the service dies.
    pub(crate) async fn turns(&mut self, mood: Mood) -> io::Result<()> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).mood = Some(mood);
        let shows = match (mood, &self.impostor) {
            (Mood::Dead, _) | (Mood::Impostor, None) => Mood::Dead,
            (Mood::Impostor, Some(_)) => Mood::Impostor,
            _ => Mood::Well,
        };
        if shows == self.shows {
            return Ok(());
        }
        if let Some(up) = self.up.take() {
            up.stop().await;
        }
        let script = script(Arc::clone(&self.state));
        self.up = match (shows, &self.identity, &self.impostor) {
            (Mood::Dead, ..) => None,
            (Mood::Impostor, _, Some(identity)) | (_, Some(identity), _) => {
                Some(Upstream::start_as(self.port, script, identity).await?)
            }
            (_, None, _) => Some(Upstream::start_on(self.port, script).await?),
        };
        self.shows = shows;
        Ok(())
    }
}

/// How often each request was worked on, by all of them.
pub(crate) fn ran(services: &[Service]) -> BTreeMap<String, u32> {
    let mut all = BTreeMap::new();
    for service in services {
        for (name, times) in &service.state.lock().unwrap_or_else(PoisonError::into_inner).ran {
            *all.entry(name.clone()).or_default() += times;
        }
    }
    all
}

fn script(state: Arc<Mutex<State>>) -> Script {
    Script::by(move |seen, _| {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let mood = state.mood.unwrap_or(Mood::Well);
        let name = name_of(seen);
        if let Some(refusal) = refusal(mood) {
            return refusal;
        }
        *state.ran.entry(name.clone()).or_default() += 1;
        answer(mood, &name)
    })
    .forgetting_bodies()
}

/// The name that a request has in its body.
fn name_of(seen: &Seen) -> String {
    seen.json()["input"].as_str().unwrap_or_default().to_owned()
}

/// What is said without any work.
fn refusal(mood: Mood) -> Option<Reply> {
    match mood {
        Mood::Busy => Some(Reply::status(503).json(r#"{"error":{"code":"server_is_overloaded"}}"#)),
        Mood::Throttles => Some(
            Reply::status(429).header("retry-after", 1).json(r#"{"error":{"code":"rate_limit_exceeded"}}"#),
        ),
        Mood::Fails => Some(Reply::status(500).json(r#"{"error":{"code":"server_error"}}"#)),
        Mood::Well
        | Mood::Resets
        | Mood::Hangs
        | Mood::BreaksOff
        | Mood::Lies
        | Mood::Crawls
        | Mood::Dead
        | Mood::Impostor => None,
    }
}

fn answer(mood: Mood, name: &str) -> Reply {
    match mood {
        Mood::Resets => Reply::reset_after_request(),
        Mood::Hangs => Reply::silence(),
        Mood::BreaksOff => Reply::sse(wire::partial(name)).fin_without_terminator(),
        Mood::Lies => Reply::sse(wire::turn(name)).length(1 << 20),
        Mood::Crawls => Reply::sse(wire::turn(name)).spaced(Duration::from_millis(60)),
        Mood::Well | Mood::Busy | Mood::Throttles | Mood::Fails | Mood::Dead | Mood::Impostor => {
            Reply::sse(wire::turn(name)).after(Duration::from_millis(30))
        }
    }
}
