//! `steady-relay why`: one call of the history for a person, from its beginning to its end, and in a last line whether
//! it was the relay or the service. Pure: a record in, a text out.

mod timeline;
mod verdict;

use clap::Args;
use relay_core::{Fault, Lang};
use serde_json::{Value, json};

use crate::history::record::CallRecord;
use crate::terminal;

pub(crate) use timeline::{moved, pool};
pub use verdict::verdict;

/// The widest line.
const COLUMNS: usize = 80;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Options {
    /// The call: `last`, its number in the log, or a request id of the client or the service
    ///
    /// `last` is the newest call that met a fault or was not served, or else the newest. `c12` is the newest of that
    /// number, `7-c12` the one of run 7.
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
    /// What has started its run.
    pub kind: Option<&'a str>,
    /// Its run has ended.
    pub run_ended: bool,
}

/// The call for a person.
#[must_use]
pub fn text(lang: Lang, call: &CallRecord, known: Known<'_>) -> String {
    let lines = timeline::lines(lang, call, known);
    let last = verdict(lang, call, known.run_ended);
    let text = format!("{lines}\n{last}");
    // A name from elsewhere stays a name: nothing that moves the cursor.
    let plain: String =
        text.chars().map(|sign| if sign.is_control() && sign != '\n' { '?' } else { sign }).collect();
    terminal::wrapped(&plain, COLUMNS)
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
