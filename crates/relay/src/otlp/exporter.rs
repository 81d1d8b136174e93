//! The observer that gathers events, and the task that makes spans of them now and then and posts them, with the metrics.

use std::collections::{BTreeMap, VecDeque};
use std::future::pending;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderValue, RETRY_AFTER, USER_AGENT};
use http::{Method, Request, Version};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::{ResourceMetrics, ScopeMetrics};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message as _;
use relay_core::config::{self, OtlpSettings};
use relay_core::event::{CallId, Event};
use relay_core::trace::Trace;
use relay_core::{BaseUrl, Moment};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use super::metrics::{self, metrics};
use super::resource::{Teller, scope};
use super::spans::spans;
use crate::body::SendBody;
use crate::clock::{Clock, wall_ms};
use crate::headers::OUR_NAME;
use crate::history::Assembler;
use crate::observe::metrics::Metrics;
use crate::observe::{Notice, Observer};
use crate::shared::Shared;
use crate::target::Upstream;
use crate::upstream::Ask;
use crate::words::{alerts as sent, lang, otlp as words, start};

/// The most events that wait to be put together; one takes some hundred bytes.
const ROOM: usize = 16 * 1024;
/// The most spans that wait for the collector; one takes a kilobyte or two.
const MOST_SPANS: usize = 4096;
/// The most of them in one request.
const AT_ONCE: usize = 512;
/// How long spans wait for company at most.
const GATHER: Duration = Duration::from_secs(5);
/// How long the collector may take.
const WITHIN: Duration = Duration::from_secs(10);
/// How long a collector may ask to be left alone.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// What was lost is told of once in this time.
const MINUTE: Duration = Duration::from_secs(60);
/// How long the end of the program waits for the last ones.
const LAST: Duration = Duration::from_secs(2);

/// One event, and when it happened.
struct Seen {
    call: CallId,
    at: Moment,
    event: Event,
}

/// What is to be told, and how; an observer.
pub(crate) struct Otlp {
    settings: OtlpSettings,
    endpoint: BaseUrl,
    clock: Arc<dyn Clock>,
    /// In nanoseconds since 1970.
    started: u64,
    seen: Mutex<Vec<Seen>>,
    /// There is much of it.
    much: Notify,
    /// The relay ends.
    ends: Notify,
    /// Events and spans that found no room.
    lost: AtomicU64,
    metrics: Option<Arc<Metrics>>,
}

impl Otlp {
    /// What the settings want told, if they name somebody to tell it.
    pub(crate) fn of(settings: &OtlpSettings, clock: &Arc<dyn Clock>) -> Option<Arc<Self>> {
        Some(Arc::new(Self {
            endpoint: settings.endpoint.clone()?,
            settings: settings.clone(),
            clock: Arc::clone(clock),
            started: nanos(&**clock),
            seen: Mutex::default(),
            much: Notify::new(),
            ends: Notify::new(),
            lost: AtomicU64::new(0),
            metrics: settings.metrics.then(Arc::default),
        }))
    }

    /// What sees what happens.
    pub(crate) fn observers(self: &Arc<Self>) -> Vec<Arc<dyn Observer>> {
        let metrics = self.metrics.clone().map(|metrics| metrics as Arc<dyn Observer>);
        let traces = self.settings.traces.then(|| Arc::clone(self) as Arc<dyn Observer>);
        metrics.into_iter().chain(traces).collect()
    }

    fn seen(&self) -> MutexGuard<'_, Vec<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lose(&self, count: usize) {
        self.lost.fetch_add(count as u64, Ordering::Relaxed);
    }
}

fn nanos(clock: &dyn Clock) -> u64 {
    wall_ms(clock).saturating_mul(1_000_000)
}

impl Observer for Otlp {
    fn see(&self, call: CallId, at: Moment, event: &Event) {
        let mut seen = self.seen();
        if seen.len() >= ROOM {
            drop(seen);
            self.lose(1);
            return;
        }
        seen.push(Seen { call, at, event: event.clone() });
        let is_much = seen.len() == ROOM / 2;
        drop(seen);
        if is_much {
            self.much.notify_one();
        }
    }

    fn notice(&self, _notice: &Notice) {}
}

