//! A connection of HTTP/1.1 and its loan to one request. A connection that is dropped is closed at once, whatever it was doing:
//! that is how a client that leaves ends the upstream's work.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::SendRequest;
use relay_core::Moment;
use tokio::task::JoinHandle;

use super::pool::Pool;
use super::wire::Wire;
use super::{BoxError, Payload, Way};

/// A connection; dropping it closes it.
pub(super) struct Connection<B> {
    pub(super) sender: SendRequest<Upload<B>>,
    pub(super) wire: Arc<Wire>,
    /// Since when it carries nothing; only the pool reads it.
    pub(super) idle_since: Moment,
    task: Option<JoinHandle<()>>,
}

impl<B> Connection<B> {
    pub(super) fn new(sender: SendRequest<Upload<B>>, task: JoinHandle<()>, wire: Arc<Wire>) -> Self {
        Self { sender, wire, idle_since: Moment::ZERO, task: Some(task) }
    }

    /// Closes it and waits until it can neither read nor write any more.
    pub(super) async fn stop(mut self) -> Arc<Wire> {
        if let Some(task) = self.task.take() {
            task.abort();
            // Cancelled, or ended before: both are what was asked for.
            drop(task.await);
        }
        Arc::clone(&self.wire)
    }

    /// Leaves it to its own task: it was upgraded.
    pub(super) fn let_go(mut self) {
        self.task = None;
    }
}

impl<B> Drop for Connection<B> {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
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

    pub(super) fn begin(
        &mut self,
        request: Request<Upload<B>>,
    ) -> impl Future<Output = Result<Response<Incoming>, TrySendError<Request<Upload<B>>>>> {
        self.connection.wire.expect_answer(true);
        self.connection.sender.try_send_request(request)
    }

    pub(super) fn into_connection(self) -> Connection<B> {
        self.connection
    }
}

/// What the end of an answer needs to know of the lease that carried it.
pub(super) trait Lent: Send + Sync {
    /// The answer ended as it should: the connection may serve again.
    fn give_back(self: Box<Self>);
}

impl<B: Payload> Lent for Lease<B> {
    fn give_back(self: Box<Self>) {
        let Self { connection, way, upload, pool, .. } = *self;
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
