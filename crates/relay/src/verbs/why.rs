//! `steady-relay why`: one call of the history.

use steady_relay::cli::Flags;
use steady_relay::local_time::Zone;
use steady_relay::why::{self, Known, Options};
use steady_relay::words::{self, lang};

use super::{Failure, failed, history, print, say};

/// The most calls of one name that are counted.
const MOST: usize = 1000;

/// Tells of the call.
pub(crate) fn why(flags: &Flags, options: &Options) -> Result<u8, Failure> {
    let reader = history::reader(flags)?;
    let unread = |why| failed(1, &why);
    let mut found = match options.name.as_str() {
        "last" => reader.last().map_err(unread)?.into_iter().collect(),
        name => reader.named(name, MOST).map_err(unread)?,
    };
    let others = found.len().saturating_sub(1);
    if found.is_empty() {
        return Err(failed(
            1,
            &match options.name.as_str() {
                "last" => words::why::no_call(lang()),
                name => words::why::no_such_call(lang(), name),
            },
        ));
    }
    let call = found.swap_remove(0);
    let run = call.run.map(|run| reader.run(run)).transpose().map_err(unread)?.flatten();
    let run_ended = run.as_ref().is_some_and(|run| run.ended.is_some());
    if options.json {
        return print(&why::json(&call, run_ended, others).to_string());
    }
    let zone = Zone::of_system();
    let when = zone.shown(call.opened);
    let known =
        Known { when: &when, zone: Some(&zone), kind: run.as_ref().map(|run| run.kind.as_str()), run_ended };
    let printed = print(&why::text(lang(), &call, known))?;
    if others > 0 {
        say(&words::why::others(lang(), others as u64));
    }
    Ok(printed)
}
