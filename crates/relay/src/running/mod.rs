//! Asks a relay that runs on this machine, where the settings say that it listens: whether it is there, and for its
//! status page. `status`, `health` and `doctor` look through this.

pub mod text;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, HeaderName, HeaderValue};
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_util::rt::TokioIo;
use relay_core::Listen;
use relay_core::config::Config;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::guard::TOKEN_HEADER;

/// How long a relay on this machine may take to answer.
const WITHIN: Duration = Duration::from_secs(3);
/// The longest page that is read: a hundred calls in each of many lanes.
const LONGEST: usize = 16 << 20;

/// What is at an address.
#[derive(Debug, Clone, PartialEq)]
pub enum There {
    /// A relay, and its status page.
    Relay(Value),
    /// A relay that asks for a token that we do not have.
    Locked,
    /// Something else that speaks, or something that does not.
    Other,
    /// Nothing: nobody listens.
    Nothing,
}

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
pub async fn look(at: SocketAddr, token: Option<&str>) -> There {
    let asked = tokio::time::timeout(WITHIN, get(at, "/__steady/status", token)).await;
    match asked {
        Ok(Ok((StatusCode::OK, body))) => {
            let page: Option<Value> = serde_json::from_slice(&body).ok();
            page.filter(is_page).map_or(There::Other, There::Relay)
        }
        Ok(Ok((_, body))) if body.windows(13).any(|words| words == b"steady-relay:") => There::Locked,
        Ok(Err(error)) if is_nobody(&error) => There::Nothing,
        Ok(Ok(_) | Err(_)) | Err(_) => There::Other,
    }
}

/// Whether a relay there lives. A relay that asks for a token we do not have lives, too.
pub async fn lives(at: SocketAddr, token: Option<&str>) -> There {
    match tokio::time::timeout(WITHIN, get(at, "/healthz", token)).await {
        Ok(Ok((StatusCode::OK, body))) if *body == *b"ok\n" => There::Relay(Value::Null),
        Ok(Ok((_, body))) if body.windows(13).any(|words| words == b"steady-relay:") => There::Locked,
        Ok(Err(error)) if is_nobody(&error) => There::Nothing,
        Ok(Ok(_) | Err(_)) | Err(_) => There::Other,
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
    let mut put = |name: HeaderName, value: &str| -> io::Result<()> {
        request.headers_mut().insert(name, HeaderValue::from_str(value).map_err(io::Error::other)?);
        Ok(())
    };
    put(HOST, &at.to_string())?;
    if let Some(token) = token {
        put(TOKEN_HEADER, token)?;
    }
    let stream = TcpStream::connect(at).await?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    let mut carried = JoinSet::new();
    // What goes wrong on it is heard of by the one request.
    carried.spawn(async move { drop(connection.await) });
    let response = sender.send_request(request).await.map_err(io::Error::other)?;
    let status = response.status();
    let body = Limited::new(response.into_body(), LONGEST).collect().await.map_err(io::Error::other)?;
    Ok((status, body.to_bytes()))
}
