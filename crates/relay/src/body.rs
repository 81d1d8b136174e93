//! The request's body: kept whole up to a limit, so that it can be sent again; a larger one is passed through
//! and can be sent only once. All kept bodies together stay under one limit as well.

use std::collections::VecDeque;
use std::error::Error as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use crate::clock::IdleLimit;
use crate::upstream::{Payload, io_kind};

/// So much is made ready for a body in one go, whatever it announces.
const AT_ONCE: usize = 1 << 20;

/// The room that all kept bodies share.
#[derive(Debug)]
pub struct Room {
    left: AtomicUsize,
    was_full: AtomicBool,
    was_told: AtomicBool,
}

impl Room {
    /// Room for `bytes`.
    #[must_use]
    pub fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            left: AtomicUsize::new(bytes),
            was_full: AtomicBool::new(false),
            was_told: AtomicBool::new(false),
        })
    }

    fn reserve(&self, bytes: usize) -> bool {
        self.left.try_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(bytes)).is_ok()
    }

    #[cfg(test)]
    pub(crate) fn left(&self) -> usize {
        self.left.load(Ordering::Acquire)
    }

    /// Whether a body that is small enough did not fit, for the first time.
    pub fn became_full(&self) -> bool {
        self.was_full.load(Ordering::Relaxed) && !self.was_told.swap(true, Ordering::Relaxed)
    }
}

/// The place of one body in the room; it is free again when this is dropped.
#[derive(Debug)]
pub struct Place {
    room: Arc<Room>,
    bytes: usize,
}

impl Place {
    /// One for nothing yet.
    pub(crate) fn none(room: &Arc<Room>) -> Self {
        Self { room: Arc::clone(room), bytes: 0 }
    }

    /// Takes more, unless the room does not have it.
    pub(crate) fn grow(&mut self, more: usize) -> bool {
        let grown = self.room.reserve(more);
        if grown {
            self.bytes += more;
        }
        grown
    }

    /// A part of it, as a place of its own.
    pub(crate) fn split(&mut self, bytes: usize) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self { room: Arc::clone(&self.room), bytes }
    }

    /// These bytes, which keep the place as long as any of them is there, wherever they are on their way.
    fn holding(self, bytes: Bytes) -> Bytes {
        struct Placed(Bytes, #[expect(dead_code, reason = "it is there to be dropped")] Place);
        impl AsRef<[u8]> for Placed {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }
        Bytes::from_owner(Placed(bytes, self))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.room.left.fetch_add(self.bytes, Ordering::AcqRel);
    }
}

/// A request's body as it is at hand.
#[derive(Debug)]
pub enum Taken {
    /// Whole; it can be sent as often as is right.
    Kept(Bytes, Place),
    /// Too large to keep: it is passed through as it comes, once.
    Passing(Passing),
}

