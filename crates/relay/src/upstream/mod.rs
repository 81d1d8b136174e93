//! Sends one request to an upstream, once, and says for every failure what is *proven* about it.
//!
//! What it is not: a place that sends anything again. A failed send goes back to the caller with its [`Proof`]; even
//! a request that a stale connection handed back unread is the caller's to send again, since it keeps the count.
//!
//! ```text
//! send --> connection at hand? --no--> connect (look up, TCP, proxy, TLS)  --failed--> NothingSent
//!                 |                      |
//!                 +----------+-----------+
//!               HTTP/1.1 send_alone         --handed back, or no byte written--> NothingSent
//!               HTTP/2   send_among_others  --refused stream, GOAWAY below it--> NothingSent
//!                            |              --bytes written, no answer---------> SomethingSent
//!                       answer's head  --> AnswerBody --ended--> idle again
//!                                                     --dropped early, broke--> connection closed, or stream reset,
//!                                                                               at once
//! ```
//!
//! The pool is our own because the usual ones hide whether bytes left, resend by themselves, and cannot be asked for
//! a fresh connection. Connections are hyper's and h2's; `wire` counts what crosses them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::header::{HOST, PROXY_AUTHORIZATION};
use http::uri::{Authority, Scheme};
use http::{Request, Response, StatusCode, Uri, Version};
use relay_core::event::Detour;

use crate::clock::Clock;
use crate::proxy::Proxy;
use connect::{At, Connected, Connector, Unconnected};
use connection::{Lease, Upload, UploadState};
use multiplexed::{Occupied, Unanswered};
use pool::{Carrier, Pool, Turn};
use proxied::{is_locked, locked};
use ways::{Tried, is_way};

mod answer;
mod connect;
mod connection;
mod multiplexed;
mod payload;
mod pool;
mod proxied;
mod socks;
mod ways;
mod wire;

pub(crate) use answer::io_kind;
pub use answer::{AnswerBody, AnswerBreak, AnswerError};
pub use payload::{BoxError, Payload};
pub(crate) use ways::DIRECT;
pub use ways::{Standings, WayNews, WayWhat, Ways};

/// Where connections go.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// TLS or plain.
    pub https: bool,
    /// A name or an address; an IPv6 address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// One way there: the key of the pool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Way {
    /// Where to.
    pub origin: Arc<Origin>,
    /// Through this proxy.
    pub via: Option<Arc<Proxy>>,
    /// Whether HTTP/2 is spoken where the other side agrees; over TLS alone.
    pub http2: bool,
}

impl Way {
    /// The straight way, over HTTP/1.1.
    #[must_use]
    pub fn straight(origin: impl Into<Arc<Origin>>) -> Self {
        Self { origin: origin.into(), via: None, http2: false }
    }

    /// The same over HTTP/1.1.
    #[must_use]
    pub fn without_http2(self) -> Self {
        Self { http2: false, ..self }
    }

    /// Whether a proxy gets the requests themselves, rather than dig a tunnel for them.
    fn is_handed_to_proxy(&self) -> bool {
        !self.origin.https && self.via.as_ref().is_some_and(|proxy| proxy.takes_plain_requests())
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.via {
            Some(proxy) => write!(f, "{} by the proxy {proxy}", self.origin),
            None => self.origin.fmt(f),
        }
    }
}

/// What bounds the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolLimits {
    /// For look-up, TCP and TLS together; where there are several ways, for all of them together.
    pub connect: Duration,
    /// A connection idle for longer carries no request that may not run twice; one idle for twice as long, none.
    pub idle: Duration,
    /// The most idle connections kept to one origin.
    pub idle_per_origin: usize,
}

impl Default for PoolLimits {
    fn default() -> Self {
        // 45 s lies below the 60 s after which most edges close an idle connection.
        Self { connect: Duration::from_secs(10), idle: Duration::from_secs(45), idle_per_origin: 32 }
    }
}

/// One request to send.
pub struct Ask<B> {
    /// How it gets there.
    pub way: Ways,
    /// With a target in origin form, `Host` and, where the length is known, `Content-Length` or a body that knows it.
    pub request: Request<B>,
    /// Demands a connection that has carried nothing yet.
    pub fresh: bool,
    /// Allows a connection idle for longer than [`PoolLimits::idle`]: for GET and HEAD, never for POST.
    pub may_reuse_stale: bool,
}

/// What is proven about a request whose answer never began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// Not one byte of it was written: it did not run.
    NothingSent,
    /// Some of it was written: it may have run.
    SomethingSent,
}

