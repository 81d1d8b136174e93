//! When a credential of the relay's own is had anew, and what a call that needs it does meanwhile. Pure: whoever holds the
//! value says what time it is and what came of it. Not the value itself, nor where it comes from.
//!
//! ```text
//!           needed, near its end, or refused            renewed
//!  Resting -----------------------------------> Renewing -------> Resting
//!     ^                                            |
//!     '------- the pause is over ---- Pausing <----+ failed
//!     '------- the source changed ---- Spent <-----' failed for good
//! ```
//!
//! There is never more than one renewal at a time: whoever asks while one is under way waits for it, or goes on with the
//! value that is still good.

use std::time::Duration;

use crate::dice::Dice;
use crate::moment::Moment;
use crate::profile::Curve;
use crate::wait::raised;

/// The pauses after renewals that failed. A second: most troubles of a network are over by then. At most a minute: calls
/// wait for it, and nobody pays for a try.
const CURVE: Curve = Curve {
    base: Duration::from_secs(1),
    factor: 2.0,
    cap: Duration::from_secs(60),
    jitter: Duration::from_millis(500),
};
/// The longest pause that an issuer may ask for: what is longer is a slip, and a call should notice that it is over.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

/// How a credential is renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Terms {
    /// Whether it can be at all: a key that stands in the settings cannot.
    pub renewable: bool,
    /// So long before its end, but not in the first half of its life.
    pub before: Duration,
    /// A value that was issued less than this ago is not renewed because it was refused: the next one would be, too.
    pub apart: Duration,
}

/// What a call does that needs the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// It takes the value.
    Take,
    /// It takes the value, and a renewal begins that it does not wait for.
    TakeAndRenew,
    /// A renewal begins, and it waits for that.
    Renew,
    /// It waits for the renewal that is under way.
    Wait,
    /// There is no good value, and none is asked for before this has passed.
    Pause(Duration),
    /// There is no good value, and there will be none until the source changes.
    Never,
}

/// What a call does whose value was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// It goes on with the present value, which is newer.
    Newer,
    /// A renewal begins, and it waits for that.
    Renew,
    /// It waits for the renewal that is under way.
    Wait,
    /// It stays refused.
    Stays,
}

/// Whether a call would get the value at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outlook {
    /// It would, or is the first to ask.
    Fair,
    /// A renewal has been under way since then, and it would wait for that.
    Awaited(Moment),
    /// The last renewal failed, and none begins before.
    Paused(Moment),
    /// There is none, and will be none before the source changes.
    Never,
}

/// What a renewal brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Renewed {
    /// It is another value than before.
    pub is_new: bool,
    /// It was issued just now, rather than found where it is kept.
    pub issued: bool,
    /// How long it is good; `None`: nobody said.
    pub lifetime: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Resting,
    /// Since then.
    Renewing(Moment),
    Pausing(Moment),
    Spent,
}

/// The renewal of one credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renewal {
    terms: Terms,
    phase: Phase,
    /// The number of the present value, from 1; 0: there is none yet.
    number: u64,
    good_until: Option<Moment>,
    renew_from: Option<Moment>,
    issued: Option<Moment>,
    failures: u32,
}

impl Renewal {
    /// One that has no value yet.
    #[must_use]
    pub const fn new(terms: Terms) -> Self {
        Self {
            terms,
            phase: Phase::Resting,
            number: 0,
            good_until: None,
            renew_from: None,
            issued: None,
            failures: 0,
        }
    }

    /// The number of the present value; it grows with each new one, and is 0 where there is none.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// What a call that needs the value would meet, without asking for it.
    #[must_use]
    pub fn outlook(&self, now: Moment) -> Outlook {
        match self.phase {
            _ if self.is_good(now) => Outlook::Fair,
            Phase::Renewing(since) => Outlook::Awaited(since),
            Phase::Pausing(until) if now < until => Outlook::Paused(until),
            Phase::Spent => Outlook::Never,
            Phase::Resting if !self.terms.renewable => Outlook::Never,
            Phase::Resting | Phase::Pausing(_) => Outlook::Fair,
        }
    }

    fn is_good(&self, now: Moment) -> bool {
        self.number > 0 && self.good_until.is_none_or(|until| now < until)
    }

