//! Carries a self-test out: the steps of the way, one by one and without a request; the request through a relay; and, of a
//! pretend service, the same with and without the relay.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderMap, HeaderValue};
use http::{Method, Uri};
use http_body_util::BodyExt as _;
use relay_core::Moment;
use relay_core::event::{CallId, Event};
use relay_sim::{Event as Piece, Reply, Script, Upstream as Pretend};
use rustls::pki_types::ServerName;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::clock::{Clock as _, SystemClock};
use crate::observe::{Notice, Observer};
use crate::proxy::Proxy;
use crate::send::exchange::{Door, ask};
use crate::send::request::{Data, Request};
use crate::target::Upstream;

/// How long a step of the way may take.
const STEP: Duration = Duration::from_secs(10);
/// How often the pretend service is asked on either way: enough for a middle that does not jump.
const ROUNDS: usize = 15;
/// Between the pieces of the pretend stream.
const GAP: Duration = Duration::from_millis(60);

/// The steps of the way; `None`: not taken, or not come through.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Steps {
    /// Looking up the name.
    pub dns: Option<Duration>,
    /// Connecting.
    pub connect: Option<Duration>,
    /// Agreeing on TLS.
    pub tls: Option<Duration>,
}

/// Takes the steps to an upstream, or to the proxy on the way, and hangs up.
pub async fn steps(upstream: &Upstream, via: Option<&Proxy>, tls: &rustls::ClientConfig) -> Steps {
    let clock = SystemClock;
    let mut steps = Steps::default();
    let to =
        via.map_or((upstream.url.host(), upstream.url.port()), |proxy| (proxy.host.as_str(), proxy.port));
    let began = clock.now();
    let Ok(Ok(found)) = timeout(STEP, tokio::net::lookup_host(to)).await else { return steps };
    steps.dns = Some(clock.now().since(began));
    for at in found {
        let began = clock.now();
        let Ok(Ok(socket)) = timeout(STEP, TcpStream::connect(at)).await else { continue };
        steps.connect = Some(clock.now().since(began));
        if upstream.is_https()
            && via.is_none()
            && let Ok(name) = ServerName::try_from(upstream.url.host().to_owned())
        {
            let began = clock.now();
            let connector = TlsConnector::from(Arc::new(tls.clone()));
            if let Ok(Ok(_secured)) = timeout(STEP, connector.connect(name, socket)).await {
                steps.tls = Some(clock.now().since(began));
            }
        }
        break;
    }
    steps
}

/// One request and its answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exchange {
    /// The status.
    pub status: u16,
    /// From the first byte out to the first one in.
    pub first_byte: Duration,
    /// To the last one in.
    pub total: Duration,
    /// The answer came whole.
    pub whole: bool,
    /// The times of its pieces, since the first.
    pub pieces: Vec<Duration>,
    /// What came.
    pub bytes: Vec<u8>,
}

/// The most of an answer that is kept to be compared; more of it is only counted in time.
const KEPT: usize = 64 * 1024;

/// Asks once.
///
/// # Errors
/// Where no answer began.
pub async fn exchange(door: Door, request: Request) -> io::Result<Exchange> {
    let clock = SystemClock;
    let began = clock.now();
    let mut answer = ask(door, request).await?;
    let headed = clock.now();
    let mut exchange = Exchange {
        status: answer.response.status().as_u16(),
        first_byte: headed.since(began),
        ..Exchange::default()
    };
    exchange.whole = loop {
        match answer.response.body_mut().frame().await {
            None => break true,
            Some(Err(_broken)) => break false,
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    exchange.pieces.push(clock.now().since(headed));
                    let room = KEPT.saturating_sub(exchange.bytes.len()).min(data.len());
                    exchange.bytes.extend_from_slice(&data[..room]);
                }
            }
        }
    };
    exchange.total = clock.now().since(began);
    Ok(exchange)
}

/// Sees how long the first call was with the relay before it was sent on.
#[derive(Debug, Default)]
pub struct Stopwatch {
    times: Mutex<(Option<Moment>, Option<Moment>)>,
}

