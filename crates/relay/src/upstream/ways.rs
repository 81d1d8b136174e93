//! The ways to an upstream: one as a rule, else several in the order of the settings, and how those fare. Which of them
//! is taken is decided in the core; connecting is not done here.
//!
//! How a way fares is known by origin and proxy, for all upstreams there, and lasts as long as the relay. Of an upstream
//! with one way nothing is known and nothing asked.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use relay_core::Moment;
use relay_core::event::{Detour, Missed};

use super::connect::{At, Unconnected};
use super::{Cause, Origin, Way};
use crate::clock::{Clock, RealDice};
use crate::proxy::Proxy;

/// What a way is called that has no proxy.
pub(crate) const DIRECT: &str = "direct";

type Key = (Arc<Origin>, Option<Arc<Proxy>>);

/// What became of a way. Labels: a proxy shows no credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WayNews {
    /// Host and port of the upstream.
    pub upstream: Box<str>,
    /// The proxy, or `direct`.
    pub by: Box<str>,
    /// What happened.
    pub what: WayWhat,
}

/// What happens to a way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WayWhat {
    /// It failed, and others are taken until it works again.
    Left {
        /// When.
        since: Moment,
        /// What failed, in one word.
        why: &'static str,
        /// How long until it is looked at again.
        pause: Duration,
    },
    /// It works again.
    Back {
        /// For how long it was left.
        after: Duration,
    },
    /// It failed, and the settings have it no more.
    Forgotten,
}

/// How the ways of all upstreams fare that have several.
pub struct Standings {
    clock: Arc<dyn Clock>,
    ways: Mutex<relay_core::ways::Ways<Key>>,
    tell: Box<dyn Fn(WayNews) + Send + Sync>,
}

impl Standings {
    /// All work; `tell` hears what changes.
    pub fn new(clock: Arc<dyn Clock>, tell: impl Fn(WayNews) + Send + Sync + 'static) -> Self {
        Self { clock, ways: Mutex::default(), tell: Box::new(tell) }
    }

    fn ways(&self) -> MutexGuard<'_, relay_core::ways::Ways<Key>> {
        self.ways.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, (origin, via): &Key, what: WayWhat) {
        (self.tell)(WayNews { upstream: origin.to_string().into(), by: named(via.as_deref()), what });
    }

    /// Forgets all ways but these, since the settings have changed.
    pub fn keep_only(&self, known: impl Iterator<Item = Ways>) {
        let known = known.filter(|ways| ways.standings.is_some()).flat_map(|ways| ways.keys()).collect();
        let gone = self.ways().keep_only(&known);
        gone.iter().for_each(|key| self.tell(key, WayWhat::Forgotten));
    }

    fn worked(&self, key: &Key) {
        let after = self.ways().worked(key, self.clock.now());
        if let Some(after) = after {
            self.tell(key, WayWhat::Back { after });
        }
    }

    fn failed(&self, key: &Key, cause: Cause) {
        let since = self.clock.now();
        let pause = self.ways().failed(key, since, &mut RealDice::default());
        if let Some(pause) = pause {
            self.tell(key, WayWhat::Left { since, why: cause.name(), pause });
        }
    }

    fn probed(&self, key: &Key, worked: bool) {
        let after = self.ways().probed(key, worked, self.clock.now(), &mut RealDice::default());
        if let Some(after) = after {
            self.tell(key, WayWhat::Back { after });
        }
    }
}

impl fmt::Debug for Standings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Standings").finish_non_exhaustive()
    }
}

/// What a way by this proxy is called.
fn named(via: Option<&Proxy>) -> Box<str> {
    via.map_or_else(|| DIRECT.into(), |proxy| proxy.to_string().into())
}

/// How a request gets to an upstream: by the first of these that works. There is at least one.
#[derive(Debug, Clone)]
pub struct Ways {
    origin: Arc<Origin>,
    vias: Arc<[Option<Arc<Proxy>>]>,
    http2: bool,
    /// Where there are several.
    standings: Option<Arc<Standings>>,
}

impl From<Way> for Ways {
    fn from(Way { origin, via, http2 }: Way) -> Self {
        Self { origin, vias: [via].into(), http2, standings: None }
    }
}

impl Ways {
    /// These ways, as [`Way`] has them.
    #[must_use]
    pub fn new(
        origin: Arc<Origin>,
        vias: Arc<[Option<Arc<Proxy>>]>,
        http2: bool,
        standings: &Arc<Standings>,
    ) -> Self {
        let standings = (vias.len() > 1).then(|| Arc::clone(standings));
        Self { origin, vias, http2, standings }
    }

