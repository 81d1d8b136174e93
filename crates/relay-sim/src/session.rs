//! One connection of a pretend upstream: reads requests, carries out replies, watches for the client to leave.
//!
//! ```text
//!  head --> chosen --> body --> prelude --> answer --> ending
//!    ^        | early: the body comes after the answer   |
//!    '----------------- kept alive ----------------------'
//! ```

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::script::{Act, End, Event, Framing, Prelude, Reply, Step};
use crate::upstream::Shared;
use crate::wire::{Body, Inbox, find, has_token};

/// How long a closed connection waits for the client to close its side, so that no reset destroys the answer.
const LINGER: Duration = Duration::from_secs(5);
/// What a client may send ahead of its turn before nobody looks any more.
const MOST_AHEAD: usize = 4 << 20;

/// A connection that can be reset.
pub(crate) trait Wire: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// The socket below.
    fn tcp(&self) -> &TcpStream;
}

impl Wire for TcpStream {
    fn tcp(&self) -> &TcpStream {
        self
    }
}

/// Serves one connection until it ends.
pub(crate) async fn run<S: Wire>(stream: S, shared: Arc<Shared>, connection: u64) {
    if stream.tcp().set_nodelay(true).is_err() {
        return;
    }
    let (reader, writer) = split(stream);
    let mut session = Session { inbox: Inbox::new(reader), writer, shared, connection, last: None };
    // Every way a connection can break has been noted where it happened.
    while let Ok(after) = session.serve_one().await {
        match after {
            After::Next => {}
            After::Close => return session.close().await,
            After::Reset => return session.reset(),
        }
    }
}

enum After {
    Next,
    Close,
    Reset,
}

struct Session<S> {
    inbox: Inbox<ReadHalf<S>>,
    writer: WriteHalf<S>,
    shared: Arc<Shared>,
    connection: u64,
    /// The request served last.
    last: Option<usize>,
}

/// What the answer must know of its request.
struct Asked {
    index: usize,
    head_only: bool,
    persistent: bool,
    expects_continue: bool,
    body: Body,
}

impl<S: Wire> Session<S> {
    async fn serve_one(&mut self) -> io::Result<After> {
        let asked = self.read_head().await?;
        let choice = self.shared.choose(asked.index);
        if let Ok(reply) = &choice
            && (reply.early || reply.act == Act::ResetBeforeReading)
        {
            self.shared.begun();
            let after = self.carry_out(reply, &asked, false).await?;
            if matches!(after, After::Next) {
                self.read_body(&asked).await?;
            }
            return Ok(after);
        }
        if asked.expects_continue {
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        self.read_body(&asked).await?;
        let reply = choice.unwrap_or_else(|number| self.shared.choose_by_body(asked.index, number));
        self.shared.begun();
        self.carry_out(&reply, &asked, true).await
    }

    async fn read_head(&mut self) -> io::Result<Asked> {
        let head = loop {
            if let Some(head) = self.inbox.head()? {
                break head;
            }
            self.fill().await?;
        };
        let body = head.body(Body::Over);
        let connection = find(&head.headers, "connection").unwrap_or_default();
        let persistent = !head.start_line.ends_with("HTTP/1.0") && !has_token(connection, "close");
        let expects_continue =
            find(&head.headers, "expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue"));
        let head_only = head.start_line.starts_with("HEAD ");
        let index = self.shared.note(head, self.connection);
        self.last = Some(index);
        Ok(Asked { index, head_only, persistent, expects_continue, body })
    }

    async fn read_body(&mut self, asked: &Asked) -> io::Result<()> {
        let (mut body, mut bytes, mut trailers) = (asked.body, Vec::new(), Vec::new());
        let ending = loop {
            if let Err(error) = body.take(&mut self.inbox.held, &mut bytes, &mut trailers) {
                break Err(error);
            }
            if body == Body::Over {
                break Ok(());
            }
            if let Err(error) = self.fill().await {
                break Err(error);
            }
        };
        self.shared.body(asked.index, bytes, ending.is_ok());
        ending
    }

    /// Waits for more bytes; the end of the connection is an error, and noted.
    async fn fill(&mut self) -> io::Result<()> {
        match self.inbox.fill().await {
            Ok(0) => Err(self.gone(io::ErrorKind::UnexpectedEof.into())),
            Ok(_) => Ok(()),
            Err(error) => Err(self.gone(error)),
        }
    }

