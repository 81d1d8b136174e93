//! What each client session has under way, and how often it was refused since it was last accepted.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::moment::Moment;

/// A session is alone where no other one has sent for so long.
const ALONE: Duration = Duration::from_secs(60);
/// A refused session is remembered for so long.
const KEPT: Duration = Duration::from_secs(600);
/// From so many on those that are no longer needed are looked for.
const MANY: usize = 1024;

/// One session.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Session {
    /// The weight of what it has in flight, in thousandths of a small call.
    pub(super) load: u64,
    /// Refusals since it was last accepted.
    pub(super) refused: u32,
    /// When it last sent.
    pub(super) sent: Moment,
    used: Moment,
}

/// All sessions of a lane.
#[derive(Debug, Clone, Default)]
pub(super) struct Sessions {
    known: BTreeMap<u64, Session>,
    /// The one that sent last, and when.
    last: Option<(u64, Moment)>,
    /// When another one than that sent last.
    other: Option<Moment>,
    /// At so many the next look is taken.
    look_at: usize,
}

impl Sessions {
    pub(super) fn get(&self, session: u64) -> Session {
        self.known.get(&session).copied().unwrap_or_default()
    }

    /// A session sends. True where a refusal of it would be news about the lane: it was not being refused, or it is
    /// alone.
    pub(super) fn sent(&mut self, session: u64, weight: u64, now: Moment) -> bool {
        if let Some((before, at)) = self.last
            && before != session
        {
            self.other = Some(at);
        }
        self.last = Some((session, now));
        let known = self.known.entry(session).or_default();
        known.load = known.load.saturating_add(weight);
        (known.used, known.sent) = (now, now);
        known.refused == 0 || self.is_alone(now)
    }

    fn is_alone(&self, now: Moment) -> bool {
        self.other.is_none_or(|other| now.since(other) > ALONE)
    }

    /// Whether a refusal of a session would be news about the lane, whenever it was sent.
    pub(super) fn is_news(&self, session: u64, now: Moment) -> bool {
        let others = self.last.is_some_and(|(last, at)| last != session && now.since(at) <= ALONE);
        self.get(session).refused == 0 || (self.is_alone(now) && !others)
    }

    /// What a session had in flight has ended, or was refused.
    pub(super) fn ended(&mut self, session: u64, weight: u64) {
        if let Some(known) = self.known.get_mut(&session) {
            known.load = known.load.saturating_sub(weight);
            if known.load == 0 && known.refused == 0 {
                self.known.remove(&session);
            }
        }
    }

    pub(super) fn refused(&mut self, session: u64, now: Moment) {
        let known = self.known.entry(session).or_default();
        known.refused = known.refused.saturating_add(1);
        known.used = now;
        self.forget(now);
    }

    pub(super) fn accepted(&mut self, session: u64) {
        if let Some(known) = self.known.get_mut(&session) {
            known.refused = 0;
        }
    }

    /// Sessions that were refused and came no more are forgotten.
    fn forget(&mut self, now: Moment) {
        if self.known.len() < self.look_at.max(MANY) {
            return;
        }
        self.known.retain(|_, session| session.load > 0 || now.since(session.used) <= KEPT);
        self.look_at = 2 * self.known.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::after_start(Duration::from_secs(seconds))
    }

    #[test]
    fn refusals_of_a_refused_session_are_no_news_while_others_send() {
        let mut sessions = Sessions::default();
        assert!(sessions.sent(1, 1000, at(0)));
        sessions.ended(1, 1000);
        sessions.refused(1, at(0));
        assert!(sessions.sent(1, 1000, at(1)), "it is alone");
        sessions.ended(1, 1000);
        assert!(sessions.sent(2, 1000, at(2)));
        assert!(!sessions.sent(1, 1000, at(3)));
        assert!(!sessions.is_news(1, at(4)) && sessions.is_news(3, at(4)));
        sessions.accepted(1);
        assert!(sessions.is_news(1, at(4)));
        sessions.refused(1, at(5));
        assert!(sessions.sent(1, 1000, at(63)), "alone again");
    }

    #[test]
    fn only_what_matters_is_remembered() {
        let mut sessions = Sessions::default();
        for session in 0..10_000 {
            sessions.sent(session, 1000, at(session));
            sessions.accepted(session);
            sessions.ended(session, 1000);
        }
        assert!(sessions.known.is_empty());
        for session in 0..100_000 {
            sessions.sent(session, 1000, at(session));
            sessions.ended(session, 1000);
            sessions.refused(session, at(session));
        }
        assert!(sessions.known.len() <= 2 * MANY, "{}", sessions.known.len());
    }
}
