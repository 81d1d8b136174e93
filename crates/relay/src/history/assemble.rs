//! Puts the events of calls together to records. Pure: it is told when each event happened.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use relay_core::event::{CallId, Closing, Detour, Event, HeldBy, Inherited, Labels};
use relay_core::usage::Usage;
use relay_core::{Fault, Moment};

use super::record::{
    CallRecord, ClosedRecord, FailedRecord, MOST_SENDS, MissedRecord, MovedRecord, SendRecord, State, Tokens,
    WaitRecord, WaitWhy, WayRecord,
};

/// The most open calls that are kept in mind.
const MOST_OPEN: usize = 10_000;

/// The records of open calls, and which of them have changed.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    open: BTreeMap<CallId, Begun>,
    changed: BTreeSet<CallId>,
    /// Those that ended since they were last taken.
    ended: Vec<CallRecord>,
}

/// An open call.
#[derive(Debug)]
struct Begun {
    record: CallRecord,
    at: Moment,
    /// When the first event that is not of its beginning came after a cut of the same turn.
    last_told: Option<Duration>,
    /// What its stream was cut for.
    cut: Option<Fault>,
}

const fn ms(span: Duration) -> u64 {
    let ms = span.as_millis();
    if ms > u64::MAX as u128 { u64::MAX } else { ms as u64 }
}

const fn tokens(usage: Usage) -> Tokens {
    Tokens { input: usage.input, cached: usage.cached, output: usage.output }
}

fn way(detour: &Detour) -> WayRecord {
    let missed = detour.missed.iter();
    WayRecord {
        by: detour.by.as_deref().map(str::to_owned),
        missed: missed.map(|it| MissedRecord { by: it.by.to_string(), why: it.why.to_owned() }).collect(),
    }
}

impl Assembler {
    /// Something happened to a call. False: it is one too many, and not told of.
    pub(crate) fn see(&mut self, call: CallId, at: Moment, event: &Event) -> bool {
        if let Event::CallOpened { labels, inherited, wall } = event {
            if self.open.len() >= MOST_OPEN {
                return false;
            }
            let record = opened(call, *wall, labels, *inherited);
            self.open.insert(call, Begun { record, at, last_told: None, cut: None });
            self.changed.insert(call);
            return true;
        }
        let Some(begun) = self.open.get_mut(&call) else { return false };
        begun.see(ms(at.since(begun.at)), event);
        if begun.record.state == State::Closed {
            self.changed.remove(&call);
            self.ended.extend(self.open.remove(&call).map(|begun| begun.record));
        } else {
            self.changed.insert(call);
        }
        true
    }

    /// The records of calls that ended since this was last asked.
    #[cfg(feature = "otlp")]
    pub(crate) fn take_ended(&mut self) -> Vec<CallRecord> {
        self.changed.clear();
        std::mem::take(&mut self.ended)
    }

    /// The records that have changed since this was last asked; those of calls that ended come first.
    pub(crate) fn take_changed(&mut self) -> Vec<CallRecord> {
        let mut all = std::mem::take(&mut self.ended);
        let changed = std::mem::take(&mut self.changed);
        all.extend(changed.iter().filter_map(|call| Some(self.open.get(call)?.record.clone())));
        all
    }
}

fn opened(call: CallId, wall: u64, labels: &Labels, inherited: Inherited) -> CallRecord {
    CallRecord {
        run: None,
        call: call.0,
        opened: wall,
        client: labels.client.to_owned(),
        dialect: labels.dialect.to_owned(),
        operation: labels.operation.name().to_owned(),
        transport: labels.transport.name().to_owned(),
        upstream: labels.upstream.to_string(),
        model: labels.model.as_deref().map(str::to_owned),
        profile: labels.profile.to_string(),
        lane: labels.lane.to_string(),
        request_id: labels.request_id.as_deref().map(str::to_owned),
        pool: labels.pool.as_deref().map(str::to_owned),
        bound: labels.bound.map(str::to_owned),
        inherited_sends: inherited.sends,
        inherited_failed: inherited.failed,
        inherited_resends: inherited.resends,
        state: State::Opening,
        sends: Vec::new(),
        left_out: 0,
        committed: None,
        closed: None,
    }
}

