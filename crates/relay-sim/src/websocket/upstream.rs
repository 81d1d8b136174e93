//! A pretend model service on loopback that speaks WebSocket: accepts, records, and carries out a [`WsScript`].
//!
//! Plain requests are answered too, since Codex falls back to them: a POST with the whole answer as an event stream,
//! `…/models` with an empty list, all else with 404.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};

use super::script::{Upgrade, WsScript, WsStep, nth, steps};
use super::{Header, lines, plain, without_limits};
use crate::fixtures::codex;
use crate::script::stream_bytes;
use crate::wire::{Body, Head, Inbox, find};

/// How long a connection that ended here waits for the client to close its side.
const LINGER: Duration = Duration::from_secs(5);

/// Something that came over the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WsSeen {
    /// When, since the start of the upstream.
    pub at: Duration,
    /// The number of the connection, from zero.
    pub connection: usize,
    /// What it was.
    pub what: WsWhat,
}

/// What came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WsWhat {
    /// A request to become a WebSocket.
    Upgrade {
        /// Path and query.
        target: String,
        /// In the case and order of the wire.
        headers: Vec<(String, String)>,
    },
    /// A text message.
    Message(String),
    /// A binary message.
    Binary(Bytes),
    /// A ping; it was answered.
    Ping(Bytes),
    /// A pong.
    Pong(Bytes),
    /// A close frame, with its code and reason if it has any; also the client's answer to ours.
    Close(Option<(u16, String)>),
    /// The client closed or reset the connection, with a close frame before or without. Not where we reset it.
    Gone,
    /// A plain request.
    Http {
        /// `POST`.
        method: String,
        /// Path and query.
        target: String,
        /// Freed from chunks but not from a content coding.
        body: Vec<u8>,
    },
}

impl WsWhat {
    /// The first value of a header of an upgrade, whatever its case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        if let Self::Upgrade { headers, .. } = self { find(headers, name) } else { None }
    }

    const fn text(&self) -> Option<&String> {
        if let Self::Message(text) = self { Some(text) } else { None }
    }
}

/// What a text message asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asks {
    Answer,
    Prewarm,
    Nothing,
}

fn asks(message: &Value) -> Asks {
    match (message["type"] == "response.create", message["generate"] == false) {
        (true, false) => Asks::Answer,
        (true, true) => Asks::Prewarm,
        (false, _) => Asks::Nothing,
    }
}

/// A running pretend service. Dropping it stops it and closes every socket.
#[derive(Debug)]
pub struct WsUpstream {
    addr: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl WsUpstream {
    /// Starts on a free port of 127.0.0.1.
    pub async fn start(script: WsScript) -> io::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
        let addr = listener.local_addr()?;
        let shared = Arc::new(Shared::new(script));
        let task = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { addr, shared, task })
    }

    /// `http://127.0.0.1:PORT`, without a path.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Where it listens.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Everything so far, in its order.
    #[must_use]
    pub fn seen(&self) -> Vec<WsSeen> {
        self.shared.seen().clone()
    }

    /// The requests to become a WebSocket.
    #[must_use]
    pub fn upgrades(&self) -> Vec<WsSeen> {
        self.seen().into_iter().filter(|seen| matches!(seen.what, WsWhat::Upgrade { .. })).collect()
    }

    /// All text messages.
    #[must_use]
    pub fn messages(&self) -> Vec<String> {
        texts(&self.shared.seen(), |_| true)
    }

    /// The text messages that ask for an answer: `response.create`, and no prewarm.
    #[must_use]
    pub fn creates(&self) -> Vec<String> {
        texts(&self.shared.seen(), |message| asks(message) == Asks::Answer)
    }

    /// The prewarms.
    #[must_use]
    pub fn prewarms(&self) -> Vec<String> {
        texts(&self.shared.seen(), |message| asks(message) == Asks::Prewarm)
    }

    /// The bodies of the plain POST requests.
    #[must_use]
    pub fn posts(&self) -> Vec<Vec<u8>> {
        let body = |seen: WsSeen| match seen.what {
            WsWhat::Http { method, body, .. } if method == "POST" => Some(body),
            WsWhat::Http { .. }
            | WsWhat::Upgrade { .. }
            | WsWhat::Message(_)
            | WsWhat::Binary(_)
            | WsWhat::Ping(_)
            | WsWhat::Pong(_)
            | WsWhat::Close(_)
            | WsWhat::Gone => None,
        };
        self.seen().into_iter().filter_map(body).collect()
    }

    /// How many bytes came in on all connections, heads and frame headers included.
    #[must_use]
    pub fn bytes_in(&self) -> u64 {
        self.shared.bytes_in.load(Ordering::Relaxed)
    }

    /// How many connections were accepted so far.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Waits until what was seen is as wished, looking again whenever something comes. False if that took too long.
    pub async fn wait_for(&self, within: Duration, wish: impl Fn(&[WsSeen]) -> bool) -> bool {
        let mut changed = self.shared.changed.subscribe();
        let granted = changed.wait_for(|()| wish(&self.shared.seen()));
        matches!(timeout(within, granted).await, Ok(Ok(_)))
    }

    /// Waits until so many upgrades have come.
    pub async fn wait_for_upgrades(&self, n: usize, within: Duration) -> bool {
        let upgrade = |seen: &&WsSeen| matches!(seen.what, WsWhat::Upgrade { .. });
        self.wait_for(within, |seen| seen.iter().filter(upgrade).count() >= n).await
    }

    /// Waits until so many messages have come that ask for an answer.
    pub async fn wait_for_creates(&self, n: usize, within: Duration) -> bool {
        self.wait_for(within, |seen| texts(seen, |message| asks(message) == Asks::Answer).len() >= n).await
    }
}

