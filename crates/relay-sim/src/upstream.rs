//! A pretend model service on loopback: accepts, records, and carries out a [`Script`].
//!
//! This file is the outside: starting, stopping, and what was seen. What happens on one connection is in
//! `session.rs`.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::script::{Reply, Script};
use crate::session;
use crate::tls::Acceptor;
use crate::wire::{Head, find};

/// One request as it came over the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Its number at this upstream, from zero, in the order the heads arrived.
    pub index: usize,
    /// `POST`.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// `HTTP/1.1`.
    pub version: String,
    /// In the case and order of the wire; values without the white space around them.
    pub headers: Vec<(String, String)>,
    /// The head to the byte.
    pub raw_head: Vec<u8>,
    /// The body, freed from chunks but not from a content coding.
    pub body: Vec<u8>,
    /// Whether all of the body arrived.
    pub body_complete: bool,
    /// The number of the connection, from zero.
    pub connection: u64,
    /// When the head was complete, since the start of the upstream.
    pub at: Duration,
    /// When the last byte of the answer was written, or the connection was closed or reset instead.
    pub answered_at: Option<Duration>,
    /// When the client was found to have closed the connection during or after this request.
    pub client_gone_at: Option<Duration>,
}

impl Seen {
    /// The first value of a header, whatever its case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// All values of a header, whatever its case.
    #[must_use]
    pub fn header_values(&self, name: &str) -> Vec<&str> {
        let same = self.headers.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
        same.map(|(_, value)| value.as_str()).collect()
    }

    /// The target without its query.
    #[must_use]
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON; null where it is none.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// A running pretend upstream. Dropping it stops it and closes every socket.
#[derive(Debug)]
pub struct Upstream {
    addr: SocketAddr,
    scheme: &'static str,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Upstream {
    /// Starts on a free port of 127.0.0.1. A single [`Reply`] is a script too.
    pub async fn start(script: impl Into<Script>) -> io::Result<Self> {
        Self::start_on(0, script).await
    }

    /// Starts on this port of 127.0.0.1.
    pub async fn start_on(port: u16, script: impl Into<Script>) -> io::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], port))).await?;
        Self::on(listener, script.into(), None)
    }

    /// Starts with TLS on a free port of 127.0.0.1; the second value is the certificate to trust, as PEM. It is
    /// its own issuer, and good for `localhost` and `127.0.0.1`.
    #[cfg(feature = "tls")]
    pub async fn start_tls(script: impl Into<Script>) -> io::Result<(Self, String)> {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
        let (acceptor, certificate) = crate::tls::self_signed()?;
        Ok((Self::on(listener, script.into(), Some(acceptor))?, certificate))
    }

    /// Starts with TLS on this port of 127.0.0.1, as the service that this is.
    #[cfg(feature = "tls")]
    pub async fn start_as(
        port: u16,
        script: impl Into<Script>,
        identity: &crate::tls::Identity,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], port))).await?;
        Self::on(listener, script.into(), Some(identity.acceptor.clone()))
    }

    fn on(listener: TcpListener, script: Script, tls: Option<Acceptor>) -> io::Result<Self> {
        let addr = listener.local_addr()?;
        let shared = Arc::new(Shared::new(script));
        let (stop, stopped) = watch::channel(false);
        let scheme = if tls.is_some() { "https" } else { "http" };
        let task = tokio::spawn(accept(listener, tls, Arc::clone(&shared), stopped));
        Ok(Self { addr, scheme, shared, stop, task })
    }

    /// `http://127.0.0.1:PORT`, without a path.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.addr)
    }

    /// Where it listens.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Every request so far, in the order of their heads.
    #[must_use]
    pub fn requests(&self) -> Vec<Seen> {
        self.shared.seen().clone()
    }

    /// How many connections were accepted so far.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// The time on the clock of [`Seen::at`].
    #[must_use]
    pub fn now(&self) -> Duration {
        self.shared.now()
    }

    /// Waits until `n` requests have come whose reply has begun. False if that took too long.
    pub async fn wait_for_requests(&self, n: usize, within: Duration) -> bool {
        self.wait_until(within, |_, begun| begun >= n).await
    }

    /// Waits until the requests are as wished, looking again whenever something happens to one of them.
    pub async fn wait_for(&self, within: Duration, wish: impl Fn(&[Seen]) -> bool) -> bool {
        self.wait_until(within, |seen, _| wish(seen)).await
    }

    async fn wait_until(&self, within: Duration, wish: impl Fn(&[Seen], usize) -> bool) -> bool {
        let mut begun = self.shared.begun.subscribe();
        let granted = begun.wait_for(|begun| wish(&self.shared.seen(), *begun));
        matches!(tokio::time::timeout(within, granted).await, Ok(Ok(_)))
    }

    /// Stops and waits until every socket is closed. A failure of the script itself ends here too.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        // The task ends by itself, or was already gone with its runtime.
        drop((&mut self.task).await);
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(
    listener: TcpListener,
    tls: Option<Acceptor>,
    shared: Arc<Shared>,
    mut stopped: watch::Receiver<bool>,
) {
    let mut sessions = JoinSet::new();
    loop {
        tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => break,
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                let connection = shared.connections.fetch_add(1, Ordering::Relaxed);
                sessions.spawn(serve(stream, tls.clone(), Arc::clone(&shared), connection));
            }
            Some(_) = sessions.join_next() => {}
        }
    }
    drop(listener);
    sessions.shutdown().await;
}

