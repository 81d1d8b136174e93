//! The layer and the service: what can be chosen, and where a call begins.

use std::error::Error as StdError;
use std::fmt::{self, Display};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use relay_core::config::{self, Bodies, Timeouts, shipped_profiles};
use relay_core::dialect::Rule;
use relay_core::event::{CallId, Event};
use relay_core::preamble::Hold;
use relay_core::{Lang, Profile};
use tower_layer::Layer;
use tower_service::Service;

use crate::body::SteadyBody;
use crate::drive::Drive;
use crate::open::Observer;
use crate::request::{Room, SendBody};
use crate::told::{BoxError, Error};

/// Says of an error of the service inside whether nothing of the request can have left.
pub(crate) type NothingSent = Arc<dyn Fn(&(dyn StdError + 'static)) -> bool + Send + Sync>;

/// What was chosen.
#[derive(Clone)]
pub(crate) struct Options {
    pub(crate) profile: Profile,
    pub(crate) profile_name: Box<str>,
    pub(crate) keep: usize,
    pub(crate) hold: Hold,
    pub(crate) first_byte: Option<Duration>,
    pub(crate) idle: Duration,
    pub(crate) rules: Arc<[Arc<Rule>]>,
    pub(crate) lang: Lang,
    pub(crate) nothing_sent: NothingSent,
    pub(crate) observer: Option<Observer>,
    pub(crate) room: Arc<Room>,
    calls: Arc<AtomicU64>,
}

impl Options {
    pub(crate) fn next_call(&self) -> CallId {
        CallId(self.calls.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// The name of a profile that ships.
pub(crate) fn name_of(profile: &Profile) -> Box<str> {
    let shipped = shipped_profiles().into_iter().find(|(_, shipped)| shipped == profile);
    shipped.map_or_else(|| "own".into(), |(name, _)| name.into())
}

/// Puts [`Steady`] around a service that sends requests to a model service. Clones share their limits and the numbers
/// of their calls.
#[derive(Clone)]
pub struct SteadyLayer {
    options: Options,
}

impl SteadyLayer {
    /// A layer that tries as hard as this profile says. Its gate is left out, since each call waits by itself here; so
    /// [`Profile::sends`] holds, and not what a gate would allow. A request that has a [`Profile`] among its extensions
    /// goes by that one.
    #[must_use]
    pub fn new(profile: Profile) -> Self {
        let (timeouts, bodies, hold) = (Timeouts::default(), Bodies::default(), config::Hold::default());
        let in_memory = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        Self {
            options: Options {
                profile_name: name_of(&profile),
                profile,
                keep: in_memory(bodies.each),
                hold: Hold { bytes: in_memory(hold.bytes), time: Some(hold.time) },
                first_byte: Some(timeouts.first_byte_unknown),
                idle: timeouts.idle,
                rules: Arc::default(),
                lang: Lang::English,
                nothing_sent: Arc::new(|_| false),
                observer: None,
                room: Arc::new(Room::new(in_memory(bodies.total))),
                calls: Arc::default(),
            },
        }
    }

    /// The most bytes that are kept of one request's body, and of all together: 128 MiB and 1 GiB. A body that is larger,
    /// or comes when there is no room, passes as it comes, and its request is sent once, whatever it is answered.
    #[must_use]
    pub fn keep(mut self, each: usize, in_all: usize) -> Self {
        self.options.keep = each;
        self.options.room = Arc::new(Room::new(in_all));
        self
    }

    /// How much of an answer's beginning is held, and for how long after its head, until it is clear what it is:
    /// 256 KiB and 20 s. At the limit it is handed on, and what it tells of later is the caller's business.
    #[must_use]
    pub const fn hold(mut self, hold: Hold) -> Self {
        self.options.hold = hold;
        self
    }

    /// How long one send may go without the head of an answer: 15 minutes; `None`: for ever. What this ends is probably
    /// still running, and is not sent again.
    #[must_use]
    pub const fn first_byte(mut self, within: Option<Duration>) -> Self {
        self.options.first_byte = within;
        self
    }

    /// How long an answer may be silent while it is held: 300 s. After that it is the caller's to watch.
    #[must_use]
    pub const fn idle(mut self, within: Duration) -> Self {
        self.options.idle = within;
        self
    }

    /// Rules of one's own, which come before all others: which answer means what.
    #[must_use]
    pub fn rules(mut self, rules: impl IntoIterator<Item = Rule>) -> Self {
        self.options.rules = rules.into_iter().map(Arc::new).collect();
        self
    }

    /// The language of what the layer says itself: English.
    #[must_use]
    pub const fn lang(mut self, lang: Lang) -> Self {
        self.options.lang = lang;
        self
    }

    /// Which errors of the service inside prove that nothing of the request has left: such a request is sent again freely.
    /// By default none does. Every error then counts as one of a request that may have run, which is sent again only by
    /// one of the profile's `ambiguous_resends`, and only where it carries all that it needs.
    #[must_use]
    pub fn nothing_sent(
        mut self,
        proves: impl Fn(&(dyn StdError + 'static)) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.options.nothing_sent = Arc::new(proves);
        self
    }

    /// Who hears what happens, as it happens. It returns at once: the call goes on when it does.
    #[must_use]
    pub fn observe(mut self, observer: impl Fn(CallId, &Event) + Send + Sync + 'static) -> Self {
        self.options.observer = Some(Arc::new(observer));
        self
    }
}

impl fmt::Debug for SteadyLayer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options { profile_name, keep, hold, first_byte, idle, .. } = &self.options;
        out.debug_struct("SteadyLayer")
            .field("profile", profile_name)
            .field("keep", keep)
            .field("hold", hold)
            .field("first_byte", first_byte)
            .field("idle", idle)
            .finish_non_exhaustive()
    }
}

impl<S> Layer<S> for SteadyLayer {
    type Service = Steady<S>;

    fn layer(&self, inner: S) -> Steady<S> {
        Steady { inner, options: Arc::new(self.options.clone()) }
    }
}

/// A service whose requests wait and are sent again where that is right.
#[derive(Clone)]
pub struct Steady<S> {
    inner: S,
    options: Arc<Options>,
}

impl<S: fmt::Debug> fmt::Debug for Steady<S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Steady").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<S, B, R> Service<Request<B>> for Steady<S>
where
    S: Service<Request<SendBody<B>>, Response = Response<R>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError> + Send,
    R: Body<Data = Bytes> + Send + 'static,
    R::Error: Display + Send,
{
    type Response = Response<SteadyBody<R>>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_ready(cx).map_err(|error| Error::NotReady(error.into()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The one that is ready goes with the call; a clone of it need not be.
        let next = self.inner.clone();
        let ready = std::mem::replace(&mut self.inner, next);
        let options = Arc::clone(&self.options);
        Box::pin(async move { Drive::begin(ready, options, request).await?.run().await })
    }
}
