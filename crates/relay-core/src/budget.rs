//! What a call may still spend: sends, sends that failed, sends that may have run. Counted, never estimated.

use crate::event::Inherited;
use crate::fault::Fault;
use crate::moment::Moment;
use crate::profile::Profile;
use crate::wait::Steps;

/// What has been spent on a call, and by the calls that it is the re-send of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// Physical sends.
    pub sends: u32,
    /// Sends that the upstream failed.
    pub failed: u32,
    /// Sends that were throttled.
    pub throttled: u32,
    /// Sends that met a service at capacity or overloaded.
    pub capacity: u32,
    /// Resends of what may have run.
    pub ambiguous: u32,
    /// Steps taken on the curves.
    pub steps: Steps,
    /// It, or one before it, gave up: whoever sends it again gets one send each time.
    pub gave_up: bool,
    /// When the first of them began: whoever sends it again keeps its place among those that wait.
    pub since: Option<Moment>,
}

impl Spent {
    /// What of that a call that goes on from it tells.
    #[must_use]
    pub const fn inherited(&self) -> Inherited {
        Inherited { sends: self.sends, failed: self.failed, resends: self.ambiguous }
    }

    /// The larger of each count, and the earlier beginning.
    #[must_use]
    pub fn max_of(self, other: Self) -> Self {
        Self {
            sends: self.sends.max(other.sends),
            failed: self.failed.max(other.failed),
            throttled: self.throttled.max(other.throttled),
            capacity: self.capacity.max(other.capacity),
            ambiguous: self.ambiguous.max(other.ambiguous),
            steps: self.steps.max_of(other.steps),
            gave_up: self.gave_up || other.gave_up,
            since: self.since.into_iter().chain(other.since).min(),
        }
    }
}

/// The one counter of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    limit: Option<u32>,
    failed_limit: u32,
    throttled_limit: Option<u32>,
    capacity_limit: Option<u32>,
    ambiguous_limit: u32,
    spent: Spent,
    own_sends: u32,
    own_grants: u32,
    /// The next send is one of a grant.
    granted: bool,
}

impl Budget {
    /// A budget within a profile that goes on from what was spent before. Where nothing is left and the profile
    /// serves a client's own re-sends, exactly one send is.
    #[must_use]
    pub fn new(profile: &Profile, before: Spent) -> Self {
        let most = profile.most_sends();
        let spent_all = before.sends > 0 && most.is_some_and(|most| before.sends >= most);
        let limit = if before.gave_up || spent_all {
            let one_more = u32::from(profile.serves_resends && most != Some(0));
            Some(before.sends.saturating_add(one_more))
        } else {
            most
        };
        Self {
            limit,
            failed_limit: profile.failed_sends,
            throttled_limit: profile.throttled_sends,
            capacity_limit: profile.capacity_sends,
            ambiguous_limit: profile.ambiguous_resends,
            spent: before,
            own_sends: 0,
            own_grants: 0,
            granted: false,
        }
    }

    /// Counts a send before it is made. False: nothing is left, and nothing was counted.
    #[must_use]
    pub fn take_send(&mut self) -> bool {
        if self.is_spent() {
            return false;
        }
        self.spent.sends = self.spent.sends.saturating_add(1);
        self.own_sends = self.own_sends.saturating_add(1);
        self.own_grants += u32::from(std::mem::take(&mut self.granted));
        true
    }

    /// The most sends, those of earlier calls included.
    #[must_use]
    pub const fn limit(&self) -> Option<u32> {
        self.limit
    }

