//! The loop of one call: ask the core what to do, do that one thing, tell what came of it.

mod credential;

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use http::{Extensions, HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use relay_core::answer::{EVENT_STREAM, Listener, Own, Say, Touch, Tried, say};
use relay_core::call::{Ending, Step, Stop, Waiting, Why};
use relay_core::client::{Client, Kind};
use relay_core::event::{Left, Outcome};
use relay_core::failure::{Bar, Failure};
use relay_core::moment::Moment;
use relay_core::preamble::{Asked, Head, Preamble, Verdict};
use relay_core::retry_after::Advice;
use relay_core::{Evidence, Fault, notice};

use crate::answer::Answer;
use crate::body::{Passing, SendBody};
use crate::call_report::By;
use crate::clock::sleep_until;
use crate::headers::{announced, forwardable_answer, forwardable_extensions};
use crate::legs::{LOOK_AGAIN, Legs, Next};
use crate::open::{OpenCall, Waited};
use crate::parked::park;
use crate::quota::{Speech, Spent};
use crate::reply::{Abort, ReplyBody, in_our_words};
use crate::request_ids;
use crate::traces;
use crate::upstream::{Ask, Cause, Proof, SendFailure};

/// What is sent, as often as it is sent.
pub(crate) struct Order {
    pub(crate) method: Method,
    pub(crate) extensions: Extensions,
    /// Where it may go, and what is sent there.
    pub(crate) legs: Legs,
    /// A body too large to keep, until its one send has taken it.
    pub(crate) passing: Option<Passing>,
    /// The answer passes as it comes, unread.
    pub(crate) untouched: bool,
}

/// One call on its way.
pub(crate) struct Drive {
    pub(crate) open: OpenCall,
    pub(crate) order: Order,
    pub(crate) asked: Asked,
    pub(crate) opened: Moment,
    /// The upstreams whose breakers are open, where that ended the call.
    pub(crate) circuits: String,
}

#[expect(
    clippy::large_enum_variant,
    reason = "the usual end of a send is the large one, and it is held once"
)]
enum Sent {
    /// The answer belongs to the client; the verdict where its end was heard already.
    Served(Answer, Option<Verdict>),
    /// It failed; the answer that told of it, if one did. Apart, since most calls have none, and what a call holds while it
    /// is under way costs all of them.
    Failed(Failure, Option<Box<Answer>>),
    /// The client's own upload broke off: whatever it would be told, it is gone.
    Left,
}

