//! A certificate for loopback and the TLS side of an upstream. No client trusts it unless it is told to.

use std::io;
use std::sync::Arc;

use tokio::net::TcpStream;
pub(crate) use tokio_rustls::TlsAcceptor as Acceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::server::TlsStream;

use crate::session::Wire;

impl Wire for TlsStream<TcpStream> {
    fn tcp(&self) -> &TcpStream {
        self.get_ref().0
    }
}

/// A key and its certificate, with which a service can come back as the same one.
#[derive(Clone)]
pub struct Identity {
    pub(crate) acceptor: Acceptor,
    /// The certificate to trust, as PEM. It is its own issuer, and good for `localhost` and `127.0.0.1`.
    pub pem: String,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Identity")
    }
}

impl Identity {
    /// A fresh one.
    pub fn new() -> io::Result<Self> {
        self_signed().map(|(acceptor, pem)| Self { acceptor, pem })
    }
}

/// An acceptor with a fresh certificate, and that certificate as PEM.
pub(crate) fn self_signed() -> io::Result<(Acceptor, String)> {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).map_err(io::Error::other)?;
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).map_err(io::Error::other)?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .map_err(io::Error::other)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok((Acceptor::from(Arc::new(config)), made.cert.pem()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio_rustls::TlsConnector;
    use tokio_rustls::rustls::pki_types::pem::PemObject;
    use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
    use tokio_rustls::rustls::{ClientConfig, RootCertStore};

    use super::*;
    use crate::{Event, Reply, Script, Upstream};

    async fn ask(up: &Upstream, trusted: Option<&str>) -> io::Result<String> {
        let mut roots = RootCertStore::empty();
        if let Some(pem) = trusted {
            roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let tcp = TcpStream::connect(up.addr()).await?;
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let mut stream = TlsConnector::from(Arc::new(config)).connect(name, tcp).await?;
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await?;
        Ok(text)
    }

    #[tokio::test]
    async fn who_trusts_the_certificate_is_served_and_nobody_else() {
        let script =
            Script::of([Reply::status(200).text("good").close(), Reply::sse([Event::data("1")]).reset()]);
        let (up, pem) = Upstream::start_tls(script).await.unwrap();
        assert!(up.url().starts_with("https://127.0.0.1:"));
        assert!(ask(&up, None).await.is_err());
        assert!(ask(&up, Some(&pem)).await.unwrap().ends_with("\r\n\r\ngood"));
        assert_eq!(ask(&up, Some(&pem)).await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
        assert_eq!((up.connections(), up.requests().len()), (3, 2));
        assert!(up.wait_for(Duration::from_secs(5), |seen| seen[1].answered_at.is_some()).await);
    }
}
