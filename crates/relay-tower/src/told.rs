//! What a caller is told of its call: how each send failed, how all of it ended, and why there is no answer.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use relay_core::answer::words as core_words;
use relay_core::call::{Ending, Stop, Why};
use relay_core::event::{Event, Outcome};
use relay_core::evidence::Evidence;
use relay_core::failure::{Failure, Told};
use relay_core::fault::Fault;
use relay_core::redact::in_one_line;
use relay_core::{Lang, Moment};

use crate::words;

/// An error of any kind, as the services of tower have them.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A send that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Its number within the call, from 1.
    pub send: u32,
    /// What went wrong.
    pub fault: Fault,
    /// What that says about execution; `None`: the answer was final.
    pub evidence: Option<Evidence>,
    /// The status of its answer, where there was one.
    pub status: Option<u16>,
    /// The structured code in it, as a label.
    pub code: Option<Box<str>>,
    /// How long it took.
    pub took: Duration,
    /// The wait that came after it.
    pub wait: Option<Duration>,
}

impl Attempt {
    /// The same in words.
    #[must_use]
    pub fn words(&self, lang: Lang) -> String {
        let seconds = |span: Duration| format!("{:.1}", span.as_secs_f64());
        let meaning = self.fault.meaning_in(lang);
        let said = match (self.status, &self.code) {
            (Some(status), Some(code)) => format!("{status} {code}"),
            (Some(status), None) => status.to_string(),
            (None, _) => String::new(),
        };
        let told = if said.is_empty() {
            words::failed(lang, self.send, meaning, &seconds(self.took))
        } else {
            words::failed_with(lang, self.send, &said, meaning, &seconds(self.took))
        };
        match self.wait {
            Some(wait) => words::then_waited(lang, &told, &seconds(wait)),
            None => told,
        }
    }
}

/// So many sends that failed are remembered of one call.
const MOST: usize = 32;

/// The last sends that failed, as the events tell them.
#[derive(Debug)]
pub(crate) struct Attempts {
    began: Moment,
    list: VecDeque<Attempt>,
    left_out: u32,
}

impl Attempts {
    pub(crate) const fn new() -> Self {
        Self { began: Moment::ZERO, list: VecDeque::new(), left_out: 0 }
    }

    pub(crate) fn note(&mut self, event: &Event, now: Moment) {
        match event {
            Event::SendStarted { .. } => self.began = now,
            Event::FaultSeen { send, fault, evidence, status, code, .. } => {
                if self.list.len() == MOST {
                    self.list.pop_front();
                    self.left_out += 1;
                }
                self.list.push_back(Attempt {
                    send: *send,
                    fault: *fault,
                    evidence: *evidence,
                    status: *status,
                    code: code.clone(),
                    took: now.since(self.began),
                    wait: None,
                });
            }
            Event::WaitStarted { wait, .. } => {
                if let Some(last) = self.list.back_mut() {
                    last.wait = Some(*wait);
                }
            }
            Event::CallOpened { .. }
            | Event::WayTaken { .. }
            | Event::HeadArrived { .. }
            | Event::InLine { .. }
            | Event::HeldBack { .. }
            | Event::NoticeGiven { .. }
            | Event::Moved { .. }
            | Event::GrantTaken { .. }
            | Event::Committed { .. }
            | Event::StreamCut { .. }
            | Event::CallClosed(_) => {}
        }
    }

    pub(crate) fn list(&self) -> (Vec<Attempt>, u32) {
        (self.list.iter().cloned().collect(), self.left_out)
    }
}

/// What became of a call until its answer was handed on: among the extensions of each answer, and in an [`Ended`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// How it ended. [`Outcome::Served`]: this answer is a success as far as it was heard; everything else is an answer
    /// that tells of a failure, and the reason that it is the last.
    pub outcome: Outcome,
    /// Why it was not sent again, where that was not the service's own word: the names are those of [`Stop`] and [`Why`].
    pub why: Option<&'static str>,
    /// How often it was sent.
    pub sends: u32,
    /// For how long it waited between its sends.
    pub waited: Duration,
    /// How long all of it took.
    pub took: Duration,
    /// How many of its sends were made although the one before may have run: it may have been billed so many times more.
    pub maybe_billed_twice: u32,
    /// The sends that failed, the newest last.
    pub attempts: Vec<Attempt>,
    /// How many older ones are not in the list.
    pub left_out: u32,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Error {
    /// The service inside takes no requests any more: the error of its `poll_ready`.
    NotReady(BoxError),
    /// The body of the request broke off before it was sent.
    RequestBody(BoxError),
    /// The call ended, and its last send got no answer that could be handed on.
    Ended(Box<Ended>),
}

/// A call that ended without an answer.
#[derive(Debug)]
pub struct Ended {
    /// How the core ended it, with its last failure.
    pub ending: Ending,
    /// What was tried.
    pub summary: Summary,
    /// Who was asked.
    pub who: Box<str>,
    /// The language of the message.
    pub lang: Lang,
    /// The last error of the service inside.
    pub source: Option<BoxError>,
}

impl Ended {
    const fn failure(&self) -> Option<&Failure> {
        match &self.ending {
            Ending::Passed(failure)
            | Ending::Parked(failure)
            | Ending::Returned(failure)
            | Ending::Refused(_, failure)
            | Ending::GaveUp(_, Some(failure)) => Some(failure),
            Ending::Committed | Ending::GaveUp(_, None) | Ending::ClientLeft => None,
        }
    }
}

/// The most that is quoted of words from outside.
const SHOWN: usize = 300;

impl fmt::Display for Ended {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (lang, who) = (self.lang, &*self.who);
        let sends = core_words::sends(lang, self.summary.sends);
        let seconds = format!("{:.1}", self.summary.took.as_secs_f64());
        let Some(failure) = self.failure() else { return out.write_str(&core_words::no_send(lang)) };
        let said = failure.message.as_deref().map(|said| in_one_line(said, SHOWN));
        let what = match failure.told {
            Told::ByTransport => {
                let after = said.map(|said| words::after_colon(lang, &said)).unwrap_or_default();
                core_words::could_not_answer(lang, failure.fault.meaning_in(lang), &after)
            }
            Told::ByStatus | Told::InBody | Told::InStream => {
                let said = said.unwrap_or_else(|| failure.fault.meaning_in(lang).to_owned());
                core_words::answered(lang, &said)
            }
        };
        out.write_str(&match &self.ending {
            Ending::GaveUp(Stop::SendsSpent | Stop::PatienceSpent | Stop::FloorTooFar, _) => {
                core_words::gave_up(lang, &sends, &seconds, who, &what)
            }
            Ending::Refused(Why::StillRunning, _) => core_words::still_running(lang, who, &sends, &seconds),
            Ending::GaveUp(Stop::CircuitsOpen | Stop::Draining, _)
            | Ending::Refused(Why::MayHaveRun | Why::Barred(_), _)
            | Ending::Returned(_)
            | Ending::Passed(_)
            | Ending::Parked(_)
            | Ending::Committed
            | Ending::ClientLeft => words::not_again(lang, who, &what, &sends, &seconds),
        })
    }
}

impl std::error::Error for Ended {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn std::error::Error + 'static))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // There is nothing to add to what they say.
            Self::NotReady(error) | Self::RequestBody(error) => error.fmt(out),
            Self::Ended(ended) => ended.fmt(out),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NotReady(error) | Self::RequestBody(error) => error.source(),
            Self::Ended(ended) => ended.source(),
        }
    }
}