/// What ended a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The name could not be looked up.
    Dns,
    /// Nobody listens there.
    Refused,
    /// Look-up, TCP and TLS together took too long.
    ConnectTimeout,
    /// There was no connection for another reason.
    Connect,
    /// The TLS handshake failed, but not over a certificate.
    TlsHandshake,
    /// One side did not accept the other's certificate: no resend heals it.
    Certificate,
    /// A proxy did not come through, and may later.
    ProxyFailed,
    /// A proxy does not let us through: no resend heals it.
    ProxyRefused,
    /// The request came back unread: the connection closed before it took it, or the other side said so.
    HandedBack,
    /// The connection was reset.
    Reset,
    /// The connection was closed without an answer.
    Closed,
    /// What came back was no HTTP.
    Malformed,
    /// The request's own body broke off.
    RequestBody,
}

impl Cause {
    /// The name in logs, records and answers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Refused => "refused",
            Self::ConnectTimeout => "connect_timeout",
            Self::Connect => "connect",
            Self::TlsHandshake => "tls_handshake",
            Self::Certificate => "certificate",
            Self::ProxyFailed => "proxy_failed",
            Self::ProxyRefused => "proxy_refused",
            Self::HandedBack => "handed_back",
            Self::Reset => "reset",
            Self::Closed => "closed",
            Self::Malformed => "malformed",
            Self::RequestBody => "request_body",
        }
    }
}

/// A send that got no answer.
pub struct SendFailure<B> {
    /// What is proven.
    pub proof: Proof,
    /// What ended it.
    pub cause: Cause,
    /// In plain words: where to, and what the system said. Holds no secret.
    pub detail: String,
    /// Whether the connection had carried requests before.
    pub reused: bool,
    /// The request, where it was not touched.
    pub request: Option<Request<B>>,
    /// The ways that were tried, where there are several and none led there.
    pub detour: Option<Detour>,
}

/// Not derived: a request holds credentials.
impl<B> fmt::Debug for SendFailure<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendFailure")
            .field("proof", &self.proof)
            .field("cause", &self.cause)
            .field("detail", &self.detail)
            .field("reused", &self.reused)
            .finish_non_exhaustive()
    }
}

impl<B> fmt::Display for SendFailure<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl<B> std::error::Error for SendFailure<B> {}

/// All connections to all upstreams. A clone shares them.
pub struct Upstreams<B> {
    connector: Arc<Connector>,
    pool: Arc<Pool<B>>,
}

impl<B: Payload> Upstreams<B> {
    /// No connection yet.
    #[must_use]
    pub fn new(tls: &rustls::ClientConfig, clock: Arc<dyn Clock>, limits: PoolLimits) -> Self {
        Self {
            connector: Arc::new(Connector::new(tls, Arc::clone(&clock), limits.connect)),
            pool: Arc::new(Pool::new(clock, limits)),
        }
    }

    /// Sends one request, once, and gives back the head of its answer as soon as it is there, even while the body is
    /// still being sent. Dropping this future ends the request at once.
    ///
    /// # Errors
    /// Where no answer began; the failure says what is proven. There is no time limit here once connected.
    pub async fn send(&self, ask: Ask<B>) -> Result<Response<AnswerBody>, Box<SendFailure<B>>> {
        self.send_over(ask, |_| {}).await
    }

    /// The same; `connected` is called when there is a connection to send it on, and told where that is by another way
    /// than the first. Again, where a proxy then refuses the request and it goes another way.
    ///
    /// # Errors
    /// The same.
    pub async fn send_over(
        &self,
        ask: Ask<B>,
        mut connected: impl FnMut(Option<Detour>),
    ) -> Result<Response<AnswerBody>, Box<SendFailure<B>>> {
        let Ask { way: ways, mut request, fresh, may_reuse_stale } = ask;
        *request.version_mut() = Version::HTTP_11;
        let mut tried = Tried::default();
        loop {
            let (place, carrier) = match self.carrier(&ways, &mut tried, fresh, may_reuse_stale).await {
                Ok(reached) => reached,
                Err(Unreached { cause, detail, detour }) => {
                    let (proof, request) = (Proof::NothingSent, Some(request));
                    let reused = false;
                    return Err(Box::new(SendFailure { proof, cause, detail, reused, request, detour }));
                }
            };
            connected(tried.detour(&ways, Some(place)));
            let way = ways.at(place);
            let lease = match carrier {
                Carrier::Shared(place) => return send_among_others(place, &way, request).await,
                Carrier::Lent(lease) => lease,
            };
            let Some(proxy) = way.via.as_ref().filter(|_| way.is_handed_to_proxy()) else {
                return send_alone(lease, request).await;
            };
            let spare = payload::spare(&request);
            hand_to_proxy(&mut request, proxy);
            let sent = send_alone(lease, request).await;
            // RFC 9110, section 15.5.8: it comes from a proxy, which has not passed the request on.
            if !sent.as_ref().is_ok_and(|answer| is_locked(answer.status())) {
                ways.worked(place);
                return sent;
            }
            drop(sent);
            let why = locked();
            let (cause, detail) = (why.cause, why.detail(&way));
            ways.failed(place, cause);
            tried.push(place, why);
            let Some(spare) = spare else {
                let (proof, detour) = (Proof::NothingSent, tried.detour(&ways, None));
                let (reused, request) = (false, None);
                return Err(Box::new(SendFailure { proof, cause, detail, reused, request, detour }));
            };
            request = *spare;
        }
    }

