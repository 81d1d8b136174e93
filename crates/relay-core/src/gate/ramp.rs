//! Follow-ups: how many sends an accepted one lets follow while a lane is shut.

/// The most that one acceptance adds.
const MOST: f64 = 64.0;

/// The credit for follow-ups, and how fast it grows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ramp {
    permits: f64,
    /// Acceptances since the last refusal that was the lane's fault.
    streak: i32,
    pub(super) growth: f64,
}

impl Ramp {
    pub(super) const fn new() -> Self {
        Self { permits: 0.0, streak: 0, growth: 2.0 }
    }

    /// The lane accepted a send: more may follow, and with each acceptance in a row half as many more.
    pub(super) fn accepted(&mut self) {
        self.streak = self.streak.saturating_add(1);
        let steep = self.growth * 1.5f64.powi((self.streak - 1).min(12));
        self.permits += if self.growth < 1.0 { self.growth } else { steep.min(MOST) };
    }

    /// The lane refused a send, or is shut anew.
    pub(super) const fn stop(&mut self) {
        (self.permits, self.streak) = (0.0, 0);
    }

    /// The lane is open: nobody needs credit.
    pub(super) const fn drop_permits(&mut self) {
        self.permits = 0.0;
    }

    pub(super) const fn may_follow(&self) -> bool {
        self.permits >= 1.0
    }

    pub(super) const fn take(&mut self) {
        self.permits -= 1.0;
    }

    /// A send that was paid for was not made.
    pub(super) const fn give_back(&mut self) {
        self.permits += 1.0;
    }

    /// A follow-up came back.
    pub(super) const fn followed(&mut self, accepted: bool) {
        self.growth = if accepted { (self.growth * 1.3).min(8.0) } else { (self.growth * 0.5).max(0.1) };
    }

    /// A timed probe was accepted where follow-ups rarely are.
    pub(super) fn probed(&mut self) {
        if self.growth < 1.0 {
            self.growth *= 1.1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permits(ramp: &mut Ramp) -> u32 {
        (0..1000).take_while(|_| ramp.may_follow().then(|| ramp.take()).is_some()).count().try_into().unwrap()
    }

    #[test]
    fn each_acceptance_in_a_row_lets_half_as_many_more_follow_up_to_a_limit() {
        let mut ramp = Ramp::new();
        let steps: Vec<u32> = (0..4)
            .map(|_| {
                ramp.accepted();
                permits(&mut ramp)
            })
            .collect();
        assert_eq!(steps, [2, 3, 4, 7]);
        for _ in 0..30 {
            ramp.accepted();
            assert!(permits(&mut ramp) <= 65);
        }
        ramp.stop();
        ramp.accepted();
        assert_eq!(permits(&mut ramp), 2);
    }

    #[test]
    fn refused_follow_ups_halve_what_the_next_acceptance_is_worth() {
        let mut ramp = Ramp::new();
        for growth in [1.0, 0.5, 0.25, 0.125, 0.1, 0.1] {
            ramp.followed(false);
            assert!((ramp.growth - growth).abs() < 1e-9);
        }
        ramp.accepted();
        assert_eq!(permits(&mut ramp), 0);
        for _ in 0..100 {
            ramp.followed(true);
        }
        assert!((ramp.growth - 8.0).abs() < 1e-9);
    }
}
