//! The lanes: one gate for each upstream, credential and model, and what wakes the calls that wait in it. What the gate
//! decides is in [`relay_core::gate`].

mod ticket;

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use relay_core::breaker::{Breaker, Change, Circuit};
use relay_core::call::Waiting;
use relay_core::client::Kind;
use relay_core::closed::Closed;
use relay_core::config::Route;
use relay_core::event::CallId;
use relay_core::failure::label;
use relay_core::gate::{Gate, Learned, Poll, Rules, Shut, View};
use relay_core::router::Standing;
use relay_core::{Fault, Moment};
use tokio::sync::{Notify, oneshot};

use crate::clock::{Clock, RealDice, sleep_until};
use crate::credential::AccountKey;
use crate::learned::LearnedFile;
use crate::observe::{LaneChange, LaneName, Notice, Observers, What};
use crate::quota::Remembered;
use crate::upstream::Origin;

pub(crate) use ticket::Ticket;

/// So many lanes are kept before some that nobody uses are dropped.
const MANY: usize = 1024;
/// A lane that is shut for less than this, or at which nobody waits, is no news.
const NEWS: Duration = Duration::from_secs(2);

/// A place in the settings that states how many calls an upstream runs at once: one lane is for all of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Places {
    /// The most calls that run at once.
    pub(crate) most: NonZeroU32,
    /// The calls that the route which says so fits; `None`: the upstream's own entry says so.
    pub(crate) route: Option<String>,
}

impl Places {
    /// The calls that a route fits, whatever its place among the others.
    pub(crate) fn of_route(route: &Route) -> String {
        let Route { path, client, model, .. } = route;
        let client = client.map(Kind::name);
        format!("{path:?} {client:?} {model:?}")
    }
}

/// What makes a lane.
pub(crate) struct Made<'a> {
    pub(crate) origin: &'a Origin,
    /// The upstream's name for people.
    pub(crate) upstream: &'a str,
    pub(crate) account: AccountKey,
    /// What the upstream's entry adds to every request: any of it may say for whom it is.
    pub(crate) added: &'a [(HeaderName, HeaderValue)],
    /// The whole of its name.
    pub(crate) model: Option<&'a str>,
    pub(crate) places: Option<Places>,
}

/// All lanes.
pub(crate) struct Lanes {
    lanes: Mutex<HashMap<u64, Arc<Lane>>>,
    keyed: RandomState,
    clock: Arc<dyn Clock>,
    observers: Observers,
    file: LearnedFile,
}

impl Lanes {
    pub(crate) fn new(clock: Arc<dyn Clock>, observers: Observers, file: LearnedFile) -> Self {
        Self { lanes: Mutex::default(), keyed: RandomState::new(), clock, observers, file }
    }

    /// The lane of a call; `material` tells its account from all others where the lane is new.
    pub(crate) fn lane(&self, made: &Made<'_>, material: impl FnOnce() -> Vec<u8>) -> Arc<Lane> {
        let key = match &made.places {
            Some(places) => self.keyed.hash_one((made.origin, &places.route)),
            None => self.keyed.hash_one((made.origin, made.account.number(), made.added, made.model)),
        };
        let mut lanes = self.all();
        if let Some(lane) = lanes.get(&key) {
            let lane = Arc::clone(lane);
            drop(lanes);
            if let Some(places) = &made.places {
                lane.has_places(places.most);
            }
            return lane;
        }
        if lanes.len() >= MANY {
            self.make_room(&mut lanes);
        }
        let lane = Arc::new(self.new_lane(made, material));
        lanes.insert(key, Arc::clone(&lane));
        lane
    }

