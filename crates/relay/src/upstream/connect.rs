//! Makes one connection: look up, TCP, a proxy where there is one, TLS, all within one time limit. Whatever fails
//! here, nothing was sent.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, ClientConfig};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::clock::Clock;
use crate::keepalive;
use crate::proxy::{Proxy, Speech};

use super::connection::Connection;
use super::multiplexed::Multiplexed;
use super::proxied::through;
use super::wire::{Counted, Transport, Watched, Wire};
use super::{Cause, Payload, Way};

/// The name of HTTP/2 in a TLS handshake.
const H2: &[u8] = b"h2";

/// The head start of an address over the next one (RFC 8305, section 8).
const STAGGER: Duration = Duration::from_millis(250);
/// A head with this many lines is forwarded; hyper's own 100 is too few for some edges.
const MOST_HEADERS: usize = 512;
/// The most that is buffered on a connection in each direction, and so the longest head.
const BUFFER: usize = 256 * 1024;

/// Makes connections.
pub(super) struct Connector {
    /// TLS that asks for HTTP/1.1.
    http1: TlsConnector,
    /// TLS that asks for HTTP/2, or else HTTP/1.1.
    http2: TlsConnector,
    clock: Arc<dyn Clock>,
    pub(super) within: Duration,
}

/// A connection that stands.
pub(super) enum Connected<B> {
    /// HTTP/1.1.
    One(Connection<B>),
    /// HTTP/2.
    Many(Multiplexed),
}

/// Where it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    /// On the way there.
    Way,
    /// The proxy says so.
    Proxy,
    /// At the upstream, whichever way leads there.
    Upstream,
}

/// Why there is no connection.
pub(super) struct Unconnected {
    pub(super) cause: Cause,
    pub(super) at: At,
    /// In plain words, without the way.
    pub(super) what: String,
}

impl Unconnected {
    pub(super) fn on_the_way(cause: Cause, what: impl Into<String>) -> Self {
        Self { cause, at: At::Way, what: what.into() }
    }

    /// The words with the way it was.
    pub(super) fn detail(&self, way: &Way) -> String {
        match (self.at, &way.via) {
            (At::Proxy, Some(proxy)) => format!("{}: the proxy {proxy}: {}", way.origin, self.what),
            (At::Proxy, None) | (At::Way | At::Upstream, _) => format!("{way}: {}", self.what),
        }
    }
}

impl Connector {
    pub(super) fn new(tls: &ClientConfig, clock: Arc<dyn Clock>, within: Duration) -> Self {
        let asking_for = |protocols: &[&[u8]]| {
            let mut config = tls.clone();
            config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
            TlsConnector::from(Arc::new(config))
        };
        Self { http1: asking_for(&[b"http/1.1"]), http2: asking_for(&[H2, b"http/1.1"]), clock, within }
    }

    pub(super) async fn connect<B: Payload>(
        &self,
        way: &Way,
        within: Duration,
    ) -> Result<Connected<B>, Unconnected> {
        match tokio::time::timeout(within, self.connect_untimed(way)).await {
            Ok(done) => done,
            Err(_elapsed) => Err(Unconnected::on_the_way(
                Cause::ConnectTimeout,
                format!("no connection within {within:?}"),
            )),
        }
    }

    async fn connect_untimed<B: Payload>(&self, way: &Way) -> Result<Connected<B>, Unconnected> {
        let origin = &way.origin;
        let wire = Arc::new(Wire::default());
        let transport = match &way.via {
            None => Box::new(dial((&origin.host, origin.port), &wire).await?),
            Some(proxy) => self.reach(way, proxy, &wire).await?,
        };
        let (transport, speaks_h2) = if origin.https {
            let tls = if way.http2 { &self.http2 } else { &self.http1 };
            let secured = secure(tls, &origin.host, transport).await.map_err(|failed| Unconnected {
                // Of a certificate the upstream is to blame, and another way would hide it.
                at: if failed.cause == Cause::Certificate { At::Upstream } else { At::Way },
                ..failed
            })?;
            let speaks_h2 = way.http2 && secured.get_ref().1.alpn_protocol() == Some(H2);
            (Box::new(secured) as Box<dyn Transport>, speaks_h2)
        } else {
            (transport, false)
        };
        let counted = Counted::new(transport, Arc::clone(&wire));
        if speaks_h2 {
            let started = Multiplexed::start(counted, wire, Arc::clone(&self.clock)).await;
            return started
                .map(Connected::Many)
                .map_err(|error| Unconnected::on_the_way(Cause::Connect, named(&error)));
        }
        let (sender, connection) = hyper::client::conn::http1::Builder::new()
            .preserve_header_case(true)
            .max_headers(MOST_HEADERS)
            .max_buf_size(BUFFER)
            .handshake(TokioIo::new(counted))
            .await
            .map_err(|error| Unconnected::on_the_way(Cause::Connect, named(&error)))?;
        // The connection's own error has nobody to go to: a send hears of it through its answer.
        let work = Box::pin(async move { drop(connection.with_upgrades().await) });
        Ok(Connected::One(Connection::new(sender, work, wire)))
    }