impl Drive {
    /// Carries the call to its end.
    ///
    /// # Errors
    /// Where the client's connection is to be cut.
    #[expect(
        clippy::manual_async_fn,
        reason = "an `async fn` holds what it was handed twice: as its argument, and as what it works with"
    )]
    pub(crate) fn run(mut self) -> impl Future<Output = Result<Response<ReplyBody>, Abort>> + Send {
        async move {
            let mut told: Option<Box<Answer>> = None;
            loop {
                let now = self.open.now();
                let step = self.open.call().next(now);
                self.open.emit_pending();
                match step {
                    Step::Wait(waiting) => match self.wait(waiting, told.take()).await {
                        (Waited::Turn | Waited::Over | Waited::Again, answer) => told = answer,
                        (Waited::Notice, _) => return Ok(self.notice()),
                    },
                    Step::Send { fresh, .. } => match self.send(fresh).await {
                        Sent::Served(answer, ending) => return Ok(self.serve(answer, ending)),
                        // What drops the call says that the client left.
                        Sent::Left => return Err(Abort::Broken),
                        Sent::Failed(failure, answer) => {
                            told = answer;
                            let failure = self.renewed(failure).await;
                            if self.open.call().parks(&failure).is_some() {
                                let (open, by) = (&self.open, self.speech());
                                let spent =
                                    Box::pin(Spent::told(open, by, &failure, told.as_deref_mut())).await;
                                self.open.remember(spent);
                            }
                            self.failed(failure);
                        }
                    },
                    Step::End(ending) => return self.finish(&ending, told),
                }
            }
        }
    }

    /// Waits for the call's turn where it is the next to come, and keeps what it was answered: it is told should the
    /// turn not come in time.
    async fn wait(&mut self, waiting: Waiting, told: Option<Box<Answer>>) -> (Waited, Option<Box<Answer>>) {
        let now = self.open.now();
        self.order.legs.look_for_others(self.open.shared(), self.open.body(), now);
        match self.order.legs.next(false, now) {
            Next::Stay { again } => match self.prepare() {
                Ok(()) => self.wait_in_line(&waiting, again, told).await,
                Err(lacks) => (Box::pin(self.wait_for_credential(lacks, again)).await, told),
            },
            Next::Go { leg, why } => {
                self.go(leg, why);
                (Waited::Again, told)
            }
            Next::Rest(until) => {
                if self.open.call().bears_until(until, now) {
                    self.open.call().cut_off(until, now);
                    self.open.emit_pending();
                    // A person may have the breaker ask before.
                    return (self.open.rest(pending(), until.min(now + LOOK_AGAIN)).await, told);
                }
                self.open.call().shut_out(now);
                (Waited::Again, told)
            }
        }
    }

    async fn wait_in_line(
        &mut self,
        waiting: &Waiting,
        again: Option<Moment>,
        mut told: Option<Box<Answer>>,
    ) -> (Waited, Option<Box<Answer>>) {
        let now = self.open.now();
        // All others hold for longer still: what its own lane says is the last word, unless another model may take it.
        let is_last = again.is_some() && self.order.legs.holds_until(now) >= Some(waiting.bears);
        if let (true, Some(again)) = (is_last, again)
            && let Some(others) = self.order.legs.falls_back_by(waiting.bears, now)
        {
            return (self.open.rest(pending(), others.min(again)).await, told);
        }
        let again = again.filter(|_| !is_last);
        self.order.legs.waits();
        let mut whole = false;
        let keep = async {
            if let Some(answer) = &mut told {
                whole = answer.read_rest().await;
            }
        };
        let waited = self.open.wait(waiting, again, keep).await;
        if !whole && let Some(answer) = told.take() {
            answer.recycle();
        }
        if waited == Waited::Turn {
            let is_ready = self.prepare().is_ok();
            if !(is_ready && self.open.takes_turn(self.order.legs.heed_breakers())) {
                self.open.gives_way();
            }
        }
        (waited, told)
    }

    /// Goes to another leg.
    fn go(&mut self, leg: usize, why: Left) {
        if let Some((lane, own, to)) = self.order.legs.go(leg) {
            self.open.moves(lane, own, to, why);
        }
    }

    /// A send failed: the call waits here again, goes to another leg, or is over.
    fn failed(&mut self, failure: Failure) {
        let leg = self.order.legs.leg();
        if leg.warms && failure.fault == Fault::ModelLoading {
            self.open.shared().warming.ring(&leg.target.upstream.name);
        }
        let now = self.open.now();
        self.order.legs.look_for_others(self.open.shared(), self.open.body(), now);
        let told = match failure.advice {
            Advice::Wait(told) => Some(told),
            Advice::Useless | Advice::Silent => None,
        };
        // A newer credential is for the one that refused the last.
        let renews = failure.renewed;
        let other = self.order.legs.other_in(told, now).filter(|_| !renews);
        let (report, own) = self.open.fails(failure, other);
        if !renews {
            self.order.legs.failed(own.map(|own| now + own), now);
        }
        if other.is_none() || self.open.call().waiting().is_none() {
            self.open.settles(report, true);
            return;
        }
        match self.order.legs.next(true, now) {
            Next::Stay { .. } => self.open.settles(report, true),
            Next::Go { leg, why } => {
                self.open.settles(report, false);
                self.go(leg, why);
            }
            Next::Rest(_) => self.open.settles(report, false),
        }
    }

    /// Shows the client that its call is held, upon which it asks again.
    fn notice(mut self) -> Response<ReplyBody> {
        if let Some(own) = self.order.legs.own_model() {
            // What its client asks again is the model of its own.
            self.go(own, Left::Preferred);
        }
        self.open.turned_away(self.order.legs.turned_away());
        let body = notice::event(&self.open.notice());
        park(self.open);
        in_our_words(Own { status: 200, content_type: EVENT_STREAM, body, refuse_retry: false })
    }

    async fn send(&mut self, fresh: bool) -> Sent {
        let shared = Arc::clone(self.open.shared());
        let key = match &mut self.order.legs.leg_mut().lent {
            // Rare, and large.
            Some(lent) => Box::pin(lent.key(&shared)).await.map(Some),
            None => Ok(None),
        };
        let sent = self.open.now();
        self.open.sends();
        let (key, mut ask) = match key.and_then(|key| Ok((key, self.ask(fresh)?))) {
            Ok(ready) => ready,
            Err(failure) => return Sent::Failed(*failure, None),
        };
        if let Some(key) = key {
            key.put(ask.request.headers_mut(), self.order.legs.leg().target.path_and_query.as_str());
        }
        let by = self.first_byte_by(sent);
        let open = &self.open;
        let sending = shared.upstreams.send_over(ask, |detour| open.detoured(detour));
        let answered = tokio::select! {
            answered = sending => answered,
            () = async { match by { Some(by) => sleep_until(&*shared.clock, by).await, None => pending().await } } => {
                let failure = Failure::of_transport(Fault::NoAnswer, Evidence::NoAnswer)
                    .saying(format!("no answer within {:.0} s", self.open.now().since(sent).as_secs_f64()));
                return Sent::Failed(failure, None);
            }
        };
        match answered {
            // Nobody asked to change the protocol, and what follows is no HTTP.
            Ok(response) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                Sent::Failed(unasked(), None)
            }
            Ok(response) => self.listen(response, sent).await,
            Err(failure) => self.unsent(*failure),
        }
    }

    /// The request of one send.
    fn ask(&mut self, fresh: bool) -> Result<Ask<SendBody>, Box<Failure>> {
        let order = &mut self.order;
        let body = match (order.passing.take(), self.open.body().bytes()) {
            (Some(passing), _) => SendBody::Passing(passing),
            (None, bytes) => SendBody::Kept(bytes),
        };
        let leg = order.legs.leg();
        let body = match (&leg.instead, body) {
            (Some(instead), SendBody::Kept(Some(came))) => instead.body(&came),
            (Some(_) | None, body) => body,
        };
        let upstream = &leg.target.upstream;
        let mut request = Request::new(body);
        *request.method_mut() = order.method.clone();
        *request.uri_mut() = http::Uri::from(leg.target.path_and_query.clone());
        *request.headers_mut() = HeaderMap::clone(&leg.headers);
        *request.extensions_mut() = order.extensions.clone();
        let host = upstream.host.clone().ok_or_else(|| {
            Box::new(
                Failure::of_transport(Fault::NeverSent, Evidence::NeverSent)
                    .saying("its host name cannot stand in a header"),
            )
        })?;
        request.headers_mut().insert(http::header::HOST, host);
        upstream.add_headers(request.headers_mut());
        self.open.shared().add_cookies(upstream, leg.account, request.headers_mut());
        if let Some((trace, send)) = self.open.propagates() {
            traces::put(&trace, send, request.headers_mut());
        }
        let pure = matches!(order.method, Method::GET | Method::HEAD);
        Ok(Ask { way: leg.way.clone(), request, fresh, may_reuse_stale: pure })
    }

    /// When a send without any sign of an answer ends: as configured; never for Codex, which waits for ever;
    /// else when the client would hang up.
    pub(crate) fn first_byte_by(&self, sent: Moment) -> Option<Moment> {
        let timeouts = &self.open.shared().config.timeouts;
        match (timeouts.first_byte, self.open.client()) {
            (Some(span), _) => Some(sent + span),
            (None, client) if client.kind == Kind::Codex => None,
            // Before it hangs up: a client that is told does not send again what probably still runs.
            (None, _) => Some(self.hangs_up_after(sent).unwrap_or(sent + timeouts.first_byte_unknown)),
        }
    }

    /// The moment shortly before the client hangs up. One that is still there after that bears more than is known of
    /// it, or has slept with the machine: then nothing is known.
    fn hangs_up_after(&self, now: Moment) -> Option<Moment> {
        let by = self.opened + Client::less_margin(self.open.client().head_limit()?);
        (by > now).then_some(by)
    }

    fn unsent(&mut self, failed: SendFailure<SendBody>) -> Sent {
        let SendFailure { proof, cause, detail, request, detour, .. } = failed;
        self.open.detoured(detour);
        if cause == Cause::RequestBody {
            return Sent::Left;
        }
        let mut lost = false;
        if let Some(SendBody::Passing(passing)) = request.map(Request::into_body) {
            self.order.passing = Some(passing);
        } else if self.open.body().bytes().is_none() {
            lost = true;
        }
        Sent::Failed(unsent(proof, cause, lost).saying(detail), None)
    }

    async fn listen(&mut self, response: Response<crate::upstream::AnswerBody>, sent: Moment) -> Sent {
        let shared = Arc::clone(self.open.shared());
        let (head, body) = response.into_parts();
        self.open.head_arrived(head.status, request_ids::of_answer(&head.headers));
        let leg = self.order.legs.leg();
        shared.take_cookies(&leg.target.upstream, leg.account, &head.headers);
        // An answer that could have had a body and has none is an empty one, which is something to hear.
        let bodiless = self.order.method == Method::HEAD
            || matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        let told = Head {
            status: head.status,
            headers: head.headers.clone(),
            bodiless,
            sent,
            arrived: self.open.now(),
        };
        let asked = self.asked_before(told.arrived);
        let preamble =
            Preamble::new(asked, told, shared.clock.wall()).by(Arc::clone(&self.order.legs.leg().rules));
        let mut answer = Answer::new(head, body, preamble);
        if self.order.untouched {
            answer.pass_unread();
            return Sent::Served(answer, None);
        }
        match answer.listen(&*shared.clock, self.open.idle()).await {
            Verdict::Hold => {
                answer.stop_reading();
                let failure = Failure::of_transport(Fault::NoAnswer, Evidence::NoAnswer)
                    .saying(format!("silent for {:.0} s", self.open.idle().as_secs_f64()));
                Sent::Failed(failure, None)
            }
            Verdict::Pass => Sent::Served(answer, None),
            Verdict::Fault(failure) => Sent::Failed(*failure, Some(Box::new(answer))),
            cut @ Verdict::Cut { .. } => Sent::Served(answer, Some(cut)),
        }
    }

    /// What the listener has to know: nothing is held for longer than the client waits for a head.
    fn asked_before(&self, arrived: Moment) -> Asked {
        let mut asked = self.asked;
        if let (Some(hold), Some(by)) = (asked.hold.time, self.hangs_up_after(arrived)) {
            asked.hold.time = Some(hold.min(by.since(arrived)));
        }
        asked
    }

    fn serve(mut self, mut answer: Answer, ending: Option<Verdict>) -> Response<ReplyBody> {
        self.open.answered(|| answer.head_alone());
        // An answer that nobody reads is called what its head says.
        let refused = if self.order.untouched { answer.unread() } else { None };
        let outcome = match refused {
            Some(failure) => self.open.commit_refusal(failure),
            None => {
                self.open.commit();
                self.order.legs.served(&self.open.shared().served);
                Outcome::Served
            }
        };
        self.reply(answer, outcome, ending, Touch::default())
    }

    /// The upstream's answer for the client, which says so where another model gave it.
    fn reply(
        self,
        mut answer: Answer,
        outcome: Outcome,
        ending: Option<Verdict>,
        touch: Touch,
    ) -> Response<ReplyBody> {
        let mut open = self.open;
        let mut head = take_head(&mut answer, touch);
        let instead = self.order.legs.leg().instead.as_ref();
        let first = instead.and_then(|instead| instead.mark(&mut head.headers));
        let mut length = announced(&mut head.headers);
        if let (Some(length), Some(first)) = (&mut length, &first) {
            *length += first.len() as u64;
            head.headers.insert(http::header::CONTENT_LENGTH, HeaderValue::from(*length));
        }
        open.answers(head.status.as_u16());
        open.report(outcome, By::Service, &mut head.headers);
        let body = ReplyBody::passing(answer, length, open, outcome, ending).after(first);
        Response::from_parts(head, body)
    }

    /// Where every breaker is open, the client hears which those are.
    pub(crate) fn names_circuits(&mut self, ending: &Ending) {
        if let Ending::GaveUp(Stop::CircuitsOpen, _) = ending {
            let lang = self.open.shared().config.lang.unwrap_or_default();
            self.circuits = self.order.legs.circuits(lang, self.open.now());
        }
    }

    /// Who is told how the call ended; `has_answer`: that of the upstream is at hand.
    pub(crate) fn listener(&mut self, has_answer: bool) -> Listener<'_> {
        let now = self.open.now();
        let tried = Tried {
            sends: self.open.call().sends(),
            earlier: self.open.call().earlier_sends(),
            took: now.since(self.opened),
            patience: self.open.call().patience(),
        };
        Listener {
            kind: self.open.client().kind,
            dialect: self.asked.dialect,
            generation: self.asked.generation,
            streams: self.asked.streams,
            upstream: self.order.legs.leg().target.upstream.place(),
            circuits: &self.circuits,
            tried,
            has_answer,
            reported: self.open.is_reported(),
            lang: self.open.shared().config.lang.unwrap_or_default(),
        }
    }

    /// How it asks, as far as that decides how it is answered.
    pub(crate) fn speech(&self) -> Speech {
        Speech { dialect: self.asked.dialect.name(), streams: self.asked.streams }
    }

    /// What another call of its lane was answered, where this one gets it: its own answer was not kept, or it has none.
    fn remembered(&self, ending: &Ending, has_own: bool) -> Option<Response<ReplyBody>> {
        let is_definite = matches!(ending, Ending::Passed(_) | Ending::Parked(_)) && !has_own;
        let spent = self.open.remembered().filter(|_| is_definite)?;
        spent.response(self.speech(), self.open.now())
    }

    fn finish(mut self, ending: &Ending, told: Option<Box<Answer>>) -> Result<Response<ReplyBody>, Abort> {
        let outcome = ending.outcome();
        self.names_circuits(ending);
        if let Some(answer) = &told {
            self.open.answered(|| answer.so_far());
        }
        // Where nothing is to be changed, a cut is a cut, as it would be without the relay.
        let is_cut = self.order.untouched
            && !self.open.is_reported()
            && matches!(ending, Ending::Refused(Why::MayHaveRun, _));
        let remembered = self.remembered(ending, told.is_some());
        let has_answer = told.is_some() || remembered.is_some();
        let said = if is_cut { Say::Cut } else { say(&self.listener(has_answer), ending) };
        // A connection that is cut because the relay stops tells nothing.
        let told = told.filter(|_| !matches!(ending, Ending::GaveUp(Stop::Draining, _)));
        match (said, told) {
            (Say::Upstream(touch), Some(mut answer)) => {
                answer.release();
                Ok(self.reply(*answer, outcome, None, touch))
            }
            (Say::Cut, Some(mut answer)) => {
                let mut head = take_head(&mut answer, Touch::default());
                self.open.answers(head.status.as_u16());
                self.open.close(outcome);
                // With all that it announced, it would look whole.
                head.headers.remove(http::header::CONTENT_LENGTH);
                Ok(Response::from_parts(head, ReplyBody::cutting(*answer)))
            }
            (Say::Cut | Say::Upstream(_), None) => {
                let Some(mut response) = remembered else {
                    self.open.close(outcome);
                    return Err(Abort::Cut);
                };
                self.open.answers(response.status().as_u16());
                self.open.report(outcome, By::Service, response.headers_mut());
                self.open.close(outcome);
                Ok(response)
            }
            (Say::Own(own), _) => {
                self.open.answers(own.status);
                let mut response = in_our_words(own);
                self.open.report(outcome, By::Relay, response.headers_mut());
                self.open.close(outcome);
                Ok(response)
            }
        }
    }
}

