//! What a client is told when the real answer does not come: the same failure, told so that *this* client
//! neither gives up what could go on nor storms on what is over.
//!
//! Measured: Codex sends a 5xx thirty times and a 400 once, and prints a 400's text whole; an in-stream
//! `server_is_overloaded` ends its turn with its own words after one request. Claude Code and the SDKs obey
//! `x-should-retry: false`. A cut connection leaves the client's own policy in force.

pub mod words;

use std::time::Duration;

use crate::call::{Ending, Stop, Why};
use crate::client::Kind;
use crate::dialect::{Dialect, failed_event, failed_message, responses_socket};
use crate::evidence::Evidence;
use crate::failure::{Bar, CREDENTIAL, Failure, Told};
use crate::fault::Fault;
use crate::redact::{in_one_line, redact};
use crate::retry_after::Advice;
use crate::units::show_duration;
use crate::words::Lang;

/// What the relay does towards the client.
#[derive(Debug, Clone, PartialEq)]
pub enum Say {
    /// The upstream's own answer goes back, its body untouched.
    Upstream(Touch),
    /// The connection is cut, as the upstream's was; what was held of the answer goes first.
    Cut,
    /// The relay speaks for itself.
    Own(Own),
}

/// What is changed at the head of the upstream's own answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Touch {
    /// `x-should-retry: false` is set: the client must not start over.
    pub refuse_retry: bool,
    /// The status, where a 200 would let a failure pass for a success.
    pub status: Option<u16>,
}

/// An answer in the relay's own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Own {
    /// The status.
    pub status: u16,
    /// The `content-type`.
    pub content_type: &'static str,
    /// The body.
    pub body: String,
    /// Whether `x-should-retry: false` goes with it.
    pub refuse_retry: bool,
}

/// What has to be known to speak.
#[derive(Debug, Clone, Copy)]
pub struct Listener<'a> {
    /// The client.
    pub kind: Kind,
    /// Its dialect.
    pub dialect: &'static dyn Dialect,
    /// It asked a model for an answer.
    pub generation: bool,
    /// It asked for a stream.
    pub streams: bool,
    /// Who was asked, for the message: the upstream's host and port.
    pub upstream: &'a str,
    /// Where every breaker is open: each upstream, what happened there and when it is tried again.
    pub circuits: &'a str,
    /// What was tried.
    pub tried: Tried,
    /// The answer that told of the last failure is at hand.
    pub has_answer: bool,
    /// It is told how its call went beside the answer, and by that knows a cut connection as well as another client does
    /// by having one.
    pub reported: bool,
    /// The language of what the relay says itself.
    pub lang: Lang,
}

/// What was tried, for the message.
#[derive(Debug, Clone, Copy)]
pub struct Tried {
    /// Sends of this call.
    pub sends: u32,
    /// Sends of earlier tries of it, which its client has made.
    pub earlier: u32,
    /// From accept until now.
    pub took: Duration,
    /// The longest the client is kept waiting.
    pub patience: Duration,
}

/// What to tell the client at the end of a call that was not served.
#[must_use]
pub fn say(listener: &Listener<'_>, ending: &Ending) -> Say {
    match ending {
        // What told of it was too long to be kept, or is for another dialect.
        Ending::Passed(failure) | Ending::Parked(failure)
            if !listener.has_answer && failure.told != Told::ByTransport =>
        {
            let status = failure.status.filter(|status| *status >= 400);
            let message = spent(listener, failure);
            own(listener, status.unwrap_or(status_of(failure.fault)), failure, "quota_parked", &message)
        }
        Ending::Committed | Ending::Passed(_) | Ending::Parked(_) => Say::Upstream(Touch::default()),
        Ending::Returned(failure) => match failure.told {
            Told::ByStatus | Told::InBody | Told::InStream => Say::Upstream(Touch::default()),
            Told::ByTransport if listener.reported => refuse(listener, Why::MayHaveRun, failure),
            Told::ByTransport => Say::Cut,
        },
        Ending::Refused(why, failure) => refuse(listener, *why, failure),
        Ending::GaveUp(Stop::Draining, failure) if listener.reported => {
            stopping(listener, failure.as_deref())
        }
        Ending::GaveUp(Stop::Draining, _) | Ending::ClientLeft => Say::Cut,
        Ending::GaveUp(Stop::CircuitsOpen, _) => shut_out(listener),
        Ending::GaveUp(stop, None) => unsent(listener, *stop),
        Ending::GaveUp(stop, Some(failure)) => gave_up(listener, *stop, failure),
    }
}

