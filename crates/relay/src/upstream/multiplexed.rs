//! HTTP/2: one connection that carries many requests at a time. Spoken by the `h2` crate directly and not through
//! hyper, since two things that we must know are lost there: an answer that the peer resets with CANCEL looks like
//! one that ended, and a GOAWAY shows only when the next request is lost to it.
//!
//! A request's stream is reset at once when its answer is dropped, or when nobody waits for it any more; the
//! connection goes on for the others. The connection is closed when the pool and its last stream have let it go.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Ping, PingPong, Reason, RecvStream, SendStream};
use http::header::{CONNECTION, CONTENT_LENGTH, HOST};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Request, Response, Uri, Version};
use hyper::body::{Body as _, Frame};
use relay_core::Moment;
use tokio::task::JoinHandle;

use super::answer::AnswerBreak;
use super::connection::{Upload, UploadState};
use super::wire::{Counted, MOST_INTERIM, Wire, is_reset};
use super::{BABBLE, Cause, Payload, Proof};
use crate::clock::Clock;

/// What may lie unread of one answer: a reader that stops slows its own upstream down, and nobody else.
const STREAM_WINDOW: u32 = 256 * 1024;
/// The most requests at a time on one connection, whatever the peer allows.
const MOST_STREAMS: usize = 64;
/// Room for all of them: readers that stop, however many, leave the connection to those that go on.
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * 64;
/// The most of a request's body that waits for the network.
const SEND_BUFFER: usize = 256 * 1024;
/// The longest head of an answer.
const LONGEST_HEAD: u32 = 256 * 1024;
/// Silence on a connection with requests under way after which it is asked for a sign of life.
const SILENCE: Duration = Duration::from_secs(20);
/// How long that may take.
const SIGN_OF_LIFE: Duration = Duration::from_secs(20);

