//! What a pretend upstream does: a [`Script`] of [`Reply`]s, whose bodies are made of [`Event`]s.
//!
//! Only values; [`crate::Upstream`] carries them out.
//!
//! ```
//! use relay_sim::{Event, Reply, Script};
//! use serde_json::json;
//!
//! let busy = Reply::status(503).json(json!({"error": {"code": "server_is_overloaded"}}));
//! let good = Reply::sse([Event::named("response.created", json!({})), Event::data("[DONE]")]);
//! let script = Script::of([busy.clone(), busy, good]).for_path("/v1/models", Reply::status(200).json(json!({})));
//! # drop(script);
//! ```

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;

use crate::upstream::Seen;

type Chooser = Arc<dyn Fn(&Seen, usize) -> Reply + Send + Sync>;

/// Which reply each request gets.
#[derive(Clone)]
pub struct Script {
    source: Source,
    paths: Vec<(String, Reply)>,
    pub(crate) forgets_bodies: bool,
}

#[derive(Clone)]
enum Source {
    InOrder(Vec<Reply>),
    ByRequest(Chooser),
    ByHead(Chooser),
}

impl Script {
    /// These replies in the order of the requests; the last one repeats.
    #[must_use]
    pub fn of(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::from_source(Source::InOrder(replies.into_iter().collect()))
    }

    /// The reply is chosen once the whole request was read; the number counts from zero.
    ///
    /// [`Reply::early`] and [`Reply::reset_before_reading`] come too late here: see [`Script::by_head`].
    #[must_use]
    pub fn by(choose: impl Fn(&Seen, usize) -> Reply + Send + Sync + 'static) -> Self {
        Self::from_source(Source::ByRequest(Arc::new(choose)))
    }

    /// The reply is chosen once the head was read; the body of the `Seen` is still empty.
    #[must_use]
    pub fn by_head(choose: impl Fn(&Seen, usize) -> Reply + Send + Sync + 'static) -> Self {
        Self::from_source(Source::ByHead(Arc::new(choose)))
    }

    const fn from_source(source: Source) -> Self {
        Self { source, paths: Vec::new(), forgets_bodies: false }
    }

    /// Drops the body of a request once it is answered, for runs of very many requests.
    #[must_use]
    pub const fn forgetting_bodies(mut self) -> Self {
        self.forgets_bodies = true;
        self
    }

    /// Requests to `path` (without query) get `reply` and do not use up the script.
    #[must_use]
    pub fn for_path(mut self, path: &str, reply: Reply) -> Self {
        self.paths.push((path.to_owned(), reply));
        self
    }

    pub(crate) fn by_path(&self, path: &str) -> Option<Reply> {
        self.paths.iter().find(|(wanted, _)| wanted == path).map(|(_, reply)| reply.clone())
    }

    /// The reply where the head alone decides.
    pub(crate) fn at_head(&self, seen: &Seen, number: usize) -> Option<Reply> {
        match &self.source {
            Source::InOrder(replies) => {
                let nothing = || Reply::status(500).text("the script has no reply");
                Some(replies.get(number).or(replies.last()).cloned().unwrap_or_else(nothing))
            }
            Source::ByHead(choose) => Some(choose(seen, number)),
            Source::ByRequest(_) => None,
        }
    }

    /// The reply where the body decides too.
    pub(crate) fn at_body(&self, seen: &Seen, number: usize) -> Reply {
        match &self.source {
            Source::ByRequest(choose) => choose(seen, number),
            Source::InOrder(_) | Source::ByHead(_) => Reply::close_after_request(),
        }
    }
}

impl From<Reply> for Script {
    /// The same reply to everything.
    fn from(reply: Reply) -> Self {
        Self::of([reply])
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script").field("paths", &self.paths).finish_non_exhaustive()
    }
}

/// A door a test opens: whoever waits for it goes on, now and later.
#[derive(Debug, Clone)]
pub struct Signal(Arc<watch::Sender<bool>>);

impl Signal {
    /// A closed door.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Opens it, for good.
    pub fn release(&self) {
        self.0.send_replace(true);
    }