/// What the relay does towards the client of a WebSocket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SayMessage {
    /// The upstream's own messages go back.
    Upstream,
    /// The connection is closed, upon which the client goes by its own policy.
    Close,
    /// The relay speaks for itself, in this message.
    Own(String),
}

/// The same at the end of a call that came on a WebSocket.
///
/// Codex prints the message of a `response.failed` with the code `invalid_prompt` whole, and does not send again. It
/// does send again what is refused in a message that names a time to come back, which an event over HTTP cannot.
#[must_use]
pub fn say_in_message(listener: &Listener<'_>, ending: &Ending) -> SayMessage {
    let said = match (say(listener, ending), ending) {
        (Say::Upstream(_), Ending::GaveUp(_, Some(failure)))
            if speaks_codex(listener) && failure.advice != Advice::Silent =>
        {
            codex_capacity(failure)
        }
        (said, _) => said,
    };
    match said {
        Say::Upstream(_) if listener.has_answer => SayMessage::Upstream,
        Say::Upstream(_) | Say::Cut => SayMessage::Close,
        Say::Own(own) => {
            SayMessage::Own(match own.body.lines().find_map(|line| line.strip_prefix("data: ")) {
                Some(data) if own.content_type == EVENT_STREAM => data.to_owned(),
                Some(_) | None if listener.kind == Kind::Codex => failed_message("invalid_prompt", &own.body),
                Some(_) | None => responses_socket::error_message(own.status, &own.body),
            })
        }
    }
}

/// The end of a call that was not sent at all: it may not be, or its turn was cut and must not go on yet.
fn unsent(listener: &Listener<'_>, stop: Stop) -> Say {
    let lang = listener.lang;
    let failure = |fault| Failure::of_transport(fault, Evidence::NeverSent);
    match stop {
        Stop::SendsSpent => {
            let (what, hint) = match listener.tried.earlier {
                0 => (words::no_send(lang), words::raise_sends_alone(lang)),
                earlier => {
                    (words::all_sent(lang, &words::sends(lang, earlier)), words::later_or_more_sends(lang))
                }
            };
            let message = words::lines(lang, &what, "", &hint);
            own(listener, status_of(Fault::NeverSent), &failure(Fault::NeverSent), stop_code(stop), &message)
        }
        Stop::PatienceSpent | Stop::FloorTooFar | Stop::CircuitsOpen | Stop::Draining => {
            let failure = failure(Fault::AtCapacity);
            if speaks_codex(listener) && listener.streams {
                return codex_capacity(&failure);
            }
            let patience = show_duration(listener.tried.patience);
            let what = if stop == Stop::FloorTooFar {
                words::pause_too_long(lang, listener.upstream, &patience)
            } else {
                words::line_too_long(lang, listener.upstream, &patience)
            };
            let message = words::lines(lang, &what, "", &words::later_or_more_patience(lang));
            own(listener, status_of(failure.fault), &failure, stop_code(stop), &message)
        }
    }
}

/// Every breaker is open: there is no answer of a service to hand on, and each upstream is named instead.
fn shut_out(listener: &Listener<'_>) -> Say {
    let lang = listener.lang;
    let failure = Failure::of_transport(Fault::NeverSent, Evidence::NeverSent);
    let what = words::circuits_open(lang, listener.circuits);
    let message = words::lines(lang, &what, "", &words::circuits_hint(lang));
    own(listener, CIRCUITS_OPEN, &failure, stop_code(Stop::CircuitsOpen), &message)
}

/// Whether what failed so may have run, as far as its evidence tells.
fn may_have_run(failure: &Failure) -> bool {
    match failure.evidence {
        None | Some(Evidence::NeverSent | Evidence::Refused) => false,
        Some(Evidence::Failed | Evidence::MaybeRan | Evidence::NoAnswer | Evidence::Committed) => true,
    }
}

/// The relay ends, and the call was waiting: for a second send of what may have run, too.
fn stopping(listener: &Listener<'_>, last: Option<&Failure>) -> Say {
    let mut failures = std::iter::successors(last, |failure| failure.earlier.as_deref());
    if let Some(failure) = failures.find(|failure| may_have_run(failure)) {
        return refuse(listener, Why::MayHaveRun, failure);
    }
    let lang = listener.lang;
    let failure = Failure::of_transport(Fault::NeverSent, Evidence::NeverSent);
    let message = words::lines(lang, &words::stopping(lang), "", &words::send_again(lang));
    own(listener, STOPPING, &failure, stop_code(Stop::Draining), &message)
}

