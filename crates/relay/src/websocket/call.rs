//! One `response.create`: a call like any other, whose answer is messages.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use relay_core::answer::{SayMessage, say_in_message};
use relay_core::call::{Ending, Step, Stop, Waiting};
use relay_core::dialect::responses_socket::{answer_of, fault_of_close, is_used_up, wants_full_input, wrap};
use relay_core::event::{Outcome, Transport};
use relay_core::failure::{Bar, Failure};
use relay_core::moment::Moment;
use relay_core::preamble::{Preamble, Verdict};
use relay_core::{Evidence, Fault, notice};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Bytes, Utf8Bytes};

use super::HANDSHAKE;
use super::client::First;
use super::leg::{End, Got, Said, next_of};
use super::session::{Parting, Session};
use super::upgrade::{Limits, Unopened, open};
use crate::body::Place;
use crate::clock::{IdleLimit, sleep_until};
use crate::credentials::Lacks;
use crate::drive::Drive;
use crate::open::Waited;
use crate::parked::park;
use crate::quota::Spent;
use crate::shared::Shared;
use crate::snapshots::Answered;
use crate::understand::{Came, Understood};

/// Of what a failed send was answered this much is kept while its call waits; what is longer is told in our words.
const TOLD: usize = 64 * 1024;

/// How a wait went on.
enum Wait {
    Over,
    /// What the call goes on from was lost meanwhile.
    Lost,
    /// The client is to be shown that it goes on.
    Notice,
}

/// Of what looks like one more word of the answer that failed before, and is all that comes for so long, nobody can say
/// that it is not the answer: some services give every answer the same name.
const OF_THE_LAST: Duration = Duration::from_secs(30);

/// What came of a send.
enum Sent {
    /// The answer belongs to the client: what was held of it, and its listener.
    Served(Vec<Said>, Box<Preamble>),
    /// It failed; the messages that told of it.
    Failed(Box<Failure>, Vec<Said>),
    /// The service wants all of the input, which only the client has; the messages that told of it.
    WantsFullInput(Box<Failure>, Vec<Said>),
    /// The upstream speaks no WebSocket after all.
    Unspoken,
}

struct Call<'s> {
    session: &'s mut Session,
    shared: Arc<Shared>,
    drive: Drive,
    text: Utf8Bytes,
    /// It goes on from an answer that only the connection knows which it was made on.
    goes_on: bool,
    /// How the upstream's side ended, where it did.
    end: Option<End>,
    /// The answer that failed, by its name: the service may say more of it.
    failed: Option<String>,
}

/// Serves a request of the session to its end.
///
/// # Errors
/// Where the session ends with it.
pub(super) async fn serve(
    session: &mut Session,
    shared: &Arc<Shared>,
    text: Utf8Bytes,
    place: Option<Place>,
) -> Result<(), Parting> {
    let opened = shared.clock.now();
    let bytes = Bytes::clone(text.as_ref());
    let is_kept = bytes.len() as u64 <= shared.config.bodies.each;
    let came = Came {
        body: Some(&bytes),
        kept: is_kept,
        transport: Transport::WebSocket,
        at: opened,
        refused: session.refused.clone(),
    };
    let wanted = &session.wanted;
    session.client.begins_to_wait();
    let reading = Understood::of(shared, &wanted.parts, &wanted.path, came, session.wishes.clone());
    let understood = session.client.awaits(reading).await?;
    if understood.prewarms() {
        return session.prewarm(shared, Said::Text(text, place)).await;
    }
    session.refused = None;
    let goes_on = understood.goes_on();
    let (kept, _beside) = match place {
        Some(place) if is_kept => (Some((bytes, place)), None),
        place => (None, place),
    };
    let drive = understood.into_call(shared, wanted.parts.clone(), wanted.target.clone(), (kept, None));
    let failed = session.failed.take();
    Call { session, shared: Arc::clone(shared), drive, text, goes_on, end: None, failed }.run().await
}

