//! What is going on and what was saved, for the status page, the closing line of `run` and the drain.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use relay_core::event::{CallId, Event, Labels, Outcome};
use relay_core::{Fault, Moment};
use serde::Serialize;

use super::{Notice, Observer};

/// Sums since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Totals {
    /// Calls that ended.
    pub calls: u64,
    /// Physical sends.
    pub sends: u64,
    /// Calls that met a fault and were sent again, or cut and resumed.
    pub retried: u64,
    /// Calls that met a fault the relay waits for.
    pub met_fault: u64,
    /// All sends of these calls.
    pub retried_sends: u64,
    /// Calls that met a capacity fault.
    pub met_capacity: u64,
    /// Calls that met a fault and were served all the same.
    pub recovered: u64,
    /// Calls that were refused or given up.
    pub lost: u64,
    /// Streams that were cut so that the client resumes.
    pub cuts: u64,
    /// Resends of what may have run: each may have been billed twice.
    pub maybe_billed_twice: u64,
    /// Time waited between sends, in seconds.
    pub waited_s: f64,
}

/// What a call is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    Opening,
    Sending,
    Waiting { until: Moment, fault: Fault },
    Streaming,
}

#[derive(Debug, Clone)]
struct Open {
    labels: Arc<Labels>,
    since: Moment,
    sends: u32,
    doing: Doing,
}

#[derive(Debug, Default)]
struct Board {
    totals: Totals,
    open: BTreeMap<CallId, Open>,
}

/// Keeps count.
#[derive(Debug, Default)]
pub struct Status {
    board: Mutex<Board>,
}

/// An open call as the status page shows it.
#[derive(Debug, Serialize)]
pub struct OpenCall {
    /// The call's id in the log.
    id: String,
    /// The client.
    client: &'static str,
    /// The dialect.
    dialect: &'static str,
    /// What the request does.
    operation: &'static str,
    /// The upstream.
    upstream: String,
    /// The model.
    model: Option<String>,
    /// The profile.
    profile: String,
    /// `opening`, `sending`, `waiting` or `streaming`.
    state: &'static str,
    /// The fault that is waited out.
    fault: Option<&'static str>,
    /// Seconds until the next send.
    next_send_in_s: Option<f64>,
    /// Sends so far.
    sends: u32,
    /// Seconds since the call was accepted.
    age_s: f64,
}

/// The status page.
#[derive(Debug, Serialize)]
pub struct Page {
    /// The version of this format.
    v: u32,
    /// The relay's version.
    version: &'static str,
    /// Seconds since the start.
    up_s: f64,
    /// Sums since the start.
    totals: Totals,
    /// The calls that are open.
    open: Vec<OpenCall>,
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

    /// How many calls are open.
    #[must_use]
    pub fn open(&self) -> usize {
        self.board().open.len()
    }

    /// The page as it stands `now`; the relay started at `started`.
    #[must_use]
    pub fn page(&self, started: Moment, now: Moment) -> Page {
        let board = self.board();
        Page {
            v: 1,
            version: env!("CARGO_PKG_VERSION"),
            up_s: tenths(now.since(started)),
            totals: Totals { waited_s: (board.totals.waited_s * 10.0).round() / 10.0, ..board.totals },
            open: board.open.iter().map(|(id, open)| shown(*id, open, now)).collect(),
        }
    }
}

fn shown(id: CallId, open: &Open, now: Moment) -> OpenCall {
    let (state, fault, next) = match open.doing {
        Doing::Opening => ("opening", None, None),
        Doing::Sending => ("sending", None, None),
        Doing::Waiting { until, fault } => ("waiting", Some(fault.name()), Some(tenths(until.since(now)))),
        Doing::Streaming => ("streaming", None, None),
    };
    OpenCall {
        id: id.to_string(),
        client: open.labels.client,
        dialect: open.labels.dialect,
        operation: open.labels.operation.name(),
        upstream: open.labels.upstream.to_string(),
        model: open.labels.model.as_deref().map(str::to_owned),
        profile: open.labels.profile.to_string(),
        state,
        fault,
        next_send_in_s: next,
        sends: open.sends,
        age_s: tenths(now.since(open.since)),
    }
}

fn tenths(span: Duration) -> f64 {
    (span.as_secs_f64() * 10.0).round() / 10.0
}

impl Observer for Status {
    fn see(&self, call: CallId, at: Moment, event: &Event) {
        let mut board = self.board();
        let Board { totals, open } = &mut *board;
        match event {
            Event::CallOpened { labels, .. } => {
                open.insert(
                    call,
                    Open { labels: labels.clone(), since: at, sends: 0, doing: Doing::Opening },
                );
            }
            Event::SendStarted { send } => {
                totals.sends += 1;
                if let Some(open) = open.get_mut(&call) {
                    (open.sends, open.doing) = (*send, Doing::Sending);
                }
            }
            Event::WaitStarted { wait, fault, .. } => {
                if let Some(open) = open.get_mut(&call) {
                    open.doing = Doing::Waiting { until: at + *wait, fault: *fault };
                }
            }
            Event::Committed { .. } => {
                if let Some(open) = open.get_mut(&call) {
                    open.doing = Doing::Streaming;
                }
            }
            Event::StreamCut { .. } => totals.cuts += 1,
            Event::GrantTaken { .. } => totals.maybe_billed_twice += 1,
            Event::CallClosed(closing) => {
                open.remove(&call);
                totals.calls += 1;
                totals.waited_s += closing.waited.as_secs_f64();
                let met_fault = closing.last_fault.is_some();
                let again = closing.sends > 1;
                totals.retried += u64::from(again);
                if again || closing.outcome == Outcome::GaveUp {
                    totals.met_fault += 1;
                    totals.retried_sends += u64::from(closing.sends);
                }
                totals.met_capacity += u64::from(closing.capacity_faults > 0);
                match closing.outcome {
                    Outcome::Served => totals.recovered += u64::from(met_fault && again),
                    Outcome::Refused | Outcome::GaveUp => totals.lost += 1,
                    Outcome::Passed
                    | Outcome::Returned
                    | Outcome::Broken
                    | Outcome::Cut
                    | Outcome::ClientLeft => {}
                }
            }
            Event::HeadArrived { .. } | Event::FaultSeen { .. } => {}
        }
    }

    fn notice(&self, _notice: &Notice) {}
}
