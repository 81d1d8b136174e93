//! Wire tests: real sockets on loopback, upstreams written by hand, real time, short limits.

use super::*;
use crate::clock::{Clock, SystemClock};
use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame};
use relay_core::Moment;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll};
use std::time::SystemTime;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

mod answers;
mod failures;
mod reuse;
mod secured;

type TestBody = BoxBody<Bytes, BoxError>;
impl Payload for TestBody {
    fn again(&self) -> Option<Self> {
        None
    }
}

type Sent = Result<Response<AnswerBody>, Box<SendFailure<TestBody>>>;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
/// No test waits for longer than this for anything.
const SOON: Duration = Duration::from_secs(10);

fn limits() -> PoolLimits {
    PoolLimits { connect: Duration::from_millis(300), ..PoolLimits::default() }
}

fn no_trust() -> Arc<rustls::ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    Arc::new(config.unwrap().with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth())
}

fn upstreams() -> Upstreams<TestBody> {
    Upstreams::new(&no_trust(), Arc::new(SystemClock), limits())
}

fn full(text: &'static str) -> TestBody {
    Full::new(Bytes::from_static(text.as_bytes())).map_err(|never| match never {}).boxed()
}

fn ask(origin: &Origin, method: &str, body: TestBody) -> Ask<TestBody> {
    let request = Request::builder()
        .method(method)
        .uri("/v1/responses?a=b")
        .header("host", origin.to_string())
        .header("authorization", "Bearer secret-secret")
        .body(body)
        .unwrap();
    Ask { way: Way::straight(origin.clone()).into(), request, fresh: false, may_reuse_stale: false }
}

fn post(origin: &Origin) -> Ask<TestBody> {
    ask(origin, "POST", full("{\"model\":\"m\"}"))
}

async fn listen() -> (TcpListener, Origin) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, Origin { https: false, host: "127.0.0.1".to_owned(), port })
}

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, what).await.expect("in time")
}

/// Reads a request with its `Content-Length` body; `None` where the peer closed first.
async fn read_request(socket: &mut TcpStream) -> Option<String> {
    let mut text = Vec::new();
    loop {
        let mut byte = [0];
        if socket.read(&mut byte).await.ok()? == 0 {
            return None;
        }
        text.push(byte[0]);
        if text.ends_with(b"\r\n\r\n") {
            break;
        }
    }
    let head = String::from_utf8(text).unwrap();
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ").map(str::to_owned))
        .map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    socket.read_exact(&mut body).await.ok()?;
    Some(head + &String::from_utf8(body).unwrap())
}

fn reset(socket: TcpStream) {
    socket2::SockRef::from(&socket).set_linger(Some(Duration::ZERO)).unwrap();
    drop(socket);
}

async fn text_of(response: Response<AnswerBody>) -> Result<String, AnswerError> {
    let bytes = response.into_body().collect().await?.to_bytes();
    Ok(String::from_utf8(bytes.to_vec()).unwrap())
}

fn failure(sent: Sent) -> Box<SendFailure<TestBody>> {
    sent.map(|response| response.status()).expect_err("no answer")
}

/// Serves every connection with `OK` for every request; sends the number of connections so far with each request.
fn serve_ok(listener: TcpListener) -> mpsc::UnboundedReceiver<(usize, String)> {
    let (seen, requests) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        for connection in 1.. {
            let (mut socket, _) = listener.accept().await.unwrap();
            let seen = seen.clone();
            tokio::spawn(async move {
                while let Some(request) = read_request(&mut socket).await {
                    let is_head = request.starts_with("HEAD");
                    let wanted = !seen.is_closed() && seen.send((connection, request)).is_ok();
                    let answer = if is_head { &OK[..OK.len() - 2] } else { OK };
                    if !wanted || socket.write_all(answer).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    requests
}

/// A body that comes piece by piece, from a test.
struct Pipe(mpsc::Receiver<Result<Bytes, BoxError>>);

impl Body for Pipe {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.0.poll_recv(cx).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}

fn pipe() -> (mpsc::Sender<Result<Bytes, BoxError>>, TestBody) {
    let (sender, receiver) = mpsc::channel(1);
    (sender, BodyExt::boxed(Pipe(receiver)))
}

/// A clock that a test moves.
#[derive(Default)]
struct HandClock(Mutex<Duration>);

impl HandClock {
    fn forward(&self, by: Duration) {
        *self.0.lock().unwrap() += by;
    }
}

impl Clock for HandClock {
    fn now(&self) -> Moment {
        Moment::after_start(*self.0.lock().unwrap())
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}
