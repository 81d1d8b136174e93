//! The gate of the core as a policy of these worlds. A refusal becomes the failure that a relay would see, and
//! [`Report::of`] says of it what it says in the relay.

use relay_core::dice::Dice;
use relay_core::event::CallId;
use relay_core::evidence::Evidence;
use relay_core::failure::{Failure, Told};
use relay_core::fault::Fault;
use relay_core::gate::{self, Arrival, Gate, Preset, Report, Rules, Settled};
use relay_core::moment::Moment;
use relay_core::profile::Profile;
use relay_core::retry_after::Advice;
use relay_core::wait;

use crate::admission::{Admission, Class, Foresight, Newcomer, Poll, Refused};

/// Which gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    /// How hard the calls ask.
    pub preset: Preset,
    /// Its parts, and how many calls run at once as the operator says.
    pub rules: Rules,
}

impl Default for Setup {
    fn default() -> Self {
        Self { preset: Preset::Interactive, rules: Rules::default() }
    }
}

impl Setup {
    /// The same where the operator says that so many run at once.
    #[must_use]
    pub fn with_places(&self, places: usize) -> Self {
        Self { rules: Rules { max_running: Some(places), ..self.rules.clone() }, ..*self }
    }

    /// The most sends of a call.
    const fn budget(&self) -> u32 {
        match self.preset {
            Preset::Interactive => 40,
            Preset::Batch => 60,
            Preset::Strict => 12,
        }
    }

    const fn profile(&self) -> Profile {
        match self.preset {
            Preset::Interactive => Profile::interactive(),
            Preset::Batch => Profile::batch(),
            Preset::Strict => Profile::strict(),
        }
    }
}

/// One lane.
#[derive(Debug)]
pub struct Lane {
    gate: Gate,
    setup: Setup,
    profile: Profile,
}

impl Lane {
    /// An open lane of which nothing is known.
    #[must_use]
    pub fn new(setup: Setup) -> Self {
        Self { gate: Gate::new(setup.rules.clone()), profile: setup.profile(), setup }
    }
}

impl Admission for Lane {
    fn arrive(&mut self, newcomer: Newcomer, now: Moment) {
        let arrival = Arrival {
            call: newcomer.call,
            session: newcomer.session,
            since: now,
            deadline: Some(newcomer.deadline),
            preset: self.setup.preset,
            weight: 1.0,
            sends: 0,
            budget: Some(self.setup.budget()),
            not_before: None,
            streams: true,
            plain: false,
        };
        self.gate.arrive(arrival, now);
    }

    fn poll(&mut self, now: Moment, _service: &dyn Foresight, dice: &mut dyn Dice) -> Poll {
        match self.gate.poll(now, dice) {
            gate::Poll::Send(call) => Poll::Send(call),
            gate::Poll::Wait(until) => Poll::Wait(until),
            gate::Poll::Idle => Poll::Idle,
        }
    }

    fn refused(&mut self, refused: &Refused, now: Moment, dice: &mut dyn Dice) -> bool {
        let failure = failure(refused);
        let stays = !refused.late && refused.sends < self.setup.budget();
        let own = wait::floor(failure.advice, &self.profile);
        let report = Report::of(&failure, &self.profile, dice);
        let back = stays.then(|| now + own);
        self.gate.settled(refused.call, Settled { report, back }, now, dice);
        stays
    }

    fn accepted(&mut self, call: CallId, now: Moment) {
        self.gate.accepted(call, now);
    }

    fn finished(&mut self, call: CallId, now: Moment) {
        self.gate.left(call, false, now);
    }

    fn left(&mut self, call: CallId, now: Moment) {
        self.gate.left(call, false, now);
    }
}

/// What a relay would make of this refusal.
fn failure(refused: &Refused) -> Failure {
    let (fault, status, by_code) = match refused.class {
        Class::Rate => (Fault::Throttled, 429, true),
        Class::Capacity(fault @ Fault::Throttled) => (fault, 429, false),
        Class::Capacity(fault) => (fault, 503, true),
    };
    let advice = match refused.told {
        None => Advice::Silent,
        Some(told) if told.is_zero() => Advice::Useless,
        Some(told) => Advice::Wait(told),
    };
    let (told, status) = (Told::ByStatus, Some(status));
    Failure { advice, told, status, by_code, ..Failure::of_transport(fault, Evidence::Refused) }
}
