//! A client's session: what passes while no call is under way, and how it ends on both sides.

use std::sync::Arc;

use arc_swap::ArcSwap;
use relay_core::dialect::responses_socket::is_create;
use relay_core::dialect::route;
use relay_core::failure::label;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::HANDSHAKE;
use super::Refused;
use super::call;
use super::client::Client;
use super::leg::{End, Got, Leg, Said, next_of, short};
use super::upgrade::{Limits, Unopened, Wanted, open};
use crate::clock::IdleLimit;
use crate::observe::Notice;
use crate::shared::Shared;
use crate::wishes::Wishes;

/// A session.
pub(super) struct Session {
    pub(super) current: Arc<ArcSwap<Shared>>,
    pub(super) wanted: Wanted,
    pub(super) wishes: Wishes,
    pub(super) client: Client,
    /// The connection to the upstream, while there is one.
    pub(super) upstream: Option<Leg>,
    /// The upstream had no room for one: the first call waits for that.
    pub(super) refused: Option<Refused>,
    /// The last answer, where it failed: the service may say more of it, which is no part of the next one.
    pub(super) failed: Option<String>,
}

/// How a session ends.
pub(super) enum Parting {
    /// The client went.
    Left(End),
    /// The upstream closed, and the client gets the same.
    Mirrored(Option<CloseFrame>),
    /// The client is told this, and goes on by its own policy.
    Told(CloseFrame),
    /// The connection is lost to the client, as the upstream's was.
    Cut,
}

impl Parting {
    /// The client is to come back, and then to send all of its input.
    pub(super) fn again(reason: &str) -> Self {
        Self::Told(CloseFrame { code: CloseCode::Again, reason: short(&format!("steady-relay: {reason}")) })
    }

    /// What the request goes on from is lost.
    pub(super) fn full_input() -> Self {
        Self::again("the service has lost what this goes on from; send the whole input")
    }

    /// The upstream speaks no WebSocket after all; the next handshake is told so.
    pub(super) fn unspoken() -> Self {
        Self::again("the service speaks no WebSocket there; use HTTP")
    }

    pub(super) fn draining() -> Self {
        Self::Told(CloseFrame { code: CloseCode::Away, reason: short("steady-relay is being stopped") })
    }

    /// The same for one that waits for an answer: 1001 is a tidy end to some.
    pub(super) fn restarting() -> Self {
        Self::Told(CloseFrame { code: CloseCode::Restart, reason: short("steady-relay is being stopped") })
    }

    /// What the end of the upstream's side is to the client.
    pub(super) fn of_upstream(end: End) -> Self {
        match end {
            End::Closed(frame) => Self::Mirrored(frame),
            End::Lost { .. } => Self::Cut,
            End::Violated(frame) => Self::Told(CloseFrame {
                code: CloseCode::Error,
                reason: short(&format!("steady-relay: the service sent {}", frame.reason)),
            }),
        }
    }
}

impl From<End> for Parting {
    fn from(end: End) -> Self {
        Self::Left(end)
    }
}

impl Session {
    /// Serves it to its end, and tells both sides.
    pub(super) async fn run(mut self) {
        let Err(parting) = self.serve().await;
        if let Parting::Left(End::Violated(frame)) = &parting {
            self.turned_away(frame.code);
        }
        let (client, upstream) = (self.client.into_leg(), self.upstream);
        let leave = async |frame| {
            if let Some(upstream) = upstream {
                upstream.close(frame).await;
            }
        };
        let away = CloseFrame { code: CloseCode::Away, reason: short("") };
        match parting {
            // The library has answered the client's; this waits until that has left.
            Parting::Left(End::Closed(frame)) => {
                tokio::join!(client.close(None), leave(frame));
            }
            Parting::Left(End::Violated(frame)) => {
                let hears_out = async { tokio::join!(client.turn_away(frame), leave(Some(away))) };
                let shared = self.current.load_full();
                tokio::select! {
                    () = shared.draining() => {}
                    _ = hears_out => {}
                }
            }
            // A request that is under way there has nobody any more: the end of the connection tells at once.
            Parting::Left(End::Lost { .. }) | Parting::Cut => {}
            Parting::Mirrored(frame) => client.close(frame).await,
            Parting::Told(frame) => {
                tokio::join!(client.close(Some(frame)), leave(Some(away)));
            }
        }
    }

