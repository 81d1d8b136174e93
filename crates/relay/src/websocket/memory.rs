//! What is known of an upstream's WebSockets beyond one connection: that it speaks none, or takes none just now.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use relay_core::Moment;
use relay_core::failure::Failure;

/// For so long an upstream is taken not to speak WebSocket. It may have learned it by then.
pub(super) const UNSPOKEN: Duration = Duration::from_secs(3600);
/// So many handshakes in a row that get no answer are one: a network on the way swallows them.
const SILENT: u32 = 2;
/// For so long after a refused handshake that names no time none is made beside those of calls, which wait.
const SPARED: Duration = Duration::from_secs(1);
/// The most that is remembered; beyond it the oldest is forgotten.
const MOST: usize = 1024;

/// An address at an upstream, and the account it is asked for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Address {
    pub(super) url: String,
    pub(super) account: u64,
}

#[derive(Debug)]
struct Known {
    at: Moment,
    unspoken_until: Option<Moment>,
    silent: u32,
    /// When the last of those was over.
    silent_at: Moment,
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
    known: Mutex<BTreeMap<Address, Known>>,
}

impl Memory {
    /// Whether the upstream is taken not to speak WebSocket there.
    pub(super) fn is_unspoken(&self, address: &Address, now: Moment) -> bool {
        self.with(address, now, |known| known.unspoken_until.is_some_and(|until| now < until))
    }

    /// It does not; whether that is news.
    pub(super) fn unspoken(&self, address: &Address, now: Moment) -> bool {
        self.with(address, now, |known| {
            let is_known = known.unspoken_until.is_some_and(|until| now < until);
            (known.unspoken_until, known.silent, known.refused) = (Some(now + UNSPOKEN), 0, None);
            !is_known
        })
    }

    /// It does.
    pub(super) fn opened(&self, address: &Address, now: Moment) {
        self.with(address, now, |known| (known.silent, known.refused) = (0, None));
    }

    /// A handshake got no answer, or none that is one; whether that is what this network does to them.
    /// One that began before the last was over says nothing new.
    pub(super) fn silent(&self, address: &Address, begun: Moment, now: Moment) -> bool {
        self.with(address, now, |known| {
            if known.silent == 0 || begun >= known.silent_at {
                known.silent += 1;
                known.silent_at = now;
            }
            known.silent >= SILENT
        })
    }

    /// A handshake was refused for want of capacity.
    pub(super) fn refused(&self, address: &Address, failure: &Failure, now: Moment) -> Refused {
        use relay_core::retry_after::Advice;
        let wait = match failure.advice {
            Advice::Wait(told) => told,
            Advice::Useless | Advice::Silent => SPARED,
        };
        let refused = Refused { failure: failure.clone(), at: now, until: now + wait };
        self.with(address, now, |known| (known.silent, known.refused) = (0, Some(refused.clone())));
        refused
    }

    /// The refusal that still holds.
    pub(super) fn still_refused(&self, address: &Address, now: Moment) -> Option<Refused> {
        self.with(address, now, |known| known.refused.clone().filter(|refused| now < refused.until))
    }

    fn with<T>(&self, address: &Address, now: Moment, look: impl FnOnce(&mut Known) -> T) -> T {
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if !all.contains_key(address) && all.len() >= MOST {
            let oldest = all.iter().min_by_key(|(_, known)| known.at).map(|(address, _)| address.clone());
            if let Some(oldest) = oldest {
                all.remove(&oldest);
            }
        }
        let known = all.entry(address.clone()).or_insert(Known {
            at: now,
            unspoken_until: None,
            silent: 0,
            silent_at: now,
            refused: None,
        });
        known.at = now;
        look(known)
    }
}

#[cfg(test)]
mod tests {
    use relay_core::{Evidence, Fault};

    use super::*;

    fn address(account: u64) -> Address {
        Address { url: "https://api.example/v1/responses".to_owned(), account }
    }

    fn at(seconds: u64) -> Moment {
        Moment::after_start(Duration::from_secs(seconds))
    }

    #[test]
    fn an_upstream_that_speaks_none_is_asked_again_after_an_hour() {
        let (memory, one) = (Memory::default(), address(1));
        assert!(!memory.is_unspoken(&one, at(0)));
        assert!(
            memory.unspoken(&one, at(0)) && !memory.unspoken(&one, at(1)),
            "the second time it is no news"
        );
        assert!(memory.is_unspoken(&one, at(3600)) && !memory.is_unspoken(&one, at(3601)));
        assert!(!memory.is_unspoken(&address(2), at(1)), "for another account it may");
    }

    #[test]
    fn two_silences_in_a_row_count_and_two_at_a_time_are_one() {
        let (memory, one) = (Memory::default(), address(1));
        assert!(!memory.silent(&one, at(0), at(5)));
        assert!(!memory.silent(&one, at(1), at(6)), "it began before the other was over");
        assert!(memory.silent(&one, at(6), at(11)));
        memory.opened(&one, at(12));
        assert!(!memory.silent(&one, at(13), at(18)), "it was not silent in between");
        let failure = Failure::of_transport(Fault::AtCapacity, Evidence::Refused);
        memory.refused(&one, &failure, at(19));
        assert!(!memory.silent(&one, at(20), at(25)), "nor here");
    }

    #[test]
    fn a_refusal_holds_for_as_long_as_it_says_or_for_a_second() {
        use relay_core::retry_after::Advice;
        let (memory, one) = (Memory::default(), address(1));
        let failure = Failure::of_transport(Fault::AtCapacity, Evidence::Refused);
        let told = Failure { advice: Advice::Wait(Duration::from_secs(30)), ..failure.clone() };
        memory.refused(&one, &told, at(10));
        assert!(memory.still_refused(&one, at(39)).is_some() && memory.still_refused(&one, at(40)).is_none());
        memory.refused(&one, &failure, at(50));
        assert!(memory.still_refused(&one, at(50)).is_some() && memory.still_refused(&one, at(51)).is_none());
        memory.refused(&one, &told, at(60));
        memory.opened(&one, at(61));
        assert!(memory.still_refused(&one, at(62)).is_none());
    }

    #[test]
    fn beyond_its_bound_the_oldest_is_forgotten() {
        let memory = Memory::default();
        for account in 0..MOST as u64 + 10 {
            memory.unspoken(&address(account), at(account));
        }
        let now = at(MOST as u64 + 10);
        assert_eq!(memory.known.lock().unwrap().len(), MOST);
        assert!(!memory.is_unspoken(&address(0), now) && memory.is_unspoken(&address(MOST as u64), now));
    }
}
