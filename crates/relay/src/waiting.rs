//! Keeps a client waiting while its call is on its way: with interim answers, and, where that is asked for, with a
//! stream that begins before the answer does.
//!
//! A stream that was begun early has a head of our own: the upstream's status and headers come too late for it. So
//! its request asks for an answer without content encoding, and a failure is told as an event of the stream.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Body as _, Frame};
use http_body_util::BodyExt as _;
use relay_core::Fault;
use relay_core::answer::not_streamed;
use relay_core::config;
use relay_core::dialect::Dialect;
use tokio::time::{Interval, MissedTickBehavior, interval_at};

use crate::clock::Clock;
use crate::interim::Interim;
use crate::reply::{Abort, ReplyBody};
use crate::words::{self, door};

/// The most of an error's body that is told inside a stream.
const ERROR_BODY: usize = 64 * 1024;

type Answering = Pin<Box<dyn Future<Output = Result<Response<ReplyBody>, Abort>> + Send>>;

/// What a waiting client is shown.
pub(crate) struct Company {
    /// Interim answers, where its connection can carry them, and how often.
    pub(crate) interim: Option<(Interim, Duration)>,
    /// A stream that begins early.
    pub(crate) early: Option<Early>,
}

/// When a stream begins early, and what it carries.
#[derive(Clone, Copy)]
pub(crate) struct Early {
    after: Duration,
    beat: Duration,
    sign: &'static str,
    dialect: &'static dyn Dialect,
}

impl Early {
    /// The early stream of a request that asks for one, where the settings want it and its clients bear it.
    pub(crate) fn of(waiting: &config::Waiting, dialect: &'static dyn Dialect) -> Option<Self> {
        let after = waiting.early_commit?;
        Some(Self { after, beat: waiting.heartbeat, sign: dialect.heartbeat()?, dialect })
    }
}

impl Company {
    /// The same, with its times by this clock.
    pub(crate) fn by(self, clock: &dyn Clock) -> Self {
        let interim = self.interim.map(|(interim, every)| (interim, clock.real(every)));
        let early = self.early.map(|early| Early {
            after: clock.real(early.after),
            beat: clock.real(early.beat),
            ..early
        });
        Self { interim, early }
    }

    /// Waits for the answer, and keeps the client company meanwhile.
    ///
    /// # Errors
    /// Where the client's connection is to be cut.
    pub(crate) async fn keep(self, mut answering: Answering) -> Result<Response<ReplyBody>, Abort> {
        let Self { interim, early } = self;
        let mut ticks = interim.as_ref().map(|(_, every)| beats(*every));
        let mut begin = early.map(|early| Box::pin(tokio::time::sleep(early.after)));
        loop {
            tokio::select! {
                biased;
                answer = &mut answering => return answer,
                () = tick(ticks.as_mut()) => {
                    if let Some((interim, _)) = &interim {
                        interim.processing();
                    }
                }
                () = async { match &mut begin { Some(begin) => begin.await, None => std::future::pending().await } } => {
                    if let Some(early) = early {
                        return Ok(begun(answering, early));
                    }
                }
            }
        }
    }
}

fn beats(every: Duration) -> Interval {
    let mut beats = interval_at(tokio::time::Instant::now() + every, every);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    beats
}

async fn tick(ticks: Option<&mut Interval>) {
    match ticks {
        Some(ticks) => drop(ticks.tick().await),
        None => std::future::pending().await,
    }
}

