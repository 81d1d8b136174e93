//! A client for tests of the wire that speaks WebSocket: it says what it is told to, and reports what came.
//!
//! Nothing is read unless [`WsClient::next`] is called. Pings are answered there, as every client does.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};

use super::{Header, lines, owned, plain, without_limits};
use crate::wire::{Body, Head, Inbox, find};

const PATIENCE: Duration = Duration::from_secs(10);

/// What came instead of a WebSocket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Zero where no answer came.
    pub status: u16,
    /// In the case and order of the wire.
    pub headers: Vec<(String, String)>,
    /// The body, or why no answer came.
    pub body: String,
}

impl Refusal {
    /// The first value of a header, whatever its case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// The body as JSON; null where it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    fn without_answer(why: impl fmt::Display) -> Self {
        Self { status: 0, headers: Vec::new(), body: why.to_string() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no WebSocket: status {}, {}", self.status, self.body)
    }
}

impl std::error::Error for Refusal {}

impl From<Refusal> for io::Error {
    fn from(refusal: Refusal) -> Self {
        Self::other(refusal)
    }
}

/// Something that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WsGot {
    /// A text message.
    Text(String),
    /// A binary message.
    Binary(Bytes),
    /// A ping; it was answered.
    Ping(Bytes),
    /// A pong.
    Pong(Bytes),
    /// A close frame, with its code and reason if it has any.
    Close(Option<(u16, String)>),
    /// The connection was closed or reset.
    Gone,
    /// Nothing within the client's patience.
    Silence,
}

/// A connection that has become a WebSocket.
#[derive(Debug)]
pub struct WsClient {
    ws: WebSocketStream<TcpStream>,
    headers: Vec<Header>,
    patience: Duration,
}

impl WsClient {
    /// Connects and asks for a WebSocket at `path`, with these headers besides those of the handshake.
    pub async fn connect(addr: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Result<Self, Refusal> {
        let upgrade = timeout(PATIENCE, Self::upgrade(addr, path, headers));
        upgrade.await.unwrap_or_else(|_| Err(Refusal::without_answer("no answer within 10 s")))
    }

    async fn upgrade(addr: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Result<Self, Refusal> {
        let key = generate_key();
        let asked = format!(
            "GET {path} HTTP/1.1\r\nhost: {addr}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: {key}\r\n{}\r\n",
            lines(&owned(headers))
        );
        let stream = connected(addr, &asked).await.map_err(Refusal::without_answer)?;
        let mut inbox = Inbox::new(stream);
        let head = answered(&mut inbox).await.map_err(Refusal::without_answer)?;
        let status = head.start_line.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        if status != 101 {
            let body = body(&mut inbox, &head).await.map_err(Refusal::without_answer)?;
            return Err(Refusal { status, headers: head.headers, body });
        }
        if find(&head.headers, "sec-websocket-accept") != Some(&derive_accept_key(key.as_bytes())) {
            let body = "sec-websocket-accept does not fit the key".to_owned();
            return Err(Refusal { status, headers: head.headers, body });
        }
        let (held, config) = (inbox.held.to_vec(), Some(without_limits()));
        let ws = WebSocketStream::from_partially_read(inbox.reader, held, Role::Client, config).await;
        Ok(Self { ws, headers: head.headers, patience: PATIENCE })
    }

    /// How long [`WsClient::next`] waits.
    #[must_use]
    pub const fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The headers of the 101, in the case and order of the wire.
    #[must_use]
    pub fn headers(&self) -> &[(String, String)] {
        &self.headers
    }

    /// The first value of a header of the 101, whatever its case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// Sends a text message.
    pub async fn send(&mut self, text: impl ToString) -> io::Result<()> {
        self.put(Message::text(text.to_string())).await
    }

    /// Sends a binary message.
    pub async fn send_binary(&mut self, bytes: impl Into<Bytes>) -> io::Result<()> {
        self.put(Message::Binary(bytes.into())).await
    }

    /// Sends a ping.
    pub async fn ping(&mut self, bytes: impl Into<Bytes>) -> io::Result<()> {
        self.put(Message::Ping(bytes.into())).await
    }

    /// Sends a close frame; what came until the other side has closed too is still to be had with
    /// [`WsClient::next`].
    pub async fn close(&mut self, code: u16) -> io::Result<()> {
        self.put(Message::Close(Some(CloseFrame { code: code.into(), reason: "".into() }))).await
    }

    async fn put(&mut self, message: Message) -> io::Result<()> {
        self.ws.send(message).await.map_err(io::Error::other)
    }

    /// Resets the connection.
    pub fn abort(self) -> io::Result<()> {
        self.ws.get_ref().set_zero_linger()
    }

    /// What comes next.
    pub async fn next(&mut self) -> WsGot {
        let Ok(came) = timeout(self.patience, self.ws.next()).await else { return WsGot::Silence };
        match came {
            Some(Ok(Message::Text(text))) => WsGot::Text(text.as_str().to_owned()),
            Some(Ok(Message::Binary(bytes))) => WsGot::Binary(bytes),
            Some(Ok(Message::Ping(bytes))) => {
                // The pong waits in the library until something is written; one that cannot be is met by what is
                // read next.
                drop(self.ws.flush().await);
                WsGot::Ping(bytes)
            }
            Some(Ok(Message::Pong(bytes))) => WsGot::Pong(bytes),
            Some(Ok(Message::Close(frame))) => {
                drop(self.ws.flush().await);
                WsGot::Close(plain(frame))
            }
            Some(Ok(Message::Frame(_)) | Err(_)) | None => WsGot::Gone,
        }
    }

    /// What comes until a response is over, its last frame included: one that completed or failed, an error frame,
    /// a close, or the end of the connection or of the patience.
    pub async fn answer(&mut self) -> Vec<WsGot> {
        let mut came = Vec::new();
        loop {
            let next = self.next().await;
            let over = match &next {
                WsGot::Text(text) => ends(text),
                WsGot::Binary(_) | WsGot::Ping(_) | WsGot::Pong(_) => false,
                WsGot::Close(_) | WsGot::Gone | WsGot::Silence => true,
            };
            came.push(next);
            if over {
                return came;
            }
        }
    }
}

fn ends(text: &str) -> bool {
    let frame: Value = serde_json::from_str(text).unwrap_or_default();
    let last = ["response.completed", "response.failed", "response.incomplete", "error"];
    frame["type"].as_str().is_some_and(|kind| last.contains(&kind))
}

async fn connected(addr: SocketAddr, asked: &str) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(addr).await?;
    stream.set_nodelay(true)?;
    stream.write_all(asked.as_bytes()).await?;
    Ok(stream)
}

async fn answered(inbox: &mut Inbox<TcpStream>) -> io::Result<Head> {
    loop {
        if let Some(head) = inbox.head()? {
            return Ok(head);
        }
        if inbox.fill().await? == 0 {
            return Err(io::Error::other("the connection was closed without an answer"));
        }
    }
}

async fn body(inbox: &mut Inbox<TcpStream>, head: &Head) -> io::Result<String> {
    let (mut rest, mut bytes, mut trailers) = (head.body(Body::UntilClose), Vec::new(), Vec::new());
    loop {
        rest.take(&mut inbox.held, &mut bytes, &mut trailers)?;
        if rest == Body::Over || inbox.fill().await? == 0 {
            return Ok(String::from_utf8_lossy(&bytes).into_owned());
        }
    }
}