    /// A connection by the best way that works, and the place of that: where one fails, the next is tried at once, since
    /// nothing was sent.
    async fn carrier(
        &self,
        ways: &Ways,
        tried: &mut Tried,
        fresh: bool,
        may_reuse_stale: bool,
    ) -> Result<(usize, Carrier<B>), Unreached> {
        while let Some(place) = ways.next(tried) {
            self.look(ways, place);
            let way = ways.at(place);
            let held = if fresh { None } else { self.pool.take(&way, may_reuse_stale).await };
            if let Some(carrier) = held {
                return Ok((place, carrier));
            }
            match self.connect(ways, place, fresh, may_reuse_stale).await {
                Ok(carrier) => {
                    // Whether a proxy takes the request is known only when it answers.
                    if !way.is_handed_to_proxy() {
                        ways.worked(place);
                    }
                    return Ok((place, carrier));
                }
                Err(why) if is_way(why.at) => {
                    ways.failed(place, why.cause);
                    tried.push(place, why);
                }
                Err(why) => {
                    ways.worked(place);
                    let detour = tried.detour(ways, Some(place));
                    return Err(Unreached { cause: why.cause, detail: why.detail(&way), detour });
                }
            }
        }
        let (cause, detail) = tried.all_failed(ways);
        Err(Unreached { cause, detail, detour: tried.detour(ways, None) })
    }

    /// Looks whether a better way than the one taken works again, where it is time to: by a connection that nobody
    /// waits for and that carries nothing.
    fn look(&self, ways: &Ways, taken: usize) {
        let Some(place) = ways.begin_probe(taken) else { return };
        let (connector, ways) = (Arc::clone(&self.connector), ways.clone());
        tokio::spawn(async move {
            let way = ways.at(place).without_http2();
            let looked = connector.connect::<B>(&way, ways.share(connector.within)).await;
            ways.probed(place, looked.map_or_else(|why| !is_way(why.at), |_closed| true));
        });
    }

    /// A new connection. Where it may turn out to be one for all, only one caller makes it and the others wait.
    async fn connect(
        &self,
        ways: &Ways,
        place: usize,
        fresh: bool,
        may_reuse_stale: bool,
    ) -> Result<Carrier<B>, Unconnected> {
        let way = &ways.at(place);
        let ours = match (way.http2 && !fresh).then(|| self.pool.turn(way)) {
            None => None,
            Some(Turn::Ours(ours)) => Some(ours),
            Some(Turn::Theirs(mut waits)) => {
                // Its end is what is waited for, however it comes about.
                let _ended = waits.changed().await;
                if let Some(carrier) = self.pool.take(way, may_reuse_stale).await {
                    return Ok(carrier);
                }
                if ways.is_left(place) {
                    let what = "another request has just found no connection";
                    return Err(Unconnected::on_the_way(Cause::Connect, what));
                }
                None
            }
        };
        let within = ways.share(self.connector.within);
        let carrier = match self.connector.connect(way, within).await? {
            Connected::One(connection) => Carrier::Lent(self.pool.lend(connection, way, false)),
            Connected::Many(connection) => {
                let connection = Arc::new(connection);
                let place = connection.occupy(Duration::MAX).ok_or_else(|| Unconnected {
                    cause: Cause::Connect,
                    at: At::Upstream,
                    what: "it allows no request".to_owned(),
                })?;
                self.pool.share(way.clone(), connection);
                Carrier::Shared(place)
            }
        };
        drop(ours);
        Ok(carrier)
    }
}

/// Why a send has no connection.
struct Unreached {
    cause: Cause,
    detail: String,
    detour: Option<Detour>,
}

impl<B> Clone for Upstreams<B> {
    fn clone(&self) -> Self {
        Self { connector: Arc::clone(&self.connector), pool: Arc::clone(&self.pool) }
    }
}

impl<B> fmt::Debug for Upstreams<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstreams").finish_non_exhaustive()
    }
}