/// Sends as long as the relay lives, where the settings want it.
pub(crate) async fn export(current: Arc<ArcSwap<Shared>>) {
    let Some(otlp) = current.load().otlp.clone() else { return };
    Exporter::new(otlp, current).run().await;
}

/// Sends what is left, as far as that takes a moment only.
pub(crate) async fn close(shared: &Shared, mut exporting: JoinSet<()>) {
    let Some(otlp) = &shared.otlp else { return };
    otlp.ends.notify_one();
    // Sent, or stuck: either way the program ends now.
    let _sent = timeout(LAST, exporting.join_next()).await;
}

struct Exporter {
    otlp: Arc<Otlp>,
    current: Arc<ArcSwap<Shared>>,
    teller: Teller,
    assembler: Assembler,
    /// The open calls whose spans are wanted.
    traces: BTreeMap<CallId, Trace>,
    spans: VecDeque<Span>,
    /// The collector wants to be left alone until then.
    pause: Option<Instant>,
    /// It takes nothing, which was told.
    in_trouble: bool,
    /// What was lost was told of then.
    told: Option<Instant>,
}

/// What is in the way of sending.
enum Refused {
    /// It may be taken later, perhaps not before this time has passed.
    Later(String, Duration),
    /// It will not be taken.
    Never(String),
}

impl Exporter {
    fn new(otlp: Arc<Otlp>, current: Arc<ArcSwap<Shared>>) -> Self {
        Self {
            teller: Teller::named(&otlp.settings.service_name),
            otlp,
            current,
            assembler: Assembler::default(),
            traces: BTreeMap::new(),
            spans: VecDeque::new(),
            pause: None,
            in_trouble: false,
            told: None,
        }
    }

    async fn run(mut self) {
        let otlp = Arc::clone(&self.otlp);
        let mut spans = interval(otlp.settings.interval.min(GATHER));
        let mut metrics = interval(otlp.settings.interval);
        for ticks in [&mut spans, &mut metrics] {
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            // The first comes at once, when there is nothing to tell.
            ticks.tick().await;
        }
        loop {
            let paused = self.pause.map(|until| until.saturating_duration_since(Instant::now()));
            let paused = paused.filter(|left| !left.is_zero());
            tokio::select! {
                () = otlp.ends.notified() => break,
                () = otlp.much.notified() => self.gather(),
                _ = spans.tick(), if paused.is_none() => {
                    self.gather();
                    self.send_spans().await;
                    self.tell_of_lost();
                }
                _ = metrics.tick(), if paused.is_none() => self.send_metrics().await,
                () = async { match paused { Some(left) => sleep(left).await, None => pending().await } } => {}
            }
        }
        self.gather();
        self.send_spans().await;
        self.send_metrics().await;
        // The minute is not waited for.
        self.told = None;
        self.tell_of_lost();
    }

    /// Makes spans of what was seen.
    fn gather(&mut self) {
        let seen = std::mem::take(&mut *self.otlp.seen());
        for Seen { call, at, event } in seen {
            if let Event::CallOpened { labels, .. } = &event {
                // Whose client records nothing wants nothing recorded.
                self.traces.extend(labels.trace.filter(|trace| trace.sampled).map(|trace| (call, trace)));
            }
            if self.traces.contains_key(&call) && !self.assembler.see(call, at, &event) {
                self.traces.remove(&call);
                self.otlp.lose(1);
            }
        }
        for record in self.assembler.take_ended() {
            if let Some(trace) = self.traces.remove(&CallId(record.call)) {
                self.spans.extend(spans(&record, &trace));
            }
        }
        let too_many = self.spans.len().saturating_sub(MOST_SPANS);
        self.spans.drain(..too_many);
        self.otlp.lose(too_many);
    }

    async fn send_spans(&mut self) {
        while !self.spans.is_empty() {
            let many = self.spans.len().min(AT_ONCE);
            let batch = self.spans.iter().take(many).cloned().collect();
            let scoped = ScopeSpans { scope: Some(scope()), spans: batch, ..ScopeSpans::default() };
            let resource = Some(self.teller.resource());
            let all = ResourceSpans { resource, scope_spans: vec![scoped], ..ResourceSpans::default() };
            let body = ExportTraceServiceRequest { resource_spans: vec![all] }.encode_to_vec();
            match self.post("/v1/traces", body).await {
                Ok(()) => drop(self.spans.drain(..many)),
                Err(Refused::Never(_)) => {
                    self.spans.drain(..many);
                    self.otlp.lose(many);
                }
                Err(Refused::Later(..)) => return,
            }
        }
    }

