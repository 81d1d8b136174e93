//! The status page: what is kept, as people and programs read it.

use relay_core::breaker::Circuit;
use relay_core::event::{CallId, HeldBy};
use relay_core::gate::{Place, View};
use relay_core::warm::News;
use relay_core::{Fault, Moment};
use serde::Serialize;

use super::super::{CredentialNews, LaneName};
use super::{Doing, Open, Status, Totals, WayName};
use crate::clock::tenths;

/// An open call as the status page shows it.
#[derive(Debug, Serialize)]
struct OpenCall {
    /// The call's id in the log.
    id: String,
    /// The client.
    client: &'static str,
    /// The dialect.
    dialect: &'static str,
    /// What the request does.
    operation: &'static str,
    /// What it came by.
    transport: &'static str,
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
    /// What holds it beside its lane: `circuits` or `credential`.
    held_by: Option<&'static str>,
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
    uptime_s: f64,
    /// Sums since the start.
    totals: Totals,
    /// The calls that are open.
    open_calls: Vec<OpenCall>,
    /// The lanes.
    lanes: Vec<Lane>,
    /// Models that are being loaded, or were.
    warming: Vec<WarmUp>,
    /// Ways to upstreams that are left since they failed.
    ways_left: Vec<WayLeft>,
    /// Credentials of the relay's own that were renewed, or could not be.
    credentials: Vec<Credential>,
}

/// A way to an upstream that failed, as the status page shows it.
#[derive(Debug, Serialize)]
struct WayLeft {
    /// Host and port of the upstream.
    upstream: String,
    /// The proxy, or `direct`.
    by: String,
    /// What failed.
    why: &'static str,
    /// Seconds since then.
    left_for_s: f64,
}

/// The warm-up of a model as the status page shows it.
#[derive(Debug, Serialize)]
struct WarmUp {
    /// The upstream.
    upstream: String,
    /// The model.
    model: Option<String>,
    /// `loading`, `ready` or `gave_up`.
    state: &'static str,
    /// Tries that ended.
    tries: u32,
}

impl WarmUp {
    fn of((upstream, model): &(Box<str>, Option<Box<str>>), news: News) -> Self {
        let (state, tries) = match news {
            News::Loading => ("loading", 0),
            News::Again { tries, .. } => ("loading", tries),
            News::Ready { tries, .. } => ("ready", tries),
            News::GaveUp { tries, .. } => ("gave_up", tries),
        };
        Self { upstream: upstream.to_string(), model: model.as_deref().map(str::to_owned), state, tries }
    }
}

