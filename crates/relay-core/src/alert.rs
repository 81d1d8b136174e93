//! What of all that happens a person should be told of, once: a lane that stays closed, waits that are long one after
//! the other, a quota that is spent, a file that cannot be written. Pure: events, changes of lanes and the time go in,
//! alerts come out. Not how they reach anybody (that is the relay's `alerts`).
//!
//! Of one kind and lane (or file) there is one alert in a time that the settings name; how many were held back is told with
//! the next one. What was told of is told again when it is over.
//!
//! An alert has labels, numbers and names of ours, and one text: what the system said of a file.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::config::{AlertSettings, OwnRule};
use crate::dialect::Because;
use crate::dialect::Rule;
use crate::event::{CallId, Closing, Event, Labels};
use crate::fault::Fault;
use crate::gate::Shut;
use crate::moment::Moment;

/// The most open calls that are kept in mind.
const MOST_OPEN: usize = 10_000;
/// The most lanes, and the most cases, that are kept in mind.
const MOST_CASES: usize = 1_000;

/// After so long nobody waits to hear that a quota is there again.
const FORGOTTEN: Duration = Duration::from_secs(7 * 24 * 3600);

/// What an alert is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A lane has been closed for long.
    LaneClosed,
    /// A breaker has cut an upstream off.
    CircuitOpen,
    /// Calls of a lane wait for long, one after the other.
    LongWaits,
    /// A quota, a balance or a plan's window is spent.
    QuotaSpent,
    /// An answer fits a rule that asks for it.
    Rule,
    /// A file of the relay's own cannot be written.
    CannotWrite,
    /// A call may have been billed twice.
    MaybeBilledTwice,
}

impl Kind {
    /// Every one.
    pub const ALL: [Self; 7] = [
        Self::LaneClosed,
        Self::CircuitOpen,
        Self::LongWaits,
        Self::QuotaSpent,
        Self::Rule,
        Self::CannotWrite,
        Self::MaybeBilledTwice,
    ];

    /// The name in settings, in the log and in alerts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LaneClosed => "lane_closed",
            Self::CircuitOpen => "circuit_open",
            Self::LongWaits => "long_waits",
            Self::QuotaSpent => "quota_spent",
            Self::Rule => "rule",
            Self::CannotWrite => "cannot_write",
            Self::MaybeBilledTwice => "maybe_billed_twice",
        }
    }

    /// Whether it is told once as long as it lasts; what is not happens again and again, and is told again.
    const fn lasts(self) -> bool {
        match self {
            Self::LaneClosed | Self::CircuitOpen | Self::LongWaits | Self::CannotWrite => true,
            Self::QuotaSpent | Self::Rule | Self::MaybeBilledTwice => false,
        }
    }
}

/// Whether something begins or is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is the case.
    Raised,
    /// It is over.
    Resolved,
}

impl State {
    /// The name in the log and in alerts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Raised => "raised",
            Self::Resolved => "resolved",
        }
    }
}

/// Whom an alert is about: names, and no credential.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct About {
    /// The upstream.
    pub upstream: Option<Box<str>>,
    /// The model.
    pub model: Option<Box<str>>,
    /// The lane.
    pub lane: Option<Box<str>>,
    /// The call that it came with.
    pub call: Option<CallId>,
    /// The fault, or what else a lane is closed for.
    pub fault: Option<&'static str>,
    /// In how long there is a quota again.
    pub renews: Option<Duration>,
    /// The rule.
    pub rule: Option<Box<str>>,
    /// What cannot be written: `log`, `history`, `snapshots`.
    pub what: Option<&'static str>,
    /// What the system said of that.
    pub why: Option<Box<str>>,
}

/// What somebody is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alert {
    /// What it is.
    pub kind: Kind,
    /// Whether it begins or is over.
    pub state: State,
    /// Whom it is about.
    pub about: About,
    /// How long it has been so.
    pub lasted: Duration,
    /// How many of the same kind and lane were held back since the last one that was told.
    pub held_back: u32,
}

/// A lane, as far as alerts go.
#[derive(Debug, Default)]
struct Lane {
    about: About,
    shut: Option<Moment>,
    /// Long waits, one after the other.
    long: u32,
    /// When the last of them was heard of, or a call of the lane ended.
    last: Moment,
}

/// An open call.
#[derive(Debug)]
struct Open {
    labels: Arc<Labels>,
    /// Since when it waits.
    waits: Option<Moment>,
    /// This wait was found to be long.
    is_long: bool,
    /// Its last send was answered with an error. One that is to pass untouched is committed all the same.
    is_refused: bool,
}

