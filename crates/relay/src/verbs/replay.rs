//! `steady-relay replay`: recorded calls, decided again with the present settings.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use relay_core::config::Config;
use steady_relay::cli::Flags;
use steady_relay::clock::{Clock as _, SystemClock};
use steady_relay::diagnose::facts::History;
use steady_relay::diagnose::gather::{Seen, seen};
use steady_relay::history::record::CallRecord;
use steady_relay::replay::{Options, read, replay as decide, report};
use steady_relay::settings::Loaded;
use steady_relay::standard_input::standard_input;
use steady_relay::words::{lang, replay as words, start};

use super::{Failure, block_on, failed, files, load, print, print_json, say};

/// The seed where none is named: the same records come to the same end every time.
const SEED: u64 = 1;

/// Decides again, and prints what would differ; 1 where anything does.
pub(crate) fn replay(flags: &Flags, options: &Options) -> Result<u8, Failure> {
    let Loaded { config, .. } = load(flags, &files(flags))?;
    let calls = match (&options.file, options.since) {
        (Some(file), _) => in_file(file)?,
        (None, Some(since)) => since_then(&config, since)?,
        (None, None) => return Err(failed(2, &words::which_calls(lang()))),
    };
    let replayed = decide(&calls, &config, options.seed.unwrap_or(SEED));
    let printed = if options.json {
        print_json(&report::json(&replayed))
    } else {
        print(&report::text(lang(), &replayed))
    };
    printed.map(|_printed| report::exit_code(&replayed))
}

fn in_file(path: &Path) -> Result<Vec<CallRecord>, Failure> {
    let calls = if path == Path::new("-") {
        read::calls(standard_input())
    } else {
        File::open(path).map_err(read::Unreadable::from).and_then(read::calls)
    };
    calls.map_err(|error| failed(2, &format!("{}: {error}", path.display())))
}

/// Those of the last time, in the history and in a relay that runs.
fn since_then(config: &Config, since: Duration) -> Result<Vec<CallRecord>, Failure> {
    let now = SystemClock.wall().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let ms = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let (from, now) = (ms(now.saturating_sub(since)), ms(now));
    let Seen { calls, history, .. } = block_on(async { Ok(seen(config, from, now).await) })?;
    match (history, calls.is_empty()) {
        (History::Unreadable(why), true) => Err(failed(2, &why)),
        (History::Read | History::Off, true) => Err(failed(2, &words::none_since(lang()))),
        (History::Unreadable(why), false) => {
            say(&start::note(lang(), &why));
            Ok(calls)
        }
        (History::Read | History::Off, false) => Ok(calls),
    }
}
