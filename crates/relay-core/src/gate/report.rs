//! What a failure tells the gate.

use super::{Class, Refusal, Report};
use crate::dice::Dice;
use crate::evidence::Evidence;
use crate::failure::Failure;
use crate::fault::Fault;
use crate::profile::Profile;
use crate::retry_after::Advice;
use crate::wait;

impl Report {
    /// What a failure tells the gate. Only what was refused before it ran says something about the lane; whether a
    /// spent quota does is for the call to say ([`crate::call::Call::parks`]).
    #[must_use]
    pub fn of(failure: &Failure, profile: &Profile, dice: &mut dyn Dice) -> Self {
        match class(failure) {
            Some(class) if failure.evidence == Some(Evidence::Refused) => {
                Self::Refused(Refusal::of(failure, class, profile, dice))
            }
            Some(_) | None => Self::Other,
        }
    }
}

impl Refusal {
    fn of(failure: &Failure, class: Class, profile: &Profile, dice: &mut dyn Dice) -> Self {
        let (told, floor) = match failure.advice {
            Advice::Wait(told) => (Some(told), std::time::Duration::ZERO),
            Advice::Useless => (None, profile.useless_floor),
            Advice::Silent => (None, std::time::Duration::ZERO),
        };
        Self { class, told, floor, first_wait: wait::first(failure, profile, dice) }
    }

    /// A want of capacity that an accepted answer told of.
    #[must_use]
    pub fn late(failure: &Failure, profile: &Profile, dice: &mut dyn Dice) -> Option<Self> {
        class(failure).map(|class| Self::of(failure, class, profile, dice))
    }
}

/// What a failure would be a refusal for. A 429 is a rate limit where it says so: by its code, or by an empty bucket.
/// Taken for a want of capacity a rate limit costs sends; the other way round it would cost success.
fn class(failure: &Failure) -> Option<Class> {
    match failure.fault {
        Fault::Throttled if is_rate(failure) => Some(Class::Rate),
        fault @ (Fault::Throttled | Fault::AtCapacity | Fault::Overloaded | Fault::ModelLoading) => {
            Some(Class::Capacity(fault))
        }
        Fault::QuotaSpent
        | Fault::Authentication
        | Fault::BadRequest
        | Fault::TooLong
        | Fault::ContentRefused
        | Fault::Challenge
        | Fault::ServerFailed
        | Fault::BrokenStream
        | Fault::EmptyAnswer
        | Fault::NoAnswer
        | Fault::NeverSent => None,
    }
}

/// A limit of calls at once is none of calls per time, whatever its code is.
fn is_rate(failure: &Failure) -> bool {
    let says = |text: &Option<Box<str>>| {
        text.as_deref().is_some_and(|text| text.to_ascii_lowercase().contains("concurren"))
    };
    (failure.by_code || failure.bucket_empty) && !says(&failure.code) && !says(&failure.message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::SeededDice;
    use std::time::Duration;

    fn refused(fault: Fault) -> Failure {
        Failure { status: Some(429), ..Failure::of_transport(fault, Evidence::Refused) }
    }

    fn report(failure: &Failure) -> Report {
        Report::of(failure, &Profile::interactive(), &mut SeededDice::new(1))
    }

    fn class_of(failure: &Failure) -> Option<Class> {
        match report(failure) {
            Report::Refused(refusal) => Some(refusal.class),
            Report::Spent(_) | Report::Other => None,
        }
    }

    #[test]
    fn a_429_is_a_rate_limit_where_it_says_so() {
        let throttled = refused(Fault::Throttled);
        let unknown = Some(Class::Capacity(Fault::Throttled));
        assert_eq!(class_of(&throttled), unknown);
        let by_code =
            Failure { by_code: true, code: Some("rate_limit_exceeded".into()), ..throttled.clone() };
        assert_eq!(class_of(&by_code), Some(Class::Rate));
        assert_eq!(class_of(&Failure { bucket_empty: true, ..throttled.clone() }), Some(Class::Rate));
        let concurrency = Failure { message: Some("max organization Concurrency: 1".into()), ..by_code };
        assert_eq!(class_of(&concurrency), unknown);
    }

    #[test]
    fn only_refusals_before_the_run_are_news_about_the_lane() {
        for fault in [Fault::AtCapacity, Fault::Overloaded, Fault::ModelLoading] {
            assert_eq!(class_of(&refused(fault)), Some(Class::Capacity(fault)));
        }
        for evidence in [None, Some(Evidence::Failed), Some(Evidence::MaybeRan), Some(Evidence::NeverSent)] {
            assert_eq!(report(&Failure { evidence, ..refused(Fault::AtCapacity) }), Report::Other);
        }
        assert_eq!(report(&refused(Fault::QuotaSpent)), Report::Other);
        let renewed = Failure { status: Some(401), renewed: true, ..refused(Fault::Authentication) };
        assert_eq!(report(&renewed), Report::Other, "a credential says nothing about room");
    }

    #[test]
    fn times_that_are_told_hold_all_and_those_that_say_nothing_hold_the_call() {
        let with = |advice| match report(&Failure { advice, ..refused(Fault::Overloaded) }) {
            Report::Refused(refusal) => refusal,
            Report::Spent(_) | Report::Other => panic!("it is a refusal"),
        };
        let wait = Duration::from_secs(7);
        assert_eq!(
            (with(Advice::Wait(wait)).told, with(Advice::Wait(wait)).floor),
            (Some(wait), Duration::ZERO)
        );
        let useless = with(Advice::Useless);
        assert_eq!((useless.told, useless.floor), (None, Duration::from_millis(1500)));
        let first = with(Advice::Silent).first_wait;
        assert!((Duration::from_secs(4)..Duration::from_secs(5)).contains(&first), "{first:?}");
    }
}
