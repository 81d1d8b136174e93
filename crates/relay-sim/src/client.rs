//! A client for tests of the wire: it says what it is told to, to the byte, and reports what came back, when,
//! and how it ended. It follows nothing, repeats nothing, decodes nothing but chunks.
//!
//! Nothing is read unless a reading method is called (or while a request is still being written): not calling
//! one is how a test plays a slow reader.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::io::{AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::wire::{Body, Head, Inbox, find};

const PATIENCE: Duration = Duration::from_secs(10);

/// A request to be written.
#[derive(Debug, Clone)]
pub struct Request {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Option<Bytes>,
    chunk: Option<usize>,
}

impl Request {
    /// A request without a body.
    #[must_use]
    pub fn new(method: &str, target: &str) -> Self {
        Self { method: method.into(), target: target.into(), headers: Vec::new(), body: None, chunk: None }
    }

    /// `GET target`
    #[must_use]
    pub fn get(target: &str) -> Self {
        Self::new("GET", target)
    }

    /// `POST target`
    #[must_use]
    pub fn post(target: &str) -> Self {
        Self::new("POST", target)
    }

    /// One more header, in this case and order. `host` and the framing are added unless they are given.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        self.headers.push((name.to_owned(), value.to_string()));
        self
    }

    /// A JSON body: a `Value`, or JSON as text to the byte.
    #[must_use]
    pub fn json(self, value: impl std::fmt::Display) -> Self {
        self.header("content-type", "application/json").body(value.to_string())
    }

    /// A body of these bytes.
    #[must_use]
    pub fn body(mut self, bytes: impl Into<Bytes>) -> Self {
        self.body = Some(bytes.into());
        self
    }

    /// Sends the body in chunks of `size` bytes instead of with its length.
    #[must_use]
    pub fn chunked(mut self, size: usize) -> Self {
        self.chunk = Some(size.max(1));
        self
    }

    /// The head to the byte.
    #[must_use]
    pub fn head_bytes(&self, host: &str) -> Vec<u8> {
        let mut text = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        let has = |name| find(&self.headers, name).is_some();
        if !has("host") {
            text.push_str(&format!("host: {host}\r\n"));
        }
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = &self.body
            && !has("content-length")
            && !has("transfer-encoding")
        {
            match self.chunk {
                Some(_) => text.push_str("transfer-encoding: chunked\r\n"),
                None => text.push_str(&format!("content-length: {}\r\n", body.len())),
            }
        }
        (text + "\r\n").into_bytes()
    }

    /// The body to the byte, in its chunks if it has any.
    #[must_use]
    pub fn body_bytes(&self) -> Vec<u8> {
        let body = self.body.clone().unwrap_or_default();
        let Some(size) = self.chunk else { return body.to_vec() };
        let mut out = Vec::new();
        for chunk in body.chunks(size) {
            out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            out.extend_from_slice(chunk);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"0\r\n\r\n");
        out
    }
}

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ending {
    /// It has not ended yet.
    #[default]
    Open,
    /// By its own framing.
    Complete,
    /// By the end of the connection, which its framing allows.
    CompleteByClose,
    /// By the end of the connection, before its framing allows it; also before any head.
    Truncated,
    /// By a reset.
    Reset,
    /// Not within the client's patience.
    Timeout,
    /// By bytes that are no chunked framing, or a head without end.
    Malformed,
}

/// An interim answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interim {
    /// 100, 102, 103.
    pub status: u16,
    /// In the case and order of the wire.
    pub headers: Vec<(String, String)>,
    /// When it came, since the request.
    pub at: Duration,
}

/// Bytes of a body that came together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When, since the request.
    pub at: Duration,
    /// How long the body was then.
    pub length: usize,
}

/// What came back, so far or in all. All times are since the request began to be written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    /// Zero while there is no head.
    pub status: u16,
    /// The reason phrase.
    pub reason: String,
    /// `HTTP/1.1`.
    pub version: String,
    /// In the case and order of the wire.
    pub headers: Vec<(String, String)>,
    /// The head to the byte.
    pub raw_head: Vec<u8>,
    /// Interim answers, in order.
    pub interim: Vec<Interim>,
    /// The body, freed from chunks but not from a content coding.
    pub body: Vec<u8>,
    /// When the body came.
    pub arrivals: Vec<Arrival>,
    /// After the last chunk.
    pub trailers: Vec<(String, String)>,
    /// When the head was complete.
    pub head_at: Option<Duration>,
    /// When the ending was known.
    pub ended_at: Option<Duration>,
    /// How it ended.
    pub ending: Ending,
}