/// What is, or was lately, the case.
#[derive(Debug)]
struct Case {
    about: About,
    since: Moment,
    /// It is still so.
    stands: bool,
    /// It was told that it is.
    told: bool,
    last_told: Option<Moment>,
    held_back: u32,
}

/// Watches over all.
#[derive(Debug, Default)]
pub struct Watch {
    settings: AlertSettings,
    /// The rules that ask for an alert, by what events call them.
    rules: Vec<(String, OwnRule)>,
    calls: BTreeMap<CallId, Open>,
    lanes: BTreeMap<Box<str>, Lane>,
    cases: BTreeMap<(Kind, Box<str>), Case>,
    out: Vec<Alert>,
}

/// What a lane did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// It closed.
    Shut(Shut),
    /// It opened.
    Opened,
    /// Its breaker cut it off, after this fault.
    CircuitOpened(Fault),
    /// Its breaker lets calls through again.
    CircuitClosed,
}

impl Watch {
    /// From now on it goes by these; what is the case stays so.
    pub fn set(&mut self, settings: AlertSettings, rules: Vec<OwnRule>) {
        let named = |own: OwnRule| (Because::Yours(Rule::clone(&own.rule)).to_string(), own);
        (self.settings, self.rules) = (settings, rules.into_iter().map(named).collect());
    }

    /// Whether this event can matter: most do not, and need no lock.
    #[must_use]
    pub const fn concerns(event: &Event) -> bool {
        match event {
            Event::HeadArrived { status, .. } => *status >= 400,
            Event::WayTaken { .. }
            | Event::NoticeGiven { .. }
            | Event::GrantTaken { .. }
            | Event::StreamCut { .. } => false,
            Event::CallOpened { .. }
            | Event::SendStarted { .. }
            | Event::FaultSeen { .. }
            | Event::WaitStarted { .. }
            | Event::InLine { .. }
            | Event::HeldBack { .. }
            | Event::Moved { .. }
            | Event::Committed { .. }
            | Event::CallClosed(_) => true,
        }
    }

    /// Something happened to a call.
    pub fn see(&mut self, call: CallId, at: Moment, event: &Event) -> Vec<Alert> {
        match event {
            Event::CallOpened { labels, .. } => {
                if self.calls.len() < MOST_OPEN {
                    let open =
                        Open { labels: Arc::clone(labels), waits: None, is_long: false, is_refused: false };
                    self.calls.insert(call, open);
                }
            }
            Event::SendStarted { .. } => {
                if let Some(open) = self.calls.get_mut(&call) {
                    open.is_refused = false;
                }
                self.stops_waiting(call, at, true);
            }
            // That a quota is spent was told, and is no want of capacity.
            Event::InLine { parked: Some(_), .. } => {}
            Event::WaitStarted { .. } | Event::InLine { parked: None, .. } | Event::HeldBack { .. } => {
                if let Some(open) = self.calls.get_mut(&call) {
                    open.waits.get_or_insert(at);
                }
            }
            Event::FaultSeen { fault, rule, status, told, .. } => {
                self.failed(call, at, (*fault, *told), rule.as_deref().zip(*status));
            }
            Event::Moved { to, .. } => {
                if let Some(open) = self.calls.get_mut(&call) {
                    open.labels = Arc::new(open.labels.moved_to(to));
                }
            }
            Event::Committed { .. } => self.answered(call, at),
            Event::CallClosed(closing) => self.closed(call, at, closing),
            Event::HeadArrived { status, .. } => {
                if let Some(open) = self.calls.get_mut(&call) {
                    open.is_refused = *status >= 400;
                }
            }
            Event::WayTaken { .. }
            | Event::NoticeGiven { .. }
            | Event::GrantTaken { .. }
            | Event::StreamCut { .. } => {}
        }
        std::mem::take(&mut self.out)
    }

    /// A lane closed or opened.
    pub fn lane(&mut self, about: About, at: Moment, did: Gate) -> Vec<Alert> {
        let Some(id) = about.lane.clone() else { return Vec::new() };
        match did {
            // That its quota is spent is told by the answer that says so.
            Gate::Shut(Shut::Spent) => {}
            Gate::Shut(why) => {
                if let Some(lane) = lane_of(&mut self.lanes, &id) {
                    lane.about = About { fault: Some(why.name()), ..about };
                    lane.shut.get_or_insert(at);
                }
            }
            Gate::Opened => {
                if let Some(lane) = self.lanes.get_mut(&id) {
                    lane.shut = None;
                }
                self.over(Kind::LaneClosed, &id, at);
            }
            Gate::CircuitOpened(fault) => {
                let about = About { fault: Some(fault.name()), ..about };
                self.raise(Kind::CircuitOpen, &id, (at, at), about);
            }
            Gate::CircuitClosed => self.over(Kind::CircuitOpen, &id, at),
        }
        std::mem::take(&mut self.out)
    }

