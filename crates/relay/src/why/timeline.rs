//! The lines of a call: who asked whom, then one for each thing that happened, with the time since it was accepted.

use relay_core::call::PARKED;
use relay_core::{Evidence, Lang};

use super::fold::{Group, groups};
use super::{Known, fault};
use crate::history::record::{
    CallRecord, ClosedRecord, FailedRecord, MovedRecord, SendRecord, Tokens, WaitRecord, WaitWhy, WayRecord,
};
use crate::terminal::padded_left;
use crate::upstream::DIRECT;
use crate::words::{span, why as words};

/// The columns of the time.
const TIME: usize = 9;

/// All lines.
pub(super) fn lines(lang: Lang, call: &CallRecord, known: Known<'_>) -> String {
    let mut page = Page { lang, known, opened: call.opened, text: String::new() };
    page.head(call);
    let mut told = None;
    let mut last = 0;
    for group in groups(call) {
        let (of, end) = match group {
            Group::One(of) => (of, of),
            Group::Same([of, .., end]) => (of, end),
            Group::Same(_) => continue,
        };
        if call.left_out > 0 && of.send > last + 1 {
            page.detail(&words::left_out(lang, call.left_out));
        }
        last = end.send;
        match group {
            Group::One(of) => {
                if let Some(wait) = &of.wait {
                    page.wait(wait, told, &call.profile);
                }
                if let Some(moved) = &of.moved {
                    page.moved(moved, of);
                }
                page.send(of, call);
            }
            Group::Same(same) => page.same(same),
        }
        told = end.failed.as_ref().and_then(|failed| failed.told);
    }
    if let Some(at) = call.committed {
        page.at(at, &words::begins(lang));
    }
    if let Some(closed) = &call.closed {
        page.closed(closed);
    }
    page.text
}

struct Page<'a> {
    lang: Lang,
    known: Known<'a>,
    /// When the call was accepted.
    opened: u64,
    text: String,
}