impl Begun {
    fn see(&mut self, now: u64, event: &Event) {
        match event {
            Event::CallOpened { .. } => {}
            Event::SendStarted { send } => self.starts(*send, now),
            Event::HeadArrived { send, status, request_id } => {
                let of = self.send(*send);
                (of.head, of.status) = (Some(now), Some(*status));
                of.request_id = request_id.as_deref().map(str::to_owned);
            }
            Event::WayTaken { send, detour } => self.send(*send).way = Some(way(detour)),
            Event::FaultSeen { send, fault, evidence, status, code, rule, told, usage } => {
                self.last_told = *told;
                let of = self.send(*send);
                of.status = of.status.or(*status);
                of.failed = Some(FailedRecord {
                    at: now,
                    fault: fault.name().to_owned(),
                    evidence: evidence.map(|evidence| evidence.name().to_owned()),
                    code: code.as_deref().map(str::to_owned),
                    rule: rule.as_deref().map(str::to_owned),
                    told: told.map(ms),
                    tokens: usage.map(tokens),
                });
            }
            Event::WaitStarted { send, wait, .. } => {
                let why = match self.last_told {
                    Some(told) if *wait >= told && !told.is_zero() => WaitWhy::Told,
                    None if self.record.sends.is_empty() => WaitWhy::Cut,
                    Some(_) | None => WaitWhy::Backoff,
                };
                self.waits(*send, now, why, (Some(ms(*wait)), None));
            }
            Event::InLine { send, waiting, parked: Some(parked), .. } => {
                self.waits(*send, now, WaitWhy::Parked, (Some(ms(*parked)), Some(*waiting)));
            }
            Event::InLine { send, waiting, parked: None, .. } => {
                let told = self.last_told.map(ms);
                let wait = self.send(*send).wait.as_ref();
                match wait.filter(|wait| wait.why == WaitWhy::Circuit).map(|wait| wait.planned) {
                    // Its lane is that of a breaker which lets a probe through by now.
                    Some(planned) => {
                        self.waits(*send, now, WaitWhy::Circuit, (planned, Some(*waiting)));
                    }
                    None => self.waits(*send, now, WaitWhy::Line, (told, Some(*waiting))),
                }
            }
            Event::HeldBack { send, by, wait, .. } => {
                let why = match by {
                    HeldBy::Circuits => WaitWhy::Circuit,
                    HeldBy::Credential => WaitWhy::Credential,
                };
                self.waits(*send, now, why, (wait.map(ms), None));
            }
            Event::NoticeGiven { send, notices, .. } => {
                if let Some(wait) = &mut self.send(*send).wait {
                    wait.notices = *notices;
                }
            }
            Event::Moved { send, to, why } => {
                self.send(*send).moved = Some(MovedRecord {
                    upstream: to.upstream.to_string(),
                    lane: to.lane.to_string(),
                    model: to.model.as_deref().map(str::to_owned),
                    why: why.name().to_owned(),
                });
            }
            Event::GrantTaken { send } => self.send(*send).may_run_twice = true,
            Event::Committed { .. } => {
                self.record.committed = Some(now);
                self.record.state = State::Streaming;
            }
            Event::StreamCut { fault, .. } => self.cut = Some(*fault),
            Event::CallClosed(closing) => self.closes(closing, now),
        }
    }

    /// The record of a send; of a new one, where it is the first that is told of it.
    fn send(&mut self, number: u32) -> &mut SendRecord {
        let sends = &mut self.record.sends;
        let at = sends.iter().rposition(|of| of.send == number).unwrap_or_else(|| {
            if sends.len() >= MOST_SENDS {
                let moved = sends.remove(MOST_SENDS / 2).moved;
                // Where it went the next one went, too, unless that tells of another move.
                if let Some(next) = sends.get_mut(MOST_SENDS / 2) {
                    next.moved = next.moved.take().or(moved);
                }
                self.record.left_out += 1;
            }
            sends.push(SendRecord { send: number, ..SendRecord::default() });
            sends.len() - 1
        });
        &mut sends[at]
    }

    fn starts(&mut self, number: u32, now: u64) {
        let of = self.send(number);
        of.began = Some(now);
        if let Some(wait) = &mut of.wait {
            wait.took = Some(now.saturating_sub(wait.began));
        }
        self.record.state = State::Sending;
    }

    fn waits(&mut self, number: u32, now: u64, why: WaitWhy, told: (Option<u64>, Option<usize>)) {
        let (planned, waiting) = told;
        let wait = &mut self.send(number).wait;
        let began = wait.as_ref().map_or(now, |wait| wait.began);
        *wait = Some(WaitRecord { why, began, planned, took: None, waiting, notices: 0 });
        self.record.state = State::Waiting;
    }

    fn closes(&mut self, closing: &Closing, now: u64) {
        if let Some(wait) = self.record.sends.last_mut().and_then(|of| of.wait.as_mut()) {
            wait.took.get_or_insert(now.saturating_sub(wait.began));
        }
        self.record.state = State::Closed;
        self.record.closed = Some(ClosedRecord {
            outcome: closing.outcome.name().to_owned(),
            why: closing.why.map(str::to_owned),
            status: closing.status,
            sends: closing.sends,
            waited: ms(closing.waited),
            took: ms(closing.took),
            last_fault: self.cut.or(closing.last_fault).map(|fault| fault.name().to_owned()),
            capacity_faults: closing.capacity_faults,
            maybe_billed_twice: closing.maybe_billed_twice,
            received: closing.received,
            sent: closing.sent,
            tokens: closing.usage.map(tokens),
        });
    }
}
