//! What the body of a request has to be so that it can be sent.

use bytes::Bytes;
use http::Request;
use http_body_util::{Empty, Full};
use hyper::body::Body;

/// An error of any kind, as hyper takes it from a body.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A request body that can be sent.
pub trait Payload: Body<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static {
    /// The same once more, where it is at hand: for another way, if a proxy refuses it on this one.
    fn again(&self) -> Option<Self>
    where
        Self: Sized;
}

impl Payload for Empty<Bytes> {
    fn again(&self) -> Option<Self> {
        Some(Self::new())
    }
}

impl Payload for Full<Bytes> {
    fn again(&self) -> Option<Self> {
        Some(self.clone())
    }
}

/// The same request once more, where its body is at hand. Boxed, since it is there as long as the other is under way.
pub(super) fn spare<B: Payload>(request: &Request<B>) -> Option<Box<Request<B>>> {
    let mut spare = Request::new(request.body().again()?);
    spare.method_mut().clone_from(request.method());
    spare.uri_mut().clone_from(request.uri());
    *spare.version_mut() = request.version();
    spare.headers_mut().clone_from(request.headers());
    spare.extensions_mut().clone_from(request.extensions());
    Some(Box::new(spare))
}
