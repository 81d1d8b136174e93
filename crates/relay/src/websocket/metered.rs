//! The I/O below one side of a WebSocket. It takes room for messages as they come, so that all of them together stay below
//! a limit, whatever is announced, and sees to it that the library can let the memory of a large one go.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::body::{Place, Room};
use crate::clock::IdleLimit;

/// A frame with more than this is large.
pub(super) const LARGE: usize = 64 * 1024;

/// The longest payload of a control frame (RFC 6455, section 5.5).
const CONTROL: u64 = 125;

/// The room that is taken for what has come and has not been asked for yet; none once all of that is thrown away.
#[derive(Debug, Clone)]
pub(super) struct Meter(Arc<Mutex<Option<Place>>>);

impl Meter {
    pub(super) fn new(room: &Arc<Room>) -> Self {
        Self(Arc::new(Mutex::new(Some(Place::none(room)))))
    }

    fn grow(&self, bytes: usize) -> bool {
        self.place().as_mut().is_none_or(|place| place.grow(bytes))
    }

    /// The place of a message of so many bytes, which has come whole.
    pub(super) fn take(&self, bytes: usize) -> Option<Place> {
        self.place().as_mut().map(|place| place.split(bytes))
    }

    /// From here on all that comes is thrown away.
    pub(super) fn stop(&self) {
        *self.place() = None;
    }

    fn place(&self) -> MutexGuard<'_, Option<Place>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where in a frame the bytes that pass are (RFC 6455, section 5.2).
#[derive(Debug, Default)]
struct Framing {
    head: [u8; 14],
    has: usize,
    /// What is still to come of a payload.
    left: u64,
    /// The payload is part of a message.
    counts: bool,
    /// A message has begun whose last frame has not.
    is_open: bool,
    /// A control frame is too long: the library would take all of it in before it says so.
    is_wrong: bool,
}

impl Framing {
    /// Goes over bytes, but not beyond the head of a large frame. How many those are, and how many of them are of
    /// messages.
    fn pass(&mut self, bytes: &[u8]) -> (usize, usize) {
        let (mut at, mut counted) = (0, 0);
        while let Some(&byte) = bytes.get(at) {
            if self.left > 0 {
                let some = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len() - at);
                self.left -= some as u64;
                at += some;
                counted += if self.counts { some } else { 0 };
                continue;
            }
            self.head[self.has] = byte;
            self.has += 1;
            at += 1;
            let Some(length) = self.length() else { continue };
            self.has = 0;
            self.left = length;
            // From 8 on they are control frames (section 5.5).
            self.counts = self.head[0] & 0x08 == 0;
            if self.counts {
                self.is_open = self.head[0] & 0x80 == 0;
            }
            self.is_wrong |= !self.counts && length > CONTROL;
            if self.is_wrong || length > LARGE as u64 {
                break;
            }
        }
        (at, counted)
    }

    /// Whether more has to come.
    const fn is_amid(&self) -> bool {
        self.has > 0 || self.left > 0 || self.is_open
    }