impl WayLeft {
    fn of((upstream, by): &WayName, (since, why): (Moment, &'static str), now: Moment) -> Self {
        let left_for_s = tenths(now.since(since));
        Self { upstream: upstream.to_string(), by: by.to_string(), why, left_for_s }
    }
}

/// A credential of the relay's own as the status page shows it.
#[derive(Debug, Serialize)]
struct Credential {
    /// Its name in the settings.
    name: String,
    /// `renewed`, `failed`, or `failed_for_good`: until its source changes.
    state: &'static str,
    /// What went wrong.
    why: Option<String>,
}

impl Credential {
    fn of(name: &str, news: &CredentialNews) -> Self {
        let (state, why) = match news {
            CredentialNews::Renewed => ("renewed", None),
            CredentialNews::Failed { why, for_good: false, .. } => ("failed", Some(why.clone())),
            CredentialNews::Failed { why, for_good: true, .. } => ("failed_for_good", Some(why.clone())),
        };
        Self { name: name.to_owned(), state, why }
    }
}

/// A lane as the status page shows it.
#[derive(Debug, Serialize)]
struct Lane {
    /// Its id.
    id: String,
    /// The upstream.
    upstream: String,
    /// The model.
    model: Option<String>,
    /// `open` or `shut`.
    state: &'static str,
    /// Why it is shut.
    why: Option<&'static str>,
    /// Seconds since it shut.
    shut_for_s: Option<f64>,
    /// Seconds until the next call is sent, as far as time alone decides it.
    next_send_in_s: Option<f64>,
    /// Seconds for which the upstream asked to be left alone.
    held_for_s: Option<f64>,
    /// Seconds for which it is parked, since its quota is spent.
    parked_for_s: Option<f64>,
    /// Calls that wait.
    waiting: usize,
    /// Calls without a sign of acceptance yet.
    sending: usize,
    /// Accepted calls.
    running: usize,
    /// The most that run at once.
    max_running: Option<usize>,
    /// The usual time to recovery, in seconds.
    recovery_s: Option<f64>,
    /// The rate that a rate limit leaves, in sends a second.
    rate_per_s: Option<f64>,
    /// It refuses at random.
    random: bool,
    /// What its breaker says: `closed`, `open` or `half_open`.
    circuit: &'static str,
    /// Seconds until an open breaker lets a probe through.
    circuit_open_for_s: Option<f64>,
    /// The first of those that wait, in their order.
    line: Vec<Waiting>,
}

/// A call that waits in a lane.
#[derive(Debug, Serialize)]
struct Waiting {
    /// Its place in line, from 1.
    position: usize,
    /// The call.
    call: String,
    /// The session it belongs to: a number that only tells it from others.
    session: String,
    /// Seconds until its own wait is over.
    not_before_s: Option<f64>,
}

impl Lane {
    fn of(name: LaneName, view: View, now: Moment) -> Self {
        let from_now = |at: Option<Moment>| at.map(|at| tenths(at.since(now)));
        let place = |place: Place| Waiting {
            position: place.position,
            call: place.call.to_string(),
            session: format!("{:08x}", place.session >> 32),
            not_before_s: from_now(place.not_before),
        };
        Self {
            id: name.id,
            upstream: name.upstream.into(),
            model: name.model.map(Into::into),
            state: if view.shut.is_some() { "shut" } else { "open" },
            why: view.shut.map(|(why, _)| why.name()),
            shut_for_s: view.shut.map(|(_, since)| tenths(now.since(since))),
            next_send_in_s: from_now(view.next),
            held_for_s: from_now(view.hold),
            parked_for_s: from_now(view.parked.map(|parked| parked.until)),
            waiting: view.waiting,
            sending: view.pending,
            running: view.running,
            max_running: view.max_running,
            recovery_s: view.recovery.map(tenths),
            rate_per_s: view.rate.map(|rate| (rate * 1000.0).round() / 1000.0),
            random: view.random,
            circuit: match view.circuit {
                Circuit::Closed => "closed",
                Circuit::Open(_) => "open",
                Circuit::HalfOpen => "half_open",
            },
            circuit_open_for_s: match view.circuit {
                Circuit::Open(until) => from_now(Some(until)),
                Circuit::Closed | Circuit::HalfOpen => None,
            },
            line: view.line.into_iter().map(place).collect(),
        }
    }
}

impl Status {
    /// The page as it stands `now`, with these lanes; the relay started at `started`.
    #[must_use]
    pub fn page(&self, started: Moment, now: Moment, lanes: Vec<(LaneName, View)>) -> Page {
        let board = self.board();
        Page {
            v: 1,
            version: env!("CARGO_PKG_VERSION"),
            uptime_s: tenths(now.since(started)),
            totals: Totals { waited_s: (board.totals.waited_s * 10.0).round() / 10.0, ..board.totals },
            open_calls: board.open.iter().map(|(id, open)| shown(*id, open, now)).collect(),
            lanes: lanes.into_iter().map(|(name, view)| Lane::of(name, view, now)).collect(),
            warming: board.warming.iter().map(|(whose, news)| WarmUp::of(whose, *news)).collect(),
            ways_left: board.ways_left.iter().map(|(way, left)| WayLeft::of(way, *left, now)).collect(),
            credentials: board.credentials.iter().map(|(name, news)| Credential::of(name, news)).collect(),
        }
    }
}

fn shown(id: CallId, open: &Open, now: Moment) -> OpenCall {
    let state = match open.doing {
        Doing::Opening => "opening",
        Doing::Sending => "sending",
        Doing::Waiting { .. } => "waiting",
        Doing::Streaming => "streaming",
    };
    let (until, fault, by) = match open.doing {
        Doing::Waiting { until, fault, by } => (until, fault, by),
        Doing::Opening | Doing::Sending | Doing::Streaming => (None, None, None),
    };
    OpenCall {
        id: id.to_string(),
        client: open.labels.client,
        dialect: open.labels.dialect,
        operation: open.labels.operation.name(),
        transport: open.labels.transport.name(),
        upstream: open.labels.upstream.to_string(),
        model: open.labels.model.as_deref().map(str::to_owned),
        profile: open.labels.profile.to_string(),
        state,
        fault: fault.map(Fault::name),
        held_by: by.map(HeldBy::name),
        next_send_in_s: until.map(|until| tenths(until.since(now))),
        sends: open.sends,
        age_s: tenths(now.since(open.since)),
    }
}
