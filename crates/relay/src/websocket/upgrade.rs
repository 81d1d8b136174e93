//! The opening handshake (RFC 6455, section 4) with the client and with the upstream, and what is remembered of it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version, header};
use http_body::Body as _;
use hyper_util::rt::TokioIo;
use relay_core::dialect::{Reply, judge, route};
use relay_core::event::Detour;
use relay_core::failure::{Failure, Told};
use relay_core::{Evidence, Fault, Moment};
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::leg::Leg;
use super::memory::{self, Address, Refused};
use crate::body::SendBody;
use crate::credential::{AccountKey, account_key};
use crate::drive::unsent;
use crate::headers::{announced, forwardable_answer, forwardable_extensions};
use crate::observe::Notice;
use crate::reply::{ReplyBody, text};
use crate::shared::Shared;
use crate::target::Target;
use crate::tunnel::{ask_for, change_protocol, changes_protocol, is_websocket};
use crate::upstream::{AnswerBody, Ask};
use crate::words::{lang, start};

/// How much of a refused upgrade's body is read to judge it and hand it on, and for how long.
const BODY: usize = 64 * 1024;
const BODY_WITHIN: Duration = Duration::from_secs(2);

/// What is agreed between two sides of a connection, and never travels on.
const OF_THE_HANDSHAKE: [HeaderName; 4] = [
    header::SEC_WEBSOCKET_KEY,
    header::SEC_WEBSOCKET_VERSION,
    header::SEC_WEBSOCKET_EXTENSIONS,
    header::SEC_WEBSOCKET_ACCEPT,
];

/// What the client's handshake has to be answered with.
///
/// # Errors
/// The answer to one that is none.
pub(super) fn accept_key(parts: &Parts) -> Result<HeaderValue, Box<Response<ReplyBody>>> {
    let refuse = |status, words: &str| {
        Box::new(text(status, &format!("steady-relay: {words} (RFC 6455, section 4.2)\n")))
    };
    if parts.method != Method::GET {
        return Err(refuse(StatusCode::METHOD_NOT_ALLOWED, "a WebSocket is opened with GET"));
    }
    let one = |name: &HeaderName| {
        let mut values = parts.headers.get_all(name).iter();
        values.next().filter(|_| values.next().is_none()).map(|value| value.as_bytes().trim_ascii())
    };
    if one(&header::SEC_WEBSOCKET_VERSION) != Some(b"13") {
        let mut answer = refuse(StatusCode::UPGRADE_REQUIRED, "the version of WebSocket spoken here is 13");
        answer.headers_mut().insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        change_protocol(answer.headers_mut(), Some(HeaderValue::from_static("websocket")));
        return Err(answer);
    }
    let key = one(&header::SEC_WEBSOCKET_KEY)
        .filter(|key| STANDARD.decode(key).is_ok_and(|bytes| bytes.len() == 16));
    key.and_then(|key| HeaderValue::try_from(derive_accept_key(key)).ok())
        .ok_or_else(|| refuse(StatusCode::BAD_REQUEST, "Sec-WebSocket-Key has to be sixteen bytes in base64"))
}

/// The answer that opens the client's side, with what the upstream said to it where that is known.
pub(super) fn switching(
    accept: HeaderValue,
    from: Option<(HeaderMap, http::Extensions)>,
) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::own(""));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    if let Some((headers, extensions)) = from {
        *response.headers_mut() = without(&forwardable_answer(headers), &OF_THE_HANDSHAKE);
        *response.extensions_mut() = forwardable_extensions(extensions);
    }
    let headers = response.headers_mut();
    change_protocol(headers, Some(HeaderValue::from_static("websocket")));
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    response
}

/// In their order: to remove one would move the last into the gap.
fn without(headers: &HeaderMap, names: &[HeaderName]) -> HeaderMap {
    let kept = headers.iter().filter(|(name, _)| !names.contains(name));
    let mut to = HeaderMap::with_capacity(headers.len());
    for (name, value) in kept {
        to.append(name.clone(), value.clone());
    }
    to
}