/// What a send means that got no answer; `lost`: its body is gone, and may have left.
pub(crate) fn unsent(proof: Proof, cause: Cause, lost: bool) -> Failure {
    let (fault, evidence) = match proof {
        Proof::NothingSent if !lost => (Fault::NeverSent, Evidence::NeverSent),
        Proof::NothingSent | Proof::SomethingSent => (Fault::BrokenStream, Evidence::MaybeRan),
    };
    let mut failure = Failure::of_transport(fault, evidence);
    failure.barred = match cause {
        Cause::Certificate => Some(Bar::Certificate),
        Cause::ProxyRefused => Some(Bar::Proxy),
        Cause::Dns
        | Cause::Refused
        | Cause::ConnectTimeout
        | Cause::Connect
        | Cause::TlsHandshake
        | Cause::ProxyFailed
        | Cause::HandedBack
        | Cause::Reset
        | Cause::Closed
        | Cause::Malformed
        | Cause::RequestBody => None,
    };
    failure.code = Some(cause.name().into());
    failure
}

/// An answer that is none: it changes the protocol unasked.
fn unasked() -> Failure {
    let failure = Failure::of_transport(Fault::BrokenStream, Evidence::MaybeRan);
    Failure { code: Some("malformed".into()), ..failure.saying("it changed the protocol unasked") }
}

