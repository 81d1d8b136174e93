//! Joining a relay that already runs: a session there, held open as long as the client runs.
//!
//! Whoever listens on the port is told nothing before it has proved, on the same connection, that it has the local token
//! of this user: on a machine of many the port may be somebody else's, now or once the relay is gone. A relay that restarts
//! is given the same session again, so that the client finds it under the address that it has.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use relay_core::config::Secret;
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::SessionKey;
use crate::guard::TOKEN_HEADER;
use crate::local_token;
use crate::running::{self, Connection};
use crate::sessions::drawn;
use crate::sessions::said::{Opened, PATH, Page, Proved, Sums, Wanted, proves};

/// How long an answer of a relay on this machine may take.
const WITHIN: Duration = Duration::from_secs(2);
/// The longest answer that is read.
const LONGEST: usize = 1 << 20;
/// How often a relay that went away is looked for: at first, and at last.
const AGAIN: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// How long a relay may take to give a session more upstreams.
const CHANGES: Duration = Duration::from_secs(5);

/// How long calls of a client that is gone may take to end.
const SETTLES: Duration = Duration::from_millis(500);

/// Why no relay is joined. For whoever looks into it: the client then gets a relay of its own.
#[derive(Debug, thiserror::Error)]
pub enum NotJoined {
    /// Without the token nothing can be proved.
    #[error("there is no local token, so no relay of this user has run yet")]
    NoToken,
    /// Nobody listens, or nobody who speaks HTTP.
    #[error("no relay answers on port {port}: {why}")]
    Nobody {
        /// The port.
        port: u16,
        /// What the system says.
        why: String,
    },
    /// An older relay, or none, or one that wants a token.
    #[error("what listens on port {port} has no sessions: it answered {status}")]
    NoSessions {
        /// The port.
        port: u16,
        /// The status of its answer.
        status: StatusCode,
    },
    /// Somebody else's.
    #[error("what listens on port {0} does not prove that it is a relay of this user")]
    NotOurs(u16),
    /// It refuses the session.
    #[error("the relay on port {port} refuses the session: {why}")]
    Refused {
        /// The port.
        port: u16,
        /// What it says.
        why: String,
    },
}

/// A relay of this user's that runs.
#[derive(Debug, Clone)]
pub struct Running {
    door: Door,
    /// Whether its own settings name the upstream of everything.
    pub has_upstream: bool,
}

/// Where it is, and what it is shown.
#[derive(Debug, Clone)]
struct Door {
    port: u16,
    local: Secret,
    /// What it asks every client for, where it does.
    token: Option<Secret>,
}

impl Running {
    /// Looks for one on this port.
    ///
    /// # Errors
    /// [`NotJoined`] where there is none that can be joined.
    pub async fn find(
        port: u16,
        state_dir: Option<&Path>,
        token: Option<&Secret>,
    ) -> Result<Self, NotJoined> {
        let local = match state_dir.and_then(local_token::known) {
            Some(local) => local,
            None => of_one_that_starts(port, state_dir).await.ok_or(NotJoined::NoToken)?,
        };
        let door = Door { port, local: Secret::new(local), token: token.cloned() };
        let (Proved { has_upstream, .. }, _) = door.prove().await?;
        Ok(Self { door, has_upstream })
    }

    /// The port it listens on.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.door.port
    }

    /// Opens a session that lasts as long as what is returned.
    ///
    /// # Errors
    /// [`NotJoined`] where it does not let us.
    pub async fn open(self, wanted: Wanted) -> Result<Joined, NotJoined> {
        let (Opened { key, .. }, line) = self.door.open(&wanted).await?;
        let wanted = Wanted { key: Some(key), ..wanted };
        let seen = Arc::<Mutex<Seen>>::default();
        let (changes, changed) = mpsc::channel(1);
        let kept = Kept { wanted, line, changed, seen: Arc::clone(&seen) };
        let keeper = tokio::spawn(kept.keep(self.door.clone()));
        Ok(Joined { door: self.door, key, seen, keeper, changes })
    }
}

/// A session at a relay that already ran.
#[derive(Debug)]
pub struct Joined {
    door: Door,
    key: SessionKey,
    seen: Arc<Mutex<Seen>>,
    keeper: JoinHandle<()>,
    changes: mpsc::Sender<Change>,
}