impl Drop for WsUpstream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn texts(seen: &[WsSeen], wanted: impl Fn(&Value) -> bool) -> Vec<String> {
    let wanted = |text: &&String| wanted(&serde_json::from_str(text).unwrap_or_default());
    seen.iter().filter_map(|seen| seen.what.text()).filter(wanted).cloned().collect()
}

/// What the connections of one upstream have in common.
#[derive(Debug)]
struct Shared {
    script: WsScript,
    started: Instant,
    seen: Mutex<Vec<WsSeen>>,
    changed: watch::Sender<()>,
    bytes_in: AtomicU64,
    connections: AtomicUsize,
    upgrades: AtomicUsize,
    creates: AtomicUsize,
    prewarms: AtomicUsize,
    responses: AtomicUsize,
}

impl Shared {
    fn new(script: WsScript) -> Self {
        Self {
            script,
            started: Instant::now(),
            seen: Mutex::default(),
            changed: watch::Sender::new(()),
            bytes_in: AtomicU64::new(0),
            connections: AtomicUsize::new(0),
            upgrades: AtomicUsize::new(0),
            creates: AtomicUsize::new(0),
            prewarms: AtomicUsize::new(0),
            responses: AtomicUsize::new(0),
        }
    }

    fn seen(&self) -> MutexGuard<'_, Vec<WsSeen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, connection: usize, what: WsWhat) {
        let mut seen = self.seen();
        // The time is taken under the lock, so that the order of the list is that of the times.
        seen.push(WsSeen { at: self.started.elapsed(), connection, what });
        drop(seen);
        self.changed.send_replace(());
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                let connection = shared.connections.fetch_add(1, Ordering::Relaxed);
                open.spawn(serve(stream, Arc::clone(&shared), connection));
            }
            Some(_) = open.join_next() => {}
        }
    }
}

/// Serves one connection until it ends. An error is the end of a connection too, and noted where it was met.
async fn serve(stream: TcpStream, shared: Arc<Shared>, connection: usize) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut inbox = Inbox::new(Counted { stream, shared: Arc::clone(&shared) });
    loop {
        let head = loop {
            if let Some(head) = inbox.head()? {
                break head;
            }
            if inbox.fill().await? == 0 {
                return Ok(());
            }
        };
        if find(&head.headers, "upgrade").is_some_and(|value| value.eq_ignore_ascii_case("websocket")) {
            return upgrade(inbox, head, shared, connection).await;
        }
        plain_request(&mut inbox, head, &shared, connection).await?;
    }
}

/// Method and target.
fn start(head: &Head) -> (String, String) {
    let mut words = head.start_line.split(' ').map(str::to_owned);
    (words.next().unwrap_or_default(), words.next().unwrap_or_default())
}