/// The head that a client gets of an upstream's answer, which has none any more.
fn take_head(answer: &mut Answer, touch: Touch) -> http::response::Parts {
    let mut head = Response::new(()).into_parts().0;
    head.status =
        touch.status.and_then(|status| StatusCode::from_u16(status).ok()).unwrap_or(answer.head.status);
    head.headers = forwardable_answer(std::mem::take(&mut answer.head.headers));
    head.extensions = forwardable_extensions(std::mem::take(&mut answer.head.extensions));
    if touch.status.is_some() {
        // The words belong to the old status.
        head.extensions.remove::<hyper::ext::ReasonPhrase>();
    }
    if touch.refuse_retry {
        head.headers.insert("x-should-retry", HeaderValue::from_static("false"));
    }
    head
}

/// How long a client that is told of an error of ours may go on uploading.
pub(crate) const DRAIN: (usize, Duration) = (4 << 20, Duration::from_secs(2));

#[cfg(test)]
mod tests {
    use super::*;

    fn size<A, F: Future>(_: impl Fn(A) -> F) -> usize {
        size_of::<F>()
    }

    /// Each call has one of its own from its first byte to its answer, and it is copied once.
    #[test]
    fn what_carries_a_call_stays_small() {
        assert!(size(Drive::run) <= 6 * 1024, "{}", size(Drive::run));
    }
}
