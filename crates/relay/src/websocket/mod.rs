//! WebSockets on which a client asks a model for answers: the door. Both sides end here, and each `response.create` on
//! one is a call like any other.
//!
//! ```text
//! door --upstream says 101, or does not say within 5 s, or has no room--> 101 to the client, a session begins
//!   \--it speaks no WebSocket: remembered--> 426, the client goes on over HTTP      \--401 and the like--> handed on
//!
//! session --response.create--> call: waits its turn, is sent, is listened to; what announces an answer is held
//!    ^ \---anything else-----> passes                  |  \--refused--> waits, is sent again as it came
//!    |                                                 |                on this connection, or a new one
//!    \--last word-- passes <--output-------------------/                \--it goes on from an answer that only the lost
//!                                                                          connection knew--> close: the client sends
//!                                                                          the whole input
//! ```
//!
//! What it is not: a change of what is said. The text of each message passes as it came; pings are answered, each on
//! its own side. No history is composed: a request is sent as it came or not at all.

mod call;
mod client;
mod leg;
mod memory;
mod metered;
mod queue;
mod session;
mod upgrade;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use http::{Method, Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::inbound::Place;
use crate::reply::ReplyBody;
use crate::shared::Shared;
use crate::target::Target;
use crate::tunnel::use_http;
use crate::wishes::Wishes;
use crate::words::{door, lang};
use client::Client;
use leg::Leg;
pub(crate) use memory::Memory;
pub(crate) use memory::Refused;
use session::Session;
use upgrade::{Limits, Unopened, Wanted, accept_key, switching};

/// For so long the upstream is tried before the client gets its answer: Codex gives an upgrade up after 15 s.
const TRIED: Duration = Duration::from_secs(5);

/// So long a handshake may take in the middle of a session, once the connection stands.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// What a session starts from.
pub(crate) struct Door {
    /// The settings in force, now and later.
    pub(crate) current: Arc<ArcSwap<Shared>>,
    pub(crate) target: Target,
    pub(crate) path: String,
    pub(crate) wishes: Wishes,
    /// The client's connection takes up its place as long as the session is there.
    pub(crate) place: Place,
}

/// Answers a client's handshake; where that opens a session, it goes on by itself.
pub(crate) async fn open(
    shared: Arc<Shared>,
    mut request: Request<Incoming>,
    door: Door,
) -> Response<ReplyBody> {
    let Door { current, target, path, wishes, place } = door;
    let client_side = hyper::upgrade::on(&mut request);
    let (mut parts, _no_body) = request.into_parts();
    let accept = match accept_key(&parts) {
        Ok(accept) => accept,
        Err(answer) => return *answer,
    };
    let kind = relay_core::client::Client::of(&parts.headers).kind;
    // Each request on it is what a POST there is.
    parts.method = Method::POST;
    let wanted = Wanted::of(parts, path, target);
    let now = shared.clock.now();
    if shared.websockets.is_unspoken(&wanted.address, now) {
        return use_http(&door::websocket_unspoken(lang()));
    }
    let mut refused = shared.websockets.still_refused(&wanted.address, now);
    let mut upstream = None;
    if refused.is_none() {
        // A call waits for a credential longer, and in its own words.
        let key_by = now + TRIED.min(shared.config.timeouts.connect);
        let limits = Limits { key_by, within: TRIED };
        match upgrade::open(&shared, &wanted, limits).await {
            Ok(opened) => upstream = Some(opened),
            Err(Unopened::Unspoken) => return use_http(&door::websocket_unspoken(lang())),
            Err(Unopened::Declined(answered)) => return answered.hand_on(),
            Err(Unopened::Refused(told, _)) => refused = Some(told),
            Err(Unopened::Failed(_)) => {}
        }
    }
    let (upstream, said) = match upstream {
        Some(opened) => (Some(opened.leg), Some((opened.headers, opened.extensions))),
        None => (None, None),
    };
    let limit = usize::try_from(shared.config.limits.message).unwrap_or(usize::MAX);
    let (every, stall) = (shared.config.waiting.interim, shared.config.limits.stall);
    tokio::spawn(async move {
        let _place = place;
        let Ok(io) = client_side.await else { return };
        let leg = Leg::new(TokioIo::new(io), Role::Server, limit, &shared.room, Some(stall)).await;
        let client = Client::new(leg, limit, every, kind.lives_by_events());
        Session { current, wanted, wishes, client, upstream, refused, failed: None }.run().await;
    });
    switching(accept, said)
}