/// What is asked of the upstream, as often as a connection is made.
pub(super) struct Wanted {
    /// The client's head.
    pub(super) parts: Parts,
    /// The path as the relay sees it.
    pub(super) path: String,
    pub(super) target: Target,
    pub(super) account: AccountKey,
    /// What is remembered of it is found by this.
    pub(super) address: Address,
}

impl Wanted {
    pub(super) fn of(parts: Parts, path: String, target: Target) -> Self {
        let account = account_key(&parts.headers, target.path_and_query.as_str());
        let url = format!("{}{}", target.upstream.origin, target.path_and_query.path());
        let address = Address { url, account: account.number() };
        Self { parts, path, target, account, address }
    }
}

/// An upstream's side that is open.
pub(super) struct Opened {
    pub(super) leg: Leg,
    pub(super) headers: HeaderMap,
    pub(super) extensions: http::Extensions,
    /// How it gets there, where that is not simply the first of several ways.
    pub(super) detour: Option<Detour>,
}

/// What came of a handshake that opened nothing.
enum Refusal {
    /// The upstream answered, and not with the change of protocol.
    Answered(Box<Answered>),
    /// It broke off, or its answer is not what it has to be.
    Unfit(Box<Failure>),
    /// There was no connection.
    Unreached(Box<Failure>),
}

/// Why there is no connection, after which it is known what that means.
pub(super) enum Unopened {
    /// The upstream speaks no WebSocket there.
    Unspoken,
    /// It answered for good; waiting does not help.
    Declined(Box<Answered>),
    /// It answered that there is no room now, or failed.
    Refused(Refused, Box<Answered>),
    /// It was not reached, or gave no answer.
    Failed(Box<Failure>),
}

/// A refused upgrade.
pub(super) struct Answered {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) extensions: http::Extensions,
    pub(super) body: Bytes,
    /// What it means. No request has gone by then, so nothing has run.
    pub(super) failure: Failure,
}

impl Answered {
    /// Whether it says that WebSockets are not spoken here, rather than not now or not to this client.
    fn is_no_websocket(&self) -> bool {
        match self.status.as_u16() {
            401 | 407 | 408 | 425 | 429 => false,
            501 | 505 => true,
            status => status < 500,
        }
    }

    /// The answer for the client.
    pub(super) fn hand_on(self) -> Response<ReplyBody> {
        let mut response = Response::new(ReplyBody::own(self.body));
        *response.status_mut() = self.status;
        let mut headers = forwardable_answer(self.headers);
        // What was not read of a long one is missing.
        let _length = announced(&mut headers);
        headers.remove(header::CONTENT_LENGTH);
        *response.headers_mut() = headers;
        *response.extensions_mut() = forwardable_extensions(self.extensions);
        response
    }
}

/// Whether there is a connection for the handshake, and by which detour.
#[derive(Default)]
struct Stood(Mutex<Option<Option<Detour>>>);

impl Stood {
    fn set(&self, detour: Option<Detour>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(detour);
    }

    fn by(&self) -> Option<Option<Detour>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// How long it may take to open a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// By then the relay's own credential is there, or is not waited for any longer: that the issuer is slow says nothing
    /// about the upstream.
    pub(super) key_by: Moment,
    /// So long a handshake may take.
    pub(super) within: Duration,
}

