//! `steady-relay why`: one call of the history, or of a relay that runs.

use std::time::Duration;

use relay_core::config::{Config, Secret};
use steady_relay::cli::Flags;
use steady_relay::history::Name;
use steady_relay::history::record::CallRecord;
use steady_relay::history::store::{Reader, RunRecord};
use steady_relay::local_time::Zone;
use steady_relay::running;
use steady_relay::why::{self, Known, Options, found, met_a_fault};
use steady_relay::words::{self, lang};

use super::{Failure, block_on, failed, files, history, load, print, print_json, say};

/// The most calls of one name that are counted.
const MOST: usize = 1000;
/// A relay elsewhere, such as one of `run`, writes what happened within this time.
const WRITTEN: Duration = Duration::from_millis(200);

/// Tells of the call.
pub(crate) fn why(flags: &Flags, options: &Options) -> Result<u8, Failure> {
    let config = load(flags, &files(flags))?.config;
    let name = Name::of(&options.name);
    // What it knows is newer than the file.
    let live = block_on(async { Ok(live(&config).await) })?;
    let reader = match history::reader(&config) {
        Ok(reader) => Some(reader),
        Err(words) if live.is_empty() => return Err(failed(1, &words)),
        Err(words) => {
            say(&words::why::from_memory(lang(), words.lines().next().unwrap_or_default()));
            None
        }
    };
    let all = found(&name, recorded(reader.as_ref(), &name)?, live.clone());
    let is_open = |call: &CallRecord| call.closed.is_none() && !live.contains(call);
    let all = if all.first().is_some_and(is_open) {
        std::thread::sleep(WRITTEN);
        found(&name, recorded(reader.as_ref(), &name)?, live)
    } else {
        all
    };
    let others = all.len().saturating_sub(1);
    let Some(call) = all.into_iter().next() else {
        let words = match &name {
            Name::Last => words::why::no_call(lang()),
            Name::Number { .. } | Name::Snapshot { .. } | Name::Id(_) => {
                words::why::no_such_call(lang(), &options.name)
            }
        };
        return Err(failed(1, &words));
    };
    if name == Name::Last && !met_a_fault(&call) {
        say(&words::why::none_met_a_fault(lang()));
    }
    tell(&call, run_of(reader.as_ref(), &call)?.as_ref(), others, options.json)
}

fn tell(call: &CallRecord, run: Option<&RunRecord>, others: usize, is_json: bool) -> Result<u8, Failure> {
    let run_ended = run.is_some_and(|run| run.ended.is_some());
    if is_json {
        return print_json(&why::json(call, run_ended, others));
    }
    let zone = Zone::of_system();
    let when = zone.shown(call.opened);
    let kind = run.map(|run| run.kind.as_str());
    let known = Known { when: &when, zone: Some(&zone), kind, run_ended };
    let printed = print(&why::text(lang(), call, known))?;
    if others > 0 {
        say(&words::why::others(lang(), others as u64));
    }
    Ok(printed)
}

/// What the relay at the address of the settings has in memory; nothing where none answers.
async fn live(config: &Config) -> Vec<CallRecord> {
    let token = config.token.as_ref().map(Secret::expose);
    running::call_records(running::address(config), token).await.unwrap_or_default()
}

fn recorded(reader: Option<&Reader>, name: &Name) -> Result<Vec<CallRecord>, Failure> {
    let found = reader.map(|reader| reader.named(name, MOST)).transpose();
    found.map(Option::unwrap_or_default).map_err(|why| failed(1, &why))
}

fn run_of(reader: Option<&Reader>, call: &CallRecord) -> Result<Option<RunRecord>, Failure> {
    let (Some(reader), Some(run)) = (reader, call.run) else { return Ok(None) };
    reader.run(run).map_err(|why| failed(1, &why))
}
