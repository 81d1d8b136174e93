//! An upstream's answer while it is listened to: the bytes as they came, held until commit, and the listener that
//! is told a decoded copy.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::response::Parts;
use http_body::{Body as _, Frame};
use relay_core::Moment;
use relay_core::failure::Failure;
use relay_core::preamble::{Preamble, Verdict};
use relay_core::usage::Usage;

use crate::clock::{Clock, IdleLimit, sleep_until};
use crate::decode::{DecodeLimits, Decoder, Encoding, Undecodable};
use crate::snapshots::Answered;
use crate::upstream::{AnswerBody, AnswerBreak, AnswerError};

/// How much plain text is made of an encoded answer; beyond it the answer is passed on unread.
const DECODE: DecodeLimits = DecodeLimits { per_push: 8 << 20, total: 16 << 20 };

/// So many pieces are held before they are put together, if all are crumbs.
const LOOSE: usize = 64;
/// A piece whose bytes weigh less than what it takes to hold it apart.
const CRUMB: usize = 256;

enum Copy {
    /// The wire is plain.
    Plain,
    /// The wire is decoded.
    Decoded(Box<Decoded>),
    /// The wire cannot be read.
    Opaque,
}

/// An encoded answer and what its last piece became.
struct Decoded {
    decoder: Decoder,
    text: Vec<u8>,
    /// How many plain bytes came before it.
    before: u64,
    /// Where the answer may be cut within a piece: after which byte of the wire how many plain ones had come.
    steps: Vec<(usize, u64)>,
}

impl Decoded {
    fn push(&mut self, wire: &[u8], may_be_cut: bool) -> Result<(), Undecodable> {
        self.before += self.text.len() as u64;
        self.text.clear();
        self.steps.clear();
        if !may_be_cut {
            return self.decoder.push(wire, &mut self.text);
        }
        for (at, byte) in wire.iter().enumerate() {
            let length = self.text.len();
            self.decoder.push(std::slice::from_ref(byte), &mut self.text)?;
            if self.text.len() > length {
                self.steps.push((at + 1, self.before + self.text.len() as u64));
            }
        }
        Ok(())
    }

    /// How much of the last piece goes to the client where the event that begins at the plain byte `at` does not.
    fn keep(&self, at: u64) -> usize {
        let Some(start) = at.checked_sub(self.before).and_then(|start| usize::try_from(start).ok()) else {
            return 0;
        };
        let came = |plain: u64| usize::try_from(plain - self.before).unwrap_or(usize::MAX);
        let within = self.steps.partition_point(|&(_, plain)| plain < at);
        // The wire byte that ends what comes before may begin the event as well. Its first words say nothing yet.
        let first = self.steps.get(within).filter(|&&(_, plain)| {
            self.text
                .get(start..came(plain))
                .is_some_and(|begun| !begun.iter().any(|byte| b"\r\n".contains(byte)))
        });
        first.or(within.checked_sub(1).and_then(|last| self.steps.get(last))).map_or(0, |&(wire, _)| wire)
    }
}

/// An answer whose head has arrived.
pub(crate) struct Answer {
    /// Status, headers and what belongs to them.
    pub(crate) head: Parts,
    /// `None`: it is over.
    body: Option<AnswerBody>,
    /// It was over before its end.
    broke: bool,
    copy: Copy,
    preamble: Preamble,
    held: VecDeque<Frame<Bytes>>,
    /// How many of those that are held, from the end, were not yet put together.
    loose: usize,
    /// How many plain bytes came before those that are held.
    passed: u64,
}

/// What comes next of an answer that passes.
pub(crate) enum Next {
    /// A piece, as it came.
    Piece(Frame<Bytes>),
    /// The listener has seen the end, or the break, or the event that ends it.
    Ended(Verdict),
}

impl Answer {
    /// The tokens that it says it took, as far as it was heard.
    pub(crate) const fn usage(&self) -> Option<Usage> {
        self.preamble.usage()
    }

    /// Begins to listen.
    pub(crate) fn new(head: Parts, body: AnswerBody, preamble: Preamble) -> Self {
        let copy = match Encoding::named(head.headers.get_all(http::header::CONTENT_ENCODING)) {
            Some(Encoding::Identity) => Copy::Plain,
            Some(encoding) => Copy::Decoded(Box::new(Decoded {
                decoder: Decoder::new(encoding, DECODE),
                text: Vec::new(),
                before: 0,
                steps: Vec::new(),
            })),
            None => Copy::Opaque,
        };
        Self {
            head,
            body: Some(body),
            broke: false,
            copy,
            preamble,
            held: VecDeque::new(),
            loose: 0,
            passed: 0,
        }
    }

