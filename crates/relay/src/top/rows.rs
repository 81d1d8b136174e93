//! One call as a line of the list: what it does now, and what it took so far. And which calls are listed, in which order.

use std::collections::BTreeMap;
use std::time::Duration;

use relay_core::{Lang, Moment};

use super::page::{OpenCall, Page, number, span};
use crate::history::record::{CallRecord, State};
use crate::words::top as words;

/// The present: on a time line that never jumps, and as the time of day in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// When it is.
    pub at: Moment,
    /// The time of day.
    pub wall: u64,
}

/// Which calls are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum View {
    #[default]
    All,
    Open,
    Faults,
    Lost,
}

/// In which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Sort {
    #[default]
    OpenFirst,
    Newest,
    Sends,
    Waited,
    Model,
}

impl Sort {
    pub(super) const fn next(self) -> Self {
        match self {
            Self::OpenFirst => Self::Newest,
            Self::Newest => Self::Sends,
            Self::Sends => Self::Waited,
            Self::Waited => Self::Model,
            Self::Model => Self::OpenFirst,
        }
    }
}

/// What a call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing<'a> {
    Opening,
    Sending,
    /// It waits, for so long where that is known.
    Waits(Option<Duration>),
    /// It has this place in its lane's line.
    InLine(u64),
    Streaming,
    /// It ended so.
    Ended(&'a str),
}

impl Doing<'_> {
    pub(super) fn said(self, lang: Lang) -> String {
        match self {
            Self::Opening => words::opening(lang),
            Self::Sending => words::sending(lang),
            Self::Waits(None) => words::waits(lang),
            Self::Waits(Some(left)) => words::waits_for(lang, &super::text::left(lang, left)),
            Self::InLine(place) => words::in_line(lang, usize::try_from(place).unwrap_or(usize::MAX)),
            Self::Streaming => words::streaming(lang),
            Self::Ended(outcome) => super::text::outcome(lang, outcome),
        }
    }
}

/// What is known of open calls besides their records, and when it was told.
#[derive(Debug, Default)]
pub(super) struct Present {
    told: Moment,
    open: BTreeMap<u64, OpenCall>,
    places: BTreeMap<u64, u64>,
}

impl Present {
    pub(super) fn of(page: &Page, told: Moment) -> Self {
        let open = page.open_calls.iter().filter_map(|call| Some((number(&call.id)?, call.clone())));
        let line = page.lanes.iter().flat_map(|lane| &lane.line);
        let places = line.filter_map(|place| Some((number(&place.call)?, place.position)));
        Self { told, open: open.collect(), places: places.collect() }
    }
}

/// A line of the list.
#[derive(Debug, Clone)]
pub(super) struct Row<'a> {
    pub(super) record: &'a CallRecord,
    pub(super) age: Duration,
    pub(super) doing: Doing<'a>,
    pub(super) sends: u32,
    pub(super) fault: Option<&'a str>,
    pub(super) waited: Duration,
}

impl<'a> Row<'a> {
    /// Of this call.
    pub(super) fn of(record: &'a CallRecord, present: &Present, now: Now) -> Self {
        let open = present.open.get(&record.call).filter(|_| record.closed.is_none());
        let since = now.at.since(present.told);
        let by_day = Duration::from_millis(now.wall.saturating_sub(record.opened));
        let age = open.map_or(by_day, |open| span(open.age_s).saturating_add(since));
        let left = open.and_then(|open| open.next_send_in_s).map(|left| span(left).saturating_sub(since));
        let doing = match (record.state, &record.closed) {
            (_, Some(closed)) => Doing::Ended(&closed.outcome),
            (State::Opening | State::Closed, None) => Doing::Opening,
            (State::Sending, None) => Doing::Sending,
            (State::Waiting, None) => match (left, present.places.get(&record.call)) {
                (None, Some(place)) => Doing::InLine(*place),
                (left, _) => Doing::Waits(left),
            },
            (State::Streaming, None) => Doing::Streaming,
        };
        let failed = record.sends.iter().rev().find_map(|send| Some(send.failed.as_ref()?.fault.as_str()));
        let closed = record.closed.as_ref();
        let begun = record.sends.iter().rev().find(|send| send.began.is_some()).map_or(0, |send| send.send);
        Self {
            record,
            age,
            doing,
            sends: closed.map_or(begun, |closed| closed.sends),
            fault: closed.and_then(|closed| closed.last_fault.as_deref()).or(failed),
            waited: waited(record, age),
        }
    }

    /// Whether it is listed in this view.
    pub(super) fn is_in(&self, view: View) -> bool {
        match view {
            View::All => true,
            View::Open => self.record.closed.is_none(),
            View::Faults => self.fault.is_some(),
            View::Lost => matches!(self.doing, Doing::Ended(outcome) if outcome != "served"),
        }
    }

    /// Whether each of these words, in small letters, is somewhere in it.
    pub(super) fn has(&self, lang: Lang, words: &[String]) -> bool {
        if words.is_empty() {
            return true;
        }
        let Self { record, .. } = self;
        let state = match self.doing {
            Doing::Ended(outcome) => outcome,
            Doing::Opening => "opening",
            Doing::Sending => "sending",
            Doing::Waits(_) | Doing::InLine(_) => "waiting",
            Doing::Streaming => "streaming",
        };
        let said = self.doing.said(lang);
        let all = [
            &record.name(),
            record.client.as_str(),
            record.model.as_deref().unwrap_or("-"),
            &record.upstream,
            &record.profile,
            state,
            &said,
            self.fault.unwrap_or("-"),
            record.request_id.as_deref().unwrap_or("-"),
        ];
        let all = all.join(" ").to_lowercase();
        words.iter().all(|word| all.contains(word))
    }
}

/// How long a call has waited that is so old.
fn waited(record: &CallRecord, age: Duration) -> Duration {
    if let Some(closed) = &record.closed {
        return Duration::from_millis(closed.waited);
    }
    let waits = record.sends.iter().filter_map(|send| send.wait.as_ref());
    waits.fold(Duration::ZERO, |sum, wait| {
        let going = || age.saturating_sub(Duration::from_millis(wait.began));
        sum.saturating_add(wait.took.map_or_else(going, Duration::from_millis))
    })
}

/// Puts them in order; the newest first where it leaves a choice.
pub(super) fn sort(rows: &mut [Row<'_>], sort: Sort) {
    use std::cmp::Reverse;
    rows.sort_by_key(|row| Reverse(row.record.call));
    match sort {
        Sort::OpenFirst => rows.sort_by_key(|row| row.record.closed.is_some()),
        Sort::Newest => {}
        Sort::Sends => rows.sort_by_key(|row| Reverse(row.sends)),
        Sort::Waited => rows.sort_by_key(|row| Reverse(row.waited)),
        Sort::Model => rows.sort_by_key(|row| (row.record.model.as_deref(), row.record.upstream.as_str())),
    }
}
