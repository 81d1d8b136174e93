//! `steady-relay why`: one call of the history for a person, from its beginning to its end, and in a last line whether
//! it was the relay or the service. Pure: a record in, a text out.

mod fold;
mod timeline;
mod verdict;

use std::collections::BTreeMap;

use clap::Args;
use relay_core::{Fault, Lang, plain};
use serde_json::{Value, json};

use crate::history::Name;
use crate::history::record::CallRecord;
use crate::local_time::Zone;
use crate::terminal;

#[cfg(feature = "top")]
pub(crate) use timeline::{inherited, moved, pool};
pub use verdict::verdict;

/// The widest line.
const COLUMNS: usize = 80;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Options {
    /// The call: `last`, its number in the log, or a request id of the client or the service
    ///
    /// `last` is the newest call that met a fault or was not served, or else the newest. `c12` is the newest of that
    /// number, `7-c12` the one of run 7; the name of a snapshot goes, too.
    #[arg(value_name = "ID", default_value = "last")]
    pub name: String,
    /// Print the record as JSON.
    #[arg(long)]
    pub json: bool,
}

/// What is told of a call beside its record.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// When it was accepted, as people write it.
    pub when: &'a str,
    /// Where people are that read it; `None`: moments are told as spans.
    pub zone: Option<&'a Zone>,
    /// What has started its run.
    pub kind: Option<&'a str>,
    /// Its run has ended.
    pub run_ended: bool,
}

/// What there is by this name, in the history and in a relay that runs, the newest first; of [`Name::Last`] the newest
/// that met a fault, or else the newest.
#[must_use]
pub fn found(name: &Name, recorded: Vec<CallRecord>, live: Vec<CallRecord>) -> Vec<CallRecord> {
    let mut all: BTreeMap<_, _> = recorded.into_iter().map(|call| (key(&call), call)).collect();
    // What is in memory is what it is now.
    all.extend(live.into_iter().filter(|call| name.fits(call)).map(|call| (key(&call), call)));
    let mut all: Vec<_> = all.into_values().rev().collect();
    if *name == Name::Last {
        let at = all.iter().position(met_a_fault).unwrap_or(0);
        all = all.into_iter().skip(at).take(1).collect();
    }
    all
}

const fn key(call: &CallRecord) -> (u64, Option<i64>, u64) {
    (call.opened, call.run, call.call)
}

/// Whether it met a fault, or was not served.
#[must_use]
pub fn met_a_fault(call: &CallRecord) -> bool {
    call.sends.iter().any(|of| of.failed.is_some())
        || call
            .closed
            .as_ref()
            .is_some_and(|closed| closed.outcome != "served" || closed.last_fault.is_some())
}

/// The call for a person.
#[must_use]
pub fn text(lang: Lang, call: &CallRecord, known: Known<'_>) -> String {
    let lines = timeline::lines(lang, call, known);
    let last = verdict(lang, call, known.run_ended);
    let text = format!("{lines}\n{last}");
    terminal::wrapped(&plain::text(&text), COLUMNS)
}

/// The call for programs: its record, with how many older ones have its name.
#[must_use]
pub fn json(call: &CallRecord, run_ended: bool, others: usize) -> Value {
    let mut told = json!({"v": 1, "others": others, "verdict": verdict(Lang::English, call, run_ended)});
    if let (Value::Object(told), Ok(Value::Object(call))) = (&mut told, serde_json::to_value(call)) {
        told.extend(call);
    }
    told
}

/// The fault of this name.
fn fault(name: &str) -> Option<Fault> {
    Fault::ALL.into_iter().find(|fault| fault.name() == name)
}

#[cfg(test)]
mod tests;
