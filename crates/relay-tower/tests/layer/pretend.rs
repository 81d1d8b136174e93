//! A service that answers as a test says, in virtual time, and remembers what it was sent.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt as _, Full};
use steady_relay_tower::relay_core::event::{CallId, Event};
use steady_relay_tower::relay_core::{Curve, Profile};
use steady_relay_tower::{Error, SendBody, Steady, SteadyBody, SteadyLayer, ThisSend};
use tokio::time::{Instant, Sleep, sleep};
use tower::{Layer as _, Service, ServiceExt as _};

/// What a body does next.
#[derive(Debug, Clone)]
pub(crate) enum Beat {
    Piece(Bytes),
    Pause(Duration),
    Trailers,
    Break,
}

/// A piece with these words.
pub(crate) fn piece(words: &'static str) -> Beat {
    Beat::Piece(Bytes::from_static(words.as_bytes()))
}

/// A pause of so many seconds.
pub(crate) const fn pause(seconds: u64) -> Beat {
    Beat::Pause(Duration::from_secs(seconds))
}

/// A body that plays its beats.
#[derive(Debug, Default)]
pub(crate) struct Played {
    beats: VecDeque<Beat>,
    sleep: Option<Pin<Box<Sleep>>>,
    announced: u64,
}

impl Played {
    pub(crate) fn new(beats: impl IntoIterator<Item = Beat>) -> Self {
        Self { beats: beats.into_iter().collect(), sleep: None, announced: 0 }
    }

    /// It has so many bytes, and says so.
    pub(crate) fn announcing(self, announced: u64) -> Self {
        Self { announced, ..self }
    }
}

impl Body for Played {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        loop {
            if let Some(sleep) = &mut self.sleep {
                std::task::ready!(sleep.as_mut().poll(cx));
                self.sleep = None;
            }
            return Poll::Ready(match self.beats.pop_front() {
                Some(Beat::Pause(span)) => {
                    self.sleep = Some(Box::pin(sleep(span)));
                    continue;
                }
                Some(Beat::Piece(data)) => Some(Ok(Frame::data(data))),
                Some(Beat::Trailers) => {
                    let mut trailers = HeaderMap::new();
                    trailers.insert("x-sum", HeaderValue::from_static("7"));
                    Some(Ok(Frame::trailers(trailers)))
                }
                Some(Beat::Break) => Some(Err("the cable was pulled")),
                None => None,
            });
        }
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = SizeHint::new();
        hint.set_lower(self.announced);
        hint
    }
}

