//! The legs of one call: the upstreams that it may be sent to, each with what is sent there and the lane it waits in.
//! Most calls have one. Which is next is decided in [`relay_core::router`], and what may go where in
//! [`relay_core::bound`].

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::HeaderMap;
use relay_core::answer::words::{self, circuit};
use relay_core::breaker::Circuit;
use relay_core::dialect::Rule;
use relay_core::event::{self, Left};
use relay_core::renewal::Outlook;
use relay_core::router::{Choice, Order, Standing, Strategy};
use relay_core::units::show_duration;
use relay_core::{Lang, Moment};

use crate::clock::RealDice;
use crate::credential::AccountKey;
use crate::credentials::Lent;
use crate::fallback::{Fallback, Instead};
use crate::kept::KeptBody;
use crate::lanes::Lane;
use crate::shared::Shared;
use crate::target::{Pool, Target};
use crate::upstream::Ways;

/// A call that waits where others could take it looks again so often.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// A credential that is renewed is there again so soon, as a rule; after that, others take the calls.
const SOON: Duration = Duration::from_secs(2);

/// One way for a call.
pub(crate) struct Leg {
    pub(crate) target: Target,
    pub(crate) headers: Arc<HeaderMap>,
    /// The relay's own credential, where it is sent with that.
    pub(crate) lent: Option<Lent>,
    pub(crate) way: Ways,
    pub(crate) account: AccountKey,
    /// The user's own rules for the answers there.
    pub(crate) rules: Arc<[Arc<Rule>]>,
    pub(crate) lane: Arc<Lane>,
    /// A model that turns out to be cold is to be loaded.
    pub(crate) warms: bool,
    pub(crate) weight: u32,
    /// It is for another model than the one that was asked for.
    pub(crate) instead: Option<Arc<Instead>>,
}

impl Leg {
    /// Whether it has the credential that is sent there.
    fn outlook(&self, now: Moment) -> Outlook {
        self.lent.as_ref().map_or(Outlook::Fair, |lent| lent.outlook(now))
    }
}

/// What this call has met on a leg.
#[derive(Debug, Clone, Copy, Default)]
struct Met {
    failures: u32,
    not_before: Option<Moment>,
}

/// All legs of a call, and the one that it is on.
pub(crate) struct Legs {
    at: usize,
    all: Vec<(Leg, Met)>,
    several: Option<Box<Several>>,
    /// The call waits in the lane of that leg.
    waits: bool,
    /// The last send of the call was on that leg, and failed.
    failed: bool,
    /// A breaker cuts off even where there is no other leg.
    alone: bool,
    /// The call stays on its leg, whatever that one's breaker says: its client wants nothing done for it.
    stays: bool,
    /// Other models, where there may be any.
    fallback: Option<Box<Fallback>>,
    /// When the model that was asked for failed the call first.
    turned_away: Option<Moment>,
}

/// What there is beside the legs where there are several.
struct Several {
    /// `None`: they are all at one upstream.
    pool: Option<Arc<Pool>>,
    order: Order,
    session: Option<u64>,
}

/// What a call that waits does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// It waits in the lane of the leg that it is on; it looks again then.
    Stay { again: Option<Moment> },
    /// It goes to this leg.
    Go { leg: usize, why: Left },
    /// Every breaker is open until then.
    Rest(Moment),
}

impl Legs {
    /// One leg.
    pub(crate) fn one(leg: Leg, alone: bool) -> Self {
        Self::on(0, vec![leg], None, alone)
    }

    /// Several, in the order of their pool, that are preferred in this one.
    pub(crate) fn several(
        legs: Vec<Leg>,
        (pool, order, session): (Arc<Pool>, Order, Option<u64>),
        alone: bool,
    ) -> Self {
        let at = order.first().unwrap_or_default();
        Self::on(at, legs, Some(Box::new(Several { pool: Some(pool), order, session })), alone)
    }

    fn on(at: usize, legs: Vec<Leg>, several: Option<Box<Several>>, alone: bool) -> Self {
        Self {
            at,
            all: legs.into_iter().map(|leg| (leg, Met::default())).collect(),
            several,
            waits: false,
            failed: false,
            alone,
            stays: false,
            fallback: None,
            turned_away: None,
        }
    }

