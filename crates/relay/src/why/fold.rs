//! Sends that failed one like the other: told once, and then how often. Pure.

use crate::history::record::{CallRecord, SendRecord};

/// So many sends after one like them are told in a line.
const LEAST: usize = 3;

/// The sends of a call in groups: one by itself, or all those that are like the one before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Group<'a> {
    /// It is told.
    One(&'a SendRecord),
    /// They are like the one that was told last.
    Same(&'a [SendRecord]),
}

/// All groups, in their order.
pub(super) fn groups(call: &CallRecord) -> Vec<Group<'_>> {
    let mut all = Vec::new();
    let mut rest = call.sends.as_slice();
    while let Some((first, after)) = rest.split_first() {
        all.push(Group::One(first));
        let like = after
            .iter()
            .zip(rest)
            .take_while(|(of, before)| is_like(of, first) && of.send == before.send + 1);
        let count = like.count();
        if count >= LEAST {
            let (same, others) = after.split_at(count);
            all.push(Group::Same(same));
            rest = others;
        } else {
            rest = after;
        }
    }
    all
}

/// Whether it failed like this one, and nothing else is to be told of it.
fn is_like(of: &SendRecord, first: &SendRecord) -> bool {
    let (Some(failed), Some(as_first)) = (&of.failed, &first.failed) else { return false };
    let told = |failed: &crate::history::record::FailedRecord| {
        (
            failed.fault.clone(),
            failed.evidence.clone(),
            failed.code.clone(),
            failed.rule.clone(),
            failed.tokens,
        )
    };
    of.began.is_some()
        && of.status == first.status
        && told(failed) == told(as_first)
        && !of.may_run_twice
        && of.moved.is_none()
        && of.way == first.way
        && of.wait.as_ref().is_none_or(|wait| wait.notices == 0)
}