    /// How it is with a file of the relay's own: what is in the way of writing it, if anything.
    pub fn file(&mut self, what: &'static str, at: Moment, trouble: Option<&str>) -> Vec<Alert> {
        match trouble {
            Some(why) => {
                let about = About { what: Some(what), why: Some(why.into()), ..About::default() };
                self.raise(Kind::CannotWrite, what, (at, at), about);
            }
            None => self.over(Kind::CannotWrite, what, at),
        }
        std::mem::take(&mut self.out)
    }

    /// Time passes: to be asked every second or so.
    pub fn tick(&mut self, at: Moment) -> Vec<Alert> {
        let long = self.settings.long_wait;
        let waiting = self
            .calls
            .iter()
            .filter(|(_, open)| !open.is_long && open.waits.is_some_and(|since| at.since(since) >= long));
        for call in waiting.map(|(call, _)| *call).collect::<Vec<_>>() {
            self.waits_long(call, at);
        }
        let after = self.settings.lane_closed;
        let closed: Vec<_> = self
            .lanes
            .iter()
            .filter_map(|(id, lane)| Some((id.clone(), lane.shut?, lane.about.clone())))
            .filter(|(_, since, _)| at.since(*since) >= after)
            .collect();
        for (id, since, about) in closed {
            self.raise(Kind::LaneClosed, &id, (since, at), about);
        }
        // What lasts and was held back is told once that may be.
        let held = self.cases.iter().filter(|(key, case)| key.0.lasts() && case.stands && !case.told);
        for key in held.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            self.tell(&key, at, true);
        }
        self.nobody_waits(at);
        let every = self.settings.every;
        self.cases.retain(|(kind, _), case| {
            let since_told = case.last_told.map_or(Duration::ZERO, |told| at.since(told));
            let may_return = if case.stands { every.max(FORGOTTEN) } else { every };
            case.stands && kind.lasts() || case.last_told.is_some() && since_told < may_return
        });
        self.lanes.retain(|_, lane| lane.shut.is_some() || lane.long > 0);
        std::mem::take(&mut self.out)
    }
}

impl Watch {
    fn failed(
        &mut self,
        call: CallId,
        at: Moment,
        (fault, told): (Fault, Option<Duration>),
        rule: Option<(&str, u16)>,
    ) {
        let Some(open) = self.calls.get(&call) else { return };
        let labels = Arc::clone(&open.labels);
        let (lane, about) = (labels.lane.clone(), about(&labels, call, Some(fault)));
        if fault == Fault::QuotaSpent {
            self.raise(Kind::QuotaSpent, &lane, (at, at), About { renews: told, ..about.clone() });
        }
        let Some((rule, status)) = rule else { return };
        let of = |only: Option<&str>, it: &str| only.is_none_or(|only| only == it);
        let fits = |(name, own): &&(String, OwnRule)| {
            name == rule
                && own.rule.on.may_be(status)
                && of(own.dialect, labels.dialect)
                && of(own.upstream.as_deref(), &labels.upstream)
        };
        if let Some((_, own)) = self.rules.iter().find(fits) {
            let about = About { rule: Some(own.rule.source.as_ref().into()), ..about };
            self.raise(Kind::Rule, &lane, (at, at), about);
        }
    }

    /// An answer shows that the lane has what it lacked.
    fn answered(&mut self, call: CallId, at: Moment) {
        // Asked for every answer, and nearly always there is nothing.
        if self.cases.is_empty() {
            return;
        }
        let served = self.calls.get(&call).filter(|open| !open.is_refused);
        let Some(lane) = served.map(|open| open.labels.lane.clone()) else { return };
        self.over(Kind::QuotaSpent, &lane, at);
        self.over(Kind::Rule, &lane, at);
    }

    fn closed(&mut self, call: CallId, at: Moment, closing: &Closing) {
        self.stops_waiting(call, at, false);
        let Some(open) = self.calls.remove(&call) else { return };
        if let Some(lane) = self.lanes.get_mut(&open.labels.lane) {
            lane.last = at;
        }
        if closing.maybe_billed_twice > 0 {
            let about = about(&open.labels, call, closing.last_fault);
            self.raise(Kind::MaybeBilledTwice, &open.labels.lane, (at, at), about);
            // It is no state that ends.
            if let Some(case) = self.cases.get_mut(&(Kind::MaybeBilledTwice, open.labels.lane.clone())) {
                case.stands = false;
            }
        }
    }