    /// Drops the lanes that nobody uses and that are open. Where there is none, the one goes whose pause ends first, or
    /// that shut longest ago: a lane too many would cost memory for ever, one too few costs a send that is refused.
    /// What they learned is kept with the rest.
    fn make_room(&self, lanes: &mut HashMap<u64, Arc<Lane>>) {
        let now = self.clock.now();
        let mut unused: Vec<_> = lanes
            .iter()
            .filter(|(_, lane)| Arc::strong_count(lane) == 1)
            .filter_map(|(key, lane)| {
                let State { gate, .. } = &*lane.state();
                gate.is_idle().then(|| ((gate.hold(now), gate.shut().map(|(_, since)| since)), *key))
            })
            .collect();
        unused.sort_unstable();
        let open = unused.iter().take_while(|(closed, _)| *closed == (None, None)).count();
        let dropped = unused.iter().take(open.max(1)).filter_map(|(_, key)| lanes.remove(key));
        let learned = dropped.filter_map(|lane| lane.learned());
        self.file.remember(learned, self.clock.wall());
    }

    fn new_lane(&self, made: &Made<'_>, material: impl FnOnce() -> Vec<u8>) -> Lane {
        let origin = made.origin.to_string();
        let (model, id) = match &made.places {
            Some(Places { route: Some(route), .. }) => {
                (made.model, self.file.id(&origin, format!("route {route}").as_bytes(), None))
            }
            Some(Places { route: None, .. }) => (None, self.file.id(&origin, b"all", None)),
            None => {
                let mut material = material();
                for (name, value) in made.added {
                    for part in [name.as_str().as_bytes(), value.as_bytes()] {
                        material.extend_from_slice(&(part.len() as u64).to_le_bytes());
                        material.extend_from_slice(part);
                    }
                }
                (made.model, self.file.id(&origin, &material, made.model))
            }
        };
        let most = made.places.as_ref().map(|places| count(places.most));
        let rules = Rules { max_running: most, ..Rules::default() };
        let stated = made.places.as_ref().map(|places| (made.origin.clone(), places.route.clone()));
        let gate = match self.file.recall(&id, self.clock.wall()) {
            Some(learned) => Gate::with(rules, &learned),
            None => Gate::new(rules),
        };
        let name = LaneName { id, model: model.map(label), upstream: made.upstream.into() };
        Lane {
            name,
            stated,
            state: Mutex::new(State {
                gate,
                breaker: Breaker::default(),
                closed: Closed::default(),
                dice: RealDice::default(),
                waiters: HashMap::new(),
                entering: None,
                wake: None,
                driven: false,
                told: None,
                held: (None, None),
                spent: None,
            }),
            changed: Notify::new(),
            strained: AtomicBool::new(false),
            clock: Arc::clone(&self.clock),
            observers: self.observers.clone(),
        }
    }

    /// A client's conversation as a number; a call of none is its own.
    pub(crate) fn session(&self, name: Option<&str>, call: CallId) -> u64 {
        match name {
            Some(name) => self.keyed.hash_one(name),
            None => self.keyed.hash_one(call),
        }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<u64, Arc<Lane>>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn every(&self) -> Vec<Arc<Lane>> {
        self.all().values().cloned().collect()
    }

    /// All lanes as they stand, in the order of their names, with the first `most` calls of each line.
    pub(crate) fn views(&self, most: usize) -> Vec<(LaneName, View)> {
        let now = self.clock.now();
        let view = |lane: &Arc<Lane>| {
            let state = &mut *lane.state();
            (lane.name.clone(), View { circuit: state.breaker.circuit(now), ..state.gate.view(most, now) })
        };
        let mut views: Vec<_> = self.every().iter().map(view).collect();
        views.sort_by(|(one, _), (other, _)| {
            (&one.upstream, &one.model, &one.id).cmp(&(&other.upstream, &other.model, &other.id))
        });
        views
    }

    /// The settings were changed. Where they state a number of places, it is the one from now on, for those that wait
    /// as well.
    pub(crate) fn renumber(&self, stated: impl Fn(&Origin, Option<&str>) -> Option<NonZeroU32>) {
        for lane in self.every() {
            if let Some((origin, route)) = &lane.stated {
                // Where no number is stated any more, nobody waits for a place.
                lane.has_places(stated(origin, route.as_deref()).unwrap_or(NonZeroU32::MAX));
            }
        }
    }

    /// Sends the next call of this lane now, past an open breaker too, which lets the next one through whenever it comes;
    /// `None`: there is no such lane; false: none waits there, and no breaker holds any.
    pub(crate) fn ask_now(&self, id: &str) -> Option<bool> {
        let lane = self.every().into_iter().find(|lane| lane.name.id == id)?;
        let mut asks = false;
        lane.breaks(|breaker, now| {
            asks = breaker.ask_now(now);
            None
        });
        lane.tell(|gate, _, _| asks |= gate.ask_now());
        Some(asks)
    }

    /// Saves what was learned.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub(crate) fn save(&self) -> std::io::Result<()> {
        let all: Vec<_> = self.every().iter().filter_map(|lane| lane.learned()).collect();
        self.file.save(all.into_iter(), self.clock.wall())
    }
}

