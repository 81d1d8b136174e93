//! What the log says of each thing that happens. Not where it goes (that is the log itself), and not how a line looks
//! (that is `record`).

use std::sync::Arc;
use std::time::Duration;

use relay_core::Fault;
use relay_core::alert::{Alert, State};
use relay_core::config::LogLevel;
use relay_core::event::{CallId, Closing, Detour, Event, HeldBy, Inherited, Labels, Outcome, Transport};
use relay_core::warm::News;

use super::super::{CredentialNews, LaneChange, LaneName, Notice, Warming, What};
use super::record::{Body, Field, Record};

use crate::upstream::{WayNews, WayWhat};
use crate::words::{credentials, lang, start};

pub(super) fn words(notice: &Notice) -> Option<Record> {
    let lang = lang();
    let (level, event, words) = match notice {
        Notice::Listening { url, upstream, beyond } => (
            LogLevel::Info,
            "listening",
            start::listening(
                lang,
                url,
                &beyond.as_ref().map_or(String::new(), |words| start::open(lang, words)),
                &upstream.clone().unwrap_or_else(|| start::by_credential(lang)),
            ),
        ),
        Notice::Metrics { url } => (LogLevel::Info, "metrics", start::metrics(lang, url)),
        Notice::Advice(words) => (LogLevel::Warn, "advice", words.clone()),
        Notice::Reloaded { changed, kept } => {
            let level = if kept.is_empty() { LogLevel::Info } else { LogLevel::Warn };
            (level, "reloaded", reloaded(changed, kept))
        }
        Notice::ReloadRefused(errors) => {
            (LogLevel::Error, "reload_refused", start::not_reloaded(lang, errors))
        }
        Notice::Draining { open: 0, .. } => (LogLevel::Info, "draining", start::stopping(lang)),
        Notice::Draining { open, waiting, within } => {
            (LogLevel::Info, "draining", draining(*open, *waiting, *within))
        }
        Notice::Stopping { open: 0 } => return None,
        Notice::Stopping { open } => (LogLevel::Warn, "stopping", start::stopped(lang, *open)),
        Notice::TurnedAway { status, code, path } => {
            let fields = vec![
                ("status", Field::Count(u64::from(*status))),
                ("code", Field::Name((*code).to_owned())),
                ("path", Field::Name(path.to_string())),
            ];
            return Some(Record { level: LogLevel::Info, event: "refused", body: Body::Fields(fields) });
        }
        Notice::AcceptFailed { why, untold } => {
            let before = if *untold > 0 { start::and_before(lang, *untold) } else { String::new() };
            (LogLevel::Warn, "accept_failed", start::accept_failed(lang, why, &before))
        }
        Notice::Lane(change) => return Some(lane(change)),
        Notice::Way(news) => return Some(way(news)),
        Notice::Warming(warming) => return Some(warm(warming)),
        Notice::Alert(alert) => return Some(told(alert)),
        Notice::Credential { name, news: CredentialNews::Renewed } => {
            (LogLevel::Info, "credential", credentials::renewed(lang, name))
        }
        Notice::Credential { news: CredentialNews::Failed { again: true, .. }, .. } => return None,
        Notice::Credential { name, news: CredentialNews::Failed { why, .. } } => {
            (LogLevel::Warn, "credential", credentials::not_renewed(lang, name, why))
        }
    };
    Some(Record::words(level, event, words))
}

fn lane(LaneChange { lane: LaneName { id, model, upstream }, what }: &LaneChange) -> Record {
    let state = |name: &str| ("state", Field::Name(name.to_owned()));
    let mut fields = match what {
        What::LaneShut { why, waiting } => vec![
            state("shut"),
            ("why", Field::Name(why.name().to_owned())),
            ("waiting", Field::count(u64::try_from(*waiting).ok())),
        ],
        What::LaneOpened { after } => vec![state("open"), ("after", Field::Seconds(after.as_secs_f64()))],
        What::CircuitOpened { fault, failures, pause } => vec![
            state("circuit_open"),
            ("fault", Field::Name(fault.name().to_owned())),
            ("failures", Field::Count(u64::from(*failures))),
            ("pause", Field::Seconds(pause.as_secs_f64())),
        ],
        What::CircuitStaysOpen { fault, pause } => vec![
            state("circuit_open"),
            ("probe", Field::Name("failed".to_owned())),
            ("fault", Field::Name(fault.name().to_owned())),
            ("pause", Field::Seconds(pause.as_secs_f64())),
        ],
        What::CircuitClosed { after } => {
            vec![state("circuit_closed"), ("after", Field::Seconds(after.as_secs_f64()))]
        }
    };
    fields.push(("model", Field::name(model.as_deref())));
    fields.push(("upstream", Field::Name(upstream.to_string())));
    fields.push(("lane", Field::Name(id.clone())));
    Record { level: LogLevel::Info, event: "lane", body: Body::Fields(fields) }
}