/// What a send is met with.
#[derive(Debug)]
pub(crate) enum Play {
    Answer(Box<Response<Played>>),
    Error(&'static str),
    /// It is never answered.
    Silence,
}

/// An answer with these headers and beats.
pub(crate) fn answer(status: u16, headers: &[(&'static str, &str)], beats: &[Beat]) -> Play {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    Play::Answer(Box::new(response.body(Played::new(beats.iter().cloned())).expect("is an answer")))
}

pub(crate) const JSON: (&str, &str) = ("content-type", "application/json");
pub(crate) const EVENTS: (&str, &str) = ("content-type", "text/event-stream");

/// A whole answer of a model.
pub(crate) fn served() -> Play {
    answer(200, &[JSON, ("x-request-id", "req_1")], &[piece(r#"{"id":"a","output":[]}"#)])
}

/// A refusal by this status.
pub(crate) fn refused(status: u16) -> Play {
    answer(status, &[JSON], &[piece(r#"{"error":{"message":"no room"}}"#)])
}

/// What came of one send.
#[derive(Debug)]
pub(crate) struct Came {
    pub(crate) after: Duration,
    pub(crate) body: Bytes,
    pub(crate) this: ThisSend,
}

/// The service. A clone is not ready, whatever the one that it is a clone of is.
#[derive(Debug)]
pub(crate) struct Pretend {
    start: Instant,
    plays: Arc<Mutex<VecDeque<Play>>>,
    came: Arc<Mutex<Vec<Came>>>,
    is_ready: bool,
    /// It takes no requests after so many.
    breaks_after: Option<usize>,
    /// It looks at no body before that.
    holds: Duration,
}

impl Clone for Pretend {
    fn clone(&self) -> Self {
        let Self { start, plays, came, breaks_after, holds, .. } = self;
        Self {
            start: *start,
            plays: Arc::clone(plays),
            came: Arc::clone(came),
            is_ready: false,
            breaks_after: *breaks_after,
            holds: *holds,
        }
    }
}

impl Pretend {
    pub(crate) fn new(plays: impl IntoIterator<Item = Play>) -> Self {
        Self {
            start: Instant::now(),
            plays: Arc::new(Mutex::new(plays.into_iter().collect())),
            came: Arc::default(),
            is_ready: false,
            breaks_after: None,
            holds: Duration::ZERO,
        }
    }

    pub(crate) fn breaking_after(self, sends: usize) -> Self {
        Self { breaks_after: Some(sends), ..self }
    }

    pub(crate) fn holding(self, holds: Duration) -> Self {
        Self { holds, ..self }
    }

    /// What came so far.
    pub(crate) fn came(&self) -> Vec<Came> {
        std::mem::take(&mut self.came.lock().expect("nobody panicked"))
    }

    /// In milliseconds, when each send came.
    pub(crate) fn times(&self) -> Vec<u128> {
        self.came.lock().expect("nobody panicked").iter().map(|came| came.after.as_millis()).collect()
    }
}

impl<B> Service<Request<SendBody<B>>> for Pretend
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Debug,
{
    type Response = Response<Played>;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, std::io::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), std::io::Error>> {
        let sends = self.came.lock().expect("nobody panicked").len();
        if self.breaks_after.is_some_and(|most| sends >= most) {
            return Poll::Ready(Err(std::io::Error::other("worn out")));
        }
        self.is_ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<SendBody<B>>) -> Self::Future {
        assert!(
            std::mem::take(&mut self.is_ready),
            "a service is asked whether it is ready before each call"
        );
        let Self { start, plays, came, holds, .. } = self.clone();
        Box::pin(async move {
            let after = start.elapsed();
            let this = *request.extensions().get::<ThisSend>().expect("each send says which it is");
            sleep(holds).await;
            let body = request.into_body().collect().await.expect("a body that is sent is whole").to_bytes();
            came.lock().expect("nobody panicked").push(Came { after, body, this });
            let play = plays.lock().expect("nobody panicked").pop_front().expect("no more than was played");
            match play {
                Play::Answer(response) => Ok(*response),
                Play::Error(words) => Err(std::io::Error::other(words)),
                Play::Silence => std::future::pending().await,
            }
        })
    }
}

/// Interactive, and chance adds nothing.
pub(crate) fn exact() -> Profile {
    let plain = |curve: Curve| Curve { jitter: Duration::ZERO, ..curve };
    let profile = Profile::interactive();
    Profile {
        curve: plain(profile.curve),
        overloaded: plain(profile.overloaded),
        never_sent: plain(profile.never_sent),
        ..profile
    }
}

/// A request for an answer of a model that has all it needs.
pub(crate) fn asks() -> Request<Full<Bytes>> {
    asks_with(r#"{"model":"m","input":"hello"}"#)
}

/// One with this body.
pub(crate) fn asks_with(body: &'static str) -> Request<Full<Bytes>> {
    Request::post("http://llm.example/v1/responses")
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::from(body))
        .expect("is a request")
}

pub(crate) type Got = Result<Response<SteadyBody<Played>>, Error>;

/// Sends one request.
pub(crate) async fn send(layer: &SteadyLayer, service: &Pretend, request: Request<Full<Bytes>>) -> Got {
    let steady: Steady<Pretend> = layer.layer(service.clone());
    steady.oneshot(request).await
}

/// The whole body of an answer.
pub(crate) async fn text(response: Response<SteadyBody<Played>>) -> String {
    let bytes = response.into_body().collect().await.expect("the answer is whole").to_bytes();
    String::from_utf8(bytes.to_vec()).expect("is text")
}

/// What was observed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Observed(Arc<Mutex<Vec<(CallId, Event)>>>);

impl Observed {
    pub(crate) fn by(&self, layer: SteadyLayer) -> SteadyLayer {
        let list = Arc::clone(&self.0);
        layer.observe(move |id, event| {
            list.lock().expect("nobody panicked").push((id, event.clone()));
        })
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.0.lock().expect("nobody panicked").iter().map(|(_, event)| event.clone()).collect()
    }

    /// The names of what happened, in order, and how each call ended.
    pub(crate) fn story(&self) -> String {
        let told = |event: &Event| match event {
            Event::CallOpened { labels, .. } => format!("opened {}", labels.dialect),
            Event::SendStarted { send } => format!("send {send}"),
            Event::HeadArrived { status, .. } => format!("head {status}"),
            Event::FaultSeen { fault, .. } => fault.name().to_owned(),
            Event::WaitStarted { wait, .. } => format!("wait {} s", wait.as_secs_f64()),
            Event::GrantTaken { .. } => "grant".to_owned(),
            Event::Committed { .. } => "committed".to_owned(),
            Event::CallClosed(closing) => format!("closed {}", closing.outcome.name()),
            Event::WayTaken { .. }
            | Event::InLine { .. }
            | Event::HeldBack { .. }
            | Event::NoticeGiven { .. }
            | Event::Moved { .. }
            | Event::StreamCut { .. } => format!("{event:?}"),
        };
        self.events().iter().map(told).collect::<Vec<_>>().join(", ")
    }
}