impl Call<'_> {
    async fn run(mut self) -> Result<(), Parting> {
        let mut told = Vec::new();
        if self.goes_on && self.session.upstream.is_none() {
            return self.resumes(&lost(), None, told).await;
        }
        loop {
            let now = self.drive.open.now();
            let step = self.drive.open.call().next(now);
            self.drive.open.emit_pending();
            match step {
                Step::Wait(waiting) => {
                    if told.iter().map(Said::len).sum::<usize>() > TOLD {
                        told.clear();
                    }
                    match self.wait(&waiting).await? {
                        Wait::Over => {}
                        Wait::Lost => return self.resumes(&lost(), waiting.not_before, told).await,
                        Wait::Notice => return self.notice().await,
                    }
                }
                Step::Send { .. } => match self.send().await? {
                    Sent::Served(held, preamble) => return self.pass(held, *preamble).await,
                    Sent::WantsFullInput(failure, messages) => {
                        return self.resumes(&failure, None, messages).await;
                    }
                    Sent::Unspoken => {
                        self.drive.open.close(Outcome::Returned);
                        return Err(Parting::unspoken());
                    }
                    Sent::Failed(failure, messages) => {
                        told = messages;
                        if self.drive.open.call().parks(&failure).is_some() {
                            let (open, by) = (&self.drive.open, self.drive.speech());
                            open.remember(Spent::in_messages(open, by, &failure, texts_of(&told)));
                        }
                        let again = (*failure).clone();
                        self.drive.open.failed(*failure);
                        let goes_again = self.drive.open.call().waiting().is_some();
                        if goes_again && self.goes_on && self.session.upstream.is_none() {
                            let not_before =
                                self.drive.open.call().waiting().and_then(|waiting| waiting.not_before);
                            return self.resumes(&again, not_before, told).await;
                        }
                    }
                },
                Step::End(ending) => return self.finish(&ending, told).await,
            }
        }
    }

    /// Waits for the call's turn. What the upstream says meanwhile belongs to a send that has failed.
    async fn wait(&mut self, waiting: &Waiting) -> Result<Wait, Parting> {
        if let Err(lacks) = self.prepare() {
            let waiting = Box::pin(self.drive.wait_for_credential(lacks, None));
            return Ok(match self.session.client.awaits(waiting).await? {
                Waited::Notice => Wait::Notice,
                Waited::Turn | Waited::Over | Waited::Again => Wait::Over,
            });
        }
        let Session { client, upstream, .. } = &mut *self.session;
        let waited = {
            let mut turn = pin!(self.drive.open.wait(waiting, None, pending()));
            loop {
                let came = async {
                    tokio::select! {
                        biased;
                        waited = &mut turn => Err(waited),
                        got = next_of(upstream) => Ok(got),
                    }
                };
                match client.awaits(came).await? {
                    Err(waited) => break waited,
                    Ok(Got::Said(_) | Got::Left) => {}
                    Ok(Got::End(end)) => {
                        self.end = Some(end);
                        if self.goes_on {
                            return Ok(Wait::Lost);
                        }
                    }
                }
            }
        };
        match waited {
            // It may have got lost while the call waited.
            Waited::Turn if self.prepare().is_err() => self.drive.open.gives_way(),
            // No other upstream takes what comes over a WebSocket.
            Waited::Turn => drop(self.drive.open.takes_turn(false)),
            Waited::Over | Waited::Again => {}
            Waited::Notice => return Ok(Wait::Notice),
        }
        Ok(Wait::Over)
    }

    /// Shows the client that its call is held, upon which it asks again over a connection of its own.
    async fn notice(self) -> Result<(), Parting> {
        let Self { session, drive, .. } = self;
        let mut open = drive.open;
        let message = notice::socket_message(&open.notice());
        park(open);
        session.client.send(Said::text(message)).await?;
        Ok(())
    }

    /// Has the credential of the relay's own at hand, where a new connection is needed.
    fn prepare(&mut self) -> Result<(), Lacks> {
        match self.session.upstream {
            Some(_) => Ok(()),
            None => self.drive.prepare(),
        }
    }

    async fn send(&mut self) -> Result<Sent, Parting> {
        self.end = None;
        self.drive.open.sends();
        if self.session.upstream.is_none()
            && let Some(failed) = self.connect().await?
        {
            return Ok(failed);
        }
        if let Some(upstream) = &mut self.session.upstream {
            upstream.to.put(Said::text(self.text.clone()));
        }
        self.listen(self.drive.open.now()).await
    }

    /// A new connection to the upstream; what came of the send, where there is none.
    async fn connect(&mut self) -> Result<Option<Sent>, Parting> {
        let (shared, wanted) = (&self.shared, &self.session.wanted);
        let (connect, now) = (shared.config.timeouts.connect, self.drive.open.now());
        let key_by = self.drive.open.call().renews_by(connect, now);
        let limits = Limits { key_by, within: HANDSHAKE + connect };
        let opening = self.session.client.awaits(open(shared, wanted, limits));
        let opened = tokio::select! {
            () = shared.draining() => {
                self.drive.open.close(Outcome::GaveUp);
                return Err(Parting::restarting());
            }
            opened = opening => opened?,
        };
        Ok(Some(match opened {
            Ok(opened) => {
                self.session.upstream = Some(opened.leg);
                self.drive.open.detoured(opened.detour);
                return Ok(None);
            }
            Err(Unopened::Unspoken) => Sent::Unspoken,
            Err(Unopened::Declined(answered) | Unopened::Refused(_, answered)) => {
                let told = wrap(answered.status.as_u16(), &answered.headers, &answered.body);
                Sent::Failed(Box::new(answered.failure), vec![Said::text(told)])
            }
            Err(Unopened::Failed(failure)) => Sent::Failed(failure, Vec::new()),
        }))
    }

    /// The upstream says nothing: what it says later would be taken for the answer to the next request.
    fn no_answer(&mut self, sent: Moment) -> Sent {
        self.session.upstream = None;
        let failure = Failure::of_transport(Fault::NoAnswer, Evidence::NoAnswer);
        let words = format!("silent for {:.0} s", self.shared.clock.now().since(sent).as_secs_f64());
        Sent::Failed(Box::new(failure.saying(words)), Vec::new())
    }

    /// Listens to the answer until it is clear what it is.
    async fn listen(&mut self, sent: Moment) -> Result<Sent, Parting> {
        let asked = self.drive.asked;
        let mut preamble = Preamble::of_messages(asked, sent, self.shared.clock.wall())
            .by(Arc::clone(&self.drive.order.legs.leg().rules));
        let mut silence = IdleLimit::new(self.drive.open.idle());
        let unknown = sent + self.shared.config.timeouts.first_byte_unknown;
        // What keeps a client waiting takes its own limit away, so that there has to be one.
        let mut first_by = Some(self.drive.first_byte_by(sent).unwrap_or(unknown));
        let mut held = Vec::new();
        let mut of_the_last: Option<(Said, Moment)> = None;
        let clock = Arc::clone(&self.shared.clock);
        loop {
            let listens = !self.session.is_sending();
            let Session { client, upstream, .. } = &mut *self.session;
            let decided = of_the_last.as_ref().map(|(_, at)| *at);
            let too_long = async {
                match (decided, first_by) {
                    (Some(at), _) => sleep_until(&*clock, at).await,
                    (None, Some(by)) => sleep_until(&*clock, by).await,
                    (None, None) => silence.passed().await,
                }
            };
            let came = async {
                tokio::select! {
                    biased;
                    got = next_of(upstream) => Some(got),
                    () = too_long => None,
                }
            };
            let message = match client.awaits_beside(came, listens, true).await? {
                First::Done(Some(Got::Said(message))) => message,
                First::Done(Some(Got::Left)) => continue,
                First::Done(Some(Got::End(end))) => {
                    return Ok(Sent::Failed(Box::new(self.ended(&mut preamble, end)), Vec::new()));
                }
                First::Done(None) => match of_the_last.take() {
                    Some((message, _)) => {
                        self.failed = None;
                        message
                    }
                    None => return Ok(self.no_answer(sent)),
                },
                First::Beside(message) => {
                    self.hand_on(message);
                    continue;
                }
            };
            if self.is_of_the_last(&message, &held) {
                of_the_last.get_or_insert((message, clock.now() + OF_THE_LAST));
                continue;
            }
            of_the_last = None;
            silence.restart();
            let verdict = hear(&mut preamble, &message, clock.now());
            held.push(message.compact());
            if let Verdict::Fault(failure) = verdict {
                return Ok(self.told(*failure, held));
            }
            if held.len() == 1 {
                first_by = None;
                self.drive.open.head_arrived(StatusCode::OK, None);
            }
            match verdict {
                Verdict::Hold => {}
                Verdict::Pass | Verdict::Cut { .. } | Verdict::Fault(_) => {
                    return Ok(Sent::Served(held, Box::new(preamble)));
                }
            }
        }
    }

    /// Whether this is one more last word of the answer that failed before, and not of the one that is listened to.
    fn is_of_the_last(&self, message: &Said, held: &[Said]) -> bool {
        self.failed.is_some()
            && message.is_last(self.drive.asked.dialect)
            && answer(message) == self.failed
            && held.iter().find_map(answer) != self.failed
    }

    /// What a failure that a message told of means for the send.
    fn told(&mut self, failure: Failure, messages: Vec<Said>) -> Sent {
        let code = failure.code.as_deref();
        self.failed = messages.iter().find_map(answer);
        let is_over = messages.last().is_some_and(|message| message.is_last(self.drive.asked.dialect));
        if !is_over || self.session.is_sending() {
            // The service goes on with an answer that a rule of the user's has for a failure, or did not wait for the
            // whole request.
            self.session.upstream = None;
        }
        if self.goes_on && wants_full_input(code) && self.drive.open.may_resume() {
            return Sent::WantsFullInput(Box::new(failure), messages);
        }
        if is_used_up(code) {
            // It was not run, and says nothing about the lane.
            self.session.upstream = None;
            let unsent = Failure::of_transport(Fault::NeverSent, Evidence::NeverSent);
            let failure = Box::new(Failure { code: failure.code, ..unsent });
            return if self.goes_on && self.drive.open.may_resume() {
                Sent::WantsFullInput(failure, messages)
            } else {
                Sent::Failed(failure, messages)
            };
        }
        Sent::Failed(Box::new(failure), messages)
    }

    /// The failure that the end of the upstream's side is.
    fn ended(&mut self, preamble: &mut Preamble, end: End) -> Failure {
        let Verdict::Fault(failure) = preamble.broke() else {
            return Failure::of_transport(Fault::BrokenStream, Evidence::MaybeRan);
        };
        let (code, words) = match &end {
            End::Closed(Some(frame)) => {
                ("closed", format!("it closed the WebSocket with {} {}", u16::from(frame.code), frame.reason))
            }
            End::Closed(None) => ("closed", "it closed the WebSocket".to_owned()),
            End::Lost { reset: true, detail } => ("reset", detail.clone()),
            End::Lost { reset: false, detail } => ("closed", detail.clone()),
            End::Violated(frame) => {
                let is_long = frame.code == CloseCode::Size;
                let code = if is_long { "message_too_long" } else { "malformed" };
                (code, format!("it sent {}", frame.reason))
            }
        };
        // What is told by the connection has no status.
        let mut failure =
            Failure { code: Some(code.into()), status: None, ..failure.saying(words.trim_end()) };
        match &end {
            End::Closed(Some(frame)) => {
                if let Some(fault) = fault_of_close(frame.code.into()) {
                    (failure.fault, failure.evidence) = (fault, None);
                }
            }
            End::Violated(_) => failure.barred = Some(Bar::Unfit),
            End::Closed(None) | End::Lost { .. } => {}
        }
        self.end = Some(end);
        failure
    }

    /// Passes the answer, from what was held to its last word.
    async fn pass(mut self, held: Vec<Said>, mut preamble: Preamble) -> Result<(), Parting> {
        self.drive.open.commit();
        self.text = Utf8Bytes::default();
        let first = held.first().and_then(|message| match message {
            Said::Text(text, _) => Some(text.clone()),
            Said::Binary(..) => None,
        });
        for message in held {
            self.drive.open.passes(message.len());
            self.session.client.send(message).await?;
        }
        let mut silence = IdleLimit::new(self.drive.open.idle());
        let mut progress = preamble.progress();
        while !preamble.has_ended() {
            let listens = !self.session.is_sending();
            let Session { client, upstream, .. } = &mut *self.session;
            let came = async {
                tokio::select! {
                    biased;
                    got = next_of(upstream) => Some(got),
                    () = silence.passed() => None,
                }
            };
            let message = match client.awaits_beside(came, listens, false).await? {
                First::Done(Some(Got::Said(message))) => message,
                First::Done(Some(Got::Left)) => continue,
                First::Done(Some(Got::End(end))) => {
                    return Err(self.breaks(&mut preamble, Parting::of_upstream(end)));
                }
                First::Done(None) => return Err(self.breaks(&mut preamble, Parting::Cut)),
                First::Beside(message) => {
                    self.hand_on(message);
                    continue;
                }
            };
            let now = self.drive.open.now();
            if let Verdict::Cut { fault, .. } = hear(&mut preamble, &message, now) {
                self.drive.open.cut(&fault);
                return Err(Parting::again("the service ran out of capacity; go on from here"));
            }
            if progress != preamble.progress() {
                progress = preamble.progress();
                silence.restart();
            }
            self.drive.open.passes(message.len());
            self.session.client.send(message).await?;
        }
        if !preamble.has_completed() {
            self.session.failed = first.as_deref().and_then(answer_of);
        }
        self.close(&mut preamble, Outcome::Served);
        Ok(())
    }

    /// Hands on what the client says beside the answer.
    fn hand_on(&mut self, message: Said) {
        if let Some(upstream) = &mut self.session.upstream {
            upstream.to.put(message);
        }
    }

    /// The answer breaks off.
    fn breaks(&mut self, preamble: &mut Preamble, parting: Parting) -> Parting {
        self.session.upstream = None;
        self.close(preamble, Outcome::Broken);
        parting
    }

    fn close(&mut self, preamble: &mut Preamble, outcome: Outcome) {
        if preamble.has_completed() {
            self.drive.open.turn_completed();
        }
        if let Some(failure) = preamble.take_late() {
            self.drive.open.refused_late(&failure);
        }
        self.drive.open.used(preamble.usage());
        self.drive.open.close(outcome);
    }

    /// The client is to send the whole input over a new connection; there the call waits as it would have here. Where
    /// it is not known to do that, or has done it often enough, it gets what the service said.
    async fn resumes(
        mut self,
        failure: &Failure,
        not_before: Option<Moment>,
        told: Vec<Said>,
    ) -> Result<(), Parting> {
        if self.drive.open.may_resume() {
            self.drive.open.resumed(failure, not_before);
            return Err(Parting::full_input());
        }
        let has_words = !told.is_empty();
        for message in told {
            self.session.client.send(message).await?;
        }
        self.drive.open.close(Outcome::Returned);
        match self.end.take() {
            Some(end) => Err(Parting::of_upstream(end)),
            None if has_words => {
                self.session.failed = self.failed;
                Ok(())
            }
            None => Err(Parting::full_input()),
        }
    }

    async fn finish(mut self, ending: &Ending, mut told: Vec<Said>) -> Result<(), Parting> {
        let outcome = ending.outcome();
        if told.is_empty() && matches!(ending, Ending::Passed(_) | Ending::Parked(_)) {
            let spent = self.drive.open.remembered().and_then(|spent| spent.messages(self.drive.speech()));
            told = spent.into_iter().flatten().map(Said::text).collect();
        }
        self.drive.open.answered(|| in_messages(&told));
        let said = say_in_message(&self.drive.listener(!told.is_empty()), ending);
        let sent = match said {
            SayMessage::Upstream => {
                let mut sent = Ok(());
                for message in told {
                    sent = self.session.client.send(message).await;
                    if sent.is_err() {
                        break;
                    }
                }
                sent
            }
            SayMessage::Own(message) => self.session.client.send(Said::text(message)).await,
            SayMessage::Close => {
                self.drive.open.close(outcome);
                return Err(match (ending, self.end.take()) {
                    (Ending::GaveUp(Stop::Draining, _), _) => Parting::restarting(),
                    (_, Some(end)) => Parting::of_upstream(end),
                    (_, None) => Parting::Cut,
                });
            }
        };
        // However much of it arrived: the client was told.
        self.drive.open.close(outcome);
        self.session.failed = self.failed;
        Ok(sent?)
    }
}

