//! One world, from the first request to the end of the last: events in the order of their moments.
//!
//! ```text
//! Waiting --sent--> Pending --accepted--> Running --over--> Served
//!    ^                |
//!    '----refused-----'      Waiting, or refused at last --> Failed
//! ```
//!
//! At its deadline a call that waits fails. One whose send is pending then has this one answer to come: an acceptance
//! counts, a refusal is the end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use relay_core::event::CallId;
use relay_core::moment::Moment;

use crate::admission::{Admission, Newcomer, Poll, Refused};
use crate::chance::{Chance, Stream};
use crate::clients::{Clients, Crowd, Request};
use crate::measure::Run;
use crate::service::{Answer, Model, Refusal, Service};

/// What is played.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scene {
    /// Who asks.
    pub clients: Clients,
    /// For how long new requests come.
    pub until: Duration,
    /// Who answers.
    pub model: Model,
    /// How long a client waits.
    pub patience: Duration,
    /// How long a message is on its way to the service, or from it.
    pub way: Duration,
}

impl Scene {
    /// These clients and this service next door, ten minutes of patience.
    #[must_use]
    pub const fn new(clients: Clients, model: Model) -> Self {
        Self {
            clients,
            until: clients.until(),
            model,
            patience: Duration::from_secs(600),
            way: Duration::ZERO,
        }
    }
}

/// The shortest time to the next poll that a policy may ask for: one that asks for "now" would stop the clock.
const SHORTEST_WAIT: Duration = Duration::from_micros(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Comes(usize),
    Arrives(CallId),
    Answered(CallId),
    Done(CallId),
    Over(CallId),
    Deadline(CallId),
    Wake,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Waiting,
    /// Sent; `None`: it was accepted, or waits in the service's own line.
    Pending(Option<Refusal>),
    Running,
    Served,
    Failed,
}

#[derive(Debug, Clone, Copy)]
struct Call {
    request: Request,
    came: Moment,
    deadline: Moment,
    sends: u32,
    sent: Moment,
    state: State,
}

struct World<'a> {
    now: Moment,
    events: BinaryHeap<Reverse<(Moment, u64, Event)>>,
    count: u64,
    crowd: Crowd,
    service: Service,
    policy: &'a mut dyn Admission,
    chance: Chance,
    patience: Duration,
    way: Duration,
    calls: Vec<Call>,
    wake: Option<Moment>,
    /// Requests that are still to come.
    coming: usize,
    /// Requests that came and are not over.
    open: usize,
    /// The upstream asked for no send before.
    hold: Moment,
    run: Run,
}

/// Plays a scene under a policy.
#[must_use]
pub fn play(scene: &Scene, policy: &mut dyn Admission, seed: u64) -> Run {
    let mut world = World {
        now: Moment::ZERO,
        events: BinaryHeap::new(),
        count: 0,
        crowd: Crowd::new(scene.clients, scene.until, seed),
        service: Service::new(scene.model, seed),
        policy,
        chance: Chance::new(seed, Stream::Policy),
        patience: scene.patience,
        way: scene.way,
        calls: Vec::new(),
        wake: None,
        coming: 0,
        open: 0,
        hold: Moment::ZERO,
        run: Run::default(),
    };
    for (moment, client) in world.crowd.begin(&mut Chance::new(seed, Stream::Start)) {
        world.coming += 1;
        world.at(moment, Event::Comes(client));
    }
    world.play();
    world.run
}