    /// Whether it is open.
    #[must_use]
    pub fn released(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is open.
    pub async fn wait(&self) {
        let mut door = self.0.subscribe();
        // The sender lives in `self`, so this cannot fail; if it could, going on is right.
        drop(door.wait_for(|open| *open).await);
    }
}

impl Default for Signal {
    fn default() -> Self {
        Self::new()
    }
}

/// How the lines of an event stream end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LineEnd {
    /// `\n`
    #[default]
    Lf,
    /// `\r\n`
    CrLf,
    /// `\r`
    Cr,
}

impl LineEnd {
    const fn text(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::CrLf => "\r\n",
            Self::Cr => "\r",
        }
    }
}

/// One step of a body: bytes to write, or something to wait for.
#[derive(Debug, Clone)]
pub struct Event(pub(crate) Step);

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Fields { name: Option<String>, data: String },
    Comment(String),
    Raw(Bytes),
    Pause(Duration),
    WaitFor(Signal),
    Tell(Signal),
}

impl Event {
    /// `event: name` and `data: ..`. The data may be JSON or text; each of its lines becomes one.
    #[must_use]
    pub fn named(name: &str, data: impl fmt::Display) -> Self {
        Self(Step::Fields { name: Some(name.to_owned()), data: data.to_string() })
    }

    /// `data: ..` alone.
    #[must_use]
    pub fn data(data: impl fmt::Display) -> Self {
        Self(Step::Fields { name: None, data: data.to_string() })
    }

    /// `: text` and a blank line.
    #[must_use]
    pub fn comment(text: &str) -> Self {
        Self(Step::Comment(text.to_owned()))
    }

    /// These bytes as they are.
    #[must_use]
    pub fn raw(bytes: impl Into<Bytes>) -> Self {
        Self(Step::Raw(bytes.into()))
    }

    /// Writes nothing for this long.
    #[must_use]
    pub const fn pause(span: Duration) -> Self {
        Self(Step::Pause(span))
    }

    /// Writes nothing until the test releases the signal.
    #[must_use]
    pub const fn wait_for(signal: Signal) -> Self {
        Self(Step::WaitFor(signal))
    }

    /// Releases the signal: everything before it is written.
    #[must_use]
    pub const fn tell(signal: Signal) -> Self {
        Self(Step::Tell(signal))
    }

    /// The bytes of this event; empty for one that only waits.
    #[must_use]
    pub fn bytes(&self, line_end: LineEnd) -> Bytes {
        let end = line_end.text();
        match &self.0 {
            Step::Fields { name, data } => {
                let mut text = name.as_ref().map_or_else(String::new, |name| format!("event: {name}{end}"));
                for line in data.split('\n') {
                    text.push_str(&format!("data: {line}{end}"));
                }
                text.push_str(end);
                text.into()
            }
            Step::Comment(comment) => format!(": {comment}{end}{end}").into(),
            Step::Raw(bytes) => bytes.clone(),
            Step::Pause(_) | Step::WaitFor(_) | Step::Tell(_) => Bytes::new(),
        }
    }
}

/// The bytes of a whole event stream with `\n`, for comparing with what arrived.
#[must_use]
pub fn stream_bytes(events: &[Event]) -> Vec<u8> {
    events.iter().flat_map(|event| event.bytes(LineEnd::Lf)).collect()
}

/// What one request gets.
#[derive(Debug, Clone)]
pub struct Reply {
    pub(crate) early: bool,
    pub(crate) prelude: Vec<Prelude>,
    pub(crate) act: Act,
    pub(crate) status: u16,
    pub(crate) reason: Option<String>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<Event>,
    pub(crate) line_end: LineEnd,
    pub(crate) framing: Framing,
    pub(crate) trailers: Vec<(String, String)>,
    pub(crate) cut: Vec<usize>,
    pub(crate) cut_wire: Vec<usize>,
    pub(crate) spacing: Duration,
    pub(crate) end: End,
}

