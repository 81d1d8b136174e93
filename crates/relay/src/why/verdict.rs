//! The last line: what happened in one or two sentences, and whose doing it was.

use relay_core::call::{PARKED, Stop, Why};
use relay_core::event::Outcome;
use relay_core::failure::Bar;
use relay_core::{Fault, Lang};

use super::fault;
use super::timeline::{inherited, reason};
use crate::history::record::{CallRecord, ClosedRecord, SendRecord, State, WaitWhy};
use crate::words::{span, verdict as words, why as parts};

/// A wait below this is none to speak of.
const AT_ONCE_MS: u64 = 50;

/// What happened, and whose doing it was; `run_ended`: the relay that had the call has stopped.
#[must_use]
pub fn verdict(lang: Lang, call: &CallRecord, run_ended: bool) -> String {
    let Some(closed) = &call.closed else { return open(lang, call, run_ended) };
    let outcome = Outcome::ALL.into_iter().find(|outcome| outcome.name() == closed.outcome);
    let was = last_fault(call).map(|name| was(lang, name));
    let waited = span::fine(lang, closed.waited);
    let because = closed.why.as_ref().map(|why| reason(lang, why));
    let said = match (outcome, was) {
        (Some(Outcome::Served), was) => served(lang, call, closed, was),
        (Some(Outcome::Passed), Some(was)) if closed.why.as_deref() == Some(PARKED) => {
            words::passed_unsent(lang, &was)
        }
        (Some(Outcome::Passed), Some(was)) => words::passed(lang, &was),
        (Some(Outcome::Passed | Outcome::Returned), None) => words::passed_alone(lang),
        // The profile of a call says so by this name.
        (Some(Outcome::Returned), Some(was)) if call.profile == "off" => {
            words::returned_untouched(lang, &was)
        }
        (Some(Outcome::Returned), Some(was)) => words::returned(lang, &was),
        // No service was asked, so none is to blame.
        (Some(Outcome::Refused), _)
            if closed.sends == 0 && closed.why.as_deref() == Some(Why::Barred(Bar::Credential).name()) =>
        {
            words::refused_without_credential(lang)
        }
        (Some(Outcome::Refused), Some(was)) => {
            words::not_again(lang, &was, &because.unwrap_or_else(|| parts::maybe_ran(lang)))
        }
        (Some(Outcome::Refused), None) => words::not_at_all(lang),
        (Some(Outcome::GaveUp), was) => {
            let because = because.unwrap_or_else(|| parts::patience_spent(lang));
            match was {
                _ if closed.sends == 0 && waited_for(call) == Some(WaitWhy::Credential) => {
                    words::gave_up_renewing(lang, &waited)
                }
                Some(was) => words::gave_up(lang, &was, closed.sends, &waited, &because),
                None if closed.why.as_deref() == Some(Stop::CircuitsOpen.name()) || was_cut_off(call) => {
                    words::gave_up_cut_off(lang, &waited, &because)
                }
                None if closed.why.as_deref() == Some(Stop::SendsSpent.name()) => {
                    words::gave_up_unsent(lang, &because)
                }
                None => words::gave_up_in_line(lang, &waited, &because),
            }
        }
        (Some(Outcome::Broken), _) => words::broken(lang, &parts::bytes(lang, &span::grouped(closed.sent))),
        (Some(Outcome::Cut), was) => {
            let at_end = closed.last_fault.as_ref().map(|name| self::was(lang, name));
            let was = at_end.or(was).unwrap_or_else(|| words::was(lang, Fault::ServerFailed).to_owned());
            let cut = if call.committed.is_some() { words::cut } else { words::cut_before };
            cut(lang, &was)
        }
        (Some(Outcome::ClientLeft), _) => client_left(lang, call, closed),
        (None, _) => words::otherwise(lang, &closed.outcome),
    };
    let said = match (outcome, answered_by(lang, call)) {
        (Some(Outcome::Served), Some((by, instead_of))) => words::answered_by(lang, &said, &by, &instead_of),
        _ => said,
    };
    let said = match inherited(lang, call).filter(|_| outcome.is_some_and(was_bounded)) {
        Some(spent) => words::with_inherited(lang, &said, &spent),
        None => said,
    };
    if closed.maybe_billed_twice > 0 { words::maybe_twice(lang, &said) } else { said }
}

/// Whether its budget may be why it ended so.
const fn was_bounded(outcome: Outcome) -> bool {
    match outcome {
        Outcome::Returned | Outcome::Refused | Outcome::GaveUp => true,
        Outcome::Served | Outcome::Passed | Outcome::Broken | Outcome::Cut | Outcome::ClientLeft => false,
    }
}

