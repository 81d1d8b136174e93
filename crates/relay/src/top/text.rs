//! What is read line by line: the help, and a call with its timeline. Pure.

use std::time::Duration;

use relay_core::Lang;

use super::rows::{Doing, Row};
use crate::history::record::{
    CallRecord, ClosedRecord, FailedRecord, SendRecord, Tokens, WaitRecord, WaitWhy,
};
use crate::terminal;
use crate::why;
use crate::words::{top as words, top_call as of_call};

/// The columns of a time in the timeline, which begins with a space.
const TIME: usize = 10;

/// A span that has passed, in one unit.
pub(super) fn span(lang: Lang, span: Duration) -> String {
    let whole = span.as_secs();
    match whole {
        0..60 => words::seconds(lang, &whole.to_string()),
        60..3600 => words::minutes(lang, whole / 60),
        3600..172_800 => words::hours(lang, whole / 3600),
        _ => words::days(lang, whole / 86_400),
    }
}

/// A span that is to pass: as long as any of a second is left, it is not over.
pub(super) fn left(lang: Lang, left: Duration) -> String {
    span(lang, Duration::from_secs(left.as_secs() + u64::from(left.subsec_nanos() > 0)))
}

/// A span of a call, to the hundredth where it is short.
fn exactly(lang: Lang, ms: u64) -> String {
    match ms {
        0..10_000 => words::seconds(lang, &format!("{}.{:02}", ms / 1000, ms % 1000 / 10)),
        10_000..60_000 => words::seconds(lang, &format!("{}.{}", ms / 1000, ms % 1000 / 100)),
        _ => span(lang, Duration::from_millis(ms)),
    }
}

/// When something happened in a call: minutes and seconds, where it is long.
fn at(lang: Lang, ms: u64) -> String {
    match ms {
        0..60_000 => exactly(lang, ms),
        60_000..3_600_000 => format!("{}:{:02}", ms / 60_000, ms / 1000 % 60),
        _ => format!("{}:{:02}:{:02}", ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60),
    }
}

fn bytes(count: u64) -> String {
    let tenths = |unit: u64| format!("{}.{}", count / unit, count % unit * 10 / unit);
    match count {
        0..1000 => format!("{count} B"),
        1000..1_000_000 => format!("{} kB", tenths(1000)),
        1_000_000..1_000_000_000 => format!("{} MB", tenths(1_000_000)),
        _ => format!("{} GB", tenths(1_000_000_000)),
    }
}

/// How a call ended. A word that is not known is of another version.
pub(super) fn outcome(lang: Lang, outcome: &str) -> String {
    match outcome {
        "served" => words::served(lang),
        "passed" => words::passed(lang),
        "returned" => words::returned(lang),
        "refused" => words::refused(lang),
        "gave_up" => words::gave_up(lang),
        "broken" => words::broken(lang),
        "cut" => words::cut(lang),
        "client_left" => words::client_left(lang),
        other => other.to_owned(),
    }
}

