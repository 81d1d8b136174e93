//! The body that the caller gets: what was held, then what comes, untouched and at once.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use relay_core::event::Outcome;
use relay_core::preamble::{Preamble, Verdict};

use crate::open::Open;
use crate::pieces::Pieces;
use crate::request::with_held;

/// The body of an answer, as the service inside gave it.
pub struct SteadyBody<R: Body> {
    held: Pieces,
    trailers: Option<HeaderMap>,
    rest: Option<Pin<Box<R>>>,
    broke: Option<R::Error>,
    watch: Option<Box<Watch>>,
}

/// Who is to hear how the answer ends.
pub(crate) struct Watch {
    pub(crate) open: Open,
    /// Who listens to it. To one that tells of a failure nobody does any more.
    pub(crate) preamble: Option<Preamble>,
    pub(crate) outcome: Outcome,
}

impl<R: Body> SteadyBody<R> {
    pub(crate) fn new(
        (held, trailers): (Pieces, Option<HeaderMap>),
        (rest, broke): (Option<Pin<Box<R>>>, Option<R::Error>),
        watch: Option<Box<Watch>>,
    ) -> Self {
        Self { held, trailers, rest, broke, watch }
    }

    fn is_held(&self) -> bool {
        self.held.len() > 0 || self.trailers.is_some() || self.broke.is_some()
    }

    /// Whether nothing comes any more. Whoever is told so need not ask for the end.
    fn is_over(&self) -> bool {
        !self.is_held() && self.rest.as_ref().is_none_or(|rest| rest.is_end_stream())
    }
}

impl<R: Body> std::fmt::Debug for SteadyBody<R> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("SteadyBody").field("held", &self.held.len()).finish_non_exhaustive()
    }
}

// Nothing in it is pinned but what lies in a box of its own.
impl<R: Body> Unpin for SteadyBody<R> {}

impl<R: Body<Data = Bytes>> Body for SteadyBody<R> {
    type Data = Bytes;
    type Error = R::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, R::Error>>> {
        let this = &mut *self;
        let (next, is_new) = if let Some(data) = this.held.pop() {
            (Some(Ok(Frame::data(data))), false)
        } else if let Some(trailers) = this.trailers.take() {
            (Some(Ok(Frame::trailers(trailers))), false)
        } else if let Some(rest) = &mut this.rest {
            (std::task::ready!(rest.as_mut().poll_frame(cx)), true)
        } else {
            (this.broke.take().map(Err), true)
        };
        let is_over = !matches!(next, Some(Ok(_)));
        if is_over {
            this.rest = None;
        }
        if let Some(watch) = &mut this.watch {
            match &next {
                Some(Ok(frame)) => watch.came(frame, is_new),
                Some(Err(_)) => watch.close(Outcome::Broken),
                None => watch.ended(),
            }
        }
        if is_over {
            this.watch = None;
        }
        Poll::Ready(next)
    }

    fn is_end_stream(&self) -> bool {
        self.is_over()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = match &self.rest {
            Some(rest) => rest.size_hint(),
            None if self.broke.is_some() => SizeHint::new(),
            None => SizeHint::with_exact(0),
        };
        with_held(self.held.len(), &rest)
    }
}

impl<R: Body> Drop for SteadyBody<R> {
    fn drop(&mut self) {
        // A caller that has the last word need not wait for the end.
        let (has_all, is_over) = (!self.is_held(), self.is_over());
        if let Some(watch) = &mut self.watch {
            if is_over || (has_all && watch.has_ended()) {
                watch.ended();
            } else {
                watch.close(Outcome::ClientLeft);
            }
        }
    }
}

impl Watch {
    fn came(&mut self, frame: &Frame<Bytes>, is_new: bool) {
        let Some(data) = frame.data_ref() else { return };
        self.open.sends_on(data.len());
        if let Some(preamble) = self.preamble.as_mut().filter(|_| is_new) {
            // It is on its way, whatever is said to it. Where it cannot be read, the listener knows that since its head.
            let _verdict = preamble.hear(data, data.len(), self.open.now());
        }
    }

    /// Whether the last word was heard.
    fn has_ended(&self) -> bool {
        self.preamble.as_ref().is_some_and(Preamble::has_ended)
    }

    fn ended(&mut self) {
        let is_whole = self.preamble.as_mut().is_none_or(|preamble| match preamble.ended() {
            Verdict::Pass | Verdict::Hold => true,
            Verdict::Fault(_) | Verdict::Cut { .. } => false,
        });
        self.close(if is_whole { Outcome::Served } else { Outcome::Broken });
    }

    /// An answer that was no success ends as what it is.
    fn close(&mut self, outcome: Outcome) {
        let outcome = if self.outcome == Outcome::Served { outcome } else { self.outcome };
        self.open.usage(self.preamble.as_ref().and_then(Preamble::usage));
        self.open.close(outcome);
    }
}