    /// The same with other models for a call that was turned away by its own then, if it was.
    pub(crate) fn or(mut self, fallback: Option<Fallback>, turned_away: Option<Moment>) -> Self {
        (self.fallback, self.turned_away) = (fallback.map(Box::new), turned_away);
        self
    }

    /// The same for a call that is to pass as it is: it takes the leg that takes calls now, or the one that it prefers.
    pub(crate) fn staying(mut self, now: Moment) -> Self {
        match self.next(false, now) {
            Next::Go { leg, .. } => self.at = leg,
            Next::Stay { .. } | Next::Rest(_) => {}
        }
        self.stays = true;
        self
    }

    /// The leg that the call is on.
    ///
    /// # Panics
    /// Never: there is always one.
    pub(crate) fn leg(&self) -> &Leg {
        &self.all[self.at].0
    }

    /// The same, to be changed.
    pub(crate) fn leg_mut(&mut self) -> &mut Leg {
        &mut self.all[self.at].0
    }

    /// Every leg.
    pub(crate) fn lanes(&self) -> impl Iterator<Item = &Arc<Lane>> {
        self.all.iter().map(|(leg, _)| &leg.lane)
    }

    /// The call is on the leg with this lane.
    pub(crate) fn is_in(&mut self, lane: impl Fn(&Arc<Lane>) -> bool) {
        if let Some(at) = self.all.iter().position(|(leg, _)| lane(&leg.lane)) {
            (self.at, self.waits) = (at, true);
        }
    }

    /// Since when the model that was asked for takes no calls, at any of its upstreams, as far as this call can tell: their
    /// lanes are closed, or have failed it and accepted no other since.
    fn closed_since(&self, now: Moment) -> Option<Moment> {
        let mut last = None;
        for (leg, met) in self.all.iter().filter(|(leg, _)| leg.instead.is_none()) {
            let (closed, accepted) = leg.lane.closed(now);
            let own = self.turned_away.filter(|_| met.failures > 0);
            let own = own.map(|own| accepted.map_or(own, |accepted| own.max(accepted)));
            last = last.max(Some(closed.into_iter().chain(own).min()?));
        }
        last
    }

    /// When other models may take the call, if its own stays closed until then.
    fn falls_back_at(&self, now: Moment) -> Option<Moment> {
        let fallback = self.fallback.as_ref()?;
        Some(self.closed_since(now)? + fallback.after())
    }

    /// The same where that is still to come, and the call waits for so long.
    pub(crate) fn falls_back_by(&self, by: Moment, now: Moment) -> Option<Moment> {
        self.falls_back_at(now).filter(|at| *at > now && *at <= by)
    }

    /// Where its own model has been closed for long enough, there are legs for others from here on.
    pub(crate) fn look_for_others(&mut self, shared: &Shared, body: &KeptBody, now: Moment) {
        let has_them = self.all.iter().any(|(leg, _)| leg.instead.is_some());
        if has_them || self.falls_back_at(now).is_none_or(|at| at > now) {
            return;
        }
        let (Some(fallback), Some(body)) = (&mut self.fallback, body.bytes()) else { return };
        let own: Vec<&Leg> =
            self.all.iter().map(|(leg, _)| leg).filter(|leg| leg.instead.is_none()).collect();
        let others = fallback.legs(shared, &body, &own);
        if others.is_empty() {
            self.fallback = None;
            return;
        }
        let order = || Order::draw(Strategy::InOrder, &[1], 0, &mut RealDice::default());
        let several = self.several.take();
        let several =
            several.unwrap_or_else(|| Box::new(Several { pool: None, order: order(), session: None }));
        let Several { pool, order, session } = *several;
        let order = order.and(others.len());
        self.several = Some(Box::new(Several { pool, order, session }));
        self.all.extend(others.into_iter().map(|leg| (leg, Met::default())));
    }

    /// The leg for the model that was asked for, where the call is on another one.
    pub(crate) fn own_model(&self) -> Option<usize> {
        self.leg().instead.as_ref()?;
        self.all.iter().position(|(leg, _)| leg.instead.is_none())
    }

    /// When the model that was asked for failed the call first.
    pub(crate) const fn turned_away(&self) -> Option<Moment> {
        self.turned_away
    }

