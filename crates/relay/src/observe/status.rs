//! What is going on and what was saved, for the status page, the closing line of `run` and the drain.

mod page;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use relay_core::event::{CallId, Closing, Event, HeldBy, Labels, Outcome};
use relay_core::gate::View;
use relay_core::warm::News;
use relay_core::{Fault, Moment};
use serde::Serialize;
use tokio::sync::Notify;

pub use self::page::Page;
use super::{CredentialNews, LaneName, Notice, Observer, Warming};
use crate::clock::tenths;
use crate::history::fate::{Fate, Way};
use crate::sessions::said::{Held, Sums};
use crate::upstream::{WayNews, WayWhat};

/// Sums since the start. `docs/status.md` says what each field of the page means, in words for its readers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Totals {
    /// Calls that came in.
    pub calls: u64,
    /// Physical sends.
    pub sends: u64,
    /// Waits that began.
    pub waits: u64,
    /// Time waited between sends by calls that ended, in seconds.
    pub waited_s: f64,
    /// Calls that ended and took more than one send.
    pub calls_sent_again: u64,
    /// Calls that ended and met a capacity fault.
    pub calls_short_of_capacity: u64,
    /// Calls that ended and waited.
    pub calls_waited: u64,
    /// Calls that ended and tell whether the relay, or the service alone, did well.
    pub calls_judged: u64,
    /// Those of them that were served.
    pub calls_served: u64,
    /// Those of them that their first send alone would not have served.
    pub calls_saved: u64,
    /// Calls that were refused or given up.
    pub calls_lost: u64,
    /// Calls whose failure went back as it was.
    pub calls_handed_back: u64,
    /// Calls whose answer broke off after some of it had reached the client.
    pub calls_broken: u64,
    /// Requests that the relay itself turned away.
    pub requests_refused: u64,
    /// Streams that were cut so that the client resumes.
    pub streams_cut: u64,
    /// Resends of what may have run: each may have been billed twice.
    pub maybe_billed_twice: u64,
    /// Calls that met a fault the relay waits for: those sent again, and those lost. For the closing line alone.
    #[serde(skip)]
    pub met_fault: u64,
    /// Those of them that met a want of capacity.
    #[serde(skip)]
    pub met_capacity: u64,
    /// Those of them that were served.
    #[serde(skip)]
    pub met_and_served: u64,
    /// Those of them that were not served: refused, given up, handed back, broken off, or left by their client.
    #[serde(skip)]
    pub met_and_lost: u64,
    /// All sends of these calls.
    #[serde(skip)]
    pub retried_sends: u64,
    /// Sends that were refused for want of capacity, of calls that ended.
    #[serde(skip)]
    pub refusals: u64,
}

impl Totals {
    /// A call ended. `after_cut`: an earlier answer of its turn had been cut.
    fn closed(&mut self, closing: &Closing, after_cut: bool) {
        self.waited_s += closing.waited.as_secs_f64();
        // Passing through the gate takes its time, too.
        let has_waited = closing.waited >= Duration::from_millis(1);
        self.calls_waited += u64::from(has_waited);
        let met_fault = closing.last_fault.is_some();
        let again = closing.sends > 1;
        self.calls_sent_again += u64::from(again);
        let at_capacity = u64::from(closing.capacity_faults > 0);
        let is_troubled = met_fault || again || has_waited;
        let lost = match closing.outcome {
            Outcome::GaveUp | Outcome::Refused => true,
            // What is handed back at once is its client's affair.
            Outcome::Returned => again,
            Outcome::Broken | Outcome::ClientLeft => is_troubled,
            Outcome::Served | Outcome::Passed | Outcome::Cut => false,
        };
        if again || lost {
            self.met_fault += 1;
            self.met_and_lost += u64::from(lost);
            self.met_capacity += at_capacity;
            self.retried_sends += u64::from(closing.sends);
        }
        self.calls_short_of_capacity += at_capacity;
        self.refusals += u64::from(closing.capacity_faults);
        self.met_and_served += u64::from(closing.outcome == Outcome::Served && met_fault && again);
        let way =
            Way { was_helped: again || after_cut, was_troubled: met_fault || !closing.waited.is_zero() };
        let fate = Fate::of(Some(closing.outcome), way);
        self.calls_judged += u64::from(fate.is_judged());
        self.calls_served += u64::from(fate.is_served());
        match fate {
            Fate::Saved => self.calls_saved += 1,
            Fate::Lost => self.calls_lost += 1,
            Fate::Returned => self.calls_handed_back += 1,
            Fate::Broken => self.calls_broken += 1,
            Fate::ServedByFirst | Fate::Passed | Fate::Cut | Fate::LeftWaiting | Fate::Left => {}
        }
    }
}