impl Page<'_> {
    fn line(&mut self, text: &str) {
        self.text += text;
        self.text.push('\n');
    }

    /// Something that happened then.
    fn at(&mut self, ms: u64, text: &str) {
        let time = padded_left(&span::fine(self.lang, ms), TIME);
        self.line(&format!("{time}  {text}"));
    }

    /// More about it.
    fn detail(&mut self, text: &str) {
        self.line(&format!("{}  {text}", " ".repeat(TIME + 2)));
    }

    fn head(&mut self, call: &CallRecord) {
        let (lang, known) = (self.lang, self.known);
        let run = known.kind.map(|kind| words::of_run(lang, kind));
        self.line(&words::header(lang, &call.name(), &run.unwrap_or_default(), known.when));
        let who = match &call.model {
            Some(model) => words::who_for(lang, &call.client, &call.upstream, model),
            None => words::who(lang, &call.client, &call.upstream),
        };
        self.line(&words::how(lang, &who, &call.operation, &call.dialect, &call.transport));
        self.line(&words::profile(lang, &call.profile, &call.lane));
        if let Some(said) = pool(lang, call) {
            self.line(&said);
        }
        if let Some(id) = &call.request_id {
            self.line(&words::client_id(lang, id));
        }
        if let Some(spent) = inherited(lang, call) {
            self.line(&words::inherited(lang, &spent));
        }
        self.text.push('\n');
    }

    /// `told`: how long the service asked to wait before.
    fn wait(&mut self, wait: &WaitRecord, told: Option<u64>, profile: &str) {
        let lang = self.lang;
        let told = told.map(|told| span::fine(lang, told));
        // It is one of those that wait.
        let line = || match wait.waiting {
            Some(waiting @ 2..) => words::in_line_with(lang, waiting as u64 - 1),
            Some(_) | None => words::in_line(lang),
        };
        let why = match (wait.why, told) {
            (WaitWhy::Told, Some(told)) => words::as_told(lang, &told),
            (WaitWhy::Told, None) => words::as_told_by_service(lang),
            (WaitWhy::Backoff, _) => words::by_backoff(lang, profile),
            (WaitWhy::Line, Some(told)) => words::not_before(lang, &line(), &told),
            (WaitWhy::Line, None) => line(),
            (WaitWhy::Parked, _) => words::parked(lang, &self.until(wait)),
            (WaitWhy::Circuit, _) => match wait.waiting {
                Some(_) => words::cut_off_in_line(lang, &line()),
                None => words::cut_off(lang),
            },
            (WaitWhy::Credential, _) => words::renewing(lang),
            (WaitWhy::Cut, _) => words::after_cut(lang),
        };
        let text = match wait.took {
            Some(took) => words::waited(lang, &span::fine(lang, took), &why),
            None => words::waits(lang, &why),
        };
        self.at(wait.began, &text);
        if wait.notices > 0 {
            self.detail(&words::notices(lang, wait.notices));
        }
    }

    fn moved(&mut self, record: &MovedRecord, of: &SendRecord) {
        let text = moved(self.lang, record);
        let at = of.began.or_else(|| of.wait.as_ref().map(|wait| wait.began));
        match at {
            Some(at) => self.at(at, &text),
            None => self.detail(&text),
        }
    }

    /// Sends that failed like the one that was told last, with the waits before them.
    fn same(&mut self, same: &[SendRecord]) {
        let (Some(first), Some(last)) = (same.first(), same.last()) else { return };
        let lang = self.lang;
        let began = first.wait.as_ref().map(|wait| wait.began).or(first.began).unwrap_or(0);
        let ended = last.failed.as_ref().map_or(began, |failed| failed.at);
        let waits = || same.iter().filter_map(|of| of.wait.as_ref()?.took);
        let span = |ms| span::fine(lang, ms);
        let all = span(ended.saturating_sub(began));
        self.at(began, &words::same(lang, first.send, last.send, same.len() as u64, &all));
        if let (Some(least), Some(most)) = (waits().min(), waits().max()) {
            self.detail(&words::waits_between(lang, &span(least), &span(most)));
        }
    }

    /// When it was to be over.
    fn until(&self, wait: &WaitRecord) -> String {
        let planned = wait.planned.unwrap_or(0);
        match self.known.zone {
            Some(zone) => zone.shown(self.opened.saturating_add(wait.began).saturating_add(planned)),
            None => words::from_then(self.lang, &span::fine(self.lang, planned)),
        }
    }

    fn send(&mut self, of: &SendRecord, call: &CallRecord) {
        let lang = self.lang;
        let Some(began) = of.began else { return };
        let after = |at: u64| span::fine(lang, at.saturating_sub(began));
        let heard = of.head.or_else(|| of.failed.as_ref().map(|failed| failed.at));
        let text = match (of.status, heard, &of.failed) {
            (Some(status), Some(at), _) => words::answered(lang, of.send, status, &after(at)),
            (None, _, Some(failed)) => words::unanswered(lang, of.send, &after(failed.at)),
            (None, ..) | (_, None, _) if call.closed.is_none() => words::under_way(lang, of.send),
            (None, ..) | (_, None, _) => words::nothing_came(lang, of.send),
        };
        self.at(began, &text);
        if let Some(way) = &of.way {
            self.way(way);
        }
        if of.may_run_twice {
            self.detail(&words::second_run(lang));
        }
        if let Some(failed) = &of.failed {
            let late = of.head.filter(|head| failed.at > head + 50).map(|_| after(failed.at));
            self.failed(failed, late);
        }
        // What the service calls it is for those who ask the service.
        if let Some(id) = of.request_id.as_ref().filter(|id| call.request_id.as_ref() != Some(id)) {
            self.detail(&words::upstream_id(lang, id));
        }
    }

    fn way(&mut self, way: &WayRecord) {
        let lang = self.lang;
        let route = |by: &str| if by == DIRECT { words::direct(lang) } else { words::by_proxy(lang, by) };
        for missed in &way.missed {
            self.detail(&words::way_missed(lang, &route(&missed.by), &missed.why));
        }
        self.detail(
            &way.by.as_deref().map_or_else(|| words::no_way(lang), |by| words::went(lang, &route(by))),
        );
    }

    fn failed(&mut self, failed: &FailedRecord, late: Option<String>) {
        let lang = self.lang;
        let meaning = fault(&failed.fault).map_or(failed.fault.as_str(), |fault| fault.meaning_in(lang));
        let what = match &failed.code {
            Some(code) => words::failed_with(lang, meaning, &failed.fault, code),
            None => words::failed(lang, meaning, &failed.fault),
        };
        self.detail(&match late {
            Some(late) => words::failed_after(lang, &what, &late),
            None => what,
        });
        if let Some(rule) = &failed.rule {
            self.detail(&words::by_rule(lang, rule));
        }
        let means = match &failed.evidence {
            Some(name) => match meaning_of(lang, name) {
                Some(meaning) => words::evidence(lang, name, &meaning),
                None => name.clone(),
            },
            None => words::is_final(lang),
        };
        self.detail(&means);
        if let Some(tokens) = failed.tokens {
            self.tokens(tokens);
        }
    }

    fn tokens(&mut self, tokens: Tokens) {
        let [input, cached, output] = [tokens.input, tokens.cached, tokens.output].map(span::grouped);
        self.detail(&words::tokens(self.lang, &input, &cached, &output));
    }

    fn closed(&mut self, closed: &ClosedRecord) {
        let lang = self.lang;
        let told = match closed.outcome.as_str() {
            "served" => words::told_served(lang),
            "passed" => words::told_passed(lang),
            "returned" | "refused" | "gave_up" if closed.status.is_none() => words::told_nothing(lang),
            "returned" => words::told_returned(lang),
            "refused" => words::told_refused(lang),
            "gave_up" => words::told_gave_up(lang),
            "broken" => words::told_broken(lang),
            "cut" => words::told_cut(lang),
            "client_left" => words::told_client_left(lang),
            _ => words::told_otherwise(lang),
        };
        let mut told = words::over(lang, &closed.outcome, &told);
        if let Some(status) = closed.status {
            told = words::with_status(lang, &told, status);
        }
        if let Some(why) = &closed.why {
            told = words::because(lang, &told, why, &reason(lang, why));
        }
        self.at(closed.took, &told);
        let bytes = |count| words::bytes(lang, &span::grouped(count));
        let waited = span::fine(lang, closed.waited);
        self.detail(&words::sums(lang, closed.sends, &waited, &bytes(closed.received), &bytes(closed.sent)));
        if let Some(tokens) = closed.tokens {
            self.tokens(tokens);
        }
    }
}