    fn standings(&self, now: Moment) -> Vec<Option<Standing>> {
        let others = self.falls_back_at(now).is_some_and(|at| at <= now);
        let standing = |(at, (leg, met)): (usize, &(Leg, Met))| {
            if leg.instead.is_some() && !others {
                return None;
            }
            let stands = leg.lane.stands(leg.weight, now);
            // Where it waits it is none of the others.
            let load = stands.load.saturating_sub(usize::from(at == self.at && self.waits));
            let lent = match leg.outlook(now) {
                Outlook::Fair => None,
                Outlook::Awaited(since) if now.since(since) < SOON => None,
                // Nobody knows how long that takes: whoever may go elsewhere does, be it into a line.
                Outlook::Awaited(_) => Some(now + LOOK_AGAIN),
                Outlook::Paused(until) => Some(until),
                Outlook::Never => return None,
            };
            let not_before = met.not_before.max(lent);
            Some(Standing { load, failures: met.failures, not_before, ..stands })
        };
        self.all.iter().enumerate().map(standing).collect()
    }

    /// How long until another leg takes the call that failed now, where there is one; `told`: how long it was told to wait.
    /// What has no other leg yet waits for that only where it may not be sent before.
    pub(crate) fn other_in(&self, told: Option<Duration>, now: Moment) -> Option<Duration> {
        let there =
            self.several.as_ref().and_then(|it| it.order.other_in(self.at, &self.standings(now), now));
        let after = self.fallback.as_ref().map(|fallback| fallback.after());
        let fallback = after.map(|after| (self.closed_since(now).unwrap_or(now) + after).since(now));
        let soon = fallback.filter(|soon| told.is_some_and(|told| told > *soon) && !soon.is_zero());
        there.into_iter().chain(soon).min()
    }

    /// The call waits in its lane from here on.
    pub(crate) fn waits(&mut self) {
        self.waits = true;
    }

    /// Whether there is another leg that may take the call, be it later.
    pub(crate) fn has_another(&self, now: Moment) -> bool {
        self.standings(now).into_iter().enumerate().any(|(at, stands)| at != self.at && stands.is_some())
    }

    /// It goes nowhere that a breaker is open.
    pub(crate) const fn heed_breakers(&self) -> bool {
        !self.stays && (self.several.is_some() || self.alone)
    }

    /// Until when the lane that the call is in sends nothing.
    pub(crate) fn holds_until(&self, now: Moment) -> Option<Moment> {
        self.leg().lane.stands(1, now).hold
    }

    /// The send on this leg failed, and the leg is not to be asked before.
    pub(crate) fn failed(&mut self, not_before: Option<Moment>, now: Moment) {
        if self.leg().instead.is_none() {
            self.turned_away.get_or_insert(now);
        }
        self.failed = true;
        if let Some((_, met)) = self.all.get_mut(self.at) {
            met.failures = met.failures.saturating_add(1);
            met.not_before = not_before;
        }
    }

    /// What the call does that waits now; `failed`: since its send on this leg has just failed.
    pub(crate) fn next(&self, failed: bool, now: Moment) -> Next {
        if self.stays {
            return Next::Stay { again: None };
        }
        let others = self.falls_back_at(now).filter(|at| *at > now).unwrap_or(Moment::LAST);
        let Some(several) = &self.several else {
            return match self.leg().lane.circuit(now).0 {
                Circuit::Open(until) if self.alone => Next::Rest(until.min(others)),
                Circuit::Open(_) | Circuit::Closed | Circuit::HalfOpen => {
                    Next::Stay { again: self.fallback.as_ref().map(|_| others.min(now + LOOK_AGAIN)) }
                }
            };
        };
        let standings = self.standings(now);
        let strategy = several.pool.as_ref().map_or(Strategy::InOrder, |pool| pool.strategy);
        match several.order.choose(strategy, &standings, now) {
            Choice::Leg(leg) if leg == self.at => Next::Stay { again: Some(others.min(now + LOOK_AGAIN)) },
            Choice::Leg(leg) => {
                let is_own = self.all.get(leg).is_some_and(|(leg, _)| leg.instead.is_none());
                let returns = is_own && self.leg().instead.is_some();
                let stands = standings.get(self.at).copied().flatten();
                let is_cut_off = stands.is_some_and(|stands| matches!(stands.circuit, Circuit::Open(_)));
                let why = match stands {
                    _ if failed => Left::Failed,
                    _ if returns => Left::Preferred,
                    // It has waited since then, perhaps for a breaker that has opened meanwhile.
                    _ if self.failed => Left::Failed,
                    _ if is_cut_off => Left::CircuitOpen,
                    _ if self.leg().outlook(now) != Outlook::Fair => Left::Credential,
                    Some(Standing { open: true, hold: None, .. }) => Left::Preferred,
                    Some(_) | None => Left::Shut,
                };
                Next::Go { leg, why }
            }
            Choice::Later(until) => Next::Rest(until.min(others)),
            Choice::Nowhere => Next::Stay { again: None },
        }
    }