    /// A call needs the value.
    pub fn need(&mut self, now: Moment) -> Need {
        let is_good = self.is_good(now);
        let is_due = !is_good || self.renew_from.is_some_and(|from| now >= from);
        if let Phase::Pausing(until) = self.phase
            && now >= until
        {
            self.phase = Phase::Resting;
        }
        match self.phase {
            Phase::Resting if is_due && self.terms.renewable => {
                self.phase = Phase::Renewing(now);
                if is_good { Need::TakeAndRenew } else { Need::Renew }
            }
            _ if is_good => Need::Take,
            Phase::Renewing(_) => Need::Wait,
            Phase::Pausing(until) => Need::Pause(until.since(now)),
            Phase::Resting | Phase::Spent => Need::Never,
        }
    }

    /// The value of this number was refused.
    pub fn refused(&mut self, number: u64, now: Moment) -> Refused {
        if number < self.number {
            return Refused::Newer;
        }
        let is_fresh = self.issued.is_some_and(|issued| now.since(issued) < self.terms.apart);
        match self.phase {
            Phase::Renewing(_) => Refused::Wait,
            Phase::Resting if self.terms.renewable && !is_fresh => {
                self.phase = Phase::Renewing(now);
                Refused::Renew
            }
            Phase::Pausing(until) if now >= until && !is_fresh => {
                self.phase = Phase::Renewing(now);
                Refused::Renew
            }
            Phase::Resting | Phase::Pausing(_) | Phase::Spent => Refused::Stays,
        }
    }

    /// The renewal that was under way brought a value.
    pub fn renewed(&mut self, renewed: Renewed, now: Moment) {
        let Renewed { is_new, issued, lifetime } = renewed;
        self.phase = Phase::Resting;
        self.failures = 0;
        self.number += u64::from(is_new || self.number == 0);
        if issued {
            self.issued = Some(now);
        }
        // One that is over at once says nothing.
        let lifetime = lifetime.filter(|lifetime| !lifetime.is_zero());
        self.good_until = lifetime.map(|lifetime| now + lifetime);
        self.renew_from = lifetime.map(|lifetime| now + (lifetime - self.terms.before.min(lifetime / 2)));
    }

    /// The renewal that was under way brought none; `told`: the issuer asked for a pause.
    pub fn failed(&mut self, told: Option<Duration>, now: Moment, dice: &mut dyn Dice) {
        let curve = raised(&CURVE, self.failures).saturating_add(dice.up_to(CURVE.jitter));
        self.failures = self.failures.saturating_add(1);
        self.phase = Phase::Pausing(now + curve.max(told.unwrap_or_default().min(LONGEST_PAUSE)));
    }

    /// The renewal that was under way brought none, and no other will until the source changes.
    pub const fn failed_for_good(&mut self) {
        self.phase = Phase::Spent;
    }