fn begun(answering: Answering, early: Early) -> Response<ReplyBody> {
    let stream =
        EarlyStream { early, beats: beats(early.beat), state: State::Waiting(answering), opening: true };
    let mut response = Response::new(ReplyBody::early(stream));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// The body of a stream that began before its answer.
pub(crate) struct EarlyStream {
    early: Early,
    beats: Interval,
    state: State,
    /// The first sign of life goes with the head.
    opening: bool,
}

enum State {
    /// The answer is not there.
    Waiting(Answering),
    /// It is, and is no error. Its first byte will tell whether it is the stream that was asked for; what is blank
    /// before that may have gone already.
    Opening {
        status: StatusCode,
        body: Box<ReplyBody>,
        blank: bool,
    },
    /// It is that stream.
    Passing(Box<ReplyBody>),
    /// It is an error, whose body is being read.
    Failing(Pin<Box<dyn Future<Output = Bytes> + Send>>),
    /// This is the last that is to be said.
    Last(Bytes),
    Over,
}

impl EarlyStream {
    pub(crate) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Abort>>> {
        loop {
            match &mut self.state {
                State::Waiting(answering) => {
                    if std::mem::take(&mut self.opening) {
                        return Poll::Ready(Some(Ok(sign(self.early))));
                    }
                    match answering.as_mut().poll(cx) {
                        Poll::Ready(Ok(answer)) => self.state = told(answer, self.early.dialect),
                        Poll::Ready(Err(abort)) => {
                            self.state = State::Over;
                            return Poll::Ready(Some(Err(abort)));
                        }
                        Poll::Pending => {
                            std::task::ready!(self.beats.poll_tick(cx));
                            return Poll::Ready(Some(Ok(sign(self.early))));
                        }
                    }
                }
                State::Opening { body, blank, .. } => match Pin::new(&mut **body).poll_frame(cx) {
                    Poll::Ready(frame) => return Poll::Ready(self.opened(frame)),
                    // What has begun of the answer is not broken into.
                    Poll::Pending if *blank => return Poll::Pending,
                    Poll::Pending => {
                        std::task::ready!(self.beats.poll_tick(cx));
                        return Poll::Ready(Some(Ok(sign(self.early))));
                    }
                },
                State::Passing(body) => return Pin::new(&mut **body).poll_frame(cx),
                State::Failing(reading) => {
                    let body = std::task::ready!(reading.as_mut().poll(cx));
                    self.state = State::Over;
                    let event = event(self.early.dialect, &body);
                    return Poll::Ready(Some(Ok(Frame::data(Bytes::from(event)))));
                }
                State::Last(event) => {
                    let event = std::mem::take(event);
                    self.state = State::Over;
                    return Poll::Ready(Some(Ok(Frame::data(event))));
                }
                State::Over => return Poll::Ready(None),
            }
        }
    }
}

impl EarlyStream {
    /// What the client gets of the first piece of an answer. No event begins with a bracket: what does is one whole, as
    /// services answer that cannot stream, or a page, whatever label is on it.
    fn opened(&mut self, frame: Option<Result<Frame<Bytes>, Abort>>) -> Option<Result<Frame<Bytes>, Abort>> {
        let State::Opening { status, body, blank } = std::mem::replace(&mut self.state, State::Over) else {
            return frame;
        };
        let Some(Ok(piece)) = &frame else {
            let Some(broke) = frame else { return Some(Ok(self.lost(status, "without a word", blank))) };
            return Some(broke);
        };
        let data = piece.data_ref().map_or(&[][..], |data| data);
        match data.iter().find(|byte| !byte.is_ascii_whitespace() && !b"\xEF\xBB\xBF".contains(byte)) {
            Some(b'{' | b'[') => {
                body.give_up();
                Some(Ok(self.lost(status, &door::whole(words::lang()), blank)))
            }
            Some(b'<') => {
                body.give_up();
                Some(Ok(last(
                    &no_answer(self.early.dialect, status, &door::with_a_page(words::lang())),
                    blank,
                )))
            }
            Some(_) => {
                self.state = State::Passing(body);
                frame
            }
            None => {
                self.state = State::Opening { status, body, blank: true };
                frame
            }
        }
    }

    fn lost(&self, status: StatusCode, how: &str, blank: bool) -> Frame<Bytes> {
        let lang = words::lang();
        let event = not_streamed(lang, self.early.dialect, &door::unstreamed(lang, status.as_u16(), how));
        last(&event, blank)
    }
}

/// The event that ends the stream. Behind what is blank it has to begin a line of its own.
fn last(event: &str, blank: bool) -> Frame<Bytes> {
    let start = if blank { "\n\n" } else { "" };
    Frame::data(Bytes::from(format!("{start}{event}")))
}

fn sign(early: Early) -> Frame<Bytes> {
    Frame::data(Bytes::from_static(early.sign.as_bytes()))
}

/// What an answer is to a stream that has begun.
fn told(answer: Response<ReplyBody>, dialect: &dyn Dialect) -> State {
    let status = answer.status();
    let encoding = answer.headers().get(header::CONTENT_ENCODING).and_then(|value| value.to_str().ok());
    let encoding = encoding.unwrap_or("").trim().to_ascii_lowercase();
    if !matches!(encoding.as_str(), "" | "identity") {
        // It was asked for none. The head that has gone names none, so the client could not read it.
        let lang = words::lang();
        let what = door::encoded_unasked(lang, status.as_u16(), &encoding);
        if !status.is_success() {
            return State::Failing(Box::pin(std::future::ready(Bytes::from(what))));
        }
        answer.into_body().give_up();
        return State::Last(Bytes::from(not_streamed(lang, dialect, &what)));
    }
    // What is neither an answer nor an error has no place in a stream either.
    if status.is_redirection() || status == StatusCode::NO_CONTENT || status == StatusCode::RESET_CONTENT {
        answer.into_body().give_up();
        return State::Last(Bytes::from(no_answer(dialect, status, "")));
    }
    if status.is_success() {
        return State::Opening { status, body: Box::new(answer.into_body()), blank: false };
    }
    State::Failing(Box::pin(async move {
        let read = http_body_util::Limited::new(answer.into_body(), ERROR_BODY).collect().await;
        read.map(http_body_util::Collected::to_bytes).unwrap_or_default()
    }))
}

/// An error's body as an event; a body that is no JSON is told in our words.
fn event(dialect: &dyn Dialect, body: &[u8]) -> String {
    let error = serde_json::from_slice(body).ok().filter(serde_json::Value::is_object).unwrap_or_else(|| {
        let said = String::from_utf8_lossy(body);
        let said: String = said.trim().chars().take(500).collect();
        let said = if said.is_empty() { door::failed_silently(words::lang()) } else { said };
        failed(dialect, &said)
    });
    dialect.error_event(&error)
}

/// The event that tells of what no model has answered: a page, a redirect.
fn no_answer(dialect: &dyn Dialect, status: StatusCode, how: &str) -> String {
    let words = door::no_stream(words::lang(), status.as_u16(), how);
    dialect.error_event(&failed(dialect, &words))
}

fn failed(dialect: &dyn Dialect, words: &str) -> serde_json::Value {
    dialect.error_body(502, Fault::ServerFailed, "server_error", words)
}
