//! A request: its body, kept as far as there is room, and what the core has to know of it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method, Request, header};
use http_body::{Body, Frame, SizeHint};
use relay_core::client::Client;
use relay_core::dialect::{Route, model_of, route};
use relay_core::event::{Labels, Transport};
use relay_core::evidence::{Nature, Operation};
use relay_core::failure::{id, label};
use relay_core::json::{Peek, peek};
use relay_core::preamble::{Asked, Hold};

use crate::pieces::Pieces;

/// Which send of a call a request is: among the extensions of each request that the service inside gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThisSend {
    /// Its number within the call, from 1.
    pub number: u32,
    /// The connection of the one before was lost: others of its pool may be as dead.
    pub fresh: bool,
}

/// The room for the bodies of all calls together.
#[derive(Debug)]
pub(crate) struct Room {
    most: usize,
    taken: AtomicUsize,
}

impl Room {
    pub(crate) const fn new(most: usize) -> Self {
        Self { most, taken: AtomicUsize::new(0) }
    }
}

/// What one body takes of the room, until it is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    room: Arc<Room>,
    bytes: usize,
}

impl Claim {
    fn grow(&mut self, by: usize) -> bool {
        let fits = |taken: usize| taken.checked_add(by).filter(|taken| *taken <= self.room.most);
        let grown = self.room.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok();
        self.bytes += if grown { by } else { 0 };
        grown
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.room.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A whole body.
#[derive(Debug, Clone, Default)]
struct Kept {
    data: Bytes,
    trailers: Option<HeaderMap>,
}

/// The body of one send: the kept one, or one that was too large to be kept and passes as it comes.
#[derive(Debug)]
pub struct SendBody<B>(Sending<B>);

#[derive(Debug)]
enum Sending<B> {
    Kept(Kept),
    Passing(Begun, Pin<Box<B>>),
}

/// What was read of a body before it was too much, with its room until it is sent.
#[derive(Debug)]
struct Begun {
    pieces: Pieces,
    claim: Option<Claim>,
}

impl Begun {
    fn pop(&mut self) -> Option<Bytes> {
        let first = self.pieces.pop();
        if self.pieces.len() == 0 {
            self.claim = None;
        }
        first
    }

    const fn len(&self) -> usize {
        self.pieces.len()
    }
}

impl<B: Body<Data = Bytes>> Body for SendBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match &mut self.0 {
            Sending::Kept(kept) if !kept.data.is_empty() => {
                Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut kept.data)))))
            }
            Sending::Kept(kept) => Poll::Ready(kept.trailers.take().map(|it| Ok(Frame::trailers(it)))),
            Sending::Passing(begun, rest) => match begun.pop() {
                Some(data) => Poll::Ready(Some(Ok(Frame::data(data)))),
                None => rest.as_mut().poll_frame(cx),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Sending::Kept(kept) => kept.data.is_empty() && kept.trailers.is_none(),
            Sending::Passing(begun, rest) => begun.len() == 0 && rest.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Sending::Kept(kept) => SizeHint::with_exact(kept.data.len() as u64),
            Sending::Passing(begun, rest) => with_held(begun.len(), &rest.size_hint()),
        }
    }
}

/// The size of a body of which so much is held.
pub(crate) fn with_held(held: usize, rest: &SizeHint) -> SizeHint {
    let held = held as u64;
    let mut hint = SizeHint::new();
    hint.set_lower(rest.lower().saturating_add(held));
    if let Some(upper) = rest.upper().and_then(|upper| upper.checked_add(held)) {
        hint.set_upper(upper);
    }
    hint
}

/// A body as it was taken in.
pub(crate) enum Taken<B> {
    Kept(Whole),
    Passing(SendBody<B>),
}

/// A body that can be sent as often as is right.
pub(crate) struct Whole {
    kept: Kept,
    _claim: Claim,
}

/// Reads a body. One that is larger than `each`, or finds no room, is not read to its end.
///
/// # Errors
/// That of the body.
pub(crate) async fn take_in<B: Body<Data = Bytes>>(
    body: B,
    each: usize,
    room: &Arc<Room>,
) -> Result<Taken<B>, B::Error> {
    let mut claim = Claim { room: Arc::clone(room), bytes: 0 };
    if body.is_end_stream() {
        return Ok(Taken::Kept(Whole { kept: Kept::default(), _claim: claim }));
    }
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let mut body = Box::pin(body);
    let mut pieces = Pieces::default();
    let passing = |pieces, claim, body| {
        let begun = Begun { pieces, claim: Some(claim) };
        Ok(Taken::Passing(SendBody(Sending::Passing(begun, body))))
    };
    if announced > each {
        return passing(pieces, claim, body);
    }
    let mut trailers = None;
    while let Some(frame) = std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        match frame?.into_data() {
            Ok(data) => {
                let fits = data.len() <= each - pieces.len() && claim.grow(data.len());
                pieces.push(data);
                if !fits {
                    return passing(pieces, claim, body);
                }
            }
            Err(frame) => trailers = frame.into_trailers().ok().or(trailers),
        }
    }
    let kept = Kept { data: pieces.into_one(), trailers };
    Ok(Taken::Kept(Whole { kept, _claim: claim }))
}