/// Who had the call at last, and who was to be asked first, where that is not the same.
fn answered_by(lang: Lang, call: &CallRecord) -> Option<(String, String)> {
    let ((upstream, model), (first, asked)) = (call.last_at(), call.first_at());
    match (model.zip(asked).filter(|(model, asked)| model != asked), upstream != first) {
        (Some((model, asked)), true) => {
            Some((words::at(lang, model, upstream), words::at(lang, asked, first)))
        }
        (Some((model, asked)), false) => Some((model.to_owned(), asked.to_owned())),
        (None, true) => Some((upstream.to_owned(), first.to_owned())),
        (None, false) => None,
    }
}

fn served(lang: Lang, call: &CallRecord, closed: &ClosedRecord, was: Option<String>) -> String {
    let waited = span::fine(lang, closed.waited);
    let first = call.sends.first().and_then(|of| of.wait.as_ref());
    match was {
        Some(was) if closed.waited < AT_ONCE_MS => words::saved_at_once(lang, &was),
        Some(was) => words::saved(lang, &was, &waited),
        None if closed.waited < AT_ONCE_MS && went_around(call) => words::went_around(lang),
        None if closed.waited < AT_ONCE_MS && call.first_at() != call.last_at() => words::went_on(lang),
        None if closed.waited < AT_ONCE_MS => words::untroubled(lang),
        None if first.is_some_and(|wait| wait.why == WaitWhy::Cut) => words::resumed(lang, &waited),
        None if was_cut_off(call) => words::held_cut_off(lang, &waited),
        None if waited_for(call) == Some(WaitWhy::Credential) => words::held_renewing(lang, &waited),
        None => words::held_back(lang, &waited),
    }
}

/// What it waited for the last time.
fn waited_for(call: &CallRecord) -> Option<WaitWhy> {
    call.sends.iter().rev().find_map(|of| of.wait.as_ref()).map(|wait| wait.why)
}

/// Whether that was a breaker.
fn was_cut_off(call: &CallRecord) -> bool {
    waited_for(call) == Some(WaitWhy::Circuit)
}

/// Whether a send tried a way in vain, and went another one.
fn went_around(call: &CallRecord) -> bool {
    call.sends.iter().filter_map(|of| of.way.as_ref()).any(|way| way.by.is_some() && !way.missed.is_empty())
}

fn client_left(lang: Lang, call: &CallRecord, closed: &ClosedRecord) -> String {
    let took = span::fine(lang, closed.took);
    match call.sends.last() {
        _ if call.committed.is_some() => words::left_answering(lang, &took),
        Some(SendRecord { began: None, wait: Some(_), .. }) => match last_fault(call) {
            Some(fault) => words::left_waiting(lang, &took, &meaning(lang, fault)),
            None if was_cut_off(call) => words::left_cut_off(lang, &took),
            None if waited_for(call) == Some(WaitWhy::Credential) => words::left_renewing(lang, &took),
            None => words::left_in_line(lang, &took),
        },
        Some(_) => words::left_asking(lang, &took),
        None => words::left_at_once(lang, &took),
    }
}

/// Of a call that has no end.
fn open(lang: Lang, call: &CallRecord, run_ended: bool) -> String {
    match call.state {
        _ if run_ended => words::cut_short(lang),
        State::Opening => words::open_opening(lang),
        State::Sending => words::open_sending(lang),
        State::Waiting => match last_fault(call) {
            Some(fault) => words::open_waiting(lang, &meaning(lang, fault)),
            None if was_cut_off(call) => words::open_cut_off(lang),
            None if waited_for(call) == Some(WaitWhy::Credential) => words::open_renewing(lang),
            None => words::open_in_line(lang),
        },
        State::Streaming => words::open_streaming(lang),
        // A closed one says how.
        State::Closed => words::otherwise(lang, "closed"),
    }
}

/// The last fault that it met.
fn last_fault(call: &CallRecord) -> Option<&str> {
    let failed =
        call.sends.iter().rev().find_map(|of| of.failed.as_ref()).map(|failed| failed.fault.as_str());
    failed.or_else(|| call.closed.as_ref()?.last_fault.as_deref())
}

fn was(lang: Lang, name: &str) -> String {
    fault(name).map_or_else(|| words::was_unknown(lang, name), |fault| words::was(lang, fault).to_owned())
}

fn meaning(lang: Lang, name: &str) -> String {
    fault(name).map_or_else(|| name.to_owned(), |fault: Fault| fault.meaning_in(lang).to_owned())
}
