//! One side of a WebSocket: whole messages in and out, and how it ends. Pings are answered by the library, each on its
//! own side.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use relay_core::dialect::Dialect;
use relay_core::dialect::responses_socket::is_last;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{CloseFrame, Frame, Utf8Bytes};
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::metered::{LARGE, Meter, Metered};
use crate::body::{Place, Room};

/// A longer message leaves in frames of this length: the library moves what is left of a frame with each write, and
/// keeps the room of the longest.
const FRAME: usize = 256 * 1024;
/// What is read at a time.
const READ: usize = 8 * 1024;
/// How long the other side has to answer a close, and to take what lies before it.
const PARTING: Duration = Duration::from_secs(2);
/// How long one that is told of a violation may go on sending, so that it can read why.
const HEARING_OUT: Duration = Duration::from_secs(10);

/// A whole message, with the room that is taken for it where it came from a side.
#[derive(Debug)]
pub(super) enum Said {
    Text(Utf8Bytes, Option<Place>),
    Binary(Bytes, Option<Place>),
}

impl Said {
    /// One of our own.
    pub(super) fn text(text: impl Into<Utf8Bytes>) -> Self {
        Self::Text(text.into(), None)
    }

    /// The same, where it lies in a piece of memory that is larger by far: it would be kept as long as the message.
    pub(super) fn compact(self) -> Self {
        match self {
            Self::Text(text, place) if text.len() < READ => Self::Text(text.as_str().into(), place),
            Self::Binary(bytes, place) if bytes.len() < READ => {
                Self::Binary(Bytes::copy_from_slice(&bytes), place)
            }
            large @ (Self::Text(..) | Self::Binary(..)) => large,
        }
    }

    /// What it takes besides its bytes. Those without a byte take memory, too.
    pub(super) const OVERHEAD: usize = 2 * size_of::<Self>();

    /// Whether it is the last word of an answer.
    pub(super) fn is_last(&self, dialect: &dyn Dialect) -> bool {
        match self {
            Self::Text(text, _) => is_last(dialect, text),
            Self::Binary(..) => false,
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Text(text, _) => text.len(),
            Self::Binary(bytes, _) => bytes.len(),
        }
    }
}

/// What came of waiting for an upstream.
#[derive(Debug)]
pub(super) enum Got {
    /// A message.
    Said(Said),
    /// Nothing, but a part of what is on its way there has left.
    Left,
    /// It is over.
    End(End),
}

/// How a side ends.
#[derive(Debug, Clone)]
pub(super) enum End {
    /// It said so, with a code and a reason or without.
    Closed(Option<CloseFrame>),
    /// Its connection was lost.
    Lost {
        /// Whether it was reset.
        reset: bool,
        /// What the system said.
        detail: String,
    },
    /// It broke the protocol or a limit of ours: what it is to be told, and why.
    Violated(CloseFrame),
}

impl End {
    fn of(error: &Error, limit: usize) -> Self {
        let violated = |code, reason: String| Self::Violated(CloseFrame { code, reason: short(&reason) });
        match error {
            Error::Capacity(_) => {
                let most = relay_core::units::show_bytes(limit as u64);
                violated(CloseCode::Size, format!("a message of more than {most} (limits.message)"))
            }
            Error::Utf8(_) => violated(CloseCode::Invalid, "a text that is no UTF-8".to_owned()),
            Error::Protocol(what) => {
                use tokio_tungstenite::tungstenite::error::ProtocolError;
                if matches!(what, ProtocolError::ResetWithoutClosingHandshake) {
                    Self::Lost { reset: false, detail: "closed without a word".to_owned() }
                } else {
                    violated(CloseCode::Protocol, what.to_string())
                }
            }
            Error::Io(full) if full.kind() == io::ErrorKind::OutOfMemory => {
                violated(CloseCode::Again, "more than there is room for now (bodies.total)".to_owned())
            }
            Error::Io(wrong) if wrong.kind() == io::ErrorKind::InvalidData => {
                violated(CloseCode::Protocol, "a control frame of more than 125 bytes".to_owned())
            }
            Error::Io(late) if late.kind() == io::ErrorKind::TimedOut => violated(
                CloseCode::Policy,
                "nothing came in the middle of a message (limits.stall)".to_owned(),
            ),
            Error::Io(lost) => {
                let resets = [io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe];
                Self::Lost { reset: resets.contains(&lost.kind()), detail: lost.to_string() }
            }
            Error::ConnectionClosed
            | Error::AlreadyClosed
            | Error::Tls(_)
            | Error::WriteBufferFull(_)
            | Error::AttackAttempt
            | Error::Url(_)
            | Error::Http(_)
            | Error::HttpFormat(_) => Self::Lost { reset: false, detail: error.to_string() },
        }
    }
}

