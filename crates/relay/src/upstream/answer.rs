//! The body of an answer. It reads from the connection only as it is asked to, so a slow reader slows the upstream
//! down. Its end gives the connection back; dropping it before its end closes the connection, or over HTTP/2 resets
//! its stream.

use std::error::Error;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use super::connection::Lent;
use super::multiplexed::Stream;
use super::wire::{Wire, is_reset};

/// How an answer that had begun broke off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerBreak {
    /// The connection was reset.
    Reset,
    /// The connection was closed before the answer's own end.
    Closed,
    /// What came did not follow its own framing.
    Malformed,
}

/// An answer that broke off.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{detail}")]
pub struct AnswerError {
    /// How.
    pub kind: AnswerBreak,
    /// In plain words. Holds nothing of the answer.
    pub detail: String,
}

/// The body of an answer.
pub struct AnswerBody(Source);

enum Source {
    /// HTTP/1.1.
    Connection {
        incoming: Incoming,
        /// Until the end: whoever holds it holds the connection open.
        lent: Option<Box<dyn Lent>>,
        wire: Arc<Wire>,
    },
    /// HTTP/2.
    Stream(Box<Stream>),
    /// Nothing more comes.
    Ended,
}

impl AnswerBody {
    pub(super) fn new(incoming: Incoming, lent: Option<Box<dyn Lent>>, wire: Arc<Wire>) -> Self {
        let mut body = Self(Source::Connection { incoming, lent, wire });
        if body.is_end_stream() {
            body.give_back();
        }
        body
    }

    pub(super) fn shared(stream: Stream) -> Self {
        if stream.is_end_stream() { Self(Source::Ended) } else { Self(Source::Stream(Box::new(stream))) }
    }

    /// Reads the rest and throws it away, so that the connection can serve again; says whether the end was reached.
    /// A rest that is longer than `most` or takes longer than `within` is not worth it, and closes the connection.
    pub async fn drain(mut self, most: usize, within: Duration) -> bool {
        let to_the_end = async {
            let mut left = most;
            loop {
                match std::future::poll_fn(|cx| Pin::new(&mut self).poll_frame(cx)).await {
                    None => return true,
                    Some(Err(_)) => return false,
                    Some(Ok(frame)) => {
                        let length = frame.data_ref().map_or(0, Bytes::len);
                        match left.checked_sub(length) {
                            Some(rest) => left = rest,
                            None => return self.has_ended(),
                        }
                    }
                }
            }
        };
        tokio::time::timeout(within, to_the_end).await.unwrap_or(false)
    }

    /// Whether nothing is held any more.
    fn has_ended(&self) -> bool {
        match &self.0 {
            Source::Connection { lent, .. } => lent.is_none(),
            Source::Stream(_) => false,
            Source::Ended => true,
        }
    }

    fn give_back(&mut self) {
        match &mut self.0 {
            Source::Connection { lent, .. } => {
                if let Some(lent) = lent.take() {
                    lent.give_back();
                }
            }
            Source::Stream(_) => self.0 = Source::Ended,
            Source::Ended => {}
        }
    }

    fn poll_source(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, AnswerBreak>>> {
        match &mut self.0 {
            Source::Connection { incoming, wire, .. } => Pin::new(incoming)
                .poll_frame(cx)
                .map(|frame| frame.map(|frame| frame.map_err(|error| how_it_broke(&error, wire)))),
            Source::Stream(stream) => stream.poll_frame(cx),
            Source::Ended => Poll::Ready(None),
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = AnswerError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, AnswerError>>> {
        match ready!(self.poll_source(cx)) {
            None => {
                self.give_back();
                Poll::Ready(None)
            }
            Some(Ok(frame)) => {
                if self.is_end_stream() {
                    self.give_back();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(kind)) => {
                self.0 = Source::Ended;
                let detail = match kind {
                    AnswerBreak::Reset => "the connection was reset in the middle of the answer",
                    AnswerBreak::Closed => "the connection was closed in the middle of the answer",
                    AnswerBreak::Malformed => "the answer broke its own framing",
                };
                Poll::Ready(Some(Err(AnswerError { kind, detail: detail.to_owned() })))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Source::Connection { incoming, .. } => incoming.is_end_stream(),
            Source::Stream(stream) => stream.is_end_stream(),
            Source::Ended => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Source::Connection { incoming, .. } => incoming.size_hint(),
            Source::Stream(_) => SizeHint::new(),
            Source::Ended => SizeHint::with_exact(0),
        }
    }
}

impl fmt::Debug for AnswerBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerBody").field("ended", &self.has_ended()).finish_non_exhaustive()
    }
}

/// By the kind of I/O error where hyper passes one on, else by how the socket ended.
fn how_it_broke(error: &hyper::Error, wire: &Wire) -> AnswerBreak {
    match io_kind(error.source()) {
        Some(kind) if is_reset(kind) => AnswerBreak::Reset,
        Some(io::ErrorKind::UnexpectedEof) => AnswerBreak::Closed,
        Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => AnswerBreak::Malformed,
        _ if wire.was_reset() => AnswerBreak::Reset,
        _ if wire.read_ended() || error.is_incomplete_message() => AnswerBreak::Closed,
        _ => AnswerBreak::Malformed,
    }
}

/// The kind of the I/O error among the causes of an error, if there is one.
pub(crate) fn io_kind(cause: Option<&(dyn Error + 'static)>) -> Option<io::ErrorKind> {
    let cause = cause?;
    match cause.downcast_ref::<io::Error>() {
        Some(error) => Some(error.kind()),
        None => io_kind(cause.source()),
    }
}