/// One lane.
pub(crate) struct Lane {
    name: LaneName,
    /// Where the number of its places stands: at this upstream, and in which route.
    stated: Option<(Origin, Option<String>)>,
    state: Mutex<State>,
    /// The moment to look again has changed.
    changed: Notify,
    /// Its breaker has something to remember: most have not, and are not asked.
    strained: AtomicBool,
    clock: Arc<dyn Clock>,
    observers: Observers,
}

struct State {
    gate: Gate,
    breaker: Breaker,
    closed: Closed,
    dice: RealDice,
    /// Who is told when a call's turn has come.
    waiters: HashMap<CallId, Waiter>,
    /// A call that has just come, and will take its turn by itself if it comes at once.
    entering: Option<CallId>,
    /// When the gate is asked again, where time alone may change something.
    wake: Option<Moment>,
    /// Somebody sees to that.
    driven: bool,
    /// Since when the lane is shut, as far as observers know. One that nobody asks any more counts as open.
    told: Option<Moment>,
    /// Until when it is held, and parked, as far as those that wait know.
    held: (Option<Moment>, Option<Moment>),
    /// What was answered when it was parked; kept until it is open.
    spent: Remembered,
}

/// A call that waits, as the relay knows it.
struct Waiter {
    tell: oneshot::Sender<Word>,
    /// It bears a pause until then.
    bears: Moment,
    plain: bool,
    /// It may wait in a parked lane.
    parks: bool,
}

impl Waiter {
    /// Whether its patience ends before the lane may send again, or nobody wants it to wait for that.
    fn waits_in_vain(&self, hold: Moment, is_parked: bool) -> bool {
        !self.plain && (self.bears <= hold || is_parked && !self.parks)
    }

    fn hear_of_hold(self, is_parked: bool) {
        // Who has gone meanwhile needs no word.
        let _gone = self.tell.send(if is_parked { Word::Parked } else { Word::Held });
    }
}

/// What a call that waits is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    /// Its turn has come.
    Go,
    /// The upstream asked for a pause that its patience does not outlast.
    Held,
    /// The same, since a quota is spent.
    Parked,
}

/// What a call that enters a lane is told.
pub(crate) enum Turn {
    /// Its turn is now.
    Now,
    /// It is told when its turn has come.
    Later {
        /// Tells.
        turn: oneshot::Receiver<Word>,
        /// What is to be told of it; `None`: that was.
        untold: Option<InLine>,
    },
}

/// How a lane is that a call waits in.
pub(crate) struct InLine {
    /// How many wait, it among them.
    pub(crate) waiting: usize,
    /// Nothing is sent there for so long, since it is parked.
    pub(crate) parked: Option<Duration>,
}

impl Lane {
    /// Its id, which tells nothing of whose it is.
    pub(crate) fn id(&self) -> &str {
        &self.name.id
    }

    /// How it stands, for a call with this share of it.
    pub(crate) fn stands(&self, weight: u32, now: Moment) -> Standing {
        let mut state = self.state();
        let View { shut, hold, waiting, pending, running, max_running, .. } = state.gate.view(0, now);
        let is_full = max_running.is_some_and(|most| pending + running >= most);
        Standing {
            weight,
            load: waiting + pending + running,
            open: shut.is_none() && waiting == 0 && !is_full,
            hold,
            circuit: state.breaker.circuit(now),
            failures: 0,
            not_before: None,
        }
    }

