//! The line: calls that wait, and whose turn it is. Every question and every change costs a logarithm of how many wait.
//!
//! Calls stand in the order of their arrival within their session, and sessions in the order of their first calls. So
//! what a session has in flight moves one entry, not all its calls.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::sessions::Session;
use super::terms::Preset;
use crate::event::CallId;
use crate::moment::Moment;

/// So much later a session's turn comes for each small call that it has in flight.
const GIVES_WAY: Duration = Duration::from_secs(5);

/// How deep a call is in its budget.
const DEPTHS: usize = 3;

/// A call that waits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Waiting {
    pub(super) call: CallId,
    pub(super) session: u64,
    /// When it came, later by what its preset gives way.
    pub(super) rank: Moment,
    pub(super) deadline: Option<Moment>,
    pub(super) preset: Preset,
    /// In thousandths of a small call.
    pub(super) weight: u64,
    pub(super) sends: u32,
    pub(super) budget: Option<u32>,
    /// How often it was refused where its lane was not to blame.
    pub(super) tries: u32,
    pub(super) not_before: Moment,
    /// What of that its client or the upstream asked for; the rest is the gate's own.
    pub(super) floor: Moment,
    /// Its answer's first byte tells of acceptance.
    pub(super) streams: bool,
    /// It waits by its own curve alone.
    pub(super) plain: bool,
}

impl Waiting {
    /// The sends that it keeps for the time when the lane opens; of a small budget no more than a quarter.
    fn reserve(&self, budget: u32) -> u32 {
        self.preset.terms().reserve.min(budget / 4)
    }

    /// 0: probes may use it; 1: where there is no other; 2: the rest is for the time when the lane opens.
    fn depth(&self) -> usize {
        match self.budget {
            None => 0,
            Some(budget) if self.sends < budget.div_ceil(2) => 0,
            Some(budget) if self.sends < budget - self.reserve(budget) => 1,
            Some(_) => 2,
        }
    }
}

/// Whose turn is first: what is in flight counts before the time, or as time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn {
    load: u64,
    at: Moment,
}

/// By what a session stands in the order: by nothing, by its refusals, or by the tries of its calls.
type Listed = (u32, Turn, u64);

#[derive(Debug, Default)]
struct Flow {
    session: Session,
    /// When it last sent, as far as it has waited here since.
    sent: Moment,
    /// Calls whose own wait is over.
    ready: [BTreeSet<(Moment, CallId)>; DEPTHS],
    /// Calls whose floor is past.
    all: [BTreeSet<(u32, Moment, CallId)>; DEPTHS],
    listed: [[Option<Listed>; DEPTHS]; 3],
    /// How many calls there are.
    calls: usize,
}

impl Flow {
    fn knows(&mut self, session: Session) {
        self.session = session;
        self.sent = self.sent.max(session.sent);
    }
}

/// The sends that the waiting calls have left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Left {
    /// Without their reserves.
    pub(super) free: u64,
    /// With them.
    pub(super) all: u64,
    /// What they came with, without their reserves.
    pub(super) total: u64,
}

/// The line.
#[derive(Debug, Default)]
pub(super) struct Line {
    calls: BTreeMap<CallId, Waiting>,
    flows: BTreeMap<u64, Flow>,
    /// Sessions by their first calls: by rank; by refusals, then rank; by tries, then rank.
    order: [[BTreeSet<Listed>; DEPTHS]; 3],
    /// Calls whose own wait is not over.
    later: BTreeSet<(Moment, CallId)>,
    /// Calls whose floor is not past.
    bound: BTreeSet<(Moment, CallId)>,
    deadlines: BTreeSet<(Moment, CallId)>,
    /// Calls without a deadline or without a limit of sends.
    endless: usize,
    left: Left,
    /// Sessions with less in flight always go first, and of those with as much the one that has waited longest since it
    /// last sent: the upstream has a stated number of places.
    by_load: bool,
}

const BY_RANK: usize = 0;
const BY_REFUSALS: usize = 1;
const BY_TRIES: usize = 2;

