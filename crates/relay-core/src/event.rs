//! Something that happened, as a value: the only vocabulary of observation. Log and status are observers of this enum
//! and nothing else.
//!
//! No variant has a field that could hold a header, a body or a message: what comes from outside passes through
//! [`crate::failure::label`] first.

use std::sync::Arc;
use std::time::Duration;

use crate::evidence::{Evidence, Operation};
use crate::fault::Fault;
use crate::trace::Trace;
use crate::usage::Usage;

/// The number of a call since the relay started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

impl std::fmt::Display for CallId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "c{}", self.0)
    }
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// The client got a real answer, whole.
    Served,
    /// A definite error of the upstream went back as it was.
    Passed,
    /// A failure went back as it was, so that the client's own policy decides.
    Returned,
    /// We refused the call ourselves, or to send again what may have run.
    Refused,
    /// Sends or patience ran out.
    GaveUp,
    /// The answer broke off after some of it had reached the client.
    Broken,
    /// A fatal capacity event was withheld and the connection cut, so that the client resumes.
    Cut,
    /// The client went away.
    ClientLeft,
}

impl Outcome {
    /// Every one.
    pub const ALL: [Self; 8] = [
        Self::Served,
        Self::Passed,
        Self::Returned,
        Self::Refused,
        Self::GaveUp,
        Self::Broken,
        Self::Cut,
        Self::ClientLeft,
    ];

    /// The name in logs and status.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Served => "served",
            Self::Passed => "passed",
            Self::Returned => "returned",
            Self::Refused => "refused",
            Self::GaveUp => "gave_up",
            Self::Broken => "broken",
            Self::Cut => "cut",
            Self::ClientLeft => "client_left",
        }
    }
}

/// What a call came by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Transport {
    /// A request of its own.
    #[default]
    Http,
    /// A message on a WebSocket.
    WebSocket,
}

impl Transport {
    /// The name in logs and status.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::WebSocket => "websocket",
        }
    }
}

/// The bounded names that belong to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labels {
    /// The client.
    pub client: &'static str,
    /// The dialect.
    pub dialect: &'static str,
    /// What the request does.
    pub operation: Operation,
    /// What it came by.
    pub transport: Transport,
    /// The upstream's name in the settings, or its host, with a port that is not the usual one.
    pub upstream: Box<str>,
    /// The model, where the request names one.
    pub model: Option<Box<str>>,
    /// The profile.
    pub profile: Box<str>,
    /// The lane that it waits in: its id, which tells nothing of whose it is.
    pub lane: Box<str>,
    /// The id that the client gave the request, as a label.
    pub request_id: Option<Box<str>>,
    /// The pool that it may be served by, where it goes to one.
    pub pool: Option<Box<str>>,
    /// What binds it to one upstream of that pool, where anything does.
    pub bound: Option<&'static str>,
    /// Its place in a trace, where traces are recorded.
    pub trace: Option<Trace>,
}

impl Labels {
    /// The same of a call that goes there from now on.
    #[must_use]
    pub fn moved_to(&self, leg: &Leg) -> Self {
        let (upstream, lane) = (leg.upstream.clone(), leg.lane.clone());
        let model = leg.model.clone().or_else(|| self.model.clone());
        Self { upstream, lane, model, ..self.clone() }
    }
}

/// What a call goes on from: so much of its budget was spent by earlier calls of the same client, which it sends again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Inherited {
    /// Sends.
    pub sends: u32,
    /// Sends that the upstream failed.
    pub failed: u32,
    /// Resends of what may have run.
    pub resends: u32,
}

impl Inherited {
    /// Whether it is a call of its own.
    #[must_use]
    pub const fn is_nothing(&self) -> bool {
        self.sends == 0 && self.failed == 0 && self.resends == 0
    }
}

/// An upstream on the way of a call, and its lane there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leg {
    /// The upstream's name in the settings, or its host.
    pub upstream: Box<str>,
    /// The id of the lane.
    pub lane: Box<str>,
    /// The model that is asked for there, where that is another one than the client named, or than before.
    pub model: Option<Box<str>>,
}

/// Why a call leaves an upstream for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Left {
    /// It failed the call, and another one takes it.
    Failed,
    /// Its lane takes no calls now.
    Shut,
    /// Its breaker is open.
    CircuitOpen,
    /// The relay's own credential for it is being renewed.
    Credential,
    /// One that is preferred takes calls again.
    Preferred,
}

impl Left {
    /// Every one.
    pub const ALL: [Self; 5] =
        [Self::Failed, Self::Shut, Self::CircuitOpen, Self::Credential, Self::Preferred];

    /// The name in logs and records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Shut => "shut",
            Self::CircuitOpen => "circuit_open",
            Self::Credential => "credential",
            Self::Preferred => "preferred",
        }
    }
}

/// What holds a call that its lane would let go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HeldBy {
    /// The breaker of each upstream that it may go to is open.
    Circuits,
    /// The relay's own credential that it is sent with is being renewed.
    Credential,
}

impl HeldBy {
    /// The name in pages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Circuits => "circuits",
            Self::Credential => "credential",
        }
    }
}

