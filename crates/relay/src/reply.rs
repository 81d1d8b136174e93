//! What goes to the client: an upstream's answer as it comes, or words of our own. A break is told as a break:
//! the connection is aborted, never ended tidily.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use http::{HeaderValue, Response, StatusCode, Version, header};
use http_body::{Body, Frame, SizeHint};
use relay_core::answer::Own;
use relay_core::event::Outcome;
use relay_core::preamble::Verdict;
use tokio::sync::Notify;

use crate::answer::{Answer, Next};
use crate::bell::Bell;
use crate::client_socket::Signs;
use crate::clock::IdleLimit;
use crate::headers::{forwardable_answer, forwardable_extensions};
use crate::open::OpenCall;
use crate::upstream::AnswerBody;
use crate::waiting::EarlyStream;

/// Why a connection to a client is aborted; hyper closes it and nothing of this is sent.
#[derive(Debug, thiserror::Error)]
pub enum Abort {
    /// The upstream's answer broke off.
    #[error("the upstream's answer broke off")]
    Broken,
    /// The connection is cut so that the client goes on by its own policy.
    #[error("cut so that the client goes on by itself")]
    Cut,
    /// The upstream said nothing for too long.
    #[error("the upstream fell silent")]
    Silent,
}

/// The body of an answer to a client.
pub struct ReplyBody {
    kind: Kind,
    /// Tells when what was handed out has left, and how long that may take.
    flushed: Option<(Arc<Notify>, Duration)>,
    /// To be set before an abort that closing alone would not tell.
    reset: Option<Arc<AtomicBool>>,
    abort: Option<Parting>,
    /// Tells its connection that it is not done.
    _held: Option<Arc<()>>,
}

impl std::fmt::Debug for ReplyBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReplyBody").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// An abort that is due. What was forwarded just before lies in the server's buffer, and an abort would drop it
/// there: the client must see every byte that came before the break.
struct Parting {
    why: Option<Abort>,
    flushed: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Parting {
    fn new(why: Abort, flushed: Option<(Arc<Notify>, Duration)>) -> Self {
        let flushed = flushed.map(|(flushed, within)| (flushed.notified_owned(), within));
        Self {
            why: Some(why),
            flushed: Box::pin(async move {
                if let Some((flushed, within)) = flushed {
                    // Late or not, the abort comes.
                    let _in_time = tokio::time::timeout(within, flushed).await;
                }
            }),
        }
    }
}

/// How long the last bytes before an abort have to leave; a client that reads takes less.
const TO_FLUSH: Duration = Duration::from_secs(30);
/// The same over HTTP/2, where they may have left before anybody waits for it: hyper asks for more of an answer only
/// when the client has room for what it got, so they are on their way.
const TO_FLUSH_STREAM: Duration = Duration::from_millis(50);

/// A piece below this is gathered with those behind it, up to [`GATHERED`].
const SMALL: usize = 4 * 1024;
const GATHERED: usize = 16 * 1024;

enum Kind {
    /// Our own words, or nothing.
    Own(Option<Bytes>),
    /// An answer that no call stands behind.
    Plain(Box<AnswerBody>),
    /// The upstream's answer.
    Passing(Box<Passing>),
    /// What was held of an answer, then an abort.
    Cutting(Box<Answer>),
    /// A stream that began before its answer.
    Early(Box<EarlyStream>),
    /// Our own words as they come.
    Flowing(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
    /// Our own words, and then nothing until this is ready with the last ones.
    Held(Option<Bytes>, Pin<Box<dyn Future<Output = Bytes> + Send>>),
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Own(_) => "Own",
            Self::Plain(_) => "Plain",
            Self::Passing(_) => "Passing",
            Self::Cutting(_) => "Cutting",
            Self::Early(_) => "Early",
            Self::Flowing(_) => "Flowing",
            Self::Held(..) => "Held",
        })
    }
}

struct Passing {
    answer: Answer,
    call: OpenCall,
    idle: IdleLimit,
    progress: u64,
    /// How the call ends when the answer does.
    outcome: Outcome,
    /// Bytes that the head announces and that have not gone yet.
    left: Option<u64>,
    /// The answer ends after what is held.
    ending: Option<Verdict>,
    /// Trailers. They go when it is known that nothing is missing before them: hyper asks for nothing after them.
    trailers: Option<Frame<Bytes>>,
    /// Our own words before it.
    first: Option<Bytes>,
    bell: Bell,
}

