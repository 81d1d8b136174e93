//! One side of a WebSocket: whole messages in and out, and how it ends. Pings are answered by the library, each on its
//! own side.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
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

/// What comes from a side.
#[derive(Debug)]
pub(super) enum Got {
    /// A message.
    Said(Said),
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
pub(super) struct To<S = TokioIo<Upgraded>>(SplitSink<WebSocketStream<Metered<S>>, Message>);

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
    /// What we are on it is `role`; no message is longer than `limit` bytes, and each takes from `room`.
    pub(super) async fn new(io: S, role: Role, limit: usize, room: &Arc<Room>) -> Self {
        let meter = Meter::new(room);
        let io = Metered::new(io, meter.clone());
        let config = WebSocketConfig::default()
            .read_buffer_size(READ)
            .write_buffer_size(0)
            .max_message_size(Some(limit))
            .max_frame_size(Some(limit));
        let (to, stream) = WebSocketStream::from_raw_socket(io, role, Some(config)).await.split();
        Self { to: To(to), from: From { stream, limit, meter, last: None } }
    }

    /// Says goodbye, and waits for a while until the other side has heard it.
    pub(super) async fn close(mut self, frame: Option<CloseFrame>) {
        let parting = async {
            // Where the other side has closed already, it is answered by what is read.
            let _told = self.to.0.send(Message::Close(frame)).await;
            while let Some(Ok(_)) = self.from.stream.next().await {}
        };
        // Late or not, it is over.
        let _in_time = tokio::time::timeout(PARTING, parting).await;
    }

    /// Says goodbye for a violation: what follows cannot be read, but is taken in for a while, since a connection that
    /// is closed before would lose the goodbye.
    pub(super) async fn turn_away(mut self, frame: CloseFrame) {
        let parting = async {
            let told = self.to.0.send(Message::Close(Some(frame))).await;
            let (Ok(()), Ok(mut whole)) = (told, self.from.stream.reunite(self.to.0)) else { return };
            // One that has read it waits for this before it goes (section 7.1.1).
            let _ended = whole.get_mut().shutdown().await;
            let mut rest = [0; READ];
            while matches!(whole.get_mut().read(&mut rest).await, Ok(read) if read > 0) {}
        };
        let _in_time = tokio::time::timeout(HEARING_OUT, parting).await;
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> From<S> {
    /// The next message, or the end. Nothing is lost where this is dropped before it is ready.
    pub(super) async fn next(&mut self) -> Got {
        loop {
            let next = poll_fn(|cx| {
                let polled = self.stream.poll_next_unpin(cx);
                self.last = None;
                polled
            });
            match next.await {
                Some(Ok(Message::Text(text))) => {
                    let place = self.place(text.as_ref());
                    return Got::Said(Said::Text(text, Some(place)));
                }
                Some(Ok(Message::Binary(bytes))) => {
                    let place = self.place(&bytes);
                    return Got::Said(Said::Binary(bytes, Some(place)));
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                Some(Ok(Message::Close(frame))) => return Got::End(End::Closed(frame)),
                Some(Err(error)) => return Got::End(End::of(&error, self.limit)),
                None => {
                    let detail = "closed without a word".to_owned();
                    return Got::End(End::Lost { reset: false, detail });
                }
            }
        }
    }

    fn place(&mut self, message: &Bytes) -> Place {
        self.last = (message.len() > LARGE).then(|| message.clone());
        self.meter.take(message.len())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> To<S> {
    /// Sends a message. One that is dropped halfway leaves the side unfit for another.
    ///
    /// # Errors
    /// Where the connection is lost.
    pub(super) async fn send(&mut self, said: Said) -> Result<(), String> {
        let (kind, bytes, _place) = match said {
            Said::Text(text, place) => (Data::Text, Bytes::from(text), place),
            Said::Binary(bytes, place) => (Data::Binary, bytes, place),
        };
        // One that is empty is a frame, too.
        for start in (0..bytes.len().max(1)).step_by(FRAME) {
            let end = (start + FRAME).min(bytes.len());
            let kind = if start == 0 { kind } else { Data::Continue };
            let frame = Frame::message(bytes.slice(start..end), OpCode::Data(kind), end == bytes.len());
            self.put(Message::Frame(frame)).await?;
        }
        Ok(())
    }

    /// Sends a ping.
    ///
    /// # Errors
    /// Where the connection is lost.
    pub(super) async fn ping(&mut self) -> Result<(), String> {
        self.put(Message::Ping(Bytes::new())).await
    }

    async fn put(&mut self, message: Message) -> Result<(), String> {
        self.0.send(message).await.map_err(|error| error.to_string())
    }
}
