//! Upgrades that the relay does not speak are tunnelled: once the upstream agrees, bytes pass both ways untouched
//! and nothing is ever sent again.

use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Version, header};
use hyper::body::{Body, Incoming};
use hyper_util::rt::TokioIo;
use relay_core::Moment;
use relay_core::failure::Failure;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};

use crate::body::SendBody;
use crate::credentials::{self, Lent};
use crate::headers::{forwardable, forwardable_answer, forwardable_extensions};
use crate::inbound::Place;
use crate::reply::{ReplyBody, pass_on, text};
use crate::shared::Shared;
use crate::target::Target;
use crate::upstream::Ask;
use crate::words::{door, lang};

/// Whether a request asks to change the protocol, and to one that a tunnel can carry.
///
/// Any server may ignore the wish (RFC 9110, 7.8). It is ignored where the request has a body, which is a request
/// to be served, and for HTTP/2 in the clear, which Java's client offers with every first request and which would let
/// requests into the tunnel that nobody has looked at.
pub(crate) fn is_upgrade(request: &Request<impl Body>) -> bool {
    let headers = request.headers();
    let wished = headers.contains_key(header::UPGRADE) && !names(headers, "h2c");
    // RFC 9110, section 7.8: of HTTP/1.0 it is no wish.
    wished
        && request.version() != Version::HTTP_10
        && request.body().is_end_stream()
        && changes_protocol(headers)
}

/// Whether `Connection` says so.
pub(crate) fn changes_protocol(headers: &HeaderMap) -> bool {
    let lists = headers.get_all(header::CONNECTION).into_iter().filter_map(|list| list.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|token| token.trim().eq_ignore_ascii_case("upgrade"))
}

/// Whether it asks for a WebSocket.
pub(crate) fn is_websocket(headers: &HeaderMap) -> bool {
    names(headers, "websocket")
}

/// Whether a protocol is among those that are wished for.
fn names(headers: &HeaderMap, protocol: &str) -> bool {
    let lists = headers.get_all(header::UPGRADE).into_iter().filter_map(|list| list.to_str().ok());
    let mut wished = lists.flat_map(|list| list.split(',')).map(str::trim);
    wished.any(|name| name.split('/').next().is_some_and(|name| name.eq_ignore_ascii_case(protocol)))
}

/// Tells a client to go on over HTTP: Codex does at once and for the whole session on 426, and on nothing else.
pub(crate) fn use_http(why: &str) -> Response<ReplyBody> {
    let mut response = text(StatusCode::UPGRADE_REQUIRED, &door::use_http(lang(), why));
    // RFC 9110, section 15.5.22: the answer names what to upgrade to.
    response.headers_mut().insert(header::UPGRADE, HeaderValue::from_static("HTTP/1.1"));
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    response
}

/// What a tunnel is opened by.
pub(crate) struct Way {
    pub(crate) target: Target,
    /// The client's connection takes up its place as long as the tunnel is there.
    pub(crate) place: Place,
    /// How long its client waits for what goes before, where it says so.
    pub(crate) patience: Option<Duration>,
}

/// Opens the tunnel, or hands on what the upstream says instead. One that the relay's own end comes before is of no use.
pub(crate) async fn open(shared: Arc<Shared>, way: Way, request: Request<Incoming>) -> Response<ReplyBody> {
    let place = way.target.upstream.place().to_owned();
    let ending = Arc::clone(&shared);
    tokio::select! {
        biased;
        opened = open_now(shared, way, request) => opened,
        () = ending.draining() => {
            let why = door::being_stopped(lang());
            text(StatusCode::SERVICE_UNAVAILABLE, &door::no_tunnel(lang(), &place, &why))
        }
    }
}

