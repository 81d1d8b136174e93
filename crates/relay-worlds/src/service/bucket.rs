//! A limit of requests a second: tokens that come back at a steady rate.

use std::time::Duration;

use relay_core::fault::Fault;
use relay_core::moment::Moment;

use crate::admission::Class;
use crate::chance::seconds;

use super::{Bucket, Hint};

/// What is missing of a whole token and is not worth a refusal.
const CRUMB: f64 = 1e-9;
/// Refused sends cost no more than leads to here.
const DEEPEST: f64 = -5.0;

/// The tokens of a limit.
#[derive(Debug)]
pub(super) struct Tokens {
    bucket: Bucket,
    level: f64,
    at: Moment,
}

impl Tokens {
    pub(super) const fn new(bucket: Bucket) -> Self {
        Self { bucket, level: bucket.burst, at: Moment::ZERO }
    }

    pub(super) fn refill(&mut self, now: Moment) {
        let more = now.since(self.at).as_secs_f64() * self.bucket.rate;
        self.level = (self.level + more).min(self.bucket.burst);
        self.at = now;
    }

    pub(super) fn has_one(&self) -> bool {
        self.level >= 1.0 - CRUMB
    }

    /// Takes a token, or says when to come back, as far as the limit says so.
    pub(super) fn take(&mut self) -> Result<(), Option<Duration>> {
        if self.has_one() {
            self.level -= 1.0;
            return Ok(());
        }
        self.level = (self.level - self.bucket.cost).max(DEEPEST);
        Err(match self.bucket.hint {
            Hint::Absent => None,
            Hint::Zero => Some(Duration::ZERO),
            Hint::Times(times) => Some(seconds(self.missing() * times)),
        })
    }

    /// What it says its refusals are.
    pub(super) const fn class(&self) -> Class {
        if self.bucket.typed { Class::Rate } else { Class::Capacity(Fault::Throttled) }
    }

    /// When there is a token again.
    pub(super) fn next(&self, now: Moment) -> Moment {
        now + seconds(self.missing() + 1e-6)
    }

    /// The seconds until there is a token.
    fn missing(&self) -> f64 {
        ((1.0 - self.level) / self.bucket.rate).max(0.0)
    }
}