/// The status where no upstream may be asked: the relay itself is fine, and so is the request.
const CIRCUITS_OPEN: u16 = 503;

/// What a stream that was begun early tells of a success that cannot go into it: `what` the service answered. Told like
/// a request that is wrong, which no client sends again, and neither does another relay in front of this one.
#[must_use]
pub fn not_streamed(lang: Lang, dialect: &dyn Dialect, what: &str) -> String {
    let words = words::not_streamed(lang, what);
    dialect.error_event(&dialect.error_body(NOT_AGAIN, Fault::BadRequest, "answer_not_streamed", &words))
}

/// We do not send again what may have run, and the client must not either: an answer of our own is no 5xx.
fn refuse(listener: &Listener<'_>, why: Why, failure: &Failure) -> Say {
    let obeys = matches!(listener.kind, Kind::ClaudeCode | Kind::Stainless);
    let status = match why {
        Why::MayHaveRun if failure.told == Told::ByStatus && obeys => {
            return Say::Upstream(Touch { refuse_retry: true, status: None });
        }
        // It reads in the report that it must not, so that the status may say what happened.
        Why::MayHaveRun if listener.reported => BAD_GATEWAY,
        Why::StillRunning if listener.reported => GATEWAY_TIMEOUT,
        Why::MayHaveRun | Why::StillRunning | Why::Barred(Bar::Unfit) => MAY_HAVE_RUN,
        Why::Barred(_) if listener.kind == Kind::GeminiCli => NOT_AGAIN,
        Why::Barred(_) => status_of(Fault::NeverSent),
    };
    own(listener, status, failure, refusal_code(why, failure), &refusal(listener, why, failure))
}

/// The `content-type` of a stream of events.
pub const EVENT_STREAM: &str = "text/event-stream";

/// Codes after which Codex ends the turn at once, in its own words, when they come in a stream.
const CODEX_FINAL: &[&str] = &["server_is_overloaded", "policy_capacity_unavailable", "flex_unavailable"];

fn gave_up(listener: &Listener<'_>, stop: Stop, failure: &Failure) -> Say {
    let message = || given_up(listener, stop, failure);
    if speaks_codex(listener) {
        let final_in_stream = failure.told == Told::InStream
            && failure.code.as_deref().is_some_and(|code| CODEX_FINAL.contains(&code));
        return match failure.fault {
            _ if final_in_stream && listener.has_answer => Say::Upstream(Touch::default()),
            Fault::AtCapacity | Fault::Overloaded if listener.streams => codex_capacity(failure),
            // One request, and the words of the service: but a Retry-After would arm it again.
            Fault::Throttled
                if failure.status == Some(429) && failure.advice == Advice::Silent && listener.has_answer =>
            {
                Say::Upstream(Touch { refuse_retry: true, status: None })
            }
            Fault::AtCapacity
            | Fault::Overloaded
            | Fault::ModelLoading
            | Fault::Throttled
            | Fault::QuotaSpent
            | Fault::Authentication
            | Fault::BadRequest
            | Fault::TooLong
            | Fault::ContentRefused
            | Fault::Challenge
            | Fault::ServerFailed
            | Fault::BrokenStream
            | Fault::EmptyAnswer
            | Fault::NoAnswer
            | Fault::NeverSent => {
                own(listener, status_of(failure.fault), failure, stop_code(stop), &message())
            }
        };
    }
    match failure.told {
        // It was too long to be kept while its call waited.
        Told::ByStatus | Told::InBody | Told::InStream if !listener.has_answer => {
            own(listener, status_of(failure.fault), failure, stop_code(stop), &message())
        }
        // A 200 that carries an error, or a page, reads as an empty success in the SDKs.
        Told::ByStatus | Told::InBody => {
            let hides = failure.status.is_some_and(|status| status < 400);
            let status = hides.then(|| status_of(failure.fault));
            Say::Upstream(Touch { refuse_retry: true, status })
        }
        // Claude Code would send it four times; with a status and the refusal to retry, once.
        Told::InStream if listener.kind == Kind::ClaudeCode => {
            let words = failure.message.as_deref().unwrap_or(failure.fault.meaning_in(listener.lang));
            let code = failure.code.as_deref().unwrap_or(stop_code(stop));
            own(listener, status_of(failure.fault), failure, code, &redact(words))
        }
        Told::InStream => Say::Upstream(Touch { refuse_retry: true, status: None }),
        Told::ByTransport => own(listener, status_of(failure.fault), failure, stop_code(stop), &message()),
    }
}

