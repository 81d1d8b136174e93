//! How a call ends, and why.

use crate::event::Outcome;
use crate::failure::{Bar, Failure};

/// Why the relay stops although another send might succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// No send is left.
    SendsSpent,
    /// The next wait would outlast the client's patience.
    PatienceSpent,
    /// The upstream asked for a wait that outlasts the client's patience.
    FloorTooFar,
    /// Every upstream is cut off by its breaker for longer than the client waits.
    CircuitsOpen,
    /// The relay is being stopped.
    Draining,
}

impl Stop {
    /// Every one.
    pub const ALL: [Self; 5] =
        [Self::SendsSpent, Self::PatienceSpent, Self::FloorTooFar, Self::CircuitsOpen, Self::Draining];

    /// The name in logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SendsSpent => "sends_spent",
            Self::PatienceSpent => "patience_spent",
            Self::FloorTooFar => "told_to_wait_longer",
            Self::CircuitsOpen => "circuits_open",
            Self::Draining => "stopping",
        }
    }
}

/// Why the relay refuses to send again what may have run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It may have run and no resend of such calls is granted.
    MayHaveRun,
    /// Our time limit ended it: it is probably still running.
    StillRunning,
    /// Something stands in the way.
    Barred(Bar),
}

impl Why {
    /// Every one.
    pub const ALL: [Self; 6] = [
        Self::MayHaveRun,
        Self::StillRunning,
        Self::Barred(Bar::Certificate),
        Self::Barred(Bar::Proxy),
        Self::Barred(Bar::Unfit),
        Self::Barred(Bar::Credential),
    ];

    /// The name in logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MayHaveRun => "may_have_run",
            Self::StillRunning => "still_running",
            Self::Barred(Bar::Certificate) => "certificate",
            Self::Barred(Bar::Proxy) => "proxy",
            Self::Barred(Bar::Unfit) => "unfit",
            Self::Barred(Bar::Credential) => "credential",
        }
    }
}

/// Why a call was not sent that got the answer of another one.
pub const PARKED: &str = "quota_parked";

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// The answer was committed; its stream is the caller's business.
    Committed,
    /// A definite error goes back untouched.
    Passed(Box<Failure>),
    /// The call was not sent: its lane is parked for longer than it waits, since another call was answered like this.
    Parked(Box<Failure>),
    /// A failure goes back as it was, so that the client's own policy decides.
    Returned(Box<Failure>),
    /// We refuse to send again, and answer so that the client does not either.
    Refused(Why, Box<Failure>),
    /// Sends or patience ran out; the last failure, where a send was made at all.
    GaveUp(Stop, Option<Box<Failure>>),
    /// The client went away.
    ClientLeft,
}

impl Ending {
    /// The outcome that goes into the summary.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        match self {
            Self::Committed => Outcome::Served,
            Self::Passed(_) | Self::Parked(_) => Outcome::Passed,
            Self::Returned(_) => Outcome::Returned,
            Self::Refused(..) => Outcome::Refused,
            Self::GaveUp(..) => Outcome::GaveUp,
            Self::ClientLeft => Outcome::ClientLeft,
        }
    }
}