    fn gone(&self, error: io::Error) -> io::Error {
        if let Some(index) = self.last {
            self.shared.client_gone(index);
        }
        error
    }

    async fn carry_out(&mut self, reply: &Reply, asked: &Asked, watched: bool) -> io::Result<After> {
        let mut out =
            Out { session: self, watched, cut: Cutter::new(&reply.cut_wire), spacing: reply.spacing };
        out.prelude(reply).await?;
        let after = match reply.act {
            Act::Answer => out.answer(reply, asked).await?,
            Act::AnswerWithoutHead => {
                out.pieces(reply, false).await?;
                out.ending(reply.end, asked).await?
            }
            Act::ResetBeforeReading | Act::ResetAfterRequest => After::Reset,
            Act::CloseAfterRequest => After::Close,
            Act::Silence => {
                out.during(std::future::pending::<()>()).await?;
                After::Close
            }
        };
        self.shared.answered(asked.index);
        Ok(after)
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all(bytes).await?;
        self.writer.flush().await
    }

    /// Closes in order: what the client still sends is read and dropped, until it closes too.
    async fn close(mut self) {
        if self.writer.shutdown().await.is_err() {
            return;
        }
        let drained = async {
            while self.fill().await.is_ok() {
                self.inbox.held.clear();
            }
        };
        // A client that keeps its side open for longer has had its chance.
        drop(timeout(LINGER, drained).await);
    }

    fn reset(self) {
        let stream = self.inbox.reader.unsplit(self.writer);
        if stream.tcp().set_zero_linger().is_ok() {
            drop(stream);
        }
    }
}

/// The writing of one reply.
struct Out<'a, S> {
    session: &'a mut Session<S>,
    /// Whether the client is watched while writing; not while its body waits to be read.
    watched: bool,
    cut: Cutter,
    spacing: Duration,
}