fn speaks_codex(listener: &Listener<'_>) -> bool {
    listener.kind == Kind::Codex && listener.generation && listener.dialect.name() == "openai_responses"
}

fn codex_capacity(failure: &Failure) -> Say {
    let words =
        failure.message.as_deref().unwrap_or("Selected model is at capacity. Please try a different model.");
    Say::Own(Own {
        status: 200,
        content_type: EVENT_STREAM,
        body: failed_event("server_is_overloaded", &redact(words)),
        // Codex does not read it; another relay in front of this one does.
        refuse_retry: true,
    })
}

fn own(listener: &Listener<'_>, status: u16, failure: &Failure, code: &str, message: &str) -> Say {
    // Gemini CLI sends a 429 again, up to ten times.
    let status = if listener.kind == Kind::GeminiCli && status == MAY_HAVE_RUN { NOT_AGAIN } else { status };
    Say::Own(if speaks_codex(listener) {
        // A 400's body is printed whole, and the request is not sent again.
        Own {
            status: 400,
            content_type: "text/plain; charset=utf-8",
            body: format!("{message} [{code}]"),
            refuse_retry: true,
        }
    } else {
        Own {
            status,
            content_type: "application/json",
            body: listener.dialect.error_body(status, failure.fault, code, message).to_string(),
            refuse_retry: true,
        }
    })
}

/// The most that is quoted of words from outside.
const SHOWN: usize = 300;

/// The status of what may have run: clients that do not read `x-should-retry` send every 5xx again.
const MAY_HAVE_RUN: u16 = 429;

/// Those of what may have run, for a client that needs no such care.
const BAD_GATEWAY: u16 = 502;
const GATEWAY_TIMEOUT: u16 = 504;

/// The status where the relay stops.
const STOPPING: u16 = 503;

/// The status that no client sends again.
const NOT_AGAIN: u16 = 400;

/// The status of an answer of our own.
const fn status_of(fault: Fault) -> u16 {
    match fault {
        Fault::AtCapacity | Fault::ModelLoading => 503,
        Fault::Overloaded => 529,
        Fault::Throttled | Fault::QuotaSpent => 429,
        Fault::Authentication => 401,
        Fault::BadRequest | Fault::ContentRefused => 400,
        Fault::TooLong => 413,
        Fault::Challenge => 403,
        Fault::ServerFailed | Fault::NeverSent => 502,
        Fault::BrokenStream | Fault::EmptyAnswer | Fault::NoAnswer => MAY_HAVE_RUN,
    }
}

/// The codes of what the relay says itself; they are part of its interface.
const fn stop_code(stop: Stop) -> &'static str {
    match stop {
        Stop::SendsSpent => "sends_exhausted",
        Stop::PatienceSpent | Stop::FloorTooFar => "patience_exhausted",
        Stop::Draining => "relay_stopping",
        Stop::CircuitsOpen => "circuits_open",
    }
}

fn refusal_code(why: Why, failure: &Failure) -> &'static str {
    match why {
        Why::StillRunning => "upstream_no_response",
        Why::Barred(Bar::Certificate) => "upstream_certificate_refused",
        Why::Barred(Bar::Proxy) => "proxy_refused",
        Why::Barred(Bar::Unfit) => "upstream_answer_unfit",
        Why::Barred(Bar::Credential) => "relay_credential_missing",
        Why::MayHaveRun => match failure.told {
            Told::ByTransport if failure.code.as_deref() == Some("reset") => "upstream_reset_replay_refused",
            Told::ByTransport => "upstream_closed_before_response",
            // It did answer, with a failure so late that the request may have run before.
            Told::ByStatus | Told::InBody | Told::InStream => "upstream_error_replay_refused",
        },
    }
}