impl ReplyBody {
    const fn of(kind: Kind) -> Self {
        Self { kind, flushed: None, reset: None, abort: None, _held: None }
    }

    /// The same, on this connection.
    pub(crate) fn leaving_by(mut self, signs: Signs, version: Version) -> Self {
        let within = if version == Version::HTTP_2 { TO_FLUSH_STREAM } else { TO_FLUSH };
        self.flushed = Some((signs.flushed, within));
        self.reset = (version == Version::HTTP_10).then_some(signs.reset);
        self
    }

    /// The same, which holds this as long as it is there. What has no end of its own holds nothing: whoever waits for
    /// answers to end waits for others.
    pub(crate) fn holding(mut self, held: Arc<()>) -> Self {
        self._held = Some(held).filter(|_| !matches!(self.kind, Kind::Flowing(_)));
        self
    }

    /// Our own words.
    #[must_use]
    pub fn own(bytes: impl Into<Bytes>) -> Self {
        Self::of(Kind::Own(Some(bytes.into())))
    }

    /// An answer that no call stands behind, as it comes.
    pub(crate) fn plain(body: AnswerBody) -> Self {
        Self::of(Kind::Plain(Box::new(body)))
    }

    /// The upstream's answer, of `announced` bytes where it says so; `ending` where the listener has heard its end already.
    pub(crate) fn passing(
        answer: Answer,
        announced: Option<u64>,
        call: OpenCall,
        outcome: Outcome,
        ending: Option<Verdict>,
    ) -> Self {
        let idle = IdleLimit::new(call.idle());
        let progress = answer.progress();
        Self::of(Kind::Passing(Box::new(Passing {
            answer,
            call,
            idle,
            progress,
            outcome,
            left: announced,
            ending,
            trailers: None,
            first: None,
            bell: Bell::default(),
        })))
    }

    /// The same after words of our own, for which there is room in what was announced.
    pub(crate) fn after(mut self, first: Option<Bytes>) -> Self {
        if let Kind::Passing(passing) = &mut self.kind {
            passing.first = first;
        }
        self
    }

    /// A stream that began before its answer.
    pub(crate) fn early(stream: EarlyStream) -> Self {
        Self::of(Kind::Early(Box::new(stream)))
    }

    /// Our own words, and no end before this is ready with the last ones; it is dropped when the client goes.
    pub(crate) fn held(words: Bytes, until: impl Future<Output = Bytes> + Send + 'static) -> Self {
        Self::of(Kind::Held(Some(words), Box::pin(until)))
    }

    /// Our own words as they come, which are asked for only while the client reads.
    pub(crate) fn flowing(words: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self::of(Kind::Flowing(Box::pin(words)))
    }

    /// Nothing more of it goes to the client, who is told why.
    pub(crate) fn give_up(self) {
        if let Kind::Passing(mut passing) = self.kind {
            let served = passing.outcome == Outcome::Served;
            passing.call.close(if served { Outcome::Broken } else { passing.outcome });
        }
    }

    /// What was held of an answer, then an abort.
    pub(crate) fn cutting(answer: Answer) -> Self {
        Self::of(Kind::Cutting(Box::new(answer)))
    }
}

