//! Finds the facts out. Nothing is written, no model is asked, and no request carries a credential.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use relay_core::config::{Config, Secret};

use super::facts::{Facts, History};
use crate::clock::{SystemClock, wall_ms};
use crate::doctor::gather::{Patient, way};
use crate::history::record::CallRecord;
use crate::running;

/// The most calls that are looked at, the last ones.
pub const MOST: usize = 20_000;

/// Gathers what there is of so long.
pub async fn gather(patient: Patient<'_>, since: Duration) -> Facts {
    let now = wall_ms(&SystemClock);
    let from = now.saturating_sub(u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
    let Seen { calls, more, before, history } = seen(&patient.config, from, now).await;
    let called: BTreeSet<_> = calls.iter().map(|call| call.upstream.clone()).collect();
    let way = way(patient, &called).await;
    Facts { now, since: from, calls, more_calls: more, before, history, way }
}

/// The calls of a time.
#[derive(Debug, Default)]
pub struct Seen {
    /// The calls, the oldest first.
    pub calls: Vec<CallRecord>,
    /// How many more there were.
    pub more: usize,
    /// When the last call before was accepted.
    pub before: Option<u64>,
    /// What became of the history's file.
    pub history: History,
}

/// The calls from `from` on: those in the file, and, as they are now, those that a running relay has in memory.
pub async fn seen(config: &Config, from: u64, now: u64) -> Seen {
    let (mut seen, live) = tokio::join!(recorded(config, from, now), live(config));
    let mut all: BTreeMap<_, _> = seen.calls.drain(..).map(|call| ((call.run, call.call), call)).collect();
    for call in live {
        if call.opened >= from {
            all.insert((call.run, call.call), call);
        } else {
            seen.before = seen.before.max(Some(call.opened));
        }
    }
    let mut calls: Vec<_> = all.into_values().collect();
    calls.sort_by_key(|call| (call.opened, call.run, call.call));
    let more = calls.len().saturating_sub(MOST);
    calls.drain(..more);
    seen.more += more;
    seen.calls = calls;
    seen
}

/// What a running relay has in memory. Where none answers there is nothing.
async fn live(config: &Config) -> Vec<CallRecord> {
    let token = config.token.as_ref().map(Secret::expose);
    running::call_records(running::address(config), token).await.unwrap_or_default()
}

#[cfg(feature = "history")]
async fn recorded(config: &Config, from: u64, now: u64) -> Seen {
    use crate::history::store::{Reader, StoreError};

    let Some(path) = config.history_file() else { return Seen { history: History::Off, ..Seen::default() } };
    let read = move || {
        let reader = Reader::open(&path)?;
        let mut seen = Seen::default();
        // A clock that was set back leaves calls that are still to come.
        let mut calls = std::collections::VecDeque::new();
        reader.each((from, now.saturating_add(1)), |call| {
            if calls.len() == MOST {
                calls.pop_front();
                seen.more += 1;
            }
            calls.push_back(call);
        })?;
        seen.calls = calls.into();
        seen.before = reader.before(from, 1)?.first().map(|call| call.opened);
        Ok::<_, StoreError>(seen)
    };
    let unreadable = |why: &dyn std::fmt::Display| Seen {
        history: History::Unreadable(why.to_string()),
        ..Seen::default()
    };
    match tokio::task::spawn_blocking(read).await {
        Ok(Ok(seen)) => seen,
        Ok(Err(why)) => unreadable(&why),
        Err(stopped) => unreadable(&stopped),
    }
}

/// Without a history there are none.
#[cfg(not(feature = "history"))]
fn recorded(_config: &Config, _from: u64, _now: u64) -> std::future::Ready<Seen> {
    std::future::ready(Seen { history: History::Off, ..Seen::default() })
}