/// What is sent, as often as it is sent.
pub(crate) struct Order<B> {
    parts: Parts,
    body: Source<B>,
}

enum Source<B> {
    Kept(Whole),
    /// Until its one send has taken it.
    Passing(Option<SendBody<B>>),
}

impl<B> Order<B> {
    pub(crate) fn new(parts: Parts, body: Taken<B>) -> Self {
        let body = match body {
            Taken::Kept(whole) => Source::Kept(whole),
            Taken::Passing(body) => Source::Passing(Some(body)),
        };
        Self { parts, body }
    }

    /// The request of one send; `None`: its body has gone with an earlier one.
    pub(crate) fn request(&mut self, send: ThisSend) -> Option<Request<SendBody<B>>> {
        let body = match &mut self.body {
            Source::Kept(whole) => SendBody(Sending::Kept(whole.kept.clone())),
            Source::Passing(body) => body.take()?,
        };
        let mut request = Request::from_parts(self.parts.clone(), body);
        request.extensions_mut().insert(send);
        Some(request)
    }

    /// Whether the next send has all that it needs.
    pub(crate) const fn has_body(&self) -> bool {
        match &self.body {
            Source::Kept(_) => true,
            Source::Passing(body) => body.is_some(),
        }
    }

    pub(crate) const fn method(&self) -> &Method {
        &self.parts.method
    }

    /// The bytes that are kept.
    pub(crate) fn kept(&self) -> Option<&Bytes> {
        match &self.body {
            Source::Kept(whole) => Some(&whole.kept.data),
            Source::Passing(_) => None,
        }
    }

    /// Who is asked, for messages.
    pub(crate) fn who(&self) -> Box<str> {
        let of_header = || self.parts.headers.get(header::HOST)?.to_str().ok();
        let of_uri = self.parts.uri.authority().map(|it| it.as_str().rsplit('@').next().unwrap_or_default());
        of_uri.or_else(of_header).map_or_else(|| "upstream".into(), label)
    }
}

/// What was understood of a request.
pub(crate) struct Understood {
    route: Route,
    peeked: Option<Peek>,
    pub(crate) nature: Nature,
}

impl Understood {
    /// Reads a request. An encoded body is not: it counts as one that is not self-contained.
    pub(crate) fn of<B>(order: &Order<B>) -> Self {
        let Parts { method, uri, headers, .. } = &order.parts;
        let route = route(method, uri.path());
        let is_read = *method == Method::POST && is_plain(headers);
        let mut peeked = order.kept().filter(|_| is_read).and_then(|body| peek(body));
        if let Some(model) = model_of(uri.path()) {
            peeked.get_or_insert_default().model = Some(model.to_owned());
        }
        let self_contained = peeked.as_ref().is_some_and(Peek::is_self_contained);
        let nature = Nature { operation: route.operation, self_contained, kept: order.kept().is_some() };
        Self { route, peeked, nature }
    }

    /// What the listener of its answers has to know.
    pub(crate) fn asked(&self, hold: Hold) -> Asked {
        Asked {
            dialect: self.route.dialect,
            generation: self.route.operation == Operation::Generation,
            streams: self.route.streams(self.peeked.as_ref().and_then(|body| body.stream)),
            hold,
            // What makes a client resume is known of clients, and this is none: nothing is withheld.
            withhold: &[],
        }
    }

    /// The names of its call.
    pub(crate) fn labels<B>(&self, order: &Order<B>, profile: &str) -> Labels {
        let headers = &order.parts.headers;
        let given = ["x-client-request-id", "x-request-id"].iter().find_map(|name| headers.get(*name));
        Labels {
            client: Client::of(headers).kind.name(),
            dialect: self.route.dialect.name(),
            operation: self.route.operation,
            transport: Transport::Http,
            upstream: order.who(),
            model: self.peeked.as_ref().and_then(|body| body.model.as_deref()).map(label),
            profile: profile.into(),
            // Each call waits by itself.
            lane: Box::default(),
            request_id: given.and_then(|given| given.to_str().ok()).map(id),
            pool: None,
            bound: None,
            trace: None,
        }
    }
}

/// Whether a body is as its `content-encoding` says it is without one.
pub(crate) fn is_plain(headers: &HeaderMap) -> bool {
    headers.get_all(header::CONTENT_ENCODING).iter().all(|named| {
        let named = named.as_bytes().trim_ascii();
        named.is_empty() || named.eq_ignore_ascii_case(b"identity")
    })
}
