//! The same over TLS.

use super::*;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::path::PathBuf;
use tokio_rustls::TlsAcceptor;

struct Server {
    acceptor: TlsAcceptor,
    pem: String,
}

fn server() -> Server {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der())),
        )
        .unwrap();
    Server { acceptor: TlsAcceptor::from(Arc::new(config)), pem: certificate.pem() }
}

fn trusting(pem: &str) -> Upstreams<TestBody> {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let path: PathBuf =
        std::env::temp_dir().join(format!("steady-relay-ca-{}-{count}.pem", std::process::id()));
    std::fs::write(&path, pem).unwrap();
    let (config, _notices) = crate::tls::client_config(std::slice::from_ref(&path)).unwrap();
    std::fs::remove_file(&path).unwrap();
    Upstreams::new(&config, Arc::new(SystemClock), PoolLimits::default())
}

async fn secured() -> (TcpListener, Origin) {
    let (listener, origin) = listen().await;
    (listener, Origin { https: true, host: "localhost".to_owned(), ..origin })
}

/// Answers requests on one TLS connection until the peer leaves; the buffer is large enough for any of them.
async fn serve_one(listener: TcpListener, acceptor: TlsAcceptor) -> usize {
    let (socket, _) = listener.accept().await.unwrap();
    let Ok(mut stream) = acceptor.accept(socket).await else { return 0 };
    let mut served = 0;
    let mut buffer = [0; 4096];
    let mut came = Vec::new();
    while let Ok(length) = stream.read(&mut buffer).await
        && length > 0
    {
        came.extend_from_slice(&buffer[..length]);
        if came.ends_with(b"{\"model\":\"m\"}") {
            came.clear();
            served += 1;
            stream.write_all(OK).await.unwrap();
            stream.flush().await.unwrap();
        }
    }
    served
}

#[tokio::test]
async fn a_self_signed_service_that_the_user_named_is_trusted_by_name_and_by_address() {
    for host in ["localhost", "127.0.0.1"] {
        let Server { acceptor, pem } = server();
        let (listener, origin) = secured().await;
        let origin = Origin { host: host.to_owned(), ..origin };
        let server = tokio::spawn(serve_one(listener, acceptor));
        let upstreams = trusting(&pem);
        for _ in 0..3 {
            let response = soon(upstreams.send(post(&origin))).await.unwrap();
            assert_eq!(text_of(response).await.unwrap(), "ok");
        }
        drop(upstreams);
        assert_eq!(soon(server).await.unwrap(), 3, "on one connection");
    }
}

#[tokio::test]
async fn a_certificate_nobody_vouches_for_is_told_apart() {
    let (one, other) = (server(), server());
    let (listener, origin) = secured().await;
    tokio::spawn(serve_one(listener, one.acceptor));
    let failed = failure(soon(trusting(&other.pem).send(post(&origin))).await);
    assert_eq!((failed.proof, failed.cause), (Proof::NothingSent, Cause::Certificate), "{failed}");
    assert!(failed.request.is_some());
}

#[tokio::test]
async fn a_certificate_for_another_name_is_told_apart() {
    let Server { acceptor, pem } = server();
    let (listener, origin) = secured().await;
    tokio::spawn(serve_one(listener, acceptor));
    let elsewhere = Origin { host: "127.0.0.2".to_owned(), ..origin };
    // Linux answers on all of 127/8; elsewhere there may be nobody.
    let failed = failure(soon(trusting(&pem).send(post(&elsewhere))).await);
    assert!(matches!(
        failed.cause,
        Cause::Certificate | Cause::Refused | Cause::Connect | Cause::ConnectTimeout
    ));
    assert_eq!(failed.proof, Proof::NothingSent);
}

#[tokio::test]
async fn a_service_that_does_not_speak_tls_fails_the_handshake() {
    let (listener, origin) = secured().await;
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        drop(socket.read(&mut [0; 4096]).await);
    });
    let failed = failure(soon(trusting(&server().pem).send(post(&origin))).await);
    assert_eq!((failed.proof, failed.cause), (Proof::NothingSent, Cause::TlsHandshake), "{failed}");
}

#[tokio::test]
async fn a_close_after_the_request_may_have_run_over_tls_too() {
    let Server { acceptor, pem } = server();
    let (listener, origin) = secured().await;
    tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        let mut stream = acceptor.accept(socket).await.unwrap();
        let mut buffer = [0; 4096];
        while !buffer.windows(4).any(|four| four == b"\r\n\r\n") {
            assert!(stream.read(&mut buffer).await.unwrap() > 0);
        }
    });
    let failed = failure(soon(trusting(&pem).send(post(&origin))).await);
    assert_eq!(failed.proof, Proof::SomethingSent, "{failed}");
    assert!(matches!(failed.cause, Cause::Closed | Cause::Reset), "{failed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_early_answer_survives_the_reset_that_follows_it_over_tls_too() {
    for round in 0..10 {
        let Server { acceptor, pem } = server();
        let (listener, origin) = secured().await;
        tokio::spawn(async move {
            let (socket, _) = listener.accept().await.unwrap();
            // Else the answer might still wait for an acknowledgement when the reset throws it away.
            socket.set_nodelay(true).unwrap();
            let mut stream = acceptor.accept(socket).await.unwrap();
            assert!(stream.read(&mut [0; 64]).await.unwrap() > 0);
            let answer = b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 8\r\n\r\ntoo long";
            stream.write_all(answer).await.unwrap();
            stream.flush().await.unwrap();
        });
        let body = Full::new(Bytes::from(vec![b'x'; 8 << 20])).map_err(|never| match never {}).boxed();
        let response = soon(trusting(&pem).send(ask(&origin, "POST", body))).await.expect("the answer");
        assert_eq!(response.status(), 413);
        assert_eq!(text_of(response).await.expect("the body too"), "too long", "round {round}");
    }
}