async fn serve(stream: TcpStream, tls: Option<Acceptor>, shared: Arc<Shared>, connection: u64) {
    let Some(acceptor) = tls else { return session::run(stream, shared, connection).await };
    // A client that does not trust the certificate is not a request.
    if let Ok(stream) = acceptor.accept(stream).await {
        session::run(stream, shared, connection).await;
    }
}

/// A port that refuses connections, and stays ours so that nobody else opens it meanwhile.
#[derive(Debug)]
pub struct Refused {
    socket: TcpSocket,
    addr: SocketAddr,
}

impl Refused {
    /// Takes a free port without listening on it: whoever connects is refused.
    pub fn port() -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        let addr = socket.local_addr()?;
        Ok(Self { socket, addr })
    }

    /// Where nobody listens.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://127.0.0.1:PORT`
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Begins to listen on the port: the service is up.
    pub fn open(self, script: impl Into<Script>) -> io::Result<Upstream> {
        Upstream::on(self.socket.listen(1024)?, script.into(), None)
    }

    /// Gives the port up, for [`Upstream::start_on`] or another process.
    #[must_use]
    pub fn release(self) -> u16 {
        self.addr.port()
    }
}

/// What the connections of one upstream have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    script: Script,
    started: Instant,
    seen: Mutex<Vec<Seen>>,
    scripted: Mutex<usize>,
    connections: AtomicU64,
    begun: watch::Sender<usize>,
}

impl Shared {
    fn new(script: Script) -> Self {
        Self {
            script,
            started: Instant::now(),
            seen: Mutex::default(),
            scripted: Mutex::default(),
            connections: AtomicU64::new(0),
            begun: watch::Sender::new(0),
        }
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn seen(&self) -> MutexGuard<'_, Vec<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a request whose head is complete; its index.
    pub(crate) fn note(&self, head: Head, connection: u64) -> usize {
        let mut words = head.start_line.split(' ').map(str::to_owned);
        let mut word = || words.next().unwrap_or_default();
        let mut seen = self.seen();
        let index = seen.len();
        seen.push(Seen {
            index,
            method: word(),
            target: word(),
            version: word(),
            headers: head.headers,
            raw_head: head.raw,
            body: Vec::new(),
            body_complete: false,
            connection,
            at: self.now(),
            answered_at: None,
            client_gone_at: None,
        });
        index
    }

    /// The reply to the request, or (with the number it has in the script) that its body decides.
    pub(crate) fn choose(&self, index: usize) -> Result<Reply, usize> {
        let request = self.seen()[index].clone();
        if let Some(reply) = self.script.by_path(request.path()) {
            return Ok(reply);
        }
        let mut scripted = self.scripted.lock().unwrap_or_else(PoisonError::into_inner);
        let number = *scripted;
        *scripted += 1;
        drop(scripted);
        self.script.at_head(&request, number).ok_or(number)
    }

    /// The reply that needed the body.
    pub(crate) fn choose_by_body(&self, index: usize, number: usize) -> Reply {
        let request = self.seen()[index].clone();
        self.script.at_body(&request, number)
    }

    pub(crate) fn body(&self, index: usize, body: Vec<u8>, complete: bool) {
        let mut seen = self.seen();
        seen[index].body = body;
        seen[index].body_complete = complete;
        drop(seen);
        self.wake();
    }

    pub(crate) fn begun(&self) {
        self.begun.send_modify(|begun| *begun += 1);
    }

    pub(crate) fn answered(&self, index: usize) {
        let now = self.now();
        let mut seen = self.seen();
        seen[index].answered_at.get_or_insert(now);
        if self.script.forgets_bodies {
            seen[index].body = Vec::new();
        }
        drop(seen);
        self.wake();
    }

    pub(crate) fn client_gone(&self, index: usize) {
        let now = self.now();
        self.seen()[index].client_gone_at.get_or_insert(now);
        self.wake();
    }

    fn wake(&self) {
        self.begun.send_modify(|_| {});
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    const SOON: Duration = Duration::from_secs(5);

    #[tokio::test]
    async fn replies_follow_the_script_and_the_last_one_repeats() {
        let script = Script::of([Reply::status(503).text("busy"), Reply::status(200).text("good").close()]);
        let up = Upstream::start(script.for_path("/side", Reply::status(204))).await.unwrap();
        let mut stream = TcpStream::connect(up.addr()).await.unwrap();
        let asked = "POST /v1/x?a=b HTTP/1.1\r\nHoSt: h\r\nContent-Length: 2\r\n\r\nhiGET /side HTTP/1.1\r\n\r\n\
                     POST /v1/x HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
        stream.write_all(asked.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let plain = "content-type: text/plain; charset=utf-8\r\ncontent-length: 4\r\n";
        let expected = format!(
            "HTTP/1.1 503 Service Unavailable\r\n{plain}\r\nbusyHTTP/1.1 204 No Content\r\n\r\n\
             HTTP/1.1 200 OK\r\n{plain}connection: close\r\n\r\ngood"
        );
        assert_eq!(answer, expected);
        assert!(up.wait_for_requests(3, SOON).await);
        let seen = up.requests();
        assert_eq!(
            (seen[0].method.as_str(), seen[0].target.as_str(), seen[0].path()),
            ("POST", "/v1/x?a=b", "/v1/x")
        );
        assert_eq!(seen[0].headers[0], ("HoSt".to_owned(), "h".to_owned()));
        assert_eq!((seen[0].text(), seen[2].text()), ("hi".to_owned(), "hi".to_owned()));
        assert_eq!(up.connections(), 1);
        up.stop().await;
    }
}
