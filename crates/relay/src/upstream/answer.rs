//! The body of an answer. It reads from the connection only as it is asked to, so a slow reader slows the upstream
//! down; its end gives the connection back, and dropping it before its end closes the connection.

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
pub struct AnswerBody {
    incoming: Incoming,
    /// Until the end: whoever holds it holds the connection open.
    lent: Option<Box<dyn Lent>>,
    wire: Arc<Wire>,
}

impl AnswerBody {
    pub(super) fn new(incoming: Incoming, lent: Option<Box<dyn Lent>>, wire: Arc<Wire>) -> Self {
        let mut body = Self { incoming, lent, wire };
        if body.incoming.is_end_stream() {
            body.give_back();
        }
        body
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
                            None => return self.lent.is_none(),
                        }
                    }
                }
            }
        };
        tokio::time::timeout(within, to_the_end).await.unwrap_or(false)
    }

    fn give_back(&mut self) {
        if let Some(lent) = self.lent.take() {
            lent.give_back();
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
        match ready!(Pin::new(&mut self.incoming).poll_frame(cx)) {
            None => {
                self.give_back();
                Poll::Ready(None)
            }
            Some(Ok(frame)) => {
                if self.incoming.is_end_stream() {
                    self.give_back();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(error)) => {
                self.lent = None;
                let kind = how_it_broke(&error, &self.wire);
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
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

impl fmt::Debug for AnswerBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerBody").field("ended", &self.lent.is_none()).finish_non_exhaustive()
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

fn io_kind(cause: Option<&(dyn Error + 'static)>) -> Option<io::ErrorKind> {
    let cause = cause?;
    match cause.downcast_ref::<io::Error>() {
        Some(error) => Some(error.kind()),
        None => io_kind(cause.source()),
    }
}