    /// The call goes to this leg; its lane, the moment before which it is not to be sent there, and its names.
    pub(crate) fn go(&mut self, leg: usize) -> Option<(Arc<Lane>, Option<Moment>, event::Leg)> {
        // Back at its own model, it says so.
        let own = self.fallback.as_ref().filter(|_| self.leg().instead.is_some()).map(|own| own.asked());
        let (to, met) = self.all.get(leg)?;
        (self.at, self.waits, self.failed) = (leg, false, false);
        let model = to.instead.as_ref().map(|instead| instead.model()).or(own);
        let upstream = to.target.upstream.name.as_str().into();
        let names = event::Leg { upstream, lane: to.lane.id().into(), model };
        Some((Arc::clone(&to.lane), met.not_before, names))
    }

    /// It was served on this leg.
    pub(crate) fn served(&self, served: &Served) {
        if let Some(several) = &self.several
            && let (Some(pool), Some(session)) = (&several.pool, several.session)
        {
            served.put(&pool.name, session, &self.leg().target.upstream.name);
        }
    }

    /// Each upstream with what happened there and when it is asked again, for whom no upstream is left.
    pub(crate) fn circuits(&self, lang: Lang, now: Moment) -> String {
        let own = self.all.iter().filter(|(leg, _)| leg.instead.is_none());
        let each = own.filter_map(|(leg, _)| {
            let (Circuit::Open(until), fault) = leg.lane.circuit(now) else { return None };
            let fault = fault.map_or("", |fault| fault.meaning_in(lang));
            let seconds = Duration::from_secs(until.since(now).as_secs_f64().ceil() as u64);
            Some(circuit(lang, &leg.target.upstream.name, fault, &show_duration(seconds)))
        });
        each.collect::<Vec<_>>().join(&words::between(lang))
    }
}

/// A session as a number that is the same after a restart.
pub(crate) fn session(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

/// Which member of a pool served a session the last time: what it keeps or has sealed lies there.
#[derive(Default)]
pub(crate) struct Served(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// By pool and session: the member, and when it served.
    members: BTreeMap<(String, u64), (String, u64)>,
    /// The same, oldest first.
    ages: BTreeMap<u64, (String, u64)>,
    next: u64,
}

/// The most sessions that are kept in mind.
const SESSIONS: usize = 10_000;

impl Served {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, pool: &str, session: u64, member: &str) {
        let mut known = self.known();
        let (key, age) = ((pool.to_owned(), session), known.next);
        known.next += 1;
        if let Some((_, old)) = known.members.insert(key.clone(), (member.to_owned(), age)) {
            known.ages.remove(&old);
        }
        known.ages.insert(age, key);
        if known.members.len() > SESSIONS
            && let Some((_, oldest)) = known.ages.pop_first()
        {
            known.members.remove(&oldest);
        }
    }

    /// The member that served this session the last time.
    pub(crate) fn member(&self, pool: &str, session: u64) -> Option<String> {
        self.known().members.get(&(pool.to_owned(), session)).map(|(member, _)| member.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_sessions_are_kept_in_mind_as_there_is_room_for() {
        let served = Served::default();
        let many = SESSIONS as u64;
        for session in 0..many {
            served.put("p", session, "one");
        }
        served.put("p", 0, "two");
        served.put("p", many, "one");
        assert_eq!(served.member("p", 0).as_deref(), Some("two"));
        assert_eq!(served.member("p", 1), None, "the one that was served longest ago");
        assert_eq!(served.member("q", 0), None);
        let known = served.known();
        assert_eq!((known.members.len(), known.ages.len()), (SESSIONS, SESSIONS));
    }
}
