//! Listens to an answer: holds its beginning back until it is output, a failure, or past a limit; after that it
//! keeps watching for the end that the protocol asks for, and for the one event that is withheld from Codex.
//!
//! It is told a decoded copy of the bytes and never alters, keeps or returns any: the caller holds what it
//! received and forwards it as it came.
//!
//! ```text
//!  Holding --output, size, time--> Passing --terminal event--> Passing (ended)
//!     \--failure--> Fault              \--fatal capacity event, Codex--> Cut
//! ```

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, StatusCode, header};

use crate::dialect::{Because, Dialect, Heard, Parts, Reply, Rule};
use crate::dialect::{is_completed, is_failure_by, judge_and_tell, responses_socket};
use crate::evidence::{Evidence, Says};
use crate::failure::{Failure, Told};
use crate::fault::Fault;
use crate::json;
use crate::moment::Moment;
use crate::sse;
use crate::usage::{Usage, usage};

mod splitter;

use splitter::Splitter;

/// How much of an error answer's body is read to judge it; more says nothing that the first part did not.
const ERROR_BODY: usize = 64 * 1024;

/// How large one event may be and still be read whole; more, where more is held. A fatal event has a few hundred
/// bytes, or those of the request besides: the response in it may repeat instructions and tools.
const EVENT: usize = 256 * 1024;

/// How much of an answer's beginning is held back, and for how long after its head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// The most bytes.
    pub bytes: usize,
    /// The longest time; `None`: as long as the upstream lives.
    pub time: Option<Duration>,
}

/// What the listener is told at the head of an answer.
#[derive(Debug, Clone)]
pub struct Head {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// No body follows: HEAD, 204, 304.
    pub bodiless: bool,
    /// When the send began.
    pub sent: Moment,
    /// When the head arrived.
    pub arrived: Moment,
}

/// What the listener knows of the request.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// The dialect.
    pub dialect: &'static dyn Dialect,
    /// The request asks a model for an answer.
    pub generation: bool,
    /// The request asks for a stream.
    pub streams: bool,
    /// The limits of holding back.
    pub hold: Hold,
    /// Codes of fatal capacity events that are withheld after commit; empty: none is.
    pub withhold: &'static [&'static str],
}

/// What is to be done after what was heard.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Keep what came and go on reading.
    Hold,
    /// Forward what was held and what comes.
    Pass,
    /// The send failed.
    Fault(Box<Failure>),
    /// Forward the decoded stream up to this offset, then cut.
    Cut {
        /// The first byte, counted in decoded bytes, that is withheld.
        at: u64,
        /// The fault in the event.
        fault: Box<Failure>,
    },
}

#[derive(Debug, Clone)]
enum Shape {
    /// An answer that tells of a failure by its status: its body is read to judge it.
    Error(Vec<u8>),
    /// A 2xx JSON answer, which may hide an error.
    Whole(Vec<u8>),
    /// What its label makes of it, until its first byte of substance says what it is.
    Unclear(sse::Splitter, Label),
    /// A stream of events, or of JSON values.
    Events(Splitter),
    /// Nothing that can be read.
    Opaque,
}

/// What the label of an answer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    /// Events, or nothing of use.
    Events,
    /// JSON values, one after another.
    Values,
    /// A page.
    Page,
}

/// The listener of one answer.
#[derive(Debug, Clone)]
pub struct Preamble {
    asked: Asked,
    head: Head,
    /// When something of it was heard last.
    heard: Moment,
    shape: Shape,
    passing: bool,
    held: usize,
    events: u64,
    /// The last word was heard.
    ended: bool,
    /// It was `response.completed`.
    completed: bool,
    parts: Parts,
    /// The last event was too large to be read, and may have been the last word.
    unread: bool,
    /// A failure that was told after output.
    late: Option<Box<Failure>>,
    wall: SystemTime,
    rules: Arc<[Arc<Rule>]>,
    because: Option<Because>,
    usage: Option<Usage>,
}

impl Preamble {
    /// A listener for an answer whose head has arrived.
    #[must_use]
    pub fn new(asked: Asked, head: Head, wall: SystemTime) -> Self {
        let shape = shape(&asked, &head);
        Self {
            asked,
            heard: head.arrived,
            head,
            shape,
            passing: false,
            held: 0,
            events: 0,
            ended: false,
            completed: false,
            parts: Parts::default(),
            unread: false,
            late: None,
            wall,
            rules: Arc::default(),
            because: None,
            usage: None,
        }
    }