    async fn serve(&mut self) -> Result<std::convert::Infallible, Parting> {
        let mut stuck = IdleLimit::new(self.current.load().config.timeouts.idle);
        loop {
            let shared = self.current.load_full();
            let is_sending = self.is_sending();
            if !is_sending {
                stuck.restart();
            }
            let message = tokio::select! {
                biased;
                () = shared.draining() => return Err(Parting::draining()),
                got = next_of(&mut self.upstream) => {
                    match got {
                        Got::Said(message) => self.client.send(message).await?,
                        Got::Left => stuck.restart(),
                        Got::End(end) => return Err(Parting::of_upstream(end)),
                    }
                    continue;
                }
                // One after the other: what is on its way to the upstream is all that waits for it.
                message = self.client.next_if(!is_sending) => match message? {
                    Some(message) => message,
                    None => continue,
                },
                () = stuck.passed(), if is_sending => return Err(Parting::Cut),
            };
            // They may be others by now.
            let shared = self.current.load_full();
            match message {
                // Apart, so that a session with nothing to do is small.
                Said::Text(text, place) if is_create(&text) => {
                    Box::pin(call::serve(self, &shared, text, place)).await?;
                }
                other @ (Said::Text(..) | Said::Binary(..)) => self.pass(&shared, other).await?,
            }
        }
    }

    /// The client broke the protocol or a limit: what it asked for is not served.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the codes that are sent here are few of many")]
    fn turned_away(&self, told: CloseCode) {
        let (status, code) = match told {
            CloseCode::Size => (413, "message_too_long"),
            CloseCode::Again => (503, "no_room_for_message"),
            CloseCode::Policy => (408, "message_stalled"),
            CloseCode::Invalid => (400, "no_utf8"),
            // It is one of ours: the protocol was broken.
            _other => (400, "websocket_violated"),
        };
        let notice = Notice::TurnedAway { status, code, path: label(&self.wanted.path) };
        self.current.load().observers.notice(&notice);
    }

    /// Hands a message to the upstream that no call stands behind.
    async fn pass(&mut self, shared: &Arc<Shared>, message: Said) -> Result<(), Parting> {
        self.client.begins_to_wait();
        if self.upstream.is_none() && self.refused.is_none() {
            let connect = shared.config.timeouts.connect;
            let limits = Limits { key_by: shared.clock.now() + connect, within: HANDSHAKE + connect };
            let opening = open(shared, &self.wanted, limits);
            let opened = tokio::select! {
                () = shared.draining() => return Err(Parting::draining()),
                opened = self.client.awaits(opening) => opened?,
            };
            match opened {
                Ok(opened) => self.upstream = Some(opened.leg),
                Err(Unopened::Unspoken) => return Err(Parting::unspoken()),
                Err(Unopened::Declined(_) | Unopened::Refused(..) | Unopened::Failed(_)) => {}
            }
        }
        let Some(upstream) = &mut self.upstream else {
            return Err(Parting::again("there is no connection to the service; send that again"));
        };
        upstream.to.put(message);
        Ok(())
    }

    /// Whether something is on its way to the upstream.
    pub(super) fn is_sending(&self) -> bool {
        self.upstream.as_ref().is_some_and(|upstream| upstream.to.has_more())
    }

    /// A request for nothing, by which a client makes the connection ready. It passes, with all that it is answered.
    pub(super) async fn prewarm(&mut self, shared: &Arc<Shared>, message: Said) -> Result<(), Parting> {
        self.pass(shared, message).await?;
        let dialect = route(&self.wanted.parts.method, &self.wanted.path).dialect;
        let mut silence = IdleLimit::new(shared.config.timeouts.idle);
        loop {
            let got = tokio::select! {
                biased;
                () = shared.draining() => return Err(Parting::draining()),
                got = self.client.awaits(next_of(&mut self.upstream)) => got?,
                () = silence.passed() => return Err(Parting::Cut),
            };
            let message = match got {
                Got::Said(message) => message,
                Got::Left => {
                    silence.restart();
                    continue;
                }
                Got::End(end) => return Err(Parting::of_upstream(end)),
            };
            silence.restart();
            let is_last = message.is_last(dialect);
            self.client.send(message).await?;
            if is_last {
                return Ok(());
            }
        }
    }
}