impl Answer {
    /// The first value of a header, whatever its case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON; null where it is none.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The events of the body as (name, data), the name empty where there is none. Comments are left out.
    #[must_use]
    pub fn events(&self) -> Vec<(String, String)> {
        let text = self.text().replace("\r\n", "\n").replace('\r', "\n");
        let whole = text.rfind("\n\n").map_or("", |end| &text[..end]);
        whole.split("\n\n").filter_map(event).collect()
    }
}

fn event(block: &str) -> Option<(String, String)> {
    let field = |line: &str, name| {
        let value = line.strip_prefix(name)?.strip_prefix(':')?;
        Some(value.strip_prefix(' ').unwrap_or(value).to_owned())
    };
    let name = block.lines().find_map(|line| field(line, "event"));
    let data: Vec<String> = block.lines().filter_map(|line| field(line, "data")).collect();
    (name.is_some() || !data.is_empty()).then(|| (name.unwrap_or_default(), data.join("\n")))
}

fn position(body: &[u8], bytes: &[u8]) -> Option<usize> {
    body.windows(bytes.len().max(1)).position(|window| window == bytes)
}

/// One connection of a client.
#[derive(Debug)]
pub struct Client {
    inbox: Inbox<ReadHalf<TcpStream>>,
    writer: WriteHalf<TcpStream>,
    host: String,
    patience: Duration,
    asked_at: Instant,
    head_only: bool,
    was_reset: bool,
    body: Option<Body>,
    answer: Answer,
}

impl Client {
    /// Connects.
    pub async fn connect(addr: SocketAddr) -> io::Result<Self> {
        Self::over(TcpStream::connect(addr).await?, addr)
    }

