//! Looking after calls that no session has, while a relay serves: their clients were pointed at it for good, and most of
//! them show nothing. An observer that only rings, and a task that looks once it was rung for. No call waits for either.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use relay_core::Moment;
use relay_core::config::Desktop;
use relay_core::event::{CallId, Event};
use tokio::sync::Notify;

use super::{Telling, show};
use crate::clock::Clock;
use crate::observe::{Notice, Observer};
use crate::sessions::said::Held;
use crate::words::{held as words, lang, start};

/// How often it is looked while calls are held.
const EVERY: Duration = Duration::from_secs(1);

/// Rung when a call is held.
#[derive(Debug, Default)]
pub struct Watch {
    bell: Notify,
}

/// Where it looks, and whom it tells that there is no desktop.
pub struct Sources<L, W, T> {
    /// The time that calls are held by.
    pub clock: Arc<dyn Clock>,
    /// The calls that are held and belong to no session.
    pub held: L,
    /// What the settings in force want.
    pub wanted: W,
    /// Tells the observers.
    pub tell: T,
}

impl Watch {
    /// Looks whenever calls are held; never ends.
    pub async fn over(
        self: Arc<Self>,
        sources: Sources<impl Fn() -> Vec<Held>, impl Fn() -> Desktop, impl Fn(&Notice)>,
    ) -> Infallible {
        let Sources { clock, held, wanted, tell } = sources;
        let mut telling = Telling::default();
        let mut nobody_there = false;
        loop {
            self.bell.notified().await;
            loop {
                let all = match wanted() {
                    Desktop::Auto => false,
                    Desktop::On => true,
                    Desktop::Off => {
                        telling = Telling::default();
                        break;
                    }
                };
                let calls = held();
                let message = telling.look(lang(), clock.now(), &calls, all);
                // A desktop may come later, so it is tried again; that there was none is told once.
                if let Some(message) = message
                    && let Err(why) = show(&message).await
                    && !std::mem::replace(&mut nobody_there, true)
                {
                    let words = words::nobody_told(lang(), &why);
                    tell(&Notice::Advice(start::note(lang(), &words)));
                }
                if calls.is_empty() && telling.is_done() {
                    break;
                }
                tokio::time::sleep(clock.real(EVERY)).await;
            }
        }
    }
}

impl Observer for Watch {
    fn see(&self, _call: CallId, _at: Moment, event: &Event) {
        match event {
            Event::WaitStarted { .. } | Event::InLine { .. } | Event::HeldBack { .. } => {
                self.bell.notify_one()
            }
            Event::CallOpened { .. }
            | Event::SendStarted { .. }
            | Event::HeadArrived { .. }
            | Event::WayTaken { .. }
            | Event::FaultSeen { .. }
            | Event::Committed { .. }
            | Event::StreamCut { .. }
            | Event::Moved { .. }
            | Event::GrantTaken { .. }
            | Event::NoticeGiven { .. }
            | Event::CallClosed(_) => {}
        }
    }

    fn notice(&self, _notice: &Notice) {}
}
