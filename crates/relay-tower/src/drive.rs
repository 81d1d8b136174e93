//! The loop of one call: ask the core what to do, do that one thing, tell what came of it.

use std::fmt::Display;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use relay_core::call::{Call, Ending, Plan, Step, Waiting};
use relay_core::event::{Event, Inherited, Outcome};
use relay_core::evidence::Evidence;
use relay_core::failure::{Failure, id};
use relay_core::fault::Fault;
use relay_core::preamble::Asked;
use relay_core::{Profile, SeededDice};
use tower_service::Service;

use crate::answer::{Answer, Heard, no_answer};
use crate::body::{SteadyBody, Watch};
use crate::clock::{Clock, dice, wall_ms};
use crate::layer::{Options, name_of};
use crate::open::Open;
use crate::request::{Order, SendBody, ThisSend, Understood, take_in};
use crate::told::{BoxError, Ended, Error};

/// One call on its way.
pub(crate) struct Drive<S, B> {
    service: S,
    /// Its `poll_ready` has said so, and nothing was sent since.
    is_ready: bool,
    options: Arc<Options>,
    order: Order<B>,
    asked: Asked,
    open: Open,
    clock: Clock,
    dice: SeededDice,
    /// The last error of the service.
    error: Option<BoxError>,
}

enum Sent<R: Body> {
    Served(Answer<R>),
    /// It failed; the answer that told of it, if one did.
    Failed(Failure, Option<Answer<R>>),
}

