//! Counters and histograms in OpenMetrics, for Prometheus and its like. An observer as every other: it counts what
//! events tell. What it is not: the address it is read at (that is [`crate::metrics_door`]).
//!
//! Every label takes a bounded set of values. Models are named by requests, and upstreams by settings: of each the first
//! hundred have a name of their own, and the rest is `other`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use relay_core::event::{CallId, Closing, Event, Labels, Outcome};
use relay_core::gate::View;
use relay_core::{Fault, Moment};

use super::{CredentialNews, LaneName, Notice, Observer, What};
use crate::upstream::{WayNews, WayWhat};

/// The `content-type` of what is read.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// So many models, and so many upstreams, have names of their own.
const NAMES: usize = 100;

/// Seconds of waits: from a blink to a night.
const WAITS: [f64; 13] = [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0, 21600.0];
/// Seconds until an answer begins, and of whole calls.
const TIMES: [f64; 12] = [0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 1800.0];

/// A name that is shared by all that have it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Name(Arc<str>);

impl EncodeLabelValue for Name {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        EncodeLabelValue::encode(&&*self.0, encoder)
    }
}

/// Where a call goes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Whither {
    upstream: Name,
    model: Name,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfCall {
    client: &'static str,
    dialect: &'static str,
    operation: &'static str,
    transport: &'static str,
    upstream: Name,
    model: Name,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfFault {
    upstream: Name,
    model: Name,
    fault: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfLane {
    lane: String,
    upstream: Name,
    model: Name,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfWay {
    upstream: Name,
    by: Name,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Why {
    why: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reason {
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfCredential {
    credential: Name,
    outcome: &'static str,
}

/// Makes a histogram with these limits.
#[derive(Clone, Copy)]
struct Buckets(&'static [f64]);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

type Histograms = Family<Whither, Histogram, Buckets>;

/// A call that is open.
struct Open {
    labels: Arc<Labels>,
    whither: Whither,
    since: Moment,
}

/// The names that were met so far.
#[derive(Default)]
struct Names {
    upstreams: BTreeSet<Arc<str>>,
    models: BTreeSet<Arc<str>>,
    proxies: BTreeSet<Arc<str>>,
    credentials: BTreeSet<Arc<str>>,
}

/// The name of something, unless too many have one already.
fn named(known: &mut BTreeSet<Arc<str>>, name: &str) -> Name {
    if let Some(known) = known.get(name) {
        return Name(Arc::clone(known));
    }
    if known.len() >= NAMES {
        return Name("other".into());
    }
    let name: Arc<str> = name.into();
    known.insert(Arc::clone(&name));
    Name(name)
}

impl Names {
    fn whither(&mut self, upstream: &str, model: Option<&str>) -> Whither {
        Whither {
            upstream: named(&mut self.upstreams, upstream),
            model: named(&mut self.models, model.unwrap_or_default()),
        }
    }
}

#[derive(Default)]
struct Board {
    open: BTreeMap<CallId, Open>,
    names: Names,
    served: u64,
    failed: u64,
}

/// Counts.
pub struct Metrics {
    registry: Registry,
    board: Mutex<Board>,
    calls: Family<OfCall, Counter>,
    saved: Family<Whither, Counter>,
    sends: Family<Whither, Counter>,
    faults: Family<OfFault, Counter>,
    twice: Family<Whither, Counter>,
    cuts: Family<Whither, Counter>,
    notices: Family<Whither, Counter>,
    refused: Family<Reason, Counter>,
    shuts: Family<Why, Counter>,
    circuits: Family<Why, Counter>,
    moves: Family<Why, Counter>,
    ways: Family<OfWay, Counter>,
    renewals: Family<OfCredential, Counter>,
    waits: Histograms,
    commits: Histograms,
    times: Histograms,
    attempts: Family<Reason, Counter>,
    success: Gauge<f64, AtomicU64>,
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let metrics = Self {
            registry: Registry::default(),
            board: Mutex::default(),
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
        metrics.success.set(1.0);
        Self { registry: metrics.registered(), ..metrics }
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
    fn registered(&self) -> Registry {
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
        let Whither { upstream, model } = open.whither.clone();
        let of = OfCall {
            client: open.labels.client,
            dialect: open.labels.dialect,
            operation: open.labels.operation.name(),
            transport: open.labels.transport.name(),
            upstream,
            model,
            outcome: closing.outcome.name(),
        };
        self.calls.get_or_create(&of).inc();
        self.times.get_or_create(&open.whither).observe(closing.took.as_secs_f64());
        if !closing.waited.is_zero() {
            self.waits.get_or_create(&open.whither).observe(closing.waited.as_secs_f64());
        }
        if closing.outcome == Outcome::Served && closing.last_fault.is_some() && closing.sends > 1 {
            self.saved.get_or_create(&open.whither).inc();
        }
    }
}

impl Board {
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
        let mut board = self.board();
        if let Event::CallOpened { labels, .. } = event {
            let whither = board.names.whither(&labels.upstream, labels.model.as_deref());
            board.open.insert(call, Open { labels: Arc::clone(labels), whither, since: at });
            return;
        }
        if let Event::CallClosed(closing) = event {
            if let Some(share) = board.ended(closing.outcome) {
                self.success.set(share);
            }
            if let Some(open) = board.open.remove(&call) {
                self.closed(&open, closing);
            }
            return;
        }
        if let Event::Moved { to, why, .. } = event {
            let Board { open, names, .. } = &mut *board;
            if let Some(open) = open.get_mut(&call) {
                open.labels = Arc::new(open.labels.moved_to(to));
                open.whither = names.whither(&open.labels.upstream, open.labels.model.as_deref());
                self.moves.get_or_create(&Why { why: why.name() }).inc();
            }
            return;
        }
        let Some(Open { whither, since, .. }) = board.open.get(&call) else { return };
        match event {
            Event::SendStarted { .. } => {
                self.sends.get_or_create(whither).inc();
            }
            Event::FaultSeen { fault, .. } => {
                let Whither { upstream, model } = whither.clone();
                let of = OfFault { upstream, model, fault: fault.name() };
                self.faults.get_or_create(&of).inc();
            }
            Event::WaitStarted { fault, .. } => {
                self.attempts.get_or_create(&Reason { reason: reason(Some(*fault)) }).inc();
            }
            Event::InLine { fault: Some(fault), .. } => {
                self.attempts.get_or_create(&Reason { reason: reason(Some(*fault)) }).inc();
            }
            Event::GrantTaken { .. } => {
                self.twice.get_or_create(whither).inc();
            }
            Event::NoticeGiven { .. } => {
                self.notices.get_or_create(whither).inc();
            }
            Event::StreamCut { .. } => {
                self.cuts.get_or_create(whither).inc();
            }
            Event::Committed { .. } => {
                self.commits.get_or_create(whither).observe(at.since(*since).as_secs_f64());
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
                self.refused.get_or_create(&Reason { reason: code }).inc();
            }
            Notice::Lane(change) => match change.what {
                What::LaneShut { why, .. } => _ = self.shuts.get_or_create(&Why { why: why.name() }).inc(),
                What::CircuitOpened { fault, .. } => {
                    self.circuits.get_or_create(&Why { why: fault.name() }).inc();
                }
                What::LaneOpened { .. } | What::CircuitStaysOpen { .. } | What::CircuitClosed { .. } => {}
            },
            Notice::Way(WayNews { upstream, by, what: WayWhat::Left { .. } }) => {
                let names = &mut self.board().names;
                let of = OfWay {
                    upstream: named(&mut names.upstreams, upstream),
                    by: named(&mut names.proxies, by),
                };
                self.ways.get_or_create(&of).inc();
            }
            Notice::Credential { name, news } => {
                let credential = named(&mut self.board().names.credentials, name);
                let outcome = match news {
                    CredentialNews::Renewed => "renewed",
                    CredentialNews::Failed { .. } => "failed",
                };
                self.renewals.get_or_create(&OfCredential { credential, outcome }).inc();
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
mod tests {
    use std::time::Duration;

    use relay_core::Evidence;
    use relay_core::event::{Left, Leg, Transport};
    use relay_core::evidence::Operation;
    use relay_core::gate::Shut;

    use super::*;

    const BEGAN: Moment = Moment::after_start(Duration::from_secs(100));

    fn open(metrics: &Metrics, id: u64, model: &str) {
        let labels = Labels {
            client: "codex",
            dialect: "openai_responses",
            operation: Operation::Generation,
            transport: Transport::WebSocket,
            upstream: "openai".into(),
            model: Some(model.into()),
            profile: "interactive".into(),
            lane: "0f".into(),
            request_id: None,
            pool: None,
            bound: None,
            trace: None,
        };
        let opened =
            Event::CallOpened { labels: labels.into(), inherited: relay_core::event::Inherited::default() };
        metrics.see(CallId(id), BEGAN, &opened);
    }

    /// A call that is refused once and then ends like this.
    fn call(metrics: &Metrics, id: u64, outcome: Outcome) {
        open(metrics, id, "gpt-x");
        let see = |seconds, event| metrics.see(CallId(id), BEGAN + Duration::from_secs(seconds), &event);
        see(0, Event::SendStarted { send: 1 });
        let (fault, evidence) = (Fault::AtCapacity, Some(Evidence::Refused));
        let (status, code, rule, told, usage) = (Some(503), None, None, None, None);
        see(1, Event::FaultSeen { send: 1, fault, evidence, status, code, rule, told, usage });
        let wait = Duration::from_secs(2);
        see(1, Event::WaitStarted { send: 2, wait, fault, status: Some(503), code: None });
        see(3, Event::SendStarted { send: 2 });
        see(4, Event::Committed { send: 2 });
        see(
            9,
            Event::CallClosed(Closing {
                sends: 2,
                waited: wait,
                last_fault: Some(fault),
                capacity_faults: 1,
                took: Duration::from_secs(9),
                ..Closing::new(outcome)
            }),
        );
    }

    fn has(text: &str, line: &str) {
        assert!(text.lines().any(|there| there == line), "no line {line}\n{text}");
    }

    #[test]
    fn what_events_tell_is_counted() {
        let metrics = Metrics::default();
        call(&metrics, 1, Outcome::Served);
        call(&metrics, 2, Outcome::GaveUp);
        open(&metrics, 3, "gpt-x");
        let text = metrics.text(&[]);
        let whither = r#"upstream="openai",model="gpt-x""#;
        let of = r#"client="codex",dialect="openai_responses",operation="generation",transport="websocket""#;
        has(&text, &format!(r#"steady_relay_calls_total{{{of},{whither},outcome="served"}} 1"#));
        has(&text, &format!(r#"steady_relay_calls_total{{{of},{whither},outcome="gave_up"}} 1"#));
        has(&text, &format!("steady_relay_calls_saved_total{{{whither}}} 1"));
        has(&text, &format!("steady_relay_sends_total{{{whither}}} 4"));
        has(&text, &format!(r#"steady_relay_faults_total{{{whither},fault="at_capacity"}} 2"#));
        has(&text, &format!("steady_relay_wait_seconds_sum{{{whither}}} 4.0"));
        has(&text, &format!(r#"steady_relay_wait_seconds_bucket{{le="2.0",{whither}}} 2"#));
        has(&text, &format!("steady_relay_commit_seconds_sum{{{whither}}} 8.0"));
        has(&text, &format!("steady_relay_call_seconds_count{{{whither}}} 2"));
        has(&text, "steady_relay_open_calls 1");
        assert!(text.ends_with("# EOF\n"), "{text}");
    }

    /// The names that codex-retry gave them, with their HELP and TYPE lines.
    #[test]
    fn the_older_names_are_kept() {
        let metrics = Metrics::default();
        has(&metrics.text(&[]), "codex_retry_success_rate 1.0");
        call(&metrics, 1, Outcome::Served);
        call(&metrics, 2, Outcome::Served);
        call(&metrics, 3, Outcome::Served);
        call(&metrics, 4, Outcome::Broken);
        // These say nothing of how well it goes.
        call(&metrics, 5, Outcome::Passed);
        call(&metrics, 6, Outcome::ClientLeft);
        let text = metrics.text(&[]);
        has(&text, r#"codex_retry_attempts_total{reason="overload"} 6"#);
        has(&text, "codex_retry_success_rate 0.75");
        has(&text, "# TYPE codex_retry_attempts counter");
        has(&text, "# TYPE codex_retry_success_rate gauge");
        assert!(text.contains("# HELP codex_retry_success_rate "), "{text}");
        assert_eq!(
            [Some(Fault::NoAnswer), Some(Fault::ServerFailed), None].map(reason),
            ["timeout", "other", "overload"]
        );
    }

    /// A lane with calls that wait, whose shutting and whatever else a relay tells was told.
    fn shut_lane(metrics: &Metrics) -> (LaneName, View) {
        let lane = LaneName { id: "0f".into(), model: None, upstream: "openai".into() };
        let what = What::LaneShut { why: Shut::Slow, waiting: 1 };
        metrics.notice(&Notice::Lane(super::super::LaneChange { lane: lane.clone(), what }));
        let pause = Duration::from_secs(30);
        for what in [
            What::CircuitOpened { fault: Fault::NeverSent, failures: 5, pause },
            What::CircuitClosed { after: pause },
        ] {
            metrics.notice(&Notice::Lane(super::super::LaneChange { lane: lane.clone(), what }));
        }
        metrics.notice(&Notice::TurnedAway { status: 403, code: "host", path: "/x".into() });
        let left = WayWhat::Left { since: Moment::ZERO, why: "refused", pause: Duration::from_secs(5) };
        for what in [left, WayWhat::Back { after: Duration::from_secs(6) }] {
            let (upstream, by) = ("api.example:443".into(), "direct".into());
            metrics.notice(&Notice::Way(WayNews { upstream, by, what }));
        }
        let view = View {
            circuit: relay_core::breaker::Circuit::Closed,
            shut: Some((Shut::Slow, Moment::ZERO)),
            next: None,
            hold: None,
            parked: None,
            waiting: 7,
            line: Vec::new(),
            pending: 0,
            running: 0,
            max_running: None,
            recovery: None,
            rate: None,
            random: false,
        };
        (lane, view)
    }

    #[test]
    fn lanes_are_told_as_they_are() {
        let metrics = Metrics::default();
        let lane = shut_lane(&metrics);
        let text = metrics.text(&[lane]);
        has(&text, r#"steady_relay_lane_waiting{lane="0f",upstream="openai",model=""} 7"#);
        has(&text, r#"steady_relay_lane_shut{lane="0f",upstream="openai",model=""} 1"#);
        has(&text, &format!(r#"steady_relay_lanes_shut_total{{why="{}"}} 1"#, Shut::Slow.name()));
        has(&text, r#"steady_relay_circuits_opened_total{why="never_sent"} 1"#);
        has(&text, r#"steady_relay_requests_refused_total{reason="host"} 1"#);
        has(&text, r#"steady_relay_ways_left_total{upstream="api.example:443",by="direct"} 1"#);
    }

    fn moved() -> Event {
        let to = Leg { upstream: "second".into(), lane: "1f".into(), model: None };
        Event::Moved { send: 2, to: to.into(), why: Left::Failed }
    }

    #[test]
    fn a_call_that_moves_is_counted_where_it_goes() {
        let metrics = Metrics::default();
        open(&metrics, 1, "gpt-x");
        metrics.see(CallId(1), BEGAN, &Event::SendStarted { send: 1 });
        metrics.see(CallId(1), BEGAN, &moved());
        metrics.see(CallId(1), BEGAN, &Event::SendStarted { send: 2 });
        let text = metrics.text(&[]);
        has(&text, r#"steady_relay_moves_total{why="failed"} 1"#);
        has(&text, r#"steady_relay_sends_total{upstream="openai",model="gpt-x"} 1"#);
        has(&text, r#"steady_relay_sends_total{upstream="second",model="gpt-x"} 1"#);
    }

    /// The page names what is told, and nothing else.
    #[test]
    fn the_page_names_every_metric() {
        let page = include_str!("../../../../docs/metrics.md");
        let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
        let documented: BTreeSet<_> =
            rows.map(|(name, rest)| (name.to_owned(), rest.split(' ').next().unwrap_or_default())).collect();
        let metrics = Metrics::default();
        call(&metrics, 1, Outcome::Served);
        open(&metrics, 2, "gpt-x");
        let fault = Fault::AtCapacity;
        for event in [
            Event::GrantTaken { send: 2 },
            Event::NoticeGiven { send: 2, notices: 1, fault: Some(fault) },
            Event::StreamCut { fault, cuts: 1 },
            moved(),
        ] {
            metrics.see(CallId(2), BEGAN, &event);
        }
        let lane = shut_lane(&metrics);
        let text = metrics.text(&[lane]);
        let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
        let told: BTreeSet<_> = types
            .map(|(name, kind)| {
                (if kind == "counter" { format!("{name}_total") } else { name.to_owned() }, kind)
            })
            .collect();
        assert_eq!(told, documented);
    }

    #[test]
    fn no_label_takes_more_values_than_are_bounded() {
        let metrics = Metrics::default();
        for id in 0..NAMES as u64 + 50 {
            open(&metrics, id, &format!("model-{id}"));
            metrics.see(CallId(id), BEGAN, &Event::SendStarted { send: 1 });
        }
        let text = metrics.text(&[]);
        let sends = text.lines().filter(|line| line.starts_with("steady_relay_sends_total{")).count();
        assert_eq!(sends, NAMES + 1);
        has(&text, r#"steady_relay_sends_total{upstream="openai",model="other"} 50"#);
    }

    #[test]
    fn a_name_cannot_break_out_of_its_label() {
        let metrics = Metrics::default();
        open(&metrics, 1, "a\"b\\c\nd");
        metrics.see(CallId(1), BEGAN, &Event::SendStarted { send: 1 });
        has(&metrics.text(&[]), r#"steady_relay_sends_total{upstream="openai",model="a\"b\\c\nd"} 1"#);
    }
}