/// Opens a connection to the upstream, and remembers what that says of its WebSockets.
pub(super) async fn open(shared: &Arc<Shared>, wanted: &Wanted, limits: Limits) -> Result<Opened, Unopened> {
    let (stood, begun) = (Stood::default(), shared.clock.now());
    let within = limits.within;
    let tried = connect(shared, wanted, &stood, limits).await;
    let (memory, now) = (&shared.websockets, shared.clock.now());
    let no_answer = |failure: Box<Failure>| {
        if memory.silent(&wanted.address, begun, now) {
            let words = failure.message.as_deref().unwrap_or("it does not answer");
            unspoken(shared, wanted, words);
            Unopened::Unspoken
        } else {
            Unopened::Failed(failure)
        }
    };
    match tried {
        Ok(Ok(opened)) => {
            memory.opened(&wanted.address, now);
            Ok(opened)
        }
        Ok(Err(Refusal::Answered(answered))) if answered.is_no_websocket() => {
            let words = format!("it answered {}", answered.status.as_u16());
            unspoken(shared, wanted, &words);
            Err(Unopened::Unspoken)
        }
        Ok(Err(Refusal::Answered(answered))) if answered.failure.evidence.is_none() => {
            Err(Unopened::Declined(answered))
        }
        Ok(Err(Refusal::Answered(answered))) => {
            Err(Unopened::Refused(memory.refused(&wanted.address, &answered.failure, now), answered))
        }
        Ok(Err(Refusal::Unfit(failure))) => Err(no_answer(failure)),
        Ok(Err(Refusal::Unreached(failure))) => Err(Unopened::Failed(failure)),
        Err(Late) => {
            let failure = Failure::of_transport(Fault::NeverSent, Evidence::NeverSent);
            let failure = |what: &str| failure.saying(format!("{what} within {} s", within.as_secs()));
            Err(if stood.by().is_some() {
                no_answer(Box::new(failure("no answer to the WebSocket handshake")))
            } else {
                Unopened::Failed(Box::new(failure("no connection")))
            })
        }
    }
}

/// It is remembered that the upstream speaks no WebSocket there, and told once.
fn unspoken(shared: &Shared, wanted: &Wanted, why: &str) {
    if shared.websockets.unspoken(&wanted.address, shared.clock.now()) {
        shared.observers.notice(&Notice::Advice(start::no_websocket(
            lang(),
            wanted.target.upstream.place(),
            why,
            memory::UNSPOKEN.as_secs() / 60,
        )));
    }
}

/// A handshake took too long.
struct Late;

/// Makes the handshake; once more where the relay's own credential was refused and there is a newer one. `stood` says how it
/// gets there, once the connection stands.
async fn connect(
    shared: &Arc<Shared>,
    wanted: &Wanted,
    stood: &Stood,
    limits: Limits,
) -> Result<Result<Opened, Refusal>, Late> {
    let mut renewed = false;
    loop {
        let (ask, lent) = match ask_for(shared, &wanted.parts, &wanted.target, limits.key_by).await {
            Ok(ready) => ready,
            Err(failure) => return Ok(Err(Refusal::Unreached(failure))),
        };
        let shaking = tokio::time::timeout(limits.within, shake_hands(shared, wanted, stood, ask));
        let shaken = shaking.await.map_err(|_elapsed| Late)?;
        match (&shaken, lent.filter(|_| !renewed)) {
            (Err(Refusal::Answered(refused)), Some(lent))
                if lent.renews_after(shared, refused.status, limits.key_by).await =>
            {
                renewed = true;
            }
            (_, _) => return Ok(shaken),
        }
    }
}