/// If the future is dropped, so is the lease, and with it the connection.
async fn send_alone<B: Payload>(
    mut lease: Lease<B>,
    request: Request<B>,
) -> Result<Response<AnswerBody>, Box<SendFailure<B>>> {
    let state = Arc::new(UploadState::default());
    let mut request = request.map(|body| Upload::new(body, Arc::clone(&state)));
    let counting = Arc::clone(&lease.connection().wire);
    hyper::ext::on_informational(&mut request, move |_interim| counting.interim_came());
    let written_before = lease.connection().wire.written();
    let read_before = lease.connection().wire.read();
    lease.upload = Arc::clone(&state);
    let sent = lease.begin(request).await;
    let babbles = lease.connection().wire.babbles();
    let (handed_back, is_parse) = match sent {
        Ok(response) if !babbles => return Ok(answer(lease, response)),
        Ok(_beyond) => (None, false),
        Err(mut error) => {
            let handed_back = error.take_message().map(|request| request.map(Upload::into_inner));
            (handed_back, error.into_error().is_parse())
        }
    };
    let (way, reused) = (lease.way.clone(), lease.reused);
    // Only when it is gone can the connection write nothing more, and only then do the counts mean anything.
    let wire = lease.into_connection().stop();
    let (written, read) = (wire.written() - written_before, wire.read() - read_before);
    let proof = if handed_back.is_some() || written == 0 { Proof::NothingSent } else { Proof::SomethingSent };
    let cause = if state.broke() {
        Cause::RequestBody
    } else if handed_back.is_some() {
        Cause::HandedBack
    } else if is_parse || babbles {
        Cause::Malformed
    } else if wire.was_reset() {
        Cause::Reset
    } else {
        Cause::Closed
    };
    let what = if babbles { BABBLE } else { said(cause) };
    let detail = format!("{way}: {what} ({written} bytes written, {read} read)");
    Err(Box::new(SendFailure { proof, cause, detail, reused, request: handed_back, detour: None }))
}

/// If the future is dropped, the request's stream is reset.
async fn send_among_others<B: Payload>(
    place: Occupied,
    way: &Way,
    request: Request<B>,
) -> Result<Response<AnswerBody>, Box<SendFailure<B>>> {
    let reused = place.reused;
    let request = request.map(|body| Upload::new(body, Arc::default()));
    let Unanswered { proof, cause, detail, request } = match multiplexed::send(place, request).await {
        Ok(response) => return Ok(response.map(AnswerBody::shared)),
        Err(unanswered) => unanswered,
    };
    let detail = format!("{way}: {} ({detail})", said(cause));
    let request = request.map(|request| request.map(Upload::into_inner));
    Err(Box::new(SendFailure { proof, cause, detail, reused, request, detour: None }))
}

/// Makes of a request one that a proxy passes on: with the whole address as its target.
fn hand_to_proxy<B>(request: &mut Request<B>, proxy: &Proxy) {
    let mut target = std::mem::take(request.uri_mut()).into_parts();
    target.scheme = Some(Scheme::HTTP);
    target.authority = request.headers().get(HOST).and_then(|host| Authority::try_from(host.as_bytes()).ok());
    if let Ok(whole) = Uri::from_parts(target) {
        *request.uri_mut() = whole;
    }
    if let Some(basic) = &proxy.basic {
        request.headers_mut().insert(PROXY_AUTHORIZATION, basic.clone());
    }
}

fn answer<B: Payload>(lease: Lease<B>, response: Response<hyper::body::Incoming>) -> Response<AnswerBody> {
    let (parts, incoming) = response.into_parts();
    let wire = Arc::clone(&lease.connection().wire);
    let body = if parts.status == StatusCode::SWITCHING_PROTOCOLS {
        // From here on the connection belongs to whoever takes the upgrade out of the answer.
        lease.into_connection().let_go();
        AnswerBody::new(incoming, None, wire)
    } else {
        AnswerBody::new(incoming, Some(Box::new(lease)), wire)
    };
    Response::from_parts(parts, body)
}

/// What is said of a peer that sends interim answers and no other.
const BABBLE: &str = "no answer, only interim ones without end";

fn said(cause: Cause) -> &'static str {
    match cause {
        Cause::RequestBody => "the request's own body broke off",
        Cause::HandedBack => "the request came back unread",
        Cause::Malformed => "the answer was no HTTP",
        Cause::Reset => "the connection was reset before an answer",
        Cause::Closed => "the connection was closed before an answer",
        Cause::Dns
        | Cause::Refused
        | Cause::ConnectTimeout
        | Cause::Connect
        | Cause::TlsHandshake
        | Cause::ProxyFailed
        | Cause::ProxyRefused
        | Cause::Certificate => "there was no connection",
    }
}

#[cfg(test)]
mod tests;