fn broken(lines: &[String], columns: usize) -> Vec<String> {
    let columns = columns.max(8);
    lines
        .iter()
        .flat_map(|line| terminal::wrapped(line, columns).split('\n').map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

/// The keys, and what is seen.
pub(super) fn help(lang: Lang, columns: usize) -> Vec<String> {
    // Behind a space, what is broken stands below the beginning of its text.
    let lines: Vec<_> = words::help(lang).lines().map(|line| format!(" {line}")).collect();
    broken(&lines, columns)
}

/// A call that is kept no longer.
pub(super) fn gone(lang: Lang, call: u64, columns: usize) -> Vec<String> {
    broken(&[of_call::gone(lang, &format!("c{call}"))], columns)
}

/// A call with its timeline.
pub(super) fn details(lang: Lang, row: &Row<'_>, columns: usize) -> Vec<String> {
    let record = row.record;
    let mut lines = about(lang, row);
    lines.push(String::new());
    let mut told = Timeline { lang, lines: Vec::new() };
    told.line(0, &of_call::accepted(lang));
    if let Some(spent) = why::inherited(lang, record) {
        told.more(&of_call::inherited(lang, &spent));
    }
    let mut before = 0;
    for send in &record.sends {
        let between = send.send.saturating_sub(before + 1);
        if record.left_out > 0 && between > 0 {
            told.more(&of_call::left_out(lang, between));
        }
        before = send.send;
        told.send(send, row);
    }
    if let Some(at) = record.committed {
        told.line(at, &of_call::committed(lang));
    }
    if let Some(closed) = &record.closed {
        told.end(closed);
    }
    lines.extend(told.lines);
    broken(&lines, columns)
}

/// What a call is.
fn about(lang: Lang, row: &Row<'_>) -> Vec<String> {
    let CallRecord { client, dialect, operation, transport, upstream, profile, lane, .. } = row.record;
    let what = [dialect.as_str(), operation, transport].join(&of_call::comma(lang));
    let id = format!("c{}", row.record.call);
    let model = row.record.model.as_deref().unwrap_or("-");
    let mut lines = vec![
        of_call::call(lang, &id, client, &what, &span(lang, row.age)),
        of_call::to(lang, model, upstream, profile, lane),
    ];
    lines.extend(why::pool(lang, row.record));
    lines.extend(row.record.request_id.as_deref().map(|id| of_call::request_id(lang, id)));
    lines
}

struct Timeline {
    lang: Lang,
    lines: Vec<String>,
}

impl Timeline {
    fn line(&mut self, when: u64, what: &str) {
        self.lines.push(format!("{}  {what}", terminal::padded_left(&at(self.lang, when), TIME)));
    }

    /// More of what was said last.
    fn more(&mut self, what: &str) {
        self.lines.push(format!("{}{what}", " ".repeat(TIME + 2)));
    }

    fn send(&mut self, send: &SendRecord, row: &Row<'_>) {
        let lang = self.lang;
        if let Some(wait) = &send.wait {
            self.line(wait.began, &self.waits(wait, row));
        }
        if let Some(moved) = &send.moved {
            let said = why::moved(lang, moved);
            match send.began.or_else(|| send.wait.as_ref().map(|wait| wait.began)) {
                Some(at) => self.line(at, &said),
                None => self.more(&said),
            }
        }
        if let Some(began) = send.began {
            let say = if send.may_run_twice { of_call::send_twice } else { of_call::send };
            self.line(began, &say(lang, send.send));
        }
        if let (Some(head), Some(status)) = (send.head, send.status) {
            let said = match &send.request_id {
                Some(id) => of_call::head_named(lang, status, id),
                None => of_call::head(lang, status),
            };
            self.line(head, &said);
        }
        if let Some(failed) = &send.failed {
            self.line(failed.at, &fault(lang, failed));
            if let Some(spent) = failed.tokens {
                self.more(&tokens(lang, spent));
            }
        }
    }

    fn waits(&self, wait: &WaitRecord, row: &Row<'_>) -> String {
        let lang = self.lang;
        let why = match (wait.why, wait.waiting) {
            (WaitWhy::Told, _) => of_call::told(lang),
            (WaitWhy::Backoff, _) => of_call::backoff(lang),
            (WaitWhy::Line, None) => of_call::line(lang),
            // It is one of those that wait.
            (WaitWhy::Line, Some(waiting @ 2..)) => of_call::line_of(lang, waiting - 1),
            (WaitWhy::Line, Some(_)) => of_call::line_alone(lang),
            (WaitWhy::Parked, _) => of_call::parked(lang),
            (WaitWhy::Circuit, _) => of_call::circuit(lang),
            (WaitWhy::Credential, _) => of_call::credential(lang),
            (WaitWhy::Cut, _) => of_call::cut(lang),
        };
        let mut said = match (wait.took, row.doing, wait.planned) {
            (Some(took), _, _) => of_call::waited(lang, &exactly(lang, took), &why),
            (None, Doing::Waits(Some(left)), _) => of_call::waits_for(lang, &self::left(lang, left), &why),
            (None, Doing::InLine(_), _) | (None, _, None) => of_call::waits(lang, &why),
            (None, _, Some(planned)) => of_call::waits_for(lang, &exactly(lang, planned), &why),
        };
        if wait.notices > 0 {
            said += &of_call::notices(lang, wait.notices);
        }
        said
    }

    fn end(&mut self, closed: &ClosedRecord) {
        let lang = self.lang;
        let status = closed.status.map(|status| status.to_string());
        let why: Vec<_> = closed.why.iter().chain(&status).map(String::as_str).collect();
        let why = if why.is_empty() {
            String::new()
        } else {
            of_call::ended_by(lang, &why.join(&of_call::comma(lang)))
        };
        self.line(closed.took, &format!("{}{why}", outcome(lang, &closed.outcome)));
        let waited = exactly(lang, closed.waited);
        self.more(&of_call::took(lang, closed.sends, &waited, &bytes(closed.received), &bytes(closed.sent)));
        if let Some(spent) = closed.tokens {
            self.more(&tokens(lang, spent));
        }
        if closed.maybe_billed_twice > 0 {
            self.more(&of_call::twice(lang, closed.maybe_billed_twice));
        }
    }
}

fn fault(lang: Lang, failed: &FailedRecord) -> String {
    let mut more: Vec<String> = failed.evidence.iter().cloned().collect();
    more.extend(failed.code.as_deref().map(|code| of_call::code(lang, code)));
    more.extend(failed.rule.as_deref().map(|rule| of_call::rule(lang, rule)));
    more.extend(failed.told.map(|told| of_call::asks(lang, &exactly(lang, told))));
    match more.as_slice() {
        [] => of_call::failed_plainly(lang, &failed.fault),
        more => of_call::failed(lang, &failed.fault, &more.join(&of_call::comma(lang))),
    }
}

fn tokens(lang: Lang, spent: Tokens) -> String {
    of_call::tokens(lang, spent.input, spent.cached, spent.output)
}