impl Line {
    pub(super) fn new(by_load: bool) -> Self {
        Self { by_load, ..Self::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    pub(super) fn contains(&self, call: CallId) -> bool {
        self.calls.contains_key(&call)
    }

    /// How many calls only wait for their turn.
    pub(super) fn ready(&self) -> usize {
        self.calls.len() - self.later.len()
    }

    /// The earliest moment at which a call's own wait is over.
    pub(super) fn next_ready(&self) -> Option<Moment> {
        self.later.first().map(|(at, _)| *at)
    }

    /// The earliest moment at which a call's floor is past.
    pub(super) fn next_bound(&self) -> Option<Moment> {
        self.bound.first().map(|(at, _)| *at)
    }

    /// What the waiting calls have left to send, and when the last of them ends; `None`: some have no end.
    pub(super) fn left(&self) -> Option<(Left, Moment)> {
        let (last, _) = self.deadlines.last()?;
        (self.endless == 0).then_some((self.left, *last))
    }

    pub(super) fn push(&mut self, waiting: Waiting, session: Session, now: Moment) {
        let (call, key) = (waiting.call, waiting.session);
        self.count(&waiting, true);
        if waiting.not_before > now {
            self.later.insert((waiting.not_before, call));
        }
        let flow = self.flows.entry(key).or_default();
        flow.knows(session);
        let depth = waiting.depth();
        if waiting.not_before <= now {
            flow.ready[depth].insert((waiting.rank, call));
        }
        if waiting.floor <= now {
            flow.all[depth].insert((waiting.tries, waiting.rank, call));
        } else {
            self.bound.insert((waiting.floor, call));
        }
        flow.calls += 1;
        self.calls.insert(call, waiting);
        self.list(key);
    }

    pub(super) fn remove(&mut self, call: CallId) -> Option<Waiting> {
        let waiting = self.calls.remove(&call)?;
        self.count(&waiting, false);
        self.later.remove(&(waiting.not_before, call));
        self.bound.remove(&(waiting.floor, call));
        if let Some(flow) = self.flows.get_mut(&waiting.session) {
            flow.calls -= 1;
            let depth = waiting.depth();
            flow.ready[depth].remove(&(waiting.rank, call));
            flow.all[depth].remove(&(waiting.tries, waiting.rank, call));
        }
        self.list(waiting.session);
        Some(waiting)
    }

    fn count(&mut self, waiting: &Waiting, comes: bool) {
        let add = |sum: &mut u64, part: u32| {
            *sum = if comes { *sum + u64::from(part) } else { *sum - u64::from(part) };
        };
        if let Some(budget) = waiting.budget {
            let free = budget - waiting.reserve(budget);
            add(&mut self.left.free, free.saturating_sub(waiting.sends));
            add(&mut self.left.all, budget.saturating_sub(waiting.sends));
            add(&mut self.left.total, free);
        }
        match waiting.deadline {
            Some(deadline) if comes => _ = self.deadlines.insert((deadline, waiting.call)),
            Some(deadline) => _ = self.deadlines.remove(&(deadline, waiting.call)),
            None => {}
        }
        if waiting.budget.is_none() || waiting.deadline.is_none() {
            self.endless = if comes { self.endless + 1 } else { self.endless - 1 };
        }
    }

    /// What a session has in flight, or how often it was refused, has changed.
    pub(super) fn session_changed(&mut self, key: u64, session: Session) {
        if let Some(flow) = self.flows.get_mut(&key) {
            flow.knows(session);
            self.list(key);
        }
    }

    /// Calls whose own wait is over by now wait for their turn alone.
    pub(super) fn ripen(&mut self, now: Moment) {
        while let Some(call) = due(&mut self.later, now) {
            self.ripened(call, |flow, waiting| {
                flow.ready[waiting.depth()].insert((waiting.rank, call));
            });
        }
        while let Some(call) = due(&mut self.bound, now) {
            self.ripened(call, |flow, waiting| {
                flow.all[waiting.depth()].insert((waiting.tries, waiting.rank, call));
            });
        }
    }

    fn ripened(&mut self, call: CallId, into: impl FnOnce(&mut Flow, &Waiting)) {
        let Some(waiting) = self.calls.get(&call) else { return };
        let key = waiting.session;
        if let Some(flow) = self.flows.get_mut(&key) {
            into(flow, waiting);
        }
        self.list(key);
    }

    /// The call that would be ready first is ready now.
    pub(super) fn ripen_first(&mut self, now: Moment) {
        if let Some(&(_, call)) = self.later.first() {
            self.change(call, now, |waiting| (waiting.not_before, waiting.floor) = (now, now));
        }
    }

    /// Changes what a call waits for.
    pub(super) fn change(&mut self, call: CallId, now: Moment, change: impl FnOnce(&mut Waiting)) {
        let Some(known) = self.calls.get(&call) else { return };
        let session = self.flows.get(&known.session).map(|flow| flow.session).unwrap_or_default();
        if let Some(mut waiting) = self.remove(call) {
            change(&mut waiting);
            self.push(waiting, session, now);
        }
    }

    /// Puts a session where its first calls belong.
    fn list(&mut self, key: u64) {
        let Some(flow) = self.flows.get_mut(&key) else { return };
        let (load, sent) = (flow.session.load, flow.sent);
        let turn = |rank: Moment| {
            if self.by_load {
                return Turn { load, at: rank.max(sent) };
            }
            let late = GIVES_WAY.saturating_mul(u32::try_from(load / 1000).unwrap_or(u32::MAX));
            let rest = GIVES_WAY.mul_f64((load % 1000) as f64 / 1000.0);
            Turn { load: 0, at: rank + late + rest }
        };
        for depth in 0..DEPTHS {
            let ready = flow.ready[depth].first().map(|(rank, _)| turn(*rank));
            let any = flow.all[depth].first().map(|(tries, rank, _)| (*tries, turn(*rank), key));
            let refused = flow.session.refused;
            let wanted = [ready.map(|turn| (0, turn, key)), ready.map(|turn| (refused, turn, key)), any];
            for (kind, wanted) in wanted.into_iter().enumerate() {
                let listed = &mut flow.listed[kind][depth];
                if *listed == wanted {
                    continue;
                }
                if let Some(old) = listed.take() {
                    self.order[kind][depth].remove(&old);
                }
                if let Some(new) = wanted {
                    self.order[kind][depth].insert(new);
                }
                *listed = wanted;
            }
        }
        if flow.calls == 0 {
            self.flows.remove(&key);
        }
    }

    fn first_ready(&self, kind: usize, depth: usize) -> Option<(Listed, CallId)> {
        let listed = *self.order[kind][depth].first()?;
        let (_, call) = self.flows.get(&listed.2)?.ready[depth].first()?;
        Some((listed, *call))
    }

    /// The call whose turn it is.
    pub(super) fn next(&self) -> Option<(Turn, CallId)> {
        let heads = (0..DEPTHS).filter_map(|depth| self.first_ready(BY_RANK, depth));
        heads.map(|((_, turn, _), call)| (turn, call)).min()
    }

    /// The call that is asked with while the lane is shut: of the session that was refused least. One that has used
    /// up its share of sends goes only where there is no other.
    pub(super) fn next_probe(&self) -> Option<CallId> {
        (0..DEPTHS).find_map(|depth| self.first_ready(BY_REFUSALS, depth)).map(|(_, call)| call)
    }

    /// The call that takes a place that a call of ours left, while the lane is shut.
    pub(super) fn next_in_place(&self) -> Option<CallId> {
        (0..DEPTHS - 1).find_map(|depth| self.first_ready(BY_RANK, depth)).map(|(_, call)| call)
    }

    /// The call that takes such a place while the lane is open: the one that was tried least, whether the gate would
    /// have it wait or not.
    pub(super) fn next_least_tried(&self) -> Option<CallId> {
        (0..DEPTHS - 1).find_map(|depth| {
            let listed = self.order[BY_TRIES][depth].first()?;
            self.flows.get(&listed.2)?.all[depth].first().map(|(_, _, call)| *call)
        })
    }

    /// The preset of a call.
    pub(super) fn preset(&self, call: CallId) -> Option<Preset> {
        self.calls.get(&call).map(|waiting| waiting.preset)
    }

    /// The first calls in the order of their turns as it stands, for a person to see. It costs more than a logarithm.
    pub(super) fn shown(&self, most: usize) -> Vec<&Waiting> {
        if most == 0 {
            return Vec::new();
        }
        let mut calls: Vec<_> = self.calls.values().collect();
        calls.sort_by_cached_key(|waiting| {
            let flow = self.flows.get(&waiting.session);
            let (load, sent) = flow.map_or((0, Moment::ZERO), |flow| (flow.session.load, flow.sent));
            let late = GIVES_WAY.mul_f64(load as f64 / 1000.0);
            if self.by_load {
                (load, waiting.rank.max(sent), waiting.call)
            } else {
                (0, waiting.rank + late, waiting.call)
            }
        });
        calls.truncate(most);
        calls
    }
}

/// Takes out the first whose moment has come.
fn due(later: &mut BTreeSet<(Moment, CallId)>, now: Moment) -> Option<CallId> {
    later.first().filter(|(at, _)| *at <= now)?;
    later.pop_first().map(|(_, call)| call)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::sessions::Sessions;

    const fn call(number: u64, session: u64, rank: Moment) -> Waiting {
        Waiting {
            call: CallId(number),
            session,
            rank,
            deadline: None,
            preset: Preset::Interactive,
            weight: 1000,
            sends: 0,
            budget: None,
            tries: 0,
            not_before: Moment::ZERO,
            floor: Moment::ZERO,
            streams: true,
            plain: false,
        }
    }

    /// One place, a session with many calls, and two that come back with one as soon as theirs has ended: each has its
    /// turn, and nobody has two of them while another one waits.
    #[test]
    fn at_a_single_place_sessions_take_turns() {
        let at = |second: u64| Moment::after_start(Duration::from_secs(second));
        let half = Duration::from_millis(500);
        let (mut line, mut sessions) = (Line::new(true), Sessions::default());
        for number in 0..10 {
            line.push(call(number, 1, at(0)), Session::default(), at(0));
        }
        line.push(call(10, 2, at(1)), Session::default(), at(1));
        line.push(call(11, 3, at(2)), Session::default(), at(2));
        let mut order = Vec::new();
        for second in 3..12 {
            let (_, next) = line.next().unwrap();
            let sent = line.remove(next).unwrap();
            let session = sent.session;
            order.push(session);
            let _news = sessions.sent(session, sent.weight, at(second));
            line.session_changed(session, sessions.get(session));
            // It has ended before the next second.
            sessions.ended(session, sent.weight);
            line.session_changed(session, sessions.get(session));
            if session > 1 {
                let back = at(second) + half;
                line.push(call(100 + second, session, back), sessions.get(session), back);
            }
        }
        assert_eq!(order, [1, 2, 3, 1, 2, 3, 1, 2, 3]);
    }
}
