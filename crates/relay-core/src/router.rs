//! Which of several upstreams a call is sent to next. Pure: how each of them stands is handed in.
//!
//! Each of them is a *leg* of the call. The strategy says in which order they are preferred; the first goes that takes
//! calls now, before one that has failed this call more often. Where none does, the call waits for the one that is
//! expected first. What a call may do after a failure is not decided here (that is [`crate::decide`]), nor which legs it
//! may use at all (that is the guard).

use std::time::Duration;

use crate::breaker::Circuit;
use crate::dice::Dice;
use crate::moment::Moment;

/// In which order the members of a pool are preferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// As they are listed: the next one is for when those before it cannot. The default: what is listed first is what
    /// its owner wants.
    #[default]
    InOrder,
    /// By chance, each as often as its weight says.
    Weighted,
    /// The one with the fewest calls waiting and under way, for its weight.
    LeastWaiting,
    /// Each session has one of its own, and keeps it: its prefix lies in that one's cache.
    Sticky,
}

impl Strategy {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::InOrder, Self::Weighted, Self::LeastWaiting, Self::Sticky];

    /// The name in settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::InOrder => "in_order",
            Self::Weighted => "weighted",
            Self::LeastWaiting => "least_waiting",
            Self::Sticky => "sticky",
        }
    }
}

/// How a leg stands at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Its share beside others, at least 1.
    pub weight: u32,
    /// The other calls that wait there or are under way.
    pub load: usize,
    /// Whether its lane takes calls now.
    pub open: bool,
    /// Its lane sends nothing before, as far as that is known.
    pub hold: Option<Moment>,
    /// What its breaker says.
    pub circuit: Circuit,
    /// How often it has failed this call.
    pub failures: u32,
    /// This call is not to be sent there before.
    pub not_before: Option<Moment>,
}

impl Standing {
    /// When it might take the call; `None`: now.
    fn expected(&self, now: Moment) -> Option<Moment> {
        self.hold.max(self.not_before).filter(|at| *at > now)
    }

    fn takes_now(&self, now: Moment) -> bool {
        self.open && !matches!(self.circuit, Circuit::Open(_)) && self.expected(now).is_none()
    }
}

/// Where to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// Into the lane of this leg.
    Leg(usize),
    /// Nowhere before this moment: every breaker is open.
    Later(Moment),
    /// There is no leg.
    Nowhere,
}

/// The order in which a call prefers its legs, drawn once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order(Vec<usize>);

impl Order {
    /// The order of the legs with these weights. `session` tells a conversation from all others, and is the same each
    /// time. Where a strategy looks at how the legs stand, this order decides between equals.
    #[must_use]
    pub fn draw(strategy: Strategy, weights: &[u32], session: u64, dice: &mut dyn Dice) -> Self {
        let mut order: Vec<usize> = (0..weights.len()).collect();
        let lots: Vec<f64> = match strategy {
            Strategy::InOrder | Strategy::LeastWaiting => return Self(order),
            Strategy::Weighted => weights.iter().map(|weight| lot(dice.share(), *weight)).collect(),
            Strategy::Sticky => {
                let lots = (0_u64..).zip(weights);
                lots.map(|(leg, weight)| lot(share(mix(session ^ mix(leg + 1))), *weight)).collect()
            }
        };
        order.sort_by(|one, other| lots[*other].total_cmp(&lots[*one]));
        Self(order)
    }

    /// The leg that is preferred where all stand alike.
    #[must_use]
    pub fn first(&self) -> Option<usize> {
        self.0.first().copied()
    }

    /// This leg before all others: it served the session the last time.
    #[must_use]
    pub fn preferring(mut self, leg: usize) -> Self {
        if let Some(at) = self.0.iter().position(|known| *known == leg) {
            self.0[..=at].rotate_right(1);
        }
        self
    }

    /// The same with so many more legs, which come after all of these.
    #[must_use]
    pub fn and(mut self, more: usize) -> Self {
        let many = self.0.len();
        self.0.extend(many..many + more);
        self
    }

    /// Where the call goes now. Legs that are missing from `standings` count as ones that it may not use.
    #[must_use]
    pub fn choose(&self, strategy: Strategy, standings: &[Option<Standing>], now: Moment) -> Choice {
        let known = || {
            let place = |(place, leg): (usize, &usize)| Some((place, *leg, (*standings.get(*leg)?)?));
            self.0.iter().enumerate().filter_map(place)
        };
        let load = |standing: &Standing| match strategy {
            Strategy::LeastWaiting => Load::of(standing),
            Strategy::InOrder | Strategy::Weighted | Strategy::Sticky => Load::default(),
        };
        let open = known().filter(|(_, _, standing)| standing.takes_now(now));
        if let Some((_, leg, _)) =
            open.min_by_key(|(place, _, standing)| (standing.failures, load(standing), *place))
        {
            return Choice::Leg(leg);
        }
        let waiting = known().filter(|(_, _, standing)| !matches!(standing.circuit, Circuit::Open(_)));
        // One at which nobody waits would never be found to take calls again: somebody has to ask it.
        let key = |(place, _, standing): &(usize, usize, Standing)| {
            (standing.expected(now), standing.load > 0, load(standing), *place)
        };
        if let Some((_, leg, _)) = waiting.min_by_key(key) {
            return Choice::Leg(leg);
        }
        let until = known().filter_map(|(_, _, standing)| match standing.circuit {
            Circuit::Open(until) => Some(until),
            Circuit::Closed | Circuit::HalfOpen => None,
        });
        until.min().map_or(Choice::Nowhere, Choice::Later)
    }

    /// How long until a leg other than `but` takes the call, as far as that is known; `None`: there is no other, or
    /// nobody can say.
    #[must_use]
    pub fn other_in(&self, but: usize, standings: &[Option<Standing>], now: Moment) -> Option<Duration> {
        let others =
            self.0.iter().filter(|leg| **leg != but).filter_map(|leg| (*standings.get(*leg)?)?.into());
        others
            .filter_map(|standing: Standing| match standing.circuit {
                Circuit::Open(until) => Some(until.max(standing.expected(now).unwrap_or(now)).since(now)),
                Circuit::Closed | Circuit::HalfOpen => match standing.expected(now) {
                    Some(at) => Some(at.since(now)),
                    None => standing.open.then_some(Duration::ZERO),
                },
            })
            .min()
    }
}

/// The load of a leg for its weight, to be compared without rounding.
#[derive(Debug, Clone, Copy, Default)]
struct Load {
    calls: u128,
    weight: u128,
}

impl Load {
    fn of(standing: &Standing) -> Self {
        Self { calls: standing.load as u128, weight: u128::from(standing.weight.max(1)) }
    }
}

impl PartialEq for Load {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Load {}

impl PartialOrd for Load {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Load {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.calls * other.weight).cmp(&(other.calls * self.weight))
    }
}

/// A lot that wins as often as its weight says (Efraimidis and Spirakis, "Weighted random sampling with a reservoir",
/// 2006); of weights that change, each moves only what is its own (weighted rendezvous hashing).
fn lot(share: f64, weight: u32) -> f64 {
    // Never the logarithm of zero.
    share.max(f64::MIN_POSITIVE).ln() / f64::from(weight.max(1))
}

/// A number of 64 bits as one in `[0, 1)`.
fn share(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

/// Mixes well (the finalizer of SplitMix64, as in [`crate::dice`]).
const fn mix(bits: u64) -> u64 {
    crate::dice::SeededDice::new(bits).bits()
}

#[cfg(test)]
mod tests;
