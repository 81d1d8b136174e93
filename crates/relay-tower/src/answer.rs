//! An answer while it is listened to: the bytes as they came, held until the listener has made up its mind.

use std::fmt::Display;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::response::Parts;
use http::{HeaderMap, Method, Response, StatusCode};
use http_body::Body;
use relay_core::Moment;
use relay_core::dialect::Rule;
use relay_core::evidence::Evidence;
use relay_core::failure::Failure;
use relay_core::fault::Fault;
use relay_core::preamble::{Asked, Head, Preamble, Verdict};
use std::sync::Arc;

use crate::clock::{Clock, wall};
use crate::pieces::Pieces;
use crate::request::is_plain;

/// An answer whose head has arrived.
pub(crate) struct Answer<R: Body> {
    pub(crate) head: Parts,
    pub(crate) held: Pieces,
    pub(crate) trailers: Option<HeaderMap>,
    /// `None`: it is over.
    pub(crate) rest: Option<Pin<Box<R>>>,
    /// How it broke off, if it did.
    pub(crate) broke: Option<R::Error>,
    pub(crate) preamble: Preamble,
    is_plain: bool,
}

/// What was heard.
pub(crate) enum Heard {
    /// It belongs to the caller.
    Passes,
    /// It tells of a failure.
    Failed(Box<Failure>),
    /// Nothing came for too long.
    Silent,
}

impl<R> Answer<R>
where
    R: Body<Data = Bytes>,
    R::Error: Display,
{
    /// Begins to listen to what a request of this method was answered.
    pub(crate) fn new(
        response: Response<R>,
        (method, sent): (&Method, Moment),
        (asked, rules): (Asked, &Arc<[Arc<Rule>]>),
        clock: &Clock,
    ) -> Self {
        let (head, body) = response.into_parts();
        let bodiless = *method == Method::HEAD
            || matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        let told =
            Head { status: head.status, headers: head.headers.clone(), bodiless, sent, arrived: clock.now() };
        let is_plain = is_plain(&head.headers);
        let preamble = Preamble::new(asked, told, wall()).by(Arc::clone(rules));
        Self {
            head,
            held: Pieces::default(),
            trailers: None,
            rest: Some(Box::pin(body)),
            broke: None,
            preamble,
            is_plain,
        }
    }

    /// Listens until it is clear what the answer is.
    pub(crate) async fn listen(&mut self, clock: &Clock, idle: Duration) -> Heard {
        let mut verdict = self.preamble.at_head();
        if !self.is_plain && verdict == Verdict::Hold {
            verdict = self.preamble.undecodable();
        }
        loop {
            match verdict {
                Verdict::Hold => {}
                // No code is withheld, so that nothing is to be cut.
                Verdict::Pass | Verdict::Cut { .. } => return Heard::Passes,
                Verdict::Fault(failure) => return Heard::Failed(failure),
            }
            let (due, silent) = (self.preamble.due(), clock.now() + idle);
            let by = due.map_or(silent, |due| due.min(silent));
            verdict = match clock.by(Some(by), self.piece(clock)).await {
                Some(verdict) => verdict,
                None if due.is_some_and(|due| due <= clock.now()) => self.preamble.timed_out(),
                None => match self.preamble.fell_silent() {
                    Verdict::Hold => return Heard::Silent,
                    verdict @ (Verdict::Pass | Verdict::Fault(_) | Verdict::Cut { .. }) => verdict,
                },
            };
        }
    }

    /// Takes in the next piece; what the listener says to it.
    async fn piece(&mut self, clock: &Clock) -> Verdict {
        let Some(body) = &mut self.rest else { return self.preamble.ended() };
        match std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => {
                    let verdict = self.preamble.hear(&data, data.len(), clock.now());
                    self.held.push(data);
                    verdict
                }
                Err(frame) => {
                    self.trailers = frame.into_trailers().ok();
                    Verdict::Hold
                }
            },
            Some(Err(error)) => {
                self.rest = None;
                let verdict = self.saying(&error);
                self.broke = Some(error);
                verdict
            }
            None => {
                self.rest = None;
                self.preamble.ended()
            }
        }
    }

    /// What the listener says to a break, with the words for it where no status said more.
    fn saying(&mut self, error: &R::Error) -> Verdict {
        match self.preamble.broke() {
            Verdict::Fault(failure) if failure.status.is_none_or(|status| status < 400) => {
                Verdict::Fault(Box::new(failure.saying(error.to_string())))
            }
            verdict @ (Verdict::Hold | Verdict::Pass | Verdict::Fault(_) | Verdict::Cut { .. }) => verdict,
        }
    }

    /// Reads the short rest of an answer that nobody gets, so that its connection can serve again, but for no longer
    /// than a moment: an answer that ends is worth a connection, one that goes on is not.
    pub(crate) async fn drain(&mut self, clock: &Clock) {
        const MOST: usize = 64 * 1024;
        const WITHIN: Duration = Duration::from_secs(2);
        let rest = async {
            let mut left = MOST;
            while let Some(body) = &mut self.rest {
                match std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
                    Some(Ok(frame)) => {
                        let came = frame.data_ref().map_or(0, Bytes::len);
                        let Some(less) = left.checked_sub(came) else { return };
                        left = less;
                    }
                    Some(Err(_)) | None => self.rest = None,
                }
            }
        };
        let _is_over = clock.by(Some(clock.now() + WITHIN), rest).await;
    }
}

/// The failure of a send that a time limit ended.
pub(crate) fn no_answer(words: String) -> Failure {
    Failure::of_transport(Fault::NoAnswer, Evidence::NoAnswer).saying(words)
}
