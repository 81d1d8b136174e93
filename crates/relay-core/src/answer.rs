//! What a client is told when the real answer does not come: the same failure, told so that *this* client
//! neither gives up what could go on nor storms on what is over.
//!
//! Measured: Codex sends a 5xx thirty times and a 400 once, and prints a 400's text whole; an in-stream
//! `server_is_overloaded` ends its turn with its own words after one request. Claude Code and the SDKs obey
//! `x-should-retry: false`. A cut connection leaves the client's own policy in force.

use std::time::Duration;

use crate::call::{Ending, Stop, Why};
use crate::client::Kind;
use crate::dialect::{Dialect, failed_event, failed_message, responses_socket};
use crate::evidence::Evidence;
use crate::failure::{Bar, Failure, Told};
use crate::fault::Fault;
use crate::redact::{in_one_line, redact};
use crate::retry_after::Advice;
use crate::units::show_duration;

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
    /// Who was asked, for the message: the upstream's host.
    pub upstream: &'a str,
    /// What was tried.
    pub tried: Tried,
    /// The answer that told of the last failure is at hand.
    pub has_answer: bool,
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
        Ending::Committed | Ending::Passed(_) => Say::Upstream(Touch::default()),
        Ending::Returned(failure) => match failure.told {
            Told::ByStatus | Told::InBody | Told::InStream => Say::Upstream(Touch::default()),
            Told::ByTransport => Say::Cut,
        },
        Ending::Refused(why, failure) => refuse(listener, *why, failure),
        Ending::GaveUp(Stop::Draining, _) | Ending::ClientLeft => Say::Cut,
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
    let failure = |fault| Failure::of_transport(fault, Evidence::NeverSent);
    match stop {
        Stop::SendsSpent => {
            let message = match listener.tried.earlier {
                0 => "steady-relay: this call may not be sent: its profile allows no send.\n\
                      hint: raise `sends` of the profile"
                    .to_owned(),
                earlier => format!(
                    "steady-relay: this call was not sent: {} of it went before, and its profile allows no more.\n\
                     hint: try again later, or raise `sends` of the profile",
                    sends(earlier)
                ),
            };
            own(listener, status_of(Fault::NeverSent), &failure(Fault::NeverSent), stop_code(stop), &message)
        }
        Stop::PatienceSpent | Stop::FloorTooFar | Stop::Draining => {
            let failure = failure(Fault::AtCapacity);
            if speaks_codex(listener) && listener.streams {
                return codex_capacity(&failure);
            }
            let what = if stop == Stop::FloorTooFar {
                "asked for a pause that outlasts"
            } else {
                "was short of capacity, with others before it in line, for all of"
            };
            let message = format!(
                "steady-relay: this call was not sent: {} {what} the {} that it may wait.\n\
                 hint: come back later, or raise `patience`",
                listener.upstream,
                show_duration(listener.tried.patience)
            );
            own(listener, status_of(failure.fault), &failure, stop_code(stop), &message)
        }
    }
}

/// What a stream that was begun early tells of a success that cannot go into it: `what` the service answered. Told like
/// a request that is wrong, which no client sends again, and neither does another relay in front of this one.
#[must_use]
pub fn not_streamed(dialect: &dyn Dialect, what: &str) -> String {
    let words = format!(
        "steady-relay: {what}, and the stream that was asked for had begun: the answer is lost. The request ran and may \
         have been billed, so it was not sent again.\n\
         hint: turn `early_commit` off for services that do not stream, or ask for no stream"
    );
    dialect.error_event(&dialect.error_body(NOT_AGAIN, Fault::BadRequest, "answer_not_streamed", &words))
}

/// We do not send again what may have run, and the client must not either: an answer of our own is no 5xx.
fn refuse(listener: &Listener<'_>, why: Why, failure: &Failure) -> Say {
    let obeys = matches!(listener.kind, Kind::ClaudeCode | Kind::Stainless);
    let status = match why {
        Why::MayHaveRun if failure.told == Told::ByStatus && obeys => {
            return Say::Upstream(Touch { refuse_retry: true, status: None });
        }
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
            let words = failure.message.as_deref().unwrap_or(failure.fault.meaning());
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
        Stop::PatienceSpent | Stop::FloorTooFar | Stop::Draining => "patience_exhausted",
    }
}

fn refusal_code(why: Why, failure: &Failure) -> &'static str {
    match why {
        Why::StillRunning => "upstream_no_response",
        Why::Barred(Bar::Certificate) => "upstream_certificate_refused",
        Why::Barred(Bar::Proxy) => "proxy_refused",
        Why::Barred(Bar::Unfit) => "upstream_answer_unfit",
        Why::MayHaveRun if failure.code.as_deref() == Some("reset") => "upstream_reset_replay_refused",
        Why::MayHaveRun => "upstream_closed_before_response",
    }
}

