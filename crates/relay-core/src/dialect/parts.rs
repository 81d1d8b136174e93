//! The parts that an answer may have (choices, candidates), and whether all that were seen are finished. A protocol
//! that finishes each part does not always say a last word for the whole.

/// The parts of one answer as far as it was heard, by their numbers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Parts {
    seen: u64,
    finished: u64,
}

impl Parts {
    /// A part was heard of; what is finished stays so, since what comes after is about it and none of it.
    pub(super) fn hear(&mut self, number: u64, is_finished: bool) {
        // Nobody asks for that many: those beyond share the last place.
        let place = 1 << number.min(63);
        self.seen |= place;
        if is_finished {
            self.finished |= place;
        }
    }

    /// There will be no more of any part.
    pub(super) fn finish(&mut self) {
        self.hear(0, true);
        self.finished = self.seen;
    }

    /// Whether there were parts, and each is finished.
    #[must_use]
    pub const fn are_finished(self) -> bool {
        self.seen != 0 && self.seen == self.finished
    }
}

#[cfg(test)]
mod tests {
    use super::Parts;

    #[test]
    fn all_that_were_seen_have_to_be_finished() {
        let mut parts = Parts::default();
        assert!(!parts.are_finished());
        for (number, is_finished, are_finished) in [
            (0, false, false),
            (0, true, true),
            (1, false, false),
            (0, false, false),
            (1, true, true),
            (u64::MAX, false, false),
        ] {
            parts.hear(number, is_finished);
            assert_eq!(parts.are_finished(), are_finished, "{number} {is_finished}");
        }
        parts.finish();
        assert!(parts.are_finished());
    }
}