fn way(WayNews { upstream, by, what }: &WayNews) -> Record {
    let name = |name, value: &str| (name, Field::Name(value.to_owned()));
    let seconds = |name, span: Duration| (name, Field::Seconds(span.as_secs_f64()));
    let mut fields = match *what {
        WayWhat::Left { why, pause, .. } => {
            vec![name("state", "left"), name("why", why), seconds("pause", pause)]
        }
        WayWhat::Back { after } => vec![name("state", "back"), seconds("after", after)],
        WayWhat::Forgotten => vec![name("state", "forgotten")],
    };
    fields.extend([name("by", by), name("upstream", upstream)]);
    Record { level: LogLevel::Info, event: "way", body: Body::Fields(fields) }
}

fn told(Alert { kind, state, about, lasted, held_back }: &Alert) -> Record {
    let level = if *state == State::Raised { LogLevel::Warn } else { LogLevel::Info };
    let mut fields = vec![
        ("state", Field::Name(state.name().to_owned())),
        ("kind", Field::Name(kind.name().to_owned())),
        ("lasted", Field::Seconds(lasted.as_secs_f64())),
    ];
    if *held_back > 0 {
        fields.push(("held_back", Field::Count(u64::from(*held_back))));
    }
    let mut add = |name, value: Option<String>| fields.extend(value.map(|value| (name, Field::Name(value))));
    let owned = |name: &Option<Box<str>>| name.as_deref().map(str::to_owned);
    add("fault", about.fault.map(str::to_owned));
    add("what", about.what.map(str::to_owned));
    // A field has no space.
    add("rule", about.rule.as_deref().map(|rule| rule.replace(' ', "_")));
    add("model", owned(&about.model));
    add("upstream", owned(&about.upstream));
    add("lane", owned(&about.lane));
    add("id", about.call.map(|call| call.to_string()));
    fields.extend(about.why.as_deref().map(|why| ("why", Field::Words(why.to_owned()))));
    Record { level, event: "alert", body: Body::Fields(fields) }
}

fn warm(Warming { upstream, model, news }: &Warming) -> Record {
    let state = |name: &str| ("state", Field::Name(name.to_owned()));
    let tries = |tries: u32| ("tries", Field::Count(u64::from(tries)));
    let seconds = |span: Duration| Field::Seconds(span.as_secs_f64());
    let (level, mut fields) = match *news {
        News::Loading => (LogLevel::Info, vec![state("loading")]),
        News::Again { wait, tries: count } => {
            (LogLevel::Info, vec![state("again"), tries(count), ("wait", seconds(wait))])
        }
        News::Ready { after, tries: count } => {
            (LogLevel::Info, vec![state("ready"), tries(count), ("after", seconds(after))])
        }
        News::GaveUp { hopeless, after, tries: count } => {
            let why = Field::Name(if hopeless { "said_no" } else { "patience_spent" }.to_owned());
            (LogLevel::Warn, vec![state("gave_up"), ("why", why), tries(count), ("after", seconds(after))])
        }
    };
    fields.push(("model", Field::name(model.as_deref())));
    fields.push(("upstream", Field::Name(upstream.to_string())));
    Record { level, event: "warm", body: Body::Fields(fields) }
}

/// The names of what was changed. Whoever swaps a whole file is not told all of it.
fn reloaded(changed: &[String], kept: &[String]) -> String {
    const NAMED: usize = 8;
    let lang = lang();
    if changed.is_empty() {
        return start::unchanged(lang);
    }
    let names = changed.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let names = match changed.len().saturating_sub(NAMED) {
        0 => names,
        more => start::and_more(lang, &names, more),
    };
    let restart = if kept.is_empty() { String::new() } else { start::after_restart(lang, &kept.join(", ")) };
    start::reloaded(lang, &names, &restart)
}

/// Those that wait are cut at once, since their wait may be longer than anybody wants to stop.
pub(super) fn draining(open: usize, waiting: usize, within: Duration) -> String {
    let (lang, rest, within) = (lang(), open.saturating_sub(waiting), format!("{:.0}", within.as_secs_f64()));
    match (waiting, rest) {
        (0, _) => start::stopping_within(lang, open, &within),
        (_, 0) => start::stopping_cut(lang, waiting),
        _ => start::stopping_both(lang, waiting, rest, &within),
    }
}

