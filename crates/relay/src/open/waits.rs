//! How an open call waits: in the line of its lane, or in none, until its turn has come or something else is to be done.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use relay_core::call::Waiting;
use relay_core::event::{self, Event, Left};
use relay_core::gate::{Arrival, Preset};
use relay_core::{Moment, notice};

use super::{OpenCall, Place};
use crate::clock::sleep_until;
use crate::lanes::{InLine, Lane, Ticket, Turn, Word};
use crate::quota;

/// So long a call that was not refused may wait in the line of its lane before anybody is told: a crowd into a healthy lane
/// is let in one after the other, most of it sooner than this.
const MOMENT: Duration = Duration::from_millis(100);

/// How a wait went on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited {
    /// Its turn has come, which it takes or leaves.
    Turn,
    /// It is over.
    Over,
    /// The client is to be shown that it goes on.
    Notice,
    /// Another upstream may take the call by now.
    Again,
}

/// Whether a call is sent past its parked lane: one that nobody wants to wait for a quota, once, as it would be if nobody
/// else's lane were parked either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Around {
    Not,
    /// When it comes to its lane next.
    Next,
    /// It is on its way so.
    Now,
    Was,
}

/// How a wait is over.
enum Over {
    /// The lane said so.
    Told(Word),
    /// The turn has not come in time.
    Patience,
    /// It has not come, and the client is to be told of that.
    Notice,
    /// It has not come, and others are looked at.
    Again,
    /// The relay is being stopped.
    Draining,
}

impl OpenCall {
    /// The call waits in its lane from now on, if it does not yet.
    fn take_turn(&mut self, waiting: &Waiting) -> Turn {
        if let Some(turn) = self.turn.take() {
            return turn;
        }
        let (sends, budget) = self.call.counted();
        let Place { session, weight, streams } = self.place;
        if !waiting.parks && !waiting.plain && self.around == Around::Not && self.ticket.is_parked() {
            self.around = Around::Next;
        }
        if self.around == Around::Next {
            self.around = Around::Now;
        }
        let arrival = Arrival {
            call: self.id,
            session,
            since: self.call.first_opened(),
            deadline: waiting.deadline(),
            preset: self.call.profile().gate.unwrap_or(Preset::Interactive),
            weight,
            sends,
            budget,
            not_before: waiting.not_before,
            streams,
            plain: waiting.plain || self.around == Around::Now,
        };
        self.ticket.enter(arrival, *waiting)
    }

    /// Waits until its turn has come, or will not, and does that much of `meanwhile` as there is time for; none of it
    /// where the turn is here already. `again`: it is asked for elsewhere then.
    pub(crate) async fn wait(
        &mut self,
        waiting: &Waiting,
        again: Option<Moment>,
        meanwhile: impl Future<Output = ()>,
    ) -> Waited {
        let shared = Arc::clone(&self.shared);
        let (mut turn, mut untold) = match self.take_turn(waiting) {
            Turn::Now => return Waited::Turn,
            Turn::Later { turn, untold } => (turn, untold),
        };
        let tells = match &untold {
            Some(line) if self.call.last_fault().is_some() || line.parked.is_some() => {
                self.stands_in(line);
                untold = None;
                None
            }
            line => line.as_ref().map(|_later| self.now() + MOMENT),
        };
        let notice = self.notice_due();
        let at = |moment: Option<Moment>| {
            let clock = Arc::clone(&shared.clock);
            async move {
                match moment {
                    Some(at) => sleep_until(&*clock, at).await,
                    None => pending().await,
                }
            }
        };
        let over = async {
            tokio::select! {
                biased;
                // A lane lasts as long as those that wait in it.
                word = &mut turn => word.map_or(Over::Patience, Over::Told),
                () = sleep_until(&*shared.clock, waiting.until) => Over::Patience,
                () = at(notice) => Over::Notice,
                () = at(again) => Over::Again,
                () = shared.draining() => Over::Draining,
            }
        };
        let over = {
            let (mut over, meanwhile, tells) = (pin!(over), pin!(meanwhile), pin!(at(tells)));
            let (mut meanwhile, mut tells) = (meanwhile.fuse(), tells.fuse());
            loop {
                tokio::select! {
                    biased;
                    over = &mut over => break over,
                    () = &mut tells => {
                        if let Some(line) = untold.take() {
                            self.stands_in(&line);
                        }
                    }
                    () = &mut meanwhile => {}
                }
            }
        };
        if matches!(over, Over::Notice)
            && let Some(line) = untold.take()
        {
            self.stands_in(&line);
        }
        if let Over::Notice | Over::Again = over {
            self.turn = Some(Turn::Later { turn, untold });
            return if matches!(over, Over::Notice) { Waited::Notice } else { Waited::Again };
        }
        let now = self.now();
        if !matches!(over, Over::Told(Word::Go)) {
            self.leaves_line();
        }
        match over {
            Over::Told(Word::Go) => return Waited::Turn,
            // Others may not be.
            Over::Told(Word::Held | Word::Parked) if again.is_some() => return Waited::Again,
            Over::Told(Word::Held) => self.call.held_for_too_long(now),
            // The lane was parked while it waited there.
            Over::Told(Word::Parked) if !waiting.parks && self.around == Around::Not => {
                self.around = Around::Next;
            }
            Over::Told(Word::Parked) => {
                let spent = self.ticket.remembered();
                self.call.held_parked(spent.map_or_else(quota::unknown, |spent| spent.failure.clone()), now);
            }
            // The core looks at the clock itself.
            Over::Patience | Over::Notice | Over::Again => {}
            Over::Draining => self.call.drain(now),
        }
        Waited::Over
    }