fn refusal(listener: &Listener<'_>, why: Why, failure: &Failure) -> String {
    let (lang, who) = (listener.lang, listener.upstream);
    let sends = words::sends(lang, listener.tried.sends);
    let seconds = format!("{:.1}", listener.tried.took.as_secs_f64());
    let after = after_colon(lang, failure);
    let (what, hint) = match why {
        Why::StillRunning => (words::still_running(lang, who, &sends, &seconds), words::raise_timeouts(lang)),
        Why::MayHaveRun => {
            let what = match failure.told {
                Told::ByTransport => words::ended_early(lang),
                Told::ByStatus | Told::InBody | Told::InStream => answered(lang, failure),
            };
            (words::may_have_run(lang, who, &what, &sends, &seconds), words::resend_yourself(lang))
        }
        Why::Barred(Bar::Certificate) => (words::certificate(lang, who, &after), words::name_the_ca(lang)),
        Why::Barred(Bar::Proxy) => (words::proxy(lang, who, &after), words::mend_the_proxy(lang)),
        Why::Barred(Bar::Unfit) => {
            (words::unfit(lang, who, &after, &sends, &seconds), words::mend_the_fit(lang))
        }
        Why::Barred(Bar::Credential) => {
            (words::credential(lang, who, &after), words::mend_the_credential(lang))
        }
    };
    lines(listener, failure, &what, &hint)
}

fn given_up(listener: &Listener<'_>, stop: Stop, failure: &Failure) -> String {
    let lang = listener.lang;
    if failure.code.as_deref() == Some(CREDENTIAL) {
        // The upstream was never asked, and is not to blame. Nor are the settings: what somebody has to mend bars the call.
        let what = words::credential(lang, listener.upstream, &after_colon(lang, failure));
        return lines(listener, failure, &what, &words::await_the_credential(lang));
    }
    let what = match failure.told {
        Told::ByTransport => {
            words::could_not_answer(lang, failure.fault.meaning_in(lang), &after_colon(lang, failure))
        }
        Told::ByStatus | Told::InBody | Told::InStream => answered(lang, failure),
    };
    let sends = words::sends(lang, listener.tried.sends);
    let seconds = format!("{:.1}", listener.tried.took.as_secs_f64());
    let what = words::gave_up(lang, &sends, &seconds, listener.upstream, &what);
    let patience = format!("{:.0}", listener.tried.patience.as_secs_f64());
    let hint = match stop {
        // Nothing of it ever arrived: that is the address or the network, seldom a lack of room.
        Stop::SendsSpent | Stop::PatienceSpent | Stop::FloorTooFar if failure.fault == Fault::NeverSent => {
            words::check_address(lang)
        }
        Stop::SendsSpent => words::raise_sends(lang),
        Stop::FloorTooFar => match failure.advice {
            Advice::Wait(told) => words::wait_named(lang, &format!("{:.0}", told.as_secs_f64()), &patience),
            Advice::Silent | Advice::Useless => words::wait_unnamed(lang, &patience),
        },
        Stop::PatienceSpent | Stop::CircuitsOpen | Stop::Draining => words::raise_patience(lang, &patience),
    };
    lines(listener, failure, &what, &hint)
}

/// What was answered to whoever asked when the lane was parked.
fn spent(listener: &Listener<'_>, failure: &Failure) -> String {
    let lang = listener.lang;
    let what = words::spent(lang, listener.upstream, &answered(lang, failure));
    lines(listener, failure, &what, &words::ask_or_wait(lang))
}

/// At most three: what happened, what was answered before, what to do.
fn lines(listener: &Listener<'_>, failure: &Failure, what: &str, hint: &str) -> String {
    let lang = listener.lang;
    let earlier = failure.earlier.as_deref();
    let earlier = earlier.map(|earlier| words::earlier(lang, listener.upstream, &answered(lang, earlier)));
    words::lines(lang, what, &earlier.unwrap_or_default(), hint)
}

fn answered(lang: Lang, failure: &Failure) -> String {
    let said = in_one_line(failure.message.as_deref().unwrap_or(failure.fault.meaning_in(lang)), SHOWN);
    match failure.status {
        Some(status) => words::answered_status(lang, status, &said),
        None => words::answered(lang, &said),
    }
}

fn after_colon(lang: Lang, failure: &Failure) -> String {
    let colon = match lang {
        Lang::English => ": ",
        Lang::Chinese => "：",
    };
    let said = failure.message.as_deref().map(|said| format!("{colon}{}", in_one_line(said, SHOWN)));
    said.unwrap_or_default()
}

#[cfg(test)]
mod tests;