/// How important an event is. A call that went well is told of at `debug`.
pub(super) fn level(event: &Event) -> LogLevel {
    match event {
        Event::WaitStarted { .. }
        | Event::InLine { .. }
        | Event::HeldBack { .. }
        | Event::NoticeGiven { .. }
        | Event::Moved { .. }
        | Event::StreamCut { .. } => LogLevel::Info,
        Event::CallClosed(closing) => match closing.outcome {
            Outcome::Served | Outcome::Passed | Outcome::ClientLeft if closing.sends < 2 => LogLevel::Debug,
            Outcome::Served
            | Outcome::Passed
            | Outcome::ClientLeft
            | Outcome::Returned
            | Outcome::Refused
            | Outcome::GaveUp
            | Outcome::Broken
            | Outcome::Cut => LogLevel::Info,
        },
        Event::CallOpened { inherited, .. } if !inherited.is_nothing() => LogLevel::Debug,
        Event::WayTaken { .. } => LogLevel::Debug,
        Event::CallOpened { .. }
        | Event::SendStarted { .. }
        | Event::HeadArrived { .. }
        | Event::FaultSeen { .. }
        | Event::GrantTaken { .. }
        | Event::Committed { .. } => LogLevel::Trace,
    }
}

/// What holds a call beside its lane.
fn held_back(
    send: u32,
    by: HeldBy,
    wait: Option<Duration>,
    fault: Option<Fault>,
) -> Vec<(&'static str, Field)> {
    let (by, how) = match by {
        HeldBy::Circuits => ("circuits", "open"),
        HeldBy::Credential => ("credential", "renewing"),
    };
    let mut fields = vec![
        ("send", Field::Count(u64::from(send))),
        ("fault", Field::name(fault.map(Fault::name))),
        (by, Field::Name(how.to_owned())),
    ];
    fields.extend(wait.map(|wait| ("wait", Field::Seconds(wait.as_secs_f64()))));
    fields
}

/// `before`: the names of where a call was before its last move, and of where its last send failed.
pub(super) fn record(call: CallId, labels: &Labels, before: &Before, event: &Event) -> Record {
    let count = |count: &u32| Field::Count(u64::from(*count));
    let (name, mut fields) = match event {
        Event::CallOpened { labels, inherited, .. } => ("open", opening_fields(labels, *inherited)),
        Event::SendStarted { send } => ("send", vec![("send", count(send))]),
        Event::WayTaken { send, detour } => ("detour", detour_fields(*send, detour)),
        Event::HeadArrived { send, status, .. } => {
            ("head", vec![("send", count(send)), ("status", Field::Count(u64::from(*status)))])
        }
        Event::FaultSeen { send, fault, evidence, status, code, .. } => (
            "fault",
            vec![
                ("send", count(send)),
                ("status", Field::count(*status)),
                ("fault", Field::Name(fault.name().to_owned())),
                ("evidence", Field::name(evidence.map(relay_core::Evidence::name))),
                ("code", Field::name(code.as_deref())),
            ],
        ),
        Event::WaitStarted { send, wait, fault, status, code } => {
            let mut fields = vec![
                ("send", count(send)),
                ("status", Field::count(*status)),
                ("fault", Field::Name(fault.name().to_owned())),
            ];
            fields.extend(code.as_deref().map(|code| ("code", Field::Name(code.to_owned()))));
            fields.push(("wait", Field::Seconds(wait.as_secs_f64())));
            fields.extend(elsewhere("failed_at", "failed_model", before.failed.as_deref(), labels));
            (if *send > 1 { "retry" } else { "held" }, fields)
        }
        Event::InLine { send, waiting, parked, fault, status, code } => {
            let mut fields = vec![
                ("send", count(send)),
                ("status", Field::count(*status)),
                ("fault", Field::name(fault.map(Fault::name))),
            ];
            fields.extend(code.as_deref().map(|code| ("code", Field::Name(code.to_owned()))));
            fields.push(("waiting", Field::Count(u64::try_from(*waiting).unwrap_or(u64::MAX))));
            fields.extend(parked.map(|parked| ("parked", Field::Seconds(parked.as_secs_f64()))));
            fields.extend(elsewhere("failed_at", "failed_model", before.failed.as_deref(), labels));
            (if fault.is_some() { "retry" } else { "held" }, fields)
        }
        Event::HeldBack { send, by, wait, fault } => {
            let mut fields = held_back(*send, *by, *wait, *fault);
            fields.extend(elsewhere("failed_at", "failed_model", before.failed.as_deref(), labels));
            ("held", fields)
        }
        Event::NoticeGiven { send, notices, fault } => (
            "notice",
            vec![
                ("send", count(send)),
                ("fault", Field::name(fault.map(Fault::name))),
                ("notices", count(notices)),
            ],
        ),
        // The names at the end of the line are those of where it goes.
        Event::Moved { send, to: _, why } => {
            let mut fields = vec![("send", count(send)), ("why", Field::Name(why.name().to_owned()))];
            fields.extend(elsewhere("from", "from_model", before.left.as_deref(), labels));
            ("moved", fields)
        }
        Event::GrantTaken { send } => ("grant", vec![("send", count(send))]),
        Event::Committed { send } => ("commit", vec![("send", count(send))]),
        Event::StreamCut { fault, cuts } => {
            ("cut", vec![("fault", Field::Name(fault.name().to_owned())), ("cuts", count(cuts))])
        }
        Event::CallClosed(closing) => ("done", closing_fields(closing)),
    };
    // Where it is not the usual one.
    if labels.transport == Transport::WebSocket && !matches!(event, Event::CallOpened { .. }) {
        fields.push(("transport", Field::Name(labels.transport.name().to_owned())));
    }
    fields.push(("model", Field::name(labels.model.as_deref())));
    fields.push(("upstream", Field::Name(labels.upstream.to_string())));
    fields.push(("id", Field::Name(call.to_string())));
    Record { level: level(event), event: name, body: Body::Fields(fields) }
}