    /// The way to a proxy, and through it where it is not to be handed the requests themselves.
    async fn reach(
        &self,
        way: &Way,
        proxy: &Proxy,
        wire: &Arc<Wire>,
    ) -> Result<Box<dyn Transport>, Unconnected> {
        let mut transport: Box<dyn Transport> = Box::new(dial((&proxy.host, proxy.port), wire).await?);
        if proxy.speech == Speech::Https {
            transport = Box::new(secure(&self.http1, &proxy.host, transport).await?);
        }
        if way.is_handed_to_proxy() {
            return Ok(transport);
        }
        through(proxy, &way.origin, transport).await
    }
}

/// An error and what caused it, in one line.
pub(super) fn named(error: &dyn Error) -> String {
    error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {}", named(source)))
}

async fn dial(to: (&str, u16), wire: &Arc<Wire>) -> Result<Watched<TcpStream>, Unconnected> {
    let failed = |cause, error: io::Error| Unconnected::on_the_way(cause, error.to_string());
    let addresses = tokio::net::lookup_host(to).await.map_err(|error| failed(Cause::Dns, error))?;
    let addresses = alternate(addresses.collect());
    let socket = race(addresses).await.map_err(|error| failed(tcp_cause(error.kind()), error))?;
    socket.set_nodelay(true).map_err(|error| failed(Cause::Connect, error))?;
    keepalive::watch(&socket);
    Ok(Watched::new(socket, Arc::clone(wire)))
}

async fn secure(
    tls: &TlsConnector,
    host: &str,
    transport: Box<dyn Transport>,
) -> Result<TlsStream<Box<dyn Transport>>, Unconnected> {
    let name = ServerName::try_from(host.to_owned())
        .map_err(|error| Unconnected::on_the_way(Cause::Connect, error.to_string()))?;
    let secured = tls.connect(name, transport).await;
    secured.map_err(|error| Unconnected::on_the_way(tls_cause(&error), format!("TLS with {host}: {error}")))
}

/// One address of each family in turn, the resolver's first choice first (RFC 8305, section 4).
fn alternate(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == first_is_v6);
    let longest = first.len().max(second.len());
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    (0..longest).flat_map(|_| [first.next(), second.next()]).flatten().collect()
}

/// Tries the next address when one fails or has had its head start; the first to connect wins.
async fn race(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let mut waiting = addresses.into_iter();
    let mut trying = JoinSet::new();
    let mut last_error = io::Error::from(io::ErrorKind::AddrNotAvailable);
    loop {
        if let Some(address) = waiting.next() {
            trying.spawn(TcpStream::connect(address));
        }
        let head_start = async {
            if waiting.len() > 0 {
                tokio::time::sleep(STAGGER).await;
            } else {
                std::future::pending().await
            }
        };
        tokio::select! {
            tried = trying.join_next() => match tried {
                Some(Ok(Ok(socket))) => return Ok(socket),
                Some(Ok(Err(error))) => last_error = error,
                Some(Err(ended)) => last_error = io::Error::other(ended),
                None => return Err(last_error),
            },
            () = head_start => {}
        }
    }
}

fn tcp_cause(kind: io::ErrorKind) -> Cause {
    if kind == io::ErrorKind::ConnectionRefused {
        Cause::Refused
    } else if kind == io::ErrorKind::TimedOut {
        Cause::ConnectTimeout
    } else {
        Cause::Connect
    }
}

fn tls_cause(error: &io::Error) -> Cause {
    const ABOUT_OURS: [AlertDescription; 5] = [
        AlertDescription::NoCertificate,
        AlertDescription::BadCertificate,
        AlertDescription::CertificateUnknown,
        AlertDescription::UnknownCA,
        AlertDescription::CertificateRequired,
    ];
    let refused_certificate = match error.get_ref().and_then(|inner| inner.downcast_ref()) {
        Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented) => true,
        Some(rustls::Error::AlertReceived(alert)) => ABOUT_OURS.contains(alert),
        _ => false,
    };
    if refused_certificate { Cause::Certificate } else { Cause::TlsHandshake }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_families_alternate_and_the_first_choice_stays_first() {
        let all = ["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1"].map(|text| text.parse().unwrap());
        let wanted = ["[::1]:1", "1.1.1.1:1", "[::2]:1", "[::3]:1"].map(|text| text.parse().unwrap());
        assert_eq!(alternate(all.to_vec()), wanted);
        assert!(alternate(Vec::new()).is_empty());
    }
}