/// What a call is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    Opening,
    Sending,
    Waiting { until: Option<Moment>, fault: Option<Fault>, by: Option<HeldBy> },
    Streaming,
}

#[derive(Debug, Clone)]
struct Open {
    labels: Arc<Labels>,
    since: Moment,
    sends: u32,
    doing: Doing,
    /// Since when its client waits for more than a send, and what went wrong, until it is answered.
    held: Option<(Moment, Option<Fault>)>,
    /// Whether its client was given a notice of that.
    noticed: bool,
    /// Whether an earlier answer of its turn was cut.
    after_cut: bool,
}

impl Open {
    fn waits(&mut self, until: Option<Moment>, fault: Option<Fault>, now: Moment) {
        self.doing = Doing::Waiting { until, fault, by: None };
        let (since, before) = self.held.unwrap_or((now, None));
        self.held = Some((since, fault.or(before)));
    }

    /// The same, by what is no lane and no send before.
    fn is_held_back(&mut self, by: HeldBy, until: Option<Moment>, fault: Option<Fault>, now: Moment) {
        self.waits(until, fault, now);
        self.doing = Doing::Waiting { until, fault, by: Some(by) };
    }
}

/// A way: the upstream and the proxy.
type WayName = (Box<str>, Box<str>);

#[derive(Debug, Default)]
struct Board {
    totals: Totals,
    open: BTreeMap<CallId, Open>,
    /// The warm-ups by upstream and model, as they were last told of.
    warming: BTreeMap<(Box<str>, Option<Box<str>>), News>,
    /// The ways that are left, by upstream and proxy: since when, and why.
    ways_left: BTreeMap<WayName, (Moment, &'static str)>,
    /// What became last of the relay's own credentials.
    credentials: BTreeMap<Box<str>, CredentialNews>,
}

/// Keeps count.
#[derive(Debug, Default)]
pub struct Status {
    board: Mutex<Board>,
    eased: Notify,
}

impl Status {
    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sums since the start.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.board().totals
    }

    /// Waits until a call is held no longer. One that was before anybody waited counts, once.
    pub(crate) async fn eased(&self) {
        self.eased.notified().await;
    }

    /// How many of them wait between sends.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.board().open.values().filter(|open| matches!(open.doing, Doing::Waiting { .. })).count()
    }

    /// How many calls are open.
    #[must_use]
    pub fn open(&self) -> usize {
        self.board().open.len()
    }

    /// The sums of `run`'s closing line.
    #[must_use]
    pub fn sums(&self) -> Sums {
        let totals = self.totals();
        Sums {
            calls: totals.met_fault,
            at_capacity: totals.met_capacity,
            recovered: totals.met_and_served,
            waited_s: (totals.waited_s * 1000.0).round() / 1000.0,
            sends: totals.retried_sends,
            lost: totals.met_and_lost,
            maybe_billed_twice: totals.maybe_billed_twice,
            refusals: totals.refusals,
            all_sends: totals.sends,
        }
    }

    /// How many calls are open, and those of them that are held; `lanes` are asked where one stands in line.
    pub(crate) fn held(
        &self,
        now: Moment,
        lanes: impl FnOnce() -> Vec<(LaneName, View)>,
    ) -> (usize, Vec<Held>) {
        let (open, held) = {
            let board = self.board();
            let held = board.open.iter().filter_map(|(id, open)| Some((*id, open.held?, open.clone())));
            (board.open.len(), held.collect::<Vec<_>>())
        };
        let in_line = |open: &Open| matches!(open.doing, Doing::Waiting { until: None, .. });
        let lanes = if held.iter().any(|(.., open)| in_line(open)) { lanes() } else { Vec::new() };
        let next_in_line = |id: CallId| {
            let lane = lanes.iter().find(|(_, view)| view.line.iter().any(|place| place.call == id));
            lane.and_then(|(_, view)| view.next)
        };
        let shown = |(id, (since, fault), open): (CallId, (Moment, Option<Fault>), Open)| {
            let next = match open.doing {
                Doing::Waiting { until, .. } => until.or_else(|| next_in_line(id)),
                Doing::Opening | Doing::Sending | Doing::Streaming => None,
            };
            Held {
                call: id.to_string(),
                model: open.labels.model.as_deref().map(str::to_owned),
                upstream: open.labels.upstream.to_string(),
                fault: fault.map(|fault| fault.name().to_owned()),
                held_s: tenths(now.since(since)),
                next_try_in_s: next.map(|next| tenths(next.since(now))),
                sending: open.doing == Doing::Sending,
                noticed: open.noticed,
            }
        };
        (open, held.into_iter().map(shown).collect())
    }

    /// What became of these credentials says nothing any more: they are gone from the settings, or set otherwise.
    pub(crate) fn forget_credentials(&self, gone: impl Fn(&str) -> bool) {
        self.board().credentials.retain(|name, _| !gone(name));
    }
}