    async fn send_metrics(&mut self) {
        let Some(counted) = self.otlp.metrics.clone() else { return };
        let text = counted.text(&self.current.load().lanes.views(0));
        let span = metrics::Span { start: self.otlp.started, now: nanos(&*self.otlp.clock) };
        let scoped =
            ScopeMetrics { scope: Some(scope()), metrics: metrics(&text, span), ..ScopeMetrics::default() };
        let resource = Some(self.teller.resource());
        let all = ResourceMetrics { resource, scope_metrics: vec![scoped], ..ResourceMetrics::default() };
        let body = ExportMetricsServiceRequest { resource_metrics: vec![all] }.encode_to_vec();
        // What is not taken now is told with the next: sums go on.
        let _told = self.post("/v1/metrics", body).await;
    }

    /// Posts it, and tells a person where that begins to fail, or works again.
    async fn post(&mut self, path: &str, body: Vec<u8>) -> Result<(), Refused> {
        let shared = self.current.load_full();
        let posted = timeout(WITHIN, post(&shared, &self.otlp, path, body)).await;
        let posted = posted.unwrap_or_else(|_elapsed| {
            Err(Refused::Later(sent::no_answer(lang(), WITHIN.as_secs_f64()), Duration::ZERO))
        });
        let at = self.otlp.endpoint.to_string();
        match &posted {
            Err(Refused::Later(why, _) | Refused::Never(why)) if !self.in_trouble => {
                self.in_trouble = true;
                self.say(&shared, &words::not_sent(lang(), &at, why));
            }
            Ok(()) if self.in_trouble => {
                self.in_trouble = false;
                self.say(&shared, &words::sent_again(lang(), &at));
            }
            Ok(()) | Err(Refused::Later(..) | Refused::Never(_)) => {}
        }
        if let Err(Refused::Later(_, pause)) = &posted {
            self.pause = Some(Instant::now() + *pause);
        }
        posted
    }

    /// Says how many found no room, or were not taken.
    fn tell_of_lost(&mut self) {
        if self.told.is_some_and(|told| told.elapsed() < MINUTE) {
            return;
        }
        let lost = self.otlp.lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            self.told = Some(Instant::now());
            self.say(&self.current.load(), &words::lost(lang(), lost));
        }
    }

    fn say(&self, shared: &Shared, words: &str) {
        shared.observers.notice(&Notice::Advice(start::note(lang(), words)));
    }
}

async fn post(shared: &Shared, otlp: &Otlp, path: &str, body: Vec<u8>) -> Result<(), Refused> {
    // A proxy stands in its way as in that of any other service.
    let there = Upstream::of("otlp", &config::Upstream::at(otlp.endpoint.clone()));
    let no_url = || Refused::Never(sent::no_url(lang()));
    let length = HeaderValue::from(body.len());
    let mut request = Request::new(SendBody::Kept(Some(Bytes::from(body))));
    *request.method_mut() = Method::POST;
    let target = format!("{}{path}", otlp.endpoint.path());
    *request.uri_mut() = target.parse().map_err(|_odd| no_url())?;
    let headers = request.headers_mut();
    headers.insert(HOST, there.host.clone().ok_or_else(no_url)?);
    headers.insert(USER_AGENT, OUR_NAME.clone());
    headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
    headers.insert(CONTENT_LENGTH, length);
    headers.extend(otlp.settings.headers.iter().cloned());
    let way = shared.way(&there, Version::HTTP_11);
    let answered = shared.upstreams.send(Ask { way, request, fresh: true, may_reuse_stale: false }).await;
    let answer = answered.map_err(|failure| Refused::Later(failure.detail, Duration::ZERO))?;
    let status = answer.status().as_u16();
    let why = sent::said(lang(), status);
    match status {
        200..=299 => Ok(()),
        // By the specification these, and no others, are worth another try.
        429 | 502 | 503 | 504 => {
            let stated =
                answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
            let pause = stated.map_or(Duration::ZERO, Duration::from_secs).min(LONGEST_PAUSE);
            Err(Refused::Later(why, pause))
        }
        _ => Err(Refused::Never(why)),
    }
}
