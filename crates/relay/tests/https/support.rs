//! A relay that speaks https, and what turns any client into one of https.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use relay_core::config::{Config, Upstream as Entry, UpstreamChoice};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use steady_relay::app::{Parts, Relay};
use steady_relay::clock::{Clock as _, SystemClock};
use steady_relay::https::Https;
use steady_relay::https::authority::certificate_path;
use steady_relay::proxy::SystemProxies;
use steady_relay::target::Upstreams;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Long enough for anything that should happen.
pub(crate) const SOON: Duration = Duration::from_secs(20);

pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, what).await.expect("it takes too long")
}

/// A folder that is gone with the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("https-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The certificate to trust.
    pub(crate) fn ca(&self) -> PathBuf {
        certificate_path(&self.0)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// Settings that send everything to `url`.
pub(crate) fn towards(url: &str) -> Config {
    let upstream = Some(UpstreamChoice::Url(Entry::at(url.parse().unwrap())));
    let mut config = Config { upstream, ..Config::default() };
    for profile in config.profiles.values_mut() {
        profile.gate = None;
        profile.curve.base = Duration::from_millis(20);
        profile.curve.cap = Duration::from_millis(40);
        profile.curve.jitter = Duration::ZERO;
        profile.overloaded = profile.curve;
        profile.useless_floor = Duration::from_millis(20);
    }
    config
}

/// Serves http and https until the test ends; says where.
pub(crate) async fn relay(folder: &Folder, config: Config) -> SocketAddr {
    let config = Config { tls: true, state_dir: Some(folder.path().to_owned()), ..config };
    let (https, _) = Https::open(&config, SystemClock.wall()).map_err(|error| error.to_string()).unwrap();
    let socket = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let at = socket.local_addr().unwrap();
    let (tls, _) = steady_relay::tls::client_config(&[]).unwrap();
    let relay = Relay::start(Parts {
        targets: Upstreams::of(&config),
        config,
        tls,
        clock: Arc::new(SystemClock),
        observers: Vec::new(),
        recorder: None,
        sockets: vec![socket],
        system_proxies: SystemProxies::none(),
        https: Some(https),
    });
    // It goes on until the runtime of the test ends.
    std::mem::forget(relay);
    at
}

/// What trusts the relay of this folder and nobody else, and asks for these protocols.
pub(crate) fn trusting(folder: &Folder, protocols: &[&str]) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(folder.ca()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    TlsConnector::from(Arc::new(config))
}

pub(crate) async fn secured(
    by: &TlsConnector,
    at: SocketAddr,
    name: &str,
) -> std::io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    by.connect(name, TcpStream::connect(at).await?).await
}

/// An address at which clients that speak no TLS reach the relay over TLS.
pub(crate) async fn through_tls(folder: &Folder, at: SocketAddr) -> SocketAddr {
    let by = trusting(folder, &["http/1.1"]);
    let door = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = door.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = door.accept().await {
            let by = by.clone();
            tokio::spawn(async move {
                let mut inside = secured(&by, at, "localhost").await.unwrap();
                drop(tokio::io::copy_bidirectional(&mut client, &mut inside).await);
            });
        }
    });
    address
}