/// The session is to be this one from now on.
#[derive(Debug)]
struct Change {
    wanted: Wanted,
    done: oneshot::Sender<Result<(), NotJoined>>,
}

/// What its calls came to.
#[derive(Debug, Default)]
struct Seen {
    /// At relays that are gone.
    before: Sums,
    /// At the one that is there, when it was last asked.
    now: Sums,
}

impl Joined {
    /// Makes it the session that is wanted now, under the key that it has. Calls of it that are open go on, and none that
    /// comes meanwhile is refused.
    ///
    /// # Errors
    /// [`NotJoined`] where the relay does not let us, or is not there for now. The session is then what it was.
    pub async fn change(&self, wanted: Wanted) -> Result<(), NotJoined> {
        let wanted = Wanted { key: Some(self.key), ..wanted };
        let (done, outcome) = oneshot::channel();
        let changed = async {
            self.changes.send(Change { wanted, done }).await.ok()?;
            outcome.await.ok()
        };
        match tokio::time::timeout(CHANGES, changed).await {
            Ok(Some(outcome)) => outcome,
            Ok(None) | Err(_) => Err(self.door.nobody(&"it went away with the session")),
        }
    }

    /// How the session is; `None` where the relay does not tell, as while it restarts.
    pub async fn page(&self) -> Option<Page> {
        let path = format!("{PATH}/{}", self.key);
        let answer = self.door.ask_proven(Method::GET, &path, Bytes::new()).await.ok()?;
        let page: Page = whole(answer).await?;
        let mut seen = seen(&self.seen);
        seen.now = page.sums;
        Some(Page { sums: seen.before.and(seen.now), ..page })
    }