/// Without a limit of time once the connection `stood`.
async fn shake_hands(
    shared: &Arc<Shared>,
    wanted: &Wanted,
    stood: &Stood,
    mut ask: Request<SendBody>,
) -> Result<Opened, Refusal> {
    let upstream = &wanted.target.upstream;
    let key = generate_key();
    *ask.headers_mut() = without(ask.headers(), &OF_THE_HANDSHAKE);
    let headers = ask.headers_mut();
    shared.add_cookies(upstream, wanted.account, headers);
    change_protocol(headers, Some(HeaderValue::from_static("websocket")));
    headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    if let Ok(key) = HeaderValue::try_from(&key) {
        headers.insert(header::SEC_WEBSOCKET_KEY, key);
    }
    // Only HTTP/1.1 changes protocols.
    let way = shared.way(upstream, Version::HTTP_11).without_http2();
    let begun = shared.clock.now();
    let ask = Ask { way, request: ask, fresh: true, may_reuse_stale: false };
    let sent = shared.upstreams.send_over(ask, |detour| stood.set(detour)).await;
    let mut answer = match sent {
        Ok(answer) => answer,
        Err(failed) => {
            // Whatever became of the handshake: no request has gone by then.
            let failure = unsent(crate::upstream::Proof::NothingSent, failed.cause, false);
            let failure = Box::new(failure.saying(failed.detail));
            return Err(match failed.proof {
                crate::upstream::Proof::NothingSent => Refusal::Unreached(failure),
                crate::upstream::Proof::SomethingSent => Refusal::Unfit(failure),
            });
        }
    };
    shared.take_cookies(upstream, wanted.account, answer.headers());
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        let took = shared.clock.now().since(begun);
        return Err(Refusal::Answered(Box::new(answered(shared, wanted, answer, took).await)));
    }
    let malformed = |what: &str| {
        let failure = Failure::of_transport(Fault::NeverSent, Evidence::NeverSent);
        let failure = Failure { code: Some("malformed".into()), ..failure };
        Refusal::Unfit(Box::new(failure.saying(format!("its WebSocket handshake is wrong: {what}"))))
    };
    if !is_websocket(answer.headers()) || !changes_protocol(answer.headers()) {
        return Err(malformed("it changes to another protocol"));
    }
    let says = |name: &HeaderName| answer.headers().get(name).map(HeaderValue::as_bytes);
    if says(&header::SEC_WEBSOCKET_ACCEPT) != Some(derive_accept_key(key.as_bytes()).as_bytes()) {
        return Err(malformed("it does not prove that it read the key"));
    }
    if says(&header::SEC_WEBSOCKET_EXTENSIONS).is_some_and(|named| !named.trim_ascii().is_empty()) {
        return Err(malformed("it uses an extension that nobody offered"));
    }
    let (headers, extensions) = (answer.headers().clone(), answer.extensions().clone());
    let limit = usize::try_from(shared.config.limits.message).unwrap_or(usize::MAX);
    match hyper::upgrade::on(&mut answer).await {
        Ok(io) => {
            let leg = Leg::new(TokioIo::new(io), Role::Client, limit, &shared.room, None).await;
            let detour = stood.by().flatten();
            Ok(Opened { leg, headers, extensions, detour })
        }
        Err(error) => Err(malformed(&error.to_string())),
    }
}

async fn answered(
    shared: &Shared,
    wanted: &Wanted,
    answer: Response<AnswerBody>,
    took: Duration,
) -> Answered {
    let (parts, mut body) = answer.into_parts();
    let mut read = BytesMut::new();
    let reading = async {
        while read.len() < BODY {
            let next = std::future::poll_fn(|cx| std::pin::Pin::new(&mut body).poll_frame(cx)).await;
            let Some(Ok(frame)) = next else { break };
            if let Ok(data) = frame.into_data() {
                read.extend_from_slice(&data);
            }
        }
    };
    // What came by then is what it says.
    let _in_time = tokio::time::timeout(BODY_WITHIN, reading).await;
    read.truncate(BODY);
    let body = read.freeze();
    let dialect = route(&Method::POST, &wanted.path).dialect;
    let rules: Arc<[_]> = shared.config.rules_for(dialect.name(), &wanted.target.upstream.name);
    let reply = Reply {
        told: Told::ByStatus,
        status: parts.status.as_u16(),
        headers: &parts.headers,
        body: &body,
        took,
        wall: shared.clock.wall(),
        rules: &rules,
    };
    let mut failure = judge(dialect, &reply);
    if let Some(Evidence::MaybeRan | Evidence::NoAnswer) = failure.evidence {
        failure.evidence = Some(Evidence::Failed);
    }
    Answered { status: parts.status, headers: parts.headers, extensions: parts.extensions, body, failure }
}