impl Stopwatch {
    /// From its acceptance to its first send.
    #[must_use]
    pub fn before_send(&self) -> Option<Duration> {
        let (opened, sent) = *self.times.lock().unwrap_or_else(PoisonError::into_inner);
        Some(sent?.since(opened?))
    }
}

impl Observer for Stopwatch {
    fn see(&self, _call: CallId, at: Moment, event: &Event) {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::CallOpened { .. } => {
                times.0.get_or_insert(at);
            }
            Event::SendStarted { .. } => {
                times.1.get_or_insert(at);
            }
            Event::HeadArrived { .. }
            | Event::WayTaken { .. }
            | Event::FaultSeen { .. }
            | Event::WaitStarted { .. }
            | Event::InLine { .. }
            | Event::HeldBack { .. }
            | Event::NoticeGiven { .. }
            | Event::Moved { .. }
            | Event::GrantTaken { .. }
            | Event::Committed { .. }
            | Event::StreamCut { .. }
            | Event::CallClosed(_) => {}
        }
    }

    fn notice(&self, _notice: &Notice) {}
}

/// The pretend service: a list of models, and a stream of three pieces with pauses.
///
/// # Errors
/// Where the system gives it no socket.
pub async fn pretend() -> io::Result<(Pretend, SocketAddr)> {
    let service = Pretend::start(Script::by(|seen, _| {
        if seen.method == "GET" {
            return Reply::status(200).json(json!({"object": "list", "data": []}));
        }
        let delta = |text: &str| {
            Piece::named(
                "response.output_text.delta",
                json!({"type": "response.output_text.delta", "delta": text}),
            )
        };
        let done = json!({"type": "response.completed", "response": {"status": "completed"}});
        let done = Piece::named("response.completed", done);
        Reply::sse([delta("one"), Piece::pause(GAP), delta("two"), Piece::pause(GAP), done])
    }))
    .await?;
    let url: Uri = service.url().parse().map_err(io::Error::other)?;
    let at = SocketAddr::from(([127, 0, 0, 1], url.port_u16().unwrap_or_default()));
    Ok((service, at))
}

/// The request for the pretend stream.
#[must_use]
pub fn pretend_turn() -> Request {
    let body = json!({"model": "pretend", "stream": true, "input": "hello"}).to_string();
    pretend_request(Method::POST, "/v1/responses", Data::Bytes(Bytes::from(body)))
}

fn pretend_request(method: Method, path: &str, data: Data) -> Request {
    let headers =
        HeaderMap::from_iter([(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
    Request { method, path_and_query: path.to_owned(), upstream: None, headers, data }
}

/// What the relay adds: the same small request by it and past it, in turns, the middle of each.
///
/// # Errors
/// Where one of them fails.
pub async fn added(door: Door, service: SocketAddr) -> io::Result<Duration> {
    let straight = Door { addr: service, key: door.key };
    let list = || pretend_request(Method::GET, "/v1/models", Data::None);
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        without.push(exchange(straight, list()).await?.total);
        with.push(exchange(door, list()).await?.total);
    }
    Ok(middle(with).saturating_sub(middle(without)))
}

fn middle(mut spans: Vec<Duration>) -> Duration {
    spans.sort_unstable();
    spans.get(spans.len() / 2).copied().unwrap_or_default()
}

/// Whether the pieces of the pretend stream came as they were sent, rather than all at once.
#[must_use]
pub fn came_in_pieces(exchange: &Exchange) -> bool {
    let last = exchange.pieces.last().copied().unwrap_or_default();
    let first = exchange.pieces.first().copied().unwrap_or_default();
    exchange.pieces.len() > 1 && last.saturating_sub(first) >= GAP
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn one_blob_is_told_from_pieces() {
        let came = |pieces: &[u64]| {
            came_in_pieces(&Exchange {
                pieces: pieces.iter().copied().map(ms).collect(),
                ..Exchange::default()
            })
        };
        assert!(came(&[0, 60, 121]) && came(&[40, 120]));
        assert!(!came(&[120, 121, 121]) && !came(&[120]) && !came(&[]));
        assert_eq!(middle(vec![ms(9), ms(1), ms(3)]), ms(3));
        assert_eq!(middle(Vec::new()), Duration::ZERO);
    }
}
