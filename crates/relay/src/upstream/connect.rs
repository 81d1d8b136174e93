//! Makes one connection: look up, TCP, TLS, all within one time limit. Whatever fails here, nothing was sent.

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

use crate::keepalive;

use super::connection::Connection;
use super::wire::{Counted, Transport, Watched, Wire};
use super::{Cause, Origin, Payload};

/// The head start of an address over the next one (RFC 8305, section 8).
const STAGGER: Duration = Duration::from_millis(250);
/// A head with this many lines is forwarded; hyper's own 100 is too few for some edges.
const MOST_HEADERS: usize = 512;
/// The most that is buffered on a connection in each direction, and so the longest head.
const BUFFER: usize = 256 * 1024;

/// Makes connections.
pub(super) struct Connector {
    tls: TlsConnector,
    within: Duration,
}

/// Why there is no connection.
pub(super) struct Unconnected {
    pub(super) cause: Cause,
    pub(super) detail: String,
}

impl Connector {
    pub(super) fn new(tls: Arc<ClientConfig>, within: Duration) -> Self {
        Self { tls: TlsConnector::from(tls), within }
    }

    pub(super) async fn connect<B: Payload>(&self, origin: &Origin) -> Result<Connection<B>, Unconnected> {
        match tokio::time::timeout(self.within, self.connect_untimed(origin)).await {
            Ok(done) => done,
            Err(_elapsed) => Err(Unconnected {
                cause: Cause::ConnectTimeout,
                detail: format!("{origin}: no connection within {:?}", self.within),
            }),
        }
    }

    async fn connect_untimed<B: Payload>(&self, origin: &Origin) -> Result<Connection<B>, Unconnected> {
        let failed = |cause, what: &str| Unconnected { cause, detail: format!("{origin}: {what}") };
        let addresses = tokio::net::lookup_host((origin.host.as_str(), origin.port))
            .await
            .map_err(|error| failed(Cause::Dns, &error.to_string()))?;
        let addresses = alternate(addresses.collect());
        let socket =
            race(addresses).await.map_err(|error| failed(tcp_cause(error.kind()), &error.to_string()))?;
        socket.set_nodelay(true).map_err(|error| failed(Cause::Connect, &error.to_string()))?;
        keepalive::watch(&socket);

        let wire = Arc::new(Wire::default());
        let watched = Watched::new(socket, Arc::clone(&wire));
        let transport: Box<dyn Transport> = if origin.https {
            let name = ServerName::try_from(origin.host.clone())
                .map_err(|error| failed(Cause::Connect, &error.to_string()))?;
            let secured = self.tls.connect(name, watched).await;
            Box::new(secured.map_err(|error| failed(tls_cause(&error), &format!("TLS: {error}")))?)
        } else {
            Box::new(watched)
        };
        let transport = TokioIo::new(Counted::new(transport, Arc::clone(&wire)));
        let (sender, connection) = hyper::client::conn::http1::Builder::new()
            .preserve_header_case(true)
            .max_headers(MOST_HEADERS)
            .max_buf_size(BUFFER)
            .handshake(transport)
            .await
            .map_err(|error| failed(Cause::Connect, &error.to_string()))?;
        // The task's own error has nobody to go to: a send hears of it through its answer.
        let task = tokio::spawn(async move { drop(connection.with_upgrades().await) });
        Ok(Connection::new(sender, task, wire))
    }
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
