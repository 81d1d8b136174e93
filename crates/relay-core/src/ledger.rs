//! What earlier calls of the same client spent, so that a client's own re-send goes on from there instead of
//! starting a fresh budget: relay sends × client tries never multiply.
//!
//! A re-send is known by what the client says of it (Codex: thread, turn and body; the SDKs: a retry count) or,
//! more weakly, by body and credential alone. Bodies are compared in canonical form: clients reorder JSON keys,
//! and Claude Code's fallback changes `stream` and `max_tokens`.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::budget::Spent;
use crate::client::{Client, Turn};
use crate::moment::Moment;
use crate::notice::TRIES;

/// How long a failed call waits for its heir.
const KEPT: Duration = Duration::from_secs(600);
/// How long the cuts of a turn are remembered: longer than it can be held between two of them, since a turn that
/// started over with three more each time could be cut for ever.
const CUTS_KEPT: Duration = Duration::from_secs(24 * 3600);
/// How long body and credential alone speak for a re-send.
const WEAK: Duration = Duration::from_secs(60);
/// The most failed calls, and the most turns, that are remembered; beyond it the oldest is forgotten.
const MOST: usize = 4096;

/// The keys that a client may change between two sends of the same call, and those that it adds over a WebSocket: Codex
/// notes the moment of the send in the metadata there.
pub const CHANGEABLE: &[&str] = &["stream", "max_tokens", "client_metadata", "type"];

/// By what a call is recognised again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The credential, hashed; the account where a token rotates.
    pub credential: u64,
    /// The body in canonical form, hashed.
    pub body: u64,
    /// The Codex turn.
    pub turn: Option<Turn>,
    /// The client says that this is a re-send.
    pub says_resend: bool,
}

impl Identity {
    /// The identity of a call of `client`.
    #[must_use]
    pub fn new(client: &Client, credential: u64, body: u64) -> Self {
        Self { credential, body, turn: client.turn.clone(), says_resend: client.says_resend }
    }
}

#[derive(Debug, Clone)]
struct Record {
    spent: Spent,
    turn: Option<Turn>,
    at: Moment,
}

#[derive(Debug, Clone, Copy)]
struct Cuts {
    count: u32,
    /// How often its client was shown that it is held.
    notices: u32,
    not_before: Moment,
    at: Moment,
    /// What the call that was cut before any output has spent, until the one that resumes it has it.
    spent: Option<Spent>,
}

/// The memory of failed calls.
#[derive(Debug, Default)]
pub struct Ledger {
    records: BTreeMap<(u64, u64), Record>,
    cuts: BTreeMap<Turn, Cuts>,
}

impl Ledger {
    /// Whether nothing is remembered, which spares the caller the hashing of a body.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Whether a failed call with this body and credential is remembered.
    #[must_use]
    pub fn knows(&self, identity: &Identity) -> bool {
        self.records.contains_key(&(identity.credential, identity.body))
    }

    /// What the call that this one re-sends has spent. A record has one heir: it is taken out.
    /// `others_open`: another call with the same body and credential is under way.
    pub fn inherit(&mut self, identity: &Identity, others_open: bool, now: Moment) -> Spent {
        let key = (identity.credential, identity.body);
        let Some(record) = self.records.get(&key) else { return Spent::default() };
        let age = now.since(record.at);
        let says_so = identity.says_resend || (identity.turn.is_some() && identity.turn == record.turn);
        let spent = record.spent;
        if age > KEPT {
            self.records.remove(&key);
            Spent::default()
        } else if says_so {
            self.records.remove(&key);
            spent
        } else if age <= WEAK && !others_open && identity.turn.is_none() {
            self.records.remove(&key);
            // Not sure enough to count sends: the same prompt may be asked twice on purpose.
            let Spent { failed, ambiguous, since, .. } = spent;
            Spent { failed, ambiguous, since, ..Spent::default() }
        } else {
            Spent::default()
        }
    }

