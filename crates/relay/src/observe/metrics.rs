//! Counters and histograms in OpenMetrics, for Prometheus and its like. An observer as every other: it counts what
//! events tell. What it is not: the address it is read at (that is [`crate::metrics_door`]).
//!
//! Every label takes a bounded set of values. Models are named by requests, and upstreams by settings: of each the first
//! hundred have a name of their own, and the rest is `other`.

mod families;
mod labels;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use relay_core::event::{CallId, Closing, Event, Labels, Outcome};
use relay_core::gate::View;
use relay_core::{Fault, Moment};

use self::families::{End, Families, Usual};
use self::labels::{Names, OfCredential, OfFault, OfLane, OfWay, Reason, Whither, Why, named};
use super::{CredentialNews, LaneName, Notice, Observer, What};
use crate::upstream::{WayNews, WayWhat};

/// The `content-type` of what is read.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A call that is open.
struct Open {
    labels: Arc<Labels>,
    usual: Arc<Usual>,
    since: Moment,
}

#[derive(Default)]
struct Board {
    open: BTreeMap<CallId, Open>,
    names: Names,
    /// Of each place that calls went to. The names are bounded, so this is.
    usual: BTreeMap<Whither, Arc<Usual>>,
    served: u64,
    failed: u64,
}

/// Counts.
pub struct Metrics {
    registry: Registry,
    families: Families,
    board: Mutex<Board>,
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let families = Families::default();
        Self { registry: families.registered(), families, board: Mutex::default() }
    }
}

/// The reasons of the older name, by what a call waits for.
const fn reason(fault: Option<Fault>) -> &'static str {
    match fault {
        Some(Fault::AtCapacity | Fault::Overloaded | Fault::Throttled | Fault::ModelLoading) | None => {
            "overload"
        }
        Some(Fault::NoAnswer | Fault::NeverSent | Fault::BrokenStream) => "timeout",
        Some(
            Fault::QuotaSpent
            | Fault::Authentication
            | Fault::BadRequest
            | Fault::TooLong
            | Fault::ContentRefused
            | Fault::Challenge
            | Fault::ServerFailed
            | Fault::EmptyAnswer,
        ) => "other",
    }
}

impl Metrics {
    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of it as text, with these lanes as they are now.
    #[must_use]
    pub fn text(&self, lanes: &[(LaneName, View)]) -> String {
        let mut text = String::new();
        let now = self.now(lanes);
        // Writing to a text cannot fail.
        let _always = encode_registry(&mut text, &self.registry)
            .and_then(|()| encode_registry(&mut text, &now))
            .and_then(|()| encode_eof(&mut text));
        text
    }

    /// What is the case, as opposed to what has happened.
    fn now(&self, lanes: &[(LaneName, View)]) -> Registry {
        let mut registry = Registry::with_prefix("steady_relay");
        let open: Gauge = Gauge::default();
        let (waiting, shut): (Family<OfLane, Gauge>, Family<OfLane, Gauge>) = Default::default();
        let mut board = self.board();
        open.set(i64::try_from(board.open.len()).unwrap_or(i64::MAX));
        for (name, view) in lanes {
            let Whither { upstream, model } = board.names.whither(&name.upstream, name.model.as_deref());
            let of = OfLane { lane: name.id.clone(), upstream, model };
            waiting.get_or_create(&of).set(i64::try_from(view.waiting).unwrap_or(i64::MAX));
            shut.get_or_create(&of).set(i64::from(view.shut.is_some()));
        }
        registry.register("open_calls", "Calls that are open", open);
        registry.register("lane_waiting", "Calls that wait in a lane", waiting);
        registry.register("lane_shut", "1 where a lane takes no calls", shut);
        registry
    }

    fn closed(&self, open: &Open, closing: &Closing) {
        let Usual { whither, times, .. } = &*open.usual;
        let end = End {
            client: open.labels.client,
            dialect: open.labels.dialect,
            operation: open.labels.operation.name(),
            transport: open.labels.transport.name(),
            outcome: closing.outcome.name(),
        };
        open.usual.ends(end, &self.families.calls);
        times.observe(closing.took.as_secs_f64());
        if !closing.waited.is_zero() {
            self.families.waits.get_or_create(whither).observe(closing.waited.as_secs_f64());
        }
        if closing.outcome == Outcome::Served && closing.last_fault.is_some() && closing.sends > 1 {
            self.families.saved.get_or_create(whither).inc();
        }
    }
}

impl Board {
    /// What calls with these labels count.
    fn usual(&mut self, labels: &Labels, families: &Families) -> Arc<Usual> {
        let whither = self.names.whither(&labels.upstream, labels.model.as_deref());
        if let Some(known) = self.usual.get(&whither) {
            return Arc::clone(known);
        }
        let usual = Arc::new(families.usual(whither.clone()));
        self.usual.insert(whither, Arc::clone(&usual));
        usual
    }