    /// Listens until it is clear what the answer is; [`Verdict::Hold`] where nothing came within `idle`.
    pub(crate) async fn listen(&mut self, clock: &dyn Clock, idle: std::time::Duration) -> Verdict {
        let mut verdict = self.preamble.at_head();
        if matches!(self.copy, Copy::Opaque) && verdict == Verdict::Hold {
            verdict = self.preamble.undecodable();
        }
        let mut limit = IdleLimit::new(idle);
        while verdict == Verdict::Hold {
            let due = self.preamble.due();
            tokio::select! {
                biased;
                next = std::future::poll_fn(|cx| self.poll_piece(cx, clock.now())) => {
                    limit.restart();
                    verdict = match next {
                        (Some(frame), verdict) => {
                            self.hold(frame);
                            verdict
                        }
                        (None, verdict) => verdict,
                    };
                }
                () = wait_for(clock, due) => verdict = self.preamble.timed_out(),
                () = limit.passed() => return self.preamble.fell_silent(),
            }
        }
        if let Verdict::Cut { at, .. } = &verdict {
            self.cut_held(*at);
        }
        verdict
    }

    /// The next piece of the wire and what the listener says to it.
    fn poll_piece(&mut self, cx: &mut Context<'_>, now: Moment) -> Poll<(Option<Frame<Bytes>>, Verdict)> {
        let Some(body) = &mut self.body else {
            let verdict = if self.broke { self.preamble.broke() } else { self.preamble.ended() };
            return Poll::Ready((None, verdict));
        };
        let piece = std::task::ready!(Pin::new(body).poll_frame(cx));
        Poll::Ready(match piece {
            Some(Ok(frame)) => {
                let verdict =
                    frame.data_ref().map(|data| hear(&mut self.copy, &mut self.preamble, data, now));
                let verdict =
                    verdict.unwrap_or(if self.preamble.is_passing() { Verdict::Pass } else { Verdict::Hold });
                (Some(frame), verdict)
            }
            Some(Err(error)) => {
                self.body = None;
                self.broke = true;
                (None, named(self.preamble.broke(), &error))
            }
            None => {
                self.body = None;
                (None, self.preamble.ended())
            }
        })
    }

    fn hold(&mut self, frame: Frame<Bytes>) {
        if self.loose == LOOSE {
            self.put_together();
        }
        self.held.push_back(frame);
        self.loose += 1;
    }

    /// What comes in crumbs would cost many times its bytes as long as it is held. The pieces before the newest are
    /// made one; each byte is copied once.
    fn put_together(&mut self) {
        self.loose = 0;
        let start = self.held.len().saturating_sub(LOOSE);
        let small = |frame: &Frame<Bytes>| frame.data_ref().is_some_and(|data| data.len() <= CRUMB);
        if !self.held.iter().skip(start).all(small) {
            return;
        }
        let crumbs: Vec<_> = self.held.drain(start..).filter_map(|frame| frame.into_data().ok()).collect();
        self.held.push_back(Frame::data(crumbs.concat().into()));
    }

    /// Keeps of what is held only what comes before the plain byte `at`.
    fn cut_held(&mut self, at: u64) {
        match &self.copy {
            Copy::Plain => {
                let mut room = at.saturating_sub(self.passed);
                for frame in std::mem::take(&mut self.held) {
                    let Ok(mut data) = frame.into_data() else { continue };
                    let keep = usize::try_from(room).unwrap_or(usize::MAX).min(data.len());
                    data.truncate(keep);
                    room -= keep as u64;
                    if !data.is_empty() {
                        self.held.push_back(Frame::data(data));
                    }
                }
            }
            // The event ended in the last piece.
            Copy::Decoded(decoded) => {
                let last = self.held.pop_back().and_then(|frame| frame.into_data().ok());
                if let Some(mut data) = last {
                    data.truncate(decoded.keep(at));
                    self.held.push_back(Frame::data(data));
                }
            }
            Copy::Opaque => {}
        }
        self.body = None;
    }

    /// The answer goes to the client although it tells of a failure.
    pub(crate) fn release(&mut self) {
        self.preamble.release();
    }

    /// What its head says of it where nobody listens; `None`: it is none of an error.
    pub(crate) fn unread(&mut self) -> Option<Failure> {
        self.preamble.unread()
    }

    /// The answer goes to the client as it comes, and nobody listens any more: its end is the end of its bytes.
    pub(crate) fn pass_unread(&mut self) {
        self.copy = Copy::Opaque;
        self.preamble.release();
        let passes = self.preamble.undecodable();
        debug_assert_eq!(passes, Verdict::Pass, "what was released and cannot be read passes");
    }

    /// Nothing more is read; what is held can still be forwarded.
    pub(crate) fn stop_reading(&mut self) {
        self.body = None;
    }

    /// Reads the short rest of a failed answer, to keep it while its call waits: its connection can serve again then.
    /// False where that would be too much to keep, or comes too slowly.
    pub(crate) async fn read_rest(&mut self) -> bool {
        const MOST: usize = 64 * 1024;
        const WITHIN: std::time::Duration = std::time::Duration::from_secs(2);
        let held = |frames: &VecDeque<Frame<Bytes>>| -> usize {
            frames.iter().filter_map(Frame::data_ref).map(Bytes::len).sum()
        };
        let rest = async {
            while let Some(body) = &mut self.body {
                match std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await {
                    Some(Ok(frame)) => self.hold(frame),
                    Some(Err(_)) => {
                        self.body = None;
                        self.broke = true;
                    }
                    None => self.body = None,
                }
                if held(&self.held) > MOST {
                    return false;
                }
            }
            held(&self.held) <= MOST
        };
        matches!(tokio::time::timeout(WITHIN, rest).await, Ok(true))
    }

