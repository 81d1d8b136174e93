//! The troubles that there were: all votes for one cause at one place. Pure.
//!
//! The place is a model where the cause is that of a model, and else an upstream. So what goes well elsewhere never hides a
//! trouble, and is never taken for it.

use std::collections::BTreeMap;

use super::Cause;
use super::votes::{FEW, Pages, Vote, cause_of, failed_sends, failures, is_served, went_well};
use crate::history::record::CallRecord;

/// So many calls that are served at once show that a trouble is over.
const CALM: usize = 3;
/// A refusal for good counts so often: whoever asks the same again learns nothing new.
const REPEATS: usize = 2;
/// A model with this share of its sends failed is short, one with less is not.
const SHORT: f64 = 1.0 / 3.0;

/// One trouble.
#[derive(Debug, Clone)]
pub(super) struct Trouble<'a> {
    pub(super) cause: Cause,
    pub(super) upstream: &'a str,
    /// The model, where the cause is that of one.
    pub(super) model: Option<&'a str>,
    pub(super) votes: Vec<Vote<'a>>,
}

/// The troubles that these votes are about, the one that was heard of last first.
pub(super) fn troubles<'a>(votes: &[Vote<'a>]) -> Vec<Trouble<'a>> {
    let mut all: BTreeMap<_, Vec<Vote<'a>>> = BTreeMap::new();
    for vote in votes {
        let model = vote.call.model.as_deref().filter(|_| vote.cause.is_of_a_model());
        all.entry((vote.cause, vote.call.upstream.as_str(), model)).or_default().push(vote.clone());
    }
    let trouble = |((cause, upstream, model), votes)| Trouble { cause, upstream, model, votes };
    let mut all: Vec<_> = all.into_iter().map(trouble).collect();
    all.sort_by_key(|trouble| std::cmp::Reverse(times(&trouble.votes).1));
    all
}

impl Trouble<'_> {
    /// How much speaks for it.
    pub(super) fn points(&self) -> f64 {
        let mut points: Vec<_> = self.votes.iter().map(|vote| vote.points).collect();
        points.sort_by(|one, other| other.total_cmp(one));
        let counted = if self.cause.is_for_good() { REPEATS } else { points.len() };
        points.into_iter().take(counted).sum()
    }

    /// Few failures, all overcome, and none going on.
    pub(super) fn is_trifle(&self) -> bool {
        self.votes.iter().all(|vote| is_served(vote.call))
            && self.votes.iter().map(|vote| failed_sends(vote.call)).sum::<usize>() < FEW
    }

    /// Calls that went the same way afterwards were all served at once.
    pub(super) fn is_over(&self, calls: &[CallRecord]) -> bool {
        self.cause.passes() && self.since(calls) >= CALM
    }

    /// The calls that were served at once since, to the same place.
    pub(super) fn since(&self, calls: &[CallRecord]) -> usize {
        let Some(last) = self.votes.iter().max_by_key(|vote| vote.at) else { return 0 };
        let is_same = |call: &&CallRecord| {
            call.opened >= last.at && call.upstream == last.call.upstream && call.model == last.call.model
        };
        calls.iter().filter(is_same).filter(|call| went_well(call)).count()
    }
}

/// When the first of these calls was accepted, and when the last one ended.
pub(super) fn times(votes: &[Vote<'_>]) -> (u64, u64) {
    let first = votes.iter().map(|vote| vote.call.opened).min().unwrap_or(0);
    (first, votes.iter().map(|vote| vote.at).max().unwrap_or(0))
}

/// How a model fares, as far as its service's capacity goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Health {
    /// Calls that say something about it.
    pub(super) calls: u64,
    /// Those that were served at once.
    pub(super) well: u64,
    /// Sends that failed for want of capacity.
    failed: u64,
    /// Calls that were served, at once or in the end.
    served: u64,
}

impl Health {
    /// Adds a call. One that is open and in no trouble, or that failed for a reason of its own, such as a model that is not
    /// there or a quota that is spent, says nothing.
    pub(super) fn add(&mut self, call: &CallRecord, pages: &Pages) {
        let is_page = pages.contains(&call.upstream);
        let is_short = |status, failed| cause_of(failed, status, is_page) == Cause::ModelAtCapacity;
        let failed = failures(call).filter(|(of, failed)| is_short(of.status, failed)).count();
        if failed == 0 && !went_well(call) {
            return;
        }
        self.calls += 1;
        self.well += u64::from(went_well(call));
        self.failed += failed as u64 + if failed > 0 { u64::from(call.left_out) } else { 0 };
        self.served += u64::from(is_served(call));
    }

    /// The share of its sends that failed.
    pub(super) fn share(&self) -> f64 {
        self.failed as f64 / (self.failed + self.served).max(1) as f64
    }

    /// Whether it is short of capacity much as this one is.
    pub(super) fn is_short_like(&self, other: &Self) -> bool {
        self.share() >= SHORT.min(other.share()) && self.share() * 2.0 >= other.share()
    }
}