impl<S: Wire> Out<'_, S> {
    async fn prelude(&mut self, reply: &Reply) -> io::Result<()> {
        for step in &reply.prelude {
            match step {
                Prelude::Pause(span) => self.during(sleep(*span)).await?,
                Prelude::WaitFor(signal) => self.during(signal.wait()).await?,
                Prelude::Interim(status, headers) => {
                    let lines = header_lines(headers);
                    let head = format!("HTTP/1.1 {status} {}\r\n{lines}\r\n", usual_reason(*status));
                    self.put(head.as_bytes()).await?;
                }
            }
        }
        Ok(())
    }

    async fn answer(&mut self, reply: &Reply, asked: &Asked) -> io::Result<After> {
        let bare = asked.head_only || matches!(reply.status, 100..200 | 204 | 304);
        self.put(head(reply, asked).as_bytes()).await?;
        if !bare {
            let chunked = reply.framing == Framing::Chunked;
            self.pieces(reply, chunked).await?;
            if chunked && matches!(reply.end, End::KeepAlive | End::Close | End::CloseUnannounced) {
                self.put(format!("0\r\n{}\r\n", header_lines(&reply.trailers)).as_bytes()).await?;
            }
        }
        self.ending(reply.end, asked).await
    }

    async fn ending(&mut self, end: End, asked: &Asked) -> io::Result<After> {
        match end {
            End::KeepAlive if asked.persistent => Ok(After::Next),
            End::KeepAlive | End::Close | End::CloseUnannounced | End::FinWithoutTerminator => {
                Ok(After::Close)
            }
            End::Reset => Ok(After::Reset),
            End::Hang => {
                self.session.shared.answered(asked.index);
                self.during(std::future::pending::<()>()).await?;
                Ok(After::Close)
            }
            End::Echo => {
                self.session.shared.answered(asked.index);
                loop {
                    let bytes = self.session.inbox.held.split();
                    self.session.write(&bytes).await?;
                    self.session.fill().await?;
                }
            }
        }
    }

    /// The body, step by step.
    async fn pieces(&mut self, reply: &Reply, chunked: bool) -> io::Result<()> {
        let mut cut = Cutter::new(&reply.cut);
        for Event(step) in &reply.body {
            match step {
                Step::Pause(span) => self.during(sleep(*span)).await?,
                Step::WaitFor(signal) => self.during(signal.wait()).await?,
                Step::Tell(signal) => signal.release(),
                Step::Fields { .. } | Step::Comment(_) | Step::Raw(_) => {
                    let bytes = Event(step.clone()).bytes(reply.line_end);
                    let mut rest = bytes.as_ref();
                    while let Some(piece) = cut.next(&mut rest) {
                        if chunked {
                            self.put(&[format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat())
                                .await?;
                        } else {
                            self.put(piece).await?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes, in the pieces of the wire that were asked for.
    async fn put(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while let Some(piece) = self.cut.next(&mut bytes) {
            self.put_piece(piece).await?;
            if !self.spacing.is_zero() {
                self.during(sleep(self.spacing)).await?;
            }
        }
        Ok(())
    }

    async fn put_piece(&mut self, piece: &[u8]) -> io::Result<()> {
        let Session { inbox, writer, .. } = &mut *self.session;
        let written = async {
            writer.write_all(piece).await?;
            writer.flush().await
        };
        let outcome = tokio::select! {
            biased;
            error = left(inbox), if self.watched => Err(error),
            written = written => written,
        };
        outcome.map_err(|error| self.session.gone(error))
    }

    /// Waits, unless the client leaves first.
    async fn during(&mut self, waiting: impl Future<Output = ()>) -> io::Result<()> {
        let outcome = tokio::select! {
            biased;
            error = left(&mut self.session.inbox), if self.watched => Err(error),
            () = waiting => Ok(()),
        };
        outcome.map_err(|error| self.session.gone(error))
    }
}

/// Returns when the client has left. What it sends meanwhile is kept for its next request.
async fn left<R: AsyncRead + Unpin>(inbox: &mut Inbox<R>) -> io::Error {
    while inbox.held.len() < MOST_AHEAD {
        match inbox.fill().await {
            Ok(0) => return io::ErrorKind::UnexpectedEof.into(),
            Ok(_) => {}
            Err(error) => return error,
        }
    }
    std::future::pending().await
}

/// Cuts bytes at given sizes; without sizes it leaves them whole.
struct Cutter {
    sizes: Vec<usize>,
    at: usize,
    left: usize,
}

impl Cutter {
    fn new(sizes: &[usize]) -> Self {
        Self { sizes: sizes.to_vec(), at: 0, left: sizes.first().copied().unwrap_or(usize::MAX) }
    }

    fn next<'b>(&mut self, rest: &mut &'b [u8]) -> Option<&'b [u8]> {
        if rest.is_empty() {
            return None;
        }
        let (piece, after) = rest.split_at(self.left.min(rest.len()));
        *rest = after;
        if !self.sizes.is_empty() {
            self.left -= piece.len();
            if self.left == 0 {
                self.at = (self.at + 1).min(self.sizes.len() - 1);
                self.left = self.sizes[self.at];
            }
        }
        Some(piece)
    }
}

fn head(reply: &Reply, asked: &Asked) -> String {
    let reason = reply.reason.as_deref().unwrap_or_else(|| usual_reason(reply.status));
    let mut text = format!("HTTP/1.1 {} {reason}\r\n{}", reply.status, header_lines(&reply.headers));
    let has = |name| find(&reply.headers, name).is_some();
    if !has("content-length") && !has("transfer-encoding") && !matches!(reply.status, 100..200 | 204 | 304) {
        let whole = || reply.body.iter().map(|event| event.bytes(reply.line_end).len()).sum::<usize>();
        match reply.framing {
            Framing::TrueLength => text.push_str(&format!("content-length: {}\r\n", whole())),
            Framing::Length(length) => text.push_str(&format!("content-length: {length}\r\n")),
            Framing::Chunked => text.push_str("transfer-encoding: chunked\r\n"),
            Framing::CloseDelimited => {}
        }
    }
    let closes = reply.end == End::Close || (reply.end == End::KeepAlive && !asked.persistent);
    if closes && !has("connection") {
        text.push_str("connection: close\r\n");
    }
    text + "\r\n"
}

fn header_lines(headers: &[(String, String)]) -> String {
    headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect()
}

const fn usual_reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        102 => "Processing",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        408 => "Request Timeout",
        409 => "Conflict",
        413 => "Payload Too Large",
        422 => "Unprocessable Entity",
        425 => "Too Early",
        426 => "Upgrade Required",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        507 => "Insufficient Storage",
        _ => "",
    }
}
