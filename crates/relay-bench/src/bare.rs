//! The yardsticks: a reverse proxy that does nothing but forward, made of hyper's server and hyper-util's client, and
//! for WebSocket a tunnel that knows nothing of what it carries.

use std::convert::Infallible;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty, combinators::BoxBody};
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};

type Pool = Client<HttpConnector, Incoming>;

/// Prints its address and serves until it is killed.
#[expect(clippy::print_stdout, reason = "the address is what the caller reads")]
pub(crate) async fn serve(upstream: &str) -> Result<()> {
    let authority = upstream.strip_prefix("http://").context("an http URL")?.to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let pool: Pool = Client::builder(TokioExecutor::new()).build(connector);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (pool, authority) = (pool.clone(), authority.clone());
        tokio::spawn(async move {
            let service = hyper::service::service_fn(|request| forward(&pool, &authority, request));
            let served =
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            drop(served.await);
        });
    }
}

/// Prints its address and carries bytes both ways until it is killed.
#[expect(clippy::print_stdout, reason = "the address is what the caller reads")]
pub(crate) async fn tunnel(upstream: &str) -> Result<()> {
    let authority = upstream.strip_prefix("http://").context("an http URL")?.to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    loop {
        let (mut client, _) = listener.accept().await?;
        let mut service = TcpStream::connect(&authority).await?;
        client.set_nodelay(true)?;
        service.set_nodelay(true)?;
        tokio::spawn(async move { drop(tokio::io::copy_bidirectional(&mut client, &mut service).await) });
    }
}

async fn forward(
    pool: &Pool,
    authority: &str,
    mut request: Request<Incoming>,
) -> Result<Response<BoxBody<Bytes, hyper::Error>>, Infallible> {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let uri = Uri::builder().scheme("http").authority(authority).path_and_query(path).build();
    *request.uri_mut() = uri.unwrap_or_default();
    request.headers_mut().remove(hyper::header::HOST);
    Ok(match pool.request(request).await {
        Ok(answer) => answer.map(BodyExt::boxed),
        Err(_failed) => {
            let mut answer = Response::new(Empty::new().map_err(|never| match never {}).boxed());
            *answer.status_mut() = StatusCode::BAD_GATEWAY;
            answer
        }
    })
}
