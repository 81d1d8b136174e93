//! A lane that is parked: its quota is spent, and the upstream named when there is one again. It is shut until then;
//! nobody asks but a person, and what it learns of shut times is not learned from this one.

use std::time::Duration;

use super::view::Shut;
use super::{Gate, ShutState, backoff};
use crate::dice::Dice;
use crate::moment::Moment;

/// Since when a lane is parked, and until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parked {
    /// When it was told.
    pub since: Moment,
    /// Nothing is sent before.
    pub until: Moment,
}

impl Gate {
    /// Since when the lane is parked, and until when.
    #[must_use]
    pub fn parked(&self, now: Moment) -> Option<Parked> {
        self.parked.filter(|parked| parked.until > now)
    }

    /// The answer to what was sent then says that there is no quota for so long.
    pub(super) fn park(&mut self, sent: Moment, told: Duration, now: Moment, dice: &mut dyn Dice) {
        let until = now + told + backoff::spread(told, dice);
        let parked = match self.parked(now) {
            // It was on its way already, and tells of the same quota. What was sent later knows more.
            Some(known) if sent <= known.since => Parked { until: until.max(known.until), ..known },
            Some(_) | None => Parked { since: now, until },
        };
        self.parked = Some(parked);
        self.ramp.stop();
        self.completions.start();
        // Whatever is under way says nothing about the time after this.
        self.refused_sent = self.refused_sent.max(Some(now));
        let shut = self.shut.unwrap_or_else(|| self.close(Shut::Spent, now, dice));
        let until = parked.until;
        self.shut = Some(ShutState {
            why: Shut::Spent,
            hopeful: false,
            next_probe: until,
            first_by: None,
            floor: now,
            // Nobody looks before, and so the time until then says nothing about how long a lane is short.
            asked: until,
            ..shut
        });
    }

    /// There is a quota again, or a person wants to know.
    pub(super) fn unpark(&mut self) {
        if self.parked.take().is_some()
            && let Some(shut) = &mut self.shut
        {
            shut.next_probe = shut.floor;
        }
    }

    /// A send that was made then was accepted: if the lane was parked before, it is so no more.
    pub(super) fn unpark_by(&mut self, sent: Moment) {
        if self.parked.is_some_and(|parked| sent > parked.since) {
            self.unpark();
        }
    }

    /// Why a lane is shut that refused what was sent then, for want of capacity.
    pub(super) fn shut_by(&mut self, refused: Shut, sent: Moment) -> Shut {
        match self.parked {
            Some(parked) if sent < parked.until => Shut::Spent,
            Some(_) | None => {
                // It was asked after its time, and lacks something else.
                self.parked = None;
                refused
            }
        }
    }
}