impl World<'_> {
    fn play(&mut self) {
        while self.coming + self.open > 0 {
            let Some(Reverse((now, _, event))) = self.events.pop() else { break };
            self.now = now;
            self.service.advance(now);
            match event {
                Event::Comes(client) => self.comes(client),
                Event::Arrives(call) => self.arrives(call),
                Event::Answered(call) => self.answered(call),
                Event::Done(call) => self.done(call),
                Event::Over(call) => self.over(call),
                Event::Deadline(call) => self.deadline(call),
                Event::Wake => {}
            }
            self.pump();
        }
        self.run.took = self.now.since_start();
    }

    fn at(&mut self, moment: Moment, event: Event) {
        self.count += 1;
        self.events.push(Reverse((moment, self.count, event)));
    }

    fn call(&mut self, call: CallId) -> &mut Call {
        self.calls.get_mut(call.0 as usize).expect("a policy names calls that came")
    }

    fn comes(&mut self, client: usize) {
        self.coming -= 1;
        let Some(request) = self.crowd.request(client) else { return };
        let (call, now) = (CallId(self.calls.len() as u64), self.now);
        let deadline = now + request.patience.unwrap_or(self.patience);
        self.calls.push(Call { request, came: now, deadline, sends: 0, sent: now, state: State::Waiting });
        self.open += 1;
        self.run.came += 1;
        self.at(deadline, Event::Deadline(call));
        self.policy.arrive(Newcomer { call, session: request.session, deadline }, now);
    }

    /// Does what the policy wants done now.
    fn pump(&mut self) {
        loop {
            match self.policy.poll(self.now, &self.service, &mut self.chance) {
                Poll::Send(call) => self.send(call),
                Poll::Fail(call) => self.fail(call),
                Poll::Idle => return,
                Poll::Wait(until) => {
                    let until = until.max(self.now + SHORTEST_WAIT);
                    if self.wake.is_none_or(|wake| until < wake || wake <= self.now) {
                        self.wake = Some(until);
                        self.at(until, Event::Wake);
                    }
                    return;
                }
            }
        }
    }

    fn send(&mut self, id: CallId) {
        let now = self.now;
        let call = self.call(id);
        assert_eq!(call.state, State::Waiting, "{id} is sent though it does not wait");
        call.sends += 1;
        call.sent = now;
        call.state = State::Pending(None);
        self.run.sends += 1;
        self.run.early += usize::from(now < self.hold);
        if self.way.is_zero() {
            self.arrives(id);
        } else {
            self.at(now + self.way, Event::Arrives(id));
        }
    }

    /// The service gets a send.
    fn arrives(&mut self, id: CallId) {
        let (now, request) = (self.now, self.call(id).request);
        match self.service.send(id, request.session) {
            Answer::Accepted => self.runs(id, request),
            Answer::Queued => {}
            Answer::Refused(mut refusal) => {
                self.run.refused.push(now);
                if let Some(cut) = self.policy.cuts_after().filter(|cut| *cut < refusal.takes) {
                    refusal.takes = cut;
                    self.run.cut += 1;
                }
                self.call(id).state = State::Pending(Some(refusal));
                self.at(now + refusal.takes + self.way, Event::Answered(id));
            }
        }
    }

    /// The service begins to work on this call.
    fn runs(&mut self, call: CallId, request: Request) {
        self.at(self.now + request.first_byte + self.way, Event::Answered(call));
        self.at(self.now + request.takes, Event::Done(call));
    }

    fn answered(&mut self, id: CallId) {
        let now = self.now;
        let call = self.call(id);
        let State::Pending(refusal) = call.state else { return };
        let Some(refusal) = refusal else {
            call.state = State::Running;
            self.policy.accepted(id, now);
            return;
        };
        call.state = State::Waiting;
        let refused = Refused {
            call: id,
            sends: call.sends,
            class: refusal.class,
            told: refusal.told,
            took: now.since(call.sent),
            waited: now.since(call.came),
            late: now >= call.deadline,
        };
        self.hold = self.hold.max(now + refusal.told.unwrap_or_default());
        if !self.policy.refused(&refused, now, &mut self.chance) {
            self.fail(id);
        }
    }

    /// The service has sent the last byte of an answer.
    fn done(&mut self, id: CallId) {
        if let Some(next) = self.service.finished() {
            // Its wait ends where the service begins with it.
            let now = self.now;
            self.call(next).sent = now;
            let request = self.call(next).request;
            self.runs(next, request);
        }
        if self.way.is_zero() {
            self.over(id);
        } else {
            self.at(self.now + self.way, Event::Over(id));
        }
    }

    fn over(&mut self, id: CallId) {
        let now = self.now;
        let call = self.call(id);
        assert_eq!(call.state, State::Running, "{id} is over though it does not run");
        call.state = State::Served;
        let (waited, heavy) = (call.sent.since(call.came), call.request.heavy);
        self.run.served(waited, heavy);
        self.policy.finished(id, now);
        self.end(id);
    }

    fn deadline(&mut self, id: CallId) {
        if self.call(id).state == State::Waiting {
            self.policy.left(id, self.now);
            self.fail(id);
        }
    }

    fn fail(&mut self, id: CallId) {
        let call = self.call(id);
        assert_eq!(call.state, State::Waiting, "{id} fails though it does not wait");
        call.state = State::Failed;
        self.run.failed += 1;
        self.end(id);
    }

    fn end(&mut self, call: CallId) {
        self.open -= 1;
        let client = self.call(call).request.client;
        if let Some(moment) = self.crowd.again(client, self.now) {
            self.coming += 1;
            self.at(moment, Event::Comes(client));
        }
    }
}