/// What happens before the head, in the order it was asked for.
#[derive(Debug, Clone)]
pub(crate) enum Prelude {
    Pause(Duration),
    WaitFor(Signal),
    Interim(u16, Vec<(String, String)>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Answer,
    AnswerWithoutHead,
    ResetBeforeReading,
    ResetAfterRequest,
    CloseAfterRequest,
    Silence,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    TrueLength,
    Chunked,
    Length(u64),
    CloseDelimited,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The default: in order, and the connection stays open for the next request.
    KeepAlive,
    Close,
    CloseUnannounced,
    FinWithoutTerminator,
    Reset,
    Hang,
    Echo,
}

impl Reply {
    const fn new(act: Act, status: u16) -> Self {
        Self {
            early: false,
            prelude: Vec::new(),
            act,
            status,
            reason: None,
            headers: Vec::new(),
            body: Vec::new(),
            line_end: LineEnd::Lf,
            framing: Framing::TrueLength,
            trailers: Vec::new(),
            cut: Vec::new(),
            cut_wire: Vec::new(),
            spacing: Duration::ZERO,
            end: End::KeepAlive,
        }
    }

    /// An answer with this status and, until something is added, an empty body.
    #[must_use]
    pub const fn status(status: u16) -> Self {
        Self::new(Act::Answer, status)
    }

    /// 200 with an event stream, chunked: one chunk and one write for each event.
    #[must_use]
    pub fn sse(events: impl IntoIterator<Item = Event>) -> Self {
        Self::status(200).header("content-type", "text/event-stream").events(events)
    }

    /// These bytes instead of a head and a body.
    #[must_use]
    pub fn raw(bytes: impl Into<Bytes>) -> Self {
        let mut reply = Self::new(Act::AnswerWithoutHead, 0);
        reply.body = vec![Event::raw(bytes)];
        reply
    }

    /// Resets the connection when it has the head of the request, without reading a body.
    #[must_use]
    pub const fn reset_before_reading() -> Self {
        Self::new(Act::ResetBeforeReading, 0)
    }

    /// Reads the whole request, then resets the connection.
    #[must_use]
    pub const fn reset_after_request() -> Self {
        Self::new(Act::ResetAfterRequest, 0)
    }

    /// Reads the whole request, then closes the connection in order.
    #[must_use]
    pub const fn close_after_request() -> Self {
        Self::new(Act::CloseAfterRequest, 0)
    }

    /// Reads the whole request, then does nothing until the client leaves.
    #[must_use]
    pub const fn silence() -> Self {
        Self::new(Act::Silence, 0)
    }

    /// Answers before it reads the body of the request; kept alive, it reads the body after the answer.
    #[must_use]
    pub const fn early(mut reply: Self) -> Self {
        reply.early = true;
        reply
    }

    /// The reason phrase, instead of the usual one; may be empty.
    #[must_use]
    pub fn reason(mut self, reason: &str) -> Self {
        self.reason = Some(reason.to_owned());
        self
    }

    /// One more header, written in this case and order. A framing header given here replaces the true one.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl fmt::Display) -> Self {
        self.headers.push((name.to_owned(), value.to_string()));
        self
    }

    /// A JSON body (a `Value`, or JSON as text to the byte).
    #[must_use]
    pub fn json(self, value: impl fmt::Display) -> Self {
        self.typed("application/json").bytes(value.to_string())
    }