/// Where a call was before, as far as that is not where it is now: the names at the end of a line are those of where it
/// is, or goes.
#[derive(Debug, Default)]
pub(super) struct Before {
    /// Before its last move.
    pub(super) left: Option<Arc<Labels>>,
    /// When its last send failed.
    pub(super) failed: Option<Arc<Labels>>,
}

fn elsewhere(
    upstream: &'static str,
    model: &'static str,
    there: Option<&Labels>,
    here: &Labels,
) -> Vec<(&'static str, Field)> {
    let Some(there) = there else { return Vec::new() };
    let mut fields = Vec::new();
    if there.upstream != here.upstream {
        fields.push((upstream, Field::Name(there.upstream.to_string())));
    }
    if there.model != here.model {
        fields.push((model, Field::name(there.model.as_deref())));
    }
    fields
}

fn opening_fields(labels: &Labels, inherited: Inherited) -> Vec<(&'static str, Field)> {
    let Inherited { sends, failed, resends } = inherited;
    let count = |count: u32| Field::Count(u64::from(count));
    let mut fields = vec![
        ("client", Field::Name(labels.client.to_owned())),
        ("dialect", Field::Name(labels.dialect.to_owned())),
        ("operation", Field::Name(labels.operation.name().to_owned())),
        ("transport", Field::Name(labels.transport.name().to_owned())),
        ("profile", Field::Name(labels.profile.to_string())),
        ("inherited_sends", count(sends)),
    ];
    fields.extend((failed > 0).then(|| ("inherited_failed", count(failed))));
    fields.extend((resends > 0).then(|| ("inherited_resends", count(resends))));
    fields
}

fn detour_fields(send: u32, Detour { by, missed }: &Detour) -> Vec<(&'static str, Field)> {
    let mut fields = vec![("send", Field::Count(u64::from(send))), ("by", Field::name(by.as_deref()))];
    if !missed.is_empty() {
        let each: Vec<_> = missed.iter().map(|it| format!("{}({})", it.by, it.why)).collect();
        fields.push(("missed", Field::Name(each.join(","))));
    }
    fields
}

fn closing_fields(closing: &Closing) -> Vec<(&'static str, Field)> {
    let mut fields = vec![("outcome", Field::Name(closing.outcome.name().to_owned()))];
    fields.extend(closing.why.map(|why| ("why", Field::Name(why.to_owned()))));
    fields.extend([
        ("sends", Field::Count(u64::from(closing.sends))),
        ("waited", Field::Seconds(closing.waited.as_secs_f64())),
        ("fault", Field::name(closing.last_fault.map(Fault::name))),
    ]);
    if closing.maybe_billed_twice > 0 {
        fields.push(("maybe_billed_twice", Field::Count(u64::from(closing.maybe_billed_twice))));
    }
    fields
}