impl Passing {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Abort>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(self.counted(Frame::data(first)))));
        }
        loop {
            if let Some(ending) = self.ending.take() {
                if let Some(frame) = self.answer.next_held() {
                    self.ending = Some(ending);
                    if frame.is_data() {
                        return Poll::Ready(Some(Ok(self.counted(frame))));
                    }
                    self.trailers = Some(frame);
                    continue;
                }
                let end = self.end(ending);
                return Poll::Ready(end.or_else(|| self.trailers.take().map(Ok)));
            }
            let now = self.call.now();
            match self.bell.poll(cx, |cx| self.answer.poll_next(cx, now)) {
                Poll::Ready(Next::Piece(frame)) if !frame.is_data() => self.trailers = Some(frame),
                Poll::Ready(Next::Piece(frame)) => {
                    if self.progress != self.answer.progress() {
                        self.progress = self.answer.progress();
                        self.idle.restart();
                    }
                    let frame = self.gathered(frame, cx);
                    return Poll::Ready(Some(Ok(self.counted(frame))));
                }
                Poll::Ready(Next::Ended(verdict)) => self.ending = Some(verdict),
                Poll::Pending => return self.poll_idle(cx),
            }
        }
    }

    /// Nothing comes for now; ready when that has lasted for too long.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Abort>>> {
        std::task::ready!(self.idle.poll_passed(cx));
        self.answer.stop_reading();
        Poll::Ready(if self.answer.has_ended() {
            // The last word was said; only the connection stayed open.
            self.close(self.outcome);
            None
        } else {
            self.close(Outcome::Broken);
            Some(Err(Abort::Silent))
        })
    }

    /// The piece, and all small ones that have arrived behind it: a service that writes event by event makes a piece
    /// of each, and to hand each on by itself costs more than the event. What is alone goes at once.
    fn gathered(&mut self, first: Frame<Bytes>, cx: &mut Context<'_>) -> Frame<Bytes> {
        let data = match first.into_data() {
            Ok(data) if data.len() < SMALL => data,
            Ok(data) => return Frame::data(data),
            Err(other) => return other,
        };
        let mut whole = BytesMut::new();
        let now = self.call.now();
        while data.len().max(whole.len()) < GATHERED && self.ending.is_none() {
            match self.bell.poll(cx, |cx| self.answer.poll_next(cx, now)) {
                Poll::Ready(Next::Piece(frame)) => match frame.into_data() {
                    Ok(more) => {
                        if whole.is_empty() {
                            whole.reserve(GATHERED.min(data.len() + 16 * more.len()));
                            whole.extend_from_slice(&data);
                        }
                        whole.extend_from_slice(&more);
                    }
                    Err(trailers) => {
                        self.trailers = Some(trailers);
                        break;
                    }
                },
                Poll::Ready(Next::Ended(verdict)) => self.ending = Some(verdict),
                Poll::Pending => break,
            }
        }
        Frame::data(if whole.is_empty() { data } else { whole.freeze() })
    }

    /// Counts what goes.
    fn counted(&mut self, mut frame: Frame<Bytes>) -> Frame<Bytes> {
        self.hold_back(&mut frame);
        self.call.passes(frame.data_ref().map_or(0, Bytes::len));
        frame
    }

    /// Counts what goes against what was announced.
    ///
    /// The client takes the last announced byte for the end of a whole answer. Where the protocol's own end has not
    /// come by then, that byte is kept back, so that the break can be told.
    fn hold_back(&mut self, frame: &mut Frame<Bytes>) {
        let (Some(left), Some(data)) = (&mut self.left, frame.data_mut()) else { return };
        let length = data.len() as u64;
        if length > 0 && length >= *left {
            if self.ending.is_none()
                && let ending @ Verdict::Fault(_) = self.answer.ends_here()
            {
                self.ending = Some(ending);
            }
            if matches!(self.ending, Some(Verdict::Fault(_))) {
                data.truncate(usize::try_from(left.saturating_sub(1)).unwrap_or(usize::MAX));
            }
        }
        *left = left.saturating_sub(data.len() as u64);
    }

    fn end(&mut self, ending: Verdict) -> Option<Result<Frame<Bytes>, Abort>> {
        match ending {
            Verdict::Hold | Verdict::Pass => {
                self.close(self.outcome);
                None
            }
            Verdict::Fault(_) => {
                self.close(Outcome::Broken);
                Some(Err(Abort::Broken))
            }
            Verdict::Cut { fault, .. } => {
                self.call.cut(&fault);
                Some(Err(Abort::Cut))
            }
        }
    }

    fn close(&mut self, outcome: Outcome) {
        if self.answer.has_completed() {
            self.call.turn_completed();
        }
        if let Some(failure) = self.answer.take_late() {
            self.call.refused_late(&failure);
        }
        self.call.used(self.answer.usage());
        self.call.close(outcome);
    }

    /// Whether the client has all that it was promised; hyper stops asking then. One that has the last word of a stream
    /// has all of it, too: Codex hangs up on that, however much later the stream ends.
    fn is_whole(&self) -> bool {
        let broken = matches!(self.ending, Some(Verdict::Fault(_) | Verdict::Cut { .. }));
        let all = self.left == Some(0) || self.answer.is_done() || self.answer.has_said_all();
        !broken && self.trailers.is_none() && all
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        // Closing twice is harmless: the first word stands.
        // A client that hangs up on a failure it was told has met that failure.
        let told = self.outcome != Outcome::Served;
        let outcome = if told || self.is_whole() { self.outcome } else { Outcome::ClientLeft };
        self.close(outcome);
    }
}

