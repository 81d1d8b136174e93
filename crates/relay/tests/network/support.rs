//! A relay in this process, TLS for pretend services, and raw bytes.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use rcgen::{CertificateParams, KeyPair};
use relay_core::Curve;
use relay_core::config::{Config, Upstream as Entry, UpstreamChoice};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use steady_relay::app::{Parts, Relay};
use steady_relay::clock::{Clock, SystemClock};
use steady_relay::observe::Observer;
use steady_relay::proxy::SystemProxies;
use steady_relay::target::Upstreams;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Long enough for anything that should happen.
pub(crate) const SOON: Duration = Duration::from_secs(10);
/// Long enough to say that something does not happen.
pub(crate) const A_WHILE: Duration = Duration::from_millis(150);

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, what).await.expect("in time")
}

/// A turn that streams, may be sent again where nothing ran, and where something may have is not.
pub(crate) const TURN: &str = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;

/// The defaults with short waits, everything sent to `url`, and nothing sent again that may have run.
pub(crate) fn towards(url: &str) -> Config {
    let mut config = quick();
    config.upstream = Some(UpstreamChoice::Url(Entry::at(url.parse().unwrap())));
    config
}

/// The same without an upstream for everything.
pub(crate) fn quick() -> Config {
    let mut config = Config::default();
    let quick = |curve: &mut Curve| {
        *curve = Curve { base: ms(20), factor: 2.0, cap: ms(60), jitter: Duration::ZERO };
    };
    for profile in config.profiles.values_mut() {
        quick(&mut profile.curve);
        quick(&mut profile.overloaded);
        profile.ambiguous_resends = 0;
    }
    config
}

/// Serves by these settings until the test ends; says where.
pub(crate) async fn relay(config: Config) -> SocketAddr {
    relay_on(TcpListener::bind(("127.0.0.1", 0)).await.unwrap(), config)
}

/// The same on a socket that stands already.
pub(crate) fn relay_on(socket: TcpListener, config: Config) -> SocketAddr {
    let at = socket.local_addr().unwrap();
    // It goes on until the runtime of the test ends.
    std::mem::forget(relay_seen(socket, config, Arc::new(SystemClock), Vec::new()));
    at
}

/// The same with this clock, and with observers.
pub(crate) fn relay_seen(
    socket: TcpListener,
    config: Config,
    clock: Arc<dyn Clock>,
    observers: Vec<Arc<dyn Observer>>,
) -> Relay {
    let (tls, _) = steady_relay::tls::client_config(&config.ca_files).unwrap();
    Relay::start(Parts {
        targets: Upstreams::of(&config),
        config,
        tls,
        clock,
        observers,
        recorder: None,
        sockets: vec![socket],
        system_proxies: SystemProxies::none(),
        https: None,
    })
}

/// The TLS of a pretend service that calls itself `localhost` and `api.test`.
pub(crate) struct Secured {
    pub(crate) acceptor: TlsAcceptor,
    pub(crate) ca: PathBuf,
}

impl Drop for Secured {
    fn drop(&mut self) {
        let _gone = std::fs::remove_file(&self.ca);
    }
}

/// TLS that agrees to these protocols, the favourite first.
pub(crate) fn secured(protocols: &[&str]) -> Secured {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let key = KeyPair::generate().unwrap();
    let names = ["localhost", "127.0.0.1", "api.test"].map(str::to_owned);
    let certificate = CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
    let mut config =
        rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der())),
            )
            .unwrap();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let ca = std::env::temp_dir().join(format!("steady-relay-network-{}-{count}.pem", std::process::id()));
    std::fs::write(&ca, certificate.pem()).unwrap();
    Secured { acceptor: TlsAcceptor::from(Arc::new(config)), ca }
}

/// A service over TLS: its socket, its address, and settings that send everything there.
pub(crate) async fn service(protocols: &[&str]) -> (TcpListener, Secured, Config) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let secured = secured(protocols);
    let mut config = towards(&format!("https://localhost:{}", listener.local_addr().unwrap().port()));
    config.ca_files = vec![secured.ca.clone()];
    (listener, secured, config)
}

pub(crate) type Served = h2::server::Connection<TlsStream<TcpStream>, Bytes>;

/// The next connection of a service, over HTTP/2.
pub(crate) async fn accept(listener: &TcpListener, acceptor: &TlsAcceptor) -> Served {
    let (socket, _) = soon(listener.accept()).await.unwrap();
    h2::server::handshake(acceptor.accept(socket).await.unwrap()).await.unwrap()
}

/// Answers one request whole.
pub(crate) fn answer(mut respond: h2::server::SendResponse<Bytes>, status: u16, body: &'static str) {
    let head = http::Response::builder().status(status).header("content-type", "application/json").body(());
    let mut stream = respond.send_response(head.unwrap(), false).unwrap();
    stream.send_data(Bytes::from_static(body.as_bytes()), true).unwrap();
}

/// A raw connection of a client.
pub(crate) async fn dial(at: SocketAddr) -> TcpStream {
    TcpStream::connect(at).await.unwrap()
}

/// Sends bytes and reads until the relay closes, or until it has said `until`.
pub(crate) async fn exchange(at: SocketAddr, bytes: &[u8], until: &str) -> String {
    let mut socket = dial(at).await;
    let (mut read, mut write) = socket.split();
    let mut seen = String::new();
    // The relay may close before it has read all.
    let _written = write.write_all(bytes).await;
    soon(read_until(&mut read, &mut seen, until)).await;
    seen
}

/// Reads until `until` has come, or the end.
pub(crate) async fn read_until(from: &mut (impl AsyncRead + Unpin), seen: &mut String, until: &str) {
    let mut buffer = [0; 4096];
    while until.is_empty() || !seen.contains(until) {
        match from.read(&mut buffer).await {
            Ok(length) if length > 0 => seen.push_str(&String::from_utf8_lossy(&buffer[..length])),
            Ok(_) | Err(_) => return,
        }
    }
}

/// Reads one head, and the body that its `Content-Length` announces.
pub(crate) async fn read_message(from: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n\r\n") {
        text.push(from.read_u8().await.ok()?);
    }
    let head = String::from_utf8(text).unwrap();
    let length = head.to_ascii_lowercase().lines().find_map(|line| {
        line.strip_prefix("content-length: ").map(|length| length.parse::<usize>().unwrap())
    });
    let mut body = vec![0; length.unwrap_or(0)];
    from.read_exact(&mut body).await.ok()?;
    Some(head + &String::from_utf8(body).unwrap())
}

/// A turn as a client of HTTP/1.1 sends it, on a connection that ends with it.
pub(crate) fn turn(more: &str) -> Vec<u8> {
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: relay\r\nAuthorization: Bearer sk-case\r\nConnection: close\r\n\
         {more}Content-Length: {}\r\n\r\n{TURN}",
        TURN.len()
    )
    .into_bytes()
}
