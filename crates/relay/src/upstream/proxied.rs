//! The way through a proxy: a tunnel by CONNECT or SOCKS. Whatever fails here, nothing was sent.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io;
use std::net::IpAddr;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{HOST, PROXY_AUTHORIZATION};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::Empty;
use hyper_util::client::legacy::connect::proxy::{SocksV4, SocksV5};
use hyper_util::rt::TokioIo;
use tower_service::Service;

use super::connect::{Unconnected, named};
use super::wire::Transport;
use super::{Cause, Origin};
use crate::proxy::{Proxy, Speech};

type Socket = Box<dyn Transport>;

/// Has the proxy at the other end of `socket` connect to `origin`.
pub(super) async fn through(proxy: &Proxy, origin: &Origin, socket: Socket) -> Result<Socket, Unconnected> {
    let failed = |words: String| Unconnected {
        cause: Cause::ProxyFailed,
        detail: format!("{origin}: the proxy {proxy}: {words}"),
    };
    match proxy.speech {
        Speech::Http | Speech::Https => connect(proxy, origin, socket).await,
        Speech::Socks5h => socks5(proxy, &origin.to_string(), socket).await.map_err(failed),
        Speech::Socks5 => {
            let there = looked_up(origin, |_| true).await.map_err(failed)?;
            socks5(proxy, &there, socket).await.map_err(failed)
        }
        Speech::Socks4a => socks4(&origin.to_string(), socket).await.map_err(failed),
        Speech::Socks4 => {
            let there = looked_up(origin, IpAddr::is_ipv4).await.map_err(failed)?;
            socks4(&there, socket).await.map_err(failed)
        }
    }
}

async fn connect(proxy: &Proxy, origin: &Origin, socket: Socket) -> Result<Socket, Unconnected> {
    let failed =
        |cause, words: &str| Unconnected { cause, detail: format!("{origin}: the proxy {proxy}: {words}") };
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
    if let Some(basic) = &proxy.basic {
        request.headers_mut().insert(PROXY_AUTHORIZATION, basic.clone());
    }
    let answering = async {
        let answer = sender.send_request(request).await.map_err(broke)?;
        match answer.status() {
            status if status.is_success() => hyper::upgrade::on(answer).await.map_err(broke),
            status => Err(failed(cause_of(status), &format!("it answered {status} to CONNECT"))),
        }
    };
    // The connection is driven from here, so that whoever drops this drops it too.
    let driving = async move {
        let _ended = connection.with_upgrades().await;
        std::future::pending::<Infallible>().await
    };
    tokio::select! {
        answered = answering => Ok(Box::new(TokioIo::new(answered?))),
        never = driving => match never {},
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

async fn looked_up(origin: &Origin, fits: impl Fn(&IpAddr) -> bool) -> Result<String, String> {
    let found = tokio::net::lookup_host((origin.host.as_str(), origin.port)).await;
    let mut found = found.map_err(|error| format!("{}: {error}", origin.host))?;
    let fitting = found.find(|address| fits(&address.ip()));
    fitting.map(|address| address.to_string()).ok_or_else(|| format!("{}: no fitting address", origin.host))
}

async fn socks5(proxy: &Proxy, there: &str, socket: Socket) -> Result<Socket, String> {
    let socks = SocksV5::new(Uri::from_static("socks5://proxy"), Given(Some(TokioIo::new(socket))));
    let mut socks = match &proxy.login {
        Some((name, password)) => socks.with_auth(name.clone(), password.clone()),
        None => socks,
    };
    let done = socks.call(target(there)?).await;
    done.map(|socket| socket.into_inner()).map_err(|error| named(&error))
}

async fn socks4(there: &str, socket: Socket) -> Result<Socket, String> {
    let given = Given(Some(TokioIo::new(socket)));
    let mut socks = SocksV4::new(Uri::from_static("socks4://proxy"), given);
    let done = socks.call(target(there)?).await;
    done.map(|socket| socket.into_inner()).map_err(|error| named(&error))
}

fn target(there: &str) -> Result<Uri, String> {
    format!("https://{there}").parse().map_err(|error| format!("{there}: {error}"))
}

/// The connection that stands already, for a library that wants to make it.
struct Given(Option<TokioIo<Socket>>);

impl Service<Uri> for Given {
    type Response = TokioIo<Socket>;
    type Error = io::Error;
    type Future = Ready<io::Result<Self::Response>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _there: Uri) -> Self::Future {
        ready(self.0.take().ok_or_else(|| io::ErrorKind::NotConnected.into()))
    }
}