/// What a call goes on from is lost with the connection that knew it, before the call was sent.
const fn lost() -> Failure {
    Failure::of_transport(Fault::NeverSent, Evidence::NeverSent)
}

fn texts_of(told: &[Said]) -> Vec<Utf8Bytes> {
    let text = |message: &Said| match message {
        Said::Text(text, _) => Some(text.clone()),
        Said::Binary(..) => None,
    };
    told.iter().filter_map(text).collect()
}

/// What was told in messages, a line for each.
fn in_messages(told: &[Said]) -> Answered {
    let texts = texts_of(told).into_iter().map(Bytes::from);
    let body = texts.flat_map(|text| [text, Bytes::from_static(b"\n")]).collect();
    Answered { status: None, headers: http::HeaderMap::new(), body, kind: Some("application/x-ndjson") }
}

/// Which answer a message belongs to, where it says so.
fn answer(message: &Said) -> Option<String> {
    match message {
        Said::Text(text, _) => answer_of(text),
        Said::Binary(..) => None,
    }
}

/// What the listener says to a message; a binary one is output.
fn hear(preamble: &mut Preamble, message: &Said, now: Moment) -> Verdict {
    match message {
        // Those without a byte take memory, too.
        Said::Text(text, _) => preamble.hear(text.as_bytes(), text.len() + Said::OVERHEAD, now),
        Said::Binary(..) => preamble.timed_out(),
    }
}