impl<S, B, R> Drive<S, B>
where
    S: Service<Request<SendBody<B>>, Response = Response<R>>,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
    R: Body<Data = Bytes>,
    R::Error: Display,
{
    /// Takes a request in. `service` is ready.
    pub(crate) async fn begin(service: S, options: Arc<Options>, request: Request<B>) -> Result<Self, Error> {
        let (parts, body) = request.into_parts();
        let own = parts.extensions.get::<Profile>().cloned();
        let body = take_in(body, options.keep, &options.room)
            .await
            .map_err(|error| Error::RequestBody(error.into()))?;
        let order = Order::new(parts, body);
        let understood = Understood::of(&order);
        let profile_name = own.as_ref().map_or_else(|| options.profile_name.clone(), name_of);
        let profile = own.unwrap_or_else(|| options.profile.clone());
        let plan = Plan::alone(profile, understood.nature);
        // What came before was its own upload.
        let clock = Clock::start();
        let call = Call::new(plan, clock.now());
        let received = order.kept().map_or(0, |kept| kept.len() as u64);
        let open = Open::new((options.next_call(), options.observer.clone()), call, clock, received);
        if open.is_observed() {
            let labels = Arc::new(understood.labels(&order, &profile_name));
            open.emit(&Event::CallOpened { labels, inherited: Inherited::default(), wall: wall_ms() });
        }
        let asked = understood.asked(options.hold);
        Ok(Self { service, is_ready: true, options, order, asked, open, clock, dice: dice(), error: None })
    }

    /// Carries the call to its end. Whoever drops it has left.
    pub(crate) async fn run(mut self) -> Result<Response<SteadyBody<R>>, Error> {
        let mut told: Option<Answer<R>> = None;
        loop {
            let step = self.open.call().next(self.clock.now());
            self.open.tell();
            match step {
                Step::Wait(waiting) => self.wait(waiting, told.take()).await,
                Step::Send { number, fresh } => match self.send(ThisSend { number, fresh }).await? {
                    Sent::Served(answer) => {
                        self.open.call().committed();
                        self.open.tell();
                        return Ok(self.reply(answer, Outcome::Served));
                    }
                    Sent::Failed(failure, answer) => {
                        told = answer;
                        self.open.call().failed(failure, self.clock.now(), &mut self.dice);
                        self.open.tell();
                    }
                },
                Step::End(ending) => return self.finish(ending, told),
            }
        }
    }

    /// Each call waits by itself, for as long as it is to.
    async fn wait(&mut self, waiting: Waiting, told: Option<Answer<R>>) {
        if let Some(until) = waiting.not_before {
            if let Some(mut answer) = told {
                let _is_drained = self.clock.by(Some(until), answer.drain(&self.clock)).await;
            }
            self.clock.sleep_until(until).await;
        }
        self.open.call().granted(self.clock.now());
    }

    async fn send(&mut self, send: ThisSend) -> Result<Sent<R>, Error> {
        self.error = None;
        if !std::mem::take(&mut self.is_ready) {
            let ready = std::future::poll_fn(|cx| self.service.poll_ready(cx)).await;
            if let Err(error) = ready {
                // It takes no requests any more, so that there is nothing to wait for.
                self.open.close(Outcome::GaveUp);
                return Err(Error::NotReady(error.into()));
            }
        }
        let sent = self.clock.now();
        let Some(request) = self.order.request(send) else { return Ok(Sent::Failed(lost(), None)) };
        let by = self.options.first_byte.map(|within| sent + within);
        let sending = self.service.call(request);
        let answered = self.clock.by(by, async { sending.await.map_err(Into::<BoxError>::into) }).await;
        Ok(match answered {
            Some(Ok(response)) => self.listen(response, sent).await,
            Some(Err(error)) => Sent::Failed(self.unsent(error), None),
            None => Sent::Failed(silent("no answer within", self.clock.now().since(sent)), None),
        })
    }

    /// What an error of the service means.
    fn unsent(&mut self, error: BoxError) -> Failure {
        let proves = (self.options.nothing_sent)(&*error);
        // Without its body it cannot be sent again, whatever is proven.
        let failure = if proves && self.order.has_body() {
            Failure::of_transport(Fault::NeverSent, Evidence::NeverSent)
        } else {
            lost()
        };
        let failure = failure.saying(chain(&*error));
        self.error = Some(error);
        failure
    }

    async fn listen(&mut self, response: Response<R>, sent: relay_core::Moment) -> Sent<R> {
        let request_id = ["x-request-id", "request-id"].iter().find_map(|name| {
            let given = response.headers().get(*name)?.to_str().ok()?;
            Some(id(given))
        });
        self.open.call().head_arrived(response.status().as_u16(), request_id);
        self.open.tell();
        let about = (self.asked, &self.options.rules);
        let mut answer = Answer::new(response, (self.order.method(), sent), about, &self.clock);
        match answer.listen(&self.clock, self.options.idle).await {
            Heard::Passes => Sent::Served(answer),
            Heard::Failed(failure) => Sent::Failed(*failure, Some(answer)),
            Heard::Silent => Sent::Failed(silent("silent for", self.options.idle), None),
        }
    }

    /// Hands an answer on as it is.
    fn reply(self, answer: Answer<R>, outcome: Outcome) -> Response<SteadyBody<R>> {
        let mut open = self.open;
        let Answer { mut head, held, trailers, rest, broke, preamble, .. } = answer;
        head.extensions.insert(open.summary(outcome));
        open.answers(head.status.as_u16());
        // Nobody asks how it ends: then nobody listens.
        let preamble = (outcome == Outcome::Served).then_some(preamble);
        let watch = open.is_observed().then(|| Box::new(Watch { open, preamble, outcome }));
        Response::from_parts(head, SteadyBody::new((held, trailers), (rest, broke), watch))
    }

    fn finish(mut self, ending: Ending, told: Option<Answer<R>>) -> Result<Response<SteadyBody<R>>, Error> {
        let outcome = ending.outcome();
        if let Some(answer) = told {
            return Ok(self.reply(answer, outcome));
        }
        let summary = self.open.summary(outcome);
        self.open.close(outcome);
        let (who, lang, source) = (self.order.who(), self.options.lang, self.error);
        Err(Error::Ended(Box::new(Ended { ending, summary, who, lang, source })))
    }
}

/// A send of which nothing is known but that it got no answer.
fn lost() -> Failure {
    Failure::of_transport(Fault::BrokenStream, Evidence::MaybeRan)
}

fn silent(what: &str, within: std::time::Duration) -> Failure {
    no_answer(format!("{what} {:.0} s", within.as_secs_f64()))
}

/// An error with its causes, each told once.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !words.contains(&more) {
            words.push_str(": ");
            words.push_str(&more);
        }
        cause = error.source();
    }
    words
}
