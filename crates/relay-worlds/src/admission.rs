//! Who is sent when: what a policy is told and what it answers. The gate, the policies it is compared with and the
//! oracle all stand behind the one trait.

use std::time::Duration;

use relay_core::dice::Dice;
use relay_core::event::CallId;
use relay_core::fault::Fault;
use relay_core::moment::Moment;

/// A call that has just come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Newcomer {
    /// The call.
    pub call: CallId,
    /// The conversation it belongs to.
    pub session: u64,
    /// Its client waits until then.
    pub deadline: Moment,
}

/// What kind of refusal it says it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// It is short of capacity.
    Capacity(Fault),
    /// The account asks too often.
    Rate,
}

/// A send was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// The call.
    pub call: CallId,
    /// Its sends so far, this one included.
    pub sends: u32,
    /// What it says it is.
    pub class: Class,
    /// When to come back, if it says so.
    pub told: Option<Duration>,
    /// How long the refusal took.
    pub took: Duration,
    /// How long the client has been waiting.
    pub waited: Duration,
    /// The client waits no longer: the call is over whatever the policy says.
    pub late: bool,
}

/// What is to be done now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Poll {
    /// Send this call.
    Send(CallId),
    /// Tell this call's client that it failed.
    Fail(CallId),
    /// Nothing before this moment, unless something happens.
    Wait(Moment),
    /// Nothing until something happens.
    Idle,
}

/// A policy, for all calls of one world.
pub trait Admission {
    /// A call has come.
    fn arrive(&mut self, newcomer: Newcomer, now: Moment);

    /// What is to be done now; asked again until it is neither to send nor to fail. Only the oracle looks at the
    /// service.
    fn poll(&mut self, now: Moment, service: &dyn Foresight, dice: &mut dyn Dice) -> Poll;

    /// A call was refused. Whether it stays in line; if not, its client is told that it failed.
    fn refused(&mut self, refused: &Refused, now: Moment, dice: &mut dyn Dice) -> bool;

    /// The first sign came that a send was accepted.
    fn accepted(&mut self, _call: CallId, _now: Moment) {}

    /// An accepted call is over.
    fn finished(&mut self, _call: CallId, _now: Moment) {}

    /// A call that waited is gone.
    fn left(&mut self, call: CallId, now: Moment);

    /// It gives up on a send that has no answer after this time, as if it had been refused.
    fn cuts_after(&self) -> Option<Duration> {
        None
    }
}

/// What nobody but the oracle knows: the service as it is.
pub trait Foresight {
    /// Whether a send now would be accepted.
    fn would_accept(&self) -> bool;

    /// When that may change by itself.
    fn next_change(&self) -> Option<Moment>;
}