async fn plain_request(
    inbox: &mut Inbox<Counted>,
    head: Head,
    shared: &Shared,
    connection: usize,
) -> io::Result<()> {
    let (mut rest, mut body, mut trailers) = (head.body(Body::Over), Vec::new(), Vec::new());
    loop {
        rest.take(&mut inbox.held, &mut body, &mut trailers)?;
        if rest == Body::Over {
            break;
        }
        if inbox.fill().await? == 0 {
            return Ok(());
        }
    }
    let (method, target) = start(&head);
    let path = target.split('?').next().unwrap_or_default();
    let (status, kind, answer) = match method.as_str() {
        "POST" => ("200 OK", "text/event-stream", stream_bytes(&shared.script.fallback)),
        "GET" if path.ends_with("/models") => ("200 OK", "application/json", codex::models().into_bytes()),
        _ => ("404 Not Found", "text/plain", Vec::new()),
    };
    let mut bytes =
        format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n", answer.len())
            .into_bytes();
    bytes.extend_from_slice(&answer);
    shared.note(connection, WsWhat::Http { method, target, body });
    inbox.reader.write_all(&bytes).await
}

async fn upgrade(
    mut inbox: Inbox<Counted>,
    head: Head,
    shared: Arc<Shared>,
    connection: usize,
) -> io::Result<()> {
    let number = shared.upgrades.fetch_add(1, Ordering::Relaxed);
    let (_, target) = start(&head);
    let key = find(&head.headers, "sec-websocket-key").unwrap_or_default().to_owned();
    shared.note(connection, WsWhat::Upgrade { target, headers: head.headers });
    match nth(&shared.script.upgrades, number).unwrap_or(Upgrade::Silent) {
        Upgrade::Accept(more) => {
            inbox.reader.write_all(switching(&key, &more).as_bytes()).await?;
            let (held, config) = (inbox.held.to_vec(), Some(without_limits()));
            let ws = WebSocketStream::from_partially_read(inbox.reader, held, Role::Server, config).await;
            Talk { ws, shared, connection, open: VecDeque::new(), known: HashSet::new() }.run().await
        }
        Upgrade::Refuse(status, headers, body) => {
            let head = format!("HTTP/1.1 {status} Refused\r\n{}", lines(&headers));
            let answer = format!("{head}content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
            inbox.reader.write_all(answer.as_bytes()).await?;
            leave(inbox.reader, &shared, connection).await
        }
        Upgrade::Reset => inbox.reader.stream.set_zero_linger(),
        Upgrade::Silent => {
            inbox.reader.drain().await;
            shared.note(connection, WsWhat::Gone);
            Ok(())
        }
    }
}

fn switching(key: &str, more: &[Header]) -> String {
    let accept = derive_accept_key(key.as_bytes());
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
         sec-websocket-accept: {accept}\r\n{}\r\n",
        lines(more)
    )
}

/// Closes in order: what the client still sends is read and dropped, until it closes too.
async fn leave(mut stream: Counted, shared: &Shared, connection: usize) -> io::Result<()> {
    let closed = stream.shutdown().await;
    if timeout(LINGER, stream.drain()).await.is_ok() {
        shared.note(connection, WsWhat::Gone);
    }
    closed
}

/// One connection that has become a WebSocket.
struct Talk {
    ws: WebSocketStream<Counted>,
    shared: Arc<Shared>,
    connection: usize,
    /// Questions that came while another one was answered.
    open: VecDeque<Value>,
    /// The ids of the responses completed here.
    known: HashSet<String>,
}

/// Where an answer left the connection.
enum After {
    Next,
    Over,
    Reset,
    Drop,
}

impl Talk {
    async fn run(mut self) -> io::Result<()> {
        loop {
            let after = match self.open.pop_front() {
                Some(question) => self.answer(&question).await,
                None if self.hear().await => After::Next,
                None => After::Over,
            };
            match after {
                After::Next => {}
                After::Over | After::Drop => {
                    return leave(self.ws.into_inner(), &self.shared, self.connection).await;
                }
                After::Reset => return self.ws.get_ref().stream.set_zero_linger(),
            }
        }
    }