    /// A listener for the messages that answer one on a WebSocket, which was sent at that moment. Each is to be heard
    /// whole.
    #[must_use]
    pub fn of_messages(asked: Asked, sent: Moment, wall: SystemTime) -> Self {
        let head =
            Head { status: StatusCode::OK, headers: HeaderMap::new(), bodiless: false, sent, arrived: sent };
        let mut preamble = Self::new(asked, head, wall);
        preamble.shape = Shape::Events(Splitter::Messages(0));
        preamble
    }

    /// The same, by the user's own rules before all others.
    #[must_use]
    pub fn by(mut self, rules: Arc<[Arc<Rule>]>) -> Self {
        self.rules = rules;
        self
    }

    /// Why the last failure was taken for what it was, where an answer told of it.
    #[must_use]
    pub const fn because(&self) -> Option<&Because> {
        self.because.as_ref()
    }

    /// The tokens that the answer says it took, as far as it was heard.
    #[must_use]
    pub const fn usage(&self) -> Option<Usage> {
        self.usage
    }

    /// What to do at the head alone.
    #[must_use]
    pub fn at_head(&mut self) -> Verdict {
        match self.shape {
            Shape::Opaque if self.is_hollow() => self.broken(Fault::EmptyAnswer),
            _ if self.head.status.is_success() && self.is_failure(Told::InBody, &[]) => {
                Verdict::Fault(Box::new(self.judged(Told::InBody, &[])))
            }
            Shape::Opaque => self.pass(),
            Shape::Error(_) if self.head.bodiless => {
                Verdict::Fault(Box::new(self.judged(Told::ByStatus, &[])))
            }
            Shape::Error(_) | Shape::Whole(_) | Shape::Unclear(..) | Shape::Events(_) => Verdict::Hold,
        }
    }

    /// What the head alone says of an answer whose body nobody reads; `None`: it is none of an error.
    #[must_use]
    pub fn unread(&mut self) -> Option<Failure> {
        (self.head.status.as_u16() >= 400).then(|| self.judged(Told::ByStatus, &[]))
    }

    /// A login page, a captive portal, an edge: not an answer of the model service.
    fn page(&self) -> Verdict {
        let mut failure = Failure::of_transport(Fault::ServerFailed, Evidence::Failed);
        failure.evidence = Says::Failed.after(self.head.arrived.since(self.head.sent), false);
        failure.told = Told::ByStatus;
        failure.status = Some(self.head.status.as_u16());
        Verdict::Fault(Box::new(failure))
    }

    /// A success that has no body although an answer of a model was asked for.
    fn is_hollow(&self) -> bool {
        let has_none = matches!(self.head.status, StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT);
        self.asked.generation && self.head.bodiless && self.head.status.is_success() && !has_none
    }

    /// A failed answer goes back to the client after all: its bytes pass from here on, what is fatal in it too.
    pub fn release(&mut self) {
        self.passing = true;
        self.asked.withhold = &[];
        if !matches!(self.shape, Shape::Events(_)) {
            self.shape = Shape::Opaque;
        }
    }

    /// Whether a [`Verdict::Cut`] may come.
    #[must_use]
    pub const fn withholds(&self) -> bool {
        !self.asked.withhold.is_empty()
    }

    /// Whether bytes still reach the client; false while they are held.
    #[must_use]
    pub const fn is_passing(&self) -> bool {
        self.passing
    }

    /// How many events, or other signs that the answer advances, were heard so far. Comments and heartbeats are
    /// none; an answer that is no stream of events advances with every byte.
    #[must_use]
    pub const fn progress(&self) -> u64 {
        self.events
    }

    /// When to stop holding although nothing was heard.
    #[must_use]
    pub fn due(&self) -> Option<Moment> {
        let judging = matches!(self.shape, Shape::Error(_));
        match self.asked.hold.time {
            Some(time) if !self.passing => Some(self.head.arrived + time),
            // An error answer that trickles is judged by what came, for every client.
            None if judging && !self.passing => Some(self.head.arrived + Duration::from_secs(20)),
            Some(_) | None => None,
        }
    }

    /// The time to stop holding has come.
    #[must_use]
    pub fn timed_out(&mut self) -> Verdict {
        match &self.shape {
            Shape::Error(body) => {
                let body = body.clone();
                Verdict::Fault(Box::new(self.judge_error(&body)))
            }
            Shape::Whole(_) | Shape::Unclear(..) | Shape::Events(_) | Shape::Opaque => self.pass(),
        }
    }