async fn open_now(
    shared: Arc<Shared>,
    Way { target, place, patience }: Way,
    mut request: Request<Incoming>,
) -> Response<ReplyBody> {
    let wanted = request.headers().get(header::UPGRADE).cloned();
    let client_side = hyper::upgrade::on(&mut request);
    let upstream = Arc::clone(&target.upstream);
    let (parts, _no_body) = request.into_parts();
    let timeouts = &shared.config.timeouts;
    let within = timeouts.first_byte.unwrap_or(timeouts.first_byte_unknown);
    let failed = |status, why: &str| text(status, &door::no_tunnel(lang(), upstream.place(), why));
    // A credential is no part of the tunnel: it may take as long as a connection.
    let key_within = patience.map_or(timeouts.connect, |patience| patience.min(timeouts.connect));
    let key_by = shared.clock.now() + key_within;
    let mut renewed = false;
    let mut answer = loop {
        let (mut ask, lent) = match ask_for(&shared, &parts, &target, key_by).await {
            Ok(ready) => ready,
            Err(failure) => {
                return failed(StatusCode::BAD_GATEWAY, failure.message.as_deref().unwrap_or_default());
            }
        };
        ask.method_mut().clone_from(&parts.method);
        change_protocol(ask.headers_mut(), wanted.clone());
        // Only HTTP/1.1 changes protocols.
        let way = shared.way(&upstream, Version::HTTP_11).without_http2();
        let sending = shared.upstreams.send(Ask { way, request: ask, fresh: true, may_reuse_stale: false });
        let answer = match tokio::time::timeout(within, sending).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(unsent)) => return failed(StatusCode::BAD_GATEWAY, &unsent.detail),
            Err(_elapsed) => {
                let why = door::no_answer_within(lang(), within.as_secs_f64());
                return failed(StatusCode::GATEWAY_TIMEOUT, &why);
            }
        };
        match lent.filter(|_| !renewed) {
            Some(lent) if lent.renews_after(&shared, answer.status(), key_by).await => renewed = true,
            Some(_) | None => break answer,
        }
    };
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        return pass_on(answer);
    }
    let upstream_side = hyper::upgrade::on(&mut answer);
    let agreed = answer.headers().get(header::UPGRADE).cloned();
    tokio::spawn(async move {
        let _place = place;
        let (Ok(client), Ok(upstream)) = tokio::join!(client_side, upstream_side) else { return };
        let (client, upstream) = (TokioIo::new(client), TokioIo::new(upstream));
        tokio::select! {
            // However it ends, both sides are closed.
            () = both_ways(client, upstream, shared.config.limits.stall) => {}
            () = shared.draining() => {}
        }
    });
    let mut response = Response::new(ReplyBody::own(""));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    *response.headers_mut() = forwardable_answer(answer.headers().clone());
    *response.extensions_mut() = forwardable_extensions(answer.extensions().clone());
    change_protocol(response.headers_mut(), agreed);
    response
}

/// What the upstream is asked for a client that wants to change the protocol: a GET as the client's own would arrive; and
/// the relay's own credential, where it carries that.
///
/// # Errors
/// Where that credential cannot be had by then.
pub(crate) async fn ask_for(
    shared: &Arc<Shared>,
    parts: &Parts,
    target: &Target,
    key_by: Moment,
) -> Result<(Request<SendBody>, Option<Lent>), Box<Failure>> {
    let mut target = target.clone();
    let mut ask = Request::new(SendBody::Kept(None));
    *ask.headers_mut() = forwardable(&parts.headers);
    let mut lent = credentials::of_request(shared, &mut target, ask.headers_mut());
    let upstream = &target.upstream;
    *ask.uri_mut() = http::Uri::from(target.path_and_query.clone());
    *ask.extensions_mut() = forwardable_extensions(parts.extensions.clone());
    let headers = ask.headers_mut();
    shared.hop.mark(headers, &parts.headers, upstream);
    upstream.lend_key(headers, target.path_and_query.as_str());
    if let Some(host) = &upstream.host {
        headers.insert(header::HOST, host.clone());
    }
    upstream.add_headers(headers);
    if let Some(lent) = &mut lent {
        lent.key_by(shared, key_by).await?.put(headers, target.path_and_query.as_str());
    }
    Ok((ask, lent))
}

/// Carries bytes both ways until both sides are done. Who has closed its side may be gone, and nothing would tell:
/// the other has `within` from then on.
async fn both_ways(client: impl Side, upstream: impl Side, within: Duration) {
    let (mut from_client, mut to_client) = tokio::io::split(client);
    let (mut from_upstream, mut to_upstream) = tokio::io::split(upstream);
    let up = async {
        let carried = tokio::io::copy(&mut from_client, &mut to_upstream).await;
        carried.and(to_upstream.shutdown().await)
    };
    let down = async {
        let carried = tokio::io::copy(&mut from_upstream, &mut to_client).await;
        carried.and(to_client.shutdown().await)
    };
    let (mut up, mut down) = (std::pin::pin!(up), std::pin::pin!(down));
    // An error ends it all.
    tokio::select! {
        ended = &mut up => if ended.is_ok() { drop(tokio::time::timeout(within, down).await) },
        ended = &mut down => if ended.is_ok() { drop(tokio::time::timeout(within, up).await) },
    }
}

trait Side: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Side for T {}

pub(crate) fn change_protocol(headers: &mut HeaderMap, to: Option<HeaderValue>) {
    if let Some(to) = to {
        headers.insert(HeaderName::from_static("upgrade"), to);
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    }
}