/// A reason as long as a close can carry: 123 bytes (RFC 6455, section 5.5).
pub(super) fn short(reason: &str) -> Utf8Bytes {
    Utf8Bytes::from(&reason[..reason.floor_char_boundary(123)])
}

/// One side of a WebSocket.
pub(super) struct Leg<S = TokioIo<Upgraded>> {
    pub(super) to: To<S>,
    pub(super) from: From<S>,
}

/// Its sending half.
pub(super) struct To<S = TokioIo<Upgraded>> {
    sink: SplitSink<WebSocketStream<Metered<S>>, Message>,
    /// What is still to leave; the room of a message goes with its last frame.
    outgoing: VecDeque<(Frame, Option<Place>)>,
    /// The library has something that is not on the wire yet.
    is_unflushed: bool,
}

/// Its receiving half.
pub(super) struct From<S = TokioIo<Upgraded>> {
    stream: SplitStream<WebSocketStream<Metered<S>>>,
    limit: usize,
    meter: Meter,
    /// The last message that was large, until the next read has begun: the library's buffer would else be the only one to
    /// know that memory, and go on with it.
    last: Option<Bytes>,
}

impl Leg {
    /// Lets a side go that has ended, with the goodbye that is due to it.
    pub(super) fn take_leave(self, end: &End) {
        let frame = match end {
            End::Lost { .. } => return,
            // The library has the answer ready.
            End::Closed(_) => None,
            End::Violated(frame) => Some(frame.clone()),
        };
        tokio::spawn(self.close(frame));
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Leg<S> {
    /// What we are on it is `role`; no message is longer than `limit` bytes, and each takes from `room`. `stall`: so long
    /// the other side may stop in the middle of one.
    pub(super) async fn new(
        io: S,
        role: Role,
        limit: usize,
        room: &Arc<Room>,
        stall: Option<Duration>,
    ) -> Self {
        let meter = Meter::new(room);
        let io = Metered::new(io, meter.clone(), stall);
        let config = WebSocketConfig::default()
            .read_buffer_size(READ)
            .write_buffer_size(0)
            // Room for a frame. Answers to pings get no more than that, should the other side not take them.
            .max_write_buffer_size(FRAME + 1024)
            .max_message_size(Some(limit))
            .max_frame_size(Some(limit));
        let (to, stream) = WebSocketStream::from_raw_socket(io, role, Some(config)).await.split();
        let to = To { sink: to, outgoing: VecDeque::new(), is_unflushed: false };
        Self { to, from: From { stream, limit, meter, last: None } }
    }

    /// Says goodbye, and waits for a while until the other side has heard it.
    pub(super) async fn close(mut self, frame: Option<CloseFrame>) {
        self.from.meter.stop();
        let parting = async {
            // Where the other side has closed already, it is answered by what is read.
            let _told = self.to.close(frame).await;
            while let Some(Ok(_)) = self.from.stream.next().await {}
        };
        // Late or not, it is over.
        let _in_time = tokio::time::timeout(PARTING, parting).await;
    }

    /// Says goodbye for a violation: what follows cannot be read, but is taken in for a while, since a connection that
    /// is closed before would lose the goodbye.
    pub(super) async fn turn_away(mut self, frame: CloseFrame) {
        self.from.meter.stop();
        let parting = async {
            let told = self.to.close(Some(frame)).await;
            let (Ok(()), Ok(mut whole)) = (told, self.from.stream.reunite(self.to.sink)) else { return };
            // One that has read it waits for this before it goes (section 7.1.1).
            let _ended = whole.get_mut().shutdown().await;
            let mut rest = [0; READ];
            while matches!(whole.get_mut().read(&mut rest).await, Ok(read) if read > 0) {}
        };
        let _in_time = tokio::time::timeout(HEARING_OUT, parting).await;
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> From<S> {
    /// The next message. Nothing is lost where this is dropped before it is ready.
    ///
    /// # Errors
    /// Where the side has ended, and how.
    pub(super) async fn next(&mut self) -> Result<Said, End> {
        loop {
            let next = poll_fn(|cx| {
                let polled = self.stream.poll_next_unpin(cx);
                self.last = None;
                polled
            });
            match next.await {
                Some(Ok(Message::Text(text))) => {
                    let place = self.place(text.as_ref());
                    return Ok(Said::Text(text, place));
                }
                Some(Ok(Message::Binary(bytes))) => {
                    let place = self.place(&bytes);
                    return Ok(Said::Binary(bytes, place));
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                Some(Ok(Message::Close(frame))) => return Err(End::Closed(frame)),
                Some(Err(error)) => return Err(End::of(&error, self.limit)),
                None => {
                    return Err(End::Lost { reset: false, detail: "closed without a word".to_owned() });
                }
            }
        }
    }

    fn place(&mut self, message: &Bytes) -> Option<Place> {
        self.last = (message.len() > LARGE).then(|| message.clone());
        self.meter.take(message.len())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> To<S> {
    /// Puts a message behind all that is to leave.
    pub(super) fn put(&mut self, said: Said) {
        let (kind, bytes, mut place) = match said {
            Said::Text(text, place) => (Data::Text, Bytes::from(text), place),
            Said::Binary(bytes, place) => (Data::Binary, bytes, place),
        };
        // One that is empty is a frame, too.
        for start in (0..bytes.len().max(1)).step_by(FRAME) {
            let end = (start + FRAME).min(bytes.len());
            let (kind, is_last) = (if start == 0 { kind } else { Data::Continue }, end == bytes.len());
            let frame = Frame::message(bytes.slice(start..end), OpCode::Data(kind), is_last);
            self.outgoing.push_back((frame, if is_last { place.take() } else { None }));
        }
    }

    /// Puts a ping there.
    pub(super) fn put_ping(&mut self) {
        self.outgoing.push_back((Frame::ping(Bytes::new()), None));
    }

    /// Whether something is to leave.
    pub(super) fn has_more(&self) -> bool {
        self.is_unflushed || !self.outgoing.is_empty()
    }

    /// A part of what is to leave does. Nothing is lost where this is dropped before it is ready.
    ///
    /// # Errors
    /// Where the connection is lost, and what was to leave with it.
    pub(super) async fn leave(&mut self) -> Result<(), String> {
        poll_fn(|cx| self.poll_leave(cx)).await.map_err(|error| {
            self.outgoing.clear();
            self.is_unflushed = false;
            error.to_string()
        })
    }

    fn poll_leave(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        // Answers to pings first: there has to be room for a frame.
        ready!(self.sink.poll_flush_unpin(cx))?;
        self.is_unflushed = false;
        let Some((frame, place)) = self.outgoing.pop_front() else { return Poll::Ready(Ok(())) };
        self.sink.start_send_unpin(Message::Frame(frame))?;
        drop(place);
        self.is_unflushed = true;
        ready!(self.sink.poll_flush_unpin(cx))?;
        self.is_unflushed = false;
        Poll::Ready(Ok(()))
    }

    /// Says goodbye behind what has begun to leave.
    async fn close(&mut self, frame: Option<CloseFrame>) -> Result<(), Error> {
        self.sink.flush().await?;
        self.sink.send(Message::Close(frame)).await
    }
}

/// What comes next from the upstream, while what is on its way to it leaves: a service that writes before it reads must
/// not block both. Never, where there is none. A side that has ended is there no longer.
pub(super) async fn next_of(upstream: &mut Option<Leg>) -> Got {
    let Some(leg) = upstream else { return std::future::pending().await };
    let got = loop {
        tokio::select! {
            biased;
            left = leg.to.leave(), if leg.to.has_more() => {
                // One that takes nothing any more may have words left.
                if left.is_ok() {
                    break Got::Left;
                }
            }
            came = leg.from.next() => break came.map_or_else(Got::End, Got::Said),
        }
    };
    if let Got::End(end) = &got
        && let Some(leg) = upstream.take()
    {
        leg.take_leave(end);
    }
    got
}