    /// The copy cannot be decoded: from here on the bytes are opaque.
    #[must_use]
    pub fn undecodable(&mut self) -> Verdict {
        if let Shape::Error(body) = &mut self.shape {
            let body = std::mem::take(body);
            return Verdict::Fault(Box::new(self.judge_error(&body)));
        }
        // Whose bytes say nothing is what its label says.
        let is_page = !self.passing && matches!(self.shape, Shape::Unclear(_, Label::Page));
        self.shape = Shape::Opaque;
        if is_page { self.page() } else { self.pass() }
    }

    /// More of the answer: `decoded` is a plain copy of `wire` bytes that arrived.
    #[must_use]
    pub fn hear(&mut self, decoded: &[u8], wire: usize, now: Moment) -> Verdict {
        self.heard = now;
        if !self.passing {
            self.held = self.held.saturating_add(wire.max(decoded.len()));
        }
        let limit = self.asked.hold.bytes;
        let Some(decoded) = self.clear_up(decoded) else { return self.page() };
        match &mut self.shape {
            Shape::Error(body) => {
                body.extend_from_slice(
                    &decoded[..decoded.len().min(ERROR_BODY - body.len().min(ERROR_BODY))],
                );
                if body.len() >= ERROR_BODY || self.held > limit {
                    let body = std::mem::take(body);
                    return Verdict::Fault(Box::new(self.judge_error(&body)));
                }
                Verdict::Hold
            }
            Shape::Whole(body) => {
                self.events += 1;
                if self.passing {
                    return Verdict::Pass;
                }
                if self.held > limit {
                    return self.pass();
                }
                body.extend_from_slice(decoded);
                Verdict::Hold
            }
            Shape::Unclear(..) if self.passing => Verdict::Pass,
            Shape::Unclear(..) if self.held > limit => self.pass(),
            Shape::Unclear(..) => Verdict::Hold,
            Shape::Events(_) => self.hear_events(decoded),
            Shape::Opaque => {
                self.events += 1;
                self.pass()
            }
        }
    }