    /// The same over HTTP/1.1.
    #[must_use]
    pub fn without_http2(self) -> Self {
        Self { http2: false, ..self }
    }

    /// The way at this place.
    pub(super) fn at(&self, place: usize) -> Way {
        let via = self.vias.get(place).cloned().flatten();
        Way { origin: Arc::clone(&self.origin), via, http2: self.http2 }
    }

    /// What each of them may take of the time for a connection. All together take no longer than one alone may, and the
    /// last has as much as the first.
    pub(super) fn share(&self, within: Duration) -> Duration {
        within / u32::try_from(self.vias.len()).unwrap_or(u32::MAX).max(1)
    }

    fn keys(&self) -> Vec<Key> {
        self.vias.iter().map(|via| (Arc::clone(&self.origin), via.clone())).collect()
    }

    fn key(&self, place: usize) -> Key {
        (Arc::clone(&self.origin), self.vias.get(place).cloned().flatten())
    }

    /// The place of the way to try next; `None` where all were.
    pub(super) fn next(&self, tried: &Tried) -> Option<usize> {
        match &self.standings {
            None => tried.0.is_empty().then_some(0),
            Some(standings) => standings.ways().next(&self.keys(), &tried.places()),
        }
    }

    /// The place of a better way than the one at `taken`, where that is to be looked at now.
    pub(super) fn begin_probe(&self, taken: usize) -> Option<usize> {
        let standings = self.standings.as_ref().filter(|_| taken > 0)?;
        standings.ways().begin_probe(&self.keys(), taken, standings.clock.now())
    }

    /// Whether the way is known to fail.
    pub(super) fn is_left(&self, place: usize) -> bool {
        self.standings.as_ref().is_some_and(|standings| standings.ways().is_left(&self.key(place)))
    }

    /// A look ended.
    pub(super) fn probed(&self, place: usize, worked: bool) {
        if let Some(standings) = &self.standings {
            standings.probed(&self.key(place), worked);
        }
    }

    /// A connection stands, or failed at the upstream, whichever way leads there.
    pub(super) fn worked(&self, place: usize) {
        if let Some(standings) = &self.standings {
            standings.worked(&self.key(place));
        }
    }

    /// There was no connection.
    pub(super) fn failed(&self, place: usize, cause: Cause) {
        if let Some(standings) = &self.standings {
            standings.failed(&self.key(place), cause);
        }
    }
}

/// The ways that one send has tried in vain.
#[derive(Default)]
pub(super) struct Tried(Vec<(usize, Unconnected)>);

impl Tried {
    pub(super) fn push(&mut self, place: usize, why: Unconnected) {
        self.0.push((place, why));
    }

    fn places(&self) -> Vec<usize> {
        self.0.iter().map(|(place, _)| *place).collect()
    }

    /// What is worth telling where the way at `taken` was come to in the end, if any.
    pub(super) fn detour(&self, ways: &Ways, taken: Option<usize>) -> Option<Detour> {
        if self.0.is_empty() && taken == Some(0) || ways.standings.is_none() {
            return None;
        }
        let name = |place: usize| named(ways.vias.get(place).and_then(|via| via.as_deref()));
        let missed = |(place, why): &(usize, Unconnected)| Missed { by: name(*place), why: why.cause.name() };
        Some(Detour { by: taken.map(name), missed: self.0.iter().map(missed).collect() })
    }

    /// Why none of them worked.
    pub(super) fn all_failed(&self, ways: &Ways) -> (Cause, String) {
        // What may heal decides: the next send may find it healed.
        let heals =
            |(_, why): &&(usize, Unconnected)| !matches!(why.cause, Cause::Certificate | Cause::ProxyRefused);
        let worst = self.0.iter().find(heals).or_else(|| self.0.first());
        let cause = worst.map_or(Cause::Connect, |(_, why)| why.cause);
        if let [(place, why)] = self.0.as_slice() {
            return (cause, why.detail(&ways.at(*place)));
        }
        let said = |(place, why): &(usize, Unconnected)| match ways.at(*place).via {
            Some(proxy) => format!("by the proxy {proxy}: {}", why.what),
            None => format!("directly: {}", why.what),
        };
        let all = self.0.iter().map(said).collect::<Vec<_>>().join("; ");
        (cause, format!("{}: none of {} ways works: {all}", ways.origin, self.0.len()))
    }
}

/// Whether the way failed, rather than the upstream at its end.
pub(super) fn is_way(at: At) -> bool {
    match at {
        At::Way | At::Proxy => true,
        At::Upstream => false,
    }
}
