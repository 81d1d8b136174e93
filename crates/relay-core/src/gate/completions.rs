//! Own completions: a call of ours that ended has left a place, which the next one may take.

/// The credit for such sends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Completions {
    credit: f64,
    pub(super) each: f64,
    /// One of these sends was refused since the lane shut: their acceptance is news again.
    refused: bool,
}

impl Completions {
    pub(super) const fn new() -> Self {
        Self { credit: 0.0, each: 1.0, refused: false }
    }

    /// The lane shuts.
    pub(super) const fn start(&mut self) {
        (self.credit, self.refused) = (0.0, false);
    }

    /// A call of ours ended while the lane was shut.
    pub(super) fn ended_while_shut(&mut self) {
        self.credit = (self.credit + self.each).min(4.0);
    }

    /// A call of ours ended while somebody waited in a lane that is open because it refuses at random.
    pub(super) fn ended_while_random(&mut self) {
        let worth = if self.each >= 0.7 { self.each } else { 0.01 };
        self.credit = (self.credit + worth).min(1.0);
    }

    pub(super) const fn may_send(&self) -> bool {
        self.credit >= 1.0
    }

    /// A send in a shut lane takes one.
    pub(super) const fn take(&mut self) {
        self.credit -= 1.0;
    }

    /// A send in an open lane takes all.
    pub(super) const fn take_all(&mut self) {
        self.credit = 0.0;
    }

    /// A send that was paid for was not made.
    pub(super) const fn give_back(&mut self) {
        self.credit += 1.0;
    }

    /// Such a send came back.
    pub(super) const fn came_back(&mut self, accepted: bool) {
        self.each = if accepted { (self.each * 1.5).min(1.0) } else { (self.each * 0.5).max(0.1) };
    }

    /// Such a send was refused by a shut lane.
    pub(super) const fn was_refused(&mut self) {
        self.refused = true;
    }

    /// Whether the acceptance of such a send says more than that our own place came back.
    pub(super) const fn is_news(&self) -> bool {
        self.refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_completion_is_worth_one_send_until_such_sends_are_refused() {
        let mut completions = Completions::new();
        completions.ended_while_shut();
        assert!(completions.may_send());
        completions.take();
        completions.came_back(false);
        completions.ended_while_shut();
        assert!(!completions.may_send());
        completions.ended_while_shut();
        assert!(completions.may_send());
        for _ in 0..9 {
            completions.ended_while_shut();
        }
        let sends = (0..9).take_while(|_| completions.may_send().then(|| completions.take()).is_some());
        assert_eq!(sends.count(), 4);
    }

    #[test]
    fn in_a_random_lane_they_count_only_where_they_predict_something() {
        let mut completions = Completions::new();
        completions.ended_while_random();
        assert!(completions.may_send());
        completions.take_all();
        completions.came_back(false);
        completions.ended_while_random();
        assert!(!completions.may_send());
    }
}
