//! How long to wait before the next send: `max(floor, min(base · factorⁿ, cap)) + jitter`.
//! Jitter is only ever added, so a wait is never shorter than what the upstream asked for.

use std::time::Duration;

use crate::dice::Dice;
use crate::evidence::Evidence;
use crate::failure::Failure;
use crate::fault::Fault;
use crate::profile::{Curve, Profile};
use crate::retry_after::Advice;

/// Which curve a wait follows; each has its own count of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// At capacity, throttled, failed, maybe ran.
    Plain,
    /// The whole service is overloaded.
    Overloaded,
    /// Nothing was sent.
    Quick,
}

impl Pace {
    /// The pace that a failure asks for.
    #[must_use]
    pub fn of(failure: &Failure) -> Self {
        if failure.evidence == Some(Evidence::NeverSent) {
            Self::Quick
        } else if failure.fault == Fault::Overloaded {
            Self::Overloaded
        } else {
            Self::Plain
        }
    }
}

/// The steps a call has taken on each curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Steps {
    plain: u32,
    overloaded: u32,
    quick: u32,
}

impl Steps {
    /// None taken yet.
    pub const NONE: Self = Self { plain: 0, overloaded: 0, quick: 0 };

    /// The larger of each count.
    #[must_use]
    pub fn max_of(self, other: Self) -> Self {
        Self {
            plain: self.plain.max(other.plain),
            overloaded: self.overloaded.max(other.overloaded),
            quick: self.quick.max(other.quick),
        }
    }

    /// The next wait, without a floor, and one more step taken.
    fn take(&mut self, pace: Pace, profile: &Profile, dice: &mut dyn Dice) -> (Duration, Duration) {
        let (curve, step) = match pace {
            Pace::Plain => (&profile.curve, &mut self.plain),
            Pace::Overloaded => (&profile.overloaded, &mut self.overloaded),
            Pace::Quick => (&profile.never_sent, &mut self.quick),
        };
        let raw = raised(curve, *step);
        *step = step.saturating_add(1);
        let jitter = match pace {
            Pace::Plain | Pace::Overloaded => curve.jitter,
            // A second of chance on a wait of 150 ms would be the wait.
            Pace::Quick => curve.jitter.min(raw),
        };
        (raw, dice.up_to(jitter))
    }
}

/// `min(base · factorⁿ, cap)`.
#[must_use]
pub fn raised(curve: &Curve, step: u32) -> Duration {
    let seconds = curve.base.as_secs_f64() * curve.factor.powi(i32::try_from(step.min(1000)).unwrap_or(1000));
    if seconds.is_finite() && seconds < curve.cap.as_secs_f64() {
        Duration::from_secs_f64(seconds.max(0.0))
    } else {
        curve.cap
    }
}

/// The shortest wait that the upstream asked for; a value that says nothing means the profile's own floor.
#[must_use]
pub const fn floor(advice: Advice, profile: &Profile) -> Duration {
    match advice {
        Advice::Silent => Duration::ZERO,
        Advice::Useless => profile.useless_floor,
        Advice::Wait(told) => told,
    }
}

/// The first wait on the curve of a failure, whatever was waited before.
#[must_use]
pub fn first(failure: &Failure, profile: &Profile, dice: &mut dyn Dice) -> Duration {
    let (raw, jitter) = Steps::default().take(Pace::of(failure), profile, dice);
    raw.saturating_add(jitter)
}