    fn stands_in(&mut self, line: &InLine) {
        self.call.stands_in_line(line.waiting, line.parked);
        self.emit_pending();
    }

    /// Waits in no line, until something is over or until then, when others are looked at.
    pub(crate) async fn rest(&mut self, over: impl Future<Output = ()>, until: Moment) -> Waited {
        let shared = Arc::clone(&self.shared);
        self.gives_way();
        let notice = self.notice_due().unwrap_or(Moment::LAST);
        tokio::select! {
            biased;
            () = over => Waited::Over,
            () = sleep_until(&*shared.clock, notice) => Waited::Notice,
            () = sleep_until(&*shared.clock, until) => Waited::Again,
            () = shared.draining() => {
                self.call.drain(self.now());
                Waited::Again
            }
        }
    }

    /// It leaves its turn to others, or its place.
    pub(crate) fn gives_way(&mut self) {
        self.leaves_line();
        self.turn = None;
    }

    /// It takes its turn, if the breaker of its upstream lets it; `heeds`: there is somewhere else to go, or it is to be
    /// turned away.
    pub(crate) fn takes_turn(&mut self, heeds: bool) -> bool {
        let passes = !heeds || self.ticket.passes();
        if passes {
            let now = self.now();
            self.call.granted(now);
        }
        passes
    }

    /// It goes to another upstream, where it is not to be sent before `own`.
    pub(crate) fn moves(&mut self, lane: Arc<Lane>, own: Option<Moment>, to: event::Leg, why: Left) {
        self.leaves_line();
        self.turn = None;
        self.ticket = Ticket::new(lane, self.id);
        self.around = Around::Not;
        let now = self.now();
        self.call.moves(own, now);
        self.emit(&Event::Moved { send: self.call.sends() + 1, to: Arc::new(to), why });
    }

    /// When its client is to be shown that it is held; never where it could not be known again.
    fn notice_due(&self) -> Option<Moment> {
        let turn = self.client.turn.as_ref().filter(|turn| self.shared.parked.has_room_for(turn));
        turn.and(self.call.notice_due())
    }

    /// What its client is shown, which asks again upon it; the call waits for that. See [`crate::parked`].
    pub(crate) fn notice(&mut self) -> String {
        self.call.noticed();
        self.emit_pending();
        if let Some(turn) = &self.client.turn {
            self.shared.ledger().notice(turn, self.now());
        }
        // By which it is known should the client come too late.
        let _mark = self.body.hash();
        self.body.drop_bytes();
        notice::message(
            self.shared.config.lang.unwrap_or_default(),
            self.model.as_deref(),
            self.call.last_fault(),
        )
    }

    /// Its turn has not come, and is not waited for any more.
    pub(super) fn leaves_line(&mut self) {
        self.ticket.leave();
    }
}