    /// Takes one message; false at the end. Safe to drop half-way.
    async fn hear(&mut self) -> bool {
        let Some(Ok(message)) = self.ws.next().await else { return false };
        let what = match message {
            Message::Text(text) => {
                let question = serde_json::from_str(text.as_str()).unwrap_or_default();
                if asks(&question) != Asks::Nothing {
                    self.open.push_back(question);
                }
                WsWhat::Message(text.as_str().to_owned())
            }
            Message::Binary(bytes) => WsWhat::Binary(bytes),
            Message::Ping(bytes) => WsWhat::Ping(bytes),
            Message::Pong(bytes) => WsWhat::Pong(bytes),
            Message::Close(frame) => WsWhat::Close(plain(frame)),
            // The library hands these out to those who ask for them alone.
            Message::Frame(_) => return true,
        };
        self.shared.note(self.connection, what);
        true
    }

    async fn answer(&mut self, question: &Value) -> After {
        let id = match self.shared.script.remembers {
            true => format!("resp_{}", self.shared.responses.fetch_add(1, Ordering::Relaxed) + 1),
            false => codex::ID.to_owned(),
        };
        for step in self.steps_for(question) {
            let goes_on = match step {
                WsStep::Send(json) => self.say(&json.to_string(), &id).await,
                WsStep::Raw(text) => self.say(&text, &id).await,
                WsStep::Binary(bytes) => self.ws.send(Message::Binary(bytes)).await.is_ok(),
                WsStep::Ping(bytes) => self.ws.send(Message::Ping(bytes)).await.is_ok(),
                WsStep::Wait(span) => self.during(sleep(span)).await,
                WsStep::Gate(signal) => self.during(signal.wait()).await,
                WsStep::Tell(signal) => {
                    signal.release();
                    true
                }
                WsStep::Silent => self.during(std::future::pending()).await,
                WsStep::Close(code, reason) => {
                    let frame = CloseFrame { code: code.into(), reason: reason.into() };
                    if self.ws.close(Some(frame)).await.is_ok() {
                        self.until_closed().await;
                    }
                    false
                }
                WsStep::Reset => return After::Reset,
                WsStep::Drop => return After::Drop,
            };
            if !goes_on {
                return After::Over;
            }
        }
        After::Next
    }

    fn steps_for(&self, question: &Value) -> Vec<WsStep> {
        let (script, previous) = (&self.shared.script, question["previous_response_id"].as_str());
        if let Some(unknown) = previous.filter(|id| script.remembers && !self.known.contains(*id)) {
            return steps::previous_not_found(unknown);
        }
        let (list, number) = match asks(question) {
            Asks::Prewarm => (&script.prewarms, &self.shared.prewarms),
            Asks::Answer | Asks::Nothing => (&script.creates, &self.shared.creates),
        };
        nth(list, number.fetch_add(1, Ordering::Relaxed)).unwrap_or_default()
    }

    async fn say(&mut self, text: &str, id: &str) -> bool {
        if text.contains(r#""type":"response.completed""#) {
            self.known.insert(id.to_owned());
        }
        self.ws.send(Message::text(text.replace(codex::ID, id))).await.is_ok()
    }

    /// Waits for `what`, hearing what comes meanwhile; false if the connection ended first.
    async fn during(&mut self, what: impl Future<Output = ()>) -> bool {
        let mut what = pin!(what);
        loop {
            tokio::select! {
                () = &mut what => return true,
                heard = self.hear() => if !heard { return false },
            }
        }
    }

    /// Hears what comes until the client has closed too, or has had time to.
    async fn until_closed(&mut self) {
        let all = async { while self.hear().await {} };
        drop(timeout(LINGER, all).await);
    }
}

/// A socket that counts what it receives.
#[derive(Debug)]
struct Counted {
    stream: TcpStream,
    shared: Arc<Shared>,
}

impl Counted {
    /// Reads and drops everything, until the other side has closed or reset.
    async fn drain(&mut self) {
        let mut buffer = [0; 4096];
        while self.read(&mut buffer).await.is_ok_and(|count| count > 0) {}
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        let count = buf.filled().len() - before;
        self.shared.bytes_in.fetch_add(count as u64, Ordering::Relaxed);
        polled
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