    /// A text body.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        self.typed("text/plain; charset=utf-8").bytes(text.into())
    }

    /// An HTML body.
    #[must_use]
    pub fn html(self, text: impl Into<String>) -> Self {
        self.typed("text/html; charset=UTF-8").bytes(text.into())
    }

    /// A body of these bytes, with their true length and no content type.
    #[must_use]
    pub fn bytes(mut self, bytes: impl Into<Bytes>) -> Self {
        self.body = vec![Event::raw(bytes)];
        self
    }

    /// A chunked body; one chunk and one write for each piece.
    #[must_use]
    pub fn bytes_stream(self, pieces: Vec<Vec<u8>>) -> Self {
        self.events(pieces.into_iter().map(Event::raw))
    }

    /// A chunked body of events, on top of whatever head was built.
    #[must_use]
    pub fn events(mut self, events: impl IntoIterator<Item = Event>) -> Self {
        self.body = events.into_iter().collect();
        self.chunked()
    }

    /// `transfer-encoding: chunked`.
    #[must_use]
    pub const fn chunked(mut self) -> Self {
        self.framing = Framing::Chunked;
        self
    }

    /// `content-length: n`, true or not.
    #[must_use]
    pub const fn length(mut self, n: u64) -> Self {
        self.framing = Framing::Length(n);
        self
    }

    /// Neither length nor chunks: the end of the connection is the end of the body.
    #[must_use]
    pub fn close_delimited(mut self) -> Self {
        self.framing = Framing::CloseDelimited;
        if self.end == End::KeepAlive { self.close() } else { self }
    }

    /// A trailer after the last chunk.
    #[must_use]
    pub fn trailer(mut self, name: &str, value: impl fmt::Display) -> Self {
        self.trailers.push((name.to_owned(), value.to_string()));
        self
    }

    /// How the lines of the events end.
    #[must_use]
    pub const fn line_end(mut self, line_end: LineEnd) -> Self {
        self.line_end = line_end;
        self
    }

    /// Cuts the body into chunks (or writes) of these sizes; the last size repeats. `[1]`: byte by byte.
    #[must_use]
    pub fn cut(mut self, sizes: impl IntoIterator<Item = usize>) -> Self {
        self.cut = sizes.into_iter().filter(|size| *size > 0).collect();
        self
    }

    /// Cuts the bytes of the wire, head and chunk sizes included, into writes of these sizes.
    #[must_use]
    pub fn cut_wire(mut self, sizes: impl IntoIterator<Item = usize>) -> Self {
        self.cut_wire = sizes.into_iter().filter(|size| *size > 0).collect();
        self
    }

    /// Waits this long after every write, so that the other side sees them apart.
    #[must_use]
    pub const fn spaced(mut self, span: Duration) -> Self {
        self.spacing = span;
        self
    }

    /// Waits before what comes next: the head, or an interim answer asked for later.
    #[must_use]
    pub fn after(mut self, span: Duration) -> Self {
        self.prelude.push(Prelude::Pause(span));
        self
    }

    /// Like [`Reply::after`], but until the test releases the signal.
    #[must_use]
    pub fn when(mut self, signal: Signal) -> Self {
        self.prelude.push(Prelude::WaitFor(signal));
        self
    }

    /// An interim answer (100, 102, 103) before the head.
    #[must_use]
    pub fn interim(self, status: u16) -> Self {
        self.interim_with(status, &[])
    }

    /// An interim answer with headers.
    #[must_use]
    pub fn interim_with(mut self, status: u16, headers: &[(&str, &str)]) -> Self {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.prelude.push(Prelude::Interim(status, headers));
        self
    }

    /// Says `connection: close`, ends the answer in order, and closes.
    #[must_use]
    pub const fn close(self) -> Self {
        self.ending(End::Close)
    }

    /// Ends the answer in order and closes without having said so: the client's connection goes stale.
    #[must_use]
    pub const fn close_unannounced(self) -> Self {
        self.ending(End::CloseUnannounced)
    }

    /// Closes in order (FIN) but without the last chunk.
    #[must_use]
    pub const fn fin_without_terminator(self) -> Self {
        self.ending(End::FinWithoutTerminator)
    }

    /// Resets the connection (RST) after the last byte, without the last chunk. Bytes the client has not
    /// received by then are lost; where that matters, end the body with [`Event::wait_for`].
    #[must_use]
    pub const fn reset(self) -> Self {
        self.ending(End::Reset)
    }

    /// Writes no last chunk and nothing else until the client leaves.
    #[must_use]
    pub const fn hang(self) -> Self {
        self.ending(End::Hang)
    }

    /// After the answer sends back every byte that comes, until the client leaves. With status 101: a tunnel.
    #[must_use]
    pub const fn echo(self) -> Self {
        self.ending(End::Echo)
    }

    const fn ending(mut self, end: End) -> Self {
        self.end = end;
        self
    }

    fn typed(self, content_type: &str) -> Self {
        if self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
            return self;
        }
        self.header("content-type", content_type)
    }
}