    /// Whether no send is left.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.limit.is_some_and(|most| self.spent.sends >= most)
    }

    /// Counts a send that the upstream failed; true where another may follow.
    #[must_use]
    pub fn take_failure(&mut self) -> bool {
        self.spent.failed = self.spent.failed.saturating_add(1);
        self.spent.failed < self.failed_limit
    }

    /// Counts a send that was refused with this fault; true where another may follow.
    #[must_use]
    pub fn take_refusal(&mut self, fault: Fault) -> bool {
        let (count, limit) = match fault {
            Fault::Throttled => (&mut self.spent.throttled, self.throttled_limit),
            Fault::AtCapacity | Fault::Overloaded => (&mut self.spent.capacity, self.capacity_limit),
            // A model that is being loaded is no refusal that hammering could make worse.
            Fault::ModelLoading
            | Fault::QuotaSpent
            | Fault::Authentication
            | Fault::BadRequest
            | Fault::TooLong
            | Fault::ContentRefused
            | Fault::Challenge
            | Fault::ServerFailed
            | Fault::BrokenStream
            | Fault::EmptyAnswer
            | Fault::NoAnswer
            | Fault::NeverSent => return true,
        };
        *count = count.saturating_add(1);
        limit.is_none_or(|most| *count < most)
    }

    /// Takes one resend of what may have run; false where none is left.
    #[must_use]
    pub fn take_grant(&mut self) -> bool {
        if self.spent.ambiguous >= self.ambiguous_limit {
            return false;
        }
        self.spent.ambiguous += 1;
        self.granted = true;
        true
    }

    /// Whether the profile grants resends of what may have run at all.
    #[must_use]
    pub const fn grants_any(&self) -> bool {
        self.ambiguous_limit > 0
    }

    /// The steps taken on the curves.
    pub const fn steps(&mut self) -> &mut Steps {
        &mut self.spent.steps
    }

    /// All that was spent, earlier calls included.
    #[must_use]
    pub const fn spent(&self) -> Spent {
        self.spent
    }

    /// The resends of what may have run that this call alone has made.
    #[must_use]
    pub const fn own_grants(&self) -> u32 {
        self.own_grants
    }

    /// The sends of this call alone.
    #[must_use]
    pub const fn own_sends(&self) -> u32 {
        self.own_sends
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overrides::ProfileOverrides;

    fn sends_left(budget: &mut Budget) -> u32 {
        (0..100).take_while(|_| budget.take_send()).count().try_into().unwrap()
    }

    /// On the plain curves.
    fn plain(profile: Profile) -> Profile {
        Profile { gate: None, ..profile }
    }

    #[test]
    fn zero_is_zero() {
        let by_hand = ProfileOverrides { sends: Some(Some(0)), ..ProfileOverrides::default() };
        let none = by_hand.apply(&Profile::interactive()).unwrap();
        assert!(none.gate.is_some());
        assert_eq!(sends_left(&mut Budget::new(&none, Spent::default())), 0);
        assert_eq!(
            sends_left(&mut Budget::new(&none, Spent { sends: 3, gave_up: true, ..Spent::default() })),
            0
        );
    }

    #[test]
    fn a_re_send_goes_on_from_what_was_spent() {
        let before = Spent { sends: 5, ..Spent::default() };
        assert_eq!(sends_left(&mut Budget::new(&plain(Profile::interactive()), before)), 3);
        assert_eq!(sends_left(&mut Budget::new(&Profile::interactive(), before)), 35);
    }

    #[test]
    fn a_re_send_after_the_end_gets_one_send_and_none_under_strict() {
        for before in
            [Spent { sends: 8, ..Spent::default() }, Spent { sends: 4, gave_up: true, ..Spent::default() }]
        {
            assert_eq!(sends_left(&mut Budget::new(&plain(Profile::interactive()), before)), 1);
            assert_eq!(sends_left(&mut Budget::new(&Profile::strict(), before)), 0);
        }
        let gated = Spent { sends: 40, ..Spent::default() };
        assert_eq!(sends_left(&mut Budget::new(&Profile::interactive(), gated)), 1);
    }

    #[test]
    fn patient_has_no_count() {
        assert_eq!(sends_left(&mut Budget::new(&Profile::patient(), Spent::default())), 100);
    }

    #[test]
    fn refusals_are_counted_by_their_fault_where_the_profile_says_so() {
        let follow = |profile: &Profile, fault| {
            let mut budget = Budget::new(profile, Spent::default());
            (0..9).take_while(|_| budget.take_refusal(fault)).count()
        };
        let codex_retry = Profile::codex_retry();
        assert_eq!(follow(&codex_retry, Fault::Throttled), 3);
        assert_eq!([Fault::AtCapacity, Fault::Overloaded].map(|fault| follow(&codex_retry, fault)), [5, 5]);
        assert_eq!(follow(&Profile::interactive(), Fault::Throttled), 9);
        let before = Spent { throttled: 3, ..Spent::default() };
        assert!(!Budget::new(&codex_retry, before).take_refusal(Fault::Throttled));
    }

    #[test]
    fn failures_and_grants_are_counted_to_their_limit() {
        let mut budget = Budget::new(&Profile::interactive(), Spent::default());
        assert_eq!(
            [budget.take_failure(), budget.take_failure(), budget.take_failure()],
            [true, true, false]
        );
        assert_eq!([budget.take_grant(), budget.take_grant()], [true, false]);
        let mut strict = Budget::new(&Profile::strict(), Spent::default());
        assert!(!strict.take_failure() && !strict.take_grant());
    }

    #[test]
    fn who_comes_after_the_end_has_one_send_each_however_many_come() {
        let mut before = Spent { gave_up: true, ..Spent::default() };
        for served in 0..5 {
            let mut budget = Budget::new(&Profile::patient(), before);
            assert_eq!((sends_left(&mut budget), budget.spent().sends), (1, served + 1));
            before = budget.spent();
        }
    }

    #[test]
    fn a_grant_counts_as_used_when_its_send_is_made() {
        let mut budget = Budget::new(&Profile::interactive(), Spent::default());
        assert!(budget.take_send() && budget.take_grant());
        assert_eq!((budget.own_grants(), budget.spent().ambiguous), (0, 1));
        assert!(budget.take_send() && budget.take_send());
        assert_eq!(budget.own_grants(), 1);
    }
}