/// A connection that many requests share.
pub(super) struct Multiplexed {
    sender: SendRequest<Bytes>,
    wire: Arc<Wire>,
    clock: Arc<dyn Clock>,
    load: Arc<Mutex<Load>>,
    task: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Load {
    streams: usize,
    carried: bool,
    idle_since: Moment,
}

fn locked(load: &Mutex<Load>) -> MutexGuard<'_, Load> {
    load.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Multiplexed {
    /// Begins to speak HTTP/2.
    pub(super) async fn start(
        transport: Counted,
        wire: Arc<Wire>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, h2::Error> {
        let (sender, mut connection) = h2::client::Builder::new()
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buffer_size(SEND_BUFFER)
            .max_header_list_size(LONGEST_HEAD)
            .enable_push(false)
            .handshake(transport)
            .await?;
        let load = Arc::new(Mutex::new(Load { idle_since: clock.now(), ..Load::default() }));
        let (pings, watched, under_way) = (connection.ping_pong(), Arc::clone(&wire), Arc::clone(&load));
        let task = tokio::spawn(async move {
            tokio::select! {
                // How it ended, each of its streams hears.
                _ended = connection => {}
                () = until_dead(pings, &watched, &under_way) => {}
            }
        });
        Ok(Self { sender, wire, clock, load, task })
    }

    /// Whether it can take further requests: it stands, and the peer has not said goodbye.
    pub(super) fn is_open(&self) -> bool {
        let mut sender = self.sender.clone();
        let ready = sender.poll_ready(&mut Context::from_waker(Waker::noop()));
        !self.wire.read_ended() && !self.task.is_finished() && !matches!(ready, Poll::Ready(Err(_)))
    }

    /// A place for one request, where there is one. `most_idle` bounds how long it may have carried nothing.
    pub(super) fn occupy(self: &Arc<Self>, most_idle: Duration) -> Option<Occupied> {
        let room = self.sender.current_max_send_streams().min(MOST_STREAMS);
        let mut load = locked(&self.load);
        let too_old = load.streams == 0 && self.clock.now().since(load.idle_since) > most_idle;
        if load.streams >= room || too_old {
            return None;
        }
        load.streams += 1;
        let reused = std::mem::replace(&mut load.carried, true);
        drop(load);
        Some(Occupied { on: Arc::clone(self), reused })
    }

    /// Since when it carries nothing; `None` while it carries something.
    pub(super) fn idle_since(&self) -> Option<Moment> {
        let load = locked(&self.load);
        (load.streams == 0).then_some(load.idle_since)
    }
}

impl Drop for Multiplexed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Ends when a connection with requests under way gives no sign of life.
async fn until_dead(pings: Option<PingPong>, wire: &Wire, load: &Mutex<Load>) {
    let Some(mut pings) = pings else { return std::future::pending().await };
    loop {
        let before = wire.read();
        tokio::time::sleep(SILENCE).await;
        if wire.read() != before || locked(load).streams == 0 {
            continue;
        }
        let answering = async {
            // An older question may still be open; any byte will do for an answer to it.
            if pings.ping(Ping::opaque()).await.is_err() {
                std::future::pending().await
            }
        };
        let answered = tokio::time::timeout(SIGN_OF_LIFE, answering).await;
        if answered.is_err() && wire.read() == before {
            return;
        }
    }
}

/// The place of one request on a connection; it is free again when this is dropped.
pub(super) struct Occupied {
    on: Arc<Multiplexed>,
    pub(super) reused: bool,
}

impl Drop for Occupied {
    fn drop(&mut self) {
        let mut load = locked(&self.on.load);
        load.streams -= 1;
        load.idle_since = self.on.clock.now();
    }
}

/// A request that got no answer.
pub(super) struct Unanswered<B> {
    pub(super) proof: Proof,
    pub(super) cause: Cause,
    pub(super) detail: String,
    pub(super) request: Option<Request<B>>,
}

/// Sends one request. Dropping this future resets its stream.
pub(super) async fn send<B: Payload>(
    place: Occupied,
    request: Request<Upload<B>>,
) -> Result<Response<Stream>, Unanswered<Upload<B>>> {
    let connection = Arc::clone(&place.on);
    let handed_back = |request, error: &h2::Error| Unanswered {
        proof: Proof::NothingSent,
        cause: Cause::HandedBack,
        detail: words(error),
        request: Some(request),
    };
    let mut sender = match connection.sender.clone().ready().await {
        Ok(sender) => sender,
        Err(error) => return Err(handed_back(request, &error)),
    };
    let written_before = connection.wire.written();
    let (parts, body) = request.into_parts();
    let ends = body.is_end_stream();
    let head = head(&parts, &body);
    let (answering, stream) = match sender.send_request(head, ends) {
        Ok(begun) => begun,
        Err(error) => return Err(handed_back(Request::from_parts(parts, body), &error)),
    };
    let upload = body.state();
    let pump = (!ends).then(|| Pump(tokio::spawn(pump(body, stream))));
    let error = match answered(answering).await {
        None => {
            let (proof, cause, detail) = (Proof::SomethingSent, Cause::Malformed, BABBLE.to_owned());
            return Err(Unanswered { proof, cause, detail, request: None });
        }
        Some(Ok(answer)) => {
            return Ok(answer.map(|incoming| Stream { incoming, data_ended: false, upload, pump, place }));
        }
        Some(Err(error)) => error,
    };
    drop(pump);
    // Where the connection itself is lost, nothing is written any more, and what was not written did not run.
    let is_whole_connection = !error.is_reset() && !connection.is_open();
    let untouched = is_whole_connection && connection.wire.written() == written_before;
    let proof = if refused_unread(&error) || untouched { Proof::NothingSent } else { Proof::SomethingSent };
    let cause = if upload.broke() { Cause::RequestBody } else { cause(&error, &connection.wire) };
    Err(Unanswered { proof, cause, detail: words(&error), request: None })
}

/// The answer; `None` where only interim ones come, more than any service has reason to send. Dropped with that, the
/// stream is reset.
async fn answered(mut answering: ResponseFuture) -> Option<Result<Response<RecvStream>, h2::Error>> {
    let mut interim = 0;
    std::future::poll_fn(|cx| {
        while let Poll::Ready(Some(Ok(_interim))) = answering.poll_informational(cx) {
            interim += 1;
            if interim > MOST_INTERIM {
                return Poll::Ready(None);
            }
        }
        Pin::new(&mut answering).poll(cx).map(Some)
    })
    .await
}

/// Never the peer's own words, which may be any bytes.
fn words(error: &h2::Error) -> String {
    match error.reason() {
        Some(reason) => format!("HTTP/2: {}", reason.description()),
        None => format!("HTTP/2: {error}"),
    }
}

/// The peer's own word that it has not looked at the request (RFC 9113, section 8.7): it refused the stream, or it
/// said goodbye and named an earlier stream as the last. Streams that the goodbye covers never meet this error.
fn refused_unread(error: &h2::Error) -> bool {
    let refused = error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM);
    error.is_remote() && (refused || error.is_go_away())
}

fn cause(error: &h2::Error, wire: &Wire) -> Cause {
    match error.get_io() {
        _ if refused_unread(error) => Cause::HandedBack,
        Some(io) if is_reset(io.kind()) && wire.was_reset() => Cause::Reset,
        Some(_) => Cause::Closed,
        None if error.is_remote() && error.is_reset() => Cause::Reset,
        None if error.is_remote() => Cause::Closed,
        None => Cause::Malformed,
    }
}

/// The head as HTTP/2 has it: the host in the target, and nothing of the connection.
fn head<B: Payload>(parts: &http::request::Parts, body: &Upload<B>) -> Request<()> {
    let mut head = Request::new(());
    *head.method_mut() = parts.method.clone();
    *head.version_mut() = Version::HTTP_2;
    let headers = head.headers_mut();
    headers.reserve(parts.headers.len());
    for (name, value) in &parts.headers {
        if *name != HOST && *name != CONNECTION {
            headers.append(name.clone(), value.clone());
        }
    }
    if let Some(length) = body.size_hint().exact()
        && length > 0
        && !headers.contains_key(CONTENT_LENGTH)
    {
        headers.insert(CONTENT_LENGTH, length.into());
    }
    let mut target = http::uri::Parts::default();
    target.scheme = Some(Scheme::HTTPS);
    target.authority = parts.headers.get(HOST).and_then(|host| Authority::try_from(host.as_bytes()).ok());
    target.path_and_query =
        Some(parts.uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/")));
    if let Ok(uri) = Uri::from_parts(target) {
        *head.uri_mut() = uri;
    }
    head
}

/// A body on its way; dropping this stops it.
struct Pump(JoinHandle<()>);

impl Drop for Pump {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Sends a body as fast as the peer takes it. If this is dropped in the middle and nobody holds the answer, the
/// stream is reset; so is it where the body breaks off.
async fn pump<B: Payload>(mut body: Upload<B>, mut stream: SendStream<Bytes>) {
    loop {
        let next = std::future::poll_fn(|cx| {
            if stream.poll_reset(cx).is_ready() {
                return Poll::Ready(Err(()));
            }
            Pin::new(&mut body).poll_frame(cx).map(Ok)
        });
        let sent = match next.await {
            // The peer wants no more of it.
            Err(()) => return,
            Ok(None) => stream.send_data(Bytes::new(), true).map(|()| true),
            Ok(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) => {
                    let last = body.is_end_stream();
                    send_data(&mut stream, data, last).await.map(|()| last)
                }
                Err(frame) => match frame.into_trailers() {
                    Ok(trailers) => stream.send_trailers(trailers).map(|()| true),
                    Err(_unknown) => Ok(false),
                },
            },
            Ok(Some(Err(_told))) => return stream.send_reset(Reason::CANCEL),
        };
        // An error is one of the connection or of the stream: whoever waits for the answer hears of it.
        if !matches!(sent, Ok(false)) {
            return;
        }
    }
}

async fn send_data(stream: &mut SendStream<Bytes>, mut data: Bytes, last: bool) -> Result<(), h2::Error> {
    if data.is_empty() {
        return if last { stream.send_data(data, true) } else { Ok(()) };
    }
    while !data.is_empty() {
        stream.reserve_capacity(data.len());
        let room = std::future::poll_fn(|cx| {
            if let Poll::Ready(reset) = stream.poll_reset(cx) {
                return Poll::Ready(Some(Err(reset.map_or_else(|error| error, Into::into))));
            }
            stream.poll_capacity(cx)
        });
        let room = match room.await {
            Some(room) => room?,
            None => return Err(Reason::CANCEL.into()),
        };
        let piece = data.split_to(room.min(data.len()));
        let ends = last && data.is_empty();
        stream.send_data(piece, ends)?;
    }
    Ok(())
}

/// The body of an answer.
pub(super) struct Stream {
    incoming: RecvStream,
    data_ended: bool,
    upload: Arc<UploadState>,
    /// Stops with the answer: an upload that nobody wants any more is not finished.
    pump: Option<Pump>,
    place: Occupied,
}

impl Stream {
    pub(super) fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, AnswerBreak>>> {
        if !self.data_ended {
            match ready!(self.incoming.poll_data(cx)) {
                Some(Ok(data)) => {
                    // What was handed on makes room for as much.
                    let _closed = self.incoming.flow_control().release_capacity(data.len());
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Some(Err(error)) => return Poll::Ready(self.broke(&error)),
                None => self.data_ended = true,
            }
        }
        Poll::Ready(match ready!(self.incoming.poll_trailers(cx)) {
            Ok(Some(trailers)) => Some(Ok(Frame::trailers(trailers))),
            Ok(None) => None,
            Err(error) => self.broke(&error),
        })
    }

    fn broke(&self, error: &h2::Error) -> Option<Result<Frame<Bytes>, AnswerBreak>> {
        let kind = match error.get_io() {
            // NO_ERROR follows an answer that is whole, and says that the rest of the upload is not wanted (RFC
            // 9113, section 8.1). Without an upload it means nothing, and the answer is not known to be whole.
            None if self.is_uploading() && error.is_remote() && error.reason() == Some(Reason::NO_ERROR) => {
                return None;
            }
            Some(io) if is_reset(io.kind()) && self.place.on.wire.was_reset() => AnswerBreak::Reset,
            Some(_) => AnswerBreak::Closed,
            None if error.is_remote() && error.is_reset() => AnswerBreak::Reset,
            None if error.is_remote() => AnswerBreak::Closed,
            None => AnswerBreak::Malformed,
        };
        Some(Err(kind))
    }

    fn is_uploading(&self) -> bool {
        self.pump.is_some() && !self.upload.ended()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;
    use crate::clock::TokioClock;
    use http_body_util::Full;

    /// A peer that takes everything and says nothing.
    async fn mute() -> Arc<Multiplexed> {
        let (ours, mut theirs) = tokio::io::duplex(1 << 20);
        tokio::spawn(async move { while theirs.read_u8().await.is_ok() {} });
        let wire = Arc::new(Wire::default());
        let clock = Arc::new(TokioClock::starting_at(std::time::SystemTime::UNIX_EPOCH));
        let counted = Counted::new(Box::new(ours), Arc::clone(&wire));
        Arc::new(Multiplexed::start(counted, wire, clock).await.unwrap())
    }

    fn request() -> Request<Upload<Full<Bytes>>> {
        let request = Request::builder().method("POST").uri("/v1/x").header(HOST, "api.test");
        request.body(Upload::new(Full::from("{}"), Arc::default())).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_gives_no_sign_of_life_is_given_up() {
        let connection = mute().await;
        let place = connection.occupy(Duration::MAX).unwrap();
        let began = tokio::time::Instant::now();
        let failed = send(place, request()).await.map(|_| ()).unwrap_err();
        assert_eq!(began.elapsed().as_secs(), (SILENCE + SIGN_OF_LIFE).as_secs());
        assert_eq!((failed.proof, failed.cause), (Proof::SomethingSent, Cause::Closed), "{}", failed.detail);
        assert!(!connection.is_open() && failed.request.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_carries_nothing_is_left_in_peace_and_grows_old() {
        let connection = mute().await;
        tokio::time::sleep(Duration::from_secs(300)).await;
        assert!(connection.is_open());
        assert!(connection.occupy(Duration::from_secs(299)).is_none());
        let place = connection.occupy(Duration::from_secs(301)).unwrap();
        assert!(!place.reused && connection.idle_since().is_none());
        assert!(connection.occupy(Duration::ZERO).is_some_and(|place| place.reused), "it is in use");
    }

    #[tokio::test(start_paused = true)]
    async fn what_never_left_did_not_run() {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let wire = Arc::new(Wire::default());
        let clock = Arc::new(TokioClock::starting_at(std::time::SystemTime::UNIX_EPOCH));
        let counted = Counted::new(Box::new(ours), Arc::clone(&wire));
        let connection = Arc::new(Multiplexed::start(counted, wire, clock).await.unwrap());
        // Its own greeting leaves first, whatever comes of it.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let place = connection.occupy(Duration::MAX).unwrap();
        drop(theirs);
        let failed = send(place, request()).await.map(|_| ()).unwrap_err();
        assert_eq!(failed.proof, Proof::NothingSent, "{}", failed.detail);
    }
}