    /// A call failed, or its client left, after it had spent this.
    pub fn remember(&mut self, identity: &Identity, spent: Spent, now: Moment) {
        self.records.retain(|_, record| now.since(record.at) <= KEPT);
        forget_oldest(&mut self.records, |record| record.at);
        let key = (identity.credential, identity.body);
        // Two calls with the same body may fail side by side: their heir must not spend what either has spent.
        let known = self.records.get(&key).filter(|known| known.turn == identity.turn);
        let spent = known.map_or(spent, |known| spent.max_of(known.spent));
        self.records.insert(key, Record { spent, turn: identity.turn.clone(), at: now });
    }

    /// A call was answered: nothing of it is left to inherit.
    pub fn forget(&mut self, identity: &Identity) {
        self.records.remove(&(identity.credential, identity.body));
    }

    /// How many times this turn was cut since its last completed answer.
    #[must_use]
    pub fn cuts(&self, turn: &Turn, now: Moment) -> u32 {
        self.known(turn, now).map_or(0, |cuts| cuts.count)
    }

    /// How many of its client's tries the relay has taken for this turn since its last completed answer: by cuts, and by
    /// notices that it is held.
    #[must_use]
    pub fn tries(&self, turn: &Turn, now: Moment) -> u32 {
        self.known(turn, now).map_or(0, |cuts| cuts.count.saturating_add(cuts.notices))
    }

    /// Whether this turn may be cut once more, of which the settings allow `most` and its client's tries no more than are
    /// left of them.
    #[must_use]
    pub fn may_cut(&self, turn: &Turn, most: u32, now: Moment) -> bool {
        self.known(turn, now).is_none_or(|cuts| {
            cuts.count < most && (cuts.notices == 0 || cuts.count.saturating_add(cuts.notices) < TRIES)
        })
    }

    /// The client is shown that a call of this turn is held.
    pub fn notice(&mut self, turn: &Turn, now: Moment) {
        let cuts = self.anew(turn, now);
        self.cuts.insert(turn.clone(), Cuts { notices: cuts.notices.saturating_add(1), at: now, ..cuts });
    }

    fn known(&self, turn: &Turn, now: Moment) -> Option<Cuts> {
        self.cuts.get(turn).copied().filter(|cuts| now.since(cuts.at) <= CUTS_KEPT)
    }

    /// What is known of a turn, to be told anew; what is too old to matter is forgotten meanwhile.
    fn anew(&mut self, turn: &Turn, now: Moment) -> Cuts {
        self.cuts.retain(|_, cuts| now.since(cuts.at) <= CUTS_KEPT || cuts.not_before > now);
        forget_oldest(&mut self.cuts, |cuts| cuts.at);
        self.known(turn, now).unwrap_or(Cuts { count: 0, notices: 0, not_before: now, at: now, spent: None })
    }

    /// A turn is being cut; its next call is not sent before `not_before`. Returns the cuts of the turn so far.
    pub fn cut(&mut self, turn: &Turn, not_before: Moment, now: Moment) -> u32 {
        let cuts = self.anew(turn, now);
        let count = cuts.count.saturating_add(1);
        self.cuts.insert(turn.clone(), Cuts { count, not_before, at: now, spent: None, ..cuts });
        count
    }

    /// The cut turn had no output yet: the call that resumes it is the same call, and goes on from what it has spent.
    pub fn bequeath(&mut self, turn: &Turn, spent: Spent) {
        if let Some(cuts) = self.cuts.get_mut(turn) {
            cuts.spent = Some(spent);
        }
    }

    /// What the call that resumes a turn goes on from, for the first that asks.
    pub fn inherit_cut(&mut self, turn: &Turn) -> Option<Spent> {
        self.cuts.get_mut(turn)?.spent.take()
    }

    /// When the call that resumes a cut turn may be sent.
    #[must_use]
    pub fn resumes_at(&self, turn: &Turn, now: Moment) -> Option<Moment> {
        self.cuts.get(turn).map(|cuts| cuts.not_before).filter(|not_before| *not_before > now)
    }

    /// A turn's answer was completed: its cuts count anew.
    pub fn completed(&mut self, turn: &Turn) {
        self.cuts.remove(turn);
    }
}