    /// Whether its breaker lets a call through now, and the fault that opened it.
    pub(crate) fn circuit(&self, now: Moment) -> (Circuit, Option<Fault>) {
        if !self.strained.load(Ordering::Relaxed) {
            return (Circuit::Closed, None);
        }
        let state = self.state();
        (state.breaker.circuit(now), state.breaker.last())
    }

    /// Since when it takes no calls, if it takes none, and when it took one the last time.
    pub(crate) fn closed(&self, now: Moment) -> (Option<Moment>, Option<Moment>) {
        let mut state = self.state();
        state.see_closed(now);
        (state.closed.since(now), state.closed.accepted())
    }

    /// Tells the breaker something, where it has anything to remember or gets it now.
    fn breaks(&self, event: impl FnOnce(&mut Breaker, Moment) -> Option<Change>) {
        let now = self.clock.now();
        let mut state = self.state();
        let change = event(&mut state.breaker, now);
        state.see_closed(now);
        let fault = state.breaker.last();
        self.strained.store(state.breaker.is_strained(), Ordering::Relaxed);
        drop(state);
        let what = match (change, fault) {
            (Some(Change::Opened { failures, until }), Some(fault)) => {
                What::CircuitOpened { fault, failures, pause: until.since(now) }
            }
            (Some(Change::StaysOpen { until }), Some(fault)) => {
                What::CircuitStaysOpen { fault, pause: until.since(now) }
            }
            (Some(Change::Closed { after }), _) => What::CircuitClosed { after },
            (Some(Change::Opened { .. } | Change::StaysOpen { .. }), None) | (None, _) => return,
        };
        self.observers.notice(&Notice::Lane(LaneChange { lane: self.name.clone(), what }));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it learned, under its name.
    fn learned(&self) -> Option<(String, Learned)> {
        Some((self.name.id.clone(), self.state().gate.learned()?))
    }

    fn has_places(self: &Arc<Self>, most: NonZeroU32) {
        if self.state().gate.max_running().is_some_and(|known| known != count(most)) {
            self.tell(|gate, _, _| gate.set_max_running(count(most)));
        }
    }

    /// Tells the gate something, and does what follows from it.
    fn tell(self: &Arc<Self>, event: impl FnOnce(&mut Gate, Moment, &mut RealDice)) {
        let now = self.clock.now();
        let mut state = self.state();
        let before = state.wake;
        let State { gate, dice, .. } = &mut *state;
        event(gate, now, dice);
        state.grant_all(now);
        self.go_on(state, before, now);
    }

    /// The same for a call that waits from now on.
    fn enter(
        self: &Arc<Self>,
        call: CallId,
        waiting: Waiting,
        event: impl FnOnce(&mut Gate, Moment, &mut RealDice),
    ) -> Turn {
        let now = self.clock.now();
        let mut state = self.state();
        let before = state.wake;
        let State { gate, dice, entering, .. } = &mut *state;
        event(gate, now, dice);
        *entering = Some(call);
        state.grant_all(now);
        let turn = if state.entering.take().is_none() {
            Turn::Now
        } else {
            let (tell, turn) = oneshot::channel();
            let Waiting { bears, plain, parks, .. } = waiting;
            let waiter = Waiter { tell, bears, plain, parks };
            let parked = state.gate.parked(now).map(|parked| parked.until.since(now));
            match state.gate.hold(now) {
                Some(hold) if waiter.waits_in_vain(hold, parked.is_some()) => {
                    waiter.hear_of_hold(parked.is_some());
                }
                Some(_) | None => _ = state.waiters.insert(call, waiter),
            }
            Turn::Later { turn, untold: Some(InLine { waiting: state.gate.waiting(), parked }) }
        };
        self.go_on(state, before, now);
        turn
    }

    /// All that could go has gone; `before`: when the gate was to be asked again until then.
    fn go_on(self: &Arc<Self>, mut state: MutexGuard<'_, State>, before: Option<Moment>, now: Moment) {
        state.tell_of_hold(now);
        if state.gate.shut().is_none() && state.spent.as_ref().is_some_and(|spent| spent.is_old(now)) {
            state.spent = None;
        }
        state.see_closed(now);
        if !state.driven && state.wake.is_some() {
            // At the very end there is nobody left to drive it, and nobody to wait for it.
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                state.driven = true;
                runtime.spawn(Arc::clone(self).drive());
            }
        } else if state.wake != before {
            self.changed.notify_one();
        }
        let news = state.news(now);
        drop(state);
        if let Some(what) = news {
            let lane = self.name.clone();
            self.observers.notice(&Notice::Lane(LaneChange { lane, what }));
        }
    }

