//! `steady-relay stats`: what the calls of the history come to.

use std::io::{self, BufWriter, ErrorKind, Write as _};

use relay_core::units::duration;
use steady_relay::cli::Flags;
use steady_relay::clock::{SystemClock, wall_ms};
use steady_relay::history::record::CallRecord;
use steady_relay::history::store::{Reader, RunRecord, StoreError};
use steady_relay::local_time::{Zone, in_utc};
use steady_relay::stats::export::Export;
use steady_relay::stats::morning::Morning;
use steady_relay::stats::tally::Tally;
use steady_relay::stats::{Form, Options, json, text};
use steady_relay::words::{lang, settings, start, stats as words};

use super::{Failure, block_on, failed, files, history, load, print, print_json};

/// How far back it looks where nothing is said.
const SINCE: &str = "7d";

/// The calls that are asked for.
enum Of {
    /// Those of a time, in milliseconds since 1970.
    Time(u64, u64),
    /// Those of a run.
    Run(RunRecord),
}

impl Of {
    fn each(&self, reader: &Reader, see: impl FnMut(CallRecord)) -> Result<(), StoreError> {
        match self {
            // Calls of this very moment, too, whatever its clock says.
            Self::Time(from, _) => reader.each((*from, u64::MAX), see),
            Self::Run(run) => reader.each_of_run(run.run, see),
        }
    }
}

/// Tells them.
pub(crate) fn stats(flags: &Flags, options: &Options) -> Result<u8, Failure> {
    let now = wall_ms(&SystemClock);
    let since = options.since.as_deref().unwrap_or(SINCE);
    let since = duration(since)
        .map_err(|why| failed(2, &words::bad_since(lang(), &settings::said_of(lang(), &why.why))))?;
    let from = now.saturating_sub(u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
    let config = load(flags, &files(flags))?.config;
    block_on(async {
        history::settles(&config).await;
        Ok(())
    })?;
    let reader = history::reader(&config).map_err(|words| failed(1, &words))?;
    let unread = |why: StoreError| failed(1, &why);
    let of = if options.last_run {
        let run = reader.last_run().map_err(unread)?;
        Of::Run(run.ok_or_else(|| failed(1, &words::no_run(lang())))?)
    } else {
        Of::Time(from, now)
    };
    if let Some(form) = options.export {
        return export(&reader, &of, form);
    }
    let zone = Zone::of_system();
    let mut tally = Tally::default();
    let mut last = 0;
    let see = |call: CallRecord| {
        tally.see(&call, options.by, &|ms| zone.slot(ms));
        last = last.max(call.opened.saturating_add(last_sign(&call)));
    };
    of.each(&reader, see).map_err(unread)?;
    match of {
        Of::Run(run) => {
            // One that was killed, or still runs, is as long as it told of something.
            let ended = run.ended.unwrap_or(last).max(run.started);
            let morning = Morning::of(&tally.all, ended - run.started);
            if options.json {
                return print_json(&json::of_run(run.run, &run.kind, morning));
            }
            print(&morning.line(lang()))
        }
        Of::Time(from, to) if options.json => print_json(&json::json(&tally, options.by, (from, to))),
        Of::Time(from, to) => {
            let shown = [zone.shown(from), zone.shown(to)];
            in_colour(&text::text(lang(), &tally, options.by, (&shown[0], &shown[1])))
        }
    }
}

/// The last thing that is known of a call, in milliseconds since it was accepted.
fn last_sign(call: &CallRecord) -> u64 {
    let ended = call.closed.as_ref().map(|closed| closed.took);
    let sent = || call.sends.iter().filter_map(|of| of.failed.as_ref().map(|failed| failed.at).or(of.began));
    ended.or_else(|| sent().max()).unwrap_or(0)
}

fn export(reader: &Reader, of: &Of, form: Form) -> Result<u8, Failure> {
    let mut written = Ok(());
    let mut export = Export::start(BufWriter::new(io::stdout().lock()), form, in_utc).map_err(no_output)?;
    let see = |call: CallRecord| {
        if written.is_ok() {
            written = export.see(&call);
        }
    };
    of.each(reader, see).map_err(|why| failed(1, &why))?;
    gone_is_fine(written.and_then(|()| export.end()))
}

/// As the terminal, or the user, wants it.
fn in_colour(text: &str) -> Result<u8, Failure> {
    gone_is_fine(anstream::stdout().write_all(format!("{}\n", text.trim_end()).as_bytes()))
}

/// Whoever reads may have seen enough.
fn gone_is_fine(written: io::Result<()>) -> Result<u8, Failure> {
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(no_output(error)),
        Ok(()) | Err(_) => Ok(0),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is how errors are mapped")]
fn no_output(error: io::Error) -> Failure {
    Failure(1, start::no_output(lang(), &error.to_string()))
}
