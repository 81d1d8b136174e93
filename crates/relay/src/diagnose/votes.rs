//! What each call says about the matter: a call that met trouble votes for one cause. What the votes of one place come to
//! is `troubles`.

use std::collections::{BTreeMap, BTreeSet};

use super::Cause;
use crate::history::record::{CallRecord, FailedRecord, SendRecord, State};

/// The vote of a call that is stuck now, of one that was not served, of one that has just met trouble, and of one that was
/// served all the same. Whoever asks does so because something is stuck: that outweighs two that were lost, and ten that
/// were served.
const STUCK: f64 = 10.0;
const LOST: f64 = 4.0;
const OPEN: f64 = 2.0;
const OVERCOME: f64 = 1.0;
/// An open call that has failed so often is stuck, and fewer failures than these, all overcome, are no trouble.
pub(super) const FEW: usize = 3;
/// A vote counts half after so many milliseconds.
const HALF: f64 = 15.0 * 60.0 * 1000.0;

/// The relay gave up after less waiting than this, in milliseconds, and no more sends than these: it was too soon.
const SOON: u64 = 30_000;
/// A wait that was told, in milliseconds, and that a patient profile would have borne.
const BEARABLE: u64 = 600_000;
/// Hang-ups that come after the same time: within a tenth of the middle one, or within so many milliseconds of it.
const ALIKE: u64 = 1_000;
/// Whoever leaves sooner than this has changed their mind.
const IMPATIENT: u64 = 1_000;

/// One call's vote.
#[derive(Debug, Clone)]
pub(super) struct Vote<'a> {
    pub(super) cause: Cause,
    pub(super) call: &'a CallRecord,
    pub(super) points: f64,
    /// When the call ended or was last heard of, in milliseconds since 1970.
    pub(super) at: u64,
    /// The call was not served.
    pub(super) is_lost: bool,
}

/// The upstreams that answered a web page or a browser check when they were asked just now.
pub(super) type Pages = BTreeSet<String>;

/// Everybody's votes.
pub(super) fn votes<'a>(calls: &'a [CallRecord], pages: &Pages, now: u64) -> Vec<Vote<'a>> {
    let hung_up = hung_up(calls);
    let vote = |call: &'a CallRecord| {
        let hung_up = hung_up.contains(&(call.run, call.call));
        let (cause, points) = if hung_up { (Cause::ClientHangsUp, LOST) } else { of(call, pages)? };
        let at = ended(call, now);
        let age = now.saturating_sub(at) as f64;
        let is_lost = call.closed.is_some() && points >= LOST;
        Some(Vote { cause, call, points: points * (-age / HALF).exp2(), at, is_lost })
    };
    calls.iter().filter_map(vote).collect()
}

/// When a call ended, or was last heard of.
pub(super) fn ended(call: &CallRecord, now: u64) -> u64 {
    // Whoever waits is still there at the end of the wait.
    let waits =
        |of: &SendRecord| of.wait.as_ref().map(|wait| wait.began.saturating_add(wait.planned.unwrap_or(0)));
    let spans = call
        .sends
        .iter()
        .flat_map(|of| [waits(of), of.began, of.head, of.failed.as_ref().map(|failed| failed.at)]);
    let last = match &call.closed {
        Some(closed) => closed.took,
        None => spans.flatten().max().unwrap_or(0),
    };
    call.opened.saturating_add(last).min(now)
}

/// Whether it was served at once.
pub(super) fn went_well(call: &CallRecord) -> bool {
    is_served(call) && call.sends.iter().all(|of| of.failed.is_none())
}

/// Whether its client got an answer.
pub(super) fn is_served(call: &CallRecord) -> bool {
    call.closed.as_ref().is_some_and(|closed| closed.outcome == "served")
}

/// The failures of a call, each with its send.
pub(super) fn failures(call: &CallRecord) -> impl DoubleEndedIterator<Item = (&SendRecord, &FailedRecord)> {
    call.sends.iter().filter_map(|of| Some((of, of.failed.as_ref()?)))
}

/// How many sends of a call failed: of a long one those in the middle are not told, but none of them was the last.
pub(super) fn failed_sends(call: &CallRecord) -> usize {
    failures(call).count() + call.left_out as usize
}

