//! A client's session: what passes while no call is under way, and how it ends on both sides.

use std::sync::Arc;

use arc_swap::ArcSwap;
use relay_core::dialect::responses_socket::is_create;
use relay_core::dialect::{Heard, Parts, route};
use relay_core::sse;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::Refused;
use super::call;
use super::client::Client;
use super::leg::{End, Got, Leg, Said, short};
use super::upgrade::{Wanted, connect};
use crate::clock::IdleLimit;
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

    pub(super) fn draining() -> Self {
        Self::Told(CloseFrame { code: CloseCode::Away, reason: short("steady-relay is being stopped") })
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
        let client = self.client.into_leg();
        match parting {
            Parting::Left(End::Closed(frame)) => {
                let upstream = async {
                    if let Some(upstream) = self.upstream {
                        upstream.close(frame).await;
                    }
                };
                // The library has answered it; this waits until that has left.
                tokio::join!(client.close(None), upstream);
            }
            Parting::Left(End::Violated(frame)) => {
                drop(self.upstream);
                client.turn_away(frame).await;
            }
            Parting::Left(End::Lost { .. }) | Parting::Cut => {}
            Parting::Mirrored(frame) => client.close(frame).await,
            Parting::Told(frame) => {
                drop(self.upstream);
                client.close(Some(frame)).await;
            }
        }
    }

    async fn serve(&mut self) -> Result<std::convert::Infallible, Parting> {
        loop {
            let shared = self.current.load_full();
            let message = tokio::select! {
                biased;
                () = shared.draining() => return Err(Parting::draining()),
                got = next_of(&mut self.upstream) => {
                    match got {
                        Got::Said(message) => self.client.send(message).await?,
                        Got::End(end) => return Err(Parting::of_upstream(end)),
                    }
                    continue;
                }
                message = self.client.next() => message?,
            };
            match message {
                // Apart, so that a session with nothing to do is small.
                Said::Text(text, place) if is_create(&text) => {
                    Box::pin(call::serve(self, &shared, text, place)).await?;
                }
                other @ (Said::Text(..) | Said::Binary(..)) => self.pass(&shared, other).await?,
            }
        }
    }

    /// Hands a message to the upstream that no call stands behind.
    async fn pass(&mut self, shared: &Shared, message: Said) -> Result<(), Parting> {
        self.client.begins_to_wait();
        if self.upstream.is_none() && self.refused.is_none() {
            let connecting = connect(shared, &self.wanted);
            self.upstream = self.client.awaits(connecting).await?.ok().map(|opened| opened.leg);
        }
        let Some(upstream) = &mut self.upstream else {
            return Err(Parting::again("there is no connection to the service; send that again"));
        };
        let sent = self.client.awaits(upstream.to.send(message)).await?;
        if sent.is_err() {
            self.upstream = None;
            return Err(Parting::Cut);
        }
        Ok(())
    }

    /// A request for nothing, by which a client makes the connection ready. It passes, with all that it is answered.
    pub(super) async fn prewarm(&mut self, shared: &Shared, message: Said) -> Result<(), Parting> {
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
                Got::End(end) => return Err(Parting::of_upstream(end)),
            };
            silence.restart();
            let heard = match &message {
                Said::Text(text, _) => {
                    let data = text.as_bytes();
                    let event = sse::Event { name: b"", data, starts: 0, ends: 0, cut_short: false };
                    dialect.hear(&event, &mut Parts::default())
                }
                Said::Binary(..) => Heard::Output,
            };
            self.client.send(message).await?;
            if matches!(heard, Heard::End | Heard::Fault) {
                return Ok(());
            }
        }
    }
}

/// What comes next from the upstream; never where there is none. A side that has ended is there no longer.
pub(super) async fn next_of(upstream: &mut Option<Leg>) -> Got {
    let Some(leg) = upstream else { return std::future::pending().await };
    let got = leg.from.next().await;
    if let Got::End(end) = &got
        && let Some(leg) = upstream.take()
    {
        leg.take_leave(end);
    }
    got
}