impl Observer for Status {
    fn see(&self, call: CallId, at: Moment, event: &Event) {
        let mut board = self.board();
        let Board { totals, open, .. } = &mut *board;
        match event {
            Event::CallOpened { labels, .. } => {
                totals.calls += 1;
                open.insert(
                    call,
                    Open {
                        labels: labels.clone(),
                        since: at,
                        sends: 0,
                        doing: Doing::Opening,
                        held: None,
                        noticed: false,
                        after_cut: false,
                    },
                );
            }
            Event::SendStarted { send } => {
                totals.sends += 1;
                if let Some(open) = open.get_mut(&call) {
                    (open.sends, open.doing) = (*send, Doing::Sending);
                }
            }
            Event::WaitStarted { wait, fault, .. } => {
                totals.waits += 1;
                if let Some(open) = open.get_mut(&call) {
                    // A call that waits by itself before its first send resumes one that was cut.
                    open.after_cut |= open.sends == 0;
                    open.waits(Some(at + *wait), Some(*fault), at);
                }
            }
            Event::InLine { fault, .. } => {
                totals.waits += 1;
                if let Some(open) = open.get_mut(&call) {
                    open.waits(None, *fault, at);
                }
            }
            Event::HeldBack { by, wait, fault, .. } => {
                if let Some(open) = open.get_mut(&call) {
                    // Its own wait after a failure goes over into this one.
                    totals.waits += u64::from(!matches!(open.doing, Doing::Waiting { .. }));
                    open.is_held_back(*by, wait.map(|wait| at + wait), *fault, at);
                }
            }
            Event::Moved { to, .. } => {
                if let Some(open) = open.get_mut(&call) {
                    open.labels = Arc::new(open.labels.moved_to(to));
                }
            }
            Event::Committed { .. } => {
                if let Some(open) = open.get_mut(&call) {
                    open.doing = Doing::Streaming;
                    if open.held.take().is_some() {
                        self.eased.notify_one();
                    }
                }
            }
            Event::StreamCut { .. } => totals.streams_cut += 1,
            Event::GrantTaken { .. } => totals.maybe_billed_twice += 1,
            Event::CallClosed(closing) => {
                let open = open.remove(&call);
                if open.as_ref().is_some_and(|open| open.held.is_some()) {
                    self.eased.notify_one();
                }
                totals.closed(closing, open.is_some_and(|open| open.after_cut));
            }
            Event::NoticeGiven { .. } => {
                if let Some(open) = open.get_mut(&call) {
                    open.noticed = true;
                }
            }
            Event::HeadArrived { .. } | Event::WayTaken { .. } | Event::FaultSeen { .. } => {}
        }
    }

    fn notice(&self, notice: &Notice) {
        match notice {
            Notice::TurnedAway { .. } => self.board().totals.requests_refused += 1,
            Notice::Warming(Warming { upstream, model, news }) => {
                self.board().warming.insert((upstream.clone(), model.clone()), *news);
            }
            Notice::Way(WayNews { upstream, by, what }) => {
                let (way, mut board) = ((upstream.clone(), by.clone()), self.board());
                match *what {
                    WayWhat::Left { since, why, .. } => drop(board.ways_left.insert(way, (since, why))),
                    WayWhat::Back { .. } | WayWhat::Forgotten => drop(board.ways_left.remove(&way)),
                }
            }
            Notice::Credential { name, news } => {
                self.board().credentials.insert(name.clone(), news.clone());
            }
            Notice::Listening { .. }
            | Notice::Metrics { .. }
            | Notice::Advice(_)
            | Notice::Reloaded { .. }
            | Notice::ReloadRefused(_)
            | Notice::Draining { .. }
            | Notice::Stopping { .. }
            | Notice::AcceptFailed { .. }
            | Notice::Alert(_)
            | Notice::Lane(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
