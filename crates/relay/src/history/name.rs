//! What a call is called. One spelling is printed: `7-c12`, call 12 of run 7 of the history, or `c12` where there is no
//! history. What people type may be any that was ever seen somewhere. Pure.

use super::record::CallRecord;
use crate::snapshots::file::id_of;

/// What somebody calls a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Name {
    /// The last one that matters.
    Last,
    /// One of this number, of this run or of any.
    Number {
        /// The run.
        run: Option<i64>,
        /// Its number.
        call: u64,
        /// As it was typed: an id may be a number, too.
        text: String,
    },
    /// The one of the snapshot of this name.
    Snapshot {
        /// Its number.
        call: u64,
        /// When it ended, as the snapshot's name has it, to the second.
        second: String,
    },
    /// The one with this id, given by a client or a service.
    Id(String),
}

impl Name {
    /// Of what was typed: `last`, `12`, `c12`, `7-12`, `7-c12`, the name of a snapshot or of its file, or an id.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let text = text.trim();
        if text.eq_ignore_ascii_case("last") {
            return Self::Last;
        }
        let plain = text.strip_suffix(".json").unwrap_or(text);
        match plain.split('-').collect::<Vec<_>>().as_slice() {
            [call] => number(call).map(|call| Self::Number { run: None, call, text: text.to_owned() }),
            [run, call] => number(run)
                .and_then(|run| i64::try_from(run).ok())
                .zip(number(call))
                .map(|(run, call)| Self::Number { run: Some(run), call, text: text.to_owned() }),
            [day, time, call] if is_stamp(day, time) => number(call)
                .map(|call| Self::Snapshot { call, second: format!("{day}-{}", &time[..time.len() - 3]) }),
            _ => None,
        }
        .unwrap_or_else(|| Self::Id(text.to_owned()))
    }

    /// Whether this call is called so.
    #[must_use]
    pub fn fits(&self, record: &CallRecord) -> bool {
        match self {
            Self::Last => true,
            Self::Number { run, call, text } => {
                // One that was not written has no run.
                let is_of_run = run.is_none() || record.run.is_none() || record.run == *run;
                (record.call == *call && is_of_run) || has_id(record, text)
            }
            Self::Snapshot { call, second } => record.call == *call && ended_in(record, second),
            Self::Id(id) => has_id(record, id),
        }
    }
}

/// The number of a call or a run, with or without its letter.
fn number(text: &str) -> Option<u64> {
    let digits = text.strip_prefix(['c', 'C']).unwrap_or(text);
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

fn is_stamp(day: &str, time: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    day.len() == 8 && time.len() == 9 && digits(day) && digits(time)
}

fn has_id(record: &CallRecord, id: &str) -> bool {
    let mut of_sends = record.sends.iter().filter_map(|of| of.request_id.as_deref());
    record.request_id.as_deref() == Some(id) || of_sends.any(|of| of == id)
}

/// A snapshot is named a moment after its call has ended.
fn ended_in(record: &CallRecord, second: &str) -> bool {
    let Some(closed) = &record.closed else { return false };
    let ended = record.opened.saturating_add(closed.took);
    [0, 1000].into_iter().any(|later| id_of(ended.saturating_add(later), record.call).starts_with(second))
}

impl CallRecord {
    /// What it is called.
    #[must_use]
    pub fn name(&self) -> String {
        shown(self.run, self.call)
    }
}

/// What a call of this number is called.
#[must_use]
pub fn shown(run: Option<i64>, call: u64) -> String {
    run.map_or_else(|| format!("c{call}"), |run| format!("{run}-c{call}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::record::{ClosedRecord, SendRecord, State};
    use crate::history::tests::call;

    fn record() -> CallRecord {
        let closed = ClosedRecord { took: 2_500, ..serde_json::from_str(CLOSED).unwrap() };
        let sends =
            vec![SendRecord { send: 1, request_id: Some("req_4711".into()), ..SendRecord::default() }];
        CallRecord {
            run: Some(7),
            opened: 1_764_500_000_000,
            request_id: Some("99".into()),
            sends,
            closed: Some(closed),
            ..call(12, State::Closed)
        }
    }

    const CLOSED: &str = r#"{"outcome": "passed", "sends": 1, "waited": 0, "took": 0, "capacity_faults": 0,
        "maybe_billed_twice": 0, "received": 0, "sent": 0}"#;

    #[test]
    fn every_spelling_names_the_call_that_is_printed_in_one() {
        let record = record();
        assert_eq!(record.name(), "7-c12");
        assert_eq!(CallRecord { run: None, ..record.clone() }.name(), "c12");
        let snapshot = id_of(1_764_500_002_999, 12);
        let file = format!("{snapshot}.json");
        for text in [
            "7-c12", "7-12", "c12", "C12", "12", " c12 ", "c7-c12", "last", "req_4711", "99", &snapshot,
            &file,
        ] {
            assert!(Name::of(text).fits(&record), "{text}: {:?}", Name::of(text));
        }
        let early = id_of(1_764_400_000_000, 12);
        for text in ["c13", "8-c12", "7-c13", "7-", "c", "", "-12", "req", &early, "99999999999999999999999"]
        {
            assert!(!Name::of(text).fits(&record), "{text}: {:?}", Name::of(text));
        }
        assert_eq!(Name::of("7-x12"), Name::Id("7-x12".to_owned()));
    }
}
