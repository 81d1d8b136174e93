//! What is known of an upstream's WebSockets beyond one connection: that it speaks none, or takes none just now.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use relay_core::Moment;
use relay_core::failure::Failure;

use super::upgrade::Wanted;

/// For so long an upstream is taken not to speak WebSocket. It may have learned it by then.
pub(super) const UNSPOKEN: Duration = Duration::from_secs(3600);
/// So many handshakes in a row that get no answer are one: a network on the way swallows them.
const SILENT: u32 = 2;
/// For so long after a refused handshake that names no time none is made beside those of calls, which wait.
const SPARED: Duration = Duration::from_secs(1);
/// The most that is remembered; beyond it the oldest is forgotten.
const MOST: usize = 1024;

/// An address there, and the account it was asked for.
type Key = (String, u64);

#[derive(Debug)]
struct Known {
    at: Moment,
    unspoken_until: Option<Moment>,
    silent: u32,
    refused: Option<Refused>,
}

/// The last refusal for want of capacity.
#[derive(Debug, Clone)]
pub(crate) struct Refused {
    pub(crate) failure: Failure,
    pub(crate) at: Moment,
    until: Moment,
}

/// The memory.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    known: Mutex<BTreeMap<Key, Known>>,
}

impl Memory {
    /// Whether the upstream is taken not to speak WebSocket there.
    pub(super) fn is_unspoken(&self, wanted: &Wanted, now: Moment) -> bool {
        self.with(wanted, now, |known| known.unspoken_until.is_some_and(|until| now < until))
    }

    /// It does not; whether that is news.
    pub(super) fn unspoken(&self, wanted: &Wanted, now: Moment) -> bool {
        self.with(wanted, now, |known| {
            let is_known = known.unspoken_until.is_some_and(|until| now < until);
            (known.unspoken_until, known.silent, known.refused) = (Some(now + UNSPOKEN), 0, None);
            !is_known
        })
    }

    /// It does.
    pub(super) fn opened(&self, wanted: &Wanted, now: Moment) {
        self.with(wanted, now, |known| (known.silent, known.refused) = (0, None));
    }

    /// A handshake got no answer, or none that is one; whether that is what this network does to them.
    pub(super) fn silent(&self, wanted: &Wanted, now: Moment) -> bool {
        self.with(wanted, now, |known| {
            known.silent += 1;
            known.silent >= SILENT
        })
    }

    /// A handshake was refused for want of capacity.
    pub(super) fn refused(&self, wanted: &Wanted, failure: &Failure, now: Moment) -> Refused {
        use relay_core::retry_after::Advice;
        let wait = match failure.advice {
            Advice::Wait(told) => told,
            Advice::Useless | Advice::Silent => SPARED,
        };
        let refused = Refused { failure: failure.clone(), at: now, until: now + wait };
        self.with(wanted, now, |known| (known.silent, known.refused) = (0, Some(refused.clone())));
        refused
    }

    /// The refusal that still holds.
    pub(super) fn still_refused(&self, wanted: &Wanted, now: Moment) -> Option<Refused> {
        self.with(wanted, now, |known| known.refused.clone().filter(|refused| now < refused.until))
    }

    fn with<T>(&self, wanted: &Wanted, now: Moment, look: impl FnOnce(&mut Known) -> T) -> T {
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let path = wanted.target.path_and_query.path();
        let key = (format!("{}{path}", wanted.target.upstream.origin), wanted.account.number());
        if !all.contains_key(&key) && all.len() >= MOST {
            let oldest = all.iter().min_by_key(|(_, known)| known.at).map(|(key, _)| key.clone());
            if let Some(oldest) = oldest {
                all.remove(&oldest);
            }
        }
        let known =
            all.entry(key).or_insert(Known { at: now, unspoken_until: None, silent: 0, refused: None });
        known.at = now;
        look(known)
    }
}