fn of(call: &CallRecord, pages: &Pages) -> Option<(Cause, f64)> {
    let is_page = pages.contains(&call.upstream);
    let last = failures(call).next_back();
    let by_fault = last.map(|(of, failed)| cause_of(failed, of.status, is_page));
    let Some(closed) = &call.closed else {
        let points = if failed_sends(call) < FEW { OPEN } else { STUCK };
        return by_fault.filter(|_| call.state != State::Streaming).map(|cause| (cause, points));
    };
    match (closed.outcome.as_str(), closed.why.as_deref()) {
        ("served", _) => by_fault.map(|cause| (cause, OVERCOME)),
        // One that leaves alone has changed its mind.
        ("client_left", _) => by_fault.filter(|_| call.committed.is_none()).map(|cause| (cause, OVERCOME)),
        ("refused", Some("certificate" | "proxy")) => Some((Cause::InTheWay, LOST)),
        ("refused", Some("may_have_run" | "still_running")) => Some((Cause::RelayRefuses, LOST)),
        ("gave_up", Some("stopping")) => None,
        ("gave_up", _) if gave_up_too_soon(call, by_fault) => Some((Cause::RelayGivesUp, LOST)),
        // It waited for its turn, since others were refused.
        ("gave_up", _) => Some((by_fault.unwrap_or(Cause::ModelAtCapacity), LOST)),
        ("cut", _) => Some((by_fault.unwrap_or(Cause::ModelAtCapacity), LOST)),
        _ => Some((by_fault.unwrap_or(Cause::ServiceFailing), LOST)),
    }
}

fn gave_up_too_soon(call: &CallRecord, cause: Option<Cause>) -> bool {
    let Some(closed) = &call.closed else { return false };
    let heals = matches!(
        cause,
        None | Some(
            Cause::ModelAtCapacity | Cause::ServiceOverloaded | Cause::RateLimited | Cause::ModelLoading
        )
    );
    let told = failures(call).next_back().and_then(|(_, failed)| failed.told);
    match closed.why.as_deref() {
        Some("told_to_wait_longer") => heals && told.is_some_and(|told| told <= BEARABLE),
        Some("sends_spent" | "patience_spent") => heals && closed.waited < SOON,
        _ => false,
    }
}

/// What a failed send speaks for. `is_page`: its upstream answers with a web page just now.
pub(super) fn cause_of(failed: &FailedRecord, status: Option<u16>, is_page: bool) -> Cause {
    let code = failed.code.as_deref().unwrap_or_default();
    let by_status = failed.rule.as_deref() == Some("the status") && code.is_empty();
    if status == Some(511) || (is_page && (by_status || code == "malformed")) {
        return Cause::Edge;
    }
    match failed.fault.as_str() {
        "at_capacity" | "overloaded" => Cause::ModelAtCapacity,
        "model_loading" => Cause::ModelLoading,
        "throttled" => Cause::RateLimited,
        "quota_spent" => Cause::QuotaSpent,
        "authentication" | "bad_request" if code.contains("model") => Cause::NoSuchModel,
        "bad_request" if status == Some(404) => Cause::NoSuchModel,
        "authentication" => Cause::CredentialRefused,
        "too_long" => Cause::RequestTooLong,
        "bad_request" | "content_refused" => Cause::RequestRefused,
        "challenge" => Cause::Edge,
        "never_sent" => match code {
            "tls_handshake" | "certificate" | "proxy_failed" | "proxy_refused" => Cause::InTheWay,
            _ => Cause::Unreachable,
        },
        _ => Cause::ServiceFailing,
    }
}

/// The calls whose client hung up before an answer, after about the same time as others of its: a time limit, and no
/// person.
fn hung_up(calls: &[CallRecord]) -> BTreeSet<(Option<i64>, u64)> {
    let mut by_client: BTreeMap<&str, Vec<(&CallRecord, u64)>> = BTreeMap::new();
    for call in calls {
        let Some(closed) = &call.closed else { continue };
        if closed.outcome == "client_left" && call.committed.is_none() && closed.took >= IMPATIENT {
            by_client.entry(&call.client).or_default().push((call, closed.took));
        }
    }
    let mut all = BTreeSet::new();
    for mut left in by_client.into_values() {
        left.sort_by_key(|(_, took)| *took);
        let middle = left.get(left.len() / 2).map_or(0, |(_, took)| *took);
        let near = (middle / 10).max(ALIKE);
        left.retain(|(_, took)| took.abs_diff(middle) <= near);
        if left.len() >= 2 {
            all.extend(left.iter().map(|(call, _)| (call.run, call.call)));
        }
    }
    all
}
