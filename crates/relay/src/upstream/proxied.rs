//! The way through a proxy: a tunnel by CONNECT or SOCKS, of which nothing was sent if it fails; and how one says no that
//! is handed the requests themselves.

use std::future::{Future as _, poll_fn};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;

use bytes::Bytes;
use http::header::{HOST, PROXY_AUTHORIZATION};
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::Empty;
use hyper_util::rt::TokioIo;

use super::connect::{At, Unconnected};
use super::socks::{self, There};
use super::wire::{MOST_INTERIM, Transport};
use super::{BABBLE, Cause, Origin};
use crate::proxy::{Proxy, Speech};

type Socket = Box<dyn Transport>;

/// Has the proxy at the other end of `socket` connect to `origin`.
pub(super) async fn through(proxy: &Proxy, origin: &Origin, socket: Socket) -> Result<Socket, Unconnected> {
    let by_name = There::of(&origin.host, origin.port);
    let login = proxy.login.as_ref();
    let connected = match proxy.speech {
        Speech::Http | Speech::Https => return connect(proxy.basic.as_ref(), origin, socket).await,
        Speech::Socks5h => socks::version5(login, &by_name, socket).await,
        Speech::Socks5 => match looked_up(origin, |_| true).await {
            Ok(there) => socks::version5(login, &there, socket).await,
            Err(no) => Err(no),
        },
        Speech::Socks4a => socks::version4(&by_name, socket).await,
        Speech::Socks4 => match looked_up(origin, IpAddr::is_ipv4).await {
            Ok(there) => socks::version4(&there, socket).await,
            Err(no) => Err(no),
        },
    };
    connected.map_err(|(cause, words)| failed(cause, &words))
}

fn failed(cause: Cause, words: &str) -> Unconnected {
    Unconnected { cause, at: At::Proxy, what: words.to_owned() }
}

async fn connect(
    basic: Option<&HeaderValue>,
    origin: &Origin,
    socket: Socket,
) -> Result<Socket, Unconnected> {
    let broke = |error: hyper::Error| failed(Cause::ProxyFailed, &format!("no answer to CONNECT: {error}"));
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(socket)).await.map_err(broke)?;
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.method_mut() = Method::CONNECT;
    let there = origin.to_string();
    let (target, host) = there
        .parse::<Uri>()
        .ok()
        .zip(there.parse().ok())
        .ok_or_else(|| failed(Cause::Connect, "the host name cannot stand in a request"))?;
    *request.uri_mut() = target;
    request.headers_mut().insert(HOST, host);
    if let Some(basic) = basic {
        request.headers_mut().insert(PROXY_AUTHORIZATION, basic.clone());
    }
    let interim = Arc::new(AtomicU32::new(0));
    let counting = Arc::clone(&interim);
    hyper::ext::on_informational(&mut request, move |_interim| {
        counting.fetch_add(1, Ordering::Relaxed);
    });
    let answering = async {
        let answer = sender.send_request(request).await.map_err(broke)?;
        match answer.status() {
            status if status.is_success() => hyper::upgrade::on(answer).await.map_err(broke),
            status => Err(failed(cause_of(status), &format!("it answered {status} to CONNECT"))),
        }
    };
    // The connection is driven from here, so that whoever drops this drops it too.
    let mut driving = Some(Box::pin(connection.with_upgrades()));
    let babbling = poll_fn(|cx| {
        if driving.as_mut().is_some_and(|driving| driving.as_mut().poll(cx).is_ready()) {
            driving = None;
        }
        if interim.load(Ordering::Relaxed) > MOST_INTERIM { Poll::Ready(()) } else { Poll::Pending }
    });
    tokio::select! {
        answered = answering => Ok(Box::new(TokioIo::new(answered?))),
        () = babbling => Err(failed(Cause::ProxyFailed, BABBLE)),
    }
}

/// Asking again does not help against a proxy that wants to know who we are, or that forbids.
fn cause_of(status: StatusCode) -> Cause {
    match status {
        StatusCode::PROXY_AUTHENTICATION_REQUIRED
        | StatusCode::UNAUTHORIZED
        | StatusCode::FORBIDDEN
        | StatusCode::METHOD_NOT_ALLOWED => Cause::ProxyRefused,
        _ => Cause::ProxyFailed,
    }
}

/// Whether that is what a proxy answers, in place of the service, to a request that it was handed. It is the one status
/// that no service has a use for: 403 and all others may be the service's own.
pub(super) fn is_locked(status: StatusCode) -> bool {
    status == StatusCode::PROXY_AUTHENTICATION_REQUIRED
}

/// What that means.
pub(super) fn locked() -> Unconnected {
    let status = StatusCode::PROXY_AUTHENTICATION_REQUIRED;
    failed(cause_of(status), &format!("it answered {status} to the request"))
}

async fn looked_up(origin: &Origin, fits: impl Fn(&IpAddr) -> bool) -> Result<There<'static>, socks::No> {
    let failed = |words: String| (Cause::ProxyFailed, format!("{}: {words}", origin.host));
    let found = tokio::net::lookup_host((origin.host.as_str(), origin.port)).await;
    let mut found = found.map_err(|error| failed(error.to_string()))?;
    let fitting = found.find(|address| fits(&address.ip()));
    fitting.map(There::At).ok_or_else(|| failed("no fitting address".to_owned()))
}