    /// Asks the gate again whenever it said so, for as long as it says so.
    async fn drive(self: Arc<Self>) {
        let mut driving = Driving(Some(Arc::clone(&self)));
        loop {
            let wake = {
                let mut state = self.state();
                state.driven = state.wake.is_some();
                state.wake
            };
            let Some(wake) = wake else {
                driving.0 = None;
                return;
            };
            tokio::select! {
                () = sleep_until(&*self.clock, wake) => self.tell(|_, _, _| ()),
                () = self.changed.notified() => {}
            }
        }
    }
}

/// Somebody sees to it that a lane goes on. Dropped before its time, it says that nobody does any more.
struct Driving(Option<Arc<Lane>>);

impl Drop for Driving {
    fn drop(&mut self) {
        if let Some(lane) = &self.0 {
            lane.state().driven = false;
        }
    }
}

impl State {
    /// Whether it takes calls: all that closes it.
    fn see_closed(&mut self, now: Moment) {
        let is_cut_off = self.breaker.is_strained() && self.breaker.circuit(now) != Circuit::Closed;
        self.closed.sees(self.gate.shut().is_some() || is_cut_off, self.gate.hold(now), now);
    }

    /// Those whose patience ends before the lane may send again are told so: they would wait for nothing.
    fn tell_of_hold(&mut self, now: Moment) {
        let held = (self.gate.hold(now), self.gate.parked(now).map(|parked| parked.until));
        if held == self.held {
            return;
        }
        self.held = held;
        let (Some(hold), is_parked) = (held.0, held.1.is_some()) else { return };
        for (_, waiter) in self.waiters.extract_if(|_, waiter| waiter.waits_in_vain(hold, is_parked)) {
            waiter.hear_of_hold(is_parked);
        }
    }

    /// Lets all calls go whose turn it is.
    fn grant_all(&mut self, now: Moment) {
        let wake = loop {
            match self.gate.poll(now, &mut self.dice) {
                Poll::Send(call) if self.entering == Some(call) => self.entering = None,
                Poll::Send(call) => {
                    let waiter = self.waiters.remove(&call);
                    let told = waiter.is_some_and(|waiter| waiter.tell.send(Word::Go).is_ok());
                    if !told {
                        // Its client has just gone.
                        self.gate.left(call, true, now);
                    }
                }
                Poll::Wait(at) => break Some(at),
                Poll::Idle => break None,
            }
        };
        self.wake = wake.into_iter().chain(self.news_at(now)).min();
    }

    /// When it is news that the lane is shut, or that nobody asks it any more, where that is still to come.
    fn news_at(&self, now: Moment) -> Option<Moment> {
        let at = match (self.gate.shown_shut(now), self.told) {
            (Some((Shut::Refused(_) | Shut::Slow | Shut::Spent, since)), None) => Some(since + NEWS),
            (Some(_), Some(_)) => self.gate.forgotten_at(),
            (Some((Shut::Full, _)) | None, None) | (None, Some(_)) => None,
        };
        at.filter(|at| *at > now)
    }

    /// What observers do not know yet.
    fn news(&mut self, now: Moment) -> Option<What> {
        match (self.gate.shown_shut(now), self.told) {
            (Some((why @ (Shut::Refused(_) | Shut::Slow | Shut::Spent), since)), None)
                if now.since(since) >= NEWS && self.gate.waiting() > 0 =>
            {
                self.told = Some(since);
                Some(What::LaneShut { why, waiting: self.gate.waiting() })
            }
            (None, Some(since)) => {
                self.told = None;
                Some(What::LaneOpened { after: now.since(since) })
            }
            (Some(_) | None, Some(_) | None) => None,
        }
    }
}

fn count(places: NonZeroU32) -> usize {
    usize::try_from(places.get()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