impl Kind {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Abort>>> {
        match self {
            Self::Own(bytes) => Poll::Ready(
                bytes.take().filter(|bytes| !bytes.is_empty()).map(|bytes| Ok(Frame::data(bytes))),
            ),
            Self::Plain(body) => Pin::new(body).poll_frame(cx).map_err(|_told| Abort::Broken),
            Self::Passing(passing) => passing.poll_frame(cx),
            Self::Cutting(answer) => Poll::Ready(Some(answer.next_held().ok_or(Abort::Cut))),
            Self::Early(stream) => stream.poll_frame(cx),
            Self::Flowing(words) => words.as_mut().poll_next(cx).map(|next| Some(Ok(Frame::data(next?)))),
            Self::Held(words, until) => match words.take() {
                Some(words) => Poll::Ready(Some(Ok(Frame::data(words)))),
                None => {
                    let last = std::task::ready!(until.as_mut().poll(cx));
                    *self = Self::Own(None);
                    Poll::Ready(Some(last).filter(|last| !last.is_empty()).map(|last| Ok(Frame::data(last))))
                }
            },
        }
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Abort;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Abort>>> {
        let this = self.get_mut();
        if this.abort.is_none() {
            let next = std::task::ready!(this.kind.poll_next(cx));
            let Some(Err(why)) = next else { return Poll::Ready(next.and_then(Result::ok).map(Ok)) };
            this.abort = Some(Parting::new(why, this.flushed.take()));
        }
        match &mut this.abort {
            Some(parting) => {
                std::task::ready!(parting.flushed.as_mut().poll(cx));
                if let Some(reset) = &this.reset {
                    reset.store(true, Ordering::Relaxed);
                }
                Poll::Ready(parting.why.take().map(Err))
            }
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Own(bytes) => bytes.as_ref().is_none_or(Bytes::is_empty),
            Kind::Plain(body) => body.is_end_stream(),
            Kind::Passing(passing) => passing.left == Some(0) && passing.is_whole(),
            Kind::Cutting(_) | Kind::Early(_) | Kind::Flowing(_) | Kind::Held(..) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Own(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Kind::Plain(body) => body.size_hint(),
            Kind::Passing(passing) => passing.left.map_or_else(SizeHint::new, SizeHint::with_exact),
            Kind::Cutting(_) | Kind::Early(_) | Kind::Flowing(_) | Kind::Held(..) => SizeHint::new(),
        }
    }
}

/// An answer in our own words.
pub(crate) fn in_our_words(own: Own) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::own(own.body));
    *response.status_mut() = StatusCode::from_u16(own.status).unwrap_or(StatusCode::BAD_GATEWAY);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(own.content_type));
    if own.refuse_retry {
        response.headers_mut().insert("x-should-retry", HeaderValue::from_static("false"));
    }
    response
}

/// Plain words of one of our own endpoints.
pub(crate) fn text(status: StatusCode, words: &str) -> Response<ReplyBody> {
    typed(status, "text/plain; charset=utf-8", words.as_bytes().to_vec())
}

/// A body of our own, which nobody may keep or guess the type of.
pub(crate) fn typed(status: StatusCode, kind: &'static str, body: Vec<u8>) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::own(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// One line of JSON.
pub(crate) fn json_line(data: &impl serde::Serialize) -> Vec<u8> {
    // None of the types that are told can fail to become text.
    let mut line = serde_json::to_vec(data).unwrap_or_default();
    line.push(b'\n');
    line
}

/// The same as an answer of one of our own endpoints.
pub(crate) fn as_json(data: &impl serde::Serialize) -> Response<ReplyBody> {
    typed(StatusCode::OK, "application/json", json_line(data))
}

/// Hands on an answer that no call stands behind.
pub(crate) fn pass_on(answer: Response<AnswerBody>) -> Response<ReplyBody> {
    let (head, body) = answer.into_parts();
    let mut response = Response::new(ReplyBody::plain(body));
    *response.status_mut() = head.status;
    *response.headers_mut() = forwardable_answer(head.headers);
    *response.extensions_mut() = forwardable_extensions(head.extensions);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relay_that_stops_waits_for_answers_and_not_for_what_has_no_end() {
        let held = Arc::new(());
        let answer = ReplyBody::own("words").holding(Arc::clone(&held));
        assert_eq!(Arc::strong_count(&held), 2);
        drop(answer);
        let _flowing = ReplyBody::flowing(futures_util::stream::pending()).holding(Arc::clone(&held));
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