    /// The payload's length, once the head is there.
    fn length(&self) -> Option<u64> {
        let [_, second, rest @ ..] = self.head;
        if self.has < 2 {
            return None;
        }
        let mask = if second & 0x80 == 0 { 0 } else { 4 };
        let short = second & 0x7f;
        let extended = match short {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        if self.has < 2 + extended + mask {
            return None;
        }
        let long = rest.iter().take(extended).fold(0, |long, &byte| long << 8 | u64::from(byte));
        Some(if extended == 0 { u64::from(short) } else { long })
    }
}

/// I/O that is metered.
#[derive(Debug)]
pub(super) struct Metered<S> {
    io: S,
    framing: Framing,
    meter: Meter,
    /// How long nothing may come in the middle of a message.
    stall: Option<IdleLimit>,
    /// What was read and is to be passed on with the next read: the begin of a large payload, which the library is to
    /// see apart from its head. Then it makes room for just that payload; behind other bytes it would hold on to all of
    /// it for as long as the connection lives.
    ahead: Vec<u8>,
}

impl<S> Metered<S> {
    pub(super) fn new(io: S, meter: Meter, stall: Option<Duration>) -> Self {
        Self { io, framing: Framing::default(), meter, stall: stall.map(IdleLimit::new), ahead: Vec::new() }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    /// # Errors
    /// `OutOfMemory` where there is no room for what came, `TimedOut` where nothing came in the middle of a message,
    /// `InvalidData` where a control frame is too long.
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let start = into.filled().len();
        if this.ahead.is_empty() {
            let polled = Pin::new(&mut this.io).poll_read(cx, into);
            match &mut this.stall {
                Some(stall) if polled.is_pending() && this.framing.is_amid() => {
                    ready!(stall.poll_passed(cx));
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
                Some(stall) => stall.restart(),
                None => {}
            }
            ready!(polled)?;
        } else {
            let some = this.ahead.len().min(into.remaining());
            into.put_slice(&this.ahead[..some]);
            this.ahead = this.ahead.split_off(some);
        }
        let read = into.filled().get(start..).unwrap_or_default();
        let (passed, counted) = this.framing.pass(read);
        if this.framing.is_wrong {
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        if let Some(rest) = read.get(passed..)
            && !rest.is_empty()
        {
            this.ahead.splice(0..0, rest.iter().copied());
            into.set_filled(start + passed);
        }
        if !this.meter.grow(counted) {
            return Poll::Ready(Err(io::ErrorKind::OutOfMemory.into()));
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().io).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio::io::AsyncReadExt as _;

    use super::*;

    /// A frame; masked ones come from clients.
    fn frame(first: u8, length: usize, masked: bool) -> Vec<u8> {
        let mask = if masked { 0x80 } else { 0 };
        let mut frame = vec![first];
        match length {
            0..126 => frame.push(mask | u8::try_from(length).unwrap()),
            126..65_536 => {
                frame.push(mask | 126);
                frame.extend(u16::try_from(length).unwrap().to_be_bytes());
            }
            _ => {
                frame.push(mask | 127);
                frame.extend((length as u64).to_be_bytes());
            }
        }
        frame.extend(std::iter::repeat_n(7, if masked { 4 } else { 0 }));
        frame.extend(std::iter::repeat_n(0x82, length));
        frame
    }

    async fn read_all(
        bytes: &[u8],
        room: &Arc<Room>,
        at_once: usize,
    ) -> (Vec<Vec<u8>>, Meter, io::Result<()>) {
        let meter = Meter::new(room);
        let mut metered = Metered::new(bytes, meter.clone(), None);
        let (mut pieces, mut buffer) = (Vec::new(), vec![0; at_once]);
        loop {
            match metered.read(&mut buffer).await {
                Ok(0) => return (pieces, meter, Ok(())),
                Ok(read) => pieces.push(buffer[..read].to_vec()),
                Err(error) => return (pieces, meter, Err(error)),
            }
        }
    }

    proptest! {
        #[test]
        fn bytes_pass_as_they_are_and_messages_alone_count(
            frames in prop::collection::vec(
                prop_oneof![
                    (0u8..8, prop_oneof![0usize..200, 65_000usize..70_000], any::<bool>()),
                    (8u8..16, 0usize..=125, any::<bool>()),
                ],
                0..6,
            ),
            at_once in prop_oneof![1usize..20, Just(8192)],
        ) {
            let bytes: Vec<u8> = frames.iter().flat_map(|&(first, length, masked)| frame(first, length, masked)).collect();
            let of_messages: usize = frames.iter().filter(|&&(first, ..)| first < 8).map(|&(_, length, _)| length).sum();
            let room = Room::new(1 << 20);
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let (pieces, meter, ended) = runtime.block_on(read_all(&bytes, &room, at_once));
            prop_assert!(ended.is_ok());
            prop_assert_eq!(room.left(), (1 << 20) - of_messages);
            let mut at = 0;
            let mut heads = Vec::new();
            for &(first, length, masked) in &frames {
                let whole = frame(first, length, masked).len();
                at += whole;
                if length > LARGE {
                    heads.push(at - length);
                }
            }
            let mut ends = Vec::new();
            for piece in &pieces {
                ends.push(ends.last().copied().unwrap_or(0) + piece.len());
            }
            prop_assert!(heads.iter().all(|head| ends.contains(head)), "a large payload comes apart from its head");
            prop_assert_eq!(pieces.concat(), bytes);
            drop(meter.take(of_messages));
            prop_assert_eq!(room.left(), 1 << 20);
        }
    }

    #[tokio::test]
    async fn room_is_taken_as_bytes_come_and_not_as_they_are_announced() {
        let room = Room::new(100_000);
        let announced = frame(0x82, 1_000_000, true);
        let (_, meter, ended) = read_all(&announced[..50_000], &room, 8192).await;
        assert!(ended.is_ok() && room.left() > 50_000);
        drop(meter);
        assert_eq!(room.left(), 100_000);
        let (_, meter, ended) = read_all(&announced, &room, 8192).await;
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::OutOfMemory);
        drop(meter);
        assert_eq!(room.left(), 100_000);
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_that_stops_halfway_is_given_up() {
        let stall = Duration::from_secs(3);
        let whole = frame(0x81, 5, true);
        let open = frame(0x01, 5, true);
        let halves = [&whole[..1], &whole[..4], &whole[..8], &open, &[whole.as_slice(), &open[..7]].concat()];
        for half in halves {
            let (mut client, side) = tokio::io::duplex(100);
            let mut metered = Metered::new(side, Meter::new(&Room::new(1000)), Some(stall));
            tokio::io::AsyncWriteExt::write_all(&mut client, half).await.unwrap();
            let begun = tokio::time::Instant::now();
            let mut into = [0; 100];
            let ended = loop {
                if let Err(error) = metered.read(&mut into).await {
                    break error;
                }
            };
            assert_eq!((ended.kind(), begun.elapsed().as_secs()), (io::ErrorKind::TimedOut, 3), "{half:?}");
        }
        let (mut client, side) = tokio::io::duplex(100);
        let mut metered = Metered::new(side, Meter::new(&Room::new(1000)), Some(stall));
        tokio::io::AsyncWriteExt::write_all(&mut client, &whole).await.unwrap();
        let reading = async { while metered.read(&mut [0; 100]).await.is_ok() {} };
        assert!(
            tokio::time::timeout(Duration::from_secs(9), reading).await.is_err(),
            "between messages it may"
        );
    }

    #[tokio::test]
    async fn a_control_frame_that_is_too_long_is_refused_by_its_head() {
        let room = Room::new(1000);
        for announced in [126, 60 << 20] {
            let head = &frame(0x89, announced, true)[..14.min(announced)];
            let (_, _, ended) = read_all(head, &room, 8192).await;
            assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
    }

    #[tokio::test]
    async fn what_is_thrown_away_takes_no_room() {
        let room = Room::new(1000);
        let meter = Meter::new(&room);
        assert!(meter.grow(900) && !meter.grow(200));
        meter.stop();
        assert!(meter.grow(200) && meter.take(5).is_none());
        assert_eq!(room.left(), 1000);
    }
}
