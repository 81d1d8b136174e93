//! A connection of HTTP/1.1 and its loan to one request. A connection that is dropped is closed at once, whatever it
//! was doing: that is how a client that leaves ends the upstream's work.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::SendRequest;
use relay_core::Moment;

use super::pool::Pool;
use super::wire::Wire;
use super::{BoxError, Payload, Way};

/// The work of a connection: reading, writing, framing. It has no task of its own; whoever waits for something that
/// the connection is to bring does this work while waiting. So an answer's pieces are read by the very task that
/// passes them on, and no other has to be woken for each.
pub(super) type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A connection; dropping it closes it.
pub(super) struct Connection<B> {
    pub(super) sender: SendRequest<Upload<B>>,
    pub(super) wire: Arc<Wire>,
    /// Since when it carries nothing; only the pool reads it.
    pub(super) idle_since: Moment,
    /// `None`: done, the connection is closed.
    work: Mutex<Option<Work>>,
}

impl<B: Payload> Connection<B> {
    pub(super) fn new(sender: SendRequest<Upload<B>>, work: Work, wire: Arc<Wire>) -> Self {
        Self { sender, wire, idle_since: Moment::ZERO, work: Mutex::new(Some(work)) }
    }

    /// Does what can be done now; the task is woken when there is more.
    pub(super) fn work(&mut self, cx: &mut Context<'_>) {
        let work = self.work.get_mut().unwrap_or_else(PoisonError::into_inner);
        if work.as_mut().is_some_and(|work| work.as_mut().poll(cx).is_ready()) {
            *work = None;
        }
    }

    /// Does what can be done now, and leaves the rest to whoever works on it next.
    pub(super) fn work_once(&mut self) {
        self.work(&mut Context::from_waker(Waker::noop()));
    }

    /// Waits until it can take a request; false where it never will.
    pub(super) async fn is_ready(&mut self) -> bool {
        std::future::poll_fn(|cx| {
            self.work(cx);
            self.sender.poll_ready(cx)
        })
        .await
        .is_ok()
    }

    /// Closes it: from here on it can neither read nor write.
    pub(super) fn stop(self) -> Arc<Wire> {
        Arc::clone(&self.wire)
    }

    /// Leaves it to a task of its own: it was upgraded.
    pub(super) fn let_go(self) {
        if let Some(work) = self.work.into_inner().unwrap_or_else(PoisonError::into_inner) {
            tokio::spawn(work);
        }
    }
}

/// A connection lent to one request.
pub(super) struct Lease<B> {
    connection: Connection<B>,
    pub(super) way: Way,
    pub(super) reused: bool,
    pub(super) upload: Arc<UploadState>,
    pool: Arc<Pool<B>>,
}

impl<B: Payload> Lease<B> {
    pub(super) fn new(connection: Connection<B>, way: Way, pool: Arc<Pool<B>>, reused: bool) -> Self {
        Self { connection, way, reused, upload: Arc::default(), pool }
    }

    pub(super) fn connection(&self) -> &Connection<B> {
        &self.connection
    }

    /// Sends, and works until the head of the answer is there.
    pub(super) async fn begin(
        &mut self,
        request: Request<Upload<B>>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Upload<B>>>> {
        self.connection.wire.expect_answer(true);
        let mut answering = std::pin::pin!(self.connection.sender.try_send_request(request));
        std::future::poll_fn(|cx| {
            // The work comes first: it takes the request, and it brings the answer.
            self.connection.work(cx);
            answering.as_mut().poll(cx)
        })
        .await
    }

    pub(super) fn into_connection(self) -> Connection<B> {
        self.connection
    }
}

/// What the end of an answer needs to know of the lease that carried it.
pub(super) trait Lent: Send + Sync {
    /// Does what of the connection's work can be done now.
    fn work(&mut self, cx: &mut Context<'_>);

    /// The answer ended as it should: the connection may serve again.
    fn give_back(self: Box<Self>);
}

impl<B: Payload> Lent for Lease<B> {
    fn work(&mut self, cx: &mut Context<'_>) {
        self.connection.work(cx);
    }

    fn give_back(self: Box<Self>) {
        let Self { mut connection, way, upload, pool, .. } = *self;
        // What the end of the answer leaves to be done.
        connection.work_once();
        // An answer that came early leaves an upload behind that nobody wants: the connection is of no more use.
        if upload.ended() && !connection.sender.is_closed() && !connection.wire.read_ended() {
            connection.wire.expect_answer(false);
            pool.put(way, connection);
        }
    }
}

/// How far a request's body has come.
#[derive(Debug, Default)]
pub(super) struct UploadState {
    ended: AtomicBool,
    broke: AtomicBool,
}

impl UploadState {
    pub(super) fn ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    pub(super) fn broke(&self) -> bool {
        self.broke.load(Ordering::SeqCst)
    }
}

/// A request's body on its way.
pub(super) struct Upload<B> {
    inner: B,
    state: Arc<UploadState>,
}

impl<B: Payload> Upload<B> {
    pub(super) fn new(inner: B, state: Arc<UploadState>) -> Self {
        let upload = Self { inner, state };
        upload.look_for_end();
        upload
    }

    pub(super) fn into_inner(self) -> B {
        self.inner
    }

    pub(super) fn state(&self) -> Arc<UploadState> {
        Arc::clone(&self.state)
    }

    fn look_for_end(&self) {
        if self.inner.is_end_stream() {
            self.state.ended.store(true, Ordering::SeqCst);
        }
    }
}

impl<B: Payload> Body for Upload<B> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        match &polled {
            Poll::Ready(None) => self.state.ended.store(true, Ordering::SeqCst),
            Poll::Ready(Some(Err(_))) => self.state.broke.store(true, Ordering::SeqCst),
            Poll::Ready(Some(Ok(_))) => self.look_for_end(),
            Poll::Pending => {}
        }
        polled.map(|frame| frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