/// The wait after a failure; takes one step on its curve.
pub fn after(failure: &Failure, steps: &mut Steps, profile: &Profile, dice: &mut dyn Dice) -> Duration {
    let (raw, jitter) = steps.take(Pace::of(failure), profile, dice);
    raw.max(floor(failure.advice, profile)).saturating_add(jitter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::SeededDice;
    use proptest::prelude::*;

    struct NoChance;
    impl Dice for NoChance {
        fn share(&mut self) -> f64 {
            0.0
        }
    }

    fn refused(fault: Fault, advice: Advice) -> Failure {
        Failure { advice, ..Failure::of_transport(fault, Evidence::Refused) }
    }

    fn curve(fault: Fault, profile: &Profile, steps: usize) -> Vec<f64> {
        let mut taken = Steps::default();
        (0..steps)
            .map(|_| after(&refused(fault, Advice::Silent), &mut taken, profile, &mut NoChance).as_secs_f64())
            .collect()
    }

    #[test]
    fn seven_waits_of_interactive_take_91_seconds() {
        let waits = curve(Fault::AtCapacity, &Profile::interactive(), 7);
        assert_eq!(waits, [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]);
        assert!((waits.iter().sum::<f64>() - 91.0).abs() < 1e-9);
    }

    #[test]
    fn eleven_waits_of_batch_take_363_seconds() {
        let sum: f64 = curve(Fault::Throttled, &Profile::batch(), 11).iter().sum();
        assert!((sum - 363.0).abs() < 1e-9, "{sum}");
    }

    #[test]
    fn overloaded_starts_at_four_seconds_and_ends_at_sixty() {
        assert_eq!(curve(Fault::Overloaded, &Profile::interactive(), 6), [4.0, 8.0, 16.0, 32.0, 60.0, 60.0]);
    }

    #[test]
    fn strict_starts_at_400_ms() {
        assert_eq!(curve(Fault::AtCapacity, &Profile::strict(), 5), [0.4, 0.8, 1.6, 3.2, 5.0]);
    }

    #[test]
    fn the_first_tries_where_nothing_was_sent_are_quick() {
        let mut steps = Steps::default();
        let failure = Failure::of_transport(Fault::NeverSent, Evidence::NeverSent);
        let waits: Vec<_> = (0..4)
            .map(|_| after(&failure, &mut steps, &Profile::interactive(), &mut NoChance).as_millis())
            .collect();
        assert_eq!(waits, [150, 300, 600, 1200]);
    }

    #[test]
    fn codex_retry_starts_at_1500_ms_and_ends_at_a_minute_whatever_is_short() {
        for fault in [Fault::Throttled, Fault::AtCapacity, Fault::Overloaded, Fault::ServerFailed] {
            let waits = curve(fault, &Profile::codex_retry(), 7);
            assert_eq!(waits, [1.5, 3.0, 6.0, 12.0, 24.0, 48.0, 60.0], "{fault:?}");
        }
    }

    #[test]
    fn the_reset_leg_of_opencodex_ends_at_a_second() {
        let mut steps = Steps::default();
        let failure = Failure::of_transport(Fault::NeverSent, Evidence::NeverSent);
        let mut wait = || after(&failure, &mut steps, &Profile::opencodex(), &mut NoChance).as_millis();
        assert_eq!([wait(), wait(), wait(), wait()], [150, 300, 600, 1000]);
    }

    #[test]
    fn a_useless_value_means_the_floor_and_a_told_one_is_never_undercut() {
        let profile = Profile::interactive();
        let mut dice = SeededDice::new(3);
        for _ in 0..2000 {
            let useless = after(
                &refused(Fault::Throttled, Advice::Useless),
                &mut Steps::default(),
                &profile,
                &mut dice,
            );
            assert!(useless >= Duration::from_millis(1500));
            let told = Advice::Wait(Duration::from_millis(7300));
            let wait = after(&refused(Fault::Throttled, told), &mut Steps::default(), &profile, &mut dice);
            assert!(wait >= Duration::from_millis(7300) && wait < Duration::from_millis(8300));
        }
        let short = Advice::Wait(Duration::from_millis(200));
        let wait = after(&refused(Fault::Throttled, short), &mut Steps::default(), &profile, &mut NoChance);
        assert_eq!(wait, Duration::from_secs(1), "a sub-second value is a floor, not a wait");
    }

    #[test]
    fn a_curve_never_overflows() {
        let curve =
            Curve { base: Duration::MAX, factor: 10.0, cap: Duration::from_secs(60), jitter: Duration::ZERO };
        assert_eq!(raised(&curve, u32::MAX), Duration::from_secs(60));
    }

    fn curves() -> impl Strategy<Value = Curve> {
        (0_u64..100_000, 1.0_f64..20.0, 0_u64..10_000_000, 0_u64..60_000).prop_map(
            |(base, factor, cap, jitter)| {
                let [base, cap, jitter] = [base, cap, jitter].map(Duration::from_millis);
                Curve { base, factor, cap, jitter }
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        /// A curve never falls and never passes its cap, and chance only ever adds to it.
        #[test]
        fn a_wait_lies_between_its_floor_and_its_cap_with_jitter(
            curve in curves(),
            told in 0_u64..10_000_000,
            seed in any::<u64>(),
            fault in prop::sample::select(vec![Fault::AtCapacity, Fault::Overloaded, Fault::NeverSent]),
        ) {
            let profile = Profile { curve, overloaded: curve, never_sent: curve, ..Profile::interactive() };
            let told = Duration::from_millis(told);
            let evidence = if fault == Fault::NeverSent { Evidence::NeverSent } else { Evidence::Refused };
            let failure = Failure { advice: Advice::Wait(told), ..Failure::of_transport(fault, evidence) };
            let (mut steps, mut dice) = (Steps::default(), SeededDice::new(seed));
            let mut least = Duration::ZERO;
            for step in 0..80 {
                let wait = after(&failure, &mut steps, &profile, &mut dice);
                prop_assert!(wait >= told, "never early");
                prop_assert!(wait <= told.max(curve.cap).saturating_add(curve.jitter));
                let raw = raised(&curve, step);
                prop_assert!(raw >= least && raw <= curve.cap);
                if fault != Fault::NeverSent {
                    prop_assert!(wait >= raw);
                }
                least = raw;
            }
        }
    }

    #[test]
    fn each_kind_of_wait_climbs_by_itself() {
        let mut steps = Steps::default();
        let mut wait = |fault, evidence| {
            let failure = Failure::of_transport(fault, evidence);
            after(&failure, &mut steps, &Profile::interactive(), &mut NoChance).as_secs_f64()
        };
        let waits = [
            wait(Fault::AtCapacity, Evidence::Refused),
            wait(Fault::Overloaded, Evidence::Refused),
            wait(Fault::NeverSent, Evidence::NeverSent),
            wait(Fault::ServerFailed, Evidence::Failed),
            wait(Fault::Overloaded, Evidence::Refused),
            wait(Fault::NeverSent, Evidence::NeverSent),
            wait(Fault::BrokenStream, Evidence::MaybeRan),
        ];
        assert_eq!(waits, [1.0, 4.0, 0.15, 2.0, 8.0, 0.3, 4.0]);
    }
}