    /// No event starts with a bracket, and no JSON with anything else: the first byte says what a body is, whatever
    /// its label says (a gateway that turns an error into a 200 often leaves the label of the stream on it, and some
    /// label a stream as JSON). A page is what both call one. Answers with what is to be read, a body from its bracket
    /// on, since what is blank before it may have come by itself; `None`: it is a page.
    fn clear_up<'d>(&mut self, decoded: &'d [u8]) -> Option<&'d [u8]> {
        let Shape::Unclear(splitter, label) = &mut self.shape else { return Some(decoded) };
        let is_blank = |byte: &u8| byte.is_ascii_whitespace() || b"\xEF\xBB\xBF".contains(byte);
        let Some(at) = decoded.iter().position(|byte| !is_blank(byte)) else {
            // The splitter counts the bytes, and blank ones are no event.
            splitter.push(decoded, |_| {});
            return Some(decoded);
        };
        let are_values = *label == Label::Values || self.asked.dialect.streams_values();
        match decoded[at] {
            b'{' | b'[' => {
                self.shape = if self.asked.streams && are_values {
                    Shape::Events(Splitter::values(EVENT, splitter.offset() + at as u64))
                } else {
                    Shape::Whole(Vec::new())
                };
                Some(&decoded[at..])
            }
            b'<' if *label == Label::Page => {
                // One that came too late for a verdict passes as it is.
                self.shape = Shape::Opaque;
                self.passing.then_some(decoded)
            }
            _ if *label == Label::Page && !self.asked.streams => {
                self.shape = Shape::Whole(Vec::new());
                Some(decoded)
            }
            _ => {
                self.shape = Shape::Events(Splitter::Events(splitter.clone()));
                Some(decoded)
            }
        }
    }

    fn hear_events(&mut self, decoded: &[u8]) -> Verdict {
        let Shape::Events(splitter) = &mut self.shape else { return self.pass() };
        let dialect = self.asked.dialect;
        // The first failure before output, or the first fatal one after it; both end the listening.
        let mut failed: Option<(u64, Vec<u8>)> = None;
        let mut late: Option<Vec<u8>> = None;
        let (mut passing, mut events) = (self.passing, self.events);
        let (mut ended, mut unread, mut completed) = (self.ended, self.unread, self.completed);
        let (withhold, parts) = (self.asked.withhold, &mut self.parts);
        let (rules, head, wall) = (&self.rules, &self.head, self.wall);
        let spent = &mut self.usage;
        splitter.push(decoded, |event| {
            if failed.is_some() {
                return;
            }
            events += 1;
            if let Some(told) = usage(event.data) {
                *spent = Some(spent.unwrap_or_default().max(told));
            }
            unread = false;
            let mut heard = dialect.hear(&event, parts);
            let asks = !passing && !rules.is_empty();
            if asks && is_failure_by(&reply(head, wall, rules, (Told::InStream, event.data))) {
                heard = Heard::Fault;
            }
            match heard {
                Heard::Lifecycle => {}
                Heard::Output => passing = true,
                Heard::Unread => (passing, unread) = (true, true),
                Heard::End => {
                    (passing, ended) = (true, true);
                    completed |= is_completed(&event);
                }
                Heard::Fault if !passing => failed = Some((event.starts, event.data.to_vec())),
                Heard::Fault => {
                    ended = true;
                    if is_one_of(withhold, event.data) {
                        failed = Some((event.starts, event.data.to_vec()));
                    } else if late.is_none() {
                        late = Some(event.data.to_vec());
                    }
                }
            }
        });
        (self.passing, self.events) = (passing, events);
        (self.ended, self.unread, self.completed) = (ended, unread, completed);
        if let Some(data) = late {
            self.late = Some(Box::new(self.judged(Told::InStream, &data)));
        }
        if let Some((at, data)) = failed {
            let fault = Box::new(self.judged(Told::InStream, &data));
            if passing {
                return Verdict::Cut { at, fault };
            }
            // Where it goes back to the client, this event is the stream's end.
            self.ended = true;
            return Verdict::Fault(fault);
        }
        if self.passing || self.held > self.asked.hold.bytes { self.pass() } else { Verdict::Hold }
    }

    /// The answer ended as its framing says it should.
    #[must_use]
    pub fn ended(&mut self) -> Verdict {
        let lacks_its_end = self.lacks_its_end();
        match &mut self.shape {
            Shape::Error(body) => {
                let body = std::mem::take(body);
                Verdict::Fault(Box::new(self.judge_error(&body)))
            }
            Shape::Whole(body) if !self.passing => {
                let body = std::mem::take(body);
                self.judge_whole(&body)
            }
            Shape::Events(_) | Shape::Unclear(..) if self.events == 0 && self.asked.generation => {
                self.broken(Fault::EmptyAnswer)
            }
            Shape::Events(_) if lacks_its_end => self.broken(Fault::BrokenStream),
            Shape::Events(_) | Shape::Unclear(..) | Shape::Whole(_) | Shape::Opaque => self.pass(),
        }
    }

    /// Whether the end is missing that the protocol asks for.
    fn lacks_its_end(&self) -> bool {
        // Values that are no answer of a model, such as those of a download, have no known end.
        let is_loose = matches!(self.shape, Shape::Events(Splitter::Values(_))) && !self.asked.generation;
        let has_end = is_loose || self.has_ended() || self.unread;
        self.asked.dialect.names_its_end() && !has_end && self.events > 0
    }

    /// The connection was lost before the answer's end. That all parts are finished does not make it whole: more of
    /// the answer may have been lost, and the client alone would see the break. Behind the last word there is no more.
    #[must_use]
    pub fn broke(&mut self) -> Verdict {
        if let Shape::Error(body) = &mut self.shape {
            // The refusal itself arrived; what is missing is the rest of its words.
            let body = std::mem::take(body);
            return Verdict::Fault(Box::new(self.judge_error(&body)));
        }
        if self.ended { self.pass() } else { self.broken(Fault::BrokenStream) }
    }

    /// Whether the stream may end here: its last word was heard, or all of its parts are finished.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        self.ended || self.parts.are_finished()
    }

    /// The failure that was told after output, once. It went to the client with all that came before it.
    pub const fn take_late(&mut self) -> Option<Box<Failure>> {
        self.late.take()
    }

    /// Whether `response.completed` was heard: a Codex turn has an answer.
    #[must_use]
    pub const fn has_completed(&self) -> bool {
        self.completed
    }

    /// Nothing came for too long. Where a status tells of a failure, that was the answer, and what came of its words is
    /// what there is; [`Verdict::Hold`] where there is no answer.
    #[must_use]
    pub fn fell_silent(&mut self) -> Verdict {
        if matches!(self.shape, Shape::Error(_)) && !self.passing { self.timed_out() } else { Verdict::Hold }
    }

    fn pass(&mut self) -> Verdict {
        self.passing = true;
        if let Shape::Whole(body) = &mut self.shape {
            *body = Vec::new();
        }
        Verdict::Pass
    }

    fn broken(&self, fault: Fault) -> Verdict {
        let mut failure =
            Failure::of_transport(fault, if self.passing { Evidence::Committed } else { Evidence::MaybeRan });
        failure.status = Some(self.head.status.as_u16());
        Verdict::Fault(Box::new(failure))
    }

    fn judge_error(&mut self, body: &[u8]) -> Failure {
        self.judged(Told::ByStatus, body)
    }

    fn judge_whole(&mut self, body: &[u8]) -> Verdict {
        if self.asked.generation && body.trim_ascii().is_empty() {
            return self.broken(Fault::EmptyAnswer);
        }
        // What is kept at the service may tell of an error of its own: a job that failed.
        let is_answer = !self.asked.generation && json::is_kept_thing(body);
        let is_failure = !is_answer && json::is_top_level_error(body);
        if is_failure || self.is_failure(Told::InBody, body) {
            return Verdict::Fault(Box::new(self.judged(Told::InBody, body)));
        }
        self.usage = usage(body);
        self.pass()
    }

    /// Whether the user's own rules find a failure where there is no shape of one.
    fn is_failure(&self, told: Told, body: &[u8]) -> bool {
        !self.rules.is_empty() && is_failure_by(&reply(&self.head, self.wall, &self.rules, (told, body)))
    }

    fn judged(&mut self, told: Told, body: &[u8]) -> Failure {
        // A failure inside an answer is as late as itself, not as the head.
        let came = match told {
            Told::ByStatus | Told::ByTransport => self.head.arrived,
            Told::InBody | Told::InStream => self.heard,
        };
        let reply = reply(&self.head, self.wall, &self.rules, (told, body));
        let reply = Reply { took: came.since(self.head.sent), ..reply };
        // An error on a WebSocket may bring the status and the headers that it would have had over HTTP.
        let is_message = matches!(self.shape, Shape::Events(Splitter::Messages(_)));
        let wrapped = if is_message { responses_socket::wrapped(body) } else { None };
        let reply = match &wrapped {
            Some((status, headers)) => Reply { status: *status, headers, ..reply },
            None => reply,
        };
        let (failure, because) = judge_and_tell(self.asked.dialect, &reply);
        self.because = Some(because);
        failure
    }
}