    /// Whether nothing is tried any more until the source changes.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.phase == Phase::Spent
    }

    /// The source changed: what failed may succeed now.
    pub fn source_changed(&mut self) {
        if let Phase::Pausing(_) | Phase::Spent = self.phase {
            self.phase = Phase::Resting;
            self.failures = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::SeededDice;
    use proptest::prelude::*;

    const TERMS: Terms =
        Terms { renewable: true, before: Duration::from_secs(60), apart: Duration::from_secs(30) };

    fn at(seconds: u64) -> Moment {
        Moment::after_start(Duration::from_secs(1000 + seconds))
    }

    fn issued(lifetime: u64) -> Renewed {
        let lifetime = Some(Duration::from_secs(lifetime));
        Renewed { is_new: true, issued: true, lifetime }
    }

    fn fresh(lifetime: u64) -> Renewal {
        let mut renewal = Renewal::new(TERMS);
        assert_eq!(renewal.need(at(0)), Need::Renew);
        renewal.renewed(issued(lifetime), at(0));
        renewal
    }

    #[test]
    fn the_first_call_renews_and_all_others_wait_for_it() {
        let mut renewal = Renewal::new(TERMS);
        assert_eq!(renewal.need(at(0)), Need::Renew);
        assert_eq!([renewal.need(at(0)), renewal.need(at(1))], [Need::Wait; 2]);
        assert_eq!(renewal.outlook(at(1)), Outlook::Awaited(at(0)));
        renewal.renewed(issued(3600), at(2));
        assert_eq!((renewal.need(at(2)), renewal.number()), (Need::Take, 1));
    }

    #[test]
    fn it_is_renewed_before_its_end_and_calls_wait_only_after_it() {
        let mut renewal = fresh(3600);
        assert_eq!(renewal.need(at(3539)), Need::Take);
        assert_eq!(renewal.need(at(3540)), Need::TakeAndRenew);
        assert_eq!(renewal.need(at(3599)), Need::Take);
        assert_eq!(renewal.need(at(3600)), Need::Wait);
        // In the first half of a short life nothing is renewed.
        let mut renewal = fresh(20);
        assert_eq!([renewal.need(at(9)), renewal.need(at(10))], [Need::Take, Need::TakeAndRenew]);
        // A life that is over at once, or of which nothing is said, has no end that is known.
        for lifetime in [Some(Duration::ZERO), None] {
            let mut renewal = fresh(10);
            assert_eq!(renewal.need(at(10)), Need::Renew);
            renewal.renewed(Renewed { lifetime, ..issued(0) }, at(10));
            assert_eq!(renewal.need(at(1_000_000)), Need::Take);
        }
    }

    #[test]
    fn one_refusal_renews_and_the_others_take_what_it_brings() {
        let mut renewal = fresh(3600);
        assert_eq!(renewal.refused(1, at(100)), Refused::Renew);
        assert_eq!([renewal.refused(1, at(100)), renewal.refused(1, at(101))], [Refused::Wait; 2]);
        renewal.renewed(issued(3600), at(102));
        assert_eq!((renewal.refused(1, at(103)), renewal.number()), (Refused::Newer, 2));
        // What was issued just now and is refused, too, is not asked for again and again.
        assert_eq!(renewal.refused(2, at(131)), Refused::Stays);
        assert_eq!(renewal.refused(2, at(132)), Refused::Renew);
        // The same value once more is no newer one.
        renewal.renewed(Renewed { is_new: false, ..issued(3600) }, at(133));
        assert_eq!((renewal.refused(2, at(134)), renewal.number()), (Refused::Stays, 2));
    }

    #[test]
    fn what_was_found_where_it_is_kept_is_renewed_at_the_first_refusal() {
        let mut renewal = Renewal::new(TERMS);
        assert_eq!(renewal.need(at(0)), Need::Renew);
        renewal.renewed(Renewed { issued: false, ..issued(3600) }, at(0));
        assert_eq!(renewal.refused(1, at(1)), Refused::Renew);
    }

    #[test]
    fn a_failure_pauses_longer_each_time_and_never_shorter_than_was_asked_for() {
        let mut dice = SeededDice::new(7);
        let mut renewal = Renewal::new(TERMS);
        let mut now = at(0);
        let mut pauses = Vec::new();
        for _ in 0..8 {
            assert_eq!(renewal.need(now), Need::Renew);
            renewal.failed(None, now, &mut dice);
            let Need::Pause(pause) = renewal.need(now) else { panic!("it pauses") };
            assert_eq!(renewal.outlook(now), Outlook::Paused(now + pause));
            assert_eq!(renewal.refused(0, now), Refused::Stays);
            pauses.push(pause.as_secs());
            now = now + pause;
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(renewal.need(now), Need::Renew);
        renewal.failed(Some(Duration::from_secs(300)), now, &mut dice);
        assert_eq!(renewal.need(now), Need::Pause(Duration::from_secs(300)));
        let now = now + Duration::from_secs(300);
        assert_eq!(renewal.need(now), Need::Renew);
        renewal.failed(Some(Duration::MAX), now, &mut dice);
        assert_eq!(renewal.need(now), Need::Pause(LONGEST_PAUSE));
    }

    #[test]
    fn a_value_that_is_still_good_is_used_whatever_its_renewal_meets() {
        let mut renewal = fresh(3600);
        assert_eq!(renewal.need(at(3550)), Need::TakeAndRenew);
        assert_eq!(renewal.outlook(at(3550)), Outlook::Fair);
        renewal.failed(None, at(3551), &mut SeededDice::new(1));
        assert_eq!(renewal.need(at(3551)), Need::Take);
        assert_eq!(renewal.need(at(3553)), Need::TakeAndRenew);
        renewal.failed_for_good();
        assert_eq!(renewal.need(at(3599)), Need::Take);
        assert_eq!((renewal.need(at(3600)), renewal.refused(1, at(3600))), (Need::Never, Refused::Stays));
        assert!(renewal.is_spent());
        assert_eq!([renewal.outlook(at(3599)), renewal.outlook(at(3600))], [Outlook::Fair, Outlook::Never]);
        renewal.source_changed();
        assert_eq!(renewal.need(at(3601)), Need::Renew);
    }

    #[test]
    fn what_cannot_be_renewed_is_taken_as_it_is() {
        let mut renewal = Renewal::new(Terms::default());
        assert_eq!((renewal.need(at(0)), renewal.outlook(at(0))), (Need::Never, Outlook::Never));
        renewal.renewed(Renewed { is_new: true, issued: false, lifetime: None }, at(0));
        assert_eq!(renewal.outlook(at(9)), Outlook::Fair);
        assert_eq!((renewal.need(at(9)), renewal.refused(1, at(9))), (Need::Take, Refused::Stays));
    }

    #[derive(Debug, Clone, Copy)]
    enum Does {
        Needs,
        IsRefused(bool),
        Renews { is_new: bool, issued: bool, lifetime: u64 },
        Fails(u64),
        FailsForGood,
        SourceChanges,
        Passes(u64),
    }

    fn does() -> impl Strategy<Value = Does> {
        prop_oneof![
            4 => Just(Does::Needs),
            3 => any::<bool>().prop_map(Does::IsRefused),
            3 => (any::<bool>(), any::<bool>(), 0_u64..300)
                .prop_map(|(is_new, issued, lifetime)| Does::Renews { is_new, issued, lifetime }),
            1 => (0_u64..100).prop_map(Does::Fails),
            1 => Just(Does::FailsForGood),
            1 => Just(Does::SourceChanges),
            3 => (0_u64..100).prop_map(Does::Passes),
        ]
    }

    proptest! {
        /// One renewal at a time, none in a pause or after the last word, no value that is over, and nobody waits for
        /// nothing.
        #[test]
        fn a_renewal_is_alone_and_in_time(all in proptest::collection::vec(does(), 1..200), seed: u64) {
            let mut dice = SeededDice::new(seed);
            let (mut renewal, mut now) = (Renewal::new(TERMS), at(0));
            let (mut under_way, mut spent, mut not_before) = (false, false, now);
            let (mut good_until, mut last_issued) = (None, None);
            for one in all {
                let before = renewal.number();
                let mut begins = false;
                match one {
                    Does::Needs => match renewal.need(now) {
                        need @ (Need::Take | Need::TakeAndRenew) => {
                            prop_assert!(before > 0 && good_until.is_none_or(|until| now < until));
                            begins = need == Need::TakeAndRenew;
                        }
                        Need::Renew => begins = true,
                        Need::Wait => prop_assert!(under_way),
                        Need::Pause(left) => prop_assert_eq!(now + left, not_before),
                        Need::Never => prop_assert!(spent),
                    },
                    Does::IsRefused(old) => {
                        match renewal.refused(before.saturating_sub(u64::from(old)), now) {
                            Refused::Newer => prop_assert!(old && before > 0),
                            Refused::Renew => {
                                begins = true;
                                prop_assert!(last_issued.is_none_or(|last| now.since(last) >= TERMS.apart));
                            }
                            Refused::Wait => prop_assert!(under_way),
                            Refused::Stays => prop_assert!(!under_way),
                        }
                    }
                    Does::Renews { is_new, issued, lifetime } if under_way => {
                        under_way = false;
                        let lifetime = Some(Duration::from_secs(lifetime));
                        renewal.renewed(Renewed { is_new, issued, lifetime }, now);
                        good_until = lifetime.filter(|it| !it.is_zero()).map(|it| now + it);
                        last_issued = issued.then_some(now).or(last_issued);
                        prop_assert!(renewal.number() > 0 && renewal.number() <= before + 1);
                    }
                    Does::Fails(told) if under_way => {
                        under_way = false;
                        renewal.failed(Some(Duration::from_secs(told)), now, &mut dice);
                        let Phase::Pausing(until) = renewal.phase else { panic!("it pauses") };
                        prop_assert!(until >= now + Duration::from_secs(told.max(1)));
                        not_before = until;
                    }
                    Does::FailsForGood if under_way => {
                        (under_way, spent) = (false, true);
                        renewal.failed_for_good();
                    }
                    Does::SourceChanges => {
                        renewal.source_changed();
                        if !under_way {
                            (spent, not_before) = (false, now);
                        }
                    }
                    Does::Passes(seconds) => now = now + Duration::from_secs(seconds),
                    Does::Renews { .. } | Does::Fails(_) | Does::FailsForGood => {}
                }
                if begins {
                    prop_assert!(!under_way && !spent && now >= not_before, "{one:?} began one too many");
                    under_way = true;
                }
            }
        }
    }
}