    /// What its calls came to, now that its client is gone. The relay notices that on each connection by itself, so
    /// calls that are still open are given a moment to end.
    pub async fn settled(self) -> Sums {
        let until = tokio::time::Instant::now() + SETTLES;
        while let Some(page) = self.page().await {
            if page.open == 0 || tokio::time::Instant::now() > until {
                return page.sums;
            }
            tokio::time::sleep(AGAIN.0 / 4).await;
        }
        let seen = seen(&self.seen);
        seen.before.and(seen.now)
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

/// The local token of a relay that is just starting for the first time: it writes it before it answers anything, and
/// listens before that. Where nobody listens nothing is waited for.
async fn of_one_that_starts(port: u16, state_dir: Option<&Path>) -> Option<String> {
    let folder = state_dir?;
    // What it says does not count: the token proves whose it is.
    let _answered = running::lives(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), None).await;
    local_token::known(folder)
}

fn seen(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a keeper keeps.
struct Kept {
    wanted: Wanted,
    line: Incoming,
    changed: mpsc::Receiver<Change>,
    seen: Arc<Mutex<Seen>>,
}

impl Kept {
    /// Holds the session, and asks for it again where the relay went away with it.
    async fn keep(mut self, door: Door) {
        loop {
            let change = tokio::select! {
                biased;
                () = ends(&mut self.line, &self.seen) => None,
                change = self.changed.recv() => change,
            };
            match change {
                Some(change) => self.change(&door, change).await,
                None => self.again(&door).await,
            }
        }
    }

    /// Opens it anew while it is held: it is taken over, and never gone in between.
    async fn change(&mut self, door: &Door, Change { wanted, done }: Change) {
        let outcome = match door.open(&wanted).await {
            Ok((opened, line)) => {
                self.wanted = wanted;
                self.opened(&opened, line);
                Ok(())
            }
            Err(why) => Err(why),
        };
        // Whoever asked may have given up on it.
        let _told = done.send(outcome);
    }

    async fn again(&mut self, door: &Door) {
        let mut pause = AGAIN.0;
        loop {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(AGAIN.1);
            if let Ok((opened, line)) = door.open(&self.wanted).await {
                return self.opened(&opened, line);
            }
        }
    }

    fn opened(&mut self, opened: &Opened, line: Incoming) {
        if !opened.resumed {
            let mut seen = seen(&self.seen);
            seen.before = seen.before.and(std::mem::take(&mut seen.now));
        }
        self.line = line;
    }
}

/// Waits until the relay lets go of the session. One that stops says at last what the session came to there.
async fn ends(line: &mut Incoming, sums: &Mutex<Seen>) {
    if let Ok(Page { sums: last, .. }) = serde_json::from_slice(&first_line(line).await) {
        seen(sums).now = last;
    }
    while let Some(Ok(_nothing_new)) = line.frame().await {}
}

impl Door {
    fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }

    /// Has it prove whose it is. What is asked next on the connection is asked of the one that proved it.
    async fn prove(&self) -> Result<(Proved, Connection<Full<Bytes>>), NotJoined> {
        let port = self.port;
        let nonce = drawn().ok_or(NotJoined::NotOurs(port))?.to_string();
        let request = self.request(Method::GET, &format!("{PATH}?nonce={nonce}"), Bytes::new())?;
        let mut connection = self.in_time(Connection::to(self.address())).await?;
        let answer = self.in_time(connection.ask(request)).await?;
        if answer.status() != StatusCode::OK {
            return Err(NotJoined::NoSessions { port, status: answer.status() });
        }
        let proved: Option<Proved> = whole(answer).await;
        let is_ours =
            |proved: &Proved| proves(&proved.proof, self.local.expose(), &nonce, &self.address().to_string());
        Ok((proved.filter(is_ours).ok_or(NotJoined::NotOurs(port))?, connection))
    }

    /// Opens the session: what was said first, and what goes on as long as it lasts.
    async fn open(&self, wanted: &Wanted) -> Result<(Opened, Incoming), NotJoined> {
        let refused = |why: String| NotJoined::Refused { port: self.port, why };
        let body = serde_json::to_vec(wanted).map_err(|error| refused(error.to_string()))?;
        let answer = self.ask_proven(Method::POST, PATH, body.into()).await?;
        let (head, mut body) = answer.into_parts();
        let first = tokio::time::timeout(WITHIN, first_line(&mut body)).await.unwrap_or_default();
        if head.status != StatusCode::OK {
            let words = String::from_utf8_lossy(&first);
            return Err(refused(format!("{}: {}", head.status, words.lines().next().unwrap_or_default())));
        }
        let opened: Opened =
            serde_json::from_slice(&first).map_err(|error| refused(format!("its first line: {error}")))?;
        Ok((opened, body))
    }

    /// Asks it something, on the connection on which it has proved whose it is. Only what changes something takes the
    /// local token.
    async fn ask_proven(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<http::Response<Incoming>, NotJoined> {
        let mut request = self.request(method, path, body)?;
        let local = (request.method() == Method::POST).then_some(&self.local);
        for token in self.token.iter().chain(local) {
            let mut token = HeaderValue::from_str(token.expose()).map_err(|error| self.nobody(&error))?;
            token.set_sensitive(true);
            request.headers_mut().append(TOKEN_HEADER, token);
        }
        let (_, mut connection) = self.prove().await?;
        self.in_time(connection.ask(request)).await
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<http::Request<Full<Bytes>>, NotJoined> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().map_err(|error: http::uri::InvalidUri| self.nobody(&error))?;
        Ok(request)
    }

    async fn in_time<T>(&self, done: impl Future<Output = io::Result<T>>) -> Result<T, NotJoined> {
        match tokio::time::timeout(WITHIN, done).await {
            Ok(done) => done.map_err(|error| self.nobody(&error)),
            Err(_elapsed) => Err(self.nobody(&"it does not answer")),
        }
    }

    fn nobody(&self, why: &dyn std::fmt::Display) -> NotJoined {
        NotJoined::Nobody { port: self.port, why: why.to_string() }
    }
}

async fn first_line(body: &mut Incoming) -> BytesMut {
    let mut read = BytesMut::new();
    while read.len() < LONGEST && !read.contains(&b'\n') {
        let Some(Ok(frame)) = body.frame().await else { break };
        if let Ok(data) = frame.into_data() {
            read.extend_from_slice(&data);
        }
    }
    read
}

/// The whole of an answer.
async fn whole<T: DeserializeOwned>(answer: http::Response<Incoming>) -> Option<T> {
    let is_ok = answer.status() == StatusCode::OK;
    let body = tokio::time::timeout(WITHIN, Limited::new(answer.into_body(), LONGEST).collect()).await;
    let bytes = body.ok()?.ok()?.to_bytes();
    serde_json::from_slice(&bytes).ok().filter(|_| is_ok)
}