fn reply<'a>(
    head: &'a Head,
    wall: SystemTime,
    rules: &'a [Arc<Rule>],
    (told, body): (Told, &'a [u8]),
) -> Reply<'a> {
    let (status, headers) = (head.status.as_u16(), &head.headers);
    Reply { told, status, headers, body, took: head.arrived.since(head.sent), wall, rules }
}

fn is_one_of(codes: &[&str], event: &[u8]) -> bool {
    !codes.is_empty()
        && json::error_fields(event)
            .and_then(|fields| fields.code)
            .is_some_and(|code| codes.contains(&code.as_str()))
}

fn splitter(asked: &Asked) -> sse::Splitter {
    sse::Splitter::new(asked.hold.bytes.max(EVENT))
}

fn shape(asked: &Asked, head: &Head) -> Shape {
    let status = head.status.as_u16();
    if status >= 400 {
        return Shape::Error(Vec::new());
    }
    if !head.status.is_success() || head.status == StatusCode::NO_CONTENT || head.bodiless {
        return Shape::Opaque;
    }
    let kind = head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let kind = kind.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    let streams = asked.generation && asked.streams;
    let unclear = |label| Shape::Unclear(splitter(asked), label);
    let are_values =
        matches!(kind.as_str(), "application/x-ndjson" | "application/ndjson" | "application/jsonl");
    match kind.as_str() {
        "text/event-stream" => unclear(Label::Events),
        "text/html" if asked.generation => unclear(Label::Page),
        _ if are_values && streams => unclear(Label::Values),
        _ if are_values => Shape::Events(Splitter::values(EVENT, 0)),
        // A stream was asked for, and its first byte says more than its label.
        _ if streams => unclear(Label::Events),
        "application/json" => Shape::Whole(Vec::new()),
        _ if kind.ends_with("+json") => Shape::Whole(Vec::new()),
        _ if !asked.generation => Shape::Opaque,
        _ => Shape::Whole(Vec::new()),
    }
}

#[cfg(test)]
mod tests;