    /// Connects with a receive buffer of about `bytes`, so that not reading is felt soon.
    pub async fn connect_narrow(addr: SocketAddr, bytes: u32) -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(bytes)?;
        Self::over(socket.connect(addr).await?, addr)
    }

    fn over(stream: TcpStream, addr: SocketAddr) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let (reader, writer) = split(stream);
        Ok(Self {
            inbox: Inbox::new(reader),
            writer,
            host: addr.to_string(),
            patience: PATIENCE,
            asked_at: Instant::now(),
            head_only: false,
            was_reset: false,
            body: None,
            answer: Answer::default(),
        })
    }

    /// How long each reading call may take before it ends as [`Ending::Timeout`]; ten seconds unless said.
    #[must_use]
    pub const fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sends a request and reads all of its answer.
    pub async fn ask(&mut self, request: &Request) -> io::Result<Answer> {
        self.send(request).await?;
        Ok(self.read().await)
    }

    /// Sends a request. An answer that comes while it is still being written is kept for reading.
    pub async fn send(&mut self, request: &Request) -> io::Result<()> {
        self.send_head(request).await?;
        self.send_bytes(&request.body_bytes()).await
    }

    /// Sends the head alone; the body is the test's to send, or not.
    pub async fn send_head(&mut self, request: &Request) -> io::Result<()> {
        self.asked_at = Instant::now();
        self.head_only = request.method == "HEAD";
        self.body = None;
        self.answer = Answer::default();
        self.send_bytes(&request.head_bytes(&self.host)).await
    }

    /// Sends these bytes as they are. A connection that breaks is found out by reading, since a service may
    /// answer before it cuts a request short.
    pub async fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Self { inbox, writer, was_reset, .. } = self;
        let writing = writer.write_all(bytes);
        tokio::pin!(writing);
        let mut reads = true;
        loop {
            tokio::select! {
                biased;
                written = &mut writing => {
                    let Err(error) = written else { return Ok(()) };
                    // The kernel tells of a reset once; the reading must still hear of it.
                    *was_reset |= error.kind() == io::ErrorKind::ConnectionReset;
                    let broken = *was_reset || error.kind() == io::ErrorKind::BrokenPipe;
                    return if broken { Ok(()) } else { Err(error) };
                }
                filled = inbox.fill(), if reads => {
                    reads = matches!(filled, Ok(1..));
                    *was_reset |= filled.is_err();
                }
            }
        }
    }

    /// The answer as far as it was read.
    #[must_use]
    pub const fn answer(&self) -> &Answer {
        &self.answer
    }

    /// Reads to the end, and hands the answer out. The connection can be used again if it is still open.
    pub async fn read(&mut self) -> Answer {
        self.read_while(|_| true).await;
        self.body = None;
        std::mem::take(&mut self.answer)
    }

    /// Reads until the head is there. False if the answer ended before.
    pub async fn read_head(&mut self) -> bool {
        self.read_while(|answer| answer.status == 0).await;
        self.answer.status != 0
    }

    /// Reads until the body holds these bytes. False if the answer ended before.
    pub async fn read_until(&mut self, bytes: &[u8]) -> bool {
        self.read_while(|answer| position(&answer.body, bytes).is_none()).await;
        position(&self.answer.body, bytes).is_some()
    }

    /// Reads once, whatever comes. False if the answer has ended.
    pub async fn read_some(&mut self) -> bool {
        let mut once = true;
        self.read_while(|_| std::mem::take(&mut once)).await;
        self.answer.ending == Ending::Open
    }

    /// Waits for the other side to end an idle connection: `CompleteByClose` for a FIN, else `Reset` or
    /// `Timeout`; `Malformed` if it speaks instead.
    pub async fn wait_for_close(&mut self, within: Duration) -> Ending {
        match timeout(within, self.inbox.fill()).await {
            Ok(Ok(0)) => Ending::CompleteByClose,
            Ok(Ok(_)) => Ending::Malformed,
            Ok(Err(_)) => Ending::Reset,
            Err(_) => Ending::Timeout,
        }
    }

    /// Leaves: FIN, then the socket is closed.
    pub async fn leave(mut self) {
        // Nobody is left to tell if the other side was faster.
        drop(self.writer.shutdown().await);
    }

    /// Leaves with a reset.
    pub fn leave_by_reset(self) {
        let stream = self.inbox.reader.unsplit(self.writer);
        if stream.set_zero_linger().is_ok() {
            drop(stream);
        }
    }

    async fn read_while(&mut self, mut more: impl FnMut(&Answer) -> bool) {
        if self.answer.ending == Ending::Timeout {
            self.answer.ending = Ending::Open;
        }
        let deadline = tokio::time::Instant::now() + self.patience;
        self.digest();
        while self.answer.ending == Ending::Open && more(&self.answer) {
            match tokio::time::timeout_at(deadline, self.inbox.fill()).await {
                Ok(Ok(0)) if self.was_reset => self.end(Ending::Reset),
                Ok(Ok(0)) if self.body == Some(Body::UntilClose) => self.end(Ending::CompleteByClose),
                Ok(Ok(0)) => self.end(Ending::Truncated),
                Ok(Ok(_)) => self.digest(),
                Ok(Err(_)) => self.end(Ending::Reset),
                Err(_) => self.end(Ending::Timeout),
            }
        }
    }

    /// Makes what it can of the bytes that are there.
    fn digest(&mut self) {
        if self.answer.ending != Ending::Open {
            return;
        }
        while self.body.is_none() {
            match self.inbox.head() {
                Ok(Some(head)) => self.take_head(head),
                Ok(None) => return,
                Err(_) => return self.end(Ending::Malformed),
            }
        }
        let Some(body) = &mut self.body else { return };
        let before = self.answer.body.len();
        let taken = body.take(&mut self.inbox.held, &mut self.answer.body, &mut self.answer.trailers);
        let over = *body == Body::Over;
        let length = self.answer.body.len();
        if length > before {
            self.answer.arrivals.push(Arrival { at: self.asked_at.elapsed(), length });
        }
        if taken.is_err() {
            self.end(Ending::Malformed);
        } else if over {
            self.end(Ending::Complete);
        }
    }

    fn take_head(&mut self, head: Head) {
        let at = self.asked_at.elapsed();
        let mut words = head.start_line.splitn(3, ' ');
        let version = words.next().unwrap_or_default().to_owned();
        let status = words.next().and_then(|word| word.parse().ok()).unwrap_or_default();
        if matches!(status, 100 | 102..200) {
            self.answer.interim.push(Interim { status, headers: head.headers, at });
            return;
        }
        let bare = self.head_only || matches!(status, 204 | 304);
        self.body = Some(if bare { Body::Over } else { head.body(Body::UntilClose) });
        self.answer.reason = words.next().unwrap_or_default().to_owned();
        self.answer.version = version;
        self.answer.status = status;
        self.answer.headers = head.headers;
        self.answer.raw_head = head.raw;
        self.answer.head_at = Some(at);
    }

    fn end(&mut self, ending: Ending) {
        self.answer.ending = ending;
        self.answer.ended_at = Some(self.asked_at.elapsed());
    }
}