fn forget_oldest<K: Ord + Clone, V>(map: &mut BTreeMap<K, V>, at: impl Fn(&V) -> Moment) {
    if map.len() < MOST {
        return;
    }
    if let Some(key) = map.iter().min_by_key(|(_, value)| at(value)).map(|(key, _)| key.clone()) {
        map.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Moment = Moment::after_start(Duration::from_secs(1000));
    const SPENT: Spent = Spent {
        sends: 5,
        failed: 2,
        throttled: 1,
        capacity: 1,
        ambiguous: 1,
        steps: crate::wait::Steps::NONE,
        gave_up: true,
        since: Some(Moment::ZERO),
    };

    fn turn(name: &str) -> Option<Turn> {
        Some(Turn { thread: "thread".into(), turn: name.into() })
    }

    fn identity(turn: Option<Turn>, says_resend: bool) -> Identity {
        Identity { credential: 1, body: 2, turn, says_resend }
    }

    fn remembered(turn: Option<Turn>) -> Ledger {
        let mut ledger = Ledger::default();
        ledger.remember(&identity(turn, false), SPENT, NOW);
        ledger
    }

    #[test]
    fn a_re_send_that_the_client_names_inherits_all_and_only_once() {
        let mut codex = remembered(turn("a"));
        assert_eq!(codex.inherit(&identity(turn("a"), false), false, NOW), SPENT);
        assert_eq!(codex.inherit(&identity(turn("a"), false), false, NOW), Spent::default());
        let mut sdk = remembered(None);
        assert_eq!(sdk.inherit(&identity(None, true), true, NOW), SPENT);
    }

    #[test]
    fn another_turn_with_the_same_body_is_another_call() {
        assert_eq!(remembered(turn("a")).inherit(&identity(turn("b"), false), false, NOW), Spent::default());
    }

    #[test]
    fn body_alone_inherits_the_counts_that_may_cost_money_for_a_minute() {
        let weak = Spent { failed: 2, ambiguous: 1, since: SPENT.since, ..Spent::default() };
        let at = |seconds| NOW + Duration::from_secs(seconds);
        assert_eq!(remembered(None).inherit(&identity(None, false), false, at(60)), weak);
        assert_eq!(remembered(None).inherit(&identity(None, false), false, at(61)), Spent::default());
        assert_eq!(remembered(None).inherit(&identity(None, false), true, NOW), Spent::default());
    }

    #[test]
    fn two_that_fail_side_by_side_leave_the_larger_counts() {
        let mut ledger = remembered(turn("a"));
        ledger.remember(&identity(turn("a"), false), Spent { sends: 1, failed: 3, ..Spent::default() }, NOW);
        let spent = ledger.inherit(&identity(turn("a"), false), false, NOW);
        assert_eq!((spent.sends, spent.failed, spent.ambiguous, spent.gave_up), (5, 3, 1, true));
    }

    #[test]
    fn after_ten_minutes_or_a_success_nothing_is_left() {
        let mut late = remembered(turn("a"));
        assert_eq!(
            late.inherit(&identity(turn("a"), false), false, NOW + Duration::from_secs(601)),
            Spent::default()
        );
        let mut served = remembered(turn("a"));
        served.forget(&identity(turn("a"), false));
        assert_eq!(served.inherit(&identity(turn("a"), false), false, NOW), Spent::default());
    }

    #[test]
    fn it_never_grows_past_its_bound() {
        let mut ledger = Ledger::default();
        for body in 0..(MOST as u64 + 500) {
            let later = NOW + Duration::from_micros(body);
            ledger.remember(&Identity { credential: 1, body, turn: None, says_resend: false }, SPENT, later);
            ledger.cut(&Turn { thread: "t".into(), turn: body.to_string().into() }, later, later);
        }
        assert_eq!((ledger.records.len(), ledger.cuts.len()), (MOST, MOST));
        assert!(ledger.records.contains_key(&(1, MOST as u64 + 499)));
    }

    #[test]
    fn cuts_count_per_turn_until_it_completes() {
        let mut ledger = Ledger::default();
        let (one, other) = (turn("a").unwrap(), turn("b").unwrap());
        let soon = NOW + Duration::from_secs(3);
        assert_eq!(
            [ledger.cut(&one, soon, NOW), ledger.cut(&one, soon, NOW), ledger.cut(&other, soon, NOW)],
            [1, 2, 1]
        );
        assert_eq!(ledger.resumes_at(&one, NOW), Some(soon));
        assert_eq!(ledger.resumes_at(&one, soon), None);
        ledger.completed(&one);
        assert_eq!((ledger.cuts(&one, NOW), ledger.cuts(&other, NOW)), (0, 1));
    }

    #[test]
    fn notices_and_cuts_are_tries_of_the_client() {
        let mut ledger = Ledger::default();
        let one = turn("a").unwrap();
        ledger.notice(&one, NOW);
        ledger.cut(&one, NOW + Duration::from_secs(3), NOW);
        ledger.notice(&one, NOW);
        assert_eq!((ledger.tries(&one, NOW), ledger.cuts(&one, NOW)), (3, 1));
        assert!(ledger.may_cut(&one, 2, NOW) && !ledger.may_cut(&one, 1, NOW));
        ledger.notice(&one, NOW);
        ledger.notice(&one, NOW);
        assert!(!ledger.may_cut(&one, 9, NOW), "its client has no try left");
        let other = turn("b").unwrap();
        assert!((0..9).all(|_| ledger.may_cut(&other, 9, NOW) && ledger.cut(&other, NOW, NOW) > 0));
        assert_eq!(ledger.resumes_at(&one, NOW), Some(NOW + Duration::from_secs(3)));
        ledger.completed(&one);
        assert_eq!(ledger.tries(&one, NOW), 0);
    }

    #[test]
    fn a_turn_that_was_cut_before_output_goes_on_from_what_it_has_spent() {
        let mut ledger = Ledger::default();
        let one = turn("a").unwrap();
        ledger.cut(&one, NOW, NOW);
        assert_eq!(ledger.inherit_cut(&one), None);
        ledger.bequeath(&one, SPENT);
        assert_eq!(ledger.inherit_cut(&turn("b").unwrap()), None);
        assert_eq!((ledger.inherit_cut(&one), ledger.inherit_cut(&one)), (Some(SPENT), None));
    }

    #[test]
    fn cuts_are_remembered_for_as_long_as_a_turn_may_be_held() {
        let mut ledger = Ledger::default();
        let one = turn("a").unwrap();
        // The turn waits for hours, is resumed, and is cut again: no fresh count.
        let late = NOW + Duration::from_secs(5 * 3600);
        ledger.cut(&one, late, NOW);
        assert_eq!(ledger.resumes_at(&one, late - Duration::from_secs(1)), Some(late));
        assert_eq!(ledger.cuts(&one, late), 1);
        assert_eq!(ledger.cut(&one, late, late + Duration::from_secs(6 * 3600)), 2);
        let next_day = late + Duration::from_secs(60 * 3600);
        assert_eq!(ledger.cuts(&one, next_day), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        /// Whatever is remembered and asked for, an heir never inherits what its own kind did not spend, one record
        /// has one heir, and nothing outlives its time.
        #[test]
        fn a_record_is_inherited_at_most_once_and_in_time(
            steps in prop::collection::vec((0_u8..4, 0_u64..3, 0_u64..400, any::<bool>(), any::<bool>()), 0..40),
        ) {
            let mut ledger = Ledger::default();
            let mut now = NOW;
            let mut left: BTreeMap<u64, (Moment, u32)> = BTreeMap::new();
            for (count, (step, body, pause, says_resend, open)) in (1_u32..).zip(steps) {
                now = now + Duration::from_secs(pause);
                let identity = Identity { credential: 1, body, turn: None, says_resend };
                if step == 0 {
                    let spent = Spent { sends: count, failed: count, ..Spent::default() };
                    ledger.remember(&identity, spent, now);
                    left.insert(body, (now, count));
                } else if step == 1 {
                    ledger.forget(&identity);
                    left.remove(&body);
                } else {
                    let got = ledger.inherit(&identity, open, now);
                    let known = left.get(&body).copied().filter(|(at, _)| now.since(*at) <= KEPT);
                    let weak = known.filter(|(at, _)| now.since(*at) <= WEAK && !open);
                    let expected = match (known, weak) {
                        (Some((_, count)), _) if says_resend => (count, count),
                        (_, Some((_, count))) => (0, count),
                        (Some(_) | None, _) => (0, 0),
                    };
                    prop_assert_eq!((got.sends, got.failed), expected);
                    if expected.1 > 0 {
                        left.remove(&body);
                    }
                }
            }
        }
    }
}
