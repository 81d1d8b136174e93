//! Asks a relay that runs on this machine, where the settings say that it listens: whether it is there, and for its
//! status page. All verbs look through this, in plain HTTP, which a relay with `tls` speaks at the same port.

pub mod text;
pub mod who;

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use relay_core::Listen;
use relay_core::config::Config;
use serde_json::Value;
use tokio::net::TcpStream;

pub use who::Who;

use crate::guard::TOKEN_HEADER;
use crate::history::record::CallRecord;

/// How long a relay on this machine may take to answer.
const WITHIN: Duration = Duration::from_secs(3);
/// The longest page that is read: a hundred calls in each of many lanes, or the last two thousand calls with all that is
/// told of each.
const LONGEST: usize = 64 << 20;

/// Where a relay with these settings is reached from this machine.
#[must_use]
pub fn address(config: &Config) -> SocketAddr {
    let ip = match config.listen {
        Listen::Localhost => Ipv4Addr::LOCALHOST.into(),
        Listen::Address(IpAddr::V4(ip)) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        Listen::Address(IpAddr::V6(ip)) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        Listen::Address(ip) => ip,
    };
    SocketAddr::new(ip, config.port)
}

/// Asks what is at `at` for the status page of a relay, with this token where there is one.
///
/// # Errors
/// With who is there instead; [`Who::Relay`] is one that asks for a token that we do not have.
pub async fn look(at: SocketAddr, token: Option<&str>) -> Result<Value, Who> {
    let body = read(at, "/__steady/status", token).await?;
    serde_json::from_slice(&body).ok().filter(is_page).ok_or_else(|| who::by_body(&body))
}

/// Asks the relay there for the calls that have changed since this change: the page of `/__steady/calls`.
///
/// # Errors
/// As [`look`]; [`Who::Relay`] is also one that tells of no calls.
pub async fn calls(at: SocketAddr, token: Option<&str>, since: u64) -> Result<Value, Who> {
    calls_of(at, token, &format!("since={since}")).await
}

/// Has a relay there write all that has happened to its history.
///
/// # Errors
/// As [`calls`].
pub async fn written(at: SocketAddr, token: Option<&str>) -> Result<(), Who> {
    calls_of(at, token, "written=1").await.map(|_none| ())
}

async fn calls_of(at: SocketAddr, token: Option<&str>, query: &str) -> Result<Value, Who> {
    let body = read(at, &format!("/__steady/calls?{query}"), token).await?;
    let is_page = |page: &Value| page["change"].is_u64() && page["calls"].is_array();
    serde_json::from_slice(&body).ok().filter(is_page).ok_or_else(|| who::by_body(&body))
}

/// The calls that a relay there has in memory, those that are open among them.
///
/// # Errors
/// As [`look`].
pub async fn call_records(at: SocketAddr, token: Option<&str>) -> Result<Vec<CallRecord>, Who> {
    #[derive(serde::Deserialize)]
    struct Page {
        calls: Vec<CallRecord>,
    }
    let page = calls(at, token, 0).await?;
    serde_json::from_value(page).map(|page: Page| page.calls).map_err(|_other| Who::Relay)
}

/// Whether a relay there lives.
///
/// # Errors
/// As [`look`].
pub async fn lives(at: SocketAddr, token: Option<&str>) -> Result<(), Who> {
    let body = read(at, "/healthz", token).await?;
    if *body == *b"ok\n" { Ok(()) } else { Err(who::by_body(&body)) }
}

async fn read(at: SocketAddr, path: &str, token: Option<&str>) -> Result<Bytes, Who> {
    match tokio::time::timeout(WITHIN, get(at, path, token)).await {
        Ok(Ok((StatusCode::OK, body))) => Ok(body),
        Ok(Ok((_, body))) => Err(who::by_body(&body)),
        Ok(Err(error)) if is_nobody(&error) => Err(Who::Nobody),
        // It hung up, or speaks another protocol.
        Ok(Err(_)) => Err(Who::Stranger),
        Err(_elapsed) => Err(Who::Silent),
    }
}

fn is_page(page: &Value) -> bool {
    page["v"].is_u64() && page["version"].is_string() && page["totals"].is_object()
}

fn is_nobody(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::AddrNotAvailable)
}

async fn get(at: SocketAddr, path: &str, token: Option<&str>) -> io::Result<(StatusCode, Bytes)> {
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.uri_mut() = path.parse().map_err(io::Error::other)?;
    if let Some(token) = token {
        let token = HeaderValue::from_str(token).map_err(io::Error::other)?;
        request.headers_mut().insert(TOKEN_HEADER, token);
    }
    let response = exchange(at, request).await?;
    let status = response.status();
    let body = Limited::new(response.into_body(), LONGEST).collect().await.map_err(io::Error::other)?;
    Ok((status, body.to_bytes()))
}

/// One request to whoever listens there, on a connection that lasts as long as its answer.
pub(crate) async fn exchange<B>(at: SocketAddr, request: Request<B>) -> io::Result<Response<Incoming>>
where
    B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
{
    Connection::to(at).await?.ask(request).await
}

/// A connection to whoever listens there. What is asked on it one after the other is asked of the same program; the
/// last answer outlasts it.
pub(crate) struct Connection<B> {
    at: SocketAddr,
    sender: SendRequest<B>,
}

impl<B> Connection<B>
where
    B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
{
    pub(crate) async fn to(at: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(at).await?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        // What goes wrong on it is heard of by each request.
        tokio::spawn(connection);
        Ok(Self { at, sender })
    }

    /// Asks, once the answer before it was read to its end.
    pub(crate) async fn ask(&mut self, mut request: Request<B>) -> io::Result<Response<Incoming>> {
        let host = HeaderValue::from_str(&self.at.to_string()).map_err(io::Error::other)?;
        request.headers_mut().insert(HOST, host);
        self.sender.ready().await.map_err(io::Error::other)?;
        self.sender.send_request(request).await.map_err(io::Error::other)
    }
}