/// Why an upload did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// It broke off.
    #[error("the upload broke off")]
    Broken(#[source] hyper::Error),
    /// It does not follow its own framing.
    #[error("the upload breaks its own framing")]
    Malformed(#[source] hyper::Error),
    /// Nothing came for too long.
    #[error("the upload stopped")]
    Stalled,
}

impl UploadError {
    fn of(error: hyper::Error) -> Self {
        match io_kind(error.source()) {
            Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => Self::Malformed(error),
            _ => Self::Broken(error),
        }
    }
}

/// A request's body as it comes in, with a limit on silence.
#[derive(Debug)]
pub struct Upload {
    incoming: Incoming,
    silence: IdleLimit,
}

impl Upload {
    /// `stall` bounds the silence between two pieces.
    #[must_use]
    pub fn new(incoming: Incoming, stall: Duration) -> Self {
        Self { incoming, silence: IdleLimit::new(stall) }
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = UploadError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        let polled = Pin::new(&mut self.incoming).poll_frame(cx);
        if polled.is_ready() {
            self.silence.restart();
            return polled.map_err(UploadError::of);
        }
        self.silence.poll_passed(cx).map(|()| Some(Err(UploadError::Stalled)))
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

/// Reads the body and keeps it, up to `each` bytes and as long as the room for all lasts.
///
/// # Errors
/// Where the client's upload breaks off, stops or is malformed.
pub async fn take(mut body: Upload, each: usize, room: &Arc<Room>) -> Result<Taken, UploadError> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > each {
        return Ok(Taken::Passing(Passing { first: Bytes::new(), rest: body }));
    }
    // Room is taken as bytes come: an announcement costs nothing, and would keep others out.
    let mut place = Place::none(room);
    let mut first: Option<Bytes> = None;
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        let length = first.as_ref().map_or(whole.len(), Bytes::len) + data.len();
        let small = length <= each;
        let fits = small && place.grow(data.len());
        // A body that came in one piece is kept without a copy.
        match first.take() {
            None if whole.is_empty() => first = Some(data),
            Some(start) => {
                whole.reserve(announced.min(AT_ONCE).max(length));
                whole.extend_from_slice(&start);
                whole.extend_from_slice(&data);
            }
            None => whole.extend_from_slice(&data),
        }
        if !fits {
            let first = first.unwrap_or_else(|| whole.freeze());
            if small {
                room.was_full.store(true, Ordering::Relaxed);
            }
            return Ok(Taken::Passing(Passing { first: place.holding(first), rest: body }));
        }
    }
    Ok(Taken::Kept(first.unwrap_or_else(|| whole.freeze()), place))
}

/// A body that is passed through: what was read of it, then the rest as it comes.
#[derive(Debug)]
pub struct Passing {
    first: Bytes,
    rest: Upload,
}

/// The body of one send.
#[derive(Debug)]
pub enum SendBody {
    /// A kept body.
    Kept(Option<Bytes>),
    /// A kept body with something else in its middle.
    Pieces(VecDeque<Bytes>),
    /// A body that is passed through.
    Passing(Passing),
}

impl Body for SendBody {
    type Data = Bytes;
    type Error = UploadError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        match self.get_mut() {
            Self::Kept(bytes) => Poll::Ready(
                bytes.take().filter(|bytes| !bytes.is_empty()).map(|bytes| Ok(Frame::data(bytes))),
            ),
            Self::Pieces(pieces) => loop {
                match pieces.pop_front() {
                    Some(piece) if piece.is_empty() => {}
                    piece => break Poll::Ready(piece.map(|piece| Ok(Frame::data(piece)))),
                }
            },
            Self::Passing(Passing { first, rest }) => {
                if first.is_empty() {
                    Pin::new(rest).poll_frame(cx)
                } else {
                    Poll::Ready(Some(Ok(Frame::data(std::mem::take(first)))))
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Kept(bytes) => bytes.as_ref().is_none_or(Bytes::is_empty),
            Self::Pieces(pieces) => pieces.iter().all(Bytes::is_empty),
            Self::Passing(Passing { first, rest }) => first.is_empty() && rest.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Kept(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Pieces(pieces) => SizeHint::with_exact(pieces.iter().map(|piece| piece.len() as u64).sum()),
            Self::Passing(Passing { first, rest }) => {
                let hint = rest.size_hint();
                let already = first.len() as u64;
                match hint.exact() {
                    Some(left) => SizeHint::with_exact(left + already),
                    None => SizeHint::new(),
                }
            }
        }
    }
}

impl Payload for SendBody {
    fn again(&self) -> Option<Self> {
        match self {
            Self::Kept(bytes) => Some(Self::Kept(bytes.clone())),
            Self::Pieces(pieces) => Some(Self::Pieces(pieces.clone())),
            Self::Passing(_) => None,
        }
    }
}

/// Reads and drops what a client is still uploading, within bounds, so that it sees our answer instead of a
/// broken pipe.
pub async fn drain(mut body: Incoming, most: usize, within: Duration) {
    let mut left = most;
    let reading = async {
        while let Some(Ok(frame)) = body.frame().await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                break;
            }
        }
    };
    // Time out or not, the answer goes out now.
    let _in_time = tokio::time::timeout(within, reading).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_shared_and_comes_back() {
        let room = Room::new(100);
        let place = || Place { room: Arc::clone(&room), bytes: 0 };
        let (mut one, mut other) = (place(), place());
        assert!(one.grow(60) && !other.grow(50));
        assert!(one.grow(40) && !one.grow(1));
        // Bytes that pass keep it until the last of them has left.
        let passing = one.holding(Bytes::from_static(b"all that was read"));
        let rest = passing.slice(4..);
        drop(passing);
        assert!(!other.grow(1));
        drop(rest);
        assert!(other.grow(100));
    }
}
