//! What is counted, under which names, and what each name means.

use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::labels::{OfCall, OfCredential, OfFault, OfWay, Reason, Whither, Why};

/// Seconds of waits: from a blink to a night.
const WAITS: [f64; 13] = [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0, 21600.0];
/// Seconds until an answer begins, and of whole calls.
const TIMES: [f64; 12] = [0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 1800.0];

/// Makes a histogram with these limits.
#[derive(Clone, Copy)]
pub(super) struct Buckets(&'static [f64]);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

/// Histograms by where calls go.
pub(super) type Histograms = Family<Whither, Histogram, Buckets>;

/// Everything that only grows, and the share that is reckoned from it.
pub(super) struct Families {
    pub(super) calls: Family<OfCall, Counter>,
    pub(super) saved: Family<Whither, Counter>,
    pub(super) sends: Family<Whither, Counter>,
    pub(super) faults: Family<OfFault, Counter>,
    pub(super) twice: Family<Whither, Counter>,
    pub(super) cuts: Family<Whither, Counter>,
    pub(super) notices: Family<Whither, Counter>,
    pub(super) refused: Family<Reason, Counter>,
    pub(super) shuts: Family<Why, Counter>,
    pub(super) circuits: Family<Why, Counter>,
    pub(super) moves: Family<Why, Counter>,
    pub(super) ways: Family<OfWay, Counter>,
    pub(super) renewals: Family<OfCredential, Counter>,
    pub(super) waits: Histograms,
    pub(super) commits: Histograms,
    pub(super) times: Histograms,
    pub(super) attempts: Family<Reason, Counter>,
    pub(super) success: Gauge<f64, AtomicU64>,
}

impl Default for Families {
    fn default() -> Self {
        let families = Self {
            calls: Family::default(),
            saved: Family::default(),
            sends: Family::default(),
            faults: Family::default(),
            twice: Family::default(),
            cuts: Family::default(),
            notices: Family::default(),
            refused: Family::default(),
            shuts: Family::default(),
            circuits: Family::default(),
            moves: Family::default(),
            ways: Family::default(),
            renewals: Family::default(),
            waits: Family::new_with_constructor(Buckets(&WAITS)),
            commits: Family::new_with_constructor(Buckets(&TIMES)),
            times: Family::new_with_constructor(Buckets(&TIMES)),
            attempts: Family::default(),
            success: Gauge::default(),
        };
        // Nothing has failed yet.
        families.success.set(1.0);
        families
    }
}

/// What a call was, and how it ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    pub(super) client: &'static str,
    pub(super) dialect: &'static str,
    pub(super) operation: &'static str,
    pub(super) transport: &'static str,
    pub(super) outcome: &'static str,
}

/// What every call to one place counts, looked up once and not again for each.
pub(super) struct Usual {
    pub(super) whither: Whither,
    /// The ends that were met so far; there are few kinds.
    ends: Mutex<Vec<(End, Counter)>>,
    pub(super) sends: Counter,
    pub(super) commits: Histogram,
    pub(super) times: Histogram,
}

impl Usual {
    /// One ends like this.
    pub(super) fn ends(&self, end: End, calls: &Family<OfCall, Counter>) {
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, count)) = ends.iter().find(|(known, _)| *known == end) {
            count.inc();
            return;
        }
        let End { client, dialect, operation, transport, outcome } = end;
        let Whither { upstream, model } = self.whither.clone();
        let of = OfCall { client, dialect, operation, transport, upstream, model, outcome };
        let count = calls.get_or_create(&of).clone();
        count.inc();
        ends.push((end, count));
    }
}

impl Families {
    /// What calls that go there count.
    pub(super) fn usual(&self, whither: Whither) -> Usual {
        Usual {
            sends: self.sends.get_or_create(&whither).clone(),
            commits: self.commits.get_or_create(&whither).clone(),
            times: self.times.get_or_create(&whither).clone(),
            ends: Mutex::default(),
            whither,
        }
    }

    /// All of them, as they are read.
    pub(super) fn registered(&self) -> Registry {
        let mut registry = Registry::default();
        let ours = registry.sub_registry_with_prefix("steady_relay");
        ours.register("calls", "Calls that ended", self.calls.clone());
        ours.register(
            "calls_saved",
            "Calls that met a fault and were served all the same",
            self.saved.clone(),
        );
        ours.register("sends", "Physical sends", self.sends.clone());
        ours.register("faults", "Sends that failed", self.faults.clone());
        let twice = "Resends of what may have run, each of which may have been billed twice";
        ours.register("maybe_billed_twice", twice, self.twice.clone());
        ours.register("streams_cut", "Streams that were cut so that Codex resumes", self.cuts.clone());
        let notices = "Times that a client was shown that its call is held";
        ours.register("notices", notices, self.notices.clone());
        let refused = "Requests that the relay itself turned away";
        ours.register("requests_refused", refused, self.refused.clone());
        ours.register("lanes_shut", "Times that a lane shut", self.shuts.clone());
        ours.register("circuits_opened", "Times that a breaker opened", self.circuits.clone());
        ours.register("moves", "Times that a call went to another upstream", self.moves.clone());
        let ways = "Times that a way to an upstream was left, since it failed";
        ours.register("ways_left", ways, self.ways.clone());
        let renewals = "Renewals of the relay's own credentials that ended";
        ours.register("credential_renewals", renewals, self.renewals.clone());
        ours.register("wait_seconds", "Time that a call waited between its sends", self.waits.clone());
        let commits = "Time from the accept of a call until its answer begins";
        ours.register("commit_seconds", commits, self.commits.clone());
        ours.register("call_seconds", "Time from the accept of a call to its end", self.times.clone());
        let attempts = "Waits before another send; an older name";
        registry.register("codex_retry_attempts", attempts, self.attempts.clone());
        let success = "Share of the calls that were served, of all that were served or failed; an older name";
        registry.register("codex_retry_success_rate", success, self.success.clone());
        registry
    }
}
