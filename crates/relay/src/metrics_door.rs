//! The address at which metrics are read: `/metrics` on a port of its own, since a relay forwards that path to the
//! service. Nothing else is there.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use relay_core::gate::View;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::guard::{Guard, path_and_query};
use crate::observe::LaneName;
use crate::observe::metrics::{self, Metrics};
use crate::words::{door, lang};

/// So many connections are served at once; who comes then waits to be accepted.
const CONNECTIONS: usize = 16;
/// For so long a connection may take its time.
const CONNECTION: Duration = Duration::from_secs(60);
/// For so long the head of a request may.
const HEAD: Duration = Duration::from_secs(10);
/// No head is longer.
const HEAD_BYTES: usize = 16 * 1024;

/// Tells how the lanes are.
pub type Lanes = Arc<dyn Fn() -> Vec<(LaneName, View)> + Send + Sync>;

/// What is read there, and by whom.
#[derive(Clone)]
pub struct Door {
    /// The metrics.
    pub metrics: Arc<Metrics>,
    /// The lanes.
    pub lanes: Lanes,
    /// Who may read: as at the relay's own endpoints.
    pub guard: Guard,
}

impl std::fmt::Debug for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Door").finish_non_exhaustive()
    }
}

/// Serves for as long as the future is polled.
pub async fn serve(sockets: Vec<TcpListener>, door: Door) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut all = JoinSet::new();
    for socket in sockets {
        all.spawn(accept(socket, door.clone(), Arc::clone(&places)));
    }
    while all.join_next().await.is_some() {}
}

async fn accept(socket: TcpListener, door: Door, places: Arc<Semaphore>) {
    let mut open = JoinSet::new();
    loop {
        while open.try_join_next().is_some() {}
        // The semaphore is never closed.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match socket.accept().await {
            Ok((stream, _peer)) => {
                let door = door.clone();
                open.spawn(async move {
                    let _gave_up = tokio::time::timeout(CONNECTION, connection(stream, door)).await;
                    drop(place);
                });
            }
            // Out of file descriptors, most likely: the ones in use will come free.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn connection(stream: TcpStream, door: Door) {
    let answer = service_fn(|request: Request<Incoming>| {
        let answer = door.answer(&request);
        async move { Ok::<_, Infallible>(answer) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(HEAD_BYTES);
    // What a reader does wrong is its own loss.
    let _broken = server.serve_connection(TokioIo::new(stream), answer).await;
}

impl Door {
    fn answer<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        let refused = |status, words: &dyn std::fmt::Display| {
            text(status, &(door::refusal(lang(), &words.to_string()) + "\n"))
        };
        if let Err(refusal) = self.guard.control(request.headers()) {
            return refused(refusal.status(), &refusal);
        }
        let asked = path_and_query(request.uri()).unwrap_or("/");
        let path = match self.guard.token(request.headers(), asked) {
            Ok(rest) => rest.unwrap_or_else(|| asked.to_owned()),
            Err(refusal) => return refused(refusal.status(), &refusal),
        };
        if path.split('?').next() != Some("/metrics") {
            return refused(StatusCode::NOT_FOUND, &door::metrics_elsewhere(lang()));
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut response = refused(StatusCode::METHOD_NOT_ALLOWED, &door::metrics_only_read(lang()));
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        let lanes = (self.lanes)();
        typed(StatusCode::OK, metrics::CONTENT_TYPE, self.metrics.text(&lanes))
    }
}

fn text(status: StatusCode, words: &str) -> Response<Full<Bytes>> {
    typed(status, "text/plain; charset=utf-8", words.to_owned())
}

fn typed(status: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use relay_core::config::Secret;

    use super::*;

    fn door(token: Option<&str>) -> Door {
        let listening = vec!["127.0.0.1:9090".parse().unwrap()];
        let guard =
            Guard { listening, token: token.map(|token| Secret::new(token.to_owned())), ..Guard::default() };
        Door { metrics: Arc::default(), lanes: Arc::new(Vec::new), guard }
    }

    fn status(door: &Door, method: &str, target: &str, headers: &[(&str, &str)]) -> u16 {
        let mut request = Request::builder().method(method).uri(target).header("host", "localhost:9090");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        door.answer(&request.body(()).unwrap()).status().as_u16()
    }

    #[test]
    fn metrics_and_nothing_else_are_read_there() {
        let open = door(None);
        let rows = [
            ("GET", "/metrics", 200),
            ("HEAD", "/metrics?x=1", 200),
            ("POST", "/metrics", 405),
            ("GET", "/", 404),
            ("GET", "/metrics/x", 404),
            ("GET", "/v1/models", 404),
        ];
        for (method, target, expected) in rows {
            assert_eq!(status(&open, method, target, &[]), expected, "{method} {target}");
        }
    }

    #[test]
    fn pages_and_strangers_are_turned_away() {
        let open = door(None);
        assert_eq!(status(&open, "GET", "/metrics", &[("origin", "https://evil.example")]), 403);
        let rebound = Request::get("/metrics").header("host", "evil.example:9090").body(()).unwrap();
        assert_eq!(open.answer(&rebound).status().as_u16(), 403);
        let closed = door(Some("sixteen-letters-"));
        let with = |token| status(&closed, "GET", "/metrics", &[("x-steady-token", token)]);
        assert_eq!((with("sixteen-letters+"), with("sixteen-letters-")), (403, 200));
        let by_path = |path| status(&closed, "GET", path, &[]);
        assert_eq!((by_path("/metrics"), by_path("/~sixteen-letters-/metrics")), (401, 200));
    }
}