/// The summary of a call at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closing {
    /// How it ended.
    pub outcome: Outcome,
    /// Why, where the relay ended it: the names are those of [`crate::call::Stop`] and [`crate::call::Why`],
    /// and [`crate::call::PARKED`].
    pub why: Option<&'static str>,
    /// The sends of this call.
    pub sends: u32,
    /// The time spent waiting between sends.
    pub waited: Duration,
    /// The last fault met, where there was any.
    pub last_fault: Option<Fault>,
    /// Capacity faults met, which is what the relay is there for.
    pub capacity_faults: u32,
    /// Resends of what may have run: it may have been billed twice.
    pub maybe_billed_twice: u32,
    /// From accept to the end.
    pub took: Duration,
    /// The status that the client got, where it got an answer.
    pub status: Option<u16>,
    /// The bytes of the request's body.
    pub received: u64,
    /// The bytes of the answer's body that went to the client.
    pub sent: u64,
    /// The tokens that the answer says it took.
    pub usage: Option<Usage>,
}

impl Closing {
    /// The summary of a call in which nothing happened before this.
    #[must_use]
    pub const fn new(outcome: Outcome) -> Self {
        Self {
            outcome,
            why: None,
            sends: 0,
            waited: Duration::ZERO,
            last_fault: None,
            capacity_faults: 0,
            maybe_billed_twice: 0,
            took: Duration::ZERO,
            status: None,
            received: 0,
            sent: 0,
            usage: None,
        }
    }
}

/// The way of a send, where there are several and it was not simply the first. Labels: a proxy is shown without what
/// it asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detour {
    /// The proxy of the way that it went, or `direct`; `None`: none works.
    pub by: Option<Box<str>>,
    /// Those that were tried before. Others may have been left out, since they were known to fail.
    pub missed: Vec<Missed>,
}

/// A way that did not work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missed {
    /// Its proxy, or `direct`.
    pub by: Box<str>,
    /// What failed, in one word.
    pub why: &'static str,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A call was accepted and understood.
    CallOpened {
        /// Its names.
        labels: Arc<Labels>,
        /// It goes on from what an earlier call of the same client spent.
        inherited: Inherited,
        /// The time of day, in milliseconds since 1970.
        wall: u64,
    },
    /// A send was counted and began.
    SendStarted {
        /// Its number within the call, from 1.
        send: u32,
    },
    /// A send went by another way than the first, or found none that works. Nothing was sent on those it missed.
    WayTaken {
        /// The send.
        send: u32,
        /// How it went.
        detour: Detour,
    },
    /// The head of an answer arrived.
    HeadArrived {
        /// The send it belongs to.
        send: u32,
        /// The answer's status.
        status: u16,
        /// The id that the upstream gave the request, as a label.
        request_id: Option<Box<str>>,
    },
    /// A send failed.
    FaultSeen {
        /// The send.
        send: u32,
        /// What went wrong.
        fault: Fault,
        /// What it says about execution; `None`: final.
        evidence: Option<Evidence>,
        /// The answer's status.
        status: Option<u16>,
        /// The structured code, as a label.
        code: Option<Box<str>>,
        /// Which rule found it, where an answer told of it.
        rule: Option<Box<str>>,
        /// How long the upstream asked to wait, or in how long there is a quota again.
        told: Option<Duration>,
        /// The tokens that it says were spent.
        usage: Option<Usage>,
    },
    /// The call waits before its next send.
    WaitStarted {
        /// The number of the send that comes after the wait.
        send: u32,
        /// How long.
        wait: Duration,
        /// Why.
        fault: Fault,
        /// The status of the answer that made it wait.
        status: Option<u16>,
        /// Where there was no answer, what became of the send, as a label.
        code: Option<Box<str>>,
    },
    /// The call stands in the line of its lane before its next send; how long is not known.
    InLine {
        /// The number of the send that comes after the wait.
        send: u32,
        /// How many calls wait in its lane, it among them.
        waiting: usize,
        /// The lane is parked: nothing is sent there for so long.
        parked: Option<Duration>,
        /// What it was refused with; `None`: it was not sent yet, and others were refused.
        fault: Option<Fault>,
        /// The status of the answer that made it wait.
        status: Option<u16>,
        /// Where there was no answer, what became of the send, as a label.
        code: Option<Box<str>>,
    },
    /// The call is held by what is no lane. Told once before each send.
    HeldBack {
        /// The number of the send that comes after the wait.
        send: u32,
        /// By what.
        by: HeldBy,
        /// How long, as far as that is known: until the first breaker lets a probe through, which may be another call.
        wait: Option<Duration>,
        /// What it failed with; `None`: it was not sent yet.
        fault: Option<Fault>,
    },
    /// The client was shown that the call is held, and asks again; the call goes on.
    NoticeGiven {
        /// The number of the send that it waits for.
        send: u32,
        /// How many notices of this call that makes.
        notices: u32,
        /// What it was refused with; `None`: it was not sent yet.
        fault: Option<Fault>,
    },
    /// The call goes to another upstream from here on.
    Moved {
        /// The number of the send that is the first there.
        send: u32,
        /// Where to.
        to: Arc<Leg>,
        /// Why it left the one before.
        why: Left,
    },
    /// A resend of what may have run was granted.
    GrantTaken {
        /// The number of the send that may be the second to run.
        send: u32,
    },
    /// The answer belongs to the client from here on.
    Committed {
        /// The send that is answered.
        send: u32,
    },
    /// A fatal capacity event was withheld and the connection is being cut.
    StreamCut {
        /// The fault in the event.
        fault: Fault,
        /// How many times this turn was cut, this one included.
        cuts: u32,
    },
    /// The call ended.
    CallClosed(Closing),
}