    fn waits_long(&mut self, call: CallId, at: Moment) {
        let most = self.settings.long_waits;
        let Some(open) = self.calls.get_mut(&call) else { return };
        open.is_long = true;
        let (id, about) = (open.labels.lane.clone(), about(&open.labels, call, None));
        let Some(lane) = lane_of(&mut self.lanes, &id) else { return };
        (lane.long, lane.last) = (lane.long.saturating_add(1), at);
        if lane.long >= most {
            self.raise(Kind::LongWaits, &id, (at, at), about);
        }
    }

    /// Where nobody has called for long, nobody waits for long.
    fn nobody_waits(&mut self, at: Moment) {
        let every = self.settings.every;
        let is_quiet = |lane: &Lane| lane.long > 0 && at.since(lane.last) >= every;
        let quiet: Vec<_> =
            self.lanes.iter().filter(|(_, lane)| is_quiet(lane)).map(|(id, _)| id.clone()).collect();
        for id in quiet {
            if self.calls.values().all(|open| open.labels.lane != id) {
                self.over(Kind::LongWaits, &id, at);
                self.lanes.entry(id).and_modify(|lane| lane.long = 0);
            }
        }
    }

    /// A wait is over. That of a call which ends without its send says nothing of how long others wait.
    fn stops_waiting(&mut self, call: CallId, at: Moment, sends: bool) {
        let Some(open) = self.calls.get_mut(&call) else { return };
        let Some(since) = open.waits.take() else { return };
        let was_long = std::mem::take(&mut open.is_long);
        if was_long {
            return;
        }
        let lane = open.labels.lane.clone();
        if at.since(since) >= self.settings.long_wait {
            self.waits_long(call, at);
            if let Some(open) = self.calls.get_mut(&call) {
                open.is_long = false;
            }
        } else if sends {
            if let Some(lane) = self.lanes.get_mut(&lane) {
                lane.long = 0;
            }
            self.over(Kind::LongWaits, &lane, at);
        }
    }

    /// It is the case, since the first of the two moments; or it has happened again.
    fn raise(&mut self, kind: Kind, of: &str, (since, at): (Moment, Moment), about: About) {
        if !self.settings.kinds.contains(&kind) {
            return;
        }
        let key = (kind, Box::from(of));
        if !self.cases.contains_key(&key) && self.cases.len() >= MOST_CASES {
            return;
        }
        let case = self.cases.entry(key.clone()).or_insert_with(|| Case {
            about: About::default(),
            since,
            stands: false,
            told: false,
            last_told: None,
            held_back: 0,
        });
        case.about = about;
        let begins = !case.stands;
        if begins {
            (case.stands, case.told, case.since) = (true, false, since);
        }
        if begins || !kind.lasts() {
            self.tell(&key, at, false);
        }
    }

    /// Tells of it, unless that was done of late; `late`: it was held back before.
    fn tell(&mut self, key: &(Kind, Box<str>), at: Moment, late: bool) {
        let every = self.settings.every;
        let Some(case) = self.cases.get_mut(key) else { return };
        if case.last_told.is_some_and(|told| at.since(told) < every) {
            if !late {
                case.held_back = case.held_back.saturating_add(1);
            }
            return;
        }
        let held_back = std::mem::take(&mut case.held_back);
        (case.told, case.last_told) = (true, Some(at));
        self.out.push(Alert {
            kind: key.0,
            state: State::Raised,
            about: case.about.clone(),
            lasted: at.since(case.since),
            // Itself is told now.
            held_back: held_back.saturating_sub(u32::from(late)),
        });
    }

    /// It is not the case any more.
    fn over(&mut self, kind: Kind, of: &str, at: Moment) {
        let Some(case) = self.cases.get_mut(&(kind, Box::from(of))).filter(|case| case.stands) else {
            return;
        };
        case.stands = false;
        if !std::mem::take(&mut case.told) {
            return;
        }
        let held_back = std::mem::take(&mut case.held_back);
        let (about, lasted) = (case.about.clone(), at.since(case.since));
        self.out.push(Alert { kind, state: State::Resolved, about, lasted, held_back });
    }
}

fn about(labels: &Labels, call: CallId, fault: Option<Fault>) -> About {
    About {
        upstream: Some(labels.upstream.clone()),
        model: labels.model.clone(),
        lane: Some(labels.lane.clone()),
        call: Some(call),
        fault: fault.map(Fault::name),
        ..About::default()
    }
}

/// The lane of this id; `None` where there are too many.
fn lane_of<'a>(lanes: &'a mut BTreeMap<Box<str>, Lane>, id: &str) -> Option<&'a mut Lane> {
    if !lanes.contains_key(id) && lanes.len() >= MOST_CASES {
        return None;
    }
    Some(lanes.entry(id.into()).or_default())
}

#[cfg(test)]
mod tests;