fn refusal(listener: &Listener<'_>, why: Why, failure: &Failure) -> String {
    let who = listener.upstream;
    let sends = sends(listener.tried.sends);
    let seconds = listener.tried.took.as_secs_f64();
    let (what, hint) = match why {
        Why::StillRunning => (
            format!(
                "{who} did not answer in time ({sends}, {seconds:.1} s); the request is probably still running \
                 there, so it was not sent again."
            ),
            "try again later, or raise `timeouts.first_byte` and `timeouts.idle`",
        ),
        Why::MayHaveRun => {
            let what = match failure.told {
                Told::ByTransport => "the connection ended without a whole answer".to_owned(),
                Told::ByStatus | Told::InBody | Told::InStream => answered(failure),
            };
            (
                format!(
                    "{who}: {what} ({sends}, {seconds:.1} s); the request may have run, so it was not sent again \
                     (ambiguous_resends = 0)."
                ),
                "try again yourself, or set `ambiguous_resends = 1`",
            )
        }
        Why::Barred(Bar::Certificate) => (
            format!("the certificate of {who} was not accepted{}.", after_colon(failure)),
            "give your company's CA by `ca_file` or SSL_CERT_FILE; checking cannot be turned off",
        ),
        Why::Barred(Bar::Proxy) => (
            format!("the proxy on the way to {who} does not let the relay through{}.", after_colon(failure)),
            "put its user name and password into HTTPS_PROXY or the key `proxy`, have it allow this connection, or \
             set `proxy = \"none\"`",
        ),
        Why::Barred(Bar::Unfit) => (
            format!(
                "the answer of {who} cannot be passed on{} ({sends}, {seconds:.1} s); the request may have run, so it \
                 was not sent again.",
                after_colon(failure)
            ),
            "raise `limits.message` where it is too long, or set `websocket = \"refuse\"` for this service",
        ),
    };
    lines(listener, failure, &what, hint)
}

fn given_up(listener: &Listener<'_>, stop: Stop, failure: &Failure) -> String {
    let what = match failure.told {
        Told::ByTransport => {
            format!("could not answer ({}{})", failure.fault.meaning(), after_colon(failure))
        }
        Told::ByStatus | Told::InBody | Told::InStream => answered(failure),
    };
    let what = format!(
        "gave up after {} in {:.1} s: {} {what}.",
        sends(listener.tried.sends),
        listener.tried.took.as_secs_f64(),
        listener.upstream
    );
    let patience = listener.tried.patience.as_secs_f64();
    let hint = match stop {
        // Nothing of it ever arrived: that is the address or the network, seldom a lack of room.
        Stop::SendsSpent | Stop::PatienceSpent | Stop::FloorTooFar if failure.fault == Fault::NeverSent => {
            "check that this is the right address, that the service runs, and that the network leads there"
                .to_owned()
        }
        Stop::SendsSpent => "raise `sends` of the profile, or choose another model".to_owned(),
        Stop::FloorTooFar => match failure.advice {
            Advice::Wait(told) => format!(
                "the service asks for a wait of {:.0} s, patience is {patience:.0} s; come back then, or raise `patience`",
                told.as_secs_f64()
            ),
            Advice::Silent | Advice::Useless => format!("patience is {patience:.0} s; raise `patience`"),
        },
        Stop::PatienceSpent | Stop::Draining => {
            format!("patience is {patience:.0} s; raise `patience`, or choose another model")
        }
    };
    lines(listener, failure, &what, &hint)
}

/// At most three: what happened, what was answered before, what to do.
fn lines(listener: &Listener<'_>, failure: &Failure, what: &str, hint: &str) -> String {
    let earlier = failure.earlier.as_deref().map_or_else(String::new, |earlier| {
        format!("\nbefore that: {} {}", listener.upstream, answered(earlier))
    });
    format!("steady-relay: {what}{earlier}\nhint: {hint}")
}

fn answered(failure: &Failure) -> String {
    let words = in_one_line(failure.message.as_deref().unwrap_or(failure.fault.meaning()), SHOWN);
    match failure.status {
        Some(status) => format!("answered {status}, \"{words}\""),
        None => format!("answered \"{words}\""),
    }
}

fn after_colon(failure: &Failure) -> String {
    failure.message.as_deref().map(|words| format!(": {}", in_one_line(words, SHOWN))).unwrap_or_default()
}

fn sends(count: u32) -> String {
    if count == 1 { "1 send".to_owned() } else { format!("{count} sends") }
}

#[cfg(test)]
mod tests;