/// What a kind of evidence says.
fn meaning_of(lang: Lang, evidence: &str) -> Option<String> {
    let evidence = Evidence::ALL.into_iter().find(|known| known.name() == evidence)?;
    Some(match evidence {
        Evidence::NeverSent => words::never_sent(lang),
        Evidence::Refused => words::refused(lang),
        Evidence::Failed => words::failed_quickly(lang),
        Evidence::MaybeRan => words::maybe_ran(lang),
        Evidence::NoAnswer => words::no_answer(lang),
        Evidence::Committed => words::committed(lang),
    })
}

/// Where a call goes on, and why.
pub(crate) fn moved(lang: Lang, moved: &MovedRecord) -> String {
    let why = match moved.why.as_str() {
        "failed" => words::left_failed(lang),
        "shut" => words::left_shut(lang),
        "circuit_open" => words::left_circuit_open(lang),
        "credential" => words::left_credential(lang),
        "preferred" => words::left_preferred(lang),
        other => other.to_owned(),
    };
    match &moved.model {
        Some(model) => words::moved_for(lang, &moved.upstream, model, &why),
        None => words::moved(lang, &moved.upstream, &why),
    }
}

/// What earlier calls of the same client had spent, which counts for this one.
pub(crate) fn inherited(lang: Lang, call: &CallRecord) -> Option<String> {
    let parts = [
        (call.inherited_sends > 0).then(|| words::inherited_sends(lang, call.inherited_sends)),
        (call.inherited_failed > 0).then(|| words::inherited_failed(lang, call.inherited_failed)),
        (call.inherited_resends > 0).then(|| words::inherited_resends(lang, call.inherited_resends)),
    ];
    parts.into_iter().flatten().reduce(|all, part| words::both(lang, &all, &part))
}

/// Who could serve a call that went to a pool.
pub(crate) fn pool(lang: Lang, call: &CallRecord) -> Option<String> {
    let pool = call.pool.as_deref()?;
    Some(match &call.bound {
        None => words::pool(lang, pool),
        Some(bound) => words::bound(lang, pool, &call.upstream, &bond(lang, bound)),
    })
}

/// What binds a call to one upstream of its pool.
fn bond(lang: Lang, bound: &str) -> String {
    match bound {
        "operation" => words::bound_by_operation(lang),
        "unreadable" => words::bound_unread(lang),
        member => words::bound_by_member(lang, member),
    }
}

/// Why the relay stopped, or refused; what is not known is its name.
pub(super) fn reason(lang: Lang, why: &str) -> String {
    match why {
        "sends_spent" => words::sends_spent(lang),
        "patience_spent" => words::patience_spent(lang),
        "told_to_wait_longer" => words::told_to_wait_longer(lang),
        "circuits_open" => words::circuits_open(lang),
        "stopping" => words::stopping(lang),
        "may_have_run" => words::maybe_ran(lang),
        "still_running" => words::no_answer(lang),
        "certificate" => words::certificate(lang),
        "proxy" => words::proxy(lang),
        "unfit" => words::unfit(lang),
        "credential" => words::credential(lang),
        PARKED => words::not_sent(lang),
        other => other.to_owned(),
    }
}