    /// Reads the short rest of a failed answer, so that its connection can serve again.
    pub(crate) fn recycle(self) {
        const MOST: usize = 256 * 1024;
        const WITHIN: std::time::Duration = std::time::Duration::from_secs(2);
        if let Some(body) = self.body {
            tokio::spawn(body.drain(MOST, WITHIN));
        }
    }

    /// The failure that was told after output; see [`Preamble::take_late`].
    pub(crate) const fn take_late(&mut self) -> Option<Box<Failure>> {
        self.preamble.take_late()
    }

    /// What was held, then what comes, piece by piece.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>, now: Moment) -> Poll<Next> {
        if let Some(frame) = self.held.pop_front() {
            self.passed += frame.data_ref().map_or(0, |data| data.len() as u64);
            return Poll::Ready(Next::Piece(frame));
        }
        let (frame, verdict) = std::task::ready!(self.poll_piece(cx, now));
        match (frame, verdict) {
            (Some(frame), Verdict::Cut { at, fault }) => {
                self.hold(frame);
                self.cut_held(at);
                Poll::Ready(Next::Ended(Verdict::Cut { at, fault }))
            }
            (Some(frame), Verdict::Hold | Verdict::Pass | Verdict::Fault(_)) => {
                self.passed += frame.data_ref().map_or(0, |data| data.len() as u64);
                Poll::Ready(Next::Piece(frame))
            }
            (None, verdict) => Poll::Ready(Next::Ended(verdict)),
        }
    }

    /// Its head and what is held of it.
    pub(crate) fn so_far(&self) -> Answered {
        let body = self.held.iter().filter_map(Frame::data_ref).cloned().collect();
        Answered { body, ..self.head_alone() }
    }

    /// Its head.
    pub(crate) fn head_alone(&self) -> Answered {
        let (status, headers) = (Some(self.head.status.as_u16()), self.head.headers.clone());
        Answered { status, headers, body: Vec::new(), kind: None }
    }

    /// The next piece of what is held.
    pub(crate) fn next_held(&mut self) -> Option<Frame<Bytes>> {
        self.held.pop_front()
    }

    /// How far the answer has come; see [`Preamble::progress`].
    pub(crate) const fn progress(&self) -> u64 {
        self.preamble.progress()
    }

    /// Its announced length is reached: what it is if this was its end.
    pub(crate) fn ends_here(&mut self) -> Verdict {
        self.preamble.ended()
    }

    /// Whether its last word was heard.
    pub(crate) const fn has_ended(&self) -> bool {
        self.preamble.has_ended()
    }

    /// Whether its last word has been handed on.
    pub(crate) fn has_said_all(&self) -> bool {
        self.held.is_empty() && self.has_ended()
    }

    /// Whether it has completed a Codex turn; see [`Preamble::has_completed`].
    pub(crate) const fn has_completed(&self) -> bool {
        self.preamble.has_completed()
    }

    /// Whether nothing is held and the upstream has no more.
    pub(crate) fn is_done(&self) -> bool {
        self.held.is_empty() && self.body.as_ref().is_none_or(http_body::Body::is_end_stream)
    }
}

fn hear(copy: &mut Copy, preamble: &mut Preamble, data: &Bytes, now: Moment) -> Verdict {
    match copy {
        Copy::Plain => preamble.hear(data, data.len(), now),
        Copy::Decoded(decoded) => {
            let pushed = decoded.push(data, preamble.withholds());
            let verdict = preamble.hear(&decoded.text, data.len(), now);
            if pushed.is_err() {
                // A cut needs to know what it cuts.
                if matches!(verdict, Verdict::Cut { .. }) {
                    return verdict;
                }
                *copy = Copy::Opaque;
                return match verdict {
                    // What cannot be read cannot be found wanting either: its own end is its end.
                    Verdict::Hold | Verdict::Pass => preamble.undecodable(),
                    Verdict::Fault(_) | Verdict::Cut { .. } => verdict,
                };
            }
            verdict
        }
        Copy::Opaque => preamble.hear(&[], data.len(), now),
    }
}

async fn wait_for(clock: &dyn Clock, due: Option<Moment>) {
    match due {
        Some(due) => sleep_until(clock, due).await,
        None => std::future::pending().await,
    }
}

/// The failure with the way the connection ended as its code, which decides what a client is told.
fn named(verdict: Verdict, error: &AnswerError) -> Verdict {
    match verdict {
        Verdict::Fault(failure) if failure.status.is_none_or(|status| status < 400) => {
            let code = match error.kind {
                AnswerBreak::Reset => "reset",
                AnswerBreak::Closed => "closed",
                AnswerBreak::Malformed => "malformed",
            };
            let named = Failure { code: Some(code.into()), ..failure.saying(error.detail.as_str()) };
            Verdict::Fault(Box::new(named))
        }
        Verdict::Hold | Verdict::Pass | Verdict::Fault(_) | Verdict::Cut { .. } => verdict,
    }
}