    /// Counts an end; the share of those that went well.
    #[expect(clippy::cast_precision_loss, reason = "a share needs no more digits than these")]
    fn ended(&mut self, outcome: Outcome) -> Option<f64> {
        match outcome {
            Outcome::Served => self.served += 1,
            Outcome::Returned | Outcome::Refused | Outcome::GaveUp | Outcome::Broken => self.failed += 1,
            // Neither is the relay's doing: a definite error, a turn that goes on, a client that has left.
            Outcome::Passed | Outcome::Cut | Outcome::ClientLeft => {}
        }
        let all = self.served + self.failed;
        (all > 0).then(|| self.served as f64 / all as f64)
    }
}

impl Observer for Metrics {
    fn see(&self, call: CallId, at: Moment, event: &Event) {
        // Each answer has one, and it counts for nothing.
        if matches!(event, Event::HeadArrived { .. }) {
            return;
        }
        let mut board = self.board();
        if let Event::CallOpened { labels, .. } = event {
            let usual = board.usual(labels, &self.families);
            board.open.insert(call, Open { labels: Arc::clone(labels), usual, since: at });
            return;
        }
        if let Event::CallClosed(closing) = event {
            if let Some(share) = board.ended(closing.outcome) {
                self.families.success.set(share);
            }
            if let Some(open) = board.open.remove(&call) {
                self.closed(&open, closing);
            }
            return;
        }
        if let Event::Moved { to, why, .. } = event {
            if let Some(open) = board.open.get(&call) {
                let (labels, since) = (Arc::new(open.labels.moved_to(to)), open.since);
                let usual = board.usual(&labels, &self.families);
                board.open.insert(call, Open { labels, usual, since });
                self.families.moves.get_or_create(&Why { why: why.name() }).inc();
            }
            return;
        }
        let Some(Open { usual, since, .. }) = board.open.get(&call) else { return };
        let Usual { whither, sends, commits, .. } = &**usual;
        match event {
            Event::SendStarted { .. } => {
                sends.inc();
            }
            Event::FaultSeen { fault, .. } => {
                let Whither { upstream, model } = whither.clone();
                let of = OfFault { upstream, model, fault: fault.name() };
                self.families.faults.get_or_create(&of).inc();
            }
            Event::WaitStarted { fault, .. } => {
                self.families.attempts.get_or_create(&Reason { reason: reason(Some(*fault)) }).inc();
            }
            Event::InLine { fault: Some(fault), .. } => {
                self.families.attempts.get_or_create(&Reason { reason: reason(Some(*fault)) }).inc();
            }
            Event::GrantTaken { .. } => {
                self.families.twice.get_or_create(whither).inc();
            }
            Event::NoticeGiven { .. } => {
                self.families.notices.get_or_create(whither).inc();
            }
            Event::StreamCut { .. } => {
                self.families.cuts.get_or_create(whither).inc();
            }
            Event::Committed { .. } => {
                commits.observe(at.since(*since).as_secs_f64());
            }
            Event::HeadArrived { .. }
            | Event::WayTaken { .. }
            | Event::InLine { fault: None, .. }
            | Event::HeldBack { .. }
            | Event::CallOpened { .. }
            | Event::Moved { .. }
            | Event::CallClosed(_) => {}
        }
    }

    fn notice(&self, notice: &Notice) {
        match notice {
            Notice::TurnedAway { code, .. } => {
                self.families.refused.get_or_create(&Reason { reason: code }).inc();
            }
            Notice::Lane(change) => match change.what {
                What::LaneShut { why, .. } => {
                    _ = self.families.shuts.get_or_create(&Why { why: why.name() }).inc()
                }
                What::CircuitOpened { fault, .. } => {
                    self.families.circuits.get_or_create(&Why { why: fault.name() }).inc();
                }
                What::LaneOpened { .. } | What::CircuitStaysOpen { .. } | What::CircuitClosed { .. } => {}
            },
            Notice::Way(WayNews { upstream, by, what: WayWhat::Left { .. } }) => {
                let names = &mut self.board().names;
                let of = OfWay {
                    upstream: named(&mut names.upstreams, upstream),
                    by: named(&mut names.proxies, by),
                };
                self.families.ways.get_or_create(&of).inc();
            }
            Notice::Credential { name, news } => {
                let credential = named(&mut self.board().names.credentials, name);
                let outcome = match news {
                    CredentialNews::Renewed => "renewed",
                    CredentialNews::Failed { .. } => "failed",
                };
                self.families.renewals.get_or_create(&OfCredential { credential, outcome }).inc();
            }
            Notice::Listening { .. }
            | Notice::Metrics { .. }
            | Notice::Advice(_)
            | Notice::Way(WayNews { what: WayWhat::Back { .. } | WayWhat::Forgotten, .. })
            | Notice::Warming(_)
            | Notice::Alert(_)
            | Notice::Reloaded { .. }
            | Notice::ReloadRefused(_)
            | Notice::Draining { .. }
            | Notice::Stopping { .. }
            | Notice::AcceptFailed { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests;
